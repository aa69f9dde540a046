//! SimplifyExpr, with rules that do not hold.

use std::sync::Arc;

use anfora::manager::{FunctionPass, Pass};
use anfora::passes::FromRules;
use anfora::visit::pattern::RuleSet;
use anfora::visit::rules;

use super::Broken;
use crate::random_programs::checking::Why;

const OF: &str = "SimplifyExpr";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: OF,
        mistake: "leaves out any factor",
        why: &[Why::OtherResult],
        make: || pass(rules!["multiply(%x, %_)" => "%x"]),
    },
    Broken {
        of: OF,
        mistake: "takes a difference for a sum",
        why: &[Why::OtherResult],
        make: || pass(rules!["subtract(%x, %y)" => "add(%x, %y)"]),
    },
];

fn pass(rules: RuleSet) -> Arc<dyn Pass> {
    Arc::new(FunctionPass::from_rules(OF, 1, rules))
}

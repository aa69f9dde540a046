//! SimplifyExpr and FuseStandardOps, with rules that do not hold.

use std::sync::Arc;

use anfora::manager::{FunctionPass, Pass};
use anfora::passes::FromRules;
use anfora::visit::pattern::RuleSet;
use anfora::visit::rules;

use super::Broken;
use crate::random_programs::checking::Why;

const SIMPLIFY: &str = "SimplifyExpr";
const FUSE: &str = "FuseStandardOps";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: SIMPLIFY,
        mistake: "leaves out any factor",
        why: &[Why::OtherResult],
        make: || pass(SIMPLIFY, rules!["multiply(%x, %_)" => "%x"]),
    },
    Broken {
        of: SIMPLIFY,
        mistake: "takes a difference for a sum",
        why: &[Why::OtherResult],
        make: || pass(SIMPLIFY, rules!["subtract(%x, %y)" => "add(%x, %y)"]),
    },
    Broken {
        of: FUSE,
        mistake: "leaves out the factor before a sigmoid",
        why: &[Why::OtherResult],
        make: || pass(FUSE, rules!["multiply(%x, sigmoid(%x))" => "sigmoid(%x)"]),
    },
    Broken {
        of: FUSE,
        mistake: "takes one activation for another",
        why: &[Why::OtherResult],
        make: || pass(FUSE, rules!["multiply(%x, sigmoid(%x))" => "nn.gelu(%x)"]),
    },
];

fn pass(name: &str, rules: RuleSet) -> Arc<dyn Pass> {
    Arc::new(FunctionPass::from_rules(name, 1, rules))
}

//! DecomposeOps, with steps that compute something else.

use std::sync::Arc;

use anfora::manager::{FunctionPass, Pass};
use anfora::passes::FromRules;
use anfora::visit::pattern::RuleSet;
use anfora::visit::rules;

use super::{Broken, in_sequence, registered};
use crate::random_programs::checking::Why;

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: "DecomposeOps",
        mistake: "forgets that a softmax is over one axis",
        why: &[Why::OtherResult],
        make: || steps(rules!["nn.softmax(%x)" => "divide(exp(%x), sum(exp(%x)))"]),
    },
    Broken {
        of: "DecomposeOps",
        mistake: "exchanges the bounds of a clip",
        why: &[Why::OtherResult],
        make: || steps(rules!["clip(%x, %l, %h)" => "maximum(minimum(%x, %l), %h)"]),
    },
    Broken {
        of: "DecomposeOps",
        mistake: "takes the slope of a leaky relu for that of a relu",
        why: &[Why::OtherResult],
        make: || steps(rules!["nn.leaky_relu(%x)" => "nn.relu(%x)"]),
    },
];

/// Returns the pass with other steps for an operator.
fn steps(rules: RuleSet) -> Arc<dyn Pass> {
    let wrong = FunctionPass::from_rules("DecomposeOps", 0, rules);
    in_sequence([Arc::new(wrong), registered("DecomposeOps")])
}

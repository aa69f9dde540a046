//! Checks that passes make well-formed modules, which the context and
//! [`VerifyEach`](crate::VerifyEach) run.

use anfora_ir::{Diagnostic, Diagnostics, FunctionKey, Module, verify_functions, verify_module};

use crate::context::PassContext;
use crate::error::PassError;
use crate::phases::check_claim;
use crate::registry::PassRegistry;

/// The verification of the results of passes by the context, besides what its instruments do.
///
/// By default, a context verifies in builds with debug assertions, and does not in others.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verification {
    /// After each pass that changed something, the functions that it changed are verified, and all
    /// functions if it changed a signature, a name or the claim of the module. A pass that made an
    /// ill-formed module has failed, and its changes are rolled back. A pass that overwrote a node
    /// with several uses leaves a remark (in builds with debug assertions), unless it
    /// [declared](anfora_ir::SharedEdits) that it means all of them.
    AfterEachPass,
    /// No verification, for measuring passes.
    Off,
}

impl Default for Verification {
    fn default() -> Verification {
        if cfg!(debug_assertions) { Verification::AfterEachPass } else { Verification::Off }
    }
}

/// Checks the changed parts of a module whose edit is open.
pub(crate) fn check_changed(module: &Module, registry: &PassRegistry) -> Result<(), PassError> {
    let changed: Vec<FunctionKey> = module.affected_functions();
    check_made(verify_functions(module, &changed).map(drop), module, registry)
}

/// Checks a whole module that a pass made.
pub(crate) fn check_all(module: &Module, registry: &PassRegistry) -> Result<(), PassError> {
    check_made(verify_module(module).map(drop), module, registry)
}

const MADE: &str = "the pass made an ill-formed module";

fn check_made(verified: Result<(), Diagnostics>, module: &Module, registry: &PassRegistry) -> Result<(), PassError> {
    verified.map_err(|found| ill_formed(found, MADE))?;
    check_claim(module, registry).map_err(|error| {
        let message = format!("{MADE}: {}", error.message());
        error.with_message(message)
    })
}

/// Makes the error for the findings of the verifier, under a headline.
pub(crate) fn ill_formed(found: Diagnostics, headline: &str) -> PassError {
    let first = PassError::from(found);
    let message = format!("{headline}: {}", first.message());
    first.with_message(message)
}

/// Leaves a remark about each node with several uses that the pass, which is about to end,
/// overwrote.
pub(crate) fn report_shared_edits(module: &mut Module, cx: &PassContext) {
    for key in module.order().to_vec() {
        let edited = module.get_mut(key).map_or_else(Vec::new, |(f, _)| f.body.take_edited_shared());
        for (node, uses) in edited {
            let remark = Diagnostic::remark(format!("a node that hangs at {uses} places was overwritten, at all of them"))
                .with_help(
                    "to change one use only, put a new node there; if all are meant, call `body.shared_edits(SharedEdits::Meant)`",
                );
            cx.report(module, key, node, remark);
        }
    }
}

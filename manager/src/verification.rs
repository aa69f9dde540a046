//! Checks that passes make well-formed modules, which the context and
//! [`VerifyEach`](crate::VerifyEach) run.

use anfora_ir::{Diagnostic, Diagnostics, Module};

use crate::error::PassError;
use crate::phases::check_claim;
use crate::properties::Properties;

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

const MADE: &str = "the pass made an ill-formed module";

/// Checks a module that a pass made, given what the verifier found in it or in its changed parts.
pub(crate) fn check_made<T>(
    verified: Result<T, Diagnostics>,
    module: &Module,
    known: &Properties,
) -> Result<(), PassError> {
    verified.map_err(|found| ill_formed(found, MADE))?;
    check_claim(module, known).map_err(|error| {
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

/// Returns the remark about a node with several uses that a pass overwrote.
pub(crate) fn shared_edit(uses: usize) -> Diagnostic {
    Diagnostic::remark(format!("a node with {uses} uses was overwritten, so all of them changed")).with_help(
        "to change one use only, put a new node there; if all are meant, call `body.shared_edits(SharedEdits::Meant)`",
    )
}

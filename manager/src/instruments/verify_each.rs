//! The verification of modules after each pass.

use anfora_ir::{Module, verify_module};

use crate::error::PassError;
use crate::info::{Outcome, PassKind};
use crate::instrument::{Instrument, PassRun};
use crate::verification::{check_made, ill_formed};

/// An instrument that verifies the module after each pass that changed it, and checks the
/// properties of the phase that the module claims. A pass that made an ill-formed module has
/// failed, and its changes are rolled back.
#[derive(Default)]
pub struct VerifyEach {
    /// True if the module that a pipeline is given is verified too.
    verifies_input: bool,
}

impl VerifyEach {
    /// Makes an instrument that assumes that the modules which passes are given from outside are
    /// well-formed.
    pub fn new() -> VerifyEach {
        VerifyEach::default()
    }

    /// Makes an instrument that also verifies the module that a pipeline is given.
    pub fn with_input() -> VerifyEach {
        VerifyEach { verifies_input: true }
    }
}

impl Instrument for VerifyEach {
    fn name(&self) -> &str {
        "VerifyEach"
    }

    fn verifies(&self) -> bool {
        true
    }

    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        if self.verifies_input && run.depth() == 0 {
            verify_module(module).map_err(|found| ill_formed(found, "the module was ill-formed before the pass"))?;
        }
        Ok(())
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        // The results of the passes of a sequence were verified after each pass.
        if outcome.is_changed() && run.kind() != PassKind::Sequence {
            check_made(verify_module(module), module, run.context().registry().properties_and_phases())?;
        }
        Ok(())
    }
}

anfora_ir::brief_debug! { VerifyEach; }

//! Whether passes make well-formed modules.

use anfora_ir::{Module, verify_module};

use crate::error::PassError;
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::pass::PassKind;
use crate::verification::{check_all, ill_formed};

/// Verifies the module after each pass that changed it, and looks whether what holds from the phase on that it claims does. A pass that made an ill-formed module has failed, and what it did is taken back.
#[derive(Default)]
pub struct VerifyEach {
    input: Input,
}

#[derive(Default, PartialEq)]
enum Input {
    #[default]
    Trusted,
    Verified,
}

impl VerifyEach {
    /// Takes it that the modules which passes are given from outside are well-formed.
    pub fn new() -> VerifyEach {
        VerifyEach::default()
    }

    /// Verifies also the module that a pipeline is given.
    pub fn with_input() -> VerifyEach {
        VerifyEach { input: Input::Verified }
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
        if self.input == Input::Verified && run.depth() == 0 {
            verify_module(module).map_err(|found| ill_formed(found, "the module was ill-formed before the pass"))?;
        }
        Ok(())
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        // What the passes of a sequence made was verified after each.
        if outcome.is_changed() && run.kind() != PassKind::Sequence {
            check_all(module, run.context().registry())?;
        }
        Ok(())
    }
}

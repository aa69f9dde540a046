//! The trait of passes.

use std::sync::Arc;

use anfora_ir::Module;

use crate::context::PassContext;
use crate::error::PassFailure;
use crate::info::{Outcome, PassInfo, PassKind};
use crate::run::run_pass;

/// A transformation of modules.
///
/// Most passes are made from a closure, with [`ModulePass`](crate::ModulePass) or
/// [`FunctionPass`](crate::FunctionPass).
pub trait Pass: AsPass + Send + Sync {
    /// Returns the name, level, dependencies and properties of the pass.
    fn info(&self) -> &PassInfo;

    /// Does the work of the pass. Do not call this directly: [`Pass::apply`] and [`run_pass`] call
    /// it, after asking the context, inside a transaction, with the instruments around it. The
    /// journals of the module determine whether it was changed; for a [`PassKind::Sequence`], the
    /// returned outcome counts.
    ///
    /// Cost: that of the author's code.
    ///
    /// # Errors
    /// If the pass cannot do its work. The module is then restored.
    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure>;

    /// Returns the pass as a pipeline writes it, with the options that are not at their defaults.
    fn pipeline_text(&self) -> String {
        self.info().name.clone()
    }

    /// Returns the pass that this one wraps: its kind, nesting, passes and rounds are those of that
    /// pass.
    #[doc(hidden)]
    fn wrapped(&self) -> Option<&dyn Pass> {
        None
    }

    /// Returns the kind of the pass.
    fn kind(&self) -> PassKind {
        self.wrapped().map_or(PassKind::Module, |pass| pass.kind())
    }

    /// Returns the depth to which sequences nest in the pass: 0 for a pass that holds no others.
    fn nesting(&self) -> usize {
        self.wrapped().map_or(0, |pass| pass.nesting())
    }

    /// Returns the passes that this one runs, in order; none for a pass that holds no others. Their
    /// order is checked before any of them runs.
    fn passes(&self) -> &[Arc<dyn Pass>] {
        self.wrapped().map_or(&[], |pass| pass.passes())
    }

    /// Returns the maximum number of times that the pass runs its passes.
    fn max_rounds(&self) -> u32 {
        self.wrapped().map_or(1, |pass| pass.max_rounds())
    }

    /// Runs the pass under a context: the same as [`run_pass`].
    ///
    /// # Errors
    /// If the pass fails, or an instrument of the context does. The module is then as it was; see
    /// [`run_pass`].
    fn apply(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        run_pass(self.as_pass(), module, cx)
    }
}

/// Any pass as a `&dyn Pass`, also where its type may be unsized.
#[doc(hidden)]
pub trait AsPass {
    /// Returns the pass.
    fn as_pass(&self) -> &dyn Pass;
}

impl<P: Pass> AsPass for P {
    fn as_pass(&self) -> &dyn Pass {
        self
    }
}

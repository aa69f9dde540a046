//! The trait of passes.

use std::sync::Arc;

use anfora_ir::Module;

use crate::context::PassContext;
use crate::error::PassFailure;
use crate::info::{Outcome, PassInfo};
use crate::run::run_pass;

/// A transformation of modules.
///
/// Most passes are made from a closure, with [`ModulePass`](crate::ModulePass) or
/// [`FunctionPass`](crate::FunctionPass).
pub trait Pass: Send + Sync {
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

    /// Returns the kind of the pass.
    fn kind(&self) -> PassKind {
        PassKind::Module
    }

    /// Returns the depth to which sequences nest in the pass: 0 for a pass that holds no others.
    fn nesting(&self) -> usize {
        0
    }

    /// Returns the passes that this one runs, in order; none for a pass that holds no others. Their
    /// order is checked before any of them runs.
    fn passes(&self) -> &[Arc<dyn Pass>] {
        &[]
    }

    /// Returns the maximum number of times that the pass runs its passes.
    fn max_rounds(&self) -> u32 {
        1
    }

    /// Returns by how much floats may differ after the pass because of rounding, relative to the
    /// larger value, or to 1 if both are smaller. It is 0 for a pass that keeps every bit, as most
    /// passes do.
    fn tolerance(&self) -> f64 {
        0.0
    }

    /// Runs the pass under a context: the same as [`run_pass`].
    ///
    /// # Errors
    /// If the pass fails, or an instrument of the context does. The module is then as it was; see
    /// [`run_pass`].
    fn apply(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        run_pass(&Borrowed(self), module, cx)
    }
}

/// A sized wrapper of any pass, which can be made a `&dyn Pass`.
struct Borrowed<'a, P: ?Sized>(&'a P);

impl<P: Pass + ?Sized> Pass for Borrowed<'_, P> {
    fn info(&self) -> &PassInfo {
        self.0.info()
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        self.0.run(module, cx)
    }

    fn pipeline_text(&self) -> String {
        self.0.pipeline_text()
    }

    fn kind(&self) -> PassKind {
        self.0.kind()
    }

    fn nesting(&self) -> usize {
        self.0.nesting()
    }

    fn passes(&self) -> &[Arc<dyn Pass>] {
        self.0.passes()
    }

    fn max_rounds(&self) -> u32 {
        self.0.max_rounds()
    }

    fn tolerance(&self) -> f64 {
        self.0.tolerance()
    }

    fn apply(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        self.0.apply(module, cx)
    }
}

/// The unit that a pass works on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PassKind {
    /// The module as a whole, in one transaction.
    Module,
    /// One function after the other, in one transaction.
    Function,
    /// One dataflow region after the other, in one transaction.
    DataflowBlock,
    /// The pass runs other passes, each of which is a transaction of its own, and does nothing
    /// else.
    Sequence,
}

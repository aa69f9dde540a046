//! What a pass is.

use std::sync::Arc;

use anfora_ir::Module;

use crate::context::PassContext;
use crate::error::PassFailure;
use crate::info::{Outcome, PassInfo};
use crate::run::run_pass;

/// A transformation of modules.
///
/// Most passes are made from a closure, with [`ModulePass`](crate::ModulePass) or [`FunctionPass`](crate::FunctionPass).
pub trait Pass: Send + Sync {
    /// Name, level, dependencies and properties.
    fn info(&self) -> &PassInfo;

    /// The work itself. It is not called directly: [`Pass::apply`] and [`run_pass`] call it, after asking the context, inside a transaction,
    /// with the instruments around it. Whether the module was changed is seen from its journals; of a [`PassKind::Sequence`], what this
    /// returns is taken.
    ///
    /// Cost: that of the author's code.
    ///
    /// # Errors
    /// If the pass cannot do its work. The module is then put back as it was.
    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure>;

    /// The pass as a pipeline writes it, with the options that are not at their defaults.
    fn pipeline_text(&self) -> String {
        self.info().name.clone()
    }

    /// What the pass works on.
    fn kind(&self) -> PassKind {
        PassKind::Module
    }

    /// How deep sequences nest in it: 0 for a pass that holds no others.
    fn nesting(&self) -> usize {
        0
    }

    /// The passes that it runs, in order; none for a pass that holds no others. Their order is looked at before any of them runs.
    fn passes(&self) -> &[Arc<dyn Pass>] {
        &[]
    }

    /// How often it runs its passes at most.
    fn max_rounds(&self) -> u32 {
        1
    }

    /// By how much floats may differ after the pass, relative to the larger, or to 1 where both are smaller: what it may round otherwise. 0
    /// for a pass that keeps every bit, as most do.
    fn tolerance(&self) -> f64 {
        0.0
    }

    /// Runs the pass under a context: the same as [`run_pass`].
    ///
    /// # Errors
    /// If the pass fails, or an instrument of the context does. The module is then as it was; see [`run_pass`].
    fn apply(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        run_pass(&Borrowed(self), module, cx)
    }
}

/// Any pass as one whose type has a size, and so as a `&dyn Pass`.
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

/// What a pass works on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PassKind {
    /// The module as a whole, in one transaction.
    Module,
    /// One function after the other, in one transaction.
    Function,
    /// One dataflow region after the other, in one transaction.
    DataflowBlock,
    /// It runs other passes, each of which is a transaction of its own, and does nothing else.
    Sequence,
}

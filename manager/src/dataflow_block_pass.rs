//! Passes over dataflow regions.

use anfora_ir::{Module, edit_regions};

use crate::context::PassContext;
use crate::error::{PassError, PassFailure};
use crate::function_edit::{FunctionEdit, ModuleView};
use crate::function_pass::FunctionPass;
use crate::info::{Declare, Outcome, PassInfo, PassKind};
use crate::messages::at_stop;
use crate::pass::Pass;

/// A pass over each dataflow region, in program order. A region in a branch or a function value
/// inside of another region is not given separately: it is a part of the outer region. Functions
/// marked `SkipOptimization` are skipped, because the pass is built on [`FunctionPass`].
///
/// The region is given as the body of a function of its own ([`FunctionEdit`]), so the pass cannot
/// touch anything outside of it. The parameters of that body are the variables that the region uses
/// and does not bind, the chain is the bindings of the region, and the tail is a tuple of the
/// region's outputs, in the order of their bindings ([`FunctionEdit::outputs`]). So any code for
/// functions works on a region too. To take a region out and to put it back takes time and memory
/// linear in the region.
///
/// When the pass is done with a region that it changed, the new bindings replace the region. They
/// must bind every output exactly once, and must not bind an input. An output for which the tail
/// has another atom in its place need not be bound: it is bound to this atom at the end of the
/// region. A `match_cast` in a binding of the old region may bind a symbolic dimension. The new
/// bindings must bind this dimension too, unless it occurs in the type of a parameter of the
/// function or of an input of the region. The flags of a new variable determine whether it is
/// visible outside of the region. If the type of an output changed, the types of its users are
/// inferred again. Replacing the body itself by another one is an error.
///
/// ```
/// use anfora_ir::{Cursor, Module, OpRegistry, Step};
/// use anfora_manager::{DataflowBlockPass, Pass, PassContext};
/// # use std::sync::Arc;
///
/// let pass = DataflowBlockPass::new("CountBindings", 0, |block, _module, cx| {
///     let mut cursor = Cursor::new(&block.function.body);
///     while let Some(step) = cursor.next(&block.function.body) {
///         cx.count("bindings", matches!(step, Step::Let(_)).into());
///     }
///     Ok(())
/// });
/// let mut module = Module::new(Arc::new(OpRegistry::new()));
/// pass.apply(&mut module, &PassContext::new())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DataflowBlockPass {
    function_pass: FunctionPass,
}

impl DataflowBlockPass {
    /// Returns a pass with this name that runs in contexts of at least this level.
    pub fn new(
        name: impl Into<String>,
        opt_level: u8,
        work: impl Fn(&mut FunctionEdit<'_>, &ModuleView<'_>, &PassContext) -> Result<(), PassError> + Send + Sync + 'static,
    ) -> DataflowBlockPass {
        let over_function = move |func: &mut FunctionEdit<'_>, module: &ModuleView<'_>, cx: &PassContext| {
            edit_regions(func.cx, func.function, |tables, function, outputs| {
                let mut block = FunctionEdit::new(tables, function, outputs);
                let done = work(&mut block, module, cx);
                let (messages, named) = block.end();
                func.messages.append(messages);
                done.map_err(|error| at_stop(tables, &function.body, error))?;
                named
            })
        };
        DataflowBlockPass { function_pass: FunctionPass::new(name, opt_level, over_function) }
    }
}

impl Declare for DataflowBlockPass {
    fn info_mut(&mut self) -> &mut PassInfo {
        self.function_pass.info_mut()
    }
}

impl Pass for DataflowBlockPass {
    fn info(&self) -> &PassInfo {
        self.function_pass.info()
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        self.function_pass.run(module, cx)
    }

    fn kind(&self) -> PassKind {
        PassKind::DataflowBlock
    }
}

anfora_ir::brief_debug! { DataflowBlockPass { info }; }

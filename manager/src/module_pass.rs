//! Passes over modules.

use anfora_ir::{Module, verify_module};

use crate::context::PassContext;
use crate::error::{PassError, PassFailure};
use crate::info::{Declare, Outcome, PassInfo};
use crate::messages::at_stop_in_module;
use crate::pass::Pass;
use crate::verification::ill_formed;

type Work = dyn Fn(&mut Module, &PassContext) -> Result<(), PassError> + Send + Sync;

/// A pass over the module as a whole. It may add, remove and change functions.
pub struct ModulePass {
    info: PassInfo,
    work: Box<Work>,
}

impl ModulePass {
    /// Makes a pass of this name that runs from this level on.
    pub fn new(
        name: impl Into<String>,
        opt_level: u8,
        work: impl Fn(&mut Module, &PassContext) -> Result<(), PassError> + Send + Sync + 'static,
    ) -> ModulePass {
        ModulePass { info: PassInfo::new(name, opt_level), work: Box::new(work) }
    }

    /// Makes a pass of this name that runs from this level on. Its closure returns a module that
    /// replaces the module that it was given. The closure may make it in any way: from a copy, from
    /// nothing, or from text.
    ///
    /// The returned module is verified. Then the functions in which it differs, their order,
    /// signatures and the attributes of the module become part of the transaction
    /// ([`Module::replace_with`]): functions of the same names keep their keys, instruments see the
    /// same module as before, and a later failure rolls the change back. If the returned module
    /// equals the given one, the outcome is [`Unchanged`](crate::Outcome::Unchanged). The phase
    /// that the returned module claims counts as if the pass had set it.
    ///
    /// The cost is a verification and a comparison of the modules, both linear. A pass that changes
    /// the module in place ([`ModulePass::new`]) has neither cost.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use anfora_ir::{FunctionBuilder, Module, OpRegistry};
    /// use anfora_manager::{ModulePass, Pass, PassContext};
    ///
    /// let pass = ModulePass::returning("AddUnit", 0, |module, _cx| {
    ///     let mut new = module.clone();
    ///     let mut f = FunctionBuilder::new(&mut new, "unit");
    ///     let unit = f.tuple(&[]);
    ///     f.finish(unit)?;
    ///     Ok(new)
    /// });
    /// let mut module = Module::new(Arc::new(OpRegistry::new()));
    /// assert!(pass.apply(&mut module, &PassContext::new())?.is_changed());
    /// assert_eq!(module.to_string(), "def @unit() -> () {\n  ()\n}\n");
    /// // There is one of that name now: the pass fails, and the module is as it was.
    /// assert!(pass.apply(&mut module, &PassContext::new()).is_err());
    /// # Ok::<(), anfora_manager::PassFailure>(())
    /// ```
    pub fn returning(
        name: impl Into<String>,
        opt_level: u8,
        work: impl Fn(&Module, &PassContext) -> Result<Module, PassError> + Send + Sync + 'static,
    ) -> ModulePass {
        ModulePass::new(name, opt_level, move |module, cx| {
            let new = work(module, cx)?;
            verify_module(&new).map_err(|found| ill_formed(found, "the pass returned an ill-formed module"))?;
            Ok(module.replace_with(&new)?)
        })
    }
}

impl Declare for ModulePass {
    fn info_mut(&mut self) -> &mut PassInfo {
        &mut self.info
    }
}

impl Pass for ModulePass {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        (self.work)(module, cx).map_err(|error| at_stop_in_module(module, error))?;
        Ok(Outcome::Changed)
    }
}

anfora_ir::brief_debug! { ModulePass { info }; }

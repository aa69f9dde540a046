//! Passes over modules.

use anfora_ir::{Module, verify_module};

use crate::context::PassContext;
use crate::error::{PassError, PassFailure};
use crate::info::{Outcome, PassInfo};
use crate::pass::{Pass, PassKind};
use crate::place::at_stop_in_module;
use crate::verification::ill_formed;

type Work = dyn Fn(&mut Module, &PassContext) -> Result<(), PassError> + Send + Sync;

/// A pass over the module as a whole. It may add, remove and change functions.
pub struct ModulePass {
    info: PassInfo,
    tolerance: f64,
    work: Box<Work>,
}

impl ModulePass {
    /// A pass of this name that runs from this level.
    pub fn new(
        name: impl Into<String>,
        opt_level: u8,
        work: impl Fn(&mut Module, &PassContext) -> Result<(), PassError> + Send + Sync + 'static,
    ) -> ModulePass {
        ModulePass { info: PassInfo::new(name, opt_level), tolerance: 0.0, work: Box::new(work) }
    }

    /// Makes a pass of this name, which runs from this level, and whose closure returns the module that takes the place of the one
    /// that it was given, however it made it: from a copy, from nothing, or from text.
    ///
    /// The returned module is verified. Then the functions in which it differs, their order, signatures and the attributes of the module
    /// become part of the transaction ([`Module::replace_with`]): functions of the same names keep their keys, what instruments see is the
    /// module that they saw before, and a failure later on is taken back. A module that says the same as the one that was given leaves it
    /// [`Unchanged`](crate::Outcome::Unchanged). The phase that the returned module claims counts as if the pass had set it.
    ///
    /// Costs a verification and a comparison of the modules, which are linear. A pass that changes the module where it stands
    /// ([`ModulePass::new`]) costs neither.
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

    /// Says by how much floats may differ after it: see [`Pass::tolerance`].
    #[must_use]
    pub fn with_tolerance(self, tolerance: f64) -> ModulePass {
        ModulePass { tolerance, ..self }
    }

    /// Adds passes that it depends on.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn requiring<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> ModulePass {
        self.info = self.info.requiring(names);
        self
    }

    /// Says that it leaves the results of an analysis right; see [`PassInfo::preserving`].
    #[must_use]
    pub fn preserving<T: PartialEq + Send + Sync + 'static>(mut self) -> ModulePass {
        self.info = self.info.preserving::<T>();
        self
    }

    /// Adds properties that it needs.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn needing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> ModulePass {
        self.info = self.info.needing(properties);
        self
    }

    /// Adds properties that it establishes.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn establishing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> ModulePass {
        self.info = self.info.establishing(properties);
        self
    }

    /// Adds properties that it breaks.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn breaking<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> ModulePass {
        self.info = self.info.breaking(properties);
        self
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

    fn kind(&self) -> PassKind {
        PassKind::Module
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }
}

//! Passes over modules.

use anfora_ir::Module;

use crate::context::PassContext;
use crate::error::{PassError, PassFailure};
use crate::info::{Outcome, PassInfo};
use crate::pass::{Pass, PassKind};

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

    /// Says by how much floats may differ after it: see [`Pass::tolerance`].
    #[must_use]
    pub fn with_tolerance(self, tolerance: f64) -> ModulePass {
        ModulePass { tolerance, ..self }
    }

    /// Adds passes that it depends on.
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
    #[must_use]
    pub fn needing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> ModulePass {
        self.info = self.info.needing(properties);
        self
    }

    /// Adds properties that it establishes.
    #[must_use]
    pub fn establishing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> ModulePass {
        self.info = self.info.establishing(properties);
        self
    }

    /// Adds properties that it breaks.
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
        (self.work)(module, cx)?;
        Ok(Outcome::Changed)
    }

    fn kind(&self) -> PassKind {
        PassKind::Module
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }
}

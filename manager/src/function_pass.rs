//! Passes over functions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anfora_ir::{Attr, AttrsId, Context, Module, Purity};

use crate::context::PassContext;
use crate::error::{PassError, PassFailure};
use crate::function_edit::{FunctionEdit, ModuleView};
use crate::info::{Outcome, PassInfo};
use crate::pass::{Pass, PassKind};
use crate::signatures::update_signatures;

/// The attribute of functions that function passes leave alone.
pub const SKIP_OPTIMIZATION: &str = "SkipOptimization";

type Work = dyn Fn(&mut FunctionEdit<'_>, &ModuleView<'_>, &PassContext) -> Result<(), PassError> + Send + Sync;

/// A pass over each function that has a body, in program order. It cannot add or remove functions, does not see what it did to other
/// functions, and leaves those with the attribute `SkipOptimization` alone.
///
/// Where the result type of a function is not stated and the pass makes it more specific, the function's signature follows when all are
/// done, and its callers are typed again.
pub struct FunctionPass {
    info: PassInfo,
    work: Box<Work>,
}

impl FunctionPass {
    /// A pass of this name that runs from this level.
    pub fn new(
        name: impl Into<String>,
        opt_level: u8,
        work: impl Fn(&mut FunctionEdit<'_>, &ModuleView<'_>, &PassContext) -> Result<(), PassError> + Send + Sync + 'static,
    ) -> FunctionPass {
        FunctionPass { info: PassInfo::new(name, opt_level), work: Box::new(work) }
    }

    /// Adds passes that it depends on.
    #[must_use]
    pub fn requiring<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> FunctionPass {
        self.info = self.info.requiring(names);
        self
    }

    /// Says that it leaves the results of an analysis right; see [`PassInfo::preserving`].
    #[must_use]
    pub fn preserving<T: PartialEq + Send + Sync + 'static>(mut self) -> FunctionPass {
        self.info = self.info.preserving::<T>();
        self
    }

    /// Adds properties that it needs.
    #[must_use]
    pub fn needing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> FunctionPass {
        self.info = self.info.needing(properties);
        self
    }

    /// Adds properties that it establishes.
    #[must_use]
    pub fn establishing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> FunctionPass {
        self.info = self.info.establishing(properties);
        self
    }

    /// Adds properties that it breaks.
    #[must_use]
    pub fn breaking<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> FunctionPass {
        self.info = self.info.breaking(properties);
        self
    }
}

impl Pass for FunctionPass {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        let keys = module.order().to_vec();
        if keys.is_empty() {
            return Ok(Outcome::Unchanged);
        }
        let purity = cx.analyses().of_module(module, Purity::of_module);
        let view = ModuleView::new(&purity);
        let mut edited = Vec::new();
        for key in keys {
            let Some((function, tables)) = module.get_mut(key) else { continue };
            if !function.is_definition() || skips(tables, function.attrs) {
                continue;
            }
            let mut edit = FunctionEdit::new(tables, function);
            let done = catch_unwind(AssertUnwindSafe(|| (self.work)(&mut edit, &view, cx)));
            edit.leave_reports(cx);
            if let Err(error) = done.unwrap_or_else(|payload| Err(PassError::panic(payload))) {
                return Err(error.or_in_function(module.name(key)).into());
            }
            if module.is_edited(key) {
                edited.push(key);
            }
        }
        // What a pass did that has reported errors is taken back.
        if !cx.has_errors() {
            update_signatures(module, &edited)?;
        }
        Ok(Outcome::Changed)
    }

    fn kind(&self) -> PassKind {
        PassKind::Function
    }
}

fn skips(tables: &Context, attrs: AttrsId) -> bool {
    tables
        .find_attr(attrs, SKIP_OPTIMIZATION)
        .is_some_and(|value| !matches!(tables.attrs.get(value), Attr::Bool(false) | Attr::Int(0)))
}

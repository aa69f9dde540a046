//! Passes over functions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use anfora_ir::{Attr, AttrsId, Context, Module, Purity};

use crate::context::PassContext;
use crate::error::{PassError, PassFailure};
use crate::function_edit::{FunctionEdit, ModuleView};
use crate::info::{Outcome, PassInfo};
use crate::pass::{Pass, PassKind};
use crate::rounds::Visits;
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
    tolerance: f64,
    work: Box<Work>,
    /// Of this pass and of no other.
    id: u64,
    visits: Visiting,
}

/// Which functions a repeated pass visits.
#[derive(Copy, Clone, PartialEq)]
enum Visiting {
    Changed,
    All,
}

impl FunctionPass {
    /// A pass of this name that runs from this level.
    pub fn new(
        name: impl Into<String>,
        opt_level: u8,
        work: impl Fn(&mut FunctionEdit<'_>, &ModuleView<'_>, &PassContext) -> Result<(), PassError> + Send + Sync + 'static,
    ) -> FunctionPass {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        FunctionPass {
            info: PassInfo::new(name, opt_level),
            tolerance: 0.0,
            work: Box::new(work),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            visits: Visiting::Changed,
        }
    }

    /// Says by how much floats may differ after it: see [`Pass::tolerance`].
    #[must_use]
    pub fn with_tolerance(self, tolerance: f64) -> FunctionPass {
        FunctionPass { tolerance, ..self }
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

    /// Says that a [`Repeat`](crate::Repeat) is to run it on every function each time, also on those that have not changed: what it does to a function depends
    /// on something besides the function and those that this reaches by naming them.
    #[must_use]
    pub fn visiting_all(mut self) -> FunctionPass {
        self.visits = Visiting::All;
        self
    }

    /// The functions that a repetition around the pass lets it leave out.
    fn begin_visits(&self, module: &Module, cx: &PassContext) -> Option<Visits> {
        match self.visits {
            Visiting::All => None,
            Visiting::Changed => cx.frame()?.session()?.begin_visits(self.id, module),
        }
    }

    /// Tells the repetition which functions the pass left as they were.
    fn end_visits(visits: Option<&Visits>, module: &Module, cx: &PassContext) {
        if let (Some(visits), Some(session)) = (visits, cx.frame().and_then(|f| f.session())) {
            session.end_visits(visits, module);
        }
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
        let visits = self.begin_visits(module, cx);
        let purity = cx.analyses().of_module(module, Purity::of_module);
        let view = ModuleView::new(&purity);
        let mut edited = Vec::new();
        for key in keys {
            if visits.as_ref().is_some_and(|v| v.skips(module, key)) {
                continue;
            }
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
        Self::end_visits(visits.as_ref(), module, cx);
        // What a pass did that has reported errors is taken back.
        if !cx.has_errors() {
            update_signatures(module, &edited)?;
        }
        Ok(Outcome::Changed)
    }

    fn kind(&self) -> PassKind {
        PassKind::Function
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }
}

fn skips(tables: &Context, attrs: AttrsId) -> bool {
    tables
        .find_attr(attrs, SKIP_OPTIMIZATION)
        .is_some_and(|value| !matches!(tables.attrs.get(value), Attr::Bool(false) | Attr::Int(0)))
}

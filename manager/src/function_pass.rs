//! Passes over functions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use anfora_ir::{Additions, Attr, AttrsId, Context, EffectScan, Function, FunctionKey, Module, Purity};
use rustc_hash::FxHashSet;

use crate::context::PassContext;
use crate::error::{PassError, PassFailure};
use crate::function_edit::{FunctionEdit, ModuleView};
use crate::info::{Outcome, PassInfo};
use crate::parallel::{FirstFailure, Job, Workers};
use crate::pass::{Pass, PassKind};
use crate::rounds::Visits;
use crate::scope;
use crate::signatures::{WorkedOn, update_signatures};

/// The attribute of functions that function passes leave alone.
pub const SKIP_OPTIMIZATION: &str = "SkipOptimization";

type Work = dyn Fn(&mut FunctionEdit<'_>, &ModuleView<'_>, &PassContext) -> Result<(), PassError> + Send + Sync;

/// A pass over each function that has a body, in program order. It cannot add or remove functions, does not see what it did to other
/// functions, and leaves those with the attribute `SkipOptimization` alone.
///
/// With [`threads`](crate::PassContextBuilder::threads) several functions are worked on at a time, with the same result: tables, functions, messages and
/// counts are what they are if one function is worked on after the other, and of several that fail the first counts. The closure has to treat each
/// function by itself: what it notes for a later one comes when it comes, and of the messages and counts of the context it sees those of its own function. On each thread the context that it is given is the current one; instruments are
/// not told of passes that it runs itself.
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

impl FunctionPass {
    /// Works on a function. What it leaves is in the context then.
    fn work_on(
        &self,
        tables: &mut Context,
        function: &mut Function,
        view: &ModuleView<'_>,
        cx: &PassContext,
    ) -> Result<(), PassError> {
        let mut edit = FunctionEdit::new(tables, function);
        let done = scope::inherit(cx, || catch_unwind(AssertUnwindSafe(|| (self.work)(&mut edit, view, cx))));
        edit.leave_reports(cx);
        done.unwrap_or_else(|payload| Err(PassError::panic(payload)))
    }

    /// Works on these functions, one after the other, on this thread; those that were edited.
    fn one_by_one(
        &self,
        module: &mut Module,
        keys: &[FunctionKey],
        view: &ModuleView<'_>,
        cx: &PassContext,
    ) -> Result<Vec<WorkedOn>, PassFailure> {
        let mut edited = Vec::new();
        for &key in keys {
            let Some((function, tables)) = module.get_mut(key) else { continue };
            if !is_for_passes(tables, function) {
                continue;
            }
            if let Err(error) = self.work_on(tables, function, view, cx) {
                return Err(error.or_in_function(module.name(key)).into());
            }
            let worked_on = WorkedOn::new(key, function);
            if module.is_edited(key) {
                edited.push(worked_on);
            }
        }
        Ok(edited)
    }

    /// Works on these functions, which are in program order, on several threads, those that a thread takes at a time under an overlay of the tables; those that
    /// were edited. Tables, bodies, what was left in the context and the error become what they are if one function is worked on after the other.
    fn side_by_side(
        &self,
        workers: &Workers,
        module: &mut Module,
        keys: &[FunctionKey],
        view: &ModuleView<'_>,
        cx: &PassContext,
    ) -> Result<Vec<WorkedOn>, PassFailure> {
        module.cx.freeze();
        let (functions, tables) = module.get_all_mut();
        let mut keys = keys.iter().peekable();
        let jobs: Vec<Job<(FunctionKey, &mut Function)>> = functions
            .into_iter()
            .filter(|(key, function)| keys.next_if_eq(&key).is_some() && is_for_passes(tables, function))
            .map(|job| Job { size: job.1.body.len(), what: job })
            .collect();
        let failure = FirstFailure::none();
        let frozen = &*tables;
        let done = workers.map(
            workers.chunks(jobs),
            || (frozen.overlay(), cx.beside()),
            |(overlay, handle), i, functions| {
                if failure.is_before(i) {
                    return None;
                }
                let done = self.work_on_chunk(overlay, functions, view, handle);
                if done.failed.is_some() {
                    failure.note(i);
                }
                Some(done)
            },
        );
        tables.thaw();
        let mut worked_on = Vec::new();
        let mut translated = Vec::new();
        let mut absorbed = Vec::new();
        let mut failed: Option<PassError> = None;
        for chunk in done.into_iter().flatten() {
            let translation = match chunk.additions.as_ref().map(|a| tables.absorb(a)).transpose() {
                Ok(translation) => translation.filter(|t| !t.is_identity()),
                Err(error) => {
                    let first = chunk.functions.first().map_or("", |function| name_of(tables, function));
                    failed.get_or_insert_with(|| PassError::from(error).or_in_function(first));
                    None
                }
            };
            absorbed.extend(chunk.additions);
            // What comes after the first failure would not have been done.
            if failed.is_none() {
                cx.take_over(&chunk.left);
                failed = chunk.failed;
            }
            let result = |ty| translation.as_ref().map_or(ty, |t| t.ty(ty));
            worked_on.extend(chunk.worked_on.into_iter().map(|f| WorkedOn { result: f.result.map(result), ..f }));
            if let Some(translation) = translation {
                let size = chunk.functions.iter().map(|f| f.body.len()).sum();
                translated.push(Job { size, what: (chunk.functions, translation) });
            }
        }
        workers.map(
            translated,
            || (),
            |(), _, (functions, translation)| {
                functions.into_iter().for_each(|function| function.translate(&translation));
            },
        );
        workers.let_go(absorbed);
        match failed {
            Some(error) => Err(error.into()),
            None => {
                worked_on.retain(|f| module.is_edited(f.key));
                Ok(worked_on)
            }
        }
    }

    /// Works on functions that follow each other, up to the first that fails, under an overlay of the tables. What is left through the handle is of one function at
    /// a time.
    fn work_on_chunk<'a>(
        &self,
        overlay: &mut Context,
        functions: Vec<(FunctionKey, &'a mut Function)>,
        view: &ModuleView<'_>,
        handle: &PassContext,
    ) -> Chunk<'a> {
        let mut done = Chunk {
            functions: Vec::with_capacity(functions.len()),
            worked_on: Vec::with_capacity(functions.len()),
            left: handle.beside(),
            additions: None,
            failed: None,
        };
        for (key, function) in functions {
            let result = self.work_on(overlay, function, view, handle);
            done.left.take_over(handle);
            done.failed = result.err().map(|error| error.or_in_function(name_of(overlay, function)));
            done.worked_on.push(WorkedOn::new(key, function));
            done.functions.push(function);
            if done.failed.is_some() {
                break;
            }
        }
        done.additions = overlay.take_additions();
        done
    }
}

/// Functions that one thread worked on under one overlay of the tables.
struct Chunk<'a> {
    functions: Vec<&'a mut Function>,
    worked_on: Vec<WorkedOn>,
    /// What was left of them, in their order.
    left: PassContext,
    additions: Option<Additions>,
    /// What the last of them failed with.
    failed: Option<PassError>,
}

/// What [`Purity::of_module`] says; the bodies are looked at on several threads.
fn purity_by(workers: &Workers, module: &Module) -> Purity {
    let scan = EffectScan::new(&module.cx);
    let jobs = module.functions().map(|(key, f)| Job { size: f.body.len(), what: (key, f) }).collect();
    let look = |functions: Vec<(FunctionKey, &Function)>| -> Vec<FunctionKey> {
        functions.into_iter().filter(|(_, f)| scan.may_have_effects(&f.body)).map(|(key, _)| key).collect()
    };
    let found = workers.map(workers.chunks(jobs), || (), |(), _, functions| look(functions));
    let found: FxHashSet<FunctionKey> = found.into_iter().flatten().collect();
    Purity::of_module_where(module, |key, _| found.contains(&key))
}

fn name_of<'a>(tables: &'a Context, function: &Function) -> &'a str {
    function.global().map_or("", |global| tables.global_name(global))
}

/// Whether function passes work on a function.
fn is_for_passes(tables: &Context, function: &Function) -> bool {
    function.is_definition() && !skips(tables, function.attrs)
}

impl Pass for FunctionPass {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        if module.order().is_empty() {
            return Ok(Outcome::Unchanged);
        }
        let visits = self.begin_visits(module, cx);
        let visited = |&key: &FunctionKey| !visits.as_ref().is_some_and(|v| v.skips(module, key));
        let keys: Vec<FunctionKey> = module.order().iter().copied().filter(visited).collect();
        let size = keys.iter().filter_map(|&key| module.get(key)).map(|f| f.body.len()).fold(0, usize::saturating_add);
        let workers = cx.workers_for(keys.len(), size);
        let purity = match workers.cloned() {
            Some(workers) => cx.analyses().of_module(module, move |module| purity_by(&workers, module)),
            None => cx.analyses().of_module(module, Purity::of_module),
        };
        let view = ModuleView::new(&purity);
        let edited = match workers {
            Some(workers) => self.side_by_side(workers, module, &keys, &view, cx)?,
            None => self.one_by_one(module, &keys, &view, cx)?,
        };
        // What a pass did that has reported errors is taken back, and what it reported it is to report again.
        if !cx.has_errors() {
            Self::end_visits(visits.as_ref(), module, cx);
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

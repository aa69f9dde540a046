//! Passes over functions.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anfora_ir::{
    Additions, Attr, Context, EffectScan, EndedFork, Function, FunctionKey, GlobalId, Module, Purity, Translation,
    TypeId,
};
use rustc_hash::FxHashSet;

use crate::context::PassContext;
use crate::error::{PassError, PassFailure, caught};
use crate::function_edit::{FunctionEdit, ModuleView};
use crate::info::{Declare, Outcome, PassInfo, PassKind};
use crate::messages::at_stop;
use crate::parallel::{Job, Workers};
use crate::pass::Pass;
use crate::scope;
use crate::sync::lock;

/// The attribute of functions that function passes skip.
pub const SKIP_OPTIMIZATION: &str = "SkipOptimization";

type Work = dyn Fn(&mut FunctionEdit<'_>, &ModuleView<'_>, &PassContext) -> Result<(), PassError> + Send + Sync;

/// A pass over each function that has a body, in program order. It cannot add or remove functions,
/// does not see its changes to other functions, and skips functions with the attribute
/// `SkipOptimization`. With [`seeing_functions`](FunctionPass::seeing_functions) it sees all
/// functions of the module as they were before it.
///
/// With [`threads`](crate::PassContextBuilder::threads) several functions are worked on at the same
/// time, with the same result: tables, functions, messages and counts are the same as if the
/// functions were worked on one after the other, and if several functions fail, the first failure
/// counts. The closure has to treat each function by itself: it must not depend on data that it
/// noted for a function before, and sees only the messages and counts of its own function in the
/// context. On each thread the context that it is given is the current one; instruments are not
/// told of passes that the closure runs itself.
///
/// If the result type of a function is not stated and the pass makes it more specific, the
/// signature of the function is updated when all functions are done, and its callers are typed
/// again.
pub struct FunctionPass {
    info: PassInfo,
    work: Box<Work>,
    /// A number that is unique to this pass.
    id: u64,
    visits: Visiting,
}

/// The functions that a repeated pass visits.
#[derive(Copy, Clone, PartialEq)]
enum Visiting {
    Changed,
    All,
    /// All functions, each of which sees all others.
    AllSeen,
}

impl FunctionPass {
    /// Makes a pass of this name that runs from this level on.
    pub fn new(
        name: impl Into<String>,
        opt_level: u8,
        work: impl Fn(&mut FunctionEdit<'_>, &ModuleView<'_>, &PassContext) -> Result<(), PassError> + Send + Sync + 'static,
    ) -> FunctionPass {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        FunctionPass {
            info: PassInfo::new(name, opt_level),
            work: Box::new(work),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            visits: Visiting::Changed,
        }
    }

    /// Makes the pass skip primitive functions (those with the attribute `Primitive`).
    #[must_use]
    pub fn sparing_primitive(self) -> FunctionPass {
        let work = self.work;
        let spare = move |edit: &mut FunctionEdit<'_>, view: &ModuleView<'_>, cx: &PassContext| {
            if edit.function.is_primitive(edit.cx) { Ok(()) } else { work(edit, view, cx) }
        };
        FunctionPass { work: Box::new(spare), ..self }
    }

    /// Makes a [`Repeat`](crate::Repeat) run the pass on every function each time, also on
    /// functions that have not changed. This is for passes whose effect on a function depends on
    /// something besides the function and the functions that it reaches by name.
    #[must_use]
    pub fn visiting_all(mut self) -> FunctionPass {
        self.visits = Visiting::All;
        self
    }

    /// Lets the pass look at all functions of the module as they were before it, through
    /// [`ModuleView::functions`](crate::ModuleView::functions), whatever it has done to some of
    /// them and however many threads there are.
    ///
    /// The pass then works on a copy of each function, which replaces the function when the pass
    /// has visited them all. The copy of a function that it did not change is dropped at once. So
    /// the cost is the time to copy each body once, and, until the pass ends, the memory of the
    /// bodies that it changed. A [`Repeat`](crate::Repeat) runs such a pass on every function each
    /// time, as if it were [`visiting_all`](FunctionPass::visiting_all).
    ///
    /// ```
    /// use anfora_manager::FunctionPass;
    ///
    /// // Notes in each function how large @main was before the pass.
    /// let pass = FunctionPass::new("NoteSize", 0, |func, view, _cx| {
    ///     let size = view.functions()?.find(func.cx, "main").map_or(0, |main| main.body.len());
    ///     let size = func.cx.int_attr(size as i64);
    ///     func.function.attrs =
    ///         func.cx.with_attr(func.function.attrs, "size_of_main", Some(size));
    ///     Ok(())
    /// })
    /// .seeing_functions();
    /// # let _ = pass;
    /// ```
    #[must_use]
    pub fn seeing_functions(mut self) -> FunctionPass {
        self.visits = Visiting::AllSeen;
        self
    }
}

impl FunctionPass {
    /// Works on a function, and leaves its messages in the context.
    fn work_on(
        &self,
        tables: &mut Context,
        key: FunctionKey,
        function: &mut Function,
        view: &ModuleView<'_>,
        cx: &PassContext,
    ) -> Result<Visited, PassError> {
        #[cfg(feature = "tracing")]
        let _span = crate::spans::function_span(tables, function).entered();
        let rewrites = tables.rewrites.is_on().then(|| (tables.rewrites.clone(), function.stamp()));
        if let Some((rewrites, _)) = &rewrites {
            if !rewrites.may_rewrite() {
                return Ok(Visited::new(key, function));
            }
            rewrites.enter_function(function.global().map(|global| tables.global_name(global)));
        }
        let counted = tables.rewrites.count();
        let mut edit = FunctionEdit::new(tables, function, &[]);
        // The inspection of the result is guarded too: a pass may leave a body whose root does not
        // exist.
        let work = || (self.work)(&mut edit, view, cx).map(|()| Visited::new(key, edit.function));
        let done = scope::inherit(cx, || caught(work));
        let (messages, named) = edit.end();
        cx.leave(messages);
        if let Some((rewrites, before)) = rewrites
            && rewrites.count() == counted
            && (function.body.is_edited() || !before.has_head_of(&function.stamp()))
        {
            rewrites.note(None, "changed the function");
        }
        let done = done.and_then(|visited| named.map(|()| visited));
        done.map_err(|error| at_stop(tables, &function.body, error))
    }

    /// Works on these functions, which are in program order: one after the other on this thread, or
    /// on several threads. Each chunk of functions that a thread takes is worked on under an
    /// overlay of the tables. Returns the functions that were edited. Tables, bodies, messages and
    /// counts in the context, and the error do not depend on the threads.
    fn work_on_all(
        &self,
        workers: Option<&Workers>,
        module: &mut Module,
        keys: &[FunctionKey],
        view: &ModuleView<'_>,
        cx: &PassContext,
    ) -> Result<Vec<Visited>, PassFailure> {
        if workers.is_some() {
            module.cx.freeze();
        }
        // The subjects are the functions themselves, or forks of functions that all others see.
        let (view, subjects, tables) = match self.visits {
            Visiting::Changed | Visiting::All => {
                let (functions, tables) = module.get_all_mut();
                let subjects: Vec<_> = functions.into_iter().map(|(key, f)| (key, Subject::InPlace(f))).collect();
                (*view, subjects, tables)
            }
            Visiting::AllSeen => {
                let (functions, tables) = module.functions_and_tables();
                let subjects: Vec<_> = functions.iter().map(|(key, f)| (key, Subject::ToFork(f))).collect();
                (view.with_functions(functions), subjects, tables)
            }
        };
        let mut keys = keys.iter().peekable();
        let mut is_meant =
            |key: &FunctionKey, f: &Function| keys.next_if_eq(&key).is_some() && is_for_passes(tables, f);
        let subjects = subjects
            .into_iter()
            .filter(|(key, subject)| subject.function().is_some_and(|f| is_meant(key, f)))
            .collect();
        let (visited, forks, failed) = match workers {
            None => {
                let chunk = self.work_on_chunk(tables, subjects, &view, cx, None);
                (chunk.visited, chunk.done.into_iter().filter_map(into_fork).collect(), chunk.failed)
            }
            Some(workers) => self.run_parallel(workers, tables, subjects, &view, cx),
        };
        // The forks replace the functions, after a failure too: the rollback then undoes that.
        for (key, fork) in forks {
            if let Some((function, _)) = module.get_mut(key) {
                function.join(fork);
            }
        }
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(visited.into_iter().filter(|f| module.is_edited(f.key)).collect()),
        }
    }

    /// Works on functions on several threads, under overlays of the frozen tables, which are thawed
    /// then.
    fn run_parallel(
        &self,
        workers: &Workers,
        tables: &mut Context,
        subjects: Vec<(FunctionKey, Subject<'_>)>,
        view: &ModuleView<'_>,
        cx: &PassContext,
    ) -> (Vec<Visited>, Vec<(FunctionKey, EndedFork)>, Option<PassError>) {
        let size = |subject: &Subject<'_>| subject.function().map_or(0, |f| f.body.len());
        let jobs = subjects.into_iter().map(|job| Job { size: size(&job.1), what: job }).collect();
        // The first chunk that is known to have failed. Chunks after it need not be worked on.
        let failure = AtomicUsize::new(usize::MAX);
        let frozen = Frozen(tables);
        let done = workers.map(
            workers.chunks(jobs),
            || (frozen.0.overlay(), cx.fork()),
            |(overlay, handle), i, subjects| {
                if failure.load(Ordering::Relaxed) < i {
                    return None;
                }
                let mut done = self.work_on_chunk(overlay, subjects, view, handle, Some(handle.fork()));
                done.additions = overlay.take_additions();
                if done.failed.is_some() {
                    failure.fetch_min(i, Ordering::Relaxed);
                }
                Some(done)
            },
        );
        drop(frozen);
        let mut visited = Vec::new();
        let mut translated = Vec::new();
        let mut forks = Vec::new();
        let mut absorbed = Vec::new();
        let mut failed: Option<PassError> = None;
        for chunk in done.into_iter().flatten() {
            let translation = match chunk.additions.as_ref().map(|a| tables.absorb(a)).transpose() {
                Ok(translation) => translation.filter(|t| !t.is_identity()),
                Err(error) => {
                    let first = chunk.first.map_or("", |global| tables.global_name(global));
                    failed.get_or_insert_with(|| PassError::from(error).or_in_function(first));
                    None
                }
            };
            absorbed.extend(chunk.additions);
            // Functions after the first failure would not have been visited.
            if failed.is_none() {
                chunk.left.iter().for_each(|left| cx.merge(left));
                failed = chunk.failed;
            }
            let result = |ty| translation.as_ref().map_or(ty, |t| t.ty(ty));
            visited.extend(chunk.visited.into_iter().map(|f| Visited { result: f.result.map(result), ..f }));
            if let Some(translation) = translation {
                translated.push(Job { size: chunk.size, what: (chunk.done, translation) });
            } else {
                forks.extend(chunk.done.into_iter().filter_map(into_fork));
            }
        }
        let translate = |(mut done, translation): (Vec<(FunctionKey, Subject<'_>)>, Translation)| {
            // Functions that are rolled back need not be translated, and may have invalid ids.
            let edited = done.iter_mut().filter(|_| failed.is_none()).filter_map(|(_, subject)| subject.edited());
            edited.for_each(|function| function.translate(&translation));
            done.into_iter().filter_map(into_fork).collect::<Vec<_>>()
        };
        forks.extend(workers.map(translated, || (), |(), _, job| translate(job)).into_iter().flatten());
        workers.drop_in_background(absorbed);
        (visited, forks, failed)
    }

    /// Works on consecutive functions, up to the first that fails. The handle is the context, or
    /// one for a thread, whose messages and counts move to `left` after each function.
    fn work_on_chunk<'a>(
        &self,
        tables: &mut Context,
        subjects: Vec<(FunctionKey, Subject<'a>)>,
        view: &ModuleView<'_>,
        handle: &PassContext,
        left: Option<PassContext>,
    ) -> Chunk<'a> {
        let mut chunk = Chunk {
            done: Vec::with_capacity(subjects.len()),
            visited: Vec::with_capacity(subjects.len()),
            first: subjects.first().and_then(|(_, subject)| subject.function()?.global()),
            size: 0,
            left,
            additions: None,
            failed: None,
        };
        for (key, subject) in subjects {
            let mut work = |function: &mut Function| {
                let result = self.work_on(tables, key, function, view, handle);
                chunk.left.iter().for_each(|left| left.merge(handle));
                match result {
                    Ok(visited) => chunk.visited.push(visited),
                    Err(error) => {
                        let name = function.global().map_or("", |global| tables.global_name(global));
                        chunk.failed = Some(error.or_in_function(name));
                    }
                }
                chunk.size += function.body.len();
            };
            let subject = match subject {
                Subject::InPlace(function) => {
                    work(function);
                    Subject::InPlace(function)
                }
                Subject::ToFork(function) => {
                    let mut fork = function.fork();
                    work(&mut fork);
                    Subject::Forked(function.end_fork(fork))
                }
                done => done,
            };
            chunk.done.push((key, subject));
            if chunk.failed.is_some() {
                break;
            }
        }
        chunk
    }
}

/// Frozen tables. Dropping this thaws them, also during a panic.
pub(crate) struct Frozen<'a>(pub(crate) &'a mut Context);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.0.thaw();
    }
}

/// A function to work on.
enum Subject<'a> {
    InPlace(&'a mut Function),
    /// A function that others see: the work is done on a fork of it.
    ToFork(&'a Function),
    /// The fork, with the work done.
    Forked(EndedFork),
}

impl Subject<'_> {
    /// Returns the function before the work.
    fn function(&self) -> Option<&Function> {
        match self {
            Subject::InPlace(function) => Some(function),
            Subject::ToFork(function) => Some(function),
            Subject::Forked(_) => None,
        }
    }

    /// Returns the function after the work, if it may have ids of an overlay.
    fn edited(&mut self) -> Option<&mut Function> {
        match self {
            Subject::InPlace(function) => Some(function),
            Subject::ToFork(_) => None,
            Subject::Forked(fork) => fork.changed(),
        }
    }
}

fn into_fork((key, subject): (FunctionKey, Subject<'_>)) -> Option<(FunctionKey, EndedFork)> {
    if let Subject::Forked(fork) = subject { Some((key, fork)) } else { None }
}

/// Consecutive functions that one thread worked on.
struct Chunk<'a> {
    done: Vec<(FunctionKey, Subject<'a>)>,
    visited: Vec<Visited>,
    /// The name of the first function.
    first: Option<GlobalId>,
    /// The number of nodes of the functions.
    size: usize,
    /// The messages and counts of the functions, in their order, if they are not in the context.
    left: Option<PassContext>,
    additions: Option<Additions>,
    /// The error of the last function, if it failed.
    failed: Option<PassError>,
}

/// Returns the same as [`Purity::of_module`], and scans the bodies on several threads.
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

/// Returns true if function passes work on a function.
fn is_for_passes(tables: &Context, function: &Function) -> bool {
    let skips = tables.find_attr(function.attrs, SKIP_OPTIMIZATION).map(|value| tables.attrs.get(value));
    function.is_definition() && skips.is_none_or(|value| matches!(value, Attr::Bool(false) | Attr::Int(0)))
}

/// A function that a pass worked on.
struct Visited {
    key: FunctionKey,
    /// The type of its block, if that is its result type and was looked up. Finding the tail is
    /// linear in the block, so the thread that has just worked on the function does it.
    result: Option<TypeId>,
}

impl Visited {
    /// Makes the record of a function, after the work on it and on the same thread.
    fn new(key: FunctionKey, function: &Function) -> Visited {
        let looks = function.ret.is_none() && function.is_definition() && function.body.is_edited();
        Visited { key, result: looks.then(|| function.body.type_of(function.body.root())) }
    }
}

/// Updates the signatures of edited functions whose result is not stated to the types of their
/// blocks, types their callers again, and so on. Linear in the edited bodies, and in the module if
/// a signature changed.
///
/// # Errors
/// If a caller is ill-typed with the new signatures.
fn update_signatures(module: &mut Module, edited: &[Visited]) -> Result<(), PassError> {
    let changed: Vec<FunctionKey> = edited.iter().filter(|f| has_changed(module, f)).map(|f| f.key).collect();
    if !changed.is_empty() {
        anfora_ir::update_signatures(module, &changed)?;
    }
    Ok(())
}

/// Returns true if the signature according to the block of a function differs from the one that its
/// name has. An external function, which others may call, keeps a result type that does not accept
/// that of its block: the verifier refuses it.
fn has_changed(module: &mut Module, visited: &Visited) -> bool {
    let Some((f, cx)) = module.get_mut(visited.key) else { return false };
    let Some(global) = f.global().filter(|_| f.ret.is_none() && f.is_definition()) else { return false };
    let ret = visited.result.unwrap_or_else(|| f.body.type_of(f.body.root()));
    let signature = f.signature(cx, ret);
    let known = cx.globals.get(global).signature;
    // Both are read from signatures, in which the symbols of the parameters are numbered.
    let results = cx.types.as_function(signature).zip(known.and_then(|known| cx.types.as_function(known)));
    let keeps = f.is_external(cx) && results.is_some_and(|(new, known)| !cx.types.accepts(known.ret, new.ret));
    known != Some(signature) && !keeps
}

impl Declare for FunctionPass {
    fn info_mut(&mut self) -> &mut PassInfo {
        &mut self.info
    }
}

impl Pass for FunctionPass {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        if module.order().is_empty() {
            return Ok(Outcome::Unchanged);
        }
        let state = cx.frame().and_then(|frame| frame.state()).filter(|_| self.visits == Visiting::Changed);
        let round = state.and_then(|state| Some(lock(state).tracker.as_mut()?.begin(self.id, module)));
        let visited = |&key: &FunctionKey| !round.as_ref().is_some_and(|round| round.skips(module, key));
        let keys: Vec<FunctionKey> = module.order().iter().copied().filter(visited).collect();
        let size = keys.iter().filter_map(|&key| module.get(key)).map(|f| f.body.len()).fold(0, usize::saturating_add);
        let workers = cx.workers_for(&module.cx.rewrites, keys.len(), size);
        let purity = match workers.cloned() {
            Some(workers) => cx.analyses().of_module(module, move |module| purity_by(&workers, module)),
            None => cx.analyses().of_module(module, Purity::of_module),
        };
        let edited = self.work_on_all(workers.map(|w| &**w), module, &keys, &ModuleView::new(&purity), cx)?;
        // The changes of a pass that has reported errors are rolled back, and it must be able to
        // report the errors again.
        if !cx.has_errors() {
            if let (Some(round), Some(state)) = (&round, state) {
                lock(state).tracker.iter_mut().for_each(|tracker| tracker.end(round, module));
            }
            update_signatures(module, &edited)?;
        }
        Ok(Outcome::Changed)
    }

    fn kind(&self) -> PassKind {
        PassKind::Function
    }
}

anfora_ir::brief_debug! { FunctionPass { info }; }

//! The execution of a pass: the context decides whether it runs, the instruments are called, and a
//! failure is rolled back.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use anfora_ir::{Diagnostic, Module, Severity};

use crate::analyses::Analyses;
use crate::compaction::keep;
use crate::context::{Instruments, PassContext, lock};
use crate::error::{FailureKind, MAX_NESTING, PassError, PassFailure, caught};
use crate::info::{Outcome, PassInfo, SkipReason};
use crate::instrument::{Instrument, PassRun, RunTime};
use crate::left::Left;
use crate::order::check_order;
use crate::pass::{Pass, PassKind};
use crate::phases::lower_claim;
use crate::reports::report_noted;
use crate::scope;
use crate::session::Session;
use crate::tracing;
use crate::verification::{Verification, check_changed, report_shared_edits};

/// The state of a running pass, which the handle that the pass is given refers to.
pub(crate) struct Frame {
    pass: String,
    parent: Option<Arc<Frame>>,
    depth: usize,
    counts: Mutex<Vec<(&'static str, u64)>>,
    /// True if anything was counted. If not, no lock is taken.
    has_counts: AtomicBool,
    session: Option<Arc<Session>>,
    /// Nanoseconds that instruments took around the passes inside of this one.
    instruments: AtomicU64,
    pub(crate) left: Left,
    /// The results of analyses; only in the frame of the outermost pass.
    analyses: OnceLock<Analyses>,
}

impl Frame {
    pub(crate) fn pass(&self) -> &str {
        &self.pass
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    fn add_instruments(&self, time: Duration) {
        self.instruments.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn instruments(&self) -> Duration {
        Duration::from_nanos(self.instruments.load(Ordering::Relaxed))
    }

    fn outermost(&self) -> &Frame {
        std::iter::successors(Some(self), |f| f.parent.as_deref()).last().expect("there is this one")
    }

    /// Returns the state of the sequence that this pass is, or is part of; `None` if it is part of
    /// none.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().or_else(|| self.parent.as_ref()?.session.as_ref())
    }

    pub(crate) fn analyses(&self) -> Analyses {
        self.outermost().analyses.get_or_init(Analyses::new).clone()
    }

    /// Returns the results of analyses, if any analysis was run.
    fn analysed(&self) -> Option<&Analyses> {
        self.outermost().analyses.get().filter(|a| !a.is_empty())
    }

    /// Returns a frame for the same run of the pass, without messages and counts.
    pub(crate) fn fork(&self) -> Frame {
        Frame {
            pass: self.pass.clone(),
            parent: self.parent.clone(),
            depth: self.depth,
            counts: Mutex::default(),
            has_counts: AtomicBool::new(false),
            session: None,
            instruments: AtomicU64::default(),
            left: Left::new(PassKind::Function),
            analyses: self.analyses().into(),
        }
    }

    /// Adds the messages and counts of a frame that was made by [`Frame::fork`].
    pub(crate) fn merge(&self, other: &Frame) {
        self.left.merge(&other.left);
        if other.has_counts.swap(false, Ordering::AcqRel) {
            lock(&other.counts).drain(..).for_each(|(counter, n)| self.count(counter, n));
        }
    }

    pub(crate) fn count(&self, counter: &'static str, n: u64) {
        let mut counts = lock(&self.counts);
        self.has_counts.store(true, Ordering::Release);
        match counts.iter_mut().find(|c| c.0 == counter) {
            Some(c) => c.1 = c.1.saturating_add(n),
            None => counts.push((counter, n)),
        }
    }
}

/// Runs a pass under a context.
///
/// 1. If the context disables the pass, it does not run. If the level of the pass is higher than
///    that of the context, or an instrument does not agree, it does not run either, unless the
///    context requires it. The outcome then has the reason, and a remark is left.
/// 2. Unless a sequence runs the pass, the order of everything that it will run is checked. If a
///    pass needs a property that a pass before it breaks, or that the claimed phase of the module
///    excludes, the call fails before anything runs.
/// 3. The dependencies of the pass are run. A dependency is not run again if it has run with the
///    same options in the running sequence, and nothing has changed since. Dependencies run
///    whatever their level is.
/// 4. The hooks `run_before` of the instruments are called, the pass runs, its result is verified
///    if the context [asks for it](Verification), and the hooks `run_after` are called. If the pass
///    changed the module and breaks a property of the phase that the module claims, the claim is
///    lowered before the verification.
///
/// If a step fails or panics, the remaining steps are skipped. If a pass failed, the module is as
/// it was before step 4; if a sequence failed, the module is as it was before the pass of it that
/// failed.
///
/// Passes that run other passes nest at most [`MAX_NESTING`] deep under a context, and twice as
/// deep on a thread, whatever contexts they make and whatever instruments run. Deeper nesting is an
/// error.
///
/// # Errors
/// If the pass, one of its dependencies, or an instrument fails.
pub fn run_pass(pass: &dyn Pass, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
    let info = pass.info();
    let fail = |error: PassError| PassFailure::from(error).at(&info.name, || path(cx));
    let _open = scope::open_run().map_err(fail)?;
    let forced = match enabled(info, cx) {
        Ok(forced) => forced,
        Err(reason) => return Ok(skip(info, cx, reason)),
    };
    let instruments = cx.active_instruments();
    let run = PassRun::new(pass, cx, None, forced);
    if let (false, Some(instruments)) = (forced, &instruments) {
        let vetoes = ask(instruments, module, &run)?;
        if !vetoes.is_empty() {
            return Ok(skip(info, cx, SkipReason::Vetoed(vetoes)));
        }
    }
    if cx.frame().is_none_or(|f| f.session.is_none()) {
        check_order(pass, module, cx)?;
    }
    let mut changed = false;
    if !info.required.is_empty() {
        for Dependency { pass, by } in dependencies(info, cx).map_err(fail)? {
            changed |= run_dependency(&*pass, &by, module, cx)?;
        }
    }
    match tracing::in_pass(&run, || execute(module, &run, instruments.as_ref()))? {
        Outcome::Unchanged if changed => Ok(Outcome::Changed),
        outcome => Ok(outcome),
    }
}

/// Returns true if the context forces the pass to run, false if it allows it to run, and the reason
/// as an error if it does not.
pub(crate) fn enabled(info: &PassInfo, cx: &PassContext) -> Result<bool, SkipReason> {
    if cx.is_disabled(&info.name) {
        Err(SkipReason::Disabled)
    } else if cx.is_required(&info.name) {
        Ok(true)
    } else if info.opt_level > cx.opt_level() {
        Err(SkipReason::OptLevel { pass: info.opt_level, context: cx.opt_level() })
    } else {
        Ok(false)
    }
}

fn skip(info: &PassInfo, cx: &PassContext, reason: SkipReason) -> Outcome {
    tracing::skipped(info, &reason);
    cx.remark(Diagnostic::new(Severity::Remark, format!("pass `{}` was skipped: {reason}", info.name)));
    Outcome::Skipped(reason)
}

/// Asks every instrument, and returns the names of those that did not agree.
fn ask(instruments: &Instruments, module: &Module, run: &PassRun<'_>) -> Result<Vec<String>, PassFailure> {
    let began = Instant::now();
    let ask_all = || {
        let mut vetoes = Vec::new();
        for instrument in instruments.iter() {
            let agrees = guarded(&**instrument, "should_run", || instrument.should_run(module, run))
                .map_err(|f| f.at(run.name(), || path(run.context)))?;
            if !agrees {
                vetoes.push(instrument.name().to_string());
            }
        }
        Ok(vetoes)
    };
    let vetoes = ask_all();
    if let Some(outer) = run.context.frame() {
        outer.add_instruments(began.elapsed());
    }
    vetoes
}

/// A pass that another pass depends on.
pub(crate) struct Dependency {
    pub(crate) pass: Arc<dyn Pass>,
    /// The name of the dependent pass.
    by: String,
}

/// Returns the passes that a pass depends on, each after its own dependencies.
pub(crate) fn dependencies(info: &PassInfo, cx: &PassContext) -> Result<Vec<Dependency>, PassError> {
    struct Open {
        info: PassInfo,
        /// Absent for the pass whose dependencies are returned.
        made: Option<Dependency>,
        next: usize,
    }
    let mut order = Vec::new();
    // True for names that are done; false for names that are open.
    let mut seen: HashMap<String, bool> = HashMap::from([(info.name.clone(), false)]);
    let mut open = vec![Open { info: info.clone(), made: None, next: 0 }];
    while let Some(top) = open.last_mut() {
        let Some(name) = top.info.required.get(top.next).cloned() else {
            let done = open.pop().expect("the last was just looked at");
            seen.insert(done.info.name, true);
            order.extend(done.made);
            continue;
        };
        top.next += 1;
        match seen.get(&name) {
            Some(true) => {}
            Some(false) => {
                let from = open.iter().position(|o| o.info.name == name).expect("an open name is on the stack");
                let mut names: Vec<&str> = open[from..].iter().map(|o| o.info.name.as_str()).collect();
                names.push(&name);
                return Err(PassError::new(format!("passes depend on each other: {}", names.join(" -> "))));
            }
            None => {
                let by = top.info.name.clone();
                let pass = cx.registry().make(&name).map_err(|e| {
                    let error =
                        PassError::new(format!("`{by}` depends on `{name}`, which cannot be made")).with_cause(e);
                    if !cx.registry().passes().is_empty() {
                        return error;
                    }
                    error.with_help("no pass is registered: give the context a registry, or the process a default one")
                })?;
                seen.insert(name, false);
                open.push(Open { info: pass.info().clone(), made: Some(Dependency { pass, by }), next: 0 });
            }
        }
    }
    Ok(order)
}

/// Runs a pass because `by` depends on it. Returns true if it changed the module.
fn run_dependency(pass: &dyn Pass, by: &str, module: &mut Module, cx: &PassContext) -> Result<bool, PassFailure> {
    let name = &pass.info().name;
    let fail = |why: String| {
        let error = PassError::new(format!("it depends on `{name}`, which did not run: {why}"));
        Err(PassFailure::from(error).at(by, || path(cx)))
    };
    if cx.is_disabled(name) {
        return fail(SkipReason::Disabled.to_string());
    }
    if let Some(session) = cx.frame().and_then(|f| f.session.as_ref())
        && session.has_finished(pass, module)
    {
        return Ok(false);
    }
    let instruments = cx.active_instruments();
    let run = PassRun::new(pass, cx, Some(by), cx.is_required(name));
    if let (false, Some(instruments)) = (run.forced, &instruments) {
        let vetoes = ask(instruments, module, &run)?;
        if !vetoes.is_empty() {
            return fail(SkipReason::Vetoed(vetoes).to_string());
        }
    }
    Ok(tracing::in_pass(&run, || execute(module, &run, instruments.as_ref()))?.is_changed())
}

/// Runs a pass that is allowed to run.
fn execute(module: &mut Module, run: &PassRun<'_>, instruments: Option<&Instruments>) -> Result<Outcome, PassFailure> {
    let (pass, cx) = (run.pass, run.context);
    let leaf = pass.kind() != PassKind::Sequence;
    let outer = cx.frame();
    if cx.depth() + pass.nesting() > MAX_NESTING {
        let error = PassError::new(format!("passes nest more than {MAX_NESTING} deep"));
        return Err(PassFailure::from(error).at(run.name(), || path(cx)));
    }
    // A sequence inside of a leaf may run on another module, so it has a state of its own.
    let outer_session = outer.and_then(|f| f.session.as_ref());
    let frame = Frame {
        pass: run.name().to_string(),
        parent: outer.cloned(),
        depth: cx.depth() + 1,
        counts: Mutex::default(),
        has_counts: AtomicBool::new(false),
        session: if leaf { None } else { Some(outer_session.cloned().unwrap_or_default()) },
        instruments: AtomicU64::new(0),
        left: Left::new(pass.kind()),
        analyses: OnceLock::new(),
    };
    let inner = cx.inside(frame);
    let running = inner.frame().expect("the handle was made for the pass");
    let instruments: &[Arc<dyn Instrument>] = instruments.map_or(&[], |i| i);
    if !instruments.is_empty() {
        run.begins(&inner);
    }

    // Time is measured only if an instrument may ask for it.
    let now = || (!instruments.is_empty()).then(Instant::now);
    let since = |from: Option<Instant>| from.map_or(Duration::ZERO, |from| from.elapsed());

    // The instruments in this range have begun, and their `run_after` was not called.
    let mut begun = 0..0;
    let hooks = now();
    let mut result = Ok(Outcome::Unchanged);
    for instrument in instruments {
        result =
            guarded(&**instrument, "run_before", || instrument.run_before(module, run)).map(|()| Outcome::Unchanged);
        if result.is_err() {
            break;
        }
        begun.end += 1;
    }
    let mut in_hooks = since(hooks);
    // The number of open edits of other passes, and whether the edit of this pass is open.
    let edits = module.edit_depth();
    let mut has_edit = false;
    if result.is_ok() {
        // Preserved analyses are found by comparing with this.
        let mut before = None;
        if leaf {
            let preserves = !pass.info().preserved.is_empty();
            before = (preserves && running.analysed().is_some()).then(|| module.stamp());
            module.begin_edit();
            has_edit = true;
        }
        let began = now();
        result = catch_unwind(AssertUnwindSafe(|| pass.run(module, &inner)))
            .unwrap_or_else(|payload| Err(PassError::panic(payload).into()));
        if let Some(began) = began {
            let wall = began.elapsed();
            let inside = running.instruments();
            run.note_time(RunTime { began, wall, own: wall.saturating_sub(inside) });
            in_hooks += inside;
        }
        let verifies = leaf && cx.verification() == Verification::AfterEachPass;
        if leaf && result.is_ok() {
            // A walk that looks for the bindings of messages may panic on an ill-formed body.
            let told = caught(|| {
                if verifies {
                    report_shared_edits(module, &inner);
                }
                report_noted(module, &inner);
                Ok(())
            });
            if let Err(error) = told {
                result = Err(error.into());
            }
        }
        result = running.left.settle(module, result);
        if leaf {
            end_edits_inside(module, edits + 1, result.is_ok());
            has_edit = module.edit_depth() > edits;
            if !has_edit && result.is_ok() {
                result = Err(PassError::new(LOST_EDIT).into());
            }
        }
        if leaf && let Ok(outcome) = &mut result {
            *outcome = if module.has_changes() { Outcome::Changed } else { Outcome::Unchanged };
        }
        if let Ok(Outcome::Changed) = result {
            lower_claim(module, pass.info(), &inner);
        }
        if let (true, Ok(Outcome::Changed)) = (verifies && !instruments.iter().any(|i| i.verifies()), &result) {
            let hooks = now();
            if let Err(error) = check_changed(module, cx.registry()) {
                result = Err(error.into());
            }
            in_hooks += since(hooks);
        }
        if let (Ok(Outcome::Changed), Some(before), Some(analyses)) = (&result, &before, running.analysed()) {
            let carry = || analyses.carry(module, before, &pass.info().preserved);
            let carried = caught(carry);
            if let Err(error) = carried {
                result = Err(error.into());
            }
        }
        if let Ok(outcome) = &result {
            let hooks = now();
            let mut failed = None;
            for instrument in instruments {
                begun.start += 1;
                failed = guarded(&**instrument, "run_after", || instrument.run_after(module, run, outcome)).err();
                if failed.is_some() {
                    break;
                }
            }
            in_hooks += since(hooks);
            if let Some(failure) = failed {
                result = Err(failure);
            }
        }
        if leaf {
            match &result {
                Ok(Outcome::Changed) => {
                    if let Some(session) = outer_session {
                        session.note_changed(run.name());
                    }
                    keep(module, outer_session.map(|s| s.edited()).as_deref_mut(), cx);
                }
                // Nodes that were appended and not linked are removed too.
                _ if has_edit => module.rollback(),
                _ => {}
            }
            // An enclosing pass may be rolled back to a state for which earlier results are valid.
            let outermost = std::iter::successors(outer, |f| f.parent.as_ref()).all(|f| f.session.is_some());
            if let (true, Some(analyses)) = (outermost, running.analysed()) {
                analyses.sweep(module);
            }
        }
    }
    let entered = &instruments[..begun.end];
    let result = match result {
        Ok(outcome) => {
            finish(pass, &inner, running, outer_session, module);
            let hooks = now();
            tell(entered, "on_end", cx, |instrument| instrument.on_end(module, run, Ok(&outcome)));
            in_hooks += since(hooks);
            Ok(outcome)
        }
        Err(failure) => {
            let failure = failure.at(run.name(), || path(cx));
            let hooks = now();
            tell(&instruments[begun], "on_error", cx, |instrument| instrument.on_error(module, run, &failure));
            tell(entered, "on_end", cx, |instrument| instrument.on_end(module, run, Err(&failure)));
            in_hooks += since(hooks);
            Err(failure)
        }
    };
    inner.close();
    if let Some(outer) = outer {
        outer.add_instruments(in_hooks);
    }
    result
}

const LOST_EDIT: &str = "it put another module in the place of its own, or ended an edit that it had not begun: what it did cannot be taken back";

/// Ends the edits that a pass has begun and not ended, down to this depth: commits them if `keep`,
/// and rolls them back otherwise.
fn end_edits_inside(module: &mut Module, depth: usize, keep: bool) {
    for _ in depth..module.edit_depth() {
        if keep {
            module.commit();
        } else {
            module.rollback();
        }
    }
}

/// Calls a hook that cannot fail on some instruments. A panic in it is left among the remarks.
fn tell(instruments: &[Arc<dyn Instrument>], hook: &'static str, cx: &PassContext, call: impl Fn(&dyn Instrument)) {
    for instrument in instruments {
        let told = guarded(&**instrument, hook, || {
            call(&**instrument);
            Ok(())
        });
        if let Err(second) = told {
            cx.report_failure(&second);
        }
    }
}

/// Keeps the counts of a pass, and records that it has run on the module in its present state.
fn finish(pass: &dyn Pass, inner: &PassContext, frame: &Frame, session: Option<&Arc<Session>>, module: &Module) {
    if frame.has_counts.load(Ordering::Acquire) {
        let counts = std::mem::take(&mut *lock(&frame.counts));
        inner.with_statistics(|s| counts.into_iter().for_each(|(counter, n)| s.add(&frame.pass, counter, n)));
    }
    if let Some(session) = session {
        session.note_finished(pass, module);
    }
}

/// Calls a hook. Returns an error or a panic of it as a failure of the instrument.
pub(crate) fn guarded<T>(
    instrument: &dyn Instrument,
    hook: &'static str,
    call: impl FnOnce() -> Result<T, PassError>,
) -> Result<T, PassFailure> {
    caught(call).map_err(|error| {
        PassFailure::new(FailureKind::Instrument { instrument: instrument.name().to_string(), hook }, error)
    })
}

/// Returns the message of a panic.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast_ref::<&str>() {
        Some(text) => Some((*text).to_string()),
        None => payload.downcast_ref::<String>().cloned(),
    };
    // Dropping the payload may panic again, and so may dropping the payload of that panic.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    text.unwrap_or_else(|| "it panicked with something that is not a text".to_string())
}

/// Returns the names of the passes around the holder of a handle, outermost first.
pub(crate) fn path(cx: &PassContext) -> Vec<String> {
    let mut names: Vec<String> =
        std::iter::successors(cx.frame(), |f| f.parent.as_ref()).map(|f| f.pass.clone()).collect();
    names.reverse();
    names
}

//! The execution of a pass: the context decides whether it runs, the instruments are called, and a
//! failure is rolled back.

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anfora_ir::{Diagnostic, FunctionKey, Module, ModuleStamp, Rewrites, Severity, verify_functions};

use crate::compaction::{Edited, keep};
use crate::context::PassContext;
use crate::error::{MAX_NESTING, PassError, PassFailure, caught};
use crate::frame::RunFrame;
use crate::info::{Outcome, PassKind, SkipReason};
use crate::instrument::{Instrument, PassRun, RunTime, guarded, tell};
use crate::messages::Messages;
use crate::order::{Dependency, check_order, dependencies, enabled};
use crate::pass::Pass;
use crate::phases::{Change, check_observed_needs, lower_claim};
use crate::pipeline_state::PipelineState;
use crate::sync::lock;
use crate::verification::{Verification, check_made, shared_edit};

/// Runs a pass under a context.
///
/// 1. A pass that the context disables is skipped, and so is any pass but a sequence once the limit
///    of rewrites is reached ([`limit_rewrites`](crate::PassContextBuilder::limit_rewrites)).
///    Unless the context requires the pass, it is also skipped if its level is higher than that of
///    the context, or if an instrument vetoes it. The outcome then has the reason, and a remark is
///    left.
/// 2. Unless a sequence runs the pass, the order of all passes that this pass will run is checked.
///    If a pass needs a property that a pass before it breaks, or that the claimed phase of the
///    module excludes, the call fails before anything runs.
/// 3. The dependencies of the pass are run, whatever their level is. A dependency is not run again
///    if it has run with the same options in the running sequence, and nothing has changed since.
///    If the context disables a dependency, or an instrument vetoes one that the context does not
///    require, the call fails.
/// 4. The [observed](crate::Property::observed_by) properties that the pass needs are checked. The
///    hooks `run_before` of the instruments are called, the pass runs, its result is verified if
///    the context [asks for it](Verification), and the hooks `run_after` are called. If the pass
///    changed the module and breaks a property of the phase that the module claims, the claim is
///    lowered before the verification.
///
/// If a step fails or panics, the remaining steps are skipped. If a single pass failed, the module
/// is as it was before step 4, unless the pass replaced the module by another one or ended an edit
/// that it did not begin. If a sequence failed because one of its passes failed, the module is
/// as it was before that pass.
///
/// Passes may run other passes. They nest at most [`MAX_NESTING`] deep under one context. On one
/// thread they nest at most twice as deep, counting the passes under all contexts and in the hooks
/// of instruments. Deeper nesting is an error.
///
/// # Errors
/// If the pass, one of its dependencies, or an instrument fails.
pub fn run_pass(pass: &dyn Pass, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
    let info = pass.info();
    let fail = |error: PassError| PassFailure::from(error).at(&info.name, || cx.path());
    let _open = OpenRun::begin().map_err(fail)?;
    let instruments = cx.active_instruments();
    let forced = match enabled(info, cx) {
        Ok(forced) => forced,
        Err(reason) => return Ok(skip(module, &PassRun::new(pass, cx, None, false), &instruments, reason)),
    };
    if is_at_limit(pass, cx, module) {
        return Ok(skip(module, &PassRun::new(pass, cx, None, forced), &instruments, SkipReason::RewriteLimit));
    }
    let run = PassRun::new(pass, cx, None, forced);
    if let Some(vetoed) = ask(&instruments, module, &run)? {
        return Ok(skip(module, &run, &instruments, vetoed));
    }
    if cx.frame().is_none_or(|f| f.sequence.is_none()) {
        check_order(pass, module, cx)?;
    }
    let mut changed = false;
    if !info.required.is_empty() {
        for Dependency { pass, by } in dependencies(info, cx).map_err(fail)? {
            changed |= run_dependency(&*pass, &by, module, cx)?;
        }
    }
    match execute(module, &run, &instruments)? {
        Outcome::Unchanged if changed => Ok(Outcome::Changed),
        outcome => Ok(outcome),
    }
}

thread_local! {
    /// The number of unfinished passes on this thread, under all contexts and in the hooks of
    /// instruments.
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

const MOST_RUNS: usize = 2 * MAX_NESTING;

/// Keeps a run of a pass open on this thread until it is dropped.
struct OpenRun;

impl OpenRun {
    fn begin() -> Result<OpenRun, PassError> {
        if RUNS.get() == MOST_RUNS {
            return Err(PassError::new(format!("passes nest more than {MOST_RUNS} deep on this thread")));
        }
        RUNS.set(RUNS.get() + 1);
        Ok(OpenRun)
    }
}

impl Drop for OpenRun {
    fn drop(&mut self) {
        RUNS.set(RUNS.get().saturating_sub(1));
    }
}

fn skip(module: &Module, run: &PassRun<'_>, instruments: &[Arc<dyn Instrument>], reason: SkipReason) -> Outcome {
    let (info, cx) = (run.info(), run.context);
    #[cfg(feature = "tracing")]
    crate::spans::skipped(info, &reason);
    tell(instruments, "on_skip", cx, |instrument| instrument.on_skip(module, run, &reason));
    cx.remark(Diagnostic::new(Severity::Remark, format!("pass `{}` was skipped: {reason}", info.name)));
    Outcome::Skipped(reason)
}

/// Returns true if a pass must not run because the limit of rewrites is reached.
fn is_at_limit(pass: &dyn Pass, cx: &PassContext, module: &Module) -> bool {
    !ledger_of(cx, module).may_rewrite() && pass.kind() != PassKind::Sequence
}

/// Returns the ledger that counts the rewrites of a pass: that of the context if it is on, else
/// that of the module. The ledger of the module is on if an outer pass with a ledger runs this pass
/// under another context.
fn ledger_of<'a>(cx: &'a PassContext, module: &'a Module) -> &'a Rewrites {
    if cx.rewrites().is_on() { cx.rewrites() } else { &module.cx.rewrites }
}

/// Asks every instrument about a pass that the context does not require, and returns the reason if
/// one of them vetoes it.
fn ask(
    instruments: &[Arc<dyn Instrument>],
    module: &Module,
    run: &PassRun<'_>,
) -> Result<Option<SkipReason>, PassFailure> {
    if run.forced || instruments.is_empty() {
        return Ok(None);
    }
    let began = Instant::now();
    let agrees = |i: &Arc<dyn Instrument>| guarded(&**i, "should_run", || i.should_run(module, run));
    let asked = instruments.iter().map(|i| Ok((i.name(), agrees(i)?))).collect::<Result<Vec<_>, PassFailure>>();
    if let Some(outer) = run.context.frame() {
        *lock(&outer.in_hooks) += began.elapsed();
    }
    let asked = asked.map_err(|failure| failure.at(run.name(), || run.path()))?;
    let vetoes: Vec<String> =
        asked.into_iter().filter(|(_, agrees)| !agrees).map(|(name, _)| name.to_string()).collect();
    Ok(if vetoes.is_empty() { None } else { Some(SkipReason::Vetoed(vetoes)) })
}

/// Runs a pass because `by` depends on it. Returns true if it changed the module.
fn run_dependency(pass: &dyn Pass, by: &str, module: &mut Module, cx: &PassContext) -> Result<bool, PassFailure> {
    let name = &pass.info().name;
    let fail = |why: SkipReason| {
        let error = PassError::new(format!("it depends on `{name}`, which did not run: {why}"));
        Err(PassFailure::from(error).at(by, || cx.path()))
    };
    if cx.is_disabled(name) {
        return fail(SkipReason::Disabled);
    }
    if is_at_limit(pass, cx, module) {
        return Ok(false);
    }
    if let Some(state) = cx.frame().and_then(|f| f.sequence.as_ref())
        && lock(state).has_finished(&pass.pipeline_text(), module)
    {
        return Ok(false);
    }
    let instruments = cx.active_instruments();
    let run = PassRun::new(pass, cx, Some(by), cx.is_required(name));
    if let Some(vetoed) = ask(&instruments, module, &run)? {
        return fail(vetoed);
    }
    Ok(execute(module, &run, &instruments)?.is_changed())
}

/// Runs a pass that is allowed to run.
fn execute(
    module: &mut Module,
    run: &PassRun<'_>,
    instruments: &[Arc<dyn Instrument>],
) -> Result<Outcome, PassFailure> {
    let (pass, cx) = (run.pass, run.context);
    #[cfg(feature = "tracing")]
    let _span = crate::spans::pass_span(run.info(), run.kind(), run.dependency_of).entered();
    let inner = cx.inside(RunFrame::new(run.name(), pass.kind(), cx.frame()));
    let mut execution = Execution {
        run,
        inner: &inner,
        frame: inner.frame().expect("the handle was made for the pass"),
        state: cx.frame().and_then(|f| f.sequence.as_ref()),
        leaf: pass.kind() != PassKind::Sequence,
        instruments,
        begun: 0..0,
        in_hooks: Duration::ZERO,
    };
    let result = execution.check_needs(module).and_then(|()| execution.begin(module));
    let result = result.and_then(|()| execution.transact(module));
    let result = execution.end(module, result);
    let in_hooks = execution.in_hooks;
    inner.close();
    if let Some(outer) = cx.frame() {
        *lock(&outer.in_hooks) += in_hooks;
    }
    #[cfg(feature = "tracing")]
    crate::spans::ended(&result);
    result
}

/// One run of a pass, from the first hook to the last.
struct Execution<'a> {
    run: &'a PassRun<'a>,
    /// The context that the pass receives.
    inner: &'a PassContext,
    frame: &'a RunFrame,
    /// The state of the sequence that the pass is part of.
    state: Option<&'a Arc<Mutex<PipelineState>>>,
    /// False for a sequence: each of its passes is a transaction, and the sequence is none.
    leaf: bool,
    instruments: &'a [Arc<dyn Instrument>],
    /// The instruments whose `run_before` has succeeded and whose `run_after` was not called yet,
    /// as a range of `instruments`.
    begun: Range<usize>,
    /// The time that instruments took.
    in_hooks: Duration,
}

impl Execution<'_> {
    /// Returns the time, which is measured only if an instrument may ask for it.
    fn now(&self) -> Option<Instant> {
        (!self.instruments.is_empty()).then(Instant::now)
    }

    /// Runs hooks, and adds the time that they take to the time of instruments.
    fn in_hooks<T>(&mut self, hooks: impl FnOnce(&mut Self) -> T) -> T {
        let began = self.now();
        let done = hooks(self);
        self.in_hooks += began.map_or(Duration::ZERO, |began| began.elapsed());
        done
    }

    /// Checks the observed properties that the pass needs. The order of passes does not show
    /// whether they hold.
    fn check_needs(&self, module: &Module) -> Result<(), PassFailure> {
        let (info, known) = (self.run.info(), self.run.context.registry().properties_and_phases());
        if info.needs.is_empty() {
            return Ok(());
        }
        Ok(caught(|| check_observed_needs(module, info, known))?)
    }

    /// Calls the hooks before the pass.
    fn begin(&mut self, module: &Module) -> Result<(), PassFailure> {
        if self.run.depth() + self.run.pass.nesting() > MAX_NESTING {
            return Err(PassError::new(format!("passes nest more than {MAX_NESTING} deep")).into());
        }
        if self.instruments.is_empty() {
            return Ok(());
        }
        let _ = self.run.inner.set(self.inner.clone());
        self.in_hooks(|this| {
            for instrument in this.instruments {
                guarded(&**instrument, "run_before", || instrument.run_before(module, this.run))?;
                this.begun.end += 1;
            }
            Ok(())
        })
    }

    /// Runs the pass inside of an edit, which is committed if nothing fails, and rolled back
    /// otherwise.
    fn transact(&mut self, module: &mut Module) -> Result<Outcome, PassFailure> {
        if !self.leaf {
            return self.run(module).and_then(|outcome| self.accept(module, None, outcome));
        }
        // The stamps before the pass. Afterwards, they show which preserved analyses were valid.
        let preserves = !self.run.info().preserved.is_empty();
        let before = (preserves && self.frame.analysed().is_some()).then(|| module.stamp());
        let edits = module.edit_depth();
        let ledger = ledger_of(self.run.context, module).clone();
        let mark = ledger.mark();
        module.begin_edit();
        let result = if ledger.is_on() { self.run_counted(module, &ledger) } else { self.run(module) };
        let result = self.settle(module, result);
        end_edits_inside(module, edits + 1, result.is_ok());
        let has_edit = module.edit_depth() > edits;
        let outcome = if has_edit && module.has_changes() { Outcome::Changed } else { Outcome::Unchanged };
        let result = result.and_then(|_| match has_edit {
            true => self.accept(module, before, outcome),
            false => Err(PassError::new(LOST_EDIT).into()),
        });
        match &result {
            Ok(Outcome::Changed) => {
                let workers = |jobs, nodes| self.run.context.workers_for(&ledger, jobs, nodes);
                match self.state {
                    Some(state) => {
                        let state = &mut *lock(state);
                        state.note_changed(self.run.name());
                        keep(module, &mut state.edited, workers);
                    }
                    None => keep(module, &mut Edited::default(), workers),
                }
            }
            // A pass that changed nothing may have appended nodes without linking them.
            _ if has_edit => module.rollback(),
            _ => {}
        }
        if result.is_err() {
            ledger.undo_since(mark);
        }
        // Drop stale analyses, unless an enclosing pass may still be rolled back to a state for
        // which they are valid.
        let in_sequences = self.frame.outwards().skip(1).all(|f| f.sequence.is_some());
        if let (true, Some(analyses)) = (in_sequences, self.frame.analysed()) {
            analyses.sweep(module);
        }
        result
    }

    /// Runs a pass that is not a sequence, and counts its rewrites in a ledger.
    fn run_counted(&mut self, module: &mut Module, ledger: &Rewrites) -> Result<Outcome, PassFailure> {
        let rewrites = ledger.for_run();
        let before = rewrites.count();
        let outer = std::mem::replace(&mut module.cx.rewrites, rewrites.clone());
        let place = rewrites.enter_pass(self.run.name());
        let result = self.run(module);
        rewrites.enter_function(None);
        if result.is_ok() && rewrites.count() == before && module.has_changes() {
            rewrites.note(None, "changed the module");
        }
        rewrites.leave(place);
        rewrites.end_run();
        module.cx.rewrites = outer;
        result
    }

    /// Runs the pass itself.
    fn run(&mut self, module: &mut Module) -> Result<Outcome, PassFailure> {
        let began = self.now();
        let result = catch_unwind(AssertUnwindSafe(|| self.run.pass.run(module, self.inner)))
            .unwrap_or_else(|payload| Err(PassError::panic(payload).into()));
        if let Some(began) = began {
            let wall = began.elapsed();
            let inside = *lock(&self.frame.in_hooks);
            let _ = self.run.time.set(RunTime { began, wall, own: wall.saturating_sub(inside) });
            self.in_hooks += inside;
        }
        result
    }

    fn verifies(&self) -> bool {
        self.leaf && self.run.context.verification() == Verification::AfterEachPass
    }

    /// Completes the messages of the pass. A pass that has reported errors has failed.
    fn settle(&self, module: &mut Module, mut result: Result<Outcome, PassFailure>) -> Result<Outcome, PassFailure> {
        if result.is_ok() {
            // A walk that looks for the bindings of messages may panic on an ill-formed body.
            let told = caught(|| {
                if self.verifies() {
                    report_shared_edits(module, self.inner);
                }
                report_noted(module, self.inner);
                Ok(())
            });
            if let Err(error) = told {
                result = Err(error.into());
            }
        }
        match &mut *lock(&self.frame.messages) {
            Some(messages) => messages.settle(module, result),
            None => result,
        }
    }

    /// Checks what the pass has made, and calls the hooks after it.
    fn accept(
        &mut self,
        module: &mut Module,
        before: Option<ModuleStamp>,
        outcome: Outcome,
    ) -> Result<Outcome, PassFailure> {
        // A pass that could not read a constant may have drawn wrong conclusions from that.
        module.cx.literals.failure().map_err(PassError::from)?;
        let registry = self.run.context.registry();
        if outcome.is_changed() {
            let change = Change { info: self.run.info(), is_own: self.leaf };
            // The check of an observed property may panic.
            let lowered = caught(|| Ok(lower_claim(module, &change, registry.properties_and_phases())))?;
            if let Some(message) = lowered {
                self.inner.remark(Diagnostic::remark(message));
            }
            if self.verifies() && !self.instruments.iter().any(|i| i.verifies()) {
                let check = || verify_functions(module, &module.affected_functions());
                self.in_hooks(|_| check_made(check(), module, registry.properties_and_phases()))?;
            }
            if let (Some(before), Some(analyses)) = (&before, self.frame.analysed()) {
                caught(|| analyses.carry(module, before, &self.run.info().preserved))?;
            }
        }
        self.in_hooks(|this| {
            for instrument in this.instruments {
                this.begun.start += 1;
                guarded(&**instrument, "run_after", || instrument.run_after(module, this.run, &outcome))?;
            }
            Ok(())
        })
        .map(|()| outcome)
    }

    /// Ends the run with its final result. If the pass succeeded, adds its counts to the statistics
    /// and notes in the sequence that it has finished. Then calls the last hooks: `on_error` after
    /// a failure, and `on_end`.
    fn end(&mut self, module: &Module, result: Result<Outcome, PassFailure>) -> Result<Outcome, PassFailure> {
        let (run, cx) = (self.run, self.run.context);
        let entered = &self.instruments[..self.begun.end];
        match result {
            Ok(outcome) => {
                self.inner.keep_counts();
                if let Some(state) = self.state {
                    lock(state).note_finished(run.pass.pipeline_text(), module);
                }
                self.in_hooks(|_| {
                    tell(entered, "on_end", cx, |instrument| instrument.on_end(module, run, Ok(&outcome)));
                });
                Ok(outcome)
            }
            Err(failure) => {
                let failure = failure.at(run.name(), || cx.path());
                let begun = &self.instruments[self.begun.clone()];
                self.in_hooks(|_| {
                    tell(begun, "on_error", cx, |instrument| instrument.on_error(module, run, &failure));
                    tell(entered, "on_end", cx, |instrument| instrument.on_end(module, run, Err(&failure)));
                });
                Err(failure)
            }
        }
    }
}

const LOST_EDIT: &str = "it put another module in the place of its own, or ended an edit that it did not begin, so it cannot be rolled back";

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

/// Leaves a remark about each node with several uses that the ending pass overwrote.
fn report_shared_edits(module: &mut Module, cx: &PassContext) {
    for key in module.order().to_vec() {
        let edited = module.get_mut(key).map_or_else(Vec::new, |(f, _)| f.body.take_edited_shared());
        edited.into_iter().for_each(|(node, uses)| cx.report(module, key, node, shared_edit(uses)));
    }
}

/// Moves the messages that walks noted in bodies to the messages of the ending pass.
fn report_noted(module: &mut Module, cx: &PassContext) {
    let has_remarks = |&key: &FunctionKey| module.get(key).is_some_and(|f| f.body.has_remarks());
    let noted: Vec<FunctionKey> = module.order().iter().copied().filter(has_remarks).collect();
    if let (Some(frame), false) = (cx.frame(), noted.is_empty()) {
        lock(&frame.messages).iter_mut().for_each(Messages::begin_noted);
    }
    for key in noted {
        let remarks = module.get_mut(key).map_or_else(Vec::new, |(f, _)| f.body.take_remarks());
        remarks.into_iter().for_each(|(expr, diagnostic)| cx.report(module, key, expr, diagnostic));
    }
}

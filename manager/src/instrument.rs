//! Instruments, which watch passes run.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anfora_ir::{Diagnostic, Module, RewriteOptions};

use crate::context::PassContext;
use crate::error::{FailureKind, PassError, PassFailure, caught};
use crate::info::PassKind;
use crate::info::{Outcome, PassInfo, SkipReason};
use crate::messages::Messages;
use crate::pass::Pass;
use crate::sync::lock;

/// An object that watches passes run, and may stop them.
///
/// Instruments are shared, so the hooks take `&self`. An instrument keeps its state in atomics or
/// behind a lock, and must not hold the lock while it runs a pass itself. A hook that panics has
/// failed.
///
/// For each pass that the context lets run, every instrument is asked
/// [`should_run`](Instrument::should_run). If all return true, every
/// [`run_before`](Instrument::run_before) is called, then the pass runs, then every
/// [`run_after`](Instrument::run_after) is called, in the order of the instruments. If something
/// fails, [`on_error`](Instrument::on_error) is called on the instruments whose `run_before` was
/// done and whose `run_after` was not called. At the end, when no instrument can reject the result
/// any more, [`on_end`](Instrument::on_end) is called with the result on the instruments whose
/// `run_before` was done.
pub trait Instrument: Send + Sync {
    /// Returns the name of the instrument in messages.
    fn name(&self) -> &str;

    /// Returns true if the instrument verifies the module after each pass itself, so that the
    /// context does not.
    fn verifies(&self) -> bool {
        false
    }

    /// Returns the request of the instrument to the ledger of rewrites, if it has one. The requests
    /// of all instruments of a context are granted, together with those of
    /// [`PassContextBuilder::rewrites`](crate::PassContextBuilder::rewrites).
    fn rewrites(&self) -> Option<RewriteOptions> {
        None
    }

    /// Called when the context is about to become the current one.
    ///
    /// # Errors
    /// If the hook fails, the context is not entered. The instruments before this one are exited,
    /// last first, and the context loses all instruments.
    fn enter(&self, cx: &PassContext) -> Result<(), PassError> {
        let _ = cx;
        Ok(())
    }

    /// Called when the context is not the current one any more.
    ///
    /// # Errors
    /// If the hook fails, the instruments after this one are not exited, and the context loses all
    /// instruments.
    fn exit(&self, cx: &PassContext) -> Result<(), PassError> {
        let _ = cx;
        Ok(())
    }

    /// Returns true if the pass may run. Not called for passes that the context requires.
    ///
    /// # Errors
    /// If the hook fails, the pass fails, and the instruments after this one are not asked.
    fn should_run(&self, module: &Module, run: &PassRun<'_>) -> Result<bool, PassError> {
        let _ = (module, run);
        Ok(true)
    }

    /// Called when the pass is about to run.
    ///
    /// # Errors
    /// If the hook fails, the pass fails without having run.
    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        let _ = (module, run);
        Ok(())
    }

    /// Called with the module that the pass has made.
    ///
    /// # Errors
    /// If the hook fails, the pass fails, and its changes are rolled back.
    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        let _ = (module, run, outcome);
        Ok(())
    }

    /// Called if the run fails between `run_before` and `run_after` of this instrument. The changes
    /// of the pass are already rolled back.
    fn on_error(&self, module: &Module, run: &PassRun<'_>, failure: &PassFailure) {
        let _ = (module, run, failure);
    }

    /// Called if the pass is not run, with the reason. None of the other hooks is called then,
    /// except [`should_run`](Instrument::should_run) if that was the reason.
    fn on_skip(&self, module: &Module, run: &PassRun<'_>, reason: &SkipReason) {
        let _ = (module, run, reason);
    }

    /// Called last, if `run_before` succeeded, whatever the other hooks returned. The outcome of
    /// the run is final, or the run has failed and the module is unchanged.
    fn on_end(&self, module: &Module, run: &PassRun<'_>, result: Result<&Outcome, &PassFailure>) {
        let _ = (module, run, result);
    }
}

/// One run of a pass, as instruments see it.
pub struct PassRun<'a> {
    pub(crate) pass: &'a dyn Pass,
    pub(crate) context: &'a PassContext,
    pub(crate) dependency_of: Option<&'a str>,
    pub(crate) forced: bool,
    /// Set when the pass has ended.
    pub(crate) time: OnceLock<RunTime>,
    /// The handle that the pass is given. Set when the first instrument is told of the run.
    pub(crate) inner: OnceLock<PassContext>,
}

/// The beginning of a run and its duration.
#[derive(Copy, Clone)]
pub(crate) struct RunTime {
    pub(crate) began: Instant,
    pub(crate) wall: Duration,
    pub(crate) own: Duration,
}

impl<'a> PassRun<'a> {
    pub(crate) fn new(
        pass: &'a dyn Pass,
        context: &'a PassContext,
        dependency_of: Option<&'a str>,
        forced: bool,
    ) -> PassRun<'a> {
        PassRun { pass, context, dependency_of, forced, time: OnceLock::new(), inner: OnceLock::new() }
    }

    /// Returns the duration of the pass, including the passes that it ran, without the time that
    /// instruments took around those. Absent until the pass has ended, and for a pass that did not
    /// begin because an instrument failed. The duration does not depend on the order of the
    /// instruments.
    pub fn time(&self) -> Option<Duration> {
        self.time.get().map(|t| t.own)
    }

    /// Returns the beginning of the pass and its wall-clock duration, including the time that
    /// instruments took around the passes that it ran. Absent whenever [`time`](PassRun::time) is.
    pub fn wall_time(&self) -> Option<(Instant, Duration)> {
        self.time.get().map(|t| (t.began, t.wall))
    }

    /// Returns the messages that the pass has left so far, oldest first; in `run_after`, `on_error`
    /// and `on_end`, these are all messages of the run. At the end of the run they go to the
    /// context. Empty for a pass that runs other passes: their messages go to the context at once.
    pub fn remarks(&self) -> Vec<Diagnostic> {
        let Some(frame) = self.inner.get().and_then(PassContext::frame) else { return Vec::new() };
        lock(&frame.messages).iter().flat_map(Messages::diagnostics).cloned().collect()
    }

    /// Returns the counters of the pass with their values so far.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        self.inner.get().and_then(PassContext::frame).map(|frame| frame.counts()).unwrap_or_default()
    }

    /// Returns the name, level and dependencies of the pass.
    pub fn info(&self) -> &'a PassInfo {
        self.pass.info()
    }

    /// Returns the name of the pass.
    pub fn name(&self) -> &'a str {
        &self.pass.info().name
    }

    /// Returns the kind of the pass.
    pub fn kind(&self) -> PassKind {
        self.pass.kind()
    }

    /// Returns the pass as a pipeline writes it.
    pub fn pipeline_text(&self) -> String {
        self.pass.pipeline_text()
    }

    /// Returns the context that the pass runs under.
    pub fn context(&self) -> &'a PassContext {
        self.context
    }

    /// Returns the names of the passes around this one, outermost first.
    pub fn path(&self) -> Vec<String> {
        self.context.path()
    }

    /// Returns the number of passes around this one.
    pub fn depth(&self) -> usize {
        self.context.depth()
    }

    /// Returns the round of the fixpoint that runs the pass, from 1; `None` outside of fixpoints. A
    /// pass that is run because a pass of the fixpoint depends on it is part of the same round.
    pub fn round(&self) -> Option<u32> {
        self.context.frame().and_then(|frame| frame.round())
    }

    /// Returns true if the context requires the pass.
    pub fn is_forced(&self) -> bool {
        self.forced
    }

    /// Returns the pass that depends on this pass, if this pass runs only as a dependency.
    pub fn dependency_of(&self) -> Option<&'a str> {
        self.dependency_of
    }
}

/// Calls a hook that cannot fail on some instruments. A panic in the hook is reported as a remark.
pub(crate) fn tell(
    instruments: &[Arc<dyn Instrument>],
    hook: &'static str,
    cx: &PassContext,
    call: impl Fn(&dyn Instrument),
) {
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

anfora_ir::brief_debug! { PassRun<'_> { name }; }

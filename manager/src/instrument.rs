//! What watches passes run.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anfora_ir::{Diagnostic, Module};

use crate::context::PassContext;
use crate::error::{PassError, PassFailure};
use crate::info::{Outcome, PassInfo};
use crate::pass::{Pass, PassKind};

/// Something that watches passes run, and may stop them.
///
/// Instruments are shared, so the hooks take `&self`; what an instrument remembers is in atomics or behind a lock, and the lock is not
/// held while the instrument runs a pass itself. A hook that panics has failed.
///
/// For each pass that its context lets run, every instrument is asked [`should_run`](Instrument::should_run); if all agree, every
/// [`run_before`](Instrument::run_before) is called, then the pass, then every [`run_after`](Instrument::run_after), in the order of the
/// instruments. If something fails, those whose `run_before` was done and whose `run_after` was not called hear of it in
/// [`on_error`](Instrument::on_error). Last of all, when no other instrument can reject the result any more, those whose `run_before` was done
/// hear in [`on_end`](Instrument::on_end) how it ended.
pub trait Instrument: Send + Sync {
    /// What messages call it.
    fn name(&self) -> &str;

    /// Whether it verifies the module after each pass itself, so that the context does not.
    fn verifies(&self) -> bool {
        false
    }

    /// The context is about to become the current one.
    ///
    /// # Errors
    /// The context then is not entered; the instruments before this one are exited, last first, and the context loses all of them.
    fn enter(&self, cx: &PassContext) -> Result<(), PassError> {
        let _ = cx;
        Ok(())
    }

    /// The context was the current one and is not any more.
    ///
    /// # Errors
    /// The instruments after this one are not exited, and the context loses all of them.
    fn exit(&self, cx: &PassContext) -> Result<(), PassError> {
        let _ = cx;
        Ok(())
    }

    /// Whether the pass may run. Not asked about passes that the context requires.
    ///
    /// # Errors
    /// The pass then fails, and the instruments after this one are not asked.
    fn should_run(&self, module: &Module, run: &PassRun<'_>) -> Result<bool, PassError> {
        let _ = (module, run);
        Ok(true)
    }

    /// The pass is about to run.
    ///
    /// # Errors
    /// The pass then fails without having run.
    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        let _ = (module, run);
        Ok(())
    }

    /// The pass has run, and this is the module that it made.
    ///
    /// # Errors
    /// The pass then has failed, and what it did is taken back.
    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        let _ = (module, run, outcome);
        Ok(())
    }

    /// The pass has failed, and the module is as it was before. Called if `run_before` was and `run_after` was not.
    fn on_error(&self, module: &Module, run: &PassRun<'_>, failure: &PassFailure) {
        let _ = (module, run, failure);
    }

    /// The run is over: its outcome stands, or it has failed and the module is as it was before. Called last, whatever the other hooks
    /// did, if `run_before` was done.
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
    time: OnceLock<RunTime>,
    inner: OnceLock<PassContext>,
}

/// When a pass ran, and for how long.
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

    pub(crate) fn note_time(&self, time: RunTime) {
        // A run ends once.
        let _ = self.time.set(time);
    }

    /// How long the pass took, with the passes that it ran and without what any instrument did around those. Absent while it has not
    /// ended, and for good if it was not begun, because an instrument failed before. It does not depend on the order of the instruments.
    pub fn time(&self) -> Option<Duration> {
        self.time.get().map(|t| t.own)
    }

    /// When the pass began and how long it took by the clock on the wall, with what instruments did around the passes that it ran.
    /// Absent when [`time`](PassRun::time) is.
    pub fn wall_time(&self) -> Option<(Instant, Duration)> {
        self.time.get().map(|t| (t.began, t.wall))
    }

    /// Notes the handle that the pass is given.
    pub(crate) fn begins(&self, inner: &PassContext) {
        // A run begins once.
        let _ = self.inner.set(inner.clone());
    }

    /// What the pass has left so far, oldest first: in `run_after`, `on_error` and `on_end` all of it. The context has it when the run is over. Empty
    /// for a pass that runs others, whose messages go to the context at once.
    pub fn remarks(&self) -> Vec<Diagnostic> {
        self.inner.get().and_then(PassContext::frame).map_or_else(Vec::new, |frame| frame.left.waiting())
    }

    /// Name, level and dependencies of the pass.
    pub fn info(&self) -> &'a PassInfo {
        self.pass.info()
    }

    /// The name of the pass.
    pub fn name(&self) -> &'a str {
        &self.pass.info().name
    }

    /// What the pass works on.
    pub fn kind(&self) -> PassKind {
        self.pass.kind()
    }

    /// The pass as a pipeline writes it.
    pub fn pipeline_text(&self) -> String {
        self.pass.pipeline_text()
    }

    /// By how much floats may differ after it: see [`Pass::tolerance`].
    pub fn tolerance(&self) -> f64 {
        self.pass.tolerance()
    }

    /// The context that it runs under.
    pub fn context(&self) -> &'a PassContext {
        self.context
    }

    /// The names of the passes around it, outermost first.
    pub fn path(&self) -> Vec<String> {
        crate::run::path(self.context)
    }

    /// How many passes are around it.
    pub fn depth(&self) -> usize {
        self.context.depth()
    }

    /// Whether the context requires it.
    pub fn is_forced(&self) -> bool {
        self.forced
    }

    /// The pass that depends on it, if that is why it runs.
    pub fn dependency_of(&self) -> Option<&'a str> {
        self.dependency_of
    }
}

//! Sequences of passes, run once or until nothing changes.

use std::sync::Arc;

use anfora_ir::{Diagnostic, Module, Severity};

use crate::context::PassContext;
use crate::error::{MAX_NESTING, PassFailure, in_own_words};
use crate::info::PassKind;
use crate::info::{Outcome, PassInfo};
use crate::pass::Pass;
use crate::run::run_pass;
use crate::sync::lock;

/// The error that sequences nest more than [`MAX_NESTING`] deep.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("passes nest more than {MAX_NESTING} deep")]
pub struct NestingError;

in_own_words!(NestingError);

/// A pass that runs passes one after the other. Each is a transaction of its own: if a pass fails,
/// it is rolled back, the changes of the passes before it stay, and the failure names it.
pub struct Sequential {
    info: PassInfo,
    passes: Vec<Arc<dyn Pass>>,
    nesting: usize,
}

impl Sequential {
    /// Makes a sequence of the passes in this order, as a pass of level 0 with the name
    /// `sequential`.
    ///
    /// # Errors
    /// If sequences nest too deep in it.
    pub fn new(passes: Vec<Arc<dyn Pass>>) -> Result<Sequential, NestingError> {
        Sequential::named(PassInfo::new("sequential", 0), passes)
    }

    /// Makes a sequence of the passes in this order, as a pass with a name and level of its own.
    ///
    /// # Errors
    /// If sequences nest too deep in it.
    pub fn named(info: PassInfo, passes: Vec<Arc<dyn Pass>>) -> Result<Sequential, NestingError> {
        let nesting = 1 + passes.iter().map(|p| p.nesting()).max().unwrap_or(0);
        if nesting > MAX_NESTING { Err(NestingError) } else { Ok(Sequential { info, passes, nesting }) }
    }
}

impl Pass for Sequential {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        let mut outcome = Outcome::Unchanged;
        for pass in &self.passes {
            if run_pass(&**pass, module, cx)?.is_changed() {
                outcome = Outcome::Changed;
            }
        }
        Ok(outcome)
    }

    /// Returns the passes as a pipeline writes them. A sequence in a sequence is written as its
    /// passes.
    fn pipeline_text(&self) -> String {
        let texts: Vec<String> = self.passes.iter().map(|p| p.pipeline_text()).filter(|t| !t.is_empty()).collect();
        texts.join(",")
    }

    fn kind(&self) -> PassKind {
        PassKind::Sequence
    }

    fn nesting(&self) -> usize {
        self.nesting
    }

    fn passes(&self) -> &[Arc<dyn Pass>] {
        &self.passes
    }
}

/// Writes the sequence as a pipeline writes it.
impl std::fmt::Display for Sequential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.pipeline_text())
    }
}

/// A pass that runs passes one after the other, repeatedly, until each of them has left the present
/// module unchanged, or the maximum number of rounds is reached. A pipeline writes it
/// `fixpoint<n>(…)`.
///
/// A [`FunctionPass`](crate::FunctionPass) does not visit a function again that it has left
/// unchanged, unless that function has changed since, or a function that it reaches by name. The
/// result is the same, but counts and remarks of the skipped visits are not repeated. See
/// [`FunctionPass::visiting_all`](crate::FunctionPass::visiting_all).
pub struct Repeat {
    round: Sequential,
    max_rounds: u32,
}

impl Repeat {
    /// Makes a repetition of the passes with at most `max_rounds` rounds.
    ///
    /// # Errors
    /// If sequences nest too deep in it.
    pub fn new(passes: Vec<Arc<dyn Pass>>, max_rounds: u32) -> Result<Repeat, NestingError> {
        let round = Sequential::named(PassInfo::new(format!("fixpoint<{max_rounds}>"), 0), passes)?;
        Ok(Repeat { round, max_rounds })
    }

    fn run_rounds(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        let state = cx.frame().and_then(|f| f.state());
        let passes = self.passes();
        let mut outcome = Outcome::Unchanged;
        // The number of consecutive passes that have left the present module unchanged.
        let mut quiet = 0;
        // The number of changes before the last round.
        let mut changes = 0;
        for round in 1..=self.max_rounds {
            // Only a pass that may run several times has rounds.
            if let (true, Some(frame)) = (self.max_rounds > 1, cx.frame()) {
                frame.begin_round(round);
            }
            changes = state.map_or(0, |state| lock(state).changes);
            for pass in passes {
                if quiet == passes.len() {
                    break;
                }
                quiet += 1;
                if run_pass(&**pass, module, cx)?.is_changed() {
                    outcome = Outcome::Changed;
                    quiet = 0;
                }
            }
            if quiet == passes.len() {
                return Ok(outcome);
            }
        }
        if self.max_rounds > 1 {
            let still = state.map(|state| lock(state).changed_since(changes)).unwrap_or_default();
            let names: Vec<String> = still.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("still changing after {} rounds: {}", self.max_rounds, names.join(", "));
            cx.remark(Diagnostic::new(Severity::Remark, message));
        }
        Ok(outcome)
    }
}

impl Pass for Repeat {
    fn info(&self) -> &PassInfo {
        self.round.info()
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        let state = cx.frame().and_then(|f| f.state());
        let tracks = state.is_some_and(|s| lock(s).begin_tracking());
        let result = self.run_rounds(module, cx);
        if let (true, Some(state)) = (tracks, state) {
            lock(state).tracker = None;
        }
        result
    }

    fn pipeline_text(&self) -> String {
        format!("fixpoint<{}>({})", self.max_rounds, self.round.pipeline_text())
    }

    fn wrapped(&self) -> Option<&dyn Pass> {
        Some(&self.round)
    }

    fn max_rounds(&self) -> u32 {
        self.max_rounds
    }
}

anfora_ir::brief_debug! { Repeat { info }; Sequential { info }; }

//! The state of a running pass.

use std::iter::successors;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::analyses::Analyses;
use crate::info::PassKind;
use crate::messages::Messages;
use crate::pipeline_state::PipelineState;
use crate::sync::lock;

/// The state of a running pass. The context that the pass receives refers to it.
pub(crate) struct RunFrame {
    pub(crate) pass: String,
    parent: Option<Arc<RunFrame>>,
    pub(crate) depth: usize,
    counts: Mutex<Vec<(&'static str, u64)>>,
    /// Present for a sequence.
    pub(crate) sequence: Option<Arc<Mutex<PipelineState>>>,
    /// The time that instruments took around the passes inside of this one.
    pub(crate) in_hooks: Mutex<Duration>,
    /// The round of a fixpoint that is running, from 1; 0 outside of fixpoints.
    round: AtomicU32,
    /// The messages that the pass has left so far. Absent if messages go to the context at once:
    /// the pass has ended, or it runs other passes, and its messages are in order with theirs.
    pub(crate) messages: Mutex<Option<Messages>>,
    /// The results of analyses; only in the frame of the outermost pass.
    analyses: OnceLock<Analyses>,
}

impl RunFrame {
    /// Makes the state of a pass that begins inside of another one. A sequence inside of a pass
    /// that is not a sequence may run on another module, so it has a [`PipelineState`] of its own.
    pub(crate) fn new(pass: &str, kind: PassKind, outer: Option<&Arc<RunFrame>>) -> RunFrame {
        let around = || outer.and_then(|f| f.sequence.clone()).unwrap_or_default();
        RunFrame {
            pass: pass.to_string(),
            parent: outer.cloned(),
            depth: outer.map_or(0, |f| f.depth) + 1,
            counts: Mutex::default(),
            sequence: (kind == PassKind::Sequence).then(around),
            in_hooks: Mutex::default(),
            round: AtomicU32::new(0),
            messages: Mutex::new((kind != PassKind::Sequence).then(Messages::default)),
            analyses: OnceLock::new(),
        }
    }

    /// Returns a frame for the same run of a function pass, without messages and counts.
    pub(crate) fn fork(&self) -> RunFrame {
        let fork = RunFrame::new(&self.pass, PassKind::Function, self.parent.as_ref());
        RunFrame { analyses: self.analyses().into(), ..fork }
    }

    /// Begins a round of a fixpoint. Rounds count from 1.
    pub(crate) fn begin_round(&self, round: u32) {
        self.round.store(round, Ordering::Relaxed);
    }

    /// Returns the round that is running, from 1; `None` outside of fixpoints.
    pub(crate) fn round(&self) -> Option<u32> {
        Some(self.round.load(Ordering::Relaxed)).filter(|&round| round > 0)
    }

    pub(crate) fn count(&self, counter: &'static str, n: u64) {
        let mut counts = lock(&self.counts);
        match counts.iter_mut().find(|c| c.0 == counter) {
            Some(c) => c.1 = c.1.saturating_add(n),
            None => counts.push((counter, n)),
        }
    }

    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        lock(&self.counts).clone()
    }

    pub(crate) fn take_counts(&self) -> Vec<(&'static str, u64)> {
        std::mem::take(&mut *lock(&self.counts))
    }

    /// Returns this frame and those around it, innermost first.
    pub(crate) fn outwards(&self) -> impl Iterator<Item = &RunFrame> {
        successors(Some(self), |f| f.parent.as_deref())
    }

    /// Returns the names of the passes around the work of this one, outermost first.
    pub(crate) fn path(&self) -> Vec<String> {
        let mut names: Vec<String> = self.outwards().map(|f| f.pass.clone()).collect();
        names.reverse();
        names
    }

    /// Returns the state of the sequence that this pass is, or is part of; `None` if it is part of
    /// none.
    pub(crate) fn state(&self) -> Option<&Arc<Mutex<PipelineState>>> {
        self.sequence.as_ref().or_else(|| self.parent.as_ref()?.sequence.as_ref())
    }

    fn outermost(&self) -> &RunFrame {
        self.outwards().last().unwrap_or(self)
    }

    pub(crate) fn analyses(&self) -> Analyses {
        self.outermost().analyses.get_or_init(Analyses::new).clone()
    }

    /// Returns the results of analyses, if any analysis was run.
    pub(crate) fn analysed(&self) -> Option<&Analyses> {
        self.outermost().analyses.get().filter(|a| !a.is_empty())
    }
}

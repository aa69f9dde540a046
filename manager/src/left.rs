//! The messages of a running pass: they wait here until the pass ends, with the places that have to
//! be looked up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anfora_ir::{Diagnostic, FunctionKey, Module, Severity, expr_extent};
use rustc_hash::FxHashMap;

use crate::context::{MAX_REMARKS, lock};
use crate::error::{PassError, PassFailure, caught};
use crate::pass::PassKind;
use crate::place::{Place, name_bindings};
use crate::reports::drop_repeated;

/// The messages that a run of a pass has left so far.
pub(crate) struct Left {
    state: Mutex<State>,
    /// True if any message was left. If not, no lock is taken.
    any: AtomicBool,
}

#[derive(Default)]
struct State {
    kept: Vec<Item>,
    dropped: u64,
    errors: usize,
    /// The index of the first message that walks noted, if there is one. Noted messages that repeat
    /// a message of the pass itself are dropped.
    noted_from: Option<usize>,
    stage: Stage,
}

struct Item {
    diagnostic: Diagnostic,
    place: Option<(FunctionKey, Place)>,
}

#[derive(Copy, Clone, PartialEq, Default)]
enum Stage {
    /// The pass is running, and its messages wait until it ends.
    #[default]
    Waiting,
    /// Messages go to the context at once: the pass has ended, or it runs other passes, and its
    /// messages are in order with theirs.
    Direct,
}

/// The greatest number of bytes of the source that are read to find the end of an expression.
const LONGEST: usize = 4096;

/// Messages for which there was no room.
#[derive(Default)]
pub(crate) struct Dropped {
    pub(crate) messages: u64,
    /// The number of errors among them.
    pub(crate) errors: usize,
}

impl Dropped {
    pub(crate) fn add(&mut self, diagnostic: &Diagnostic) {
        self.messages += 1;
        self.errors += usize::from(diagnostic.severity == Severity::Error);
    }

    pub(crate) fn add_all(&mut self, others: &Dropped) {
        self.messages += others.messages;
        self.errors += others.errors;
    }
}

/// Returns true if a list of `len` messages has no room for `next`. A list that is full for other
/// messages still takes errors, up to twice its size.
pub(crate) fn is_full(len: usize, next: &Diagnostic) -> bool {
    len >= if next.severity == Severity::Error { 2 * MAX_REMARKS } else { MAX_REMARKS }
}

impl Left {
    pub(crate) fn new(kind: PassKind) -> Left {
        let stage = if kind == PassKind::Sequence { Stage::Direct } else { Stage::Waiting };
        Left { state: Mutex::new(State { stage, ..State::default() }), any: AtomicBool::new(false) }
    }

    /// Keeps a message until the pass ends; returns it if messages go to the context at once.
    pub(crate) fn keep(&self, diagnostic: Diagnostic, place: Option<(FunctionKey, Place)>) -> Option<Diagnostic> {
        let state = &mut *lock(&self.state);
        if state.stage == Stage::Direct {
            return Some(diagnostic);
        }
        self.any.store(true, Ordering::Release);
        state.errors += usize::from(diagnostic.severity == Severity::Error);
        state.push(Item { diagnostic, place });
        None
    }

    /// Appends the messages that wait in `other`, and clears `other`.
    pub(crate) fn merge(&self, other: &Left) {
        if !other.any.swap(false, Ordering::AcqRel) {
            return;
        }
        let State { kept, dropped, errors, .. } = std::mem::take(&mut *lock(&other.state));
        let state = &mut *lock(&self.state);
        self.any.store(true, Ordering::Release);
        state.errors += errors;
        state.dropped += dropped;
        kept.into_iter().for_each(|item| state.push(item));
    }

    /// Counts messages that were not kept.
    pub(crate) fn note_dropped(&self, dropped: &Dropped) {
        self.any.fetch_or(dropped.messages > 0, Ordering::Release);
        let state = &mut *lock(&self.state);
        state.dropped += dropped.messages;
        state.errors += dropped.errors;
    }

    /// Marks the messages that follow as noted by walks.
    pub(crate) fn begin_noted(&self) {
        let state = &mut *lock(&self.state);
        state.noted_from = Some(state.kept.len());
    }

    /// Returns true if messages wait until the pass ends.
    pub(crate) fn is_waiting(&self) -> bool {
        lock(&self.state).stage == Stage::Waiting
    }

    /// Returns true if nothing was left.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Returns true if the pass has reported an error, and so has failed.
    pub(crate) fn has_errors(&self) -> bool {
        lock(&self.state).errors > 0
    }

    /// Looks up the places of the messages, while the module is as the pass made it. If the pass
    /// has reported errors, returns a failure with them. If the pass has left a body so ill-formed
    /// that a walk of it panics, returns a failure too; the messages then have no bindings.
    pub(crate) fn settle<T>(&self, module: &Module, result: Result<T, PassFailure>) -> Result<T, PassFailure> {
        if self.is_empty() {
            return result;
        }
        let state = &mut *lock(&self.state);
        let named = caught(|| {
            state.name_bindings(module);
            Ok(())
        });
        let result = result.and_then(|done| named.map(|()| done).map_err(PassFailure::from));
        if let Some(from) = state.noted_from.take() {
            drop_repeated(&mut state.kept, from, |item| &item.diagnostic);
        }
        state.extend_spans(module);
        if state.errors == 0 {
            return result;
        }
        let errors: Vec<Diagnostic> =
            state.kept.iter().map(|i| &i.diagnostic).filter(|d| d.severity == Severity::Error).cloned().collect();
        Err(match result {
            Ok(_) => PassError::reported(errors, state.errors).into(),
            Err(failure) => failure.after_reported(errors, state.errors),
        })
    }

    /// Returns the waiting messages, without the places that are not looked up yet.
    pub(crate) fn waiting(&self) -> Vec<Diagnostic> {
        lock(&self.state).kept.iter().map(|i| i.diagnostic.clone()).collect()
    }

    /// Ends the pass: takes the waiting messages, and the number of those that were not kept.
    pub(crate) fn close(&self) -> (Vec<Diagnostic>, u64) {
        let state = std::mem::replace(&mut *lock(&self.state), State { stage: Stage::Direct, ..State::default() });
        (state.kept.into_iter().map(|i| i.diagnostic).collect(), state.dropped)
    }
}

impl State {
    fn push(&mut self, item: Item) {
        if is_full(self.kept.len(), &item.diagnostic) {
            self.dropped += 1;
        } else {
            self.kept.push(item);
        }
    }

    fn name_bindings(&mut self, module: &Module) {
        let mut by_function: FxHashMap<FunctionKey, Vec<(Place, &mut Diagnostic)>> = FxHashMap::default();
        for Item { diagnostic, place } in &mut self.kept {
            if let Some((key, place)) = place.take() {
                by_function.entry(key).or_default().push((place, diagnostic));
            }
        }
        // The order of the functions does not matter: each message gets a binding of its own.
        for (key, places) in by_function {
            if let Some(function) = module.get(key) {
                name_bindings(&module.cx, &function.body, places.into_iter());
            }
        }
    }

    /// Extends spans of one byte to whole expressions. Bodies have only the beginnings of
    /// expressions; their ends are found in the source.
    fn extend_spans(&mut self, module: &Module) {
        let Some(source) = module.source() else { return };
        for Item { diagnostic, .. } in &mut self.kept {
            let Some(span) = diagnostic.span.as_mut().filter(|s| s.len() == 1) else { continue };
            let mut end = span.start.saturating_add(LONGEST).min(source.text().len());
            while !source.text().is_char_boundary(end) {
                end -= 1;
            }
            let extent = expr_extent(&source.text()[..end], span.start.min(end));
            if extent.start == span.start && extent.end > span.end {
                *span = extent;
            }
        }
    }
}

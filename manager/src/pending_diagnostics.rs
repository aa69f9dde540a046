//! The messages of a running pass: they wait here until the pass ends.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anfora_ir::{Diagnostic, FunctionKey, Module, Severity};

use crate::error::{PassError, PassFailure, caught};
use crate::info::PassKind;
use crate::messages::Messages;
use crate::report_site::ReportSite;
use crate::sync::lock;

/// The messages that a run of a pass has left so far.
pub(crate) struct PendingDiagnostics {
    /// Absent if messages go to the context at once: the pass has ended, or it runs other passes,
    /// and its messages are in order with theirs.
    waiting: Mutex<Option<Messages>>,
    /// True if any message was left. If not, no lock is taken.
    any: AtomicBool,
}

impl PendingDiagnostics {
    pub(crate) fn new(kind: PassKind) -> PendingDiagnostics {
        let waiting = (kind != PassKind::Sequence).then(Messages::default);
        PendingDiagnostics { waiting: Mutex::new(waiting), any: AtomicBool::new(false) }
    }

    /// Keeps a message until the pass ends; returns it if messages go to the context at once.
    pub(crate) fn keep(&self, diagnostic: Diagnostic, site: Option<(FunctionKey, ReportSite)>) -> Option<Diagnostic> {
        match &mut *lock(&self.waiting) {
            Some(messages) => {
                self.any.store(true, Ordering::Release);
                messages.push(diagnostic, site.map(|(key, site)| (Some(key), site)));
                None
            }
            None => Some(diagnostic),
        }
    }

    /// Keeps messages until the pass ends; returns them if messages go to the context at once.
    pub(crate) fn keep_all(&self, messages: Messages) -> Option<Messages> {
        match &mut *lock(&self.waiting) {
            Some(waiting) => {
                self.any.store(true, Ordering::Release);
                waiting.append(messages);
                None
            }
            None => Some(messages),
        }
    }

    /// Appends the messages that wait in `other`, and clears `other`.
    pub(crate) fn merge(&self, other: &PendingDiagnostics) {
        if other.any.swap(false, Ordering::AcqRel)
            && let Some(messages) = &mut *lock(&other.waiting)
        {
            let _ = self.keep_all(std::mem::take(messages));
        }
    }

    /// Marks the messages that follow as noted by walks.
    pub(crate) fn begin_noted(&self) {
        lock(&self.waiting).iter_mut().for_each(Messages::begin_noted);
    }

    /// Returns true if messages wait until the pass ends.
    pub(crate) fn is_waiting(&self) -> bool {
        lock(&self.waiting).is_some()
    }

    /// Returns true if nothing was left.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Returns true if the pass has reported an error, and so has failed.
    pub(crate) fn has_errors(&self) -> bool {
        lock(&self.waiting).as_ref().is_some_and(|messages| messages.errors() > 0)
    }

    /// Looks up the places of the messages, while the module is as the pass made it. If the pass
    /// has reported errors, returns a failure with them. If the pass has left a body so ill-formed
    /// that a walk of it panics, returns a failure too; the messages then have no bindings.
    pub(crate) fn settle<T>(&self, module: &Module, result: Result<T, PassFailure>) -> Result<T, PassFailure> {
        if self.is_empty() {
            return result;
        }
        let mut waiting = lock(&self.waiting);
        let Some(messages) = &mut *waiting else { return result };
        let named = caught(|| {
            messages.name_bindings(module);
            Ok(())
        });
        let result = result.and_then(|done| named.map(|()| done).map_err(PassFailure::from));
        messages.drop_repeated();
        messages.extend_spans(module);
        if messages.errors() == 0 {
            return result;
        }
        let errors: Vec<Diagnostic> =
            messages.diagnostics().filter(|d| d.severity == Severity::Error).cloned().collect();
        Err(match result {
            Ok(_) => PassError::reported(errors, messages.errors()).into(),
            Err(failure) => failure.after_reported(errors, messages.errors()),
        })
    }

    /// Returns the waiting messages, without the places that are not looked up yet.
    pub(crate) fn waiting(&self) -> Vec<Diagnostic> {
        lock(&self.waiting).iter().flat_map(Messages::diagnostics).cloned().collect()
    }

    /// Ends the pass: takes the waiting messages.
    pub(crate) fn close(&self) -> Messages {
        lock(&self.waiting).take().unwrap_or_default()
    }
}

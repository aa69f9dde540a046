//! Stamps: identifiers of the states of an object that changes, for cached results.
//!
//! Equal stamps mean equal content. A rollback restores the stamp of the restored state. The stamps
//! of the states that it rolled back are not used again.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter of the changes of an object. A copy counts as another object.
pub(crate) struct Revisions {
    identity: u64,
    revision: u64,
    /// The greatest revision so far.
    last: u64,
}

impl Default for Revisions {
    fn default() -> Revisions {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Revisions { identity: NEXT.fetch_add(1, Ordering::Relaxed), revision: 0, last: 0 }
    }
}

impl Clone for Revisions {
    fn clone(&self) -> Revisions {
        Revisions::default()
    }
}

impl Revisions {
    /// Returns the revisions of a copy that is in the same state and is known not to change
    /// separately.
    pub(crate) fn of_same(&self) -> Revisions {
        Revisions { ..*self }
    }

    /// Records a change.
    #[inline(always)]
    pub(crate) fn bump(&mut self) {
        self.last += 1;
        self.revision = self.last;
    }

    /// Returns the current revision, for [`Revisions::back_to`].
    pub(crate) fn now(&self) -> u64 {
        self.revision
    }

    /// Returns the greatest revision so far.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Skips the revisions up to this one, which were given to states of a copy.
    pub(crate) fn skip(&mut self, last: u64) {
        self.last = self.last.max(last);
    }

    /// Records that an earlier state was restored.
    pub(crate) fn back_to(&mut self, revision: u64) {
        self.revision = revision;
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { identity: self.identity, revision: self.revision }
    }

    pub(crate) fn stamp_at(&self, revision: u64) -> Stamp {
        Stamp { identity: self.identity, revision }
    }
}

/// A state of a body, or of the table of globals. Equal stamps are of the same object with the same
/// content. Unequal stamps mean nothing.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    identity: u64,
    revision: u64,
}

impl Stamp {
    /// Returns a number that identifies the object that this is a state of. It is only valid in
    /// this run of the program.
    pub fn identity(self) -> u64 {
        self.identity
    }
}

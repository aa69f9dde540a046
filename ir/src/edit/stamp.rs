//! Stamps: identifiers of the states of a body, a function or a module, for cached results.
//!
//! Equal stamps mean equal content. A rollback restores the stamp of the restored state. The stamps
//! of the states that it rolled back are not used again.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::entity::AttrsId;
use crate::core::function::Function;
use crate::core::module::{FunctionHead, FunctionKey, Module};

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

/// A state of a function: its body, and its head (name, visibility, stated result, attributes,
/// metadata, kind).
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionStamp {
    head: FunctionHead,
    body: Stamp,
}

impl FunctionStamp {
    /// Returns the stamp of the body.
    pub fn body(&self) -> Stamp {
        self.body
    }

    /// Returns true if the heads of both functions are equal.
    pub fn has_head_of(&self, other: &FunctionStamp) -> bool {
        self.head == other.head
    }
}

/// A state of a module: its functions in their order, its attributes, and its globals with their
/// signatures. Entries of its tables that nothing names are not part of it.
#[derive(Clone, PartialEq, Debug)]
pub struct ModuleStamp {
    functions: Vec<(FunctionKey, FunctionStamp)>,
    attrs: AttrsId,
    globals: Stamp,
}

impl ModuleStamp {
    /// Returns the functions and their stamps, in program order.
    pub fn functions(&self) -> &[(FunctionKey, FunctionStamp)] {
        &self.functions
    }

    /// Returns the stamp of the globals.
    pub fn globals(&self) -> Stamp {
        self.globals
    }

    /// Returns true if the module is in this state. Linear in the number of functions.
    ///
    /// Cost: one loop.
    pub fn is_of(&self, module: &Module) -> bool {
        self.globals == module.cx.globals.stamp()
            && self.attrs == module.attrs()
            && self.functions.len() == module.order().len()
            && self.functions.iter().zip(module.functions()).all(|((k, s), (key, f))| *k == key && *s == f.stamp())
    }
}

impl Function {
    /// Returns the stamp of the function's current state.
    ///
    /// Cost: one loop.
    pub fn stamp(&self) -> FunctionStamp {
        FunctionStamp { head: FunctionHead::of(self), body: self.body.stamp() }
    }
}

impl Module {
    /// Returns the stamp of the module's current state. Linear in the number of functions.
    ///
    /// Cost: one loop.
    pub fn stamp(&self) -> ModuleStamp {
        ModuleStamp {
            functions: self.functions().map(|(key, f)| (key, f.stamp())).collect(),
            attrs: self.attrs(),
            globals: self.cx.globals.stamp(),
        }
    }
}

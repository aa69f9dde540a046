//! From which state of a body, a function or a module something was learnt.
//!
//! Equal stamps mean equal content. A state that a rollback brings back has the stamp that it had, and no state that comes after has one of those taken back.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::entity::AttrsId;
use crate::core::function::Function;
use crate::core::module::{FunctionKey, Head, Module};

/// Counts the changes of one thing. A copy is a thing of its own.
pub(crate) struct Revisions {
    identity: u64,
    revision: u64,
    /// The greatest there was.
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
    /// Those of a copy that is known not to change: it is in the same state.
    pub(crate) fn of_same(&self) -> Revisions {
        Revisions { ..*self }
    }

    /// Notes a change.
    #[inline(always)]
    pub(crate) fn bump(&mut self) {
        self.last += 1;
        self.revision = self.last;
    }

    /// Returns the present state, to be gone back to.
    pub(crate) fn now(&self) -> u64 {
        self.revision
    }

    /// Returns the greatest number that a state had.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Leaves out the numbers up to this one: they were given to states of a copy.
    pub(crate) fn skip(&mut self, last: u64) {
        self.last = self.last.max(last);
    }

    /// Notes that an earlier state is there again.
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

/// A state of a body, or of the table of globals. Equal ones are of the same thing with the same content; to what else they compare means nothing.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    identity: u64,
    revision: u64,
}

impl Stamp {
    /// Returns a number that the thing has which this is a state of, and no other thing. It means
    /// nothing beyond this run of the program.
    pub fn identity(self) -> u64 {
        self.identity
    }
}

/// A state of a function: its body, and its head (name, visibility, stated result, attributes, metadata, kind).
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionStamp {
    head: Head,
    body: Stamp,
}

impl FunctionStamp {
    /// Returns the state of the body.
    pub fn body(&self) -> Stamp {
        self.body
    }

    /// Returns true if it says the same as another but for the body.
    pub fn has_head_of(&self, other: &FunctionStamp) -> bool {
        self.head == other.head
    }
}

/// A state of a module: its functions in their order, its attributes, and its globals with their signatures. What is in its tables and named nowhere is not
/// part of it.
#[derive(Clone, PartialEq, Debug)]
pub struct ModuleStamp {
    functions: Vec<(FunctionKey, FunctionStamp)>,
    attrs: AttrsId,
    globals: Stamp,
}

impl ModuleStamp {
    /// Returns the functions and their states, in program order.
    pub fn functions(&self) -> &[(FunctionKey, FunctionStamp)] {
        &self.functions
    }

    /// Returns the state of the globals.
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
    /// Returns the state that the function is in.
    ///
    /// Cost: one loop.
    pub fn stamp(&self) -> FunctionStamp {
        FunctionStamp { head: Head::of(self), body: self.body.stamp() }
    }
}

impl Module {
    /// Returns the state that the module is in. Linear in the number of functions.
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

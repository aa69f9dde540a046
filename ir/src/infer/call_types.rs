//! Types of calls that were inferred before.

use crate::core::entity::{EntityId, OpId, TypeId};

/// The number of entries: a power of 2.
const ENTRIES: usize = 64;

/// The types of calls of operators without attributes on one or two operands. A program has many
/// such calls, but few different ones. Each key has one place in a small table, where a later key
/// replaces it.
#[derive(Clone, Default)]
pub(crate) struct CallTypes {
    /// Empty until the first call is recorded.
    entries: Box<[Option<(CallKey, TypeId)>]>,
}

/// The operator and the types of the operands.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) struct CallKey {
    op: OpId,
    first: TypeId,
    second: Option<TypeId>,
}

impl CallKey {
    /// Returns the key of a call without attributes on one or two operands. `ty` returns the type
    /// of an operand. Returns `None` if `ty` does, or for another number of operands.
    #[inline]
    pub(crate) fn of<T: Copy>(op: OpId, operands: &[T], ty: impl Fn(T) -> Option<TypeId>) -> Option<CallKey> {
        match *operands {
            [a] => Some(CallKey { op, first: ty(a)?, second: None }),
            [a, b] => Some(CallKey { op, first: ty(a)?, second: Some(ty(b)?) }),
            _ => None,
        }
    }

    #[inline]
    fn place(self) -> usize {
        let second = self.second.map_or(0, |ty| ty.index() + 1);
        let mixed = self.op.index() ^ self.first.index() << 3 ^ second << 5;
        // The high bits of a product depend on all bits of the factor.
        ((mixed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % ENTRIES
    }
}

impl CallTypes {
    /// Returns the type of a call, if it is known.
    #[inline]
    pub(crate) fn get(&self, key: CallKey) -> Option<TypeId> {
        match self.entries.get(key.place()) {
            Some(&Some((known, ty))) if known == key => Some(ty),
            _ => None,
        }
    }

    /// Records the type of a call. It must follow from the operator and the types of the operands
    /// alone.
    pub(crate) fn set(&mut self, key: CallKey, ty: TypeId) {
        if self.entries.is_empty() {
            self.entries = vec![None; ENTRIES].into_boxed_slice();
        }
        self.entries[key.place()] = Some((key, ty));
    }
}

//! The properties of an operator that walks need at every call, in two bytes.

use crate::ops::op_kinds::FusionPattern;

pub(super) const IMPURE: u8 = 1;
pub(super) const MATCH_CAST: u8 = 2;
pub(super) const COMMUTATIVE: u8 = 4;
pub(super) const FORWARDS: u8 = 8;
pub(super) const KERNEL: u8 = 16;
pub(super) const KNOWN_BY_TYPE: u8 = 32;
pub(super) const REQUIRES_ATTRS: u8 = 64;

/// The properties of an operator, computed when its row is registered: see
/// [`OpTable::facts`](crate::OpTable::facts).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OpFacts {
    flags: u8,
    fusion: Option<FusionPattern>,
}

impl OpFacts {
    pub(super) fn new(flags: u8, fusion: Option<FusionPattern>) -> OpFacts {
        OpFacts { flags, fusion }
    }

    /// Returns true if the evaluation of a call can be observed, whatever its attributes are.
    #[inline]
    pub fn is_impure(self) -> bool {
        self.flags & IMPURE != 0
    }

    /// Returns true for `match_cast`.
    #[inline]
    pub fn is_match_cast(self) -> bool {
        self.flags & MATCH_CAST != 0
    }

    /// Returns true if the operands may be exchanged without changing a bit of the result.
    #[inline]
    pub fn is_commutative(self) -> bool {
        self.flags & COMMUTATIVE != 0
    }

    /// Returns true if a result of a call is one of its operands.
    #[inline]
    pub fn forwards(self) -> bool {
        self.flags & FORWARDS != 0
    }

    /// Returns true if a call on constants may be replaced by the results of its kernel: the
    /// operator has a kernel and is pure.
    #[inline]
    pub fn is_foldable(self) -> bool {
        self.flags & (KERNEL | IMPURE) == KERNEL
    }

    /// Returns true if the operator is pure and the results of a call may follow from the types of
    /// its operands.
    #[inline]
    pub fn is_known_by_type(self) -> bool {
        self.flags & KNOWN_BY_TYPE != 0
    }

    /// Returns true if a call needs attributes.
    #[inline]
    pub fn requires_attrs(self) -> bool {
        self.flags & REQUIRES_ATTRS != 0
    }

    /// Returns the fusion pattern of every call; `None` if it depends on the call, see
    /// [`OpDef::fusion_of`](crate::OpDef::fusion_of).
    #[inline]
    pub fn fusion(self) -> Option<FusionPattern> {
        self.fusion
    }
}

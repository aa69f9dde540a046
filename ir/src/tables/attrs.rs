//! Attribute values and lists of named attributes, interned.

use crate::core::entity::{AttrId, AttrsId, DimId, FunctionAttrId, GlobalId, LiteralId, NameId, OpId, TypeId};
use crate::tables::dtype::DType;
use crate::tables::intern::Interner;

/// An attribute value.
///
/// Scalars have one form: an int64 scalar literal is an [`Attr::Int`], a float64 one an
/// [`Attr::Float`], a boolean one an [`Attr::Bool`]; scalars of other element types are rank-0
/// literals.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Attr {
    /// `none`
    None,
    /// `true` or `false`
    Bool(bool),
    /// An int64 value.
    Int(i64),
    /// A float64 value, by its bits.
    Float(u64),
    /// A string.
    Str(NameId),
    /// A list.
    List(Box<[AttrId]>),
    /// `shape(…)`
    Shape(Box<[DimId]>),
    /// A constant tensor.
    Literal(LiteralId),
    /// An element type.
    DType(DType),
    /// A type (a rank-0 tensor type is written in full).
    Type(TypeId),
    /// A closed function.
    Function(FunctionAttrId),
    /// A global function.
    Global(GlobalId),
    /// An operator.
    Op(OpId),
}

impl Attr {
    /// Returns the items of a list; empty for other values.
    pub(crate) fn items(&self) -> &[AttrId] {
        match self {
            Attr::List(items) => items,
            _ => &[],
        }
    }
}

/// The attribute values of a module.
#[derive(Clone)]
pub struct AttrTable {
    /// Values in their one form.
    pub(crate) values: Interner<AttrId, Attr>,
    /// Named attributes, sorted by name, each name once.
    pub(crate) lists: Interner<AttrsId, Box<[(NameId, AttrId)]>>,
    empty: AttrsId,
}

impl Default for AttrTable {
    fn default() -> Self {
        let mut lists = Interner::default();
        let empty = lists.intern(Box::default());
        AttrTable { values: Interner::default(), lists, empty }
    }
}

impl AttrTable {
    /// Returns the value behind an id.
    ///
    /// Cost: one entry.
    pub fn get(&self, id: AttrId) -> &Attr {
        &self.values[id]
    }

    /// Returns the empty list of attributes.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn empty(&self) -> AttrsId {
        self.empty
    }

    /// Returns the named attributes of a list, sorted by name.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn list(&self, id: AttrsId) -> &[(NameId, AttrId)] {
        &self.lists[id]
    }

    /// Returns the number of lists.
    ///
    /// Cost: one entry.
    pub fn list_count(&self) -> usize {
        self.lists.len()
    }

    /// Returns the number of values. The parts of a value have smaller indices than the value.
    ///
    /// Cost: one entry.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.values.capacity_bytes() + self.lists.capacity_bytes()
    }

    /// Returns true if there are no values.
    ///
    /// Cost: one entry.
    pub fn is_empty(&self) -> bool {
        self.values.len() == 0
    }

    /// Returns ids and values in the order in which they were made. The parts of a value come
    /// before it.
    ///
    /// Cost: one loop.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (AttrId, &Attr)> + ExactSizeIterator {
        self.values.iter()
    }

    /// Takes the layers above the frozen ones.
    pub(crate) fn take_own(&mut self) -> AttrTable {
        AttrTable { values: self.values.take_own(), lists: self.lists.take_own(), empty: self.empty }
    }
}

//! Ids, the arenas that they index, and side tables over them.

use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use crate::work;

/// An index into an arena. `Option` of it takes no more room.
pub trait EntityId: Copy + Eq + std::hash::Hash + std::fmt::Debug {
    /// Returns the id of the entry at `index`.
    ///
    /// # Panics
    /// If `index` is greater than 2^32 - 2.
    fn from_index(index: usize) -> Self;
    /// Returns the position in the arena.
    fn index(self) -> usize;
}

/// Turns a position into the representation of an id.
pub(crate) fn id_repr(index: usize) -> NonZeroU32 {
    u32::try_from(index + 1).ok().and_then(NonZeroU32::new).expect("an arena holds fewer than 2^32 - 1 entries")
}

macro_rules! entity_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash)]
        pub struct $name(std::num::NonZeroU32);

        impl $crate::core::entity::EntityId for $name {
            #[inline(always)]
            fn from_index(index: usize) -> Self {
                $name($crate::core::entity::id_repr(index))
            }
            #[inline(always)]
            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), $crate::core::entity::EntityId::index(*self))
            }
        }
    };
}

entity_id!(
    /// An expression of a body. A variable is an expression too, and its id is its use.
    ExprId, "e");
entity_id!(
    /// The parameters, annotation and attributes of a `fn` in a body.
    LambdaId, "lambda");
entity_id!(
    /// An interned string.
    NameId, "name");
entity_id!(
    /// An interned type.
    TypeId, "type");
entity_id!(
    /// An interned dimension.
    DimId, "dim");
entity_id!(
    /// A symbolic dimension; it belongs to one global function.
    SymbolId, "sym");
entity_id!(
    /// An interned attribute value.
    AttrId, "attr");
entity_id!(
    /// An interned list of named attributes.
    AttrsId, "attrs");
entity_id!(
    /// An interned constant tensor.
    LiteralId, "literal");
entity_id!(
    /// A closed function that is the value of an attribute.
    FunctionAttrId, "fnattr");
entity_id!(
    /// A global name with its signature. It resolves to a definition, a declaration or nothing.
    GlobalId, "global");

/// An operator: a row of the registry, or an opaque operator of the module.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct OpId(u16);

impl OpId {
    /// The largest number of operators.
    pub const LIMIT: usize = u16::MAX as usize;

    pub(crate) fn new(index: usize) -> Option<OpId> {
        u16::try_from(index).ok().map(OpId)
    }

    /// Returns the position in the table of operators.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl EntityId for OpId {
    fn from_index(index: usize) -> OpId {
        OpId::new(index).expect("a table of operators holds at most 2^16 of them")
    }
    #[inline(always)]
    fn index(self) -> usize {
        OpId::index(self)
    }
}

impl std::fmt::Debug for OpId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "op{}", self.0)
    }
}

/// An append-only vector indexed by an id.
#[derive(Clone)]
pub struct Arena<K, V> {
    items: Vec<V>,
    key: PhantomData<K>,
}

/// Prints the number of entries.
impl<K, V> std::fmt::Debug for Arena<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("len", &self.items.len()).finish_non_exhaustive()
    }
}

impl<K: EntityId, V> Arena<K, V> {
    /// Returns an empty arena.
    pub const fn new() -> Self {
        Arena { items: Vec::new(), key: PhantomData }
    }

    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, value: V) -> K {
        work::tick();
        let id = K::from_index(self.items.len());
        self.items.push(value);
        id
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the entry, if the id is of this arena.
    pub fn get(&self, id: K) -> Option<&V> {
        work::tick();
        self.items.get(id.index())
    }

    /// Returns ids and entries in the order of appending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(i, v)| (K::from_index(i), v))
    }

    /// Returns the ids in the order of appending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
        (0..self.items.len()).map(K::from_index)
    }

    /// Returns the entries in the order of appending.
    pub(crate) fn values(&self) -> std::slice::Iter<'_, V> {
        self.items.iter()
    }

    /// Returns the entries in the order of appending, for writing.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        work::tick_n(self.items.len());
        self.items.iter_mut()
    }

    /// Makes room for `additional` entries.
    pub fn reserve(&mut self, additional: usize) {
        self.items.reserve(additional);
    }

    /// Makes room for exactly `additional` more entries.
    pub fn reserve_exact(&mut self, additional: usize) {
        self.items.reserve_exact(additional);
    }

    /// Frees unused room beyond `len` entries.
    pub(crate) fn shrink_to(&mut self, len: usize) {
        self.items.shrink_to(len);
    }

    /// Returns the number of bytes held.
    pub fn capacity_bytes(&self) -> usize {
        self.items.capacity() * size_of::<V>()
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
    }
}

impl<K: EntityId, V> Default for Arena<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: EntityId, V> Index<K> for Arena<K, V> {
    type Output = V;
    #[inline(always)]
    fn index(&self, id: K) -> &V {
        work::tick();
        &self.items[id.index()]
    }
}

impl<K: EntityId, V> IndexMut<K> for Arena<K, V> {
    #[inline(always)]
    fn index_mut(&mut self, id: K) -> &mut V {
        work::tick();
        &mut self.items[id.index()]
    }
}

/// A dense table with a value for every entry of an arena, and a default for entries without a
/// stored value.
///
/// A table over the expressions of a body is made by [`Body::side_table`](crate::Body::side_table).
/// [`Body::check_table`](crate::Body::check_table) checks that it still belongs to the body, since
/// compaction renumbers.
#[derive(Clone, Debug)]
pub struct SideTable<K, V> {
    items: Vec<V>,
    default: V,
    pub(crate) generation: u32,
    key: PhantomData<K>,
}

impl<K: EntityId, V: Clone> SideTable<K, V> {
    /// Returns a table with room for `len` entries, all `default`.
    pub fn new(len: usize, default: V) -> Self {
        SideTable { items: vec![default.clone(); len], default, generation: 0, key: PhantomData }
    }

    /// Makes room for the entries with the indexes below `len`, which keep the default until a
    /// value is stored for them.
    pub(crate) fn reserve(&mut self, len: usize) {
        self.items.reserve(len.saturating_sub(self.items.len()));
    }

    /// Stores a value, growing the table if the id is new.
    #[inline]
    pub fn set(&mut self, id: K, value: V) {
        *self.get_mut(id) = value;
    }

    /// Returns the value for writing, growing the table if the id is new.
    #[inline]
    pub fn get_mut(&mut self, id: K) -> &mut V {
        work::tick();
        let i = id.index();
        if i >= self.items.len() {
            self.grow(i);
        }
        &mut self.items[i]
    }

    /// Grows the table to include entry `i`, and fills the allocated room with the default.
    #[cold]
    fn grow(&mut self, i: usize) {
        self.reserve(i + 1);
        // Values without a size have room without an end.
        let len = self.items.capacity().min(2 * (i + 1));
        self.items.resize(len, self.default.clone());
    }
}

impl<K: EntityId, V> Index<K> for SideTable<K, V> {
    type Output = V;
    #[inline(always)]
    fn index(&self, id: K) -> &V {
        work::tick();
        self.items.get(id.index()).unwrap_or(&self.default)
    }
}

/// Two tables are equal if they have the same value for every id, ids outside of the table
/// included, and the same generation.
impl<K: EntityId, V: PartialEq> PartialEq for SideTable<K, V> {
    fn eq(&self, other: &Self) -> bool {
        let common = self.items.len().min(other.items.len());
        let mut rest = self.items[common..].iter().chain(&other.items[common..]);
        self.generation == other.generation
            && self.default == other.default
            && self.items[..common] == other.items[..common]
            && rest.all(|v| *v == self.default)
    }
}

/// A set of entries of an arena: one bit each.
#[derive(Clone, Debug)]
pub struct IdSet<K> {
    words: Vec<u64>,
    key: PhantomData<K>,
}

/// Two sets are equal if they hold the same entries.
impl<K> PartialEq for IdSet<K> {
    fn eq(&self, other: &Self) -> bool {
        let common = self.words.len().min(other.words.len());
        let mut rest = self.words[common..].iter().chain(&other.words[common..]);
        self.words[..common] == other.words[..common] && rest.all(|w| *w == 0)
    }
}

impl<K> Default for IdSet<K> {
    fn default() -> Self {
        IdSet { words: Vec::new(), key: PhantomData }
    }
}

impl<K: EntityId> IdSet<K> {
    /// Returns an empty set with room for `len` entries; it grows when a later id is inserted.
    pub fn with_capacity(len: usize) -> Self {
        IdSet { words: vec![0; len.div_ceil(64)], key: PhantomData }
    }

    /// Inserts an entry. Returns true if it was not in the set before.
    #[inline]
    pub fn insert(&mut self, id: K) -> bool {
        work::tick();
        let (word, bit) = (id.index() / 64, 1u64 << (id.index() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        fresh
    }

    /// Removes an entry. Returns true if it was in the set.
    #[inline]
    pub fn remove(&mut self, id: K) -> bool {
        work::tick();
        let (word, bit) = (id.index() / 64, 1u64 << (id.index() % 64));
        match self.words.get_mut(word) {
            Some(w) => {
                let had = *w & bit != 0;
                *w &= !bit;
                had
            }
            None => false,
        }
    }

    /// Returns true if `id` is in the set.
    #[inline]
    pub fn contains(&self, id: K) -> bool {
        work::tick();
        self.words.get(id.index() / 64).is_some_and(|w| w & (1u64 << (id.index() % 64)) != 0)
    }

    /// Removes everything, keeping the memory.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }
}

slotmap::new_key_type! {
    /// A function of a module. Looking up the key of a removed function finds nothing.
    pub struct FunctionKey;
}

//! Append-only tables whose existing entries can be frozen, so that threads share them and each
//! thread appends to a layer of its own.

use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::Index;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::entity::EntityId;
use crate::work;

/// A table that can be put behind an [`Arc`]. Ids stay: frozen entries are read as before, and new
/// entries go to a separate layer. Clones made while that layer is empty are overlays, which cost
/// next to nothing.
pub(crate) trait Freeze {
    /// Puts the current entries behind an `Arc`. Takes constant time, unless there are entries in a
    /// layer above entries that were frozen before.
    fn freeze(&mut self);

    /// Takes the frozen entries back, and appends the later ones to them. Takes time linear in the
    /// later entries, and also in the frozen ones if another clone still shares those.
    fn thaw(&mut self);

    /// Returns true if there are entries in the layer above the frozen ones.
    fn has_own(&self) -> bool;
}

/// One layer of a table: the frozen entries, or the entries above them.
pub(crate) trait Layer: Clone + Default {
    /// Returns the number of entries.
    fn count(&self) -> usize;

    /// Appends the entries of the layer above this one.
    fn push_all(&mut self, over: Self);
}

/// The frozen entries of a table, and a layer above them.
#[derive(Clone, Default)]
pub(crate) struct Layers<L> {
    pub(crate) frozen: Option<Arc<L>>,
    /// The number of frozen entries. The entries in `own` follow them.
    pub(crate) start: usize,
    pub(crate) own: L,
}

impl<L: Default> Layers<L> {
    /// Takes the layer above the frozen entries, as a table in which only that layer can be read.
    /// An empty layer stays above the frozen entries.
    pub(crate) fn take_own(&mut self) -> Self {
        Layers { frozen: None, start: self.start, own: std::mem::take(&mut self.own) }
    }
}

impl<L: Layer> Layers<L> {
    /// Returns the number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.start + self.own.count()
    }
}

impl<L> Layers<L> {
    /// Returns an entry from one of the vectors that `items` returns.
    ///
    /// # Panics
    /// If there is no such entry: the id is of another table.
    #[inline(always)]
    pub(crate) fn entry<'a, V>(&'a self, index: usize, items: impl Fn(&'a L) -> &'a Vec<V>) -> &'a V {
        match items(&self.own).get(index.wrapping_sub(self.start)) {
            Some(value) => value,
            None => in_frozen(self.frozen.as_deref().map(items), index),
        }
    }
}

impl<L: Layer> Freeze for Layers<L> {
    fn freeze(&mut self) {
        if self.frozen.is_some() && !self.has_own() {
            return;
        }
        self.thaw();
        self.start = self.own.count();
        self.frozen = Some(Arc::new(std::mem::take(&mut self.own)));
    }

    fn thaw(&mut self) {
        let Some(frozen) = self.frozen.take() else { return };
        let new = std::mem::replace(&mut self.own, Arc::unwrap_or_clone(frozen));
        self.start = 0;
        self.own.push_all(new);
    }

    fn has_own(&self) -> bool {
        self.own.count() > 0
    }
}

impl<V: Clone> Layer for Vec<V> {
    fn count(&self) -> usize {
        self.len()
    }

    fn push_all(&mut self, over: Vec<V>) {
        self.extend(over);
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Layer for FxHashMap<K, V> {
    fn count(&self) -> usize {
        self.len()
    }

    fn push_all(&mut self, over: FxHashMap<K, V>) {
        self.extend(over);
    }
}

/// An append-only vector indexed by an id, for tables that the functions of a module share: see
/// [`Context::freeze`](crate::Context::freeze).
#[derive(Clone)]
pub struct LayeredArena<K, V> {
    pub(crate) layers: Layers<Vec<V>>,
    key: PhantomData<K>,
}

/// Prints the number of entries.
impl<K, V> std::fmt::Debug for LayeredArena<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayeredArena")
            .field("len", &(self.layers.start + self.layers.own.len()))
            .finish_non_exhaustive()
    }
}

impl<K: EntityId, V> LayeredArena<K, V> {
    /// Returns an empty arena.
    pub const fn new() -> Self {
        LayeredArena { layers: Layers { frozen: None, start: 0, own: Vec::new() }, key: PhantomData }
    }

    /// Appends an entry.
    pub fn push(&mut self, value: V) -> K {
        work::tick();
        let id = K::from_index(self.len());
        self.layers.own.push(value);
        id
    }

    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.layers.start + self.layers.own.len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the entry, if the id is of this arena.
    #[inline]
    pub fn get(&self, id: K) -> Option<&V> {
        work::tick();
        match self.layers.own.get(id.index().wrapping_sub(self.layers.start)) {
            None => self.layers.frozen.as_ref()?.get(id.index()),
            own => own,
        }
    }

    /// Returns the number of bytes held, frozen layers included.
    pub(crate) fn capacity_bytes(&self) -> usize {
        (self.layers.own.capacity() + self.layers.frozen.as_ref().map_or(0, |frozen| frozen.capacity()))
            * size_of::<V>()
    }

    /// Returns ids and entries in the order of appending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        (0..self.len()).map(|i| (K::from_index(i), &self[K::from_index(i)]))
    }

    /// Returns ids and entries of the layer above the frozen one.
    pub(crate) fn own(&self) -> impl Iterator<Item = (K, &V)> {
        self.layers.own.iter().enumerate().map(|(i, v)| (K::from_index(self.layers.start + i), v))
    }

    /// Takes the layer above the frozen one: see [`Layers::take_own`].
    pub(crate) fn take_own(&mut self) -> Self {
        LayeredArena { layers: self.layers.take_own(), key: PhantomData }
    }

    /// Returns an entry that is not frozen, for writing.
    pub(crate) fn own_mut(&mut self, id: K) -> Option<&mut V> {
        work::tick();
        self.layers.own.get_mut(id.index().wrapping_sub(self.layers.start))
    }
}

impl<K: EntityId, V: Clone> LayeredArena<K, V> {
    /// Replaces an entry, and returns the previous one. Thaws the arena.
    pub(crate) fn replace(&mut self, id: K, value: V) -> V {
        self.layers.thaw();
        std::mem::replace(self.own_mut(id).expect("an id of this arena"), value)
    }
}

impl<K: EntityId, V> Default for LayeredArena<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: EntityId, V> Index<K> for LayeredArena<K, V> {
    type Output = V;
    #[inline(always)]
    fn index(&self, id: K) -> &V {
        work::tick();
        self.layers.entry(id.index(), |items| items)
    }
}

/// Returns an entry of the frozen layer.
///
/// # Panics
/// If there is no such entry: the id is of another table.
#[inline(never)]
fn in_frozen<V>(frozen: Option<&Vec<V>>, index: usize) -> &V {
    match frozen.and_then(|f| f.get(index)) {
        Some(value) => value,
        None => panic!("the table has no entry {index}"),
    }
}

//! Append-only tables whose front can be frozen, so that threads share it and each append to a layer of their own.

use std::marker::PhantomData;
use std::ops::Index;
use std::sync::Arc;

use crate::core::entity::EntityId;
use crate::work;

/// A table that can be put behind an [`Arc`]. Ids stay: a frozen table reads as it did, what is appended to it goes to a layer of its own,
/// and clones made while there is nothing in that layer are overlays, which cost next to nothing.
pub(crate) trait Freeze {
    /// Puts what there is behind an `Arc`. Takes constant time, unless there is something in a layer over what was frozen before.
    fn freeze(&mut self);

    /// Takes what was frozen back, with what was appended since behind it. Takes time linear in the latter, and in the former too if somebody else
    /// still has it.
    fn thaw(&mut self);

    /// Takes the layer over what is frozen, as a table in which only that layer can be read; nothing is left over what is frozen.
    fn take_own(&mut self) -> Self
    where
        Self: Sized;
}

/// An append-only vector indexed by an id, for what the functions of a module share: see [`Context::freeze`](crate::Context::freeze).
#[derive(Clone)]
pub struct LayeredArena<K, V> {
    frozen: Option<Arc<Vec<V>>>,
    /// So many entries are frozen; those in `own` follow them.
    start: usize,
    own: Vec<V>,
    key: PhantomData<K>,
}

/// How many entries there are.
impl<K, V> std::fmt::Debug for LayeredArena<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayeredArena").field("len", &(self.start + self.own.len())).finish_non_exhaustive()
    }
}

impl<K: EntityId, V> LayeredArena<K, V> {
    /// An empty arena.
    pub const fn new() -> Self {
        LayeredArena { frozen: None, start: 0, own: Vec::new(), key: PhantomData }
    }

    /// Appends an entry.
    pub fn push(&mut self, value: V) -> K {
        work::tick();
        let id = K::from_index(self.len());
        self.own.push(value);
        id
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.start + self.own.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry, if the id is of this arena.
    #[inline]
    pub fn get(&self, id: K) -> Option<&V> {
        work::tick();
        match self.own.get(id.index().wrapping_sub(self.start)) {
            None => self.frozen()?.get(id.index()),
            own => own,
        }
    }

    /// Bytes held, frozen ones included.
    pub(crate) fn capacity_bytes(&self) -> usize {
        (self.own.capacity() + self.frozen().map_or(0, Vec::capacity)) * size_of::<V>()
    }

    fn frozen(&self) -> Option<&Vec<V>> {
        self.frozen.as_deref()
    }

    /// Ids and entries in the order of appending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        (0..self.len()).map(|i| (K::from_index(i), &self[K::from_index(i)]))
    }

    /// Ids and entries of the layer over what is frozen.
    pub(crate) fn own(&self) -> impl Iterator<Item = (K, &V)> {
        self.own.iter().enumerate().map(|(i, v)| (K::from_index(self.start + i), v))
    }

    /// So many entries are frozen.
    pub(crate) fn frozen_len(&self) -> usize {
        self.start
    }

    /// An entry that is not frozen, for writing.
    pub(crate) fn own_mut(&mut self, id: K) -> Option<&mut V> {
        work::tick();
        self.own.get_mut(id.index().wrapping_sub(self.start))
    }
}

impl<K: EntityId, V: Clone> LayeredArena<K, V> {
    /// Puts another entry in the place of one. Thaws the arena.
    pub(crate) fn replace(&mut self, id: K, value: V) -> V {
        self.thaw();
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
        match self.own.get(id.index().wrapping_sub(self.start)) {
            Some(value) => value,
            None => in_frozen(self.frozen(), id.index()),
        }
    }
}

/// An entry of what was frozen.
///
/// # Panics
/// If it has no such entry: the id is of another table.
#[inline(never)]
pub(crate) fn in_frozen<V>(frozen: Option<&Vec<V>>, index: usize) -> &V {
    match frozen.and_then(|f| f.get(index)) {
        Some(value) => value,
        None => panic!("the table has no entry {index}"),
    }
}

impl<K, V: Clone> Freeze for LayeredArena<K, V> {
    fn freeze(&mut self) {
        if self.frozen.is_some() && self.own.is_empty() {
            return;
        }
        self.thaw();
        self.start = self.own.len();
        self.frozen = Some(Arc::new(std::mem::take(&mut self.own)));
    }

    fn thaw(&mut self) {
        let Some(frozen) = self.frozen.take() else { return };
        let new = std::mem::replace(&mut self.own, Arc::unwrap_or_clone(frozen));
        self.start = 0;
        self.own.extend(new);
    }

    fn take_own(&mut self) -> Self {
        LayeredArena { frozen: None, start: self.start, own: std::mem::take(&mut self.own), key: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::entity::SymbolId;

    #[test]
    fn ids_stay_when_an_arena_is_frozen_and_thawed() {
        let mut arena = LayeredArena::<SymbolId, &str>::new();
        let a = arena.push("a");
        arena.freeze();
        let mut overlay = arena.clone();
        let (b, other) = (arena.push("b"), overlay.push("other"));
        assert_eq!(b, other);
        assert_eq!((arena[a], arena[b], overlay[a], overlay[b]), ("a", "b", "a", "other"));
        for step in [LayeredArena::freeze, LayeredArena::freeze, LayeredArena::thaw, LayeredArena::thaw] {
            step(&mut arena);
            assert_eq!(arena.iter().map(|(_, &v)| v).collect::<Vec<_>>(), ["a", "b"]);
        }
        assert_eq!(overlay.own().collect::<Vec<_>>(), [(other, &"other")]);
        assert_eq!(arena.get(SymbolId::from_index(2)), None);
    }
}

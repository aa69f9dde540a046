//! Hash-consing: a table in which equal values have equal ids.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::core::entity::EntityId;
use crate::tables::parallel::layers::{Layer, Layers};
use crate::work;

/// Values stored once each and found by content, each with a note that is computed from it.
/// Children of an interned value are ids of values interned before it, so the index of a child is
/// always smaller than that of its parent: algorithms over nested values iterate over the ids
/// instead of recursing.
pub(crate) type Interner<K, V, N = ()> = Layers<Interned<K, V, N>>;

#[derive(Clone)]
pub(crate) struct Interned<K, V, N> {
    items: Vec<V>,
    notes: Vec<N>,
    /// Ids with a part of the hash of their value, so that a probe seldom reads the value.
    table: HashTable<(u32, K)>,
}

impl<K, V, N> Default for Interned<K, V, N> {
    fn default() -> Self {
        Interned { items: Vec::new(), notes: Vec::new(), table: HashTable::new() }
    }
}

fn hash_of<V: Hash>(v: &V) -> u64 {
    let mut h = FxHasher::default();
    v.hash(&mut h);
    h.finish()
}

impl<K, V, N> Interned<K, V, N> {
    fn capacity_bytes(&self) -> usize {
        self.items.capacity() * size_of::<V>()
            + self.notes.capacity() * size_of::<N>()
            + self.table.capacity() * size_of::<(u32, K)>()
    }
}

impl<K: EntityId, V: Eq + Hash, N> Interned<K, V, N> {
    /// Returns the id of the value with this hash for which `is` returns true. `start` is the index
    /// of the first value of the layer.
    #[inline]
    fn find(&self, start: usize, hash: u64, is: impl Fn(&V) -> bool) -> Option<K> {
        let short = (hash >> 7) as u32;
        let equal = |&(k, id): &(u32, K)| {
            k == short && {
                work::tick();
                is(&self.items[id.index() - start])
            }
        };
        self.table.find(hash, equal).map(|&(_, id)| id)
    }

    #[inline]
    fn push(&mut self, start: usize, hash: u64, value: V, note: N) -> K {
        work::tick();
        let id = K::from_index(start + self.items.len());
        self.items.push(value);
        self.notes.push(note);
        let items = &self.items;
        self.table.insert_unique(hash, ((hash >> 7) as u32, id), |&(_, id)| hash_of(&items[id.index() - start]));
        id
    }
}

impl<K: EntityId, V: Clone + Eq + Hash, N: Clone> Interner<K, V, N> {
    /// Returns the id of a value. If it is new, `note` computes the note that is stored with it.
    #[inline]
    pub(crate) fn intern_with(&mut self, value: V, note: impl FnOnce(&Self, &V) -> N) -> K {
        work::tick();
        let hash = hash_of(&value);
        if let Some(id) = self.find_hashed(hash, |v| *v == value) {
            return id;
        }
        let note = note(self, &value);
        self.own.push(self.start, hash, value, note)
    }

    /// Returns the id of the value that a key stands for, if it was interned before. The key must
    /// hash as that value does, and `is` must return true for that value only.
    pub(crate) fn find(&self, key: &impl Hash, is: impl Fn(&V) -> bool) -> Option<K> {
        work::tick();
        self.find_hashed(hash_of(key), is)
    }

    /// Returns the id of the value with this hash for which `is` returns true.
    #[inline]
    fn find_hashed(&self, hash: u64, is: impl Fn(&V) -> bool) -> Option<K> {
        let frozen = self.frozen.as_ref().and_then(|frozen| frozen.find(0, hash, &is));
        frozen.or_else(|| self.own.find(self.start, hash, &is))
    }

    /// Returns the note of a value.
    #[inline(always)]
    pub(crate) fn note(&self, id: K) -> &N {
        self.entry(id.index(), |layer| &layer.notes)
    }

    /// Returns the number of bytes held, frozen layers included, without the allocations of the
    /// values.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.own.capacity_bytes() + self.frozen.as_ref().map_or(0, |frozen| frozen.capacity_bytes())
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        (0..self.len()).map(|i| (K::from_index(i), &self[K::from_index(i)]))
    }

    /// Returns ids and values of the layer above the frozen one.
    pub(crate) fn own(&self) -> impl Iterator<Item = (K, &V)> {
        self.own.items.iter().enumerate().map(|(i, v)| (K::from_index(self.start + i), v))
    }
}

impl<K: EntityId, V: Clone + Eq + Hash> Interner<K, V> {
    /// Returns the id of a value, which is cloned if it is new.
    pub(crate) fn intern_ref(&mut self, value: &V) -> K {
        work::tick();
        let hash = hash_of(value);
        let found = self.find_hashed(hash, |v| v == value);
        found.unwrap_or_else(|| self.own.push(self.start, hash, value.clone(), ()))
    }

    /// Returns the id of a value.
    #[inline]
    pub(crate) fn intern(&mut self, value: V) -> K {
        self.intern_with(value, |_, _| ())
    }
}

impl<K: EntityId, V, N> std::ops::Index<K> for Interner<K, V, N> {
    type Output = V;
    #[inline(always)]
    fn index(&self, id: K) -> &V {
        work::tick();
        self.entry(id.index(), |layer| &layer.items)
    }
}

impl<K: EntityId, V: Clone + Eq + Hash, N: Clone> Layer for Interned<K, V, N> {
    fn count(&self) -> usize {
        self.items.len()
    }

    fn push_all(&mut self, over: Self) {
        for (value, note) in over.items.into_iter().zip(over.notes) {
            self.push(0, hash_of(&value), value, note);
        }
    }
}

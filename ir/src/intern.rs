//! Hash-consing: a table in which equal values have equal ids.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::entity::{Arena, EntityId};
use crate::work;

/// Values stored once each, found by content. Children of an interned value are ids of values interned before it, so a
/// child's index is always smaller than its parent's: algorithms over nested values go up the ids instead of recursing.
#[derive(Clone)]
pub(crate) struct Interner<K: EntityId, V> {
    items: Arena<K, V>,
    table: HashTable<(u32, K)>,
}

impl<K: EntityId, V> Default for Interner<K, V> {
    fn default() -> Self {
        Interner { items: Arena::new(), table: HashTable::new() }
    }
}

fn hash_of<V: Hash>(v: &V) -> u64 {
    let mut h = FxHasher::default();
    v.hash(&mut h);
    h.finish()
}

impl<K: EntityId, V: Eq + Hash> Interner<K, V> {
    pub(crate) fn intern(&mut self, value: V) -> K {
        work::tick();
        let h = hash_of(&value);
        let short = (h >> 7) as u32;
        let items = &mut self.items;
        if let Some(&(_, id)) = self.table.find(h, |&(k, id)| k == short && items[id] == value) {
            return id;
        }
        let id = items.push(value);
        self.table.insert_unique(h, (short, id), |&(_, id)| hash_of(&items[id]));
        id
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        self.items.iter()
    }
}

impl<K: EntityId, V> std::ops::Index<K> for Interner<K, V> {
    type Output = V;
    #[inline(always)]
    fn index(&self, id: K) -> &V {
        &self.items[id]
    }
}

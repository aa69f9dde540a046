//! Sets of entries of an arena that take room in proportion to their size.

use rustc_hash::FxHashSet;

use crate::core::entity::{EntityId, IdSet};
use crate::work;

/// A set of entries of an arena for a walk of a part of it. While the set is small, it takes time
/// and room in proportion to its size; after that, it takes a bit for each entry of the arena.
#[derive(Clone, Debug)]
pub struct SparseSet<K>(Kind<K>);

#[derive(Clone, Debug)]
enum Kind<K> {
    Many(IdSet<K>),
    /// A hash set, until a bit for each entry of the arena takes less room.
    Few {
        ids: FxHashSet<K>,
        most: usize,
    },
}

impl<K: EntityId> SparseSet<K> {
    /// Returns an empty set for a part of an arena of `len` entries.
    pub fn of_part(len: usize) -> SparseSet<K> {
        SparseSet(Kind::Few { ids: FxHashSet::default(), most: len / 64 })
    }

    /// Returns an empty set for up to all entries of an arena of `len` entries.
    pub fn of_whole(len: usize) -> SparseSet<K> {
        SparseSet(Kind::Many(IdSet::with_capacity(len)))
    }

    /// Inserts an entry. Returns true if it was not in the set before.
    #[inline(always)]
    pub fn insert(&mut self, id: K) -> bool {
        match &mut self.0 {
            Kind::Many(ids) => ids.insert(id),
            Kind::Few { .. } => self.insert_few(id),
        }
    }

    /// Returns true if `id` is in the set.
    #[inline(always)]
    pub fn contains(&self, id: K) -> bool {
        match &self.0 {
            Kind::Many(ids) => ids.contains(id),
            Kind::Few { ids, .. } => {
                work::tick();
                ids.contains(&id)
            }
        }
    }

    fn insert_few(&mut self, id: K) -> bool {
        work::tick();
        let Kind::Few { ids, most } = &mut self.0 else { return false };
        let fresh = ids.insert(id);
        if ids.len() > *most {
            let mut many = IdSet::with_capacity(0);
            for &id in ids.iter() {
                many.insert(id);
            }
            self.0 = Kind::Many(many);
        }
        fresh
    }
}

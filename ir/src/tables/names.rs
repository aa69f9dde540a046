//! Interned strings.

use std::hash::Hasher;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;

use crate::core::entity::{EntityId, NameId};
use crate::tables::parallel::layers::Freeze;
use crate::work;

/// The strings of a module, each stored once. Two names are equal just if their ids are.
#[derive(Clone, Default)]
pub struct Names {
    frozen: Option<Arc<Layer>>,
    /// So many strings are frozen; those in `own` follow them.
    start: usize,
    own: Layer,
}

#[derive(Clone, Default)]
struct Layer {
    text: String,
    /// Where each string ends in `text`; it starts where the one before it ends.
    ends: Vec<u32>,
    /// By the hash of the string. What the table keeps of a hash beside an id is enough that a
    /// probe seldom reads the text of another string.
    table: HashTable<NameId>,
}

#[inline]
fn hash(s: &str) -> u64 {
    let mut h = FxHasher::default();
    h.write(s.as_bytes());
    h.finish()
}

impl Layer {
    fn capacity_bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<u32>() + self.table.capacity() * size_of::<NameId>()
    }

    /// `start` is the index of the first string of the layer.
    #[inline]
    fn find(&self, start: usize, hash: u64, s: &str) -> Option<NameId> {
        let (text, ends) = (&self.text, &self.ends);
        self.table.find(hash, |id| slice(text, ends, id.index() - start) == s).copied()
    }

    /// The id of a string, which is appended if the layer does not have it.
    #[inline]
    fn intern(&mut self, start: usize, h: u64, s: &str) -> NameId {
        let Layer { text, ends, table } = self;
        let entry = table.entry(
            h,
            |id| slice(text, ends, id.index() - start) == s,
            |id| hash(slice(text, ends, id.index() - start)),
        );
        match entry {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let id = NameId::from_index(start + ends.len());
                text.push_str(s);
                ends.push(u32::try_from(text.len()).expect("the strings of a module take less than 4 GiB"));
                entry.insert(id);
                id
            }
        }
    }
}

impl Names {
    /// The id of a string.
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn intern(&mut self, s: &str) -> NameId {
        work::tick();
        let h = hash(s);
        if let Some(frozen) = &self.frozen
            && let Some(id) = frozen.find(0, h, s)
        {
            return id;
        }
        self.own.intern(self.start, h, s)
    }

    /// The id of a string, if it was interned before.
    ///
    /// Cost: linear in the text.
    pub fn find(&self, s: &str) -> Option<NameId> {
        work::tick();
        let h = hash(s);
        let frozen = self.frozen.as_ref().and_then(|frozen| frozen.find(0, h, s));
        frozen.or_else(|| self.own.find(self.start, h, s))
    }

    /// The string.
    #[inline]
    pub fn get(&self, id: NameId) -> &str {
        work::tick();
        let i = id.index().wrapping_sub(self.start);
        if i < self.own.ends.len() { slice(&self.own.text, &self.own.ends, i) } else { self.get_frozen(id) }
    }

    #[inline(never)]
    fn get_frozen(&self, id: NameId) -> &str {
        match &self.frozen {
            Some(frozen) if id.index() < self.start => slice(&frozen.text, &frozen.ends, id.index()),
            _ => panic!("the table has no {id:?}"),
        }
    }

    /// Makes room for so many strings.
    pub(crate) fn reserve(&mut self, strings: usize) {
        let start = self.start;
        self.own.ends.reserve(strings);
        let (text, ends) = (&self.own.text, &self.own.ends);
        self.own.table.reserve(strings, |id| hash(slice(text, ends, id.index() - start)));
    }

    /// Gives up room that appending did not need, but for a little.
    pub(crate) fn shrink(&mut self) {
        let Layer { text, ends, .. } = &mut self.own;
        if text.len() + text.len() / 8 < text.capacity() {
            text.shrink_to(text.len() + text.len() / 64);
        }
        if ends.len() + ends.len() / 8 < ends.capacity() {
            ends.shrink_to(ends.len() + ends.len() / 64);
        }
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.start + self.own.ends.len()
    }

    /// Bytes held, frozen ones included.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.own.capacity_bytes() + self.frozen.as_ref().map_or(0, |frozen| frozen.capacity_bytes())
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// So many strings are frozen.
    pub(crate) fn frozen_len(&self) -> usize {
        self.start
    }

    /// Ids and strings of the layer over what is frozen.
    pub(crate) fn own(&self) -> impl Iterator<Item = (NameId, &str)> {
        let Layer { text, ends, .. } = &self.own;
        (0..ends.len()).map(move |i| (NameId::from_index(self.start + i), slice(text, ends, i)))
    }
}

#[inline]
fn slice<'a>(text: &'a str, ends: &[u32], i: usize) -> &'a str {
    let start = if i == 0 { 0 } else { ends[i - 1] };
    &text[start as usize..ends[i] as usize]
}

impl Freeze for Names {
    fn freeze(&mut self) {
        if self.frozen.is_some() && self.own.ends.is_empty() {
            return;
        }
        self.thaw();
        self.start = self.own.ends.len();
        self.frozen = Some(Arc::new(std::mem::take(&mut self.own)));
    }

    fn thaw(&mut self) {
        let Some(frozen) = self.frozen.take() else { return };
        let new = std::mem::replace(&mut self.own, Arc::unwrap_or_clone(frozen));
        self.start = 0;
        for i in 0..new.ends.len() {
            let s = slice(&new.text, &new.ends, i);
            self.own.intern(0, hash(s), s);
        }
    }

    fn take_own(&mut self) -> Names {
        Names { frozen: None, start: self.start, own: std::mem::take(&mut self.own) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_finds_what_is_frozen_and_numbers_on() {
        let mut names = Names::default();
        let a = names.intern("a");
        names.freeze();
        let mut overlay = names.clone();
        let b = overlay.intern("b");
        assert_eq!((overlay.intern("a"), b.index(), overlay.find("b")), (a, 1, Some(b)));
        assert_eq!((names.len(), names.find("b"), overlay.get(a), overlay.get(b)), (1, None, "a", "b"));
        for step in [Names::thaw, Names::freeze, Names::freeze, Names::thaw] {
            step(&mut overlay);
            assert_eq!((overlay.intern("a"), overlay.intern("b"), overlay.len()), (a, b, 2));
            assert_eq!((overlay.get(a), overlay.get(b)), ("a", "b"));
        }
    }
}

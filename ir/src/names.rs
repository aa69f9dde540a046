//! Interned strings.

use std::hash::Hasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::entity::{EntityId, NameId};
use crate::layers::Freeze;
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
    ends: Vec<usize>,
    /// Ids beside the hash of their string, so that a probe seldom reads the text.
    table: HashTable<(u32, NameId)>,
}

#[inline]
fn hash(s: &str) -> u64 {
    let mut h = FxHasher::default();
    h.write(s.as_bytes());
    h.finish()
}

impl Layer {
    fn capacity_bytes(&self) -> usize {
        self.text.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.table.capacity() * size_of::<(u32, NameId)>()
    }

    /// `start` is the index of the first string of the layer.
    #[inline]
    fn find(&self, start: usize, hash: u64, s: &str) -> Option<NameId> {
        let short = (hash >> 7) as u32;
        let (text, ends) = (&self.text, &self.ends);
        let equal = |&(k, id): &(u32, NameId)| k == short && slice(text, ends, id.index() - start) == s;
        self.table.find(hash, equal).map(|&(_, id)| id)
    }

    #[inline]
    fn push(&mut self, start: usize, h: u64, s: &str) -> NameId {
        let (text, ends) = (&mut self.text, &mut self.ends);
        let id = NameId::from_index(start + ends.len());
        text.push_str(s);
        ends.push(text.len());
        self.table.insert_unique(h, ((h >> 7) as u32, id), |&(_, id)| hash(slice(text, ends, id.index() - start)));
        id
    }
}

impl Names {
    /// The id of a string.
    #[inline]
    pub fn intern(&mut self, s: &str) -> NameId {
        work::tick();
        let h = hash(s);
        match self.find_hashed(h, s) {
            Some(id) => id,
            None => self.own.push(self.start, h, s),
        }
    }

    /// The id of a string, if it was interned before.
    pub fn find(&self, s: &str) -> Option<NameId> {
        work::tick();
        self.find_hashed(hash(s), s)
    }

    #[inline]
    fn find_hashed(&self, h: u64, s: &str) -> Option<NameId> {
        if let Some(frozen) = &self.frozen
            && let Some(id) = frozen.find(0, h, s)
        {
            return Some(id);
        }
        self.own.find(self.start, h, s)
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
        self.own.table.reserve(strings, |&(_, id)| hash(slice(text, ends, id.index() - start)));
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.start + self.own.ends.len()
    }

    /// Bytes held, frozen ones included.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.own.capacity_bytes() + self.frozen.as_ref().map_or(0, |frozen| frozen.capacity_bytes())
    }

    /// Whether there is none.
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
fn slice<'a>(text: &'a str, ends: &[usize], i: usize) -> &'a str {
    let start = if i == 0 { 0 } else { ends[i - 1] };
    &text[start..ends[i]]
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
            self.own.push(0, hash(s), s);
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

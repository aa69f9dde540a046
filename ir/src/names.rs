//! Interned strings.

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher;

use crate::entity::{EntityId, NameId};
use crate::work;

/// The strings of a module, each stored once. Two names are equal just if their ids are.
#[derive(Clone, Default)]
pub struct Names {
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

impl Names {
    /// The id of a string.
    #[inline]
    pub fn intern(&mut self, s: &str) -> NameId {
        work::tick();
        let h = hash(s);
        let short = (h >> 7) as u32;
        let (text, ends) = (&mut self.text, &mut self.ends);
        if let Some(&(_, id)) = self.table.find(h, |&(k, id)| k == short && slice(text, ends, id) == s) {
            return id;
        }
        let id = NameId::from_index(ends.len());
        text.push_str(s);
        ends.push(text.len());
        self.table.insert_unique(h, (short, id), |&(_, id)| hash(slice(text, ends, id)));
        id
    }

    /// The id of a string, if it was interned before.
    pub fn find(&self, s: &str) -> Option<NameId> {
        work::tick();
        let h = hash(s);
        let short = (h >> 7) as u32;
        self.table.find(h, |&(k, id)| k == short && slice(&self.text, &self.ends, id) == s).map(|&(_, id)| id)
    }

    /// The string.
    #[inline]
    pub fn get(&self, id: NameId) -> &str {
        work::tick();
        slice(&self.text, &self.ends, id)
    }

    /// Makes room for so many strings.
    pub(crate) fn reserve(&mut self, strings: usize) {
        self.ends.reserve(strings);
        let (text, ends) = (&self.text, &self.ends);
        self.table.reserve(strings, |&(_, id)| hash(slice(text, ends, id)));
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

#[inline]
fn slice<'a>(text: &'a str, ends: &[usize], id: NameId) -> &'a str {
    let i = id.index();
    let start = if i == 0 { 0 } else { ends[i - 1] };
    &text[start..ends[i]]
}

//! Interned strings.

use std::hash::Hasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxHasher;

use crate::core::entity::{EntityId, NameId};
use crate::tables::numbered::{Numbered, NumberedName, Place};
use crate::tables::parallel::layers::{Layer, Layers};
use crate::work;

/// The strings of a module, each stored once. Two names are equal if and only if their ids are.
#[derive(Clone, Default)]
pub struct Names {
    pub(crate) layers: Layers<Strings>,
}

/// Strings stored one after the other, found by content.
#[derive(Clone, Default)]
pub(crate) struct Strings {
    text: String,
    /// The end of each string in `text`; a string starts at the end of the one before it.
    ends: Vec<u32>,
    /// Ids by the hash of the string. The part of the hash that the table stores is enough that a
    /// probe seldom reads the text of another string.
    table: HashTable<NameId>,
    /// The ids of most strings that end in a number. The table does not have these.
    numbered: Numbered,
}

#[inline]
fn hash(s: &str) -> u64 {
    let mut h = FxHasher::default();
    h.write(s.as_bytes());
    h.finish()
}

impl Strings {
    fn capacity_bytes(&self) -> usize {
        self.text.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.table.capacity() * size_of::<NameId>()
            + self.numbered.capacity_bytes()
    }

    /// Returns the id of a string of the layer. `start` is the index of the first string of the
    /// layer, and `number` the reading of the string as a base and a number.
    #[inline]
    fn find(&self, start: usize, number: Option<NumberedName>, s: &str) -> Option<NameId> {
        match number.map(|number| self.numbered.find(number)) {
            Some(Place::Has(id)) => return Some(id),
            Some(Place::Lacks) => return None,
            Some(Place::Unknown) | None => {}
        }
        let (text, ends) = (&self.text, &self.ends);
        self.table.find(hash(s), |id| slice(text, ends, id.index() - start) == s).copied()
    }

    /// Returns the id of a string, which is appended if the layer does not have it.
    #[inline]
    fn intern(&mut self, start: usize, number: Option<NumberedName>, s: &str) -> NameId {
        let Strings { text, ends, table, numbered } = self;
        let next = NameId::from_index(start + ends.len());
        if let Some(number) = number
            && let Some(id) = numbered.intern(number, next)
        {
            if id == next {
                append(text, ends, s);
            }
            return id;
        }
        let entry = table.entry(
            hash(s),
            |id| slice(text, ends, id.index() - start) == s,
            |id| hash(slice(text, ends, id.index() - start)),
        );
        match entry {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                entry.insert(next);
                append(text, ends, s);
                next
            }
        }
    }
}

/// Appends a string to those that are stored.
#[inline]
fn append(text: &mut String, ends: &mut Vec<u32>, s: &str) {
    text.push_str(s);
    ends.push(u32::try_from(text.len()).expect("the strings of a module take less than 4 GiB"));
}

impl Names {
    /// Returns the id of a string.
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn intern(&mut self, s: &str) -> NameId {
        work::tick();
        let number = NumberedName::of(s);
        if let Some(frozen) = &self.layers.frozen
            && let Some(id) = frozen.find(0, number, s)
        {
            return id;
        }
        self.layers.own.intern(self.layers.start, number, s)
    }

    /// Returns the id of a string, if it was interned before.
    ///
    /// Cost: linear in the text.
    pub fn find(&self, s: &str) -> Option<NameId> {
        work::tick();
        let number = NumberedName::of(s);
        let frozen = self.layers.frozen.as_ref().and_then(|frozen| frozen.find(0, number, s));
        frozen.or_else(|| self.layers.own.find(self.layers.start, number, s))
    }

    /// Returns the string with an id.
    #[inline]
    pub fn get(&self, id: NameId) -> &str {
        work::tick();
        let i = id.index().wrapping_sub(self.layers.start);
        if i < self.layers.own.ends.len() {
            slice(&self.layers.own.text, &self.layers.own.ends, i)
        } else {
            self.get_frozen(id)
        }
    }

    #[inline(never)]
    fn get_frozen(&self, id: NameId) -> &str {
        match &self.layers.frozen {
            Some(frozen) if id.index() < self.layers.start => slice(&frozen.text, &frozen.ends, id.index()),
            _ => panic!("the table has no {id:?}"),
        }
    }

    /// Makes room for `strings` more strings.
    pub(crate) fn reserve(&mut self, strings: usize) {
        self.layers.own.ends.reserve(strings);
    }

    /// Frees most of the room that appending did not use.
    pub(crate) fn shrink(&mut self) {
        let Strings { text, ends, numbered, .. } = &mut self.layers.own;
        numbered.shrink();
        if text.len() + text.len() / 8 < text.capacity() {
            text.shrink_to(text.len() + text.len() / 64);
        }
        if ends.len() + ends.len() / 8 < ends.capacity() {
            ends.shrink_to(ends.len() + ends.len() / 64);
        }
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.layers.start + self.layers.own.ends.len()
    }

    /// Returns the number of bytes held, frozen layers included.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.layers.own.capacity_bytes() + self.layers.frozen.as_ref().map_or(0, |frozen| frozen.capacity_bytes())
    }

    /// Returns true if there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns ids and strings of the layer above the frozen one.
    pub(crate) fn own(&self) -> impl Iterator<Item = (NameId, &str)> {
        let Strings { text, ends, .. } = &self.layers.own;
        (0..ends.len()).map(move |i| (NameId::from_index(self.layers.start + i), slice(text, ends, i)))
    }
}

#[inline]
fn slice<'a>(text: &'a str, ends: &[u32], i: usize) -> &'a str {
    let start = if i == 0 { 0 } else { ends[i - 1] };
    &text[start as usize..ends[i] as usize]
}

impl Layer for Strings {
    fn count(&self) -> usize {
        self.ends.len()
    }

    fn push_all(&mut self, over: Strings) {
        for i in 0..over.ends.len() {
            let s = slice(&over.text, &over.ends, i);
            self.intern(0, NumberedName::of(s), s);
        }
    }
}

//! The comparison of the rows of a function before and after an edit.

use std::ops::Range;

use anfora_ir::{SequenceChange, sequence_changes};
use rustc_hash::FxHashSet;

use super::rows::{Row, RowKey, Rows};

/// Returns the changes from the old rows to the new ones, in order. Rows with the same key are
/// paired as far as their order allows. Linear, up to a logarithmic factor.
pub(super) fn changes(old: &Rows<'_>, new: &Rows<'_>) -> Vec<SequenceChange> {
    let mut comparison = Comparison { old, new, at: [0; 2], changes: Vec::new() };
    if !comparison.merge() {
        comparison.align();
    }
    comparison.changes
}

struct Comparison<'a, 'f> {
    old: &'a Rows<'f>,
    new: &'a Rows<'f>,
    /// The first rows that are not compared yet.
    at: [usize; 2],
    changes: Vec<SequenceChange>,
}

impl Comparison<'_, '_> {
    /// Compares the rows one by one, as long as rows are only added and removed. Returns false at
    /// rows that are in both, in another order.
    fn merge(&mut self) -> bool {
        let mut keys: Option<[KeySet; 2]> = None;
        loop {
            let [i, j] = self.at;
            match (self.old.rows.get(i), self.new.rows.get(j)) {
                (None, None) => return true,
                (Some(a), Some(b)) if a.key == b.key => self.pair(i, j),
                (a, b) => {
                    let [is_old, is_new] =
                        keys.get_or_insert_with(|| [KeySet::of(&self.old.rows[i..]), KeySet::of(&self.new.rows[j..])]);
                    if a.is_some_and(|a| b.is_none() || !is_new.contains(a.key)) {
                        self.push(SequenceChange { old: i..i + 1, new: j..j });
                        self.at = [i + 1, j];
                    } else if b.is_some_and(|b| a.is_none() || !is_old.contains(b.key)) {
                        self.push(SequenceChange { old: i..i, new: j..j + 1 });
                        self.at = [i, j + 1];
                    } else {
                        return false;
                    }
                }
            }
        }
    }

    /// Pairs as many of the remaining rows as their order allows.
    fn align(&mut self) {
        let [from_old, from_new] = self.at;
        let keys = |rows: &[Row]| rows.iter().map(|row| row.key).collect::<Vec<RowKey>>();
        let (old, new) = (keys(&self.old.rows[from_old..]), keys(&self.new.rows[from_new..]));
        for SequenceChange { old, new } in sequence_changes(&old, &new) {
            let (old, new) = (moved(old, from_old), moved(new, from_new));
            while self.at[0] < old.start {
                self.pair(self.at[0], self.at[1]);
            }
            self.at = [old.end, new.end];
            self.push(SequenceChange { old, new });
        }
        while self.at[0] < self.old.rows.len() {
            self.pair(self.at[0], self.at[1]);
        }
    }

    /// Adds a change. A change that directly follows the last one extends it.
    fn push(&mut self, change: SequenceChange) {
        match self.changes.last_mut() {
            Some(last) if last.old.end == change.old.start && last.new.end == change.new.start => {
                last.old.end = change.old.end;
                last.new.end = change.new.end;
            }
            _ => self.changes.push(change),
        }
    }

    /// Compares two rows with the same key.
    fn pair(&mut self, i: usize, j: usize) {
        if !self.old.is_same(self.old.rows[i], self.new, self.new.rows[j]) {
            self.push(SequenceChange { old: i..i + 1, new: j..j + 1 });
        }
        self.at = [i + 1, j + 1];
    }
}

fn moved(range: Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

/// A set of keys.
struct KeySet {
    /// The smallest variable.
    from: u32,
    /// From that variable on, a byte for each variable, with a bit for each kind.
    near: Vec<u8>,
    /// The keys with variables that are far from the smallest one.
    far: FxHashSet<RowKey>,
}

impl KeySet {
    fn of(rows: &[Row]) -> KeySet {
        let from = rows.iter().map(|row| row.key.variable).min().unwrap_or(0);
        let mut keys = KeySet { from, near: vec![0; 8 * rows.len()], far: FxHashSet::default() };
        for key in rows.iter().map(|row| row.key) {
            match keys.near.get_mut((key.variable - from) as usize) {
                Some(kinds) => *kinds |= 1 << key.kind as u8,
                None => drop(keys.far.insert(key)),
            }
        }
        keys
    }

    fn contains(&self, key: RowKey) -> bool {
        let Some(at) = key.variable.checked_sub(self.from) else { return false };
        match self.near.get(at as usize) {
            Some(kinds) => kinds & (1 << key.kind as u8) != 0,
            None => self.far.contains(&key),
        }
    }
}

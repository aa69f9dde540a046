//! Differences of two sequences.
//!
//! Patience diff (Bram Cohen): items that occur once in both sequences, as most lines of a program
//! do, are paired as far as their order allows, and the items between two pairs are compared
//! separately. If that gives no pairs, Myers' algorithm looks for a shortest edit script of bounded
//! length. If there is none, all items are replaced. So the time is linear in the number of items,
//! up to a logarithmic factor, however much differs. Ranges that remain to be compared are on an
//! explicit stack.
//!
//! Two crates were tried in its place, with eight pairs of texts of 1,000,000 lines on a thread
//! with a stack of 64 KiB; this takes 0.5 to 7 s for each of them. `imara-diff` 0.2 (histogram)
//! overflows the stack on random lines of 1,000 words, and has not finished after 20 s where every
//! second line differs, where lines are moved, or where there are only a few different lines; its
//! Myers algorithm overflows the stack on reversed, paired and random lines. `similar` 2.7
//! (patience and Myers) has finished none of the pairs after 20 s.

use std::hash::Hash;
use std::ops::Range;

use rustc_hash::FxHashMap;

/// The number of rounds in which items between pairs are paired again. Each round is linear.
const ROUNDS: u32 = 4;

/// The length of the longest edit script that is looked for between two pairs.
const LONGEST_SCRIPT: usize = 64;

/// Items of the old sequence, and the items of the new sequence that replace them. One of the two
/// ranges may be empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SequenceChange {
    /// The replaced items.
    pub old: Range<usize>,
    /// The items in their place.
    pub new: Range<usize>,
}

/// Returns the changes that turn one sequence into another, in order. Between two changes is at
/// least one item that is the same.
///
/// Cost: one loop.
pub fn sequence_changes<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<SequenceChange> {
    let mut whole = SequenceChange { old: 0..old.len(), new: 0..new.len() };
    trim(&mut whole, old, new);
    let mut changes = changes_between(&old[whole.old.clone()], &new[whole.new.clone()]);
    changes.iter_mut().for_each(|c| *c = moved(c.clone(), &whole));
    changes
}

/// Returns the changes of two sequences that differ at both ends.
fn changes_between<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<SequenceChange> {
    let mut numbers: FxHashMap<&T, u32> = FxHashMap::default();
    let mut number = |item| {
        let next = numbers.len() as u32;
        *numbers.entry(item).or_insert(next)
    };
    let old: Vec<u32> = old.iter().map(&mut number).collect();
    let new: Vec<u32> = new.iter().map(&mut number).collect();
    let mut pairing = Pairing { old: &old, new: &new, seen: vec![Seen::default(); numbers.len()] };
    let mut changes: Vec<SequenceChange> = Vec::new();
    let mut ranges = vec![(SequenceChange { old: 0..old.len(), new: 0..new.len() }, 0)];
    while let Some((mut range, round)) = ranges.pop() {
        trim(&mut range, &old, &new);
        if range.old.is_empty() && range.new.is_empty() {
            continue;
        }
        if range.old.is_empty() || range.new.is_empty() {
            push(&mut changes, range);
            continue;
        }
        let pairs = if round < ROUNDS { pairing.pairs(&range) } else { Vec::new() };
        if pairs.is_empty() {
            match shortest_script(&old[range.old.clone()], &new[range.new.clone()]) {
                Some(script) => script.into_iter().for_each(|c| push(&mut changes, moved(c, &range))),
                None => push(&mut changes, range),
            }
            continue;
        }
        // Pushed from the last to the first, so that the first is popped next.
        let mut end = [range.old.end, range.new.end];
        for &(i, j) in pairs.iter().rev() {
            ranges.push((SequenceChange { old: i + 1..end[0], new: j + 1..end[1] }, round + 1));
            end = [i, j];
        }
        ranges.push((SequenceChange { old: range.old.start..end[0], new: range.new.start..end[1] }, round + 1));
    }
    changes
}

/// Appends a change. A change that directly follows the last one extends it.
fn push(changes: &mut Vec<SequenceChange>, change: SequenceChange) {
    match changes.last_mut() {
        Some(last) if last.old.end == change.old.start && last.new.end == change.new.start => {
            last.old.end = change.old.end;
            last.new.end = change.new.end;
        }
        _ => changes.push(change),
    }
}

/// Removes the items that are the same at both ends of a range.
fn trim<T: Eq>(range: &mut SequenceChange, old: &[T], new: &[T]) {
    let (a, b) = (&old[range.old.clone()], &new[range.new.clone()]);
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(x, y)| x == y).count();
    range.old = range.old.start + start..range.old.end - end;
    range.new = range.new.start + start..range.new.end - end;
}

/// Translates a change of a part to one of the whole sequences.
fn moved(change: SequenceChange, to: &SequenceChange) -> SequenceChange {
    let (i, j) = (to.old.start, to.new.start);
    SequenceChange { old: change.old.start + i..change.old.end + i, new: change.new.start + j..change.new.end + j }
}

/// A search for items that occur once in both parts.
struct Pairing<'a> {
    old: &'a [u32],
    new: &'a [u32],
    /// For each item, its number of occurrences in the parts that are compared. All are zero
    /// between two searches.
    seen: Vec<Seen>,
}

#[derive(Copy, Clone, Default)]
struct Seen {
    old: u32,
    new: u32,
    /// The position of the item in the old part.
    at: usize,
}

impl Pairing<'_> {
    /// Returns pairs of equal items that occur once in both parts, as many as can be in order.
    fn pairs(&mut self, range: &SequenceChange) -> Vec<(usize, usize)> {
        for i in range.old.clone() {
            let seen = &mut self.seen[self.old[i] as usize];
            (seen.old, seen.at) = (seen.old.saturating_add(1), i);
        }
        for j in range.new.clone() {
            let seen = &mut self.seen[self.new[j] as usize];
            seen.new = seen.new.saturating_add(1);
        }
        let candidates: Vec<(usize, usize)> = range
            .new
            .clone()
            .filter_map(|j| match self.seen[self.new[j] as usize] {
                Seen { old: 1, new: 1, at } => Some((at, j)),
                _ => None,
            })
            .collect();
        for i in range.old.clone() {
            self.seen[self.old[i] as usize] = Seen::default();
        }
        for j in range.new.clone() {
            self.seen[self.new[j] as usize] = Seen::default();
        }
        longest_increasing(&candidates)
    }
}

/// Returns the longest subsequence whose first components increase (Fredman's algorithm, as in
/// patience sorting).
pub(super) fn longest_increasing(items: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each pile, the top card; for each card, the top card of the pile before at the time it
    // was placed.
    let mut tops: Vec<usize> = Vec::new();
    let mut below: Vec<Option<usize>> = Vec::with_capacity(items.len());
    for (n, item) in items.iter().enumerate() {
        // Most items continue the last pile.
        let pile = match tops.last() {
            Some(&top) if items[top].0 < item.0 => tops.len(),
            _ => tops.partition_point(|&top| items[top].0 < item.0),
        };
        below.push(pile.checked_sub(1).map(|p| tops[p]));
        match tops.get_mut(pile) {
            Some(top) => *top = n,
            None => tops.push(n),
        }
    }
    let mut chosen: Vec<(usize, usize)> =
        std::iter::successors(tops.last().copied(), |&n| below[n]).map(|n| items[n]).collect();
    chosen.reverse();
    chosen
}

/// Returns a shortest script that turns the old items into the new ones, if there is one of at most
/// [`LONGEST_SCRIPT`] insertions and deletions (Myers, "An O(ND) Difference Algorithm and Its
/// Variations", greedy).
fn shortest_script(old: &[u32], new: &[u32]) -> Option<Vec<SequenceChange>> {
    let longest = LONGEST_SCRIPT.min(old.len() + new.len());
    if old.len().abs_diff(new.len()) > longest {
        return None;
    }
    let (n, m) = (old.len() as isize, new.len() as isize);
    // The furthest `x` on each diagonal `x - y`, and the same before each step.
    let width = 2 * longest + 3;
    let middle = longest as isize + 1;
    let at = |k: isize| (k + middle) as usize;
    let mut reached = vec![0isize; width];
    let mut history: Vec<Vec<isize>> = Vec::new();
    let from_above =
        |reached: &[isize], k: isize, d: isize| k == -d || (k != d && reached[at(k - 1)] < reached[at(k + 1)]);
    'search: for d in 0..=longest as isize {
        history.push(reached.clone());
        for k in (-d..=d).step_by(2) {
            let mut x = if from_above(&reached, k, d) { reached[at(k + 1)] } else { reached[at(k - 1)] + 1 };
            let mut y = x - k;
            // Diagonals that have left the rectangle get no further.
            if x > n || y > m {
                reached[at(k)] = x;
                continue;
            }
            while x < n && y < m && old[x as usize] == new[y as usize] {
                (x, y) = (x + 1, y + 1);
            }
            reached[at(k)] = x;
            if x == n && y == m {
                break 'search;
            }
        }
        if d == longest as isize {
            return None;
        }
    }
    let mut steps = Vec::new();
    let (mut x, mut y) = (n, m);
    for (d, reached) in history.iter().enumerate().skip(1).rev() {
        let (d, k) = (d as isize, x - y);
        let previous = if from_above(reached, k, d) { k + 1 } else { k - 1 };
        let (px, py) = (reached[at(previous)], reached[at(previous)] - previous);
        let (a, b) = (px as usize, py as usize);
        steps.push(if previous == k + 1 {
            SequenceChange { old: a..a, new: b..b + 1 }
        } else {
            SequenceChange { old: a..a + 1, new: b..b }
        });
        (x, y) = (px, py);
    }
    let mut script = Vec::new();
    steps.into_iter().rev().for_each(|step| push(&mut script, step));
    Some(script)
}

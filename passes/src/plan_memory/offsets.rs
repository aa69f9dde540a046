//! Offsets of storages in an arena: storages that are live at the same time do not overlap.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A storage that needs an offset. It is live at the positions from `first` to `last`, both
/// included.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Interval {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) bytes: u64,
}

/// Offsets, by the index of the interval, and the bytes of the arena that contains them.
pub(super) struct Offsets {
    pub(super) offsets: Vec<u64>,
    pub(super) arena: u64,
}

/// The pairs of intervals that [`by_rank`] may compare, per interval. Programs with more keep the
/// offsets of [`by_time`].
const MAX_PAIRS: usize = 256;

/// The pairs of intervals that [`by_rank`] may compare in all; they take 64 MiB.
const MAX_ALL_PAIRS: usize = 1 << 22;

/// Returns offsets for intervals, and the largest sum of bytes that are live at one position, below
/// which no arena can be.
///
/// The storages are placed in the order in which they become live, each in the smallest free gap
/// that it fits, which takes O(n log n). If the arena is larger than what is live, and few storages
/// are live together, other orders are tried (Pisarchyk and Lee, "Efficient memory management for
/// deep neural net inference", 2020), and the smallest arena is taken.
pub(super) fn assign(intervals: &[Interval]) -> (Offsets, u64) {
    let mut order: Vec<u32> = (0..intervals.len() as u32).collect();
    order.sort_unstable_by_key(|&i| (intervals[i as usize].first, i));
    let live = live_bytes(intervals, &order);
    let mut best = by_time(intervals, &order);
    if best.arena == live {
        return (best, live);
    }
    let Some(together) = Together::of(intervals, &order) else { return (best, live) };
    for rank in [Rank::Bytes, Rank::Breadth, Rank::Length, Rank::Area] {
        for gap in [Gap::Smallest, Gap::First] {
            let other = by_rank(intervals, &together, rank, gap);
            if other.arena < best.arena {
                best = other;
            }
            if best.arena == live {
                return (best, live);
            }
        }
    }
    (best, live)
}

/// Returns the largest sum of bytes that are live at one position.
fn live_bytes(intervals: &[Interval], order: &[u32]) -> u64 {
    let mut ends: BinaryHeap<Reverse<(u32, u64)>> = BinaryHeap::new();
    let (mut live, mut most) = (0u64, 0u64);
    for &i in order {
        let Interval { first, last, bytes } = intervals[i as usize];
        while let Some(&Reverse((end, ended))) = ends.peek()
            && end < first
        {
            live -= ended;
            ends.pop();
        }
        live += bytes;
        most = most.max(live);
        ends.push(Reverse((last, bytes)));
    }
    most
}

/// Places intervals in the order in which they become live, each in the smallest free gap that it
/// fits.
fn by_time(intervals: &[Interval], order: &[u32]) -> Offsets {
    let mut offsets = vec![0; intervals.len()];
    let mut space = FreeSpace::default();
    let mut ends: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    for &i in order {
        let Interval { first, last, bytes } = intervals[i as usize];
        while let Some(&Reverse((end, ended))) = ends.peek()
            && end < first
        {
            space.give(offsets[ended as usize], intervals[ended as usize].bytes);
            ends.pop();
        }
        if bytes > 0 {
            offsets[i as usize] = space.take(bytes);
            ends.push(Reverse((last, i)));
        }
    }
    Offsets { offsets, arena: space.most }
}

/// The free gaps below `top`, none of which touches another or `top`.
#[derive(Default)]
struct FreeSpace {
    by_offset: BTreeMap<u64, u64>,
    by_bytes: BTreeSet<(u64, u64)>,
    top: u64,
    /// The greatest `top` so far.
    most: u64,
}

impl FreeSpace {
    /// Returns the offset of the smallest gap of at least `bytes`, or of new space at the top.
    fn take(&mut self, bytes: u64) -> u64 {
        let Some(&(len, offset)) = self.by_bytes.range((bytes, 0)..).next() else {
            let offset = self.top;
            self.top += bytes;
            self.most = self.most.max(self.top);
            return offset;
        };
        self.remove(offset, len);
        if len > bytes {
            self.insert(offset + bytes, len - bytes);
        }
        offset
    }

    /// Frees space, and joins it with the gaps beside it.
    fn give(&mut self, mut offset: u64, mut bytes: u64) {
        if let Some((&before, &len)) = self.by_offset.range(..offset).next_back()
            && before + len == offset
        {
            self.remove(before, len);
            (offset, bytes) = (before, bytes + len);
        }
        if let Some(&len) = self.by_offset.get(&(offset + bytes)) {
            self.remove(offset + bytes, len);
            bytes += len;
        }
        if offset + bytes == self.top {
            self.top = offset;
        } else {
            self.insert(offset, bytes);
        }
    }

    fn insert(&mut self, offset: u64, bytes: u64) {
        self.by_offset.insert(offset, bytes);
        self.by_bytes.insert((bytes, offset));
    }

    fn remove(&mut self, offset: u64, bytes: u64) {
        self.by_offset.remove(&offset);
        self.by_bytes.remove(&(bytes, offset));
    }
}

/// The orders in which [`by_rank`] places intervals.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Rank {
    /// The largest first.
    Bytes,
    /// Those first that are live where most bytes are live, and of these the largest.
    Breadth,
    /// Those first that are live longest.
    Length,
    /// Those first whose product of bytes and length is the largest.
    Area,
}

/// The gap that [`by_rank`] takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Gap {
    /// The smallest that is large enough.
    Smallest,
    /// The one at the smallest offset.
    First,
}

/// Places intervals in an order of rank, each in a gap between those that are live with it.
fn by_rank(intervals: &[Interval], together: &Together, rank: Rank, gap: Gap) -> Offsets {
    let mut ranked: Vec<(u128, u64, u32, u32)> = (0..)
        .zip(intervals)
        .map(|(i, &Interval { first, last, bytes })| {
            let length = u128::from(last - first) + 1;
            let by = match rank {
                Rank::Bytes => u128::from(bytes),
                Rank::Breadth => u128::from(together.most_live(intervals, i)),
                Rank::Length => length,
                Rank::Area => u128::from(bytes) * length,
            };
            // The greatest sort first.
            (u128::MAX - by, u64::MAX - bytes, first, i)
        })
        .collect();
    ranked.sort_unstable();
    let mut offsets: Vec<Option<u64>> = vec![None; intervals.len()];
    let mut arena = 0;
    let mut placed: Vec<(u64, u64)> = Vec::new();
    for &(.., i) in &ranked {
        let bytes = intervals[i as usize].bytes;
        placed.clear();
        placed.extend(together.with(i).iter().filter_map(|&other| {
            let offset = offsets[other as usize]?;
            Some((offset, offset + intervals[other as usize].bytes))
        }));
        placed.sort_unstable();
        let mut found: Option<(u64, u64)> = None;
        let mut top = 0;
        for &(offset, end) in &placed {
            let is_better = |(len, _): (u64, u64)| gap == Gap::Smallest && offset - top < len;
            if offset >= top + bytes && found.is_none_or(is_better) {
                found = Some((offset - top, top));
            }
            top = top.max(end);
        }
        let offset = found.map_or(top, |(_, offset)| offset);
        offsets[i as usize] = Some(offset);
        arena = arena.max(offset + bytes);
    }
    Offsets { offsets: offsets.into_iter().map(Option::unwrap_or_default).collect(), arena }
}

/// Returns the number of pairs of intervals that are live together; `None` if there are too many.
fn count_pairs(intervals: &[Interval], order: &[u32]) -> Option<usize> {
    let limit = intervals.len().saturating_mul(MAX_PAIRS).min(MAX_ALL_PAIRS);
    let mut ends: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    let mut count = 0;
    for &i in order {
        let Interval { first, last, bytes } = intervals[i as usize];
        while ends.peek().is_some_and(|&Reverse(end)| end < first) {
            ends.pop();
        }
        if bytes > 0 {
            count += ends.len();
            ends.push(Reverse(last));
        }
        if count > limit {
            return None;
        }
    }
    Some(count)
}

/// For each interval, the others that are live at one of its positions.
struct Together {
    /// The end of the list of each interval in `others`.
    ends: Vec<u32>,
    others: Vec<u32>,
    /// The bytes that are live at the first position of each interval, with those of the intervals
    /// that begin there and come before it.
    live: Vec<u64>,
}

impl Together {
    /// Returns the intervals and what is live together; `None` if that is too much to compare.
    fn of(intervals: &[Interval], order: &[u32]) -> Option<Together> {
        let count = count_pairs(intervals, order)?;
        let mut live: Vec<u32> = Vec::new();
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(count);
        let mut live_at = vec![0; intervals.len()];
        for &i in order {
            let Interval { first, bytes, .. } = intervals[i as usize];
            if bytes == 0 {
                continue;
            }
            live.retain(|&other| intervals[other as usize].last >= first);
            pairs.extend(live.iter().map(|&other| (i, other)));
            live.push(i);
            live_at[i as usize] = live.iter().map(|&other| intervals[other as usize].bytes).sum();
        }
        let mut ends = vec![0u32; intervals.len()];
        for &(a, b) in &pairs {
            ends[a as usize] += 1;
            ends[b as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum - *end;
        }
        let mut others = vec![0; sum as usize];
        for &(a, b) in &pairs {
            for (a, b) in [(a, b), (b, a)] {
                others[ends[a as usize] as usize] = b;
                ends[a as usize] += 1;
            }
        }
        Some(Together { ends, others, live: live_at })
    }

    /// Returns the most bytes that are live at a position of an interval.
    fn most_live(&self, intervals: &[Interval], i: u32) -> u64 {
        let first = intervals[i as usize].first;
        let within = self.with(i).iter().filter(|&&other| intervals[other as usize].first >= first);
        within.map(|&other| self.live[other as usize]).fold(self.live[i as usize], u64::max)
    }

    fn with(&self, i: u32) -> &[u32] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.others[start as usize..self.ends[i as usize] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an error if two intervals that are live together overlap in the arena, or one
    /// exceeds it.
    fn check(intervals: &[Interval], Offsets { offsets, arena }: &Offsets) -> Result<(), String> {
        for (i, a) in intervals.iter().enumerate() {
            if offsets[i] + a.bytes > *arena {
                return Err(format!("{a:?} at {} exceeds {arena}", offsets[i]));
            }
            for (j, b) in intervals.iter().enumerate().take(i) {
                let in_time = a.first <= b.last && b.first <= a.last;
                if in_time && offsets[i] < offsets[j] + b.bytes && offsets[j] < offsets[i] + a.bytes {
                    return Err(format!("{a:?} at {} overlaps {b:?} at {}", offsets[i], offsets[j]));
                }
            }
        }
        Ok(())
    }

    #[test]
    fn no_two_overlap_in_any_order() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let intervals: Vec<Interval> = (0..random.usize(0..40))
                .map(|_| {
                    let first = random.u32(0..60);
                    Interval { first, last: first + random.u32(0..12), bytes: 8 * random.u64(0..20) }
                })
                .collect();
            let mut order: Vec<u32> = (0..intervals.len() as u32).collect();
            order.sort_unstable_by_key(|&i| (intervals[i as usize].first, i));
            let live = live_bytes(&intervals, &order);
            let by_time = by_time(&intervals, &order);
            check(&intervals, &by_time).unwrap();
            let together = Together::of(&intervals, &order).expect("few are live together");
            let mut least = by_time.arena;
            for rank in [Rank::Bytes, Rank::Breadth, Rank::Length, Rank::Area] {
                for gap in [Gap::Smallest, Gap::First] {
                    let offsets = by_rank(&intervals, &together, rank, gap);
                    check(&intervals, &offsets).unwrap();
                    least = least.min(offsets.arena);
                }
            }
            let (best, found) = assign(&intervals);
            check(&intervals, &best).unwrap();
            assert_eq!(found, live);
            assert!(live <= best.arena && best.arena == least);
        }
    }

    #[test]
    fn gaps_are_joined_and_the_smallest_that_fits_is_taken() {
        let mut space = FreeSpace::default();
        let at: Vec<u64> = [10, 20, 5, 5, 40].map(|bytes| space.take(bytes)).to_vec();
        assert_eq!(at, [0, 10, 30, 35, 40]);
        space.give(10, 20);
        space.give(0, 10);
        space.give(35, 5);
        assert_eq!(space.take(4), 35, "not in the gap of 30 at 0");
        assert_eq!(space.take(30), 0, "gaps side by side are one");
        space.give(40, 40);
        assert_eq!(space.top, 39, "free space at the top is no gap");
        assert_eq!(space.most, 80);
    }
}

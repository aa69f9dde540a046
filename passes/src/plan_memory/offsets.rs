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

/// The pairs of intervals that [`by_size`] may compare, per interval. Programs with more keep the
/// offsets of [`by_time`].
const MAX_PAIRS: usize = 64;

/// The pairs of intervals that [`by_size`] may compare in all; they take 256 MiB.
const MAX_ALL_PAIRS: usize = 1 << 24;

/// Returns offsets for intervals, and the largest sum of bytes that are live at one position, below
/// which no arena can be.
///
/// The storages are placed in two orders, and the smaller arena is taken: by the position at which
/// they become live, each in the smallest free gap that it fits, which takes O(n log n); and the
/// largest first (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
/// 2020), unless too many of them are live together.
pub(super) fn assign(intervals: &[Interval]) -> (Offsets, u64) {
    let mut order: Vec<u32> = (0..intervals.len() as u32).collect();
    order.sort_unstable_by_key(|&i| (intervals[i as usize].first, i));
    let live = live_bytes(intervals, &order);
    let mut best = by_time(intervals, &order);
    if best.arena > live
        && let Some(other) = by_size(intervals, &order)
        && other.arena < best.arena
    {
        best = other;
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

/// Places intervals from the largest to the smallest, each in the smallest gap that it fits between
/// those that are live with it. Returns `None` if more than [`MAX_PAIRS`] pairs for each interval
/// are live together.
fn by_size(intervals: &[Interval], order: &[u32]) -> Option<Offsets> {
    let together = Together::of(intervals, order)?;
    let mut by_size: Vec<u32> = order.to_vec();
    by_size.sort_by_key(|&i| {
        let Interval { first, last, bytes } = intervals[i as usize];
        Reverse((bytes, last - first))
    });
    let mut offsets: Vec<Option<u64>> = vec![None; intervals.len()];
    let mut arena = 0;
    let mut placed: Vec<(u64, u64)> = Vec::new();
    for &i in &by_size {
        let bytes = intervals[i as usize].bytes;
        placed.clear();
        placed.extend(together.with(i).iter().filter_map(|&other| {
            let offset = offsets[other as usize]?;
            Some((offset, offset + intervals[other as usize].bytes))
        }));
        placed.sort_unstable();
        let mut smallest: Option<(u64, u64)> = None;
        let mut top = 0;
        for &(offset, end) in &placed {
            if offset >= top + bytes && smallest.is_none_or(|(len, _)| offset - top < len) {
                smallest = Some((offset - top, top));
            }
            top = top.max(end);
        }
        let offset = smallest.map_or(top, |(_, offset)| offset);
        offsets[i as usize] = Some(offset);
        arena = arena.max(offset + bytes);
    }
    Some(Offsets { offsets: offsets.into_iter().map(Option::unwrap_or_default).collect(), arena })
}

/// For each interval, the others that are live at one of its positions.
struct Together {
    /// The end of the list of each interval in `others`.
    ends: Vec<u32>,
    others: Vec<u32>,
}

impl Together {
    fn of(intervals: &[Interval], order: &[u32]) -> Option<Together> {
        let limit = intervals.len().saturating_mul(MAX_PAIRS).min(MAX_ALL_PAIRS);
        let mut live: Vec<u32> = Vec::new();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for &i in order {
            let Interval { first, bytes, .. } = intervals[i as usize];
            if bytes == 0 {
                continue;
            }
            live.retain(|&other| intervals[other as usize].last >= first);
            if pairs.len() + live.len() > limit {
                return None;
            }
            pairs.extend(live.iter().map(|&other| (i, other)));
            live.push(i);
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
        Some(Together { ends, others })
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
    fn no_two_overlap_in_either_order() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let intervals: Vec<Interval> = (0..random.usize(0..40))
                .map(|_| {
                    let first = random.u32(0..60);
                    Interval { first, last: first + random.u32(0..12), bytes: 8 * random.u64(0..20) }
                })
                .collect();
            let mut order: Vec<u32> = (0..intervals.len() as u32).collect();
            order.sort_unstable_by_key(|&i| intervals[i as usize].first);
            let live = live_bytes(&intervals, &order);
            let by_time = by_time(&intervals, &order);
            check(&intervals, &by_time).unwrap();
            let by_size = by_size(&intervals, &order).expect("few are live together");
            check(&intervals, &by_size).unwrap();
            let (best, least) = assign(&intervals);
            check(&intervals, &best).unwrap();
            assert_eq!(least, live);
            assert!(live <= best.arena && best.arena <= by_time.arena.min(by_size.arena));
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

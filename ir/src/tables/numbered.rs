//! Names that end in a number, such as `x12`, found by their number.
//!
//! Most names of a large program are numbered. A table of hashes of a million names misses the
//! caches at each look-up. Here the names of one base are in a vector by number, and a program
//! mostly uses names whose numbers are close to each other.

use crate::core::entity::{EntityId, NameId};

/// The number of bases that have a vector.
const MOST_BASES: usize = 64;

/// The greatest length of a base, in bytes.
const LONGEST_BASE: usize = 8;

/// The number of digits that surely fit.
const MOST_DIGITS: usize = 9;

/// A name as a base and a number.
#[derive(Copy, Clone)]
pub(crate) struct NumberedName {
    /// The bytes of the base, the last in the lowest place. None of them is zero, so bases of
    /// different lengths differ.
    base: u64,
    number: u32,
}

/// The answer of a look-up.
pub(crate) enum Place {
    /// The name has this id.
    Has(NameId),
    /// The name does not exist.
    Lacks,
    /// The name is elsewhere, if it exists.
    Unknown,
}

/// The ids of numbered names, by base and number.
#[derive(Clone, Default)]
pub(crate) struct Numbered {
    series: Vec<Series>,
    /// The series of the last name that was interned.
    last: usize,
}

/// The names of one base.
#[derive(Clone)]
struct Series {
    base: u64,
    /// The ids by number; `NONE` for a number without a name.
    ids: Vec<u32>,
    /// The number of ids.
    len: usize,
    /// True if a name of the base is elsewhere, because its number was too large.
    has_strays: bool,
}

const NONE: u32 = u32::MAX;

impl NumberedName {
    /// Returns a name as a base and a number. The base has 1 to 8 bytes and no zero byte, and the
    /// number has no leading zeros, so that there is one name for each base and number.
    #[inline]
    pub(crate) fn of(name: &str) -> Option<NumberedName> {
        let bytes = name.as_bytes();
        let mut start = bytes.len();
        let (mut number, mut place) = (0, 1);
        while let Some(digit) = start.checked_sub(1).map(|i| bytes[i].wrapping_sub(b'0')).filter(|&d| d < 10) {
            if bytes.len() - start == MOST_DIGITS {
                return None;
            }
            number += u32::from(digit) * place;
            place = place.wrapping_mul(10);
            start -= 1;
        }
        let digits = bytes.len() - start;
        if digits == 0 || start == 0 || start > LONGEST_BASE || (digits > 1 && bytes[start] == b'0') {
            return None;
        }
        let mut base = 0;
        for &byte in &bytes[..start] {
            if byte == 0 {
                return None;
            }
            // In a register: to write single bytes and read them as one number takes long.
            base = base << 8 | u64::from(byte);
        }
        Some(NumberedName { base, number })
    }
}

impl Numbered {
    /// Returns the id of a name.
    #[inline]
    pub(crate) fn find(&self, NumberedName { base, number }: NumberedName) -> Place {
        let series = match self.series.get(self.last) {
            Some(series) if series.base == base => series,
            _ => match self.series.iter().find(|series| series.base == base) {
                Some(series) => series,
                None => return Place::Unknown,
            },
        };
        match series.ids.get(number as usize) {
            Some(&id) if id != NONE => Place::Has(NameId::from_index(id as usize)),
            _ if series.has_strays => Place::Unknown,
            _ => Place::Lacks,
        }
    }

    /// Returns the id of a name. A name that does not exist gets the id `next`. Returns `None` if
    /// the name is elsewhere, or belongs there.
    #[inline]
    pub(crate) fn intern(&mut self, NumberedName { base, number }: NumberedName, next: NameId) -> Option<NameId> {
        if self.series.get(self.last).is_none_or(|series| series.base != base) {
            self.last = self.series_of(base)?;
        }
        let series = &mut self.series[self.last];
        let at = number as usize;
        match series.ids.get(at) {
            Some(&id) if id != NONE => return Some(NameId::from_index(id as usize)),
            // The name may be among those that came when there were fewer.
            _ if series.has_strays => return None,
            Some(_) => {}
            // At least a third of the vector is used, except for a small one.
            None if at <= 64 + 3 * series.len => series.ids.resize(at + 1, NONE),
            None => {
                series.has_strays = true;
                return None;
            }
        }
        series.ids[at] = next.index() as u32;
        series.len += 1;
        Some(next)
    }

    /// Returns the index of the series of a base, which is new unless there are too many.
    #[cold]
    fn series_of(&mut self, base: u64) -> Option<usize> {
        let found = self.series.iter().position(|series| series.base == base);
        found.or_else(|| {
            if self.series.len() == MOST_BASES {
                return None;
            }
            self.series.push(Series { base, ids: Vec::new(), len: 0, has_strays: false });
            Some(self.series.len() - 1)
        })
    }

    /// Frees most of the room that appending did not use.
    pub(crate) fn shrink(&mut self) {
        for Series { ids, .. } in &mut self.series {
            if ids.len() + ids.len() / 8 < ids.capacity() {
                ids.shrink_to(ids.len() + ids.len() / 64);
            }
        }
    }

    /// Returns the number of bytes held.
    pub(crate) fn capacity_bytes(&self) -> usize {
        let ids: usize = self.series.iter().map(|series| series.ids.capacity() * size_of::<u32>()).sum();
        ids + self.series.capacity() * size_of::<Series>()
    }
}

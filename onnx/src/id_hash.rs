//! Hash tables by ids.
//!
//! Ids count up, and ids that are close to each other are used together. The hash of an id is the
//! id, so that their entries are close to each other too. A hash that scatters them would make each
//! look-up in a large table a cache miss.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by ids.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;
/// A set of ids.
pub(crate) type IdKeySet<K> = HashSet<K, BuildHasherDefault<IdHasher>>;

/// The hash of an id of 32 bits.
#[derive(Copy, Clone, Default)]
pub(crate) struct IdHasher(u32);

impl Hasher for IdHasher {
    fn write_u32(&mut self, id: u32) {
        self.0 ^= id;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u32::from(byte);
        }
    }

    /// The low bits choose the entry. The high bits, which tell apart those that are close, are
    /// mixed.
    fn finish(&self) -> u64 {
        u64::from(self.0) | u64::from(self.0.wrapping_mul(0x9e37_79b9)) << 32
    }
}

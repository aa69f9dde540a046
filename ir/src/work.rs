//! Counted work: how many reads and writes went through arenas, pools and side tables.
//!
//! Tests of linearity compare these counts between sizes of program, never times. Without the
//! feature `count-work` the calls compile to nothing and [`count`] is always 0.

#[cfg(feature = "count-work")]
mod counter {
    use std::cell::Cell;
    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }
    // If this was inlined into crates that are built without optimisation, it would be slow there.
    // `try_with` is `#[inline]`. `with` is not: it may be a call into another code generation unit.
    #[inline(never)]
    pub(super) fn add(n: u64) {
        // A number has no destructor, so the counter is there until the end of the thread.
        let _ = COUNT.try_with(|c| c.set(c.get().wrapping_add(n)));
    }
    pub(super) fn get() -> u64 {
        COUNT.with(Cell::get)
    }
}

/// Counts one access.
#[inline(always)]
pub fn tick() {
    #[cfg(feature = "count-work")]
    counter::add(1);
}

/// Counts `n` accesses.
#[inline(always)]
pub fn tick_n(n: usize) {
    let _ = n;
    #[cfg(feature = "count-work")]
    counter::add(n as u64);
}

/// The accesses counted on this thread so far; 0 without the feature `count-work`.
pub fn count() -> u64 {
    #[cfg(feature = "count-work")]
    return counter::get();
    #[cfg(not(feature = "count-work"))]
    0
}

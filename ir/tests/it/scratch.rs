//! Scratch arenas are lent, emptied and lent again.

use anfora_ir::{Context, ScratchVec};

/// Returns the address of a new value in an arena that is returned at once.
fn address(cx: &Context) -> usize {
    let scratch = cx.scratch();
    std::ptr::from_ref(scratch.alloc(0u64)) as usize
}

#[test]
fn the_memory_of_an_arena_that_was_given_back_is_lent_again() {
    let cx = Context::new(Default::default());
    let first = address(&cx);
    assert_eq!(address(&cx), first);
    // An arena in use is not lent: a walk inside another walk gets another arena.
    let used = cx.scratch();
    let value: &mut u64 = used.alloc(1);
    assert_eq!(std::ptr::from_ref(value) as usize, first);
    assert_ne!(address(&cx), first);
    assert_eq!(*value, 1);
}

#[test]
fn an_arena_that_has_grown_is_freed() {
    let cx = Context::new(Default::default());
    let fresh = cx.scratch().allocated_bytes();
    {
        let scratch = cx.scratch();
        let mut numbers = ScratchVec::new_in(&scratch);
        numbers.extend(0..100_000u32);
        assert!(scratch.allocated_bytes() >= 400_000);
    }
    assert_eq!(cx.scratch().allocated_bytes(), fresh);
}

#[test]
fn an_overlay_and_a_copy_have_arenas_of_their_own() {
    let mut cx = Context::new(Default::default());
    cx.freeze();
    let first = address(&cx);
    let overlay = cx.overlay();
    // The waiting arena stays in its context.
    assert_ne!(address(&overlay), first);
    assert_ne!(address(&cx.clone()), first);
    assert_eq!(address(&cx), first);
}

#[test]
fn a_panic_gives_an_arena_back() {
    let cx = Context::new(Default::default());
    let first = address(&cx);
    let panics = std::panic::AssertUnwindSafe(|| {
        let scratch = cx.scratch();
        scratch.alloc(1u64);
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(address(&cx), first);
}

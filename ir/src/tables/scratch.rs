//! Scratch memory for one run of a pass.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use bumpalo::Bump;

pub use bumpalo::collections::Vec as ScratchVec;

/// The size of a new arena in bytes: enough for the tables of a function of some hundred bindings.
const ROOM: usize = 16 << 10;

/// The largest number of arenas kept for later use.
const MOST: usize = 4;

/// The arenas of a worker that are not in use. A copy is for another worker and starts empty.
#[derive(Default, Debug)]
pub(crate) struct ScratchStock(Arc<Mutex<Vec<Bump>>>);

impl Clone for ScratchStock {
    fn clone(&self) -> ScratchStock {
        ScratchStock::default()
    }
}

impl ScratchStock {
    /// Takes an arena with room for `bytes` bytes.
    pub(crate) fn take(&self, bytes: usize) -> Scratch {
        let mut stock = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = stock.iter().rposition(|bump| bump.chunk_capacity() >= bytes).map(|at| stock.swap_remove(at));
        drop(stock);
        Scratch { bump: waiting.unwrap_or_else(|| Bump::with_capacity(bytes.max(ROOM))), stock: self.0.clone() }
    }
}

/// A scratch arena, lent until this is dropped: see [`Context::scratch`](crate::Context::scratch).
///
/// It dereferences to its [`Bump`]. The borrow checker ensures that nothing in the arena is used
/// after this is dropped. Values that `Bump::alloc` allocated are not dropped, so a `String` there
/// would not free its memory; a [`ScratchVec`] drops its elements.
pub struct Scratch {
    bump: Bump,
    stock: Arc<Mutex<Vec<Bump>>>,
}

impl Deref for Scratch {
    type Target = Bump;

    #[inline]
    fn deref(&self) -> &Bump {
        &self.bump
    }
}

impl Drop for Scratch {
    /// Empties the arena and keeps it for later use, unless it has grown: the memory of a large
    /// function is freed, and small functions do not make it grow.
    fn drop(&mut self) {
        self.bump.reset();
        if self.bump.chunk_capacity() < ROOM + ROOM / 2 {
            let mut stock = self.stock.lock().unwrap_or_else(PoisonError::into_inner);
            if stock.len() < MOST {
                stock.push(std::mem::take(&mut self.bump));
            }
        }
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scratch({} bytes)", self.bump.allocated_bytes())
    }
}

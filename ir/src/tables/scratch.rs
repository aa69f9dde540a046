//! Memory for what a run of a pass needs and nothing needs after it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use bumpalo::Bump;

pub use bumpalo::collections::Vec as ScratchVec;

/// The bytes of a new arena: enough for the tables of a function of some hundred bindings.
const ROOM: usize = 16 << 10;

/// The number of arenas that wait for their next use.
const MOST: usize = 4;

/// The arenas of a worker that nothing uses at the moment. A copy is for another worker and has
/// none.
#[derive(Default, Debug)]
pub(crate) struct ScratchStock(Arc<Mutex<Vec<Bump>>>);

impl Clone for ScratchStock {
    fn clone(&self) -> ScratchStock {
        ScratchStock::default()
    }
}

impl ScratchStock {
    /// Takes an arena that has room for so many bytes.
    pub(crate) fn take(&self, bytes: usize) -> Scratch {
        let mut stock = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = stock.iter().rposition(|bump| bump.chunk_capacity() >= bytes).map(|at| stock.swap_remove(at));
        drop(stock);
        Scratch { bump: waiting.unwrap_or_else(|| Bump::with_capacity(bytes.max(ROOM))), stock: self.0.clone() }
    }
}

/// A scratch arena, lent until this is dropped: see [`Context::scratch`](crate::Context::scratch).
///
/// It stands for the [`Bump`] in it. The borrow checker holds that nothing in the arena is used
/// after this is dropped. What `Bump::alloc` returns is not dropped, so a `String` there
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
    /// Empties the arena and puts it back, unless it has grown: the memory of a large function is
    /// freed, and small ones do not grow it.
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

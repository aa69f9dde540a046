//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, even if another holder panicked. The guarded data is consistent after every
/// statement.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

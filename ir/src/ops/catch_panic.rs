//! Guards calls of functions in rows of operators, which may panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the result of a function of a row; `Err` with the text of the panic if it panics.
pub(crate) fn catch_panic<T>(of_row: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(of_row)).map_err(|payload| panic_text(&*payload).to_owned())
}

/// Returns the text of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

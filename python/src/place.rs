//! The places of exceptions: the function and the binding at which a callback raised.
//!
//! A walk that calls a method of Python knows where it is, and the pass around the walk reports the
//! exception. In between, the exception passes through code of Python. So the place travels as an
//! attribute of the exception.

use anfora::ir::{Body, Context, Cursor, EntityId, Expr as Node, ExprId, Step};
use pyo3::prelude::*;

/// The attribute of exceptions: the names of the function and of the binding.
const PLACE: &str = "_anfora_place";

type Place = (Option<String>, Option<String>);

/// Returns the place that an exception has so far.
fn place_of(py: Python<'_>, error: &PyErr) -> Place {
    let place = error.value(py).getattr_opt(PLACE).ok().flatten();
    place.and_then(|place| place.extract().ok()).unwrap_or_default()
}

/// Records the function and the binding at which a callback raised an exception. A place that names
/// a function is complete, and stays as it is: it is that of the innermost walk.
pub(crate) fn note(error: &PyErr, function: Option<&str>, binding: Option<&str>) {
    Python::attach(|py| {
        let known = place_of(py, error);
        if known.0.is_some() || (function.is_none() && known.1.is_some()) {
            return;
        }
        let place = (function, known.1.as_deref().or(binding));
        // An exception that does not take the attribute is reported without a place.
        let _ = error.value(py).setattr(PLACE, place);
    });
}

/// Takes the place off an exception, which may be raised again elsewhere.
pub(crate) fn take(error: &PyErr) -> Place {
    Python::attach(|py| {
        let place = place_of(py, error);
        let _ = error.value(py).delattr(PLACE);
        place
    })
}

/// Records the binding at which an editing walk of a body ended with an exception, and returns the
/// exception.
pub(crate) fn at_stop(cx: &Context, body: &Body, error: PyErr) -> PyErr {
    if let Some(stop) = body.stop() {
        at(cx, body, stop, &error);
    }
    error
}

/// Records the binding whose value contains the expression at which a callback raised an exception.
pub(crate) fn at(cx: &Context, body: &Body, expr: ExprId, error: &PyErr) {
    if let Some(name) = binding_around(body, expr).and_then(|link| body.binding_name(cx, link)) {
        note(error, None, Some(name));
    }
}

/// Returns the Let whose value contains an expression, or the expression itself if it is a Let or a
/// variable. Linear in the body.
fn binding_around(body: &Body, expr: ExprId) -> Option<ExprId> {
    if expr.index() >= body.len() {
        return None;
    }
    if matches!(body.expr(expr), Node::Let { .. } | Node::Var { .. }) {
        return Some(expr);
    }
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let is_there = match step {
            Step::Atom(id) | Step::Enter(id) => id == expr,
            Step::Flat(id) => id == expr || body.inputs(id).contains(&expr),
            _ => false,
        };
        if is_there {
            return cursor.binding();
        }
    }
    None
}

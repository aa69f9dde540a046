//! The places of expressions, and their names for messages.

use anfora_ir::{Body, Context, Cursor, Diagnostic, EntityId, Expr, ExprId, Module, Step};
use rustc_hash::FxHashMap;

use crate::error::{PassError, caught};

/// An expression of a body, with the generation of its numbering.
#[derive(Copy, Clone)]
pub(crate) struct ReportSite {
    expr: ExprId,
    generation: u32,
}

/// Adds what is known about an expression at once: its bytes in the source, and, for a Let or
/// variable, its binding. Returns a place for an expression whose binding has to be looked up
/// later.
pub(crate) fn name_place(
    cx: &Context,
    body: &Body,
    expr: ExprId,
    mut diagnostic: Diagnostic,
) -> (Diagnostic, Option<ReportSite>) {
    if expr.index() >= body.len() {
        return (diagnostic, None);
    }
    if diagnostic.span.is_none()
        && let Some(start) = body.span(expr)
    {
        diagnostic.span = Some(start as usize..start as usize + 1);
    }
    if diagnostic.binding.is_some() {
        return (diagnostic, None);
    }
    match body.expr(expr) {
        Expr::Let { .. } | Expr::Var { .. } => {
            diagnostic.binding = body.binding_name(cx, expr).map(str::to_string);
            (diagnostic, None)
        }
        _ => (diagnostic, Some(ReportSite { expr, generation: body.generation() })),
    }
}

/// Adds the bindings of places that [`name_place`] returned, in one walk of the body. Expressions
/// that are not linked any more, or that no named binding contains, get none. Linear in the body
/// and the places.
pub(crate) fn name_bindings<'d>(
    cx: &Context,
    body: &Body,
    places: impl Iterator<Item = (ReportSite, &'d mut Diagnostic)>,
) {
    let mut wanted: FxHashMap<ExprId, Vec<&mut Diagnostic>> = FxHashMap::default();
    let mut atoms = false;
    for (place, diagnostic) in places {
        if place.generation == body.generation() && place.expr.index() < body.len() {
            atoms |= body.expr(place.expr).is_atom();
            wanted.entry(place.expr).or_default().push(diagnostic);
        }
    }
    if wanted.is_empty() {
        return;
    }
    let mut found = |id: ExprId, lets: &[ExprId]| {
        if let (Some(about), Some(&link)) = (wanted.remove(&id), lets.last())
            && let Some(name) = body.binding_name(cx, link)
        {
            about.into_iter().for_each(|d| d.binding = Some(name.to_string()));
        }
        wanted.is_empty()
    };
    // The Lets whose values contain the current node of the walk.
    let mut lets: Vec<ExprId> = Vec::new();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let done = match step {
            Step::Let(id) => {
                lets.push(id);
                false
            }
            Step::Bound(_) => {
                lets.pop();
                false
            }
            Step::Atom(id) | Step::Enter(id) => found(id, &lets),
            Step::Flat(id) => {
                let inputs = if atoms { body.inputs(id) } else { &[] };
                found(id, &lets) || inputs.iter().any(|&o| found(o, &lets))
            }
            Step::EnterBlock(..) | Step::ExitBlock(..) | Step::Exit(_) | Step::Seen(_) => false,
        };
        if done {
            break;
        }
    }
}

/// Returns the error of a pass over a body, with the binding at which the last walk of the body
/// ended, if the error may be that of a walk and names no binding.
pub(crate) fn at_stop(cx: &Context, body: &Body, error: PassError) -> PassError {
    let is_open = error.is_of_walk() && error.binding().is_none();
    let Some(stop) = body.stop().filter(|at| is_open && at.index() < body.len()) else {
        return error;
    };
    // The pass may have left a body so ill-formed that a walk of it panics. The error is returned
    // as it is then.
    let found = caught(|| {
        let (mut found, place) = name_place(cx, body, stop, Diagnostic::error(""));
        if let Some(place) = place {
            name_bindings(cx, body, std::iter::once((place, &mut found)));
        }
        Ok(found.binding)
    });
    match found.ok().flatten() {
        Some(binding) => error.or_on_binding(&binding),
        None => error,
    }
}

/// Returns the error of a pass over a module, with the function and binding at which a walk ended,
/// if the error may be that of a walk and does not name them. If walks of several functions ended
/// with errors, and the error does not name one of them, it gets no place.
pub(crate) fn at_stop_in_module(module: &Module, error: PassError) -> PassError {
    if !error.is_of_walk() {
        return error;
    }
    let is_meant = |key| error.function().is_none_or(|name| module.name(key) == name);
    let mut stopped = module.functions().filter(|(key, f)| f.body.stop().is_some() && is_meant(*key));
    match (stopped.next(), stopped.next()) {
        (Some((key, f)), None) => at_stop(&module.cx, &f.body, error.or_in_function(module.name(key))),
        _ => error,
    }
}

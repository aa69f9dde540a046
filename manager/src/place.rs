//! Where expressions stand, in words that outlive them.

use anfora_ir::{Body, Context, Cursor, Diagnostic, EntityId, Expr, ExprId, Step};
use rustc_hash::FxHashMap;

/// An expression of a body as it was numbered at some time.
#[derive(Copy, Clone)]
pub(crate) struct Place {
    expr: ExprId,
    generation: u32,
}

/// Names what can be told of an expression at once: its bytes in the source, and the binding of a Let or variable. The place is of what has to
/// be looked for.
pub(crate) fn name_place(
    cx: &Context,
    body: &Body,
    expr: ExprId,
    mut diagnostic: Diagnostic,
) -> (Diagnostic, Option<Place>) {
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
            diagnostic.binding = binding_name(cx, body, expr).map(str::to_string);
            (diagnostic, None)
        }
        _ => (diagnostic, Some(Place { expr, generation: body.generation() })),
    }
}

/// The name of a variable, or of the variable that a Let binds.
pub(crate) fn binding_name<'c>(cx: &'c Context, body: &Body, expr: ExprId) -> Option<&'c str> {
    let var = match body.expr(expr) {
        Expr::Let { var, .. } => var,
        _ => body.as_var(expr)?,
    };
    Some(cx.names.get(body.var_name(var)?))
}

/// Names the bindings of places that were left over, in one walk of the body. What is not linked any more, or stands in no named binding,
/// stays without. Linear in the body and the places.
pub(crate) fn name_bindings<'d>(cx: &Context, body: &Body, places: impl Iterator<Item = (Place, &'d mut Diagnostic)>) {
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
            && let Some(name) = binding_name(cx, body, link)
        {
            about.into_iter().for_each(|d| d.binding = Some(name.to_string()));
        }
        wanted.is_empty()
    };
    // The Lets whose values the walk is in.
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
                let mut operands: &[ExprId] = if atoms { body.operands_of(id) } else { &[] };
                let tuple;
                if let (true, Expr::Proj { tuple: of, .. }) = (atoms, body.expr(id)) {
                    tuple = [of];
                    operands = &tuple;
                }
                found(id, &lets) || operands.iter().any(|&o| found(o, &lets))
            }
            Step::EnterBlock(..) | Step::ExitBlock(..) | Step::Exit(_) | Step::Seen(_) => false,
        };
        if done {
            break;
        }
    }
}

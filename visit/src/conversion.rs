//! Conversions of values to other types, tuples field by field.

use anfora_ir::{Editor, ExprId, TypeId, VarFlags, VarId};
use smallvec::SmallVec;

use crate::error::RewriteError;

/// A tuple whose fields are being converted.
struct OpenTuple {
    tuple: ExprId,
    to: TypeId,
    fields: SmallVec<[ExprId; 4]>,
}

/// Returns a value of the type `to` made from another value. A tuple of as many fields is split,
/// and its fields are converted, at any depth; `cast` converts every other value, which is an atom.
/// Nothing is converted that has its type already. Appends the bindings that the value needs.
///
/// `editor` returns the editor of the caller's state.
///
/// Takes time linear in the types, with each type as often as it is part of the others.
///
/// # Errors
/// The errors of `cast`.
pub fn split_and_convert<'e, S, E: From<RewriteError>>(
    state: &mut S,
    editor: impl Fn(&mut S) -> &mut Editor<'e>,
    value: ExprId,
    to: TypeId,
    bindings: &mut Vec<(VarId, ExprId)>,
    mut cast: impl FnMut(&mut S, ExprId, TypeId, &mut Vec<(VarId, ExprId)>) -> Result<ExprId, E>,
) -> Result<ExprId, E> {
    let mut open: Vec<OpenTuple> = Vec::new();
    let (mut value, mut to) = (bind(editor(state), value, bindings), to);
    loop {
        let Editor { cx, body } = editor(state);
        let from = body.ty(value);
        let arity = |ty| cx.types.as_tuple(ty).map(<[TypeId]>::len);
        if from != to && arity(from).is_some() && arity(from) == arity(to) {
            open.push(OpenTuple { tuple: value, to, fields: SmallVec::new() });
        } else if from != to {
            value = cast(state, value, to, bindings)?;
        }
        // If no tuple was opened, `value` is converted: go on with the next field.
        let mut is_done = open.last().is_none_or(|tuple| tuple.tuple != value);
        loop {
            let Some(tuple) = open.last_mut() else { return Ok(value) };
            let editor = editor(state);
            if is_done {
                tuple.fields.push(bind(editor, value, bindings));
            }
            let index = tuple.fields.len();
            if let Some(&field) = editor.cx.types.as_tuple(tuple.to).and_then(|types| types.get(index)) {
                let proj = editor.proj(tuple.tuple, index as u32).map_err(RewriteError::Type)?;
                (value, to) = (bind(editor, proj, bindings), field);
                break;
            }
            value = editor.tuple(&tuple.fields);
            open.pop();
            is_done = true;
        }
    }
}

/// Returns the variable of a value, which is bound first unless it is an atom.
fn bind(editor: &mut Editor<'_>, value: ExprId, bindings: &mut Vec<(VarId, ExprId)>) -> ExprId {
    if editor.body.expr(value).is_atom() {
        return value;
    }
    let ty = editor.body.type_of(value);
    let var = editor.var(None, VarFlags::PLAIN, ty);
    bindings.push((var, value));
    var.expr()
}

//! ToMixedPrecision with mistakes.

use anfora::ir::{Editor, Expr, ExprId};

use super::{Broken, after, is_call_of, lets};
use crate::random_programs::checking::Why;

const OF: &str = "ToMixedPrecision";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: OF,
        mistake: "takes the cast of one value for that of another",
        why: &[Why::OtherResult],
        make: || after(OF, same_cast),
    },
    Broken {
        of: OF,
        mistake: "leaves out the casts back to float32",
        why: &[Why::IllFormed],
        make: || after(OF, no_cast_back),
    },
];

/// Casts the same value wherever values of one type are cast to one type.
fn same_cast(editor: &mut Editor<'_>) {
    let mut first: Vec<ExprId> = Vec::new();
    for cast in lets(editor.body) {
        if !is_call_of(editor, cast.value, &["astype"]) {
            continue;
        }
        let operand = |value: ExprId| editor.body.operands_of(value)[0];
        let types = |value: ExprId| (editor.body.ty(operand(value)), editor.body.ty(value));
        match first.iter().find(|&&other| types(other) == types(cast.value)) {
            Some(&other) => {
                let other = operand(other);
                if let Some(list) = editor.body.expr(cast.value).operand_list() {
                    editor.body.set_operand(list, 0, other);
                }
            }
            None => first.push(cast.value),
        }
    }
}

/// Uses values of `float16` in the place of their casts to `float32`, without another type.
fn no_cast_back(editor: &mut Editor<'_>) {
    for cast in lets(editor.body) {
        let is_cast = is_call_of(editor, cast.value, &["astype"]) && editor.body.var_name(cast.var).is_none();
        if !is_cast || !editor.cx.type_text(editor.body.ty(cast.value)).contains("float32") {
            continue;
        }
        let of = editor.body.operands_of(cast.value)[0];
        if let Expr::Let { var, body, flags, .. } = editor.body.expr(cast.id) {
            editor.body.set_expr(cast.id, Expr::Let { var, value: of, body, flags });
        }
    }
}

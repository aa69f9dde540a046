//! The operator `match_cast`, a cast that is checked at run time.

use anfora_ir::{Attr, Context, Editor, Expr, ExprId, TypeError, TypeId};

/// Makes a `match_cast` of a value.
pub(crate) fn match_cast(editor: &mut Editor<'_>, value: ExprId, to: TypeId) -> Result<ExprId, TypeError> {
    let match_cast = editor.cx.ops.resolve("match_cast")?;
    let to = editor.cx.attr(Attr::Type(to));
    let attrs = editor.cx.named_attrs(&[("to", to)]);
    editor.call_op(match_cast, &[value], attrs)
}

/// Returns the type that a `match_cast` casts to; `None` for any other node.
pub(crate) fn cast_type(cx: &Context, node: Expr) -> Option<TypeId> {
    let Expr::CallOp { op, attrs, .. } = node else { return None };
    if !cx.ops.facts(op).is_match_cast() {
        return None;
    }
    match *cx.attrs.get(cx.find_attr(attrs, "to")?) {
        Attr::Type(to) => Some(to),
        _ => None,
    }
}

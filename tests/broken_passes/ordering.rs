//! ConvertLayout with mistakes.

use anfora::ir::{AttrReader, Editor, Expr};

use super::{Broken, after, is_call_of, lets};
use crate::random_programs::checking::Why;

const OF: &str = "ConvertLayout";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: OF,
        mistake: "normalises along the axis that the channels had before",
        why: &[Why::OtherResult],
        make: || after(OF, old_axis),
    },
    Broken {
        of: OF,
        mistake: "permutes the image and keeps the layout of the convolution",
        why: &[Why::OtherResult],
        make: || after(OF, old_layout),
    },
];

/// Normalises along axis 1 again, where the type permits it.
fn old_axis(editor: &mut Editor<'_>) {
    with_default(editor, "nn.batch_norm", "axis");
}

/// Convolves in the default layout again, where the type permits it.
fn old_layout(editor: &mut Editor<'_>) {
    with_default(editor, "nn.conv2d", "data_layout");
}

/// Gives calls of an operator the default of an attribute, if their type stays.
fn with_default(editor: &mut Editor<'_>, operator: &str, attribute: &str) {
    for binding in lets(editor.body) {
        let Expr::CallOp { op, attrs, operands } = editor.body.expr(binding.value) else { continue };
        let reader = AttrReader { cx: editor.cx, op, attrs };
        if !is_call_of(editor, binding.value, &[operator]) || reader.raw(attribute).is_none() {
            continue;
        }
        let changed = editor.cx.with_attr(attrs, attribute, None);
        let ty = editor.body.ty(binding.value);
        editor.body.set_expr(binding.value, Expr::CallOp { op, attrs: changed, operands });
        if !editor.refresh_type(binding.value).is_ok_and(|_| editor.body.ty(binding.value) == ty) {
            editor.body.set_expr(binding.value, Expr::CallOp { op, attrs, operands });
            editor.body.set_type(binding.value, ty);
        }
    }
}

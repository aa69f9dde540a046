//! MergeCompositeFunctions with mistakes.

use std::sync::Arc;

use anfora::ir::{Editor, Expr, ExprId};
use anfora::manager::{Pass, parse_pipeline};
use anfora::visit::Binding;

use super::{Broken, each_function, exchange, in_sequence, lets, mentions, neighbours};
use crate::random_programs::checking::Why;

/// Makes groups of two backends from a program.
pub(crate) const WITH_GROUPS: &str = "FuseOpsByPattern{backend=a,patterns=\"e=exp(%x),n=negative(%x),m=multiply(%x, %y)\"},\
     FuseOpsByPattern{backend=b,patterns=\"t=tanh(%x),s=add(%x, %y)\"},\
     Normalize,ConvertToDataflow{min_size=1},MergeCompositeFunctions";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: "MergeCompositeFunctions",
        mistake: "returns the values of a group in another order",
        why: &[Why::OtherResult, Why::IllFormed, Why::Fails],
        make: || with_mistake(exchange_fields),
    },
    Broken {
        of: "MergeCompositeFunctions",
        mistake: "puts a group before a value that it needs",
        why: &[Why::IllFormed],
        make: || with_mistake(move_before_operands),
    },
];

fn with_mistake(edit: fn(&mut Editor<'_>)) -> Arc<dyn Pass> {
    let groups = parse_pipeline(&anfora::passes::registry(), WITH_GROUPS).expect("registered passes");
    in_sequence([Arc::new(groups), each_function(edit)])
}

/// Returns true if a value is a call of a group.
fn is_group(editor: &Editor<'_>, value: ExprId) -> bool {
    let Expr::Call { .. } = editor.body.expr(value) else { return false };
    let Expr::Global(global) = editor.body.expr(editor.body.inputs(value)[0]) else { return false };
    editor.cx.global_name(global).ends_with("_a") || editor.cx.global_name(global).ends_with("_b")
}

/// Exchanges the first two fields of the tuples that groups return.
fn exchange_fields(editor: &mut Editor<'_>) {
    for Binding { var, value, .. } in lets(editor.body) {
        if !is_group(editor, value) {
            continue;
        }
        for Binding { value, .. } in lets(editor.body) {
            if let Expr::Proj { tuple, index } = editor.body.expr(value)
                && tuple == var.expr()
                && index < 2
            {
                editor.body.set_expr(value, Expr::Proj { tuple, index: 1 - index });
            }
        }
    }
}

fn move_before_operands(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        if is_group(editor, second.value) && mentions(editor.body, second.value, first.var) {
            exchange(editor.body, &first, &second);
            return;
        }
    }
}

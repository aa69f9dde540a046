//! CombineParallelMatmul with mistakes.

use anfora::ir::{AttrReader, Editor, Expr};

use super::{Broken, after, before, is_call_of, lets, mentions, neighbours};
use crate::random_programs::checking::Why;

const OF: &str = "CombineParallelMatmul";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: OF,
        mistake: "gives the parts in another order",
        why: &[Why::OtherResult],
        make: || after(OF, exchange_parts),
    },
    Broken {
        of: OF,
        mistake: "takes the activation of one product for that of all",
        why: &[Why::OtherResult],
        make: || before(OF, same_activation),
    },
    Broken {
        of: OF,
        mistake: "takes the bias of one product for that of all",
        why: &[Why::OtherResult],
        make: || before(OF, same_bias),
    },
];

/// Exchanges the first two parts of each split of columns, if they have the same type.
fn exchange_parts(editor: &mut Editor<'_>) {
    for split in lets(editor.body) {
        let Expr::CallOp { op, attrs, .. } = editor.body.expr(split.value) else { continue };
        let reader = AttrReader { cx: editor.cx, op, attrs };
        if !is_call_of(editor, split.value, &["split"]) || reader.int("axis") != Some(1) {
            continue;
        }
        let parts = lets(editor.body).into_iter().filter_map(|b| match editor.body.expr(b.value) {
            Expr::Proj { tuple, index } if tuple == split.var.expr() && index < 2 => Some((b.value, index)),
            _ => None,
        });
        let parts: Vec<_> = parts.collect();
        if let &[(first, 0), (second, 1)] = &parts[..]
            && editor.body.ty(first) == editor.body.ty(second)
        {
            for (part, index) in [(first, 1), (second, 0)] {
                editor.body.set_expr(part, Expr::Proj { tuple: split.var.expr(), index });
            }
        }
    }
}

/// Replaces the activation of a product of a constant by `nn.relu`.
fn same_activation(editor: &mut Editor<'_>) {
    let Some(relu) = editor.cx.ops.find("nn.relu") else { return };
    for (product, step) in neighbours(editor.body) {
        let is_constant =
            editor.body.operands_of(product.value).get(1).is_some_and(|&w| editor.body.as_literal(w).is_some());
        let is_pair = is_constant
            && is_call_of(editor, product.value, &["matmul"])
            && is_call_of(editor, step.value, &["negative", "tanh"])
            && mentions(editor.body, step.value, product.var);
        if let (true, Expr::CallOp { operands, attrs, .. }) = (is_pair, editor.body.expr(step.value)) {
            editor.body.set_expr(step.value, Expr::CallOp { op: relu, operands, attrs });
        }
    }
}

/// Gives all products of constants that have a bias of one type the first such bias.
fn same_bias(editor: &mut Editor<'_>) {
    let mut biases = Vec::new();
    for (product, sum) in neighbours(editor.body) {
        let is_pair = is_call_of(editor, product.value, &["matmul"])
            && is_call_of(editor, sum.value, &["add"])
            && mentions(editor.body, sum.value, product.var);
        let Some(&bias) = editor.body.operands_of(sum.value).get(1).filter(|_| is_pair) else { continue };
        let Some(list) = editor.body.expr(sum.value).operand_list() else { continue };
        if editor.body.as_literal(bias).is_none() {
            continue;
        }
        let ty = editor.body.ty(bias);
        match biases.iter().find(|(of, _)| *of == ty) {
            Some(&(_, first)) => editor.body.set_operand(list, 1, first),
            None => biases.push((ty, bias)),
        }
    }
}

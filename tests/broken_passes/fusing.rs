//! FuseOps, FuseOpsByPattern and FoldBatchNorm, with mistakes.

use anfora::ir::{Editor, Expr, Literal};

use super::{Broken, after, before, exchange, in_sequence, is_call_of, lets, mentions, neighbours, registered};
use crate::random_programs::checking::Why;

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: "FuseOpsByPattern",
        mistake: "takes another activation",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || after("FuseOpsByPattern", exchange_activations),
    },
    Broken {
        of: "FuseOpsByPattern",
        mistake: "puts the call in the place of the first value of the match",
        why: &[Why::IllFormed],
        make: || after("FuseOpsByPattern", call_first),
    },
    Broken {
        of: "FuseOps",
        mistake: "passes arguments in another order",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || in_sequence([registered("ConvertToDataflow"), after("FuseOps", exchange_arguments)]),
    },
    Broken {
        of: "FuseOps",
        mistake: "puts a group before a cast whose symbol it needs",
        why: &[Why::IllFormed],
        make: || after("FuseOps", move_before_casts),
    },
    Broken {
        of: "FoldBatchNorm",
        mistake: "takes the mean for the bias",
        why: &[Why::OtherResult],
        make: || before("FoldBatchNorm", |editor| exchange_statistics(editor, 2, 3)),
    },
    Broken {
        of: "FoldBatchNorm",
        mistake: "takes the variance for the scale",
        why: &[Why::OtherResult],
        make: || before("FoldBatchNorm", |editor| exchange_statistics(editor, 1, 4)),
    },
    Broken {
        of: "FoldBatchNorm",
        mistake: "scales what was added before without scaling it",
        why: &[Why::OtherResult],
        make: || before("FoldBatchNorm", forget_the_scale),
    },
    Broken {
        of: "FoldBatchNorm",
        mistake: "takes a negative scale through nn.relu",
        why: &[Why::OtherResult],
        make: || before("FoldBatchNorm", scale_after_relu),
    },
    Broken {
        of: "FoldBatchNorm",
        mistake: "makes a shift before a convolution a bias where zeros stand around the operand",
        why: &[Why::OtherResult],
        make: || before("FoldBatchNorm", shift_the_padding),
    },
];

/// Exchanges two arguments of one type in each call of a group. (A group has one output, so outputs
/// have no order.)
fn exchange_arguments(editor: &mut Editor<'_>) {
    for b in lets(editor.body) {
        let Expr::Call { operands, .. } = editor.body.expr(b.value) else { continue };
        let list = editor.body.operands(operands).to_vec();
        let Expr::Global(callee) = editor.body.expr(list[0]) else { continue };
        let fused = editor.cx.global_name(callee).starts_with("fused");
        let ty = |i: usize| editor.body.ty(list[i]);
        let same = (2..list.len()).find(|&i| ty(i) == ty(i - 1) && list[i] != list[i - 1]);
        if let (true, Some(i)) = (fused, same) {
            editor.body.set_operand(operands, i, list[i - 1]);
            editor.body.set_operand(operands, i - 1, list[i]);
        }
    }
}

/// Makes activations of products absolute values.
fn exchange_activations(editor: &mut Editor<'_>) {
    let Ok(abs) = editor.cx.ops.resolve("abs") else { return };
    for (first, second) in neighbours(editor.body) {
        let is_activated = is_call_of(editor, first.value, &["matmul", "add"])
            && is_call_of(editor, second.value, &["tanh", "sigmoid"])
            && mentions(editor.body, second.value, first.var);
        if let (true, Expr::CallOp { operands, attrs, .. }) = (is_activated, editor.body.expr(second.value)) {
            editor.body.set_expr(second.value, Expr::CallOp { op: abs, operands, attrs });
        }
    }
}

/// Exchanges each call of a function that was made with the binding of an argument before it.
fn call_first(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        let Expr::Call { operands, .. } = editor.body.expr(second.value) else { continue };
        let Expr::Global(callee) = editor.body.expr(editor.body.operand(operands, 0)) else { continue };
        let fused = editor.cx.global_name(callee).starts_with("fused");
        if fused && mentions(editor.body, second.value, first.var) {
            exchange(editor.body, &first, &second);
        }
    }
}

fn move_before_casts(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        let symbolic = editor.cx.types.is_symbolic(editor.body.ty(second.value));
        let cast =
            is_call_of(editor, first.value, &["match_cast"]) && !is_call_of(editor, second.value, &["match_cast"]);
        if cast && symbolic && !mentions(editor.body, second.value, first.var) {
            exchange(editor.body, &first, &second);
        }
    }
}

fn exchange_statistics(editor: &mut Editor<'_>, i: usize, j: usize) {
    for b in lets(editor.body) {
        if !is_call_of(editor, b.value, &["nn.batch_norm"]) {
            continue;
        }
        let operands = editor.body.operands_of(b.value).to_vec();
        let Some(list) = editor.body.expr(b.value).operand_list() else { continue };
        editor.body.set_operand(list, i, operands[j]);
        editor.body.set_operand(list, j, operands[i]);
    }
}

/// If a sum goes into a multiplication, replaces its constant term by zero.
fn forget_the_scale(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        let scaled = is_call_of(editor, second.value, &["multiply", "nn.batch_norm"]);
        let per_channel = editor.body.operands_of(first.value).get(1).and_then(|&o| editor.body.as_literal(o));
        let Some(literal) = per_channel.filter(|_| scaled && is_call_of(editor, first.value, &["add"])) else {
            continue;
        };
        let shape = editor.cx.literals.get(literal).shape().to_vec();
        if shape != [2, 1, 1] || !mentions(editor.body, second.value, first.var) {
            continue;
        }
        let nothing = editor.literal(Literal::splat(&shape, 0f32));
        let Some(list) = editor.body.expr(first.value).operand_list() else { continue };
        editor.body.set_operand(list, 1, nothing);
    }
}

/// Exchanges a scale and the nn.relu that follows it.
fn scale_after_relu(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        if !is_call_of(editor, first.value, &["multiply"])
            || !is_call_of(editor, second.value, &["nn.relu"])
            || !mentions(editor.body, second.value, first.var)
        {
            continue;
        }
        let operands = editor.body.operands_of(first.value).to_vec();
        let (x, scale) = (operands[0], operands[1]);
        if editor.body.as_literal(scale).is_none() || editor.body.ty(x) != editor.body.ty(first.value) {
            continue;
        }
        for (value, operands) in [(second.value, &[x][..]), (first.value, &[first.var.expr(), scale][..])] {
            let Expr::CallOp { op, attrs, .. } = editor.body.expr(value) else { continue };
            let operands = editor.body.push_operands(operands);
            editor.body.set_expr(value, Expr::CallOp { op, operands, attrs });
        }
        for (at, value) in [(&first, second.value), (&second, first.value)] {
            let Expr::Let { var, body: rest, flags, .. } = editor.body.expr(at.id) else { continue };
            editor.body.set_expr(at.id, Expr::Let { var, value, body: rest, flags });
        }
    }
}

/// Replaces a shift before a convolution by a bias of the convolution: the shift times the weights.
fn shift_the_padding(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        let is_pair = is_call_of(editor, first.value, &["add"])
            && is_call_of(editor, second.value, &["nn.conv2d"])
            && mentions(editor.body, second.value, first.var);
        let (shifted, conv) = (editor.body.operands_of(first.value).to_vec(), editor.body.operands_of(second.value));
        let constant = |id: anfora::ir::ExprId| {
            let literal = editor.cx.literals.get(editor.body.as_literal(id)?);
            Some((literal.shape().to_vec(), literal.elements::<f32>()?.to_vec()))
        };
        let (true, [_, by], &[_, weight]) = (is_pair, &shifted[..], conv) else { continue };
        let (Some((by_shape, by)), Some((shape, weights))) = (constant(*by), constant(weight)) else { continue };
        if by_shape != [2, 1, 1] || shape != [2, 2, 1, 1] {
            continue;
        }
        let bias: Vec<f32> = weights.chunks(2).map(|w| w[0] * by[0] + w[1] * by[1]).collect();
        let bias = editor.literal(Literal::from_elements(&[2], &bias).expect("a number a channel"));
        let Expr::CallOp { op, attrs, .. } = editor.body.expr(second.value) else { continue };
        let operands = editor.body.push_operands(&[shifted[0], weight, bias]);
        editor.body.set_expr(second.value, Expr::CallOp { op, operands, attrs });
    }
}

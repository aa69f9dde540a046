//! FuseOps and FoldBatchNorm, badly.

use anfora::ir::{Editor, Expr, Literal};

use super::{Broken, after, before, exchange, in_sequence, is_call_of, lets, mentions, neighbours, registered};
use crate::random_programs::checking::Why;

pub(super) const BROKEN: &[Broken] = &[
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
];

/// Of each call of a group, two arguments of one type. (A group has one output, so outputs have no order.)
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

/// Where a sum goes into a multiplication, only one of its terms does.
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

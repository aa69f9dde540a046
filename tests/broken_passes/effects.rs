//! Passes that move what can be observed, with mistakes: ToANormalForm, ToGraphNormalForm,
//! Normalize and InlineFunctions.

use anfora::ir::{Editor, Expr, LetFlags};
use anfora::visit::Binding;

use super::{Broken, after, exchange, is_call_of, lets, mentions, neighbours};
use crate::random_programs::checking::Why;

const IMPURE: &[&str] = &["print", "assert", "random.uniform"];

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: "ToANormalForm",
        mistake: "hoists an impure call out of a branch",
        why: &[Why::OtherEffects, Why::OtherResult],
        make: || after("ToANormalForm", hoist_out_of_branches),
    },
    Broken {
        of: "ToANormalForm",
        mistake: "evaluates in another order",
        why: &[Why::OtherEffects, Why::OtherResult],
        make: || after("ToANormalForm", exchange_effects),
    },
    Broken {
        of: "ToGraphNormalForm",
        mistake: "sinks an impure binding into a branch",
        why: &[Why::OtherEffects, Why::OtherResult, Why::IllFormed],
        make: || after("ToGraphNormalForm", sink_into_branches),
    },
    Broken {
        of: "ToGraphNormalForm",
        mistake: "shares an impure call where it is used",
        why: &[Why::IllFormed],
        make: || after("ToGraphNormalForm", share_impure_values),
    },
    Broken {
        of: "Normalize",
        mistake: "flattens blocks in another order",
        why: &[Why::OtherEffects, Why::OtherResult],
        make: || after("Normalize", exchange_effects),
    },
    Broken {
        of: "InlineFunctions",
        mistake: "reorders effects",
        why: &[Why::OtherEffects, Why::OtherResult],
        make: || after("InlineFunctions", exchange_effects),
    },
];

fn is_impure(editor: &Editor<'_>, b: &Binding) -> bool {
    is_call_of(editor, b.value, IMPURE)
}

fn exchange_effects(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        if is_impure(editor, &first) && is_impure(editor, &second) && !mentions(editor.body, second.value, first.var) {
            exchange(editor.body, &first, &second);
            return;
        }
    }
}

/// Moves the first binding of a branch in front of the If, if the binding is impure.
fn hoist_out_of_branches(editor: &mut Editor<'_>) {
    for b in lets(editor.body) {
        let Expr::If { cond, then_block, else_block } = editor.body.expr(b.value) else { continue };
        let Some(first) = Binding::of(editor.body, then_block) else { continue };
        if !is_impure(editor, &first) || b.flags.is_dataflow() {
            continue;
        }
        let body = &mut *editor.body;
        body.set_expr(b.value, Expr::If { cond, then_block: first.rest, else_block });
        let ty = body.ty(b.id);
        let choice = Expr::Let { var: b.var, value: b.value, body: b.rest, flags: b.flags };
        let choice = body.push(choice, ty, None);
        body.set_expr(b.id, Expr::Let { var: first.var, value: first.value, body: choice, flags: LetFlags::PLAIN });
        return;
    }
}

/// Moves the binding right before an If to the beginning of its first branch, if the binding is
/// impure.
fn sink_into_branches(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        let Expr::If { cond, then_block, else_block } = editor.body.expr(second.value) else { continue };
        if !is_impure(editor, &first) || cond == first.var.expr() || second.flags.is_dataflow() {
            continue;
        }
        let body = &mut *editor.body;
        let ty = body.ty(first.id);
        let sunk = Expr::Let { var: first.var, value: first.value, body: then_block, flags: LetFlags::PLAIN };
        let sunk = body.push(sunk, ty, None);
        body.set_expr(second.value, Expr::If { cond, then_block: sunk, else_block });
        let choice = Expr::Let { var: second.var, value: second.value, body: second.rest, flags: LetFlags::PLAIN };
        body.set_expr(first.id, choice);
        return;
    }
}

fn share_impure_values(editor: &mut Editor<'_>) {
    for b in
        lets(editor.body).into_iter().filter(|b| is_call_of(editor, b.value, &["random.uniform"])).collect::<Vec<_>>()
    {
        let user = lets(editor.body).into_iter().find(|u| editor.body.operands_of(u.value).contains(&b.var.expr()));
        let Some(user) = user else { continue };
        let Some(list) = editor.body.expr(user.value).operand_list() else { continue };
        let at = editor.body.operands(list).iter().position(|&o| o == b.var.expr());
        editor.body.set_operand(list, at.expect("it was just found there"), b.value);
        return;
    }
}

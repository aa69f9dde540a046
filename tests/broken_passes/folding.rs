//! FoldConstant and CanonicalizeBindings, with mistakes.

use std::sync::Arc;

use anfora::ir::{DType, Editor, Expr, Literal};
use anfora::manager::{FunctionPass, Pass, PassError};
use anfora::visit::Link;

use super::{Broken, after, before, is_call_of, lets};
use crate::random_programs::checking::Why;

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: "FoldConstant",
        mistake: "takes the other branch",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || before("FoldConstant", turn_conditions),
    },
    Broken {
        of: "FoldConstant",
        mistake: "saturates where the operators wrap around",
        why: &[Why::OtherResult],
        make: || before("FoldConstant", saturate),
    },
    Broken {
        of: "FoldConstant",
        mistake: "fails because a call that is not evaluated would fail",
        why: &[Why::Fails],
        make: fail_with_calls,
    },
    Broken {
        of: "CanonicalizeBindings",
        mistake: "projects another field",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || before("CanonicalizeBindings", project_another),
    },
    Broken {
        of: "CanonicalizeBindings",
        mistake: "hides an output that is used",
        why: &[Why::IllFormed],
        make: || after("CanonicalizeBindings", super::regions::hide_outputs),
    },
    Broken {
        of: "CanonicalizeBindings",
        mistake: "takes an alias for one of the value before it",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || before("CanonicalizeBindings", alias_the_one_before),
    },
];

/// Turns the known conditions of Ifs whose branches have the same type. The others have the type of
/// the taken branch.
fn turn_conditions(editor: &mut Editor<'_>) {
    for b in lets(editor.body) {
        let Expr::If { cond, then_block, else_block } = editor.body.expr(b.value) else { continue };
        if editor.body.type_of(then_block) != editor.body.type_of(else_block) {
            continue;
        }
        let Some(known) = editor.body.as_literal(cond) else { continue };
        let truth = editor.cx.literals.get(known).as_scalar::<bool>() == Some(true);
        let other = editor.literal(Literal::scalar(!truth));
        Link::Cond(b.value).set(editor.body, other);
    }
}

fn saturate(editor: &mut Editor<'_>) {
    for b in lets(editor.body) {
        let id = b.value;
        if !is_call_of(editor, id, &["add", "multiply", "subtract"]) {
            continue;
        }
        let operands = editor.body.operands_of(id).to_vec();
        let number = |&o| {
            let literal = editor.cx.literals.get(editor.body.as_literal(o)?);
            (literal.dtype() == DType::Int64).then(|| literal.as_scalar::<i64>())?
        };
        let numbers: Vec<i64> = operands.iter().filter_map(number).collect();
        let [x, y] = numbers[..] else { continue };
        let result = if is_call_of(editor, id, &["add"]) {
            x.saturating_add(y)
        } else if is_call_of(editor, id, &["multiply"]) {
            x.saturating_mul(y)
        } else {
            x.saturating_sub(y)
        };
        let result = editor.literal(Literal::scalar(result));
        Link::Value(b.id).set(editor.body, result);
    }
}

fn fail_with_calls() -> Arc<dyn Pass> {
    Arc::new(FunctionPass::new("FoldConstant", 2, |function, _, _| {
        let editor = function.editor();
        let zero = |id| {
            let literal = editor.body.as_literal(id).map(|l| editor.cx.literals.get(l));
            literal.is_some_and(|l| l.as_scalar::<i64>() == Some(0))
        };
        for b in lets(editor.body) {
            if is_call_of(&editor, b.value, &["floor_divide"]) && zero(editor.body.operands_of(b.value)[1]) {
                return Err(PassError::new("division by zero"));
            }
        }
        Ok(())
    }))
}

pub(super) fn project_another(editor: &mut Editor<'_>) {
    for b in lets(editor.body) {
        let Expr::Proj { tuple, index } = editor.body.expr(b.value) else { continue };
        let types = &editor.cx.types;
        let Some(fields) = types.as_tuple(editor.body.ty(tuple)) else { continue };
        let other = (index as usize + 1) % fields.len();
        if fields[other] == fields[index as usize] {
            editor.body.set_expr(b.value, Expr::Proj { tuple, index: other as u32 });
        }
    }
}

fn alias_the_one_before(editor: &mut Editor<'_>) {
    for (first, second) in super::neighbours(editor.body) {
        let is_alias = matches!(editor.body.expr(second.value), Expr::Var { .. });
        if is_alias && editor.body.ty(first.var.expr()) == editor.body.ty(second.value) {
            Link::Value(second.id).set(editor.body, first.var.expr());
        }
    }
}

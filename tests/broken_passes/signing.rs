//! RemoveUnusedParameters, RemoveUnusedOutputs and LiftTransformParams, with mistakes.

use std::sync::Arc;

use anfora::ir::{Attr, Body, Editor, Expr, ExprId, Purity};
use anfora::manager::{ModulePass, Pass};
use anfora::passes::{LiftOptions, NUM_INPUT, lift_transform_params};

use super::{Broken, after, before, lets};
use crate::random_programs::checking::Why;

const PARAMETERS: &str = "RemoveUnusedParameters";
const OUTPUTS: &str = "RemoveUnusedOutputs";
const WEIGHTS: &str = "LiftTransformParams";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: PARAMETERS,
        mistake: "takes a parameter that is used for unused, and another for it",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || before(PARAMETERS, take_another_parameter),
    },
    Broken {
        of: PARAMETERS,
        mistake: "removes the argument of another parameter",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || after(PARAMETERS, exchange_arguments),
    },
    Broken {
        of: OUTPUTS,
        mistake: "does not count the outputs before a projection again",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || after(OUTPUTS, exchange_projections),
    },
    Broken {
        of: OUTPUTS,
        mistake: "keeps another output of the same type",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || before(OUTPUTS, exchange_outputs),
    },
    Broken {
        of: WEIGHTS,
        mistake: "takes the last parameter of a function without the attribute for a weight",
        why: &[Why::OtherResult, Why::OtherEffects, Why::Fails],
        make: || of_all_definitions(|params| params - 1),
    },
    Broken {
        of: WEIGHTS,
        mistake: "takes all parameters of functions without the attribute for weights",
        why: &[Why::OtherResult, Why::OtherEffects, Why::Fails],
        make: || of_all_definitions(|_| 0),
    },
];

/// Returns LiftTransformParams on a module whose functions with parameters have got the attribute.
fn of_all_definitions(inputs: fn(i64) -> i64) -> Arc<dyn Pass> {
    Arc::new(ModulePass::new(WEIGHTS, 0, move |module, _| {
        for key in module.order().to_vec() {
            let Some((function, cx)) = module.get_mut(key).filter(|(f, _)| f.is_definition()) else { continue };
            let params = function.body.params().len() as i64;
            if params > 0 {
                let number = cx.attr(Attr::Int(inputs(params)));
                function.attrs = cx.named_attrs(&[(NUM_INPUT, number)]);
            }
        }
        let purity = Purity::of_module(module);
        lift_transform_params(module, &purity, &LiftOptions::default())?;
        Ok(())
    }))
}

/// Returns the operands of a call of a function of the module.
fn arguments(body: &Body, value: ExprId) -> Option<Vec<ExprId>> {
    let Expr::Call { operands, .. } = body.expr(value) else { return None };
    let operands = body.operands(operands);
    matches!(body.expr(operands[0]), Expr::Global(_)).then(|| operands[1..].to_vec())
}

/// Replaces the uses of each parameter in flat values by another parameter of its type.
fn take_another_parameter(editor: &mut Editor<'_>) {
    let params = editor.body.params().to_vec();
    let ty = |editor: &Editor<'_>, i: usize| editor.body.ty(params[i].expr());
    let Some(i) = (1..params.len()).find(|&i| ty(editor, i) == ty(editor, i - 1)) else { return };
    let (from, to) = (params[i].expr(), params[i - 1].expr());
    for b in lets(editor.body) {
        let Some(list) = editor.body.expr(b.value).operand_list() else { continue };
        for at in 0..list.len() {
            if editor.body.operand(list, at) == from {
                editor.body.set_operand(list, at, to);
            }
        }
    }
}

/// Exchanges two arguments of one type in each call of a function.
fn exchange_arguments(editor: &mut Editor<'_>) {
    for b in lets(editor.body) {
        let Some(arguments) = arguments(editor.body, b.value) else { continue };
        let Some(list) = editor.body.expr(b.value).operand_list() else { continue };
        let ty = |i: usize| editor.body.ty(arguments[i]);
        let same = (1..arguments.len()).find(|&i| ty(i) == ty(i - 1) && arguments[i] != arguments[i - 1]);
        if let Some(i) = same {
            editor.body.set_operand(list, i + 1, arguments[i - 1]);
            editor.body.set_operand(list, i, arguments[i]);
        }
    }
}

/// Returns the projections of the results of calls of functions.
fn projections(editor: &Editor<'_>) -> Vec<(ExprId, ExprId, u32)> {
    let all = lets(editor.body);
    let results: Vec<ExprId> =
        all.iter().filter(|b| arguments(editor.body, b.value).is_some()).map(|b| b.var.expr()).collect();
    let projection = |value: ExprId| match editor.body.expr(value) {
        Expr::Proj { tuple, index } if results.contains(&tuple) => Some((value, tuple, index)),
        _ => None,
    };
    all.iter().filter_map(|b| projection(b.value)).collect()
}

/// Projects the first field of a call's result for the second, and the other way round, if both
/// have the same type.
fn exchange_projections(editor: &mut Editor<'_>) {
    let all = projections(editor);
    let type_of = |wanted: (ExprId, u32)| {
        all.iter().find(|&&(_, tuple, index)| (tuple, index) == wanted).map(|&(value, ..)| editor.body.ty(value))
    };
    let other = |&(value, tuple, index): &(ExprId, ExprId, u32)| {
        let other = 1u32.checked_sub(index)?;
        (type_of((tuple, other)) == Some(editor.body.ty(value))).then_some((value, tuple, other))
    };
    let exchanged: Vec<_> = all.iter().filter_map(other).collect();
    for (value, tuple, index) in exchanged {
        editor.body.set_expr(value, Expr::Proj { tuple, index });
    }
}

/// Exchanges neighbouring fields of one type of tuples that are made at the end of a function.
fn exchange_outputs(editor: &mut Editor<'_>) {
    let tail = editor.body.tail(editor.body.root());
    let bound = lets(editor.body).into_iter().find(|b| b.var.expr() == tail).map(|b| b.value);
    let tuple = bound.unwrap_or(tail);
    let (Expr::Tuple(list), fields) = (editor.body.expr(tuple), editor.body.operands_of(tuple).to_vec()) else {
        return;
    };
    let ty = |i: usize| editor.body.ty(fields[i]);
    let same = (1..fields.len()).find(|&i| ty(i) == ty(i - 1) && fields[i] != fields[i - 1]);
    if let Some(i) = same {
        editor.body.set_operand(list, i, fields[i - 1]);
        editor.body.set_operand(list, i - 1, fields[i]);
    }
}

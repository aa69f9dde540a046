//! Layouts: ONNX has its operators in one layout only.

use anfora_ir::{AxisOrder, Body, Context, Expr, ExprId, FunctionKey, LayoutRequest, Module, Relayout};
use anfora_passes::{DesiredLayouts, convert_layout, to_a_normal_form};

use crate::error::{ExportError, ExportProblem};

/// Returns the module in which all calls have the layouts of ONNX, between permutations of their
/// operands and results. Permutations that meet cancel, also across operators that compute on any
/// order of axes. Returns `None` if all calls have these layouts already.
///
/// # Errors
/// If a function cannot be rewritten.
pub(super) fn in_layouts_of_onnx(module: &Module) -> Result<Option<Module>, ExportError> {
    let has_others = |body: &Body| body.exprs().any(|(id, _)| has_another_layout(&module.cx, body, id));
    let functions: Vec<FunctionKey> =
        module.functions().filter(|(_, function)| has_others(&function.body)).map(|(key, _)| key).collect();
    if functions.is_empty() {
        return Ok(None);
    }
    let mut module = module.clone();
    for key in functions {
        let name = module.name(key).to_owned();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        to_a_normal_form(cx, &mut function.body);
        convert_layout(cx, function, &DesiredLayouts::Plain).map_err(|error| ExportError {
            function: name,
            binding: None,
            problem: ExportProblem::Unsupported(format!("a call in another layout: {}", error.message())),
        })?;
    }
    Ok(Some(module))
}

/// Returns true if an expression is a call with another layout than that of ONNX.
pub(super) fn has_another_layout(cx: &Context, body: &Body, call: ExprId) -> bool {
    let Expr::CallOp { attrs, .. } = body.expr(call) else { return false };
    if attrs == cx.attrs.empty() {
        return false;
    }
    let answer = Relayout::of(cx, body, call, &LayoutRequest::Plain).ok().flatten();
    answer.is_some_and(|answer| answer.operands.iter().flatten().any(|order: &AxisOrder| !order.is_identity()))
}

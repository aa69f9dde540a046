//! Attributes of calls, by the name of the call's value.

use anfora_ir::{
    Attr, AttrId, AttrKind, AttrsId, Body, Context, Diagnostic, Diagnostics, Editor, Expr, ExprId, Function,
    IntoDiagnostics, Module, Retype, parse_attr, update_signatures,
};
use anfora_visit::{Binding, bindings};

use super::{edit, find_entry, retype, unknown, without_sigil};

/// Sets an attribute of a call. The call is found by the name of its value, or by the name of its
/// node in the ONNX file; values in branches and `fn`s are found too.
///
/// The attribute is one of the operator of the program (`anfora ops` lists them), and `value` is
/// written as in the text format: `1`, `[0, 1]`, `true`, `0.5`. Text needs no quotes if the
/// attribute is a text. A node of a model that no operator stands for, a call of `onnx.…`, takes
/// any attribute, and keeps its type.
///
/// Linear in the function.
///
/// # Errors
/// If no call has the name, or two have it; if the operator has no such attribute, or the value is
/// none that the attribute takes; or if the types of the program do not fit together then.
pub fn set_attribute(
    module: &mut Module,
    entry: &str,
    node: &str,
    attribute: &str,
    value: &str,
) -> Result<(), Diagnostics> {
    edit(module, |module| {
        let key = find_entry(module, entry)?;
        let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
        let (call, name) = find_call(cx, &function.body, node)?;
        let fault = |error: Diagnostic| error.in_function(entry).on_binding(name.clone());
        set_on_call(cx, function, call, (attribute, value))
            .map_err(|e| e.into_iter().map(fault).collect::<Diagnostics>())?;
        update_signatures(module, &[key]).map_err(IntoDiagnostics::into_diagnostics)
    })
}

fn set_on_call(
    cx: &mut Context,
    function: &mut Function,
    call: ExprId,
    (attribute, text): (&str, &str),
) -> Result<(), Diagnostics> {
    let Expr::CallOp { op, operands, attrs } = function.body.expr(call) else { return Ok(()) };
    let value = attribute_value(cx, op, attribute, text)?;
    let attrs: AttrsId = cx.with_attr(attrs, attribute, Some(value));
    let attrs = cx.check_op_attrs(op, attrs).map_err(|(error, _)| error.into_diagnostics())?;
    let body = &mut function.body;
    body.set_expr(call, Expr::CallOp { op, operands, attrs });
    if cx.ops.is_opaque(op) {
        return Ok(());
    }
    if Editor::new(cx, body).refresh_type(call).map_err(IntoDiagnostics::into_diagnostics)? {
        function.ret = None;
        let mut changed = Retype::new(body);
        changed.changed(call);
        retype(cx, body, changed)?;
    }
    Ok(())
}

/// Reads the value of an attribute of an operator.
fn attribute_value(cx: &mut Context, op: anfora_ir::OpId, attribute: &str, text: &str) -> Result<AttrId, Diagnostics> {
    let row = cx.ops.get(op);
    let is_text = row.attrs.iter().any(|a| a.name == attribute && a.kind == AttrKind::Str);
    if is_text && !text.trim_start().starts_with('"') {
        let name = cx.names.intern(text);
        return Ok(cx.attr(Attr::Str(name)));
    }
    parse_attr(cx, text).map_err(|errors| {
        let reason = errors.first().map_or(String::new(), |e| format!(": {}", e.message));
        let error = Diagnostic::error(format!("`{text}` is not a value of an attribute{reason}"));
        Diagnostics::from(
            error.with_help("values are written as in the text format: `1`, `[0, 1]`, `true`, `\"text\"`"),
        )
    })
}

/// Returns the call that a name stands for, and the name of its binding.
fn find_call(cx: &Context, body: &Body, node: &str) -> Result<(ExprId, String), Diagnostics> {
    let name_of = |b: &Binding| body.var_name(b.var).map_or("", |name| cx.names.get(name));
    let is_value = |name: &str| bindings(body, body.root()).any(|b| name_of(&b) == name);
    let bare = without_sigil(node, is_value);
    let found: Vec<Binding> = bindings(body, body.root()).filter(|b| name_of(b) == bare).collect();
    #[cfg(feature = "onnx")]
    let found = if found.is_empty() {
        let is_node = |b: &Binding| body.meta(b.var.expr()).and_then(|m| anfora_onnx::node_name(cx, m)) == Some(node);
        bindings(body, body.root()).filter(is_node).collect()
    } else {
        found
    };
    let binding = match found[..] {
        [] => {
            let names: Vec<&str> = bindings(body, body.root()).map(|b| name_of(&b)).collect();
            return Err(missing(cx, body, bare, &names).into());
        }
        [binding] => binding,
        _ => return Err(Diagnostic::error(format!("{} bindings have the name `{bare}`", found.len())).into()),
    };
    // The results of a node with several outputs are fields of its value.
    let call = match body.expr(binding.value) {
        Expr::Proj { tuple, .. } => {
            bindings(body, body.root()).find(|b| b.var.expr() == tuple).map_or(binding.value, |b| b.value)
        }
        _ => binding.value,
    };
    match body.expr(call) {
        Expr::CallOp { .. } => Ok((call, name_of(&binding).to_string())),
        _ => {
            let error = Diagnostic::error(format!("`%{bare}` is not the result of an operator"));
            Err(error.with_help("only calls of operators have attributes").into())
        }
    }
}

/// Returns the error for a name that no binding has: the nearest name of a value or of a node.
fn missing(cx: &Context, body: &Body, name: &str, values: &[&str]) -> Diagnostic {
    #[cfg(feature = "onnx")]
    {
        let metas = bindings(body, body.root()).filter_map(|b| body.meta(b.var.expr()));
        let nodes: Vec<&str> = metas.filter_map(|meta| anfora_onnx::node_name(cx, meta)).collect();
        use anfora_ir::did_you_mean;

        if did_you_mean(name, values.iter().copied()).is_none()
            && let Some(near) = did_you_mean(name, nodes)
        {
            return Diagnostic::error(format!("there is no node `{name}`"))
                .with_help(format!("did you mean `{near}`?"));
        }
    }
    let _ = (cx, body);
    unknown("node", "", name, values.iter().copied().filter(|n| !n.is_empty()))
}

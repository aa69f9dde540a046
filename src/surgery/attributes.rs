//! Attributes of calls, by the names of their values.

use anfora_ir::{
    AttrId, AttrKind, AttrValue, AttrsId, Body, Context, Diagnostic, Diagnostics, Expr, ExprId, Function,
    IntoDiagnostics, Module, OpId, Retype, did_you_mean, parse_attr, update_signatures,
};
#[cfg(feature = "onnx")]
use anfora_onnx::node_name;
use anfora_visit::{Binding, bindings};
use rustc_hash::FxHashMap;

use super::{edit, find_entry, retype, unknown, without_sigil};

/// A new value of an attribute of a call: see [`set_attributes`].
#[derive(Clone, PartialEq, Debug)]
pub struct AttributeEdit {
    /// The name of the call's value, or the name of its node in the ONNX file.
    pub node: String,
    /// The name of the attribute.
    pub attribute: String,
    /// The new value.
    pub value: NewAttribute,
}

impl AttributeEdit {
    /// Returns the edit that sets an attribute to a value.
    pub fn new(node: &str, attribute: &str, value: impl Into<AttrValue>) -> AttributeEdit {
        let value = NewAttribute::Value(value.into());
        AttributeEdit { node: node.to_string(), attribute: attribute.to_string(), value }
    }
}

/// The new value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub enum NewAttribute {
    /// A value as it is written in the text format: `1`, `[0, 1]`, `true`, `0.5`. Text needs no
    /// quotes if the attribute is a text.
    Text(String),
    /// A value. A string also names an element type or a type, if the attribute is one.
    Value(AttrValue),
}

/// Sets attributes of calls. A call is found by the name of its value, or by the name of its node
/// in the ONNX file; values in branches and `fn`s are found too.
///
/// The attributes are those of the operators of the program (`anfora ops` lists them). A node of a
/// model that no operator stands for, a call of `onnx.…`, takes any attribute, and keeps its type.
/// All attributes are set before types are inferred again, so values may be given that fit only
/// together. If an attribute is given several times, the last value stays.
///
/// For a model, the types that the file states beside those of the program are left out.
///
/// Linear in the function.
///
/// # Errors
/// If no call has a name, or two have it; if an operator has no such attribute, or the value is
/// none that the attribute takes; or if the types of the program do not fit together then.
pub fn set_attributes(module: &mut Module, entry: &str, edits: &[AttributeEdit]) -> Result<(), Diagnostics> {
    edit(module, |module| {
        let key = find_entry(module, entry)?;
        let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
        let in_entry = |errors: Diagnostics| errors.into_iter().map(|e| e.in_function(entry)).collect::<Diagnostics>();
        set_in_function(cx, function, edits).map_err(in_entry)?;
        update_signatures(module, &[key]).map_err(IntoDiagnostics::into_diagnostics)
    })
}

fn set_in_function(cx: &mut Context, function: &mut Function, edits: &[AttributeEdit]) -> Result<(), Diagnostics> {
    let calls = NamedCalls::of(cx, &function.body);
    let found: Vec<(ExprId, String)> =
        edits.iter().map(|edit| calls.find(&function.body, &edit.node)).collect::<Result<_, _>>()?;
    let mut changed = Retype::new(&function.body);
    for (edit, (call, name)) in edits.iter().zip(found) {
        let on_binding =
            |errors: Diagnostics| errors.into_iter().map(|e| e.on_binding(name.clone())).collect::<Diagnostics>();
        set_on_call(cx, &mut function.body, call, edit).map_err(on_binding)?;
        if matches!(function.body.expr(call), Expr::CallOp { op, .. } if !cx.ops.is_opaque(op)) {
            changed.infer_again(call);
        }
    }
    if retype(cx, &mut function.body, changed)? > 0 {
        function.ret = None;
        #[cfg(feature = "onnx")]
        anfora_onnx::forget_stated_types(cx, function);
    }
    Ok(())
}

fn set_on_call(cx: &mut Context, body: &mut Body, call: ExprId, edit: &AttributeEdit) -> Result<(), Diagnostics> {
    let Expr::CallOp { op, operands, attrs } = body.expr(call) else { return Ok(()) };
    let value = attribute_value(cx, op, edit)?;
    let attrs: AttrsId = cx.with_attr(attrs, &edit.attribute, Some(value));
    let attrs = cx.check_op_attrs(op, attrs).map_err(|(error, _)| error.into_diagnostics())?;
    body.set_expr(call, Expr::CallOp { op, operands, attrs });
    Ok(())
}

/// Returns the value of an attribute of an operator.
fn attribute_value(cx: &mut Context, op: OpId, edit: &AttributeEdit) -> Result<AttrId, Diagnostics> {
    let kind = cx.ops.get(op).attrs.iter().find(|a| a.name == edit.attribute).map(|a| a.kind);
    let text = match &edit.value {
        NewAttribute::Text(text) if kind == Some(AttrKind::Str) && !text.trim_start().starts_with('"') => {
            return Ok(cx.str_attr(text));
        }
        NewAttribute::Text(text) => text,
        NewAttribute::Value(AttrValue::Str(text)) if matches!(kind, Some(AttrKind::DType | AttrKind::Type)) => text,
        NewAttribute::Value(value) => return Ok(value.intern(cx)),
    };
    parse_attr(cx, text).map_err(|errors| {
        let reason = errors.first().map_or(String::new(), |e| format!(": {}", e.message));
        let error = Diagnostic::error(format!("`{text}` is not a value of an attribute{reason}"));
        Diagnostics::from(
            error.with_help("values are written as in the text format: `1`, `[0, 1]`, `true`, `\"text\"`"),
        )
    })
}

// ---- Names ----

/// The bindings of a function by their names.
struct NamedCalls {
    values: ByName,
    /// The bindings by the names of their nodes in the ONNX file.
    nodes: ByName,
    by_var: FxHashMap<ExprId, ExprId>,
}

/// Bindings by name, with the names in order of appearance.
#[derive(Default)]
struct ByName {
    /// The last binding of a name, and the number of bindings with the name.
    found: FxHashMap<String, (Binding, usize)>,
    names: Vec<String>,
}

impl ByName {
    fn add(&mut self, name: &str, binding: Binding) {
        match self.found.get_mut(name) {
            Some((last, count)) => (*last, *count) = (binding, *count + 1),
            None => {
                self.found.insert(name.to_string(), (binding, 1));
                self.names.push(name.to_string());
            }
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().map(String::as_str)
    }
}

impl NamedCalls {
    fn of(cx: &Context, body: &Body) -> NamedCalls {
        let (mut values, mut nodes, mut by_var) = (ByName::default(), ByName::default(), FxHashMap::default());
        for binding in bindings(body, body.root()) {
            by_var.insert(binding.var.expr(), binding.value);
            if let Some(name) = body.var_name(binding.var).map(|name| cx.names.get(name)).filter(|n| !n.is_empty()) {
                values.add(name, binding);
            }
            if let Some(name) = body.meta(binding.var.expr()).and_then(|meta| node_name(cx, meta)) {
                nodes.add(name, binding);
            }
        }
        NamedCalls { values, nodes, by_var }
    }

    /// Returns the call that a name stands for, and the name of its value.
    fn find(&self, body: &Body, node: &str) -> Result<(ExprId, String), Diagnostics> {
        let bare = without_sigil(node, |name| self.values.found.contains_key(name));
        let found = self.values.found.get(bare).or_else(|| self.nodes.found.get(node));
        let &(binding, count) = found.ok_or_else(|| self.missing(bare))?;
        if count > 1 {
            let error = Diagnostic::error(format!("{count} bindings have the name `{bare}`"));
            return Err(error.with_help("rename them first: each needs a name of its own").into());
        }
        // The results of a node with several outputs are fields of its value.
        let call = match body.expr(binding.value) {
            Expr::Proj { tuple, .. } => self.by_var.get(&tuple).copied().unwrap_or(binding.value),
            _ => binding.value,
        };
        match body.expr(call) {
            Expr::CallOp { .. } => Ok((call, bare.to_string())),
            _ => {
                let error = Diagnostic::error(format!("`%{bare}` is not the result of an operator"));
                Err(error.with_help("only calls of operators have attributes").into())
            }
        }
    }

    /// Returns the error for a name that no binding has: the nearest name of a value or of a node.
    fn missing(&self, name: &str) -> Diagnostic {
        if did_you_mean(name, self.values.names()).is_none()
            && let Some(near) = did_you_mean(name, self.nodes.names())
        {
            let error = Diagnostic::error(format!("there is no node `{name}`"));
            return error.with_help(format!("did you mean `{near}`?"));
        }
        unknown("node", "", name, self.values.names())
    }
}

/// Returns `None`: builds without ONNX do not read the names of nodes.
#[cfg(not(feature = "onnx"))]
fn node_name(_: &Context, _: AttrsId) -> Option<&'static str> {
    None
}

//! The types that were inferred for the values of a program.

use anfora::ir::{Body, Cursor, DimId, Expr, ExprId, Module, Step, Type, TypeId, VarId};
use serde_json::{Value, json};

/// A variable of a function: a parameter, or the variable of a binding.
pub(crate) struct Typed<'a> {
    /// The name of the function, without the `@`.
    pub(crate) function: &'a str,
    /// The name of the variable, without the `%`, if it has one.
    pub(crate) name: Option<&'a str>,
    /// The operator, if the variable is bound to a call of one.
    pub(crate) op: Option<&'a str>,
    ty: TypeId,
}

impl Typed<'_> {
    /// Returns the type as programs write it.
    pub(crate) fn text(&self, module: &Module) -> String {
        module.cx.type_text(self.ty)
    }

    /// Returns the variable and its type as JSON. A tensor type has its element type and extents
    /// too. Each extent is a number, the text of a symbolic extent, or null if it is unknown.
    pub(crate) fn json(&self, module: &Module) -> Value {
        let (dtype, shape) = match module.cx.types.get(self.ty) {
            Type::Tensor(t) => {
                let extents = |shape: &[DimId]| shape.iter().map(|&d| extent(module, d)).collect::<Vec<_>>();
                (Some(t.dtype.to_string()), t.shape.as_ref().map(|s| extents(s)))
            }
            _ => (None, None),
        };
        let (function, name, op) = (self.function, self.name, self.op);
        json!({ "function": function, "name": name, "op": op, "type": self.text(module), "dtype": dtype, "shape": shape })
    }
}

fn extent(module: &Module, dim: DimId) -> Value {
    let dims = &module.cx.types.dims;
    match dims.as_constant(dim) {
        Some(extent) => json!(extent),
        None if dim == dims.unknown() => Value::Null,
        None => json!(module.cx.dim_text(dim)),
    }
}

/// Returns the variables of all functions that have a body, in program order.
pub(crate) fn of_module(module: &Module) -> Vec<Typed<'_>> {
    let mut found = Vec::new();
    for (key, function) in module.functions() {
        if !function.is_definition() {
            continue;
        }
        let body = &function.body;
        let mut add = |var: VarId, value: Option<ExprId>| {
            let name = body.var_name(var).map(|n| module.cx.names.get(n));
            let op = value.and_then(|v| called(module, body, v));
            found.push(Typed { function: module.name(key), name, op, ty: body.ty(var.expr()) });
        };
        for &param in body.params() {
            add(param, None);
        }
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Let(id) => {
                    if let Expr::Let { var, value, .. } = body.expr(id) {
                        add(var, Some(value));
                    }
                }
                Step::Enter(id) => {
                    if let Expr::Lambda { lambda, .. } = body.expr(id) {
                        for param in body.lambda_params(lambda) {
                            add(param, None);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    found
}

fn called<'a>(module: &'a Module, body: &Body, value: ExprId) -> Option<&'a str> {
    match body.expr(value) {
        Expr::CallOp { op, .. } => Some(&module.cx.ops.get(op).name),
        _ => None,
    }
}

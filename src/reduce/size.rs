//! The size of a program, by which a smaller program is known.

use anfora_ir::{AttrsId, Body, Context, Expr, Function, Literal, Module, TypeId};

/// The size of a compacted program. Sizes are compared by nodes first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ProgramSize {
    /// The number of functions, parameters, nodes and operands.
    nodes: u64,
    /// The number of uses of variables, the sizes of the extents of types and constants, and the
    /// number of attributes of functions.
    details: u64,
}

impl ProgramSize {
    pub(super) fn of(module: &Module) -> ProgramSize {
        let cx = &module.cx;
        let mut size = ProgramSize { nodes: 0, details: attrs_size(cx, module.attrs()) };
        for (_, function) in module.functions() {
            size.nodes += 3;
            size.add_head(cx, function);
            size.add_body(cx, &function.body);
        }
        size
    }

    fn add_head(&mut self, cx: &Context, function: &Function) {
        self.nodes += function.body.params().len() as u64;
        self.details += attrs_size(cx, function.attrs) + attrs_size(cx, function.meta);
        self.details += u64::from(function.ret.is_some());
        self.details += function.body.params().iter().map(|p| type_size(cx, function.body.ty(p.expr()))).sum::<u64>();
    }

    fn add_body(&mut self, cx: &Context, body: &Body) {
        for (id, expr) in body.exprs() {
            match expr {
                Expr::Let { flags, .. } => {
                    self.nodes += 2;
                    self.details += u64::from(flags.is_dataflow());
                }
                Expr::Literal(literal) => self.details += literal_size(cx.literals.get(literal)),
                _ if expr.is_atom() => {}
                _ => {
                    let inputs = body.inputs(id);
                    self.nodes += 1 + inputs.len() as u64;
                    self.details += inputs.iter().filter(|&&input| body.as_var(input).is_some()).count() as u64;
                }
            }
        }
    }
}

fn attrs_size(cx: &Context, attrs: AttrsId) -> u64 {
    cx.attrs.list(attrs).len() as u64
}

fn extent_size(extent: u64) -> u64 {
    u64::from(extent.checked_ilog2().unwrap_or(0))
}

/// Returns the sum of the logarithms of the extents in a type.
fn type_size(cx: &Context, ty: TypeId) -> u64 {
    let types = &cx.types;
    let of_tensor = |ty: TypeId| {
        let dims = types.as_tensor(ty).into_iter().flat_map(|tensor| tensor.dims());
        dims.map(|&dim| types.dims.as_constant(dim).map_or(1, |n| extent_size(n.unsigned_abs()))).sum::<u64>()
    };
    match types.as_tuple(ty) {
        Some(fields) => fields.iter().map(|&field| of_tensor(field)).sum(),
        None => of_tensor(ty),
    }
}

fn literal_size(literal: &Literal) -> u64 {
    let extents: u64 = literal.shape().iter().map(|&n| extent_size(n as u64)).sum();
    let elements = match literal.as_splat() {
        Some(bytes) if bytes.iter().all(|&b| b == 0) => 0,
        Some(_) => 1,
        None => 2 + extent_size(literal.element_count() as u64),
    };
    extents + elements
}

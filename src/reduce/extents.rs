//! Shrinks the extents of dimensions, in the types of parameters, in constants and in attributes.

use std::ops::Range;

use anfora_ir::{Attr, AttrId, AttrsId, Context, DType, DimId, Expr, ExprId, Literal, Module, TypeId, VarId};

use super::Shrink;
use super::constants::infer_again;

/// Replaces an extent by a smaller one, everywhere in a program.
///
/// The sites are the extents above 1, from the smallest to the largest, [`WAYS`] of each.
pub(super) struct Extents;

/// The number of ways to replace an extent: by its half, by 2 and by 1; each with and without the
/// same number in constants and attributes.
const WAYS: usize = 6;

/// Returns the constant extents above 1 of the parameters and constants of a program.
fn extents_of(module: &Module) -> Vec<usize> {
    let cx = &module.cx;
    let mut found: Vec<usize> = Vec::new();
    for (_, function) in module.functions() {
        for (id, expr) in function.body.exprs() {
            match expr {
                Expr::Literal(literal) => found.extend(cx.literals.get(literal).shape()),
                Expr::Var { .. } => found.extend(constant_extents(cx, function.body.ty(id))),
                _ => {}
            }
        }
    }
    found.retain(|&extent| extent > 1);
    found.sort_unstable();
    found.dedup();
    found
}

fn constant_extents(cx: &Context, ty: TypeId) -> impl Iterator<Item = usize> + '_ {
    let shape = cx.types.as_tensor(ty).and_then(|tensor| tensor.shape.as_ref());
    let constant = |&dim: &DimId| cx.types.dims.as_constant(dim).and_then(|n| usize::try_from(n).ok());
    shape.into_iter().flatten().filter_map(constant)
}

impl Shrink for Extents {
    const PART: &'static str = "extents";

    fn sites(&self, module: &Module) -> usize {
        WAYS * extents_of(module).len()
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        // Extents depend on each other in other ways than by their order.
        if sites.len() != 1 {
            return None;
        }
        let old = *extents_of(module).get(sites.start / WAYS)?;
        let new = [old / 2, 2, 1][sites.start % WAYS / 2];
        if new >= old {
            return None;
        }
        let change = ExtentChange { old, new, in_numbers: sites.start % 2 == 1 };
        for key in module.order().to_vec() {
            let (function, cx) = module.get_mut(key)?;
            if !function.is_definition() {
                continue;
            }
            let body = &mut function.body;
            let mut typed: Vec<VarId> = body.params().to_vec();
            let nodes: Vec<(ExprId, Expr)> = body.exprs().collect();
            for (id, expr) in nodes {
                match expr {
                    Expr::Literal(literal) => {
                        let Some(changed) = change.literal(cx.literals.get(literal)) else { continue };
                        let changed = cx.literals.intern(changed);
                        body.set_expr(id, Expr::Literal(changed));
                        body.set_type(id, cx.literal_type(changed));
                    }
                    Expr::CallOp { op, operands, attrs } => {
                        let attrs = change.attrs(cx, attrs);
                        body.set_expr(id, Expr::CallOp { op, operands, attrs });
                    }
                    Expr::Lambda { lambda, .. } => {
                        typed.extend(body.lambda_params(lambda));
                        let data = body.lambda(lambda);
                        body.set_lambda(lambda, anfora_ir::LambdaData { ret: None, ..data });
                    }
                    _ => {}
                }
            }
            for var in typed {
                let ty = change.ty(cx, body.ty(var.expr()));
                body.set_type(var.expr(), ty);
            }
            function.ret = None;
        }
        infer_again(module).map(|()| true)
    }
}

/// The replacement of one extent.
struct ExtentChange {
    old: usize,
    new: usize,
    /// True if the same number is replaced in attributes, and in constants that may be shapes.
    in_numbers: bool,
}

impl ExtentChange {
    fn ty(&self, cx: &mut Context, ty: TypeId) -> TypeId {
        if let Some(fields) = cx.types.as_tuple(ty) {
            let fields: Vec<TypeId> = fields.to_vec();
            let fields: Vec<TypeId> = fields.into_iter().map(|field| self.tensor(cx, field)).collect();
            return cx.types.tuple(&fields);
        }
        self.tensor(cx, ty)
    }

    fn tensor(&self, cx: &mut Context, ty: TypeId) -> TypeId {
        let Some(tensor) = cx.types.as_tensor(ty) else { return ty };
        let Some(shape) = tensor.shape.clone() else { return ty };
        let dtype = tensor.dtype;
        let (old, new) = (cx.types.dims.constant(self.old as i64), cx.types.dims.constant(self.new as i64));
        if !shape.contains(&old) {
            return ty;
        }
        let shape: Vec<DimId> = shape.iter().map(|&dim| if dim == old { new } else { dim }).collect();
        cx.types.tensor(dtype, &shape)
    }

    /// Returns a constant with the leading elements of each changed dimension, and with changed
    /// elements; `None` if nothing changes.
    fn literal(&self, literal: &Literal) -> Option<Literal> {
        let shape: Vec<usize> =
            literal.shape().iter().map(|&extent| if extent == self.old { self.new } else { extent }).collect();
        let cropped = if shape == literal.shape() { literal.clone() } else { crop(literal, &shape)? };
        let may_be_shape = self.in_numbers && cropped.rank() < 2 && cropped.dtype() == DType::Int64;
        let elements = cropped.to_i64s().filter(|e| may_be_shape && e.len() < 16 && e.contains(&(self.old as i64)));
        let changed = match elements {
            Some(elements) => {
                let new = |e: i64| if e == self.old as i64 { self.new as i64 } else { e };
                let elements: Vec<i64> = elements.into_iter().map(new).collect();
                Literal::from_i64s(DType::Int64, &shape, &elements).ok()?
            }
            None => cropped,
        };
        (changed != *literal).then_some(changed)
    }

    fn attrs(&self, cx: &mut Context, attrs: AttrsId) -> AttrsId {
        let list = cx.attrs.list(attrs).to_vec();
        let new: Vec<_> = list.iter().map(|&(name, value)| (name, self.attr(cx, value))).collect();
        if new == list { attrs } else { cx.attrs(&new) }
    }

    fn attr(&self, cx: &mut Context, value: AttrId) -> AttrId {
        match cx.attrs.get(value).clone() {
            Attr::Int(n) if self.in_numbers && n == self.old as i64 => cx.int_attr(self.new as i64),
            Attr::List(items) if self.in_numbers => {
                let is_old = |cx: &Context, item: AttrId| *cx.attrs.get(item) == Attr::Int(self.old as i64);
                if !items.iter().any(|&item| is_old(cx, item)) {
                    return value;
                }
                let new = cx.int_attr(self.new as i64);
                let items = items.iter().map(|&item| if is_old(cx, item) { new } else { item }).collect();
                cx.attr(Attr::List(items))
            }
            Attr::Type(ty) => {
                let ty = self.ty(cx, ty);
                cx.attr(Attr::Type(ty))
            }
            _ => value,
        }
    }
}

/// Returns the leading elements of a constant in each dimension; `None` if its elements have no
/// fixed number of bytes.
fn crop(literal: &Literal, shape: &[usize]) -> Option<Literal> {
    let dtype = literal.dtype();
    if let Some(element) = literal.as_splat() {
        return Some(Literal::splat_bytes(dtype, shape, element));
    }
    let size = dtype.bits() / 8;
    if size == 0 || !dtype.bits().is_multiple_of(8) || literal.load().is_err() {
        return None;
    }
    let bytes = literal.to_bytes();
    let mut kept = Vec::new();
    let mut index = vec![0; shape.len()];
    let count: usize = shape.iter().product();
    for _ in 0..count {
        let at = index.iter().zip(literal.shape()).fold(0, |at, (&i, &extent)| at * extent + i);
        kept.extend_from_slice(bytes.get(at * size..(at + 1) * size)?);
        // The next index, the last dimension first.
        for (i, &extent) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    Literal::from_bytes(dtype, shape, kept.into()).ok()
}

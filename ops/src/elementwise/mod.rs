//! Elementwise operators: arithmetic, comparison, logic, functions, activations, bits, conversion,
//! selection.

use anfora_ir::FusionPattern::{Broadcast, ElemWise};
use anfora_ir::{Arity, OpDef, Splat, TypeCall, TypeError, TypeId, TypeRule};

use crate::row::{row, with_kernel};
use crate::typing::{Elements, broadcast, is_tensor, result, same_elements, tensor};

mod activation;
mod arithmetic;
mod bits;
mod comparison;
pub(crate) mod conversion;
mod function;

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    let mut rows = arithmetic::rows();
    rows.extend(comparison::rows());
    rows.extend(bits::rows());
    rows.extend(function::rows());
    rows.extend(activation::rows());
    rows.extend(conversion::rows());
    rows
}

with_kernel! {
    fn unary(name: &'static str, doc: &'static str, infer: TypeRule; kernel) -> OpDef {
        row(name, doc, Arity::exactly(1), infer, kernel).fusion(ElemWise).splat(Splat::OfAll)
    }
}

with_kernel! {
    fn broadcasting(name: &'static str, doc: &'static str, arity: Arity, infer: TypeRule; kernel) -> OpDef {
        row(name, doc, arity, infer, kernel).fusion(Broadcast).splat(Splat::OfAll)
    }
}

with_kernel! {
    fn binary(name: &'static str, doc: &'static str, infer: TypeRule; kernel) -> OpDef {
        broadcasting(name, doc, Arity::exactly(2), infer, kernel)
    }
}

/// Returns the type of operands of one element type that broadcast, with the same element type.
fn same(call: &mut TypeCall<'_>, elements: Elements) -> Result<TypeId, TypeError> {
    let ty = call.ty(0);
    if (0..call.count()).all(|i| call.operand(i) == Some(ty)) && is_tensor(call, 0, elements) {
        return Ok(ty);
    }
    let mut tensors = Vec::with_capacity(call.count());
    for i in 0..call.count() {
        tensors.push(tensor(call, i, elements)?);
        same_elements(&tensors[0], &tensors[i], i)?;
    }
    let operands: Vec<_> = tensors.iter().enumerate().collect();
    let shape = broadcast(call.cx, &operands)?;
    Ok(result(call.cx, tensors[0].dtype, shape.as_deref()))
}

fn same_number(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    same(call, Elements::Number)
}

fn same_float(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    same(call, Elements::Float)
}

fn same_any(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    same(call, Elements::Any)
}

/// Returns the type of the one operand.
fn keep(call: &mut TypeCall<'_>, elements: Elements) -> Result<TypeId, TypeError> {
    if !is_tensor(call, 0, elements) {
        tensor(call, 0, elements)?;
    }
    Ok(call.ty(0))
}

fn keep_number(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    keep(call, Elements::Number)
}

fn keep_float(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    keep(call, Elements::Float)
}

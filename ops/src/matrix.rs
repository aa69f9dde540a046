//! Matrix products.

use anfora_ir::FusionPattern::OutEWiseFusable;
use anfora_ir::{Arity, AttrDef, AttrDefault, AttrKind, DType, OpDef, Splat, TensorType, TypeCall, TypeError, TypeId};

use crate::kernels::determinant;
use crate::kernels::matmul::{self, Gemm};
use crate::row::row;
use crate::steps;
use crate::typing::{
    Elements, Extents, RequiredAttrs, broadcast, differ, one, optional, ranked, result, same_elements, tensor, unify,
};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "matmul",
            "the matrix product; leading axes broadcast, and an operand of rank 1 is a row or a column",
            Arity::exactly(2),
            matmul_type,
            |c| one(matmul::matmul(c.operand(0)?, c.operand(1)?)),
        )
        .steps(steps::matrix_product)
        .splat(Splat::OfAll)
        .fusion(OutEWiseFusable),
        row(
            "nn.gemm",
            "`alpha * a * b + beta * c` of matrices, each transposed if asked; `c` is optional and broadcasts",
            Arity::between(2, 3),
            gemm_type,
            |c| {
                let how = Gemm {
                    alpha: c.attrs.required_float("alpha")?,
                    beta: c.attrs.required_float("beta")?,
                    trans_a: c.attrs.required_bool("trans_a")?,
                    trans_b: c.attrs.required_bool("trans_b")?,
                };
                one(matmul::gemm(c.operand(0)?, c.operand(1)?, c.optional(2), how))
            },
        )
        .attrs(
            const {
                &[
                    AttrDef::new(
                        "alpha",
                        AttrKind::Float,
                        AttrDefault::Float(1.0),
                        "factor of the product; integral for integers",
                    ),
                    AttrDef::new(
                        "beta",
                        AttrKind::Float,
                        AttrDefault::Float(1.0),
                        "factor of `c`; integral for integers",
                    ),
                    AttrDef::flag("trans_a", "whether `a` is transposed"),
                    AttrDef::flag("trans_b", "whether `b` is transposed"),
                ]
            },
        )
        .steps(steps::gemm)
        .fusion(OutEWiseFusable),
        row("det", "the determinant of each matrix of a stack", Arity::exactly(1), det_type, |c| {
            one(determinant::determinant(c.operand(0)?))
        })
        .steps(steps::determinant)
        .splat(Splat::OfAll),
    ]
}

fn det_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let Some(shape) = &x.shape else { return Ok(call.cx.types.unranked(x.dtype)) };
    let [batch @ .., rows, columns] = shape.as_slice() else {
        return Err(TypeError::operand(0, format!("operand 0 has rank {}, but a matrix is expected", shape.len())));
    };
    if unify(call.cx, *rows, *columns).is_none() {
        return Err(differ(call.cx, 0, "the number of columns", *columns, *rows));
    }
    Ok(result(call.cx, x.dtype, Some(batch)))
}

fn matmul_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (a, b) = (tensor(call, 0, Elements::Number)?, tensor(call, 1, Elements::Number)?);
    same_elements(&a, &b, 1)?;
    product_type(call, 0, 1, &a, &b, a.dtype)
}

/// Returns the type of a product of the operands `i` and `j`, with elements of `dtype`.
pub(crate) fn product_type(
    call: &mut TypeCall<'_>,
    i: usize,
    j: usize,
    a: &TensorType,
    b: &TensorType,
    dtype: DType,
) -> Result<TypeId, TypeError> {
    for (i, x) in [(i, a), (j, b)] {
        if x.shape.as_ref().is_some_and(|s| s.is_empty()) {
            return Err(TypeError::operand(i, format!("operand {i} has rank 0, but a matrix or a vector is expected")));
        }
    }
    let (Some(left), Some(right)) = (&a.shape, &b.shape) else { return Ok(call.cx.types.unranked(dtype)) };
    let depth = left[left.len() - 1];
    let other_depth = right[right.len().saturating_sub(2)];
    if unify(call.cx, depth, other_depth).is_none() {
        return Err(differ(call.cx, j, "the summed extent", other_depth, depth));
    }
    let leading = |s: &Extents| TensorType::new(dtype, Some(s[..s.len().saturating_sub(2)].into()));
    let (left_batch, right_batch) = (leading(left), leading(right));
    let mut dims = broadcast(call.cx, &[(i, &left_batch), (j, &right_batch)])?.unwrap_or_default();
    if left.len() > 1 {
        dims.push(left[left.len() - 2]);
    }
    if right.len() > 1 {
        dims.push(right[right.len() - 1]);
    }
    Ok(result(call.cx, dtype, Some(&dims)))
}

fn gemm_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (a, b) = (tensor(call, 0, Elements::Number)?, tensor(call, 1, Elements::Number)?);
    same_elements(&a, &b, 1)?;
    let c = optional(call, 2, Elements::Number)?;
    let attrs = call.attrs();
    let (trans_a, trans_b) = (attrs.required_bool("trans_a")?, attrs.required_bool("trans_b")?);
    let (alpha, beta) = (attrs.required_float("alpha")?, attrs.required_float("beta")?);
    if Elements::Integer.accepts(a.dtype) && (alpha.fract() != 0.0 || beta.fract() != 0.0) {
        return Err(TypeError::new(format!("`alpha` and `beta` of a product of {} are integral", a.dtype)));
    }
    let (mut left, mut right) = (ranked(call.cx, &a, 0, 2)?, ranked(call.cx, &b, 1, 2)?);
    if trans_a {
        left.reverse();
    }
    if trans_b {
        right.reverse();
    }
    if unify(call.cx, left[1], right[0]).is_none() {
        return Err(differ(call.cx, 1, "the summed extent", right[0], left[1]));
    }
    let dims = [left[0], right[1]];
    let ty = result(call.cx, a.dtype, Some(&dims));
    if let Some(c) = c {
        same_elements(&a, &c, 2)?;
        let Some(shape) = &c.shape else { return Ok(ty) };
        if shape.len() > 2 {
            return Err(TypeError::operand(
                2,
                format!("operand 2 has rank {}, which does not broadcast to 2", shape.len()),
            ));
        }
        for (&from, &to) in shape.iter().rev().zip(dims.iter().rev()) {
            let one = call.cx.types.dims.constant(1);
            if from != one && unify(call.cx, from, to).is_none() {
                return Err(differ(call.cx, 2, "an extent", from, to));
            }
        }
    }
    Ok(ty)
}

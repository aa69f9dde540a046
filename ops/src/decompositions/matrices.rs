//! Products of matrices with factors, and tensors laid out as matrices.

use anfora_ir::{Decomposer, DecompositionPart as Part, DecompositionRule};

use super::counted;

pub(super) const RULES: &[(&str, DecompositionRule)] = &[("nn.gemm", gemm), ("nn.flatten", flatten)];

/// `alpha * a' * b' + beta * c`
fn gemm(d: &mut Decomposer<'_>) -> Option<Part> {
    let dtype = d.dtype(0)?;
    let attrs = d.attrs();
    let scaled = |d: &mut Decomposer<'_>, x: Part, factor: f64| {
        if factor == 1.0 {
            return Some(x);
        }
        let factor = if dtype.is_float() { d.number(factor, dtype)? } else { d.number(factor as i64, dtype)? };
        Some(d.op("multiply", &[x, factor]))
    };
    let mut operands = [d.operand(0)?, d.operand(1)?];
    for (operand, transposed) in operands.iter_mut().zip(["trans_a", "trans_b"]) {
        if attrs.bool(transposed)? {
            *operand = d.op_with("permute_dims", &[*operand], &[("axes", [1, 0].into())]);
        }
    }
    let product = d.op("matmul", &operands);
    let product = scaled(d, product, attrs.float("alpha")?)?;
    let Some(c) = d.operand(2) else { return Some(product) };
    let c = scaled(d, c, attrs.float("beta")?)?;
    Some(d.op("add", &[product, c]))
}

/// A reshape to a matrix. The extent of one side is a number, that of the first axis, or the product
/// of the extents of the axes before `axis`.
fn flatten(d: &mut Decomposer<'_>) -> Option<Part> {
    let rank = d.rank(0)?;
    let axis = d.attrs().int("axis")?;
    let axis = if axis == rank as i64 { rank } else { counted(axis, rank)? };
    let product = |range: std::ops::Range<usize>| {
        range.map(|axis| d.extent(0, axis)).try_fold(1i64, |n, extent| n.checked_mul(extent?))
    };
    let (rows, columns) = (product(0..axis), product(axis..rank));
    let x = d.operand(0)?;
    let shape = match (rows, columns) {
        (Some(rows), Some(columns)) => d.ints(&[rows, columns]),
        (Some(rows), None) if rows != 0 => d.ints(&[rows, -1]),
        (None, Some(columns)) if columns != 0 => d.ints(&[-1, columns]),
        _ => {
            let mut sides = Vec::new();
            for (start, end) in [(0, axis), (axis, rank)] {
                let part = [("start", (start as i64).into()), ("end", (end as i64).into())];
                let extents = d.op_with("shape_of", &[x], &part);
                sides.push(d.op_with("prod", &[extents], &[("keepdims", true.into())]));
            }
            d.op("concat", &sides)
        }
    };
    let allowzero = [("allowzero", true.into())];
    let is_plain = rows.is_some_and(|n| n != 0) || columns.is_some_and(|n| n != 0);
    Some(d.op_with("reshape", &[x, shape], if is_plain { &[] } else { &allowzero }))
}

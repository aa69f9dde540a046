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

/// A reshape to a matrix. One side is a number, or the products of the extents are computed.
fn flatten(d: &mut Decomposer<'_>) -> Option<Part> {
    let at = d.attrs().int("axis")?;
    let rank = d.rank(0);
    let axis = rank.and_then(|rank| if at == rank as i64 { Some(rank) } else { counted(at, rank) });
    let product = |d: &Decomposer<'_>, mut range: std::ops::Range<usize>| {
        range.try_fold(1i64, |n, axis| n.checked_mul(d.extent(0, axis)?))
    };
    let (rows, columns) = match (axis, rank) {
        (Some(axis), Some(rank)) => (product(d, 0..axis), product(d, axis..rank)),
        _ => (None, None),
    };
    let x = d.operand(0)?;
    // An extent of 0 stands for itself where the list may have one.
    let (shape, allowzero) = match (rows, columns) {
        (Some(rows), Some(columns)) => (d.ints(&[rows, columns]), rows == 0 || columns == 0),
        (Some(rows), None) if rows != 0 => (d.ints(&[rows, -1]), false),
        (None, Some(columns)) if columns != 0 => (d.ints(&[-1, columns]), false),
        _ => {
            let before = d.op_with("shape_of", &[x], &[("end", at.into())]);
            let after = d.op_with("shape_of", &[x], &[("start", at.into())]);
            let sides = [before, after].map(|extents| d.op_with("prod", &[extents], &[("keepdims", true.into())]));
            (d.op("concat", &sides), true)
        }
    };
    Some(d.op_with("reshape", &[x, shape], &[("allowzero", allowzero.into())]))
}

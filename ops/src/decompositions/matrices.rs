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
    let shape = match (rows, columns) {
        (Some(rows), Some(columns)) if rows != 0 && columns != 0 => d.ints(&[rows, columns]),
        (Some(rows), _) if rows != 0 => d.ints(&[rows, -1]),
        (_, Some(columns)) if columns != 0 => d.ints(&[-1, columns]),
        _ => return Some(flatten_computed(d, x, at)),
    };
    Some(d.op("reshape", &[x, shape]))
}

/// Returns `x` with the axes before `axis` as one and the others as another, where either may have
/// the extent 0. In a list for `reshape`, 0 stands for the extent at the same place, and -1 needs
/// others that are not 0. So all elements are laid out in a row first: if there are no columns, the
/// second extent of this row is the right one. It then has at least one row, which is cut off.
fn flatten_computed(d: &mut Decomposer<'_>, x: Part, axis: i64) -> Part {
    let before = d.op_with("shape_of", &[x], &[("end", axis.into())]);
    let after = d.op_with("shape_of", &[x], &[("start", axis.into())]);
    let [rows, columns] = [before, after].map(|extents| d.op_with("prod", &[extents], &[("keepdims", true.into())]));
    let [zero, one, inferred] = [0, 1, -1].map(|n| d.ints(&[n]));
    let [has_no_rows, has_no_columns] = [rows, columns].map(|extent| d.op("equal", &[extent, zero]));
    let least = d.op("where", &[has_no_rows, one, rows]);
    let first = d.op("where", &[has_no_columns, least, inferred]);
    let list = d.op("concat", &[first, columns]);
    let in_a_row = d.ints(&[1, -1]);
    let row = d.op("reshape", &[x, in_a_row]);
    let matrix = d.op("reshape", &[row, list]);
    d.op("dynamic_strided_slice", &[matrix, zero, rows, zero])
}

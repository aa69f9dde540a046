//! Rotary position embeddings, and convolutions that continue a sequence.

use anfora_ir::{Decomposer, DecompositionPart as Part, DecompositionRule};

use super::extents::{Extent, join_axes, split_axis};

pub(super) const RULES: &[(&str, DecompositionRule)] =
    &[("nn.rotary_embedding", rotary_embedding), ("nn.causal_conv1d", causal_conv1d)];

/// Elements `from` to `to` of the last axis, `by` apart.
fn elements(d: &mut Decomposer<'_>, x: Part, [from, to, by]: [i64; 3]) -> Part {
    let lists = [("begin", [from]), ("end", [to]), ("axes", [-1]), ("strides", [by])];
    d.op_with("strided_slice", &[x], &lists.map(|(name, list)| (name, list.into())))
}

/// `(cos * a - sin * b, sin * a + cos * b)` for the pairs `(a, b)` of elements of a head, and the
/// other elements as they are.
fn rotary_embedding(d: &mut Decomposer<'_>) -> Option<Part> {
    let attrs = d.attrs();
    let (rank, is_interleaved) = (d.rank(0)?, attrs.bool("interleaved")?);
    let mut x = d.operand(0)?;
    // The heads, and the axis of heads.
    let heads = match rank {
        4 => 1,
        3 => {
            let heads = attrs.int("num_heads").filter(|&heads| heads > 0)?;
            let width = Extent::of(d, 0, 2)?;
            x = split_axis(d, x, (2, width), 3, heads);
            2
        }
        _ => return None,
    };
    let size = match rank {
        4 => d.extent(0, 3),
        _ => d.extent(0, 2).and_then(|width| width.checked_div(attrs.int("num_heads")?)),
    };
    // Each pair has an entry in the tables.
    let rotated = match attrs.int("rotary_embedding_dim")? {
        0 => size.or_else(|| d.extent(1, d.rank(1)?.checked_sub(1)?)?.checked_mul(2))?,
        rotated => rotated,
    };
    if rotated <= 0 || rotated % 2 != 0 || size.is_some_and(|size| size < rotated) {
        return None;
    }
    let mut tables = [d.operand(1)?, d.operand(2)?];
    for table in &mut tables {
        if let Some(positions) = d.operand(3) {
            *table = d.op_with("take", &[*table, positions], &[("axis", 0.into())]);
        }
        *table = d.op_with("expand_dims", &[*table], &[("axis", [heads].into())]);
    }
    let [cos, sin] = tables;
    let half = rotated / 2;
    let places = if is_interleaved { [[0, rotated, 2], [1, rotated, 2]] } else { [[0, half, 1], [half, rotated, 1]] };
    let [a, b] = places.map(|place| elements(d, x, place));
    let mut products = |one: Part, other: Part| [d.op("multiply", &[one, a]), d.op("multiply", &[other, b])];
    let (first, second) = (products(cos, sin), products(sin, cos));
    let (first, second) = (d.op("subtract", &first), d.op("add", &second));
    let last = [("axis", (-1).into())];
    let mut result = if is_interleaved {
        let pairs = [first, second].map(|x| d.op_with("expand_dims", &[x], &[("axis", [-1].into())]));
        let pairs = d.op_with("concat", &pairs, &last);
        join_axes(d, pairs, 3, 5, Extent::Known(rotated))
    } else {
        d.op_with("concat", &[first, second], &last)
    };
    if size != Some(rotated) {
        let rest = elements(d, x, [rotated, i64::MAX, 1]);
        result = d.op_with("concat", &[result, rest], &last);
    }
    if rank == 3 {
        let width = Extent::of(d, 0, 2)?;
        result = join_axes(d, result, 2, 4, width);
    }
    Some(result)
}

/// The convolution, by channel, of the sequence with the state before it, and the end of that
/// sequence.
fn causal_conv1d(d: &mut Decomposer<'_>) -> Option<Part> {
    let taps = d.extent(1, 2).filter(|&taps| taps >= 1)?;
    let channels = d.extent(0, 1).or(d.extent(1, 0)).filter(|&channels| channels >= 1)?;
    let x = d.operand(0)?;
    let sequence = match d.operand(3) {
        Some(state) => d.op_with("concat", &[state, x], &[("axis", 2.into())]),
        None => {
            d.extent(0, 2).unwrap_or(0).checked_add(taps)?;
            let (paddings, value, axes) = (d.ints(&[taps - 1, 0]), d.none(), d.ints(&[2]));
            d.op("nn.pad", &[x, paddings, value, axes])
        }
    };
    let weight = d.operand(1)?;
    let operands: Vec<Part> = [sequence, weight].into_iter().chain(d.operand(2)).collect();
    let mut result = d.op_with("nn.conv1d", &operands, &[("groups", channels.into())]);
    if d.attrs().str("activation")? != "none" {
        let gate = d.op("sigmoid", &[result]);
        result = d.op("multiply", &[result, gate]);
    }
    // A negative begin counts from the end, and one after the end selects nothing.
    let begin = if taps == 1 { i64::MAX } else { 1 - taps };
    let lists = [("axes", 2), ("begin", begin), ("end", i64::MAX)].map(|(name, n)| (name, [n].into()));
    let end = d.op_with("strided_slice", &[sequence], &lists);
    Some(d.tuple(&[result, end]))
}

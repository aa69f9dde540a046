//! Attention. Every step is rounded to the element type, as in the operator, but the softmax is
//! that of `nn.softmax`.

use anfora_ir::{DType, Decomposer, DecompositionPart as Part, DecompositionRule, DimId};

use super::extents::{Extent, join_axes, split_axis};
use super::{Widened, cast, reduced, scaled};

pub(super) const RULES: &[(&str, DecompositionRule)] = &[("nn.attention", attention)];

/// Queries, keys or values with their heads as axis 1.
#[derive(Copy, Clone)]
struct Heads {
    x: Part,
    count: HeadCount,
    length: Extent,
    size: Extent,
}

/// The number of heads.
#[derive(Copy, Clone, PartialEq, Eq)]
enum HeadCount {
    Known(i64),
    /// A symbol or a computed extent, which is the same wherever it is equal.
    Symbol(DimId),
}

impl Heads {
    /// Returns operand `i` with its heads. Operands of rank 3 have the heads in their last axis,
    /// and the attribute `attr` has the number of heads.
    fn of(d: &mut Decomposer<'_>, i: usize, attr: &str) -> Option<Heads> {
        let x = d.operand(i)?;
        if d.rank(i)? == 4 {
            let unknown = d.cx().types.dims.unknown();
            let symbol = d.tensor(i)?.shape.as_ref()?.get(1).copied().filter(|&dim| dim != unknown);
            let count = d.extent(i, 1).map(HeadCount::Known).or(symbol.map(HeadCount::Symbol))?;
            return Some(Heads { x, count, length: Extent::of(d, i, 2)?, size: Extent::of(d, i, 3)? });
        }
        let count = d.attrs().int(attr).filter(|&count| count > 0)?;
        if d.rank(i)? != 3 {
            return None;
        }
        let width = Extent::of(d, i, 2)?;
        let heads = split_axis(d, x, (2, width), 3, count);
        let x = swapped(d, heads, [0, 2, 1, 3]);
        let size = width.over(d, count);
        Some(Heads { x, count: HeadCount::Known(count), length: Extent::of(d, i, 1)?, size })
    }

    /// Puts those of the past, operand `i`, before these.
    fn after(&mut self, d: &mut Decomposer<'_>, i: usize) -> Option<()> {
        let Some(past) = d.operand(i) else { return Some(()) };
        if d.rank(i)? != 4 {
            return None;
        }
        self.x = d.op_with("concat", &[past, self.x], &[("axis", 2.into())]);
        self.length = match (self.length, d.extent(i, 2)) {
            (Extent::Known(length), Some(past)) => Extent::Known(length.checked_add(past)?),
            _ => Extent::computed(d, self.x, 2),
        };
        Some(())
    }
}

/// Returns the head of keys for each head of queries, which share one in groups of neighbours;
/// `None` if there are as many of each.
fn shared_heads(d: &mut Decomposer<'_>, queries: HeadCount, keys: HeadCount) -> Option<Option<Part>> {
    if queries == keys {
        return Some(None);
    }
    let (HeadCount::Known(queries), HeadCount::Known(keys)) = (queries, keys) else { return None };
    let group = queries.checked_div(keys).filter(|&group| group > 0 && group * keys == queries)?;
    let all = places(d, Extent::Known(queries))?;
    let group = d.number(group, DType::Int64)?;
    Some(Some(d.op("divide", &[all, group])))
}

/// Returns keys or values by head of queries.
fn by_query(d: &mut Decomposer<'_>, x: Part, shared: Option<Part>) -> Part {
    shared.map_or(x, |heads| d.op_with("take", &[x, heads], &[("axis", 1.into())]))
}

fn swapped(d: &mut Decomposer<'_>, x: Part, axes: [i64; 4]) -> Part {
    d.op_with("permute_dims", &[x], &[("axes", axes.into())])
}

/// Returns the numbers from 0 to before an extent.
fn places(d: &mut Decomposer<'_>, extent: Extent) -> Option<Part> {
    let [start, end, step] = [d.number(0, DType::Int64)?, extent.scalar(d)?, d.number(1, DType::Int64)?];
    Some(d.op("arange", &[start, end, step]))
}

/// Returns the root of the factor of the products, by which queries and keys are multiplied; `None`
/// if it is 1. Without an attribute, the factor is `1 / sqrt(size)`.
fn scale_root(d: &mut Decomposer<'_>, size: Extent, dtype: DType) -> Option<Option<Part>> {
    let factor = match (d.attrs().float("scale"), size) {
        (Some(scale), _) => scale,
        (None, Extent::Known(size)) => 1.0 / (size as f64).sqrt(),
        (None, Extent::Computed(_)) => {
            let types = Widened::of(d, 0)?;
            let size = size.scalar(d)?;
            let size = cast(d, size, DType::Int64, types.wide);
            let root = d.op("sqrt", &[size]);
            let factor = d.op("reciprocal", &[root]);
            let root = d.op("sqrt", &[factor]);
            return Some(Some(types.narrow(d, root)));
        }
    };
    if factor == 1.0 { Some(None) } else { Some(Some(d.number(factor.sqrt(), dtype)?)) }
}

/// Returns true for the keys that the attributes and the lengths let a query attend, in a shape
/// that broadcasts to the scores; `None` if these are all keys.
fn attended(d: &mut Decomposer<'_>, queries: Extent, keys: Extent) -> Option<Option<Part>> {
    let attrs = d.attrs();
    let [before, after] = ["left_window_size", "right_window_size"].map(|name| attrs.int(name).filter(|&n| n >= 0));
    let after = if attrs.bool("is_causal")? { Some(0) } else { after };
    let lengths = d.operand(6).map(|lengths| d.op_with("expand_dims", &[lengths], &[("axis", [1, 2, 3].into())]));
    let mut conditions = Vec::new();
    let key = if before.or(after).is_some() || lengths.is_some() { Some(places(d, keys)?) } else { None };
    if let Some(key) = key.filter(|_| before.or(after).is_some()) {
        // The place of a query among the keys.
        let query = places(d, queries)?;
        let mut own = d.op_with("expand_dims", &[query], &[("axis", [1].into())]);
        if let Some(lengths) = lengths {
            let queries = queries.scalar(d)?;
            let first = d.op("subtract", &[lengths, queries]);
            own = d.op("add", &[own, first]);
        } else if d.is_given(4) {
            let past = Extent::of(d, 4, 2)?.scalar(d)?;
            own = d.op("add", &[own, past]);
        }
        let distance = d.op("subtract", &[key, own]);
        for (op, bound) in [("greater_equal", before.map(|n| -n)), ("less_equal", after)] {
            if let Some(bound) = bound {
                let bound = d.number(bound, DType::Int64)?;
                conditions.push(d.op(op, &[distance, bound]));
            }
        }
    }
    if let (Some(key), Some(lengths)) = (key, lengths) {
        conditions.push(d.op("less", &[key, lengths]));
    }
    Some(conditions.into_iter().reduce(|all, condition| d.op("logical_and", &[all, condition])))
}

/// Returns the mask, operand 3, as terms for all keys: minus infinity for a key that it excludes or
/// does not have.
fn mask_terms(d: &mut Decomposer<'_>, keys: &Heads, dtype: DType) -> Option<Part> {
    let (mut mask, rank, low) = (d.operand(3)?, d.rank(3)?, d.number(f64::NEG_INFINITY, dtype)?);
    if d.dtype(3)? == DType::Bool {
        let zero = d.number(0.0, dtype)?;
        mask = d.op("where", &[mask, zero, low]);
    }
    if rank == 0 {
        let one = d.ints(&[1]);
        mask = d.op("reshape", &[mask, one]);
    }
    let own = if rank == 0 { Extent::Known(1) } else { Extent::of(d, 3, rank - 1)? };
    let unknown = d.cx().types.dims.unknown();
    let last = |d: &Decomposer<'_>, i: usize, axis: usize| d.tensor(i)?.shape.as_ref()?.get(axis).copied();
    let key_axis = if d.rank(1)? == 4 { 2 } else { 1 };
    let is_same = rank > 0
        && !d.is_given(4)
        && last(d, 3, rank - 1).is_some_and(|own| own != unknown && Some(own) == last(d, 1, key_axis));
    let paddings = match (own, keys.length) {
        _ if is_same => return Some(mask),
        (Extent::Known(own), Extent::Known(keys)) if own == keys => return Some(mask),
        // The operator refuses the call.
        (Extent::Known(own), Extent::Known(keys)) if own > keys.max(1) => return None,
        (Extent::Known(own), Extent::Known(keys)) => d.ints(&[0, keys - own]),
        (own, all) => {
            let (zero, own, all) = (d.ints(&[0]), own.list(d), all.list(d));
            let missing = d.op("subtract", &[all, own]);
            d.op("concat", &[zero, missing])
        }
    };
    let axes = d.ints(&[-1]);
    Some(d.op("nn.pad", &[mask, paddings, low, axes]))
}

/// Returns what is added to the scores; `None` if nothing is.
fn bias(d: &mut Decomposer<'_>, queries: Extent, keys: &Heads, dtype: DType) -> Option<Option<Part>> {
    let attended = attended(d, queries, keys.length)?;
    let terms = if d.is_given(3) { Some(mask_terms(d, keys, dtype)?) } else { None };
    let Some(attended) = attended else { return Some(terms) };
    let (zero, low) = (d.number(0.0, dtype)?, d.number(f64::NEG_INFINITY, dtype)?);
    Some(Some(d.op("where", &[attended, terms.unwrap_or(zero), low])))
}

/// Returns the softmax of the scores and the bias, in its own precision. A query that attends no
/// keys has the weights 0. Its softmax is that of the scores alone, since that of nothing but minus
/// infinities is NaN, and so would its derivatives be.
fn weights(d: &mut Decomposer<'_>, scores: Part, bias: Option<Part>, dtype: DType) -> Option<Part> {
    let precision = d.attrs().dtype("softmax_precision").unwrap_or(dtype);
    let softmax = |d: &mut Decomposer<'_>, scores: Part| {
        let scores = cast(d, scores, dtype, precision);
        let weights = d.op("nn.softmax", &[scores]);
        cast(d, weights, precision, dtype)
    };
    let Some(bias) = bias else { return Some(softmax(d, scores)) };
    let (zero, low) = (d.number(0.0, dtype)?, d.number(f64::NEG_INFINITY, dtype)?);
    let largest = reduced(d, "max", bias, &[-1]);
    let attends_nothing = d.op("equal", &[largest, low]);
    let bias = d.op("where", &[attends_nothing, zero, bias]);
    let masked = d.op("add", &[scores, bias]);
    let weights = softmax(d, masked);
    Some(d.op("where", &[attends_nothing, zero, weights]))
}

/// `softmax(q * kᵀ + bias) * v` by head, where `q` and `k` are multiplied by the root of the scale.
fn attention(d: &mut Decomposer<'_>) -> Option<Part> {
    let attrs = d.attrs();
    let (dtype, rank) = (d.dtype(0)?, d.rank(0)?);
    let has_lengths_and_past = d.is_given(6) && d.is_given(4);
    let has_other_rank = [1, 2].iter().any(|&i| d.rank(i) != Some(rank));
    // The operator refuses the call.
    if has_lengths_and_past || has_other_rank || d.rank(3).is_some_and(|rank| rank > 4) {
        return None;
    }
    let query = Heads::of(d, 0, "q_num_heads")?;
    let [mut key, mut value] = [Heads::of(d, 1, "kv_num_heads")?, Heads::of(d, 2, "kv_num_heads")?];
    key.after(d, 4)?;
    value.after(d, 5)?;
    let root = scale_root(d, query.size, dtype)?;
    let scaled_parts = [query.x, key.x].map(|x| root.map_or(x, |root| d.op("multiply", &[x, root])));
    let shared = shared_heads(d, query.count, key.count)?;
    let keys = by_query(d, scaled_parts[1], shared);
    let transposed = swapped(d, keys, [0, 1, 3, 2]);
    let products = d.op("matmul", &[scaled_parts[0], transposed]);
    let mut capped = products;
    let cap = attrs.float("softcap")?;
    if cap > 0.0 {
        let bound = d.number(cap, dtype)?;
        let quotient = d.op("divide", &[products, bound]);
        let tanh = d.op("tanh", &[quotient]);
        capped = scaled(d, tanh, cap, dtype)?;
    }
    let bias = bias(d, query.length, &key, dtype)?;
    let masked = bias.map_or(capped, |bias| d.op("add", &[capped, bias]));
    let weights = weights(d, capped, bias, dtype)?;
    let values = by_query(d, value.x, shared);
    let mut result = d.op("matmul", &[weights, values]);
    if rank == 3 {
        let HeadCount::Known(count) = query.count else { return None };
        let width = value.size.times(d, count)?;
        let rows = swapped(d, result, [0, 2, 1, 3]);
        result = join_axes(d, rows, 2, 4, width);
    }
    let scores = match attrs.int("qk_matmul_output_mode")? {
        0 => products,
        1 => capped,
        2 => masked,
        3 => weights,
        _ => return None,
    };
    match attrs.int("results")? {
        1 => Some(result),
        3 => Some(d.tuple(&[result, key.x, value.x])),
        4 => Some(d.tuple(&[result, key.x, value.x, scores])),
        _ => None,
    }
}

//! Attention that is written as products, a softmax and a mask.

use anfora_ir::{Attr, DimId, Expr};
use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;
use smallvec::SmallVec;

use crate::match_facts::{counted_axes, extents, float_attribute, number, tensor};

/// Returns the rules for attention with heads as an axis of queries, keys and values. A
/// captured scale is `s`, and that of an attention on the left side of a rule is `a`.
pub(super) fn attention() -> RuleSet {
    products().and(scales())
}

/// Returns the rules for the products. In the first rules the transposition `p` of the keys only
/// exchanges their last axes; in the others it does this after another transposition, which stays.
fn products() -> RuleSet {
    rules![
        "matmul(nn.softmax(matmul(%q, permute_dims(%k, axes=%p)), axis=%x, axes=none), %v)"
            => "nn.attention(%q, %k, %v, scale=1.0)", if |m| attends(m) && swaps(m),
        "matmul(nn.softmax(multiply(matmul(%q, permute_dims(%k, axes=%p)), %s), axis=%x, axes=none), %v)"
            => "nn.attention(%q, %k, %v, scale=%n)", if |m| attends(m) && swaps(m), let n = factor,
        "matmul(nn.softmax(divide(matmul(%q, permute_dims(%k, axes=%p)), %s), axis=%x, axes=none), %v)"
            => "nn.attention(%q, %k, %v, scale=%n)", if |m| attends(m) && swaps(m), let n = quotient,
        "matmul(nn.softmax(add(matmul(%q, permute_dims(%k, axes=%p)), %c), axis=%x, axes=none), %v)"
            => "nn.attention(%q, %k, %v, %c, scale=1.0)", if |m| attends_masked(m) && swaps(m),
        "matmul(nn.softmax(add(multiply(matmul(%q, permute_dims(%k, axes=%p)), %s), %c), axis=%x, axes=none), %v)"
            => "nn.attention(%q, %k, %v, %c, scale=%n)", if |m| attends_masked(m) && swaps(m), let n = factor,
        "matmul(nn.softmax(add(divide(matmul(%q, permute_dims(%k, axes=%p)), %s), %c), axis=%x, axes=none), %v)"
            => "nn.attention(%q, %k, %v, %c, scale=%n)", if |m| attends_masked(m) && swaps(m), let n = quotient,
        "matmul(nn.softmax(matmul(%q, permute_dims(%k, axes=%p)), axis=%x, axes=none), %v)"
            => "nn.attention(%q, permute_dims(%k, axes=%r), %v, scale=1.0)", if attends, let r = before_swap,
        "matmul(nn.softmax(multiply(matmul(%q, permute_dims(%k, axes=%p)), %s), axis=%x, axes=none), %v)"
            => "nn.attention(%q, permute_dims(%k, axes=%r), %v, scale=%n)", if attends, let r = before_swap,
            let n = factor,
        "matmul(nn.softmax(divide(matmul(%q, permute_dims(%k, axes=%p)), %s), axis=%x, axes=none), %v)"
            => "nn.attention(%q, permute_dims(%k, axes=%r), %v, scale=%n)", if attends, let r = before_swap,
            let n = quotient,
        "matmul(nn.softmax(add(matmul(%q, permute_dims(%k, axes=%p)), %c), axis=%x, axes=none), %v)"
            => "nn.attention(%q, permute_dims(%k, axes=%r), %v, %c, scale=1.0)", if attends_masked,
            let r = before_swap,
        "matmul(nn.softmax(add(multiply(matmul(%q, permute_dims(%k, axes=%p)), %s), %c), axis=%x, axes=none), %v)"
            => "nn.attention(%q, permute_dims(%k, axes=%r), %v, %c, scale=%n)", if attends_masked,
            let r = before_swap, let n = factor,
        "matmul(nn.softmax(add(divide(matmul(%q, permute_dims(%k, axes=%p)), %s), %c), axis=%x, axes=none), %v)"
            => "nn.attention(%q, permute_dims(%k, axes=%r), %v, %c, scale=%n)", if attends_masked,
            let r = before_swap, let n = quotient,
        // Keys that are scaled after their transposition.
        "matmul(nn.softmax(matmul(%q, multiply(permute_dims(%k, axes=%p), %s)), axis=%x, axes=none), %v)"
            => "nn.attention(%q, %k, %v, scale=%n)", if |m| attends(m) && swaps(m), let n = factor,
        "matmul(nn.softmax(add(matmul(%q, multiply(permute_dims(%k, axes=%p), %s)), %c), axis=%x, axes=none), %v)"
            => "nn.attention(%q, %k, %v, %c, scale=%n)", if |m| attends_masked(m) && swaps(m), let n = factor,
        "matmul(nn.softmax(matmul(%q, multiply(permute_dims(%k, axes=%p), %s)), axis=%x, axes=none), %v)"
            => "nn.attention(%q, permute_dims(%k, axes=%r), %v, scale=%n)", if attends, let r = before_swap,
            let n = factor,
        "matmul(nn.softmax(add(matmul(%q, multiply(permute_dims(%k, axes=%p), %s)), %c), axis=%x, axes=none), %v)"
            => "nn.attention(%q, permute_dims(%k, axes=%r), %v, %c, scale=%n)", if attends_masked,
            let r = before_swap, let n = factor,
    ]
}

/// Returns the rules for scales of the queries or keys of an attention.
fn scales() -> RuleSet {
    rules![
        "nn.attention(multiply(%q, %s), %k, %v, scale=%a)" => "nn.attention(%q, %k, %v, scale=%n)", if is_plain,
            let n = factor,
        "nn.attention(divide(%q, %s), %k, %v, scale=%a)" => "nn.attention(%q, %k, %v, scale=%n)", if is_plain,
            let n = quotient,
        "nn.attention(%q, multiply(%k, %s), %v, scale=%a)" => "nn.attention(%q, %k, %v, scale=%n)", if is_plain,
            let n = factor,
        "nn.attention(multiply(%q, %s), %k, %v, %c, scale=%a)" => "nn.attention(%q, %k, %v, %c, scale=%n)",
            if is_plain, let n = factor,
        "nn.attention(divide(%q, %s), %k, %v, %c, scale=%a)" => "nn.attention(%q, %k, %v, %c, scale=%n)",
            if is_plain, let n = quotient,
        "nn.attention(%q, multiply(%k, %s), %v, %c, scale=%a)" => "nn.attention(%q, %k, %v, %c, scale=%n)",
            if is_plain, let n = factor,
    ]
}

/// Returns true if a match is an attention without a mask.
fn attends(m: &Match<'_>) -> bool {
    scores(m).is_some() && m.is_last_use()
}

/// Returns true if a match is an attention with a mask. The last extents of the mask are those of
/// the scores: an attention takes a mask for fewer keys as one that hides the others, and
/// onnxruntime refuses one for fewer queries. Its other extents may be 1.
fn attends_masked(m: &Match<'_>) -> bool {
    let Some(scores) = scores(m) else { return false };
    let Some(mask) = extents(m, "c").filter(|mask| (2..=4).contains(&mask.len())) else { return false };
    let dims = &m.program().0.types.dims;
    let (front, last) = mask.split_at(mask.len() - 2);
    let may_repeat = |(own, of): (&DimId, &DimId)| own == of || dims.as_constant(*own) == Some(1);
    let fits = last == &scores[2..] && front.iter().rev().zip(scores[..2].iter().rev()).all(may_repeat);
    let has_type = tensor(m, "c").map(|t| t.dtype) == tensor(m, "q").map(|t| t.dtype);
    fits && has_type && m.is_last_use()
}

/// Returns the extents of the scores of queries and keys of floats, if the softmax is over their
/// last axis, and the batches, heads and lengths of queries, keys and values fit without
/// repetition.
fn scores(m: &Match<'_>) -> Option<[DimId; 4]> {
    if !m.is_float("q") || !matches!(m.attr("x"), None | Some(Attr::Int(-1 | 3))) {
        return None;
    }
    let (&[batch, heads, queries, size], &[_, _, keys, _]) = (extents(m, "q")?, extents(m, "v")?) else { return None };
    let axes = m.ints("p").and_then(|p| counted_axes(&p, 4))?;
    let given = extents(m, "k")?;
    let transposed: SmallVec<[DimId; 4]> = axes.iter().filter_map(|&axis| given.get(axis).copied()).collect();
    let unknown = m.program().0.types.dims.unknown();
    let are_known = [batch, heads, queries, size, keys].iter().all(|&extent| extent != unknown);
    let fit =
        given.len() == 4 && transposed[..] == [batch, heads, size, keys] && extents(m, "v")?[..2] == [batch, heads];
    (are_known && fit).then_some([batch, heads, queries, keys])
}

/// Returns true if the transposition `p` of the keys exchanges their last axes only.
fn swaps(m: &Match<'_>) -> bool {
    m.ints("p").and_then(|p| counted_axes(&p, 4)).is_some_and(|axes| axes[..] == [0, 1, 3, 2])
}

/// Returns the transposition `p` of the keys without the exchange of the last axes at its end.
fn before_swap(m: &Match<'_>) -> Option<Vec<i64>> {
    let mut axes = m.ints("p").filter(|axes| axes.len() == 4)?;
    axes.swap(2, 3);
    Some(axes)
}

/// Returns true if a match is an attention with a scale and no other attribute, and the scale of
/// its operand disappears.
fn is_plain(m: &Match<'_>) -> bool {
    let (cx, body) = m.program();
    let (Expr::CallOp { op, attrs, .. }, Some(_)) = (body.expr(m.root()), m.float("a")) else { return false };
    let is_omitted = |name: &str| name == "scale" || cx.find_attr(attrs, name).is_none();
    cx.ops.get(op).attrs.iter().all(|attr| is_omitted(attr.name)) && m.is_last_use()
}

/// Returns the constant `s`, one positive number, times the scale of an attention.
fn factor(m: &Match<'_>) -> Option<f64> {
    scale(m, |scale| scale)
}

/// Returns the scale of an attention divided by the constant `s`, one positive number.
fn quotient(m: &Match<'_>) -> Option<f64> {
    scale(m, |scale| 1.0 / scale)
}

/// Returns a function of the constant `s`, one positive number, times the scale of an attention, as
/// a scale. ONNX multiplies queries and keys by the root of the scale.
fn scale(m: &Match<'_>, of: impl Fn(f64) -> f64) -> Option<f64> {
    let is_one_number = m.literal("s").is_some_and(|literal| literal.element_count() == 1 && literal.rank() <= 4);
    let number = number(m, "s").filter(|&number| is_one_number && number > 0.0)?;
    float_attribute(m, "q", m.float("a").unwrap_or(1.0) * of(number)).filter(|&scale| scale > 0.0)
}

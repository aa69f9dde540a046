//! Matrix products with scales, biases and transpositions.

use anfora_ir::{Attr, DimId};
use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::match_facts::{counted_axes, extents, float_attribute, is_last_use, number, rank, root_extents};

/// Returns the rules for matrix products. The bias of `nn.gemm` is captured as `c`, its attributes
/// `alpha` and `beta` as `k` and `l`, and its transpositions as `t` and `u`.
pub(super) fn products() -> RuleSet {
    rules![
        "einsum(%a, %b, subscripts=%s)" => "matmul(%a, %b)", if is_matmul,
        "add(matmul(%a, %b), %c)" => "nn.gemm(%a, %b, %c)", if |m| are_matrices(m) && is_bias(m) && m.is_last_use(),
        "add(nn.gemm(%a, %b, alpha=%k, trans_a=%t, trans_b=%u), %c)"
            => "nn.gemm(%a, %b, %c, alpha=%k, trans_a=%t, trans_b=%u)", if |m| is_bias(m) && m.is_last_use(),
        "matmul(permute_dims(%a, axes=%p), %b)" => "nn.gemm(%a, %b, trans_a=true)",
            if |m| are_matrices(m) && swaps(m),
        "matmul(%a, permute_dims(%b, axes=%p))" => "nn.gemm(%a, %b, trans_b=true)",
            if |m| are_matrices(m) && swaps(m),
        "nn.gemm(permute_dims(%a, axes=%p), %b, alpha=%k, trans_a=%t, trans_b=%u)"
            => "nn.gemm(%a, %b, alpha=%k, trans_a=%n, trans_b=%u)", if swaps, let n = |m| Some(!flag(m, "t")),
        "nn.gemm(%a, permute_dims(%b, axes=%p), alpha=%k, trans_a=%t, trans_b=%u)"
            => "nn.gemm(%a, %b, alpha=%k, trans_a=%t, trans_b=%n)", if swaps, let n = |m| Some(!flag(m, "u")),
        "nn.gemm(permute_dims(%a, axes=%p), %b, %c, alpha=%k, beta=%l, trans_a=%t, trans_b=%u)"
            => "nn.gemm(%a, %b, %c, alpha=%k, beta=%l, trans_a=%n, trans_b=%u)", if swaps,
            let n = |m| Some(!flag(m, "t")),
        "nn.gemm(%a, permute_dims(%b, axes=%p), %c, alpha=%k, beta=%l, trans_a=%t, trans_b=%u)"
            => "nn.gemm(%a, %b, %c, alpha=%k, beta=%l, trans_a=%t, trans_b=%n)", if swaps,
            let n = |m| Some(!flag(m, "u")),
        "multiply(matmul(%a, %b), %f)" => "nn.gemm(%a, %b, alpha=%n)", if |m| are_matrices(m) && m.is_last_use(),
            let n = |m| scaled(m, |alpha, factor| alpha * factor),
        "divide(matmul(%a, %b), %f)" => "nn.gemm(%a, %b, alpha=%n)", if |m| are_matrices(m) && m.is_last_use(),
            let n = |m| scaled(m, |alpha, factor| alpha / factor),
        "multiply(nn.gemm(%a, %b, alpha=%k, trans_a=%t, trans_b=%u), %f)"
            => "nn.gemm(%a, %b, alpha=%n, trans_a=%t, trans_b=%u)", if is_last_use,
            let n = |m| scaled(m, |alpha, factor| alpha * factor),
        "divide(nn.gemm(%a, %b, alpha=%k, trans_a=%t, trans_b=%u), %f)"
            => "nn.gemm(%a, %b, alpha=%n, trans_a=%t, trans_b=%u)", if is_last_use,
            let n = |m| scaled(m, |alpha, factor| alpha / factor),
    ]
}

/// Returns true if `a` and `b` are matrices of floats.
fn are_matrices(m: &Match<'_>) -> bool {
    m.is_float("a") && rank(m, "a") == Some(2) && rank(m, "b") == Some(2)
}

/// Returns true if the bias `c` of floats broadcasts to the matrix that is replaced: its extents
/// are 1 or those of the matrix, which the sum therefore does not enlarge.
fn is_bias(m: &Match<'_>) -> bool {
    let (Some(of), Some(&[_, _])) = (extents(m, "c"), root_extents(m)) else { return false };
    let Some(product) = product_extents(m) else { return false };
    let dims = &m.program().0.types.dims;
    let fits = |of: DimId, own: DimId| dims.as_constant(of) == Some(1) || own == of && of != dims.unknown();
    let fit = of.iter().rev().zip(product.iter().rev()).all(|(&of, &own)| fits(of, own));
    m.is_float("c") && of.len() <= 2 && fit
}

/// Returns the extents of the product of `a` and `b`.
fn product_extents(m: &Match<'_>) -> Option<[DimId; 2]> {
    let (&[rows, inner], &[depth, columns]) = (extents(m, "a")?, extents(m, "b")?) else { return None };
    Some([if flag(m, "t") { inner } else { rows }, if flag(m, "u") { depth } else { columns }])
}

/// Returns the captured value of an attribute that is true or false; false is the default.
fn flag(m: &Match<'_>, name: &str) -> bool {
    matches!(m.attr(name), Some(Attr::Bool(true)))
}

/// Returns true if the transposition `p` exchanges the axes of a matrix.
fn swaps(m: &Match<'_>) -> bool {
    m.attr("p").is_none() || m.ints("p").and_then(|axes| counted_axes(&axes, 2)).is_some_and(|axes| axes[..] == [1, 0])
}

/// Returns the attribute `alpha` of a product that is scaled by the constant `f`.
fn scaled(m: &Match<'_>, by: impl Fn(f64, f64) -> f64) -> Option<f64> {
    let literal = m.literal("f")?;
    let is_one_number = literal.element_count() == 1 && literal.rank() <= 2;
    let factor = number(m, "f").filter(|factor| is_one_number && factor.is_finite() && *factor != 0.0)?;
    float_attribute(m, "a", by(m.float("k").unwrap_or(1.0), factor))
}

/// Returns true if subscripts are those of a product of matrices: `…ij,…jk->…ik`, with the same
/// letters in front, each of which names one axis.
fn is_matmul(m: &Match<'_>) -> bool {
    let Some(Attr::Str(text)) = m.attr("s") else { return false };
    let text: String = m.program().0.names.get(*text).chars().filter(|c| *c != ' ').collect();
    let Some(((first, second), result)) = text.split_once("->").and_then(|(l, r)| Some((l.split_once(',')?, r))) else {
        return false;
    };
    let is_plain = |part: &str| part.bytes().all(|c| c.is_ascii_alphabetic());
    let [first, second, result] = [first, second, result].map(str::as_bytes);
    let rank = first.len();
    if rank < 2 || second.len() != rank || result.len() != rank || !is_plain(&text.replace("->", "").replace(',', "")) {
        return false;
    }
    let front = rank - 2;
    let (rows, inner, columns) = (first[front], first[front + 1], second[front + 1]);
    let mut letters = [&first[..front], &[rows, inner, columns]].concat();
    letters.sort_unstable();
    letters.windows(2).all(|pair| pair[0] != pair[1])
        && first[..front] == second[..front]
        && second[front] == inner
        && result[..front] == first[..front]
        && result[front..] == [rows, columns]
}

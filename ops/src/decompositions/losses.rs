//! Losses.

use anfora_ir::{Decomposer, DecompositionPart as Part, DecompositionRule};

use super::{Widened, whole};

pub(super) const RULES: &[(&str, DecompositionRule)] = &[
    ("nn.nll_loss", |d| {
        let types = Widened::of(d, 0)?;
        let x = types.operand(d, 0)?;
        nll_loss(d, types, x)
    }),
    ("nn.softmax_cross_entropy", softmax_cross_entropy),
];

/// Returns the loss of log-probabilities `x` `(n, classes, …)`, which are in the type that is
/// computed in: `-x[n, target, …] * weight`, 0 where the target is ignored, and its reduction.
fn nll_loss(d: &mut Decomposer<'_>, types: Widened, x: Part) -> Option<Part> {
    d.rank(0)?.checked_sub(2)?;
    let attrs = d.attrs();
    let (reduction, ignored) = (attrs.str("reduction")?, attrs.int("ignore_index"));
    let (mut targets, of_targets) = (d.operand(1)?, d.dtype(1)?);
    // An index that the targets cannot have ignores nothing. An ignored target may be no class, so
    // class 0 takes its place.
    let ignored = ignored.and_then(|index| d.number(index, of_targets));
    let is_ignored = ignored.map(|ignored| d.op("equal", &[targets, ignored]));
    if let Some(is_ignored) = is_ignored {
        let first = whole(d, 0, of_targets)?;
        targets = d.op("where", &[is_ignored, first, targets]);
    }
    let places = d.op_with("expand_dims", &[targets], &[("axis", [1].into())]);
    let found = d.op_with("gather_elements", &[x, places], &[("axis", 1.into())]);
    let found = d.op_with("squeeze", &[found], &[("axis", [1].into())]);
    let mut loss = d.op("negative", &[found]);
    let mut weights = types.operand(d, 2).map(|weights| d.op("take", &[weights, targets]));
    if let Some(weights) = weights {
        loss = d.op("multiply", &[loss, weights]);
    }
    if let Some(is_ignored) = is_ignored {
        let (zero, one) = (types.number(d, 0.0)?, types.number(d, 1.0)?);
        loss = d.op("where", &[is_ignored, zero, loss]);
        weights = Some(d.op("where", &[is_ignored, zero, weights.unwrap_or(one)]));
    }
    let result = match (reduction, weights) {
        ("none", _) => loss,
        ("sum", _) => d.op("sum", &[loss]),
        ("mean", None) => d.op("mean", &[loss]),
        ("mean", Some(weights)) => {
            let (losses, weights) = (d.op("sum", &[loss]), d.op("sum", &[weights]));
            d.op("divide", &[losses, weights])
        }
        _ => return None,
    };
    Some(types.narrow(d, result))
}

/// The loss of the log-softmax over axis 1, and that.
fn softmax_cross_entropy(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let x = d.operand(0)?;
    let scores = d.op_with("nn.log_softmax", &[x], &[("axis", 1.into())]);
    let wide = types.widen(d, scores);
    let loss = nll_loss(d, types, wide)?;
    Some(d.tuple(&[loss, scores]))
}

//! Evaluates a call of an operator on constants, within a budget that is looked at before.

use anfora_ir::{AttrReader, AttrsId, Context, KernelCall, Literal, LiteralId, OpId, TypeId, element_count};
use smallvec::SmallVec;

/// Why a call was not evaluated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NotEvaluated {
    /// Its type does not say how large the result is.
    UnknownSize,
    /// The result is larger than what is left of the budget. With the bytes that it would take.
    TooLarge(usize),
    /// It fails.
    Fails(String),
}

/// The results of a call on constants (`None` for an operand that is left out): one, or the fields of the tuple that the operator returns.
/// Nothing is computed if the results would be stored in more than `budget` bytes.
pub(crate) fn evaluate(
    cx: &Context,
    op: OpId,
    operands: &[Option<LiteralId>],
    attrs: AttrsId,
    ty: TypeId,
    budget: usize,
) -> Result<Vec<Literal>, NotEvaluated> {
    let row = cx.ops.get(op);
    let Some(kernel) = row.kernel else { return Err(NotEvaluated::UnknownSize) };
    let operands: SmallVec<[Option<&Literal>; 4]> = operands.iter().map(|o| o.map(|l| cx.literals.get(l))).collect();
    let size = result_bytes(cx, ty).ok_or(NotEvaluated::UnknownSize)?;
    if size > budget && !row.gives_splat(&operands) {
        return Err(NotEvaluated::TooLarge(size));
    }
    let call = KernelCall { operands: &operands, attrs: AttrReader { cx, op, attrs }, ty };
    let results = kernel(&call).map_err(|e| NotEvaluated::Fails(e.message))?;
    let stored = results.iter().fold(0usize, |n, l| n.saturating_add(l.stored_bytes()));
    if stored > budget {
        return Err(NotEvaluated::TooLarge(stored));
    }
    Ok(results)
}

/// The bytes of a tensor, or of all fields of a tuple, written out; `None` if the type does not say, or they overflow.
fn result_bytes(cx: &Context, ty: TypeId) -> Option<usize> {
    let tensor = |ty| -> Option<usize> {
        let dtype = cx.types.as_tensor(ty)?.dtype;
        let shape = cx.types.static_shape(ty)?;
        match element_count(&shape) {
            Some(n) => Some(dtype.byte_len(n).unwrap_or(usize::MAX)),
            None => Some(usize::MAX),
        }
    };
    match cx.types.as_tuple(ty) {
        Some(fields) => fields.iter().try_fold(0usize, |n, &f| Some(n.saturating_add(tensor(f)?))),
        None => tensor(ty),
    }
}

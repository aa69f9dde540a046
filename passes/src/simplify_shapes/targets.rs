//! Literal target shapes in place of computed ones, and calls that do not change the shape of their
//! operand.

use anfora_ir::{Body, Context, DimId, Dims, Expr, ExprId};
use anfora_visit::Site;
use smallvec::SmallVec;

use super::list;

/// The numbers of a target shape.
pub(crate) type Numbers = SmallVec<[i64; 6]>;

/// Returns true if the types of a value and of an operand have the same extents and all of these
/// are known.
pub(super) fn has_same_shape(s: &Site<'_>, value: ExprId, operand: ExprId) -> bool {
    let types = &s.editor.cx.types;
    let (ty, from) = (s.editor.body.type_of(value), s.editor.body.type_of(operand));
    types.has_known_extents(ty)
        && matches!((types.as_tensor(ty), types.as_tensor(from)), (Some(t), Some(f)) if t.shape == f.shape)
}

/// Returns true if a slice has no stride below 1.
pub(super) fn is_forward(s: &Site<'_>, slice: ExprId) -> bool {
    let Some(&strides) = s.editor.body.operands_of(slice).get(4) else { return true };
    if matches!(s.editor.body.expr(strides), Expr::None) {
        return true;
    }
    let types = &s.editor.cx.types;
    types.elements(s.editor.body.type_of(strides)).is_some_and(|strides| {
        strides.iter().all(|&stride| types.dims.as_constant(stride).is_some_and(|stride| stride >= 1))
    })
}

/// Returns a reshape to a literal target in place of one to a computed target. If there is none,
/// and the reshape only adds or only removes extents of 1, returns the call that does this.
pub(super) fn reshape(s: &mut Site<'_>, value: ExprId) -> Option<ExprId> {
    let (x, target) = computed_target(s, value)?;
    let types = &s.editor.cx.types;
    let from = types.as_tensor(s.editor.body.type_of(x))?.shape.as_deref()?;
    let to = types.as_tensor(s.editor.body.type_of(value))?.shape.as_deref()?;
    let elements = types.elements(s.editor.body.type_of(target));
    let new = if let Some(numbers) = reshape_numbers(&types.dims, from, to, elements) {
        let target = list(s, &numbers)?;
        s.editor.call_named("reshape", &[x, target])
    } else if let Some(axes) = added_axes(&types.dims, from, to) {
        s.editor.op("expand_dims", &[x], &[("axis", axes.into())])
    } else {
        let axes = added_axes(&types.dims, to, from)?;
        s.editor.op("squeeze", &[x], &[("axis", axes.into())])
    };
    accepted(s, value, new.ok()?)
}

/// Returns the axes of `to` that do not come from `from`, if all of them are 1 and all others come
/// from there in order.
fn added_axes(dims: &Dims, from: &[DimId], to: &[DimId]) -> Option<Vec<i64>> {
    let mut left = from.iter().peekable();
    let mut added = Vec::new();
    for (axis, &extent) in (0i64..).zip(to) {
        if extent != dims.unknown() && left.next_if_eq(&&extent).is_some() {
            continue;
        }
        if dims.as_constant(extent) != Some(1) {
            return None;
        }
        added.push(axis);
    }
    left.next().is_none().then_some(added)
}

/// Returns the numbers of a literal target for a reshape from the extents `from` to the extents
/// `to`. `elements` are the elements of the computed target.
///
/// The number 0 stands for an extent that the operand has at the same axis. One other extent that
/// is not a constant may become -1. A call with -1 fails if another extent is 0. So -1 is used only
/// if all other numbers are positive, or if the computed target has -1 at the same place: the
/// original call then fails too.
pub(crate) fn reshape_numbers(
    dims: &Dims,
    from: &[DimId],
    to: &[DimId],
    elements: Option<&[DimId]>,
) -> Option<Numbers> {
    let mut numbers = Numbers::new();
    let mut inferred = None;
    for (axis, &extent) in to.iter().enumerate() {
        let number = match dims.as_constant(extent) {
            Some(number) if number > 0 => number,
            _ if from.get(axis) == Some(&extent) && extent != dims.unknown() => 0,
            Some(_) => return None,
            None if inferred.replace(axis).is_none() => -1,
            None => return None,
        };
        numbers.push(number);
    }
    let Some(inferred) = inferred else { return Some(numbers) };
    let was_inferred = elements
        .and_then(|elements| elements.get(inferred))
        .is_some_and(|&element| dims.as_constant(element) == Some(-1));
    let others_are_positive = numbers.iter().all(|&number| number != 0);
    (was_inferred || (others_are_positive && to[inferred] != dims.unknown())).then_some(numbers)
}

/// Returns an expansion to a literal target in place of one to a computed target.
pub(super) fn expansion(s: &mut Site<'_>, value: ExprId) -> Option<ExprId> {
    let (x, _) = computed_target(s, value)?;
    let types = &s.editor.cx.types;
    let from = types.as_tensor(s.editor.body.type_of(x))?.shape.as_deref()?;
    let to = types.as_tensor(s.editor.body.type_of(value))?.shape.as_deref()?;
    let added = to.len().checked_sub(from.len())?;
    let mut numbers = Numbers::new();
    for (axis, &extent) in to.iter().enumerate() {
        let own = axis.checked_sub(added).map(|axis| from[axis]);
        numbers.push(match types.dims.as_constant(extent) {
            Some(number) => number,
            None if own == Some(extent) && extent != types.dims.unknown() => 1,
            None => return None,
        });
    }
    let target = list(s, &numbers)?;
    let new = s.editor.op("broadcast_to", &[x, target], &[("bidirectional", true.into())]).ok()?;
    accepted(s, value, new)
}

/// Returns the reason why the computed target of a reshape or an expansion stays; `None` if the
/// target is a literal.
#[cold]
pub(super) fn obstacle(cx: &Context, body: &Body, value: ExprId, is_reshape: bool) -> Option<String> {
    let &[x, target] = body.operands_of(value) else { return None };
    if matches!(body.expr(target), Expr::Literal(_)) {
        return None;
    }
    let dims = &cx.types.dims;
    let shape = |id: ExprId| cx.types.as_tensor(body.type_of(id)).and_then(|tensor| tensor.shape.as_deref());
    let (Some(from), Some(to)) = (shape(x), shape(value)) else {
        return Some("the ranks of the operand and of the result are not both known".to_string());
    };
    // The axes whose extents are no constants and not those of the operand, and those that a
    // literal of a reshape states by 0.
    let added = if is_reshape { 0 } else { to.len().saturating_sub(from.len()) };
    let own = |axis: usize| axis.checked_sub(added).and_then(|axis| from.get(axis)).copied();
    let is_own = |axis: usize, extent: DimId| own(axis) == Some(extent) && extent != dims.unknown();
    let (mut computed, mut zeros) = (Vec::new(), Vec::new());
    for (axis, &extent) in to.iter().enumerate() {
        match dims.as_constant(extent) {
            Some(1..) => {}
            Some(_) => zeros.push(axis),
            None if is_own(axis, extent) => zeros.push(axis),
            None => computed.push(axis),
        }
    }
    let list = |axes: &[usize]| axes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    Some(match (&*computed, &*zeros) {
        ([axis], []) if is_reshape && to[*axis] != dims.unknown() => "the call would have another type".to_string(),
        ([axis], [_, ..]) if is_reshape => {
            format!("the extent of axis {axis} of the result is computed, and those of axes {} may be 0", list(&zeros))
        }
        ([], _) => "the call would have another type".to_string(),
        (axes, _) => format!("the extents of these axes of the result are computed: {}", list(axes)),
    })
}

/// Returns the operand and the target shape of a call, unless the target is a literal.
fn computed_target(s: &Site<'_>, value: ExprId) -> Option<(ExprId, ExprId)> {
    let &[x, target] = s.editor.body.operands_of(value) else { return None };
    (!matches!(s.editor.body.expr(target), Expr::Literal(_))).then_some((x, target))
}

/// Returns a new value if its type is that of the old value, or more specific.
fn accepted(s: &Site<'_>, old: ExprId, new: ExprId) -> Option<ExprId> {
    s.editor.cx.types.accepts(s.editor.body.type_of(old), s.editor.body.ty(new)).then_some(new)
}

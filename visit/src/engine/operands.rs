//! Rewrites the operands of nodes.

use anfora_ir::{Expr, ExprId, OperandList};
use smallvec::SmallVec;

use crate::engine::types;
use crate::mutator::{Edits, Mutator};
use crate::site::Site;

/// The operands of a node whose types may have changed: the number and the old operand of each.
pub(super) type Changed = SmallVec<[(u32, ExprId); 4]>;

/// Rewrites the operands of a call or tuple and returns the resulting node. `parts` is the position
/// of the results of its operands, if these were walked; otherwise all operands are atoms.
#[inline(always)]
pub(super) fn rewrite_list<M: Mutator>(
    s: &mut Site<'_>,
    m: &mut M,
    id: ExprId,
    list: OperandList,
    parts: Option<usize>,
) -> Result<ExprId, M::Error> {
    let watch = !s.retyped.is_empty();
    for i in 0..list.len() {
        let old = s.editor.body.operand(list, i);
        let new = result_of::<M>(s, old, i, parts)?;
        if new != old || watch {
            return rewrite_from(s, m, id, list, i, parts);
        }
    }
    Ok(id)
}

/// Rewrites the operands from the first one that is new or may have another type.
fn rewrite_from<M: Mutator>(
    s: &mut Site<'_>,
    m: &mut M,
    id: ExprId,
    list: OperandList,
    from: usize,
    parts: Option<usize>,
) -> Result<ExprId, M::Error> {
    let mut changed = Changed::new();
    let mut copied: SmallVec<[ExprId; 8]> = SmallVec::new();
    let mut differs = false;
    if M::EDITS != Edits::InPlace {
        copied.extend_from_slice(s.editor.body.operands(list));
    }
    for i in from..list.len() {
        let old = s.editor.body.operand(list, i);
        let new = result_of::<M>(s, old, i, parts)?;
        if new != old {
            differs = true;
            if M::EDITS == Edits::InPlace {
                s.editor.body.set_operand(list, i, new);
            } else {
                copied[i] = new;
            }
        }
        if s.matters(old, new) {
            changed.push((i as u32, old));
        }
    }
    let mut post = id;
    if differs && M::EDITS != Edits::InPlace {
        post = s.editor.with_operands(id, &copied);
    }
    if !changed.is_empty() {
        post = types::refresh(s, m, post, post != id, &changed)?;
    }
    Ok(post)
}

/// Rewrites the operand of a projection and returns the resulting projection.
#[inline(always)]
pub(super) fn rewrite_proj<M: Mutator>(
    s: &mut Site<'_>,
    m: &mut M,
    id: ExprId,
    parts: Option<usize>,
) -> Result<ExprId, M::Error> {
    let Expr::Proj { tuple, index } = s.editor.body.expr(id) else { return Ok(id) };
    let new = result_of::<M>(s, tuple, 0, parts)?;
    if new == tuple && s.retyped.is_empty() {
        return Ok(id);
    }
    let mut post = id;
    if new != tuple {
        if M::EDITS == Edits::InPlace {
            s.editor.body.set_expr(id, Expr::Proj { tuple: new, index });
        } else {
            post = s.editor.with_operands(id, &[new]);
        }
    }
    if s.matters(tuple, new) {
        post = types::refresh(s, m, post, post != id, &[(0, tuple)])?;
    }
    Ok(post)
}

#[inline(always)]
fn result_of<M: Mutator>(
    s: &mut Site<'_>,
    operand: ExprId,
    i: usize,
    parts: Option<usize>,
) -> Result<ExprId, M::Error> {
    match parts {
        Some(first) => Ok(s.results[first + i]),
        None => match s.resolve_operand::<M>(operand) {
            Some(new) => Ok(new),
            None => Err(s.not_a_normal_form().into()),
        },
    }
}

impl Site<'_> {
    /// Returns true if the type of a node may change when `new` replaces its operand `old`.
    #[inline(always)]
    fn matters(&self, old: ExprId, new: ExprId) -> bool {
        if new != old {
            let body = &*self.editor.body;
            match (body.expr(old), body.expr(new)) {
                (Expr::Var { .. }, Expr::Var { .. }) if body.ty(new) == body.ty(old) => {}
                (Expr::Var { .. }, _) | (_, Expr::Literal(_) | Expr::None | Expr::Op(_) | Expr::Global(_)) => {
                    return true;
                }
                (Expr::Literal(_) | Expr::None, _) => return true,
                _ if body.type_of(new) != body.type_of(old) => return true,
                _ => {}
            }
        }
        !self.retyped.is_empty() && (self.retyped.contains_key(&old) || self.retyped.contains_key(&new))
    }
}

//! Type inference of a walk: types are inferred again if operands have new types, and changes are
//! passed on to users.
//!
//! If a node does not accept the types of its new operands, there are three ways to go on, selected
//! by [`Refused`]: the walk ends; the operands are converted back to their old types; or types may
//! change to any others, and values that must keep their type are converted to it.

use anfora_ir::{DType, Editor, Expr, ExprId, LetFlags, TypeError, TypeId, VarFlags, VarId, infer_call};
use smallvec::SmallVec;

use crate::chain::tail_link;
use crate::conversion::split_and_convert;
use crate::engine::ask;
use crate::error::{RewriteError, check_type};
use crate::link::{Binding, Link};
use crate::mutator::{Edits, Mutator, Refused};
use crate::site::Site;

/// Infers the type of a node again after operands were replaced or got other types. `old_operands`
/// are these operands with their numbers, before the change. Returns the node, or a copy of it if
/// nodes are copied and it is not a copy yet.
#[inline(never)]
pub(super) fn refresh<M: Mutator>(
    s: &mut Site<'_>,
    m: &mut M,
    mut node: ExprId,
    is_copy: bool,
    old_operands: &[(u32, ExprId)],
) -> Result<ExprId, M::Error> {
    let old = s.editor.body.ty(node);
    if let Err(error) = s.editor.refresh_type(node) {
        if M::REFUSED == Refused::Error {
            return Err(RewriteError::Type(error).into());
        }
        let may_bind = !M::NODES || M::EDITS == Edits::Scoped || !s.is_shared(node);
        if M::EDITS != Edits::InPlace && !is_copy {
            let operands: SmallVec<[ExprId; 8]> = SmallVec::from_slice(s.editor.body.inputs(node));
            node = s.editor.with_operands(node, &operands);
        }
        restore_types(s, m, node, may_bind, old_operands)?;
    }
    note_node::<M>(s, old, node)?;
    Ok(node)
}

/// Converts operands back to their old types, which the type rule accepted.
#[cold]
fn restore_types<M: Mutator>(
    s: &mut Site<'_>,
    m: &mut M,
    node: ExprId,
    may_bind: bool,
    old_operands: &[(u32, ExprId)],
) -> Result<(), M::Error> {
    let mut converted: SmallVec<[(ExprId, TypeId, ExprId); 4]> = SmallVec::new();
    for &(i, old) in old_operands {
        let ty = s.type_before(old);
        let place = Link::Operand(node, i);
        let operand = place.target(s.editor.body);
        if s.editor.body.type_of(operand) == ty {
            continue;
        }
        if let Some(&(.., new)) = converted.iter().find(|&&(of, to, _)| (of, to) == (operand, ty)) {
            place.set(s.editor.body, new);
            continue;
        }
        let mut bindings = Bindings::new();
        let mut new = convert(s, m, operand, ty, &mut bindings)?;
        if may_bind && s.is_at_slot() && s.editor.body.expr(operand).is_atom() {
            for (var, value) in bindings {
                s.push(var, value);
            }
            let name = s.editor.body.as_var(old).and_then(|v| s.editor.body.var_name(v));
            new = s.bind(name, new);
        } else {
            new = block_of(s, bindings, new);
        }
        converted.push((operand, ty, new));
        place.set(s.editor.body, new);
    }
    s.editor.refresh_type(node).map_err(|error| s.untyped(error))?;
    Ok(())
}

/// Bindings that a conversion needs before its value.
type Bindings = Vec<(VarId, ExprId)>;

fn block_of(s: &mut Site<'_>, bindings: Bindings, mut block: ExprId) -> ExprId {
    for (var, value) in bindings.into_iter().rev() {
        block = s.editor.let_(var, value, block, LetFlags::PLAIN);
    }
    block
}

/// Returns a value of type `to` made from another value. If types may change to any others, a tuple
/// is split and its fields are converted, at any depth.
fn convert<M: Mutator>(
    s: &mut Site<'_>,
    m: &mut M,
    value: ExprId,
    to: TypeId,
    bindings: &mut Bindings,
) -> Result<ExprId, M::Error> {
    let mut cast = |s: &mut Site<'_>, of: ExprId, ty: TypeId, bindings: &mut Bindings| {
        let outer = s.of_cast.replace(Vec::new());
        let cast = ask::<M, _>(s, of, |s| m.cast(s, of, ty));
        bindings.extend(std::mem::replace(&mut s.of_cast, outer).into_iter().flatten());
        cast
    };
    if M::REFUSED == Refused::Retype {
        return split_and_convert(s, |s| &mut s.editor, value, to, bindings, cast);
    }
    let mut value = value;
    if !s.editor.body.expr(value).is_atom() {
        let ty = s.editor.body.type_of(value);
        let var = s.editor.var(None, VarFlags::PLAIN, ty);
        bindings.push((var, value));
        value = var.expr();
    }
    if s.editor.body.ty(value) == to { Ok(value) } else { cast(s, value, to, bindings) }
}

/// Infers the type of an If or a `fn` again after types or tails changed in its blocks.
#[cold]
pub(super) fn refresh_owner<M: Mutator>(s: &mut Site<'_>, m: &mut M, owner: ExprId) -> Result<(), M::Error> {
    let old = s.editor.body.ty(owner);
    state_recursive_result(s, owner);
    if M::REFUSED == Refused::Retype
        && let Expr::Lambda { lambda, .. } = s.editor.body.expr(owner)
        && let Some(ret) = s.editor.body.lambda(lambda).ret
        && let Expr::Lambda { body: block, .. } = s.editor.body.expr(owner)
        && !s.editor.cx.types.accepts(ret, s.editor.body.type_of(block))
    {
        cast_tail(s, m, Link::Lambda(owner), ret)?;
    }
    if let Err(error) = s.editor.refresh_type(owner) {
        if M::REFUSED == Refused::Error || !matches!(s.editor.body.expr(owner), Expr::If { .. }) {
            return Err(RewriteError::Type(error).into());
        }
        // The branches have no common type any more: each is converted to their old type.
        for place in [Link::Then(owner), Link::Else(owner)] {
            cast_tail(s, m, place, old)?;
        }
        s.editor.refresh_type(owner).map_err(|error| s.untyped(error))?;
    }
    note_node::<M>(s, old, owner)
}

/// States the result type of a `fn` that calls itself: the type that its calls had.
fn state_recursive_result(s: &mut Site<'_>, owner: ExprId) {
    let body = &*s.editor.body;
    let Expr::Lambda { lambda, body: block } = body.expr(owner) else { return };
    let Expr::Let { var, .. } = body.expr(s.block.at) else { return };
    if !s.is_at_slot() || !s.calls_itself.contains(var.expr()) {
        return;
    }
    let (mut data, old, found) = (body.lambda(lambda), body.ty(owner), body.type_of(block));
    if data.ret.is_some() {
        return;
    }
    // A call with its own parameters names their symbols where the type of the `fn` binds them.
    let params: SmallVec<[TypeId; 4]> = body.lambda_params(lambda).map(|p| body.ty(p.expr())).collect();
    let Ok(had) = infer_call(s.editor.cx, old, &params) else { return };
    if had != found {
        data.ret = Some(had);
        s.editor.body.set_lambda(lambda, data);
    }
}

/// Returns the condition of an If converted to a boolean, if types may change to any others.
pub(super) fn restore_condition<M: Mutator>(
    s: &mut Site<'_>,
    m: &mut M,
    old: ExprId,
    cond: ExprId,
) -> Result<ExprId, M::Error> {
    let boolean = s.editor.cx.types.scalar(DType::Bool);
    if M::REFUSED != Refused::Retype || s.editor.cx.types.accepts(boolean, s.editor.body.type_of(cond)) {
        return Ok(cond);
    }
    let ty = s.type_before(old);
    let mut bindings = Bindings::new();
    let cond = convert(s, m, cond, ty, &mut bindings)?;
    for (var, value) in bindings {
        s.push(var, value);
    }
    Ok(s.bind(None, cond))
}

/// Converts the result of a block to a type, unless it has this type.
fn cast_tail<M: Mutator>(s: &mut Site<'_>, m: &mut M, block: Link, to: TypeId) -> Result<(), M::Error> {
    let link = tail_link(s.editor.body, block);
    let tail = link.target(s.editor.body);
    if s.editor.body.ty(tail) == to {
        return Ok(());
    }
    let converted = convert_tail(s, m, tail, to)?;
    link.set(s.editor.body, converted);
    Ok(())
}

/// Returns a block that converts a tail to a type.
fn convert_tail<M: Mutator>(s: &mut Site<'_>, m: &mut M, tail: ExprId, to: TypeId) -> Result<ExprId, M::Error> {
    let mut bindings = Bindings::new();
    let value = convert(s, m, tail, to, &mut bindings)?;
    Ok(block_of(s, bindings, value))
}

/// Converts the result of the walk to the stated type, if the stated type does not accept it.
pub(super) fn finish_result<M: Mutator>(
    s: &mut Site<'_>,
    m: &mut M,
    root: ExprId,
    ret: Option<TypeId>,
) -> Result<ExprId, M::Error> {
    if M::REFUSED != Refused::Retype
        && let Some(before) = s.result_before
    {
        check_type(s.editor.cx, before, s.editor.body.type_of(root))?;
    }
    let Some(ret) = ret.filter(|_| M::REFUSED == Refused::Retype) else { return Ok(root) };
    if s.editor.cx.types.accepts(ret, s.editor.body.type_of(root)) {
        return Ok(root);
    }
    match Binding::of(s.editor.body, root) {
        Some(first) => {
            cast_tail(s, m, Link::Rest(first.id), ret)?;
            Ok(root)
        }
        None => convert_tail(s, m, root, ret),
    }
}

// ---- Passing types on ----

/// Records that the type of a node changed from `old`.
#[inline]
pub(super) fn note_node<M: Mutator>(s: &mut Site<'_>, old: TypeId, node: ExprId) -> Result<(), M::Error> {
    let new = s.editor.body.ty(node);
    if new == old {
        return Ok(());
    }
    if M::REFUSED == Refused::Error {
        check_type(s.editor.cx, old, new)?;
    }
    if M::NODES {
        s.retyped.entry(node).or_insert(old);
    }
    if s.is_at_slot() {
        return note_value::<M>(s, old, node);
    }
    s.retypes += 1;
    Ok(())
}

/// Records that `value` replaced the value of the current Let, which had the type `old`. A variable
/// that had this type gets the new one; a variable that was annotated with a less specific type
/// keeps it.
pub(super) fn note_value<M: Mutator>(s: &mut Site<'_>, old: TypeId, value: ExprId) -> Result<(), M::Error> {
    let new = s.editor.body.type_of(value);
    if new == old {
        return Ok(());
    }
    s.retypes += 1;
    let Expr::Let { var, .. } = s.editor.body.expr(s.block.at) else {
        return Ok(());
    };
    let stated = s.editor.body.ty(var.expr());
    if M::REFUSED == Refused::Error {
        check_type(s.editor.cx, stated, new)?;
    }
    if stated == old || (M::REFUSED == Refused::Retype && !s.editor.cx.types.accepts(stated, new)) {
        s.retyped.entry(var.expr()).or_insert(stated);
        s.editor.body.set_type(var.expr(), new);
    }
    Ok(())
}

/// Records the type of an atom that became the value of the current Let in place of `pre`.
#[inline]
pub(super) fn note_alias<M: Mutator>(s: &mut Site<'_>, pre: ExprId, value: ExprId) -> Result<(), M::Error> {
    if !s.editor.body.expr(pre).is_atom() {
        return Ok(());
    }
    let before = s.type_before(pre);
    note_value::<M>(s, before, value)
}

/// Records the type of the block's new tail, an atom or a node that may have been walked before, in
/// place of `pre`.
#[inline]
pub(super) fn note_tail(s: &mut Site<'_>, pre: ExprId, value: ExprId) {
    if s.editor.body.type_of(value) != s.type_before(pre) {
        s.retypes += 1;
    }
}

/// Records the type of a value that the author gave to the current Let.
pub(super) fn note_new_value<M: Mutator>(s: &mut Site<'_>, old: ExprId, new: ExprId) -> Result<(), M::Error> {
    let before = s.editor.body.type_of(old);
    if M::REFUSED != Refused::Retype {
        check_type(s.editor.cx, before, s.editor.body.type_of(new))?;
    }
    note_value::<M>(s, before, new)
}

/// Records the type of a tail that the author gave to a block whose tail had the type `wanted`.
pub(super) fn note_new_tail<M: Mutator>(s: &mut Site<'_>, wanted: TypeId, new: ExprId) -> Result<(), M::Error> {
    let found = s.editor.body.type_of(new);
    if wanted != found {
        if M::REFUSED != Refused::Retype {
            check_type(s.editor.cx, wanted, found)?;
        }
        s.retypes += 1;
    }
    Ok(())
}

/// Returns the result of a node that the author replaced. `post` is the node with rewritten parts.
pub(super) fn replaced<M: Mutator>(s: &mut Site<'_>, post: ExprId, new: ExprId) -> Result<ExprId, M::Error> {
    let new = s.resolve(new);
    if new == post {
        return Ok(new);
    }
    let (wanted, found) = (s.editor.body.type_of(post), s.editor.body.type_of(new));
    if M::REFUSED != Refused::Retype {
        check_type(s.editor.cx, wanted, found)?;
    }
    s.let_out(new);
    s.note_made();
    if wanted != found && s.is_at_slot() {
        note_value::<M>(s, wanted, new)?;
    }
    Ok(new)
}

/// Records that the type of a block that is a value or an operand changed from `old`. The walk has
/// left the block.
pub(super) fn note_block<M: Mutator>(
    s: &mut Site<'_>,
    start: ExprId,
    result: ExprId,
    old: TypeId,
) -> Result<(), M::Error> {
    if s.is_at_slot() {
        return note_value::<M>(s, old, result);
    }
    if s.editor.body.type_of(result) != old {
        s.retyped.entry(start).or_insert(old);
    }
    Ok(())
}

impl Site<'_> {
    /// Returns the type that an expression had when the walk began.
    #[inline]
    pub(super) fn type_before(&self, id: ExprId) -> TypeId {
        if self.retyped.is_empty() {
            return self.editor.body.type_of(id);
        }
        self.retyped.get(&id).copied().unwrap_or_else(|| self.editor.body.type_of(id))
    }

    fn untyped(&self, error: TypeError) -> RewriteError {
        let Editor { cx, body } = &self.editor;
        RewriteError::untyped(error, self.binding().and_then(|id| body.binding_name(cx, id)))
    }
}

//! The forward walk of [`mutate`](crate::mutate): one loop over slots, in which operands are
//! rewritten before their node.
//!
//! A slot is a Let or a tail. The loop goes along a chain from slot to slot. An If, a `fn` or a
//! block opens a [`Block`], and a node with operands that are nodes opens an [`OpenNode`], each on
//! a stack of its own. A call, tuple or projection of atoms opens nothing. One table holds the
//! replacement of each variable and node ([`Site::current`](crate::Site)).

pub(crate) mod block;
mod operands;
pub(crate) mod regions;
pub(crate) mod sharing;
pub(crate) mod spliced;
mod types;

use anfora_ir::{BlockKind, Expr, ExprId, LetFlags, RegionWriter, SharedEdits, TypeId, VarId};

use crate::chain::pass_on_output;
use crate::error::RewriteError;
use crate::link::Link;
use crate::mutator::{Edits, Mutator, Refused, Rewrite, Scope, Slot, Verdict};
use crate::site::Site;

use block::{Block, OpenNode};
use spliced::spliced_twice;

/// The state after a step.
enum Walk {
    /// An expression is finished.
    Done {
        /// The expression before the walk.
        pre: ExprId,
        /// The expression that it has become.
        result: ExprId,
    },
    /// The innermost open node continues with its next operand.
    Node,
    /// A block was opened.
    Block,
    /// The block of the whole walk is left.
    End,
}

/// Calls the author, who must not overwrite anything that is being walked.
#[inline(always)]
pub(crate) fn ask<'e, M: Mutator, T>(
    s: &mut Site<'e>,
    id: ExprId,
    call: impl FnOnce(&mut Site<'e>) -> Result<T, M::Error>,
) -> Result<T, M::Error> {
    s.original = id;
    if s.editor.body.has_heard() {
        s.forget_heard();
    }
    let meant = s.editor.body.shared_edits(SharedEdits::Noted);
    let answer = call(s);
    s.editor.body.shared_edits(meant);
    if s.editor.body.has_heard() {
        answer?;
        return Err(RewriteError::OverwrittenLink.into());
    }
    answer
}

/// Returns true if the author may be asked for a change.
#[inline(always)]
fn may_change<M: Mutator>(s: &Site<'_>) -> bool {
    !M::SEPARABLE || !s.is_at_limit
}

/// The reasons for answers that put a block into the program.
const EXPANDED: &str = "expanded";
const SPLICED: &str = "replaced by several bindings";

/// Counts an answer of the author that changes the program, at the current Let or tail.
#[inline(always)]
fn count<M: Mutator>(s: &mut Site<'_>, what: &'static str) {
    if M::SEPARABLE && s.editor.cx.rewrites.is_on() {
        s.editor.rewrote(s.block.at, if M::REASON.is_empty() { what } else { M::REASON });
        s.is_at_limit = !s.editor.may_rewrite();
    }
}

/// Returns the reason that is recorded for the bindings of a block which an answer puts into the
/// program. Authors who count their rewrites themselves give it as [`Mutator::REASON`].
fn reason_of_block<M: Mutator>(what: &'static str) -> Option<&'static str> {
    match M::REASON {
        "" => M::SEPARABLE.then_some(what),
        reason => Some(reason),
    }
}

/// Rewrites the expression `start` and returns its replacement. `ret` is the stated type of the
/// result.
pub(crate) fn run<M: Mutator>(
    s: &mut Site<'_>,
    m: &mut M,
    start: ExprId,
    ret: Option<TypeId>,
) -> Result<ExprId, M::Error> {
    s.prepare(M::EDITS, start);
    s.is_at_limit = !s.editor.may_rewrite();
    s.editor.body.note_stop(None);
    let before = s.editor.body.shared_edits(SharedEdits::Meant);
    let watch = s.editor.body.new_watch();
    let outer = s.editor.body.watch_links(watch);
    let mut result = walk(s, m, start);
    if let Ok(root) = result {
        result = types::finish_result(s, m, root, ret);
    }
    s.forget_heard();
    s.editor.body.end_watch(outer, &s.heard);
    s.editor.body.shared_edits(before);
    match result {
        Ok(result) => {
            s.check_spliced(result)?;
            s.check_dropped(result)?;
            Ok(result)
        }
        Err(error) => {
            s.editor.body.note_stop(s.binding());
            Err(error)
        }
    }
}

fn walk<M: Mutator>(s: &mut Site<'_>, m: &mut M, start: ExprId) -> Result<ExprId, M::Error> {
    open_block(s, m, start, BlockKind::Root)?;
    loop {
        let at = s.block.at;
        let (value, var) = match s.editor.body.expr(at) {
            Expr::Let { var, value, flags, .. } => {
                if flags.is_dataflow() != s.block.in_region() || flags.starts_region() {
                    cross_border(s, m, at, flags)?;
                }
                if flags.is_dataflow() {
                    s.bind_in_region(var);
                }
                if s.has_expanded && s.was_walked(var) {
                    return Err(spliced_twice(&s.editor, var).into());
                }
                (value, Some(var))
            }
            _ => {
                if s.block.in_region() {
                    leave_region(s, m, at)?;
                }
                if s.result_before.is_none() && s.blocks.is_empty() {
                    s.result_before = Some(s.type_before(at));
                }
                (at, None)
            }
        };
        let slot = Slot { at, var };
        if may_change::<M>(s)
            && let Some(block) = ask::<M, _>(s, value, |s| m.expand(s, slot, value))?
        {
            count::<M>(s, EXPANDED);
            s.expand_into(block, reason_of_block::<M>(EXPANDED))?;
            continue;
        }
        let mut step = visit(s, m, value, BlockKind::Value(at))?;
        loop {
            match step {
                Walk::Done { result, .. } if s.nodes.len() > s.block.nodes as usize => {
                    s.results.push(result);
                    step = next_operand(s, m)?;
                }
                Walk::Done { pre, result } => {
                    if finish_slot(s, m, pre, result)? {
                        break;
                    }
                    step = close_block(s, m)?;
                }
                Walk::Node => step = next_operand(s, m)?,
                Walk::Block => break,
                Walk::End => return Ok(s.block.head),
            }
        }
    }
}

// ---- Expressions ----

/// Visits an expression that is a value, a tail or an operand. `kind` is the kind of the block that
/// it opens if it is a chain.
#[inline(always)]
fn visit<M: Mutator>(s: &mut Site<'_>, m: &mut M, id: ExprId, kind: BlockKind) -> Result<Walk, M::Error> {
    let expr = s.editor.body.expr(id);
    if expr.is_atom() {
        let result = s.resolve_atom::<M>(id);
        if s.has_expanded {
            s.let_out(result);
        }
        return Ok(Walk::Done { pre: id, result });
    }
    if M::NODES
        && let Some(result) = s.seen(id)
    {
        // A node that was walked in a region may stand in an expanded block outside of it.
        if result != id || s.has_expanded {
            s.let_out(result);
        }
        return Ok(Walk::Done { pre: id, result });
    }
    if M::EDITS == Edits::Scoped && s.must_copy(id) {
        let copy = s.copy_for_scope(id);
        return visit_node(s, m, copy, kind);
    }
    visit_node(s, m, id, kind)
}

#[inline(always)]
fn visit_node<M: Mutator>(s: &mut Site<'_>, m: &mut M, id: ExprId, kind: BlockKind) -> Result<Walk, M::Error> {
    if s.has_expanded {
        s.let_out_atoms(id);
    }
    match s.editor.body.expr(id) {
        Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
            if M::NODES && !s.is_flat(operands) {
                return open_node(s, id);
            }
            let post = operands::rewrite_list(s, m, id, operands, None)?;
            finish_node(s, m, id, post)
        }
        Expr::Proj { tuple, .. } => {
            if M::NODES && !s.is_flat_operand(tuple) {
                return open_node(s, id);
            }
            let post = operands::rewrite_proj(s, m, id, None)?;
            finish_node(s, m, id, post)
        }
        Expr::If { cond, .. } => {
            if !s.editor.body.expr(cond).is_atom() {
                return if M::NODES { open_node(s, id) } else { Err(s.not_a_normal_form().into()) };
            }
            let cond = s.resolve_atom::<M>(cond);
            open_if(s, m, id, cond)
        }
        Expr::Lambda { lambda, body: block } => {
            // A recursive `fn` uses the variable to which it will be bound.
            if let Expr::Let { var, .. } = s.editor.body.expr(s.block.at)
                && s.is_at_slot()
            {
                s.open_fn(var);
            }
            let params = s.editor.body.lambda(lambda).params;
            for i in 0..params.len() {
                let param = s.editor.body.operand(params, i);
                s.bind_itself(param);
            }
            open_block(s, m, block, BlockKind::Lambda(id))?;
            Ok(Walk::Block)
        }
        Expr::Let { .. } if M::NODES => {
            let ty = s.type_before(s.editor.body.tail(id));
            open_block(s, m, id, kind)?;
            s.block.ty_before = Some(ty);
            Ok(Walk::Block)
        }
        Expr::Let { .. } => Err(s.not_a_normal_form().into()),
        Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => {
            Ok(Walk::Done { pre: id, result: id })
        }
    }
}

fn open_node<E>(s: &mut Site<'_>, id: ExprId) -> Result<Walk, E> {
    s.nodes.push(OpenNode { id, next: 0 });
    Ok(Walk::Node)
}

/// Visits the next operand of the innermost open node, or finishes the node.
fn next_operand<M: Mutator>(s: &mut Site<'_>, m: &mut M) -> Result<Walk, M::Error> {
    let node = s.nodes.last_mut().expect("a node is open where an operand was finished");
    let (id, i) = (node.id, node.next as usize);
    node.next += 1;
    if let Some(&operand) = s.editor.body.inputs(id).get(i) {
        return visit(s, m, operand, BlockKind::Operand(id));
    }
    s.nodes.pop();
    let first = s.results.len() - i;
    match s.editor.body.expr(id) {
        Expr::If { .. } => {
            let cond = s.results.pop().expect("the condition was walked");
            open_if(s, m, id, cond)
        }
        Expr::Proj { .. } => {
            let post = operands::rewrite_proj(s, m, id, Some(first))?;
            s.results.truncate(first);
            finish_node(s, m, id, post)
        }
        expr => {
            let list = expr.operand_list().expect("only nodes with operands are opened");
            let post = operands::rewrite_list(s, m, id, list, Some(first))?;
            s.results.truncate(first);
            finish_node(s, m, id, post)
        }
    }
}

/// Asks the author about a node whose operands and blocks are rewritten. `post` is the rewritten
/// node.
#[inline(always)]
fn finish_node<M: Mutator>(s: &mut Site<'_>, m: &mut M, pre: ExprId, post: ExprId) -> Result<Walk, M::Error> {
    if !M::NODES {
        return Ok(Walk::Done { pre, result: post });
    }
    let answer = match may_change::<M>(s) {
        true => ask::<M, _>(s, pre, |s| m.rewrite_expr(s, post))?,
        false => Rewrite::Keep,
    };
    let result = match answer {
        Rewrite::Keep => post,
        Rewrite::Replace(new) => {
            count::<M>(s, "replaced");
            types::replaced::<M>(s, post, new)?
        }
    };
    s.set_node::<M>(pre, result);
    Ok(Walk::Done { pre, result })
}

// ---- Blocks and regions ----

#[inline(always)]
fn open_if<M: Mutator>(s: &mut Site<'_>, m: &mut M, id: ExprId, cond: ExprId) -> Result<Walk, M::Error> {
    let Expr::If { cond: old, then_block, else_block } = s.editor.body.expr(id) else {
        unreachable!("an If stays one while its condition is walked")
    };
    let cond = if M::REFUSED == Refused::Retype { types::restore_condition(s, m, old, cond)? } else { cond };
    if cond != old {
        s.editor.body.set_expr(id, Expr::If { cond, then_block, else_block });
    }
    open_block(s, m, then_block, BlockKind::Then(id))?;
    // The type of the condition may select the branch whose type is that of the If.
    if s.type_before(old) != s.editor.body.type_of(cond) {
        s.retypes += 1;
    }
    Ok(Walk::Block)
}

#[inline]
fn open_block<M: Mutator>(s: &mut Site<'_>, m: &mut M, start: ExprId, kind: BlockKind) -> Result<(), M::Error> {
    s.note_kept();
    let inner = Block::new(start, kind, s.nodes.len(), s.retypes);
    if kind == BlockKind::Root {
        s.block = inner;
    } else {
        s.blocks.push(std::mem::replace(&mut s.block, inner));
        s.begin_scope::<M>();
    }
    ask::<M, _>(s, start, |s| m.enter(s, Scope::Block(kind)))
}

/// Leaves a block after its tail.
#[inline(always)]
fn close_block<M: Mutator>(s: &mut Site<'_>, m: &mut M) -> Result<Walk, M::Error> {
    let Block { kind, start, entered, .. } = s.block;
    ask::<M, _>(s, start, |s| m.exit(s, Scope::Block(kind)))?;
    let head = s.block.head;
    let (link, owner) = match kind {
        BlockKind::Root => return Ok(Walk::End),
        BlockKind::Then(id) => (Link::Then(id), id),
        BlockKind::Else(id) => (Link::Else(id), id),
        BlockKind::Lambda(id) => (Link::Lambda(id), id),
        BlockKind::Value(_) | BlockKind::Operand(_) => {
            let old = s.block.ty_before;
            s.leave_block::<M>();
            if let Some(old) = old.filter(|_| entered != s.retypes) {
                types::note_block::<M>(s, start, head, old)?;
            }
            return Ok(Walk::Done { pre: start, result: head });
        }
    };
    if head != start {
        link.set(s.editor.body, head);
    }
    s.leave_block::<M>();
    if let BlockKind::Then(id) = kind
        && let Expr::If { else_block, .. } = s.editor.body.expr(id)
    {
        open_block(s, m, else_block, BlockKind::Else(id))?;
        s.block.entered = entered;
        return Ok(Walk::Block);
    }
    if entered != s.retypes {
        types::refresh_owner(s, m, owner)?;
    }
    finish_node(s, m, owner, owner)
}

#[inline(never)]
fn cross_border<M: Mutator>(s: &mut Site<'_>, m: &mut M, at: ExprId, flags: LetFlags) -> Result<(), M::Error> {
    if s.block.in_region() && (!flags.is_dataflow() || flags.starts_region()) {
        leave_region(s, m, at)?;
    }
    if flags.is_dataflow() && !s.block.in_region() {
        // A walk may begin in the middle of a region.
        s.block.regions = RegionWriter::before(flags);
        s.begin_region();
        s.begin_scope::<M>();
        ask::<M, _>(s, at, |s| m.enter(s, Scope::Region))?;
    }
    Ok(())
}

fn leave_region<M: Mutator>(s: &mut Site<'_>, m: &mut M, at: ExprId) -> Result<(), M::Error> {
    ask::<M, _>(s, at, |s| m.exit(s, Scope::Region))?;
    s.block.regions.end();
    s.end_region();
    s.end_scope::<M>();
    Ok(())
}

// ---- Slots ----

/// Asks the author about the value of a slot, and counts an answer that changes the program.
#[inline(always)]
fn verdict_on<M: Mutator>(s: &mut Site<'_>, m: &mut M, slot: Slot, value: ExprId) -> Result<Verdict, M::Error> {
    if !may_change::<M>(s) {
        return Ok(Verdict::Keep);
    }
    let verdict = ask::<M, _>(s, slot.at, |s| m.rewrite_value(s, slot, value))?;
    match verdict {
        Verdict::Keep => {}
        Verdict::Value(_) => count::<M>(s, "replaced"),
        Verdict::Var(_) => count::<M>(s, "replaced by another variable or constant"),
        Verdict::Splice(_) => count::<M>(s, SPLICED),
        // A tail is not removed.
        Verdict::Drop if slot.var.is_none() => {}
        Verdict::Drop => count::<M>(s, "removed"),
    }
    Ok(verdict)
}

/// Asks the author about the value of the current Let or the tail, and applies the answer. Returns
/// false at the end of the block.
#[inline(always)]
fn finish_slot<M: Mutator>(s: &mut Site<'_>, m: &mut M, pre: ExprId, value: ExprId) -> Result<bool, M::Error> {
    let at = s.block.at;
    let Expr::Let { var, value: old, body: rest, flags } = s.editor.body.expr(at) else {
        finish_tail(s, m, pre, value)?;
        return Ok(false);
    };
    // Pass on a type that has changed.
    if s.editor.body.expr(value).is_atom() {
        types::note_alias::<M>(s, pre, value)?;
    } else if M::NODES && (value != old || !s.retyped.is_empty()) {
        // A node that was walked before has passed its type on to its other users only.
        let before = s.type_before(old);
        types::note_value::<M>(s, before, value)?;
    }
    if s.was_expanded(var) {
        let before = s.editor.body.ty(var.expr());
        types::note_value::<M>(s, before, value)?;
    }
    // Ask the author, and apply the answer.
    let verdict = verdict_on(s, m, Slot { at, var: Some(var) }, value)?;
    let value = match verdict {
        Verdict::Keep if value == old => value,
        Verdict::Keep => {
            let body = &*s.editor.body;
            if body.expr(value).is_atom() && !body.expr(pre).is_atom() {
                return replace::<M>(s, var, value, flags, rest);
            }
            value
        }
        Verdict::Value(new) => {
            let new = s.resolve(new);
            s.let_out(new);
            s.note_made();
            types::note_new_value::<M>(s, value, new)?;
            new
        }
        Verdict::Var(atom) => {
            let atom = s.resolve(atom);
            s.let_out(atom);
            s.note_made();
            return replace::<M>(s, var, atom, flags, rest);
        }
        Verdict::Splice(block) => {
            let tail = s.splice_walked(block, reason_of_block::<M>(SPLICED))?;
            if s.editor.body.expr(tail).is_atom() {
                return replace::<M>(s, var, tail, flags, rest);
            }
            types::note_new_value::<M>(s, value, tail)?;
            tail
        }
        Verdict::Drop => {
            s.drop_var(var);
            if M::VALUES {
                s.set_value(var, value);
            }
            s.note_gone::<M>();
            s.block.leave_out(rest);
            return Ok(true);
        }
    };
    // Keep the Let, with the value that it has now.
    s.note_kept();
    s.check_in_place(at, var)?;
    if value != old {
        s.editor.body.set_expr(at, Expr::Let { var, value, body: rest, flags });
    }
    s.keep(flags, rest);
    s.bind_itself(var.expr());
    if M::VALUES {
        s.set_value(var, value);
    }
    Ok(true)
}

/// Replaces the variable of the current Let by an atom and removes the Let.
#[inline]
fn replace<M: Mutator>(
    s: &mut Site<'_>,
    var: VarId,
    atom: ExprId,
    flags: LetFlags,
    rest: ExprId,
) -> Result<bool, M::Error> {
    s.check_atom::<M>(var, atom)?;
    if flags.is_dataflow() {
        pass_on_output(s.editor.body, var, atom);
    }
    s.set_current(var.expr(), atom);
    s.note_gone::<M>();
    s.block.leave_out(rest);
    Ok(true)
}

fn finish_tail<M: Mutator>(s: &mut Site<'_>, m: &mut M, pre: ExprId, value: ExprId) -> Result<(), M::Error> {
    if s.editor.body.expr(value).is_atom() {
        if s.editor.body.expr(pre).is_atom() {
            types::note_tail(s, pre, value);
        }
        s.note_kept();
        s.set_tail(value);
        return Ok(());
    }
    if M::NODES && (value != pre || !s.retyped.is_empty()) {
        types::note_tail(s, pre, value);
    }
    let old = s.editor.body.type_of(value);
    let slot = Slot { at: s.block.at, var: None };
    let tail = match verdict_on(s, m, slot, value)? {
        Verdict::Keep | Verdict::Drop => value,
        Verdict::Value(new) | Verdict::Var(new) => {
            let new = s.resolve(new);
            s.let_out(new);
            s.note_made();
            types::note_new_tail::<M>(s, old, new)?;
            new
        }
        Verdict::Splice(block) => {
            let tail = s.splice_walked(block, reason_of_block::<M>(SPLICED))?;
            types::note_new_tail::<M>(s, old, tail)?;
            tail
        }
    };
    s.note_kept();
    s.set_tail(tail);
    Ok(())
}

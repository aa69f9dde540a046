//! Expansions before pointwise operators.

use anfora_ir::{Attr, Body, Context, Expr, ExprId, LiteralId, Operand, Purity, SideTable, VarId, infer_op};
use anfora_visit::{Site, link_counts};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A call of `broadcast_to` or `full` that the walk has passed.
#[derive(Copy, Clone)]
struct Expansion {
    call: ExprId,
    source: ExpandedValue,
    /// The number of its lambda.
    lambda: u32,
}

/// The value that is expanded.
#[derive(Copy, Clone)]
enum ExpandedValue {
    Operand(ExprId),
    /// A literal of rank 0.
    Fill(LiteralId),
}

/// The expansions that the walk has passed, by their variables.
pub(super) struct Expansions {
    passed: FxHashMap<ExprId, Expansion>,
    /// For each expression, the number of links to it from needed values.
    uses: SideTable<ExprId, u32>,
    /// True if an expansion was not moved because it has another user.
    pub(super) is_waiting: bool,
}

impl Expansions {
    /// Returns the state for a body that only calls `full`: fills are never moved.
    pub(super) fn of_fills(body: &Body) -> Expansions {
        Expansions { passed: FxHashMap::default(), uses: body.side_table(0), is_waiting: false }
    }

    pub(super) fn new(cx: &Context, body: &Body, purity: &Purity) -> Expansions {
        let mut uses = link_counts(body);
        let mut bound: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        let mut unused: Vec<ExprId> = Vec::new();
        for (id, expr) in body.exprs() {
            if let Expr::Let { var, value, .. } = expr
                && uses[id] > 0
                && is_removable(cx, body, purity, value)
            {
                bound.insert(var.expr(), value);
                unused.extend((uses[var.expr()] == 0).then_some(value));
            }
        }
        // A value with only unused users is unused too.
        while let Some(value) = unused.pop() {
            for &operand in body.inputs(value) {
                let count = uses.get_mut(operand);
                if *count == 1 {
                    unused.extend(bound.get(&operand));
                }
                *count = count.saturating_sub(1);
            }
        }
        Expansions { passed: FxHashMap::default(), uses, is_waiting: false }
    }

    /// Notes that a variable is bound to a call of `broadcast_to`.
    pub(super) fn note(&mut self, body: &Body, var: ExprId, call: ExprId, lambda: u32) {
        if let Some(&operand) = body.operands_of(call).first() {
            self.passed.insert(var, Expansion { call, source: ExpandedValue::Operand(operand), lambda });
        }
    }

    /// Notes that a variable is bound to a call of `full`, which expands a literal.
    pub(super) fn note_full(&mut self, s: &mut Site<'_>, var: ExprId, call: ExprId, lambda: u32) {
        let Expr::CallOp { attrs, .. } = s.editor.body.expr(call) else { return };
        let value = s.editor.cx.find_attr(attrs, "value").map(|value| s.editor.cx.attrs.get(value));
        let Some(&Attr::Literal(value)) = value else { return };
        if let Ok(scalar) = s.editor.cx.literals.get(value).reshaped(&[]) {
            let source = ExpandedValue::Fill(s.editor.cx.literals.intern(scalar));
            self.passed.insert(var, Expansion { call, source, lambda });
        }
    }

    /// Notes that an atom replaces a variable, or the value in a tail if `var` is `None`. The value
    /// is not needed any more.
    pub(super) fn note_replaced(&mut self, body: &Body, var: Option<VarId>, value: ExprId, atom: ExprId) {
        for &operand in body.inputs(value) {
            let count = self.uses.get_mut(operand);
            *count = count.saturating_sub(1);
        }
        let new = var.map_or(1, |var| self.uses[var.expr()]);
        let count = self.uses.get_mut(atom);
        *count = count.saturating_add(new);
    }

    /// Replaces expansions among the operands of a pointwise operator by their sources if the type
    /// of the result stays the same. Returns the number of replaced expansions and the new call. A
    /// lambda does not capture the source of an expansion that it captures.
    pub(super) fn remove(&mut self, s: &mut Site<'_>, value: ExprId, lambda: u32) -> Option<(usize, ExprId)> {
        let Expr::CallOp { op, operands, attrs } = s.editor.body.expr(value) else { return None };
        let ty = s.editor.body.ty(value);
        let is_expanded = |&o: &ExprId| self.passed.contains_key(&o);
        if !s.editor.body.operands(operands).iter().any(is_expanded) || !s.editor.cx.types.has_known_extents(ty) {
            return None;
        }
        let mut list: SmallVec<[ExprId; 4]> = s.editor.body.operands(operands).into();
        let mut seen: SmallVec<[Operand; 4]> = list.iter().map(|&o| operand_of_rule(s.editor.body, o)).collect();
        let mut removed = 0;
        for i in 0..list.len() {
            let expanded = list[i];
            let Some(&Expansion { source, lambda: of, .. }) = self.passed.get(&expanded) else { continue };
            if of != lambda && matches!(source, ExpandedValue::Operand(_)) {
                continue;
            }
            let before = seen[i];
            seen[i] = match source {
                ExpandedValue::Operand(operand) => operand_of_rule(s.editor.body, operand),
                ExpandedValue::Fill(literal) => {
                    Operand { ty: s.editor.cx.literal_type(literal), literal: Some(literal), absent: false }
                }
            };
            if infer_op(s.editor.cx, op, &seen, attrs, ty).is_ok_and(|found| found == ty) {
                list[i] = match source {
                    ExpandedValue::Operand(operand) => operand,
                    ExpandedValue::Fill(literal) => s.editor.literal_id(literal),
                };
                let count = self.uses.get_mut(expanded);
                *count = count.saturating_sub(1);
                removed += 1;
            } else {
                seen[i] = before;
            }
        }
        if removed == 0 {
            return None;
        }
        let new = s.editor.call_op(op, &list, attrs).ok()?;
        (s.editor.body.ty(new) == ty).then_some((removed, new))
    }

    /// Moves the expansion of an operand of a pointwise operator behind it, if all other operands
    /// are literals and nothing else uses the expansion. Returns the new expansion. An operator
    /// that may fail stays: if the expansion has no elements, it does not fail there.
    pub(super) fn move_behind(&mut self, s: &mut Site<'_>, value: ExprId, lambda: u32) -> Option<ExprId> {
        let Expr::CallOp { op, operands, attrs } = s.editor.body.expr(value) else { return None };
        if s.editor.cx.ops.get(op).may_fail {
            return None;
        }
        let body = &*s.editor.body;
        let list = body.operands(operands);
        let is_constant = |&&o: &&ExprId| matches!(body.expr(o), Expr::Literal(_) | Expr::None);
        let at = list.iter().position(|o| !is_constant(&o))?;
        if list.iter().filter(|o| !is_constant(o)).count() != 1 {
            return None;
        }
        let expansion = list[at];
        let Expansion { call, lambda: of, .. } = *self.passed.get(&expansion)?;
        if of != lambda {
            return None;
        }
        let Expr::CallOp { op: expand, operands: expanded, attrs: how } = body.expr(call) else { return None };
        // A `full` has one operand.
        let &[x, target] = body.operands(expanded) else { return None };
        let ty = body.ty(value);
        if !s.editor.cx.types.has_known_extents(ty) {
            return None;
        }
        let mut list: SmallVec<[ExprId; 4]> = list.into();
        list[at] = x;
        // The new expansion must have the type of the old value: check before anything is inserted.
        let seen: SmallVec<[Operand; 4]> = list.iter().map(|&o| operand_of_rule(s.editor.body, o)).collect();
        let inner = infer_op(s.editor.cx, op, &seen, attrs, ty).ok()?;
        let operands = [Operand { ty: inner, literal: None, absent: false }, operand_of_rule(s.editor.body, target)];
        if infer_op(s.editor.cx, expand, &operands, how, ty).ok()? != ty {
            return None;
        }
        if self.uses[expansion] != 1 {
            self.is_waiting = true;
            return None;
        }
        let inner = s.editor.call_op(op, &list, attrs).ok()?;
        let inner = s.bind(None, inner);
        s.editor.call_op(expand, &[inner, target], how).ok()
    }
}

/// Returns true if DeadCodeElimination removes the binding of a value that nothing uses.
fn is_removable(cx: &Context, body: &Body, purity: &Purity, value: ExprId) -> bool {
    match body.expr(value) {
        Expr::CallOp { op, .. } => !cx.ops.facts(op).is_match_cast() && !purity.call_is_impure(cx, body, value),
        Expr::Proj { .. } | Expr::Tuple(_) => true,
        _ => false,
    }
}

/// Returns an operand as type rules read it.
fn operand_of_rule(body: &Body, id: ExprId) -> Operand {
    Operand { ty: body.type_of(id), literal: body.as_literal(id), absent: matches!(body.expr(id), Expr::None) }
}

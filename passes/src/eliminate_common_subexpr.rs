//! # EliminateCommonSubexpr
//!
//! ```text
//! Notation   v, w variables; S(e) the value e after the replacements made so far; E the values
//!            seen, each with its variable.
//! Needs      A-normal form.
//! Effect     let v = e; rest   =>   rest[v := w]            if (S(e), w) is in E
//!                              =>   let v = S(e); rest      else, with (S(e), v) added to E
//!            A tail e becomes w likewise.
//! Scope      A branch sees the values that its If sees. The values that it adds are forgotten at
//!            its end. A lambda sees nothing from outside and adds nothing to it. At the end of a
//!            dataflow region the values of its variables are forgotten, except those of outputs.
//! Never      Impure calls, such as allocations and random numbers. A `match_cast` to a type whose
//!            symbols are not all bound by parameters, since it may bind one. A value whose
//!            variable was annotated with a type less specific than the duplicate's.
//! Not done   Nothing is moved: a value that both branches compute stays in both. Two Ifs are
//!            different values if a `match_cast` inside binds symbols of different names.
//! Cost       One forward sweep; one hash probe per binding; O(n log n) for the hashes of Ifs and
//!            lambdas. Idempotent.
//!
//! before     def @f(%x: Tensor[(8,), float32]) {    after   def @f(%x: Tensor[(8,), float32]) {
//!              let %a = exp(%x);                              let %a = exp(%x);
//!              let %b = exp(%x);                              add(%a, %a)
//!              add(%a, %b)                                  }
//!            }
//! ```
//!
//! The pass compares calls of operators with their attributes, calls of pure functions, tuples,
//! projections, atoms, and whole Ifs and lambdas up to the names that they bind. Literals are
//! compared by their bits: `-0.0` is not `0.0`, and a NaN equals itself. With `commutative`, the
//! operands of commutative operators are compared in either order.

mod near_misses;

use std::hash::Hasher;

use anfora_ir::bumpalo::Bump;
use anfora_ir::{
    AlphaHasher, BodyPurity, Context, EntityId, Expr, ExprId, FreeSymbols, Function, Purity, ScratchVec, SymbolId,
    SymbolWalk, VarId, alpha_equal_exprs,
};
use anfora_manager::register_pass;
use anfora_visit::{Mutator, Refused, RewriteError, Scope, Site, Slot, Verdict, mutate_function};
use hashbrown::{HashTable, hash_table};
use rustc_hash::{FxHashSet, FxHasher};

use crate::seen_scopes::SeenScopes;

register_pass! {
    /// Merges bindings of equal values
    pub ELIMINATE_COMMON_SUBEXPR = FunctionPass("EliminateCommonSubexpr", 1).needing(["anf"]).sparing_primitive().breaking(["primitive-operators"]);
    options {
        /// compare operands of commutative operators in either order
        commutative: bool = false,
    }
    run {
        let order = if commutative { OperandOrder::Commutative } else { OperandOrder::Exact };
        move |edit, module, cx| {
            let merged = eliminate_common_subexpr(edit.cx, edit.function, module.purity(), order)?;
            cx.count("merged", merged as u64);
            Ok(())
        }
    }
}

/// The order in which operands of commutative operators are compared.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum OperandOrder {
    /// `add(x, y)` and `add(y, x)` are different values.
    #[default]
    Exact,
    /// `add(x, y)` and `add(y, x)` are equal.
    Commutative,
}

/// Removes the bindings of a function whose values were computed before, and returns their number.
///
/// # Errors
/// If the body is not in A-normal form.
pub fn eliminate_common_subexpr(
    cx: &mut Context,
    function: &mut Function,
    purity: &Purity,
    order: OperandOrder,
) -> Result<usize, RewriteError> {
    let (body, scratch) = (&function.body, cx.scratch());
    let mut pass = SubexprEliminator {
        order,
        impure: BodyPurity::new(cx, body, purity),
        // The larger table is allocated last: an arena at least doubles when it grows.
        seen: HashTable::with_capacity_in(body.len() / 4, &scratch),
        // A binding has at least three nodes.
        values: ScratchVec::with_capacity_in(body.len() / 3, &scratch),
        scopes: SeenScopes::new(),
        param_symbols: None,
        free: FreeSymbols::new(),
        alpha: AlphaHasher::new(),
        merged: 0,
    };
    mutate_function(cx, function, &mut pass)?;
    near_misses::explain(cx, &function.body, &pass.impure, order);
    Ok(pass.merged)
}

/// A value that was seen. It stays in the table when its scope is left, and is skipped until an
/// equal value replaces it. Its hash is stored, so that a probe rarely reads the arena, and growing
/// the table never does.
#[derive(Copy, Clone)]
struct Seen {
    hash: u32,
    /// The number of its scope.
    scope: u32,
    value: ExprId,
    var: VarId,
}

struct SubexprEliminator<'b> {
    order: OperandOrder,
    impure: BodyPurity,
    /// Indices into `values`. They take few bytes, so that much of the table stays in a cache.
    seen: HashTable<u32, &'b Bump>,
    /// The values that were seen, in order.
    values: ScratchVec<'b, Seen>,
    scopes: SeenScopes,
    /// The symbols that parameters of the function bind, once they are needed.
    param_symbols: Option<FxHashSet<SymbolId>>,
    free: FreeSymbols,
    alpha: AlphaHasher,
    merged: usize,
}

/// Spreads a stored hash over the bits that the table uses.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl SubexprEliminator<'_> {
    /// Returns the hash of a value; `None` if it must not be merged.
    #[inline]
    fn hash(&mut self, s: &Site<'_>, value: ExprId) -> Option<u32> {
        let mut h = FxHasher::default();
        h.write_u32(self.scopes.lambda());
        match s.editor.body.expr(value) {
            Expr::CallOp { op, operands, attrs } => {
                let facts = s.editor.cx.ops.facts(op);
                if facts.is_match_cast() && !self.is_plain_cast(s, value) || self.impure.is_impure(value) {
                    return None;
                }
                h.write_u32(op.index() as u32);
                h.write_u32(attrs.index() as u32);
                match *s.editor.body.operands(operands) {
                    [a, b] if self.order == OperandOrder::Commutative && facts.is_commutative() => {
                        h.write_u32(a.index().min(b.index()) as u32);
                        h.write_u32(a.index().max(b.index()) as u32);
                    }
                    ref list => list.iter().for_each(|o| h.write_u32(o.index() as u32)),
                }
            }
            Expr::Call { operands, attrs } => {
                if self.impure.is_impure(value) {
                    return None;
                }
                h.write_u32(u32::MAX);
                h.write_u32(attrs.index() as u32);
                s.editor.body.operands(operands).iter().for_each(|o| h.write_u32(o.index() as u32));
            }
            Expr::Tuple(fields) => {
                h.write_u32(u32::MAX - 1);
                s.editor.body.operands(fields).iter().for_each(|o| h.write_u32(o.index() as u32));
            }
            Expr::Proj { tuple, index } => {
                h.write_u32(u32::MAX - 2);
                h.write_u32(tuple.index() as u32);
                h.write_u32(index);
            }
            Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => {
                h.write_u32(value.index() as u32);
            }
            Expr::If { .. } | Expr::Lambda { .. } => {
                // The hash is computed even if it is not used here, since the hashes of enclosing
                // values include it.
                let alpha = self.alpha.hash(s.editor.cx, s.editor.body, value);
                if matches!(s.editor.body.expr(value), Expr::If { .. }) && self.impure.is_impure(value) {
                    return None;
                }
                h.write_u64(alpha);
            }
            Expr::Let { .. } => return None,
        }
        Some((h.finish() >> 32) as u32)
    }

    /// Returns the variable of an equal value that was seen before and is visible, or records the
    /// value.
    #[inline]
    fn merge(&mut self, s: &Site<'_>, slot: Slot, value: ExprId) -> Verdict {
        let Some(hash) = self.hash(s, value) else { return Verdict::Keep };
        let SubexprEliminator { order, seen, values, scopes, merged, .. } = self;
        let is_same = |&i: &u32| {
            let e = &values[i as usize];
            e.hash == hash
                && scopes.is_of_this_lambda(e.scope)
                // Values that are not visible are not compared block by block, which could take
                // their size again and again. The entry with the same hash is replaced.
                && same(s, *order, e.value, value, |a, b| {
                    !scopes.is_visible(s.editor.body, e.scope, e.var) || alpha_equal_exprs(s.editor.cx, s.editor.body, a, b)
                })
        };
        let place = seen.entry(spread(hash), is_same, |&i| spread(values[i as usize].hash));
        if let hash_table::Entry::Occupied(found) = &place
            && let entry = &values[*found.get() as usize]
            && scopes.is_visible(s.editor.body, entry.scope, entry.var)
        {
            let by = entry.var.expr();
            let (ty, wanted) = (s.editor.body.ty(by), s.editor.body.ty(slot.var.map_or(value, VarId::expr)));
            if ty != wanted && !s.editor.cx.types.accepts(wanted, ty) {
                return Verdict::Keep;
            }
            *merged += 1;
            return Verdict::Var(by);
        }
        if let Some(var) = slot.var {
            place.insert(values.len() as u32);
            values.push(Seen { hash, scope: scopes.here(), value, var });
        }
        Verdict::Keep
    }

    /// Returns true if a `match_cast` binds no symbol.
    #[cold]
    fn is_plain_cast(&mut self, s: &Site<'_>, value: ExprId) -> bool {
        let ty = s.editor.body.ty(value);
        if !s.editor.cx.types.is_symbolic(ty) {
            return true;
        }
        let bound = self.param_symbols.get_or_insert_with(|| {
            let mut bound = FxHashSet::default();
            let mut walk = SymbolWalk::new();
            for p in s.editor.body.params() {
                walk.in_type(s.editor.cx, s.editor.body.ty(p.expr()), |symbol| {
                    bound.insert(symbol);
                });
            }
            bound
        });
        self.free.of(&s.editor.cx.types, ty).iter().all(|symbol| bound.contains(symbol))
    }
}

/// Returns true if two values with the same hash are equal. `same_blocks` compares two branches or
/// lambdas.
#[inline]
fn same(s: &Site<'_>, order: OperandOrder, a: ExprId, b: ExprId, same_blocks: impl Fn(ExprId, ExprId) -> bool) -> bool {
    if a == b {
        return true;
    }
    let (cx, body) = (&s.editor.cx, &s.editor.body);
    let (x, y) = (body.inputs(a), body.inputs(b));
    match (body.expr(a), body.expr(b)) {
        (Expr::CallOp { op, attrs, .. }, Expr::CallOp { op: op2, attrs: attrs2, .. }) => {
            op == op2
                && attrs == attrs2
                && (x == y
                    || matches!((x, y), ([p, q], [r, t]) if p == t && q == r
                        && order == OperandOrder::Commutative && cx.ops.facts(op).is_commutative()))
                && (!cx.ops.is_opaque(op) || body.ty(a) == body.ty(b))
        }
        (Expr::Call { attrs, .. }, Expr::Call { attrs: attrs2, .. }) => attrs == attrs2 && x == y,
        (Expr::Tuple(_), Expr::Tuple(_)) => x == y,
        (Expr::Proj { index, .. }, Expr::Proj { index: other, .. }) => index == other && x == y,
        (Expr::If { .. }, Expr::If { .. }) | (Expr::Lambda { .. }, Expr::Lambda { .. }) => same_blocks(a, b),
        _ => false,
    }
}

impl Mutator for SubexprEliminator<'_> {
    type Error = RewriteError;
    const REASON: &'static str = "an earlier binding has the same value";
    const NODES: bool = false;
    const REFUSED: Refused = Refused::CastBack;

    #[inline]
    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        Ok(self.merge(s, slot, value))
    }

    fn enter(&mut self, _: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        self.scopes.enter(scope);
        Ok(())
    }

    fn exit(&mut self, _: &mut Site<'_>, _: Scope) -> Result<(), RewriteError> {
        self.scopes.exit();
        Ok(())
    }
}

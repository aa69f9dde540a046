//! # SimplifyShapes
//!
//! ```text
//! Notation   v, w variables; x, y, s atoms; t a shape; K a type that states all elements; c a
//!            literal; f a pointwise operator; [..] a literal of int64.
//! Needs      A-normal form.
//! Numbers    let v: K = e; rest          =>   rest[v := c]       if all elements of K are
//!                                                                constants, those of c
//!                                        =>   rest[v := w]       if w has the type K, and is a
//!                                                                parameter or was bound before
//! Reshape    reshape(x, t)               =>   reshape(x, [..])   with 0 for an extent of x at the
//!                                                                same axis, and at most one -1
//!            reshape(x, t)               =>   expand_dims(x), squeeze(x)
//!                                                                if there is no such literal, and
//!                                                                only extents of 1 differ
//!            reshape(x, t)               =>   x                  if the result has the type of x
//! Expansion  broadcast_to(x, t)          =>   broadcast_to(x, [..], bidirectional=true)
//!                                                                with 1 for an extent of x
//!            broadcast_to(x, t)          =>   x                  if the result has the type of x
//!            f(broadcast_to(x, t), y)    =>   f(x, y)            if the type of the result stays
//!            f(full(t, value=c), y)      =>   f(c, y)            if the type of the result stays
//!            let v = broadcast_to(x, t); let w = f(v, c)
//!                                        =>   let u = f(x, c); let w = broadcast_to(u, t)
//!                                                                if v has no other use
//! Slice      dynamic_strided_slice(x, ..)  =>   x                if the result has the type of x,
//!                                                                and all strides are positive
//! Shape      shape_of(f(x, s))           =>   shape_of(x)        if s has rank 0, and an extent of
//!                                                                x is `?`
//! Scope      As in EliminateCommonSubexpr. In a lambda, w is a variable of the same lambda.
//! Never      Two extents `?` are never equal. -1 does not stand for an extent if another extent
//!            may be 0, because the new call would then fail. An operator that may fail is not
//!            moved before an expansion, because the expansion may have no elements. A `match_cast`
//!            stays, because it may bind symbols. Impure calls stay.
//! Not done   Values are not computed from symbols (`shape_to_tensor`). Unused bindings stay for
//!            DeadCodeElimination. An If whose condition became a literal stays for FoldConstant.
//!            Values with partly known elements are not compared.
//! Cost       One scan of the nodes. If types state elements, or shapes are computed: one forward
//!            sweep, with one look-up per value with known elements. If there are expansions: also
//!            a walk that counts uses, and another sweep if a change may have left an expansion
//!            with a single use. At most 8 sweeps. Idempotent, unless 8 sweeps are not enough.
//!
//! before     def @f(%x: Tensor[(b, s, 64), float32]) {
//!              let %n = shape_of(%x);
//!              let %b = take(%n, dense<Tensor[(1,), int64]>[0]);
//!              let %s = take(%n, dense<Tensor[(1,), int64]>[1]);
//!              let %t = concat(%b, %s, dense<Tensor[(2,), int64]>[4, 16]);
//!              reshape(%x, %t)
//!            }
//! after      def @f(%x: Tensor[(b, s, 64), float32]) {
//!              let %n = shape_of(%x);
//!              let %b = take(%n, dense<Tensor[(1,), int64]>[0]);
//!              let %s = take(%n, dense<Tensor[(1,), int64]>[1]);
//!              let %t = concat(%b, %s, dense<Tensor[(2,), int64]>[4, 16]);
//!              reshape(%x, dense<Tensor[(4,), int64]>[0, 0, 4, 16])
//!            }
//! ```

mod expansions;
mod targets;

use anfora_ir::{
    BlockKind, Body, BodyPurity, Context, Cursor, DType, Expr, ExprId, Function, Literal, OpId, Purity, Step, TypeId,
    VarId,
};
use anfora_manager::register_pass;
use anfora_visit::{Mutator, Refused, RewriteError, Scope, Site, Slot, Verdict, mutate_function};
use rustc_hash::FxHashMap;

use self::expansions::Expansions;
pub(crate) use self::targets::reshape_numbers;
use crate::match_facts::is_pointwise;
use crate::seen_scopes::SeenScopes;

register_pass! {
    /// Merges values with the same known elements; simplifies reshapes, expansions and slices
    pub SIMPLIFY_SHAPES = FunctionPass("SimplifyShapes", 2).needing(["anf"]).sparing_primitive().breaking(["primitive-operators"]);
    run |edit, module, cx| {
        let done = simplify_shapes(edit.cx, edit.function, module.purity())?;
        cx.count("literals", done.literals as u64);
        cx.count("merged", done.merged as u64);
        cx.count("targets", done.targets as u64);
        cx.count("removed", done.removed as u64);
        cx.count("moved", done.moved as u64);
        Ok(())
    }
}

/// The numbers of changes that a run of the pass made.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct SimplifiedShapes {
    /// The number of values that became literals.
    pub literals: usize,
    /// The number of values that were replaced by an earlier value with the same elements.
    pub merged: usize,
    /// The number of reshapes and expansions with a new target shape.
    pub targets: usize,
    /// The number of reshapes, expansions and slices that were removed, or that one of their users
    /// no longer uses.
    pub removed: usize,
    /// The number of expansions that were moved behind an operator, plus the number of calls of
    /// `shape_of` that were moved before an operator.
    pub moved: usize,
}

/// Simplifies the shape computations of a function whose elements are stated by types.
///
/// # Errors
/// If the body is not in A-normal form.
pub fn simplify_shapes(
    cx: &mut Context,
    function: &mut Function,
    purity: &Purity,
) -> Result<SimplifiedShapes, RewriteError> {
    let ops = ShapeOps::new(cx);
    let mut done = SimplifiedShapes::default();
    for _ in 0..MOST_SWEEPS {
        let found = ops.scan(cx, &function.body);
        if !found.shapes && !found.expansions && !found.fills {
            break;
        }
        let before = done;
        let mut pass = ShapeSimplifier {
            ops,
            purity,
            blocks: found.blocks.then(|| BodyPurity::new(cx, &function.body, purity)),
            scopes: SeenScopes::new(),
            known: FxHashMap::default(),
            origins: FxHashMap::default(),
            expansions: match (found.expansions, found.fills) {
                (true, _) => Some(Expansions::new(cx, &function.body, purity)),
                (false, true) => Some(Expansions::of_fills(&function.body)),
                (false, false) => None,
            },
            done,
        };
        mutate_function(cx, function, &mut pass)?;
        done = pass.done;
        // A change may leave an expansion with a single use, at a place that the sweep has already
        // passed.
        if done == before || !pass.expansions.is_some_and(|expansions| expansions.is_waiting) {
            break;
        }
    }
    if cx.rewrites.explains(PASS) {
        ops.explain(cx, &function.body);
    }
    Ok(done)
}

/// The name under which near misses are recorded.
const PASS: &str = "SimplifyShapes";

/// The most sweeps of a function.
const MOST_SWEEPS: usize = 8;

/// The operators that the pass knows by name.
#[derive(Copy, Clone)]
struct ShapeOps {
    reshape: Option<OpId>,
    broadcast_to: Option<OpId>,
    full: Option<OpId>,
    slice: Option<OpId>,
    shape_of: Option<OpId>,
}

/// The findings of the scan of a body.
#[derive(Default)]
struct ShapeFindings {
    /// True if a node other than an expansion may be simplified.
    shapes: bool,
    /// True if `broadcast_to` is called.
    expansions: bool,
    /// True if `full` is called.
    fills: bool,
    /// True if a call of a function, or an If, has a result with known elements.
    blocks: bool,
}

impl ShapeOps {
    fn new(cx: &Context) -> ShapeOps {
        let find = |name| cx.ops.find(name);
        ShapeOps {
            reshape: find("reshape"),
            broadcast_to: find("broadcast_to"),
            full: find("full"),
            slice: find("dynamic_strided_slice"),
            shape_of: find("shape_of"),
        }
    }

    fn scan(&self, cx: &Context, body: &Body) -> ShapeFindings {
        let mut found = ShapeFindings::default();
        for (id, expr) in body.exprs() {
            match expr {
                Expr::CallOp { op, .. } if [self.broadcast_to, self.full].contains(&Some(op)) => {
                    found.expansions = true
                }
                Expr::CallOp { op, .. } => {
                    let may_change = [self.shape_of, self.reshape, self.slice].contains(&Some(op));
                    found.shapes |= may_change || cx.types.has_elements(body.ty(id));
                }
                Expr::Call { .. } | Expr::If { .. } => {
                    let has_elements = cx.types.has_elements(body.ty(id));
                    found.shapes |= has_elements;
                    found.blocks |= has_elements;
                }
                Expr::Proj { .. } => found.shapes |= cx.types.has_elements(body.ty(id)),
                _ => {}
            }
        }
        found
    }
}

impl ShapeOps {
    /// Records why the computed targets of reshapes and expansions stay.
    #[cold]
    fn explain(&self, cx: &Context, body: &Body) {
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            let Step::Bound(id) = step else { continue };
            let Expr::Let { value, .. } = body.expr(id) else { continue };
            let Expr::CallOp { op, .. } = body.expr(value) else { continue };
            if [self.reshape, self.broadcast_to].contains(&Some(op))
                && cx.rewrites.explains(PASS)
                && let Some(why) = targets::obstacle(cx, body, value, Some(op) == self.reshape)
            {
                cx.nearly(body, id, PASS, || why);
            }
        }
    }
}

/// A variable whose elements are all known, and the number of its scope.
#[derive(Copy, Clone)]
struct KnownVar {
    var: VarId,
    scope: u32,
}

struct ShapeSimplifier<'a> {
    ops: ShapeOps,
    purity: &'a Purity,
    /// Needed for Ifs and for calls of functions.
    blocks: Option<BodyPurity>,
    scopes: SeenScopes,
    /// The first visible variable of each type that states all elements. The key is the number of
    /// the lambda and the type.
    known: FxHashMap<(u32, TypeId), KnownVar>,
    /// For a variable whose extents are not all known, an earlier variable of the same shape. The
    /// key is the number of the lambda and the variable.
    origins: FxHashMap<(u32, ExprId), ExprId>,
    expansions: Option<Expansions>,
    done: SimplifiedShapes,
}

/// Returns the type that the users of a value expect: the type of its variable or, in a tail, its
/// own type.
fn wanted_type(body: &Body, slot: Slot, value: ExprId) -> TypeId {
    body.type_of(slot.var.map_or(value, VarId::expr))
}

/// Returns true if a type states all elements.
fn knows_all_elements(cx: &Context, ty: TypeId) -> bool {
    let unknown = cx.types.dims.unknown();
    cx.types.has_elements(ty) && cx.types.elements(ty).is_some_and(|elements| !elements.contains(&unknown))
}

/// Returns a literal of int64 and rank 1 as an expression.
fn list(s: &mut Site<'_>, numbers: &[i64]) -> Option<ExprId> {
    let literal = Literal::from_i64s(DType::Int64, &[numbers.len()], numbers).ok()?;
    Some(s.editor.literal(literal))
}

impl ShapeSimplifier<'_> {
    fn is_impure(&self, s: &Site<'_>, value: ExprId) -> bool {
        match s.editor.body.expr(value) {
            Expr::CallOp { .. } => self.purity.call_is_impure(s.editor.cx, s.editor.body, value),
            Expr::Call { .. } | Expr::If { .. } => self.blocks.as_ref().is_none_or(|blocks| blocks.is_impure(value)),
            Expr::Lambda { .. } | Expr::Let { .. } => true,
            _ => false,
        }
    }

    /// Notes a variable whose elements are all known.
    fn note(&mut self, s: &Site<'_>, var: VarId) {
        let ty = s.editor.body.ty(var.expr());
        if knows_all_elements(s.editor.cx, ty) {
            let new = KnownVar { var, scope: self.scopes.here() };
            let known = self.known.entry((self.scopes.lambda(), ty)).or_insert(new);
            if !self.scopes.is_visible(s.editor.body, known.scope, known.var) {
                *known = new;
            }
        }
    }

    /// Replaces a value whose elements are all known by a literal or an earlier variable.
    fn number(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Verdict {
        let ty = s.editor.body.type_of(value);
        if s.editor.body.expr(value).is_atom() || !knows_all_elements(s.editor.cx, ty) {
            return Verdict::Keep;
        }
        let is_cast = matches!(s.editor.body.expr(value), Expr::CallOp { op, .. }
            if s.editor.cx.ops.facts(op).is_match_cast());
        if !is_cast && !self.is_impure(s, value) {
            let wanted = wanted_type(s.editor.body, slot, value);
            if let Some(literal) = s.editor.cx.known_literal(ty) {
                let literal = s.editor.cx.literals.intern(literal);
                let literal_ty = s.editor.cx.literal_type(literal);
                if s.editor.cx.types.accepts(wanted, literal_ty) {
                    self.done.literals += 1;
                    return Verdict::Var(s.literal_in_place(value, literal, literal_ty));
                }
            }
            if let Some(&KnownVar { var, scope }) = self.known.get(&(self.scopes.lambda(), ty))
                && self.scopes.is_visible(s.editor.body, scope, var)
                && s.editor.cx.types.accepts(wanted, ty)
            {
                self.done.merged += 1;
                return self.replaced_by(s, slot, value, var.expr());
            }
        }
        if let Some(var) = slot.var {
            self.note(s, var);
        }
        Verdict::Keep
    }

    /// Returns the verdict that replaces a value by an atom.
    fn replaced_by(&mut self, s: &Site<'_>, slot: Slot, value: ExprId, atom: ExprId) -> Verdict {
        if let Some(expansions) = &mut self.expansions {
            expansions.note_replaced(s.editor.body, slot.var, value, atom);
        }
        Verdict::Var(atom)
    }

    /// Simplifies a call of an operator. The elements of its result are not all known.
    fn call(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Expr::CallOp { op, operands, .. } = s.editor.body.expr(value) else { return Ok(Verdict::Keep) };
        let Some(&first) = s.editor.body.operands(operands).first() else { return Ok(Verdict::Keep) };
        let called = Some(op);
        let ops = self.ops;
        if called == ops.shape_of {
            return Ok(self.shape_of(s, value, first));
        }
        if called == ops.reshape || called == ops.broadcast_to || called == ops.slice {
            let changes_nothing =
                targets::has_same_shape(s, value, first) && (called != ops.slice || targets::is_forward(s, value));
            let wanted = wanted_type(s.editor.body, slot, value);
            if changes_nothing && s.editor.cx.types.accepts(wanted, s.editor.body.type_of(first)) {
                self.done.removed += 1;
                return Ok(self.replaced_by(s, slot, value, first));
            }
        }
        let target = match called {
            _ if called == ops.reshape => targets::reshape(s, value),
            _ if called == ops.broadcast_to => targets::expansion(s, value),
            _ => None,
        };
        let value = target.unwrap_or(value);
        self.done.targets += usize::from(target.is_some());
        let is_expansion = called == ops.broadcast_to || called == ops.full;
        if is_expansion && let (Some(expansions), Some(var)) = (&mut self.expansions, slot.var) {
            let (var, lambda) = (var.expr(), self.scopes.lambda());
            match called == ops.full {
                true => expansions.note_full(s, var, value, lambda),
                false => expansions.note(s.editor.body, var, value, lambda),
            }
        } else if is_pointwise(s.editor.cx, op) {
            if let Some(changed) = self.pointwise(s, slot, value)? {
                return Ok(Verdict::Value(changed));
            }
            self.note_origin(s, slot, value);
        }
        Ok(target.map_or(Verdict::Keep, Verdict::Value))
    }

    /// Removes the expansions of operands of a pointwise operator, or moves one behind it.
    fn pointwise(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        let Some(expansions) = &mut self.expansions else { return Ok(None) };
        let (removed, value) = match expansions.remove(s, value, self.scopes.lambda()) {
            Some((removed, changed)) => (removed, changed),
            None => (0, value),
        };
        self.done.removed += removed;
        if let Some(moved) = expansions.move_behind(s, value, self.scopes.lambda()) {
            self.done.moved += 1;
            if let Some(var) = slot.var {
                expansions.note(s.editor.body, var.expr(), moved, self.scopes.lambda());
            }
            return Ok(Some(moved));
        }
        Ok((removed > 0).then_some(value))
    }

    /// Records that the result of a pointwise operator has the shape of an operand, if all other
    /// operands have rank 0. Values with known extents are not recorded: for them, `number`
    /// compares the elements in the types of `shape_of`.
    fn note_origin(&mut self, s: &Site<'_>, slot: Slot, value: ExprId) {
        let (Some(var), body) = (slot.var, &s.editor.body) else { return };
        if s.editor.cx.types.has_known_extents(body.type_of(value)) {
            return;
        }
        let is_scalar = |&&o: &&ExprId| {
            let tensor = s.editor.cx.types.as_tensor(body.type_of(o));
            tensor.is_some_and(|t| t.shape.as_ref().is_some_and(|shape| shape.is_empty()))
        };
        let mut tensors = body.operands_of(value).iter().filter(|o| !is_scalar(o));
        if let (Some(&operand), None) = (tensors.next(), tensors.next())
            && body.as_var(operand).is_some()
        {
            let lambda = self.scopes.lambda();
            let origin = self.origins.get(&(lambda, operand)).copied().unwrap_or(operand);
            self.origins.insert((lambda, var.expr()), origin);
        }
    }

    /// Replaces `shape_of` of a variable by `shape_of` of an earlier variable of the same shape.
    fn shape_of(&mut self, s: &mut Site<'_>, value: ExprId, operand: ExprId) -> Verdict {
        let Some(&origin) = self.origins.get(&(self.scopes.lambda(), operand)) else { return Verdict::Keep };
        let Expr::CallOp { op, attrs, .. } = s.editor.body.expr(value) else { return Verdict::Keep };
        let before = s.editor.body.type_of(value);
        match s.editor.call_op(op, &[origin], attrs) {
            Ok(new) if s.editor.cx.types.accepts(before, s.editor.body.ty(new)) => {
                self.done.moved += 1;
                Verdict::Value(new)
            }
            _ => Verdict::Keep,
        }
    }
}

impl Mutator for ShapeSimplifier<'_> {
    type Error = RewriteError;
    const REASON: &'static str = "it follows from extents";
    const NODES: bool = false;
    const REFUSED: Refused = Refused::CastBack;

    #[inline]
    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        match self.number(s, slot, value) {
            Verdict::Keep => self.call(s, slot, value),
            verdict => Ok(verdict),
        }
    }

    fn enter(&mut self, s: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        self.scopes.enter(scope);
        match scope {
            Scope::Block(BlockKind::Root) => {
                for i in 0..s.editor.body.params().len() {
                    let param = s.editor.body.params()[i];
                    self.note(s, param);
                }
            }
            Scope::Block(BlockKind::Lambda(id)) => {
                if let Expr::Lambda { lambda, .. } = s.editor.body.expr(id) {
                    for param in s.editor.body.lambda_params(lambda) {
                        self.note(s, param);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn exit(&mut self, _: &mut Site<'_>, _: Scope) -> Result<(), RewriteError> {
        self.scopes.exit();
        Ok(())
    }
}

//! The walk that converts layouts.
//!
//! The picture: a variable `v` of the program may get a *twin*, a value that is `v` in another
//! order of axes. The binding of `v` is then a permutation of the twin, so each use of `v` stays
//! right. A call that can compute on the twins of its operands uses them, and its result gets a
//! twin in turn. Permutations that are left without a use are removed at the end.

use anfora_ir::{
    AxisOrder, Body, Context, Expr, ExprId, Function, LayoutRequest, OpId, Relayout, TypeError, TypeId, VarId,
};
use anfora_manager::PassError;
use anfora_visit::{
    BackwardSweep, Binding, Mutator, RewriteError, Scope, Site, Slot, Verdict, mutate_function, sweep_back,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::conversions::{Conversions, FieldTwins, Twin, is_moved_by_kernels, permuted};
use super::{ConvertedLayouts, LayoutsOf};

/// Converts the layouts of a function.
pub(super) fn convert(
    cx: &mut Context,
    function: &mut Function,
    desired: FxHashMap<OpId, LayoutsOf>,
) -> Result<ConvertedLayouts, PassError> {
    let mut pass = LayoutConverter {
        desired,
        values: Conversions::default(),
        permute_dims: cx.ops.find("permute_dims"),
        tails: FxHashMap::default(),
        done: ConvertedLayouts::default(),
    };
    if !pass.wants_any(cx, function)? {
        return Ok(pass.done);
    }
    mutate_function(cx, function, &mut pass)?;
    let values = &pass.values;
    // If no call changed, only bindings that were made in vain are removed.
    let droppable = if pass.done.converted > 0 { &values.droppable } else { &values.made_bindings };
    if !droppable.is_empty() {
        sweep_back(cx, &mut function.body, &mut UnusedConversions(droppable))?;
    }
    Ok(pass.done)
}

/// Keeps all bindings but those that only convert.
struct UnusedConversions<'a>(&'a FxHashSet<ExprId>);

impl BackwardSweep for UnusedConversions<'_> {
    fn is_kept(&mut self, _: &Body, binding: Binding) -> bool {
        !self.0.contains(&binding.var.expr())
    }
}

struct LayoutConverter {
    desired: FxHashMap<OpId, LayoutsOf>,
    values: Conversions,
    permute_dims: Option<OpId>,
    /// The twins of the results of blocks whose tail is an expression of this pass.
    tails: FxHashMap<ExprId, Twin>,
    done: ConvertedLayouts,
}

/// The number of fields of the largest tuple that branches return, or a call has as its result, in
/// other orders of axes. Each If or call gets bindings for all fields.
const MOST_FIELDS: usize = 64;

/// The desired layouts of a call.
enum Wish {
    /// There are none.
    Nothing,
    /// The call has them.
    Fulfilled,
    /// The call in these layouts.
    Call(Box<Relayout>),
}

/// The reason for a call in another order of axes.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Reason {
    Desired,
    Follows,
}

/// The way to go on if the type of a result is less specific than that of the replaced expression.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Misfit {
    /// The expression is not replaced.
    Refused,
    /// The result is cast.
    Cast,
}

impl LayoutConverter {
    /// Returns true if a call of a function has other layouts than the desired ones.
    fn wants_any(&self, cx: &Context, function: &Function) -> Result<bool, PassError> {
        let body = &function.body;
        for (id, expr) in body.exprs() {
            if matches!(expr, Expr::CallOp { op, .. } if self.desired.contains_key(&op))
                && let Wish::Call(_) = self.wish(cx, body, id).map_err(RewriteError::Type)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the desired layouts of a call.
    fn wish(&self, cx: &Context, body: &Body, call: ExprId) -> Result<Wish, TypeError> {
        let Expr::CallOp { op, .. } = body.expr(call) else { return Ok(Wish::Nothing) };
        let request = match self.desired.get(&op) {
            None => return Ok(Wish::Nothing),
            Some(LayoutsOf::Plain) => LayoutRequest::Plain,
            Some(LayoutsOf::Letters { data, kernel }) => LayoutRequest::Letters { data, kernel: kernel.as_deref() },
        };
        Ok(match Relayout::of(cx, body, call, &request)? {
            None => Wish::Nothing,
            Some(answer) if answer.operands.iter().flatten().all(AxisOrder::is_identity) => Wish::Fulfilled,
            Some(answer) => Wish::Call(Box::new(answer)),
        })
    }

    /// Rewrites a call of an operator.
    fn call(&mut self, s: &mut Site<'_>, slot: Slot, call: ExprId) -> Result<Verdict, RewriteError> {
        if let Some(to) = s.editor.cx.cast_type(s.editor.body.expr(call)) {
            return self.cast(s, slot, call, to);
        }
        if matches!(s.editor.body.expr(call), Expr::CallOp { op, .. } if Some(op) == self.permute_dims) {
            return self.permutation(s, slot, call);
        }
        match self.wish(s.editor.cx, s.editor.body, call).map_err(RewriteError::Type)? {
            Wish::Nothing => {}
            Wish::Fulfilled => return Ok(Verdict::Keep),
            Wish::Call(answer) => {
                if let Some(verdict) = self.apply(s, slot, call, &answer, Reason::Desired)? {
                    self.done.converted += 1;
                    return Ok(verdict);
                }
            }
        }
        let operands: SmallVec<[ExprId; 4]> = s.editor.body.operands_of(call).into();
        let mut tried: SmallVec<[AxisOrder; 2]> = SmallVec::new();
        for (operand, atom) in operands.iter().enumerate() {
            let Some(order) = self.values.twins.get(atom).map(|twin| twin.order.clone()) else { continue };
            if tried.len() == 2 || tried.contains(&order) {
                continue;
            }
            let request = LayoutRequest::Follow { operand, order: &order };
            let answer = Relayout::of(s.editor.cx, s.editor.body, call, &request).map_err(RewriteError::Type)?;
            if let Some(answer) = answer
                && let Some(verdict) = self.apply(s, slot, call, &answer, Reason::Follows)?
            {
                self.done.followed += 1;
                return Ok(verdict);
            }
            tried.push(order);
        }
        Ok(Verdict::Keep)
    }

    /// Writes a call for operands in other orders of axes. `None` if that is not possible, or if it
    /// takes too many permutations.
    fn apply(
        &mut self,
        s: &mut Site<'_>,
        slot: Slot,
        call: ExprId,
        answer: &Relayout,
        reason: Reason,
    ) -> Result<Option<Verdict>, RewriteError> {
        let Expr::CallOp { op, attrs, .. } = s.editor.body.expr(call) else { return Ok(None) };
        let fields = s.editor.cx.types.as_tuple(s.editor.body.ty(call)).map_or(1, <[TypeId]>::len);
        if fields > MOST_FIELDS {
            return Ok(None);
        }
        let mut operands: SmallVec<[ExprId; 4]> = s.editor.body.operands_of(call).into();
        // Count the permutations, before anything is made.
        let (mut new, mut saved) = (0, 0);
        let wanted = || answer.operands.iter().enumerate().filter_map(|(i, order)| Some((i, order.as_ref()?)));
        for (i, order) in wanted() {
            let Some(&atom) = operands.get(i) else { return Ok(None) };
            let here = (&*s.editor.cx, &*s.editor.body);
            let Some(is_new) = self.values.needs_permutation(here, atom, order) else { return Ok(None) };
            new += usize::from(is_new);
            saved += usize::from(self.values.twins.get(&atom).is_some_and(|twin| twin.order == *order));
        }
        if reason == Reason::Follows && new > saved {
            return Ok(None);
        }
        // Make the operands and the call.
        for (i, order) in wanted() {
            let Some(converted) = self.values.convert(s, operands[i], order) else { return Ok(None) };
            operands[i] = converted.map_err(RewriteError::Type)?;
        }
        for (i, literal) in &answer.constants {
            let Some(operand) = operands.get_mut(*i) else { return Ok(None) };
            *operand = s.editor.literal(literal.clone());
        }
        let mut changed = attrs;
        for (name, value) in &answer.attrs {
            let value = value.intern(s.editor.cx);
            changed = s.editor.cx.with_attr(changed, name, Some(value));
        }
        let Ok(made) = s.editor.call_op(op, &operands, changed) else { return Ok(None) };
        self.results(s, slot, (call, made), &answer.results, Misfit::Refused)
    }

    /// Gives the results of an expression in other orders of axes to the variable of the expression
    /// that it replaces. `None` if the types do not fit.
    fn results(
        &mut self,
        s: &mut Site<'_>,
        slot: Slot,
        (old, made): (ExprId, ExprId),
        orders: &[Option<AxisOrder>],
        misfit: Misfit,
    ) -> Result<Option<Verdict>, RewriteError> {
        let wanted = s.editor.body.ty(old);
        let var = slot.var.map(|var| var.expr());
        let order_of = |i: usize| orders.get(i).cloned().flatten().filter(|order| !order.is_identity());
        let ty = s.editor.body.ty(made);
        let types: Option<SmallVec<[TypeId; 4]>> = s.editor.cx.types.as_tuple(ty).map(SmallVec::from_slice);
        let all = types.as_deref().unwrap_or(std::slice::from_ref(&ty)).iter().enumerate();
        let mut ordered = all.filter(|(i, _)| order_of(*i).is_some());
        if !ordered.all(|(_, &ty)| is_moved_by_kernels(s.editor.cx, ty)) {
            return Ok(None);
        }
        let Some(fields) = types.as_ref().map(SmallVec::len) else {
            let Some(order) = order_of(0) else {
                return Ok(fits(s, wanted, made).then_some(Verdict::Value(made)));
            };
            let value = self.values.bind(s, var, made);
            if misfit == Misfit::Cast {
                // What a cast checks and binds is needed even if nothing uses its result.
                self.values.keep(value);
            }
            let back = self.back(s, value, &order).map_err(RewriteError::Type)?;
            let Some(back) = self.fitted(s, back, wanted, misfit)? else { return Ok(None) };
            self.note_twin(s, slot, back, Twin { value, order });
            return Ok(Some(verdict_of(s, back)));
        };
        if orders.iter().all(|order| order.as_ref().is_none_or(AxisOrder::is_identity)) {
            return Ok(fits(s, wanted, made).then_some(Verdict::Value(made)));
        }
        let tuple = self.values.bind(s, var, made);
        if misfit == Misfit::Cast {
            self.values.keep(tuple);
        }
        let (mut plain, mut twins) = (SmallVec::<[ExprId; 4]>::new(), FieldTwins::new());
        for i in 0..fields {
            let field = s.editor.proj(tuple, i as u32).map_err(RewriteError::Type)?;
            let value = self.values.bind(s, None, field);
            let order = order_of(i);
            plain.push(match &order {
                Some(order) => {
                    let back = self.back(s, value, order).map_err(RewriteError::Type)?;
                    if s.editor.body.expr(back).is_atom() { back } else { self.values.bind(s, None, back) }
                }
                None => value,
            });
            let twin = order.map(|order| Twin { value, order });
            if let (Some(twin), Some(&field)) = (&twin, plain.last()) {
                self.values.twins.insert(field, twin.clone());
            }
            twins.push(twin);
        }
        let tuple = s.editor.tuple(&plain);
        let Some(tuple) = self.fitted(s, tuple, wanted, misfit)? else { return Ok(None) };
        if let Some(var) = var {
            self.values.fields.insert(var, twins);
            self.values.droppable.insert(var);
        }
        Ok(Some(Verdict::Value(tuple)))
    }

    /// Returns a value that fits a type: itself, or a cast of it. `None` if it does not fit and is
    /// not cast.
    fn fitted(
        &mut self,
        s: &mut Site<'_>,
        value: ExprId,
        wanted: TypeId,
        misfit: Misfit,
    ) -> Result<Option<ExprId>, RewriteError> {
        if fits(s, wanted, value) {
            return Ok(Some(value));
        }
        if misfit == Misfit::Refused {
            return Ok(None);
        }
        let atom = if s.editor.body.expr(value).is_atom() { value } else { self.values.bind(s, None, value) };
        s.editor.match_cast(atom, wanted).map(Some).map_err(RewriteError::Type)
    }

    /// Returns a value in its own order of axes, which `order` has changed. The result is not bound
    /// yet if it is a permutation.
    fn back(&mut self, s: &mut Site<'_>, value: ExprId, order: &AxisOrder) -> Result<ExprId, TypeError> {
        let inverse = order.inverse();
        let here = (&*s.editor.cx, &*s.editor.body);
        match self.values.needs_permutation(here, value, &inverse) {
            Some(false) => self.values.convert(s, value, &inverse).unwrap_or_else(|| permuted(s, value, &inverse)),
            _ => permuted(s, value, &inverse),
        }
    }

    /// Records that the value of a slot is made from a twin.
    fn note_twin(&mut self, s: &Site<'_>, slot: Slot, value: ExprId, twin: Twin) {
        self.tails.insert(value, twin.clone());
        if let Some(var) = slot.var {
            self.values.droppable.insert(var.expr());
            self.values.twins.insert(var.expr(), twin.clone());
            // The value takes the place of the variable if it is an atom.
            if s.editor.body.expr(value).is_atom() {
                self.values.twins.entry(value).or_insert(twin);
            }
        }
    }

    /// Rewrites a `match_cast` of a variable with a twin: the twin is cast.
    fn cast(&mut self, s: &mut Site<'_>, slot: Slot, call: ExprId, to: TypeId) -> Result<Verdict, RewriteError> {
        let operand = s.editor.body.operands_of(call).first().copied();
        let Some(twin) = operand.and_then(|operand| self.values.twins.get(&operand)).cloned() else {
            return Ok(Verdict::Keep);
        };
        let Some(tensor) = s.editor.cx.types.as_tensor(to).cloned() else { return Ok(Verdict::Keep) };
        let Some(shape) = tensor.shape.filter(|shape| shape.len() == twin.order.rank()) else {
            return Ok(Verdict::Keep);
        };
        let reordered: SmallVec<[_; 4]> = twin.order.axes().iter().map(|&axis| shape[axis]).collect();
        let to = s.editor.cx.types.tensor(tensor.dtype, &reordered);
        let Ok(made) = s.editor.match_cast(twin.value, to) else { return Ok(Verdict::Keep) };
        let orders = [Some(twin.order)];
        Ok(self.results(s, slot, (call, made), &orders, Misfit::Cast)?.unwrap_or(Verdict::Keep))
    }

    /// Rewrites a permutation of a variable with a twin: both permutations become one, or none.
    fn permutation(&mut self, s: &mut Site<'_>, slot: Slot, call: ExprId) -> Result<Verdict, RewriteError> {
        let (cx, body) = (&*s.editor.cx, &*s.editor.body);
        let Some(read) = body.call_of(call) else { return Ok(Verdict::Keep) };
        let Some(&operand) = read.operands.first() else { return Ok(Verdict::Keep) };
        let Some(rank) = cx.types.as_tensor(body.ty(operand)).and_then(|t| t.shape.as_ref()).map(|s| s.len()) else {
            return Ok(Verdict::Keep);
        };
        let axes = read.attrs(cx).ints("axes").unwrap_or_else(|| (0..rank as i64).rev().collect());
        let Some(order) = AxisOrder::counted(&axes).filter(|order| order.rank() == rank) else {
            return Ok(Verdict::Keep);
        };
        let Some(twin) = self.values.twins.get(&operand).cloned() else {
            // It may be left without a use if its users take the operand.
            if let Some(var) = slot.var {
                self.values.note_source(var.expr(), operand, order);
                self.values.droppable.insert(var.expr());
            }
            return Ok(Verdict::Keep);
        };
        let Some(all) = twin.order.inverse().then(&order) else { return Ok(Verdict::Keep) };
        let wanted = s.editor.body.ty(call);
        if all.is_identity() {
            return Ok(if fits(s, wanted, twin.value) { Verdict::Var(twin.value) } else { Verdict::Keep });
        }
        let made = permuted(s, twin.value, &all).map_err(RewriteError::Type)?;
        if !fits(s, wanted, made) {
            return Ok(Verdict::Keep);
        }
        if let Some(var) = slot.var {
            self.values.note_source(var.expr(), twin.value, all);
            self.values.droppable.insert(var.expr());
        }
        Ok(Verdict::Value(made))
    }

    // ---- Tuples and branches ----

    /// Records the twins of the fields of a tuple that is bound to a variable.
    fn tuple(&mut self, s: &Site<'_>, slot: Slot, tuple: ExprId) {
        let fields = s.editor.body.operands_of(tuple);
        let twins: FieldTwins = fields.iter().map(|field| self.values.twins.get(field).cloned()).collect();
        if let Some(var) = slot.var.filter(|_| twins.iter().any(Option::is_some)) {
            self.values.fields.insert(var.expr(), twins);
            self.values.droppable.insert(var.expr());
        }
    }

    /// Rewrites a projection of a tuple that has fields with twins. The field takes its place if it
    /// is known, so that the other fields need not be permuted for it.
    fn projection(&mut self, s: &mut Site<'_>, slot: Slot, tuple: ExprId, index: u32) -> Verdict {
        let Some(twins) = self.values.fields.get(&tuple) else { return Verdict::Keep };
        let twin = twins.get(index as usize).cloned().flatten();
        if let Some(field) = s.field(tuple, index)
            && fits(s, s.editor.body.ty(slot.var.map_or(field, VarId::expr)), field)
        {
            return Verdict::Var(field);
        }
        if let (Some(var), Some(twin)) = (slot.var, twin) {
            self.values.twins.insert(var.expr(), twin);
            self.values.droppable.insert(var.expr());
        }
        Verdict::Keep
    }

    /// Returns the atoms that a block returns, as fields of a tuple or as a single value, and the
    /// twin of each; `None` for a tuple of more than 64 fields, since every If would have new ones.
    fn block_results(&self, s: &Site<'_>, block: ExprId) -> Option<BlockResults> {
        let body = &*s.editor.body;
        let tail = body.tail(block);
        let fields_of = |tuple: ExprId| match body.expr(tuple) {
            Expr::Tuple(list) => Some(body.operands(list)),
            _ => None,
        };
        let of_value = fields_of(tail).or_else(|| fields_of(s.value_of(tail)?));
        if let Some(fields) = of_value {
            let is_taken = fields.len() <= MOST_FIELDS && fields.iter().all(|&field| body.expr(field).is_atom());
            let twins = || fields.iter().map(|field| self.values.twins.get(field).cloned()).collect();
            return is_taken.then(|| BlockResults { is_tuple: true, values: fields.into(), twins: twins() });
        }
        let twin = self.values.twins.get(&tail).or_else(|| self.tails.get(&tail)).cloned()?;
        Some(BlockResults {
            is_tuple: false,
            values: SmallVec::from_iter([tail]),
            twins: FieldTwins::from_iter([Some(twin)]),
        })
    }

    /// Rewrites an If whose branches return values with twins in the same order: the branches
    /// return the twins.
    fn branches(&mut self, s: &mut Site<'_>, slot: Slot, branches: ExprId) -> Result<Verdict, RewriteError> {
        let Expr::If { then_block, else_block, .. } = s.editor.body.expr(branches) else {
            return Ok(Verdict::Keep);
        };
        let both = self.block_results(s, then_block).zip(self.block_results(s, else_block));
        let Some((left, right)) = both else { return Ok(Verdict::Keep) };
        if (left.is_tuple, left.values.len()) != (right.is_tuple, right.values.len()) {
            return Ok(Verdict::Keep);
        }
        let same = |(a, b): (&Option<Twin>, &Option<Twin>)| {
            let (a, b) = (a.as_ref()?, b.as_ref()?);
            (a.order == b.order).then(|| a.order.clone())
        };
        let orders: SmallVec<[Option<AxisOrder>; 2]> = left.twins.iter().zip(&right.twins).map(same).collect();
        if orders.iter().all(Option::is_none) {
            return Ok(Verdict::Keep);
        }
        let blocks = [(then_block, &left), (else_block, &right)];
        let mut tails = SmallVec::<[ExprId; 2]>::new();
        for (_, results) in blocks {
            let pick = |((&value, twin), order): ((&ExprId, &Option<Twin>), &Option<AxisOrder>)| match (order, twin) {
                (Some(_), Some(twin)) => twin.value,
                _ => value,
            };
            let values: SmallVec<[ExprId; 4]> =
                results.values.iter().zip(&results.twins).zip(&orders).map(pick).collect();
            tails.push(if results.is_tuple { s.editor.tuple(&values) } else { values[0] });
        }
        let made = s.with_tails(branches, [tails[0], tails[1]])?;
        Ok(self.results(s, slot, (branches, made), &orders, Misfit::Cast)?.unwrap_or(Verdict::Value(made)))
    }
}

/// The atoms that a block returns, with their twins.
struct BlockResults {
    is_tuple: bool,
    values: SmallVec<[ExprId; 4]>,
    twins: FieldTwins,
}

/// Returns true if an expression may take the place of one of this type.
fn fits(s: &Site<'_>, wanted: TypeId, value: ExprId) -> bool {
    s.editor.cx.types.accepts(wanted, s.editor.body.ty(value))
}

/// Returns the decision for a value that is given to a slot.
fn verdict_of(s: &Site<'_>, value: ExprId) -> Verdict {
    if s.editor.body.expr(value).is_atom() { Verdict::Var(value) } else { Verdict::Value(value) }
}

impl Mutator for LayoutConverter {
    type Error = RewriteError;
    const NODES: bool = false;
    const VALUES: bool = true;

    fn enter(&mut self, _: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        if let Scope::Block(_) = scope {
            self.values.enter_block();
        }
        Ok(())
    }

    fn exit(&mut self, _: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        if let Scope::Block(_) = scope {
            self.values.exit_block();
        }
        Ok(())
    }

    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        match s.editor.body.expr(value) {
            Expr::CallOp { .. } => return self.call(s, slot, value),
            Expr::If { .. } => return self.branches(s, slot, value),
            Expr::Tuple(_) => self.tuple(s, slot, value),
            Expr::Proj { tuple, index } => return Ok(self.projection(s, slot, tuple, index)),
            Expr::Var { .. } => {
                if let Some(twin) = self.values.twins.get(&value).cloned() {
                    self.note_twin(s, slot, value, twin);
                }
            }
            _ => {}
        }
        Ok(Verdict::Keep)
    }
}

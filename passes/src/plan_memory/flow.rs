//! The values of a body and how they flow: one walk of the program.
//!
//! A *position* is a moment of the run: operators, calls, conditions and the results of blocks have
//! ascending positions in program order. Each scope (the function, or the block of a `fn`) is
//! planned by itself, since a `fn` runs when it is called. Variables are names of values: several
//! may name one value, since a relabelling operator, a projection or a tuple makes none.

use anfora_ir::{
    BlockKind, Body, Context, Cursor, EntityId, Expr, ExprId, FunctionKey, FusionPattern, GlobalId, OpId, SideTable,
    Step, TensorType, TypeId, VarId,
};
use anfora_visit::RewriteError;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::sizes::{Layout, Sizes, UNBOUNDED};

/// Stands for values that need no place in the arena: parameters, constants and functions.
pub(super) const OUTSIDE: u32 = u32::MAX;

/// The kinds of values.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ValueKind {
    /// A tensor in a storage.
    Tensor,
    /// A nested or large tuple in one storage.
    Whole,
    /// The arena of a callee, while a call runs.
    Workspace,
    /// The arena of a `fn` of this body, while a call of it runs.
    FnWorkspace,
    /// A tuple whose fields have places of their own.
    Tuple,
    /// A `fn` or a partial application, which holds the values that it captures.
    Closure,
    /// A value without a storage that holds others: one of two branches, or the result of a call
    /// with functions in it.
    Holder,
}

/// A value of a body.
#[derive(Clone, Debug)]
pub(super) struct FlowValue {
    /// For a storage, its bytes; for the workspace of a `fn`, the scope of the `fn`. For a tuple,
    /// the start of its fields in the list of all fields, and their number. For a closure, the
    /// function that it calls, if it is planned.
    data: u64,
    pub(super) scope: u32,
    /// The position at which it is written.
    pub(super) first: u32,
    /// The position of its last use, or `first` without one.
    pub(super) last: u32,
    pub(super) kind: ValueKind,
    /// The value is a result of its scope, or a part of one.
    pub(super) is_result: bool,
    /// A function that leaves the scope holds the value.
    pub(super) escapes: bool,
    /// The value is in the storage of the result of an If.
    is_merged: bool,
}

impl FlowValue {
    pub(super) fn has_storage(&self) -> bool {
        matches!(self.kind, ValueKind::Tensor | ValueKind::Whole | ValueKind::Workspace | ValueKind::FnWorkspace)
    }

    /// Returns the bytes of a value with a storage.
    pub(super) fn bytes(&self) -> u64 {
        self.data
    }

    pub(super) fn set_bytes(&mut self, bytes: u64) {
        self.data = bytes;
    }

    /// Returns the scope of the `fn` whose arena the value is.
    pub(super) fn fn_scope(&self) -> Option<u32> {
        (self.kind == ValueKind::FnWorkspace).then_some(self.data as u32)
    }

    /// Returns the planned function that a closure calls.
    fn callee(&self) -> Option<PlannedCallee> {
        match (self.kind, self.data >> 32) {
            (ValueKind::Closure, 1) => Some(PlannedCallee::Scope(self.data as u32)),
            (ValueKind::Closure, 2) => Some(PlannedCallee::Function(GlobalId::from_index(self.data as u32 as usize))),
            _ => None,
        }
    }

    fn set_callee(&mut self, callee: PlannedCallee) {
        self.data = match callee {
            PlannedCallee::Scope(scope) => 1 << 32 | u64::from(scope),
            PlannedCallee::Function(global) => 2 << 32 | global.index() as u64,
        };
    }

    /// Returns the start of the fields of a tuple, and their number.
    pub(super) fn fields(&self) -> (u32, u32) {
        match self.kind {
            ValueKind::Tuple => ((self.data >> 32) as u32, self.data as u32),
            _ => (0, 0),
        }
    }
}

/// A function, or the block of a `fn`.
#[derive(Clone, Debug)]
pub(super) struct FlowScope {
    /// The `fn`; `None` for the function.
    pub(super) lambda: Option<ExprId>,
    /// The number of enclosing scopes.
    depth: u32,
    is_done: bool,
    /// The bytes of all values, each in a storage of its own.
    pub(super) separate: u64,
    /// The calls whose callee has no plan.
    pub(super) unplanned_calls: u32,
}

/// The values of a body.
pub(super) struct Flow {
    pub(super) values: Vec<FlowValue>,
    /// The fields of tuples.
    pub(super) fields: Vec<u32>,
    /// Pairs (holder, held), of closures and holders.
    pub(super) holds: Vec<(u32, u32)>,
    /// The value that a variable names, or that a result of a block is.
    pub(super) of: SideTable<ExprId, u32>,
    /// Pairs (result, operand): an elementwise operator may write the result over the operand if
    /// that dies there.
    pub(super) reuses: Vec<(u32, u32)>,
    /// Pairs (result of an If, result of a branch) that share a storage.
    pub(super) merges: Vec<(u32, u32)>,
    /// Calls and their workspaces.
    pub(super) workspaces: Vec<(ExprId, u32)>,
    pub(super) scopes: Vec<FlowScope>,
    /// The scopes in the order of their ends.
    pub(super) done: Vec<u32>,
    /// The bindings of the function's own scope in the order in which they are bound, with their
    /// positions.
    pub(super) bound: Vec<(VarId, u32)>,
}

/// The callee of a call.
#[derive(Copy, Clone, PartialEq, Eq)]
enum PlannedCallee {
    Function(GlobalId),
    Scope(u32),
}

/// An If that is being walked.
struct OpenIf {
    /// The first position of the branch.
    start: u32,
    branches: [BranchResult; 2],
}

#[derive(Copy, Clone)]
struct BranchResult {
    value: u32,
    ty: Option<TypeId>,
    start: u32,
    end: u32,
}

struct Walk<'a, 'c> {
    cx: &'c Context,
    body: &'a Body,
    sizes: &'a mut Sizes<'c>,
    /// The bytes of the arenas of functions that are planned already.
    arenas: &'a FxHashMap<FunctionKey, u64>,
    make_closure: Option<OpId>,
    flow: Flow,
    /// The open scopes, each with the closure that it is the block of.
    open: Vec<(u32, u32)>,
    ifs: Vec<OpenIf>,
    now: u32,
    /// The last value or tail that was walked.
    result: u32,
    result_expr: ExprId,
}

impl Flow {
    /// Frees what only the plan of each value needs.
    pub(super) fn keep_storages(&mut self) {
        self.of = SideTable::new(0, OUTSIDE);
        self.fields = Vec::new();
        self.holds = Vec::new();
        self.reuses = Vec::new();
        self.merges = Vec::new();
        self.workspaces = Vec::new();
        self.bound = Vec::new();
    }

    /// Walks a body. `arenas` has the bytes of the functions that it may call.
    ///
    /// # Errors
    /// If the body is not in A-normal form.
    pub(super) fn of<'c>(
        cx: &'c Context,
        body: &Body,
        sizes: &mut Sizes<'c>,
        arenas: &FxHashMap<FunctionKey, u64>,
    ) -> Result<Flow, RewriteError> {
        let flow = Flow {
            // A binding has at least three nodes.
            values: Vec::with_capacity(body.len() / 3),
            fields: Vec::new(),
            holds: Vec::new(),
            of: body.side_table(OUTSIDE),
            reuses: Vec::new(),
            merges: Vec::new(),
            workspaces: Vec::new(),
            scopes: Vec::new(),
            done: Vec::new(),
            bound: Vec::with_capacity(body.len() / 3),
        };
        let mut walk = Walk {
            cx,
            body,
            sizes,
            arenas,
            make_closure: cx.ops.find("make_closure"),
            flow,
            open: Vec::new(),
            ifs: Vec::new(),
            now: 0,
            result: OUTSIDE,
            result_expr: body.root(),
        };
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            RewriteError::unless_anf(cx, body, &cursor, step)?;
            walk.step(step);
        }
        let mut flow = walk.flow;
        if !flow.holds.is_sorted_by_key(|&(holder, _)| holder) {
            flow.holds.sort_by_key(|&(holder, _)| holder);
        }
        Ok(flow)
    }
}

impl Walk<'_, '_> {
    fn step(&mut self, step: Step) {
        match step {
            Step::EnterBlock(_, kind) => self.enter_block(kind),
            Step::ExitBlock(_, kind) => self.exit_block(kind),
            Step::Bound(id) => {
                if let Expr::Let { var, .. } = self.body.expr(id) {
                    self.flow.of.set(var.expr(), self.result);
                    if let [_] = self.open[..] {
                        self.flow.bound.push((var, self.now));
                    }
                }
            }
            Step::Atom(id) => self.gives(id, |walk| walk.value_of(id)),
            Step::Flat(id) => self.gives(id, |walk| walk.flat(id)),
            Step::Enter(id) => match self.body.expr(id) {
                Expr::If { .. } => {
                    let branch = BranchResult { value: OUTSIDE, ty: None, start: 0, end: 0 };
                    self.ifs.push(OpenIf { start: 0, branches: [branch; 2] });
                }
                _ => {
                    let closure = self.value(ValueKind::Closure, 0);
                    let scope = self.flow.scopes.len() as u32;
                    self.flow.scopes.push(new_scope(Some(id), self.open.len() as u32));
                    self.open.push((scope, closure));
                }
            },
            Step::Exit(id) => self.gives(id, |walk| match walk.body.expr(id) {
                Expr::If { .. } => walk.merge(id),
                _ => {
                    let (scope, closure) = walk.open.pop().expect("a scope opens at each `fn`");
                    walk.flow.values[closure as usize].set_callee(PlannedCallee::Scope(scope));
                    closure
                }
            }),
            Step::Let(_) | Step::Seen(_) => {}
        }
    }

    fn gives(&mut self, id: ExprId, value: impl FnOnce(&mut Self) -> u32) {
        self.result = value(self);
        self.result_expr = id;
    }

    fn enter_block(&mut self, kind: BlockKind) {
        match kind {
            BlockKind::Root => {
                self.flow.scopes.push(new_scope(None, 0));
                self.open.push((0, OUTSIDE));
            }
            BlockKind::Then(id) => {
                if let Expr::If { cond, .. } = self.body.expr(id) {
                    let (cond, at) = (self.value_of(cond), self.tick());
                    self.uses(cond, at);
                }
                self.start_branch();
            }
            BlockKind::Else(_) => self.start_branch(),
            BlockKind::Lambda(_) | BlockKind::Value(_) | BlockKind::Operand(_) => {}
        }
    }

    fn start_branch(&mut self) {
        let start = self.now + 1;
        if let Some(open) = self.ifs.last_mut() {
            open.start = start;
        }
    }

    fn exit_block(&mut self, kind: BlockKind) {
        let at = self.tick();
        self.uses(self.result, at);
        match kind {
            BlockKind::Root | BlockKind::Lambda(_) => {
                if let Some(value) = self.flow.values.get_mut(self.result as usize) {
                    value.is_result = true;
                }
                let scope = self.scope();
                self.flow.scopes[scope as usize].is_done = true;
                self.flow.done.push(scope);
            }
            BlockKind::Then(_) | BlockKind::Else(_) => {
                let ty = Some(self.body.ty(self.result_expr));
                let branch = usize::from(matches!(kind, BlockKind::Else(_)));
                if let Some(open) = self.ifs.last_mut() {
                    open.branches[branch] = BranchResult { value: self.result, ty, start: open.start, end: at };
                }
            }
            BlockKind::Value(_) | BlockKind::Operand(_) => {}
        }
    }

    fn scope(&self) -> u32 {
        self.open.last().map_or(0, |&(scope, _)| scope)
    }

    fn tick(&mut self) -> u32 {
        self.now += 1;
        self.now
    }

    fn value(&mut self, kind: ValueKind, data: u64) -> u32 {
        let (scope, now) = (self.scope(), self.now);
        let value =
            FlowValue { data, scope, first: now, last: now, kind, is_result: false, escapes: false, is_merged: false };
        self.flow.values.push(value);
        self.flow.values.len() as u32 - 1
    }

    fn tuple(&mut self, fields: &[u32]) -> u32 {
        let start = self.flow.fields.len() as u64;
        self.flow.fields.extend_from_slice(fields);
        self.value(ValueKind::Tuple, start << 32 | fields.len() as u64)
    }

    /// Makes a value that holds others.
    fn holder(&mut self, kind: ValueKind, held: impl IntoIterator<Item = u32>) -> u32 {
        let holder = self.value(kind, 0);
        self.flow.holds.extend(held.into_iter().filter(|&held| held != OUTSIDE).map(|held| (holder, held)));
        holder
    }

    /// Returns the value of an atom. If the variable is bound outside of the innermost `fn`, the
    /// closure in the scope of the variable holds its value.
    fn value_of(&mut self, id: ExprId) -> u32 {
        if !matches!(self.body.expr(id), Expr::Var { .. }) {
            return OUTSIDE;
        }
        let value = self.flow.of[id];
        let Some(found) = self.flow.values.get(value as usize) else { return OUTSIDE };
        let depth = self.flow.scopes[found.scope as usize].depth as usize;
        if let Some(&(_, closure)) = self.open.get(depth + 1) {
            self.flow.holds.push((closure, value));
        }
        value
    }

    fn uses(&mut self, value: u32, at: u32) {
        if let Some(value) = self.flow.values.get_mut(value as usize) {
            value.last = value.last.max(at);
        }
    }

    // ---- Expressions ----

    fn flat(&mut self, id: ExprId) -> u32 {
        match self.body.expr(id) {
            Expr::Proj { tuple, index } => {
                let tuple = self.value_of(tuple);
                match self.flow.values.get(tuple as usize) {
                    Some(value) if value.kind == ValueKind::Tuple => {
                        let (start, len) = value.fields();
                        if index < len { self.flow.fields[(start + index) as usize] } else { OUTSIDE }
                    }
                    _ => tuple,
                }
            }
            Expr::Tuple(operands) => {
                let operands = self.body.operands(operands);
                let fields: Vec<u32> = operands.iter().map(|&o| self.value_of(o)).collect();
                self.tuple(&fields)
            }
            Expr::CallOp { op, .. } => self.call_op(id, op),
            _ => self.call(id),
        }
    }

    /// Returns the values of the operands of a call, which uses them now.
    fn operands(&mut self, id: ExprId) -> SmallVec<[u32; 4]> {
        let at = self.tick();
        let mut operands = SmallVec::with_capacity(self.body.operands_of(id).len());
        for &operand in self.body.operands_of(id) {
            let value = self.value_of(operand);
            self.uses(value, at);
            operands.push(value);
        }
        operands
    }

    fn call_op(&mut self, id: ExprId, op: OpId) -> u32 {
        let operands = self.operands(id);
        if Some(op) == self.make_closure {
            let callee = self.callee(self.body.operands_of(id).first().copied());
            let closure = self.holder(ValueKind::Closure, operands);
            callee.into_iter().for_each(|callee| self.flow.values[closure as usize].set_callee(callee));
            return closure;
        }
        let first = operands.first().copied().unwrap_or(OUTSIDE);
        if self.cx.ops.facts(op).is_match_cast() {
            return first;
        }
        let row = self.cx.ops.get(op);
        let forwarded = |result: u32| {
            let &(_, operand) = row.forwards.iter().find(|&&(r, _)| r == result)?;
            operands.get(operand as usize).copied()
        };
        let ty = self.body.ty(id);
        match self.sizes.layout(ty) {
            Layout::Tensor(bytes) => match forwarded(0) {
                Some(operand) => operand,
                None if row.relabels => {
                    self.counts(bytes);
                    first
                }
                None => {
                    let result = self.storage(ValueKind::Tensor, bytes);
                    self.note_reuses(id, ty, result, &operands);
                    result
                }
            },
            Layout::Fields(types) => {
                let fields: Vec<u32> =
                    (0..).zip(types).map(|(i, ty)| forwarded(i).unwrap_or_else(|| self.tensor_of(ty))).collect();
                self.tuple(&fields)
            }
            Layout::Whole(bytes) => self.storage(ValueKind::Whole, bytes),
            Layout::Other => self.holder(ValueKind::Holder, operands),
        }
    }

    /// Notes the operands over which an elementwise operator may write its result: those of the
    /// same shape, and of an element type of the same size.
    fn note_reuses(&mut self, id: ExprId, ty: TypeId, result: u32, operands: &[u32]) {
        let (cx, body) = (self.cx, self.body);
        let Expr::CallOp { op, .. } = body.expr(id) else { return };
        let pattern = cx.ops.get(op).fusion_of(cx, body, id);
        let Some(tensor) = cx.types.as_tensor(ty) else { return };
        if !matches!(pattern, FusionPattern::ElemWise | FusionPattern::Broadcast) || !cx.types.has_known_extents(ty) {
            return;
        }
        for (&operand, &value) in body.operands_of(id).iter().zip(operands) {
            let is_like = |other: &TensorType| other.shape == tensor.shape && other.dtype.bits() == tensor.dtype.bits();
            if self.flow.values.get(value as usize).is_some_and(|v| v.kind == ValueKind::Tensor)
                && cx.types.as_tensor(body.ty(operand)).is_some_and(is_like)
            {
                self.flow.reuses.push((result, value));
            }
        }
    }

    fn counts(&mut self, bytes: u64) {
        if bytes != UNBOUNDED {
            let scope = self.scope();
            let separate = &mut self.flow.scopes[scope as usize].separate;
            *separate = separate.saturating_add(bytes);
        }
    }

    fn storage(&mut self, kind: ValueKind, bytes: u64) -> u32 {
        self.counts(bytes);
        self.value(kind, bytes)
    }

    fn tensor_of(&mut self, ty: TypeId) -> u32 {
        let bytes = self.sizes.tensor_bytes(ty);
        self.storage(ValueKind::Tensor, bytes)
    }

    fn callee(&self, operand: Option<ExprId>) -> Option<PlannedCallee> {
        match self.body.expr(operand?) {
            Expr::Global(global) => Some(PlannedCallee::Function(global)),
            Expr::Var { .. } => self.flow.values.get(self.flow.of[operand?] as usize)?.callee(),
            _ => None,
        }
    }

    /// Walks a call of a function, whose arena is needed while the call runs. The caller copies the
    /// result out of it.
    fn call(&mut self, id: ExprId) -> u32 {
        let operands = self.operands(id);
        let workspace = match self.callee(self.body.operands_of(id).first().copied()) {
            Some(PlannedCallee::Function(global)) => {
                let key = self.cx.globals.get(global).target.function();
                key.and_then(|key| self.arenas.get(&key)).map(|&bytes| (ValueKind::Workspace, bytes))
            }
            Some(PlannedCallee::Scope(scope)) if self.flow.scopes[scope as usize].is_done => {
                Some((ValueKind::FnWorkspace, u64::from(scope)))
            }
            _ => None,
        };
        match workspace {
            Some((kind, data)) => {
                let workspace = self.value(kind, data);
                self.flow.workspaces.push((id, workspace));
            }
            None => {
                let scope = self.scope();
                self.flow.scopes[scope as usize].unplanned_calls += 1;
            }
        }
        match self.sizes.layout(self.body.ty(id)) {
            Layout::Tensor(bytes) => self.storage(ValueKind::Tensor, bytes),
            Layout::Fields(types) => {
                let fields: Vec<u32> = types.into_iter().map(|ty| self.tensor_of(ty)).collect();
                self.tuple(&fields)
            }
            Layout::Whole(bytes) => self.storage(ValueKind::Whole, bytes),
            Layout::Other => self.holder(ValueKind::Holder, operands),
        }
    }

    // ---- Ifs ----

    /// Returns the result of an If. A tensor has a storage, into which each branch copies its
    /// result, unless a branch computes it there.
    fn merge(&mut self, id: ExprId) -> u32 {
        let Some(OpenIf { branches, .. }) = self.ifs.pop() else { return OUTSIDE };
        let [then, other] = branches;
        if then.value == OUTSIDE && other.value == OUTSIDE {
            return OUTSIDE;
        }
        match self.sizes.layout(self.body.ty(id)) {
            Layout::Tensor(bytes) => self.merge_tensors(bytes, branches),
            Layout::Fields(types) => {
                let mut fields = Vec::with_capacity(types.len());
                for (i, ty) in (0..).zip(types) {
                    let bytes = self.sizes.tensor_bytes(ty);
                    let parts = branches.map(|branch| self.field_of(branch, i));
                    fields.push(self.merge_tensors(bytes, parts));
                }
                self.tuple(&fields)
            }
            Layout::Whole(_) | Layout::Other => self.holder(ValueKind::Holder, [then.value, other.value]),
        }
    }

    /// Returns a field of a result of a branch. The value is outside if it has no place of its own.
    fn field_of(&self, branch: BranchResult, index: u32) -> BranchResult {
        let types = branch.ty.and_then(|ty| self.cx.types.as_tuple(ty));
        let ty = types.and_then(|types| types.get(index as usize).copied());
        let value = match self.flow.values.get(branch.value as usize).map(FlowValue::fields) {
            Some((start, len)) if index < len => self.flow.fields[(start + index) as usize],
            _ => OUTSIDE,
        };
        BranchResult { value, ty, ..branch }
    }

    fn merge_tensors(&mut self, bytes: u64, branches: [BranchResult; 2]) -> u32 {
        let mut bytes = bytes;
        if bytes == UNBOUNDED {
            // The branches may have extents that differ, and are known.
            bytes =
                branches.iter().fold(0, |most, b| most.max(b.ty.map_or(UNBOUNDED, |ty| self.sizes.tensor_bytes(ty))));
        }
        let result = self.storage(ValueKind::Tensor, bytes);
        let scope = self.scope();
        self.flow.values[result as usize].first = branches[0].end;
        for branch in branches {
            let Some(value) = self.flow.values.get_mut(branch.value as usize) else { continue };
            let is_new = value.scope == scope && value.first >= branch.start;
            if value.kind == ValueKind::Tensor && is_new && !value.is_merged {
                value.is_merged = true;
                self.flow.merges.push((result, branch.value));
            }
        }
        result
    }
}

fn new_scope(lambda: Option<ExprId>, depth: u32) -> FlowScope {
    FlowScope { lambda, depth, is_done: false, separate: 0, unplanned_calls: 0 }
}

//! The slots of variables, which describe them in terms of ONNX. Tuples, projections and aliases
//! need no node.

use anfora_ir::{AttrsId, Body, Context, EntityId, Expr, ExprId, GlobalId, LiteralId, NameId, Type, TypeId, VarId};
use smallvec::{SmallVec, smallvec};

use crate::error::ExportProblem;
use crate::id_hash::IdMap;

/// A parameter, or a value that a node computes.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct ValueId(u32);

impl ValueId {
    pub(super) fn new(index: usize) -> ValueId {
        ValueId(u32::try_from(index).expect("there are fewer values than expressions"))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The meaning of an expression in ONNX.
#[derive(Copy, Clone, Debug)]
pub(super) enum Slot {
    /// A value with a name.
    Value(ValueId),
    /// A constant, and the variable that it is bound to, if any.
    Literal(LiteralId, Option<VarId>),
    /// An operand that is left out, or an output that is not requested.
    None,
    /// A tuple: the start and the number of its slots in the pool.
    Tuple(u32, u32),
    /// A `fn`.
    Lambda(ExprId),
    /// A global function.
    Global(GlobalId),
    /// An operator as a value.
    Other,
}

/// A block that becomes a graph.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Block {
    /// The body of the function.
    Function,
    /// The body of a `fn`.
    Lambda(ExprId),
    /// The first branch of an `if`.
    Then(ExprId),
    /// The second branch of an `if`.
    Else(ExprId),
}

/// The properties of a value.
pub(super) struct ValueData {
    /// The name of its variable.
    pub(super) name: Option<NameId>,
    pub(super) ty: TypeId,
    /// The metadata of its binding.
    pub(super) meta: Option<AttrsId>,
    /// The block that computes it.
    pub(super) block: Block,
    pub(super) is_param: bool,
    /// For one of several results, true if anything refers to it.
    pub(super) is_used: bool,
}

/// The slots of all variables of a body.
pub(super) struct Slots<'m> {
    cx: &'m Context,
    body: &'m Body,
    of_var: Vec<Option<Slot>>,
    /// The results of calls and of `if`s.
    of_call: IdMap<ExprId, Slot>,
    /// The results of blocks, by their tail.
    of_tail: IdMap<ExprId, Slot>,
    /// The metadata of the bindings of `fn`s, by the `fn`.
    of_lambda: IdMap<ExprId, AttrsId>,
    pool: Vec<Slot>,
    values: Vec<ValueData>,
    /// The global functions that are called, in program order, with the bindings of the calls.
    calls: Vec<(GlobalId, Option<VarId>)>,
}

/// A block or a call that occurs in two places.
const SHARED: ExportProblem = ExportProblem::Pass { what: "shared values", pass: "ToANormalForm" };

/// A problem, with the variable whose binding has it.
pub(super) type Fault = (Option<VarId>, ExportProblem);

impl<'m> Slots<'m> {
    /// Returns the slots of all bindings of a body in A-normal form, including those of inner
    /// blocks.
    pub(super) fn of(cx: &'m Context, body: &'m Body) -> Result<Slots<'m>, Fault> {
        let mut slots = Slots {
            cx,
            body,
            of_var: vec![None; body.len()],
            of_call: IdMap::default(),
            of_tail: IdMap::default(),
            of_lambda: IdMap::default(),
            pool: Vec::new(),
            values: Vec::new(),
            calls: Vec::new(),
        };
        // A binding of a call has three expressions.
        slots.of_call.reserve(body.len() / 3);
        slots.values.reserve(body.len() / 3);
        for &p in body.params() {
            slots.add_param(p, Block::Function);
        }
        let mut blocks = vec![(body.root(), Block::Function)];
        while let Some((mut at, block)) = blocks.pop() {
            while let Expr::Let { var, value, body: rest, .. } = body.expr(at) {
                if slots.of_var[var.index()].is_some() {
                    return Err((Some(var), SHARED));
                }
                let slot = slots.bind(value, Some(var), block).map_err(|p| (Some(var), p))?;
                slots.of_var[var.index()] = Some(slot);
                if let Slot::Lambda(lambda) = slot
                    && lambda == value
                {
                    slots.of_lambda.extend(body.meta(var.expr()).map(|meta| (lambda, meta)));
                }
                slots.enter(value, &mut blocks);
                at = rest;
            }
            let slot = slots.bind(at, None, block).map_err(|p| (None, p))?;
            slots.mark_used(slot);
            slots.of_tail.insert(at, slot);
            if let Expr::If { .. } = body.expr(at) {
                slots.enter(at, &mut blocks);
            }
        }
        Ok(slots)
    }

    /// Adds the parameters of the inner blocks of a value, and the blocks themselves to `blocks`.
    fn enter(&mut self, value: ExprId, blocks: &mut Vec<(ExprId, Block)>) {
        let body = self.body;
        match body.expr(value) {
            Expr::Lambda { lambda, body: block } => {
                for p in body.lambda_params(lambda) {
                    self.add_param(p, Block::Lambda(value));
                }
                blocks.push((block, Block::Lambda(value)));
            }
            Expr::If { then_block, else_block, .. } => {
                blocks.push((else_block, Block::Else(value)));
                blocks.push((then_block, Block::Then(value)));
            }
            _ => {}
        }
    }

    fn add_param(&mut self, param: VarId, block: Block) {
        let (name, ty) = (self.body.var_name(param), self.body.ty(param.expr()));
        let value = self.add_value(ValueData { name, ty, meta: None, block, is_param: true, is_used: true });
        self.of_var[param.index()] = Some(Slot::Value(value));
    }

    fn add_value(&mut self, data: ValueData) -> ValueId {
        let id = ValueId::new(self.values.len());
        self.values.push(data);
        id
    }

    /// Returns the slot of the value of a binding, or of a tail.
    fn bind(&mut self, value: ExprId, var: Option<VarId>, block: Block) -> Result<Slot, ExportProblem> {
        let pass = |what, pass| Err(ExportProblem::Pass { what, pass });
        let body = self.body;
        match body.expr(value) {
            // Calls of operators.
            Expr::CallOp { op, operands, .. } => {
                if !body.operands(operands).iter().all(|&o| body.expr(o).is_atom()) {
                    return pass("calls as operands", "ToANormalForm");
                }
                if self.cx.ops.get(op).name == "make_closure" {
                    return pass("closures", "InlineFunctions");
                }
                self.add_results(value, var, block)
            }
            // Tuples and their fields.
            Expr::Tuple(fields) => {
                let start = self.pool.len();
                for &field in body.operands(fields) {
                    if !body.expr(field).is_atom() {
                        return pass("calls as operands", "ToANormalForm");
                    }
                    let slot = self.of_atom(field)?;
                    self.pool.push(slot);
                }
                Ok(self.tuple_since(start))
            }
            Expr::Proj { tuple, index } => {
                let Slot::Tuple(start, len) = self.of_atom(tuple)? else {
                    // The tuple is a parameter.
                    return Err(ExportProblem::Type(self.cx.type_text(body.ty(tuple))));
                };
                if index >= len {
                    return Err(ExportProblem::Unsupported(format!("field {index} of a tuple of {len}")));
                }
                let slot = self.pool[(start + index) as usize];
                if let (Slot::Value(v), Some(var)) = (slot, var) {
                    let data = &mut self.values[v.index()];
                    data.is_used = true;
                    if data.name.is_none() && !data.is_param {
                        data.name = body.var_name(var);
                        data.meta = body.meta(var.expr());
                    }
                }
                Ok(slot)
            }
            // Values with blocks.
            Expr::Lambda { .. } => Ok(Slot::Lambda(value)),
            Expr::Let { .. } => pass("blocks as values", "Normalize"),
            Expr::If { cond, .. } => {
                if !body.expr(cond).is_atom() {
                    return pass("calls as operands", "ToANormalForm");
                }
                self.add_results(value, var, block)
            }
            // Calls of functions.
            Expr::Call { operands, .. } => {
                let operands = body.operands(operands);
                if !operands.iter().all(|&o| body.expr(o).is_atom()) {
                    return pass("calls as operands", "ToANormalForm");
                }
                match self.of_atom(operands[0])? {
                    Slot::Global(callee) => self.calls.push((callee, var)),
                    Slot::Lambda(_) => return pass("calls of a `fn`", "LambdaLifting"),
                    _ => return pass("calls of functions that are values", "InlineFunctions"),
                }
                self.add_results(value, var, block)
            }
            Expr::Literal(l) => Ok(Slot::Literal(l, var)),
            Expr::Var { .. } | Expr::Global(_) | Expr::Op(_) | Expr::None => self.of_atom(value),
        }
    }

    /// Adds the results of a call or of an `if`: a single value, or the fields of a tuple.
    fn add_results(&mut self, call: ExprId, var: Option<VarId>, block: Block) -> Result<Slot, ExportProblem> {
        if self.of_call.contains_key(&call) {
            return Err(SHARED);
        }
        let ty = self.body.ty(call);
        let (name, meta) = match var {
            Some(v) => (self.body.var_name(v), self.body.meta(v.expr())),
            None => (None, None),
        };
        let slot = match self.cx.types.get(ty) {
            Type::Tuple(fields) => {
                let start = self.pool.len();
                let cx = self.cx;
                for &field in fields {
                    let slot = match cx.types.get(field) {
                        Type::Tuple(inner) if inner.is_empty() => Slot::None,
                        Type::Tuple(_) | Type::Function(_) => return Err(ExportProblem::Type(cx.type_text(field))),
                        _ => {
                            let data = ValueData {
                                name: None,
                                ty: field,
                                meta: None,
                                block,
                                is_param: false,
                                is_used: var.is_none(),
                            };
                            Slot::Value(self.add_value(data))
                        }
                    };
                    self.pool.push(slot);
                }
                self.tuple_since(start)
            }
            Type::Function(_) => return Err(ExportProblem::Type(self.cx.type_text(ty))),
            _ => Slot::Value(self.add_value(ValueData { name, ty, meta, block, is_param: false, is_used: true })),
        };
        self.of_call.insert(call, slot);
        Ok(slot)
    }

    fn tuple_since(&self, start: usize) -> Slot {
        let start = u32::try_from(start).expect("there are fewer slots than expressions");
        Slot::Tuple(start, self.pool.len() as u32 - start)
    }

    /// Marks the fields of a tuple as used.
    fn mark_used(&mut self, slot: Slot) {
        let fields = match slot {
            Slot::Tuple(start, len) => start as usize..(start + len) as usize,
            _ => return,
        };
        for &field in &self.pool[fields] {
            if let Slot::Value(v) = field {
                self.values[v.index()].is_used = true;
            }
        }
    }

    /// Returns for each value whether it is an operand or a result, directly or in a tuple. An
    /// alias counts as an operand.
    pub(super) fn consumed(&self) -> Vec<bool> {
        let mut consumed = vec![false; self.values.len()];
        let mut mark = |slot: Slot| {
            for field in self.fields(slot) {
                if let Slot::Value(v) = field {
                    consumed[v.index()] = true;
                }
            }
        };
        self.of_tail.values().for_each(|&tail| mark(tail));
        for (id, expr) in self.body.exprs() {
            let atoms = match &expr {
                Expr::Proj { .. } => continue,
                Expr::Let { value, .. } => std::slice::from_ref(value),
                _ => self.body.inputs(id),
            };
            let variables = atoms.iter().copied().filter(|&a| self.body.as_var(a).is_some());
            variables.filter_map(|a| self.of_atom(a).ok()).for_each(&mut mark);
        }
        consumed
    }

    /// Returns the slot of an atom.
    pub(super) fn of_atom(&self, atom: ExprId) -> Result<Slot, ExportProblem> {
        match self.body.expr(atom) {
            Expr::Literal(l) => Ok(Slot::Literal(l, None)),
            Expr::None => Ok(Slot::None),
            Expr::Global(g) => Ok(Slot::Global(g)),
            Expr::Var { .. } => self.of_var[atom.index()]
                .ok_or_else(|| ExportProblem::Unsupported("a variable that is used before it is bound".to_owned())),
            _ => Ok(Slot::Other),
        }
    }

    /// Returns the slot that a block with this tail returns.
    pub(super) fn of_tail(&self, tail: ExprId) -> Slot {
        self.of_tail.get(&tail).copied().unwrap_or(Slot::Other)
    }

    /// Returns the metadata of the binding of a `fn`.
    pub(super) fn lambda_meta(&self, lambda: ExprId) -> Option<AttrsId> {
        self.of_lambda.get(&lambda).copied()
    }

    /// Returns the slot of the results of a call or of an `if`.
    pub(super) fn of_call(&self, call: ExprId) -> Slot {
        self.of_call.get(&call).copied().unwrap_or(Slot::None)
    }

    /// Returns the fields of a tuple. Any other slot is its own single field.
    pub(super) fn fields(&self, slot: Slot) -> SmallVec<[Slot; 2]> {
        match slot {
            Slot::Tuple(start, len) => SmallVec::from_slice(&self.pool[start as usize..(start + len) as usize]),
            other => smallvec![other],
        }
    }

    pub(super) fn value(&self, id: ValueId) -> &ValueData {
        &self.values[id.index()]
    }

    /// Returns the global functions that are called, in program order, with the bindings of the
    /// calls.
    pub(super) fn calls(&self) -> &[(GlobalId, Option<VarId>)] {
        &self.calls
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

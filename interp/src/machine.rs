//! The abstract machine: the next step, the pending work, and the storage of variables.
//!
//! Nothing here recurses over the program. Pending work is a stack of [`Frame`]s in place of the
//! stack of the thread. A call adds no frame, so a tail call takes no room.

use anfora_ir::{
    Body, Context, EntityId, Expr, ExprId, FunctionKey, GlobalId, GlobalTarget, Literal, Module, OpId, SymbolId, Type,
    VarId,
};
use anfora_ops::RandomStream;
use rustc_hash::FxHashMap;

use crate::effect::Effect;
use crate::error::{EvalError, EvalErrorKind};
use crate::externals::Externals;
use crate::limits::Limits;
use crate::mirror::{MirroredCall, MirroredValue, ValueMirror};
use crate::operator::Scratch;
use crate::prepare::Prepared;
use crate::value::{Entry, Ref, Target, ValueId, Values};

/// The next step of the machine.
#[derive(Copy, Clone)]
pub(crate) enum State {
    /// Evaluate an expression.
    Eval(ExprId),
    /// Pass a value to the innermost frame.
    Give(Ref),
}

/// The pending work on a value that is being evaluated.
#[derive(Copy, Clone)]
pub(crate) struct Frame {
    /// The activation in which the work continues.
    pub(crate) activation: u32,
    pending: Pending,
}

#[derive(Copy, Clone)]
enum Pending {
    /// Bind the value to the variable of this Let, and continue after it.
    Let(ExprId),
    /// The value is an operand of this node. The number is the index of the next operand.
    Operand(ExprId, u32),
    /// The value is the condition of this If.
    Condition(ExprId),
    /// The value is the tuple of this projection.
    Projection(ExprId),
    /// The value is the result of this shared node.
    Keep(ExprId),
}

/// One evaluation of a function's body or of a `fn`'s block, with its variables.
pub(crate) struct Activation {
    pub(crate) code: u32,
    /// The number of enclosing `fn`s.
    level: u32,
    /// The activation in which its `fn` was evaluated; itself for a function's body.
    pub(crate) parent: u32,
    /// An enclosing activation, chosen such that a search for any enclosing activation takes a
    /// logarithmic number of steps (Myers, "An applicative random-access stack", 1983).
    pub(crate) jump: u32,
    pub(crate) slots: Vec<Ref>,
    /// The values of shared nodes, and of the variables that are bound inside of shared nodes.
    pub(crate) kept: FxHashMap<ExprId, Ref>,
    /// The extents of symbolic dimensions.
    symbols: FxHashMap<SymbolId, i64>,
}

/// The body of a function, prepared for evaluation.
pub(crate) struct Code<'m> {
    pub(crate) key: FunctionKey,
    pub(crate) body: &'m Body,
    pub(crate) prepared: Prepared,
}

/// The operators that the machine evaluates itself.
#[derive(Copy, Clone)]
pub(crate) struct OwnOps {
    pub(crate) make_closure: Option<OpId>,
    pub(crate) match_cast: Option<OpId>,
    pub(crate) print: Option<OpId>,
    pub(crate) assert: Option<OpId>,
    pub(crate) uniform: Option<OpId>,
    pub(crate) normal: Option<OpId>,
}

/// The state of a run of a program.
pub(crate) struct Machine<'m> {
    pub(crate) module: &'m Module,
    pub(crate) cx: &'m Context,
    pub(crate) own: OwnOps,
    pub(crate) limits: Limits,
    pub(crate) random: RandomStream,
    pub(crate) values: Values,
    pub(crate) trace: Vec<Effect>,
    pub(crate) steps: u64,
    codes: Vec<Code<'m>>,
    code_of: FxHashMap<FunctionKey, u32>,
    pub(crate) activations: Vec<Option<Activation>>,
    pub(crate) free_activations: Vec<u32>,
    pub(crate) frames: Vec<Frame>,
    /// Operands of nodes whose remaining operands are not evaluated yet.
    pub(crate) operands: Vec<Ref>,
    /// The activation that is being evaluated.
    pub(crate) activation: u32,
    code: usize,
    level: u32,
    /// The node that is being evaluated, for diagnostics.
    at: ExprId,
    /// The bytes of values and activations.
    pub(crate) used: usize,
    /// The number of bytes at which the next garbage collection starts.
    pub(crate) collect_at: usize,
    /// The steps of kernels so far.
    pub(crate) work: u64,
    /// Tables for types of known extents, a copy of the module's tables. They are created on first
    /// use.
    pub(crate) scratch: Option<Box<Scratch>>,
    /// The closures of functions without a body.
    pub(crate) externals: Option<&'m Externals>,
    /// A second memory, which is told of all bindings and uses.
    mirror: Option<&'m mut (dyn ValueMirror + 'm)>,
}

pub(crate) type Step<T> = Result<T, EvalErrorKind>;

pub(crate) fn ill_formed<T>(what: &'static str) -> Step<T> {
    Err(EvalErrorKind::IllFormed(what))
}

impl<'m> Machine<'m> {
    pub(crate) fn new(
        module: &'m Module,
        limits: Limits,
        seed: u64,
        values: Values,
        externals: Option<&'m Externals>,
        mirror: Option<&'m mut (dyn ValueMirror + 'm)>,
    ) -> Machine<'m> {
        let ops = &module.cx.ops;
        Machine {
            module,
            cx: &module.cx,
            own: OwnOps {
                make_closure: ops.find("make_closure"),
                match_cast: ops.find("match_cast"),
                print: ops.find("print"),
                assert: ops.find("assert"),
                uniform: ops.find("random.uniform"),
                normal: ops.find("random.normal"),
            },
            limits,
            random: RandomStream::new(seed),
            values,
            trace: Vec::new(),
            steps: 0,
            work: 0,
            codes: Vec::new(),
            code_of: FxHashMap::default(),
            activations: Vec::new(),
            free_activations: Vec::new(),
            frames: Vec::new(),
            operands: Vec::new(),
            activation: 0,
            code: 0,
            level: 0,
            at: ExprId::from_index(0),
            used: 0,
            collect_at: crate::memory::FIRST_COLLECTION.min(limits.bytes),
            scratch: None,
            externals,
            mirror,
        }
    }

    /// Evaluates a call of a function to its end.
    pub(crate) fn run(&mut self, function: GlobalId, arguments: &[ValueId]) -> Result<Ref, EvalError> {
        let arguments: Vec<Ref> = arguments.iter().map(|a| a.as_ref()).collect();
        let callee = Ref::global(function).ok_or(EvalErrorKind::IllFormed("too many globals"))?;
        let mut state = self.call(callee, &arguments, true).map_err(|kind| self.error(kind))?;
        loop {
            if self.total() >= self.collect_at {
                self.collect(state).map_err(|kind| self.error(kind))?;
            }
            state = match state {
                State::Eval(id) => self.evaluate(id).map_err(|kind| self.error(kind))?,
                State::Give(value) => {
                    let Some(frame) = self.frames.pop() else { return Ok(value) };
                    self.enter(frame.activation);
                    self.resume(frame.pending, value).map_err(|kind| self.error(kind))?
                }
            };
        }
    }

    /// Returns an error with the current place in the program.
    fn error(&self, kind: EvalErrorKind) -> EvalError {
        let Some(code) = self.codes.get(self.code) else { return kind.into() };
        let binding =
            self.frames.iter().rev().take_while(|f| f.activation == self.activation).find_map(|f| match f.pending {
                Pending::Let(id) => Some(id),
                _ => None,
            });
        let var = binding.and_then(|id| match code.body.expr(id) {
            Expr::Let { var, .. } => Some(var),
            _ => None,
        });
        EvalError {
            kind,
            function: Some(self.module.name(code.key).to_string()),
            binding: var.and_then(|v| code.body.var_name(v)).map(|n| self.cx.names.get(n).to_string()),
            span: code.body.span(self.at).or(binding.and_then(|b| code.body.span(b))),
        }
    }

    pub(crate) fn body(&self) -> &'m Body {
        self.codes[self.code].body
    }

    /// Makes an activation the current one.
    #[inline]
    fn enter(&mut self, activation: u32) {
        if activation != self.activation {
            self.activation = activation;
            if let Some(Some(a)) = self.activations.get(activation as usize) {
                self.code = a.code as usize;
                self.level = a.level;
            }
        }
    }

    #[inline]
    fn push(&mut self, pending: Pending) {
        self.frames.push(Frame { activation: self.activation, pending });
    }

    // ---- Expressions ----

    fn evaluate(&mut self, id: ExprId) -> Step<State> {
        self.steps += 1;
        if self.steps > self.limits.steps {
            return Err(EvalErrorKind::Steps(self.limits.steps));
        }
        self.at = id;
        let body = self.body();
        match body.expr(id) {
            Expr::Let { value, .. } => {
                self.push(Pending::Let(id));
                Ok(State::Eval(value))
            }
            Expr::CallOp { .. } | Expr::Call { .. } | Expr::Tuple(_) | Expr::Proj { .. } => {
                if self.codes[self.code].prepared.is_shared(id) {
                    if let Some(kept) = self.current()?.kept.get(&id) {
                        return Ok(State::Give(*kept));
                    }
                    self.push(Pending::Keep(id));
                }
                match body.expr(id) {
                    Expr::Proj { tuple, .. } => match self.atom(tuple)? {
                        Some(value) => self.project(id, value),
                        None => {
                            self.push(Pending::Projection(id));
                            Ok(State::Eval(tuple))
                        }
                    },
                    _ => self.gather(id, 0),
                }
            }
            Expr::If { cond, .. } => match self.atom(cond)? {
                Some(value) => self.branch(id, value),
                None => {
                    self.push(Pending::Condition(id));
                    Ok(State::Eval(cond))
                }
            },
            Expr::Lambda { .. } => {
                let closure = self.insert(Entry::Closure { lambda: id, activation: self.activation })?;
                Ok(State::Give(closure))
            }
            _ => match self.atom(id)? {
                Some(value) => {
                    if self.mirror.is_some() && !self.is_bound_next(id) {
                        self.mirror_read(id, value)?;
                    }
                    Ok(State::Give(value))
                }
                None => ill_formed("an expression of no kind"),
            },
        }
    }

    fn resume(&mut self, pending: Pending, value: Ref) -> Step<State> {
        match pending {
            Pending::Let(id) => {
                let Expr::Let { var, body: rest, .. } = self.body().expr(id) else {
                    return ill_formed("a Let is none");
                };
                self.bind(var, value)?;
                Ok(State::Eval(rest))
            }
            Pending::Operand(id, next) => {
                self.operands.push(value);
                self.at = id;
                self.gather(id, next as usize)
            }
            Pending::Condition(id) => self.branch(id, value),
            Pending::Projection(id) => {
                self.at = id;
                self.project(id, value)
            }
            Pending::Keep(id) => {
                self.current_mut()?.kept.insert(id, value);
                self.used += 16;
                Ok(State::Give(value))
            }
        }
    }

    /// Returns the value of an atom; `None` if the node is not an atom.
    #[inline]
    fn atom(&self, id: ExprId) -> Step<Option<Ref>> {
        let value = match self.body().expr(id) {
            Expr::Var { .. } => self.look_up(id)?,
            Expr::Literal(l) => {
                self.cx.literals.get(l).load()?;
                Ref::literal(l).ok_or(EvalErrorKind::IllFormed("too many constants"))?
            }
            Expr::Global(g) => Ref::global(g).ok_or(EvalErrorKind::IllFormed("too many globals"))?,
            Expr::None => Ref::ABSENT,
            Expr::Op(_) => Ref::OPERATOR,
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    /// Collects the operands of a node from index `from` on, and computes the node once all of them
    /// are evaluated.
    fn gather(&mut self, id: ExprId, from: usize) -> Step<State> {
        let operands = self.body().operands_of(id);
        for (i, &operand) in operands.iter().enumerate().skip(from) {
            match self.atom(operand)? {
                Some(value) => self.operands.push(value),
                None => {
                    self.push(Pending::Operand(id, i as u32 + 1));
                    return Ok(State::Eval(operand));
                }
            }
        }
        if self.mirror.is_some() && matches!(self.body().expr(id), Expr::CallOp { .. } | Expr::Call { .. }) {
            let base = self.operands.len() - operands.len();
            for (i, &operand) in operands.iter().enumerate() {
                self.mirror_read(operand, self.operands[base + i])?;
            }
        }
        // Frees the slots of variables that no later node needs.
        let prepared = &self.codes[self.code].prepared;
        for &operand in operands {
            if prepared.is_last_use(operand, id)
                && let Some(Some(a)) = self.activations.get_mut(self.activation as usize)
                && let Some(slot) = a.slots.get_mut(prepared.slot(operand))
            {
                *slot = Ref::EMPTY;
            }
        }
        let base = self.operands.len() - operands.len();
        self.compute(id, base)
    }

    /// Computes a node whose operands are on the stack from `base` on.
    fn compute(&mut self, id: ExprId, base: usize) -> Step<State> {
        match self.body().expr(id) {
            Expr::CallOp { op, attrs, .. } => {
                let value = self.call_op(id, op, attrs, base)?;
                self.operands.truncate(base);
                Ok(State::Give(value))
            }
            Expr::Call { .. } => {
                let Some((&callee, arguments)) = self.operands[base..].split_first() else {
                    return ill_formed("a call of nothing");
                };
                let arguments: smallvec::SmallVec<[Ref; 8]> = arguments.into();
                self.operands.truncate(base);
                self.call(callee, &arguments, false)
            }
            _ => {
                let fields = self.operands[base..].iter().map(|&f| ValueId::from_ref(f)).collect();
                self.operands.truncate(base);
                Ok(State::Give(self.insert(Entry::Tuple(fields))?))
            }
        }
    }

    fn project(&mut self, id: ExprId, tuple: Ref) -> Step<State> {
        let Expr::Proj { index, tuple: operand } = self.body().expr(id) else {
            return ill_formed("a projection is none");
        };
        let Target::Value(at) = tuple.target() else { return ill_formed("a projection of what is no tuple") };
        let Some(Entry::Tuple(fields)) = self.values.entry(at) else {
            return ill_formed("a projection of what is no tuple");
        };
        let Some(&field) = fields.get(index as usize) else { return ill_formed("a projection past the last field") };
        let prepared = &self.codes[self.code].prepared;
        if prepared.is_last_use(operand, id)
            && let Some(Some(a)) = self.activations.get_mut(self.activation as usize)
            && let Some(slot) = a.slots.get_mut(prepared.slot(operand))
        {
            *slot = Ref::EMPTY;
        }
        Ok(State::Give(field.as_ref()))
    }

    fn branch(&mut self, id: ExprId, condition: Ref) -> Step<State> {
        let Expr::If { cond, then_block, else_block } = self.body().expr(id) else {
            return ill_formed("an If is none");
        };
        self.mirror_read(cond, condition)?;
        let holds = self.tensor(condition).and_then(Literal::as_scalar::<bool>);
        match holds {
            Some(true) => Ok(State::Eval(then_block)),
            Some(false) => Ok(State::Eval(else_block)),
            None => ill_formed("a condition is not a rank-0 bool tensor"),
        }
    }

    // ---- Variables and activations ----

    fn current(&self) -> Step<&Activation> {
        match self.activations.get(self.activation as usize) {
            Some(Some(a)) => Ok(a),
            _ => ill_formed("there is no activation"),
        }
    }

    fn current_mut(&mut self) -> Step<&mut Activation> {
        match self.activations.get_mut(self.activation as usize) {
            Some(Some(a)) => Ok(a),
            _ => ill_formed("there is no activation"),
        }
    }

    /// Returns the innermost activation around `activation` whose level is at most `level`.
    fn around(&self, activation: u32, level: u32) -> Step<&Activation> {
        match self.activations.get(self.index_around(activation, level)? as usize) {
            Some(Some(a)) => Ok(a),
            _ => ill_formed("there is no activation"),
        }
    }

    /// Returns the number of the innermost activation around `activation` whose level is at most
    /// `level`.
    fn index_around(&self, mut activation: u32, level: u32) -> Step<u32> {
        loop {
            let Some(Some(a)) = self.activations.get(activation as usize) else {
                return ill_formed("there is no activation");
            };
            if a.level <= level {
                return Ok(activation);
            }
            let jump_level = self.activations.get(a.jump as usize).and_then(|j| j.as_ref()).map_or(0, |j| j.level);
            activation = if jump_level >= level { a.jump } else { a.parent };
        }
    }

    #[inline]
    fn look_up(&self, var: ExprId) -> Step<Ref> {
        let prepared = &self.codes[self.code].prepared;
        if prepared.is_floating(var) {
            return self.look_up_floating(var);
        }
        let level = prepared.level(var);
        let holder = if level == self.level { self.current()? } else { self.around(self.activation, level)? };
        match holder.slots.get(prepared.slot(var)) {
            Some(&value) if value != Ref::EMPTY => Ok(value),
            _ => ill_formed("a variable is used before it is bound"),
        }
    }

    /// Returns the value of a variable that is bound inside of a shared node. It is the value in
    /// the innermost activation that has evaluated the node.
    #[cold]
    fn look_up_floating(&self, var: ExprId) -> Step<Ref> {
        let mut activation = self.activation;
        loop {
            let Some(Some(a)) = self.activations.get(activation as usize) else {
                return ill_formed("there is no activation");
            };
            match a.kept.get(&var) {
                Some(&value) => return Ok(value),
                None if a.parent == activation => return ill_formed("a variable is used before it is bound"),
                None => activation = a.parent,
            }
        }
    }

    fn bind(&mut self, var: VarId, value: Ref) -> Step<()> {
        if self.codes[self.code].prepared.is_floating(var.expr()) {
            self.current_mut()?.kept.insert(var.expr(), value);
            self.used += 16;
            return Ok(());
        }
        let slot = self.codes[self.code].prepared.slot(var.expr());
        match self.current_mut()?.slots.get_mut(slot) {
            Some(place) => {
                *place = value;
                if let Some(mirror) = &mut self.mirror {
                    let value = MirroredValue { cx: self.cx, values: &self.values, value };
                    mirror.write(self.activation, var, value).map_err(EvalErrorKind::Mirror)?;
                }
                Ok(())
            }
            None => ill_formed("a variable has no place"),
        }
    }

    // ---- The mirror ----

    /// Returns true if an atom is the value of the Let that is evaluated.
    fn is_bound_next(&self, id: ExprId) -> bool {
        let Some(Frame { activation, pending: Pending::Let(let_) }) = self.frames.last() else { return false };
        *activation == self.activation && matches!(self.body().expr(*let_), Expr::Let { value, .. } if value == id)
    }

    /// Tells the mirror of a use of an atom, if there is a mirror and the atom is a variable.
    fn mirror_read(&mut self, id: ExprId, value: Ref) -> Step<()> {
        let Some(var) = self.mirror.as_ref().and_then(|_| self.body().as_var(id)) else { return Ok(()) };
        let prepared = &self.codes[self.code].prepared;
        if prepared.is_floating(id) {
            return Ok(());
        }
        let activation = self.index_around(self.activation, prepared.level(id))?;
        if let Some(mirror) = &mut self.mirror {
            let value = MirroredValue { cx: self.cx, values: &self.values, value };
            mirror.read(activation, var, value).map_err(EvalErrorKind::Mirror)?;
        }
        Ok(())
    }

    /// Tells the mirror of a new activation.
    fn mirror_enter(&mut self, activation: u32, function: FunctionKey, lambda: Option<ExprId>) -> Step<()> {
        // Only the first activation has the number of the current one.
        let entered = self.activations.get(activation as usize).and_then(Option::as_ref);
        let parent = entered.map(|a| a.parent).filter(|_| lambda.is_some());
        let caller = (activation != self.activation).then_some((self.activation, self.at));
        if let Some(mirror) = &mut self.mirror {
            mirror
                .enter(MirroredCall { activation, function, lambda, parent, caller })
                .map_err(EvalErrorKind::Mirror)?;
        }
        Ok(())
    }

    /// Creates an activation and returns its index. `parent` is the activation in which the `fn`
    /// was evaluated; `None` for a function.
    fn activate(&mut self, code: u32, slots: u32, parent: Option<u32>) -> Step<u32> {
        self.used += size_of::<Activation>() + slots as usize * size_of::<Ref>();
        let index = match self.free_activations.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.activations.len()).map_err(|_| self.out_of_memory())?;
                self.activations.push(None);
                index
            }
        };
        let (level, parent, jump) = match parent {
            None => (0, index, index),
            Some(p) => {
                let of = |i: u32| self.activations.get(i as usize).and_then(|a| a.as_ref());
                let Some(a) = of(p) else { return ill_formed("a closure without its activation") };
                // If the jump of the parent and the jump after it have equal lengths, this jump
                // spans both. Otherwise it goes to the parent.
                let jump = match of(a.jump) {
                    Some(j) => match of(j.jump) {
                        Some(k) if a.level - j.level == j.level - k.level && a.level != j.level => j.jump,
                        _ => p,
                    },
                    None => p,
                };
                (a.level + 1, p, jump)
            }
        };
        self.activations[index as usize] = Some(Activation {
            code,
            level,
            parent,
            jump,
            slots: vec![Ref::EMPTY; slots as usize],
            kept: FxHashMap::default(),
            symbols: FxHashMap::default(),
        });
        Ok(index)
    }

    /// Returns the extent of a symbolic dimension.
    pub(crate) fn symbol(&self, symbol: SymbolId) -> Option<i64> {
        let level = self.codes.get(self.code)?.prepared.symbol_level(symbol);
        self.around(self.activation, level).ok()?.symbols.get(&symbol).copied()
    }

    pub(crate) fn bind_symbol(&mut self, symbol: SymbolId, extent: i64) -> Step<()> {
        let level = self.codes[self.code].prepared.symbol_level(symbol);
        if level != self.level {
            // Binds in the outer activation from which the symbol is visible.
            let mut at = self.activation;
            loop {
                let Some(Some(a)) = self.activations.get_mut(at as usize) else {
                    return ill_formed("there is no activation");
                };
                if a.level <= level {
                    a.symbols.insert(symbol, extent);
                    return Ok(());
                }
                at = a.parent;
            }
        }
        self.current_mut()?.symbols.insert(symbol, extent);
        self.used += 16;
        Ok(())
    }

    // ---- Calls ----

    /// Starts a call. Its value goes to the innermost frame. If `entry` is true, the call comes
    /// from outside, and every argument is checked.
    fn call(&mut self, mut callee: Ref, arguments: &[Ref], entry: bool) -> Step<State> {
        let mut all: smallvec::SmallVec<[Ref; 8]> = arguments.into();
        loop {
            match callee.target() {
                Target::Global(global) => {
                    let key = match self.cx.globals.get(global).target {
                        GlobalTarget::Definition(key) => key,
                        GlobalTarget::Declaration(key) => return self.call_external(key, &all).map(State::Give),
                        GlobalTarget::Missing => {
                            return Err(EvalErrorKind::NoFunction(self.cx.global_name(global).to_string()));
                        }
                    };
                    return self.call_function(key, &all, entry);
                }
                Target::Value(at) => match self.values.entry(at) {
                    Some(&Entry::Closure { lambda, activation }) => return self.call_closure(lambda, activation, &all),
                    Some(Entry::Partial { function, captures }) => {
                        all.extend_from_slice(captures);
                        callee = *function;
                    }
                    _ => return ill_formed("a call of what is no function"),
                },
                _ => return ill_formed("a call of what is no function"),
            }
        }
    }

    fn call_function(&mut self, key: FunctionKey, arguments: &[Ref], entry: bool) -> Step<State> {
        let code = match self.code_of.get(&key) {
            Some(&code) => code,
            None => {
                let Some(function) = self.module.get(key) else { return ill_formed("a function was removed") };
                let prepared = Prepared::new(&function.body);
                self.used += prepared.bytes();
                let code = self.codes.len() as u32;
                self.codes.push(Code { key, body: &function.body, prepared });
                self.code_of.insert(key, code);
                code
            }
        };
        let Code { body, prepared, .. } = &self.codes[code as usize];
        let (body, slots) = (*body, prepared.slot_count);
        let activation = self.activate(code, slots, None)?;
        self.mirror_enter(activation, key, None)?;
        self.begin(activation, body.params(), arguments, entry)?;
        Ok(State::Eval(body.root()))
    }

    fn call_closure(&mut self, lambda: ExprId, parent: u32, arguments: &[Ref]) -> Step<State> {
        let Some(Some(a)) = self.activations.get(parent as usize) else {
            return ill_formed("a closure without its activation");
        };
        let code = a.code;
        let &Code { key, body, ref prepared } = &self.codes[code as usize];
        let closure = lambda;
        let Expr::Lambda { lambda, body: block } = body.expr(lambda) else { return ill_formed("a closure of no fn") };
        let slots = prepared.lambda_slots(lambda);
        let activation = self.activate(code, slots, Some(parent))?;
        self.mirror_enter(activation, key, Some(closure))?;
        let params: smallvec::SmallVec<[VarId; 8]> = body.lambda_params(lambda).collect();
        self.begin(activation, &params, arguments, false)?;
        Ok(State::Eval(block))
    }

    /// Binds the parameters in a new activation, and checks the parts of the arguments' types that
    /// the static types do not decide. Checks every argument if `entry` is true.
    fn begin(&mut self, activation: u32, params: &[VarId], arguments: &[Ref], entry: bool) -> Step<()> {
        if params.len() != arguments.len() {
            return Err(EvalErrorKind::ArgumentCount { wanted: params.len(), found: arguments.len() });
        }
        self.enter(activation);
        let body = self.body();
        let mut symbolic = false;
        for (&param, &argument) in params.iter().zip(arguments) {
            self.bind(param, argument)?;
            symbolic |= self.cx.types.is_symbolic(body.ty(param.expr()));
        }
        if symbolic || entry {
            let types: Vec<_> = params.iter().map(|p| body.ty(p.expr())).collect();
            for (&ty, &argument) in types.iter().zip(arguments) {
                self.bind_symbols(argument, ty)?;
            }
            for (index, (&ty, &argument)) in types.iter().zip(arguments).enumerate() {
                if (entry || self.cx.types.is_symbolic(ty)) && !self.is_of(argument, ty)? {
                    let (wanted, found) = (self.wanted_text(ty), self.found_text(argument));
                    return Err(EvalErrorKind::Argument { index, wanted, found });
                }
            }
        }
        Ok(())
    }

    // ---- Values ----

    /// Returns the tensor of a value, if it is one.
    #[inline]
    pub(crate) fn tensor(&self, value: Ref) -> Option<&Literal> {
        match value.target() {
            Target::Value(at) => match self.values.entry(at) {
                Some(Entry::Tensor(literal)) => Some(literal),
                _ => None,
            },
            Target::Literal(id) => Some(self.cx.literals.get(id)),
            _ => None,
        }
    }

    pub(crate) fn insert(&mut self, entry: Entry) -> Step<Ref> {
        self.used += entry.bytes();
        self.values.insert(entry).ok_or_else(|| self.out_of_memory())
    }

    /// Returns the value of a call of an operator with these results.
    pub(crate) fn insert_results(&mut self, id: ExprId, results: Vec<Literal>) -> Step<Ref> {
        let is_tuple = matches!(self.cx.types.get(self.body().ty(id)), Type::Tuple(_));
        let mut results = results.into_iter();
        match (is_tuple, results.len()) {
            (false, 1) => match results.next() {
                Some(literal) => self.insert(Entry::Tensor(literal)),
                None => ill_formed("an operator without a result"),
            },
            _ => {
                let fields: Vec<ValueId> =
                    results.map(|l| self.insert(Entry::Tensor(l)).map(ValueId::from_ref)).collect::<Step<_>>()?;
                self.insert(Entry::Tuple(fields.into()))
            }
        }
    }

    /// Returns the type of a closure.
    pub(crate) fn closure_type(&self, lambda: ExprId, activation: u32) -> Option<anfora_ir::TypeId> {
        let a = self.activations.get(activation as usize)?.as_ref()?;
        Some(self.codes.get(a.code as usize)?.body.ty(lambda))
    }

    pub(crate) fn codes_bytes(&self) -> usize {
        self.codes.iter().map(|c| c.prepared.bytes()).sum()
    }
}

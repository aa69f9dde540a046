//! Backward sweeps: removing bindings from their chains, users before the bindings that they use.

use anfora_ir::{Body, Context, Expr, ExprId, GlobalId, IdSet, RegionWriter, ScratchVec};
use smallvec::{SmallVec, smallvec};

use crate::error::RewriteError;
use crate::link::{Binding, Link};

/// The decisions of a backward sweep: see [`sweep_back`].
///
/// By default, no binding is kept and nothing is recorded.
pub trait BackwardSweep {
    /// Returns true if a binding stays although no remaining expression uses its variable; for
    /// example, because its value has an effect.
    #[inline(always)]
    fn is_kept(&mut self, body: &Body, binding: Binding) -> bool {
        let _ = (body, binding);
        false
    }

    /// Records a value or tail that stays, before the blocks in it are swept.
    #[inline(always)]
    fn live_value(&mut self, body: &Body, value: ExprId) {
        let _ = (body, value);
    }

    /// Records that a remaining expression names a function of the module. Called once for each
    /// node that names one, not for each of its uses.
    #[inline(always)]
    fn live_global(&mut self, global: GlobalId) {
        let _ = global;
    }
}

/// Removes the bindings whose variables no remaining expression uses from a body in A-normal form.
/// Returns the number of removed bindings. Each counts as a rewrite, and once the limit of rewrites
/// is reached ([`Rewrites`](anfora_ir::Rewrites)), all other bindings stay.
///
/// Each block is swept from its tail to its beginning, so that a binding is decided on after all
/// its possible users. Branches and lambdas are swept if their value stays; otherwise they are
/// removed with it. If the first Let of a dataflow region is removed, the region begins with the
/// next. The sweep walks down and up once on an explicit stack, and takes time linear in the body.
///
/// # Errors
/// If a block that stays is not in A-normal form. The body is half rewritten then, and the caller
/// must roll the edit back.
///
/// ```
/// use anfora_ir::{Body, Expr, Source, parse_module};
/// use anfora_visit::{BackwardSweep, Binding, sweep_back};
///
/// /// Keeps calls of functions, which may have effects.
/// struct KeepCalls;
///
/// impl BackwardSweep for KeepCalls {
///     fn is_kept(&mut self, body: &Body, binding: Binding) -> bool {
///         matches!(body.expr(binding.value), Expr::Call { .. })
///     }
/// }
///
/// let text = "def @log(%x: float32) { %x }
/// def @main(%x: float32) {
///   let %a = exp(%x);
///   let %b = @log(%x);
///   let %c = tanh(%a);
///   let %d = exp(%b);
///   %d
/// }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let main = module.find("main").expect("it is defined");
/// let (function, cx) = module.get_mut(main).expect("it is there");
/// // `%c` is not used, and then `%a` is not.
/// assert_eq!(sweep_back(cx, &mut function.body, &mut KeepCalls)?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sweep_back<S: BackwardSweep>(cx: &Context, body: &mut Body, sweep: &mut S) -> Result<usize, RewriteError> {
    let (room, scratch) = (body.len(), cx.scratch());
    let mut state = SweepState {
        cx,
        may_remove: cx.rewrites.may_rewrite(),
        body,
        sweep,
        reached: IdSet::with_capacity(room),
        used: IdSet::with_capacity(room),
        lets: ScratchVec::with_capacity_in(room / 3, &scratch),
        tasks: smallvec![Task::Open(Link::Root)],
        removed: 0,
    };
    match state.run() {
        Ok(()) => Ok(state.removed),
        Err(at) => Err(RewriteError::not_a_normal_form(cx, state.body, at)),
    }
}

/// A block whose Lets are being swept, last first.
struct SweptBlock {
    place: Link,
    /// The position in the stack of Lets at which the block's own begin.
    start: usize,
    /// The remaining Let or tail that follows the Lets that are left to sweep.
    next: ExprId,
}

enum Task {
    Open(Link),
    Sweep(SweptBlock),
}

/// The state of a sweep. An error is the Let or tail at which the body is not in A-normal form.
struct SweepState<'s, S> {
    cx: &'s Context,
    /// False once the limit of rewrites is reached.
    may_remove: bool,
    body: &'s mut Body,
    sweep: &'s mut S,
    /// The bound variables that the walk has reached, and the other atoms that live values use.
    reached: IdSet<ExprId>,
    /// The atoms that live values use.
    used: IdSet<ExprId>,
    /// The Lets of the open blocks, in order.
    lets: ScratchVec<'s, ExprId>,
    tasks: SmallVec<[Task; 4]>,
    removed: usize,
}

impl<S: BackwardSweep> SweepState<'_, S> {
    fn run(&mut self) -> Result<(), ExprId> {
        while let Some(task) = self.tasks.pop() {
            let block = match task {
                Task::Open(place) => self.open(place)?,
                Task::Sweep(block) => Some(block),
            };
            if let Some(block) = block {
                self.sweep(block)?;
            }
        }
        Ok(())
    }

    /// Walks a block down to its tail, which is live. Returns the block, unless something in the
    /// tail must be swept before it.
    fn open(&mut self, place: Link) -> Result<Option<SweptBlock>, ExprId> {
        let start = self.lets.len();
        let mut at = place.target(self.body);
        while let Expr::Let { var, body: rest, .. } = self.body.expr(at) {
            self.reached.insert(var.expr());
            self.lets.push(at);
            at = rest;
        }
        let block = SweptBlock { place, start, next: at };
        let waiting = self.tasks.len();
        self.mark_value(at, at)?;
        if self.tasks.len() == waiting {
            return Ok(Some(block));
        }
        self.tasks.insert(waiting, Task::Sweep(block));
        Ok(None)
    }

    /// Sweeps a block upwards, until a live value has blocks of its own that must be swept first.
    fn sweep(&mut self, mut block: SweptBlock) -> Result<(), ExprId> {
        while self.lets.len() > block.start {
            let Some(binding) = self.lets.pop().and_then(|at| Binding::of(self.body, at)) else { break };
            let Binding { id, var, value, rest, flags } = binding;
            if !self.used.contains(var.expr()) && self.may_remove && !self.sweep.is_kept(self.body, binding) {
                self.removed += 1;
                if self.cx.rewrites.is_on() {
                    self.cx.rewrote(self.body, id, "nothing uses it");
                    self.may_remove = self.cx.rewrites.may_rewrite();
                }
                RegionWriter::take_out(self.body, flags, block.next);
                continue;
            }
            if rest != block.next {
                self.body.set_let_body(id, block.next);
            }
            block.next = id;
            let waiting = self.tasks.len();
            self.mark_value(value, id)?;
            if self.tasks.len() > waiting {
                self.tasks.insert(waiting, Task::Sweep(block));
                return Ok(());
            }
        }
        if block.place.target(self.body) != block.next {
            block.place.set(self.body, block.next);
        }
        Ok(())
    }

    /// Marks the atoms that a live value uses, and adds its blocks to the list of tasks. `at`
    /// is the Let or tail of the value.
    #[inline]
    fn mark_value(&mut self, value: ExprId, at: ExprId) -> Result<(), ExprId> {
        let SweepState { body, sweep, reached, used, tasks, .. } = self;
        sweep.live_value(body, value);
        let mut mark = |atom: ExprId| {
            used.insert(atom);
            // The usual case, for which the atom need not be read.
            if !reached.insert(atom) {
                return Ok(());
            }
            match body.expr(atom) {
                Expr::Global(global) => sweep.live_global(global),
                // A parameter.
                Expr::Var { .. } | Expr::Literal(_) | Expr::Op(_) | Expr::None => {}
                _ => return Err(at),
            }
            Ok(())
        };
        match body.expr(value) {
            Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
                body.operands(operands).iter().try_for_each(|&operand| mark(operand))
            }
            Expr::Proj { tuple, .. } => mark(tuple),
            Expr::If { cond, .. } => {
                tasks.push(Task::Open(Link::Else(value)));
                tasks.push(Task::Open(Link::Then(value)));
                mark(cond)
            }
            Expr::Lambda { .. } => {
                tasks.push(Task::Open(Link::Lambda(value)));
                Ok(())
            }
            Expr::Let { .. } => Err(at),
            Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => mark(value),
        }
    }
}

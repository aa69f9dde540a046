//! # DeadCodeElimination
//!
//! ```text
//! Notation   v a variable, e a value, @g a global.
//! Needs      A-normal form of the functions that stay.
//! Effect     let v = e; rest   =>   rest      v is not used in what is left of rest, and e is neither impure nor a match_cast
//!            def private @g    =>             @g cannot be reached, and is not external
//! Roots      External functions (public ones, and private ones with the attribute `global_symbol`, which a linker may find), and those
//!            named by the option `entries`.
//! Reaches    A function reaches those that its live bindings and attributes name.
//! Never      Declarations and parameters go, or what is in a function with the attribute Primitive. If a function that is reached is missing from the module, no function goes, and a
//!            remark says so: what the missing one calls is not known.
//! Not done   Parameters and results that nobody uses stay.
//! Cost       One walk down and one sweep up each function that stays. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              let %a = add(%x, 1);                       let %b = multiply(%x, 2);
//!              let %b = multiply(%x, 2);                  %b
//!              let %c = add(%a, %a);                    }
//!              %b
//!            }
//!            def private @g() { 1 }
//! ```
//!
//! A dead If or lambda goes whole, a recursive lambda too: only its own body uses it.

use anfora_ir::{
    Attr, AttrsId, Body, Context, Cursor, Diagnostic, EntityId, Expr, ExprId, FunctionKey, GlobalId, GlobalTarget,
    IdSet, LetFlags, Module, Purity, Severity, Step, did_you_mean,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::{Link, set_let_flags};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::support::effects::{Effects, OpFlags};
use crate::support::failure::{Failure, not_a_normal_form};
use crate::support::primitive::is_primitive;

register_pass! {
    /// Removes bindings that nothing uses, and functions that nothing reaches
    pub DEAD_CODE_ELIMINATION = ModulePass("DeadCodeElimination", 1).needing(["anf"]);
    options {
        /// functions to keep besides the external ones, separated by blanks
        entries: String = "",
    }
    run {
        let entries: Vec<String> = entries.split_whitespace().map(|e| e.trim_start_matches('@').to_string()).collect();
        move |module, cx| {
            let purity = Purity::of_module(module);
            let done = eliminate_dead_code(module, &purity, &entries).map_err(|(function, failure)| {
                let error = PassError::from(failure);
                match function {
                    Some(name) => error.in_function(name),
                    None => error,
                }
            })?;
            cx.count("bindings", done.bindings as u64);
            cx.count("functions", done.functions as u64);
            done.remarks.into_iter().for_each(|r| cx.remark(r));
            Ok(())
        }
    }
}

/// What the pass did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Eliminated {
    /// How many bindings were removed.
    pub bindings: usize,
    /// How many functions were removed.
    pub functions: usize,
    /// Why nothing more was.
    pub remarks: Vec<Diagnostic>,
}

/// Removes the dead bindings of a module, and the functions that cannot be reached from external ones
/// ([`anfora_ir::Function::is_external`]) and those named by `entries`.
///
/// # Errors
/// With the function's name, if one that stays is not in A-normal form; or if an entry is not defined.
pub fn eliminate_dead_code(
    module: &mut Module,
    purity: &Purity,
    entries: &[String],
) -> Result<Eliminated, (Option<String>, Failure)> {
    let mut reach = Reach::default();
    for entry in entries {
        match module.cx.find_global(entry).filter(|&g| module.cx.globals.get(g).target != GlobalTarget::Missing) {
            Some(global) => reach.global(global),
            None => return Err((None, unknown_entry(module, entry))),
        }
    }
    reach.attrs(&module.cx, module.attrs());
    module
        .functions()
        .filter(|(_, f)| f.is_external(&module.cx))
        .filter_map(|(_, f)| f.global())
        .for_each(|g| reach.global(g));

    let flags = OpFlags::new(&module.cx);
    let mut result = Eliminated::default();
    let mut missing: Option<GlobalId> = None;
    let mut reached: FxHashSet<FunctionKey> = FxHashSet::default();
    let mut at = 0;
    let clean = |module: &mut Module, reach: &mut Reach, key: FunctionKey| {
        let Some((function, cx)) = module.get_mut(key) else { return Ok(0) };
        reach.attrs(cx, function.attrs);
        if !function.is_definition() {
            return Ok(0);
        }
        if is_primitive(cx, function) {
            reach.body(cx, &function.body);
            return Ok(0);
        }
        match eliminate_dead_bindings(cx, &mut function.body, &flags, purity, reach) {
            Ok(n) => Ok(n),
            Err(failure) => Err((Some(module.name(key).to_string()), failure)),
        }
    };
    while let Some(&global) = reach.order.get(at) {
        at += 1;
        match module.cx.globals.get(global).target.function() {
            Some(key) => {
                if reached.insert(key) {
                    result.bindings += clean(module, &mut reach, key)?;
                }
            }
            None => missing = missing.or(Some(global)),
        }
    }
    let unreached: Vec<FunctionKey> = module
        .functions()
        .filter(|(k, f)| f.is_definition() && !f.is_external(&module.cx) && !reached.contains(k))
        .map(|(k, _)| k)
        .collect();
    match missing {
        None => {
            result.functions = unreached.len();
            if !unreached.is_empty() {
                module.remove(&unreached);
            }
        }
        Some(global) => {
            for key in unreached {
                result.bindings += clean(module, &mut reach, key)?;
            }
            let name = module.cx.global_name(global);
            result.remarks.push(
                Diagnostic::new(
                    Severity::Remark,
                    format!("no function was removed, because `@{name}` is not in the module"),
                )
                .with_help(format!("declare it: `declare @{name}(…) -> …;`")),
            );
        }
    }
    Ok(result)
}

#[cold]
fn unknown_entry(module: &Module, entry: &str) -> Failure {
    let names: Vec<&str> = module.order().iter().map(|&k| module.name(k)).collect();
    Failure::Option {
        message: format!("the entry `@{entry}` is not a function of the module"),
        help: did_you_mean(entry, names).map(|n| format!("did you mean `@{n}`?")),
    }
}

/// The globals that were reached, in the order in which they were.
#[derive(Default)]
pub(crate) struct Reach {
    order: Vec<GlobalId>,
    globals: FxHashSet<GlobalId>,
    attrs: FxHashMap<AttrsId, ()>,
}

impl Reach {
    fn global(&mut self, global: GlobalId) {
        if self.globals.insert(global) {
            self.order.push(global);
        }
    }

    /// The globals that a body names, all of which stays.
    fn body(&mut self, cx: &Context, body: &Body) {
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            let (Step::Atom(id) | Step::Flat(id) | Step::Exit(id)) = step else { continue };
            match body.expr(id) {
                Expr::Global(global) => self.global(global),
                Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => self.attrs(cx, attrs),
                Expr::Lambda { lambda, .. } => self.attrs(cx, body.lambda(lambda).attrs),
                _ => {}
            }
            if let Step::Flat(id) = step {
                for &operand in body.operands_of(id) {
                    if let Expr::Global(global) = body.expr(operand) {
                        self.global(global);
                    }
                }
            }
        }
    }

    /// The globals that attributes name, and those in functions that are their values.
    fn attrs(&mut self, cx: &Context, attrs: AttrsId) {
        if attrs == cx.attrs.empty() || self.attrs.insert(attrs, ()).is_some() {
            return;
        }
        let mut seen = FxHashSet::default();
        let mut stack: Vec<_> = cx.attrs.list(attrs).iter().rev().map(|&(_, value)| value).collect();
        while let Some(value) = stack.pop() {
            if !seen.insert(value) {
                continue;
            }
            match cx.attrs.get(value) {
                Attr::List(items) => stack.extend(items.iter().rev()),
                Attr::Global(g) => self.global(*g),
                Attr::Function(f) => {
                    let body = &cx.function_attrs[*f].body;
                    for i in 0..body.len() {
                        match body.expr(ExprId::from_index(i)) {
                            Expr::Global(g) => self.global(g),
                            Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => {
                                stack.extend(cx.attrs.list(attrs).iter().rev().map(|&(_, value)| value));
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// A block whose Lets are swept, last first.
struct Block {
    place: Link,
    /// Where its Lets begin in the stack of Lets.
    start: usize,
    /// What stays and comes after the Lets that are left.
    next: ExprId,
}

enum Task {
    Open(Link),
    Sweep(Block),
}

struct Sweeper<'a> {
    cx: &'a Context,
    body: &'a mut Body,
    flags: &'a OpFlags,
    effects: Effects<'a>,
    reach: &'a mut Reach,
    /// The variables that were met, where they are bound.
    bound: IdSet<ExprId>,
    used: IdSet<ExprId>,
    /// The Lets of the open blocks, in order.
    lets: Vec<ExprId>,
    tasks: Vec<Task>,
    removed: usize,
}

/// Removes the dead bindings of one body; how many they were.
pub(crate) fn eliminate_dead_bindings(
    cx: &Context,
    body: &mut Body,
    flags: &OpFlags,
    purity: &Purity,
    reach: &mut Reach,
) -> Result<usize, Failure> {
    let room = body.len();
    let mut sweeper = Sweeper {
        cx,
        body,
        flags,
        effects: Effects::new(purity),
        reach,
        bound: IdSet::with_capacity(room),
        used: IdSet::with_capacity(room),
        lets: Vec::with_capacity(room / 3),
        tasks: vec![Task::Open(Link::Root)],
        removed: 0,
    };
    while let Some(task) = sweeper.tasks.pop() {
        let block = match task {
            Task::Open(place) => sweeper.open(place)?,
            Task::Sweep(block) => Some(block),
        };
        if let Some(block) = block {
            sweeper.sweep(block)?;
        }
    }
    Ok(sweeper.removed)
}

impl Sweeper<'_> {
    /// Walks down a block to its tail, which is live. The block, if nothing in the tail has to be swept before it.
    fn open(&mut self, place: Link) -> Result<Option<Block>, Failure> {
        let start = self.lets.len();
        let mut at = place.target(self.body);
        while let Expr::Let { var, body: rest, .. } = self.body.expr(at) {
            self.bound.insert(var.expr());
            self.lets.push(at);
            at = rest;
        }
        let block = Block { place, start, next: at };
        let waiting = self.tasks.len();
        self.mark_value(at, at)?;
        if self.tasks.len() == waiting {
            return Ok(Some(block));
        }
        self.tasks.insert(waiting, Task::Sweep(block));
        Ok(None)
    }

    /// Sweeps up a block, until a live value with blocks of its own has to be swept first.
    fn sweep(&mut self, mut block: Block) -> Result<(), Failure> {
        while self.lets.len() > block.start {
            let at = self.lets.pop().expect("it was just seen that there is one");
            let Expr::Let { var, value, body: rest, flags } = self.body.expr(at) else {
                unreachable!("only Lets are pushed");
            };
            if !self.used.contains(var.expr()) && !self.is_kept(value) {
                self.removed += 1;
                if flags.starts_region()
                    && let Expr::Let { flags: LetFlags::DATAFLOW, .. } = self.body.expr(block.next)
                {
                    set_let_flags(self.body, block.next, LetFlags::REGION_START);
                }
                continue;
            }
            if rest != block.next {
                self.body.set_let_body(at, block.next);
            }
            block.next = at;
            let waiting = self.tasks.len();
            self.mark_value(value, at)?;
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

    /// Whether a value is kept even if it is not used.
    #[inline]
    fn is_kept(&mut self, value: ExprId) -> bool {
        match self.body.expr(value) {
            Expr::CallOp { op, attrs, .. } => {
                self.flags.is_kept(self.cx, op) || !self.effects.attrs_are_pure(self.cx, attrs)
            }
            Expr::Call { .. } | Expr::If { .. } | Expr::Let { .. } => self.effects.is_impure(self.cx, self.body, value),
            _ => false,
        }
    }

    /// Marks what a live value uses, and puts its blocks on the list of tasks. `at` is the Let or tail, for messages.
    #[inline]
    fn mark_value(&mut self, value: ExprId, at: ExprId) -> Result<(), Failure> {
        match self.body.expr(value) {
            Expr::CallOp { operands, attrs, .. } | Expr::Call { operands, attrs } => {
                if attrs != self.cx.attrs.empty() {
                    self.reach.attrs(self.cx, attrs);
                }
                for i in 0..operands.len() {
                    self.mark(self.body.operand(operands, i), at)?;
                }
            }
            Expr::Tuple(fields) => {
                for i in 0..fields.len() {
                    self.mark(self.body.operand(fields, i), at)?;
                }
            }
            Expr::Proj { tuple, .. } => self.mark(tuple, at)?,
            Expr::If { cond, .. } => {
                self.mark(cond, at)?;
                self.tasks.push(Task::Open(Link::Else(value)));
                self.tasks.push(Task::Open(Link::Then(value)));
            }
            Expr::Lambda { lambda, .. } => {
                let data = self.body.lambda(lambda);
                self.reach.attrs(self.cx, data.attrs);
                self.tasks.push(Task::Open(Link::Lambda(value)));
            }
            Expr::Let { .. } => return Err(not_a_normal_form(self.cx, self.body, at)),
            Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => self.mark(value, at)?,
        }
        Ok(())
    }

    #[inline]
    fn mark(&mut self, atom: ExprId, at: ExprId) -> Result<(), Failure> {
        if self.bound.contains(atom) {
            self.used.insert(atom);
            return Ok(());
        }
        match self.body.expr(atom) {
            Expr::Global(g) => self.reach.global(g),
            // A parameter.
            Expr::Var { .. } | Expr::Literal(_) | Expr::Op(_) | Expr::None => {}
            _ => return Err(not_a_normal_form(self.cx, self.body, at)),
        }
        Ok(())
    }
}

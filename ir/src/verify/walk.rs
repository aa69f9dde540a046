//! Checks rules 2 to 8, and the rules about single nodes, in one walk of a body.

use rustc_hash::{FxHashMap, FxHashSet};

use super::symbols::{SymbolError, Symbols};
use super::types::TypeChecker;
use super::{Form, Place};
use crate::core::body::Body;
use crate::core::context::GlobalTarget;
use crate::core::entity::{AttrsId, EntityId, ExprId, GlobalId, IdSet, OpId, SymbolId, TypeId};
use crate::core::expr::{Expr, LetFlags, VarId};
use crate::tables::attrs::Attr;
use crate::walk::cursor::{BlockKind, Cursor, Step};

/// An error message with its place and a suggestion.
pub(super) struct Problem {
    pub(super) place: Place,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// The results of the walk of a body, apart from problems.
pub(super) struct Walked {
    pub(super) form: Form,
    /// Calls in regions, and shared nodes, that may be impure. They are checked once all bodies are
    /// known to be sound.
    pub(super) suspects: Vec<Suspect>,
    /// Lists of attributes with functions in them.
    pub(super) function_attrs: Vec<AttrsId>,
    /// Globals that resolve to nothing, with the places that name them.
    pub(super) missing: Vec<(GlobalId, Place)>,
    /// The tail of the body, if it is sound.
    pub(super) tail: ExprId,
    /// True if rules 2 and 3 hold.
    pub(super) sound: bool,
}

#[derive(Copy, Clone)]
pub(super) struct Suspect {
    pub(super) node: ExprId,
    pub(super) place: Place,
    pub(super) reason: Reason,
}

#[derive(Copy, Clone, PartialEq)]
pub(super) enum Reason {
    InRegion,
    Shared,
}

/// An open block.
struct OpenBlock {
    /// The number of variables bound before the block.
    bound: usize,
    /// The number of symbols bound before the block; `None` if the symbols that it binds stay bound
    /// after it.
    symbols: Option<usize>,
    /// The number of variables bound before the region that is open in the block.
    region: Option<usize>,
    /// True if the block is evaluated as part of a region around it.
    inherited: bool,
}

pub(super) struct Walk<'a> {
    body: &'a Body,
    types: &'a mut TypeChecker,
    symbols: &'a mut Symbols,
    match_cast: Option<OpId>,
    /// The state of each node by its index.
    ///
    /// - Variable: twice the number of its binding (0 if it is not bound yet), plus 1 while it is
    ///   in scope.
    /// - Node with parts: twice the number of the next binding when the node was entered.
    /// - Let or other leaf: 1 if it has been visited.
    states: Vec<u32>,
    next: u32,
    bound: Vec<ExprId>,
    blocks: Vec<OpenBlock>,
    links: Vec<ExprId>,
    open: IdSet<ExprId>,
    /// The latest free variables of each shared node.
    latest: FxHashMap<ExprId, Latest>,
    problems: &'a mut dyn FnMut(Problem),
    result: Walked,
}

/// The free variable of a node that was bound last, and the last one that is visible only in its
/// region. Since scopes nest, all free variables of the node are visible where these two are.
#[derive(Copy, Clone, Default)]
struct Latest {
    any: Option<ExprId>,
    dataflow: Option<ExprId>,
}

/// Walks a body whose ids are in range.
pub(super) fn walk(
    body: &Body,
    types: &mut TypeChecker,
    symbols: &mut Symbols,
    problems: &mut dyn FnMut(Problem),
) -> Walked {
    let match_cast = types.cx.ops.find("match_cast");
    let mut walk = Walk {
        body,
        types,
        symbols,
        match_cast,
        states: vec![0; body.len()],
        next: 1,
        bound: Vec::new(),
        blocks: Vec::new(),
        links: Vec::new(),
        open: IdSet::with_capacity(0),
        latest: FxHashMap::default(),
        problems,
        result: Walked {
            form: Form::Anf,
            suspects: Vec::new(),
            function_attrs: Vec::new(),
            missing: Vec::new(),
            tail: body.root(),
            sound: true,
        },
    };
    walk.params();
    walk.result.sound = walk.run();
    walk.result
}

impl Walk<'_> {
    fn place(&self, node: ExprId) -> Place {
        Place { node: Some(node), link: self.links.last().copied() }
    }

    #[cold]
    fn problem(&mut self, node: ExprId, message: impl Into<String>) {
        let place = self.place(node);
        (self.problems)(Problem { place, message: message.into(), help: None });
    }

    fn name(&self, var: ExprId) -> String {
        match self.body.expr(var) {
            Expr::Var { name: Some(name), .. } => format!("`%{}`", self.types.cx.names.get(name)),
            _ => "an unnamed variable".to_string(),
        }
    }

    fn params(&mut self) {
        let body = self.body;
        body.params().iter().for_each(|&p| self.bind_param(p));
        for &p in body.params() {
            self.bind_symbols(p.expr(), body.ty(p.expr()), |_| true);
        }
        for &p in body.params() {
            self.check_symbols(p.expr());
        }
    }

    /// Walks the body. Returns true if it is sound: each Let, If and Lambda has one parent, and no
    /// node is part of itself.
    fn run(&mut self) -> bool {
        let body = self.body;
        let mut cursor = Cursor::with_regions(body);
        while let Some(step) = cursor.next(body) {
            if step.breaks_anf(body) {
                self.result.form = Form::Graph;
            }
            match step {
                Step::EnterRegion(id) => self.enter_region(id),
                Step::ExitRegion(_) => self.close_region(),
                Step::Let(id) => {
                    if !self.enter_link(id) {
                        return false;
                    }
                }
                Step::Bound(id) => self.leave_link(id),
                Step::Atom(id) => self.atom(id),
                Step::Flat(id) => {
                    for &o in body.inputs(id) {
                        self.atom(o);
                    }
                    self.node(id);
                }
                Step::Enter(id) => self.enter(id),
                Step::Exit(id) => {
                    self.open.remove(id);
                    self.node(id);
                }
                Step::Seen(id) => {
                    if !self.seen(id) {
                        return false;
                    }
                }
                Step::EnterBlock(_, kind) => self.enter_block(kind),
                Step::ExitBlock(..) => self.exit_block(),
            }
        }
        true
    }

    // ---- Blocks and links ----

    fn enter_block(&mut self, kind: BlockKind) {
        let executes = self.executes_in_region();
        // A block as a value is evaluated exactly once and dominates the code after it, so the
        // symbols that it binds stay bound.
        let dominates = matches!(kind, BlockKind::Value(_) | BlockKind::Operand(_));
        let symbols = (!dominates).then(|| self.symbols.mark());
        self.blocks.push(OpenBlock {
            bound: self.bound.len(),
            symbols,
            region: None,
            inherited: executes && !matches!(kind, BlockKind::Lambda(_)),
        });
        let BlockKind::Lambda(id) = kind else { return };
        let body = self.body;
        let Expr::Lambda { lambda, .. } = body.expr(id) else { return };
        let own: FxHashSet<SymbolId> = body.lambda_symbols(lambda).iter().copied().collect();
        for p in body.lambda_params(lambda) {
            self.bind_param(p);
            self.bind_symbols(p.expr(), body.ty(p.expr()), |s| own.contains(&s));
        }
        for p in body.lambda_params(lambda) {
            self.check_symbols(p.expr());
        }
    }

    fn exit_block(&mut self) {
        let Some(block) = self.blocks.pop() else { return };
        for v in self.bound.drain(block.bound..) {
            self.states[v.index()] &= !1;
        }
        // The function's own symbols stay bound, since its result is checked after the walk.
        if let Some(mark) = block.symbols
            && !self.blocks.is_empty()
        {
            self.symbols.undo(mark);
        }
    }

    /// Returns true if the current node is evaluated in a region.
    #[inline]
    fn executes_in_region(&self) -> bool {
        self.blocks.last().is_some_and(|b| b.inherited || b.region.is_some())
    }

    fn enter_region(&mut self, first: ExprId) {
        if let Some(block) = self.blocks.last_mut() {
            block.region = Some(self.bound.len());
        }
        if let Expr::Let { flags: LetFlags::DATAFLOW, .. } = self.body.expr(first) {
            self.links.push(first);
            self.problem(first, "a let of a dataflow region follows none that starts the region");
            self.links.pop();
        }
    }

    fn close_region(&mut self) {
        let Some(block) = self.blocks.last_mut() else { return };
        let Some(mark) = block.region.take() else { return };
        for &v in &self.bound[mark..] {
            if let Expr::Var { flags, .. } = self.body.expr(v)
                && flags.is_dataflow()
            {
                self.states[v.index()] &= !1;
            }
        }
    }

    fn enter_link(&mut self, id: ExprId) -> bool {
        self.links.push(id);
        if std::mem::replace(&mut self.states[id.index()], 1) != 0 {
            self.problem(id, "a let has two links to it, or is part of itself");
            return false;
        }
        let Expr::Let { var, value, flags, .. } = self.body.expr(id) else { return true };
        if !flags.is_dataflow() && self.body.is_dataflow_var(var) {
            let name = self.name(var.expr());
            self.problem(id, format!("{name} is visible only in a dataflow region, but bound outside"));
        }
        if let Expr::Lambda { .. } = self.body.expr(value) {
            self.bind(var.expr());
        }
        true
    }

    fn leave_link(&mut self, id: ExprId) {
        let Expr::Let { var, value, body: rest, .. } = self.body.expr(id) else { return };
        // In the chain of the body itself, the rest of the last Let is the tail.
        if self.blocks.len() == 1 {
            self.result.tail = rest;
        }
        if !matches!(self.body.expr(value), Expr::Lambda { .. }) {
            self.bind(var.expr());
        }
        let (stated, found) = (self.body.ty(var.expr()), self.body.type_of(value));
        if stated != found && !self.types.cx.types.accepts(stated, found) {
            let name = self.name(var.expr());
            let (stated, found) = (self.types.cx.type_text(stated), self.types.cx.type_text(found));
            self.problem(id, format!("{name} is of type {stated}, but its value is {found}"));
        }
        self.check_symbols(var.expr());
        self.links.pop();
    }

    // ---- Variables and leaves ----

    fn bind_param(&mut self, param: VarId) {
        if self.body.is_dataflow_var(param) {
            let name = self.name(param.expr());
            self.problem(param.expr(), format!("the parameter {name} is visible only in a dataflow region"));
        }
        self.bind(param.expr());
    }

    #[inline]
    fn bind(&mut self, var: ExprId) {
        if self.states[var.index()] != 0 {
            let name = self.name(var);
            self.problem(var, format!("{name} is bound twice"));
            return;
        }
        self.states[var.index()] = self.next << 1 | 1;
        self.next += 1;
        self.bound.push(var);
    }

    /// Checks that a variable is in scope, and any other atom at its first visit.
    #[inline]
    fn atom(&mut self, id: ExprId) {
        // Usually the variable is in scope, or the other atom has been visited.
        if self.states[id.index()] & 1 == 0 {
            self.new_atom(id);
        }
    }

    /// Checks a variable that is not in scope, or another atom at its first visit.
    fn new_atom(&mut self, id: ExprId) {
        let Expr::Var { flags, .. } = self.body.expr(id) else {
            self.states[id.index()] = 1;
            self.leaf(id);
            return;
        };
        let name = self.name(id);
        let message = match (self.states[id.index()], flags.is_dataflow()) {
            (0, _) => format!("{name} is used where nothing has bound it"),
            (_, true) => format!("{name} is visible only in its dataflow region, but used outside"),
            _ => format!("{name} is used outside its scope"),
        };
        self.problem(id, message);
    }

    /// Checks a constant, global, operator or `none`. Called once for each of these nodes.
    fn leaf(&mut self, id: ExprId) {
        if let Expr::Global(g) = self.body.expr(id)
            && self.types.cx.globals.get(g).target == GlobalTarget::Missing
        {
            let place = self.place(id);
            self.result.missing.push((g, place));
            return;
        }
        if let Some(message) = self.types.check_leaf(self.body, id) {
            self.problem(id, message);
        }
    }

    // ---- Nodes ----

    fn enter(&mut self, id: ExprId) {
        self.open.insert(id);
        self.states[id.index()] = self.next << 1;
        if matches!(self.body.expr(id), Expr::If { .. }) && self.executes_in_region() {
            self.problem(id, "a dataflow region holds no control flow, but an `if` is evaluated in it");
        }
    }

    /// Checks a node after its parts.
    #[inline]
    fn node(&mut self, id: ExprId) {
        if let Some((message, help)) = self.types.check(self.body, id) {
            let place = self.place(id);
            (self.problems)(Problem { place, message, help });
        }
        match self.body.expr(id) {
            Expr::CallOp { op, attrs, .. } => {
                let cx = &self.types.cx;
                if attrs != cx.attrs.empty() {
                    if Some(op) == self.match_cast
                        && let Some(to) = cx.find_attr(attrs, "to")
                        && let Attr::Type(to) = *cx.attrs.get(to)
                    {
                        self.bind_symbols(id, to, |_| true);
                    }
                    self.attrs(id, attrs);
                }
                let cx = &self.types.cx;
                if self.executes_in_region()
                    && (cx.ops.facts(op).is_impure() || attrs != cx.attrs.empty() && self.types.attrs_carry_functions)
                {
                    self.suspect(id, Reason::InRegion);
                }
            }
            Expr::Call { attrs, .. } => {
                self.attrs(id, attrs);
                if self.executes_in_region() {
                    self.suspect(id, Reason::InRegion);
                }
            }
            Expr::Lambda { lambda, .. } => self.attrs(id, self.body.lambda(lambda).attrs),
            _ => {}
        }
        self.check_symbols(id);
    }

    fn suspect(&mut self, node: ExprId, reason: Reason) {
        let place = self.place(node);
        self.result.suspects.push(Suspect { node, place, reason });
    }

    fn attrs(&mut self, id: ExprId, attrs: AttrsId) {
        let cx = &self.types.cx;
        if attrs == cx.attrs.empty() {
            return;
        }
        if !cx.function_attrs.is_empty() {
            self.result.function_attrs.push(attrs);
        }
        if let Some(e) = self.symbols.check_attrs(cx, attrs) {
            let message = e.message(cx);
            self.problem(id, message);
        }
        if let Some(global) = self.types.missing_global(attrs) {
            let place = self.place(id);
            self.result.missing.push((global, place));
        }
    }

    #[inline]
    fn check_symbols(&mut self, id: ExprId) {
        let ty = self.body.ty(id);
        if let Some(e) = self.symbols.check_type(&self.types.cx, ty) {
            let message = format!("{}, in the type {}", e.message(&self.types.cx), self.types.cx.type_text(ty));
            self.problem(id, message);
        }
    }

    fn bind_symbols(&mut self, at: ExprId, ty: TypeId, may_bind: impl Fn(SymbolId) -> bool) {
        let mut errors: Vec<SymbolError> = Vec::new();
        self.symbols.bind(&self.types.cx, ty, may_bind, |e| errors.push(e));
        for e in errors {
            let message = e.message(&self.types.cx);
            self.problem(at, message);
        }
    }

    // ---- Shared nodes ----

    /// Checks another use of a node that was visited before. Returns false if the body is not
    /// sound.
    fn seen(&mut self, id: ExprId) -> bool {
        if self.open.contains(id) {
            self.problem(id, "an expression is part of itself");
            return false;
        }
        match self.body.expr(id) {
            Expr::If { .. } => {
                self.problem(id, "an `if` has two links to it");
                return false;
            }
            Expr::Lambda { .. } => {
                self.problem(id, "a `fn` has two links to it");
                return false;
            }
            _ => {}
        }
        self.suspect(id, Reason::Shared);
        let Latest { any, dataflow } = self.latest(id);
        for var in [any, dataflow].into_iter().flatten() {
            if self.states[var.index()] & 1 == 0 {
                let name = self.name(var);
                self.problem(id, format!("a shared node is used where {name}, which is in it, is not in scope"));
                break;
            }
        }
        true
    }

    /// Returns the latest free variables of a node that was visited.
    fn latest(&mut self, id: ExprId) -> Latest {
        if let Some(&known) = self.latest.get(&id) {
            return known;
        }
        // As long as no part binds, the result follows from the results of the parts.
        let mut stack = vec![id];
        let mut plain = true;
        while let Some(&top) = stack.last() {
            if self.latest.contains_key(&top) {
                stack.pop();
                continue;
            }
            let height = stack.len();
            for &part in self.body.inputs(top) {
                let expr = self.body.expr(part);
                plain &= !expr.binds();
                if !expr.is_atom() && !self.latest.contains_key(&part) {
                    stack.push(part);
                }
            }
            if !plain {
                break;
            }
            if stack.len() > height {
                continue;
            }
            let mut latest = Latest::default();
            for &part in self.body.inputs(top) {
                match self.body.expr(part) {
                    Expr::Var { .. } => self.raise(&mut latest, part),
                    other if other.is_atom() => {}
                    _ => {
                        let inner = self.latest[&part];
                        inner.any.into_iter().chain(inner.dataflow).for_each(|v| self.raise(&mut latest, v));
                    }
                }
            }
            self.latest.insert(top, latest);
            stack.pop();
        }
        if plain {
            return self.latest[&id];
        }
        let latest = self.latest_by_walk(id);
        self.latest.insert(id, latest);
        latest
    }

    /// Returns the latest free variables of a node that contains bindings. Variables bound in the
    /// node are not free in it.
    fn latest_by_walk(&self, id: ExprId) -> Latest {
        let mut used = Vec::new();
        let mut bound = FxHashSet::default();
        let mut seen = FxHashSet::default();
        let mut stack = vec![id];
        while let Some(at) = stack.pop() {
            match self.body.expr(at) {
                Expr::Var { .. } => used.push(at),
                Expr::Let { var, .. } => {
                    bound.insert(var.expr());
                }
                Expr::Lambda { lambda, .. } => bound.extend(self.body.lambda_params(lambda).map(VarId::expr)),
                _ => {}
            }
            if seen.insert(at) {
                stack.extend(self.body.parts(at));
            }
        }
        let mut latest = Latest::default();
        for var in used {
            if !bound.contains(&var) {
                self.raise(&mut latest, var);
            }
        }
        latest
    }

    fn raise(&self, latest: &mut Latest, var: ExprId) {
        let later = |than: Option<ExprId>| than.is_none_or(|t| self.states[t.index()] < self.states[var.index()]);
        let Expr::Var { flags, .. } = self.body.expr(var) else { return };
        if later(latest.any) {
            latest.any = Some(var);
        }
        if flags.is_dataflow() && later(latest.dataflow) {
            latest.dataflow = Some(var);
        }
    }
}

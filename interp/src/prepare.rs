//! What the machine wants to know of a body before it runs it: where variables live, and when they
//! are used for the last time.

use anfora_ir::{BlockKind, Body, Cursor, EntityId, Expr, ExprId, IdSet, LambdaId, Step, SymbolId, VarId};
use rustc_hash::FxHashMap;

/// A variable that is used where its last use cannot be told in advance.
const KEPT: u32 = u32::MAX;

/// A body, looked over once.
pub(crate) struct Prepared {
    /// For each variable, its place in the activation that binds it.
    slots: Vec<u32>,
    /// For each variable, how many `fn`s are around its binding; empty if there is none in the
    /// body.
    levels: Vec<u32>,
    /// For each variable, the node that uses it last, in program order, in the same activation;
    /// [`KEPT`] if that is not known.
    last_uses: Vec<u32>,
    /// Variables of the function itself.
    pub(crate) slot_count: u32,
    lambdas: FxHashMap<LambdaId, LambdaInfo>,
    /// How many `fn`s are around the binder of a symbolic dimension; the function's own are not
    /// listed.
    symbol_levels: FxHashMap<SymbolId, u32>,
    /// Nodes that several others refer to; `None` if there is none.
    shared: Option<IdSet<ExprId>>,
    /// Variables that are bound inside of such nodes; `None` if there is none.
    floating: Option<IdSet<ExprId>>,
}

#[derive(Copy, Clone)]
struct LambdaInfo {
    slots: u32,
}

/// The `fn` (or function) that is being walked.
struct Scope {
    lambda: Option<LambdaId>,
    slots: u32,
}

impl Prepared {
    /// Walks the body. Linear.
    pub(crate) fn new(body: &Body) -> Prepared {
        let mut walk = Walk {
            body,
            prepared: Prepared {
                slots: vec![0; body.len()],
                levels: Vec::new(),
                last_uses: vec![0; body.len()],
                slot_count: 0,
                lambdas: FxHashMap::default(),
                symbol_levels: FxHashMap::default(),
                shared: None,
                floating: None,
            },
            scopes: vec![Scope { lambda: None, slots: 0 }],
            operands: Vec::new(),
        };
        for p in body.params() {
            walk.bind(p.expr());
        }
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            walk.step(step);
        }
        walk.finish()
    }

    #[inline]
    pub(crate) fn slot(&self, var: ExprId) -> usize {
        self.slots.get(var.index()).map_or(0, |&s| s as usize)
    }

    #[inline]
    pub(crate) fn level(&self, var: ExprId) -> u32 {
        self.levels.get(var.index()).copied().unwrap_or(0)
    }

    /// Returns true if no later node needs the variable once this one has its operands.
    #[inline]
    pub(crate) fn is_last_use(&self, var: ExprId, user: ExprId) -> bool {
        self.shared.is_none() && self.last_uses.get(var.index()).is_some_and(|&u| u == user.index() as u32 + 1)
    }

    /// How many variables a `fn` binds.
    pub(crate) fn lambda_slots(&self, lambda: LambdaId) -> u32 {
        self.lambdas.get(&lambda).map_or(0, |l| l.slots)
    }

    pub(crate) fn symbol_level(&self, symbol: SymbolId) -> u32 {
        self.symbol_levels.get(&symbol).copied().unwrap_or(0)
    }

    /// Returns true if several nodes refer to this one, so that its value is to be kept.
    #[inline]
    pub(crate) fn is_shared(&self, id: ExprId) -> bool {
        self.shared.as_ref().is_some_and(|s| s.contains(id))
    }

    /// Returns true if a variable is bound inside of a shared node, which is evaluated in each
    /// activation that needs it: it has no place and no level of its own.
    #[inline]
    pub(crate) fn is_floating(&self, var: ExprId) -> bool {
        self.floating.as_ref().is_some_and(|f| f.contains(var))
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        (self.slots.len() + self.levels.len() + self.last_uses.len()) * 4
    }
}

struct Walk<'a> {
    body: &'a Body,
    prepared: Prepared,
    scopes: Vec<Scope>,
    /// For what is entered and not left: whether atoms in it are operands, which are looked at when
    /// it is left.
    operands: Vec<bool>,
}

impl Walk<'_> {
    fn level(&self) -> u32 {
        self.scopes.len() as u32 - 1
    }

    fn bind(&mut self, var: ExprId) {
        let level = self.level();
        if let Some(scope) = self.scopes.last_mut() {
            self.prepared.slots[var.index()] = scope.slots;
            scope.slots += 1;
        }
        if level > 0 {
            if self.prepared.levels.is_empty() {
                self.prepared.levels = vec![0; self.body.len()];
            }
            self.prepared.levels[var.index()] = level;
        }
    }

    /// A use by a node that takes the value at once, or by something else.
    fn use_var(&mut self, var: ExprId, user: Option<ExprId>) {
        if !matches!(self.body.expr(var), Expr::Var { .. }) {
            return;
        }
        let inner = self.prepared.level(var) < self.level();
        let last = &mut self.prepared.last_uses[var.index()];
        *last = match user {
            Some(user) if !inner && *last != KEPT => user.index() as u32 + 1,
            _ => KEPT,
        };
    }

    fn use_operands(&mut self, id: ExprId) {
        let body = self.body;
        for &input in body.inputs(id) {
            self.use_var(input, Some(id));
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::EnterBlock(_, kind) => {
                self.operands.push(false);
                if let BlockKind::Lambda(id) = kind
                    && let Expr::Lambda { lambda, .. } = self.body.expr(id)
                {
                    self.scopes.push(Scope { lambda: Some(lambda), slots: 0 });
                    let body = self.body;
                    for p in body.lambda_params(lambda) {
                        self.bind(p.expr());
                    }
                    let level = self.level();
                    for &s in body.lambda_symbols(lambda) {
                        self.prepared.symbol_levels.insert(s, level);
                    }
                }
            }
            Step::ExitBlock(_, kind) => {
                self.operands.pop();
                if let BlockKind::Lambda(_) = kind
                    && let Some(Scope { lambda: Some(lambda), slots }) = self.scopes.pop()
                {
                    self.prepared.lambdas.insert(lambda, LambdaInfo { slots });
                }
            }
            Step::Let(id) => {
                if let Expr::Let { var, .. } = self.body.expr(id) {
                    self.bind(var.expr());
                }
            }
            Step::Bound(_) => {}
            Step::Atom(id) => {
                if !self.operands.last().copied().unwrap_or(false) {
                    self.use_var(id, None);
                }
            }
            Step::Flat(id) => self.use_operands(id),
            Step::Enter(id) => {
                let takes_operands = !matches!(self.body.expr(id), Expr::If { .. } | Expr::Lambda { .. });
                self.operands.push(takes_operands);
            }
            Step::Exit(id) => {
                if self.operands.pop() == Some(true) {
                    self.use_operands(id);
                }
            }
            Step::Seen(id) => {
                let len = self.body.len();
                self.prepared.shared.get_or_insert_with(|| IdSet::with_capacity(len)).insert(id);
            }
        }
    }

    fn finish(mut self) -> Prepared {
        if let Some(Scope { slots, .. }) = self.scopes.pop() {
            self.prepared.slot_count = slots;
        }
        if let Some(shared) = &self.prepared.shared {
            self.prepared.floating = bound_within(self.body, shared);
        }
        self.prepared
    }
}

/// The variables that are bound inside of some nodes; `None` if there is none.
fn bound_within(body: &Body, nodes: &IdSet<ExprId>) -> Option<IdSet<ExprId>> {
    let mut bound: Option<IdSet<ExprId>> = None;
    let mut visited = IdSet::with_capacity(body.len());
    let mut stack: Vec<ExprId> = body.exprs().map(|(id, _)| id).filter(|&id| nodes.contains(id)).collect();
    while let Some(id) = stack.pop() {
        if !visited.insert(id) {
            continue;
        }
        let mut bind = |var: VarId| {
            bound.get_or_insert_with(|| IdSet::with_capacity(body.len())).insert(var.expr());
        };
        match body.expr(id) {
            Expr::Let { var, .. } => bind(var),
            Expr::Lambda { lambda, .. } => body.lambda_params(lambda).for_each(bind),
            _ => {}
        }
        stack.extend(body.parts(id));
    }
    bound
}

//! Analysis of a body before the machine runs it: the slots of variables and their last uses.

use anfora_ir::{BlockKind, Body, Cursor, EntityId, Expr, ExprId, IdSet, LambdaId, Step, SymbolId, VarId};
use rustc_hash::FxHashMap;

/// Marks a variable whose last use is not known in advance.
const KEPT: u32 = u32::MAX;

/// The analysis of a body.
pub(crate) struct Prepared {
    /// For each variable, its slot in the activation that binds it.
    slots: Vec<u32>,
    /// For each variable, the number of `fn`s around its binding; empty if the body has no binding
    /// inside of a `fn`.
    levels: Vec<u32>,
    /// For each variable, the index plus 1 of the node that uses it last, in program order, in the
    /// same activation; [`KEPT`] if it is not known.
    last_uses: Vec<u32>,
    /// The number of variables that the function itself binds.
    pub(crate) slot_count: u32,
    lambdas: FxHashMap<LambdaId, LambdaInfo>,
    /// The number of `fn`s around the binder of a symbolic dimension. The function's own dimensions
    /// are not listed.
    symbol_levels: FxHashMap<SymbolId, u32>,
    /// The shared nodes; `None` if there are none.
    shared: Option<IdSet<ExprId>>,
    /// The variables that are bound inside of shared nodes; `None` if there are none.
    floating: Option<IdSet<ExprId>>,
}

#[derive(Copy, Clone)]
struct LambdaInfo {
    slots: u32,
}

/// The `fn` or function that is being walked.
struct Scope {
    lambda: Option<LambdaId>,
    slots: u32,
}

impl Prepared {
    /// Walks the body and returns its analysis. Linear.
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

    /// Returns true if no node after `user` needs the variable.
    #[inline]
    pub(crate) fn is_last_use(&self, var: ExprId, user: ExprId) -> bool {
        self.shared.is_none() && self.last_uses.get(var.index()).is_some_and(|&u| u == user.index() as u32 + 1)
    }

    /// Returns the number of variables that a `fn` binds.
    pub(crate) fn lambda_slots(&self, lambda: LambdaId) -> u32 {
        self.lambdas.get(&lambda).map_or(0, |l| l.slots)
    }

    pub(crate) fn symbol_level(&self, symbol: SymbolId) -> u32 {
        self.symbol_levels.get(&symbol).copied().unwrap_or(0)
    }

    /// Returns true if several nodes refer to this node, so that its value must be kept.
    #[inline]
    pub(crate) fn is_shared(&self, id: ExprId) -> bool {
        self.shared.as_ref().is_some_and(|s| s.contains(id))
    }

    /// Returns true if a variable is bound inside of a shared node. A shared node is evaluated in
    /// each activation that needs it, so the variable has no slot and no level.
    #[inline]
    pub(crate) fn is_floating(&self, var: ExprId) -> bool {
        self.floating.as_ref().is_some_and(|f| f.contains(var))
    }

    /// Returns an estimate of the memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        (self.slots.len() + self.levels.len() + self.last_uses.len()) * 4
    }
}

struct Walk<'a> {
    body: &'a Body,
    prepared: Prepared,
    scopes: Vec<Scope>,
    /// For each entered node and block that is not left yet: whether its atoms are operands.
    /// Operands are processed when the node is left.
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

    /// Records a use of a variable. `user` is the node if it takes the value at once.
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

/// Returns the variables that are bound inside of `nodes`; `None` if there are none.
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

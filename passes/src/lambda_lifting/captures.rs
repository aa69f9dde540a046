//! What each lambda of a body captures.
//!
//! One walk notes the uses of variables from outside of the lambda that they are in. Then it is
//! decided, outermost lambda first, what each captures. All that a lambda may capture is bound
//! before it, so whether a lambda that it names captures something is known by then, or it is the
//! lambda itself or one around it, which is decided before too.

use std::collections::hash_map::Entry;

use anfora_ir::{
    Attr, BlockKind, Body, BodyRoom, Context, Cursor, EntityId, Expr, ExprId, FreeSymbols, LambdaId, NameId, OpId,
    PerBlock, Step, SymbolId, SymbolWalk, Type, TypeId, VarId,
};
use anfora_manager::PassError;
use anfora_visit::{Link, RewriteError};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A lambda that names one with up to so many captures takes these for its own, and so knows whom
/// it calls; of one with more it captures the closure.
const MOST_PASSED_ON: usize = 16;

/// The function itself, in place of a lambda.
pub(super) const HOST: u32 = 0;

/// Not a lambda: what binds a variable that was not met.
const NOWHERE: u32 = u32::MAX;

/// A lambda.
pub(super) struct Lambda {
    /// Its node.
    pub(super) node: ExprId,
    pub(super) lambda: LambdaId,
    /// The variable that a Let binds to it.
    pub(super) var: Option<VarId>,
    /// The name of that.
    pub(super) name: Option<NameId>,
    /// Where the Let or tail hangs that it stands at.
    pub(super) link: Link,
    /// The lambda in whose block it is.
    pub(super) parent: u32,
    /// The dataflow region of that block that it is in, by its first Let.
    region: Option<ExprId>,
    /// True if it is used otherwise than by calling it.
    is_value: bool,
    /// The variables that it captures, by where they are first used.
    captures: SmallVec<[(u32, VarId); 2]>,
    /// The lambdas that its block uses as values and that are made closures of at its beginning.
    pub(super) closures: Vec<u32>,
    /// True if who names it from another lambda takes its captures.
    pub(super) passes_on: bool,
    /// Where it is named from other lambdas, itself included.
    uses: Vec<u32>,
    /// The symbols that it names and does not bind.
    pub(super) symbols: Vec<SymbolUse>,
    /// How much there is going to be in its function, or a little less.
    pub(super) room: BodyRoom,
}

impl Lambda {
    fn new(node: ExprId, lambda: LambdaId, var: Option<VarId>, parent: u32, block: OpenBlock) -> Lambda {
        let OpenBlock { region, link, .. } = block;
        Lambda {
            node,
            lambda,
            var,
            name: None,
            link,
            parent,
            region,
            is_value: var.is_none(),
            captures: SmallVec::new(),
            closures: Vec::new(),
            passes_on: false,
            uses: Vec::new(),
            symbols: Vec::new(),
            room: BodyRoom::default(),
        }
    }

    /// What it captures.
    pub(super) fn captures(&self) -> impl ExactSizeIterator<Item = VarId> + '_ {
        self.captures.iter().map(|&(_, var)| var)
    }

    /// Returns true if it captures anything.
    pub(super) fn is_closure(&self) -> bool {
        !self.captures.is_empty()
    }
}

/// A symbol with what binds it.
#[derive(Copy, Clone)]
pub(super) struct SymbolUse {
    pub(super) symbol: SymbolId,
    /// The lambda that binds it.
    owner: u32,
    /// The parameter or the variable of a `match_cast`.
    var: VarId,
    /// The dataflow region that the variable is in, by its first Let.
    region: Option<ExprId>,
}

/// A use of a variable in a lambda that is inside the one that binds it.
pub(super) struct Use {
    pub(super) var: ExprId,
    pub(super) lambda: u32,
    /// The call whose callee it is.
    pub(super) call: Option<ExprId>,
}

/// The lambdas of a body, in program order after the function itself, and who binds what.
pub(super) struct Captures {
    pub(super) lambdas: Vec<Lambda>,
    /// By variable: the lambda in whose block, or as whose parameter, it is bound. By any other
    /// atom: the lambda that was last seen to use it.
    owner: Vec<u32>,
    /// By variable: the lambda that it is bound to; 0 for none.
    lambda_of: Vec<u32>,
    /// The variables that are bound to a variable that is bound to a lambda, to a global or to an
    /// operator: that.
    aliases: FxHashMap<ExprId, ExprId>,
    /// The uses of variables from outside of the lambda that they are in, in program order.
    pub(super) uses: Vec<Use>,
    /// The lambdas that use an alias from outside, and the alias, in the order of the lambdas.
    pub(super) used_aliases: Vec<(u32, ExprId)>,
    /// Dataflow variables that are used outside of their region.
    pub(super) outputs: FxHashSet<VarId>,
    /// True if a value that may be called is captured: who calls it is not known to be pure any
    /// more.
    pub(super) hides_callees: bool,
    /// The type of the body.
    pub(super) ty: TypeId,
}

impl Captures {
    /// What the lambdas of a body capture; `None` if it has none.
    pub(super) fn of(cx: &Context, body: &Body) -> Result<Option<Captures>, PassError> {
        let mut walk = Walk::new(cx, body);
        walk.run()?;
        if walk.found.lambdas.len() == 1 {
            return Ok(None);
        }
        let Walk { mut found, param_symbols, free, .. } = walk;
        found.used_aliases.sort_by_key(|&(lambda, _)| lambda);
        let named = FxHashSet::with_capacity_and_hasher(found.uses.len(), FxBuildHasher);
        let mut decision = Decision { cx, body, found, named, sources: FxHashMap::default(), param_symbols, free };
        decision.run()?;
        Ok(Some(decision.found))
    }

    /// What a variable that a lambda uses stands for there: itself, or what it is an alias of.
    #[inline]
    pub(super) fn resolve(&self, var: ExprId, lambda: u32) -> ExprId {
        if self.aliases.is_empty() || self.is_local(var, lambda) {
            return var;
        }
        self.aliases.get(&var).copied().unwrap_or(var)
    }

    /// Returns true if a variable is bound by this lambda.
    #[inline]
    pub(super) fn is_local(&self, var: ExprId, lambda: u32) -> bool {
        self.owner[var.index()] == lambda
    }

    /// The number of the lambda that a variable is bound to.
    #[inline]
    pub(super) fn lambda_of(&self, var: ExprId) -> Option<u32> {
        Some(self.lambda_of[var.index()]).filter(|&h| h != HOST)
    }

    /// The lambda whose captures are added to the arguments, where a lambda calls a variable that
    /// is no alias there.
    pub(super) fn direct_callee_of(&self, var: ExprId, lambda: u32) -> Option<u32> {
        let h = self.lambda_of(var)?;
        let callee = &self.lambdas[h as usize];
        (callee.is_closure() && (h == lambda || callee.passes_on && !self.is_local(var, lambda))).then_some(h)
    }
}

// ---- The walk ----

/// A block that the walk is in.
#[derive(Copy, Clone)]
struct OpenBlock {
    /// The dataflow region that the walk is in, by its first Let.
    region: Option<ExprId>,
    /// The number of symbols that were bound before the block.
    symbols: usize,
    /// Where the next Let or the tail hangs.
    link: Link,
}

impl Default for OpenBlock {
    fn default() -> OpenBlock {
        OpenBlock { region: None, symbols: 0, link: Link::Root }
    }
}

struct Walk<'a> {
    cx: &'a Context,
    body: &'a Body,
    found: Captures,
    /// The lambda that the walk is in.
    here: u32,
    /// The variable that is being bound to a lambda.
    naming: Option<VarId>,
    blocks: PerBlock<OpenBlock>,
    match_cast: Option<OpId>,
    /// True if there are symbols.
    is_symbolic: bool,
    bound: FxHashMap<SymbolId, SymbolUse>,
    /// The symbols that are bound, innermost last.
    order: Vec<SymbolId>,
    /// Which lambdas name which symbols.
    mentioned: FxHashSet<(u32, SymbolId)>,
    /// The parts of types that each lambda names.
    mentioned_types: FxHashMap<u32, SymbolWalk>,
    /// The symbols that parameters of lambdas bind.
    param_symbols: FxHashMap<(u32, SymbolId), SymbolUse>,
    free: FreeSymbols,
}

impl<'a> Walk<'a> {
    fn new(cx: &'a Context, body: &'a Body) -> Walk<'a> {
        let host = Lambda::new(body.root(), LambdaId::from_index(0), None, HOST, OpenBlock::default());
        let mut lambdas = Vec::with_capacity(body.lambda_count() + 1);
        lambdas.push(host);
        let found = Captures {
            lambdas,
            owner: vec![NOWHERE; body.len()],
            lambda_of: vec![HOST; body.len()],
            aliases: FxHashMap::default(),
            uses: Vec::new(),
            used_aliases: Vec::new(),
            outputs: FxHashSet::default(),
            hides_callees: false,
            ty: cx.types.unit(),
        };
        Walk {
            cx,
            body,
            found,
            here: HOST,
            naming: None,
            blocks: PerBlock::default(),
            match_cast: cx.ops.find("match_cast"),
            is_symbolic: cx.types.dims.symbol_count() > 0,
            bound: FxHashMap::default(),
            order: Vec::new(),
            mentioned: FxHashSet::default(),
            mentioned_types: FxHashMap::default(),
            param_symbols: FxHashMap::default(),
            free: FreeSymbols::new(),
        }
    }

    fn run(&mut self) -> Result<(), PassError> {
        let body = self.body;
        for &param in body.params() {
            self.define(param);
            self.bind_symbols(body.ty(param.expr()), param, |_| true);
        }
        // What was walked last: in the end, the tail.
        let mut last = body.root();
        let mut cursor = Cursor::with_regions(body);
        while let Some(step) = cursor.next(body) {
            RewriteError::unless_anf(self.cx, body, &cursor, step)?;
            match step {
                Step::Let(id) => {
                    let Expr::Let { var, value, .. } = body.expr(id) else { continue };
                    self.count(2, 0);
                    if let Expr::Lambda { .. } = body.expr(value) {
                        self.define(var);
                        self.naming = Some(var);
                    }
                }
                Step::Bound(id) => {
                    self.blocks.link = Link::Rest(id);
                    self.bind(id);
                }
                Step::Atom(id) => {
                    last = id;
                    self.use_atom(id, None);
                }
                Step::Flat(id) => {
                    last = id;
                    self.node(id);
                }
                Step::Enter(id) => match body.expr(id) {
                    Expr::Lambda { lambda, .. } => self.enter_lambda(id, lambda),
                    _ => self.count(1, 0),
                },
                Step::EnterBlock(_, kind) => {
                    let link = match kind {
                        BlockKind::Then(id) => Link::Then(id),
                        BlockKind::Else(id) => Link::Else(id),
                        BlockKind::Lambda(id) => Link::Lambda(id),
                        BlockKind::Root | BlockKind::Value(_) | BlockKind::Operand(_) => Link::Root,
                    };
                    self.blocks.enter_with(OpenBlock { region: None, symbols: self.order.len(), link });
                    if let BlockKind::Lambda(_) = kind {
                        self.lambda_symbols();
                    }
                }
                Step::ExitBlock(_, kind) => {
                    let OpenBlock { symbols, .. } = self.blocks.exit();
                    for symbol in self.order.drain(symbols..) {
                        self.bound.remove(&symbol);
                    }
                    if let BlockKind::Lambda(_) = kind {
                        self.here = self.found.lambdas[self.here as usize].parent;
                    }
                }
                Step::Exit(id) => {
                    last = id;
                    self.mention_type(body.ty(id));
                }
                Step::EnterRegion(first) => self.blocks.region = Some(first),
                Step::ExitRegion(_) => self.blocks.region = None,
                Step::Seen(_) => {}
            }
        }
        self.found.ty = body.ty(last);
        Ok(())
    }

    /// The lambda that the walk is in has so many nodes and operands more.
    #[inline]
    fn count(&mut self, nodes: usize, operands: usize) {
        let room = &mut self.found.lambdas[self.here as usize].room;
        room.nodes += nodes;
        room.operands += operands;
    }

    fn define(&mut self, var: VarId) {
        self.found.owner[var.index()] = self.here;
    }

    fn enter_lambda(&mut self, node: ExprId, lambda: LambdaId) {
        let number = self.found.lambdas.len() as u32;
        let var = self.naming.take();
        if let Some(var) = var {
            self.found.lambda_of[var.index()] = number;
        }
        let name = var.and_then(|var| self.body.var_name(var));
        self.found.lambdas.push(Lambda { name, ..Lambda::new(node, lambda, var, self.here, *self.blocks) });
        self.here = number;
        for param in self.body.lambda_params(lambda) {
            self.found.owner[param.index()] = number;
        }
    }

    fn bind(&mut self, id: ExprId) {
        let body = self.body;
        let Expr::Let { var, value, .. } = body.expr(id) else { return };
        match body.expr(value) {
            Expr::Lambda { .. } => {}
            Expr::Var { .. } => {
                self.define(var);
                let of = self.found.resolve(value, NOWHERE);
                if of != value || self.found.lambda_of[value.index()] != HOST {
                    self.found.aliases.insert(var.expr(), of);
                }
            }
            Expr::Global(_) | Expr::Op(_) => {
                self.define(var);
                self.found.aliases.insert(var.expr(), value);
            }
            Expr::CallOp { op, attrs, .. } if Some(op) == self.match_cast => {
                self.define(var);
                if let Some(to) = self.cx.find_attr(attrs, "to")
                    && let Attr::Type(to) = *self.cx.attrs.get(to)
                {
                    self.bind_symbols(to, var, |_| true);
                    self.mention_type(to);
                }
            }
            _ => self.define(var),
        }
        self.mention_type(body.ty(var.expr()));
    }

    fn node(&mut self, id: ExprId) {
        let body = self.body;
        self.count(1, body.operands_of(id).len());
        match body.expr(id) {
            Expr::Proj { tuple, .. } => self.use_atom(tuple, None),
            Expr::Call { operands, attrs } => {
                for (i, &operand) in body.operands(operands).iter().enumerate() {
                    self.use_atom(operand, (i == 0).then_some(id));
                }
                self.mention_attrs(attrs);
            }
            Expr::CallOp { operands, attrs, .. } => {
                for &operand in body.operands(operands) {
                    self.use_atom(operand, None);
                }
                self.mention_attrs(attrs);
            }
            _ => {
                for &operand in body.operands_of(id) {
                    self.use_atom(operand, None);
                }
            }
        }
        self.mention_type(body.ty(id));
    }

    #[inline]
    fn use_atom(&mut self, atom: ExprId, call: Option<ExprId>) {
        let found = &mut self.found;
        let Expr::Var { .. } = self.body.expr(atom) else {
            // Any other atom is one node of each body that uses it.
            if std::mem::replace(&mut found.owner[atom.index()], self.here) != self.here {
                self.count(1, 0);
            }
            return;
        };
        let h = found.lambda_of[atom.index()];
        if found.owner[atom.index()] == self.here {
            if h != HOST && call.is_none() {
                found.lambdas[h as usize].is_value = true;
            }
            return;
        }
        self.use_from_outside(atom, call);
    }

    fn use_from_outside(&mut self, atom: ExprId, call: Option<ExprId>) {
        let var = self.found.resolve(atom, self.here);
        if var != atom {
            self.found.used_aliases.push((self.here, atom));
        }
        // A global or operator, or a variable that nothing has bound.
        if !matches!(self.body.expr(var), Expr::Var { .. }) || self.found.owner[var.index()] == NOWHERE {
            return;
        }
        let h = self.found.lambda_of[var.index()];
        if h != HOST {
            let lambda = &mut self.found.lambdas[h as usize];
            lambda.is_value |= call.is_none();
            lambda.uses.push(self.found.uses.len() as u32);
        }
        self.found.uses.push(Use { var, lambda: self.here, call });
        self.mention_type(self.body.ty(var));
    }

    // ---- Symbols ----

    fn lambda_symbols(&mut self) {
        if !self.is_symbolic {
            return;
        }
        let (body, cx) = (self.body, self.cx);
        let lambda = self.found.lambdas[self.here as usize].lambda;
        let own = body.lambda_symbols(lambda);
        for param in body.lambda_params(lambda) {
            self.bind_symbols(body.ty(param.expr()), param, |s| own.contains(&s));
        }
        for param in body.lambda_params(lambda) {
            let ty = body.ty(param.expr());
            self.mention_type(ty);
            for &s in self.free.of(&cx.types, ty).iter() {
                if let Some(&bound) = self.bound.get(&s)
                    && bound.owner == self.here
                {
                    self.param_symbols.insert((self.here, s), bound);
                }
            }
        }
        let data = body.lambda(lambda);
        if let Some(ret) = data.ret {
            self.mention_type(ret);
        }
        self.mention_attrs(data.attrs);
    }

    fn bind_symbols(&mut self, ty: TypeId, var: VarId, may_bind: impl Fn(SymbolId) -> bool) {
        if !self.is_symbolic {
            return;
        }
        self.cx.types.for_each_binding_symbol(ty, |symbol| {
            if !may_bind(symbol) {
                return;
            }
            if let Entry::Vacant(entry) = self.bound.entry(symbol) {
                entry.insert(SymbolUse { symbol, owner: self.here, var, region: self.blocks.region });
                self.order.push(symbol);
            }
        });
    }

    #[inline]
    fn mention_type(&mut self, ty: TypeId) {
        if self.is_symbolic && self.here != HOST && self.cx.types.is_symbolic(ty) {
            self.mention_symbolic(ty);
        }
    }

    fn mention_symbolic(&mut self, ty: TypeId) {
        let mut types = vec![ty];
        let seen = self.mentioned_types.entry(self.here).or_default();
        while let Some(ty) = types.pop() {
            seen.in_type(self.cx, ty, |s| {
                Self::mention(&mut self.found, &self.bound, &mut self.mentioned, self.here, s, |var| {
                    types.push(self.body.ty(var.expr()));
                });
            });
        }
    }

    fn mention_attrs(&mut self, attrs: anfora_ir::AttrsId) {
        if !self.is_symbolic || self.here == HOST {
            return;
        }
        let mut types = Vec::new();
        let seen = self.mentioned_types.entry(self.here).or_default();
        seen.in_attrs(self.cx, attrs, |s| {
            Self::mention(&mut self.found, &self.bound, &mut self.mentioned, self.here, s, |var| {
                types.push(self.body.ty(var.expr()));
            });
        });
        types.into_iter().for_each(|ty| self.mention_symbolic(ty));
    }

    /// Notes a symbol with the lambda that names it and those around it, up to the one that binds
    /// it; `then` is told of the variable that does.
    fn mention(
        found: &mut Captures,
        bound: &FxHashMap<SymbolId, SymbolUse>,
        mentioned: &mut FxHashSet<(u32, SymbolId)>,
        here: u32,
        symbol: SymbolId,
        mut then: impl FnMut(VarId),
    ) {
        let Some(&bound) = bound.get(&symbol) else { return };
        let mut g = here;
        while g != bound.owner && mentioned.insert((g, symbol)) {
            let lambda = &mut found.lambdas[g as usize];
            lambda.symbols.push(bound);
            g = lambda.parent;
            then(bound.var);
        }
    }
}

// ---- The decision ----

struct Decision<'a> {
    cx: &'a Context,
    body: &'a Body,
    found: Captures,
    /// Which lambdas have which variables (captured, or bound to a lambda whose captures they took)
    /// from around them.
    named: FxHashSet<(u32, ExprId)>,
    /// The parameter or captured variable that binds a symbol from outside in a lambda.
    sources: FxHashMap<(u32, SymbolId), VarId>,
    param_symbols: FxHashMap<(u32, SymbolId), SymbolUse>,
    free: FreeSymbols,
}

impl Decision<'_> {
    fn run(&mut self) -> Result<(), PassError> {
        for i in 0..self.found.uses.len() {
            let Use { var, lambda, .. } = self.found.uses[i];
            if self.found.lambda_of(var).is_none() {
                let owner = self.found.owner[var.index()];
                self.capture(var, i as u32, lambda, owner, NOWHERE);
            }
        }
        for h in 1..self.found.lambdas.len() as u32 {
            self.close_over_symbols(h)?;
            let lambda = &mut self.found.lambdas[h as usize];
            lambda.captures.sort_by_key(|&(first, _)| first);
            if lambda.is_closure() {
                lambda.passes_on = lambda.captures.len() <= MOST_PASSED_ON;
                self.pass_on(h);
            }
        }
        for lambda in &self.found.lambdas {
            self.found.hides_callees |=
                lambda.captures().any(|var| matches!(self.cx.types.get(self.body.ty(var.expr())), Type::Function(_)));
        }
        self.add_up_room();
        Ok(())
    }

    /// Adds what comes into functions besides what is in the blocks of their lambdas: captures and
    /// closures, with the globals that these are of.
    fn add_up_room(&mut self) {
        for h in 1..self.found.lambdas.len() {
            let Lambda { lambda, parent, ref captures, ref closures, .. } = self.found.lambdas[h];
            let (params, captures) = (self.body.lambda_params(lambda).len() + captures.len(), captures.len());
            let operands: usize =
                closures.iter().map(|&closed| self.found.lambdas[closed as usize].captures.len() + 1).sum();
            // For each closure a variable, a Let, a call and a global.
            let nodes = params + 4 * closures.len();
            let room = &mut self.found.lambdas[h].room;
            room.params = params;
            room.nodes += nodes;
            room.operands += operands;
            let around = &mut self.found.lambdas[parent as usize].room;
            around.nodes += 2;
            around.operands += captures + 1;
        }
    }

    /// Captures a variable in the lambda of a use and those around it, up to the one that binds it,
    /// or to the one that it is bound to (`up_to`). The outermost of them, or `up_to` if that was
    /// come to; `None` if it was captured before.
    fn capture(&mut self, var: ExprId, first: u32, mut g: u32, owner: u32, up_to: u32) -> Option<u32> {
        let variable = self.body.as_var(var)?;
        let mut outermost = g;
        while g != owner && g != up_to {
            if !self.named.insert((g, var)) {
                return None;
            }
            let lambda = &mut self.found.lambdas[g as usize];
            lambda.captures.push((first, variable));
            outermost = g;
            g = lambda.parent;
        }
        Some(if g == up_to { g } else { outermost })
    }

    /// Tells those that name a closure from other lambdas, or from itself.
    fn pass_on(&mut self, h: u32) {
        let uses = std::mem::take(&mut self.found.lambdas[h as usize].uses);
        let Lambda { parent: owner, passes_on, .. } = self.found.lambdas[h as usize];
        for &i in &uses {
            let Use { var, lambda, call } = self.found.uses[i as usize];
            if call.is_none() && (passes_on || lambda == h) {
                self.close_at_beginning(lambda, h);
            }
            if !passes_on {
                match self.capture(var, i, lambda, owner, h) {
                    Some(g) if g == h && lambda != h => self.close_at_beginning(h, h),
                    Some(g) if g != h => self.bring_out(var, g, h),
                    _ => {}
                }
                continue;
            }
            let mut g = lambda;
            while g != owner && g != h && self.named.insert((g, var)) {
                for c in 0..self.found.lambdas[h as usize].captures.len() {
                    let (_, captured) = self.found.lambdas[h as usize].captures[c];
                    if self.named.insert((g, captured.expr())) {
                        self.found.lambdas[g as usize].captures.push((i, captured));
                        self.pass_on_symbols(h, g, self.body.ty(captured.expr()));
                    }
                    if self.found.lambdas[g as usize].parent == owner {
                        self.bring_out(captured.expr(), g, h);
                    }
                }
                g = self.found.lambdas[g as usize].parent;
            }
        }
    }

    /// A dataflow variable that `h` names in its region becomes an output of that, if `g` that
    /// names it now too, and is as deep, stands outside.
    fn bring_out(&mut self, var: ExprId, g: u32, h: u32) {
        let (from, to) = (&self.found.lambdas[h as usize], &self.found.lambdas[g as usize]);
        if let Some(var) = self.body.as_var(var)
            && self.body.is_dataflow_var(var)
            && self.found.owner[var.index()] == to.parent
            && to.parent == from.parent
            && to.region != from.region
        {
            self.found.outputs.insert(var);
        }
    }

    /// The symbols of the type of a variable that `g` captures because `h` does.
    fn pass_on_symbols(&mut self, h: u32, g: u32, ty: TypeId) {
        if !self.cx.types.is_symbolic(ty) {
            return;
        }
        let mut symbols = std::mem::take(&mut self.found.lambdas[g as usize].symbols);
        for &s in self.free.of(&self.cx.types, ty).iter() {
            if symbols.iter().all(|u| u.symbol != s) {
                symbols.extend(self.found.lambdas[h as usize].symbols.iter().find(|u| u.symbol == s));
            }
        }
        self.found.lambdas[g as usize].symbols = symbols;
    }

    fn close_at_beginning(&mut self, of: u32, h: u32) {
        let closures = &mut self.found.lambdas[of as usize].closures;
        // Lambdas are decided one after the other, so that one that is there already is the last.
        if closures.last() != Some(&h) {
            closures.push(h);
        }
    }

    /// Captures something that binds the symbols from outside that nothing else binds.
    fn close_over_symbols(&mut self, h: u32) -> Result<(), PassError> {
        let mut symbols = std::mem::take(&mut self.found.lambdas[h as usize].symbols);
        if symbols.is_empty() {
            return Ok(());
        }
        let mut known: FxHashSet<SymbolId> = symbols.iter().map(|s| s.symbol).collect();
        let binders = loop {
            let lambda = &self.found.lambdas[h as usize];
            // The type of a closure names the symbols of its captures, as that of the lambda does.
            // That of a global binds its own.
            let mut binders: Vec<VarId> = match lambda.is_closure() || lambda.is_value {
                true => {
                    let mut captures = lambda.captures.clone();
                    captures.sort_by_key(|&(first, _)| first);
                    captures.into_iter().map(|(_, var)| var).collect()
                }
                false => self.body.lambda_params(lambda.lambda).collect(),
            };
            let was_closure = lambda.is_closure() || lambda.is_value;
            let mut bound: FxHashSet<SymbolId> = FxHashSet::default();
            for &var in &binders {
                self.cx.types.for_each_binding_symbol(self.body.ty(var.expr()), |s| {
                    bound.insert(s);
                });
            }
            let mut i = 0;
            let mut is_done = true;
            while let Some(&wanted) = symbols.get(i) {
                i += 1;
                if bound.contains(&wanted.symbol) {
                    continue;
                }
                let var = self.source(h, wanted)?;
                self.found.lambdas[h as usize].captures.push((u32::MAX, var));
                self.named.insert((h, var.expr()));
                binders.push(var);
                self.cx.types.for_each_binding_symbol(self.body.ty(var.expr()), |s| {
                    bound.insert(s);
                });
                self.add_symbols(h, var, &mut known, &mut symbols);
                if !was_closure {
                    is_done = false;
                    break;
                }
            }
            if is_done {
                break binders;
            }
        };
        for var in binders {
            self.cx.types.for_each_binding_symbol(self.body.ty(var.expr()), |s| {
                if known.contains(&s) {
                    self.sources.entry((h, s)).or_insert(var);
                }
            });
        }
        self.found.lambdas[h as usize].symbols = symbols;
        Ok(())
    }

    /// The variable that binds a symbol in the lambda around `h`.
    fn source(&mut self, h: u32, wanted: SymbolUse) -> Result<VarId, PassError> {
        let Lambda { parent, region, .. } = self.found.lambdas[h as usize];
        let var = match wanted.owner == parent {
            true => Some(wanted.var),
            false => self.sources.get(&(parent, wanted.symbol)).copied(),
        };
        let mut is_bound = false;
        if let Some(var) = var {
            self.cx.types.for_each_binding_symbol(self.body.ty(var.expr()), |s| is_bound |= s == wanted.symbol);
            if wanted.owner == parent && wanted.region.is_some() && wanted.region != region {
                self.found.outputs.insert(var);
            }
        }
        match var.filter(|_| is_bound) {
            Some(var) => Ok(var),
            None => Err(self.no_source(h, wanted)),
        }
    }

    #[cold]
    fn no_source(&self, h: u32, wanted: SymbolUse) -> PassError {
        let (cx, body) = (self.cx, self.body);
        let symbol = cx.names.get(cx.types.dims.symbol_name(wanted.symbol));
        let lambda = &self.found.lambdas[h as usize];
        let name = lambda.name.map_or("fn", |n| cx.names.get(n));
        let binder = body.var_name(wanted.var).map_or("", |n| cx.names.get(n));
        let message =
            format!("`%{name}` names the symbolic dimension `{symbol}`, and no variable that it could capture has it");
        PassError::new(message)
            .with_help(format!("give `%{binder}`, which binds `{symbol}`, the type that its value has"))
    }

    /// The symbols of a variable that is captured are named by its type.
    fn add_symbols(&mut self, h: u32, var: VarId, known: &mut FxHashSet<SymbolId>, symbols: &mut Vec<SymbolUse>) {
        let parent = self.found.lambdas[h as usize].parent;
        for &s in self.free.of(&self.cx.types, self.body.ty(var.expr())).iter() {
            if !known.insert(s) {
                continue;
            }
            let around = self.found.lambdas[parent as usize].symbols.iter().find(|u| u.symbol == s).copied();
            if let Some(symbol) = around.or_else(|| self.param_symbols.get(&(parent, s)).copied()) {
                symbols.push(symbol);
            }
        }
    }
}

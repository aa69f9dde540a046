//! The captures of each lambda of a body.
//!
//! One walk records the lambdas, the uses of variables from outside of their lambda, and the
//! symbols from outside. Then the captures of each lambda are decided, outermost lambda first.
//! Everything that a lambda may capture is bound before it. So for each lambda that it names, it is
//! already known whether that one has captures; or it is the lambda itself or an enclosing one,
//! which is decided before too.

use std::collections::hash_map::Entry;

use anfora_ir::bumpalo::{self, Bump};
use anfora_ir::{
    AttrsId, BlockKind, Body, BodyRoom, Context, Cursor, EntityId, Expr, ExprId, FreeSymbols, LambdaId, NameId,
    PerBlock, ScratchVec, Step, SymbolId, SymbolWalk, Type, TypeId, VarId,
};
use anfora_manager::PassError;
use anfora_visit::{Binding, Link, RewriteError};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// If a lambda names another with at most this many captures, it captures these too, and can call
/// the other's function directly. If the other has more captures, it captures the closure.
const MOST_PASSED_ON: usize = 16;

/// The number of the function itself among the lambdas.
pub(super) const HOST: u32 = 0;

/// The place of a variable that the walk has not reached.
const NOWHERE: u32 = 0;

/// A lambda.
pub(super) struct Lambda<'b> {
    /// Its node.
    pub(super) node: ExprId,
    pub(super) lambda: LambdaId,
    /// The variable that a Let binds to it.
    pub(super) var: Option<VarId>,
    /// The name of that variable.
    pub(super) name: Option<NameId>,
    /// The link that holds its Let or tail.
    pub(super) link: Link,
    /// The lambda whose block contains it.
    pub(super) parent: u32,
    /// The place of its Let or tail.
    place: u32,
    /// True if it has a use other than as the callee of a call.
    is_value: bool,
    /// The variables that it captures, each with its first use.
    captures: ScratchVec<'b, (u32, VarId)>,
    /// The lambdas that its block uses as values. Their closures are made at its beginning.
    pub(super) closures: ScratchVec<'b, u32>,
    /// True if a lambda that names it from outside takes its captures.
    passes_on: bool,
    /// The uses of its name in other lambdas, and in itself.
    pub(super) uses: ScratchVec<'b, u32>,
    /// The aliases from outside that it uses, each with its target.
    pub(super) aliases: ScratchVec<'b, (ExprId, ExprId)>,
    /// The symbols that it names but does not bind.
    pub(super) symbols: ScratchVec<'b, SymbolId>,
    /// The size of its function, or a little less.
    pub(super) room: BodyRoom,
}

impl Lambda<'_> {
    /// Returns the variables that it captures.
    pub(super) fn captures(&self) -> impl ExactSizeIterator<Item = VarId> + '_ {
        self.captures.iter().map(|&(_, var)| var)
    }

    /// Returns true if it has captures.
    pub(super) fn is_closure(&self) -> bool {
        !self.captures.is_empty()
    }
}

/// The binder of a symbol.
#[derive(Copy, Clone)]
struct SymbolBinder {
    /// The lambda that binds it.
    owner: u32,
    /// The parameter, or the variable of a `match_cast`.
    var: VarId,
}

/// A use of a variable in a lambda that is inside the one that binds it.
pub(super) struct Use {
    pub(super) var: ExprId,
    pub(super) lambda: u32,
    /// The call whose callee it is.
    pub(super) call: Option<ExprId>,
}

/// The lambdas of a body, in program order after the function itself, and their captures.
pub(super) struct Captures<'b> {
    pub(super) lambdas: ScratchVec<'b, Lambda<'b>>,
    /// By variable: the lambda bound to it; 0 if there is none.
    lambda_of: &'b [u32],
    /// The uses of variables from outside of their lambda, in program order.
    pub(super) uses: ScratchVec<'b, Use>,
    /// Dataflow variables that are used outside of their region.
    pub(super) outputs: ScratchVec<'b, VarId>,
    /// True if a value that may be called is captured: its callers are no longer known to be pure.
    pub(super) hides_callees: bool,
    /// The type of the body.
    pub(super) ty: TypeId,
}

impl<'b> Captures<'b> {
    /// Returns the captures of the lambdas of a body; `None` if it has no lambdas.
    pub(super) fn of(cx: &Context, body: &Body, scratch: &'b Bump) -> Result<Option<Captures<'b>>, PassError> {
        let mut finder = Finder::new(cx, body, scratch);
        finder.walk()?;
        if finder.lambdas.len() == 1 {
            return Ok(None);
        }
        finder.decide()?;
        let mut outputs = ScratchVec::new_in(scratch);
        let mut hides_callees = false;
        for lambda in &finder.lambdas[1..] {
            for var in lambda.captures() {
                let place = finder.home[var.index()];
                if body.is_dataflow_var(var) && finder.places[place as usize] == lambda.parent && place != lambda.place
                {
                    outputs.push(var);
                }
                hides_callees |= matches!(cx.types.get(body.ty(var.expr())), Type::Function(_));
            }
        }
        let Finder { lambdas, lambda_of, uses, ty, .. } = finder;
        Ok(Some(Captures { lambdas, lambda_of, uses, outputs, hides_callees, ty }))
    }

    /// Returns the lambda that a use calls, if the call becomes a direct one with the captures as
    /// further arguments.
    pub(super) fn direct_callee(&self, from: &Use) -> Option<u32> {
        let h = self.lambda_of[from.var.index()];
        let callee = &self.lambdas[h as usize];
        (callee.is_closure() && (h == from.lambda || callee.passes_on)).then_some(h)
    }
}

/// A block that the walk is in.
#[derive(Copy, Clone)]
struct OpenBlock {
    /// The present place, and the place outside of regions.
    place: u32,
    outside: u32,
    /// The number of symbols that were bound before the block.
    symbols: usize,
    /// The link that holds the next Let or the tail.
    link: Link,
}

impl Default for OpenBlock {
    fn default() -> OpenBlock {
        OpenBlock { place: NOWHERE, outside: NOWHERE, symbols: 0, link: Link::Root }
    }
}

/// The walk that finds the captures of lambdas.
struct Finder<'a, 'b> {
    cx: &'a Context,
    body: &'a Body,
    scratch: &'b Bump,
    lambdas: ScratchVec<'b, Lambda<'b>>,
    uses: ScratchVec<'b, Use>,
    /// The lambda of each place. A place begins with a lambda or a dataflow region.
    places: ScratchVec<'b, u32>,
    /// By variable: the place that binds it. By any other atom: the last lambda that used it.
    home: &'b mut [u32],
    lambda_of: &'b mut [u32],
    /// The targets of aliases: variables that are bound to the variable of a lambda, to a global or
    /// to an operator.
    aliases: FxHashMap<ExprId, ExprId>,
    /// The pairs of a lambda and a variable from outside that it already has: captured, or bound to
    /// a lambda whose captures it took.
    named: FxHashSet<(u32, ExprId)>,
    /// The type of the last walked expression: at the end, of the tail.
    ty: TypeId,

    // ---- Where the walk is ----
    /// The lambda that the walk is in.
    here: u32,
    /// The variable that is being bound to a lambda.
    naming: Option<VarId>,
    blocks: PerBlock<OpenBlock>,

    // ---- Symbols ----
    /// True if there are symbols.
    is_symbolic: bool,
    bound: FxHashMap<SymbolId, SymbolBinder>,
    /// The symbols that are bound, innermost last.
    order: Vec<SymbolId>,
    /// The visited parts of types, by open lambda.
    seen: PerBlock<SymbolWalk>,
    /// The binders of the symbols that a lambda names, and of those that its parameters bind.
    binders: FxHashMap<(u32, SymbolId), SymbolBinder>,
    /// The parameter or captured variable that binds a symbol from outside in a lambda.
    sources: FxHashMap<(u32, SymbolId), VarId>,
    free: FreeSymbols,
}

// ---- The walk ----

impl<'a, 'b> Finder<'a, 'b> {
    fn new(cx: &'a Context, body: &'a Body, scratch: &'b Bump) -> Finder<'a, 'b> {
        let mut finder = Finder {
            cx,
            body,
            scratch,
            lambdas: ScratchVec::with_capacity_in(body.lambda_count() + 1, scratch),
            uses: ScratchVec::new_in(scratch),
            places: bumpalo::vec![in scratch; u32::MAX],
            home: scratch.alloc_slice_fill_copy(body.len(), NOWHERE),
            lambda_of: scratch.alloc_slice_fill_copy(body.len(), HOST),
            aliases: FxHashMap::default(),
            named: FxHashSet::default(),
            ty: cx.types.unit(),
            here: HOST,
            naming: None,
            blocks: PerBlock::default(),
            is_symbolic: cx.types.dims.symbol_count() > 0,
            bound: FxHashMap::default(),
            order: Vec::new(),
            seen: PerBlock::default(),
            binders: FxHashMap::default(),
            sources: FxHashMap::default(),
            free: FreeSymbols::new(),
        };
        finder.begin_lambda(body.root(), LambdaId::from_index(0), body.params().iter().copied());
        body.params().iter().for_each(|&p| finder.bind_symbols(body.ty(p.expr()), p, |_| true));
        finder
    }

    fn walk(&mut self) -> Result<(), PassError> {
        let body = self.body;
        let mut cursor = Cursor::with_regions(body);
        while let Some(step) = cursor.next(body) {
            RewriteError::unless_anf(self.cx, body, &cursor, step)?;
            match step {
                // Bindings and atoms.
                Step::Let(id) => {
                    let Some(Binding { var, value, .. }) = Binding::of(body, id) else { continue };
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
                    self.ty = body.ty(id);
                    self.use_atom(id, None);
                }
                // Nodes, and blocks with the variables that they bind.
                Step::Flat(id) => self.node(id),
                Step::Enter(id) => match body.expr(id) {
                    Expr::Lambda { lambda, .. } => {
                        // The closure and its global.
                        self.count(2, 1);
                        self.begin_lambda(id, lambda, body.lambda_params(lambda));
                    }
                    _ => self.count(1, 0),
                },
                Step::EnterBlock(_, kind) => {
                    // In A-normal form no block is an operand.
                    let link = Link::of_block(kind).unwrap_or(Link::Root);
                    let place = match kind {
                        BlockKind::Then(_) | BlockKind::Else(_) => self.blocks.outside,
                        _ => self.places.len() as u32 - 1,
                    };
                    let symbols = self.order.len();
                    self.blocks.enter_with(OpenBlock { place, outside: place, symbols, link });
                    if let BlockKind::Lambda(_) = kind {
                        self.lambda_symbols();
                    }
                }
                Step::ExitBlock(_, kind) => {
                    for symbol in self.order.drain(self.blocks.exit().symbols..) {
                        self.bound.remove(&symbol);
                    }
                    if let BlockKind::Lambda(_) = kind {
                        self.here = self.lambdas[self.here as usize].parent;
                        if self.is_symbolic {
                            self.seen.exit();
                        }
                    }
                }
                Step::Exit(id) => {
                    self.ty = body.ty(id);
                    self.mention_type(self.ty);
                }
                // Regions.
                Step::EnterRegion(_) => {
                    self.blocks.place = self.places.len() as u32;
                    self.places.push(self.here);
                }
                Step::ExitRegion(_) => self.blocks.place = self.blocks.outside,
                Step::Seen(_) => {}
            }
        }
        Ok(())
    }

    /// Adds nodes and operands to the size of the current lambda.
    #[inline]
    fn count(&mut self, nodes: usize, operands: usize) {
        let room = &mut self.lambdas[self.here as usize].room;
        room.nodes += nodes;
        room.operands += operands;
    }

    fn define(&mut self, var: VarId) {
        self.home[var.index()] = self.blocks.place;
    }

    /// Begins a lambda, whose block follows, or the function.
    fn begin_lambda(&mut self, node: ExprId, lambda: LambdaId, params: impl ExactSizeIterator<Item = VarId>) {
        let (scratch, number) = (self.scratch, self.lambdas.len() as u32);
        let var = self.naming.take();
        if let Some(var) = var {
            self.lambda_of[var.index()] = number;
        }
        self.lambdas.push(Lambda {
            node,
            lambda,
            var,
            name: var.and_then(|var| self.body.var_name(var)),
            link: self.blocks.link,
            parent: self.here,
            place: self.blocks.place,
            is_value: var.is_none(),
            captures: ScratchVec::new_in(scratch),
            closures: ScratchVec::new_in(scratch),
            passes_on: false,
            uses: ScratchVec::new_in(scratch),
            aliases: ScratchVec::new_in(scratch),
            symbols: ScratchVec::new_in(scratch),
            room: BodyRoom { nodes: params.len(), operands: 0, params: params.len() },
        });
        self.here = number;
        if self.is_symbolic {
            self.seen.enter();
        }
        params.for_each(|param| self.home[param.index()] = self.places.len() as u32);
        self.places.push(number);
    }

    fn bind(&mut self, id: ExprId) {
        let body = self.body;
        let Some(Binding { var, value, .. }) = Binding::of(body, id) else { return };
        match body.expr(value) {
            // It was recorded before its block.
            Expr::Lambda { .. } => return self.mention_type(body.ty(var.expr())),
            Expr::Var { .. } if self.lambda_of[value.index()] == HOST => {
                if let Some(&of) = self.aliases.get(&value) {
                    self.aliases.insert(var.expr(), of);
                }
            }
            Expr::Var { .. } | Expr::Global(_) | Expr::Op(_) => {
                self.aliases.insert(var.expr(), value);
            }
            node if self.is_symbolic => {
                if let Some(to) = self.cx.cast_type(node) {
                    self.bind_symbols(to, var, |_| true);
                }
            }
            _ => {}
        }
        self.define(var);
        self.mention_type(body.ty(var.expr()));
    }

    fn node(&mut self, id: ExprId) {
        let body = self.body;
        self.count(1, body.operands_of(id).len());
        let node = body.expr(id);
        for (i, &operand) in body.inputs(id).iter().enumerate() {
            self.use_atom(operand, (i == 0 && matches!(node, Expr::Call { .. })).then_some(id));
        }
        if let Expr::Call { attrs, .. } | Expr::CallOp { attrs, .. } = node {
            self.mention_attrs(attrs);
        }
        self.ty = body.ty(id);
        self.mention_type(self.ty);
    }

    #[inline]
    fn use_atom(&mut self, atom: ExprId, call: Option<ExprId>) {
        let home = self.home[atom.index()];
        let Expr::Var { .. } = self.body.expr(atom) else {
            // Any other atom is one node in each body that uses it.
            if home != self.here {
                self.home[atom.index()] = self.here;
                self.count(1, 0);
            }
            return;
        };
        if home != self.blocks.place && self.places[home as usize] != self.here {
            return self.use_from_outside(atom, call);
        }
        let h = self.lambda_of[atom.index()];
        if h != HOST && call.is_none() {
            self.lambdas[h as usize].is_value = true;
        }
    }

    fn use_from_outside(&mut self, atom: ExprId, call: Option<ExprId>) {
        let var = self.aliases.get(&atom).copied().unwrap_or(atom);
        if var != atom {
            self.lambdas[self.here as usize].aliases.push((atom, var));
        }
        // A global, an operator, or a variable without a binding.
        if !matches!(self.body.expr(var), Expr::Var { .. }) || self.home[var.index()] == NOWHERE {
            return;
        }
        let h = self.lambda_of[var.index()];
        if h != HOST {
            let lambda = &mut self.lambdas[h as usize];
            lambda.is_value |= call.is_none();
            lambda.uses.push(self.uses.len() as u32);
        }
        self.uses.push(Use { var, lambda: self.here, call });
        self.mention_type(self.body.ty(var));
    }

    // ---- Symbols ----

    fn lambda_symbols(&mut self) {
        if !self.is_symbolic {
            return;
        }
        let (body, cx) = (self.body, self.cx);
        let lambda = self.lambdas[self.here as usize].lambda;
        let own = body.lambda_symbols(lambda);
        for param in body.lambda_params(lambda) {
            self.bind_symbols(body.ty(param.expr()), param, |s| own.contains(&s));
        }
        for param in body.lambda_params(lambda) {
            let ty = body.ty(param.expr());
            self.mention_type(ty);
            for &s in self.free.of(&cx.types, ty).iter() {
                if let Some(&binder) = self.bound.get(&s)
                    && binder.owner == self.here
                {
                    self.binders.insert((self.here, s), binder);
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
        self.cx.types.for_each_binding_symbol(ty, |symbol| {
            if may_bind(symbol)
                && let Entry::Vacant(entry) = self.bound.entry(symbol)
            {
                entry.insert(SymbolBinder { owner: self.here, var });
                self.order.push(symbol);
            }
        });
    }

    #[inline]
    fn mention_type(&mut self, ty: TypeId) {
        if self.is_symbolic && self.here != HOST && self.cx.types.is_symbolic(ty) {
            self.mention_types(smallvec![ty]);
        }
    }

    fn mention_attrs(&mut self, attrs: AttrsId) {
        if self.is_symbolic && self.here != HOST {
            let mut found: SmallVec<[SymbolId; 4]> = SmallVec::new();
            self.seen.in_attrs(self.cx, attrs, |symbol| found.push(symbol));
            let mut types = self.mention(found);
            types.reverse();
            self.mention_types(types);
        }
    }

    /// Records the symbols of types, the last type first, and those in the types of their binders.
    fn mention_types(&mut self, mut types: SmallVec<[TypeId; 4]>) {
        while let Some(ty) = types.pop() {
            let mut found: SmallVec<[SymbolId; 4]> = SmallVec::new();
            self.seen.in_type(self.cx, ty, |symbol| found.push(symbol));
            types.extend(self.mention(found));
        }
    }

    /// Records symbols for the current lambda and the enclosing ones, up to the lambda that binds
    /// them. Returns the types of their binders.
    fn mention(&mut self, symbols: SmallVec<[SymbolId; 4]>) -> SmallVec<[TypeId; 4]> {
        let mut types = SmallVec::new();
        for symbol in symbols {
            let Some(&binder) = self.bound.get(&symbol) else { continue };
            let mut g = self.here;
            while g != binder.owner && self.name_symbol(g, symbol, binder) {
                g = self.lambdas[g as usize].parent;
            }
            if g != self.here {
                types.push(self.body.ty(binder.var.expr()));
            }
        }
        types
    }

    /// Records a symbol that a lambda names but does not bind. Returns true if it is new.
    fn name_symbol(&mut self, g: u32, symbol: SymbolId, binder: SymbolBinder) -> bool {
        let Entry::Vacant(entry) = self.binders.entry((g, symbol)) else { return false };
        entry.insert(binder);
        self.lambdas[g as usize].symbols.push(symbol);
        true
    }

    /// Records the symbols of the type of a variable that `g` captures, with the binders that they
    /// have in `h`.
    fn name_symbols_of(&mut self, g: u32, var: VarId, h: u32) {
        for &symbol in self.free.of(&self.cx.types, self.body.ty(var.expr())).iter() {
            if let Some(&binder) = self.binders.get(&(h, symbol)) {
                self.name_symbol(g, symbol, binder);
            }
        }
    }
}

// ---- The decision ----

impl Finder<'_, '_> {
    fn decide(&mut self) -> Result<(), PassError> {
        self.named = FxHashSet::with_capacity_and_hasher(self.uses.len(), FxBuildHasher);
        for i in 0..self.uses.len() {
            let var = self.uses[i].var;
            if let (HOST, Some(var)) = (self.lambda_of[var.index()], self.body.as_var(var)) {
                self.capture(i as u32, HOST, &[var]);
            }
        }
        for h in 1..self.lambdas.len() as u32 {
            self.lambdas[h as usize].captures.sort_by_key(|&(first, _)| first);
            self.close_over_symbols(h)?;
            if self.lambdas[h as usize].is_closure() {
                self.pass_on(h);
            }
        }
        Ok(())
    }

    /// Passes the captures of a closure, or the closure, on to the lambdas that name it, including
    /// itself.
    fn pass_on(&mut self, h: u32) {
        let lambda = &mut self.lambdas[h as usize];
        lambda.passes_on = lambda.captures.len() <= MOST_PASSED_ON;
        let passes_on = lambda.passes_on;
        let taken: SmallVec<[VarId; MOST_PASSED_ON]> =
            if passes_on { lambda.captures().collect() } else { lambda.var.into_iter().collect() };
        for i in 0..self.lambdas[h as usize].uses.len() {
            let i = self.lambdas[h as usize].uses[i];
            let Use { lambda, call, .. } = self.uses[i as usize];
            if call.is_none() && (passes_on || lambda == h) {
                self.close_at_beginning(lambda, h);
            }
            // A lambda inside of `h` that captures the closure gets it from `h`.
            if self.capture(i, h, &taken) == h && !passes_on && lambda != h {
                self.close_at_beginning(h, h);
            }
        }
    }

    /// Adds the variables `taken` to the captures of a use's lambda and the enclosing ones, up to
    /// the lambda that binds the variable, the lambda that is bound to it (`h`), or one that has it
    /// already. Returns the lambda at which it stopped.
    fn capture(&mut self, i: u32, h: u32, taken: &[VarId]) -> u32 {
        let Use { var, lambda: mut g, .. } = self.uses[i as usize];
        let owner = self.places[self.home[var.index()] as usize];
        while g != owner && g != h && self.named.insert((g, var)) {
            for &captured in taken {
                if captured.expr() == var {
                    self.add_capture(g, i, captured);
                } else if self.named.insert((g, captured.expr())) {
                    self.add_capture(g, i, captured);
                    self.name_symbols_of(g, captured, h);
                }
            }
            g = self.lambdas[g as usize].parent;
        }
        g
    }

    fn add_capture(&mut self, g: u32, first: u32, var: VarId) {
        let lambda = &mut self.lambdas[g as usize];
        lambda.captures.push((first, var));
        lambda.room.nodes += 1;
        lambda.room.params += 1;
        let parent = lambda.parent as usize;
        self.lambdas[parent].room.operands += 1;
    }

    fn close_at_beginning(&mut self, of: u32, h: u32) {
        // Lambdas are decided one after the other, so an existing entry is the last.
        if self.lambdas[of as usize].closures.last() == Some(&h) {
            return;
        }
        let operands = self.lambdas[h as usize].captures.len() + 1;
        let lambda = &mut self.lambdas[of as usize];
        lambda.closures.push(h);
        // A variable, a Let, a call and a global.
        lambda.room.nodes += 4;
        lambda.room.operands += operands;
    }

    /// Captures variables that bind symbols from outside which have no other binder.
    fn close_over_symbols(&mut self, h: u32) -> Result<(), PassError> {
        let Lambda { lambda, parent, ref symbols, .. } = self.lambdas[h as usize];
        if symbols.is_empty() {
            return Ok(());
        }
        // The type of a closure names the symbols of its captures, like the type of the lambda. The
        // type of a global binds its own.
        let mut first = 0;
        if !self.lambdas[h as usize].is_closure() && !self.lambdas[h as usize].is_value {
            let mut bound = FxHashSet::default();
            for param in self.body.lambda_params(lambda) {
                self.cx.types.for_each_binding_symbol(self.body.ty(param.expr()), |s| _ = bound.insert(s));
            }
            match symbols.iter().position(|s| !bound.contains(s)) {
                Some(missing) => first = missing,
                None => {
                    self.body.lambda_params(lambda).for_each(|param| self.add_source(h, param));
                    return Ok(());
                }
            }
        }
        for i in 0..self.lambdas[h as usize].captures.len() {
            let (_, var) = self.lambdas[h as usize].captures[i];
            self.add_source(h, var);
        }
        // The list grows by the symbols of the captured variables.
        let mut order = std::iter::once(first).chain(0..);
        while let Some(&symbol) = order.next().and_then(|i| self.lambdas[h as usize].symbols.get(i)) {
            if !self.sources.contains_key(&(h, symbol)) {
                let var = self.source(h, symbol)?;
                self.named.insert((h, var.expr()));
                self.add_capture(h, u32::MAX, var);
                self.add_source(h, var);
                self.name_symbols_of(h, var, parent);
            }
        }
        Ok(())
    }

    fn add_source(&mut self, h: u32, var: VarId) {
        self.cx.types.for_each_binding_symbol(self.body.ty(var.expr()), |symbol| {
            self.sources.entry((h, symbol)).or_insert(var);
        });
    }

    /// Returns the variable that binds a symbol in the lambda around `h`.
    fn source(&self, h: u32, symbol: SymbolId) -> Result<VarId, PassError> {
        let parent = self.lambdas[h as usize].parent;
        let binder = self.binders[&(h, symbol)];
        let var = match binder.owner == parent {
            true => Some(binder.var),
            false => self.sources.get(&(parent, symbol)).copied(),
        };
        let binds = |var: &VarId| {
            let mut is_bound = false;
            self.cx.types.for_each_binding_symbol(self.body.ty(var.expr()), |s| is_bound |= s == symbol);
            is_bound
        };
        var.filter(binds).ok_or_else(|| self.no_source(h, symbol, binder.var))
    }

    #[cold]
    fn no_source(&self, h: u32, symbol: SymbolId, binder: VarId) -> PassError {
        let cx = self.cx;
        let symbol = cx.names.get(cx.types.dims.symbol_name(symbol));
        let name = self.lambdas[h as usize].name.map_or("fn", |n| cx.names.get(n));
        let binder = self.body.var_name(binder).map_or("", |n| cx.names.get(n));
        let message =
            format!("`%{name}` names the symbolic dimension `{symbol}`, and no variable that it could capture has it");
        PassError::new(message)
            .with_help(format!("give `%{binder}`, which binds `{symbol}`, the type that its value has"))
    }
}

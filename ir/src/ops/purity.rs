//! Purity of functions and expressions: an impure one has effects that can be observed.
//!
//! The purity of an operator is in its row. A function is impure if its body may call something
//! impure, as the least fixpoint over the global functions, the `fn`s and the functions that are
//! values of attributes, so recursion alone makes nothing impure. A declaration is impure unless it
//! has the attribute `Pure=1`; a global that resolves to nothing is impure.
//!
//! A call has the purity of the function that its callee is known to be: a global, a `fn`, a
//! variable bound to one of these or to another such variable, or `make_closure` of one. Through
//! any other callee (a parameter, a field, the result of an If or of a call) it is impure. A call
//! of an operator is impure too if one of its attributes holds an impure function, since the
//! operator may call that. The evaluation of an impure `fn` to a closure is pure. An If is impure
//! if its condition or one of its branches is.
//!
//! All algorithms here are linear and use explicit stacks.

use smallvec::SmallVec;

use crate::core::body::Body;
use crate::core::context::{Context, GlobalTarget};
use crate::core::entity::{
    AttrId, AttrsId, EntityId, ExprId, FunctionAttrId, FunctionKey, GlobalId, IdSet, LambdaId, OpId,
};
use crate::core::expr::Expr;
use crate::core::function::Function;
use crate::core::module::Module;
use crate::tables::attrs::Attr;
use crate::walk::cursor::{BlockKind, Cursor, Step};
use crate::walk::sparse_set::SparseSet;

/// The purity of the global functions of a module, at the time when it was computed. By default, no
/// function is known to be pure.
#[derive(Clone, Default, Debug)]
pub struct Purity {
    pure_globals: IdSet<GlobalId>,
    impure_attrs: IdSet<AttrId>,
    /// The number of attribute values that were visited.
    attr_count: usize,
    /// True if one of them is or names a function.
    attrs_carry_functions: bool,
}

/// Two results are equal if they agree on everything that both visited.
impl PartialEq for Purity {
    fn eq(&self, other: &Self) -> bool {
        self.pure_globals == other.pure_globals && self.impure_attrs == other.impure_attrs
    }
}

impl Purity {
    /// Returns the least fixpoint over a module. Linear in its size.
    pub fn of_module(module: &Module) -> Purity {
        let scan = EffectScan::new(&module.cx);
        Purity::of_module_where(module, |_, f| scan.may_have_effects(&f.body))
    }

    /// Returns the purity as [`Purity::of_module`] does, if the functions that may have effects are
    /// known already. `may_have_effects` must return true for each function for which
    /// [`EffectScan::may_have_effects`] does, and may do so for more.
    pub fn of_module_where(module: &Module, may_have_effects: impl Fn(FunctionKey, &Function) -> bool) -> Purity {
        let cx = &module.cx;
        let scan = EffectScan::new(cx);
        let mut graph = Graph::new(&scan);
        let in_tables = graph.vertices as usize;
        for (global, entry) in cx.globals.iter() {
            let vertex = graph.global(global);
            match entry.target {
                GlobalTarget::Missing => graph.seeds.push(vertex),
                GlobalTarget::Declaration(key) => {
                    if !module.get(key).is_some_and(|f| f.states_pure(cx)) {
                        graph.seeds.push(vertex);
                    }
                }
                GlobalTarget::Definition(key) => match module.get(key) {
                    Some(f) if may_have_effects(key, f) => graph.add_body(cx, &f.body, vertex),
                    Some(_) => {}
                    None => graph.seeds.push(vertex),
                },
            }
        }
        for (id, function) in cx.function_attrs.iter() {
            let vertex = graph.function_attr(id);
            if scan.may_have_effects(&function.body) {
                graph.add_body(cx, &function.body, vertex);
            }
        }
        if graph.attrs_carry_functions {
            graph.add_attrs(cx);
        }
        let impure = propagate(graph.vertices as usize, &graph.edges, graph.seeds);

        let globals = cx.globals.len();
        let attrs = globals + cx.function_attrs.len()..in_tables;
        Purity {
            pure_globals: ids_where(&impure[..globals], false),
            impure_attrs: ids_where(&impure[attrs], true),
            attr_count: cx.attrs.len(),
            attrs_carry_functions: graph.attrs_carry_functions,
        }
    }

    /// Returns true if calls of a global cannot be observed. False for a global that was made after
    /// this was computed.
    #[inline]
    pub fn global_is_pure(&self, global: GlobalId) -> bool {
        self.pure_globals.contains(global)
    }

    /// Returns true if no attribute of a list holds an impure function.
    pub fn attrs_are_pure(&self, cx: &Context, attrs: AttrsId) -> bool {
        cx.attrs.list(attrs).iter().all(|&(_, value)| self.attr_is_pure(cx, value))
    }

    /// Returns true if a node is a call that can be observed, whatever its operands are, or that is
    /// not known to be pure: a call of anything but an operator or a global function is not known
    /// to be.
    ///
    /// Cost: one node.
    pub fn call_is_impure(&self, cx: &Context, body: &Body, id: ExprId) -> bool {
        match body.expr(id) {
            Expr::CallOp { op, attrs, .. } => {
                cx.ops.facts(op).is_impure() || attrs != cx.attrs.empty() && !self.attrs_are_pure(cx, attrs)
            }
            Expr::Call { operands, .. } => match body.operands(operands).first().map(|&callee| body.expr(callee)) {
                Some(Expr::Global(global)) => !self.global_is_pure(global),
                Some(Expr::Op(op)) => cx.ops.facts(op).is_impure(),
                _ => true,
            },
            _ => false,
        }
    }

    /// Returns a scan over the current tables. Linear in the attributes that were made since this
    /// was computed.
    fn scan<'a>(&self, cx: &'a Context) -> EffectScan<'a> {
        let new = (self.attr_count..cx.attrs.len()).map(|i| cx.attrs.get(AttrId::from_index(i)));
        let attrs_carry_functions = self.attrs_carry_functions || new.into_iter().any(is_function);
        EffectScan { cx, attrs_carry_functions }
    }

    fn attr_is_pure(&self, cx: &Context, attr: AttrId) -> bool {
        let mut stack: SmallVec<[AttrId; 4]> = SmallVec::from_slice(&[attr]);
        // Lists may share their items.
        let mut seen: SparseSet<AttrId> = SparseSet::of_part(cx.attrs.len());
        while let Some(attr) = stack.pop() {
            if attr.index() < self.attr_count {
                if self.impure_attrs.contains(attr) {
                    return false;
                }
                continue;
            }
            match cx.attrs.get(attr) {
                Attr::List(items) => stack.extend(items.iter().copied().filter(|&item| seen.insert(item))),
                // Functions that were made later are not known to be pure.
                Attr::Function(_) => return false,
                Attr::Global(g) if !self.global_is_pure(*g) => return false,
                _ => {}
            }
        }
        true
    }
}

/// The expressions of a body whose evaluation can be observed.
///
/// It describes the body at the time when it was made. [`BodyPurity::note`] updates it for nodes
/// that were appended or overwritten since.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BodyPurity {
    /// Calls that are impure themselves.
    calls: IdSet<ExprId>,
    /// Expressions that are impure, or include an impure expression that is evaluated with them.
    impure: IdSet<ExprId>,
    lambdas: IdSet<LambdaId>,
}

impl BodyPurity {
    /// Returns the purity of the expressions of a body. Linear in its size; one scan of the arena
    /// if nothing in it could be impure.
    pub fn new(cx: &Context, body: &Body, purity: &Purity) -> BodyPurity {
        let mut result = BodyPurity::default();
        let scan = purity.scan(cx);
        if !body.nodes().any(|expr| scan.may_be_impure(body, expr, |global| purity.global_is_pure(global))) {
            return result;
        }
        let mut calls: Vec<(Option<LambdaId>, ExprId, Callee)> = Vec::new();
        trace(cx, body, |unit, call, callee| {
            let known_pure = match callee {
                Callee::Global(g) => purity.global_is_pure(g),
                Callee::Attrs(attrs) => purity.attrs_are_pure(cx, attrs),
                _ => false,
            };
            if !known_pure {
                calls.push((unit, call, callee));
            }
        });
        if calls.is_empty() {
            return result;
        }
        let (mut edges, mut seeds) = (Vec::new(), Vec::new());
        for &(unit, _, callee) in &calls {
            let Some(unit) = unit else { continue };
            match callee {
                Callee::Lambda(l) => edges.push((l.index() as u32, unit.index() as u32)),
                _ => seeds.push(unit.index() as u32),
            }
        }
        let impure = propagate(body.lambda_count(), &edges, seeds);
        result.lambdas = ids_where(&impure, true);
        calls.retain(|&(_, _, callee)| !matches!(callee, Callee::Lambda(l) if !impure[l.index()]));
        if calls.is_empty() {
            return result;
        }
        result.calls = IdSet::with_capacity(body.len());
        result.impure = IdSet::with_capacity(body.len());
        for (_, call, _) in calls {
            result.calls.insert(call);
        }
        result.spread(body);
        result
    }

    /// Marks the expressions with which the impure calls are evaluated.
    fn spread(&mut self, body: &Body) {
        let mut cursor = Cursor::new(body);
        // The links of the open blocks, and the position of the first link of each.
        let (mut links, mut marks): (Vec<ExprId>, Vec<usize>) = (Vec::new(), Vec::new());
        while let Some(step) = cursor.next(body) {
            match step {
                Step::EnterBlock(..) => marks.push(links.len()),
                Step::Bound(link) => links.push(link),
                Step::Flat(id) => {
                    if self.calls.contains(id) {
                        self.impure.insert(id);
                    }
                }
                Step::Exit(id) => {
                    if self.calls.contains(id) || self.has_impure_part(body, id) {
                        self.impure.insert(id);
                    }
                }
                Step::ExitBlock(start, _) => {
                    let mark = marks.pop().expect("blocks are left in the order in which they are entered");
                    let last = links[mark..].last().copied();
                    let tail = match last.map(|l| body.expr(l)) {
                        Some(Expr::Let { body, .. }) => body,
                        _ => start,
                    };
                    let mut impure = self.impure.contains(tail);
                    for link in links.drain(mark..).rev() {
                        let Expr::Let { value, .. } = body.expr(link) else { continue };
                        impure |= self.impure.contains(value);
                        if impure {
                            self.impure.insert(link);
                        }
                    }
                }
                Step::Let(_) | Step::Atom(_) | Step::Enter(_) | Step::Seen(_) => {}
            }
        }
    }

    /// Returns true if a node other than a Let has an impure part that is evaluated with it.
    fn has_impure_part(&self, body: &Body, id: ExprId) -> bool {
        !matches!(body.expr(id), Expr::Lambda { .. }) && body.parts(id).any(|part| self.impure.contains(part))
    }

    /// Returns true if evaluating a node can be observed. For a Let, that includes the rest of its
    /// chain.
    #[inline]
    pub fn is_impure(&self, id: ExprId) -> bool {
        self.impure.contains(id)
    }

    /// Returns true if a node is itself a call that can be observed, whatever its operands are.
    #[inline]
    pub fn is_impure_call(&self, id: ExprId) -> bool {
        self.calls.contains(id)
    }

    /// Returns true if calls of a `fn` can be observed.
    #[inline]
    pub fn is_impure_lambda(&self, lambda: LambdaId) -> bool {
        self.lambdas.contains(lambda)
    }

    /// Updates the entry of a node other than a Let that was appended or overwritten since. Its
    /// parts must be updated before it; its parents are not updated.
    ///
    /// A call of a variable is impure, whatever the variable is bound to.
    ///
    /// Cost: one node.
    pub fn note(&mut self, cx: &Context, body: &Body, purity: &Purity, id: ExprId) {
        let callee = match body.expr(id) {
            Expr::Call { operands, .. } => body.operands(operands).first().map(|&callee| body.expr(callee)),
            _ => None,
        };
        let own = match callee {
            Some(Expr::Lambda { lambda, .. }) => self.lambdas.contains(lambda),
            _ => purity.call_is_impure(cx, body, id),
        };
        let all = own || self.has_impure_part(body, id);
        for (set, holds) in [(&mut self.calls, own), (&mut self.impure, all)] {
            if holds {
                set.insert(id);
            } else {
                set.remove(id);
            }
        }
    }
}

/// The expressions of a body in A-normal form whose evaluation can be observed, computed on demand.
///
/// Calls of operators and of global functions are looked up one by one. The first query about
/// another expression makes a [`BodyPurity`], which describes the body at that time. A program that
/// consists only of operators never needs one.
#[derive(Clone, Debug)]
pub struct LazyBodyPurity<'a> {
    purity: &'a Purity,
    body: Option<BodyPurity>,
}

impl<'a> LazyBodyPurity<'a> {
    /// Returns a purity without computed results.
    pub fn new(purity: &'a Purity) -> LazyBodyPurity<'a> {
        LazyBodyPurity { purity, body: None }
    }

    /// Returns true if evaluating an expression whose operands are atoms can be observed. The
    /// evaluation of a lambda to a closure cannot.
    #[inline]
    pub fn is_impure(&mut self, cx: &Context, body: &Body, id: ExprId) -> bool {
        match body.expr(id) {
            Expr::CallOp { .. } => self.purity.call_is_impure(cx, body, id),
            Expr::Call { .. } | Expr::If { .. } | Expr::Let { .. } => self.is_impure_block(cx, body, id),
            _ => false,
        }
    }

    fn is_impure_block(&mut self, cx: &Context, body: &Body, id: ExprId) -> bool {
        if let Expr::Call { operands, .. } = body.expr(id)
            && let Some(&callee) = body.operands(operands).first()
            && let Expr::Global(global) = body.expr(callee)
        {
            return !self.purity.global_is_pure(global);
        }
        self.body.get_or_insert_with(|| BodyPurity::new(cx, body, self.purity)).is_impure(id)
    }
}

/// The function that a call may run.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Callee {
    /// Any function.
    Unknown,
    Global(GlobalId),
    Lambda(LambdaId),
    /// An operator as a value.
    Op(OpId),
    /// The functions in the attributes of a pure operator.
    Attrs(AttrsId),
}

/// Returns true if some attribute value is or names a function.
pub(crate) fn carries_functions(cx: &Context) -> bool {
    !cx.function_attrs.is_empty() || cx.attrs.iter().any(|(_, a)| is_function(a))
}

fn is_function(attr: &Attr) -> bool {
    matches!(attr, Attr::Global(_) | Attr::Function(_))
}

/// A check, by one scan of an arena, if a body only calls operators whose rows state that they are
/// pure.
#[derive(Copy, Clone)]
pub struct EffectScan<'a> {
    cx: &'a Context,
    attrs_carry_functions: bool,
}

impl<'a> EffectScan<'a> {
    /// Returns a scan for bodies over these tables. Linear in the attributes.
    pub fn new(cx: &'a Context) -> EffectScan<'a> {
        EffectScan { cx, attrs_carry_functions: carries_functions(cx) }
    }

    /// Returns true if a body contains other calls. Only an analysis of the whole module can tell
    /// if those can be observed.
    pub fn may_have_effects(&self, body: &Body) -> bool {
        body.nodes().any(|expr| self.may_be_impure(body, expr, |_| false))
    }

    /// Returns false if an expression is pure whatever its parts are. `is_pure` tells the purity of
    /// global functions.
    #[inline]
    fn may_be_impure(&self, body: &Body, expr: Expr, is_pure: impl Fn(GlobalId) -> bool) -> bool {
        match expr {
            Expr::Call { operands, .. } => match body.operands(operands).first().map(|&callee| body.expr(callee)) {
                Some(Expr::Global(global)) => !is_pure(global),
                _ => true,
            },
            Expr::CallOp { op, attrs, .. } => {
                self.cx.ops.facts(op).is_impure() || self.attrs_carry_functions && attrs != self.cx.attrs.empty()
            }
            _ => false,
        }
    }
}

/// Reports the calls of a body that are not of pure operators: the `fn` whose block contains the
/// call (`None` for the function's own block), the call, and the function that it may run.
fn trace(cx: &Context, body: &Body, mut report: impl FnMut(Option<LambdaId>, ExprId, Callee)) {
    // A variable stands for the function that its value names, if that is known.
    let make_closure = cx.ops.find("make_closure");
    let carries = carries_functions(cx);
    let empty = cx.attrs.empty();
    let mut known: Vec<Callee> = vec![Callee::Unknown; body.len()];
    let mut units: Vec<LambdaId> = Vec::new();
    let atom = |known: &[Callee], id: ExprId| match body.expr(id) {
        Expr::Var { .. } => known[id.index()],
        Expr::Global(g) => Callee::Global(g),
        Expr::Op(op) => Callee::Op(op),
        Expr::Lambda { lambda, .. } => Callee::Lambda(lambda),
        _ => Callee::Unknown,
    };
    let resolve = |known: &[Callee], id: ExprId| {
        let tail = body.tail(id);
        match body.expr(tail) {
            Expr::CallOp { op, operands, .. } if Some(op) == make_closure => {
                body.operands(operands).first().map_or(Callee::Unknown, |&f| atom(known, f))
            }
            _ => atom(known, tail),
        }
    };
    // Walk the body, and report each call within the innermost `fn`.
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Let(link) => {
                if let Expr::Let { var, value, .. } = body.expr(link)
                    && let Expr::Lambda { lambda, .. } = body.expr(value)
                {
                    known[var.index()] = Callee::Lambda(lambda);
                }
            }
            Step::Bound(link) => {
                if let Expr::Let { var, value, .. } = body.expr(link) {
                    known[var.index()] = resolve(&known, value);
                }
            }
            Step::EnterBlock(_, BlockKind::Lambda(id)) => {
                if let Expr::Lambda { lambda, .. } = body.expr(id) {
                    units.push(lambda);
                }
            }
            Step::ExitBlock(_, BlockKind::Lambda(_)) => {
                units.pop();
            }
            Step::Flat(id) | Step::Exit(id) => {
                let callee = match body.expr(id) {
                    Expr::CallOp { op, .. } if cx.ops.facts(op).is_impure() => Callee::Unknown,
                    Expr::CallOp { attrs, .. } if carries && attrs != empty => Callee::Attrs(attrs),
                    Expr::Call { operands, .. } => {
                        match body.operands(operands).first().map_or(Callee::Unknown, |&f| resolve(&known, f)) {
                            Callee::Op(op) if !cx.ops.facts(op).is_impure() => continue,
                            Callee::Op(_) => Callee::Unknown,
                            callee => callee,
                        }
                    }
                    _ => continue,
                };
                report(units.last().copied(), id, callee);
            }
            Step::EnterBlock(..) | Step::ExitBlock(..) | Step::Atom(_) | Step::Enter(_) | Step::Seen(_) => {}
        }
    }
}

/// The call graph for purity. Vertices: globals, functions in attributes, attribute values (if any
/// hold functions), and the `fn`s of each body.
struct Graph {
    globals: u32,
    function_attrs: u32,
    vertices: u32,
    attrs_carry_functions: bool,
    /// Edges from a callee to its caller.
    edges: Vec<(u32, u32)>,
    /// Vertices that are impure by themselves.
    seeds: Vec<u32>,
}

impl Graph {
    fn new(scan: &EffectScan<'_>) -> Graph {
        let EffectScan { cx, attrs_carry_functions } = *scan;
        let (globals, function_attrs) = (cx.globals.len() as u32, cx.function_attrs.len() as u32);
        let attrs = if attrs_carry_functions { cx.attrs.len() as u32 } else { 0 };
        Graph {
            globals,
            function_attrs,
            vertices: globals + function_attrs + attrs,
            attrs_carry_functions,
            edges: Vec::new(),
            seeds: Vec::new(),
        }
    }

    fn global(&self, id: GlobalId) -> u32 {
        id.index() as u32
    }

    fn function_attr(&self, id: FunctionAttrId) -> u32 {
        self.globals + id.index() as u32
    }

    fn attr(&self, id: AttrId) -> u32 {
        self.globals + self.function_attrs + id.index() as u32
    }

    fn add_body(&mut self, cx: &Context, body: &Body, vertex: u32) {
        let base = self.vertices;
        self.vertices += body.lambda_count() as u32;
        trace(cx, body, |unit, _, callee| {
            let caller = unit.map_or(vertex, |l| base + l.index() as u32);
            match callee {
                Callee::Unknown | Callee::Op(_) => self.seeds.push(caller),
                Callee::Global(g) => self.edges.push((self.global(g), caller)),
                Callee::Lambda(l) => self.edges.push((base + l.index() as u32, caller)),
                Callee::Attrs(attrs) => {
                    for &(_, value) in cx.attrs.list(attrs) {
                        self.edges.push((self.attr(value), caller));
                    }
                }
            }
        });
    }

    fn add_attrs(&mut self, cx: &Context) {
        for (id, value) in cx.attrs.iter() {
            let to = self.attr(id);
            match value {
                Attr::List(items) => {
                    for &item in items {
                        self.edges.push((self.attr(item), to));
                    }
                }
                Attr::Function(f) => self.edges.push((self.function_attr(*f), to)),
                Attr::Global(g) => self.edges.push((self.global(*g), to)),
                _ => {}
            }
        }
    }
}

/// Returns the ids for which `holds` is `wanted`.
fn ids_where<K: EntityId>(holds: &[bool], wanted: bool) -> IdSet<K> {
    let mut ids = IdSet::with_capacity(holds.len());
    for (i, _) in holds.iter().enumerate().filter(|(_, holds)| **holds == wanted) {
        ids.insert(K::from_index(i));
    }
    ids
}

/// Returns for each vertex if a seed reaches it along the edges.
fn propagate(vertices: usize, edges: &[(u32, u32)], seeds: Vec<u32>) -> Vec<bool> {
    let mut reached = vec![false; vertices];
    if seeds.is_empty() {
        return reached;
    }
    // The edges sorted by source: `targets[starts[v]..starts[v + 1]]`.
    let mut starts = vec![0u32; vertices + 1];
    for &(from, _) in edges {
        starts[from as usize + 1] += 1;
    }
    for v in 0..vertices {
        starts[v + 1] += starts[v];
    }
    let mut next = starts.clone();
    let mut targets = vec![0u32; edges.len()];
    for &(from, to) in edges {
        targets[next[from as usize] as usize] = to;
        next[from as usize] += 1;
    }
    let mut work = seeds;
    while let Some(v) = work.pop() {
        let v = v as usize;
        if std::mem::replace(&mut reached[v], true) {
            continue;
        }
        work.extend(targets[starts[v] as usize..starts[v + 1] as usize].iter().filter(|&&t| !reached[t as usize]));
    }
    reached
}

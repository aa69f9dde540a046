//! The data flow in the dataflow regions of a function.

use anfora_ir::bumpalo::Bump;
use anfora_ir::{
    BlockKind, Body, Context, Cursor, Dim, EntityId, Expr, ExprId, FusionPattern, GlobalId, IdSet, OpId, PerBlock,
    ScratchVec, Step, SymbolId, TypeId,
};
use anfora_visit::{Binding, FlowEdge, FlowGraph, Link, chain};
use rustc_hash::FxHashMap;

/// Kinds of nodes and labels of edges: [`FusionPattern`] as a number.
pub(super) const ELEM_WISE: u8 = FusionPattern::ElemWise as u8;
pub(super) const BROADCAST: u8 = FusionPattern::Broadcast as u8;
pub(super) const INJECTIVE: u8 = FusionPattern::Injective as u8;
pub(super) const COMM_REDUCE: u8 = FusionPattern::CommReduce as u8;
pub(super) const OUT_ELEM_WISE: u8 = FusionPattern::OutEWiseFusable as u8;
pub(super) const TUPLE: u8 = FusionPattern::Tuple as u8;
pub(super) const OPAQUE: u8 = FusionPattern::Opaque as u8;

/// Returns the fusion pattern of a call of an operator, as a number.
#[inline]
pub(super) fn pattern_of(cx: &Context, body: &Body, op: OpId, call: ExprId) -> u8 {
    cx.ops.facts(op).fusion().unwrap_or_else(|| cx.ops.get(op).fusion_of(cx, body, call)) as u8
}

/// Returns the kind of a call; `None` for another value. `declared` has the kinds of calls of
/// declared functions.
pub(super) fn kind_of_call(cx: &Context, body: &Body, declared: &FxHashMap<GlobalId, u8>, value: ExprId) -> Option<u8> {
    match body.expr(value) {
        Expr::CallOp { op, .. } => Some(pattern_of(cx, body, op, value)),
        Expr::Call { .. } => Some(pattern_of_call(cx, body, declared, value)),
        _ => None,
    }
}

/// Returns the kind of a call of a function. Its extents have to be known from its type.
fn pattern_of_call(cx: &Context, body: &Body, declared: &FxHashMap<GlobalId, u8>, call: ExprId) -> u8 {
    match body.inputs(call).first().map(|&callee| body.expr(callee)) {
        Some(Expr::Global(global)) if cx.types.has_known_extents(body.ty(call)) => {
            declared.get(&global).copied().unwrap_or(OPAQUE)
        }
        _ => OPAQUE,
    }
}

/// A run of Lets.
#[derive(Copy, Clone)]
pub(super) struct Region {
    /// The link that holds its first Let.
    pub(super) link: Link,
    first: ExprId,
    /// The range of its nodes; before they are numbered, it starts from 0.
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A variable that has a symbol alone as a dimension of its type.
#[derive(Copy, Clone)]
struct Binder {
    var: ExprId,
    /// The region in which it is visible, numbered from 1; 0 if it is visible in all.
    region: u32,
}

/// The bindings of all dataflow regions of a function, numbered region by region, each region in
/// program order.
///
/// An edge leads from a node to each later node that has its variable as an operand, once even if
/// there are several such operands. A variable with any other use (outside its region, in a lambda,
/// under an operand that is not an atom, or in a shared value) escapes: its node has no edges. The
/// symbols that a `match_cast` binds have no edges: a `match_cast` is never in a group and stays in
/// place, and bindings that mention its symbols only move down.
pub(super) struct Graph<'b> {
    /// The Let of each node.
    pub(super) lets: ScratchVec<'b, ExprId>,
    pub(super) kinds: ScratchVec<'b, u8>,
    pub(super) regions: ScratchVec<'b, Region>,
    escapes: ScratchVec<'b, bool>,
    /// The edges from each node to the nodes that use its value.
    pub(super) flow: FlowGraph,
    /// By expression: for a variable of a region, the number of its node plus one.
    node_of: &'b mut [u32],
    binders: FxHashMap<SymbolId, Binder>,
}

impl<'b> Graph<'b> {
    /// Returns the graph of a body; `None` if it has no region.
    ///
    /// `declared` has the kinds of calls of declared functions; the others are opaque.
    pub(super) fn new(
        cx: &Context,
        body: &Body,
        declared: &FxHashMap<GlobalId, u8>,
        scratch: &'b Bump,
    ) -> Option<Graph<'b>> {
        let in_region = |expr| matches!(expr, Expr::Let { flags, .. } if flags.is_dataflow());
        if !body.exprs().any(|(_, expr)| in_region(expr)) {
            return None;
        }
        let found = Regions::find(cx, body, scratch);
        let nodes = found.regions.iter().map(|region| region.end as usize).sum();
        let mut graph = Graph {
            lets: ScratchVec::with_capacity_in(nodes, scratch),
            kinds: ScratchVec::with_capacity_in(nodes, scratch),
            regions: found.regions,
            escapes: ScratchVec::with_capacity_in(nodes, scratch),
            flow: FlowGraph::new(0, &[]),
            node_of: found.home,
            binders: found.binders,
        };
        graph.number(body, &found.escaping);
        let uses = graph.look_at_values(cx, body, declared, &found.shared, scratch);
        graph.flow = FlowGraph::new(graph.len(), &uses);
        Some(graph)
    }

    pub(super) fn len(&self) -> usize {
        self.lets.len()
    }

    /// Returns true if a node's value is used by another node or elsewhere.
    pub(super) fn is_used(&self, node: u32) -> bool {
        self.escapes[node as usize] || !self.flow.edges(node).is_empty()
    }

    /// Returns true if the variable of a node has a use other than as an operand of a binding of
    /// its region.
    pub(super) fn escapes(&self, node: u32) -> bool {
        self.escapes[node as usize]
    }

    /// Returns the node of a variable.
    #[inline]
    pub(super) fn node(&self, id: ExprId) -> Option<u32> {
        self.node_of[id.index()].checked_sub(1)
    }

    /// Returns a variable that is visible in a region and binds a symbol, by having it alone as a
    /// dimension of its type.
    pub(super) fn binder(&self, symbol: SymbolId, region: usize) -> Option<ExprId> {
        let binder = self.binders.get(&symbol)?;
        (binder.region == 0 || binder.region as usize == region + 1).then_some(binder.var)
    }

    fn number(&mut self, body: &Body, escaping: &IdSet<ExprId>) {
        for region in &mut self.regions {
            region.start = self.lets.len() as u32;
            for Binding { id, var, .. } in chain(body, region.first).take(region.end as usize) {
                self.lets.push(id);
                self.escapes.push(!body.is_dataflow_var(var) || escaping.contains(var.expr()));
                self.node_of[var.index()] = self.lets.len() as u32;
            }
            region.end = self.lets.len() as u32;
        }
    }

    /// Finds the kind of each node, and returns the edges from its operands, by user.
    fn look_at_values(
        &mut self,
        cx: &Context,
        body: &Body,
        declared: &FxHashMap<GlobalId, u8>,
        shared: &IdSet<ExprId>,
        scratch: &'b Bump,
    ) -> ScratchVec<'b, (u32, FlowEdge)> {
        // By node: the last user that had it as an operand, plus one. Several equal operands of a
        // user count once.
        let latest: &mut [u32] = scratch.alloc_slice_fill_copy(self.lets.len(), 0);
        let mut uses = ScratchVec::with_capacity_in(self.lets.len() * 2, scratch);
        for i in 0..self.lets.len() {
            let Expr::Let { value, .. } = body.expr(self.lets[i]) else { unreachable!("a node is a Let") };
            let expr = body.expr(value);
            let (mut kind, operands): (u8, &[ExprId]) = match expr {
                Expr::CallOp { op, .. } => (pattern_of(cx, body, op, value), body.inputs(value)),
                Expr::Tuple(_) => (TUPLE, body.inputs(value)),
                Expr::Proj { .. } => (INJECTIVE, body.inputs(value)),
                Expr::Call { .. } => (pattern_of_call(cx, body, declared, value), body.inputs(value)),
                Expr::Var { .. } => (OPAQUE, std::slice::from_ref(&value)),
                _ => (OPAQUE, &[]),
            };
            // A value that is shared, or that has an operand which is not an atom, stays in place.
            if kind != OPAQUE && (shared.contains(value) || !operands.iter().all(|&o| body.expr(o).is_atom())) {
                kind = OPAQUE;
            }
            self.kinds.push(kind);
            for &operand in operands {
                let Some(used) = self.node(operand) else { continue };
                let user = i as u32 + 1;
                if self.escapes[used as usize] || std::mem::replace(&mut latest[used as usize], user) == user {
                    continue;
                }
                let label = match kind {
                    BROADCAST if has_shape_of(cx, body.ty(operand), body.ty(value)) => ELEM_WISE,
                    TUPLE if cx.types.as_tensor(body.ty(operand)).is_some() => INJECTIVE,
                    TUPLE => OPAQUE,
                    kind => kind,
                };
                uses.push((used, FlowEdge { to: i as u32, label }));
            }
        }
        uses
    }
}

/// Returns true if an operand has exactly the shape of the result, so that broadcasting repeats
/// none of its elements.
fn has_shape_of(cx: &Context, operand: TypeId, result: TypeId) -> bool {
    let shape = |ty| cx.types.as_tensor(ty).and_then(|t| t.shape.as_ref());
    let known = |d: &_| !matches!(cx.types.dims.get(*d), Dim::Unknown);
    match (shape(operand), shape(result)) {
        (Some(a), Some(b)) => a == b && a.iter().all(known),
        _ => false,
    }
}

/// The facts about the regions of a body, found by one walk.
struct Regions<'b> {
    regions: ScratchVec<'b, Region>,
    /// By variable: the number of its region plus one.
    home: &'b mut [u32],
    /// Variables of regions with a use other than as an operand of a binding of their region.
    escaping: IdSet<ExprId>,
    /// Nodes with several users.
    shared: IdSet<ExprId>,
    binders: FxHashMap<SymbolId, Binder>,
}

/// The present place in one block.
#[derive(Default)]
struct Place {
    /// The link that holds the next Let; `None` at the beginning of a block that is an operand.
    link: Option<Link>,
    /// The number of the current region plus one; 0 outside of regions.
    region: u32,
    value: Option<ExprId>,
}

impl<'b> Regions<'b> {
    fn find(cx: &Context, body: &Body, scratch: &'b Bump) -> Regions<'b> {
        let mut found = Regions {
            regions: ScratchVec::new_in(scratch),
            home: scratch.alloc_slice_fill_copy(body.len(), 0),
            escaping: IdSet::with_capacity(body.len()),
            shared: IdSet::with_capacity(0),
            binders: FxHashMap::default(),
        };
        // The parameters bind symbols outside of all regions.
        for &param in body.params() {
            found.binds(cx, body, param.expr(), 0);
        }
        let mut here: PerBlock<Place> = PerBlock::default();
        let mut cursor = Cursor::with_regions(body);
        while let Some(step) = cursor.next(body) {
            match step {
                // Blocks.
                Step::EnterBlock(_, kind) => {
                    here.enter_with(Place { link: Link::of_block(kind), ..Place::default() });
                    if let BlockKind::Lambda(id) = kind
                        && let Expr::Lambda { lambda, .. } = body.expr(id)
                        && !body.lambda_symbols(lambda).is_empty()
                    {
                        body.lambda_params(lambda).for_each(|param| found.binds(cx, body, param.expr(), 0));
                    }
                }
                Step::ExitBlock(..) => {
                    here.exit();
                }
                // Bindings and regions.
                Step::Let(id) => {
                    let Some(Binding { var, value, .. }) = Binding::of(body, id) else { continue };
                    (here.value, here.link) = (Some(value), Some(Link::Rest(id)));
                    found.home[var.index()] = here.region;
                    if let Some(region) = found.regions.get_mut((here.region as usize).wrapping_sub(1)) {
                        region.end += 1;
                    }
                }
                Step::EnterRegion(first) => {
                    // In a block that is an operand, there is no link for another first Let: its
                    // first region stays as it is.
                    if let Some(link) = here.link {
                        found.regions.push(Region { link, first, start: 0, end: 0 });
                        here.region = found.regions.len() as u32;
                    }
                }
                Step::Bound(id) => {
                    here.value = None;
                    if let Some(Binding { var, value, .. }) = Binding::of(body, id)
                        && let Expr::CallOp { op, .. } = body.expr(value)
                        && cx.ops.facts(op).is_match_cast()
                    {
                        let region = if body.is_dataflow_var(var) { here.region } else { 0 };
                        found.binds(cx, body, var.expr(), region);
                    }
                }
                Step::ExitRegion(_) => here.region = 0,
                // Uses.
                Step::Atom(id) => found.uses(&here, id, id),
                Step::Flat(id) => body.inputs(id).iter().for_each(|&o| found.uses(&here, id, o)),
                Step::Seen(id) if found.shared.insert(id) => {
                    for &operand in body.inputs(id) {
                        if found.home[operand.index()] != 0 {
                            found.escaping.insert(operand);
                        }
                    }
                }
                Step::Enter(_) | Step::Exit(_) | Step::Seen(_) => {}
            }
        }
        found
    }

    /// Visits a use by `user`, which is the atom itself if it is not an operand.
    #[inline]
    fn uses(&mut self, here: &Place, user: ExprId, operand: ExprId) {
        let home = self.home[operand.index()];
        if home != 0 && (here.value != Some(user) || here.region != home) {
            self.escaping.insert(operand);
        }
    }

    fn binds(&mut self, cx: &Context, body: &Body, var: ExprId, region: u32) {
        cx.types.for_each_binding_symbol(body.ty(var), |symbol| {
            self.binders.entry(symbol).or_insert(Binder { var, region });
        });
    }
}

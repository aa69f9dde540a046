//! The body of a function: its expressions, in typed arenas, behind one door.

mod copies;
mod ids;
mod parts;
mod shared_edits;
mod taking_back;
mod translate;
mod watching;

pub use parts::Parts;
pub(crate) use shared_edits::EditedByHand;
pub use shared_edits::SharedEdits;

use rustc_hash::FxHashMap;

use crate::core::context::Context;
use crate::core::entity::{
    Arena, AttrsId, EntityId, ExprId, GlobalId, LambdaId, LiteralId, NameId, OpId, SideTable, SymbolId, TypeId,
};
use crate::core::expr::{Expr, LambdaData, OperandList, VarFlags, VarId};
use crate::edit::journal::Journal;
use crate::edit::stamp::{Revisions, Stamp};
use crate::tables::types::Types;
use crate::walk::link_watch::LinkWatch;
use crate::work;

/// Where an expression starts in the source text, as a byte offset. How far it reaches is found
/// again from the text.
pub type Span = Option<u32>;

const NO_SPAN: u32 = u32::MAX;

/// The expressions of one function.
///
/// Nodes are only ever appended, and links overwritten; both go through the methods here, which
/// note what they overwrite while a journal is open ([`Body::begin_journal`]), so that an edit can
/// be taken back. Nodes that nothing links to any more stay until
/// [`compact`](crate::compact::compact_body).
#[derive(Clone)]
pub struct Body {
    exprs: Arena<ExprId, Expr>,
    types: Vec<TypeId>,
    spans: Vec<u32>,
    operands: Vec<ExprId>,
    params: Vec<VarId>,
    root: ExprId,
    generation: u32,
    /// The one node of each atom that many others use. A body of few nodes has no such table: it is
    /// searched.
    leaves: Option<Box<FxHashMap<Leaf, ExprId>>>,
    /// What few bodies have.
    extras: Option<Box<Extras>>,
    revisions: Revisions,
    journal: Option<Box<Journal>>,
    watch: LinkWatch,
}

/// `fn`s and metadata.
#[derive(Clone, Default)]
struct Extras {
    lambdas: Arena<LambdaId, LambdaData>,
    /// The symbolic dimensions of a `fn`'s own: bound by its parameters, or by a `match_cast` in
    /// its block.
    lambda_symbols: FxHashMap<LambdaId, Box<[SymbolId]>>,
    /// What tools carry along with a binding, by its variable (or, for a graph binding, by its
    /// node).
    meta: FxHashMap<ExprId, AttrsId>,
}

/// A body of up to so many nodes is searched for an atom: small functions, of which there may be
/// many, take no memory for a table.
const SEARCHED: usize = 32;

/// Of the id of a `fn`.
const HAS_LAMBDA: &str = "an id is of what the body has";

/// How much there is going to be in a body.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct BodyRoom {
    /// Nodes, variables and parameters included.
    pub nodes: usize,
    /// Entries in lists of operands.
    pub operands: usize,
    /// Parameters of the function.
    pub params: usize,
}

/// The atoms of which a body has one node each.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Leaf {
    Literal(LiteralId),
    Global(GlobalId),
    Op(OpId),
    None,
}

impl Leaf {
    #[inline]
    pub(crate) fn of(expr: Expr) -> Option<Leaf> {
        match expr {
            Expr::Literal(l) => Some(Leaf::Literal(l)),
            Expr::Global(g) => Some(Leaf::Global(g)),
            Expr::Op(op) => Some(Leaf::Op(op)),
            Expr::None => Some(Leaf::None),
            _ => None,
        }
    }
}

/// In a line: how much there is of it.
impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body")
            .field("exprs", &self.exprs.len())
            .field("params", &self.params)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl Body {
    /// A body that returns `()`.
    ///
    /// Cost: one node.
    pub fn new(types: &Types) -> Body {
        Body::with_room(types, BodyRoom::default())
    }

    /// A body that returns `()`, with room for what is going to be appended to it: each arena takes
    /// one allocation then.
    ///
    /// Cost: one node.
    pub fn with_room(types: &Types, room: BodyRoom) -> Body {
        let mut body = Body::hollow(room.nodes + 1, room.operands);
        body.params.reserve_exact(room.params);
        body.push(Expr::Tuple(OperandList::EMPTY), types.unit(), None);
        body
    }

    /// A body without any node, not even what it returns, which has to be appended: for rebuilding
    /// one.
    pub(crate) fn hollow(nodes: usize, operands: usize) -> Body {
        let mut body = Body {
            exprs: Arena::new(),
            types: Vec::with_capacity(nodes),
            spans: Vec::with_capacity(nodes),
            operands: Vec::with_capacity(operands),
            params: Vec::new(),
            root: ExprId::from_index(0),
            generation: 0,
            leaves: None,
            extras: None,
            revisions: Revisions::default(),
            journal: None,
            watch: LinkWatch::default(),
        };
        body.exprs.reserve_exact(nodes);
        body
    }

    // ---- Looking ----

    /// The expression behind an id.
    ///
    /// Cost: one node.
    #[inline(always)]
    #[track_caller]
    pub fn expr(&self, id: ExprId) -> Expr {
        self.check_id(id);
        self.exprs[id]
    }

    /// The stored type of an expression other than a Let (whose slot means nothing; see
    /// [`Body::type_of`]).
    ///
    /// Cost: one node.
    #[inline(always)]
    pub fn ty(&self, id: ExprId) -> TypeId {
        work::tick();
        self.types[id.index()]
    }

    /// The type of an expression; that of a Let is that of the tail of its chain, which is walked
    /// to.
    pub fn type_of(&self, id: ExprId) -> TypeId {
        self.ty(self.tail(id))
    }

    /// The tail of a Let chain: the first expression along its bodies that is not a Let.
    pub fn tail(&self, mut id: ExprId) -> ExprId {
        while let Expr::Let { body, .. } = self.expr(id) {
            id = body;
        }
        id
    }

    /// Where an expression starts in the source. A constant, which stands for all that use it,
    /// starts nowhere.
    ///
    /// Cost: one node.
    pub fn span(&self, id: ExprId) -> Span {
        if let Some(Expr::Literal(_)) = self.exprs.get(id) {
            return None;
        }
        self.spans.get(id.index()).copied().filter(|&s| s != NO_SPAN)
    }

    /// The operands of a list.
    ///
    /// Cost: one node.
    #[inline(always)]
    pub fn operands(&self, list: OperandList) -> &[ExprId] {
        work::tick_n(list.len());
        &self.operands[list.start as usize..list.start as usize + list.len()]
    }

    /// One operand of a list.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If the list has no more than `index`.
    #[inline(always)]
    pub fn operand(&self, list: OperandList, index: usize) -> ExprId {
        assert!(index < list.len(), "operand {index} of {}", list.len());
        work::tick();
        self.operands[list.start as usize + index]
    }

    /// The operands of a call (of a function value: it first), the fields of a tuple; empty for
    /// others.
    ///
    /// Cost: one node.
    #[inline]
    pub fn operands_of(&self, id: ExprId) -> &[ExprId] {
        match self.expr(id).operand_list() {
            Some(list) => self.operands(list),
            None => &[],
        }
    }

    /// The variable behind an expression, if it is one.
    ///
    /// Cost: one node.
    #[inline]
    pub fn as_var(&self, id: ExprId) -> Option<VarId> {
        match self.expr(id) {
            Expr::Var { .. } => Some(VarId::from_expr(id)),
            _ => None,
        }
    }

    /// The constant behind an expression, if it is one.
    ///
    /// Cost: one node.
    #[inline]
    pub fn as_literal(&self, id: ExprId) -> Option<LiteralId> {
        match self.expr(id) {
            Expr::Literal(l) => Some(l),
            _ => None,
        }
    }

    /// The name of a variable.
    ///
    /// Cost: one node.
    pub fn var_name(&self, var: VarId) -> Option<NameId> {
        match self.expr(var.expr()) {
            Expr::Var { name, .. } => name,
            _ => None,
        }
    }

    /// Returns the name of the variable that a Let binds, or of a variable itself, as `cx` spells
    /// it; `None` if it has no name, and for anything else.
    pub fn binding_name<'c>(&self, cx: &'c Context, id: ExprId) -> Option<&'c str> {
        let var = match self.expr(id) {
            Expr::Let { var, .. } => var,
            _ => self.as_var(id)?,
        };
        self.var_name(var).map(|name| cx.names.get(name))
    }

    /// Returns true if a variable is visible only in its dataflow region.
    ///
    /// Cost: one node.
    pub fn is_dataflow_var(&self, var: VarId) -> bool {
        matches!(self.expr(var.expr()), Expr::Var { flags, .. } if flags.is_dataflow())
    }

    /// What a `fn` says besides its block.
    ///
    /// Cost: one node.
    #[inline]
    pub fn lambda(&self, id: LambdaId) -> LambdaData {
        self.extras.as_ref().expect(HAS_LAMBDA).lambdas[id]
    }

    /// The parameters of a `fn`.
    ///
    /// Cost: one node.
    pub fn lambda_params(&self, id: LambdaId) -> impl ExactSizeIterator<Item = VarId> + '_ {
        self.operands(self.lambda(id).params).iter().map(|&p| VarId::from_expr(p))
    }

    /// The symbolic dimensions of a `fn`'s own: bound by its parameters, or by a `match_cast` in
    /// its block.
    ///
    /// Cost: one node.
    pub fn lambda_symbols(&self, id: LambdaId) -> &[SymbolId] {
        self.extras.as_ref().and_then(|e| e.lambda_symbols.get(&id)).map_or(&[], |s| s)
    }

    /// The parameters of the function.
    ///
    /// Cost: one node.
    pub fn params(&self) -> &[VarId] {
        &self.params
    }

    /// The block of the function: a Let chain, or what it returns.
    ///
    /// Cost: one node.
    #[inline]
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// The globals that the body names, with their nodes, in the order of the nodes.
    ///
    /// Cost: one loop.
    pub fn global_leaves(&self) -> Vec<(ExprId, GlobalId)> {
        let global = |id: ExprId, leaf: Leaf| match leaf {
            Leaf::Global(g) => Some((id, g)),
            _ => None,
        };
        let Some(leaves) = &self.leaves else {
            return self.exprs().filter_map(|(id, expr)| global(id, Leaf::of(expr)?)).collect();
        };
        let mut leaves: Vec<(ExprId, GlobalId)> = leaves.iter().filter_map(|(&leaf, &id)| global(id, leaf)).collect();
        leaves.sort_unstable_by_key(|&(id, _)| id.index());
        leaves
    }

    /// What tools carry along with a binding (by its variable) or a graph node (by itself).
    ///
    /// Cost: one node.
    pub fn meta(&self, id: ExprId) -> Option<AttrsId> {
        self.extras.as_ref().and_then(|e| if e.meta.is_empty() { None } else { e.meta.get(&id).copied() })
    }

    /// The number of nodes, those that nothing links to included: one past the largest index.
    ///
    /// Cost: one node.
    #[inline]
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Never: there is always what the body returns.
    ///
    /// Cost: one node.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Ids and nodes in the order of the arena, those that nothing links to included.
    ///
    /// Cost: one loop.
    pub fn exprs(&self) -> impl ExactSizeIterator<Item = (ExprId, Expr)> + '_ {
        self.exprs.iter().map(|(id, e)| (id, *e))
    }

    /// Returns the nodes in the order of the arena, those that nothing links to included.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Expr> + '_ {
        self.exprs.values().copied()
    }

    /// The number of `fn`s, those that nothing links to included.
    ///
    /// Cost: one node.
    pub fn lambda_count(&self) -> usize {
        self.extras.as_ref().map_or(0, |e| e.lambdas.len())
    }

    /// The number of entries in the pool of operands.
    ///
    /// Cost: one node.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// Bytes held by the arenas.
    ///
    /// Cost: one node.
    pub fn capacity_bytes(&self) -> usize {
        self.exprs.capacity_bytes()
            + self.extras.as_ref().map_or(0, |e| e.lambdas.capacity_bytes())
            + (self.types.capacity() + self.spans.capacity() + self.operands.capacity()) * 4
    }

    /// Counts compactions. An id is valid in the generation in which it was obtained.
    ///
    /// Cost: one node.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }

    /// The state that the body is in: another one after anything was appended or overwritten, and
    /// this one again once that is rolled back. A copy of the body, and the body that a compaction
    /// makes of it, are others.
    ///
    /// Cost: one loop.
    pub fn stamp(&self) -> Stamp {
        self.revisions.stamp()
    }

    /// Returns true if a rollback of an open edit, or of some of them, brings back the state of a
    /// stamp.
    ///
    /// Cost: one loop.
    pub fn may_go_back_to(&self, stamp: Stamp) -> bool {
        let (mut body, mut journal) = (self, self.journal.as_deref());
        while let Some(open) = journal {
            if let Some(old) = &open.replaced {
                (body, journal) = (old, old.journal.as_deref());
                continue;
            }
            if body.revisions.stamp_at(open.revision) == stamp {
                return true;
            }
            journal = open.outer.as_deref();
        }
        // A body without a journal in the place of which another was put.
        !std::ptr::eq(body, self) && body.stamp() == stamp
    }

    /// A table with a value for every expression of this body, now of `default`.
    ///
    /// Cost: one loop.
    pub fn side_table<V: Clone>(&self, default: V) -> SideTable<ExprId, V> {
        let mut table = SideTable::new(self.len(), default);
        table.generation = self.generation;
        table
    }

    /// Asserts that a table was made for the present generation of this body.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If the body was compacted since: the table's ids mean other expressions now.
    pub fn check_table<V>(&self, table: &SideTable<ExprId, V>) {
        assert_eq!(table.generation, self.generation, "a side table outlived a compaction of its body");
    }

    // ---- Appending ----

    /// Appends a node of a known type. The editor and the builder infer the type; see
    /// [`Editor`](crate::Editor).
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if an id in it is not of this body.
    #[inline]
    #[track_caller]
    pub fn push(&mut self, expr: Expr, ty: TypeId, span: Span) -> ExprId {
        self.check_parts(expr);
        self.revisions.bump();
        let id = self.exprs.push(expr);
        self.types.push(ty);
        self.spans.push(span.unwrap_or(NO_SPAN));
        id
    }

    /// Appends operands to the pool.
    ///
    /// Cost: one loop.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if one is not of this body.
    #[inline]
    #[track_caller]
    pub fn push_operands(&mut self, operands: &[ExprId]) -> OperandList {
        self.check_ids(operands);
        work::tick_n(operands.len());
        self.revisions.bump();
        let start = u32::try_from(self.operands.len()).expect("a pool holds fewer than 2^32 operands");
        self.operands.extend_from_slice(operands);
        OperandList { start, len: operands.len() as u32 }
    }

    /// Appends a variable.
    ///
    /// Cost: one node.
    pub fn push_var(&mut self, name: Option<NameId>, flags: VarFlags, ty: TypeId, span: Span) -> VarId {
        VarId::from_expr(self.push(Expr::Var { name, flags }, ty, span))
    }

    /// Appends what a `fn` says besides its block.
    ///
    /// Cost: one loop.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if a parameter is not a variable of
    /// this body.
    #[track_caller]
    pub fn push_lambda(&mut self, params: &[VarId], ret: Option<TypeId>, attrs: AttrsId) -> LambdaId {
        self.check_vars(params);
        let params: smallvec::SmallVec<[ExprId; 8]> = params.iter().map(|p| p.expr()).collect();
        let params = self.push_operands(&params);
        self.revisions.bump();
        self.extras_mut().lambdas.push(LambdaData { params, ret, attrs })
    }

    /// Says which symbolic dimensions are a `fn`'s own. To be said before its type is inferred,
    /// once.
    ///
    /// Cost: one loop.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if there is no such `fn`.
    #[track_caller]
    pub fn set_lambda_symbols(&mut self, id: LambdaId, symbols: Vec<SymbolId>) {
        self.check_lambda(id);
        let symbols = symbols.into_boxed_slice();
        if self.lambda_symbols(id) == &*symbols {
            return;
        }
        self.revisions.bump();
        let of = &mut self.extras_mut().lambda_symbols;
        let old = match symbols.is_empty() {
            true => of.remove(&id),
            false => of.insert(id, symbols),
        };
        if let Some(j) = &mut self.journal {
            j.lambda_symbols(id, old);
        }
    }

    /// The node of a constant. `ty` is its type.
    ///
    /// Cost: one node.
    pub fn literal(&mut self, literal: LiteralId, ty: TypeId) -> ExprId {
        self.leaf(Leaf::Literal(literal), Expr::Literal(literal), ty)
    }

    /// The node of a constant of the type `ty`, which a node that is evaluated to it becomes,
    /// unless the body has one already: nothing is appended, and a body without room does not grow.
    /// What else links to `node` has the constant then.
    ///
    /// Cost: one node.
    pub fn literal_in_place(&mut self, node: ExprId, literal: LiteralId, ty: TypeId) -> ExprId {
        let leaf = Leaf::Literal(literal);
        if let Some(id) = self.find_leaf(leaf) {
            return id;
        }
        self.leaf_in_place(node, leaf, Expr::Literal(literal), ty);
        node
    }

    /// Overwrites a variable, or another node, with a global of the type `ty`. What links to the
    /// node has the global then.
    ///
    /// Cost: one node.
    pub fn global_in_place(&mut self, node: ExprId, global: GlobalId, ty: TypeId) {
        self.leaf_in_place(node, Leaf::Global(global), Expr::Global(global), ty);
    }

    /// Takes the node of a global that nothing uses any more out of the body. Does nothing if the
    /// body has none.
    ///
    /// Cost: one node.
    pub fn remove_global(&mut self, global: GlobalId) {
        let leaf = Leaf::Global(global);
        let Some(node) = self.find_leaf(leaf) else { return };
        let before = self.shared_edits(SharedEdits::Meant);
        self.set_expr(node, Expr::Tuple(OperandList::EMPTY));
        self.shared_edits(before);
        if let Some(leaves) = &mut self.leaves {
            leaves.remove(&leaf);
        }
    }

    fn leaf_in_place(&mut self, node: ExprId, leaf: Leaf, expr: Expr, ty: TypeId) {
        let before = self.shared_edits(SharedEdits::Meant);
        self.set_expr(node, expr);
        self.shared_edits(before);
        self.set_type(node, ty);
        if self.meta(node).is_some() {
            self.set_meta(node, None);
        }
        self.enter_leaf(leaf, node);
    }

    /// The node of a global. `ty` is its signature, which a node that the body has already takes
    /// on: it may be left over from a function that is gone, and whose name another one has now.
    ///
    /// Cost: one node.
    pub fn global(&mut self, global: GlobalId, ty: TypeId) -> ExprId {
        let id = self.leaf(Leaf::Global(global), Expr::Global(global), ty);
        if self.types[id.index()] != ty {
            self.set_type(id, ty);
        }
        id
    }

    /// The node of an operator as a value.
    ///
    /// Cost: one node.
    pub fn op(&mut self, op: OpId, ty: TypeId) -> ExprId {
        self.leaf(Leaf::Op(op), Expr::Op(op), ty)
    }

    /// The node of `none`.
    ///
    /// Cost: one node.
    pub fn none(&mut self, ty: TypeId) -> ExprId {
        self.leaf(Leaf::None, Expr::None, ty)
    }

    fn leaf(&mut self, leaf: Leaf, expr: Expr, ty: TypeId) -> ExprId {
        if let Some(id) = self.find_leaf(leaf) {
            return id;
        }
        let id = self.push(expr, ty, None);
        self.enter_leaf(leaf, id);
        id
    }

    #[inline]
    fn find_leaf(&mut self, leaf: Leaf) -> Option<ExprId> {
        if self.leaves.is_none() && self.len() > SEARCHED {
            self.tabulate_leaves();
        }
        match &self.leaves {
            Some(leaves) => leaves.get(&leaf).copied(),
            None => self.exprs().find_map(|(id, expr)| (Leaf::of(expr) == Some(leaf)).then_some(id)),
        }
    }

    /// Makes the table of a body that is not searched any more. Linear, once.
    #[cold]
    fn tabulate_leaves(&mut self) {
        let mut leaves = FxHashMap::default();
        for (id, expr) in self.exprs() {
            if let Some(leaf) = Leaf::of(expr) {
                leaves.entry(leaf).or_insert(id);
            }
        }
        self.leaves = Some(Box::new(leaves));
    }

    /// Notes the node of an atom, unless it has one.
    fn enter_leaf(&mut self, leaf: Leaf, id: ExprId) {
        if let Some(leaves) = &mut self.leaves {
            leaves.entry(leaf).or_insert(id);
        }
    }

    fn extras_mut(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    // ---- Overwriting ----

    /// Overwrites a node. Its type stays; see [`Body::set_type`]. What else uses the node has what
    /// it becomes: see [`SharedEdits`].
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If there is no such node; while an edit is open in a build with debug assertions, also if an
    /// id in it is not of this body.
    #[inline]
    #[track_caller]
    pub fn set_expr(&mut self, id: ExprId, expr: Expr) {
        self.check_id(id);
        self.check_parts(expr);
        let old = self.exprs[id];
        if old == expr {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.expr(id, old);
            if cfg!(debug_assertions) && id.index() < j.exprs_len {
                j.by_hand.expr(id, old, expr);
            }
        }
        if !matches!(old, Expr::Var { .. }) {
            self.watch.expr(id.index());
        }
        self.revisions.bump();
        self.exprs[id] = expr;
    }

    /// Overwrites one operand of a list. What else uses the node that it is an operand of has the
    /// new operand too: see [`SharedEdits`].
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If the list has no operand of that number; while an edit is open in a build with debug
    /// assertions, also if the operand is not of this body.
    #[inline]
    #[track_caller]
    pub fn set_operand(&mut self, list: OperandList, i: usize, operand: ExprId) {
        assert!(i < list.len(), "operand {i} of a list of {}", list.len());
        self.check_ids(&[operand]);
        work::tick();
        let at = list.start as usize + i;
        let old = self.operands[at];
        if old == operand {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.operand(at, old);
            if cfg!(debug_assertions) && at < j.operands_len {
                j.by_hand.operand(at);
            }
        }
        self.watch.operand(at);
        self.revisions.bump();
        self.operands[at] = operand;
    }

    /// Overwrites the stored type of a node.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If there is no such node.
    #[track_caller]
    pub fn set_type(&mut self, id: ExprId, ty: TypeId) {
        self.check_id(id);
        work::tick();
        let old = self.types[id.index()];
        if old == ty {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.ty(id, old);
        }
        self.revisions.bump();
        self.types[id.index()] = ty;
    }

    /// Overwrites what the body evaluates to.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if it is not of this body.
    #[track_caller]
    pub fn set_root(&mut self, root: ExprId) {
        self.check_ids(&[root]);
        if self.root == root {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.root(self.root);
        }
        self.watch.expr(0);
        self.revisions.bump();
        self.root = root;
    }

    /// Overwrites the parameters.
    ///
    /// Cost: one loop.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if one is not a variable of this
    /// body.
    #[track_caller]
    pub fn set_params(&mut self, params: Vec<VarId>) {
        self.check_vars(&params);
        if self.params == params {
            return;
        }
        self.revisions.bump();
        let old = std::mem::replace(&mut self.params, params);
        if let Some(j) = &mut self.journal {
            j.params(old);
        }
    }

    /// Appends a parameter of the function.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if it is not a variable of this
    /// body.
    #[track_caller]
    pub fn push_param(&mut self, param: VarId) {
        self.check_vars(&[param]);
        if let Some(j) = &mut self.journal
            && j.params.is_none()
        {
            j.params(self.params.clone());
        }
        self.revisions.bump();
        self.params.push(param);
    }

    /// Overwrites what a `fn` says besides its block.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If there is no such `fn`; while an edit is open in a build with debug assertions, also if a
    /// parameter is not a variable of this body.
    #[track_caller]
    pub fn set_lambda(&mut self, id: LambdaId, data: LambdaData) {
        self.check_lambda(id);
        self.check_lambda_data(data);
        let old = self.lambda(id);
        if old == data {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.lambda(id, old);
        }
        self.revisions.bump();
        self.extras_mut().lambdas[id] = data;
    }

    /// Sets or removes what tools carry along with a binding or graph node.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if there is no such node.
    #[track_caller]
    pub fn set_meta(&mut self, id: ExprId, meta: Option<AttrsId>) {
        self.check_ids(&[id]);
        if self.meta(id) == meta {
            return;
        }
        let of = &mut self.extras_mut().meta;
        let old = match meta {
            Some(m) => of.insert(id, m),
            None => of.remove(&id),
        };
        self.revisions.bump();
        if let Some(j) = &mut self.journal {
            j.meta(id, old);
        }
    }

    /// Overwrites the body of a Let: how links are taken out of and put into a chain.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If it is not a Let; while an edit is open in a build with debug assertions, also if the rest
    /// is not of this body.
    #[inline]
    #[track_caller]
    pub fn set_let_body(&mut self, id: ExprId, new_body: ExprId) {
        self.check_id(id);
        self.check_ids(&[new_body]);
        let Expr::Let { body: old, .. } = self.exprs[id] else { panic!("{id:?} is {:?}, not a Let", self.exprs[id]) };
        if old == new_body {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.expr(id, self.exprs[id]);
        }
        self.watch.expr(id.index());
        self.revisions.bump();
        // Only this field is written: reading a whole node soon after it was written field by
        // field, to write it back, waits for those writes.
        if let Expr::Let { body, .. } = &mut self.exprs[id] {
            *body = new_body;
        }
    }

    // ---- For the parser ----

    /// Makes room for about that many nodes.
    ///
    /// Cost: one node.
    pub fn reserve(&mut self, nodes: usize) {
        self.exprs.reserve(nodes);
        self.types.reserve(nodes);
        self.spans.reserve(nodes);
        self.operands.reserve(nodes);
    }

    /// Gives up room that appending did not need, but for a sixteenth of the nodes: passes append,
    /// and a vector that is full grows by much. Operands they append fewer.
    pub(crate) fn shrink(&mut self) {
        let (nodes, operands) = (self.types.len(), self.operands.len());
        if nodes + nodes / 8 < self.types.capacity() {
            let room = nodes + nodes / 16;
            self.exprs.shrink_to(room);
            self.types.shrink_to(room);
            self.spans.shrink_to(room);
        }
        if operands + operands / 8 < self.operands.capacity() {
            self.operands.shrink_to(operands + operands / 64);
        }
    }
}

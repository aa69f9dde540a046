//! The body of a function: its expressions, in typed arenas, which are read and edited only through
//! the methods of [`Body`].

mod copies;
mod ids;
mod leaves;
mod names;
mod overwriting;
mod parts;
mod shared_edits;
mod taking_back;
mod translate;
mod watching;

use leaves::Leaf;
pub use parts::Parts;
pub(crate) use shared_edits::EditedByHand;
pub use shared_edits::SharedEdits;

use rustc_hash::FxHashMap;

use crate::core::entity::{
    Arena, AttrsId, EntityId, ExprId, GlobalId, LambdaId, LiteralId, NameId, SideTable, SymbolId, TypeId,
};
use crate::core::expr::{Expr, LambdaData, OperandList, VarFlags, VarId};
use crate::edit::journal::Journal;
use crate::edit::stamp::{Revisions, Stamp};
use crate::tables::types::Types;
use crate::walk::link_watch::LinkWatch;
use crate::work;

/// The position at which an expression starts in the source text, as a byte offset. The end is not
/// stored; [`expr_extent`](crate::expr_extent) finds it in the text.
pub type Span = Option<u32>;

const NO_SPAN: u32 = u32::MAX;

/// The expressions of one function.
///
/// Nodes are only appended and overwritten, with the methods here. While a journal is open
/// ([`Body::begin_journal`]), these record the previous contents, so that an edit can be rolled
/// back. Unreachable nodes stay until [`compact`](crate::compact::compact_body).
#[derive(Clone)]
pub struct Body {
    exprs: Arena<ExprId, Expr>,
    types: Vec<TypeId>,
    spans: Vec<u32>,
    operands: Vec<ExprId>,
    params: Vec<VarId>,
    root: ExprId,
    generation: u32,
    /// The node of each constant, global, operator and `none`. A body has one node for each, and
    /// all uses share it. `None` in a small body: its nodes are searched instead.
    leaves: Option<Box<FxHashMap<Leaf, ExprId>>>,
    /// `fn`s and metadata, which few bodies have.
    extras: Option<Box<Extras>>,
    revisions: Revisions,
    journal: Option<Box<Journal>>,
    watch: LinkWatch,
}

/// `fn`s and metadata.
#[derive(Clone, Default)]
struct Extras {
    lambdas: Arena<LambdaId, LambdaData>,
    /// The symbolic dimensions that a `fn` owns: they are bound by its parameters, or by a
    /// `match_cast` in its block.
    lambda_symbols: FxHashMap<LambdaId, Box<[SymbolId]>>,
    /// The metadata that tools attach to a binding, keyed by its variable (or, for a graph binding,
    /// by its node).
    meta: FxHashMap<ExprId, AttrsId>,
}

/// The panic message for the id of a `fn` that is not in the body.
const HAS_LAMBDA: &str = "the id of a `fn` belongs to this body";

/// The amounts of nodes, operands and parameters for which a new body reserves room.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct BodyRoom {
    /// Nodes, variables and parameters included.
    pub nodes: usize,
    /// Entries in lists of operands.
    pub operands: usize,
    /// Parameters of the function.
    pub params: usize,
}

/// Prints one line: the number of nodes, the parameters and the root.
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
    /// Returns a body that returns `()`.
    ///
    /// Cost: one node.
    pub fn new(types: &Types) -> Body {
        Body::with_room(types, BodyRoom::default())
    }

    /// Returns a body that returns `()`, and reserves room for `room`: each arena takes one
    /// allocation.
    ///
    /// Cost: one node.
    pub fn with_room(types: &Types, room: BodyRoom) -> Body {
        let mut body = Body::hollow(room.nodes + 1, room.operands);
        body.params.reserve_exact(room.params);
        body.push(Expr::Tuple(OperandList::EMPTY), types.unit(), None);
        body
    }

    /// Returns a body without any node, into which another body is rebuilt. The caller must append
    /// the root.
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

    // ---- Reading ----

    /// Returns the expression behind an id.
    ///
    /// Cost: one node.
    #[inline(always)]
    #[track_caller]
    pub fn expr(&self, id: ExprId) -> Expr {
        self.check_id(id);
        self.exprs[id]
    }

    /// Returns the stored type of an expression other than a Let (the stored type of a Let has no
    /// meaning; see [`Body::type_of`]).
    ///
    /// Cost: one node.
    #[inline(always)]
    pub fn ty(&self, id: ExprId) -> TypeId {
        work::tick();
        self.types[id.index()]
    }

    /// Returns the type of an expression. For a Let, walks to the tail of its chain and returns the
    /// type of the tail. Linear in the chain.
    #[inline]
    pub fn type_of(&self, id: ExprId) -> TypeId {
        self.ty(self.tail(id))
    }

    /// Returns the tail of a Let chain: the first expression along its bodies that is not a Let.
    /// Linear in the chain.
    #[inline]
    pub fn tail(&self, mut id: ExprId) -> ExprId {
        while let Expr::Let { body, .. } = self.expr(id) {
            id = body;
        }
        id
    }

    /// Returns the position at which an expression starts in the source, if it has one. A constant
    /// has none, since all its uses share one node.
    ///
    /// Cost: one node.
    pub fn span(&self, id: ExprId) -> Span {
        if let Some(Expr::Literal(_)) = self.exprs.get(id) {
            return None;
        }
        self.spans.get(id.index()).copied().filter(|&s| s != NO_SPAN)
    }

    /// Returns the operands of a list.
    ///
    /// Cost: one node.
    #[inline(always)]
    pub fn operands(&self, list: OperandList) -> &[ExprId] {
        work::tick_n(list.len());
        &self.operands[list.start as usize..list.start as usize + list.len()]
    }

    /// Returns an operand of a list.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If `index` is not less than the length of the list.
    #[inline(always)]
    pub fn operand(&self, list: OperandList, index: usize) -> ExprId {
        assert!(index < list.len(), "operand {index} of {}", list.len());
        work::tick();
        self.operands[list.start as usize + index]
    }

    /// Returns the operands of a call (for a call of a function value, the function first) or the
    /// fields of a tuple; empty for other expressions.
    ///
    /// Cost: one node.
    #[inline]
    pub fn operands_of(&self, id: ExprId) -> &[ExprId] {
        match self.expr(id).operand_list() {
            Some(list) => self.operands(list),
            None => &[],
        }
    }

    /// Returns the variable if `id` is one.
    ///
    /// Cost: one node.
    #[inline]
    pub fn as_var(&self, id: ExprId) -> Option<VarId> {
        match self.expr(id) {
            Expr::Var { .. } => Some(VarId::from_expr(id)),
            _ => None,
        }
    }

    /// Returns the constant if `id` is one.
    ///
    /// Cost: one node.
    #[inline]
    pub fn as_literal(&self, id: ExprId) -> Option<LiteralId> {
        match self.expr(id) {
            Expr::Literal(l) => Some(l),
            _ => None,
        }
    }

    /// Returns the name of a variable.
    ///
    /// Cost: one node.
    pub fn var_name(&self, var: VarId) -> Option<NameId> {
        match self.expr(var.expr()) {
            Expr::Var { name, .. } => name,
            _ => None,
        }
    }

    /// Returns true if a variable is visible only in its dataflow region.
    ///
    /// Cost: one node.
    pub fn is_dataflow_var(&self, var: VarId) -> bool {
        matches!(self.expr(var.expr()), Expr::Var { flags, .. } if flags.is_dataflow())
    }

    /// Returns the parameters, result annotation and attributes of a `fn`.
    ///
    /// Cost: one node.
    #[inline]
    pub fn lambda(&self, id: LambdaId) -> LambdaData {
        self.extras.as_ref().expect(HAS_LAMBDA).lambdas[id]
    }

    /// Returns the parameters of a `fn`.
    ///
    /// Cost: one node.
    pub fn lambda_params(&self, id: LambdaId) -> impl ExactSizeIterator<Item = VarId> + '_ {
        self.operands(self.lambda(id).params).iter().map(|&p| VarId::from_expr(p))
    }

    /// Returns the symbolic dimensions that a `fn` owns: they are bound by its parameters, or by a
    /// `match_cast` in its block.
    ///
    /// Cost: one node.
    pub fn lambda_symbols(&self, id: LambdaId) -> &[SymbolId] {
        self.extras.as_ref().and_then(|e| e.lambda_symbols.get(&id)).map_or(&[], |s| s)
    }

    /// Returns the parameters of the function.
    ///
    /// Cost: one node.
    pub fn params(&self) -> &[VarId] {
        &self.params
    }

    /// Returns the block of the function: a Let chain, or the returned expression.
    ///
    /// Cost: one node.
    #[inline]
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// Returns the globals that the body names, with their nodes, in the order of the nodes.
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

    /// Returns the metadata that tools attached to a binding (keyed by its variable) or a graph
    /// node (keyed by the node).
    ///
    /// Cost: one node.
    pub fn meta(&self, id: ExprId) -> Option<AttrsId> {
        self.extras.as_ref().and_then(|e| if e.meta.is_empty() { None } else { e.meta.get(&id).copied() })
    }

    /// Returns the number of nodes, unreachable ones included: one past the largest index.
    ///
    /// Cost: one node.
    #[inline]
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Returns false: a body always has a root.
    ///
    /// Cost: one node.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns ids and nodes in the order of the arena, unreachable ones included.
    ///
    /// Cost: one loop.
    pub fn exprs(&self) -> impl ExactSizeIterator<Item = (ExprId, Expr)> + '_ {
        self.exprs.iter().map(|(id, e)| (id, *e))
    }

    /// Returns the nodes in the order of the arena, unreachable ones included.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Expr> + '_ {
        self.exprs.values().copied()
    }

    /// Returns the number of `fn`s, unreachable ones included.
    ///
    /// Cost: one node.
    pub fn lambda_count(&self) -> usize {
        self.extras.as_ref().map_or(0, |e| e.lambdas.len())
    }

    /// Returns the number of entries in the pool of operands.
    ///
    /// Cost: one node.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// Returns the capacity in bytes of the arenas: nodes, types, spans, operands and `fn`s.
    ///
    /// Cost: one node.
    pub fn capacity_bytes(&self) -> usize {
        self.exprs.capacity_bytes()
            + self.extras.as_ref().map_or(0, |e| e.lambdas.capacity_bytes())
            + (self.types.capacity() + self.spans.capacity() + self.operands.capacity()) * 4
    }

    /// Returns the generation of the body, which goes up with each compaction and replacement. An
    /// id is valid in the generation in which it was obtained.
    ///
    /// Cost: one node.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }

    /// Returns the stamp of the state of the body. Every append or overwrite gives the body a new
    /// stamp; a rollback restores the old one. A copy of the body, and the body that a compaction
    /// makes of it, have stamps of their own.
    ///
    /// Cost: one entry.
    pub fn stamp(&self) -> Stamp {
        self.revisions.stamp()
    }

    /// Returns true if a rollback of one or more of the open edits restores the state of `stamp`.
    ///
    /// Cost: one loop.
    pub fn can_restore(&self, stamp: Stamp) -> bool {
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
        // `body` was replaced by another body and has no journal of its own.
        !std::ptr::eq(body, self) && body.stamp() == stamp
    }

    /// Returns a table with the value `default` for every expression of this body.
    ///
    /// Cost: one loop.
    pub fn side_table<V: Clone>(&self, default: V) -> SideTable<ExprId, V> {
        let mut table = SideTable::new(self.len(), default);
        table.generation = self.generation;
        table
    }

    /// Asserts that a table was made for the current generation of this body.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If the body was compacted since: the ids of the table denote other expressions now.
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
    /// While an edit is open in a build with debug assertions, if an id in `expr` is not of this
    /// body.
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
    /// While an edit is open in a build with debug assertions, if an operand is not of this body.
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

    /// Appends the parameters, result annotation and attributes of a `fn`.
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

    /// Sets the symbolic dimensions that a `fn` owns. Callers must do so once, before the type of
    /// the `fn` is inferred.
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

    fn extras_mut(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    // ---- For the parser ----

    /// Reserves room for about `nodes` more nodes and as many operands.
    ///
    /// Cost: one node.
    pub fn reserve(&mut self, nodes: usize) {
        self.exprs.reserve(nodes);
        self.types.reserve(nodes);
        self.spans.reserve(nodes);
        self.operands.reserve(nodes);
    }

    /// Frees room that appending did not use, except for a sixteenth of the nodes: passes append
    /// nodes, and a full vector grows by a large step. Passes append fewer operands, so less room
    /// is left for those.
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

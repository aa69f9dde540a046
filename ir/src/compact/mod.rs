//! Compaction: what nothing links to goes, and what is left lies in program order.
//!
//! Passes unlink nodes and leave them in the arenas. Between passes, when much of an arena is dead,
//! [`compact_body`] rebuilds it: it traces what is reachable, in program order and parts before
//! wholes, gives each node its new id, and then appends the nodes in that order, checking that each
//! gets the id that was foretold. Text and meaning stay; ids do not, so the body's generation goes
//! up and side tables made before are refused. [`Module::compact`] does so for every function and
//! drops the entries of the module's tables that nothing uses.

mod tables;

use bumpalo::Bump;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::core::body::{Body, Leaf};
use crate::core::entity::{AttrsId, EntityId, ExprId, GlobalId, LambdaId, LiteralId, NameId, OpId, SymbolId, TypeId};
use crate::core::expr::{Expr, VarId};
use crate::core::module::{FunctionKey, Module};
use crate::core::translate::{Translate, translate_expr, translate_lambda};
use crate::walk::cursor::{BlockKind, Cursor, Step};

/// Why nothing was compacted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CompactError {
    /// An edit is open, and its journal names expressions by id.
    #[error("an edit is open; commit it or take it back first")]
    EditOpen,
}

/// Where the nodes of a body went.
#[derive(Clone, Debug)]
pub struct Remap {
    exprs: Vec<Option<ExprId>>,
    lambdas: Vec<Option<LambdaId>>,
}

impl Remap {
    /// What an expression's id is now; `None` if it was dropped.
    #[inline]
    pub fn expr(&self, old: ExprId) -> Option<ExprId> {
        self.exprs.get(old.index()).copied().flatten()
    }

    /// What a variable is now; `None` if it was dropped.
    pub fn var(&self, old: VarId) -> Option<VarId> {
        self.expr(old.expr()).map(VarId::from_expr)
    }

    /// What a `fn`'s id is now; `None` if it was dropped.
    pub fn lambda(&self, old: LambdaId) -> Option<LambdaId> {
        self.lambdas.get(old.index()).copied().flatten()
    }
}

/// Returns the number of nodes of a body that something links to. Its tables are in `scratch`.
/// Linear.
pub fn live_nodes(body: &Body, scratch: &Bump) -> usize {
    let mut live = 0;
    trace(body, scratch, scratch.alloc_slice_fill_copy(body.len(), None), |_| live += 1);
    live
}

/// Returns true if more than half of a body's nodes are dead, so that compacting it pays. Its tables
/// are in `scratch`. Linear in what is alive.
pub fn is_sparse(body: &Body, scratch: &Bump) -> bool {
    live_nodes(body, scratch) * 2 < body.len()
}

/// Rebuilds a body without the nodes that nothing links to, in program order. Linear.
///
/// # Errors
/// If a journal is open.
pub fn compact_body(body: &mut Body) -> Result<Remap, CompactError> {
    if body.has_journal() {
        return Err(CompactError::EditOpen);
    }
    let (new, remap) = rebuild(body, &SameTables);
    *body = new;
    Ok(remap)
}

impl Module {
    /// Compacts every function, and drops the names, types, dimensions, attributes, constants,
    /// opaque operators and globals that nothing uses any more. Keys of functions stay; all other
    /// ids change. Linear. Gives the functions with where their nodes went.
    ///
    /// # Errors
    /// If an edit is open.
    pub fn compact(&mut self) -> Result<Vec<(FunctionKey, Remap)>, CompactError> {
        if self.has_edit() || self.functions().any(|(_, f)| f.body.has_journal()) {
            return Err(CompactError::EditOpen);
        }
        Ok(tables::compact_module(self))
    }
}

/// They stay.
struct SameTables;

impl Translate for SameTables {
    fn name(&self, id: NameId) -> NameId {
        id
    }
    fn ty(&self, id: TypeId) -> TypeId {
        id
    }
    fn attrs(&self, id: AttrsId) -> AttrsId {
        id
    }
    fn literal(&self, id: LiteralId) -> LiteralId {
        id
    }
    fn global(&self, id: GlobalId) -> GlobalId {
        id
    }
    fn op(&self, id: OpId) -> OpId {
        id
    }
    fn symbol(&self, id: SymbolId) -> SymbolId {
        id
    }
}

/// What is alive, in its new order.
struct Trace<'a, F> {
    /// Told of each node, in the order of the new ids.
    append: F,
    len: usize,
    new_ids: &'a mut [Option<ExprId>],
    leaves: HashMap<Leaf, ExprId, FxBuildHasher, &'a Bump>,
}

impl<F: FnMut(ExprId)> Trace<'_, F> {
    /// Gives a node the next id, if it has none.
    #[inline]
    fn assign(&mut self, id: ExprId) {
        if self.new_ids[id.index()].is_none() {
            self.new_ids[id.index()] = Some(ExprId::from_index(self.len));
            self.len += 1;
            (self.append)(id);
        }
    }

    /// Likewise for an atom; two nodes of one constant become one.
    #[inline]
    fn assign_atom(&mut self, body: &Body, id: ExprId) {
        if self.new_ids[id.index()].is_some() {
            return;
        }
        let Some(leaf) = Leaf::of(body.expr(id)) else { return self.assign(id) };
        match self.leaves.get(&leaf) {
            Some(&known) => self.new_ids[id.index()] = Some(known),
            None => {
                self.leaves.insert(leaf, ExprId::from_index(self.len));
                self.assign(id);
            }
        }
    }
}

/// Finds what is alive: parameters, then values, variables and Lets as they are evaluated. Each is
/// handed to `append` once, and `new_ids` then says its number.
fn trace(body: &Body, scratch: &Bump, new_ids: &mut [Option<ExprId>], append: impl FnMut(ExprId)) {
    let mut trace = Trace { append, len: 0, new_ids, leaves: HashMap::with_hasher_in(FxBuildHasher, scratch) };
    for &p in body.params() {
        trace.assign(p.expr());
    }
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Atom(id) => trace.assign_atom(body, id),
            Step::Flat(id) => {
                for &o in body.inputs(id) {
                    trace.assign_atom(body, o);
                }
                trace.assign(id);
            }
            Step::EnterBlock(_, BlockKind::Lambda(id)) => {
                if let Expr::Lambda { lambda, .. } = body.expr(id) {
                    for p in body.lambda_params(lambda) {
                        trace.assign(p.expr());
                    }
                }
            }
            Step::Exit(id) => trace.assign(id),
            Step::Bound(id) => {
                if let Expr::Let { var, .. } = body.expr(id) {
                    trace.assign(var.expr());
                }
                trace.assign(id);
            }
            Step::EnterBlock(..) | Step::ExitBlock(..) | Step::Let(_) | Step::Enter(_) | Step::Seen(_) => {}
        }
    }
}

fn rebuild(body: &Body, tables: &impl Translate) -> (Body, Remap) {
    let (mut order, mut new_ids) = (Vec::new(), vec![None; body.len()]);
    trace(body, &Bump::new(), &mut new_ids, |id| order.push(id));
    let at = |old: ExprId| new_ids[old.index()].expect("what is alive links to what is alive");
    let var = |old: VarId| VarId::from_expr(at(old.expr()));
    let mut lambdas: Vec<Option<LambdaId>> = vec![None; body.lambda_count()];
    let mut new = Body::hollow(order.len(), body.operand_count().min(order.len().saturating_mul(4)));
    let mut scratch: Vec<ExprId> = Vec::new();
    for (i, &old) in order.iter().enumerate() {
        let ty = tables.ty(body.ty(old));
        let mut list = |new: &mut Body, operands: &[ExprId]| {
            scratch.clear();
            scratch.extend(operands.iter().map(|&o| at(o)));
            new.push_operands(&scratch)
        };
        let expr = match translate_expr(body.expr(old), tables) {
            Expr::CallOp { op, operands, attrs } => {
                Expr::CallOp { op, operands: list(&mut new, body.operands(operands)), attrs }
            }
            Expr::Call { operands, attrs } => Expr::Call { operands: list(&mut new, body.operands(operands)), attrs },
            Expr::Tuple(fields) => Expr::Tuple(list(&mut new, body.operands(fields))),
            Expr::Proj { tuple, index } => Expr::Proj { tuple: at(tuple), index },
            Expr::Let { var: bound, value, body: rest, flags } => {
                Expr::Let { var: var(bound), value: at(value), body: at(rest), flags }
            }
            Expr::If { cond, then_block, else_block } => {
                Expr::If { cond: at(cond), then_block: at(then_block), else_block: at(else_block) }
            }
            Expr::Lambda { lambda, body: block } => {
                let data = translate_lambda(body.lambda(lambda), tables);
                let params: Vec<VarId> = body.lambda_params(lambda).map(var).collect();
                let id = new.push_lambda(&params, data.ret, data.attrs);
                new.set_lambda_symbols(id, body.lambda_symbols(lambda).iter().map(|&s| tables.symbol(s)).collect());
                lambdas[lambda.index()] = Some(id);
                Expr::Lambda { lambda: id, body: at(block) }
            }
            leaf @ (Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None) => leaf,
        };
        let id = match expr {
            Expr::Literal(l) => new.literal(l, ty),
            Expr::Global(g) => new.global(g, ty),
            Expr::Op(op) => new.op(op, ty),
            Expr::None => new.none(ty),
            _ => new.push(expr, ty, body.span(old)),
        };
        assert_eq!(id.index(), i, "a node got another id than was foretold");
        if let Some(meta) = body.meta(old) {
            new.set_meta(id, Some(tables.attrs(meta)));
        }
    }
    new.set_root(at(body.root()));
    new.set_params(body.params().iter().map(|&p| var(p)).collect());
    new.set_generation(body.generation().wrapping_add(1));
    (new, Remap { exprs: new_ids, lambdas })
}

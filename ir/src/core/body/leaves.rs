//! Atoms of which a body has one node each: constants, globals, operators and `none`. A small body
//! is searched for the node of an atom; a larger one has a table.

use rustc_hash::FxHashMap;

use super::{Body, SharedEdits};
use crate::core::entity::{EntityId, ExprId, GlobalId, LiteralId, OpId, TypeId};
use crate::core::expr::{Expr, OperandList};

/// The largest number of nodes for which a body is searched for an atom. Small functions, of which
/// there may be many, take no memory for a table.
const SEARCHED: usize = 32;

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

impl Body {
    /// Returns the node of a constant, appended if the body has none. `ty` is the type of the
    /// constant.
    ///
    /// Cost: one node.
    pub fn literal(&mut self, literal: LiteralId, ty: TypeId) -> ExprId {
        self.literal_with(literal, || ty)
    }

    /// Returns the node of a constant, as [`Body::literal`] does. Calls `ty` only if the body has
    /// no node for the constant yet.
    pub(crate) fn literal_with(&mut self, literal: LiteralId, ty: impl FnOnce() -> TypeId) -> ExprId {
        self.leaf(Leaf::Literal(literal), Expr::Literal(literal), ty)
    }

    /// Returns the node of the constant `literal` of type `ty`. If the body has none yet,
    /// overwrites `node` with it instead of appending one, so that the arenas do not grow. All
    /// other uses of `node` then use the constant.
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

    /// Overwrites a node, such as a variable, with a global of type `ty`. All uses of the node then
    /// use the global.
    ///
    /// Cost: one node.
    pub fn global_in_place(&mut self, node: ExprId, global: GlobalId, ty: TypeId) {
        self.leaf_in_place(node, Leaf::Global(global), Expr::Global(global), ty);
    }

    /// Removes the node of a global that nothing uses any more. Does nothing if the body has none.
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

    /// Returns the node of a global, appended if the body has none. `ty` is its signature. A node
    /// that the body has already takes on this type: the node may be left from a removed function
    /// whose name another function has now.
    ///
    /// Cost: one node.
    pub fn global(&mut self, global: GlobalId, ty: TypeId) -> ExprId {
        let id = self.leaf(Leaf::Global(global), Expr::Global(global), || ty);
        if self.types[id.index()] != ty {
            self.set_type(id, ty);
        }
        id
    }

    /// Returns the node of an operator as a value, appended if the body has none.
    ///
    /// Cost: one node.
    pub fn op(&mut self, op: OpId, ty: TypeId) -> ExprId {
        self.leaf(Leaf::Op(op), Expr::Op(op), || ty)
    }

    /// Returns the node of `none`, appended if the body has none.
    ///
    /// Cost: one node.
    pub fn none(&mut self, ty: TypeId) -> ExprId {
        self.leaf(Leaf::None, Expr::None, || ty)
    }

    fn leaf(&mut self, leaf: Leaf, expr: Expr, ty: impl FnOnce() -> TypeId) -> ExprId {
        if let Some(id) = self.find_leaf(leaf) {
            return id;
        }
        let id = self.push(expr, ty(), None);
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

    /// Makes the table of atoms for a body that is too large to be searched. Linear, once.
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

    /// Records the node of an atom, unless the atom has a node already.
    fn enter_leaf(&mut self, leaf: Leaf, id: ExprId) {
        if let Some(leaves) = &mut self.leaves {
            leaves.entry(leaf).or_insert(id);
        }
    }
}

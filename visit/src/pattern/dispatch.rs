//! The rules that may begin at a node.

use anfora_ir::{Body, Expr, ExprId, OpId};

/// The expressions at which a pattern can begin.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Roots {
    pub(crate) all: bool,
    /// Kinds of nodes, by the numbers of their lists in [`Dispatch`].
    pub(crate) lists: Vec<usize>,
}

impl Roots {
    pub(crate) const CALLS: usize = 0;
    pub(crate) const TUPLES: usize = 1;
    pub(crate) const PROJECTIONS: usize = 2;
    /// The first operator; the others follow.
    const OPS: usize = 3;

    pub(crate) fn add(&mut self, list: usize) {
        self.lists.push(list);
    }

    pub(crate) fn add_op(&mut self, op: OpId) {
        self.add(Roots::OPS + op.index());
    }
}

/// For each kind of node, and each operator, the rules whose patterns may begin there, in the order
/// of the rules.
pub(crate) struct Dispatch {
    lists: Vec<Vec<u32>>,
    /// The rules that may begin anywhere.
    all: Vec<u32>,
}

impl Dispatch {
    pub(crate) fn new<'r>(roots: impl Iterator<Item = &'r Roots> + Clone) -> Dispatch {
        let len = roots.clone().flat_map(|roots| &roots.lists).max().map_or(0, |last| last + 1);
        let mut dispatch = Dispatch { lists: vec![Vec::new(); len], all: Vec::new() };
        for (rule, roots) in roots.enumerate() {
            let rule = rule as u32;
            if roots.all {
                dispatch.lists.iter_mut().chain([&mut dispatch.all]).for_each(|rules| rules.push(rule));
            } else {
                roots.lists.iter().for_each(|&list| dispatch.lists[list].push(rule));
            }
        }
        dispatch
    }

    /// Returns the rules that may begin at a node.
    #[inline]
    pub(crate) fn rules(&self, body: &Body, id: ExprId) -> &[u32] {
        let list = match body.expr(id) {
            Expr::CallOp { op, .. } => Roots::OPS + op.index(),
            Expr::Call { .. } => Roots::CALLS,
            Expr::Tuple(_) => Roots::TUPLES,
            Expr::Proj { .. } => Roots::PROJECTIONS,
            Expr::If { .. } | Expr::Lambda { .. } => return &self.all,
            _ => return &[],
        };
        self.lists.get(list).unwrap_or(&self.all)
    }
}

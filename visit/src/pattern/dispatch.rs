//! Which rules may begin at a node.

use anfora_ir::{Body, Context, Expr, ExprId};

use crate::pattern::compile::Roots;

/// For each kind of node, and each operator, the rules whose patterns may begin there, in the order of the rules.
pub(crate) struct Dispatch {
    ops: Vec<Vec<u32>>,
    calls: Vec<u32>,
    tuples: Vec<u32>,
    projections: Vec<u32>,
    /// Those that may begin anywhere.
    all: Vec<u32>,
}

impl Dispatch {
    pub(crate) fn new<'r>(cx: &Context, roots: impl Iterator<Item = &'r Roots>) -> Dispatch {
        let mut dispatch = Dispatch {
            ops: vec![Vec::new(); cx.ops.len()],
            calls: Vec::new(),
            tuples: Vec::new(),
            projections: Vec::new(),
            all: Vec::new(),
        };
        for (rule, roots) in roots.enumerate() {
            let rule = rule as u32;
            if roots.all {
                dispatch.ops.iter_mut().for_each(|rules| rules.push(rule));
                dispatch.all.push(rule);
            }
            for op in roots.ops.iter().filter(|_| !roots.all) {
                dispatch.ops[op.index()].push(rule);
            }
            for (kind, begins) in [
                (&mut dispatch.calls, roots.calls),
                (&mut dispatch.tuples, roots.tuples),
                (&mut dispatch.projections, roots.projections),
            ] {
                if begins || roots.all {
                    kind.push(rule);
                }
            }
        }
        dispatch
    }

    /// The rules that may apply at a node.
    #[inline]
    pub(crate) fn rules(&self, body: &Body, id: ExprId) -> &[u32] {
        match body.expr(id) {
            // Operators that were first named since are known to none.
            Expr::CallOp { op, .. } => self.ops.get(op.index()).unwrap_or(&self.all),
            Expr::Call { .. } => &self.calls,
            Expr::Tuple(_) => &self.tuples,
            Expr::Proj { .. } => &self.projections,
            Expr::If { .. } | Expr::Lambda { .. } => &self.all,
            _ => &[],
        }
    }
}

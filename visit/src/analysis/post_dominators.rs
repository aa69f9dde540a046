//! Which values everything that is computed from a value goes through.
//!
//! The graph has an edge from each value to each value that is computed from it. It has no cycles, so the immediate post-dominator of a value is the
//! nearest common post-dominator of its users, and going up from the end finds it at once (K. D. Cooper, T. J. Harvey, K. Kennedy, "A
//! simple, fast dominance algorithm", 2001, of which an acyclic graph needs one round). Common ancestors come from [`AncestorTree`].

use anfora_ir::{Body, Expr, ExprId, SideTable, VarId};

use crate::analysis::ancestors::AncestorTree;
use crate::analysis::blocks::Blocks;
use crate::link::Binding;

/// The post-dominator tree of the values of a body: the graph that operator fusion looks at.
///
/// The values are the bindings, each by its Let, and the nodes that are no binding's value (operands that are not atoms, tails). An edge leads
/// from a value to each value *of the same block* that has it as an operand, condition or alias. A value goes to the exit of its
/// block if it is
/// - the tail of the block,
/// - used in a block that is nested in it: a branch, the block of a Lambda or a block as a value,
/// - bound in a dataflow region to a variable that is visible outside of it, or
/// - not used at all.
///
/// One value post-dominates another if every path from that one to the exit goes through it. The exit is what the methods say `None` for. Blocks are all
/// in one tree, and have only the exit in common. Parameters, literals and globals are not computed in a block and are no values here.
///
/// Where a method takes an expression, a binding may be named by its Let, its variable or its value.
///
/// To be made takes one walk down and one pass back up, and for each further use of a value time logarithmic
/// in how far it is from the use before; memory is linear.
///
/// It speaks of the body as it was when it was made. Any edit is legal while it exists, but for compaction, which renumbers: see
/// [`PostDominators::check`].
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Binding, PostDominators, chain};
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let x = f.param("x", unit);
/// # let one = f.tuple(&[x]);
/// # let a = f.bind("a", one);
/// # let left = f.tuple(&[a]);
/// # let b = f.bind("b", left);
/// # let right = f.tuple(&[a, a]);
/// # let c = f.bind("c", right);
/// # let join = f.tuple(&[b, c]);
/// # let d = f.bind("d", join);
/// # let key = f.finish(d).unwrap();
/// // let %a = (%x,); let %b = (%a,); let %c = (%a, %a); let %d = (%b, %c); %d
/// let body = &module.get(key).unwrap().body;
/// let [a, b, c, d]: [Binding; 4] = chain(body, body.root()).collect::<Vec<_>>().try_into().unwrap();
/// let tree = PostDominators::of(body);
/// assert_eq!(tree.immediate(a.id), Some(d.id));
/// assert_eq!(tree.common(b.id, c.id), Some(d.id));
/// assert_eq!(tree.immediate(d.id), None);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct PostDominators {
    /// The exit is its root.
    tree: AncestorTree,
    /// The value of each vertex but the exit.
    values: Vec<ExprId>,
    labels: Vec<Labels>,
    /// The vertex of an expression.
    vertex: SideTable<ExprId, u32>,
}

#[derive(Copy, Clone, PartialEq, Debug, Default)]
struct Labels {
    /// The greatest label on the paths to the parent.
    path: u8,
    /// The greatest label on the paths to the jump of the tree.
    jump: u8,
}

const EXIT: u32 = 0;
const UNUSED: u32 = u32::MAX;

impl PostDominators {
    /// The post-dominator tree of everything that can be reached from a body's root.
    pub fn of(body: &Body) -> PostDominators {
        PostDominators::with_labels(body, |_, _| 0)
    }

    /// The same, with a label on each edge: `label(operand, user)`, where `user` is the node that has the operand (the Let, where a binding's value
    /// is an atom). [`PostDominators::path_label`] then says the greatest label on the paths from a value to its immediate post-dominator:
    /// with fusion patterns for labels, whether what lies between can be fused.
    pub fn with_labels(body: &Body, label: impl Fn(ExprId, ExprId) -> u8) -> PostDominators {
        let (blocks, order) = Blocks::with_order(body);
        let mut builder = Builder {
            body,
            blocks,
            label,
            result: PostDominators {
                tree: AncestorTree::new(),
                values: Vec::new(),
                labels: vec![Labels::default()],
                vertex: body.side_table(UNUSED),
            },
            pending: body.side_table(Pending { last_user: EXIT, path: 0 }),
        };
        body.params().iter().for_each(|&param| builder.is_no_value(param));
        // In reverse, what is computed from a value comes before it.
        for &id in order.iter().rev() {
            builder.value(id);
        }
        builder.result
    }

    fn vertex(&self, id: ExprId) -> Option<u32> {
        Some(self.vertex[id]).filter(|&v| v != UNUSED && v != EXIT)
    }

    fn value(&self, vertex: u32) -> Option<ExprId> {
        Some(self.values[vertex.checked_sub(1)? as usize])
    }

    /// The first value that everything computed from a value goes through; `None` if that is the exit, or it is no value.
    pub fn immediate(&self, id: ExprId) -> Option<ExprId> {
        self.value(self.tree.parent(self.vertex(id)?))
    }

    /// The immediate post-dominator of a value, that of this one, and so on to the exit.
    pub fn path(&self, id: ExprId) -> impl Iterator<Item = ExprId> + '_ {
        std::iter::successors(self.immediate(id), |&id| self.immediate(id))
    }

    /// How many values post-dominate a value, and the exit: 1 for one that the exit alone does, 0 for what is no value.
    pub fn depth(&self, id: ExprId) -> u32 {
        self.vertex(id).map_or(0, |v| self.tree.depth(v))
    }

    /// The first value that everything computed from either goes through, which may be one of them; `None` if that is the exit, or one is
    /// no value. Logarithmic.
    pub fn common(&self, a: ExprId, b: ExprId) -> Option<ExprId> {
        self.value(self.tree.common(self.vertex(a)?, self.vertex(b)?))
    }

    /// Whether everything computed from `id` goes through `by`, as it does if they are the same. Logarithmic.
    pub fn is_post_dominated(&self, id: ExprId, by: ExprId) -> bool {
        match (self.vertex(id), self.vertex(by)) {
            (Some(id), Some(by)) => self.tree.is_under(id, by),
            _ => false,
        }
    }

    /// The greatest label of an edge on the paths from a value to its immediate post-dominator; 0 if that is the exit, or without labels.
    pub fn path_label(&self, id: ExprId) -> u8 {
        self.vertex(id).map_or(0, |v| self.labels[v as usize].path)
    }

    /// Asserts that this belongs to the present generation of the body.
    ///
    /// # Panics
    /// If the body was compacted since.
    pub fn check(&self, body: &Body) {
        body.check_table(&self.vertex);
    }

    /// The greatest label on the paths from a vertex to one that post-dominates it.
    fn climb(&self, mut at: u32, to: u32) -> u8 {
        let (depth, mut greatest) = (self.tree.depth(to), 0);
        while self.tree.depth(at) > depth {
            let labels = self.labels[at as usize];
            let jump = self.tree.jump(at);
            if self.tree.depth(jump) >= depth {
                (at, greatest) = (jump, greatest.max(labels.jump));
            } else {
                (at, greatest) = (self.tree.parent(at), greatest.max(labels.path));
            }
        }
        greatest
    }

    fn add(&mut self, parent: u32, path: u8, value: ExprId) -> u32 {
        let path = if parent == EXIT { 0 } else { path };
        let jump = if self.tree.jumps_further(parent) {
            let far = self.tree.jump(parent);
            path.max(self.labels[parent as usize].jump).max(self.labels[far as usize].jump)
        } else {
            path
        };
        self.labels.push(Labels { path, jump });
        self.values.push(value);
        self.tree.add(parent)
    }
}

/// What is known of an expression whose turn has not come.
#[derive(Copy, Clone)]
struct Pending {
    /// The user that was met last.
    last_user: u32,
    /// The greatest label on the paths to the common post-dominator of the users that were met.
    path: u8,
}

struct Builder<'b, L> {
    body: &'b Body,
    blocks: Blocks,
    label: L,
    /// In it, `vertex` of an expression whose turn has not come is the common post-dominator of those of its users that were met.
    result: PostDominators,
    pending: SideTable<ExprId, Pending>,
}

impl<L: Fn(ExprId, ExprId) -> u8> Builder<'_, L> {
    /// Gives a node its vertex and says so to what it is computed from.
    #[inline]
    fn value(&mut self, id: ExprId) {
        if let Some(binding) = Binding::of(self.body, id) {
            return self.binding(binding);
        }
        let found = match self.result.vertex[id] {
            UNUSED => EXIT,
            v => v,
        };
        let is_bound =
            self.result.value(found).and_then(|user| Binding::of(self.body, user)).is_some_and(|b| b.value == id);
        let vertex = if is_bound { found } else { self.result.add(found, self.pending[id].path, id) };
        self.result.vertex.set(id, vertex);
        for &input in self.body.inputs(id) {
            self.flows(input, vertex, id);
        }
        match self.body.expr(id) {
            Expr::If { then_block, else_block, .. } => {
                self.leaves(then_block);
                self.leaves(else_block);
            }
            Expr::Lambda { lambda, body: block } => {
                self.leaves(block);
                self.body.lambda_params(lambda).for_each(|param| self.is_no_value(param));
            }
            _ => {}
        }
    }

    #[inline]
    fn binding(&mut self, binding: Binding) {
        let Binding { id, var, value, rest, flags } = binding;
        self.leaves(rest);
        let found = match self.result.vertex[var.expr()] {
            UNUSED => EXIT,
            _ if flags.is_dataflow() && !self.body.is_dataflow_var(var) => EXIT,
            v => v,
        };
        let vertex = self.result.add(found, self.pending[var.expr()].path, id);
        self.result.vertex.set(id, vertex);
        self.result.vertex.set(var.expr(), vertex);
        self.flows(value, vertex, id);
    }

    /// A parameter has no vertex: where it flows does not matter.
    fn is_no_value(&mut self, param: VarId) {
        self.result.vertex.set(param.expr(), EXIT);
    }

    /// An operand flows into a value by a node of it.
    #[inline]
    fn flows(&mut self, operand: ExprId, to: u32, user: ExprId) {
        match self.body.expr(operand) {
            Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None | Expr::Let { .. } => return,
            _ => {}
        }
        if self.blocks.block(operand) != self.blocks.block(user) {
            return self.leaves(operand);
        }
        let found = self.result.vertex[operand];
        if found == EXIT {
            return;
        }
        let label = (self.label)(operand, user);
        let pending = self.pending.get_mut(operand);
        let before = std::mem::replace(&mut pending.last_user, to);
        pending.path = label.max(pending.path);
        if found == UNUSED || before == to {
            if found == UNUSED {
                self.result.vertex.set(operand, to);
            }
            return;
        }
        // From the user before, the way to this one is shorter than from what both go through. What lies between the user before and that is
        // in the greatest label already.
        let common = self.result.tree.common(before, to);
        let mut path = pending.path.max(self.result.climb(to, common));
        if self.result.tree.depth(common) < self.result.tree.depth(found) {
            path = path.max(self.result.climb(found, common));
            self.result.vertex.set(operand, common);
        }
        pending.path = path;
    }

    /// An expression flows out of its block.
    #[inline]
    fn leaves(&mut self, id: ExprId) {
        match self.body.expr(id) {
            Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None | Expr::Let { .. } => return,
            _ => {}
        }
        // One that has its vertex keeps it: the tail, which comes last, and the name of a recursive function.
        let found = self.result.vertex[id];
        let is_done = |value| value == id || Binding::of(self.body, value).is_some_and(|b| b.var.expr() == id);
        if found == UNUSED || !self.result.value(found).is_some_and(is_done) {
            self.result.vertex.set(id, EXIT);
        }
    }
}

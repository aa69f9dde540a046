//! Post-dominators of the values of a body.

use anfora_ir::{Body, Expr, ExprId, SideTable};

use crate::analysis::blocks::Blocks;
use crate::analysis::flow_graph::{FlowEdge, FlowGraph};
use crate::analysis::post_dominator_tree::PostDominatorTree;
use crate::link::Binding;

/// The post-dominator tree of the values of a body, which operator fusion uses.
///
/// The values are the bindings, each represented by its Let, and the nodes that are not the value
/// of a binding (operands that are not atoms, tails). An edge leads from a value to each value *of
/// the same block* that has it as an operand, condition or alias. A value has an edge to the exit
/// of its block if it is
/// - the tail of the block,
/// - used in a block that is nested in it: a branch, the block of a Lambda or a block as a value,
/// - bound in a dataflow region to a variable that is visible outside of it, or
/// - not used at all.
///
/// A value post-dominates another if every path from the other to the exit goes through it. The
/// methods return `None` for the exit. All blocks are in one tree and have only the exit in common.
/// Parameters, literals and globals are not computed in a block and are not values here.
///
/// The methods accept the Let, the variable or the value of a binding.
///
/// Making it takes a walk down and two passes over the values. Each further use of a value takes
/// time logarithmic in the distance of the uses. Memory is linear.
///
/// It describes the body at the time it was made. While it exists, any edit is legal except
/// compaction, which renumbers expressions: see [`PostDominators::check`].
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
/// let [a, b, c, d]: [Binding; 4] =
///     chain(body, body.root()).collect::<Vec<_>>().try_into().unwrap();
/// let tree = PostDominators::of(body);
/// assert_eq!(tree.immediate(a.id), Some(d.id));
/// assert_eq!(tree.common(b.id, c.id), Some(d.id));
/// assert_eq!(tree.immediate(d.id), None);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct PostDominators {
    tree: PostDominatorTree,
    /// The value of each vertex.
    values: Vec<ExprId>,
    /// The vertex of an expression.
    vertex: SideTable<ExprId, u32>,
}

const NONE: u32 = u32::MAX;

impl PostDominators {
    /// Returns the post-dominator tree of all values that a body's root reaches.
    pub fn of(body: &Body) -> PostDominators {
        PostDominators::with_labels(body, |_, _| 0)
    }

    /// Returns the tree with a label on each edge: `label(operand, user)`, where `user` is the node
    /// that has the operand (the Let, if a binding's value is an atom or shared).
    /// [`PostDominators::path_label`] returns the greatest label on the paths from a value to its
    /// immediate post-dominator. With fusion patterns as labels, it shows whether the values
    /// between them can be fused.
    pub fn with_labels(body: &Body, label: impl Fn(ExprId, ExprId) -> u8) -> PostDominators {
        let (blocks, order) = Blocks::with_order(body);
        let mut flow = Flow {
            body,
            blocks,
            label,
            values: Vec::with_capacity(order.len()),
            vertex: body.side_table(NONE),
            edges: Vec::with_capacity(body.operand_count()),
            leaving: Vec::new(),
            tails: Vec::new(),
        };
        for id in order {
            flow.value(id);
        }
        flow.tree()
    }

    fn vertex(&self, id: ExprId) -> Option<u32> {
        Some(self.vertex[id]).filter(|&v| v != NONE)
    }

    fn value(&self, vertex: u32) -> ExprId {
        self.values[vertex as usize]
    }

    /// Returns the first value on every path from a value to the exit; `None` if that is the exit,
    /// or `id` is not a value.
    pub fn immediate(&self, id: ExprId) -> Option<ExprId> {
        self.tree.immediate(self.vertex(id)?).map(|v| self.value(v))
    }

    /// Returns the immediate post-dominator of a value, then that one's, and so on up to the exit.
    pub fn path(&self, id: ExprId) -> impl Iterator<Item = ExprId> + '_ {
        std::iter::successors(self.immediate(id), |&id| self.immediate(id))
    }

    /// Returns the number of values that post-dominate a value, plus one for the exit; 0 if `id` is
    /// not a value.
    pub fn depth(&self, id: ExprId) -> u32 {
        self.vertex(id).map_or(0, |v| self.tree.depth(v))
    }

    /// Returns the first value on every path from both values, which may be one of them; `None` if
    /// that is the exit, or if one is not a value. Takes logarithmic time.
    pub fn common(&self, a: ExprId, b: ExprId) -> Option<ExprId> {
        self.tree.common(self.vertex(a)?, self.vertex(b)?).map(|v| self.value(v))
    }

    /// Returns true if every path from `id` to the exit goes through `by`, or they are the same.
    /// Takes logarithmic time.
    pub fn is_post_dominated(&self, id: ExprId, by: ExprId) -> bool {
        match (self.vertex(id), self.vertex(by)) {
            (Some(id), Some(by)) => self.tree.is_post_dominated(id, by),
            _ => false,
        }
    }

    /// Returns the greatest label of an edge on the paths from a value to its immediate
    /// post-dominator; 0 if that is the exit, or without labels.
    pub fn path_label(&self, id: ExprId) -> u8 {
        self.vertex(id).map_or(0, |v| self.tree.path_label(v))
    }

    /// Asserts that the tree belongs to the current generation of the body.
    ///
    /// # Panics
    /// If the body was compacted since the tree was made.
    pub fn check(&self, body: &Body) {
        body.check_table(&self.vertex);
    }
}

/// Makes the graph of a body, in program order.
struct Flow<'b, L> {
    body: &'b Body,
    blocks: Blocks,
    label: L,
    values: Vec<ExprId>,
    vertex: SideTable<ExprId, u32>,
    edges: Vec<(u32, FlowEdge)>,
    /// By vertex: true if the value flows out of its block, so that its edges do not matter.
    leaving: Vec<bool>,
    /// Tails that had no vertex yet when the last Let of their chain was visited.
    tails: Vec<ExprId>,
}

impl<L: Fn(ExprId, ExprId) -> u8> Flow<'_, L> {
    /// Adds a vertex for a node, with an edge from each of its operands. Parameters have no vertex,
    /// and neither has a recursive function in its own block.
    #[inline]
    fn value(&mut self, id: ExprId) {
        if let Some(binding) = Binding::of(self.body, id) {
            return self.binding(binding);
        }
        let vertex = self.add(id);
        for &input in self.body.inputs(id) {
            self.flows(input, vertex, id);
        }
        match self.body.expr(id) {
            Expr::If { then_block, else_block, .. } => {
                self.leaves(then_block);
                self.leaves(else_block);
            }
            Expr::Lambda { body: block, .. } => self.leaves(block),
            _ => {}
        }
    }

    fn add(&mut self, id: ExprId) -> u32 {
        let vertex = self.values.len() as u32;
        self.values.push(id);
        self.leaving.push(false);
        self.vertex.set(id, vertex);
        vertex
    }

    /// Adds a binding. The Let shares a vertex with its value, if nothing else refers to the value.
    #[inline]
    fn binding(&mut self, Binding { id, var, value, rest, flags }: Binding) {
        let value_vertex = self.vertex[value];
        let is_own = !self.blocks.is_shared(value) && !self.body.expr(value).is_atom();
        if is_own && value_vertex != NONE && Binding::of(self.body, value).is_none() {
            self.values[value_vertex as usize] = id;
            self.vertex.set(id, value_vertex);
        } else {
            let vertex = self.add(id);
            self.flows(value, vertex, id);
        }
        self.vertex.set(var.expr(), self.vertex[id]);
        if flags.is_dataflow() && !self.body.is_dataflow_var(var) {
            self.leaves(var.expr());
        }
        if self.body.expr(rest).is_atom() {
            self.leaves(rest);
        } else if Binding::of(self.body, rest).is_none() {
            self.tails.push(rest);
        }
    }

    /// Adds an edge from an operand to a value that has it, by the node `user`.
    #[inline]
    fn flows(&mut self, operand: ExprId, to: u32, user: ExprId) {
        let from = self.vertex[operand];
        if from == NONE || Binding::of(self.body, operand).is_some() {
            return;
        }
        if self.blocks.block(operand) != self.blocks.block(user) {
            self.leaving[from as usize] = true;
        } else {
            self.edges.push((from, FlowEdge { to, label: (self.label)(operand, user) }));
        }
    }

    /// Records that an expression flows out of its block.
    #[inline]
    fn leaves(&mut self, id: ExprId) {
        let vertex = self.vertex[id];
        if vertex != NONE && Binding::of(self.body, id).is_none() {
            self.leaving[vertex as usize] = true;
        }
    }

    fn tree(mut self) -> PostDominators {
        for tail in std::mem::take(&mut self.tails) {
            self.leaves(tail);
        }
        let Flow { values, vertex, mut edges, leaving, .. } = self;
        edges.retain(|&(from, _)| !leaving[from as usize]);
        let tree = PostDominatorTree::new(&FlowGraph::new(values.len(), &edges));
        PostDominators { tree, values, vertex }
    }
}

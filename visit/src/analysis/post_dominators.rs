//! Which values everything that is computed from a value goes through.

use anfora_ir::{Body, Expr, ExprId, SideTable};

use crate::analysis::blocks::Blocks;
use crate::analysis::flow_graph::{FlowEdge, FlowGraph};
use crate::analysis::post_dominator_tree::PostDominatorTree;
use crate::link::Binding;

/// The post-dominator tree of the values of a body: the graph that operator fusion looks at.
///
/// The values are the bindings, each by its Let, and the nodes that are no binding's value
/// (operands that are not atoms, tails). An edge leads from a value to each value *of the same
/// block* that has it as an operand, condition or alias. A value goes to the exit of its block if
/// it is
/// - the tail of the block,
/// - used in a block that is nested in it: a branch, the block of a Lambda or a block as a value,
/// - bound in a dataflow region to a variable that is visible outside of it, or
/// - not used at all.
///
/// One value post-dominates another if every path from that one to the exit goes through it. The
/// exit is what the methods say `None` for. Blocks are all in one tree, and have only the exit in
/// common. Parameters, literals and globals are not computed in a block and are no values here.
///
/// Where a method takes an expression, a binding may be named by its Let, its variable or its
/// value.
///
/// Making it takes a walk down and two passes over the values. For each further use of a
/// value it takes time logarithmic in how far the uses are apart. Memory is linear.
///
/// It speaks of the body as it was when it was made. Any edit is legal while it exists, but for
/// compaction, which renumbers: see [`PostDominators::check`].
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
    tree: PostDominatorTree,
    /// The value of each vertex.
    values: Vec<ExprId>,
    /// The vertex of an expression.
    vertex: SideTable<ExprId, u32>,
}

const NONE: u32 = u32::MAX;

impl PostDominators {
    /// The post-dominator tree of everything that can be reached from a body's root.
    pub fn of(body: &Body) -> PostDominators {
        PostDominators::with_labels(body, |_, _| 0)
    }

    /// The same, with a label on each edge: `label(operand, user)`, where `user` is the node that
    /// has the operand (the Let, where a binding's value is an atom or shared).
    /// [`PostDominators::path_label`] then says the greatest label on the paths from a value to its
    /// immediate post-dominator: with fusion patterns for labels, whether what lies between can be
    /// fused.
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

    /// The first value that everything computed from a value goes through; `None` if that is the
    /// exit, or it is no value.
    pub fn immediate(&self, id: ExprId) -> Option<ExprId> {
        self.tree.immediate(self.vertex(id)?).map(|v| self.value(v))
    }

    /// The immediate post-dominator of a value, that of this one, and so on to the exit.
    pub fn path(&self, id: ExprId) -> impl Iterator<Item = ExprId> + '_ {
        std::iter::successors(self.immediate(id), |&id| self.immediate(id))
    }

    /// How many values post-dominate a value, and the exit: 1 for one that the exit alone does, 0
    /// for what is no value.
    pub fn depth(&self, id: ExprId) -> u32 {
        self.vertex(id).map_or(0, |v| self.tree.depth(v))
    }

    /// The first value that everything computed from either goes through, which may be one of them;
    /// `None` if that is the exit, or one is no value. Logarithmic.
    pub fn common(&self, a: ExprId, b: ExprId) -> Option<ExprId> {
        self.tree.common(self.vertex(a)?, self.vertex(b)?).map(|v| self.value(v))
    }

    /// Returns true if everything computed from `id` goes through `by`, as it does if they are the
    /// same. Logarithmic.
    pub fn is_post_dominated(&self, id: ExprId, by: ExprId) -> bool {
        match (self.vertex(id), self.vertex(by)) {
            (Some(id), Some(by)) => self.tree.is_post_dominated(id, by),
            _ => false,
        }
    }

    /// The greatest label of an edge on the paths from a value to its immediate post-dominator; 0
    /// if that is the exit, or without labels.
    pub fn path_label(&self, id: ExprId) -> u8 {
        self.vertex(id).map_or(0, |v| self.tree.path_label(v))
    }

    /// Asserts that this belongs to the present generation of the body.
    ///
    /// # Panics
    /// If the body was compacted since.
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
    /// Gives a node its vertex, and an edge to it to each of its operands. A parameter has no
    /// vertex, nor has a recursive function where its own block uses it.
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

    /// A Let and a value that nothing else refers to share a vertex.
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

    /// An operand flows into a value by a node of it.
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

    /// An expression flows out of its block.
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

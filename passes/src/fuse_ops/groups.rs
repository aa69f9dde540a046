//! The partition of nodes into groups that are computed together.
//!
//! Each node begins as a group of its own. A group is merged, with everything on the paths from it
//! to the immediate post-dominator of its last node, into the group of that post-dominator. So at
//! any time:
//!
//! - The last node of a group post-dominates the others, and the group contains everything on the
//!   paths from any of them to it.
//! - A node of a group other than its last is used only inside the group. All uses from outside are
//!   uses of the last node: a group has one result.
//! - Groups placed at their last nodes are in a correct order and have no cycles. A group uses only
//!   the last node of another group. This node comes before its user, and therefore before the last
//!   node of the group of the user.
//!
//! A walk along the paths therefore goes from last node to last node, and never into a group. The
//! groups that it passes become part of one group if they are merged, so that they are not walked
//! again. Otherwise the walk ends at the first node that prevents the merge, at the latest when
//! there are more nodes than a group may have.

use anfora_ir::bumpalo::Bump;
use anfora_ir::{Body, Context, EntityId, Expr, ExprId, ScratchVec, work};
use anfora_visit::PostDominatorTree;

use super::FusionLimits;
use super::graph::{BROADCAST, COMM_REDUCE, ELEM_WISE, Graph, INJECTIVE, OPAQUE, OUT_ELEM_WISE, TUPLE, pattern_of};
use crate::outline::is_large;

/// The nodes of a function in groups.
pub(super) struct Groups<'a> {
    graph: &'a Graph<'a>,
    dominators: &'a PostDominatorTree,
    limits: FusionLimits,
    /// By node: a node closer to the last node of its group, or itself.
    parents: &'a mut [u32],
    /// By last node of a group: the kind of the group. By any other node: the kind of its group at
    /// the time it was merged.
    kinds: &'a mut [u8],
    /// By last node of a group: the number of its nodes.
    sizes: &'a mut [u32],
    /// The groups on the last walked paths.
    passed: ScratchVec<'a, u32>,
    stack: ScratchVec<'a, u32>,
    /// By node: the last walk that reached it.
    walked: &'a mut [u32],
    walk: u32,
    arguments: Option<Arguments<'a>>,
    pub(super) merged: bool,
}

/// The reason why a group is not merged into that of its post-dominator.
#[derive(Copy, Clone)]
enum Obstacle {
    /// The node cannot be fused, or is not the last of its group.
    Node,
    /// The node has no post-dominator.
    NoEnd,
    /// The kinds of the group and of this post-dominator do not go together.
    Kind(u32),
    /// This node is on a path to the post-dominator.
    Between(u32),
    TooMany,
    TooManyArguments,
}

/// The atoms that groups need from outside. They are recorded only if there is a limit.
struct Arguments<'a> {
    cx: &'a Context,
    body: &'a Body,
    /// By last node of a group: the atoms, once computed.
    of: Vec<Option<Vec<ExprId>>>,
    /// By expression: the last count in which it was seen.
    seen: Vec<u32>,
    count: u32,
}

/// Returns the reason why a call has the kind of those that are in no group.
fn alone(cx: &Context, body: &Body, call: ExprId) -> String {
    match body.expr(call) {
        Expr::CallOp { op, .. } if pattern_of(cx, body, op, call) == OPAQUE => {
            format!("calls of `{}` with such operands and attributes are computed alone", cx.ops.get(op).name)
        }
        Expr::CallOp { .. } => "it is used as a value several times, or an operand is nested".to_string(),
        _ => "its function states no pattern (`op_pattern`), or the extents of its result are not known".to_string(),
    }
}

impl<'a> Groups<'a> {
    /// Makes the groups.
    pub(super) fn new(
        cx: &'a Context,
        body: &'a Body,
        graph: &'a Graph<'a>,
        dominators: &'a PostDominatorTree,
        limits: FusionLimits,
        scratch: &'a Bump,
    ) -> Groups<'a> {
        let n = graph.len();
        let arguments = (limits.max_function_args > 0).then(|| Arguments {
            cx,
            body,
            of: vec![None; n],
            seen: vec![0; body.len()],
            count: 0,
        });
        let mut groups = Groups {
            graph,
            dominators,
            limits,
            parents: scratch.alloc_slice_fill_with(n, |node| node as u32),
            kinds: scratch.alloc_slice_copy(&graph.kinds),
            sizes: scratch.alloc_slice_fill_copy(n, 1),
            passed: ScratchVec::new_in(scratch),
            stack: ScratchVec::new_in(scratch),
            walked: scratch.alloc_slice_fill_copy(n, 0),
            walk: 0,
            arguments,
            merged: false,
        };
        for phase in 0..3 {
            for node in 0..n as u32 {
                groups.extend(phase, node);
            }
        }
        groups
    }

    /// Returns the last node of a node's group.
    #[inline]
    pub(super) fn last(&mut self, mut node: u32) -> u32 {
        loop {
            let parent = self.parents[node as usize];
            if parent == node {
                return node;
            }
            let next = self.parents[parent as usize];
            self.parents[node as usize] = next;
            node = next;
        }
    }

    /// Merges the group that ends with a node into the group of the node's post-dominator, if the
    /// phase allows this and nothing prevents it.
    #[inline]
    fn extend(&mut self, phase: u8, node: u32) {
        if let Ok(last) = self.target(phase, node) {
            self.merge(node, last);
        }
    }

    /// Returns the group into which the group that ends with a node may be merged, and records the
    /// groups in between.
    #[inline]
    fn target(&mut self, phase: u8, node: u32) -> Result<u32, Obstacle> {
        let kind = self.kinds[node as usize];
        if kind == OPAQUE || self.parents[node as usize] != node {
            return Err(Obstacle::Node);
        }
        let Some(end) = self.dominators.immediate(node) else { return Err(Obstacle::NoEnd) };
        let label = self.dominators.path_label(node);
        // The greatest kinds allowed for groups in between, and for the group at the end.
        let (between, at_end) = match (phase, kind) {
            (2, ELEM_WISE..=INJECTIVE) if self.kinds[end as usize] == TUPLE => (INJECTIVE, INJECTIVE),
            (2, _) => return Err(Obstacle::Kind(end)),
            _ if self.kinds[end as usize] == TUPLE => return Err(Obstacle::Kind(end)),
            (0, OUT_ELEM_WISE) if label == ELEM_WISE => (BROADCAST, BROADCAST),
            (_, ELEM_WISE | BROADCAST) if label <= INJECTIVE || label == COMM_REDUCE => (INJECTIVE, OUT_ELEM_WISE),
            (1, INJECTIVE | TUPLE) => (INJECTIVE, INJECTIVE),
            _ => return Err(Obstacle::Kind(end)),
        };
        let last = self.last(end);
        if self.kinds[last as usize] > at_end {
            return Err(Obstacle::Kind(end));
        }
        // The longest path gives a lower bound of the number of nodes.
        let longest = self.dominators.height(node) - self.dominators.height(end);
        if self.sizes[node as usize].saturating_add(longest) > self.limits.max_depth {
            return Err(Obstacle::TooMany);
        }
        self.walk(node, end, between)?;
        if !self.arguments_fit(node, last) {
            return Err(Obstacle::TooManyArguments);
        }
        Ok(last)
    }

    /// Records for each call of a region that is in no group with its users why it is not.
    #[cold]
    pub(super) fn explain(&mut self, cx: &Context, body: &Body) {
        // An output that no other binding uses is nowhere near a group.
        let mut is_operand = vec![false; self.graph.len()];
        for &link in &*self.graph.lets {
            let Expr::Let { value, .. } = body.expr(link) else { continue };
            for node in body.inputs(value).iter().filter_map(|&input| self.graph.node(input)) {
                is_operand[node as usize] = true;
            }
        }
        for node in 0..self.graph.len() as u32 {
            let link = self.graph.lets[node as usize];
            let Expr::Let { value, .. } = body.expr(link) else { continue };
            let is_call = matches!(body.expr(value), Expr::CallOp { .. } | Expr::Call { .. });
            if !is_call || !is_operand[node as usize] {
                continue;
            }
            if self.kinds[node as usize] == OPAQUE {
                cx.nearly(body, link, super::PASS, || alone(cx, body, value));
                continue;
            }
            let end_is_tuple = |end: u32| self.kinds[end as usize] == TUPLE;
            let phase = match self.kinds[node as usize] {
                _ if self.dominators.immediate(node).is_some_and(end_is_tuple) => 2,
                OUT_ELEM_WISE => 0,
                _ => 1,
            };
            match self.target(phase, node) {
                Ok(_) | Err(Obstacle::Node) => {}
                Err(obstacle) => cx.nearly(body, link, super::PASS, || self.reason(cx, body, node, obstacle)),
            }
        }
    }

    /// Returns an obstacle in words.
    fn reason(&self, cx: &Context, body: &Body, node: u32, obstacle: Obstacle) -> String {
        let name = |node: u32| {
            let link = self.graph.lets[node as usize];
            body.binding_name(cx, link).map_or("a binding".to_string(), |name| format!("%{name}"))
        };
        match obstacle {
            Obstacle::Node => "it cannot be fused".to_string(),
            Obstacle::NoEnd if self.graph.escapes(node) => {
                "it is used elsewhere: outside of its dataflow region, in a block, or as an output".to_string()
            }
            Obstacle::NoEnd => match self.graph.flow.edges(node) {
                [first, .., last] => {
                    format!("it is used by {} and {}, which lead to no common binding", name(first.to), name(last.to))
                }
                _ => "its users lead to no common binding".to_string(),
            },
            Obstacle::Kind(end) if self.kinds[end as usize] == OPAQUE => {
                format!("{}, to which its uses lead, cannot be fused", name(end))
            }
            Obstacle::Kind(end) => {
                format!("its kind and that of {}, to which its uses lead, do not go together", name(end))
            }
            Obstacle::Between(between) => format!(
                "{} is on the way to the binding that its uses lead to, and cannot be fused with them",
                name(between)
            ),
            Obstacle::TooMany => {
                format!("the group would have more than {} bindings (FuseOps.max_depth)", self.limits.max_depth)
            }
            Obstacle::TooManyArguments => format!(
                "the function would have more than {} parameters (FuseOps.max_function_args)",
                self.limits.max_function_args
            ),
        }
    }

    /// Walks the paths from a node to the group of its post-dominator, and records the groups in
    /// between.
    ///
    /// # Errors
    /// If there are too many, or one has a kind above `greatest`.
    fn walk(&mut self, node: u32, end: u32, greatest: u8) -> Result<(), Obstacle> {
        let last = self.last(end);
        self.walk += 1;
        self.passed.clear();
        self.stack.clear();
        self.stack.push(node);
        let mut size = u64::from(self.sizes[node as usize]) + u64::from(self.sizes[last as usize]);
        if size > u64::from(self.limits.max_depth) {
            return Err(Obstacle::TooMany);
        }
        let graph = self.graph;
        while let Some(at) = self.stack.pop() {
            for edge in graph.flow.edges(at) {
                work::tick();
                let next = self.last(edge.to);
                if next == last {
                    // Except for the end itself, the nodes of its group are on the way to it.
                    if edge.to != end && self.kinds[last as usize] > greatest {
                        return Err(Obstacle::Between(edge.to));
                    }
                    continue;
                }
                if self.walked[next as usize] == self.walk {
                    continue;
                }
                self.walked[next as usize] = self.walk;
                size += u64::from(self.sizes[next as usize]);
                if self.kinds[next as usize] > greatest {
                    return Err(Obstacle::Between(next));
                }
                if size > u64::from(self.limits.max_depth) {
                    return Err(Obstacle::TooMany);
                }
                self.passed.push(next);
                self.stack.push(next);
            }
        }
        Ok(())
    }

    fn merge(&mut self, node: u32, last: u32) {
        self.merged = true;
        for i in 0..=self.passed.len() {
            let group = self.passed.get(i).copied().unwrap_or(node);
            self.parents[group as usize] = last;
            self.sizes[last as usize] += self.sizes[group as usize];
        }
        // A group that elementwise operations were appended to keeps its kind.
        if self.kinds[node as usize] == OUT_ELEM_WISE {
            self.kinds[last as usize] = OUT_ELEM_WISE;
        }
    }

    /// Returns true if the walked groups, with the first and the last, need at most as many atoms
    /// from outside as a function may have parameters. If so, records these atoms for the last
    /// group, since the groups are about to be merged.
    fn arguments_fit(&mut self, node: u32, last: u32) -> bool {
        let Some(mut arguments) = self.arguments.take() else { return true };
        let limit = self.limits.max_function_args as usize;
        self.walked[node as usize] = self.walk;
        self.walked[last as usize] = self.walk;
        self.passed.push(node);
        self.passed.push(last);
        let inside = self.passed.len();
        // At most `inside` of a group's atoms are computed in the walked groups.
        let mut fits = self.passed.iter().all(|&group| arguments.list(self.graph, group).len() <= limit + inside);
        let mut all: Vec<ExprId> = Vec::new();
        arguments.count += 1;
        for i in 0..inside {
            if !fits || all.len() > limit {
                fits = false;
                break;
            }
            for &atom in arguments.of[self.passed[i] as usize].iter().flatten() {
                let is_inside = self.graph.node(atom).is_some_and(|node| {
                    let last = self.last(node);
                    self.walked[last as usize] == self.walk
                });
                let seen = &mut arguments.seen[atom.index()];
                if !is_inside && std::mem::replace(seen, arguments.count) != arguments.count {
                    all.push(atom);
                }
            }
        }
        fits &= all.len() <= limit;
        self.passed.truncate(inside - 2);
        if fits {
            arguments.of[last as usize] = Some(all);
        }
        self.arguments = Some(arguments);
        fits
    }
}

impl Arguments<'_> {
    /// Returns the atoms that a group needs. For a group of one node, they are computed on first
    /// use.
    fn list(&mut self, graph: &Graph<'_>, node: u32) -> &[ExprId] {
        let Arguments { cx, body, of, seen, count } = self;
        of[node as usize].get_or_insert_with(|| {
            *count += 1;
            let Expr::Let { value, .. } = body.expr(graph.lets[node as usize]) else { unreachable!("a node is a Let") };
            let mut list = Vec::new();
            for &operand in body.inputs(value) {
                let counts = match body.expr(operand) {
                    Expr::Var { .. } => true,
                    Expr::Literal(literal) => is_large(cx.literals.get(literal)),
                    _ => false,
                };
                if counts && std::mem::replace(&mut seen[operand.index()], *count) != *count {
                    list.push(operand);
                }
            }
            list
        })
    }
}

//! Post-dominators in an acyclic graph.
//!
//! The immediate post-dominator of a vertex is the nearest common post-dominator of its successors,
//! so one pass from the last vertex to the first finds all of them (K. D. Cooper, T. J. Harvey, K.
//! Kennedy, "A simple, fast dominance algorithm", 2001; an acyclic graph needs one round).
//! [`AncestorTree`] finds common ancestors.

use anfora_ir::AncestorTree;

use crate::analysis::flow_graph::FlowGraph;

/// The post-dominator tree of a [`FlowGraph`].
///
/// A vertex without edges leads to the exit. A vertex post-dominates another if every path from the
/// other to the exit goes through it. The exit is the root of the tree and not a vertex; methods
/// return `None` for it. All methods panic if there is no such vertex.
///
/// Making the tree takes constant time for the first edge of a vertex, and for each further edge
/// time logarithmic in the distance of the edges.
///
/// ```
/// use anfora_visit::{FlowEdge, FlowGraph, PostDominatorTree};
///
/// // 0 -> 1 -> 3, 0 -> 2 -> 3
/// let edges = [(0, 1, 5), (0, 2, 1), (1, 3, 2), (2, 3, 7)];
/// let edges = edges.map(|(from, to, label)| (from, FlowEdge { to, label }));
/// let tree = PostDominatorTree::new(&FlowGraph::new(4, &edges));
/// assert_eq!(tree.immediate(0), Some(3));
/// assert_eq!(tree.immediate(3), None);
/// assert_eq!(tree.path_label(0), 7);
/// assert_eq!(tree.height(0), 3);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct PostDominatorTree {
    /// Vertex `v` of the graph is node `len - v`; node 0 is the exit.
    tree: AncestorTree,
    labels: Vec<PathLabels>,
    heights: Vec<u32>,
}

/// The greatest labels on the paths from a node.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
struct PathLabels {
    /// The greatest label on the paths to its parent.
    parent: u8,
    /// The greatest label on the paths to its jump in the tree.
    jump: u8,
}

const EXIT: u32 = 0;

impl PostDominatorTree {
    /// Returns the tree of a graph.
    ///
    /// # Panics
    /// If an edge leads neither to a later vertex nor to the exit.
    pub fn new(graph: &FlowGraph) -> PostDominatorTree {
        let nodes = graph.len() + 1;
        let len = graph.len() as u32;
        let mut result = PostDominatorTree {
            tree: AncestorTree::with_capacity(nodes),
            labels: Vec::with_capacity(nodes),
            heights: Vec::with_capacity(nodes),
        };
        result.labels.push(PathLabels::default());
        result.heights.push(0);
        for vertex in (0..len).rev() {
            let edges = graph.edges(vertex);
            let (mut parent, mut label, mut height) = (EXIT, 0, 0);
            if let Some((last, others)) = edges.split_last() {
                (parent, label) = (len - last.to, last.label);
                height = result.heights[parent as usize];
                for edge in others.iter().rev() {
                    let to = len - edge.to;
                    parent = result.tree.common(parent, to);
                    height = height.max(result.heights[to as usize]);
                }
                if !others.is_empty() && parent != EXIT {
                    for edge in edges {
                        label = label.max(edge.label).max(result.climb(len - edge.to, parent));
                    }
                }
            }
            result.add(parent, label, height + 1);
        }
        result
    }

    fn add(&mut self, parent: u32, label: u8, height: u32) {
        let label = if parent == EXIT { 0 } else { label };
        let jump = match self.tree.jumps_further(parent) {
            true => {
                let far = self.tree.jump(parent);
                label.max(self.labels[parent as usize].jump).max(self.labels[far as usize].jump)
            }
            false => label,
        };
        self.labels.push(PathLabels { parent: label, jump });
        self.heights.push(height);
        self.tree.add(parent);
    }

    /// Returns the greatest label on the paths from a node to a node that post-dominates it.
    fn climb(&self, mut at: u32, to: u32) -> u8 {
        let (depth, mut greatest) = (self.tree.depth(to), 0);
        while self.tree.depth(at) > depth {
            let labels = self.labels[at as usize];
            let jump = self.tree.jump(at);
            (at, greatest) = if self.tree.depth(jump) >= depth {
                (jump, greatest.max(labels.jump))
            } else {
                (self.tree.parent(at), greatest.max(labels.parent))
            };
        }
        greatest
    }

    /// Returns the node of a vertex.
    #[inline]
    fn node(&self, vertex: u32) -> u32 {
        self.len() - vertex
    }

    #[inline]
    fn vertex(&self, node: u32) -> Option<u32> {
        (node != EXIT).then(|| self.len() - node)
    }

    #[inline]
    fn len(&self) -> u32 {
        self.heights.len() as u32 - 1
    }

    /// Returns the first other vertex on every path from a vertex to the exit.
    #[inline]
    pub fn immediate(&self, vertex: u32) -> Option<u32> {
        self.vertex(self.tree.parent(self.node(vertex)))
    }

    /// Returns the greatest label on the paths from a vertex to its immediate post-dominator; 0 if
    /// that is the exit.
    #[inline]
    pub fn path_label(&self, vertex: u32) -> u8 {
        self.labels[self.node(vertex) as usize].parent
    }

    /// Returns the number of vertices on the longest path from a vertex, including itself.
    #[inline]
    pub fn height(&self, vertex: u32) -> u32 {
        self.heights[self.node(vertex) as usize]
    }

    /// Returns the number of vertices that post-dominate a vertex, plus one for the exit. The
    /// vertex itself does not count.
    pub fn depth(&self, vertex: u32) -> u32 {
        self.tree.depth(self.node(vertex))
    }

    /// Returns the first vertex on every path from both vertices, which may be one of them. Takes
    /// logarithmic time.
    pub fn common(&self, a: u32, b: u32) -> Option<u32> {
        self.vertex(self.tree.common(self.node(a), self.node(b)))
    }

    /// Returns true if every path from `vertex` goes through `by`, or they are the same. Takes
    /// logarithmic time.
    pub fn is_post_dominated(&self, vertex: u32, by: u32) -> bool {
        self.tree.is_under(self.node(vertex), self.node(by))
    }
}

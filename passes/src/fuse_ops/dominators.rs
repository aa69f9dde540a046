//! Where all paths from a node meet, and what they cross on the way.

use anfora_visit::AncestorTree;

use super::graph::Graph;

/// No post-dominator.
pub(super) const NONE: u32 = u32::MAX;

/// What is known of the paths from each node.
pub(super) struct Dominators {
    /// By node: the first other node that all paths from it go through, or [`NONE`].
    pub(super) immediate: Vec<u32>,
    /// By node: the greatest label on the paths to its immediate post-dominator.
    pub(super) labels: Vec<u8>,
    /// By node: how many nodes the longest path from it has, itself included.
    pub(super) heights: Vec<u32>,
}

/// The tree of post-dominators. Its root is the exit, where what escapes or is not used goes.
struct Tree {
    ancestors: AncestorTree,
    /// By vertex: the greatest label on the paths to its parent, and on those to its jump.
    labels: Vec<(u8, u8)>,
}

const EXIT: u32 = 0;

impl Tree {
    /// The greatest label on the paths from a vertex to one that post-dominates it. Logarithmic.
    fn climb(&self, mut at: u32, to: u32) -> u8 {
        let (depth, mut greatest) = (self.ancestors.depth(to), 0);
        while self.ancestors.depth(at) > depth {
            let (label, jump_label) = self.labels[at as usize];
            let jump = self.ancestors.jump(at);
            (at, greatest) = if self.ancestors.depth(jump) >= depth {
                (jump, greatest.max(jump_label))
            } else {
                (self.ancestors.parent(at), greatest.max(label))
            };
        }
        greatest
    }

    fn add(&mut self, parent: u32, label: u8) {
        let jump = match self.ancestors.jumps_further(parent) {
            true => {
                let far = self.ancestors.jump(parent);
                label.max(self.labels[parent as usize].1).max(self.labels[far as usize].1)
            }
            false => label,
        };
        self.labels.push((label, jump));
        self.ancestors.add(parent);
    }
}

impl Dominators {
    /// Goes up the graph, from users to what they use. For each use beyond a node's first, logarithmic in how far the uses are apart.
    pub(super) fn new(graph: &Graph) -> Dominators {
        let n = graph.len();
        let mut result = Dominators { immediate: vec![NONE; n], labels: vec![0; n], heights: vec![1; n] };
        let mut tree = Tree { ancestors: AncestorTree::new(), labels: Vec::with_capacity(n + 1) };
        tree.labels.push((0, 0));
        // The last node is the first vertex after the exit.
        let vertex = |node: u32| n as u32 - node;
        for node in (0..n as u32).rev() {
            let edges = graph.edges(node);
            let (mut parent, mut label) = (EXIT, 0);
            if let Some((last, others)) = edges.split_last() {
                parent = vertex(last.to);
                label = last.label;
                let mut height = result.heights[last.to as usize];
                for edge in others.iter().rev() {
                    parent = tree.ancestors.common(parent, vertex(edge.to));
                    height = height.max(result.heights[edge.to as usize]);
                }
                result.heights[node as usize] = height + 1;
                if parent != EXIT && !others.is_empty() {
                    for edge in edges {
                        label = label.max(edge.label).max(tree.climb(vertex(edge.to), parent));
                    }
                }
            }
            if parent != EXIT {
                result.immediate[node as usize] = vertex(parent);
                result.labels[node as usize] = label;
            }
            tree.add(parent, label);
        }
        result
    }
}

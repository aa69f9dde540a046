//! A tree that grows at its leaves, in which ancestors are found in logarithmic time.
//!
//! Skew-binary jump pointers: E. W. Myers, "An applicative random-access stack", Information
//! Processing Letters 17 (1983).

use crate::work;

#[derive(Copy, Clone, PartialEq, Debug)]
struct Node {
    parent: u32,
    /// An ancestor at such a distance that a walk along jumps and parents is logarithmic.
    jump: u32,
    depth: u32,
}

/// A tree whose nodes are numbered as they are added; number 0 is its root. Takes twelve bytes for
/// each node.
///
/// ```
/// use anfora_ir::AncestorTree;
///
/// let mut tree = AncestorTree::new();
/// let a = tree.add(0);
/// let (b, c) = (tree.add(a), tree.add(a));
/// assert_eq!(tree.common(b, c), a);
/// assert_eq!(tree.depth(c), 2);
/// assert_eq!(tree.ancestor(c, 0), 0);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct AncestorTree {
    nodes: Vec<Node>,
}

impl AncestorTree {
    /// Returns a tree with only the root.
    pub fn new() -> AncestorTree {
        AncestorTree::with_capacity(1)
    }

    /// Returns a tree with only the root, with room for this many nodes.
    pub fn with_capacity(nodes: usize) -> AncestorTree {
        let mut tree = AncestorTree { nodes: Vec::with_capacity(nodes) };
        tree.nodes.push(Node { parent: 0, jump: 0, depth: 0 });
        tree
    }

    #[inline]
    fn node(&self, node: u32) -> Node {
        work::tick();
        self.nodes[node as usize]
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns false: a tree always has a root.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Adds a leaf under a node and returns its number, in constant time.
    ///
    /// # Panics
    /// If there is no such node, or there are 2^32 nodes already.
    pub fn add(&mut self, parent: u32) -> u32 {
        let p = self.node(parent);
        let jump = if self.jumps_further(parent) { self.node(p.jump).jump } else { parent };
        let id = u32::try_from(self.nodes.len()).expect("a tree has fewer than 2^32 nodes");
        self.nodes.push(Node { parent, jump, depth: p.depth + 1 });
        id
    }

    /// Returns true if the jump of a leaf added under `parent` now would be the jump of `parent`'s
    /// jump, and false if it would be `parent`. This is for callers that store data about the paths
    /// to the jumps.
    pub fn jumps_further(&self, parent: u32) -> bool {
        let p = self.node(parent);
        let far = self.node(p.jump);
        p.depth - far.depth == far.depth - self.node(far.jump).depth
    }

    /// Returns the parent of a node; the root is its own parent.
    pub fn parent(&self, node: u32) -> u32 {
        self.node(node).parent
    }

    /// Returns the jump of a node: an ancestor to which walks can skip if they need not stop in
    /// between. The jump of the root is the root. A walk up that takes each jump that does not go
    /// too far, and the parent otherwise, is logarithmic.
    pub fn jump(&self, node: u32) -> u32 {
        self.node(node).jump
    }

    /// Returns the distance of a node from the root.
    pub fn depth(&self, node: u32) -> u32 {
        self.node(node).depth
    }

    /// Returns the ancestor of a node at a depth; the node itself if it is not deeper. Logarithmic.
    pub fn ancestor(&self, mut node: u32, depth: u32) -> u32 {
        while self.depth(node) > depth {
            let n = self.node(node);
            node = if self.depth(n.jump) >= depth { n.jump } else { n.parent };
        }
        node
    }

    /// Returns the deepest node whose subtree contains both nodes. Logarithmic.
    pub fn common(&self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let depth = self.depth(a).min(self.depth(b));
        let (mut a, mut b) = (self.ancestor(a, depth), self.ancestor(b, depth));
        while a != b {
            let (m, n) = (self.node(a), self.node(b));
            (a, b) = if m.jump == n.jump { (m.parent, n.parent) } else { (m.jump, n.jump) };
        }
        a
    }

    /// Returns true if `node` is in the subtree of `above`, or is `above` itself. Logarithmic.
    pub fn is_under(&self, node: u32, above: u32) -> bool {
        self.ancestor(node, self.depth(above)) == above
    }
}

impl Default for AncestorTree {
    fn default() -> Self {
        AncestorTree::new()
    }
}

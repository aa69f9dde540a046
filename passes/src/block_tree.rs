//! The nesting of blocks, which grows as blocks are found, and the innermost block that encloses two.
//!
//! Skew-binary jump pointers (Myers, An applicative random-access stack, 1983): a block is added in constant time, and the common
//! ancestor found in time logarithmic in the depth.

struct Node {
    parent: u32,
    /// An ancestor, so far up that a walk along jumps and parents is logarithmic.
    jump: u32,
    depth: u32,
}

/// Blocks, numbered as they are added. Number 0 is the outermost.
pub(crate) struct BlockTree {
    nodes: Vec<Node>,
}

impl BlockTree {
    /// The outermost block alone.
    pub(crate) fn new() -> BlockTree {
        BlockTree { nodes: vec![Node { parent: 0, jump: 0, depth: 0 }] }
    }

    fn node(&self, block: u32) -> &Node {
        &self.nodes[block as usize]
    }

    /// How many blocks there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds a block inside another.
    pub(crate) fn add(&mut self, parent: u32) -> u32 {
        let p = self.node(parent);
        let far = self.node(p.jump);
        let jump = if p.depth - far.depth == far.depth - self.node(far.jump).depth { far.jump } else { parent };
        let depth = p.depth + 1;
        let id = u32::try_from(self.nodes.len()).expect("there are fewer blocks than expressions");
        self.nodes.push(Node { parent, jump, depth });
        id
    }

    /// The innermost block that encloses both.
    pub(crate) fn common(&self, mut a: u32, mut b: u32) -> u32 {
        if self.node(a).depth < self.node(b).depth {
            std::mem::swap(&mut a, &mut b);
        }
        let depth = self.node(b).depth;
        while self.node(a).depth > depth {
            let n = self.node(a);
            a = if self.node(n.jump).depth >= depth { n.jump } else { n.parent };
        }
        while a != b {
            let (m, n) = (self.node(a), self.node(b));
            (a, b) = if m.jump == n.jump { (m.parent, n.parent) } else { (m.jump, n.jump) };
        }
        a
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_walking_up() {
        let mut tree = BlockTree::new();
        let mut state = 7u64;
        for i in 1..3000u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Deep on the whole, with forks.
            let parent = i - 1 - (state >> 33) % i.min(3);
            assert_eq!(tree.add(parent as u32), i as u32);
        }
        let up = |mut a: u32, mut b: u32| {
            while a != b {
                if tree.node(a).depth >= tree.node(b).depth { a = tree.node(a).parent } else { b = tree.node(b).parent }
            }
            a
        };
        for i in 0..3000u32 {
            for j in [0, i / 2, 2999 - i, 2999] {
                assert_eq!(tree.common(i, j), up(i, j));
            }
        }
    }
}

//! Blocks in blocks, and the order of what is in each.
//!
//! Bindings have labels that grow along their block.

use anfora_ir::{AncestorTree, EntityId, ExprId};

/// The label of the tail of a block.
pub(crate) const END: u64 = u64::MAX;

#[derive(Copy, Clone)]
struct Scope {
    /// Where in the block around it it stood when it was opened.
    label: u64,
    /// The If or Lambda that holds it.
    holder: Option<ExprId>,
}

/// Which block is in which. Blocks have numbers from 1.
pub(crate) struct Scopes {
    tree: AncestorTree,
    blocks: Vec<Scope>,
    labels: Vec<u64>,
    /// The block of each Lambda.
    block_of: Vec<u32>,
}

impl Scopes {
    pub(crate) fn new(len: usize) -> Scopes {
        let outside = Scope { label: END, holder: None };
        Scopes { tree: AncestorTree::new(), blocks: vec![outside], labels: vec![END; len], block_of: Vec::new() }
    }

    /// A new block in another one.
    pub(crate) fn open(&mut self, parent: u32, label: u64, holder: Option<ExprId>) -> u32 {
        self.blocks.push(Scope { label, holder });
        self.tree.add(parent)
    }

    pub(crate) fn set_block_of(&mut self, lambda: ExprId, block: u32) {
        if lambda.index() >= self.block_of.len() {
            self.block_of.resize(lambda.index() + 1, 0);
        }
        self.block_of[lambda.index()] = block;
    }

    pub(crate) fn block_of(&self, lambda: ExprId) -> u32 {
        self.block_of.get(lambda.index()).copied().unwrap_or(0)
    }

    pub(crate) fn holder(&self, block: u32) -> (Option<ExprId>, u64) {
        let scope = &self.blocks[block as usize];
        (scope.holder, scope.label)
    }

    pub(crate) fn label(&self, id: ExprId) -> u64 {
        self.labels.get(id.index()).copied().unwrap_or(END)
    }

    pub(crate) fn set_label(&mut self, id: ExprId, label: u64) {
        if id.index() >= self.labels.len() {
            self.labels.resize(id.index() + 1, END);
        }
        self.labels[id.index()] = label;
    }

    pub(crate) fn set_labels(&mut self, lets: &[ExprId], low: u64, step: u64) {
        let mut label = low;
        for &id in lets {
            label += step;
            self.set_label(id, label);
        }
    }

    /// The block right in `outer` that has `block` in it or is it; `None` if it is not in `outer`.
    pub(crate) fn below(&self, block: u32, outer: u32) -> Option<u32> {
        let below = self.tree.ancestor(block, self.tree.depth(outer) + 1);
        (below != outer && self.tree.parent(below) == outer).then_some(below)
    }

    /// The last place from which two places are reached, each a block and a label in it: what is
    /// visible there is visible at both.
    pub(crate) fn meet(&self, a: (u32, u64), b: (u32, u64)) -> (u32, u64) {
        if a.0 == b.0 {
            return (a.0, a.1.min(b.1));
        }
        let common = self.tree.common(a.0, b.0);
        let label = |(block, label): (u32, u64)| match self.below(block, common) {
            Some(below) => self.blocks[below as usize].label,
            None => label,
        };
        (common, label(a).min(label(b)))
    }
}

//! The nesting of blocks, and the order of expressions in each block.
//!
//! Bindings have labels that grow along their block.

use anfora_ir::{AncestorTree, EntityId, ExprId};
use rustc_hash::FxHashMap;

/// The label of the tail of a block.
pub(crate) const END: u64 = u64::MAX;

/// The initial distance of the labels of Lets.
pub(crate) const GAP: u64 = 1 << 32;

/// The place where an expression is evaluated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The innermost block, numbered from 1.
    pub(crate) block: u32,
    /// The dataflow region of that block; 0 outside of regions.
    pub(crate) region: u32,
    /// The label of the Let, or of the Let whose value contains the expression.
    pub(crate) label: u64,
}

impl Default for Place {
    fn default() -> Place {
        Place { block: 0, region: 0, label: END }
    }
}

/// The nesting of blocks, and the places of expressions.
pub(crate) struct Scopes {
    tree: AncestorTree,
    /// By block: the label of the Let whose value contains it, and the If or Lambda that holds it.
    pub(crate) blocks: Vec<(u64, Option<ExprId>)>,
    places: Vec<Place>,
    /// The block of each Lambda.
    pub(crate) block_of: FxHashMap<ExprId, u32>,
}

impl Scopes {
    pub(crate) fn new(len: usize) -> Scopes {
        Scopes {
            tree: AncestorTree::new(),
            blocks: vec![(END, None)],
            places: vec![Place::default(); len],
            block_of: FxHashMap::default(),
        }
    }

    /// Opens a new block at a place and returns its number.
    pub(crate) fn open(&mut self, at: Place, holder: Option<ExprId>) -> u32 {
        self.blocks.push((at.label, holder));
        self.tree.add(at.block)
    }

    pub(crate) fn place(&self, id: ExprId) -> Place {
        self.places.get(id.index()).copied().unwrap_or_default()
    }

    pub(crate) fn set(&mut self, id: ExprId, place: Place) {
        if id.index() >= self.places.len() {
            self.places.resize(id.index() + 1, Place::default());
        }
        self.places[id.index()] = place;
    }

    pub(crate) fn set_labels(&mut self, lets: &[ExprId], low: u64, step: u64) {
        for (i, &id) in lets.iter().enumerate() {
            self.places[id.index()].label = low + step * (i as u64 + 1);
        }
    }

    /// Returns the block directly inside `outer` that is or contains `block`; `None` if `block` is
    /// not inside `outer`.
    pub(crate) fn below(&self, block: u32, outer: u32) -> Option<u32> {
        let below = self.tree.ancestor(block, self.tree.depth(outer) + 1);
        (below != outer && self.tree.parent(below) == outer).then_some(below)
    }

    /// Records another place at which a shared node is evaluated. Returns true if this changes the
    /// place of the node.
    pub(crate) fn meet(&mut self, id: ExprId, place: Place) -> bool {
        let old = self.place(id);
        let met = self.common(old, place);
        self.set(id, met);
        met != old
    }

    /// Returns the last place that comes before both places. Definitions that are visible at the
    /// common place are visible at both.
    pub(crate) fn common(&self, a: Place, b: Place) -> Place {
        let region = if a.region == b.region { a.region } else { 0 };
        if a.block == b.block {
            return Place { block: a.block, region, label: a.label.min(b.label) };
        }
        let block = self.tree.common(a.block, b.block);
        let label = |place: Place| match self.below(place.block, block) {
            Some(below) => self.blocks[below as usize].0,
            None => place.label,
        };
        Place { block, region, label: label(a).min(label(b)) }
    }
}

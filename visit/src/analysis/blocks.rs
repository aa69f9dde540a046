//! The block of each expression, and the nesting of blocks.

use anfora_ir::{AncestorTree, Body, Cursor, Expr, ExprId, SideTable, Step};

use crate::link::{Binding, Link};

/// A block of a body: the function's own block, a branch, the block of a Lambda, or a chain as a
/// value or an operand.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct BlockId(u32);

impl BlockId {
    /// The block of the function.
    pub const ROOT: BlockId = BlockId(0);

    /// Returns the number of the block, which is below [`Blocks::len`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Debug for BlockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "block{}", self.0)
    }
}

/// The blocks of a body as a tree, and the block of each expression.
///
/// - A Let, its variable and its value are in the block of the Let's chain; a tail is in the block
///   that it ends.
/// - Operands and the condition of an If are in the block of the node that has them; branches and
///   the block of a Lambda are nested in that block.
/// - Parameters are in the block of their Lambda or function.
/// - A node with several users is in the innermost block that encloses all of them, where it is
///   evaluated.
///
/// Literals, globals, operators, `none` and expressions that the root does not reach are in no
/// block. Making it takes one walk down and one pass back up, with logarithmic time for each
/// further reference to a shared node.
///
/// It describes the body at the time it was made. While it exists, any edit is legal except
/// compaction, which renumbers expressions: see [`Blocks::check`].
///
/// ```
/// # use anfora_ir::{DType, FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{BlockId, Blocks, Link};
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let bool = module.cx.types.scalar(DType::Bool);
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let c = f.param("c", bool);
/// # let shared = f.tuple(&[c]);
/// # f.open_block();
/// # let once = f.tuple(&[shared]);
/// # let then_block = f.close_block(once).unwrap();
/// # f.open_block();
/// # let other = f.tuple(&[shared]);
/// # let else_block = f.close_block(other).unwrap();
/// # let choice = f.if_(c, then_block, else_block).unwrap();
/// # let key = f.finish(choice).unwrap();
/// // %0 = (%c,); if (%c) { (%0,) } else { (%0,) }
/// let body = &module.get(key).unwrap().body;
/// let blocks = Blocks::of(body);
/// assert_eq!(blocks.block(shared), Some(BlockId::ROOT));
/// let (a, b) = (blocks.block(once).unwrap(), blocks.block(other).unwrap());
/// assert_eq!((blocks.link(a), blocks.link(b)), (Link::Then(choice), Link::Else(choice)));
/// assert_eq!(blocks.common(a, b), BlockId::ROOT);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Blocks {
    tree: AncestorTree,
    links: Vec<Link>,
    block: SideTable<ExprId, u32>,
    /// True for nodes, except atoms, with several references, also from one node.
    shared: SideTable<ExprId, bool>,
}

const NOWHERE: u32 = u32::MAX;

impl Blocks {
    /// Returns the blocks of all expressions that a body's root reaches.
    pub fn of(body: &Body) -> Blocks {
        Blocks::with_order(body).0
    }

    /// Returns the blocks, and the nodes in [`program_order`](crate::program_order).
    pub(crate) fn with_order(body: &Body) -> (Blocks, Vec<ExprId>) {
        let mut order = Vec::with_capacity(body.len());
        let mut shared = body.side_table(false);
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Bound(id) | Step::Flat(id) | Step::Exit(id) => order.push(id),
                Step::Seen(id) => shared.set(id, true),
                _ => {}
            }
        }
        let (tree, links, block) = (AncestorTree::new(), vec![Link::Root], body.side_table(NOWHERE));
        let blocks = Blocks { tree, links, block, shared };
        let mut builder = Builder { body, blocks, open: Vec::new() };
        for &param in body.params() {
            builder.blocks.block.set(param.expr(), 0);
        }
        builder.open.push((body.root(), 0));
        builder.walk_chains();
        // In reverse order, a node comes after its users.
        for &id in order.iter().rev() {
            builder.node(id);
        }
        (builder.blocks, order)
    }

    /// Returns the block of an expression.
    #[inline]
    pub fn block(&self, id: ExprId) -> Option<BlockId> {
        Some(self.block[id]).filter(|&b| b != NOWHERE).map(BlockId)
    }

    /// Returns true if several nodes refer to a call, tuple, projection, If, Lambda or chain, or if
    /// one node does so several times. Returns false for atoms, which
    /// [`link_counts`](crate::link_counts) counts.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn is_shared(&self, id: ExprId) -> bool {
        self.shared[id]
    }

    /// Returns the blocks in the order of their numbers: each after the block that encloses it.
    pub fn ids(&self) -> impl Iterator<Item = BlockId> + use<> {
        (0..self.links.len() as u32).map(BlockId)
    }

    /// Returns the number of blocks.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns false: there is always the block of the function.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the link that holds a block.
    ///
    /// # Panics
    /// If the block belongs to another body.
    pub fn link(&self, block: BlockId) -> Link {
        self.links[block.index()]
    }

    /// Returns the block that directly encloses a block; `None` for the function's own block.
    ///
    /// # Panics
    /// If the block belongs to another body.
    pub fn parent(&self, block: BlockId) -> Option<BlockId> {
        (block != BlockId::ROOT).then(|| BlockId(self.tree.parent(block.0)))
    }

    /// Returns the number of blocks that enclose a block: 0 for the function's own block.
    ///
    /// # Panics
    /// If the block belongs to another body.
    pub fn depth(&self, block: BlockId) -> u32 {
        self.tree.depth(block.0)
    }

    /// Returns the innermost block that encloses both, which may be one of them. Takes time
    /// logarithmic in the depth.
    ///
    /// # Panics
    /// If a block belongs to another body.
    pub fn common(&self, a: BlockId, b: BlockId) -> BlockId {
        BlockId(self.tree.common(a.0, b.0))
    }

    /// Returns true if `outer` is `inner` or encloses it. Takes time logarithmic in the depth.
    ///
    /// # Panics
    /// If a block belongs to another body.
    pub fn encloses(&self, outer: BlockId, inner: BlockId) -> bool {
        self.tree.is_under(inner.0, outer.0)
    }

    /// Asserts that the blocks belong to the current generation of the body.
    ///
    /// # Panics
    /// If the body was compacted since the blocks were found.
    pub fn check(&self, body: &Body) {
        body.check_table(&self.block);
    }
}

struct Builder<'b> {
    body: &'b Body,
    blocks: Blocks,
    /// Chains that were found but not walked yet: the first Let or the tail, and the block.
    open: Vec<(ExprId, u32)>,
}

impl Builder<'_> {
    /// Records the block in which the parts of a node are used.
    #[inline]
    fn node(&mut self, id: ExprId) {
        let block = self.blocks.block[id];
        match self.body.expr(id) {
            Expr::CallOp { .. } | Expr::Call { .. } | Expr::Tuple(_) | Expr::Proj { .. } => {
                for (i, &input) in self.body.inputs(id).iter().enumerate() {
                    self.used(Link::Operand(id, i as u32), input, block);
                }
            }
            Expr::If { cond, then_block, else_block } => {
                self.used(Link::Cond(id), cond, block);
                self.enter(Link::Then(id), then_block, block);
                self.enter(Link::Else(id), else_block, block);
            }
            Expr::Lambda { lambda, body: start } => {
                let inner = self.enter(Link::Lambda(id), start, block);
                for param in self.body.lambda_params(lambda) {
                    self.blocks.block.set(param.expr(), inner);
                }
            }
            // The Lets of a chain were handled when its block was found.
            _ => return,
        }
        self.walk_chains();
    }

    fn enter(&mut self, link: Link, start: ExprId, parent: u32) -> u32 {
        let block = self.blocks.tree.add(parent);
        self.blocks.links.push(link);
        self.open.push((start, block));
        block
    }

    #[inline]
    fn used(&mut self, link: Link, id: ExprId, block: u32) {
        match self.body.expr(id) {
            Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => {}
            Expr::Let { .. } => {
                self.enter(link, id, block);
            }
            _ => {
                let tree = &self.blocks.tree;
                let at = self.blocks.block.get_mut(id);
                if *at == NOWHERE {
                    *at = block;
                } else if *at != block {
                    *at = tree.common(*at, block);
                }
            }
        }
    }

    fn walk_chains(&mut self) {
        while let Some((mut at, block)) = self.open.pop() {
            while let Some(binding) = Binding::of(self.body, at) {
                self.blocks.block.set(at, block);
                self.blocks.block.set(binding.var.expr(), block);
                self.used(Link::Value(at), binding.value, block);
                at = binding.rest;
            }
            // The link of a tail does not matter, since a tail is not a Let.
            self.used(Link::Root, at, block);
        }
    }
}

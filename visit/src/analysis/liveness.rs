//! Liveness of variables.

use anfora_ir::{AncestorTree, BlockKind, Body, Cursor, EntityId, Expr, ExprId, SideTable, Step, VarId};

use crate::link::Binding;

/// The last use of a variable in the chain of the block that binds it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LastUse {
    /// In the value of this Let, or in a block nested in that value.
    Let(ExprId),
    /// In the tail of the chain, or in a block nested in it.
    Tail,
}

/// The live ranges of the variables of a body.
///
/// A variable belongs to the chain of the block that binds it: a Let's variable to the chain of the
/// Let, a parameter to the chain of its Lambda or function. Positions in a chain are 0 for its
/// beginning, where parameters are bound, 1, 2, … for its Lets, and one more than the last for its
/// tail. Every use counts at a position of the variable's own chain: a use in a branch, in a block
/// as a value or in the block of a Lambda is a use by the Let (or tail) of that chain that contains
/// the block. So the captures of a Lambda are used where the closure is made, not where it is
/// called.
///
/// A variable is live after each position from that of its binding up to the last before that of
/// its last use. A variable without uses is never live, and the use of a recursive function in its
/// own block does not make it live. Values without a variable (operands that are not atoms) are not
/// counted; their own operands are used at their first place in program order.
///
/// Making it takes one walk and one loop, and 12 bytes per expression.
///
/// It describes the body at the time it was made. While it exists, any edit is legal except
/// compaction, which renumbers expressions: see [`Liveness::check`].
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Binding, LastUse, Liveness, chain};
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let x = f.param("x", unit);
/// # let one = f.tuple(&[x]);
/// # let a = f.bind("a", one);
/// # let two = f.tuple(&[a, a]);
/// # let b = f.bind("b", two);
/// # let key = f.finish(b).unwrap();
/// // let %a = (%x,); let %b = (%a, %a); %b
/// let body = &module.get(key).unwrap().body;
/// let [a, b]: [Binding; 2] = chain(body, body.root()).collect::<Vec<_>>().try_into().unwrap();
/// let liveness = Liveness::of(body);
/// assert_eq!(liveness.last_use(a.var), Some(LastUse::Let(b.id)));
/// assert_eq!(liveness.last_use(b.var), Some(LastUse::Tail));
/// assert!(liveness.is_live_after(a.var, a.id) && !liveness.is_live_after(a.var, b.id));
/// assert_eq!(liveness.max_live(), 1);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Liveness {
    /// The entries of variables and Lets.
    entries: SideTable<ExprId, Entry>,
    blocks: Vec<Block>,
    /// The nesting of blocks.
    tree: AncestorTree,
    /// By position, block by block: the Let there. The beginning of a block has no Let.
    lets: Vec<ExprId>,
    max_live: u32,
}

#[derive(Copy, Clone, PartialEq, Debug)]
struct Entry {
    block: u32,
    position: u32,
    /// The position of the last use of a variable.
    last: u32,
}

#[derive(Copy, Clone, PartialEq, Debug)]
struct Block {
    /// Its position in the enclosing chain.
    position: u32,
    /// The outermost block that is evaluated together with it: the block of the function or of a
    /// Lambda.
    frame: u32,
    /// The index of its first position in the list of all positions.
    start: u32,
    len: u32,
}

/// The block of expressions that are in no block.
const NOWHERE: u32 = u32::MAX;
/// The last use of a variable that is not used.
const NEVER: u32 = 0;
/// The position of a tail.
const TAIL: u32 = u32::MAX;

impl Liveness {
    /// Returns the liveness of every variable bound in expressions that a body's root reaches.
    /// Takes linear time.
    pub fn of(body: &Body) -> Liveness {
        let liveness = Liveness {
            entries: body.side_table(Entry { block: NOWHERE, position: 0, last: NEVER }),
            blocks: Vec::new(),
            tree: AncestorTree::new(),
            lets: Vec::new(),
            max_live: 0,
        };
        let mut walk = Walk { body, liveness, open: Vec::new() };
        walk.run();
        walk.liveness.count(body);
        walk.liveness
    }

    /// Returns the last use of a variable; `None` if it is not used.
    pub fn last_use(&self, var: VarId) -> Option<LastUse> {
        let entry = self.entries[var.expr()];
        match entry.last {
            NEVER => None,
            TAIL => Some(LastUse::Tail),
            position => {
                let block = self.blocks[entry.block as usize];
                Some(LastUse::Let(self.lets[(block.start + position) as usize]))
            }
        }
    }

    /// Returns the positions of a variable's binding and of its last use in its chain; `None` if it
    /// is never live.
    pub fn range(&self, var: VarId) -> Option<(u32, u32)> {
        let Entry { block, position, last } = self.entries[var.expr()];
        match last {
            TAIL => Some((position, self.blocks[block as usize].len + 1)),
            last => (last > position).then_some((position, last)),
        }
    }

    /// Returns true if a variable is live after a Let.
    ///
    /// In a block nested in its own, a variable is live from beginning to end if the block is part
    /// of a Let (or tail) that comes after the variable's binding and not after its last use. In
    /// the block of a Lambda, no variable from outside is live: the closure holds the values that
    /// it needs. Takes time logarithmic in the depth of nesting.
    pub fn is_live_after(&self, var: VarId, let_: ExprId) -> bool {
        let (var, at) = (self.entries[var.expr()], self.entries[let_]);
        if var.block == NOWHERE || at.block == NOWHERE {
            return false;
        }
        if var.block == at.block {
            return var.position <= at.position && at.position < var.last;
        }
        let depth = self.tree.depth(var.block);
        let inner = self.tree.ancestor(at.block, depth + 1);
        let frame = |block: u32| self.blocks[block as usize].frame;
        if inner == 0 || self.tree.parent(inner) != var.block || frame(at.block) != frame(var.block) {
            return false;
        }
        let position = self.blocks[inner as usize].position;
        var.position < position && position <= var.last
    }

    /// Returns the greatest number of variables that are live at once, between two positions of a
    /// chain. While a branch or a block as a value is evaluated, variables that are live in it and
    /// around it count together; the block of a Lambda counts alone.
    pub fn max_live(&self) -> usize {
        self.max_live as usize
    }

    /// Asserts that the liveness belongs to the current generation of the body.
    ///
    /// # Panics
    /// If the body was compacted since the liveness was computed.
    pub fn check(&self, body: &Body) {
        body.check_table(&self.entries);
    }

    /// Lists the Lets of each block, and counts the variables that are live after each position.
    fn count(&mut self, body: &Body) {
        let mut positions = 0;
        for block in &mut self.blocks {
            block.start = positions;
            positions += block.len + 1;
        }
        self.lets.resize(positions as usize, body.root());
        // By position: first the change of the count, modulo 2^32; then the count.
        let mut live = vec![0u32; positions as usize];
        for id in (0..body.len()).map(ExprId::from_index) {
            let Entry { block, position, last } = self.entries[id];
            if block == NOWHERE {
                continue;
            }
            let start = self.blocks[block as usize].start;
            if let Expr::Let { .. } = body.expr(id) {
                self.lets[(start + position) as usize] = id;
            } else if last > position {
                let first = &mut live[(start + position) as usize];
                *first = first.wrapping_add(1);
                if last != TAIL {
                    let end = &mut live[(start + last) as usize];
                    *end = end.wrapping_sub(1);
                }
            }
        }
        // Blocks come after the blocks that enclose them.
        for (number, block) in (0..).zip(&self.blocks) {
            let mut now = 0;
            if block.frame != number {
                let around = self.blocks[self.tree.parent(number) as usize];
                // The value of a Let is computed before its variable is bound.
                let before = if block.position == TAIL { around.len } else { block.position - 1 };
                now = live[(around.start + before) as usize];
            }
            for count in &mut live[block.start as usize..=(block.start + block.len) as usize] {
                now = now.wrapping_add(*count);
                *count = now;
                self.max_live = self.max_live.max(now);
            }
        }
    }
}

struct Walk<'b> {
    body: &'b Body,
    liveness: Liveness,
    /// The open blocks by depth, with the current position in each.
    open: Vec<(u32, u32)>,
}

impl Walk<'_> {
    fn run(&mut self) {
        let mut cursor = Cursor::new(self.body);
        while let Some(step) = cursor.next(self.body) {
            match step {
                Step::EnterBlock(_, kind) => self.enter(kind),
                Step::Let(id) => {
                    let (Some(binding), Some((block, at))) = (Binding::of(self.body, id), self.open.last_mut()) else {
                        continue;
                    };
                    let len = &mut self.liveness.blocks[*block as usize].len;
                    *len += 1;
                    *at = *len;
                    let entry = Entry { block: *block, position: *at, last: NEVER };
                    self.liveness.entries.set(id, entry);
                    self.liveness.entries.set(binding.var.expr(), entry);
                }
                Step::Bound(_) => {
                    if let Some((_, at)) = self.open.last_mut() {
                        *at = TAIL;
                    }
                }
                Step::Atom(id) => self.uses(id),
                Step::Flat(id) => self.body.inputs(id).iter().for_each(|&input| self.uses(input)),
                Step::ExitBlock(..) => _ = self.open.pop(),
                Step::Enter(_) | Step::Exit(_) | Step::Seen(_) => {}
            }
        }
    }

    #[inline]
    fn uses(&mut self, id: ExprId) {
        if !matches!(self.body.expr(id), Expr::Var { .. }) {
            return;
        }
        let entry = self.liveness.entries.get_mut(id);
        if entry.block == NOWHERE {
            return;
        }
        // A variable that is used outside of its own block is bound in an open block.
        let depth = self.liveness.tree.depth(entry.block);
        if let Some(&(block, at)) = self.open.get(depth as usize)
            && block == entry.block
        {
            entry.last = at;
        }
    }

    fn enter(&mut self, kind: BlockKind) {
        let Liveness { entries, blocks, tree, .. } = &mut self.liveness;
        let (block, position, frame) = match (self.open.last(), kind) {
            (None, _) => (0, NEVER, 0),
            (Some(&(around, at)), kind) => {
                let block = tree.add(around);
                let is_fn = matches!(kind, BlockKind::Lambda(_));
                (block, at, if is_fn { block } else { blocks[around as usize].frame })
            }
        };
        blocks.push(Block { position, frame, start: 0, len: 0 });
        self.open.push((block, TAIL));
        let mut bind = |param: VarId| entries.set(param.expr(), Entry { block, position: 0, last: NEVER });
        match kind {
            BlockKind::Root => self.body.params().iter().copied().for_each(&mut bind),
            BlockKind::Lambda(id) => {
                if let Expr::Lambda { lambda, .. } = self.body.expr(id) {
                    self.body.lambda_params(lambda).for_each(&mut bind);
                }
            }
            _ => {}
        }
    }
}

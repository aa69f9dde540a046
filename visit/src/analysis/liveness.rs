//! How long variables are needed.

use anfora_ir::{AncestorTree, BlockKind, Body, Cursor, Expr, ExprId, SideTable, Step, VarId};

use crate::link::Binding;

/// Where a variable is used last in the chain of the block that binds it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LastUse {
    /// In the value of this Let, or in a block nested in that value.
    Let(ExprId),
    /// In the tail of the chain, or in a block nested in it.
    Tail,
}

/// From where to where variables of a body are live.
///
/// A variable belongs to the chain of the block that binds it: a Let's to the chain of the Let, a
/// parameter to the chain of its Lambda or function. Positions in a chain are 0 for its beginning,
/// where parameters are bound, 1, 2, … for its Lets, and one more than the last for its tail. Every
/// use counts at the position of the variable's own chain in which it is: a use in a branch, in a
/// block as a value or in the block of a Lambda is a use by the Let (or tail) of that chain that
/// the block is part of. What a Lambda captures is so used where the closure is made, not where it
/// is called.
///
/// A variable is live after each position from that of its binding up to the last before that of
/// its last use. One that nothing uses is live nowhere; nor does the use of a recursive function in
/// its own block make it live. What has no variable (operands that are not atoms) is not counted;
/// its own operands are used where it comes first in program order.
///
/// To be made takes one walk, 12 bytes an expression.
///
/// It speaks of the body as it was when it was made. Any edit is legal while it exists, but for
/// compaction, which renumbers: see [`Liveness::check`].
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
    /// Of variables and Lets.
    entries: SideTable<ExprId, Entry>,
    blocks: Vec<Block>,
    /// How the blocks are nested.
    tree: AncestorTree,
    /// The Lets of each block in order.
    lets: Vec<ExprId>,
    max_live: u32,
}

#[derive(Copy, Clone, PartialEq, Debug)]
struct Entry {
    block: u32,
    position: u32,
    /// Of a variable.
    last: u32,
}

#[derive(Copy, Clone, PartialEq, Debug)]
struct Block {
    /// Its position in the chain around it.
    position: u32,
    /// The outermost block that is evaluated together with it: that of the function or of a Lambda.
    frame: u32,
    /// Its Lets in the list of all.
    start: u32,
    len: u32,
}

/// The block of what is in none.
const NOWHERE: u32 = u32::MAX;
/// The last use of what is not used.
const NEVER: u32 = 0;
/// The position of a tail.
const TAIL: u32 = u32::MAX;

impl Liveness {
    /// The liveness of every variable that is bound in what can be reached from a body's root.
    /// Linear.
    pub fn of(body: &Body) -> Liveness {
        let liveness = Liveness {
            entries: body.side_table(Entry { block: NOWHERE, position: 0, last: NEVER }),
            blocks: Vec::new(),
            tree: AncestorTree::new(),
            lets: Vec::new(),
            max_live: 0,
        };
        let mut walk = Walk {
            body,
            liveness,
            open: Vec::new(),
            params: Vec::new(),
            lets: Vec::new(),
            inner_peaks: Vec::new(),
            ends: Vec::new(),
        };
        walk.run();
        walk.liveness
    }

    /// Where a variable is used last; `None` if it is not used.
    pub fn last_use(&self, var: VarId) -> Option<LastUse> {
        let entry = self.entries[var.expr()];
        match entry.last {
            NEVER => None,
            TAIL => Some(LastUse::Tail),
            position => {
                let block = self.blocks[entry.block as usize];
                Some(LastUse::Let(self.lets[(block.start + position - 1) as usize]))
            }
        }
    }

    /// The positions of a variable's binding and of its last use in the chain that it belongs to;
    /// `None` if it is not live anywhere.
    pub fn range(&self, var: VarId) -> Option<(u32, u32)> {
        let Entry { block, position, last } = self.entries[var.expr()];
        match last {
            TAIL => Some((position, self.blocks[block as usize].len + 1)),
            last => (last > position).then_some((position, last)),
        }
    }

    /// Returns true if a variable is live after a Let.
    ///
    /// In a block that is nested in its own, a variable is live from beginning to end if the block
    /// is part of a Let (or tail) that comes after its binding and not after its last use. In the
    /// block of a Lambda nothing from around it is: the closure holds what it needs. Logarithmic in
    /// the depth of nesting.
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

    /// The greatest number of variables that are live at once, between two positions of a chain.
    /// While a branch or a block as a value is evaluated, what is live in it counts together with
    /// what is live around it; the block of a Lambda counts alone.
    pub fn max_live(&self) -> usize {
        self.max_live as usize
    }

    /// Asserts that this belongs to the present generation of the body.
    ///
    /// # Panics
    /// If the body was compacted since.
    pub fn check(&self, body: &Body) {
        body.check_table(&self.entries);
    }
}

/// A block that was entered and not left.
struct Open {
    block: u32,
    /// The position that is being walked.
    at: u32,
    /// Where its parameters and Lets begin in the stacks of them.
    params: usize,
    lets: usize,
    /// The most that is live in a block of the tail.
    tail_peak: u32,
}

struct Walk<'b> {
    body: &'b Body,
    liveness: Liveness,
    /// By depth.
    open: Vec<Open>,
    /// Parameters and Lets of the open blocks, and the most that is live in a block of each Let.
    params: Vec<VarId>,
    lets: Vec<Binding>,
    inner_peaks: Vec<u32>,
    /// For a block that is left: how many variables are used last at each position.
    ends: Vec<u32>,
}

impl Walk<'_> {
    fn run(&mut self) {
        let mut cursor = Cursor::new(self.body);
        while let Some(step) = cursor.next(self.body) {
            match step {
                Step::EnterBlock(_, kind) => self.enter(kind),
                Step::Let(id) => {
                    let (Some(binding), Some(open)) = (Binding::of(self.body, id), self.open.last_mut()) else {
                        continue;
                    };
                    self.lets.push(binding);
                    self.inner_peaks.push(0);
                    open.at = (self.lets.len() - open.lets) as u32;
                    let entry = Entry { block: open.block, position: open.at, last: NEVER };
                    self.liveness.entries.set(id, entry);
                    self.liveness.entries.set(binding.var.expr(), entry);
                }
                Step::Bound(_) => {
                    if let Some(open) = self.open.last_mut() {
                        open.at = TAIL;
                    }
                }
                Step::Atom(id) => self.uses(id),
                Step::Flat(id) => self.body.inputs(id).iter().for_each(|&input| self.uses(input)),
                Step::ExitBlock(_, kind) => self.exit(kind),
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
        // What is bound outside of what it is used in is bound in an open block.
        let depth = self.liveness.tree.depth(entry.block);
        if let Some(open) = self.open.get(depth as usize)
            && open.block == entry.block
        {
            entry.last = open.at;
        }
    }

    fn enter(&mut self, kind: BlockKind) {
        let around = self.open.last().map(|open| (open.block, open.at));
        let block = match around {
            Some((block, _)) => self.liveness.tree.add(block),
            None => 0,
        };
        let frame = match (kind, around) {
            (BlockKind::Lambda(_), _) | (_, None) => block,
            (_, Some((around, _))) => self.liveness.blocks[around as usize].frame,
        };
        let position = around.map_or(NEVER, |(_, at)| at);
        self.liveness.blocks.push(Block { position, frame, start: 0, len: 0 });
        self.open.push(Open { block, at: TAIL, params: self.params.len(), lets: self.lets.len(), tail_peak: 0 });
        let params = self.params.len();
        match kind {
            BlockKind::Root => self.params.extend_from_slice(self.body.params()),
            BlockKind::Lambda(id) => {
                if let Expr::Lambda { lambda, .. } = self.body.expr(id) {
                    self.params.extend(self.body.lambda_params(lambda));
                }
            }
            _ => {}
        }
        for param in &self.params[params..] {
            self.liveness.entries.set(param.expr(), Entry { block, position: 0, last: NEVER });
        }
    }

    /// All uses of a block's variables are known when it is left.
    fn exit(&mut self, kind: BlockKind) {
        let Some(open) = self.open.pop() else { return };
        let lets = &self.lets[open.lets..];
        self.ends.clear();
        self.ends.resize(lets.len() + 1, 0);
        let mut live = 0;
        let (entries, ends) = (&self.liveness.entries, &mut self.ends);
        let begins = |ends: &mut [u32], var: VarId| {
            let Entry { position, last, .. } = entries[var.expr()];
            let is_live = last > position;
            if is_live && last != TAIL {
                ends[last as usize] += 1;
            }
            u32::from(is_live)
        };
        for &param in &self.params[open.params..] {
            live += begins(ends, param);
        }
        let mut peak = live;
        for (i, binding) in lets.iter().enumerate() {
            peak = peak.max(live + self.inner_peaks[open.lets + i]);
            live += begins(ends, binding.var);
            live -= ends[i + 1];
            peak = peak.max(live);
        }
        peak = peak.max(live + open.tail_peak);

        let block = &mut self.liveness.blocks[open.block as usize];
        (block.start, block.len) = (self.liveness.lets.len() as u32, lets.len() as u32);
        self.liveness.lets.extend(lets.iter().map(|binding| binding.id));
        self.params.truncate(open.params);
        self.lets.truncate(open.lets);
        self.inner_peaks.truncate(open.lets);
        let around = match kind {
            BlockKind::Lambda(_) => None,
            _ => self.open.last_mut(),
        };
        match around {
            None => self.liveness.max_live = self.liveness.max_live.max(peak),
            Some(around) => {
                let inner = match around.at {
                    TAIL => &mut around.tail_peak,
                    _ => self.inner_peaks.last_mut().expect("the Let whose value is walked was pushed"),
                };
                *inner = peak.max(*inner);
            }
        }
    }
}

//! Definitions and uses, kept up to date as links change.

use anfora_ir::{Body, EntityId, Expr, ExprId, VarId, work};

use crate::link::Link;

/// The definition of a variable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Definition {
    /// A parameter of the function.
    Param,
    /// A parameter of this Lambda.
    LambdaParam(ExprId),
    /// A binding by this Let.
    Let(ExprId),
}

const NONE: u32 = u32::MAX;
const PARAM: u32 = u32::MAX - 1;

/// A link, in the list of the uses of its target.
#[derive(Copy, Clone)]
struct Slot {
    /// The target of the link; `NONE` if the link is no longer part of the program.
    target: u32,
    /// The node that holds the link; `NONE` for the root of the body.
    owner: u32,
    previous: u32,
    next: u32,
}

/// The entry of a node.
#[derive(Copy, Clone)]
struct Node {
    /// For a variable, the node that binds it. For any other node that is part of the program, its
    /// first slot; its other slots follow.
    first: u32,
    head: u32,
    tail: u32,
    uses: u32,
}

const UNKNOWN: Node = Node { first: NONE, head: NONE, tail: NONE, uses: 0 };

/// The definition of each variable, and the uses of each variable and node of a body.
///
/// It covers the expressions that the root of the body reaches. Each link is one use, and the links
/// of a shared node count once. A node whose last use is removed is no longer part of the program,
/// and neither are its own links: the counts always equal those of a fresh analysis of the body.
///
/// Lists of uses are threaded through two dense vectors (16 bytes per link, 16 bytes per node).
/// Making it takes one walk; a change costs as much as it changes. Links must be overwritten by
/// [`DefUse::set`], or each must be reported afterwards by [`DefUse::sync`]. A body that was
/// compacted needs a new one ([`DefUse::check`]).
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{DefUse, Definition, Link};
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let pair = f.tuple(&[a, a]);
/// # let x = f.bind("x", pair);
/// # let key = f.finish(x).unwrap();
/// // %a -> let %x = (%a, %a); %x
/// let (function, cx) = module.get_mut(key).unwrap();
/// let body = &mut function.body;
/// let (a, link) = (body.params()[0], body.root());
/// let x = anfora_visit::Binding::of(body, link).unwrap().var;
/// let mut def_use = DefUse::new(body);
/// assert_eq!(def_use.definition(body, a), Some(Definition::Param));
/// assert_eq!(def_use.definition(body, x), Some(Definition::Let(link)));
/// assert_eq!(def_use.use_count(a.expr()), 2);
/// assert_eq!(def_use.only_use(body, x.expr()), Some(Link::Rest(link)));
/// // The tail becomes %a: nothing uses %x any more.
/// def_use.set(body, Link::Rest(link), a.expr());
/// assert_eq!((def_use.use_count(a.expr()), def_use.use_count(x.expr())), (3, 0));
/// ```
#[derive(Clone)]
pub struct DefUse {
    slots: Vec<Slot>,
    nodes: Vec<Node>,
    generation: u32,
    /// Nodes and variables that have lost a use, if losses are recorded.
    losses: Option<Vec<ExprId>>,
    /// A buffer that is reused by every change.
    stack: Vec<Frame>,
}

#[derive(Copy, Clone)]
struct Frame {
    id: ExprId,
    next: u32,
    len: u32,
}

impl DefUse {
    /// Analyses a whole body. Walks it once in program order, which is the order of the uses in
    /// each list.
    pub fn new(body: &Body) -> DefUse {
        let mut def_use = DefUse {
            slots: Vec::with_capacity(body.len() + body.operand_count() + 1),
            nodes: vec![UNKNOWN; body.len()],
            generation: body.generation(),
            losses: None,
            stack: Vec::new(),
        };
        for &param in body.params() {
            def_use.node(param.expr()).first = PARAM;
        }
        def_use.slots.push(Slot { target: NONE, owner: NONE, previous: NONE, next: NONE });
        def_use.hang(body, 0, body.root());
        def_use
    }

    // ---- Looking ----

    /// Returns the definition of a variable; `None` if nothing in the program binds it.
    #[inline]
    pub fn definition(&self, body: &Body, var: VarId) -> Option<Definition> {
        match self.nodes.get(var.index()).map_or(NONE, |n| n.first) {
            NONE => None,
            PARAM => Some(Definition::Param),
            owner => {
                let owner = ExprId::from_index(owner as usize);
                match body.expr(owner) {
                    Expr::Let { var: bound, .. } => (bound == var).then_some(Definition::Let(owner)),
                    _ => Some(Definition::LambdaParam(owner)),
                }
            }
        }
    }

    /// Returns the value of a variable, if a Let binds it.
    #[inline]
    pub fn value(&self, body: &Body, var: VarId) -> Option<ExprId> {
        match self.nodes.get(var.index()).map_or(NONE, |n| n.first) {
            NONE | PARAM => None,
            owner => match body.expr(ExprId::from_index(owner as usize)) {
                Expr::Let { var: bound, value, .. } if bound == var => Some(value),
                _ => None,
            },
        }
    }

    /// Returns the number of uses of an expression, one for each link to it. Takes constant time.
    #[inline]
    pub fn use_count(&self, id: ExprId) -> usize {
        self.nodes.get(id.index()).map_or(0, |n| n.uses as usize)
    }

    /// Returns true if an expression has exactly one use. Takes constant time.
    #[inline]
    pub fn is_used_once(&self, id: ExprId) -> bool {
        self.use_count(id) == 1
    }

    /// Returns the only link to an expression, if there is exactly one: for a Let, the link that
    /// holds it.
    #[inline]
    pub fn only_use(&self, body: &Body, id: ExprId) -> Option<Link> {
        let node = self.nodes.get(id.index())?;
        (node.uses == 1).then(|| self.link(body, node.head))
    }

    /// Returns the links to an expression: in program order, then the links that were added later,
    /// in the order of addition.
    pub fn uses<'a>(&'a self, body: &'a Body, id: ExprId) -> impl Iterator<Item = Link> + 'a {
        self.slots_of(id).map(|slot| self.link(body, slot))
    }

    /// Returns the nodes that hold the links to an expression, in the same order, once for each
    /// link. The root of the body belongs to no node and is not included.
    pub fn users(&self, id: ExprId) -> impl Iterator<Item = ExprId> + '_ {
        self.slots_of(id)
            .map(|slot| self.slots[slot as usize].owner)
            .filter(|&owner| owner != NONE)
            .map(|owner| ExprId::from_index(owner as usize))
    }

    fn slots_of(&self, id: ExprId) -> impl Iterator<Item = u32> + '_ {
        let head = self.nodes.get(id.index()).map_or(NONE, |n| n.head);
        let some = |slot: u32| (slot != NONE).then_some(slot);
        std::iter::successors(some(head), move |&slot| {
            work::tick();
            some(self.slots[slot as usize].next)
        })
    }

    /// Asserts that it was made for the current generation of the body.
    ///
    /// # Panics
    /// If the body was compacted since it was made.
    pub fn check(&self, body: &Body) {
        assert_eq!(self.generation, body.generation(), "definitions and uses outlived a compaction of their body");
    }

    fn link(&self, body: &Body, slot: u32) -> Link {
        let owner = self.slots[slot as usize].owner;
        if owner == NONE {
            return Link::Root;
        }
        let number = slot - self.nodes[owner as usize].first;
        let owner = ExprId::from_index(owner as usize);
        match (body.expr(owner), number) {
            (Expr::Let { .. }, 0) => Link::Value(owner),
            (Expr::Let { .. }, _) => Link::Rest(owner),
            (Expr::If { .. }, 0) => Link::Cond(owner),
            (Expr::If { .. }, 1) => Link::Then(owner),
            (Expr::If { .. }, _) => Link::Else(owner),
            (Expr::Lambda { .. }, _) => Link::Lambda(owner),
            _ => Link::Operand(owner, number),
        }
    }

    /// Returns the slot of a link of a node that is part of the program.
    fn slot(&self, link: Link) -> Option<u32> {
        let (owner, number) = match link {
            Link::Root => return Some(0),
            Link::Value(id) | Link::Cond(id) | Link::Lambda(id) => (id, 0),
            Link::Rest(id) | Link::Then(id) => (id, 1),
            Link::Else(id) => (id, 2),
            Link::Operand(id, i) => (id, i),
        };
        let first = self.nodes.get(owner.index()).map_or(NONE, |n| n.first);
        (first != NONE).then(|| first + number)
    }

    // ---- Changing ----

    /// Overwrites a link, in the body and here. A new target becomes part of the program with
    /// everything under it. An old target without other uses is no longer part of it.
    ///
    /// # Panics
    /// If the node is not of the kind that has such a link.
    pub fn set(&mut self, body: &mut Body, link: Link, target: ExprId) {
        link.set(body, target);
        self.sync(body, link);
    }

    /// Records that a link was overwritten in the body. A link of a node that is not part of the
    /// program is ignored.
    ///
    /// # Panics
    /// If the node is not of the kind that has such a link.
    pub fn sync(&mut self, body: &Body, link: Link) {
        let target = link.target(body);
        let Some(slot) = self.slot(link) else { return };
        let old = self.slots[slot as usize].target;
        if old == target.index() as u32 {
            return;
        }
        // The new target is added first, so that parts which both targets share stay.
        let lost = self.unthread(slot);
        self.hang(body, slot, target);
        self.release(body, lost);
    }

    /// Starts recording the nodes that lose uses; see [`DefUse::take_losses`].
    pub fn note_losses(&mut self) {
        self.losses.get_or_insert_default();
    }

    /// Returns the nodes and variables that lost uses since the last call, oldest first, once for
    /// each lost use: they may now have one use or none. The list is empty unless
    /// [`DefUse::note_losses`] was called.
    pub fn take_losses(&mut self) -> Vec<ExprId> {
        self.losses.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn node(&mut self, id: ExprId) -> &mut Node {
        let i = id.index();
        if i >= self.nodes.len() {
            self.nodes.resize(i + 1, UNKNOWN);
        }
        &mut self.nodes[i]
    }

    /// Appends a slot to the list of an expression. Returns true if the expression must be
    /// registered: it has links, but no slots for them yet.
    #[inline]
    fn thread(&mut self, body: &Body, slot: u32, target: ExprId) -> bool {
        work::tick();
        let node = self.node(target);
        let previous = std::mem::replace(&mut node.tail, slot);
        if previous == NONE {
            node.head = slot;
        }
        node.uses += 1;
        let unknown = node.first == NONE;
        let s = &mut self.slots[slot as usize];
        (s.target, s.previous, s.next) = (target.index() as u32, previous, NONE);
        if previous != NONE {
            self.slots[previous as usize].next = slot;
        }
        unknown && !body.expr(target).is_atom()
    }

    /// Removes a slot from its list. Returns the expression whose list it was.
    fn unthread(&mut self, slot: u32) -> Option<ExprId> {
        work::tick();
        let Slot { target, previous, next, .. } = self.slots[slot as usize];
        if target == NONE {
            return None;
        }
        let node = &mut self.nodes[target as usize];
        node.uses -= 1;
        match previous {
            NONE => node.head = next,
            _ => self.slots[previous as usize].next = next,
        }
        match next {
            NONE => self.nodes[target as usize].tail = previous,
            _ => self.slots[next as usize].previous = previous,
        }
        self.slots[slot as usize].target = NONE;
        let target = ExprId::from_index(target as usize);
        if let Some(losses) = &mut self.losses {
            losses.push(target);
        }
        Some(target)
    }

    /// Adds an expression at an unused slot, with everything under it.
    fn hang(&mut self, body: &Body, slot: u32, target: ExprId) {
        if self.thread(body, slot, target) {
            self.register(body, target);
        }
    }

    /// Registers the links of a node, and of all unregistered nodes under it, in program order.
    fn register(&mut self, body: &Body, root: ExprId) {
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.push(self.open(body, root));
        while let Some(frame) = stack.last_mut() {
            let Frame { id, next, len } = *frame;
            if next + 1 >= len {
                // The last link: a chain takes no room on the stack.
                stack.pop();
                if next == len {
                    continue;
                }
            } else {
                frame.next += 1;
            }
            let first = self.nodes[id.index()].first;
            let Some(target) = body.parts(id).nth(next as usize) else { continue };
            if self.thread(body, first + next, target) {
                let frame = self.open(body, target);
                stack.push(frame);
            }
        }
        self.stack = stack;
    }

    /// Makes slots for the links of a node, and records the variables that it binds.
    fn open(&mut self, body: &Body, id: ExprId) -> Frame {
        let len = body.parts(id).len() as u32;
        let first = self.slots.len() as u32;
        self.node(id).first = first;
        let owner = id.index() as u32;
        self.slots.extend((0..len).map(|_| Slot { target: NONE, owner, previous: NONE, next: NONE }));
        match body.expr(id) {
            Expr::Let { var, .. } => self.node(var.expr()).first = owner,
            Expr::Lambda { lambda, .. } => {
                for param in body.lambda_params(lambda) {
                    self.node(param.expr()).first = owner;
                }
            }
            _ => {}
        }
        Frame { id, next: 0, len }
    }

    /// Removes nodes without uses from the program, starting with `lost`.
    fn release(&mut self, body: &Body, lost: Option<ExprId>) {
        let dead = |d: &DefUse, id: ExprId| {
            let node = d.nodes[id.index()];
            node.uses == 0 && node.first != NONE && !body.expr(id).is_atom()
        };
        let Some(lost) = lost.filter(|&id| dead(self, id)) else { return };
        let mut work = vec![lost];
        while let Some(id) = work.pop() {
            if !dead(self, id) {
                continue;
            }
            let owner = id.index() as u32;
            match body.expr(id) {
                Expr::Let { var, .. } => self.unbind(var, owner),
                Expr::Lambda { lambda, .. } => body.lambda_params(lambda).for_each(|p| self.unbind(p, owner)),
                _ => {}
            }
            let mut slot = std::mem::replace(&mut self.nodes[id.index()].first, NONE);
            let mark = work.len();
            while self.slots.get(slot as usize).is_some_and(|s| s.owner == owner) {
                work.extend(self.unthread(slot).filter(|&target| dead(self, target)));
                self.slots[slot as usize].owner = NONE;
                slot += 1;
            }
            work[mark..].reverse();
        }
    }

    fn unbind(&mut self, var: VarId, owner: u32) {
        let node = self.node(var.expr());
        // A Let that replaced this one may bind the variable already.
        if node.first == owner {
            node.first = NONE;
        }
    }
}

impl std::fmt::Debug for DefUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let links = self.slots.iter().filter(|s| s.target != NONE).count();
        write!(f, "DefUse({links} links)")
    }
}

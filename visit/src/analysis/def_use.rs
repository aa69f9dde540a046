//! Definitions and uses, kept up to date as links change.

use anfora_ir::{Body, EntityId, Expr, ExprId, VarId, work};

use crate::link::Link;

/// Where a variable gets its value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Definition {
    /// A parameter of the function.
    Param,
    /// A parameter of this Lambda.
    LambdaParam(ExprId),
    /// Bound by this Let.
    Let(ExprId),
}

const NONE: u32 = u32::MAX;
const PARAM: u32 = u32::MAX - 1;

/// One link, in the list of the uses of what hangs there.
#[derive(Copy, Clone)]
struct Slot {
    /// What hangs there; `NONE` where the link is part of the program no more.
    target: u32,
    /// Whose link it is; `NONE` for the root of the body.
    owner: u32,
    previous: u32,
    next: u32,
}

/// What is known of a node.
#[derive(Copy, Clone)]
struct Node {
    /// Of a variable, who binds it. Of any other node that is part of the program, its first slot;
    /// the others follow.
    first: u32,
    head: u32,
    tail: u32,
    uses: u32,
}

const UNKNOWN: Node = Node { first: NONE, head: NONE, tail: NONE, uses: 0 };

/// Who binds each variable, and where each variable and node of a body hangs.
///
/// It speaks of what can be reached from the root of the body; each link is one use, and the links
/// of a shared node count once. A node whose last use goes is part of the program no more, and
/// neither are its own links: the counts are those of a fresh look at the body at any time.
///
/// Lists of uses are threaded through two dense vectors (16 bytes a link, 16 bytes a node). Making
/// it takes one walk; a change costs what it changes. Links are overwritten by [`DefUse::set`], or
/// each is reported afterwards by [`DefUse::sync`]. A body that was compacted needs a new one
/// ([`DefUse::check`]).
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
    /// Nodes and variables that have lost a use, when that is noted.
    losses: Option<Vec<ExprId>>,
    /// Emptied and filled again by every change.
    stack: Vec<Frame>,
}

#[derive(Copy, Clone)]
struct Frame {
    id: ExprId,
    next: u32,
    len: u32,
}

impl DefUse {
    /// Looks at a whole body. One walk in program order, which is the order of the uses in each
    /// list.
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

    /// Who binds a variable; `None` if nothing that is part of the program does.
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

    /// What a variable is bound to, if a Let binds it.
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

    /// How often an expression is used: how many links it hangs at. In constant time.
    #[inline]
    pub fn use_count(&self, id: ExprId) -> usize {
        self.nodes.get(id.index()).map_or(0, |n| n.uses as usize)
    }

    /// Returns true if an expression hangs at just one link. In constant time.
    #[inline]
    pub fn is_used_once(&self, id: ExprId) -> bool {
        self.use_count(id) == 1
    }

    /// The one link that an expression hangs at, if there is just one: for a Let, the link that
    /// holds it.
    #[inline]
    pub fn only_use(&self, body: &Body, id: ExprId) -> Option<Link> {
        let node = self.nodes.get(id.index())?;
        (node.uses == 1).then(|| self.link(body, node.head))
    }

    /// The links that an expression hangs at: in program order, then those that came later, in the
    /// order in which they came.
    pub fn uses<'a>(&'a self, body: &'a Body, id: ExprId) -> impl Iterator<Item = Link> + 'a {
        self.slots_of(id).map(|slot| self.link(body, slot))
    }

    /// The nodes whose links an expression hangs at, in the same order, once for each link; the
    /// root of the body is nobody's link and left out.
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

    /// Asserts that it was made for the present generation of the body.
    ///
    /// # Panics
    /// If the body was compacted since.
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

    /// The slot of a link of a node that is part of the program.
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

    /// Hangs another expression at a link, in the body and here. What is new there becomes part of
    /// the program with all that is under it; what hung there and nowhere else is part of it no
    /// more.
    ///
    /// # Panics
    /// If the node is not of the kind that has such a link.
    pub fn set(&mut self, body: &mut Body, link: Link, target: ExprId) {
        link.set(body, target);
        self.sync(body, link);
    }

    /// Says that a link was overwritten in the body. One of a node that is not part of the program
    /// is of no consequence.
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
        // The new one first, so that what both have in common stays.
        let lost = self.unthread(slot);
        self.hang(body, slot, target);
        self.release(body, lost);
    }

    /// From here on, notes what loses uses; see [`DefUse::take_losses`].
    pub fn note_losses(&mut self) {
        self.losses.get_or_insert_default();
    }

    /// What has lost a use since it was last asked, oldest first, once for each use lost: what may
    /// now be used once, or not at all. Empty unless [`DefUse::note_losses`] was called.
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

    /// Puts a slot at the end of the list of an expression; whether it has to be registered: it has
    /// links and they are not known.
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

    /// Takes a slot out of the list that it is in, and returns whose that is.
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

    /// Hangs an expression at a slot that nothing hangs at, with all that is under it.
    fn hang(&mut self, body: &Body, slot: u32, target: ExprId) {
        if self.thread(body, slot, target) {
            self.register(body, target);
        }
    }

    /// Makes the links of a node known, and of all under it that are not known yet, in program
    /// order.
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

    /// Makes slots for the links of a node, and says what it binds.
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

    /// Takes out of the program what has no use left, beginning with `lost`.
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
        // A Let that was put in the place of this one may bind it already.
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

//! Places the bindings of shared nodes in the text.
//!
//! A node that several others refer to, and a node with attributes from tools, prints as a graph
//! binding `%0 = …;`. The binding is in the innermost block that encloses all uses, before the
//! first statement that uses the node. A use by another graph binding counts at the place of that
//! binding, so nodes are placed in reverse post-order, users first. The innermost common block is
//! found in time logarithmic in the depth of blocks.
//!
//! A graph binding is not visible after its dataflow region. If a node is used in a region and
//! after it, its binding is placed before the region. If such a node needs a variable that the
//! region binds, its binding is placed in the region as a `let`, which is an output.

use smallvec::SmallVec;

use crate::core::body::Body;
use crate::core::entity::{EntityId, ExprId, IdSet};
use crate::core::expr::Expr;
use crate::walk::ancestors::AncestorTree;
use crate::walk::cursor::{BlockKind, Cursor, Step};
use crate::walk::self_uses::SelfUses;

const NOWHERE: u32 = u32::MAX;

/// A statement of a block, encoded by the node from which it can be found: a Let, the tail after a
/// Let, or the tail of a block without Lets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Slot(u32);

impl Slot {
    /// Returns the slot before a Let.
    pub(super) fn let_(id: ExprId) -> Slot {
        Slot(2 * id.index() as u32)
    }

    /// Returns the slot before the tail after a Let, the last of its chain.
    pub(super) fn tail_after(id: ExprId) -> Slot {
        Slot(2 * id.index() as u32 + 1)
    }

    /// Returns the slot before the tail of a block without Lets.
    pub(super) fn tail_of(body: &Body, kind: BlockKind) -> Slot {
        match kind {
            BlockKind::Then(id) | BlockKind::Lambda(id) | BlockKind::Value(id) | BlockKind::Operand(id) => {
                Slot(2 * id.index() as u32)
            }
            BlockKind::Else(id) => Slot(2 * id.index() as u32 + 1),
            BlockKind::Root => Slot(2 * body.len() as u32),
        }
    }
}

/// The graph bindings of a body.
pub(super) struct SharedNodes {
    bound: IdSet<ExprId>,
    /// The nodes that must be bound by a `let`, so that they can be outputs of a region.
    lets: IdSet<ExprId>,
    /// The first binding before each statement.
    first: Vec<u32>,
    /// Nodes, each with the index of the next one before the same statement.
    nodes: Vec<(ExprId, u32)>,
}

impl SharedNodes {
    /// Returns true if a node prints as a graph binding.
    #[inline]
    pub(super) fn contains(&self, id: ExprId) -> bool {
        self.bound.contains(id)
    }

    /// Returns true if a graph binding must be a `let`.
    pub(super) fn is_let(&self, id: ExprId) -> bool {
        self.lets.contains(id)
    }

    /// Returns the index of the first graph binding before a statement.
    #[inline]
    pub(super) fn first_before(&self, slot: Slot) -> Option<u32> {
        self.first.get(slot.0 as usize).copied().filter(|&n| n != NOWHERE)
    }

    /// Returns a graph binding, and the index of the next before the same statement.
    pub(super) fn binding(&self, n: u32) -> (ExprId, Option<u32>) {
        let (id, next) = self.nodes[n as usize];
        (id, (next != NOWHERE).then_some(next))
    }
}

/// A reference to a node.
#[derive(Copy, Clone)]
enum User {
    Node(ExprId),
    Statement(StatementPlace),
}

/// A statement: its block, its slot, its number in program order, and its dataflow region.
#[derive(Copy, Clone)]
struct StatementPlace {
    block: u32,
    slot: Slot,
    order: u32,
    region: Option<u32>,
}

struct BlockPlace {
    owner: Option<User>,
    slot: Slot,
    order: u32,
    region: Option<u32>,
    /// The region of the last Let.
    last_region: Option<u32>,
    /// The node of the block in the tree of blocks, once it is known.
    node: u32,
}

enum Entity {
    Node(ExprId),
    Block(u32),
}

/// Places the graph bindings of a body.
pub(super) fn place(body: &Body) -> SharedNodes {
    Placement {
        body,
        blocks: Vec::new(),
        tree: AncestorTree::new(),
        within: vec![None],
        users: vec![None; body.len()],
        more: Vec::new(),
        first_more: vec![NOWHERE; body.len()],
        places: vec![None; body.len()],
        bound: IdSet::with_capacity(body.len()),
        lets: IdSet::with_capacity(body.len()),
        regions: Vec::new(),
        needs: vec![0; body.len()],
    }
    .run()
}

struct Placement<'b> {
    body: &'b Body,
    blocks: Vec<BlockPlace>,
    tree: AncestorTree,
    /// For each node of the tree, the statement that contains the block.
    within: Vec<Option<StatementPlace>>,
    users: Vec<Option<User>>,
    /// Further users of a node, each with the index of the one before it.
    more: Vec<(User, u32)>,
    first_more: Vec<u32>,
    places: Vec<Option<StatementPlace>>,
    bound: IdSet<ExprId>,
    lets: IdSet<ExprId>,
    /// The slot and number of the first Let of every region.
    regions: Vec<(Slot, u32)>,
    /// For a variable, the number of the statement that binds it. For a node, the number of the
    /// statement that binds the last variable that it names.
    needs: Vec<u32>,
}

impl Placement<'_> {
    fn run(mut self) -> SharedNodes {
        let post_order = self.walk();
        let mut first = vec![NOWHERE; 2 * self.body.len() + 1];
        let mut nodes = Vec::new();
        for entity in post_order.into_iter().rev() {
            match entity {
                Entity::Block(b) => self.place_block(b),
                Entity::Node(id) => {
                    let Some(user) = self.users[id.index()] else { continue };
                    let place = self.resolve(user);
                    if !self.bound.contains(id) {
                        self.places[id.index()] = place;
                        continue;
                    }
                    let Some(place) = place.map(|p| self.earliest(id, p)) else { continue };
                    self.places[id.index()] = Some(place);
                    // Users come first in this loop, so each node is put before its users.
                    let head = &mut first[place.slot.0 as usize];
                    nodes.push((id, *head));
                    *head = nodes.len() as u32 - 1;
                }
            }
        }
        SharedNodes { bound: self.bound, lets: self.lets, first, nodes }
    }

    /// Records users and blocks. Returns the nodes and blocks in post-order.
    fn walk(&mut self) -> Vec<Entity> {
        let body = self.body;
        let mut post_order = Vec::new();
        let mut stack: Vec<Entity> = Vec::new();
        let mut order = 1;
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            // The user of this node: the node or the statement around it.
            let user = match stack.last() {
                Some(&Entity::Node(id)) => Some(User::Node(id)),
                Some(&Entity::Block(block)) => {
                    let b = &self.blocks[block as usize];
                    Some(User::Statement(StatementPlace { block, slot: b.slot, order: b.order, region: b.region }))
                }
                None => None,
            };
            match step {
                // Blocks and their statements.
                Step::EnterBlock(_, kind) => {
                    let slot = Slot::tail_of(body, kind);
                    stack.push(Entity::Block(self.blocks.len() as u32));
                    self.blocks.push(BlockPlace { owner: user, slot, order, region: None, last_region: None, node: 0 });
                    order += 1;
                }
                Step::Let(id) => {
                    let (Some(&Entity::Block(b)), Expr::Let { var, flags, .. }) = (stack.last(), body.expr(id)) else {
                        continue;
                    };
                    let b = &mut self.blocks[b as usize];
                    (b.slot, b.order) = (Slot::let_(id), order);
                    b.region = match b.last_region {
                        _ if !flags.is_dataflow() => None,
                        Some(region) if !flags.starts_region() => Some(region),
                        _ => {
                            self.regions.push((b.slot, order));
                            Some(self.regions.len() as u32 - 1)
                        }
                    };
                    b.last_region = b.region;
                    self.needs[var.index()] = order;
                    order += 1;
                }
                Step::Bound(id) => {
                    if let Some(&Entity::Block(b)) = stack.last() {
                        let b = &mut self.blocks[b as usize];
                        (b.slot, b.order, b.region) = (Slot::tail_after(id), order, None);
                        order += 1;
                    }
                }
                // Nodes.
                Step::Atom(_) => {}
                Step::Flat(id) => {
                    self.first_use(id, user);
                    self.needs[id.index()] = self.needs_of(id);
                    post_order.push(Entity::Node(id));
                }
                Step::Enter(id) => {
                    self.first_use(id, user);
                    stack.push(Entity::Node(id));
                }
                Step::Exit(id) => {
                    self.needs[id.index()] = self.needs_of(id);
                    post_order.extend(stack.pop());
                }
                Step::Seen(id) => {
                    self.bound.insert(id);
                    if let Some(user) = user {
                        self.more.push((user, self.first_more[id.index()]));
                        self.first_more[id.index()] = self.more.len() as u32 - 1;
                    }
                }
                Step::ExitBlock(..) => post_order.extend(stack.pop()),
            }
        }
        post_order
    }

    fn first_use(&mut self, id: ExprId, user: Option<User>) {
        self.users[id.index()] = user;
        if self.body.meta(id).is_some() {
            self.bound.insert(id);
        }
    }

    /// Returns the number of the statement that binds the last of the variables that a node names.
    /// Returns the largest number for a node with blocks, whose contents are not searched.
    fn needs_of(&self, id: ExprId) -> u32 {
        let need = |o: ExprId| match self.body.expr(o) {
            Expr::Let { .. } => u32::MAX,
            _ => self.needs[o.index()],
        };
        match self.body.expr(id) {
            Expr::If { .. } | Expr::Lambda { .. } => u32::MAX,
            _ => self.body.inputs(id).iter().map(|&o| need(o)).max().unwrap_or(0),
        }
    }

    fn resolve(&self, user: User) -> Option<StatementPlace> {
        match user {
            User::Node(id) => self.places[id.index()],
            User::Statement(place) => Some(place),
        }
    }

    fn place_block(&mut self, b: u32) {
        let Some(within) = self.blocks[b as usize].owner.and_then(|o| self.resolve(o)) else { return };
        self.blocks[b as usize].node = self.tree.add(self.node(within));
        self.within.push(Some(within));
    }

    /// Returns the earliest use of a node in the innermost block that encloses all uses. `place` is
    /// one of them.
    fn earliest(&mut self, id: ExprId, place: StatementPlace) -> StatementPlace {
        let mut uses: SmallVec<[StatementPlace; 8]> = smallvec::smallvec![place];
        let mut at = self.first_more[id.index()];
        while let Some(&(user, next)) = self.more.get(at as usize) {
            uses.extend(self.resolve(user));
            at = next;
        }
        let common = uses.iter().fold(self.node(place), |node, &p| self.tree.common(node, self.node(p)));
        for p in &mut uses {
            *p = self.lift(*p, common);
        }
        let first = uses.iter().copied().min_by_key(|p| p.order).unwrap_or(place);
        let Some(region) = first.region.filter(|_| uses.iter().any(|p| p.region != first.region)) else { return first };
        let (slot, order) = self.regions[region as usize];
        if self.needs[id.index()] < order {
            return StatementPlace { slot, order, region: None, ..first };
        }
        self.lets.insert(id);
        first
    }

    /// Returns the tree node of the block that contains a statement.
    fn node(&self, place: StatementPlace) -> u32 {
        self.blocks[place.block as usize].node
    }

    /// Returns the statement of an enclosing block that contains a statement.
    fn lift(&self, place: StatementPlace, block: u32) -> StatementPlace {
        let child = self.tree.ancestor(self.node(place), self.tree.depth(block) + 1);
        if child == block { place } else { self.within[child as usize].unwrap_or(place) }
    }
}

/// The result of [`glance`]: `has_shared` is true if any node of a body prints as a graph binding.
/// The `fn`s in `self_uses` must print their result types.
pub(super) struct Glance {
    pub(super) has_shared: bool,
    pub(super) self_uses: SelfUses,
}

/// Walks a body once, calling `name` with each variable that it binds.
pub(super) fn glance(body: &Body, mut name: impl FnMut(ExprId)) -> Glance {
    let mut glance = Glance { has_shared: false, self_uses: SelfUses::default() };
    let mut cursor = Cursor::new(body);
    for p in body.params() {
        name(p.expr());
    }
    while let Some(step) = cursor.next(body) {
        glance.self_uses.note(body, step);
        match step {
            Step::Let(id) => {
                if let Expr::Let { var, .. } = body.expr(id) {
                    name(var.expr());
                }
            }
            Step::Enter(id) | Step::Flat(id) => {
                glance.has_shared |= body.meta(id).is_some();
                if let Expr::Lambda { lambda, .. } = body.expr(id) {
                    body.lambda_params(lambda).for_each(|p| name(p.expr()));
                }
            }
            Step::Seen(_) => glance.has_shared = true,
            _ => {}
        }
    }
    glance
}

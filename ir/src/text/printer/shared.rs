//! Where shared nodes are bound in the text.
//!
//! A node that several others refer to, and one that tools put something on, prints as a graph
//! binding `%0 = …;` in the innermost block that encloses its uses, before the first statement that
//! uses it. A use by a node that is such a binding itself is where that binding stands, so nodes
//! are placed in reverse post-order, users first. The innermost common block is found in time
//! logarithmic in the depth of blocks.
//!
//! A graph binding is not visible after the dataflow region that it is in. A node that is used in a
//! region and after it stands before the region; one that needs what the region binds stands in it
//! as a `let`, which is an output.

use smallvec::SmallVec;

use crate::core::body::Body;
use crate::core::entity::{EntityId, ExprId, IdSet};
use crate::core::expr::Expr;
use crate::walk::ancestors::AncestorTree;
use crate::walk::cursor::{BlockKind, Cursor, Step};

const NOWHERE: u32 = u32::MAX;

/// A statement of a block, by the node that it can be found from: a Let, the tail behind a Let, or
/// the tail of a block without Lets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Slot(u32);

impl Slot {
    /// Before a Let.
    pub(super) fn let_(id: ExprId) -> Slot {
        Slot(2 * id.index() as u32)
    }

    /// Before the tail behind a Let, the last of its chain.
    pub(super) fn tail_after(id: ExprId) -> Slot {
        Slot(2 * id.index() as u32 + 1)
    }

    /// Before the tail of a block without Lets.
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
    /// Those that have to be a `let`, so that they can be the output of a region.
    lets: IdSet<ExprId>,
    /// The first binding before each statement.
    first: Vec<u32>,
    /// Nodes, each with the next one before the same statement.
    nodes: Vec<(ExprId, u32)>,
}

impl SharedNodes {
    /// Returns true if a node prints as a graph binding.
    #[inline]
    pub(super) fn contains(&self, id: ExprId) -> bool {
        self.bound.contains(id)
    }

    /// Returns true if a graph binding has to be a `let`.
    pub(super) fn is_let(&self, id: ExprId) -> bool {
        self.lets.contains(id)
    }

    /// The first graph binding before a statement.
    #[inline]
    pub(super) fn first_before(&self, slot: Slot) -> Option<u32> {
        self.first.get(slot.0 as usize).copied().filter(|&n| n != NOWHERE)
    }

    /// A graph binding, and the next before the same statement.
    pub(super) fn binding(&self, n: u32) -> (ExprId, Option<u32>) {
        let (id, next) = self.nodes[n as usize];
        (id, (next != NOWHERE).then_some(next))
    }
}

/// Who refers to a node.
#[derive(Copy, Clone)]
enum User {
    Node(ExprId),
    Statement(Place),
}

/// A statement: its block, its slot, its number in program order, and the dataflow region that it
/// is in.
#[derive(Copy, Clone)]
struct Place {
    block: u32,
    slot: Slot,
    order: u32,
    region: Option<u32>,
}

struct Block {
    owner: Option<User>,
    slot: Slot,
    order: u32,
    region: Option<u32>,
    /// The region of the last Let.
    last_region: Option<u32>,
    /// Its node in the tree of blocks, once that is known.
    node: u32,
}

enum Entity {
    Node(ExprId),
    Block(u32),
}

/// Places the graph bindings of a body: `several` are the nodes that are referred to more than
/// once.
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
    blocks: Vec<Block>,
    tree: AncestorTree,
    /// For each node of the tree, the statement that the block is in.
    within: Vec<Option<Place>>,
    users: Vec<Option<User>>,
    /// Further users of a node, each with the one before it.
    more: Vec<(User, u32)>,
    first_more: Vec<u32>,
    places: Vec<Option<Place>>,
    bound: IdSet<ExprId>,
    lets: IdSet<ExprId>,
    /// The slot and number of the first Let of every region.
    regions: Vec<(Slot, u32)>,
    /// For a variable, the number of the statement that binds it; for a node, that of the last
    /// variable that it names.
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
                    // Users come first in this loop, and are put behind what they use.
                    let head = &mut first[place.slot.0 as usize];
                    nodes.push((id, *head));
                    *head = nodes.len() as u32 - 1;
                }
            }
        }
        SharedNodes { bound: self.bound, lets: self.lets, first, nodes }
    }

    /// Notes users and blocks; the nodes and blocks in post-order.
    fn walk(&mut self) -> Vec<Entity> {
        let body = self.body;
        let mut post_order = Vec::new();
        let mut stack: Vec<Entity> = Vec::new();
        let mut order = 1;
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            let user = match stack.last() {
                Some(&Entity::Node(id)) => Some(User::Node(id)),
                Some(&Entity::Block(block)) => {
                    let b = &self.blocks[block as usize];
                    Some(User::Statement(Place { block, slot: b.slot, order: b.order, region: b.region }))
                }
                None => None,
            };
            match step {
                Step::EnterBlock(_, kind) => {
                    let slot = Slot::tail_of(body, kind);
                    stack.push(Entity::Block(self.blocks.len() as u32));
                    self.blocks.push(Block { owner: user, slot, order, region: None, last_region: None, node: 0 });
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

    /// The number of the statement that binds the last of the variables that a node names; what is
    /// in blocks is not looked for.
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

    fn resolve(&self, user: User) -> Option<Place> {
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

    /// The earliest use of a node in the innermost block that encloses all of them, `place` being
    /// one of them.
    fn earliest(&mut self, id: ExprId, place: Place) -> Place {
        let mut uses: SmallVec<[Place; 8]> = smallvec::smallvec![place];
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
            return Place { slot, order, region: None, ..first };
        }
        self.lets.insert(id);
        first
    }

    /// The node in the tree of the block that a statement is in.
    fn node(&self, place: Place) -> u32 {
        self.blocks[place.block as usize].node
    }

    /// The statement of an enclosing block that a statement is in.
    fn lift(&self, place: Place, block: u32) -> Place {
        let child = self.tree.ancestor(self.node(place), self.tree.depth(block) + 1);
        if child == block { place } else { self.within[child as usize].unwrap_or(place) }
    }
}

/// True if any node of a body prints as a graph binding; and the variables of Lets that a `fn`
/// without stated result uses to call itself.
pub(super) struct Glance {
    pub(super) has_shared: bool,
    pub(super) recursive: Option<IdSet<ExprId>>,
}

/// Walks a body once, calling `name` with each variable that it binds.
pub(super) fn glance(body: &Body, mut name: impl FnMut(ExprId)) -> Glance {
    let mut glance = Glance { has_shared: false, recursive: None };
    // The variables of the Lets around the present place whose value is a `fn` without stated
    // result.
    let mut open: Option<IdSet<ExprId>> = None;
    let mut open_count = 0usize;
    let mut cursor = Cursor::new(body);
    let unstated = |id: ExprId| match body.expr(id) {
        Expr::Let { var, value, .. } => match body.expr(value) {
            Expr::Lambda { lambda, .. } if body.lambda(lambda).ret.is_none() => Some(var.expr()),
            _ => None,
        },
        _ => None,
    };
    let uses = |id: ExprId, open: &Option<IdSet<ExprId>>, recursive: &mut Option<IdSet<ExprId>>| {
        if open.as_ref().is_some_and(|o| o.contains(id)) {
            recursive.get_or_insert_with(|| IdSet::with_capacity(body.len())).insert(id);
        }
    };
    for p in body.params() {
        name(p.expr());
    }
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Let(id) => {
                if let Expr::Let { var, .. } = body.expr(id) {
                    name(var.expr());
                }
                if let Some(var) = unstated(id) {
                    open.get_or_insert_with(|| IdSet::with_capacity(body.len())).insert(var);
                    open_count += 1;
                }
            }
            Step::Bound(id) => {
                if open_count > 0
                    && let Some(var) = unstated(id)
                {
                    open.as_mut().map(|o| o.remove(var));
                    open_count -= 1;
                }
            }
            Step::Enter(id) | Step::Flat(id) => {
                glance.has_shared |= body.meta(id).is_some();
                match body.expr(id) {
                    Expr::Lambda { lambda, .. } => body.lambda_params(lambda).for_each(|p| name(p.expr())),
                    _ if open_count > 0 && matches!(step, Step::Flat(_)) => {
                        for &o in body.inputs(id) {
                            uses(o, &open, &mut glance.recursive);
                        }
                    }
                    _ => {}
                }
            }
            Step::Atom(id) if open_count > 0 => uses(id, &open, &mut glance.recursive),
            Step::Seen(_) => glance.has_shared = true,
            _ => {}
        }
    }
    glance
}

//! The partition of a graph without cycles into groups of one color, none of which has a path to
//! itself through others.
//!
//! Each node has a level. An edge between nodes of one color leads to the same level or to a higher
//! one, any other edge to a higher one. Nodes of one color and level that an edge joins are one
//! group. A path from a group through others would end on a higher level than it began, so there is
//! no cycle.
//!
//! The levels are the least ones at first. Then whole groups rise as far as their users allow, and
//! sink as far as their operands allow, and groups that meet become one. This goes on until no
//! groups meet, at most [`ROUNDS`] times. Then the two groups of each edge inside of a color are
//! brought to one level, if that moves few others ([`MOST_STEPS`]) and not the second group itself.
//! If it had to move, a path would lead to it through others. So the time is linear.

use std::ops::Range;

use anfora_ir::work;

/// The color of nodes that are not in groups.
pub(super) const NO_COLOR: u32 = 0;

/// The greatest number of times that groups rise and sink.
const ROUNDS: usize = 8;

/// The greatest number of nodes and edges that are visited to bring two groups together.
const MOST_STEPS: usize = 128;

/// The partition of the nodes of a graph.
pub(super) struct Partition {
    /// By node: a node closer to the one that stands for its group, or itself.
    parents: Vec<u32>,
}

impl Partition {
    /// Returns the partition of a graph. The edges lead to higher numbers; their targets ascend.
    pub(super) fn of(colors: &[u32], edges: &[(u32, u32)]) -> Partition {
        let backward: Vec<(u32, u32)> = edges.iter().map(|&(from, to)| (to, from)).collect();
        let mut search = Search {
            colors,
            levels: vec![0; colors.len()],
            groups: Partition { parents: (0..colors.len() as u32).collect() },
            next_members: (0..colors.len() as u32).collect(),
            users: Adjacency::of(colors.len(), edges),
            operands: Adjacency::of(colors.len(), &backward),
        };
        // The least levels.
        for &(from, to) in edges {
            let least = search.levels[from as usize] + search.step(from, to);
            let level = &mut search.levels[to as usize];
            *level = least.max(*level);
        }
        edges.iter().for_each(|&(from, to)| _ = search.meet(from, to));
        for _ in 0..ROUNDS {
            let (rose, sank) = (search.rise(edges), search.sink(edges));
            if !rose && !sank {
                break;
            }
        }
        for &(from, to) in edges {
            search.bring_together(from, to);
        }
        search.groups
    }

    /// Returns the node that stands for the group of a node.
    pub(super) fn group(&mut self, mut node: u32) -> u32 {
        while self.parents[node as usize] != node {
            let above = self.parents[self.parents[node as usize] as usize];
            self.parents[node as usize] = above;
            node = above;
        }
        node
    }
}

struct Search<'a> {
    colors: &'a [u32],
    /// By node that stands for a group: the level of the group.
    levels: Vec<i64>,
    groups: Partition,
    /// By node: the next member of its group; after the last comes the first.
    next_members: Vec<u32>,
    users: Adjacency,
    operands: Adjacency,
}

/// The direction in which groups move.
#[derive(Copy, Clone, PartialEq)]
enum Direction {
    /// To higher levels, as the users of others.
    Up,
    /// To lower levels, as the operands of others.
    Down,
}

impl Search<'_> {
    /// Returns the least difference of the levels of two nodes that an edge joins.
    fn step(&self, from: u32, to: u32) -> i64 {
        i64::from(self.colors[from as usize] != self.colors[to as usize])
    }

    /// Makes the groups of two nodes one, if they have one color and level. Returns true if they
    /// were two.
    fn meet(&mut self, a: u32, b: u32) -> bool {
        work::tick();
        let (a, b) = (self.groups.group(a), self.groups.group(b));
        let color = self.colors[a as usize];
        if a == b || color == NO_COLOR || color != self.colors[b as usize] {
            return false;
        }
        if self.levels[a as usize] != self.levels[b as usize] {
            return false;
        }
        self.groups.parents[a.max(b) as usize] = a.min(b);
        self.next_members.swap(a as usize, b as usize);
        true
    }

    /// Returns the members of a group.
    fn members(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        let next = move |&member: &u32| Some(self.next_members[member as usize]).filter(|&next| next != group);
        std::iter::successors(Some(group), next)
    }

    /// Makes the groups of the nodes of an edge one, if they have one color, and if little has to
    /// move for it.
    fn bring_together(&mut self, from: u32, to: u32) {
        let color = self.colors[from as usize];
        if color == NO_COLOR || color != self.colors[to as usize] {
            return;
        }
        let (from, to) = (self.groups.group(from), self.groups.group(to));
        if from != to && !self.moves_to(from, to, Direction::Up) {
            self.moves_to(to, from, Direction::Down);
        }
    }

    /// Moves a group to the level of another one, and what stands in its way. Returns false, and
    /// moves nothing, if the other group stands in the way itself, or too much does.
    fn moves_to(&mut self, group: u32, other: u32, direction: Direction) -> bool {
        let sign = if direction == Direction::Up { 1 } else { -1 };
        let mut steps = 0;
        let mut moved: Vec<(u32, i64)> = Vec::new();
        let mut pushed = vec![(group, self.levels[other as usize])];
        while let Some((group, level)) = pushed.pop() {
            let before = self.levels[group as usize];
            if sign * before >= sign * level {
                continue;
            }
            moved.push((group, before));
            self.levels[group as usize] = level;
            let is_too_far = self.push_neighbours(group, direction, &mut steps, &mut pushed);
            if group == other || is_too_far {
                moved.into_iter().rev().for_each(|(group, before)| self.levels[group as usize] = before);
                return false;
            }
        }
        // Each of them may stand beside others of its color now.
        let colored = moved.iter().filter(|(group, _)| self.colors[*group as usize] != NO_COLOR);
        let members: Vec<u32> = colored.flat_map(|&(group, _)| self.members(group)).collect();
        for member in members {
            for i in self.users.range(member) {
                self.meet(member, self.users.targets[i]);
            }
            for i in self.operands.range(member) {
                self.meet(member, self.operands.targets[i]);
            }
        }
        true
    }

    /// Adds the neighbours of a group in a direction, with the levels that they need. Returns true
    /// if too many steps were made.
    fn push_neighbours(
        &mut self,
        group: u32,
        direction: Direction,
        steps: &mut usize,
        pushed: &mut Vec<(u32, i64)>,
    ) -> bool {
        let level = self.levels[group as usize];
        let mut member = group;
        loop {
            let (edges, others) = match direction {
                Direction::Up => (&self.users, &self.operands),
                Direction::Down => (&self.operands, &self.users),
            };
            *steps += 1 + edges.of_node(member).len();
            if self.colors[group as usize] != NO_COLOR {
                *steps += others.of_node(member).len();
            }
            if *steps > MOST_STEPS {
                return true;
            }
            for &node in edges.of_node(member) {
                work::tick();
                let neighbour = self.groups.group(node);
                let step = self.step(member, node);
                if neighbour != group {
                    pushed.push((neighbour, if direction == Direction::Up { level + step } else { level - step }));
                }
            }
            member = self.next_members[member as usize];
            if member == group {
                return false;
            }
        }
    }

    /// Lets each group rise as far as its users allow. Returns true if groups met.
    fn rise(&mut self, edges: &[(u32, u32)]) -> bool {
        let top = self.levels.iter().copied().max().unwrap_or(0);
        let ends: Vec<(u32, u32)> = edges.iter().map(|&(from, to)| (self.groups.group(from), to)).collect();
        let users = Adjacency::of(self.colors.len(), &ends);
        let mut met = false;
        for group in self.order().into_iter().rev() {
            let users = users.of_node(group);
            let mut level = top;
            for &user in users {
                let other = self.groups.group(user);
                if other != group {
                    level = level.min(self.levels[other as usize] - self.step(group, user));
                }
            }
            self.levels[group as usize] = level;
            for &user in users {
                met |= self.meet(group, user);
            }
        }
        met
    }

    /// Lets each group sink as far as its operands allow. Returns true if groups met.
    fn sink(&mut self, edges: &[(u32, u32)]) -> bool {
        let ends: Vec<(u32, u32)> = edges.iter().map(|&(from, to)| (self.groups.group(to), from)).collect();
        let operands = Adjacency::of(self.colors.len(), &ends);
        let mut met = false;
        for group in self.order() {
            let operands = operands.of_node(group);
            let mut level = 0;
            for &operand in operands {
                let other = self.groups.group(operand);
                if other != group {
                    level = level.max(self.levels[other as usize] + self.step(operand, group));
                }
            }
            self.levels[group as usize] = level;
            for &operand in operands {
                met |= self.meet(group, operand);
            }
        }
        met
    }

    /// Returns the nodes that stand for groups, operands before users.
    fn order(&mut self) -> Vec<u32> {
        let nodes = 0..self.colors.len() as u32;
        let groups: Vec<(u32, u32)> = nodes
            .filter(|&node| self.groups.parents[node as usize] == node)
            .map(|node| (self.levels[node as usize] as u32, node))
            .collect();
        let by_level = Adjacency::of(self.levels.iter().copied().max().map_or(0, |top| top as usize + 1), &groups);
        by_level.targets
    }
}

/// The edges of a graph by their source, in their order.
pub(super) struct Adjacency {
    starts: Vec<u32>,
    pub(super) targets: Vec<u32>,
}

impl Adjacency {
    /// Returns the edges of a graph with this number of nodes.
    pub(super) fn of(nodes: usize, edges: &[(u32, u32)]) -> Adjacency {
        let mut starts = vec![0; nodes + 1];
        edges.iter().for_each(|&(from, _)| starts[from as usize + 1] += 1);
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; edges.len()];
        for &(from, to) in edges {
            targets[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
        Adjacency { starts, targets }
    }

    /// Returns the positions of the edges of a node.
    fn range(&self, node: u32) -> Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }

    /// Returns the targets of the edges of a node.
    pub(super) fn of_node(&self, node: u32) -> &[u32] {
        &self.targets[self.range(node)]
    }
}

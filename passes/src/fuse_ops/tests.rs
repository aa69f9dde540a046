//! Tests of groups against a definition that walks every path.

use std::collections::BTreeSet;

use anfora_ir::bumpalo::Bump;
use anfora_ir::{Body, Context, OpRegistry};
use anfora_visit::{FlowEdge, PostDominatorTree};
use fastrand::Rng;

use super::FusionLimits;
use super::graph::Graph;
use super::groups::Groups;

/// Kinds of nodes, and edges (used node, user, label).
struct Plain {
    kinds: Vec<u8>,
    edges: Vec<(u32, u32, u8)>,
}

struct Random(Rng);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.u64(..n)
    }

    fn graph(&mut self) -> Plain {
        let n = 2 + self.below(24) as u32;
        // The graphs range from only elementwise operations to a mix of all kinds.
        let choice: &[u8] = match self.below(4) {
            0 => &[0, 0, 0, 1],
            1 => &[0, 1, 2, 0, 0, 4],
            2 => &[0, 0, 1, 2, 3, 4],
            _ => &[0, 0, 0, 1, 1, 2, 2, 3, 4, 7, 8],
        };
        let reach = 1 + self.below(6);
        let kinds: Vec<u8> = (0..n).map(|_| choice[self.below(choice.len() as u64) as usize]).collect();
        let mut edges = Vec::new();
        for to in 1..n {
            for _ in 0..=self.below(3) {
                let from = to - 1 - self.below(reach.min(u64::from(to))) as u32;
                let kind = kinds[to as usize];
                let label = match kind {
                    1 if self.below(2) == 0 => 0,
                    7 => 2,
                    kind => kind,
                };
                edges.push((from, to, label));
            }
        }
        Plain { kinds, edges }
    }
}

/// The algorithm of the peers, path by path. The size of a group is its number of nodes.
fn by_definition(plain: &Plain, max_depth: usize) -> Vec<u32> {
    let n = plain.kinds.len() as u32;
    let users = |node: u32| plain.edges.iter().filter(move |e| e.0 == node);
    // `post` holds, by node, the later nodes on every path from it; `between` returns the nodes on
    // the paths to `end`.
    let mut post: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); n as usize];
    for node in (0..n).rev() {
        let mut sets = users(node).map(|e| {
            let mut set = post[e.1 as usize].clone();
            set.insert(e.1);
            set
        });
        let first = sets.next().unwrap_or_default();
        post[node as usize] = sets.fold(first, |all, set| all.intersection(&set).copied().collect());
    }
    let between = |node: u32, end: u32| {
        let (mut seen, mut stack, mut label) = (BTreeSet::new(), vec![node], 0);
        while let Some(at) = stack.pop() {
            for &(_, to, l) in users(at) {
                label = label.max(l);
                if to != end && seen.insert(to) {
                    stack.push(to);
                }
            }
        }
        (seen, label)
    };
    let mut group: Vec<u32> = (0..n).collect();
    let mut kinds = plain.kinds.clone();
    for phase in 0..3 {
        for node in 0..n {
            let Some(&end) = post[node as usize].first() else { continue };
            let (inside, label) = between(node, end);
            let root = group[end as usize];
            let kind = kinds[node as usize];
            if group[node as usize] == root || kind == 8 {
                continue;
            }
            let all: BTreeSet<u32> = inside.iter().chain([&node, &end]).map(|&i| group[i as usize]).collect();
            let size = group.iter().filter(|g| all.contains(g)).count();
            let at_most = |limit: u8| inside.iter().all(|&i| kinds[group[i as usize] as usize] <= limit);
            let root_kind = kinds[root as usize];
            let fits = if phase == 2 {
                kind <= 2 && kinds[end as usize] == 7 && root_kind <= 2 && at_most(2)
            } else if kinds[end as usize] == 7 {
                false
            } else {
                match kind {
                    4 => phase == 0 && label == 0 && at_most(1) && root_kind <= 1,
                    0 | 1 => (label <= 2 || label == 3) && at_most(2) && root_kind <= 4,
                    2 | 7 => phase == 1 && at_most(2) && root_kind <= 2,
                    _ => false,
                }
            };
            if fits && size <= max_depth {
                group.iter_mut().filter(|g| all.contains(g)).for_each(|g| *g = root);
                if kind == 4 {
                    kinds[root as usize] = 4;
                }
            }
        }
    }
    group
}

#[test]
fn groups_are_those_that_walking_every_path_finds() {
    let cx = Context::new(std::sync::Arc::new(OpRegistry::new()));
    let body = Body::new(&cx.types);
    let mut random = Random(Rng::with_seed(7));
    let mut merged = 0;
    for _ in 0..20_000 {
        let plain = random.graph();
        let max_depth = [256, 8, 4, 3][random.below(4) as usize];
        let uses: Vec<(u32, FlowEdge)> =
            plain.edges.iter().map(|&(from, to, label)| (from, FlowEdge { to, label })).collect();
        let scratch = Bump::new();
        let graph = Graph::of_edges(&plain.kinds, &uses, &scratch);
        let dominators = PostDominatorTree::new(&graph.flow);
        let limits = FusionLimits { max_depth, max_function_args: 0 };
        let mut groups = Groups::new(&cx, &body, &graph, &dominators, limits, &scratch);
        let found: Vec<u32> = (0..graph.len() as u32).map(|node| groups.last(node)).collect();
        let wanted = by_definition(&plain, max_depth as usize);
        assert_eq!(found, wanted, "{:?} {:?} at most {max_depth}", plain.kinds, plain.edges);
        merged += usize::from(groups.merged);
        // The users of a node that is not the last of its group are in the group.
        for &(from, to, _) in &plain.edges {
            assert!(found[from as usize] == from || found[from as usize] == found[to as usize]);
        }
    }
    assert!(merged > 10_000);
}

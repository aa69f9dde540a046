//! The groups of MergeCompositeFunctions on random graphs, beside the search of the peer.

use std::collections::BTreeSet;

use anfora_ir::work;
use fastrand::Rng;

use crate::levels::{NO_COLOR, Partition};

/// Colors by node, and edges whose targets ascend.
struct Graph {
    colors: Vec<u32>,
    edges: Vec<(u32, u32)>,
}

impl Graph {
    fn random(rng: &mut Rng) -> Graph {
        let nodes = rng.u32(2..30);
        let colors = (0..nodes).map(|_| [NO_COLOR, 1, 1, 1, 2][rng.usize(..5)]).collect();
        let reach = rng.u32(1..12);
        let edges = (1..nodes)
            .flat_map(|to| {
                let from: BTreeSet<u32> = (0..rng.u32(0..4)).map(|_| to - 1 - rng.u32(..reach.min(to))).collect();
                from.into_iter().map(move |from| (from, to))
            })
            .collect();
        Graph { colors, edges }
    }

    fn operands(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.edges.iter().filter(move |edge| edge.1 == node).map(|edge| edge.0)
    }

    /// Returns the groups of the peer: a call joins the groups of its operands that no other
    /// operand depends on. Each group keeps the set of all groups that it depends on.
    fn by_dependencies(&self) -> Vec<u32> {
        let mut group: Vec<u32> = (0..self.colors.len() as u32).collect();
        let mut dependencies: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); group.len()];
        for node in 0..group.len() as u32 {
            let color = self.colors[node as usize];
            let above: BTreeSet<u32> = self
                .operands(node)
                .flat_map(|operand| dependencies[group[operand as usize] as usize].clone())
                .collect();
            let joined: Vec<u32> = self
                .operands(node)
                .map(|operand| group[operand as usize])
                .filter(|&other| color != NO_COLOR && self.colors[other as usize] == color && !above.contains(&other))
                .collect();
            if let Some(&first) = joined.first() {
                for &other in &joined {
                    group.iter_mut().filter(|g| **g == other).for_each(|g| *g = first);
                    let moved = std::mem::take(&mut dependencies[other as usize]);
                    dependencies[first as usize].extend(moved);
                    for set in dependencies.iter_mut().filter(|set| set.contains(&other)) {
                        set.remove(&other);
                        set.insert(first);
                    }
                }
                group[node as usize] = first;
            }
            let own = group[node as usize];
            for operand in self.operands(node) {
                let other = group[operand as usize];
                if other != own {
                    let above = dependencies[other as usize].clone();
                    dependencies[own as usize].insert(other);
                    dependencies[own as usize].extend(above);
                }
            }
        }
        group
    }

    /// Returns true if a path leads from a group through others back into it.
    fn is_cyclic(&self, group: &[u32]) -> bool {
        let between = |&(from, to): &(u32, u32)| (group[from as usize], group[to as usize]);
        let mut left: Vec<(u32, u32)> = self.edges.iter().map(between).filter(|(a, b)| a != b).collect();
        loop {
            let targets: BTreeSet<u32> = left.iter().map(|edge| edge.1).collect();
            let before = left.len();
            left.retain(|edge| targets.contains(&edge.0));
            if left.len() == before {
                return !left.is_empty();
            }
        }
    }

    /// Returns the number of groups that have a color.
    fn count(&self, group: &[u32]) -> usize {
        let colored = group.iter().zip(&self.colors).filter(|(_, color)| **color != NO_COLOR);
        colored.map(|(group, _)| group).collect::<BTreeSet<_>>().len()
    }
}

/// Groups that pass a node with many users do not visit its users each time.
#[test]
fn a_hub_is_not_visited_for_each_group_that_passes_it() {
    // A hub; calls of both backends in turn, which a tuple uses; and calls that each use two
    // neighbours of them and the hub: `x_i = c_i(y_i, y_{i + 1}, hub)`.
    let graph = |count: u32| {
        let backend = |i: u32| 1 + i % 2;
        let (hub, first) = (0, 1);
        let (tuple, chain) = (count + 2, count + 143);
        let mut colors = vec![NO_COLOR];
        colors.extend((0..=count).map(backend));
        colors.extend((0..141).map(|_| NO_COLOR));
        colors.extend((0..count).map(backend));
        let mut edges: Vec<(u32, u32)> = (0..=count).map(|i| (first + i, tuple)).collect();
        edges.extend((1..141).map(|i| (tuple, tuple + i)));
        for i in 0..count {
            edges.extend([(hub, chain + i), (first + i, chain + i), (first + i + 1, chain + i)]);
        }
        edges.sort_by_key(|edge| edge.1);
        Graph { colors, edges }
    };
    let work_of = |count: u32| {
        let graph = graph(count);
        let before = work::count();
        let mut partition = Partition::of(&graph.colors, &graph.edges);
        let work = work::count() - before;
        let joined = (0..graph.colors.len() as u32).filter(|&node| partition.group(node) != node).count();
        assert!(joined >= count as usize / 2, "{joined} of {count} are joined");
        work as f64 / f64::from(count)
    };
    let (small, large) = (work_of(1_000), work_of(8_000));
    assert!(small > 0.0, "the feature `count-work` is on in tests");
    assert!(large < 1.5 * small, "{small} visits a call, and {large} in a larger graph");
}

#[test]
fn groups_have_one_color_and_no_cycle_and_are_no_more_than_those_of_the_peer() {
    let mut rng = Rng::with_seed(1);
    let (mut ours, mut theirs, mut more) = (0, 0, 0);
    const GRAPHS: usize = 3000;
    for _ in 0..GRAPHS {
        let graph = Graph::random(&mut rng);
        let mut partition = Partition::of(&graph.colors, &graph.edges);
        let group: Vec<u32> = (0..graph.colors.len() as u32).map(|node| partition.group(node)).collect();
        for (node, &of) in group.iter().enumerate() {
            assert_eq!(graph.colors[node], graph.colors[of as usize]);
            assert!(graph.colors[node] != NO_COLOR || of == node as u32, "a node without color is in a group");
        }
        assert!(!graph.is_cyclic(&group), "{:?} {:?} {group:?}", graph.colors, graph.edges);
        let peer = graph.by_dependencies();
        ours += graph.count(&group);
        theirs += graph.count(&peer);
        more += usize::from(graph.count(&group) > graph.count(&peer));
    }
    assert!(ours <= theirs, "{ours} groups, {theirs} of the peer");
    assert!(more * 20 < GRAPHS, "{more} graphs have more groups");
}

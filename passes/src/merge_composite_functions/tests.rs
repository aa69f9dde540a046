//! Tests of groups on random graphs, beside the search of the peer.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::levels::{NO_COLOR, Partition};

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

/// A node that many groups use is moved by few of them.
#[test]
fn a_hub_takes_linear_time() {
    // A call of one backend, one of the other that it leads to, and a hub that uses the second.
    let graph = |pairs: u32| {
        let colors: Vec<u32> = (0..pairs).flat_map(|_| [1, 2]).chain([NO_COLOR]).chain((0..pairs).map(|_| 1)).collect();
        let hub = 2 * pairs;
        let within = (0..pairs).map(|i| (2 * i, 2 * i + 1));
        let into = (0..pairs).map(|i| (2 * i + 1, hub));
        let out = (0..pairs).map(|i| (hub, hub + 1 + i));
        (colors, within.chain(into).chain(out).collect::<Vec<_>>())
    };
    let work = |pairs| {
        let (colors, edges) = graph(pairs);
        let mut partition = Partition::of(&colors, &edges);
        (0..colors.len() as u32).filter(|&node| partition.group(node) == node).count()
    };
    assert_eq!(work(20_000), 60_001);
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

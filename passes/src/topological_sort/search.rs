//! The search that sorts the bindings of a segment.

use std::collections::VecDeque;

use super::SearchOrder;

/// A graph without cycles. Its nodes are numbered; sources lead to nodes.
pub(super) struct Graph {
    /// The successors of each source, then those of each node.
    successors: Vec<Vec<u32>>,
    sources: usize,
    /// The number of sources and nodes that lead to each node.
    before: Vec<u32>,
}

impl Graph {
    /// Returns the graph of some nodes with these sources and edges. The successors of a node are
    /// searched in the order of the edges. Equal edges of one node count once.
    pub(super) fn new(nodes: usize, sources: impl Iterator<Item = Vec<u32>>, edges: &[(u32, u32)]) -> Graph {
        let mut successors: Vec<Vec<u32>> = sources.collect();
        let count = successors.len();
        successors.resize(count + nodes, Vec::new());
        for &(from, to) in edges {
            successors[count + from as usize].push(to);
        }
        let mut before = vec![0; nodes];
        // The last list that has a node.
        let mut seen_in = vec![usize::MAX; nodes];
        for (i, list) in successors.iter_mut().enumerate() {
            list.retain(|&to| std::mem::replace(&mut seen_in[to as usize], i) != i);
            list.iter().for_each(|&to| before[to as usize] += 1);
        }
        Graph { successors, sources: count, before }
    }
}

/// Returns all nodes, each after the nodes that lead to it, in the order of a search from the
/// sources and then from the nodes that nothing leads to.
pub(super) fn search(graph: &Graph, order: SearchOrder) -> Vec<u32> {
    let mut search = Search { graph, left: graph.before.clone(), found: Vec::with_capacity(graph.before.len()) };
    let roots = (0..graph.before.len()).filter(|&node| graph.before[node] == 0).map(|node| graph.sources + node);
    let starts = (0..graph.sources).chain(roots);
    match order {
        SearchOrder::DepthFirst => starts.for_each(|start| search.depth_first(start)),
        SearchOrder::BreadthFirst => search.breadth_first(starts.collect()),
    }
    search.found
}

struct Search<'a> {
    graph: &'a Graph,
    /// The number of sources and nodes that lead to each node and are not reached; `u32::MAX` once
    /// the node itself is reached or waits in a queue.
    left: Vec<u32>,
    found: Vec<u32>,
}

impl Search<'_> {
    /// Reaches a source or node.
    fn reach(&mut self, item: usize) {
        if let Some(node) = item.checked_sub(self.graph.sources) {
            self.left[node] = u32::MAX;
            self.found.push(node as u32);
        }
        for &to in &self.graph.successors[item] {
            self.left[to as usize] -= 1;
        }
    }

    /// Goes from an item as deep as possible.
    fn depth_first(&mut self, start: usize) {
        self.reach(start);
        // The open items, each with the number of its next successor.
        let mut open = vec![(start, 0)];
        while let Some((item, next)) = open.last_mut() {
            let Some(&to) = self.graph.successors[*item].get(*next) else {
                open.pop();
                continue;
            };
            *next += 1;
            if self.left[to as usize] == 0 {
                let item = self.graph.sources + to as usize;
                self.reach(item);
                open.push((item, 0));
            }
        }
    }

    /// Goes from all items at once.
    fn breadth_first(&mut self, mut queue: VecDeque<usize>) {
        while let Some(item) = queue.pop_front() {
            self.reach(item);
            for &to in &self.graph.successors[item] {
                if self.left[to as usize] == 0 {
                    self.left[to as usize] = u32::MAX;
                    queue.push_back(self.graph.sources + to as usize);
                }
            }
        }
    }
}

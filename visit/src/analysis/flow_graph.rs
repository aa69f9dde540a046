//! Graphs as lists of the outgoing edges of each vertex.

/// An edge of a [`FlowGraph`], in the list of its source vertex.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlowEdge {
    /// The target vertex.
    pub to: u32,
    /// Its label, such as a fusion pattern.
    pub label: u8,
}

/// A graph of vertices `0..len`, with edges of type `E` in a list for each vertex.
///
/// In the graph of a [`PostDominatorTree`](crate::PostDominatorTree), each edge leads to a later
/// vertex, or to the exit, which is number `len`.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowGraph<E = FlowEdge> {
    /// By vertex: the position of its first edge; one more entry at the end.
    starts: Vec<u32>,
    edges: Vec<E>,
}

impl<E: Copy> FlowGraph<E> {
    /// Returns the graph with these edges, each paired with its source vertex. The edges of a
    /// vertex keep their order. Takes linear time.
    ///
    /// # Panics
    /// If the source of an edge is not below `len`.
    pub fn new(len: usize, edges: &[(u32, E)]) -> FlowGraph<E> {
        let mut starts = vec![0u32; len + 1];
        edges.iter().for_each(|&(from, _)| starts[from as usize] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut sorted: Vec<E> = edges.iter().map(|&(_, edge)| edge).collect();
        for &(from, edge) in edges.iter().rev() {
            let start = &mut starts[from as usize];
            *start -= 1;
            sorted[*start as usize] = edge;
        }
        FlowGraph { starts, edges: sorted }
    }

    /// Returns the number of vertices.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the outgoing edges of a vertex.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[inline]
    pub fn edges(&self, vertex: u32) -> &[E] {
        &self.edges[self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize]
    }
}

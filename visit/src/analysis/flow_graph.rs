//! Graphs: for each vertex, the edges that leave it.

/// An edge of a [`FlowGraph`], in the list of the vertex that it leaves.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlowEdge {
    /// The vertex that it leads to.
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
    /// By vertex: where its edges begin; one more at the end.
    starts: Vec<u32>,
    edges: Vec<E>,
}

impl<E: Copy> FlowGraph<E> {
    /// Returns the graph with these edges, each with the vertex that it leaves. The edges of a
    /// vertex stay in the order given. Linear.
    ///
    /// # Panics
    /// If an edge leaves a vertex that is not below `len`.
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

    /// Returns the edges that leave a vertex.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[inline]
    pub fn edges(&self, vertex: u32) -> &[E] {
        &self.edges[self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize]
    }
}

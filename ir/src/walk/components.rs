//! Strongly connected components of a graph: sets of vertices that can reach each other.
//!
//! Tarjan's algorithm ("Depth-first search and linear graph algorithms", SIAM J. Comput. 1972) on
//! an explicit stack.

/// The strongly connected components of a graph whose vertices are numbered from 0.
///
/// ```
/// use anfora_ir::Components;
///
/// // 0 -> 1 <-> 2, 3 -> 3
/// let successors: [&[u32]; 4] = [&[1], &[2], &[1], &[3]];
/// let components = Components::of(4, |v| successors[v as usize]);
/// assert_eq!(components.iter().collect::<Vec<_>>(), [&[1, 2][..], &[0], &[3]]);
/// assert!(components.is_cyclic(3) && !components.is_cyclic(0));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Components {
    /// The vertices, component by component.
    members: Vec<u32>,
    /// The position in `members` at which each component begins, and the end of the last one.
    starts: Vec<u32>,
    /// The number of the component of each vertex.
    component: Vec<u32>,
    /// True for each vertex that can reach itself.
    cyclic: Vec<bool>,
}

const UNSEEN: u32 = u32::MAX;

impl Components {
    /// Returns the components of a graph. Linear in vertices and edges, except for sorting the
    /// members of each component.
    pub fn of<'g>(vertices: usize, successors: impl Fn(u32) -> &'g [u32]) -> Components {
        let mut number = vec![UNSEEN; vertices];
        let mut low = vec![0u32; vertices];
        let mut stack: Vec<u32> = Vec::new();
        // The vertices that are being visited, with the numbers of their visited successors.
        let mut frames: Vec<(u32, u32)> = Vec::new();
        let mut result = Components {
            members: Vec::with_capacity(vertices),
            starts: vec![0],
            component: vec![UNSEEN; vertices],
            cyclic: vec![false; vertices],
        };
        let mut count = 0;
        for root in 0..vertices as u32 {
            if number[root as usize] != UNSEEN {
                continue;
            }
            frames.push((root, 0));
            while let Some((v, next)) = frames.last_mut() {
                let at = *v as usize;
                if *next == 0 {
                    number[at] = count;
                    low[at] = count;
                    count += 1;
                    stack.push(*v);
                }
                if let Some(&w) = successors(*v).get(*next as usize) {
                    *next += 1;
                    let w = w as usize;
                    if w == at {
                        result.cyclic[at] = true;
                    }
                    if number[w] == UNSEEN {
                        frames.push((w as u32, 0));
                    } else if result.component[w] == UNSEEN {
                        low[at] = low[at].min(number[w]);
                    }
                    continue;
                }
                frames.pop();
                if let Some(&(parent, _)) = frames.last() {
                    low[parent as usize] = low[parent as usize].min(low[at]);
                }
                if low[at] == number[at] {
                    result.close(&mut stack, at as u32);
                }
            }
        }
        result
    }

    /// Makes a component of the vertices on the stack from `first` on.
    fn close(&mut self, stack: &mut Vec<u32>, first: u32) {
        let (id, start) = (self.starts.len() as u32 - 1, self.members.len());
        while let Some(w) = stack.pop() {
            self.component[w as usize] = id;
            self.members.push(w);
            if w == first {
                break;
            }
        }
        let members = &mut self.members[start..];
        if let [_, _, ..] = members {
            members.sort_unstable();
            for &w in &*members {
                self.cyclic[w as usize] = true;
            }
        }
        self.starts.push(self.members.len() as u32);
    }

    /// Returns the number of components.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns true if there are no components, because there are no vertices.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the vertices of a component, in ascending order.
    ///
    /// # Panics
    /// If there is no component with that number.
    pub fn members(&self, component: usize) -> &[u32] {
        &self.members[self.starts[component] as usize..self.starts[component + 1] as usize]
    }

    /// Returns the components, each after the components that it has edges to.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u32]> + ExactSizeIterator {
        (0..self.len()).map(|c| self.members(c))
    }

    /// Returns the number of the component of a vertex. The components that it has edges to have
    /// smaller numbers.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn component(&self, vertex: u32) -> usize {
        self.component[vertex as usize] as usize
    }

    /// Returns true if a vertex can reach itself along one or more edges.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn is_cyclic(&self, vertex: u32) -> bool {
        self.cyclic[vertex as usize]
    }
}

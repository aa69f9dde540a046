//! Names for values: each once along every path of graphs into graphs.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

/// The names that are taken.
#[derive(Default)]
pub(super) struct Names {
    /// Those of the open graphs.
    active: FxHashSet<Rc<str>>,
    /// Those of all graphs, finished ones included.
    ever: FxHashSet<Rc<str>>,
    /// For a name that was asked for again, the last number that was put after it.
    counters: FxHashMap<Rc<str>, u64>,
    /// The names of each open graph.
    graphs: Vec<Vec<Rc<str>>>,
}

impl Names {
    /// Begins a graph inside the one in hand.
    pub(super) fn open(&mut self) {
        self.graphs.push(Vec::new());
    }

    /// Ends the graph in hand: its names are free for the graphs beside it.
    pub(super) fn close(&mut self) {
        for name in self.graphs.pop().into_iter().flatten() {
            self.active.remove(&name);
        }
    }

    /// A name for a value of the graph in hand: `wish`, or, if that is taken, `wish` with a number.
    pub(super) fn claim(&mut self, wish: &str) -> Rc<str> {
        let name = self.free(wish, |names, n| names.active.contains(n));
        self.take(name, self.graphs.len() - 1)
    }

    /// A name for a value of the outermost graph, when graphs in it may be finished: no graph has it.
    pub(super) fn claim_outermost(&mut self, wish: &str) -> Rc<str> {
        let name = self.free(wish, |names, n| names.ever.contains(n));
        self.take(name, 0)
    }

    /// Whether a value in sight has the name.
    pub(super) fn is_visible(&self, name: &str) -> bool {
        self.active.contains(name)
    }

    fn take(&mut self, name: Rc<str>, graph: usize) -> Rc<str> {
        self.active.insert(name.clone());
        self.ever.insert(name.clone());
        self.graphs[graph].push(name.clone());
        name
    }

    fn free(&mut self, wish: &str, is_taken: impl Fn(&Names, &str) -> bool) -> Rc<str> {
        let wish = if wish.is_empty() { "v" } else { wish };
        if !is_taken(self, wish) {
            return wish.into();
        }
        let mut n = self.counters.get(wish).copied().unwrap_or(0);
        loop {
            n += 1;
            let candidate = format!("{wish}_{n}");
            if !is_taken(self, &candidate) {
                self.counters.insert(wish.into(), n);
                return candidate.into();
            }
        }
    }
}

//! Names for values. No graph reuses a name of a graph around it.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

/// The names in use.
#[derive(Default)]
pub(super) struct Names {
    /// The names of the open graphs.
    active: FxHashSet<Rc<str>>,
    /// The names of all graphs, including finished ones.
    ever: FxHashSet<Rc<str>>,
    /// For each name that was requested again, the last number that was appended to it.
    counters: FxHashMap<Rc<str>, u64>,
    /// The names of each open graph.
    graphs: Vec<Vec<Rc<str>>>,
}

impl Names {
    /// Begins a graph inside the current one.
    pub(super) fn open(&mut self) {
        self.graphs.push(Vec::new());
    }

    /// Ends the current graph. Its names become free for sibling graphs.
    pub(super) fn close(&mut self) {
        for name in self.graphs.pop().into_iter().flatten() {
            self.active.remove(&name);
        }
    }

    /// Returns a name for a value of the current graph: `wish` or, if that is taken, `wish` with a
    /// number.
    pub(super) fn claim(&mut self, wish: &str) -> Rc<str> {
        let name = self.free(wish, |names, n| names.active.contains(n));
        self.take(name, self.graphs.len() - 1)
    }

    /// Returns a name for a value of the outermost graph that no graph uses, including finished
    /// graphs.
    pub(super) fn claim_outermost(&mut self, wish: &str) -> Rc<str> {
        let name = self.free(wish, |names, n| names.ever.contains(n));
        self.take(name, 0)
    }

    /// Returns true if a visible value has the name.
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

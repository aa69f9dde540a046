//! Names for values. No graph reuses a name of a graph around it.

use std::ops::Deref;
use std::rc::Rc;

use anfora_ir::{NameId, Names as ModuleNames};
use rustc_hash::FxHashMap;

use crate::id_hash::IdMap;

/// A name of a value: one of the module's names, or another text.
#[derive(Clone)]
pub(super) enum Name<'m> {
    OfModule(NameId, &'m str),
    Made(Rc<str>),
}

impl Deref for Name<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Name::OfModule(_, text) => text,
            Name::Made(text) => text,
        }
    }
}

/// The names in use. Those of the module are found by their ids.
pub(super) struct Names<'m> {
    module: &'m ModuleNames,
    /// The names of all graphs, including finished ones. An entry is true if the graph is open.
    of_module: IdMap<NameId, bool>,
    /// The same for other names.
    made: FxHashMap<Rc<str>, bool>,
    /// For each name that was requested again, the last number that was appended to it.
    counters: FxHashMap<Box<str>, u64>,
    /// The names of each open graph.
    graphs: Vec<Vec<Name<'m>>>,
}

impl<'m> Names<'m> {
    pub(super) fn new(module: &'m ModuleNames) -> Names<'m> {
        Names {
            module,
            of_module: IdMap::default(),
            made: FxHashMap::default(),
            counters: FxHashMap::default(),
            graphs: Vec::new(),
        }
    }

    /// Begins a graph inside the current one.
    pub(super) fn open(&mut self) {
        self.graphs.push(Vec::new());
    }

    /// Ends the current graph. Its names become free for sibling graphs.
    pub(super) fn close(&mut self) {
        for name in self.graphs.pop().into_iter().flatten() {
            self.set(&name, false);
        }
    }

    /// Returns a name for a value of the current graph: `wish` or, if that is taken, `wish` with a
    /// number.
    pub(super) fn claim(&mut self, wish: &str) -> Name<'m> {
        let name = self.free(wish, |state| state == Some(true));
        self.take(name, self.graphs.len() - 1)
    }

    /// Returns a name for a value of the outermost graph that no graph uses, including finished
    /// graphs.
    pub(super) fn claim_outermost(&mut self, wish: &str) -> Name<'m> {
        let name = self.free(wish, |state| state.is_some());
        self.take(name, 0)
    }

    /// Returns true if a visible value has the name.
    pub(super) fn is_visible(&self, name: &str) -> bool {
        self.state(&self.named(name)) == Some(true)
    }

    fn named(&self, text: &str) -> Name<'m> {
        match self.module.find(text) {
            Some(id) => Name::OfModule(id, self.module.get(id)),
            None => Name::Made(text.into()),
        }
    }

    /// Returns the entry of a name.
    fn state(&self, name: &Name<'_>) -> Option<bool> {
        match name {
            Name::OfModule(id, _) => self.of_module.get(id).copied(),
            Name::Made(text) => self.made.get(text).copied(),
        }
    }

    fn set(&mut self, name: &Name<'_>, is_open: bool) {
        match name {
            Name::OfModule(id, _) => self.of_module.insert(*id, is_open),
            Name::Made(text) => self.made.insert(text.clone(), is_open),
        };
    }

    fn take(&mut self, name: Name<'m>, graph: usize) -> Name<'m> {
        self.set(&name, true);
        self.graphs[graph].push(name.clone());
        name
    }

    fn free(&mut self, wish: &str, is_taken: fn(Option<bool>) -> bool) -> Name<'m> {
        let wish = if wish.is_empty() { "v" } else { wish };
        let name = self.named(wish);
        if !is_taken(self.state(&name)) {
            return name;
        }
        let mut n = self.counters.get(wish).copied().unwrap_or(0);
        loop {
            n += 1;
            let candidate = self.named(&format!("{wish}_{n}"));
            if !is_taken(self.state(&candidate)) {
                self.counters.insert(wish.into(), n);
                return candidate;
            }
        }
    }
}

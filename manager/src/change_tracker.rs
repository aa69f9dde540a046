//! The functions that a repeated pass may skip, because it left them unchanged.
//!
//! A repeated function pass does the same to a function as before if neither the function nor
//! anything that it reaches through the globals that it names has changed. The module is scanned
//! before each run of a pass; the scans ("looks") are numbered, and each records the functions that
//! have changed since the look before it.

use anfora_ir::{Attr, EntityId, Function, FunctionKey, FunctionStamp, Global, GlobalId, Module, Stamp};
use rustc_hash::FxHashMap;

/// The state of a module that passes are repeated on.
#[derive(Default)]
pub(crate) struct ChangeTracker {
    /// The number of the last look.
    look: u64,
    /// By global.
    seen: Vec<Seen>,
    /// Globals that were found changed, oldest first. If a global occurs more than once, its last
    /// occurrence counts.
    changes: Vec<GlobalId>,
    /// By pass, and then by global: the look after which the pass left the function unchanged, or
    /// 0.
    left: FxHashMap<u64, Vec<u64>>,
}

/// A global as it was at the last look.
struct Seen {
    global: Global,
    function: Option<FunctionStamp>,
    /// The state of the body including nodes that a pass appended and did not link. The function is
    /// the same.
    appended: Option<Stamp>,
    changed: u64,
    mentions: Vec<GlobalId>,
}

/// A run of a repeated pass, with the functions that it skips.
pub(crate) struct Round {
    pass: u64,
    look: u64,
    /// By global.
    skipped: Vec<bool>,
}

impl Round {
    /// Returns true if the pass would not change the function.
    pub(crate) fn skips(&self, module: &Module, key: FunctionKey) -> bool {
        let global = module.get(key).and_then(|f| f.global());
        global.is_some_and(|g| self.skipped.get(g.index()).is_some_and(|&s| s))
    }
}

impl ChangeTracker {
    /// Looks at the module before a pass, and returns the functions to skip. Linear in the number
    /// of functions and globals, in the mentions of globals, and in the bodies that changed.
    pub(crate) fn begin(&mut self, pass: u64, module: &Module) -> Round {
        self.look(module);
        let left = self.left.entry(pass).or_default();
        left.resize(self.seen.len(), 0);
        let mut round = Round { pass, look: self.look, skipped: vec![false; self.seen.len()] };
        let Some(oldest) = left.iter().copied().filter(|&l| l > 0).min() else { return round };
        let left = std::mem::take(left);
        let newest = self.newest_changes(module, oldest);
        for (skipped, (left, newest)) in round.skipped.iter_mut().zip(left.iter().zip(newest)) {
            *skipped = *left > 0 && newest <= *left;
        }
        self.left.insert(pass, left);
        round
    }

    /// Records the functions that the pass left unchanged, before anything else changes them.
    pub(crate) fn end(&mut self, round: &Round, module: &Module) {
        let left = self.left.entry(round.pass).or_default();
        for (key, f) in module.functions() {
            let Some(i) = f.global().map(EntityId::index).filter(|&i| i < round.skipped.len()) else { continue };
            let now = f.stamp();
            let seen = &mut self.seen[i];
            let same = !module.is_edited(key) && seen.function.as_ref().is_some_and(|then| then.has_head_of(&now));
            if !round.skipped[i] {
                left[i] = if same { round.look } else { 0 };
            }
            seen.appended = (same && seen.function.as_ref() != Some(&now)).then(|| now.body());
        }
    }

    fn look(&mut self, module: &Module) {
        self.look += 1;
        for (id, global) in module.cx.globals.iter() {
            let function = global.target.function().and_then(|key| module.get(key));
            let now = function.map(|f| f.stamp());
            if let Some(seen) = self.seen.get_mut(id.index()) {
                let same_body = match (&seen.function, &now) {
                    (Some(then), Some(now)) => then.body() == now.body() || seen.appended == Some(now.body()),
                    (then, now) => then.is_none() && now.is_none(),
                };
                let same_head = match (&seen.function, &now) {
                    (Some(then), Some(now)) => then.has_head_of(now),
                    _ => true,
                };
                if same_body && same_head && seen.global == *global {
                    (seen.function, seen.appended) = (now, None);
                    continue;
                }
                seen.changed = self.look;
                if !same_body {
                    seen.mentions = function.map_or_else(Vec::new, mentions);
                }
                (seen.global, seen.function, seen.appended) = (global.clone(), now, None);
            } else {
                let mentions = function.map_or_else(Vec::new, mentions);
                let changed = self.look;
                self.seen.push(Seen { global: global.clone(), function: now, appended: None, changed, mentions });
            }
            self.changes.push(id);
        }
        if self.changes.len() > 2 * self.seen.len() {
            self.forget_old_changes();
        }
    }

    /// Keeps only the last change of each global.
    fn forget_old_changes(&mut self) {
        let mut kept = vec![false; self.seen.len()];
        let mut last: Vec<GlobalId> = self.changes.drain(..).rev().collect();
        last.retain(|id| !std::mem::replace(&mut kept[id.index()], true));
        last.reverse();
        self.changes = last;
    }

    /// Returns for each global the last look that found the global, or anything that it reaches,
    /// changed; 0 for looks up to `oldest`.
    fn newest_changes(&self, module: &Module, oldest: u64) -> Vec<u64> {
        let callers = self.callers(module);
        let mut newest = vec![0; self.seen.len() + 1];
        let mut stack: Vec<usize> = Vec::new();
        for id in self.changes.iter().rev() {
            let changed = self.seen[id.index()].changed;
            if changed <= oldest {
                break;
            }
            stack.push(id.index());
            while let Some(at) = stack.pop() {
                if newest[at] == 0 {
                    newest[at] = changed;
                    stack.extend(callers.of(at));
                }
            }
        }
        newest
    }

    /// Returns the graph from globals to the functions that name them. All functions and globals in
    /// attributes are one vertex, after those of the globals, which every function names.
    fn callers(&self, module: &Module) -> Callers {
        let attrs = self.seen.len();
        let mut edges: Vec<(usize, usize)> = Vec::new();
        for (caller, seen) in self.seen.iter().enumerate() {
            edges.extend(seen.mentions.iter().map(|g| (g.index(), caller)));
        }
        let before = edges.len();
        let cx = &module.cx;
        edges.extend(cx.attrs.iter().filter_map(|(_, attr)| match attr {
            Attr::Global(g) => Some((g.index(), attrs)),
            _ => None,
        }));
        for (_, function) in cx.function_attrs.iter() {
            edges.extend(function.body.global_leaves().into_iter().map(|(_, g)| (g.index(), attrs)));
        }
        if edges.len() > before {
            edges.extend((0..attrs).map(|caller| (attrs, caller)));
        }
        Callers::new(attrs + 1, &edges)
    }
}

/// Returns the globals that a function names, each once.
fn mentions(function: &Function) -> Vec<GlobalId> {
    function.body.global_leaves().into_iter().map(|(_, g)| g).collect()
}

/// For each vertex, the vertices that name it.
struct Callers {
    starts: Vec<usize>,
    callers: Vec<usize>,
}

impl Callers {
    fn new(vertices: usize, edges: &[(usize, usize)]) -> Callers {
        let mut starts = vec![0; vertices + 1];
        for &(named, _) in edges {
            starts[named + 1] += 1;
        }
        for v in 0..vertices {
            starts[v + 1] += starts[v];
        }
        let mut next = starts.clone();
        let mut callers = vec![0; edges.len()];
        for &(named, caller) in edges {
            callers[next[named]] = caller;
            next[named] += 1;
        }
        Callers { starts, callers }
    }

    fn of(&self, vertex: usize) -> &[usize] {
        &self.callers[self.starts[vertex]..self.starts[vertex + 1]]
    }
}

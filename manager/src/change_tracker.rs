//! The functions that a repeated pass may skip, because it left them unchanged.
//!
//! A repeated function pass does the same to a function as before if neither the function nor
//! anything that it reaches through the globals that it names has changed. The module is scanned
//! before each run of a pass; the scans ("looks") are numbered, and each records the functions that
//! have changed since the look before it.

use anfora_ir::{Attr, Components, EntityId, Function, FunctionKey, FunctionStamp, Global, Module, Stamp};
use rustc_hash::FxHashMap;

/// The state of a module that passes are repeated on.
#[derive(Default)]
pub(crate) struct ChangeTracker {
    /// The number of the last look.
    look: u64,
    /// By global.
    seen: Vec<Seen>,
    /// By pass, and then by global: the look after which the pass left the function unchanged, or
    /// 0.
    left: FxHashMap<u64, Vec<u64>>,
}

/// A global as it was at the last look.
#[derive(Default)]
struct Seen {
    global: Option<Global>,
    function: Option<FunctionStamp>,
    /// The state of the body including nodes that a pass appended and did not link. The function is
    /// the same.
    appended: Option<Stamp>,
    changed: u64,
    /// The globals that the function names.
    mentions: Vec<u32>,
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
        let newest = self.newest_changes(module);
        let left = self.left.entry(pass).or_default();
        left.resize(self.seen.len(), 0);
        let skipped = left.iter().zip(newest).map(|(&left, newest)| left > 0 && newest <= left).collect();
        Round { pass, look: self.look, skipped }
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
            if id.index() == self.seen.len() {
                self.seen.push(Seen::default());
            }
            let seen = &mut self.seen[id.index()];
            let (same_body, same_head) = match (&seen.function, &now) {
                (Some(then), Some(now)) => {
                    let same_body = then.body() == now.body() || seen.appended == Some(now.body());
                    (same_body, then.has_head_of(now))
                }
                (then, now) => (then.is_none() && now.is_none(), true),
            };
            if !(same_body && same_head && seen.global.as_ref() == Some(global)) {
                seen.changed = self.look;
                seen.global = Some(global.clone());
            }
            if !same_body {
                seen.mentions = function.map_or_else(Vec::new, mentions);
            }
            (seen.function, seen.appended) = (now, None);
        }
    }

    /// Returns for each global the last look that found it, or anything that it reaches, changed.
    fn newest_changes(&self, module: &Module) -> Vec<u64> {
        let mut newest = vec![0; self.seen.len()];
        // Each component comes after those that it reaches.
        for members in Components::of(newest.len(), |v| &self.seen[v as usize].mentions).iter() {
            let seen = members.iter().map(|&v| &self.seen[v as usize]);
            let reached = |s: &Seen| s.mentions.iter().map(|&v| newest[v as usize]).max().unwrap_or(0);
            let last = seen.map(|s| s.changed.max(reached(s))).max().unwrap_or(0);
            members.iter().for_each(|&v| newest[v as usize] = last);
        }
        // Every function reaches the globals in attributes, and in functions that are attributes.
        let in_attrs = module.cx.attrs.iter().filter_map(|(_, attr)| match attr {
            Attr::Global(g) => Some(newest[g.index()]),
            _ => None,
        });
        let in_functions = module.cx.function_attrs.iter().flat_map(|(_, function)| mentions(function));
        let last = in_attrs.chain(in_functions.map(|v| newest[v as usize])).max().unwrap_or(0);
        newest.into_iter().map(|own| own.max(last)).collect()
    }
}

/// Returns the globals that a function names, each once.
fn mentions(function: &Function) -> Vec<u32> {
    function.body.global_leaves().into_iter().map(|(_, g)| g.index() as u32).collect()
}

//! Names for new global functions.

use rustc_hash::FxHashMap;

use crate::core::body::Body;
use crate::core::context::{Context, GlobalTarget};
use crate::core::entity::{GlobalId, IdSet};
use crate::core::expr::Expr;
use crate::core::module::Module;
use crate::tables::attrs::Attr;
use crate::walk::cursor::{Cursor, Step};

/// Gives out names of globals that no function of a module has and no code mentions.
///
/// A name that was given out and is then unused again (because an edit failed, or because its
/// function was removed) is free for later supplies, so names depend on the program alone.
///
/// ```
/// use anfora_ir::{Module, NameSupply, OpRegistry};
///
/// let mut module = Module::new(OpRegistry::new().into());
/// let mut names = NameSupply::new(&module);
/// let (first, second) = (names.fresh(&mut module.cx, "f"), names.fresh(&mut module.cx, "f"));
/// assert_eq!(module.cx.global_name(first), "f");
/// assert_eq!(module.cx.global_name(second), "f_1");
/// ```
#[derive(Debug)]
pub struct NameSupply {
    /// Globals that name a function, or that are mentioned in the module.
    taken: IdSet<GlobalId>,
    /// The number to try next, by the global that has the base as its name.
    next: FxHashMap<GlobalId, u32>,
    text: String,
}

/// Returns the global of a name if it is free, and takes it.
fn take(taken: &mut IdSet<GlobalId>, cx: &mut Context, name: &str) -> Option<GlobalId> {
    let global = cx.global(name);
    taken.insert(global).then_some(global)
}

impl NameSupply {
    /// Returns a supply for a module. Visits the globals that its functions name: linear in these,
    /// and in the bodies that name a missing global.
    pub fn new(module: &Module) -> NameSupply {
        let cx = &module.cx;
        let mut supply = NameSupply {
            taken: IdSet::with_capacity(cx.globals.len()),
            next: FxHashMap::default(),
            text: String::new(),
        };
        for (id, global) in cx.globals.iter() {
            if global.target != GlobalTarget::Missing {
                supply.taken.insert(id);
            }
        }
        for (_, value) in cx.attrs.iter() {
            if let Attr::Global(global) = value {
                supply.taken.insert(*global);
            }
        }
        for (_, function) in module.functions() {
            supply.take_missing(&function.body);
        }
        for (_, function) in cx.function_attrs.iter() {
            supply.take_missing(&function.body);
        }
        supply
    }

    /// Takes the missing globals that a body mentions.
    fn take_missing(&mut self, body: &Body) {
        let missing = |supply: &NameSupply, id| matches!(body.expr(id), Expr::Global(g) if !supply.taken.contains(g));
        if !body.global_leaves().iter().any(|&(id, _)| missing(self, id)) {
            return;
        }
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            let (Step::Atom(id) | Step::Flat(id)) = step else { continue };
            for &atom in body.inputs(id).iter().chain([&id]) {
                if let Expr::Global(global) = body.expr(atom) {
                    self.taken.insert(global);
                }
            }
        }
    }

    /// Returns the global with a name if the name is free, and takes it.
    ///
    /// Cost: linear in the text.
    pub fn exactly(&mut self, cx: &mut Context, name: &str) -> Option<GlobalId> {
        take(&mut self.taken, cx, name)
    }

    /// Returns a global named `base` or, if that name is taken, `base_1`, `base_2` and so on. Takes
    /// amortised constant time, apart from the length of the name.
    ///
    /// Cost: linear in the text.
    pub fn fresh(&mut self, cx: &mut Context, base: &str) -> GlobalId {
        let NameSupply { taken, next, text } = self;
        let first = cx.global(base);
        if taken.insert(first) {
            return first;
        }
        let number = next.entry(first).or_insert(1);
        let mut digits = itoa::Buffer::new();
        loop {
            text.clear();
            text.extend([base, "_", digits.format(*number)]);
            *number += 1;
            if let Some(global) = take(taken, cx, text) {
                return global;
            }
        }
    }
}

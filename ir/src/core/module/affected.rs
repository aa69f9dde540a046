//! The functions that an edit of a module affects, including unchanged ones.

use rustc_hash::{FxHashMap, FxHashSet};
use slotmap::SecondaryMap;

use super::{FunctionHead, FunctionKey, Module};
use crate::core::entity::GlobalId;
use crate::core::function::Function;
use crate::ops::purity::{EffectScan, Purity, carries_functions};

impl Module {
    /// Returns the functions for which the verifier's result may differ from that at
    /// [`Module::begin_edit`], in program order: the functions whose bodies or heads were changed,
    /// added functions, and functions that call an impure one of these, directly or through impure
    /// functions. Returns all functions if a global or the attributes of the module changed, and
    /// none without an edit. Linear in the number of functions; linear in the module if a changed
    /// function may be impure.
    pub fn affected_functions(&self) -> Vec<FunctionKey> {
        let Some(edit) = self.edits.last() else { return Vec::new() };
        if self.cx.globals.has_changes() || edit.attrs != self.attrs || !edit.function_attrs.is_empty() {
            return self.order.clone();
        }
        let heads: SecondaryMap<FunctionKey, &FunctionHead> =
            edit.heads.iter().map(|(key, head)| (*key, head)).collect();
        let has_changed = |(key, f): &(FunctionKey, &Function)| {
            f.body.is_edited_in_module() || heads.get(*key).is_none_or(|head| **head != FunctionHead::of(f))
        };
        let changed: Vec<FunctionKey> = self.functions().filter(has_changed).map(|(key, _)| key).collect();
        if changed.len() == self.order.len() || !self.may_be_impure(&changed) {
            return changed;
        }
        if carries_functions(&self.cx) {
            // Functions are called through attributes too.
            return self.order.clone();
        }
        let affected = self.with_callers_of_impure(changed);
        self.order.iter().copied().filter(|key| affected.contains(key)).collect()
    }

    /// Returns true if a function may be impure by itself.
    fn may_be_impure(&self, keys: &[FunctionKey]) -> bool {
        let scan = EffectScan::new(&self.cx);
        let may_be = |f: &Function| !f.is_definition() || scan.may_have_effects(&f.body);
        keys.iter().filter_map(|&key| self.get(key)).any(may_be)
    }

    /// Returns the changed functions, and those that call an impure one of them, directly or
    /// through impure functions. The verifier's result for a caller of a pure function does not
    /// depend on that function.
    fn with_callers_of_impure(&self, changed: Vec<FunctionKey>) -> FxHashSet<FunctionKey> {
        let purity = Purity::of_module(self);
        let mut callers: FxHashMap<GlobalId, Vec<FunctionKey>> = FxHashMap::default();
        for (key, function) in self.functions() {
            for (_, global) in function.body.global_leaves() {
                if !purity.global_is_pure(global) {
                    callers.entry(global).or_default().push(key);
                }
            }
        }
        let mut affected: FxHashSet<FunctionKey> = changed.iter().copied().collect();
        let mut left = changed;
        while let Some(key) = left.pop() {
            let Some(global) = self.get(key).and_then(Function::global) else { continue };
            for caller in callers.remove(&global).unwrap_or_default() {
                if affected.insert(caller) {
                    left.push(caller);
                }
            }
        }
        affected
    }
}

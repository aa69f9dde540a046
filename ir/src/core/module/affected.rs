//! The functions that an edit of a module affects, unchanged ones included.

use rustc_hash::{FxHashMap, FxHashSet};
use slotmap::SecondaryMap;

use super::{FunctionKey, Head, Module};
use crate::core::entity::GlobalId;
use crate::core::function::Function;
use crate::ops::purity::{EffectScan, Purity, carries_functions};

impl Module {
    /// Returns the functions of which the verifier may say something else than at
    /// [`Module::begin_edit`], in program order: those whose bodies or heads were changed, those
    /// that were added, and those that call one of these that is impure, directly or through impure
    /// functions; all, if a global or the attributes of the module changed. None without an edit.
    /// Linear in the number of functions; in the module, if a function that was changed may be
    /// impure.
    pub fn affected_functions(&self) -> Vec<FunctionKey> {
        let Some(edit) = self.edits.last() else { return Vec::new() };
        if self.cx.globals.has_changes() || edit.attrs != self.attrs || !edit.function_attrs.is_empty() {
            return self.order.clone();
        }
        let heads: SecondaryMap<FunctionKey, &Head> = edit.heads.iter().map(|(key, head)| (*key, head)).collect();
        let has_changed = |(key, f): &(FunctionKey, &Function)| {
            f.body.is_edited_in_module() || heads.get(*key).is_none_or(|head| **head != Head::of(f))
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

    /// Returns true if one of some functions is not known to be pure by itself.
    fn may_be_impure(&self, keys: &[FunctionKey]) -> bool {
        let scan = EffectScan::new(&self.cx);
        let may_be = |f: &Function| !f.is_definition() || scan.may_have_effects(&f.body);
        keys.iter().filter_map(|&key| self.get(key)).any(may_be)
    }

    /// Returns the functions, and those that call an impure one of them, directly or through impure
    /// functions. Where a function is pure, its callers do not depend on what it says.
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

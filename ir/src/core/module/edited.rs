//! The functions that an open edit has changed, as they were before it and as they are.

use slotmap::SecondaryMap;

use super::{FunctionHead, Module};
use crate::core::entity::FunctionKey;
use crate::core::function::Function;

/// A function that an edit has added, removed or changed.
#[derive(Debug)]
pub struct EditedFunction<'m> {
    /// The key of the function.
    pub key: FunctionKey,
    /// A copy of the function as it was before the edit; absent if the edit has added it. The ids
    /// of its expressions are those of `after` if the bodies are of the same
    /// [generation](crate::Body::generation).
    pub before: Option<Function>,
    /// The function as it is; absent if the edit has removed it.
    pub after: Option<&'m Function>,
}

impl Module {
    /// Returns the functions that the innermost open edit has added, removed or changed: those that
    /// the module has, in program order, then those that were removed, in the order of their
    /// removal. Without an edit there are none. The copies are made one by one. Linear in the
    /// number of functions and in the sizes of the functions that are returned.
    ///
    /// Cost: one loop.
    pub fn edited_functions(&self) -> impl Iterator<Item = EditedFunction<'_>> {
        let edit = self.edits.last();
        let heads: SecondaryMap<FunctionKey, &FunctionHead> =
            edit.into_iter().flat_map(|edit| &edit.heads).map(|(key, head)| (*key, head)).collect();
        let gone = edit.into_iter().flat_map(|edit| &edit.removed);
        let keys = edit.into_iter().flat_map(|_| &self.order).chain(gone);
        keys.filter_map(move |&key| {
            let function = self.functions.get(key)?;
            let after = (!self.is_removed(key)).then_some(function);
            let Some(&head) = heads.get(key) else {
                return after.map(|_| EditedFunction { key, before: None, after });
            };
            let is_edited = function.body.is_edited_in_module() || FunctionHead::of(function) != *head;
            (is_edited || after.is_none()).then(|| {
                let mut before = function.clone();
                before.body.rollback_module_journal();
                head.clone().restore(&mut before);
                EditedFunction { key, before: Some(before), after }
            })
        })
    }
}

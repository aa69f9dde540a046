//! A module: functions in program order over shared tables.

mod affected;
mod edited;

pub use edited::EditedFunction;

use std::sync::Arc;

use rustc_hash::FxHashSet;
use slotmap::{SecondaryMap, SlotMap};

use crate::core::context::{Context, GlobalTarget};
use crate::core::entity::{AttrsId, FunctionAttrId, FunctionKey, GlobalId, NameId, TypeId};
use crate::core::function::{Function, FunctionKind};
use crate::ops::op::OpRegistry;
use crate::report::source::Source;

/// A program.
#[derive(Clone)]
pub struct Module {
    /// The shared tables.
    pub cx: Context,
    functions: SlotMap<FunctionKey, Function>,
    /// Functions that were removed in open edits, and are kept for a rollback.
    removed: FxHashSet<FunctionKey>,
    /// Program order.
    order: Vec<FunctionKey>,
    /// `#![…]`
    attrs: AttrsId,
    source: Option<Arc<Source>>,
    revision: u64,
    /// The open edits, each inside of the one before it.
    edits: Vec<ModuleEdit>,
}

/// Read access to the functions of a module: see [`Module::functions_and_tables`].
#[derive(Copy, Clone)]
pub struct Functions<'a> {
    functions: &'a SlotMap<FunctionKey, Function>,
    removed: &'a FxHashSet<FunctionKey>,
    order: &'a [FunctionKey],
}

impl<'a> Functions<'a> {
    /// Returns the function with a key, unless it was removed.
    pub fn get(self, key: FunctionKey) -> Option<&'a Function> {
        if !self.removed.is_empty() && self.removed.contains(&key) {
            return None;
        }
        self.functions.get(key)
    }

    /// Returns the function with a name (without `@`), defined or declared. `cx` is the tables of
    /// the module, or an overlay over them.
    pub fn find(self, cx: &Context, name: &str) -> Option<&'a Function> {
        self.get(cx.globals.get(cx.find_global(name)?).target.function()?)
    }

    /// Returns keys and functions in program order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = (FunctionKey, &'a Function)> + ExactSizeIterator {
        self.order.iter().map(move |&key| (key, &self.functions[key]))
    }
}

/// The state of a module before an edit.
#[derive(Clone)]
struct ModuleEdit {
    order: Vec<FunctionKey>,
    attrs: AttrsId,
    /// The heads of the functions, which [`Body`](crate::Body)'s own journal does not cover.
    heads: Vec<(FunctionKey, FunctionHead)>,
    /// Functions that were removed in the edit. A rollback restores their keys.
    removed: Vec<FunctionKey>,
    added: Vec<FunctionKey>,
    /// The functions in attributes that were overwritten, in order, as they were before the edit.
    function_attrs: Vec<(FunctionAttrId, Arc<Function>)>,
}

/// The parts of a function other than its body.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(crate) struct FunctionHead {
    global: Option<GlobalId>,
    visibility: crate::core::function::Visibility,
    ret: Option<crate::core::entity::TypeId>,
    attrs: AttrsId,
    meta: AttrsId,
    kind: FunctionKind,
}

impl FunctionHead {
    pub(crate) fn of(f: &Function) -> FunctionHead {
        FunctionHead {
            global: f.global,
            visibility: f.visibility,
            ret: f.ret,
            attrs: f.attrs,
            meta: f.meta,
            kind: f.kind,
        }
    }

    fn restore(self, f: &mut Function) {
        let FunctionHead { global, visibility, ret, attrs, meta, kind } = self;
        (f.global, f.visibility, f.ret, f.attrs, f.meta, f.kind) = (global, visibility, ret, attrs, meta, kind);
    }
}

/// Prints one line with the names of the functions. [`Display`](std::fmt::Display) prints the whole
/// module.
impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.order.iter().map(|&key| self.name(key)).collect();
        f.debug_struct("Module").field("functions", &names).finish_non_exhaustive()
    }
}

impl Module {
    /// Returns an empty module whose programs may use the operators of `registry`.
    pub fn new(registry: Arc<OpRegistry>) -> Module {
        let cx = Context::new(registry);
        let attrs = cx.attrs.empty();
        Module {
            cx,
            functions: SlotMap::with_key(),
            removed: FxHashSet::default(),
            order: Vec::new(),
            attrs,
            source: None,
            revision: 0,
            edits: Vec::new(),
        }
    }

    /// Returns the keys of the functions, definitions and declarations, in program order.
    ///
    /// Cost: one entry.
    pub fn order(&self) -> &[FunctionKey] {
        &self.order
    }

    /// Returns keys and functions in program order.
    ///
    /// Cost: one loop.
    pub fn functions(&self) -> impl DoubleEndedIterator<Item = (FunctionKey, &Function)> + ExactSizeIterator {
        self.order.iter().map(|&k| (k, &self.functions[k]))
    }

    /// Returns the function with a key, unless it was removed.
    ///
    /// Cost: one entry.
    pub fn get(&self, key: FunctionKey) -> Option<&Function> {
        if self.is_removed(key) {
            return None;
        }
        self.functions.get(key)
    }

    /// Returns true if a function was removed in an open edit, whose rollback would restore it.
    fn is_removed(&self, key: FunctionKey) -> bool {
        !self.removed.is_empty() && self.removed.contains(&key)
    }

    /// Returns the function with a key, for editing, together with the tables.
    ///
    /// Cost: one entry.
    pub fn get_mut(&mut self, key: FunctionKey) -> Option<(&mut Function, &mut Context)> {
        if self.is_removed(key) {
            return None;
        }
        Some((self.functions.get_mut(key)?, &mut self.cx))
    }

    /// Returns all functions, for editing, in program order, together with the tables. Linear in
    /// the number of functions.
    ///
    /// Cost: one entry.
    pub fn get_all_mut(&mut self) -> (Vec<(FunctionKey, &mut Function)>, &mut Context) {
        let mut functions: SecondaryMap<FunctionKey, &mut Function> = self.functions.iter_mut().collect();
        let in_order = self.order.iter().filter_map(|&key| Some((key, functions.remove(key)?))).collect();
        (in_order, &mut self.cx)
    }

    /// Returns all functions, for reading, together with the tables, for editing. Takes constant
    /// time.
    pub fn functions_and_tables(&mut self) -> (Functions<'_>, &mut Context) {
        let Module { cx, functions, removed, order, .. } = self;
        (Functions { functions, removed, order }, cx)
    }

    /// Returns two functions at a time, one for reading and one for editing, together with the
    /// tables; `None` if one of them was removed, or if they are the same.
    ///
    /// Cost: one entry.
    pub fn get_pair(
        &mut self,
        read: FunctionKey,
        edit: FunctionKey,
    ) -> Option<(&Function, &mut Function, &mut Context)> {
        if self.is_removed(read) || self.is_removed(edit) {
            return None;
        }
        let [read, edit] = self.functions.get_disjoint_mut([read, edit])?;
        Some((read, edit, &mut self.cx))
    }

    /// Returns the key of the function with a name (without `@`), defined or declared.
    ///
    /// Cost: linear in the text.
    pub fn find(&self, name: &str) -> Option<FunctionKey> {
        self.cx.globals.get(self.cx.find_global(name)?).target.function()
    }

    /// Returns the name of a function, without `@`.
    ///
    /// Cost: one entry.
    pub fn name(&self, key: FunctionKey) -> &str {
        self.get(key).and_then(|f| f.global).map_or("", |g| self.cx.global_name(g))
    }

    /// Returns the attributes of the module: version, phase and so on.
    ///
    /// Cost: one entry.
    pub fn attrs(&self) -> AttrsId {
        self.attrs
    }

    /// Overwrites the attributes of the module.
    ///
    /// Cost: one entry.
    pub fn set_attrs(&mut self, attrs: AttrsId) {
        self.attrs = attrs;
    }

    /// Returns the text that the module was parsed from, if it is kept.
    ///
    /// Cost: one entry.
    pub fn source(&self) -> Option<&Arc<Source>> {
        self.source.as_ref()
    }

    /// Sets or drops the source text that the module was parsed from, which diagnostics use.
    ///
    /// Cost: one entry.
    pub fn set_source(&mut self, source: Option<Arc<Source>>) {
        self.source = source;
    }

    /// Makes room for `functions` more functions.
    ///
    /// Cost: one entry.
    pub fn reserve(&mut self, functions: usize) {
        self.functions.reserve(functions);
        self.order.reserve(functions);
    }

    /// Adds a function at the end of the program, named by `global`.
    ///
    /// # Errors
    /// Returns `function` in the error if the name has a function already.
    pub fn add(&mut self, global: GlobalId, mut function: Function) -> Result<FunctionKey, Box<Function>> {
        if self.cx.globals.get(global).target != GlobalTarget::Missing {
            return Err(Box::new(function));
        }
        function.global = Some(global);
        let kind = function.kind;
        let key = self.functions.insert(function);
        self.order.push(key);
        if let Some(edit) = self.edits.last_mut() {
            edit.added.push(key);
        }
        self.cx.globals.update(global, |g| {
            g.target = match kind {
                FunctionKind::Definition => GlobalTarget::Definition(key),
                FunctionKind::Declaration => GlobalTarget::Declaration(key),
            }
        });
        Ok(key)
    }

    /// Adds a function at the end of the program under a name. Its signature consists of the types
    /// of its parameters and its result type, which is stated or the type of its block.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// Returns `function` in the error if the name has a function already.
    pub fn add_named(&mut self, name: &str, function: Function) -> Result<FunctionKey, Box<Function>> {
        let global = self.cx.global(name);
        let signature = function.signature(&mut self.cx, function.result_type());
        let key = self.add(global, function)?;
        self.set_signature(global, signature);
        Ok(key)
    }

    /// Sets the type of a global.
    ///
    /// Cost: one entry.
    pub fn set_signature(&mut self, global: GlobalId, signature: TypeId) {
        self.cx.globals.update(global, |g| g.signature = Some(signature));
    }

    /// Overwrites a function that is the value of attributes. A rollback restores it.
    pub(crate) fn set_function_attr(&mut self, id: FunctionAttrId, function: Function) {
        let before = self.cx.function_attrs.replace(id, Arc::new(function));
        if let Some(edit) = self.edits.last_mut() {
            edit.function_attrs.push((id, before));
        }
    }

    /// Removes functions. Their names then resolve to nothing. Linear in the number of functions.
    ///
    /// Cost: one loop.
    pub fn remove(&mut self, keys: &[FunctionKey]) {
        let gone: FxHashSet<FunctionKey> = keys.iter().copied().collect();
        self.order.retain(|k| !gone.contains(k));
        for &key in keys {
            let Some(f) = self.get(key) else { continue };
            if let Some(global) = f.global
                && self.cx.globals.get(global).target.function() == Some(key)
            {
                self.cx.globals.update(global, |g| g.target = GlobalTarget::Missing);
            }
            match self.edits.last_mut() {
                Some(edit) => {
                    edit.removed.push(key);
                    self.removed.insert(key);
                }
                None => {
                    self.functions.remove(key);
                }
            }
        }
    }

    /// Renames a global and returns true. Returns false, and does nothing, if another global has
    /// the name.
    ///
    /// Cost: linear in the text.
    pub fn rename(&mut self, global: GlobalId, name: NameId) -> bool {
        if self.cx.globals.find(name).is_some_and(|other| other != global) {
            return false;
        }
        self.cx.globals.update(global, |g| g.name = name);
        true
    }

    /// Overwrites the program order.
    ///
    /// Cost: one loop.
    ///
    /// # Panics
    /// If the number of functions differs from before.
    pub fn set_order(&mut self, order: Vec<FunctionKey>) {
        assert_eq!(order.len(), self.order.len(), "an order has every function once");
        self.order = order;
    }

    /// Returns the number of bytes held by the arenas of the functions and by the tables, constants
    /// included. Further allocations of table entries, such as the lists of fields of tuple types,
    /// are not counted. Linear in the number of functions and of constants.
    ///
    /// Cost: one entry.
    pub fn capacity_bytes(&self) -> usize {
        let bodies: usize = self.functions.iter().map(|(_, f)| f.body.capacity_bytes()).sum();
        bodies + self.cx.capacity_bytes()
    }

    // ---- Edits ----

    /// Returns true if an edit is open.
    ///
    /// Cost: one entry.
    pub fn has_edit(&self) -> bool {
        !self.edits.is_empty()
    }

    /// Returns the number of edits that changed something and were committed, inner ones included.
    ///
    /// Cost: one loop.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the number of open edits, each inside of the one before.
    ///
    /// Cost: one loop.
    pub fn edit_depth(&self) -> usize {
        self.edits.len()
    }

    /// Begins an edit: records all changes of bodies, functions and tables from here on, so that
    /// [`Module::rollback`] can undo them. Inside of an edit it begins an inner one, which is
    /// committed or rolled back before the outer one is. Journals of single bodies that are opened
    /// inside of an edit end with it. Linear in the number of functions.
    pub fn begin_edit(&mut self) {
        let heads = self.functions().map(|(k, f)| (k, FunctionHead::of(f))).collect();
        self.edits.push(ModuleEdit {
            order: self.order.clone(),
            attrs: self.attrs,
            heads,
            removed: Vec::new(),
            added: Vec::new(),
            function_attrs: Vec::new(),
        });
        self.cx.globals.begin();
        for (_, f) in &mut self.functions {
            f.body.begin_module_journal();
        }
    }

    /// Keeps the changes of the innermost edit. Returns true if it changed anything.
    pub fn commit(&mut self) -> bool {
        let changed = self.has_changes();
        let Some(edit) = self.edits.pop() else { return false };
        self.cx.globals.commit();
        self.functions.iter_mut().for_each(|(_, f)| f.body.commit_module_journal());
        match self.edits.last_mut() {
            Some(outer) => {
                outer.removed.extend(edit.removed);
                outer.added.extend(edit.added);
                outer.function_attrs.extend(edit.function_attrs);
            }
            None => {
                for key in edit.removed {
                    self.functions.remove(key);
                }
                self.removed.clear();
            }
        }
        self.revision += u64::from(changed);
        changed
    }

    /// Returns true if anything was changed since [`Module::begin_edit`], in which case
    /// [`Module::commit`] would return true. False without an edit.
    pub fn has_changes(&self) -> bool {
        let Some(edit) = self.edits.last() else { return false };
        self.cx.globals.has_changes()
            || edit.order != self.order
            || edit.attrs != self.attrs
            || !edit.removed.is_empty()
            || !edit.added.is_empty()
            || !edit.function_attrs.is_empty()
            || edit
                .heads
                .iter()
                .any(|(key, head)| self.functions.get(*key).is_none_or(|f| FunctionHead::of(f) != *head))
            || self.functions.iter().any(|(_, f)| f.body.is_edited_in_module())
    }

    /// Returns true if anything was changed in the body of a function since [`Module::begin_edit`];
    /// false without an edit.
    pub fn is_edited(&self, key: FunctionKey) -> bool {
        self.has_edit() && self.get(key).is_some_and(|f| f.body.is_edited_in_module())
    }

    /// Rolls back the innermost edit: text, names, metadata and order of functions are as they were
    /// at [`Module::begin_edit`]. Names, types and constants that were interned since stay in the
    /// tables, where nothing refers to them. Does nothing without an edit.
    pub fn rollback(&mut self) {
        let Some(edit) = self.edits.pop() else { return };
        for key in &edit.removed {
            self.removed.remove(key);
        }
        for key in edit.added {
            self.functions.remove(key);
        }
        for (key, head) in edit.heads {
            if let Some(f) = self.functions.get_mut(key) {
                head.restore(f);
            }
        }
        for (_, f) in &mut self.functions {
            f.body.rollback_module_journal();
        }
        for (id, before) in edit.function_attrs.into_iter().rev() {
            self.cx.function_attrs.replace(id, before);
        }
        self.cx.globals.rollback();
        self.order = edit.order;
        self.attrs = edit.attrs;
    }
}

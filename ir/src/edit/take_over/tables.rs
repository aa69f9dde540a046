//! A map from the ids of one module to those of another.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::{TakeOverError, compacted};
use crate::compact::live;
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrsId, EntityId, ExprId, FunctionAttrId, GlobalId, SymbolId, TypeId};
use crate::core::function::Function;
use crate::core::module::FunctionHead;
use crate::core::translate::{EntryIds, IdMap, IdMaps, SameTables};
use crate::edit::transplant::rebuild_function;
use crate::tables::dim::Dim;
use crate::tables::entry::Entry;
use crate::walk::parts_first::PartsFirst;
use crate::walk::symbols::SymbolWalk;

/// A map from ids of one kind in other tables to those in these tables.
pub(crate) struct Taken<K> {
    /// The translations of ids below some bound, by id.
    dense: Vec<Option<K>>,
    sparse: FxHashMap<K, K>,
}

impl<K: EntityId> IdMap<K> for Taken<K> {
    /// Returns an empty map, which is dense for the first `len` ids.
    fn with_len(len: usize) -> Taken<K> {
        Taken { dense: vec![None; len], sparse: FxHashMap::default() }
    }

    #[inline(always)]
    fn translated(&self, id: K) -> K {
        self.get(id).expect("parts are made before what consists of them")
    }
}

impl<K: EntityId> Taken<K> {
    #[inline(always)]
    pub(crate) fn get(&self, id: K) -> Option<K> {
        match self.dense.get(id.index()) {
            Some(&known) => known,
            None => self.sparse.get(&id).copied(),
        }
    }

    fn has(&self, id: K) -> bool {
        self.get(id).is_some()
    }

    pub(crate) fn set(&mut self, id: K, new: K) {
        match self.dense.get_mut(id.index()) {
            Some(slot) => *slot = Some(new),
            None => _ = self.sparse.insert(id, new),
        }
    }
}

/// The family of id maps for entries that are taken over one by one.
pub(crate) struct TakenOver;

impl IdMaps for TakenOver {
    type Map<K: EntityId> = Taken<K>;
}

/// The ids of other tables that were translated so far, with their ids in these tables.
pub(crate) struct TableMap<'a> {
    from: &'a Context,
    pub(crate) keeps_spans: bool,
    pub(crate) ids: EntryIds<TakenOver>,
    /// Functions of this module that are values of attributes, by their fingerprints.
    known: FxHashMap<u64, Vec<FunctionAttrId>>,
    /// The types of globals in the other tables, by the ids of the globals in these tables.
    pub(super) signatures: Vec<(GlobalId, TypeId)>,
    /// Entries to be taken over, the next one last. Empty between calls.
    work: PartsFirst<Entry>,
}

impl<'a> TableMap<'a> {
    /// Returns an empty map for a few entries of other tables.
    pub(crate) fn new(from: &'a Context) -> TableMap<'a> {
        TableMap::with_room(from, |_| 0)
    }

    /// Returns an empty map for most entries of other tables. Takes memory in proportion to these.
    pub(crate) fn of_all(from: &'a Context) -> TableMap<'a> {
        TableMap::with_room(from, |count| count)
    }

    fn with_room(from: &'a Context, room: impl Fn(usize) -> usize) -> TableMap<'a> {
        TableMap {
            from,
            keeps_spans: true,
            ids: EntryIds {
                names: IdMap::with_len(room(from.names.len())),
                symbols: IdMap::with_len(room(from.types.dims.symbol_count())),
                dims: IdMap::with_len(room(from.types.dims.len())),
                types: IdMap::with_len(room(from.types.len())),
                literals: IdMap::with_len(room(from.literals.len())),
                ops: IdMap::with_len(room(from.ops.len())),
                globals: IdMap::with_len(room(from.globals.len())),
                values: IdMap::with_len(room(from.attrs.len())),
                lists: IdMap::with_len(room(from.attrs.list_count())),
                functions: IdMap::with_len(room(from.function_attrs.len())),
            },
            known: FxHashMap::default(),
            signatures: Vec::new(),
            work: PartsFirst::default(),
        }
    }

    /// Maps symbols of a function to symbols of the same names of the function that it replaces, so
    /// that equal types get equal ids.
    pub(crate) fn share_symbols(&mut self, cx: &Context, present: &Function, new: &Function) {
        let mut free: FxHashMap<&str, VecDeque<SymbolId>> = FxHashMap::default();
        for symbol in symbols_of(cx, &present.body) {
            free.entry(cx.names.get(cx.types.dims.symbol_name(symbol))).or_default().push_back(symbol);
        }
        if free.is_empty() {
            return;
        }
        let tables = self.from;
        for symbol in symbols_of(tables, &new.body) {
            let name = tables.names.get(tables.types.dims.symbol_name(symbol));
            if let (false, Some(own)) = (self.ids.symbols.has(symbol), free.get_mut(name).and_then(VecDeque::pop_front))
            {
                self.ids.symbols.set(symbol, own);
            }
        }
    }

    /// Returns a copy of a function with the ids of this module.
    pub(crate) fn function(&mut self, cx: &mut Context, source: &Function) -> Result<Function, TakeOverError> {
        self.parts_of(cx, source)?;
        Ok(self.translated(source))
    }

    /// Returns a copy of a function whose parts were taken over.
    fn translated(&mut self, source: &Function) -> Function {
        let (mut function, _) = rebuild_function(source, &mut &self.ids);
        if !self.keeps_spans {
            function.span = None;
            function.body.drop_spans();
        }
        function
    }

    /// Takes over all entries that a function names.
    pub(crate) fn parts_of(&mut self, cx: &mut Context, function: &Function) -> Result<(), TakeOverError> {
        if let Some(global) = function.global() {
            self.take_global(cx, global);
        }
        let live = live(&function.body);
        let mut done = Ok(());
        let mut take = |entry| {
            if done.is_ok() {
                done = self.take(cx, entry);
            }
        };
        for_each_whole(function, &live, &mut take);
        for_each_leaf(function, &live, &mut take);
        done
    }

    pub(crate) fn take_type(&mut self, cx: &mut Context, ty: TypeId) -> Result<TypeId, TakeOverError> {
        self.take(cx, Entry::Type(ty))?;
        Ok(self.ids.types.translated(ty))
    }

    pub(crate) fn take_list(&mut self, cx: &mut Context, list: AttrsId) -> Result<AttrsId, TakeOverError> {
        self.take(cx, Entry::Attrs(list))?;
        Ok(self.ids.lists.translated(list))
    }

    /// Takes over a global, without its type.
    pub(crate) fn take_global(&mut self, cx: &mut Context, global: GlobalId) {
        if !self.ids.globals.has(global) {
            self.ids.globals.set(global, cx.global(self.from.global_name(global)));
        }
    }

    fn has(&self, entry: Entry) -> bool {
        match entry {
            Entry::Name(id) => self.ids.names.has(id),
            Entry::Symbol(id) => self.ids.symbols.has(id),
            Entry::Dim(id) => self.ids.dims.has(id),
            Entry::Type(id) => self.ids.types.has(id),
            Entry::Literal(id) => self.ids.literals.has(id),
            Entry::Op(id) => self.ids.ops.has(id),
            Entry::Global(id) => self.ids.globals.has(id),
            Entry::Attr(id) => self.ids.values.has(id),
            Entry::Attrs(id) => self.ids.lists.has(id),
            Entry::Function(id) => self.ids.functions.has(id),
        }
    }

    /// Takes over an entry, after the entries that it names.
    pub(crate) fn take(&mut self, cx: &mut Context, entry: Entry) -> Result<(), TakeOverError> {
        if self.has(entry) {
            return Ok(());
        }
        let mut work = std::mem::take(&mut self.work);
        work.add(entry);
        while let Some(next) = work.next(|entry| self.has(entry), |entry, stack| self.push_parts(entry, stack)) {
            self.make(cx, next)?;
        }
        self.work = work;
        Ok(())
    }

    /// Pushes the entries that an entry names.
    fn push_parts(&self, entry: Entry, stack: &mut Vec<Entry>) {
        entry.for_each_part(self.from, |part| stack.push(part));
        if let Entry::Function(id) = entry {
            let function = &self.from.function_attrs[id];
            let live = live(&function.body);
            let start = stack.len();
            for_each_leaf(function, &live, |leaf| stack.push(leaf));
            stack[start..].reverse();
            for_each_whole(function, &live, |whole| stack.push(whole));
        }
    }

    /// Makes an entry whose parts were taken over.
    fn make(&mut self, cx: &mut Context, entry: Entry) -> Result<(), TakeOverError> {
        let from = self.from;
        match entry {
            Entry::Name(id) => self.ids.names.set(id, cx.names.intern(from.names.get(id))),
            Entry::Symbol(id) => {
                let name = self.ids.names.translated(from.types.dims.symbol_name(id));
                self.ids.symbols.set(id, cx.types.dims.new_symbol(name));
            }
            Entry::Dim(id) => {
                let dims = &mut cx.types.dims;
                let dim = match from.types.dims.get(id) {
                    Dim::Symbol(symbol) => dims.symbol(self.ids.symbols.translated(*symbol)),
                    dim => dims.rebuild(dim, |part| self.ids.dims.translated(part)),
                };
                self.ids.dims.set(id, dim);
            }
            Entry::Type(id) => {
                let ty = self.ids.translate_type(from.types.get(id));
                self.ids.types.set(id, cx.types.intern(ty));
            }
            Entry::Literal(id) => self.ids.literals.set(id, cx.literals.literals.intern_ref(from.literals.get(id))),
            Entry::Op(id) => {
                let row = from.ops.get(id);
                let is_opaque = from.ops.is_opaque(id);
                let op = if is_opaque { cx.ops.opaque(&row.name, row.purity) } else { cx.ops.resolve(&row.name) };
                self.ids.ops.set(id, op?);
            }
            Entry::Global(id) => {
                self.take_global(cx, id);
                if let Some(signature) = from.globals.get(id).signature {
                    self.signatures.push((self.ids.globals.translated(id), self.ids.types.translated(signature)));
                }
            }
            Entry::Attr(id) => {
                let attr = self.ids.translate_attr(from.attrs.get(id));
                self.ids.values.set(id, cx.attr(attr));
            }
            Entry::Attrs(id) => {
                let list = self.ids.translate_list(from.attrs.list(id));
                self.ids.lists.set(id, cx.attrs(&list));
            }
            Entry::Function(id) => {
                let function = self.translated(&from.function_attrs[id]);
                let same = self.same_function(cx, &function);
                let new = same.unwrap_or_else(|| cx.function_attrs.push(Arc::new(function)));
                self.ids.functions.set(id, new);
            }
        }
        Ok(())
    }

    /// Records the functions of this module that are values of attributes, so that equal functions
    /// are mapped to them.
    pub(crate) fn know_functions(&mut self, cx: &Context) {
        for (id, function) in cx.function_attrs.iter() {
            let function = rebuild_function(function, &mut SameTables).0;
            self.known.entry(fingerprint(&function)).or_default().push(id);
        }
    }

    fn same_function(&self, cx: &Context, function: &Function) -> Option<FunctionAttrId> {
        if self.known.is_empty() {
            return None;
        }
        let candidates = self.known.get(&fingerprint(function))?;
        let is_same = |other: &Function| {
            FunctionHead::of(other) == FunctionHead::of(function) && compacted(&other.body).has_nodes_of(&function.body)
        };
        candidates.iter().copied().find(|&id| is_same(&cx.function_attrs[id]))
    }
}

/// Calls `each` with the types and attributes that a function names, in program order.
fn for_each_whole(function: &Function, live: &[ExprId], mut each: impl FnMut(Entry)) {
    let Function { attrs, meta, ret, body, .. } = function;
    [*attrs, *meta].into_iter().for_each(|list| each(Entry::Attrs(list)));
    ret.iter().for_each(|&ty| each(Entry::Type(ty)));
    for &id in live {
        each(Entry::Type(body.ty(id)));
        body.meta(id).into_iter().for_each(|list| each(Entry::Attrs(list)));
        body.for_each_entry(id, |entry| {
            if let Entry::Type(_) | Entry::Attrs(_) = entry {
                each(entry);
            }
        });
    }
}

/// Calls `each` with the names, constants, operators and globals that a function names, and the
/// symbols of its `fn`s.
fn for_each_leaf(function: &Function, live: &[ExprId], mut each: impl FnMut(Entry)) {
    function.global().into_iter().for_each(|global| each(Entry::Global(global)));
    for &id in live {
        function.body.for_each_entry(id, |entry| {
            if !matches!(entry, Entry::Type(_) | Entry::Attrs(_)) {
                each(entry);
            }
        });
    }
}

/// Returns the symbols that the types in a body name, in the order of their nodes.
fn symbols_of(cx: &Context, body: &Body) -> Vec<SymbolId> {
    let mut symbols = Vec::new();
    let mut walk = SymbolWalk::new();
    let mut found: FxHashSet<SymbolId> = FxHashSet::default();
    for (id, _) in body.exprs() {
        walk.in_type(cx, body.ty(id), |symbol| symbols.extend(found.insert(symbol).then_some(symbol)));
    }
    symbols
}

/// Returns a hash that is equal for functions with the same head and the same nodes under the same
/// ids.
fn fingerprint(function: &Function) -> u64 {
    let mut hasher = FxHasher::default();
    FunctionHead::of(function).hash(&mut hasher);
    function.body.hash_nodes(&mut hasher);
    hasher.finish()
}

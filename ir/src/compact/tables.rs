//! The tables of a module without what nothing uses.
//!
//! A work list marks what is used, from the functions on. Then the tables are filled anew in the
//! order of the old ids, parts before the wholes that they are in. Symbols so keep their order, on
//! which the form of sums depends.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Remap, rebuild, trace};
use crate::core::context::Context;
use crate::core::entity::{
    AttrId, AttrsId, DimId, EntityId, FunctionAttrId, GlobalId, IdSet, LiteralId, NameId, OpId, SymbolId, TypeId,
};
use crate::core::function::Function;
use crate::core::module::{FunctionKey, Module};
use crate::core::translate::{
    Translate, entries_of_head, entries_of_node, translate_attr, translate_head, translate_type,
};
use crate::tables::dim::Dim;
use crate::tables::entry::Entry;

pub(super) fn compact_module(module: &mut Module) -> Vec<(FunctionKey, Remap)> {
    let (mut cx, kept) = refill(&module.cx, &Marks::of(module));
    for (id, function) in module.cx.function_attrs.iter() {
        if kept.functions[id.index()].is_some() {
            let mut function = Function::clone(function);
            translate(&mut function, &kept);
            let new = cx.function_attrs.push(Arc::new(function));
            assert_eq!(new, kept.function(id), "a function got another id than was foretold");
        }
    }
    let keys: Vec<FunctionKey> = module.order().to_vec();
    let mut remaps = Vec::with_capacity(keys.len());
    for key in keys {
        let (function, _) = module.get_mut(key).expect("the order names functions that are there");
        remaps.push((key, translate(function, &kept)));
    }
    module.set_attrs(kept.attrs(module.attrs()));
    module.cx = cx;
    remaps
}

fn translate(function: &mut Function, kept: &Kept) -> Remap {
    let (body, remap) = rebuild(&function.body, kept);
    function.body = body;
    translate_head(function, kept);
    remap
}

/// The entries of the tables that are used.
#[derive(Default)]
struct Marks {
    names: IdSet<NameId>,
    symbols: IdSet<SymbolId>,
    dims: IdSet<DimId>,
    types: IdSet<TypeId>,
    literals: IdSet<LiteralId>,
    ops: FxHashSet<OpId>,
    globals: IdSet<GlobalId>,
    attrs: IdSet<AttrId>,
    lists: IdSet<AttrsId>,
    functions: IdSet<FunctionAttrId>,
    /// Entries that were marked, and whose parts were not yet.
    work: Vec<Entry>,
}

impl Marks {
    fn of(module: &Module) -> Marks {
        let cx = &module.cx;
        let mut marks = Marks::default();
        marks.add(Entry::Attrs(module.attrs()));
        module.functions().for_each(|(_, function)| marks.add_function(function));
        while let Some(entry) = marks.work.pop() {
            match entry {
                Entry::Function(function) => marks.add_function(&cx.function_attrs[function]),
                entry => entry.for_each_part(cx, |part| marks.add(part)),
            }
        }
        marks
    }

    fn add(&mut self, entry: Entry) {
        let is_new = match entry {
            Entry::Name(id) => self.names.insert(id),
            Entry::Symbol(id) => self.symbols.insert(id),
            Entry::Dim(id) => self.dims.insert(id),
            Entry::Type(id) => self.types.insert(id),
            Entry::Literal(id) => self.literals.insert(id),
            Entry::Op(id) => self.ops.insert(id),
            Entry::Global(id) => self.globals.insert(id),
            Entry::Attr(id) => self.attrs.insert(id),
            Entry::Attrs(id) => self.lists.insert(id),
            Entry::Function(id) => self.functions.insert(id),
        };
        if is_new {
            self.work.push(entry);
        }
    }

    fn add_function(&mut self, function: &Function) {
        entries_of_head(function, |entry| self.add(entry));
        for id in trace(&function.body).order {
            entries_of_node(&function.body, id, |entry| self.add(entry));
        }
    }
}

/// The new ids of the entries that are used, by their old ones.
#[derive(Default)]
struct Kept {
    names: Vec<Option<NameId>>,
    symbols: Vec<Option<SymbolId>>,
    dims: Vec<Option<DimId>>,
    types: Vec<Option<TypeId>>,
    literals: Vec<Option<LiteralId>>,
    ops: Vec<Option<OpId>>,
    globals: Vec<Option<GlobalId>>,
    attrs: Vec<Option<AttrId>>,
    lists: Vec<Option<AttrsId>>,
    functions: Vec<Option<FunctionAttrId>>,
}

const USED: &str = "what is used was marked";

impl Translate for Kept {
    fn name(&self, id: NameId) -> NameId {
        self.names[id.index()].expect(USED)
    }
    fn symbol(&self, id: SymbolId) -> SymbolId {
        self.symbols[id.index()].expect(USED)
    }
    fn dim(&self, id: DimId) -> DimId {
        self.dims[id.index()].expect(USED)
    }
    fn ty(&self, id: TypeId) -> TypeId {
        self.types[id.index()].expect(USED)
    }
    fn literal(&self, id: LiteralId) -> LiteralId {
        self.literals[id.index()].expect(USED)
    }
    fn op(&self, id: OpId) -> OpId {
        self.ops[id.index()].expect(USED)
    }
    fn global(&self, id: GlobalId) -> GlobalId {
        self.globals[id.index()].expect(USED)
    }
    fn attr(&self, id: AttrId) -> AttrId {
        self.attrs[id.index()].expect(USED)
    }
    fn attrs(&self, id: AttrsId) -> AttrsId {
        self.lists[id.index()].expect(USED)
    }
    fn function(&self, id: FunctionAttrId) -> FunctionAttrId {
        self.functions[id.index()].expect(USED)
    }
}

/// Returns tables with what is marked, in the order of the old ones, and the ids that it has there.
/// The functions in attributes only have their ids yet.
fn refill(old: &Context, marks: &Marks) -> (Context, Kept) {
    let mut cx = Context::new(old.ops.registry().clone());
    let mut kept = Kept::default();
    let k = &mut kept;
    fill(k, |k| &mut k.names, old.names.len(), &marks.names, |_, id| cx.names.intern(old.names.get(id)));
    let (dims, new_dims) = (&old.types.dims, &mut cx.types.dims);
    fill(
        k,
        |k| &mut k.symbols,
        dims.symbol_count(),
        &marks.symbols,
        |k, id| new_dims.new_symbol(k.name(dims.symbol_name(id))),
    );
    fill(
        k,
        |k| &mut k.dims,
        dims.len(),
        &marks.dims,
        |k, id| match dims.get(id) {
            Dim::Symbol(symbol) => new_dims.symbol(k.symbol(*symbol)),
            dim => new_dims.rebuild(dim, |part| k.dim(part)),
        },
    );
    fill(
        k,
        |k| &mut k.types,
        old.types.len(),
        &marks.types,
        |k, id| cx.types.intern(translate_type(old.types.get(id), k)),
    );
    fill(
        k,
        |k| &mut k.literals,
        old.literals.len(),
        &marks.literals,
        |_, id| cx.literals.intern_ref(old.literals.get(id)),
    );
    let rows = old.ops.registry().rows().map(|(op, _)| Some(op));
    let opaque = (rows.len()..old.ops.len()).map(|i| {
        let id = OpId::new(i).filter(|id| marks.ops.contains(id))?;
        let row = old.ops.get(id);
        Some(cx.ops.opaque(&row.name, row.purity).expect("there are no more operators than before"))
    });
    k.ops = rows.chain(opaque).collect();
    fill(
        k,
        |k| &mut k.globals,
        old.globals.len(),
        &marks.globals,
        |k, id| {
            let global = old.globals.get(id);
            let new = cx.globals.intern(k.name(global.name));
            cx.globals.update(new, |g| {
                g.signature = global.signature.map(|ty| k.ty(ty));
                g.target = global.target;
            });
            new
        },
    );
    let mut ids = (0..).map(FunctionAttrId::from_index);
    fill(
        k,
        |k| &mut k.functions,
        old.function_attrs.len(),
        &marks.functions,
        |_, _| ids.next().expect("there are no more functions than before"),
    );
    fill(k, |k| &mut k.attrs, old.attrs.len(), &marks.attrs, |k, id| cx.attr(translate_attr(old.attrs.get(id), k)));
    fill(
        k,
        |k| &mut k.lists,
        old.attrs.list_count(),
        &marks.lists,
        |k, id| {
            let list: Vec<_> = old.attrs.list(id).iter().map(|&(name, value)| (k.name(name), k.attr(value))).collect();
            cx.attrs(&list)
        },
    );
    (cx, kept)
}

/// Makes the entries of a table that are marked anew, in the order of their old ids, with what was
/// kept before them.
fn fill<K: EntityId>(
    kept: &mut Kept,
    table: fn(&mut Kept) -> &mut Vec<Option<K>>,
    len: usize,
    marks: &IdSet<K>,
    mut make: impl FnMut(&Kept, K) -> K,
) {
    table(kept).reserve_exact(len);
    for id in (0..len).map(K::from_index) {
        let new = marks.contains(id).then(|| make(kept, id));
        table(kept).push(new);
    }
}

//! The tables of a module without what nothing uses.
//!
//! A work list notes what is used, from the functions on. Then the tables are filled anew in the
//! order of the old ids, parts before the wholes that they are in. Symbols so keep their order, on
//! which the form of sums depends.

use std::sync::Arc;

use super::{Remap, rebuild, trace};
use crate::core::context::Context;
use crate::core::entity::{
    AttrId, AttrsId, DimId, EntityId, FunctionAttrId, GlobalId, LiteralId, NameId, OpId, SymbolId, TypeId,
};
use crate::core::function::Function;
use crate::core::module::{FunctionKey, Module};
use crate::core::translate::{
    Translate, entries_of_head, entries_of_node, translate_attr, translate_head, translate_type,
};
use crate::tables::dim::Dim;
use crate::tables::entry::Entry;

pub(super) fn compact_module(module: &mut Module) -> Vec<(FunctionKey, Remap)> {
    let mut kept = Kept::of(module);
    let mut cx = refill(&module.cx, &mut kept);
    for ((_, function), new) in module.cx.function_attrs.iter().zip(&kept.functions) {
        let Some(new) = new else { continue };
        let mut function = Function::clone(function);
        translate(&mut function, &kept);
        let id = cx.function_attrs.push(Arc::new(function));
        assert_eq!(id, *new, "a function got another id than was foretold");
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

/// The entries of the tables that are used, by their old ids. Each is noted with its old id until
/// its table was filled anew, and with its new one from then on.
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
    /// Entries that were noted, and whose parts were not yet.
    work: Vec<Entry>,
}

impl Kept {
    /// Returns what a module uses, all under its old ids.
    fn of(module: &Module) -> Kept {
        let cx = &module.cx;
        let mut kept = Kept {
            names: vec![None; cx.names.len()],
            symbols: vec![None; cx.types.dims.symbol_count()],
            dims: vec![None; cx.types.dims.len()],
            types: vec![None; cx.types.len()],
            literals: vec![None; cx.literals.len()],
            ops: vec![None; cx.ops.len()],
            globals: vec![None; cx.globals.len()],
            attrs: vec![None; cx.attrs.len()],
            lists: vec![None; cx.attrs.list_count()],
            functions: vec![None; cx.function_attrs.len()],
            work: Vec::new(),
        };
        kept.add(Entry::Attrs(module.attrs()));
        module.functions().for_each(|(_, function)| kept.add_function(function));
        while let Some(entry) = kept.work.pop() {
            match entry {
                Entry::Function(function) => kept.add_function(&cx.function_attrs[function]),
                entry => entry.for_each_part(cx, |part| kept.add(part)),
            }
        }
        kept
    }

    fn add(&mut self, entry: Entry) {
        let is_new = match entry {
            Entry::Name(id) => note(&mut self.names, id.index(), id),
            Entry::Symbol(id) => note(&mut self.symbols, id.index(), id),
            Entry::Dim(id) => note(&mut self.dims, id.index(), id),
            Entry::Type(id) => note(&mut self.types, id.index(), id),
            Entry::Literal(id) => note(&mut self.literals, id.index(), id),
            Entry::Op(id) => note(&mut self.ops, id.index(), id),
            Entry::Global(id) => note(&mut self.globals, id.index(), id),
            Entry::Attr(id) => note(&mut self.attrs, id.index(), id),
            Entry::Attrs(id) => note(&mut self.lists, id.index(), id),
            Entry::Function(id) => note(&mut self.functions, id.index(), id),
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

/// Notes an id at an index. Returns true if it was not noted before.
fn note<K>(ids: &mut [Option<K>], index: usize, id: K) -> bool {
    ids[index].replace(id).is_none()
}

const USED: &str = "what is used was noted";

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

/// Returns tables with what is kept, in the order of the old ones, and gives it its new ids. The
/// functions in attributes only have their ids yet.
fn refill(old: &Context, kept: &mut Kept) -> Context {
    let mut cx = Context::new(old.ops.registry().clone());
    // Names, symbols, dimensions and types: each is made of those before it, and of smaller ids.
    fill(kept, |k| &mut k.names, |_, id| cx.names.intern(old.names.get(id)));
    let (dims, new_dims) = (&old.types.dims, &mut cx.types.dims);
    fill(kept, |k| &mut k.symbols, |k, id| new_dims.new_symbol(k.name(dims.symbol_name(id))));
    fill(
        kept,
        |k| &mut k.dims,
        |k, id| match dims.get(id) {
            Dim::Symbol(symbol) => new_dims.symbol(k.symbol(*symbol)),
            dim => new_dims.rebuild(dim, |part| k.dim(part)),
        },
    );
    fill(kept, |k| &mut k.types, |k, id| cx.types.intern(translate_type(old.types.get(id), k)));
    // What globals and attributes name besides.
    fill(kept, |k| &mut k.literals, |_, id| cx.literals.intern_ref(old.literals.get(id)));
    fill(
        kept,
        |k| &mut k.ops,
        |_, id| {
            // Those of the registry keep their ids.
            if !old.ops.is_opaque(id) {
                return id;
            }
            let row = old.ops.get(id);
            cx.ops.opaque(&row.name, row.purity).expect("there are no more operators than before")
        },
    );
    fill(
        kept,
        |k| &mut k.globals,
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
    fill(kept, |k| &mut k.functions, |_, _| ids.next().expect("there are no more functions than before"));
    // Attributes, and the lists of them.
    fill(kept, |k| &mut k.attrs, |k, id| cx.attr(translate_attr(old.attrs.get(id), k)));
    fill(
        kept,
        |k| &mut k.lists,
        |k, id| {
            let list: Vec<_> = old.attrs.list(id).iter().map(|&(name, value)| (k.name(name), k.attr(value))).collect();
            cx.attrs(&list)
        },
    );
    cx
}

/// Makes the entries of a table anew, in the order of their old ids, from what was made before them.
fn fill<K: Copy>(kept: &mut Kept, table: fn(&mut Kept) -> &mut Vec<Option<K>>, mut make: impl FnMut(&Kept, K) -> K) {
    for i in 0..table(kept).len() {
        let Some(old) = table(kept)[i] else { continue };
        let new = make(kept, old);
        table(kept)[i] = Some(new);
    }
}

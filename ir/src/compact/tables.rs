//! The tables of a module without what nothing uses.
//!
//! What is used is marked from the functions on: attributes through a work list (they may hold functions), types and dimensions by one sweep down their ids, since
//! parts have smaller ids than wholes. Then the tables are filled anew in the order of the old ids. Symbols so keep their order, on which the form of sums depends.

use std::sync::Arc;

use super::{Remap, rebuild, trace};
use crate::core::body::Body;
use crate::core::context::{Context, Global};
use crate::core::entity::{
    AttrId, AttrsId, DimId, EntityId, ExprId, FunctionAttrId, GlobalId, IdSet, LiteralId, NameId, OpId, SymbolId,
    TypeId,
};
use crate::core::expr::Expr;
use crate::core::function::Function;
use crate::core::module::{FunctionKey, Module};
use crate::core::translate::{Translate, translate_head};
use crate::tables::attrs::Attr;
use crate::tables::dim::Dim;
use crate::tables::types::{TensorType, Type};

pub(super) fn compact_module(module: &mut Module) -> Vec<(FunctionKey, Remap)> {
    let marks = mark(module);
    let (mut cx, tables) = refill(&module.cx, &marks);
    for (id, function) in module.cx.function_attrs.iter() {
        if tables.function_attrs[id.index()].is_some() {
            let mut function = Function::clone(function);
            translate(&mut function, &tables);
            let new = cx.function_attrs.push(Arc::new(function));
            assert_eq!(Some(new), tables.function_attrs[id.index()], "a function got another id than was foretold");
        }
    }
    let keys: Vec<FunctionKey> = module.order().to_vec();
    let mut remaps = Vec::with_capacity(keys.len());
    for key in keys {
        let (function, _) = module.get_mut(key).expect("the order names functions that are there");
        remaps.push((key, translate(function, &tables)));
    }
    module.set_attrs(tables.attrs(module.attrs()));
    module.cx = cx;
    remaps
}

fn translate(function: &mut Function, tables: &Tables) -> Remap {
    let (body, remap) = rebuild(&function.body, tables);
    function.body = body;
    translate_head(function, tables);
    remap
}

/// What is used.
struct Marks {
    names: IdSet<NameId>,
    types: IdSet<TypeId>,
    dims: IdSet<DimId>,
    symbols: IdSet<SymbolId>,
    attrs: IdSet<AttrId>,
    lists: IdSet<AttrsId>,
    literals: IdSet<LiteralId>,
    globals: IdSet<GlobalId>,
    ops: Vec<bool>,
    function_attrs: IdSet<FunctionAttrId>,
    attr_work: Vec<AttrId>,
    function_work: Vec<FunctionAttrId>,
}

fn mark(module: &Module) -> Marks {
    let cx = &module.cx;
    let mut marks = Marks {
        names: IdSet::with_capacity(cx.names.len()),
        types: IdSet::with_capacity(cx.types.len()),
        dims: IdSet::with_capacity(cx.types.dims.len()),
        symbols: IdSet::with_capacity(0),
        attrs: IdSet::with_capacity(cx.attrs.len()),
        lists: IdSet::with_capacity(0),
        literals: IdSet::with_capacity(cx.literals.len()),
        globals: IdSet::with_capacity(cx.globals.len()),
        ops: vec![false; cx.ops.len()],
        function_attrs: IdSet::with_capacity(cx.function_attrs.len()),
        attr_work: Vec::new(),
        function_work: Vec::new(),
    };
    marks.list(cx, module.attrs());
    for (_, f) in module.functions() {
        marks.function(cx, f);
    }
    loop {
        if let Some(attr) = marks.attr_work.pop() {
            marks.attr(cx, attr);
        } else if let Some(function) = marks.function_work.pop() {
            marks.function(cx, &cx.function_attrs[function]);
        } else {
            break;
        }
    }
    for (id, global) in cx.globals.iter() {
        if marks.globals.contains(id) {
            marks.names.insert(global.name);
            if let Some(signature) = global.signature {
                marks.types.insert(signature);
            }
        }
    }
    for (id, ty) in cx.types.iter().rev() {
        if !marks.types.contains(id) {
            continue;
        }
        match ty {
            Type::Tensor(t) => {
                for &d in t.dims() {
                    marks.dims.insert(d);
                }
            }
            Type::Tuple(fields) => {
                for &f in fields {
                    marks.types.insert(f);
                }
            }
            Type::Function(f) => {
                for &p in f.params.iter().chain([&f.ret]) {
                    marks.types.insert(p);
                }
            }
            Type::Any | Type::Error => {}
        }
    }
    for i in (0..cx.types.dims.len()).rev() {
        let id = DimId::from_index(i);
        if !marks.dims.contains(id) {
            continue;
        }
        match cx.types.dims.get(id) {
            Dim::Symbol(s) => {
                marks.symbols.insert(*s);
            }
            Dim::Sum(terms) => {
                for &f in terms.iter().flat_map(|t| &t.factors) {
                    marks.dims.insert(f);
                }
            }
            Dim::Op { lhs, rhs, .. } => {
                marks.dims.insert(*lhs);
                marks.dims.insert(*rhs);
            }
            Dim::Unknown | Dim::Const(_) | Dim::Bound { .. } => {}
        }
    }
    for i in 0..cx.types.dims.symbol_count() {
        let s = SymbolId::from_index(i);
        if marks.symbols.contains(s) {
            marks.names.insert(cx.types.dims.symbol_name(s));
        }
    }
    marks
}

impl Marks {
    fn list(&mut self, cx: &Context, id: AttrsId) {
        if self.lists.insert(id) {
            for &(key, value) in cx.attrs.list(id) {
                self.names.insert(key);
                self.attr_work.push(value);
            }
        }
    }

    fn attr(&mut self, cx: &Context, id: AttrId) {
        if !self.attrs.insert(id) {
            return;
        }
        match cx.attrs.get(id) {
            Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::DType(_) => {}
            Attr::Str(s) => {
                self.names.insert(*s);
            }
            Attr::List(items) => self.attr_work.extend(items.iter()),
            Attr::Shape(shape) => {
                for &d in shape {
                    self.dims.insert(d);
                }
            }
            Attr::Literal(l) => {
                self.literals.insert(*l);
            }
            Attr::Type(t) => {
                self.types.insert(*t);
            }
            Attr::Function(f) => {
                if self.function_attrs.insert(*f) {
                    self.function_work.push(*f);
                }
            }
            Attr::Global(g) => {
                self.globals.insert(*g);
            }
            Attr::Op(op) => self.op(*op),
        }
    }

    fn op(&mut self, op: OpId) {
        self.ops[op.index()] = true;
    }

    fn function(&mut self, cx: &Context, f: &Function) {
        if let Some(global) = f.global {
            self.globals.insert(global);
        }
        if let Some(ret) = f.ret {
            self.types.insert(ret);
        }
        self.list(cx, f.attrs);
        self.list(cx, f.meta);
        self.body(cx, &f.body);
    }

    fn body(&mut self, cx: &Context, body: &Body) {
        let scratch = cx.scratch();
        let new_ids = scratch.alloc_slice_fill_copy(body.len(), None);
        trace(body, &scratch, new_ids, |id| self.node(cx, body, id));
    }

    fn node(&mut self, cx: &Context, body: &Body, id: ExprId) {
        self.types.insert(body.ty(id));
        match body.expr(id) {
            Expr::Var { name: Some(name), .. } => {
                self.names.insert(name);
            }
            Expr::Literal(l) => {
                self.literals.insert(l);
            }
            Expr::Global(g) => {
                self.globals.insert(g);
            }
            Expr::Op(op) => self.op(op),
            Expr::CallOp { op, attrs, .. } => {
                self.op(op);
                self.list(cx, attrs);
            }
            Expr::Call { attrs, .. } => self.list(cx, attrs),
            Expr::Lambda { lambda, .. } => {
                let data = body.lambda(lambda);
                if let Some(ret) = data.ret {
                    self.types.insert(ret);
                }
                self.list(cx, data.attrs);
                for &s in body.lambda_symbols(lambda) {
                    self.symbols.insert(s);
                }
            }
            _ => {}
        }
        if let Some(meta) = body.meta(id) {
            self.list(cx, meta);
        }
    }
}

/// From old ids to new ones.
struct Tables {
    names: Vec<Option<NameId>>,
    types: Vec<Option<TypeId>>,
    lists: Vec<Option<AttrsId>>,
    literals: Vec<Option<LiteralId>>,
    globals: Vec<Option<GlobalId>>,
    ops: Vec<Option<OpId>>,
    symbols: Vec<Option<SymbolId>>,
    function_attrs: Vec<Option<FunctionAttrId>>,
}

const USED: &str = "what is used was marked";

impl Translate for Tables {
    fn name(&self, id: NameId) -> NameId {
        self.names[id.index()].expect(USED)
    }
    fn ty(&self, id: TypeId) -> TypeId {
        self.types[id.index()].expect(USED)
    }
    fn attrs(&self, id: AttrsId) -> AttrsId {
        self.lists[id.index()].expect(USED)
    }
    fn literal(&self, id: LiteralId) -> LiteralId {
        self.literals[id.index()].expect(USED)
    }
    fn global(&self, id: GlobalId) -> GlobalId {
        self.globals[id.index()].expect(USED)
    }
    fn op(&self, id: OpId) -> OpId {
        self.ops[id.index()].expect(USED)
    }
    fn symbol(&self, id: SymbolId) -> SymbolId {
        self.symbols[id.index()].expect(USED)
    }
}

/// Tables with what is marked, in the order of the old ones. The functions in attributes only have their ids yet.
fn refill(old: &Context, marks: &Marks) -> (Context, Tables) {
    let mut cx = Context::new(old.ops.registry().clone());
    let names = fill(old.names.len(), |id| marks.names.contains(id).then(|| cx.names.intern(old.names.get(id))));
    let name = |id: NameId| names[id.index()].expect(USED);
    let symbols: Vec<Option<SymbolId>> = fill(old.types.dims.symbol_count(), |id| {
        marks.symbols.contains(id).then(|| cx.types.dims.new_symbol(name(old.types.dims.symbol_name(id))))
    });
    let dims = refill_dims(old, &mut cx, marks, &symbols);
    let dim = |id: DimId| dims[id.index()].expect(USED);
    let mut types: Vec<Option<TypeId>> = Vec::with_capacity(old.types.len());
    for (id, ty) in old.types.iter() {
        let new = marks.types.contains(id).then(|| {
            let part = |id: &TypeId| types[id.index()].expect(USED);
            match ty {
                Type::Any => cx.types.any(),
                Type::Error => cx.types.error(),
                Type::Tensor(t) => cx.types.intern(Type::Tensor(TensorType {
                    dtype: t.dtype,
                    shape: t.shape.as_ref().map(|shape| shape.iter().map(|&d| dim(d)).collect()),
                    elements: t.elements.as_ref().map(|elements| elements.iter().map(|&d| dim(d)).collect()),
                })),
                Type::Tuple(fields) => {
                    let fields: Vec<TypeId> = fields.iter().map(part).collect();
                    cx.types.tuple(&fields)
                }
                Type::Function(f) => {
                    let params: Box<[TypeId]> = f.params.iter().map(part).collect();
                    let ret = part(&f.ret);
                    cx.types.closed_function(params, ret, f.symbols)
                }
            }
        });
        types.push(new);
    }
    let literals: Vec<Option<LiteralId>> = fill(old.literals.len(), |id| {
        marks.literals.contains(id).then(|| cx.literals.intern(old.literals.get(id).clone()))
    });
    let rows = old.ops.registry().rows().len();
    let ops: Vec<Option<OpId>> = (0..old.ops.len())
        .map(|i| {
            let id = OpId::new(i).expect("there are no more operators than ids");
            if i < rows {
                return Some(id);
            }
            let row = old.ops.get(id);
            marks.ops[i].then(|| cx.ops.opaque(&row.name, row.purity).expect("there are no more operators than before"))
        })
        .collect();
    let globals: Vec<Option<GlobalId>> = fill(old.globals.len(), |id| {
        marks.globals.contains(id).then(|| {
            let Global { name: old_name, signature, target } = old.globals.get(id).clone();
            let new = cx.globals.intern(name(old_name));
            cx.globals.update(new, |g| {
                g.signature = signature.map(|t| types[t.index()].expect(USED));
                g.target = target;
            });
            new
        })
    });
    let mut next = 0;
    let function_attrs: Vec<Option<FunctionAttrId>> = fill(old.function_attrs.len(), |id| {
        marks.function_attrs.contains(id).then(|| {
            next += 1;
            FunctionAttrId::from_index(next - 1)
        })
    });
    let mut attrs: Vec<Option<AttrId>> = Vec::with_capacity(old.attrs.len());
    for (id, attr) in old.attrs.iter() {
        let new = marks.attrs.contains(id).then(|| {
            let attr = match attr {
                Attr::None => Attr::None,
                Attr::Bool(b) => Attr::Bool(*b),
                Attr::Int(i) => Attr::Int(*i),
                Attr::Float(f) => Attr::Float(*f),
                Attr::DType(d) => Attr::DType(*d),
                Attr::Str(s) => Attr::Str(name(*s)),
                Attr::List(items) => Attr::List(items.iter().map(|i| attrs[i.index()].expect(USED)).collect()),
                Attr::Shape(shape) => Attr::Shape(shape.iter().map(|&d| dim(d)).collect()),
                Attr::Literal(l) => Attr::Literal(literals[l.index()].expect(USED)),
                Attr::Type(t) => Attr::Type(types[t.index()].expect(USED)),
                Attr::Function(f) => Attr::Function(function_attrs[f.index()].expect(USED)),
                Attr::Global(g) => Attr::Global(globals[g.index()].expect(USED)),
                Attr::Op(op) => Attr::Op(ops[op.index()].expect(USED)),
            };
            cx.attr(attr)
        });
        attrs.push(new);
    }
    let lists: Vec<Option<AttrsId>> = fill(old.attrs.list_count(), |id| {
        marks.lists.contains(id).then(|| {
            let list: Vec<(NameId, AttrId)> =
                old.attrs.list(id).iter().map(|&(k, v)| (name(k), attrs[v.index()].expect(USED))).collect();
            cx.attrs(&list)
        })
    });
    (cx, Tables { names, types, lists, literals, globals, ops, symbols, function_attrs })
}

fn refill_dims(old: &Context, cx: &mut Context, marks: &Marks, symbols: &[Option<SymbolId>]) -> Vec<Option<DimId>> {
    let mut dims: Vec<Option<DimId>> = Vec::with_capacity(old.types.dims.len());
    for i in 0..old.types.dims.len() {
        let id = DimId::from_index(i);
        let new = marks.dims.contains(id).then(|| {
            let table = &mut cx.types.dims;
            let part = |id: &DimId| dims[id.index()].expect(USED);
            match old.types.dims.get(id) {
                Dim::Unknown => table.unknown(),
                Dim::Const(c) => table.constant(*c),
                Dim::Symbol(s) => table.symbol(symbols[s.index()].expect(USED)),
                Dim::Bound { depth, index } => table.bound(*depth, *index),
                Dim::Op { op, lhs, rhs } => table.op(*op, part(lhs), part(rhs)),
                Dim::Sum(terms) => {
                    let mut sum = table.constant(0);
                    for term in terms {
                        let mut product = table.constant(term.coefficient);
                        for factor in &term.factors {
                            product = table.mul(product, part(factor));
                        }
                        sum = table.add(sum, product);
                    }
                    sum
                }
            }
        });
        dims.push(new);
    }
    dims
}

fn fill<K: EntityId>(len: usize, mut f: impl FnMut(K) -> Option<K>) -> Vec<Option<K>> {
    (0..len).map(|i| f(K::from_index(i))).collect()
}

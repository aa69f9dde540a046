//! A map from the ids of one module to those of another.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::{TakeOverError, compacted};
use crate::compact::live;
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{
    AttrId, AttrsId, DimId, EntityId, ExprId, FunctionAttrId, GlobalId, LiteralId, NameId, OpId, SymbolId, TypeId,
};
use crate::core::expr::{Expr, LambdaData};
use crate::core::function::Function;
use crate::core::module::Head;
use crate::core::translate::{SameTables, Translate};
use crate::edit::transplant::rebuild_function;
use crate::tables::attrs::Attr;
use crate::tables::dim::Dim;
use crate::tables::types::{FunctionType, SeenParts, TensorType, Type};

/// Something in the tables that consists of other things.
#[derive(Copy, Clone)]
enum Part {
    Dim(DimId),
    Type(TypeId),
    Attr(AttrId),
    List(AttrsId),
    /// A function that is the value of an attribute.
    Function(FunctionAttrId),
}

/// Ids of one kind in other tables, with those in these.
pub(crate) struct IdMap<K> {
    /// By id, for the ids up to some.
    dense: Vec<Option<K>>,
    sparse: FxHashMap<K, K>,
}

impl<K: EntityId> IdMap<K> {
    /// Returns an empty map, in which a table says what `count` ids have become.
    fn new(count: usize) -> IdMap<K> {
        IdMap { dense: vec![None; count], sparse: FxHashMap::default() }
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: K) -> Option<K> {
        match self.dense.get(id.index()) {
            Some(&known) => known,
            None => self.sparse.get(&id).copied(),
        }
    }

    #[inline(always)]
    fn taken(&self, id: K) -> K {
        self.get(id).expect("parts are made before what consists of them")
    }

    fn has(&self, id: K) -> bool {
        self.get(id).is_some()
    }

    fn or_insert_with(&mut self, id: K, make: impl FnOnce() -> K) -> K {
        self.get(id).unwrap_or_else(|| {
            let new = make();
            self.set(id, new);
            new
        })
    }

    pub(crate) fn set(&mut self, id: K, new: K) {
        match self.dense.get_mut(id.index()) {
            Some(slot) => *slot = Some(new),
            None => _ = self.sparse.insert(id, new),
        }
    }
}

/// The ids of other tables that were translated so far, each with its id in these.
pub(crate) struct TableMap<'a> {
    from: &'a Context,
    pub(crate) keeps_spans: bool,
    names: IdMap<NameId>,
    symbols: IdMap<SymbolId>,
    dims: IdMap<DimId>,
    types: IdMap<TypeId>,
    literals: IdMap<LiteralId>,
    ops: FxHashMap<OpId, OpId>,
    pub(crate) globals: IdMap<GlobalId>,
    attrs: IdMap<AttrId>,
    lists: IdMap<AttrsId>,
    functions: IdMap<FunctionAttrId>,
    /// Functions of this module that are values of attributes, by their fingerprints.
    known: FxHashMap<u64, Vec<FunctionAttrId>>,
    /// The types that the other tables give globals, by their ids in these.
    pub(super) signatures: Vec<(GlobalId, TypeId)>,
}

impl<'a> TableMap<'a> {
    /// Returns an empty map for some of what is in other tables.
    pub(crate) fn new(from: &'a Context) -> TableMap<'a> {
        TableMap::with_room(from, |_| 0)
    }

    /// Returns an empty map for most of what is in other tables. Takes memory in proportion to
    /// these.
    pub(crate) fn of_all(from: &'a Context) -> TableMap<'a> {
        TableMap::with_room(from, |count| count)
    }

    fn with_room(from: &'a Context, room: impl Fn(usize) -> usize) -> TableMap<'a> {
        TableMap {
            from,
            keeps_spans: true,
            names: IdMap::new(room(from.names.len())),
            symbols: IdMap::new(room(from.types.dims.symbol_count())),
            dims: IdMap::new(room(from.types.dims.len())),
            types: IdMap::new(room(from.types.len())),
            literals: IdMap::new(room(from.literals.len())),
            ops: FxHashMap::default(),
            globals: IdMap::new(room(from.globals.len())),
            attrs: IdMap::new(room(from.attrs.len())),
            lists: IdMap::new(room(from.attrs.list_count())),
            functions: IdMap::new(room(from.function_attrs.len())),
            known: FxHashMap::default(),
            signatures: Vec::new(),
        }
    }

    /// Lets symbols of a function be those of the same names of the function whose place it takes,
    /// so that types are the same where they say the same.
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
            if let (false, Some(own)) = (self.symbols.has(symbol), free.get_mut(name).and_then(VecDeque::pop_front)) {
                self.symbols.set(symbol, own);
            }
        }
    }

    /// A copy of a function with the ids of this module.
    pub(crate) fn function(&mut self, cx: &mut Context, source: &Function) -> Result<Function, TakeOverError> {
        self.parts_of(cx, source)?;
        Ok(self.translated(source))
    }

    /// A copy of a function whose parts were taken over.
    fn translated(&mut self, source: &Function) -> Function {
        let (mut function, _) = rebuild_function(source, self);
        if !self.keeps_spans {
            function.span = None;
            function.body.drop_spans();
        }
        function
    }

    /// Takes over all that a function names.
    pub(crate) fn parts_of(&mut self, cx: &mut Context, function: &Function) -> Result<(), TakeOverError> {
        let mut parts = Vec::new();
        let live = live(&function.body);
        self.missing_parts(function, &live, &mut parts);
        for part in parts {
            self.take(cx, part)?;
        }
        self.leaves_of(cx, function, &live)
    }

    /// The parts that a function names and that were not taken over yet.
    fn missing_parts(&self, function: &Function, live: &[ExprId], parts: &mut Vec<Part>) {
        let Function { attrs, meta, ret, body, .. } = function;
        let mut add = |part: Part| {
            if !self.has(part) {
                parts.push(part);
            }
        };
        [*attrs, *meta].into_iter().for_each(|list| add(Part::List(list)));
        ret.iter().for_each(|&ty| add(Part::Type(ty)));
        for &id in live {
            add(Part::Type(body.ty(id)));
            body.meta(id).into_iter().for_each(|list| add(Part::List(list)));
            match body.expr(id) {
                Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => add(Part::List(attrs)),
                Expr::Global(global) => self.signature_part(global).into_iter().for_each(&mut add),
                Expr::Lambda { lambda, .. } => {
                    let LambdaData { ret, attrs, .. } = body.lambda(lambda);
                    ret.into_iter().for_each(|ty| add(Part::Type(ty)));
                    add(Part::List(attrs));
                }
                _ => {}
            }
        }
    }

    /// Takes over the names, constants, operators, globals and symbols of the `fn`s of a body.
    fn leaves_of(&mut self, cx: &mut Context, function: &Function, live: &[ExprId]) -> Result<(), TakeOverError> {
        if let Some(global) = function.global() {
            self.take_global(cx, global);
        }
        let body = &function.body;
        for &id in live {
            match body.expr(id) {
                Expr::Var { name: Some(name), .. } => _ = self.take_name(cx, name),
                Expr::Literal(literal) => _ = self.take_literal(cx, literal),
                Expr::Global(global) => self.mention(cx, global),
                Expr::Op(op) | Expr::CallOp { op, .. } => _ = self.take_op(cx, op)?,
                Expr::Lambda { lambda, .. } => {
                    body.lambda_symbols(lambda).iter().for_each(|&symbol| _ = self.take_symbol(cx, symbol));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn take_type(&mut self, cx: &mut Context, ty: TypeId) -> Result<TypeId, TakeOverError> {
        self.take(cx, Part::Type(ty))?;
        Ok(self.types.taken(ty))
    }

    pub(crate) fn take_list(&mut self, cx: &mut Context, list: AttrsId) -> Result<AttrsId, TakeOverError> {
        self.take(cx, Part::List(list))?;
        Ok(self.lists.taken(list))
    }

    fn has(&self, part: Part) -> bool {
        match part {
            Part::Dim(id) => self.dims.has(id),
            Part::Type(id) => self.types.has(id),
            Part::Attr(id) => self.attrs.has(id),
            Part::List(id) => self.lists.has(id),
            Part::Function(id) => self.functions.has(id),
        }
    }

    /// Takes a part over, after those that it consists of.
    fn take(&mut self, cx: &mut Context, part: Part) -> Result<(), TakeOverError> {
        if self.has(part) {
            return Ok(());
        }
        let mut stack = vec![part];
        while let Some(&top) = stack.last() {
            if self.has(top) {
                stack.pop();
                continue;
            }
            let height = stack.len();
            self.push_missing(top, &mut stack);
            if stack.len() == height {
                self.make(cx, top)?;
                stack.pop();
            }
        }
        Ok(())
    }

    /// Pushes what a part consists of and what was not taken over yet.
    fn push_missing(&self, part: Part, stack: &mut Vec<Part>) {
        let tables = self.from;
        let start = stack.len();
        match part {
            Part::Dim(id) => match tables.types.dims.get(id) {
                Dim::Op { lhs, rhs, .. } => stack.extend([Part::Dim(*lhs), Part::Dim(*rhs)]),
                Dim::Sum(terms) => stack.extend(terms.iter().flat_map(|t| &t.factors).map(|&f| Part::Dim(f))),
                Dim::Unknown | Dim::Const(_) | Dim::Symbol(_) | Dim::Bound { .. } => {}
            },
            Part::Type(id) => match tables.types.get(id) {
                Type::Any | Type::Error => {}
                Type::Tensor(tensor) => {
                    stack.extend(tensor.shape.iter().flatten().map(|&d| Part::Dim(d)));
                    stack.extend(tensor.elements.iter().flatten().map(|&d| Part::Dim(d)));
                }
                Type::Tuple(fields) => stack.extend(fields.iter().map(|&f| Part::Type(f))),
                Type::Function(FunctionType { params, ret, .. }) => {
                    stack.extend(params.iter().chain([ret]).map(|&t| Part::Type(t)));
                }
            },
            Part::Attr(id) => match tables.attrs.get(id) {
                Attr::List(items) => stack.extend(items.iter().map(|&i| Part::Attr(i))),
                Attr::Shape(dims) => stack.extend(dims.iter().map(|&d| Part::Dim(d))),
                Attr::Type(ty) => stack.push(Part::Type(*ty)),
                Attr::Function(function) => stack.push(Part::Function(*function)),
                Attr::Global(global) => stack.extend(self.signature_part(*global)),
                _ => {}
            },
            Part::List(id) => stack.extend(tables.attrs.list(id).iter().map(|&(_, value)| Part::Attr(value))),
            Part::Function(id) => {
                let function = &tables.function_attrs[id];
                self.missing_parts(function, &live(&function.body), stack);
            }
        }
        let mut kept = start;
        for i in start..stack.len() {
            if !self.has(stack[i]) {
                stack[kept] = stack[i];
                kept += 1;
            }
        }
        stack.truncate(kept);
    }

    /// Makes a part of which all that it consists of was taken over.
    fn make(&mut self, cx: &mut Context, part: Part) -> Result<(), TakeOverError> {
        let from = self.from;
        match part {
            Part::Dim(id) => {
                let dim = self.make_dim(cx, from.types.dims.get(id));
                self.dims.set(id, dim);
            }
            Part::Type(id) => {
                let ty = match from.types.get(id) {
                    ty @ (Type::Any | Type::Error) => ty.clone(),
                    Type::Tensor(TensorType { dtype, shape, elements }) => Type::Tensor(TensorType {
                        dtype: *dtype,
                        shape: shape.as_ref().map(|shape| shape.iter().map(|d| self.dims.taken(*d)).collect()),
                        elements: elements
                            .as_ref()
                            .map(|elements| elements.iter().map(|d| self.dims.taken(*d)).collect()),
                    }),
                    Type::Tuple(fields) => Type::Tuple(fields.iter().map(|f| self.types.taken(*f)).collect()),
                    Type::Function(FunctionType { params, ret, symbols }) => Type::Function(FunctionType {
                        params: params.iter().map(|p| self.types.taken(*p)).collect(),
                        ret: self.types.taken(*ret),
                        symbols: *symbols,
                    }),
                };
                let ty = cx.types.intern(ty);
                self.types.set(id, ty);
            }
            Part::Attr(id) => {
                let attr = match from.attrs.get(id) {
                    attr @ (Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::DType(_)) => {
                        attr.clone()
                    }
                    Attr::Str(s) => Attr::Str(self.take_name(cx, *s)),
                    Attr::List(items) => Attr::List(items.iter().map(|i| self.attrs.taken(*i)).collect()),
                    Attr::Shape(shape) => Attr::Shape(shape.iter().map(|d| self.dims.taken(*d)).collect()),
                    Attr::Literal(l) => Attr::Literal(self.take_literal(cx, *l)),
                    Attr::Type(ty) => Attr::Type(self.types.taken(*ty)),
                    Attr::Function(f) => Attr::Function(self.functions.taken(*f)),
                    Attr::Global(g) => {
                        self.mention(cx, *g);
                        Attr::Global(self.globals.taken(*g))
                    }
                    Attr::Op(op) => Attr::Op(self.take_op(cx, *op)?),
                };
                let attr = cx.attr(attr);
                self.attrs.set(id, attr);
            }
            Part::List(id) => {
                let items = from.attrs.list(id).iter();
                let items: Vec<_> =
                    items.map(|&(name, value)| (self.take_name(cx, name), self.attrs.taken(value))).collect();
                let list = cx.attrs(&items);
                self.lists.set(id, list);
            }
            Part::Function(id) => {
                let source = &from.function_attrs[id];
                self.leaves_of(cx, source, &live(&source.body))?;
                let function = self.translated(source);
                let new = self.same_function(cx, &function);
                let new = new.unwrap_or_else(|| cx.function_attrs.push(Arc::new(function)));
                self.functions.set(id, new);
            }
        }
        Ok(())
    }

    /// Lets functions that are values of attributes be those that this module has already, where
    /// they are the same.
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
            Head::of(other) == Head::of(function) && compacted(&other.body).has_nodes_of(&function.body)
        };
        candidates.iter().copied().find(|&id| is_same(&cx.function_attrs[id]))
    }

    fn make_dim(&mut self, cx: &mut Context, dim: &Dim) -> DimId {
        match dim {
            Dim::Unknown | Dim::Const(_) | Dim::Bound { .. } => cx.types.dims.intern(dim.clone()),
            Dim::Symbol(symbol) => {
                let symbol = self.take_symbol(cx, *symbol);
                cx.types.dims.symbol(symbol)
            }
            Dim::Op { op, lhs, rhs } => cx.types.dims.op(*op, self.dims.taken(*lhs), self.dims.taken(*rhs)),
            // The order of terms and factors depends on ids, which are others here.
            Dim::Sum(terms) => {
                let dims = &mut cx.types.dims;
                let mut sum = dims.constant(0);
                for term in terms {
                    let mut product = dims.constant(term.coefficient);
                    for factor in &term.factors {
                        product = dims.mul(product, self.dims.taken(*factor));
                    }
                    sum = dims.add(sum, product);
                }
                sum
            }
        }
    }

    fn take_name(&mut self, cx: &mut Context, name: NameId) -> NameId {
        let from = self.from;
        self.names.or_insert_with(name, || cx.names.intern(from.names.get(name)))
    }

    pub(crate) fn take_symbol(&mut self, cx: &mut Context, symbol: SymbolId) -> SymbolId {
        if let Some(known) = self.symbols.get(symbol) {
            return known;
        }
        let name = self.take_name(cx, self.from.types.dims.symbol_name(symbol));
        let new = cx.types.dims.new_symbol(name);
        self.symbols.set(symbol, new);
        new
    }

    fn take_literal(&mut self, cx: &mut Context, literal: LiteralId) -> LiteralId {
        let from = self.from;
        self.literals.or_insert_with(literal, || cx.literals.intern_ref(from.literals.get(literal)))
    }

    fn take_op(&mut self, cx: &mut Context, op: OpId) -> Result<OpId, TakeOverError> {
        if let Some(&known) = self.ops.get(&op) {
            return Ok(known);
        }
        let ops = &self.from.ops;
        let row = ops.get(op);
        let new = if ops.is_opaque(op) { cx.ops.opaque(&row.name, row.purity)? } else { cx.ops.resolve(&row.name)? };
        self.ops.insert(op, new);
        Ok(new)
    }

    pub(crate) fn take_global(&mut self, cx: &mut Context, global: GlobalId) {
        let from = self.from;
        self.globals.or_insert_with(global, || cx.global(from.global_name(global)));
    }

    /// Takes over a global that something names, with the type that it has.
    fn mention(&mut self, cx: &mut Context, global: GlobalId) {
        if self.globals.has(global) {
            return;
        }
        self.take_global(cx, global);
        if let Some(signature) = self.from.globals.get(global).signature {
            self.signatures.push((self.globals.taken(global), self.types.taken(signature)));
        }
    }

    /// The type that the other module gives a global.
    fn signature_part(&self, global: GlobalId) -> Option<Part> {
        self.from.globals.get(global).signature.map(Part::Type)
    }
}

/// The symbols that a body names, in the order of their nodes.
fn symbols_of(cx: &Context, body: &Body) -> Vec<SymbolId> {
    let mut symbols = Vec::new();
    let mut seen = SeenParts::default();
    let mut found: FxHashSet<SymbolId> = FxHashSet::default();
    for (id, _) in body.exprs() {
        cx.types.for_each_new_symbol(body.ty(id), &mut seen, |dim| {
            if let Dim::Symbol(symbol) = *cx.types.dims.get(dim)
                && found.insert(symbol)
            {
                symbols.push(symbol);
            }
        });
    }
    symbols
}

/// A number that functions with the same head and the same nodes under the same ids have in common.
fn fingerprint(function: &Function) -> u64 {
    let mut hasher = FxHasher::default();
    Head::of(function).hash(&mut hasher);
    function.body.hash_nodes(&mut hasher);
    hasher.finish()
}

impl Translate for TableMap<'_> {
    #[inline(always)]
    fn name(&mut self, id: NameId) -> NameId {
        self.names.taken(id)
    }
    #[inline(always)]
    fn ty(&mut self, id: TypeId) -> TypeId {
        self.types.taken(id)
    }
    #[inline(always)]
    fn attrs(&mut self, id: AttrsId) -> AttrsId {
        self.lists.taken(id)
    }
    #[inline(always)]
    fn literal(&mut self, id: LiteralId) -> LiteralId {
        self.literals.taken(id)
    }
    #[inline(always)]
    fn global(&mut self, id: GlobalId) -> GlobalId {
        self.globals.taken(id)
    }
    #[inline(always)]
    fn op(&mut self, id: OpId) -> OpId {
        self.ops[&id]
    }
    #[inline(always)]
    fn symbol(&mut self, id: SymbolId) -> SymbolId {
        self.symbols.taken(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::body::Body;
    use crate::core::expr::{LetFlags, VarFlags};
    use crate::ops::op::OpRegistry;

    /// A function that returns a field of a pair, bound to a variable.
    fn sample(cx: &mut Context, name: &str, index: u32, flags: VarFlags, ty: TypeId) -> Function {
        let unit = cx.types.unit();
        let pair = cx.types.tuple(&[unit, unit]);
        let name = cx.names.intern(name);
        let mut body = Body::new(&cx.types);
        let param = body.push_var(None, VarFlags::PLAIN, pair, None);
        body.set_params(vec![param]);
        let value = body.push(Expr::Proj { tuple: param.expr(), index }, unit, None);
        let var = body.push_var(Some(name), flags, unit, None);
        let root = body.push(Expr::Let { var, value, body: var.expr(), flags: LetFlags::PLAIN }, ty, None);
        body.set_root(root);
        let mut function = Function::new(&cx.types, cx.attrs.empty());
        function.body = body;
        function
    }

    #[test]
    fn functions_that_differ_have_other_fingerprints() {
        let mut cx = Context::new(Arc::new(OpRegistry::new()));
        let (unit, any) = (cx.types.unit(), cx.types.any());
        let first = sample(&mut cx, "a", 0, VarFlags::PLAIN, unit);
        let same = sample(&mut cx, "a", 0, VarFlags::PLAIN, any);
        assert!(first.body.has_nodes_of(&same.body));
        assert_eq!(fingerprint(&first), fingerprint(&same), "a Let has no type of its own");
        let mut with_result = first.clone();
        with_result.ret = Some(unit);
        let others = [
            sample(&mut cx, "b", 0, VarFlags::PLAIN, unit),
            sample(&mut cx, "a", 1, VarFlags::PLAIN, unit),
            sample(&mut cx, "a", 0, VarFlags::DATAFLOW, unit),
            with_result,
        ];
        for other in others {
            assert_ne!(fingerprint(&first), fingerprint(&other));
        }
    }
}

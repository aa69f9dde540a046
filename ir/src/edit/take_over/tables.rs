//! A map from the ids of one module to those of another.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::{TakeOverError, compacted};
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{
    AttrId, AttrsId, DimId, EntityId, FunctionAttrId, GlobalId, LambdaId, LiteralId, NameId, OpId, SymbolId, TypeId,
};
use crate::core::expr::{Expr, LambdaData};
use crate::core::function::Function;
use crate::core::module::{Head, Module};
use crate::core::translate::{Translate, translate_head};
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

/// The ids of the other module that were translated so far, each with its id in this one.
pub(super) struct TakeOver<'a> {
    from: &'a Module,
    keeps_spans: bool,
    names: FxHashMap<NameId, NameId>,
    symbols: FxHashMap<SymbolId, SymbolId>,
    dims: FxHashMap<DimId, DimId>,
    types: FxHashMap<TypeId, TypeId>,
    literals: FxHashMap<LiteralId, LiteralId>,
    ops: FxHashMap<OpId, OpId>,
    pub(super) globals: FxHashMap<GlobalId, GlobalId>,
    attrs: FxHashMap<AttrId, AttrId>,
    lists: FxHashMap<AttrsId, AttrsId>,
    functions: FxHashMap<FunctionAttrId, FunctionAttrId>,
    /// Functions of this module that are values of attributes, by their fingerprints.
    known: FxHashMap<u64, Vec<FunctionAttrId>>,
    /// The types that the other module gives the globals, by their ids in this one.
    pub(super) signatures: Vec<(GlobalId, TypeId)>,
}

impl<'a> TakeOver<'a> {
    pub(super) fn new(from: &'a Module, keeps_spans: bool) -> TakeOver<'a> {
        TakeOver {
            from,
            keeps_spans,
            names: FxHashMap::default(),
            symbols: FxHashMap::default(),
            dims: FxHashMap::default(),
            types: FxHashMap::default(),
            literals: FxHashMap::default(),
            ops: FxHashMap::default(),
            globals: FxHashMap::default(),
            attrs: FxHashMap::default(),
            lists: FxHashMap::default(),
            functions: FxHashMap::default(),
            known: FxHashMap::default(),
            signatures: Vec::new(),
        }
    }

    /// Lets symbols of a function be those of the same names of the function whose place it takes,
    /// so that types are the same where they say the same.
    pub(super) fn share_symbols(&mut self, cx: &Context, present: &Function, new: &Function) {
        let mut free: FxHashMap<&str, VecDeque<SymbolId>> = FxHashMap::default();
        for symbol in symbols_of(cx, &present.body) {
            free.entry(cx.names.get(cx.types.dims.symbol_name(symbol))).or_default().push_back(symbol);
        }
        if free.is_empty() {
            return;
        }
        let tables = &self.from.cx;
        for symbol in symbols_of(tables, &new.body) {
            let name = tables.names.get(tables.types.dims.symbol_name(symbol));
            if let (false, Some(own)) = (self.symbols.contains_key(&symbol), free.get_mut(name)) {
                self.symbols.extend(own.pop_front().map(|own| (symbol, own)));
            }
        }
    }

    /// A copy of a function with the ids of this module.
    pub(super) fn function(&mut self, cx: &mut Context, source: &Function) -> Result<Function, TakeOverError> {
        let mut function = source.clone();
        function.body = compacted(&source.body);
        self.parts_of(cx, &function)?;
        translate_head(&mut function, self);
        function.body.translate(self);
        if !self.keeps_spans {
            function.span = None;
            function.body.drop_spans();
        }
        Ok(function)
    }

    /// Takes over all that a function names.
    fn parts_of(&mut self, cx: &mut Context, function: &Function) -> Result<(), TakeOverError> {
        let mut parts = Vec::new();
        self.missing_parts(function, &mut parts);
        for part in parts {
            self.take(cx, part)?;
        }
        self.leaves_of(cx, function)
    }

    /// The parts that a function names and that were not taken over yet.
    fn missing_parts(&self, function: &Function, parts: &mut Vec<Part>) {
        let Function { attrs, meta, ret, body, .. } = function;
        let lambdas = (0..body.lambda_count()).map(|i| body.lambda(LambdaId::from_index(i)));
        for LambdaData { ret, attrs, .. } in lambdas {
            parts.extend(ret.map(Part::Type));
            parts.push(Part::List(attrs));
        }
        parts.extend([Part::List(*attrs), Part::List(*meta)]);
        parts.extend(ret.map(Part::Type));
        for (id, expr) in body.exprs() {
            parts.push(Part::Type(body.ty(id)));
            parts.extend(body.meta(id).map(Part::List));
            match expr {
                Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => parts.push(Part::List(attrs)),
                Expr::Global(global) => parts.extend(self.signature_part(global)),
                _ => {}
            }
        }
        parts.retain(|&part| !self.has(part));
    }

    /// Takes over the names, constants, operators, globals and symbols of the `fn`s of a body.
    fn leaves_of(&mut self, cx: &mut Context, function: &Function) -> Result<(), TakeOverError> {
        if let Some(global) = function.global() {
            self.take_global(cx, global);
        }
        for (_, expr) in function.body.exprs() {
            match expr {
                Expr::Var { name: Some(name), .. } => {
                    self.take_name(cx, name);
                }
                Expr::Literal(literal) => {
                    self.take_literal(cx, literal);
                }
                Expr::Global(global) => self.mention(cx, global),
                Expr::Op(op) | Expr::CallOp { op, .. } => {
                    self.take_op(cx, op)?;
                }
                _ => {}
            }
        }
        for i in 0..function.body.lambda_count() {
            for &symbol in function.body.lambda_symbols(LambdaId::from_index(i)) {
                self.take_symbol(cx, symbol);
            }
        }
        Ok(())
    }

    pub(super) fn take_type(&mut self, cx: &mut Context, ty: TypeId) -> Result<TypeId, TakeOverError> {
        self.take(cx, Part::Type(ty))?;
        Ok(self.types[&ty])
    }

    pub(super) fn take_list(&mut self, cx: &mut Context, list: AttrsId) -> Result<AttrsId, TakeOverError> {
        self.take(cx, Part::List(list))?;
        Ok(self.lists[&list])
    }

    fn has(&self, part: Part) -> bool {
        match part {
            Part::Dim(id) => self.dims.contains_key(&id),
            Part::Type(id) => self.types.contains_key(&id),
            Part::Attr(id) => self.attrs.contains_key(&id),
            Part::List(id) => self.lists.contains_key(&id),
            Part::Function(id) => self.functions.contains_key(&id),
        }
    }

    /// Takes a part over, after those that it consists of.
    fn take(&mut self, cx: &mut Context, part: Part) -> Result<(), TakeOverError> {
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
        let tables = &self.from.cx;
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
                let mut parts = Vec::new();
                self.missing_parts(&tables.function_attrs[id], &mut parts);
                stack.append(&mut parts);
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
                let dim = self.make_dim(cx, from.cx.types.dims.get(id));
                self.dims.insert(id, dim);
            }
            Part::Type(id) => {
                let ty = match from.cx.types.get(id) {
                    ty @ (Type::Any | Type::Error) => ty.clone(),
                    Type::Tensor(TensorType { dtype, shape, elements }) => Type::Tensor(TensorType {
                        dtype: *dtype,
                        shape: shape.as_ref().map(|shape| shape.iter().map(|d| self.dims[d]).collect()),
                        elements: elements.as_ref().map(|elements| elements.iter().map(|d| self.dims[d]).collect()),
                    }),
                    Type::Tuple(fields) => Type::Tuple(fields.iter().map(|f| self.types[f]).collect()),
                    Type::Function(FunctionType { params, ret, symbols }) => Type::Function(FunctionType {
                        params: params.iter().map(|p| self.types[p]).collect(),
                        ret: self.types[ret],
                        symbols: *symbols,
                    }),
                };
                let ty = cx.types.intern(ty);
                self.types.insert(id, ty);
            }
            Part::Attr(id) => {
                let attr = match from.cx.attrs.get(id) {
                    attr @ (Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::DType(_)) => {
                        attr.clone()
                    }
                    Attr::Str(s) => Attr::Str(self.take_name(cx, *s)),
                    Attr::List(items) => Attr::List(items.iter().map(|i| self.attrs[i]).collect()),
                    Attr::Shape(shape) => Attr::Shape(shape.iter().map(|d| self.dims[d]).collect()),
                    Attr::Literal(l) => Attr::Literal(self.take_literal(cx, *l)),
                    Attr::Type(ty) => Attr::Type(self.types[ty]),
                    Attr::Function(f) => Attr::Function(self.functions[f]),
                    Attr::Global(g) => {
                        self.mention(cx, *g);
                        Attr::Global(self.globals[g])
                    }
                    Attr::Op(op) => Attr::Op(self.take_op(cx, *op)?),
                };
                let attr = cx.attr(attr);
                self.attrs.insert(id, attr);
            }
            Part::List(id) => {
                let items = from.cx.attrs.list(id).iter();
                let items: Vec<_> =
                    items.map(|&(name, value)| (self.take_name(cx, name), self.attrs[&value])).collect();
                let list = cx.attrs(&items);
                self.lists.insert(id, list);
            }
            Part::Function(id) => {
                let source = &from.cx.function_attrs[id];
                self.leaves_of(cx, source)?;
                let mut function = Function::clone(source);
                function.body.drop_journals();
                translate_head(&mut function, self);
                function.body.translate(self);
                if !self.keeps_spans {
                    function.body.drop_spans();
                }
                let new = self.same_function(cx, &function);
                let new = new.unwrap_or_else(|| cx.function_attrs.push(Arc::new(function)));
                self.functions.insert(id, new);
            }
        }
        Ok(())
    }

    /// Lets functions that are values of attributes be those that this module has already, where
    /// they are the same.
    pub(super) fn know_functions(&mut self, cx: &Context) {
        for (id, function) in cx.function_attrs.iter() {
            self.known.entry(fingerprint(function)).or_default().push(id);
        }
    }

    fn same_function(&self, cx: &Context, function: &Function) -> Option<FunctionAttrId> {
        if self.known.is_empty() {
            return None;
        }
        let candidates = self.known.get(&fingerprint(function))?;
        let is_same =
            |other: &Function| Head::of(other) == Head::of(function) && other.body.has_nodes_of(&function.body);
        candidates.iter().copied().find(|&id| is_same(&cx.function_attrs[id]))
    }

    fn make_dim(&mut self, cx: &mut Context, dim: &Dim) -> DimId {
        match dim {
            Dim::Unknown | Dim::Const(_) | Dim::Bound { .. } => cx.types.dims.intern(dim.clone()),
            Dim::Symbol(symbol) => {
                let symbol = self.take_symbol(cx, *symbol);
                cx.types.dims.symbol(symbol)
            }
            Dim::Op { op, lhs, rhs } => cx.types.dims.op(*op, self.dims[lhs], self.dims[rhs]),
            // The order of terms and factors depends on ids, which are others here.
            Dim::Sum(terms) => {
                let dims = &mut cx.types.dims;
                let mut sum = dims.constant(0);
                for term in terms {
                    let mut product = dims.constant(term.coefficient);
                    for factor in &term.factors {
                        product = dims.mul(product, self.dims[factor]);
                    }
                    sum = dims.add(sum, product);
                }
                sum
            }
        }
    }

    fn take_name(&mut self, cx: &mut Context, name: NameId) -> NameId {
        let from = self.from;
        *self.names.entry(name).or_insert_with(|| cx.names.intern(from.cx.names.get(name)))
    }

    fn take_symbol(&mut self, cx: &mut Context, symbol: SymbolId) -> SymbolId {
        if let Some(&known) = self.symbols.get(&symbol) {
            return known;
        }
        let name = self.take_name(cx, self.from.cx.types.dims.symbol_name(symbol));
        let new = cx.types.dims.new_symbol(name);
        self.symbols.insert(symbol, new);
        new
    }

    fn take_literal(&mut self, cx: &mut Context, literal: LiteralId) -> LiteralId {
        let from = self.from;
        *self.literals.entry(literal).or_insert_with(|| cx.literals.intern_ref(from.cx.literals.get(literal)))
    }

    fn take_op(&mut self, cx: &mut Context, op: OpId) -> Result<OpId, TakeOverError> {
        if let Some(&known) = self.ops.get(&op) {
            return Ok(known);
        }
        let ops = &self.from.cx.ops;
        let row = ops.get(op);
        let new = if ops.is_opaque(op) { cx.ops.opaque(&row.name, row.purity)? } else { cx.ops.resolve(&row.name)? };
        self.ops.insert(op, new);
        Ok(new)
    }

    pub(super) fn take_global(&mut self, cx: &mut Context, global: GlobalId) {
        let from = self.from;
        self.globals.entry(global).or_insert_with(|| cx.global(from.cx.global_name(global)));
    }

    /// Takes over a global that something names, with the type that it has.
    fn mention(&mut self, cx: &mut Context, global: GlobalId) {
        if self.globals.contains_key(&global) {
            return;
        }
        self.take_global(cx, global);
        if let Some(signature) = self.from.cx.globals.get(global).signature {
            self.signatures.push((self.globals[&global], self.types[&signature]));
        }
    }

    /// The type that the other module gives a global.
    fn signature_part(&self, global: GlobalId) -> Option<Part> {
        self.from.cx.globals.get(global).signature.map(Part::Type)
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

impl Translate for TakeOver<'_> {
    fn name(&self, id: NameId) -> NameId {
        self.names[&id]
    }
    fn ty(&self, id: TypeId) -> TypeId {
        self.types[&id]
    }
    fn attrs(&self, id: AttrsId) -> AttrsId {
        self.lists[&id]
    }
    fn literal(&self, id: LiteralId) -> LiteralId {
        self.literals[&id]
    }
    fn global(&self, id: GlobalId) -> GlobalId {
        self.globals[&id]
    }
    fn op(&self, id: OpId) -> OpId {
        self.ops[&id]
    }
    fn symbol(&self, id: SymbolId) -> SymbolId {
        self.symbols[&id]
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

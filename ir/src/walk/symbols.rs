//! The symbolic dimensions that types, attributes and expressions name.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrsId, DimId, ExprId, SymbolId, TypeId};
use crate::core::expr::Expr;
use crate::tables::attrs::Attr;
use crate::tables::dim::Dim;
use crate::tables::entry::Entry;
use crate::tables::types::{SeenParts, Type, Types};
use crate::walk::attr_walk::AttrWalk;
use crate::walk::parts_first::PartsFirst;

/// A walk over the free symbols of types and attributes that visits each part once.
///
/// Symbols come in order of first appearance, possibly more than once, but not again for parts that
/// were visited before: all walks of one `SymbolWalk` together are linear in the distinct parts.
///
/// ```
/// use anfora_ir::{Source, SymbolWalk, parse_module};
///
/// let text = "def @f(%x: Tensor[(n, m), float32]) -> Tensor[(m,), float32] { sum(%x, axis=[0]) }";
/// let module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let (_, function) = module.functions().next().expect("there is one");
/// let mut walk = SymbolWalk::new();
/// let mut count = 0;
/// for &param in function.body.params() {
///     walk.in_type(&module.cx, function.body.ty(param.expr()), |_| count += 1);
/// }
/// assert_eq!(count, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct SymbolWalk {
    parts: SeenParts,
    attrs: AttrWalk,
}

impl SymbolWalk {
    /// Returns a walk that has not visited anything.
    pub fn new() -> SymbolWalk {
        SymbolWalk::default()
    }

    /// Calls `each` with the symbols of a type.
    pub fn in_type(&mut self, cx: &Context, ty: TypeId, mut each: impl FnMut(SymbolId)) {
        let types = &cx.types;
        types.for_each_new_symbol(ty, &mut self.parts, |dim| symbol_of(types, dim).into_iter().for_each(&mut each));
    }

    /// Calls `each` with the symbols that attributes name, in types and shapes. Functions that are
    /// values of attributes are skipped, since they have symbols of their own.
    pub fn in_attrs(&mut self, cx: &Context, attrs: AttrsId, mut each: impl FnMut(SymbolId)) {
        self.attrs.add(&cx.attrs, attrs);
        while let Some((_, value)) = self.attrs.next(&cx.attrs) {
            match value {
                Attr::Type(ty) => self.in_type(cx, *ty, &mut each),
                Attr::Shape(dims) => {
                    for &dim in dims {
                        cx.types.dims.for_each_new_symbol(dim, self.parts.dims_mut(), |leaf| {
                            symbol_of(&cx.types, leaf).into_iter().for_each(&mut each);
                        });
                    }
                }
                _ => {}
            }
        }
    }

    /// Calls `each` with the symbols that a node itself names: in its type, its attributes, and the
    /// parameters and annotated result of a lambda.
    pub fn in_node(&mut self, cx: &Context, body: &Body, id: ExprId, mut each: impl FnMut(SymbolId)) {
        self.in_type(cx, body.ty(id), &mut each);
        if let Expr::Lambda { lambda, .. } = body.expr(id) {
            body.lambda_params(lambda).for_each(|p| self.in_type(cx, body.ty(p.expr()), &mut each));
        }
        body.for_each_entry(id, |entry| match entry {
            Entry::Type(ty) => self.in_type(cx, ty, &mut each),
            Entry::Attrs(attrs) => self.in_attrs(cx, attrs, &mut each),
            _ => {}
        });
    }
}

fn symbol_of(types: &Types, dim: DimId) -> Option<SymbolId> {
    match *types.dims.get(dim) {
        Dim::Symbol(symbol) => Some(symbol),
        _ => None,
    }
}

/// A cache of the free symbols of types and their parts.
///
/// A part is visited once, however many types contain it. For a constant number of symbols in each
/// type, queries about types that are parts of each other together take linear time.
#[derive(Clone, Default, Debug)]
pub struct FreeSymbols {
    types: FxHashMap<TypeId, Rc<[SymbolId]>>,
    dims: FxHashMap<DimId, Rc<[SymbolId]>>,
}

impl FreeSymbols {
    /// Returns an empty cache.
    pub fn new() -> FreeSymbols {
        FreeSymbols::default()
    }

    /// Returns the free symbols of a type, each once, in order of first appearance.
    pub fn of(&mut self, types: &Types, ty: TypeId) -> Rc<[SymbolId]> {
        if !types.is_symbolic(ty) {
            return Rc::default();
        }
        let mut work = PartsFirst::to(ty);
        let push_parts = |ty: TypeId, stack: &mut Vec<TypeId>| {
            stack.extend(types.get(ty).parts().filter(|part| types.is_symbolic(**part)));
        };
        while let Some(top) = work.next(|ty| self.types.contains_key(&ty), push_parts) {
            let found = match types.get(top) {
                Type::Tensor(tensor) => {
                    let dims: Vec<Rc<[SymbolId]>> = tensor.dims().map(|&d| self.of_dim(types, d)).collect();
                    union(dims.iter())
                }
                ty => union(ty.parts().filter_map(|part| self.types.get(part))),
            };
            self.types.insert(top, found);
        }
        self.types[&ty].clone()
    }

    fn of_dim(&mut self, types: &Types, dim: DimId) -> Rc<[SymbolId]> {
        if let Some(found) = self.dims.get(&dim) {
            return found.clone();
        }
        let mut list = Vec::new();
        let mut seen = FxHashSet::default();
        types.dims.for_each_symbol(dim, |leaf| list.extend(symbol_of(types, leaf).filter(|&s| seen.insert(s))));
        let found: Rc<[SymbolId]> = list.into();
        self.dims.insert(dim, found.clone());
        found
    }
}

/// Returns the symbols of several lists, each once. If one list has all of them, it is shared.
fn union<'a>(lists: impl Iterator<Item = &'a Rc<[SymbolId]>>) -> Rc<[SymbolId]> {
    let mut lists = lists.filter(|list| !list.is_empty());
    let Some(first) = lists.next() else { return Rc::default() };
    let mut more: Vec<SymbolId> = Vec::new();
    let mut seen: Option<FxHashSet<SymbolId>> = None;
    for list in lists.filter(|list| !Rc::ptr_eq(first, list)) {
        let seen = seen.get_or_insert_with(|| first.iter().copied().collect());
        more.extend(list.iter().filter(|&&symbol| seen.insert(symbol)));
    }
    if more.is_empty() { first.clone() } else { first.iter().chain(&more).copied().collect() }
}

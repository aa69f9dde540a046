//! Which types, attributes, constants, symbols and globals of one program stand for which of
//! another.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::context::{Context, GlobalTarget};
use crate::core::entity::{AttrId, AttrsId, DimId, FunctionAttrId, GlobalId, LiteralId, OpId, SymbolId, TypeId};
use crate::core::function::Visibility;
use crate::core::module::Module;
use crate::tables::attrs::Attr;
use crate::tables::dim::{Dim, Dims};
use crate::tables::types::{TensorType, Type};

/// A correspondence between the tables of two programs. It is built up while they are compared and
/// only ever grows: the comparison ends at the first difference, so whatever two things were
/// compared before are equal, and comparing them again takes no time.
pub(super) struct Tables<'a> {
    pub(super) left: &'a Context,
    pub(super) right: &'a Context,
    modules: Option<(&'a Module, &'a Module)>,
    types: FxHashMap<TypeId, TypeId>,
    dims: FxHashMap<DimId, DimId>,
    attrs: FxHashSet<(AttrId, AttrId)>,
    lists: FxHashSet<(AttrsId, AttrsId)>,
    literals: FxHashMap<LiteralId, LiteralId>,
    ops: FxHashMap<OpId, OpId>,
    symbols: FxHashMap<SymbolId, SymbolId>,
    symbols_back: FxHashMap<SymbolId, SymbolId>,
    /// In one program: the symbols that belong to a `fn` under comparison. Others stand for
    /// themselves. Between programs, every symbol may stand for another.
    own: FxHashSet<SymbolId>,
    globals: FxHashMap<GlobalId, GlobalId>,
    globals_back: FxHashMap<GlobalId, GlobalId>,
    /// Private functions that correspond and are still to be compared.
    pub(super) pending_globals: Vec<(GlobalId, GlobalId)>,
    /// Functions in attributes that are still to be compared.
    pub(super) pending_functions: Vec<(FunctionAttrId, FunctionAttrId)>,
    seen_functions: FxHashSet<(FunctionAttrId, FunctionAttrId)>,
    /// Computed dimensions: their terms are in the order of their own program's symbols, so they
    /// are compared when all symbols are known.
    computed: Vec<(DimId, DimId)>,
    work: Vec<Pair>,
}

enum Pair {
    Type(TypeId, TypeId),
    Dim(DimId, DimId),
    Attr(AttrId, AttrId),
}

impl<'a> Tables<'a> {
    pub(super) fn between(left: &'a Module, right: &'a Module) -> Tables<'a> {
        Tables::new(&left.cx, &right.cx, Some((left, right)))
    }

    pub(super) fn within(cx: &'a Context) -> Tables<'a> {
        Tables::new(cx, cx, None)
    }

    fn new(left: &'a Context, right: &'a Context, modules: Option<(&'a Module, &'a Module)>) -> Tables<'a> {
        Tables {
            left,
            right,
            modules,
            types: FxHashMap::default(),
            dims: FxHashMap::default(),
            attrs: FxHashSet::default(),
            lists: FxHashSet::default(),
            literals: FxHashMap::default(),
            ops: FxHashMap::default(),
            symbols: FxHashMap::default(),
            symbols_back: FxHashMap::default(),
            own: FxHashSet::default(),
            globals: FxHashMap::default(),
            globals_back: FxHashMap::default(),
            pending_globals: Vec::new(),
            pending_functions: Vec::new(),
            seen_functions: FxHashSet::default(),
            computed: Vec::new(),
            work: Vec::new(),
        }
    }

    /// Returns true if both programs are one, so that ids mean the same on both sides.
    #[inline]
    pub(super) fn is_within(&self) -> bool {
        self.modules.is_none()
    }

    /// From here on these symbols, of a `fn` of each side, may stand for each other.
    pub(super) fn own_symbols(&mut self, left: &[SymbolId], right: &[SymbolId]) {
        if self.is_within() {
            self.own.extend(left.iter().chain(right));
        }
    }

    #[inline]
    pub(super) fn types(&mut self, l: TypeId, r: TypeId) -> bool {
        if self.is_within() && l == r && (self.own.is_empty() || !self.left.types.is_symbolic(l)) {
            return true;
        }
        if let Some(&known) = self.types.get(&l) {
            return known == r;
        }
        self.work.push(Pair::Type(l, r));
        self.finish()
    }

    #[inline]
    pub(super) fn attrs(&mut self, l: AttrsId, r: AttrsId) -> bool {
        if self.is_within() && l == r && self.own.is_empty() {
            return true;
        }
        if !self.lists.insert((l, r)) {
            return true;
        }
        let (a, b) = (self.left.attrs.list(l), self.right.attrs.list(r));
        if a.len() != b.len() {
            return false;
        }
        for (&(key, value), &(other_key, other)) in a.iter().zip(b) {
            if self.left.names.get(key) != self.right.names.get(other_key) {
                return false;
            }
            self.work.push(Pair::Attr(value, other));
        }
        self.finish()
    }

    pub(super) fn literals(&mut self, l: LiteralId, r: LiteralId) -> bool {
        if self.is_within() {
            return l == r;
        }
        let Tables { left, right, .. } = *self;
        stands_for(&mut self.literals, l, r, || left.literals.get(l) == right.literals.get(r))
    }

    #[inline]
    pub(super) fn ops(&mut self, l: OpId, r: OpId) -> bool {
        if self.is_within() {
            return l == r;
        }
        let Tables { left, right, .. } = *self;
        stands_for(&mut self.ops, l, r, || left.ops.get(l).name == right.ops.get(r).name)
    }

    /// Returns true if two globals stand for each other. Private functions that nothing stood for
    /// yet do from here on, and are compared later.
    pub(super) fn globals(&mut self, l: GlobalId, r: GlobalId) -> bool {
        let Some((left, right)) = self.modules else { return l == r };
        if let Some(&known) = self.globals.get(&l) {
            return known == r;
        }
        if self.globals_back.contains_key(&r) {
            return false;
        }
        match (is_private(left, l), is_private(right, r)) {
            (true, true) => self.pending_globals.push((l, r)),
            (false, false) if self.left.global_name(l) == self.right.global_name(r) => {}
            _ => return false,
        }
        self.globals.insert(l, r);
        self.globals_back.insert(r, l);
        true
    }

    /// Returns the global of the right side that one of the left stands for.
    pub(super) fn global_of_left(&self, l: GlobalId) -> Option<GlobalId> {
        self.globals.get(&l).copied()
    }

    /// Returns true if something stands for a global of the right side.
    pub(super) fn has_right_global(&self, r: GlobalId) -> bool {
        self.globals_back.contains_key(&r)
    }

    fn finish(&mut self) -> bool {
        while let Some(pair) = self.work.pop() {
            let equal = match pair {
                Pair::Type(l, r) => self.type_pair(l, r),
                Pair::Dim(l, r) => self.dim_pair(l, r),
                Pair::Attr(l, r) => self.attr_pair(l, r),
            };
            if !equal {
                self.work.clear();
                return false;
            }
        }
        true
    }

    fn type_pair(&mut self, l: TypeId, r: TypeId) -> bool {
        if let Some(&known) = self.types.get(&l) {
            return known == r;
        }
        self.types.insert(l, r);
        match (self.left.types.get(l), self.right.types.get(r)) {
            (Type::Any, Type::Any) | (Type::Error, Type::Error) => true,
            (Type::Tensor(a), Type::Tensor(b)) => {
                if a.dtype != b.dtype {
                    return false;
                }
                let length = |t: &TensorType| [t.shape.as_ref().map(|s| s.len()), t.elements.as_ref().map(|e| e.len())];
                if length(a) != length(b) {
                    return false;
                }
                self.work.extend(a.dims().zip(b.dims()).map(|(&d, &e)| Pair::Dim(d, e)));
                true
            }
            (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
                self.work.extend(a.iter().zip(b).map(|(&a, &b)| Pair::Type(a, b)));
                true
            }
            (Type::Function(f), Type::Function(g)) if f.params.len() == g.params.len() && f.symbols == g.symbols => {
                self.work.push(Pair::Type(f.ret, g.ret));
                self.work.extend(f.params.iter().zip(&g.params).map(|(&a, &b)| Pair::Type(a, b)));
                true
            }
            _ => false,
        }
    }

    fn dim_pair(&mut self, l: DimId, r: DimId) -> bool {
        match (self.left.types.dims.get(l), self.right.types.dims.get(r)) {
            (Dim::Unknown, Dim::Unknown) => true,
            (Dim::Const(a), Dim::Const(b)) => a == b,
            (Dim::Bound { depth: d, index: i }, Dim::Bound { depth: e, index: j }) => (d, i) == (e, j),
            (Dim::Symbol(a), Dim::Symbol(b)) => self.symbol_pair(*a, *b),
            (Dim::Sum(_), Dim::Sum(_)) | (Dim::Op { .. }, Dim::Op { .. }) => {
                if let Some(&known) = self.dims.get(&l) {
                    return known == r;
                }
                self.dims.insert(l, r);
                self.computed.push((l, r));
                true
            }
            _ => false,
        }
    }

    fn symbol_pair(&mut self, l: SymbolId, r: SymbolId) -> bool {
        match (self.symbols.get(&l), self.symbols_back.get(&r)) {
            (Some(&known), _) => known == r,
            (None, Some(_)) => false,
            (None, None) => {
                if self.is_within() && l != r && !(self.own.contains(&l) && self.own.contains(&r)) {
                    return false;
                }
                self.symbols.insert(l, r);
                self.symbols_back.insert(r, l);
                true
            }
        }
    }

    fn attr_pair(&mut self, l: AttrId, r: AttrId) -> bool {
        if !self.attrs.insert((l, r)) {
            return true;
        }
        match (self.left.attrs.get(l), self.right.attrs.get(r)) {
            (Attr::None, Attr::None) => true,
            (Attr::Bool(a), Attr::Bool(b)) => a == b,
            (Attr::Int(a), Attr::Int(b)) => a == b,
            (Attr::Float(a), Attr::Float(b)) => a == b,
            (Attr::Str(a), Attr::Str(b)) => self.left.names.get(*a) == self.right.names.get(*b),
            (Attr::DType(a), Attr::DType(b)) => a == b,
            (Attr::List(a), Attr::List(b)) if a.len() == b.len() => {
                self.work.extend(a.iter().zip(b).map(|(&a, &b)| Pair::Attr(a, b)));
                true
            }
            (Attr::Shape(a), Attr::Shape(b)) if a.len() == b.len() => {
                self.work.extend(a.iter().zip(b).map(|(&a, &b)| Pair::Dim(a, b)));
                true
            }
            (Attr::Type(a), Attr::Type(b)) => {
                self.work.push(Pair::Type(*a, *b));
                true
            }
            (Attr::Literal(a), Attr::Literal(b)) => self.literals(*a, *b),
            (Attr::Op(a), Attr::Op(b)) => self.ops(*a, *b),
            (Attr::Global(a), Attr::Global(b)) => self.globals(*a, *b),
            (Attr::Function(a), Attr::Function(b)) => {
                if self.is_within() {
                    return a == b;
                }
                if self.seen_functions.insert((*a, *b)) {
                    self.pending_functions.push((*a, *b));
                }
                true
            }
            _ => false,
        }
    }

    /// Compares the computed dimensions that were met, now that all symbols are known to
    /// correspond. Gives the first two that differ.
    pub(super) fn settle(&mut self) -> Option<(DimId, DimId)> {
        let computed = std::mem::take(&mut self.computed);
        let mut scratch: Option<Dims> = None;
        let mut memo = FxHashMap::default();
        for (l, r) in computed {
            if self.is_within() && l == r && self.own.is_empty() {
                continue;
            }
            let scratch = scratch.get_or_insert_with(|| self.left.types.dims.clone());
            if self.rebuild_on_left(scratch, &mut memo, r) != Some(l) {
                return Some((l, r));
            }
        }
        None
    }

    /// A dimension of the right side over the symbols of the left, so that it gets the form that it
    /// has there. `None` if a symbol in it stands for none.
    fn rebuild_on_left(&self, dims: &mut Dims, memo: &mut FxHashMap<DimId, DimId>, right: DimId) -> Option<DimId> {
        let mut stack = vec![right];
        while let Some(&top) = stack.last() {
            if memo.contains_key(&top) {
                stack.pop();
                continue;
            }
            let height = stack.len();
            let dim = self.right.types.dims.get(top);
            stack.extend(dim.parts().filter(|d| !memo.contains_key(d)));
            if stack.len() > height {
                continue;
            }
            let new = match dim {
                Dim::Symbol(s) => dims.symbol(*self.symbols_back.get(s)?),
                dim => dims.rebuild(dim, |part| memo[&part]),
            };
            memo.insert(top, new);
            stack.pop();
        }
        memo.get(&right).copied()
    }
}

/// Returns true if one entry stands for another, as is known, or as they are equal.
#[inline]
fn stands_for<K: Copy + Eq + Hash>(known: &mut FxHashMap<K, K>, l: K, r: K, are_equal: impl FnOnce() -> bool) -> bool {
    if let Some(&known) = known.get(&l) {
        return known == r;
    }
    let equal = are_equal();
    if equal {
        known.insert(l, r);
    }
    equal
}

/// Returns true if a global is a private function, whose name is nobody else's business.
pub(super) fn is_private(module: &Module, global: GlobalId) -> bool {
    match module.cx.globals.get(global).target {
        GlobalTarget::Definition(key) => module.get(key).is_some_and(|f| f.visibility == Visibility::Private),
        _ => false,
    }
}

//! The correspondence of types, attributes, constants, symbols and globals of two programs.

use std::hash::Hash;
use std::mem::discriminant;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::core::context::{Context, GlobalTarget};
use crate::core::entity::{AttrsId, DimId, FunctionAttrId, GlobalId, OpId, SymbolId, TypeId};
use crate::core::function::Visibility;
use crate::core::module::Module;
use crate::tables::dim::{Dim, Dims};
use crate::tables::entry::Entry;
use crate::walk::parts_first::PartsFirst;

/// A correspondence between the tables of two programs. It is built during the comparison and only
/// grows. Entries that were compared before and found equal take no time to compare again. A
/// comparison that goes on after a difference compares entries with [`Tables::agree`], which
/// forgets what it has compared if they differ.
pub(crate) struct Tables<'a> {
    pub(crate) left: &'a Context,
    pub(crate) right: &'a Context,
    modules: Option<(&'a Module, &'a Module)>,
    /// The entries that were compared and have no special rule.
    equal: FxHashSet<(Entry, Entry)>,
    /// The corresponding operators. Most bindings have one, so they are looked up separately.
    ops: FxHashMap<OpId, OpId>,
    dims: FxHashMap<DimId, DimId>,
    symbols: Bijection<SymbolId>,
    /// Within one program: the symbols that belong to a `fn` under comparison. Other symbols
    /// correspond to themselves. Between programs, every symbol may correspond to another.
    own: FxHashSet<SymbolId>,
    globals: Bijection<GlobalId>,
    /// Corresponding private functions that are still to be compared.
    pub(crate) pending_globals: Vec<(GlobalId, GlobalId)>,
    /// Functions in attributes that are still to be compared.
    pub(crate) pending_functions: Vec<(FunctionAttrId, FunctionAttrId)>,
    /// Computed dimensions. Their terms are in the order of their own program's symbols, so they
    /// are compared when all symbols are known.
    computed: Vec<(DimId, DimId)>,
    /// The dimensions of the left side with those that were made of the right side's, and which
    /// those are. They stay true, since symbols only gain partners.
    rebuilt: Option<(Dims, FxHashMap<DimId, DimId>)>,
    work: Vec<(Entry, Entry)>,
    /// The entries that the last call of [`Tables::entries`] has added to `equal`.
    added: Vec<(Entry, Entry)>,
    /// Functions in attributes that were compared and differ.
    different_functions: FxHashSet<(FunctionAttrId, FunctionAttrId)>,
    /// True if entries are in `equal` whose dimensions or functions differ.
    is_open: bool,
    /// The entries added since [`Tables::begin`], if it was called.
    since: Option<AddedSince>,
}

/// The results that may depend on the symbols that correspond since a comparison began.
#[derive(Default)]
struct AddedSince {
    symbols: Vec<(SymbolId, SymbolId)>,
    equal: Vec<(Entry, Entry)>,
    dims: Vec<DimId>,
    rebuilt: Vec<DimId>,
}

/// A correspondence in which each entry has at most one partner.
struct Bijection<K> {
    there: FxHashMap<K, K>,
    back: FxHashMap<K, K>,
}

impl<K: Copy + Eq + Hash> Bijection<K> {
    fn new() -> Bijection<K> {
        Bijection { there: FxHashMap::default(), back: FxHashMap::default() }
    }

    /// Returns true if the entries correspond, false if one of them corresponds to another entry,
    /// and `None` if neither corresponds to anything yet.
    fn relates(&self, l: K, r: K) -> Option<bool> {
        match self.there.get(&l) {
            Some(&known) => Some(known == r),
            None => self.back.contains_key(&r).then_some(false),
        }
    }

    fn relate(&mut self, l: K, r: K) {
        self.there.insert(l, r);
        self.back.insert(r, l);
    }
}

impl<'a> Tables<'a> {
    pub(crate) fn between(left: &'a Module, right: &'a Module) -> Tables<'a> {
        Tables::new(&left.cx, &right.cx, Some((left, right)))
    }

    pub(crate) fn within(cx: &'a Context) -> Tables<'a> {
        Tables::new(cx, cx, None)
    }

    fn new(left: &'a Context, right: &'a Context, modules: Option<(&'a Module, &'a Module)>) -> Tables<'a> {
        Tables {
            left,
            right,
            modules,
            equal: FxHashSet::default(),
            ops: FxHashMap::default(),
            dims: FxHashMap::default(),
            symbols: Bijection::new(),
            own: FxHashSet::default(),
            globals: Bijection::new(),
            pending_globals: Vec::new(),
            pending_functions: Vec::new(),
            computed: Vec::new(),
            rebuilt: None,
            work: Vec::new(),
            added: Vec::new(),
            different_functions: FxHashSet::default(),
            is_open: false,
            since: None,
        }
    }

    /// Begins a comparison that [`Tables::take_back`] can take back.
    pub(crate) fn begin(&mut self) {
        self.since = Some(AddedSince::default());
    }

    /// Forgets the symbols that correspond since [`Tables::begin`], and the entries that were found
    /// equal since then, and begins again. Takes time in proportion to these.
    pub(crate) fn take_back(&mut self) {
        self.abandon();
        let Some(AddedSince { symbols, equal, dims, rebuilt }) = self.since.take() else { return };
        for (l, r) in symbols {
            self.symbols.there.remove(&l);
            self.symbols.back.remove(&r);
        }
        equal.iter().for_each(|pair| _ = self.equal.remove(pair));
        dims.iter().for_each(|dim| _ = self.dims.remove(dim));
        if let Some((_, memo)) = &mut self.rebuilt {
            rebuilt.iter().for_each(|dim| _ = memo.remove(dim));
        }
        self.begin();
    }

    fn relate(&mut self, l: SymbolId, r: SymbolId) {
        self.symbols.relate(l, r);
        if let Some(since) = &mut self.since {
            since.symbols.push((l, r));
        }
    }

    /// Returns true if both programs are the same, so that ids mean the same on both sides.
    #[inline]
    pub(crate) fn is_within(&self) -> bool {
        self.modules.is_none()
    }

    /// Lets these symbols, of a `fn` of each side, correspond to each other from here on.
    pub(crate) fn own_symbols(&mut self, left: &[SymbolId], right: &[SymbolId]) {
        if self.is_within() {
            self.own.extend(left.iter().chain(right));
        }
    }

    /// Returns true if each symbol stands for itself, so that two entries are equal only if they
    /// are the same entry.
    #[inline]
    fn is_one(&self) -> bool {
        self.is_within() && self.own.is_empty()
    }

    #[inline]
    pub(crate) fn types(&mut self, l: TypeId, r: TypeId) -> bool {
        if self.is_one() || self.is_within() && l == r && !self.left.types.is_symbolic(l) {
            return l == r;
        }
        self.entries(Entry::Type(l), Entry::Type(r))
    }

    #[inline]
    pub(crate) fn attrs(&mut self, l: AttrsId, r: AttrsId) -> bool {
        if self.is_one() {
            return l == r;
        }
        let are_empty = l == self.left.attrs.empty() && r == self.right.attrs.empty();
        are_empty || self.entries(Entry::Attrs(l), Entry::Attrs(r))
    }

    #[inline]
    pub(crate) fn ops(&mut self, l: OpId, r: OpId) -> bool {
        if self.is_within() {
            return l == r;
        }
        if let Some(&known) = self.ops.get(&l) {
            return known == r;
        }
        let equal = self.entries(Entry::Op(l), Entry::Op(r));
        if equal {
            self.ops.insert(l, r);
        }
        equal
    }

    /// Returns true if two entries are equal, as far as is known before all symbols and private
    /// functions are compared.
    pub(crate) fn entries(&mut self, l: Entry, r: Entry) -> bool {
        self.added.clear();
        let mut pair = Some((l, r));
        while let Some((l, r)) = pair {
            if !self.pair(l, r) {
                self.work.clear();
                self.forget_last();
                return false;
            }
            pair = self.work.pop();
        }
        true
    }

    /// Returns true if two entries are equal, computed dimensions included: these are compared by
    /// the symbols that are known so far. If the entries differ, their parts may still be equal,
    /// and symbols and private functions in them correspond from here on.
    pub(crate) fn agree(&mut self, l: Entry, r: Entry) -> bool {
        let equal = self.entries(l, r);
        let computed = if self.computed.is_empty() { Vec::new() } else { self.computed.clone() };
        let was_open = self.is_open;
        if equal && self.settle().is_none() {
            return true;
        }
        self.is_open = was_open;
        self.pending_functions.clear();
        self.computed.clear();
        for (dim, _) in computed {
            self.dims.remove(&dim);
        }
        self.forget_last();
        false
    }

    /// Forgets that the entries of the last comparison are equal.
    fn forget_last(&mut self) {
        for pair in self.added.drain(..) {
            self.equal.remove(&pair);
        }
    }

    /// Makes the tables ready for a further comparison after one that has ended at a difference.
    /// Entries whose dimensions or functions remained to be compared may not be equal.
    pub(crate) fn abandon(&mut self) {
        if self.is_open || !self.computed.is_empty() || !self.pending_functions.is_empty() {
            self.equal = FxHashSet::default();
            self.dims = FxHashMap::default();
            self.computed.clear();
            self.pending_functions.clear();
            self.is_open = false;
        }
    }

    /// Records that two functions in attributes differ.
    pub(crate) fn functions_differ(&mut self, l: FunctionAttrId, r: FunctionAttrId) {
        self.different_functions.insert((l, r));
        self.is_open = true;
    }

    /// Compares two entries, and adds the entries that they name to the work.
    fn pair(&mut self, l: Entry, r: Entry) -> bool {
        let (left, right) = (self.left, self.right);
        match (l, r) {
            (Entry::Symbol(l), Entry::Symbol(r)) => return self.symbols(l, r),
            (Entry::Global(l), Entry::Global(r)) => return self.globals(l, r),
            (Entry::Dim(a), Entry::Dim(b)) => match (left.types.dims.get(a), right.types.dims.get(b)) {
                (Dim::Sum(_), Dim::Sum(_)) | (Dim::Op { .. }, Dim::Op { .. }) => return self.computed(a, b),
                _ => return self.heads_and_parts(l, r),
            },
            (Entry::Name(_), Entry::Name(_)) => return self.heads_and_parts(l, r),
            (Entry::Literal(_) | Entry::Op(_) | Entry::Function(_), _) if self.is_within() => return l == r,
            _ if self.equal.contains(&(l, r)) => return true,
            _ => {}
        }
        let is_equal = match (l, r) {
            (Entry::Literal(l), Entry::Literal(r)) => left.literals.get(l) == right.literals.get(r),
            (Entry::Function(l), Entry::Function(r)) => {
                let may_be_equal = !self.different_functions.contains(&(l, r));
                if may_be_equal {
                    self.pending_functions.push((l, r));
                }
                may_be_equal
            }
            _ => discriminant(&l) == discriminant(&r) && self.heads_and_parts(l, r),
        };
        if is_equal {
            self.equal.insert((l, r));
            self.added.push((l, r));
            // Constants name no symbols, and may be large.
            if let Some(since) = self.since.as_mut().filter(|_| !matches!(l, Entry::Literal(_))) {
                since.equal.push((l, r));
            }
        }
        is_equal
    }

    /// Returns true if two entries of one kind are equal, provided that the entries that they name
    /// are equal. Those are added to the work.
    fn heads_and_parts(&mut self, l: Entry, r: Entry) -> bool {
        if l.head(self.left) != r.head(self.right) {
            return false;
        }
        let (mut parts, mut others): (SmallVec<[Entry; 8]>, SmallVec<[Entry; 8]>) = Default::default();
        l.for_each_part(self.left, |part| parts.push(part));
        r.for_each_part(self.right, |part| others.push(part));
        let fit = parts.len() == others.len();
        self.work.extend(parts.into_iter().zip(others));
        fit
    }

    /// Returns true if two globals correspond. Private functions that do not correspond to anything
    /// yet correspond from here on, and are compared later.
    pub(crate) fn globals(&mut self, l: GlobalId, r: GlobalId) -> bool {
        let Some((left, right)) = self.modules else { return l == r };
        if let Some(known) = self.globals.relates(l, r) {
            return known;
        }
        match (is_private(left, l), is_private(right, r)) {
            (true, true) => self.pending_globals.push((l, r)),
            (false, false) if self.left.global_name(l) == self.right.global_name(r) => {}
            _ => return false,
        }
        self.globals.relate(l, r);
        true
    }

    /// Lets two globals correspond from here on.
    pub(crate) fn relate_globals(&mut self, l: GlobalId, r: GlobalId) {
        self.globals.relate(l, r);
    }

    /// Lets two symbols correspond from here on, unless one of them corresponds to a symbol
    /// already.
    pub(crate) fn relate_symbols(&mut self, l: SymbolId, r: SymbolId) {
        if self.symbols.relates(l, r).is_none() {
            self.relate(l, r);
        }
    }

    /// Returns the global of the right side that corresponds to a global of the left side, if there
    /// is one.
    pub(crate) fn global_of_left(&self, l: GlobalId) -> Option<GlobalId> {
        self.globals.there.get(&l).copied()
    }

    /// Returns true if a global of the right side has a corresponding global.
    pub(crate) fn has_right_global(&self, r: GlobalId) -> bool {
        self.globals.back.contains_key(&r)
    }

    /// Records two computed dimensions, to be compared when all symbols are known.
    fn computed(&mut self, l: DimId, r: DimId) -> bool {
        if let Some(&known) = self.dims.get(&l) {
            return known == r;
        }
        self.dims.insert(l, r);
        self.computed.push((l, r));
        if let Some(since) = &mut self.since {
            since.dims.push(l);
        }
        true
    }

    fn symbols(&mut self, l: SymbolId, r: SymbolId) -> bool {
        self.symbols.relates(l, r).unwrap_or_else(|| {
            let may_stand = !self.is_within() || l == r || (self.own.contains(&l) && self.own.contains(&r));
            if may_stand {
                self.relate(l, r);
            }
            may_stand
        })
    }

    /// Compares the recorded computed dimensions, now that all symbols are known. Returns the first
    /// two that differ.
    pub(crate) fn settle(&mut self) -> Option<(DimId, DimId)> {
        let computed = std::mem::take(&mut self.computed);
        if computed.is_empty() {
            return None;
        }
        let (mut dims, mut memo) =
            self.rebuilt.take().unwrap_or_else(|| (self.left.types.dims.clone(), FxHashMap::default()));
        let mut added = Vec::new();
        let differ = |&(l, r): &(DimId, DimId)| self.rebuild_on_left(&mut dims, &mut memo, &mut added, r) != Some(l);
        let first = computed.into_iter().find(differ);
        if let Some(since) = &mut self.since {
            since.rebuilt.append(&mut added);
        }
        self.is_open |= first.is_some();
        self.rebuilt = Some((dims, memo));
        first
    }

    /// Returns a dimension of the right side over the symbols of the left side, in the form that it
    /// has there. `None` if a symbol in it does not correspond to any. Adds the dimensions that are
    /// new in the memo to `added`.
    fn rebuild_on_left(
        &self,
        dims: &mut Dims,
        memo: &mut FxHashMap<DimId, DimId>,
        added: &mut Vec<DimId>,
        right: DimId,
    ) -> Option<DimId> {
        let mut work = PartsFirst::to(right);
        let table = &self.right.types.dims;
        while let Some(top) = work.next(|d| memo.contains_key(&d), |d, stack| stack.extend(table.get(d).parts())) {
            let new = match table.get(top) {
                Dim::Symbol(s) => dims.symbol(*self.symbols.back.get(s)?),
                dim => dims.rebuild(dim, |part| memo[&part]),
            };
            memo.insert(top, new);
            added.push(top);
        }
        memo.get(&right).copied()
    }
}

/// Returns true if a global is a private function, whose name does not count.
pub(crate) fn is_private(module: &Module, global: GlobalId) -> bool {
    match module.cx.globals.get(global).target {
        GlobalTarget::Definition(key) => module.get(key).is_some_and(|f| f.visibility == Visibility::Private),
        _ => false,
    }
}

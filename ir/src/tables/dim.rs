//! Dimensions of tensors: constants, symbols and expressions over them.
//!
//! A dimension is normalised when it is made: to a constant, or to a sum of products of factors,
//! sorted, so that equal sums have equal ids. A factor is a symbol or the result of `floordiv`,
//! `ceildiv`, `mod`, `min` or `max`, whose operands are not combined with the rest of the sum. A
//! sum of more than [`MAX_TERMS`] terms, an overflow or a division by zero is the unknown
//! dimension.

use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::core::entity::{DimId, EntityId, NameId, SymbolId};
use crate::tables::intern::Interner;
use crate::tables::parallel::layers::LayeredArena;
use crate::walk::parts_first::PartsFirst;

/// The largest number of terms that a sum keeps.
pub const MAX_TERMS: usize = 64;

/// A normalised dimension.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// `?`: an unknown dimension. Two unknown dimensions are not known to be equal.
    Unknown,
    /// A constant.
    Const(i64),
    /// A symbolic dimension of a function.
    Symbol(SymbolId),
    /// A symbolic dimension bound by an enclosing function type: the `depth`-th such type from
    /// inside, and its `index`-th symbol by first appearance.
    Bound {
        /// The number of function types between this place and the one that binds the symbol.
        depth: u32,
        /// The number of the symbol in that function type.
        index: u32,
    },
    /// A sum of at least two terms, or of one term that is more than a bare factor.
    Sum(Box<[Term]>),
    /// An operation that is not simplified further.
    Op {
        /// The operation.
        op: DimOp,
        /// First operand.
        lhs: DimId,
        /// Second operand.
        rhs: DimId,
    },
}

impl Dim {
    /// Returns the operands of an operation, or the factors of the terms of a sum; empty for
    /// others.
    pub(crate) fn parts(&self) -> impl DoubleEndedIterator<Item = DimId> {
        let (terms, operands): (&[Term], _) = match *self {
            Dim::Sum(ref terms) => (terms, None),
            Dim::Op { lhs, rhs, .. } => (&[], Some([lhs, rhs])),
            Dim::Unknown | Dim::Const(_) | Dim::Symbol(_) | Dim::Bound { .. } => (&[], None),
        };
        terms.iter().flat_map(|t| t.factors.iter().copied()).chain(operands.into_iter().flatten())
    }
}

/// A coefficient times the product of its factors; a constant if it has no factors.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The coefficient, never 0.
    pub coefficient: i64,
    /// The factors, sorted: symbols, bound symbols and operations.
    pub factors: SmallVec<[DimId; 2]>,
}

impl Term {
    /// Compares two terms by their factors: products of more factors come first, constants last.
    pub(crate) fn compare_factors(&self, other: &Term, compare: impl Fn(DimId, DimId) -> Ordering) -> Ordering {
        other.factors.len().cmp(&self.factors.len()).then_with(|| {
            let mut factors = self.factors.iter().zip(&other.factors).map(|(&x, &y)| compare(x, y));
            factors.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    }
}

/// Compares dimensions by structure, with symbols in the given order. Different ids differ in
/// structure, so a loop that follows the first difference is enough.
pub(crate) fn compare_dims<'d>(
    mut a: DimId,
    mut b: DimId,
    get: impl Fn(DimId) -> &'d Dim,
    symbols: impl Fn(SymbolId, SymbolId) -> Ordering,
) -> Ordering {
    let rank = |dim: &Dim| match dim {
        Dim::Symbol(_) => 0,
        Dim::Bound { .. } => 1,
        Dim::Op { .. } => 2,
        Dim::Sum(_) => 3,
        Dim::Const(_) => 4,
        Dim::Unknown => 5,
    };
    while a != b {
        (a, b) = match (get(a), get(b)) {
            (Dim::Const(x), Dim::Const(y)) => return x.cmp(y),
            (Dim::Symbol(x), Dim::Symbol(y)) => return symbols(*x, *y),
            (Dim::Bound { depth: d, index: i }, Dim::Bound { depth: e, index: j }) => return (d, i).cmp(&(e, j)),
            (Dim::Op { op: p, lhs: l, rhs: r }, Dim::Op { op: q, lhs: m, rhs: s }) => {
                if p != q {
                    return p.cmp(q);
                }
                if l == m { (*r, *s) } else { (*l, *m) }
            }
            (Dim::Sum(x), Dim::Sum(y)) => {
                let mut differing = None;
                for (t, u) in x.iter().zip(y) {
                    let shape = u.factors.len().cmp(&t.factors.len()).then(t.coefficient.cmp(&u.coefficient));
                    if shape != Ordering::Equal {
                        return shape;
                    }
                    differing = t.factors.iter().zip(&u.factors).find(|(f, g)| f != g);
                    if differing.is_some() {
                        break;
                    }
                }
                match differing {
                    Some((&f, &g)) => (f, g),
                    None => return x.len().cmp(&y.len()),
                }
            }
            (x, y) => return rank(x).cmp(&rank(y)),
        };
    }
    Ordering::Equal
}

/// The operations on dimensions other than sums and products.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum DimOp {
    /// Division that rounds down.
    FloorDiv,
    /// Division that rounds up.
    CeilDiv,
    /// Remainder with the sign of the divisor.
    Mod,
    /// The smaller operand.
    Min,
    /// The larger operand.
    Max,
}

impl DimOp {
    /// Every operation.
    pub const ALL: [DimOp; 5] = [DimOp::FloorDiv, DimOp::CeilDiv, DimOp::Mod, DimOp::Min, DimOp::Max];

    /// Returns the name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            DimOp::FloorDiv => "floordiv",
            DimOp::CeilDiv => "ceildiv",
            DimOp::Mod => "mod",
            DimOp::Min => "min",
            DimOp::Max => "max",
        }
    }

    /// Returns the result for constants; `None` on division by zero or overflow.
    pub fn evaluate(self, a: i64, b: i64) -> Option<i64> {
        let floor = |a: i64, b: i64| {
            let q = a.checked_div(b)?;
            Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
        };
        match self {
            DimOp::FloorDiv => floor(a, b),
            DimOp::CeilDiv => floor(a.checked_neg()?, b)?.checked_neg(),
            DimOp::Mod => a.checked_sub(floor(a, b)?.checked_mul(b)?),
            DimOp::Min => Some(a.min(b)),
            DimOp::Max => Some(a.max(b)),
        }
    }
}

/// The kinds of symbols that occur in a dimension or type.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Symbols {
    /// True if a free or bound symbol occurs.
    pub(crate) any: bool,
    /// True if a free symbol occurs: one that no function type inside binds.
    pub(crate) free: bool,
}

impl Symbols {
    /// Returns the kinds of symbols that occur in either of two parts.
    pub(crate) fn and(self, other: Symbols) -> Symbols {
        Symbols { any: self.any || other.any, free: self.free || other.free }
    }
}

/// The dimensions and symbols of a module.
#[derive(Clone)]
pub struct Dims {
    pub(crate) dims: Interner<DimId, Dim, Symbols>,
    /// The name of each symbol. Symbols print with it unless another symbol prints with the same
    /// name.
    pub(crate) symbols: LayeredArena<SymbolId, NameId>,
    unknown: DimId,
}

impl Default for Dims {
    fn default() -> Self {
        let mut dims = Interner::default();
        let unknown = dims.intern_with(Dim::Unknown, |_, _| Symbols::default());
        Dims { dims, symbols: LayeredArena::new(), unknown }
    }
}

type Terms = SmallVec<[Term; 4]>;

impl Dims {
    /// Returns the dimension behind an id.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn get(&self, id: DimId) -> &Dim {
        &self.dims[id]
    }

    /// Returns the unknown dimension `?`.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn unknown(&self) -> DimId {
        self.unknown
    }

    /// Returns a constant dimension.
    ///
    /// Cost: one entry.
    pub fn constant(&mut self, value: i64) -> DimId {
        self.intern(Dim::Const(value))
    }

    /// Returns the value of a dimension, if it is a constant.
    #[inline]
    pub fn as_constant(&self, id: DimId) -> Option<i64> {
        match self.get(id) {
            Dim::Const(c) => Some(*c),
            _ => None,
        }
    }

    /// Returns true if a symbol, free or bound, occurs in the dimension.
    #[inline]
    pub fn is_symbolic(&self, id: DimId) -> bool {
        self.dims.note(id).any
    }

    /// Returns the kinds of symbols that occur in the dimension.
    #[inline]
    pub(crate) fn symbols(&self, id: DimId) -> Symbols {
        *self.dims.note(id)
    }

    /// Makes a symbol, different from all others. It prints as `name`, unless another symbol does.
    ///
    /// Cost: one entry.
    pub fn new_symbol(&mut self, name: NameId) -> SymbolId {
        self.symbols.push(name)
    }

    /// Returns the name that a symbol was made with.
    ///
    /// Cost: one entry.
    pub fn symbol_name(&self, symbol: SymbolId) -> NameId {
        self.symbols[symbol]
    }

    /// Returns the number of symbols.
    ///
    /// Cost: one entry.
    pub fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// Returns a symbol as a dimension.
    pub fn symbol(&mut self, symbol: SymbolId) -> DimId {
        self.intern(Dim::Symbol(symbol))
    }

    /// Returns a symbol bound by a function type.
    ///
    /// Cost: one entry.
    pub fn bound(&mut self, depth: u32, index: u32) -> DimId {
        self.intern(Dim::Bound { depth, index })
    }

    /// Returns the id of a normalised dimension.
    pub(crate) fn intern(&mut self, dim: Dim) -> DimId {
        self.dims.intern_with(dim, |dims, dim| {
            let own = match dim {
                Dim::Bound { .. } => Symbols { any: true, free: false },
                Dim::Symbol(_) => Symbols { any: true, free: true },
                _ => Symbols::default(),
            };
            dim.parts().fold(own, |symbols, part| symbols.and(*dims.note(part)))
        })
    }

    /// Makes a dimension of this or another table anew, and returns it. `part` returns the operands
    /// and factors that it has in this table. The result may have another form, since the order of
    /// terms and factors depends on ids.
    pub(crate) fn rebuild(&mut self, dim: &Dim, part: impl Fn(DimId) -> DimId) -> DimId {
        match dim {
            Dim::Op { op, lhs, rhs } => self.op(*op, part(*lhs), part(*rhs)),
            Dim::Sum(terms) => {
                let mut sum = self.constant(0);
                for term in terms {
                    let mut product = self.constant(term.coefficient);
                    for &factor in &term.factors {
                        product = self.mul(product, part(factor));
                    }
                    sum = self.add(sum, product);
                }
                sum
            }
            leaf => self.intern(leaf.clone()),
        }
    }

    /// Returns `a + b`.
    pub fn add(&mut self, a: DimId, b: DimId) -> DimId {
        self.linear(a, b, 1)
    }

    /// Returns `a - b`.
    pub fn sub(&mut self, a: DimId, b: DimId) -> DimId {
        self.linear(a, b, -1)
    }

    fn linear(&mut self, a: DimId, b: DimId, sign: i64) -> DimId {
        if let (Some(x), Some(y)) = (self.as_constant(a), self.as_constant(b)) {
            let sum = y.checked_mul(sign).and_then(|y| x.checked_add(y));
            return sum.map_or(self.unknown, |c| self.constant(c));
        }
        let (Some(mut terms), Some(other)) = (self.terms(a), self.terms(b)) else { return self.unknown };
        for t in other {
            let Some(coefficient) = t.coefficient.checked_mul(sign) else { return self.unknown };
            terms.push(Term { coefficient, ..t });
        }
        self.sum(terms)
    }

    /// Returns `a * b`.
    pub fn mul(&mut self, a: DimId, b: DimId) -> DimId {
        match (self.as_constant(a), self.as_constant(b)) {
            (Some(x), Some(y)) => return x.checked_mul(y).map_or(self.unknown, |c| self.constant(c)),
            (Some(1), None) => return b,
            (None, Some(1)) => return a,
            (Some(0), None) if b != self.unknown => return a,
            (None, Some(0)) if a != self.unknown => return b,
            _ => {}
        }
        let (Some(x), Some(y)) = (self.terms(a), self.terms(b)) else { return self.unknown };
        if x.len() * y.len() > MAX_TERMS * 4 {
            return self.unknown;
        }
        let mut terms = Terms::new();
        for s in &x {
            for t in &y {
                let Some(coefficient) = s.coefficient.checked_mul(t.coefficient) else { return self.unknown };
                let mut factors = s.factors.clone();
                factors.extend_from_slice(&t.factors);
                if factors.len() > MAX_TERMS {
                    return self.unknown;
                }
                terms.push(Term { coefficient, factors });
            }
        }
        self.sum(terms)
    }

    /// Returns the result of an operation other than a sum or product, folded if its operands are
    /// constants or if it is trivial.
    pub fn op(&mut self, op: DimOp, lhs: DimId, rhs: DimId) -> DimId {
        if lhs == self.unknown || rhs == self.unknown {
            return self.unknown;
        }
        if let (Some(a), Some(b)) = (self.as_constant(lhs), self.as_constant(rhs)) {
            return op.evaluate(a, b).map_or(self.unknown, |c| self.constant(c));
        }
        match op {
            DimOp::Min | DimOp::Max if lhs == rhs => return lhs,
            DimOp::FloorDiv | DimOp::CeilDiv | DimOp::Mod => {
                if let Some(c) = self.as_constant(rhs) {
                    if c == 0 {
                        return self.unknown;
                    }
                    if let Some(terms) = self.terms(lhs)
                        && terms.iter().all(|t| t.coefficient % c == 0 && !(t.coefficient == i64::MIN && c == -1))
                    {
                        if op == DimOp::Mod {
                            return self.constant(0);
                        }
                        let divided = terms.into_iter().map(|t| Term { coefficient: t.coefficient / c, ..t }).collect();
                        return self.sum(divided);
                    }
                }
            }
            _ => {}
        }
        // The operands of commutative operations are sorted.
        let swap = matches!(op, DimOp::Min | DimOp::Max) && self.compare(lhs, rhs) == Ordering::Greater;
        let (lhs, rhs) = if swap { (rhs, lhs) } else { (lhs, rhs) };
        self.intern(Dim::Op { op, lhs, rhs })
    }

    /// Returns the terms of a dimension; `None` for the unknown dimension.
    fn terms(&self, id: DimId) -> Option<Terms> {
        Some(match self.get(id) {
            Dim::Unknown => return None,
            Dim::Const(0) => Terms::new(),
            Dim::Const(c) => smallvec::smallvec![Term { coefficient: *c, factors: SmallVec::new() }],
            Dim::Sum(terms) => terms.iter().cloned().collect(),
            Dim::Symbol(_) | Dim::Bound { .. } | Dim::Op { .. } => {
                smallvec::smallvec![Term { coefficient: 1, factors: smallvec::smallvec![id] }]
            }
        })
    }

    fn sum(&mut self, mut terms: Terms) -> DimId {
        for t in &mut terms {
            t.factors.sort_by(|&a, &b| self.compare(a, b));
        }
        terms.sort_by(|a, b| a.compare_factors(b, |x, y| self.compare(x, y)));
        let mut out = Terms::new();
        for t in terms {
            match out.last_mut() {
                Some(last) if last.factors == t.factors => {
                    let Some(c) = last.coefficient.checked_add(t.coefficient) else { return self.unknown };
                    last.coefficient = c;
                    if c == 0 {
                        out.pop();
                    }
                }
                _ => out.push(t),
            }
        }
        if out.len() > MAX_TERMS {
            return self.unknown;
        }
        match out.as_slice() {
            [] => self.constant(0),
            [t] if t.factors.is_empty() => self.constant(t.coefficient),
            [t] if t.coefficient == 1 && t.factors.len() == 1 => t.factors[0],
            _ => self.intern(Dim::Sum(out.into_vec().into())),
        }
    }

    /// Compares dimensions by structure, and symbols by the order in which they were made (which
    /// follows the program).
    fn compare(&self, a: DimId, b: DimId) -> Ordering {
        compare_dims(a, b, |id| self.get(id), |x, y| x.index().cmp(&y.index()))
    }

    /// Returns the dimension with every symbol replaced by the result of `leaf` (`None` keeps it).
    /// `leaf` is called for [`Dim::Symbol`] and [`Dim::Bound`]. Takes time linear in the distinct
    /// dimensions under `id`.
    pub fn substitute(&mut self, id: DimId, leaf: impl FnMut(&mut Dims, DimId) -> Option<DimId>) -> DimId {
        self.substitute_with(id, 0, &mut FxHashMap::default(), leaf)
    }

    /// Substitutes as [`Dims::substitute`] does. `done` maps dimensions to their earlier results,
    /// each with the number `depth` of the substitution that it was in.
    pub(crate) fn substitute_with(
        &mut self,
        id: DimId,
        depth: u32,
        done: &mut FxHashMap<(DimId, u32), DimId>,
        mut leaf: impl FnMut(&mut Dims, DimId) -> Option<DimId>,
    ) -> DimId {
        if !self.is_symbolic(id) {
            return id;
        }
        let mut work = PartsFirst::to(id);
        while let Some(top) =
            work.next(|d| done.contains_key(&(d, depth)), |d, stack| stack.extend(self.get(d).parts()))
        {
            let dim = self.get(top).clone();
            let new = match dim {
                Dim::Symbol(_) | Dim::Bound { .. } => leaf(self, top).unwrap_or(top),
                dim => self.rebuild(&dim, |d| done[&(d, depth)]),
            };
            done.insert((top, depth), new);
        }
        done[&(id, depth)]
    }

    /// Calls `f` with every symbol (free or bound) in a dimension, in a fixed order, possibly more
    /// than once.
    pub fn for_each_symbol(&self, id: DimId, f: impl FnMut(DimId)) {
        self.for_each_new_symbol(id, &mut FxHashSet::default(), f);
    }

    /// Calls `f` with every symbol of a dimension, except those of dimensions in `seen`, in a fixed
    /// order, possibly more than once.
    pub(crate) fn for_each_new_symbol(&self, id: DimId, seen: &mut FxHashSet<DimId>, mut f: impl FnMut(DimId)) {
        if !self.is_symbolic(id) {
            return;
        }
        let mut stack = vec![id];
        while let Some(d) = stack.pop() {
            match self.get(d) {
                Dim::Symbol(_) | Dim::Bound { .. } => f(d),
                Dim::Unknown | Dim::Const(_) => {}
                computed if seen.insert(d) => stack.extend(computed.parts().rev()),
                _ => {}
            }
        }
    }

    /// Returns the number of dimensions.
    ///
    /// Cost: one entry.
    pub fn len(&self) -> usize {
        self.dims.len()
    }

    /// Takes the layers above the frozen ones.
    pub(crate) fn take_own(&mut self) -> Dims {
        Dims { dims: self.dims.take_own(), symbols: self.symbols.take_own(), unknown: self.unknown }
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.dims.capacity_bytes() + self.symbols.capacity_bytes()
    }

    /// Returns false: the unknown dimension is always there.
    ///
    /// Cost: one entry.
    pub fn is_empty(&self) -> bool {
        false
    }
}

//! The bytes that the values of a type take, with upper bounds for symbolic dimensions.

use anfora_ir::{Context, Dim, DimId, DimOp, Term, Type, TypeId};
use rustc_hash::FxHashMap;

/// The size of a value whose type and bounds do not determine it.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// Values of more bytes count as unbounded: 256 TiB.
const LARGEST: u64 = 1 << 48;

/// Tuples of more fields than this have one storage for all fields.
pub(super) const MAX_FIELDS: usize = 256;

/// Stands for infinity in ranges of extents.
const INFINITE: i128 = 1 << 96;

/// The form of a value in memory.
#[derive(Clone)]
pub(super) enum Layout {
    /// A tensor of so many bytes.
    Tensor(u64),
    /// A tuple of at most [`MAX_FIELDS`] tensors, each with a place of its own.
    Fields(Vec<TypeId>),
    /// A larger or nested tuple of tensors, in one storage of so many bytes.
    Whole(u64),
    /// A value with functions in it, or of an unknown kind.
    Other,
}

/// The sizes of types, each computed once.
pub(super) struct Sizes<'c> {
    cx: &'c Context,
    bounds: FxHashMap<&'c str, i128>,
    alignment: u64,
    /// The bytes of a type; `None` if functions are in it or its kind is unknown.
    bytes: FxHashMap<TypeId, Option<u64>>,
    ranges: FxHashMap<DimId, (i128, i128)>,
}

impl<'c> Sizes<'c> {
    /// Returns the sizes of types under upper bounds of symbols by name. Sizes are multiples of
    /// `alignment`.
    pub(super) fn new(cx: &'c Context, bounds: &'c [(String, i64)], alignment: u64) -> Sizes<'c> {
        let bounds = bounds.iter().map(|(name, bound)| (name.as_str(), i128::from(*bound))).collect();
        Sizes { cx, bounds, alignment, bytes: FxHashMap::default(), ranges: FxHashMap::default() }
    }

    pub(super) fn layout(&mut self, ty: TypeId) -> Layout {
        let cx = self.cx;
        match cx.types.get(ty) {
            Type::Tensor(_) => Layout::Tensor(self.tensor_bytes(ty)),
            Type::Tuple(fields)
                if fields.len() <= MAX_FIELDS && fields.iter().all(|&f| cx.types.as_tensor(f).is_some()) =>
            {
                Layout::Fields(fields.to_vec())
            }
            Type::Tuple(_) => self.tuple_bytes(ty).map_or(Layout::Other, Layout::Whole),
            _ => Layout::Other,
        }
    }

    /// Returns the bytes of a tensor, rounded up to the alignment.
    pub(super) fn tensor_bytes(&mut self, ty: TypeId) -> u64 {
        if let Some(&bytes) = self.bytes.get(&ty) {
            return bytes.unwrap_or(UNBOUNDED);
        }
        let bytes = self.bound(ty).unwrap_or(UNBOUNDED);
        self.bytes.insert(ty, Some(bytes));
        bytes
    }

    fn bound(&mut self, ty: TypeId) -> Option<u64> {
        let tensor = self.cx.types.as_tensor(ty)?;
        let mut elements = 1u64;
        for &dim in tensor.shape.as_ref()? {
            let (_, most) = self.range(dim);
            let most = u64::try_from(most.max(0)).ok().filter(|&most| most <= LARGEST)?;
            elements = elements.checked_mul(most)?;
        }
        let bytes = tensor.dtype.byte_len(usize::try_from(elements).ok()?)? as u64;
        (bytes <= LARGEST).then(|| bytes.next_multiple_of(self.alignment))
    }

    /// Returns the bytes of a tuple with the fields of tuples in it; `None` if functions or values
    /// of an unknown kind are in it. Fields that are one type are counted as often as they occur.
    fn tuple_bytes(&mut self, ty: TypeId) -> Option<u64> {
        let cx = self.cx;
        let mut stack = vec![ty];
        while let Some(&top) = stack.last() {
            if !self.bytes.contains_key(&top) {
                let bytes = match cx.types.get(top) {
                    Type::Tensor(_) => Some(self.tensor_bytes(top)),
                    Type::Tuple(fields) => {
                        let before = stack.len();
                        stack.extend(fields.iter().filter(|f| !self.bytes.contains_key(f)));
                        if stack.len() > before {
                            continue;
                        }
                        let mut sum = Some(0u64);
                        for field in fields {
                            sum = sum.zip(self.bytes[field]).map(|(a, b)| a.saturating_add(b));
                        }
                        sum.map(|sum| if sum > LARGEST { UNBOUNDED } else { sum })
                    }
                    _ => None,
                };
                self.bytes.insert(top, bytes);
            }
            stack.pop();
        }
        self.bytes[&ty]
    }

    /// Returns the smallest and the largest value of a dimension.
    fn range(&mut self, dim: DimId) -> (i128, i128) {
        let cx = self.cx;
        let dims = &cx.types.dims;
        let mut stack = vec![dim];
        while let Some(&top) = stack.last() {
            if !self.ranges.contains_key(&top) {
                let before = stack.len();
                match dims.get(top) {
                    Dim::Sum(terms) => stack.extend(terms.iter().flat_map(|t| t.factors.iter())),
                    Dim::Op { lhs, rhs, .. } => stack.extend([*lhs, *rhs]),
                    _ => {}
                }
                let mut kept = before;
                for i in before..stack.len() {
                    if !self.ranges.contains_key(&stack[i]) {
                        stack[kept] = stack[i];
                        kept += 1;
                    }
                }
                stack.truncate(kept);
                if kept > before {
                    continue;
                }
                let range = match dims.get(top) {
                    Dim::Unknown | Dim::Bound { .. } => (0, INFINITE),
                    Dim::Const(c) => (i128::from(*c), i128::from(*c)),
                    Dim::Symbol(symbol) => {
                        let name = cx.names.get(dims.symbol_name(*symbol));
                        (0, self.bounds.get(name).copied().unwrap_or(INFINITE))
                    }
                    Dim::Sum(terms) => self.sum(terms),
                    Dim::Op { op, lhs, rhs } => operation(*op, self.ranges[lhs], self.ranges[rhs]),
                };
                self.ranges.insert(top, range);
            }
            stack.pop();
        }
        self.ranges[&dim]
    }

    fn sum(&self, terms: &[Term]) -> (i128, i128) {
        let mut sum = (0, 0);
        for term in terms {
            let mut product = (i128::from(term.coefficient), i128::from(term.coefficient));
            for factor in &term.factors {
                product = corners(product, self.ranges[factor], times);
            }
            sum = (clamped(sum.0 + product.0), clamped(sum.1 + product.1));
        }
        sum
    }
}

fn clamped(value: i128) -> i128 {
    value.clamp(-INFINITE, INFINITE)
}

fn times(a: i128, b: i128) -> i128 {
    match a.checked_mul(b) {
        Some(product) => clamped(product),
        None if (a < 0) == (b < 0) => INFINITE,
        None => -INFINITE,
    }
}

/// Returns the range of a function that is monotone in each operand.
fn corners(a: (i128, i128), b: (i128, i128), f: impl Fn(i128, i128) -> i128) -> (i128, i128) {
    let values = [f(a.0, b.0), f(a.0, b.1), f(a.1, b.0), f(a.1, b.1)];
    values.iter().fold((INFINITE, -INFINITE), |(low, high), &v| (low.min(v), high.max(v)))
}

/// Returns the range of an operation on dimensions.
fn operation(op: DimOp, a: (i128, i128), b: (i128, i128)) -> (i128, i128) {
    let is_infinite = |value: i128| value.abs() == INFINITE;
    match op {
        DimOp::Min => (a.0.min(b.0), a.1.min(b.1)),
        DimOp::Max => (a.0.max(b.0), a.1.max(b.1)),
        DimOp::Mod if b.0 > 0 => (0, if a.0 >= 0 { a.1.min(b.1 - 1) } else { b.1 - 1 }),
        DimOp::FloorDiv | DimOp::CeilDiv if b.0 > 0 => {
            let up = i128::from(op == DimOp::CeilDiv);
            // An infinite dividend stays infinite, whatever the divisor is.
            corners(a, b, |a, b| if is_infinite(a) { a } else { (a + up * (b - 1)).div_euclid(b) })
        }
        DimOp::Mod | DimOp::FloorDiv | DimOp::CeilDiv => (-INFINITE, INFINITE),
    }
}

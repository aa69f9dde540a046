//! Types at run time: tests whether a value has a type, and evaluates symbolic dimensions.

use anfora_ir::{Dim, DimId, DimOp, Dims, Literal, SymbolId, TensorType, Type, TypeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::machine::{Machine, Step};
use crate::value::{Entry, Ref, Target};

impl Machine<'_> {
    /// Binds the symbols that stand alone as an extent or an element in a type and have no value
    /// yet. Their values are the corresponding extents and elements of `value`.
    pub(crate) fn bind_symbols(&mut self, value: Ref, ty: TypeId) -> Step<()> {
        let mut found: Vec<(SymbolId, i64)> = Vec::new();
        self.walk(value, ty, |machine, literal, tensor| {
            for_each_number(literal, tensor, |dim, number| {
                // Symbols stand for extents.
                if let Dim::Symbol(symbol) = *machine.cx.types.dims.get(dim)
                    && number >= 0
                {
                    found.push((symbol, i64::try_from(number).unwrap_or(i64::MAX)));
                }
                true
            });
            true
        })?;
        for (symbol, extent) in found {
            if self.symbol(symbol).is_none() {
                self.bind_symbol(symbol, extent)?;
            }
        }
        Ok(())
    }

    /// Returns true if a value has a type. The symbols of the type must be bound.
    pub(crate) fn is_of(&self, value: Ref, ty: TypeId) -> Step<bool> {
        self.walk(value, ty, |machine, literal, tensor| {
            tensor.shape.as_ref().is_none_or(|shape| shape.len() == literal.rank())
                && for_each_number(literal, tensor, |dim, number| {
                    dim == machine.cx.types.dims.unknown() || machine.extent(dim) == Some(number)
                })
        })
    }

    /// Returns true if a value may be of a type whose symbols have no values here: they may be any
    /// extents.
    pub(crate) fn may_be_of(&self, value: Ref, ty: TypeId) -> Step<bool> {
        self.walk(value, ty, |machine, literal, tensor| {
            tensor.shape.as_ref().is_none_or(|shape| shape.len() == literal.rank())
                && for_each_number(literal, tensor, |dim, number| {
                    machine.cx.types.dims.as_constant(dim).is_none_or(|extent| i128::from(extent) == number)
                })
        })
    }

    /// Walks over the parts of a value and a type together. Calls `tensor` on each pair of a tensor
    /// and a tensor type with the same element type. Returns false if a part of the value and its
    /// type are of different kinds, or if `tensor` returned false.
    fn walk(&self, value: Ref, ty: TypeId, mut tensor: impl FnMut(&Self, &Literal, &TensorType) -> bool) -> Step<bool> {
        let types = &self.cx.types;
        let mut seen = FxHashSet::default();
        let mut stack = vec![(value, ty)];
        let mut matches = true;
        while let Some((value, ty)) = stack.pop() {
            matches &= match types.get(ty) {
                Type::Any | Type::Error => true,
                Type::Tensor(t) => match self.tensor(value) {
                    Some(literal) => literal.dtype() == t.dtype && tensor(self, literal, t),
                    None => false,
                },
                Type::Tuple(field_types) => match value.target() {
                    // The value and the type may share parts.
                    _ if !seen.insert((value, ty)) => true,
                    Target::Value(at) => match self.values.entry(at) {
                        Some(Entry::Tuple(fields)) if fields.len() == field_types.len() => {
                            let fields = fields.iter().map(|f| f.as_ref());
                            stack.extend(fields.zip(field_types.iter().copied()).rev());
                            true
                        }
                        _ => false,
                    },
                    _ => false,
                },
                Type::Function(_) => self.is_function_of(value, ty),
            };
        }
        Ok(matches)
    }

    /// Returns true if a value is a function of the type `ty`, as far as the static types tell.
    fn is_function_of(&self, value: Ref, ty: TypeId) -> bool {
        let types = &self.cx.types;
        let actual = match value.target() {
            Target::Global(g) => self.cx.globals.get(g).signature,
            Target::Value(at) => match self.values.entry(at) {
                Some(&Entry::Closure { lambda, activation }) => self.closure_type(lambda, activation),
                Some(Entry::Partial { .. } | Entry::Function) => return true,
                _ => return false,
            },
            Target::Operator => return true,
            _ => return false,
        };
        let Some(actual) = actual else { return true };
        let count = |t: TypeId| types.as_function(t).map(|f| f.params.len());
        // The extents of all symbols are known here, but symbols in a function type are not
        // evaluated.
        types.accepts(ty, actual)
            || ((types.is_symbolic(ty) || types.is_symbolic(actual)) && count(ty) == count(actual))
    }

    /// Returns the value of a dimension. `None` if the value is unknown, overflows, or needs a
    /// symbol without a value.
    pub(crate) fn extent(&self, dim: DimId) -> Option<i128> {
        evaluate_dim(&self.cx.types.dims, dim, |symbol| self.symbol(symbol))
    }

    /// Returns the text of a type for a message, with the values of up to 8 of its symbols.
    pub(crate) fn wanted_text(&self, ty: TypeId) -> String {
        let text = self.cx.type_text(ty);
        let mut known: Vec<String> = Vec::new();
        self.cx.types.for_each_symbol(ty, |dim| {
            if let Dim::Symbol(s) = *self.cx.types.dims.get(dim)
                && let Some(extent) = self.symbol(s)
            {
                let entry = format!("{} = {extent}", self.cx.dim_text(dim));
                if known.len() < 8 && !known.contains(&entry) {
                    known.push(entry);
                }
            }
        });
        if known.is_empty() { text } else { format!("{text} with {}", known.join(", ")) }
    }

    /// Returns a description of a value for a message.
    pub(crate) fn found_text(&self, value: Ref) -> String {
        match (self.tensor(value), value.target()) {
            (Some(literal), _) => {
                let extents: Vec<String> = literal.shape().iter().map(|e| e.to_string()).collect();
                let comma = if extents.len() == 1 { "," } else { "" };
                format!("Tensor[({}{comma}), {}]", extents.join(", "), literal.dtype())
            }
            (None, Target::Value(at)) => match self.values.entry(at) {
                Some(Entry::Tuple(fields)) => format!("a tuple of {}", fields.len()),
                Some(Entry::Absent) | None => "none".into(),
                _ => "a function".into(),
            },
            (None, Target::Absent) => "none".into(),
            _ => "a function".into(),
        }
    }
}

/// Calls `f` with each dimension of a type and the extent or element of the tensor in its place,
/// until `f` returns false. Returns true if `f` never returned false. If the type lists elements,
/// the tensor must also have that number of integer elements.
fn for_each_number(literal: &Literal, tensor: &TensorType, mut f: impl FnMut(DimId, i128) -> bool) -> bool {
    let extents = tensor.shape.iter().flatten().zip(literal.shape());
    for (&dim, &extent) in extents {
        if !f(dim, extent as i128) {
            return false;
        }
    }
    let Some(known) = &tensor.elements else { return true };
    let Some(found) = literal.to_i128s() else { return false };
    known.len() == found.len() && known.iter().zip(found).all(|(&dim, element)| f(dim, element))
}

fn operate(op: DimOp, l: i128, r: i128) -> Option<i128> {
    let (l, r) = (i64::try_from(l).ok()?, i64::try_from(r).ok()?);
    op.evaluate(l, r).map(i128::from)
}

/// Returns the value of a dimension, where `symbol` returns the value of a symbol. `None` if the
/// value is unknown, overflows, or needs a symbol without a value.
pub(crate) fn evaluate_dim(dims: &Dims, dim: DimId, symbol: impl Fn(SymbolId) -> Option<i64>) -> Option<i128> {
    let mut memo: FxHashMap<DimId, Option<i128>> = FxHashMap::default();
    let mut stack = vec![dim];
    while let Some(&top) = stack.last() {
        let depth = stack.len();
        let mut want = |d: DimId| match memo.get(&d) {
            Some(value) => *value,
            None => {
                stack.push(d);
                None
            }
        };
        let value = match dims.get(top) {
            Dim::Unknown | Dim::Bound { .. } => None,
            Dim::Const(c) => Some(i128::from(*c)),
            Dim::Symbol(s) => symbol(*s).map(i128::from),
            Dim::Op { op, lhs, rhs } => {
                let (l, r) = (want(*lhs), want(*rhs));
                l.zip(r).and_then(|(l, r)| operate(*op, l, r))
            }
            Dim::Sum(terms) => terms.iter().try_fold(0i128, |sum, term| {
                let start = i128::from(term.coefficient);
                let product = term.factors.iter().try_fold(start, |product, &f| product.checked_mul(want(f)?))?;
                sum.checked_add(product)
            }),
        };
        if stack.len() == depth {
            memo.insert(top, value);
            stack.pop();
        }
    }
    memo.get(&dim).copied().flatten()
}

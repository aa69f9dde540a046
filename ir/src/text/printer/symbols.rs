//! The names of symbolic dimensions in the text, and the order of the terms of a sum.
//!
//! Every symbol of a function gets its own name. This is the name that it was made with, converted
//! to an identifier, or the next `name_1`, `name_2` … that is free. Sums are ordered by these
//! names, not by ids.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::core::context::Context;
use crate::core::entity::{DimId, SymbolId};
use crate::tables::dim::{Dim, DimOp, Term, compare_dims};
use crate::text::lexer::is_reserved;

use super::words::is_dim_op;

/// The names of the symbols of the functions that are being printed.
#[derive(Default)]
pub(super) struct SymbolNames {
    labels: FxHashMap<SymbolId, usize>,
    texts: Vec<String>,
    /// The names in use, with the last number that was appended to each.
    used: FxHashMap<String, u32>,
    /// The labels of enclosing functions, with the number of texts when the inner function began.
    outer: Vec<(FxHashMap<SymbolId, usize>, usize)>,
    /// The prepared dimensions, with their parts in the order of printing, and their numbers of
    /// nodes.
    canonical: FxHashMap<DimId, (Dim, u32)>,
    /// The numbers in the names of the symbols that the enclosing function types bind. `bound_from`
    /// has the start for each type.
    bound: Vec<u32>,
    bound_from: Vec<usize>,
    next_bound: u32,
}

/// A dimension with more nodes, where shared nodes count at each use, is written as `?`: there are
/// no aliases for dimensions.
const LARGEST: u32 = 1 << 20;

impl SymbolNames {
    /// Clears all names, for the next function.
    pub(super) fn clear(&mut self) {
        if !self.texts.is_empty() {
            *self = SymbolNames::default();
        }
    }

    /// Begins a function within a function, which has symbols of its own.
    pub(super) fn enter(&mut self) {
        self.outer.push((std::mem::take(&mut self.labels), self.texts.len()));
        self.canonical.clear();
    }

    /// Returns to the enclosing function.
    pub(super) fn leave(&mut self) {
        if let Some((labels, texts)) = self.outer.pop() {
            for gone in self.texts.drain(texts..) {
                self.used.remove(&gone);
            }
            self.labels = labels;
            self.canonical.clear();
        }
    }

    /// Returns the index of a symbol's name, and assigns a name if it has none.
    pub(super) fn label(&mut self, cx: &Context, symbol: SymbolId) -> usize {
        if let Some(&at) = self.labels.get(&symbol) {
            return at;
        }
        let mut base: String = cx.names.get(cx.types.dims.symbol_name(symbol)).to_string();
        base = base.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            base.insert(0, '_');
        }
        if is_reserved(&base) || is_dim_op(&base) {
            base.push('_');
        }
        let text = match self.used.get(&base) {
            None => base,
            Some(&last) => {
                let mut n = last;
                let text = loop {
                    n += 1;
                    let text = format!("{base}_{n}");
                    if !self.used.contains_key(&text) {
                        break text;
                    }
                };
                self.used.insert(base, n);
                text
            }
        };
        self.used.insert(text.clone(), 0);
        self.labels.insert(symbol, self.texts.len());
        self.texts.push(text);
        self.texts.len() - 1
    }

    /// Returns the name of a symbol.
    pub(super) fn text(&mut self, cx: &Context, symbol: SymbolId) -> &str {
        let at = self.label(cx, symbol);
        &self.texts[at]
    }

    /// Enters a function type that binds `symbols` symbols.
    pub(super) fn enter_type(&mut self, symbols: u32) {
        self.bound_from.push(self.bound.len());
        for _ in 0..symbols {
            while self.used.contains_key(&format!("n{}", self.next_bound)) {
                self.next_bound += 1;
            }
            self.bound.push(self.next_bound);
            self.next_bound += 1;
        }
    }

    /// Leaves a function type.
    pub(super) fn leave_type(&mut self) {
        let from = self.bound_from.pop().unwrap_or(0);
        self.bound.truncate(from);
        // If two function types side by side had the same name, the type around both would bind it.
        if self.bound_from.is_empty() {
            self.next_bound = 0;
        }
    }

    /// Returns the number in the name of a bound symbol; `None` if no enclosing type binds it.
    pub(super) fn bound(&self, depth: u32, index: u32) -> Option<u32> {
        let scope = self.bound_from.len().checked_sub(1 + depth as usize)?;
        let end = self.bound_from.get(scope + 1).copied().unwrap_or(self.bound.len());
        self.bound[self.bound_from[scope]..end].get(index as usize).copied()
    }

    /// Puts the parts of a dimension, at all depths, into the order of printing. Returns false if
    /// the dimension is too large to be written. Linear in its distinct parts, apart from
    /// comparisons, each of which follows only the first difference.
    pub(super) fn prepare(&mut self, cx: &Context, dim: DimId) -> bool {
        let dims = &cx.types.dims;
        let mut stack = Vec::new();
        if !self.canonical.contains_key(&dim) {
            stack.push((dim, false));
        }
        while let Some((d, parts_done)) = stack.pop() {
            if self.canonical.contains_key(&d) {
                continue;
            }
            match dims.get(d) {
                Dim::Symbol(s) => {
                    self.label(cx, *s);
                }
                Dim::Sum(terms) if parts_done => {
                    let mut terms = terms.clone();
                    for t in &mut terms {
                        t.factors.sort_by(|&a, &b| self.compare(cx, a, b));
                    }
                    terms.sort_by(|a, b| {
                        let sign = |t: &Term| t.coefficient < 0;
                        let by_factors = || a.compare_factors(b, |x, y| self.compare(cx, x, y));
                        sign(a).cmp(&sign(b)).then_with(by_factors)
                    });
                    let size = terms.iter().flat_map(|t| &t.factors).fold(1u32, |n, &f| n.saturating_add(self.size(f)));
                    self.canonical.insert(d, (Dim::Sum(terms), size));
                }
                &Dim::Op { op, lhs, rhs } if parts_done => {
                    let swap = matches!(op, DimOp::Min | DimOp::Max) && self.compare(cx, lhs, rhs) == Ordering::Greater;
                    let (lhs, rhs) = if swap { (rhs, lhs) } else { (lhs, rhs) };
                    let size = self.size(lhs).saturating_add(self.size(rhs)).saturating_add(1);
                    self.canonical.insert(d, (Dim::Op { op, lhs, rhs }, size));
                }
                computed @ (Dim::Sum(_) | Dim::Op { .. }) => {
                    stack.push((d, true));
                    stack.extend(computed.parts().rev().map(|part| (part, false)));
                }
                Dim::Const(_) | Dim::Unknown | Dim::Bound { .. } => {}
            }
        }
        self.size(dim) <= LARGEST
    }

    /// Returns the number of nodes that a prepared dimension has when it is written out.
    fn size(&self, dim: DimId) -> u32 {
        self.canonical.get(&dim).map_or(1, |&(_, size)| size)
    }

    /// Returns a dimension as it is written. If it was prepared, its terms, factors and operands
    /// that may be in any order are ordered by names.
    pub(super) fn written<'a>(&'a self, cx: &'a Context, dim: DimId) -> &'a Dim {
        self.canonical.get(&dim).map_or_else(|| cx.types.dims.get(dim), |(dim, _)| dim)
    }

    /// Compares dimensions whose parts were prepared.
    fn compare(&self, cx: &Context, a: DimId, b: DimId) -> Ordering {
        let name = |s: SymbolId| self.labels.get(&s).map_or("", |&at| self.texts[at].as_str());
        compare_dims(a, b, |dim| self.written(cx, dim), |x, y| name(x).cmp(name(y)))
    }
}

/// A product as it is printed: the sign, the magnitude unless it is 1, and the factors.
pub(super) struct Product {
    pub(super) negative: bool,
    pub(super) magnitude: Option<u64>,
    pub(super) factors: SmallVec<[DimId; 2]>,
}

/// Returns a term as products whose magnitudes fit an int64. This is one product, except for the
/// smallest coefficient.
pub(super) fn products(term: &Term) -> impl Iterator<Item = Product> {
    let magnitude = term.coefficient.unsigned_abs();
    let parts = if magnitude > i64::MAX as u64 { [magnitude - 1, 1] } else { [magnitude, 0] };
    let (negative, factors) = (term.coefficient < 0, term.factors.clone());
    parts.into_iter().filter(|&m| m != 0).map(move |m| Product {
        negative,
        magnitude: (m != 1 || factors.is_empty()).then_some(m),
        factors: factors.clone(),
    })
}

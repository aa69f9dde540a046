//! Types and dimensions.

use crate::core::entity::{DimId, TypeId};
use crate::tables::dim::Dim;
use crate::tables::types::{TensorType, Type};

use super::Printer;
use super::symbols::products;

/// What remains to be printed of a type.
pub(super) enum TypePart {
    Type(TypeId),
    Text(&'static str),
    LeaveFunction,
}

enum DimPart {
    Dim(DimId),
    Text(&'static str),
    Number(u64),
}

impl Printer<'_, '_> {
    /// A type, by its alias if it has one.
    pub(super) fn ty(&mut self, ty: TypeId) {
        match self.cx.types.get(ty) {
            Type::Tensor(t) if self.aliases.of_type(ty).is_none() => self.tensor(t),
            _ => self.type_parts(TypePart::Type(ty)),
        }
    }

    /// A type in full; its parts may be aliases.
    pub(super) fn type_in_full(&mut self, ty: TypeId) {
        let mut parts = std::mem::take(&mut self.type_parts);
        self.composite(ty, &mut parts);
        self.drain_types(parts);
    }

    fn type_parts(&mut self, top: TypePart) {
        let mut parts = std::mem::take(&mut self.type_parts);
        parts.push(top);
        self.drain_types(parts);
    }

    fn drain_types(&mut self, mut parts: Vec<TypePart>) {
        while let Some(part) = parts.pop() {
            match part {
                TypePart::Text(t) => self.out.text(t),
                TypePart::LeaveFunction => self.symbols.leave_type(),
                TypePart::Type(t) => match self.aliases.of_type(t) {
                    Some(n) => {
                        self.out.text("!t");
                        self.out.number(n.into());
                    }
                    None if self.aliases.is_too_large(t) => self.out.text("Any"),
                    None => self.composite(t, &mut parts),
                },
            }
            self.out.pass_on();
        }
        self.type_parts = parts;
    }

    fn composite(&mut self, ty: TypeId, parts: &mut Vec<TypePart>) {
        let list = |parts: &mut Vec<TypePart>, items: &[TypeId]| {
            for (i, &item) in items.iter().enumerate().rev() {
                parts.push(TypePart::Type(item));
                if i > 0 {
                    parts.push(TypePart::Text(", "));
                }
            }
        };
        match self.cx.types.get(ty) {
            // A type with an error in it agrees with everything, as `Any` does; no module without errors has one.
            Type::Any | Type::Error => self.out.text("Any"),
            Type::Tensor(t) => self.tensor(t),
            Type::Tuple(fields) => {
                self.out.ascii(b'(');
                parts.push(TypePart::Text(if fields.len() == 1 { ",)" } else { ")" }));
                list(parts, fields);
            }
            Type::Function(f) => {
                self.out.text("fn(");
                self.symbols.enter_type(f.symbols);
                parts.extend([TypePart::LeaveFunction, TypePart::Type(f.ret), TypePart::Text(") -> ")]);
                list(parts, &f.params);
            }
        }
    }

    fn tensor(&mut self, t: &TensorType) {
        self.out.text("Tensor[");
        match t.shape.as_deref() {
            None => self.out.text("?, "),
            Some(dims) => {
                self.out.ascii(b'(');
                for (i, &d) in dims.iter().enumerate() {
                    if i > 0 {
                        self.out.text(", ");
                    }
                    self.dim(d);
                }
                self.out.text(if dims.len() == 1 { ",), " } else { "), " });
            }
        }
        self.out.text(t.dtype.name());
        if let Some(elements) = &t.elements {
            let is_list = t.shape.as_ref().is_none_or(|s| !s.is_empty());
            self.out.text(if is_list { ", [" } else { ", " });
            for (i, &d) in elements.iter().enumerate() {
                if i > 0 {
                    self.out.text(", ");
                }
                self.dim(d);
            }
            self.out.text(if is_list { "]" } else { "" });
        }
        self.out.ascii(b']');
    }

    /// A dimension.
    pub(super) fn dim(&mut self, dim: DimId) {
        match *self.cx.types.dims.get(dim) {
            Dim::Const(c) if c >= 0 => self.out.number(c as u64),
            Dim::Sum(_) | Dim::Op { .. } => self.computed_dim(dim),
            _ => self.simple_dim(dim),
        }
    }

    fn simple_dim(&mut self, dim: DimId) {
        match *self.cx.types.dims.get(dim) {
            Dim::Symbol(s) => self.out.text(self.symbols.text(self.cx, s)),
            Dim::Bound { depth, index } => match self.symbols.bound(depth, index) {
                Some(n) => {
                    self.out.ascii(b'n');
                    self.out.number(n.into());
                }
                None => self.out.ascii(b'?'),
            },
            Dim::Const(c) if c >= 0 => self.out.number(c as u64),
            // No dimension starts with a sign, and the magnitude of the smallest integer is no integer.
            Dim::Const(i64::MIN) => {
                self.out.text("0 - ");
                self.out.number(i64::MAX as u64);
                self.out.text(" - 1");
            }
            Dim::Const(c) => {
                self.out.text("0 - ");
                self.out.number(c.unsigned_abs());
            }
            Dim::Unknown | Dim::Sum(_) | Dim::Op { .. } => self.out.ascii(b'?'),
        }
    }

    fn computed_dim(&mut self, dim: DimId) {
        if !self.symbols.prepare(self.cx, dim) {
            return self.out.ascii(b'?');
        }
        let mut parts = vec![DimPart::Dim(dim)];
        while let Some(part) = parts.pop() {
            self.out.pass_on();
            let d = match part {
                DimPart::Text(t) => {
                    self.out.text(t);
                    continue;
                }
                DimPart::Number(n) => {
                    self.out.number(n);
                    continue;
                }
                DimPart::Dim(d) => d,
            };
            match self.cx.types.dims.get(d) {
                Dim::Op { op, .. } => {
                    let Some((lhs, rhs)) = self.symbols.operands(d) else { continue };
                    self.out.text(op.name());
                    self.out.ascii(b'(');
                    parts.extend([DimPart::Text(")"), DimPart::Dim(rhs), DimPart::Text(", "), DimPart::Dim(lhs)]);
                }
                Dim::Sum(_) => {
                    let from = parts.len();
                    let all = self.symbols.terms(d).iter().flat_map(products);
                    for (i, product) in all.enumerate() {
                        match (i, product.negative) {
                            (0, false) => {}
                            (0, true) => parts.push(DimPart::Text("0 - ")),
                            (_, false) => parts.push(DimPart::Text(" + ")),
                            (_, true) => parts.push(DimPart::Text(" - ")),
                        }
                        parts.extend(product.magnitude.map(DimPart::Number));
                        for (j, &f) in product.factors.iter().enumerate() {
                            if j > 0 || product.magnitude.is_some() {
                                parts.push(DimPart::Text(" * "));
                            }
                            let sum = matches!(self.cx.types.dims.get(f), Dim::Sum(_));
                            parts.extend(sum.then_some(DimPart::Text("(")));
                            parts.push(DimPart::Dim(f));
                            parts.extend(sum.then_some(DimPart::Text(")")));
                        }
                    }
                    parts[from..].reverse();
                }
                _ => self.simple_dim(d),
            }
        }
    }

    /// Gives the symbols of a type their names, so that what the type is printed beside does not take them.
    pub(super) fn name_symbols(&mut self, ty: TypeId) {
        if self.cx.types.is_symbolic(ty) {
            let (cx, symbols) = (self.cx, &mut self.symbols);
            cx.types.for_each_symbol(ty, |d| {
                if let Dim::Symbol(s) = *cx.types.dims.get(d) {
                    symbols.label(cx, s);
                }
            });
        }
    }
}

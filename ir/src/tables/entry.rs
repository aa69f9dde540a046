//! Entries of the tables of a module, and the entries that each of them names.
//!
//! Types, dimensions and attributes are made of one another and of names, symbols, constants,
//! operators, globals and functions. Code that walks entries of any kind uses
//! [`Entry::for_each_part`]; code that rebuilds them over other ids uses a
//! [`Translate`](crate::core::translate::Translate).

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{
    AttrId, AttrsId, DimId, ExprId, FunctionAttrId, GlobalId, LiteralId, NameId, OpId, SymbolId, TypeId,
};
use crate::core::expr::Expr;
use crate::tables::attrs::Attr;
use crate::tables::dim::Dim;
use crate::tables::types::{TensorType, Type};

/// An entry of one of the tables of a module.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Entry {
    Name(NameId),
    Symbol(SymbolId),
    Dim(DimId),
    Type(TypeId),
    Literal(LiteralId),
    Op(OpId),
    Global(GlobalId),
    Attr(AttrId),
    /// A list of named attributes.
    Attrs(AttrsId),
    /// A function that is the value of an attribute.
    Function(FunctionAttrId),
}

/// The contents of an entry besides the entries that it names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct EntryHead<'a> {
    /// A number for the kind of entry, which tells apart entries with equal parts.
    pub(crate) kind: u64,
    /// The numbers in the entry, the same on every machine.
    pub(crate) numbers: [u64; 3],
    pub(crate) text: &'a str,
}

impl Entry {
    /// Returns the contents of the entry besides the entries that it names. The contents of
    /// constants are not included, nor is the way in which a dimension is computed from others.
    pub(crate) fn head(self, cx: &Context) -> EntryHead<'_> {
        let mut text = "";
        let (kind, numbers) = match self {
            Entry::Name(name) => {
                text = cx.names.get(name);
                (0, [0; 3])
            }
            Entry::Op(op) => {
                text = &cx.ops.get(op).name;
                (1, [0; 3])
            }
            Entry::Symbol(_) => (2, [0; 3]),
            Entry::Literal(_) => (3, [0; 3]),
            Entry::Global(_) => (4, [0; 3]),
            Entry::Function(_) => (5, [0; 3]),
            Entry::Attrs(_) => (6, [0; 3]),
            Entry::Dim(dim) => match *cx.types.dims.get(dim) {
                Dim::Unknown => (10, [0; 3]),
                Dim::Const(value) => (11, [value as u64, 0, 0]),
                Dim::Bound { depth, index } => (12, [u64::from(depth), u64::from(index), 0]),
                Dim::Symbol(_) => (13, [0; 3]),
                Dim::Sum(_) => (14, [0; 3]),
                Dim::Op { op, .. } => (15, [op as u64, 0, 0]),
            },
            Entry::Type(ty) => match cx.types.get(ty) {
                Type::Any => (20, [0; 3]),
                Type::Error => (21, [0; 3]),
                Type::Tensor(TensorType { dtype, shape, elements }) => {
                    let rank = shape.as_ref().map_or(0, |shape| shape.len() as u64 + 1);
                    let known = elements.as_ref().map_or(0, |elements| elements.len() as u64 + 1);
                    (22, [*dtype as u64, rank, known])
                }
                Type::Tuple(_) => (23, [0; 3]),
                Type::Function(f) => (24, [u64::from(f.symbols), 0, 0]),
            },
            Entry::Attr(attr) => match *cx.attrs.get(attr) {
                Attr::None => (30, [0; 3]),
                Attr::Bool(value) => (31, [u64::from(value), 0, 0]),
                Attr::Int(value) => (32, [value as u64, 0, 0]),
                Attr::Float(bits) => (33, [bits, 0, 0]),
                Attr::DType(dtype) => (34, [dtype as u64, 0, 0]),
                Attr::List(_) => (35, [0; 3]),
                Attr::Shape(_) => (36, [0; 3]),
                Attr::Str(_) => (37, [0; 3]),
                Attr::Literal(_) => (38, [0; 3]),
                Attr::Type(_) => (39, [0; 3]),
                Attr::Function(_) => (40, [0; 3]),
                Attr::Global(_) => (41, [0; 3]),
                Attr::Op(_) => (42, [0; 3]),
            },
        };
        EntryHead { kind, numbers, text }
    }

    /// Calls `each` with the entries that this one names, in order of appearance. For a function it
    /// calls `each` with nothing, since a function names entries through its body; callers walk
    /// that themselves.
    pub(crate) fn for_each_part(self, cx: &Context, mut each: impl FnMut(Entry)) {
        match self {
            Entry::Name(_) | Entry::Literal(_) | Entry::Op(_) | Entry::Function(_) => {}
            Entry::Symbol(symbol) => each(Entry::Name(cx.types.dims.symbol_name(symbol))),
            Entry::Dim(dim) => match cx.types.dims.get(dim) {
                Dim::Symbol(symbol) => each(Entry::Symbol(*symbol)),
                dim => dim.parts().for_each(|part| each(Entry::Dim(part))),
            },
            Entry::Type(ty) => {
                let ty = cx.types.get(ty);
                ty.dims().for_each(|&dim| each(Entry::Dim(dim)));
                ty.parts().for_each(|&part| each(Entry::Type(part)));
            }
            Entry::Global(global) => {
                let global = cx.globals.get(global);
                each(Entry::Name(global.name));
                global.signature.into_iter().for_each(|signature| each(Entry::Type(signature)));
            }
            Entry::Attrs(list) => {
                for &(name, value) in cx.attrs.list(list) {
                    each(Entry::Name(name));
                    each(Entry::Attr(value));
                }
            }
            Entry::Attr(attr) => match cx.attrs.get(attr) {
                Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::DType(_) => {}
                Attr::Str(text) => each(Entry::Name(*text)),
                Attr::List(items) => items.iter().for_each(|&item| each(Entry::Attr(item))),
                Attr::Shape(dims) => dims.iter().for_each(|&dim| each(Entry::Dim(dim))),
                Attr::Literal(literal) => each(Entry::Literal(*literal)),
                Attr::Type(ty) => each(Entry::Type(*ty)),
                Attr::Function(function) => each(Entry::Function(*function)),
                Attr::Global(global) => each(Entry::Global(*global)),
                Attr::Op(op) => each(Entry::Op(*op)),
            },
        }
    }
}

impl Body {
    /// Calls `each` with the entries that a node itself names, except its type and its metadata, in
    /// order of appearance.
    #[inline]
    pub(crate) fn for_each_entry(&self, id: ExprId, mut each: impl FnMut(Entry)) {
        match self.expr(id) {
            Expr::Var { name, .. } => name.into_iter().for_each(|name| each(Entry::Name(name))),
            Expr::Literal(literal) => each(Entry::Literal(literal)),
            Expr::Global(global) => each(Entry::Global(global)),
            Expr::Op(op) => each(Entry::Op(op)),
            Expr::CallOp { op, attrs, .. } => {
                each(Entry::Op(op));
                each(Entry::Attrs(attrs));
            }
            Expr::Call { attrs, .. } => each(Entry::Attrs(attrs)),
            Expr::Lambda { lambda, .. } => {
                let data = self.lambda(lambda);
                self.lambda_symbols(lambda).iter().for_each(|&symbol| each(Entry::Symbol(symbol)));
                data.ret.into_iter().for_each(|ty| each(Entry::Type(ty)));
                each(Entry::Attrs(data.attrs));
            }
            Expr::Tuple(_) | Expr::Proj { .. } | Expr::Let { .. } | Expr::If { .. } | Expr::None => {}
        }
    }
}

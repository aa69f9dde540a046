//! Giving functions and attributes other ids into the tables of a module: the one list of the places
//! where they have some.

use crate::core::body::Span;
use crate::core::entity::{
    AttrId, AttrsId, DimId, FunctionAttrId, GlobalId, LiteralId, NameId, OpId, SymbolId, TypeId,
};
use crate::core::expr::{Expr, LambdaData};
use crate::core::function::Function;
use crate::tables::attrs::Attr;

/// What the ids of the shared tables become. An id of which nothing is said stays.
pub(crate) trait Translate {
    #[inline(always)]
    fn name(&mut self, id: NameId) -> NameId {
        id
    }
    #[inline(always)]
    fn ty(&mut self, id: TypeId) -> TypeId {
        id
    }
    #[inline(always)]
    fn attrs(&mut self, id: AttrsId) -> AttrsId {
        id
    }
    #[inline(always)]
    fn literal(&mut self, id: LiteralId) -> LiteralId {
        id
    }
    #[inline(always)]
    fn global(&mut self, id: GlobalId) -> GlobalId {
        id
    }
    #[inline(always)]
    fn op(&mut self, id: OpId) -> OpId {
        id
    }
    #[inline(always)]
    fn symbol(&mut self, id: SymbolId) -> SymbolId {
        id
    }
    #[inline(always)]
    fn dim(&mut self, id: DimId) -> DimId {
        id
    }
    /// What the value of an attribute becomes.
    #[inline(always)]
    fn value(&mut self, id: AttrId) -> AttrId {
        id
    }
    /// What a function that is the value of an attribute becomes.
    #[inline(always)]
    fn function(&mut self, id: FunctionAttrId) -> FunctionAttrId {
        id
    }
    /// Where a node starts in the source text of the new tables.
    #[inline(always)]
    fn span(&mut self, span: Span) -> Span {
        span
    }
    /// Comes to a `fn` that owns these symbols, before anything that names them.
    #[inline(always)]
    fn enter_lambda(&mut self, _symbols: &[SymbolId]) {}
}

/// The tables stay.
pub(crate) struct SameTables;

impl Translate for SameTables {}

/// A node with the ids that it has itself translated. Those of expressions stay.
#[inline(always)]
pub(crate) fn translate_expr(expr: Expr, tables: &mut impl Translate) -> Expr {
    match expr {
        Expr::Var { name, flags } => Expr::Var { name: name.map(|n| tables.name(n)), flags },
        Expr::CallOp { op, operands, attrs } => {
            Expr::CallOp { op: tables.op(op), operands, attrs: tables.attrs(attrs) }
        }
        Expr::Call { operands, attrs } => Expr::Call { operands, attrs: tables.attrs(attrs) },
        Expr::Literal(l) => Expr::Literal(tables.literal(l)),
        Expr::Global(g) => Expr::Global(tables.global(g)),
        Expr::Op(op) => Expr::Op(tables.op(op)),
        Expr::Tuple(_) | Expr::Proj { .. } | Expr::Let { .. } | Expr::If { .. } | Expr::Lambda { .. } | Expr::None => {
            expr
        }
    }
}

/// What a `fn` says besides its block, translated.
pub(crate) fn translate_lambda(data: LambdaData, tables: &mut impl Translate) -> LambdaData {
    let LambdaData { params, ret, attrs } = data;
    LambdaData { params, ret: ret.map(|t| tables.ty(t)), attrs: tables.attrs(attrs) }
}

/// Translates what a function has besides its body.
pub(crate) fn translate_head(function: &mut Function, tables: &mut impl Translate) {
    let Function { global, visibility: _, ret, attrs, meta, body: _, kind: _, span } = function;
    *span = tables.span(*span);
    *global = global.map(|g| tables.global(g));
    *ret = ret.map(|t| tables.ty(t));
    *attrs = tables.attrs(*attrs);
    *meta = tables.attrs(*meta);
}

/// Returns the value of an attribute, translated.
pub(crate) fn translate_attr(attr: &Attr, tables: &mut impl Translate) -> Attr {
    match attr {
        Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::DType(_) => attr.clone(),
        Attr::Str(text) => Attr::Str(tables.name(*text)),
        Attr::List(items) => Attr::List(items.iter().map(|&item| tables.value(item)).collect()),
        Attr::Shape(shape) => Attr::Shape(shape.iter().map(|&dim| tables.dim(dim)).collect()),
        Attr::Literal(literal) => Attr::Literal(tables.literal(*literal)),
        Attr::Type(ty) => Attr::Type(tables.ty(*ty)),
        Attr::Function(function) => Attr::Function(tables.function(*function)),
        Attr::Global(global) => Attr::Global(tables.global(*global)),
        Attr::Op(op) => Attr::Op(tables.op(*op)),
    }
}

/// Returns a list of named attributes, translated.
pub(crate) fn translate_list(list: &[(NameId, AttrId)], tables: &mut impl Translate) -> Box<[(NameId, AttrId)]> {
    list.iter().map(|&(name, value)| (tables.name(name), tables.value(value))).collect()
}

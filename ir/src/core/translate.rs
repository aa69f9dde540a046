//! The entries of the tables that a function names, listed and given other ids: the one list of the
//! places where it has some.

use crate::core::body::Body;
use crate::core::entity::{
    AttrId, AttrsId, DimId, ExprId, FunctionAttrId, GlobalId, LiteralId, NameId, OpId, SymbolId, TypeId,
};
use crate::core::expr::{Expr, LambdaData};
use crate::core::function::Function;
use crate::tables::attrs::Attr;
use crate::tables::entry::Entry;
use crate::tables::types::Type;

/// The new ids of entries of the shared tables. Entries keep their ids unless a method says
/// otherwise.
pub(crate) trait Translate {
    fn name(&self, id: NameId) -> NameId {
        id
    }
    fn ty(&self, id: TypeId) -> TypeId {
        id
    }
    fn attrs(&self, id: AttrsId) -> AttrsId {
        id
    }
    fn literal(&self, id: LiteralId) -> LiteralId {
        id
    }
    fn global(&self, id: GlobalId) -> GlobalId {
        id
    }
    fn op(&self, id: OpId) -> OpId {
        id
    }
    fn symbol(&self, id: SymbolId) -> SymbolId {
        id
    }
    fn dim(&self, id: DimId) -> DimId {
        id
    }
    fn attr(&self, id: AttrId) -> AttrId {
        id
    }
    fn function(&self, id: FunctionAttrId) -> FunctionAttrId {
        id
    }
}

/// Returns a node with the ids that it has itself translated. Those of expressions stay.
#[inline(always)]
pub(crate) fn translate_expr(expr: Expr, tables: &impl Translate) -> Expr {
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

/// Calls `each` with the entries that a node names: by its type, its metadata and itself, and by
/// what a `fn` says besides its block.
pub(crate) fn entries_of_node(body: &Body, id: ExprId, mut each: impl FnMut(Entry)) {
    each(Entry::Type(body.ty(id)));
    match body.expr(id) {
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
            let LambdaData { params: _, ret, attrs } = body.lambda(lambda);
            ret.into_iter().for_each(|ret| each(Entry::Type(ret)));
            each(Entry::Attrs(attrs));
            body.lambda_symbols(lambda).iter().for_each(|&symbol| each(Entry::Symbol(symbol)));
        }
        Expr::Tuple(_) | Expr::Proj { .. } | Expr::Let { .. } | Expr::If { .. } | Expr::None => {}
    }
    body.meta(id).into_iter().for_each(|meta| each(Entry::Attrs(meta)));
}

/// Returns what a `fn` says besides its block, translated.
pub(crate) fn translate_lambda(data: LambdaData, tables: &impl Translate) -> LambdaData {
    let LambdaData { params, ret, attrs } = data;
    LambdaData { params, ret: ret.map(|t| tables.ty(t)), attrs: tables.attrs(attrs) }
}

/// Translates what a function has besides its body.
pub(crate) fn translate_head(function: &mut Function, tables: &impl Translate) {
    let Function { global, visibility: _, ret, attrs, meta, body: _, kind: _, span: _ } = function;
    *global = global.map(|g| tables.global(g));
    *ret = ret.map(|t| tables.ty(t));
    *attrs = tables.attrs(*attrs);
    *meta = tables.attrs(*meta);
}

/// Calls `each` with the entries that a function names besides those of its body.
pub(crate) fn entries_of_head(function: &Function, mut each: impl FnMut(Entry)) {
    let Function { global, visibility: _, ret, attrs, meta, body: _, kind: _, span: _ } = function;
    global.iter().for_each(|&global| each(Entry::Global(global)));
    ret.iter().for_each(|&ret| each(Entry::Type(ret)));
    [*attrs, *meta].into_iter().for_each(|list| each(Entry::Attrs(list)));
}

/// Returns a type with its parts translated.
pub(crate) fn translate_type(ty: &Type, tables: &impl Translate) -> Type {
    ty.with_parts(|dim| tables.dim(dim), |part| tables.ty(part))
}

/// Returns an attribute value with its parts translated.
pub(crate) fn translate_attr(attr: &Attr, tables: &impl Translate) -> Attr {
    match attr {
        Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::DType(_) => attr.clone(),
        Attr::Str(text) => Attr::Str(tables.name(*text)),
        Attr::List(items) => Attr::List(items.iter().map(|&item| tables.attr(item)).collect()),
        Attr::Shape(dims) => Attr::Shape(dims.iter().map(|&dim| tables.dim(dim)).collect()),
        Attr::Literal(literal) => Attr::Literal(tables.literal(*literal)),
        Attr::Type(ty) => Attr::Type(tables.ty(*ty)),
        Attr::Function(function) => Attr::Function(tables.function(*function)),
        Attr::Global(global) => Attr::Global(tables.global(*global)),
        Attr::Op(op) => Attr::Op(tables.op(*op)),
    }
}

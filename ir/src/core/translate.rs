//! Giving functions, types and attributes other ids into the tables of a module: the one list of
//! the places where they have some.

use crate::core::body::Span;
use crate::core::entity::{
    AttrId, AttrsId, DimId, EntityId, FunctionAttrId, GlobalId, LiteralId, NameId, OpId, SymbolId, TypeId,
};
use crate::core::expr::{Expr, LambdaData};
use crate::core::function::Function;
use crate::tables::attrs::Attr;
use crate::tables::types::Type;

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
    /// Where a node starts in the source text of the new tables.
    #[inline(always)]
    fn span(&mut self, span: Span) -> Span {
        span
    }
    /// Comes to a `fn` that owns these symbols, before anything that names them.
    #[inline(always)]
    fn enter_lambda(&mut self, _symbols: &[SymbolId]) {}
}

/// A map from ids of one kind to those that take their places.
pub(crate) trait IdMap<K> {
    /// Returns a map that knows nothing yet, for what is in a table. `len` says how far the table
    /// reaches, in the way of the map.
    fn with_len(len: usize) -> Self;

    /// Returns what an id becomes, which is known.
    fn translated(&self, id: K) -> K;
}

/// A kind of maps.
pub(crate) trait IdMaps {
    /// A map of ids of a kind.
    type Map<K: EntityId>: IdMap<K>;
}

/// What the ids of each kind become.
pub(crate) struct EntryIds<M: IdMaps> {
    pub(crate) names: M::Map<NameId>,
    pub(crate) symbols: M::Map<SymbolId>,
    pub(crate) dims: M::Map<DimId>,
    pub(crate) types: M::Map<TypeId>,
    pub(crate) literals: M::Map<LiteralId>,
    pub(crate) ops: M::Map<OpId>,
    pub(crate) globals: M::Map<GlobalId>,
    pub(crate) values: M::Map<AttrId>,
    pub(crate) lists: M::Map<AttrsId>,
    pub(crate) functions: M::Map<FunctionAttrId>,
}

impl<M: IdMaps> EntryIds<M> {
    /// Returns a type, translated.
    pub(crate) fn translate_type(&self, ty: &Type) -> Type {
        ty.with_parts(|dim| self.dims.translated(dim), |part| self.types.translated(part))
    }

    /// Returns the value of an attribute, translated.
    pub(crate) fn translate_attr(&self, attr: &Attr) -> Attr {
        match attr {
            Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::DType(_) => attr.clone(),
            Attr::Str(text) => Attr::Str(self.names.translated(*text)),
            Attr::List(items) => Attr::List(items.iter().map(|&item| self.values.translated(item)).collect()),
            Attr::Shape(shape) => Attr::Shape(shape.iter().map(|&dim| self.dims.translated(dim)).collect()),
            Attr::Literal(literal) => Attr::Literal(self.literals.translated(*literal)),
            Attr::Type(ty) => Attr::Type(self.types.translated(*ty)),
            Attr::Function(function) => Attr::Function(self.functions.translated(*function)),
            Attr::Global(global) => Attr::Global(self.globals.translated(*global)),
            Attr::Op(op) => Attr::Op(self.ops.translated(*op)),
        }
    }

    /// Returns a list of named attributes, translated.
    pub(crate) fn translate_list(&self, list: &[(NameId, AttrId)]) -> Box<[(NameId, AttrId)]> {
        list.iter().map(|&(name, value)| (self.names.translated(name), self.values.translated(value))).collect()
    }
}

impl<M: IdMaps> Translate for &EntryIds<M> {
    #[inline(always)]
    fn name(&mut self, id: NameId) -> NameId {
        self.names.translated(id)
    }
    #[inline(always)]
    fn ty(&mut self, id: TypeId) -> TypeId {
        self.types.translated(id)
    }
    #[inline(always)]
    fn attrs(&mut self, id: AttrsId) -> AttrsId {
        self.lists.translated(id)
    }
    #[inline(always)]
    fn literal(&mut self, id: LiteralId) -> LiteralId {
        self.literals.translated(id)
    }
    #[inline(always)]
    fn global(&mut self, id: GlobalId) -> GlobalId {
        self.globals.translated(id)
    }
    #[inline(always)]
    fn op(&mut self, id: OpId) -> OpId {
        self.ops.translated(id)
    }
    #[inline(always)]
    fn symbol(&mut self, id: SymbolId) -> SymbolId {
        self.symbols.translated(id)
    }
}

/// The tables stay.
pub(crate) struct SameTables;

impl Translate for SameTables {}

/// Returns a node with the ids that it has itself translated. Those of expressions stay.
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

//! Translation of functions, types and attributes to the ids of other tables. This is the only list
//! of the places that hold such ids.

use crate::core::body::Span;
use crate::core::entity::{
    AttrId, AttrsId, DimId, EntityId, FunctionAttrId, GlobalId, LiteralId, NameId, OpId, SymbolId, TypeId,
};
use crate::core::expr::{Expr, LambdaData};
use crate::core::function::Function;
use crate::tables::attrs::Attr;
use crate::tables::types::Type;

/// Declares [`Translate`] from its ids: each has a method, and a map in [`EntryIds`].
macro_rules! translate {
    ($($method:ident: $id:ty = $map:ident;)*) => {
        /// A translation of ids of the shared tables. An id without a translation stays.
        pub(crate) trait Translate {
            $(
                #[inline(always)]
                fn $method(&mut self, id: $id) -> $id {
                    id
                }
            )*
            /// Returns the position at which a node starts in the source text of the new tables.
            #[inline(always)]
            fn span(&mut self, span: Span) -> Span {
                span
            }
            /// Is called for a `fn` that owns these symbols, before anything that names them.
            #[inline(always)]
            fn enter_lambda(&mut self, _symbols: &[SymbolId]) {}
        }

        impl<M: IdMaps> Translate for &EntryIds<M> {
            $(
                #[inline(always)]
                fn $method(&mut self, id: $id) -> $id {
                    self.$map.translated(id)
                }
            )*
        }
    };
}

translate! {
    name: NameId = names;
    ty: TypeId = types;
    attrs: AttrsId = lists;
    literal: LiteralId = literals;
    global: GlobalId = globals;
    op: OpId = ops;
    symbol: SymbolId = symbols;
}

/// A map from ids of one kind to their translations.
pub(crate) trait IdMap<K> {
    /// Returns an empty map for the ids of a table. `len` is the length of the table, in the sense
    /// that the kind of map defines.
    fn with_len(len: usize) -> Self;

    /// Returns the translation of an id, which must be known.
    fn translated(&self, id: K) -> K;
}

/// A family of id maps, one for each kind of id.
pub(crate) trait IdMaps {
    /// The map for the ids of one kind.
    type Map<K: EntityId>: IdMap<K>;
}

/// The translations of the ids of each kind.
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
    /// Returns the translation of a type.
    pub(crate) fn translate_type(&self, ty: &Type) -> Type {
        ty.with_parts(|dim| self.dims.translated(dim), |part| self.types.translated(part))
    }

    /// Returns the translation of the value of an attribute.
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

    /// Returns the translation of a list of named attributes.
    pub(crate) fn translate_list(&self, list: &[(NameId, AttrId)]) -> Box<[(NameId, AttrId)]> {
        list.iter().map(|&(name, value)| (self.names.translated(name), self.values.translated(value))).collect()
    }
}

/// The translation that changes no id.
pub(crate) struct SameTables;

impl Translate for SameTables {}

/// Returns a node with the ids of the tables translated. Ids of expressions stay.
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

/// Returns the parts of a `fn` other than its block, translated.
pub(crate) fn translate_lambda(data: LambdaData, tables: &mut impl Translate) -> LambdaData {
    let LambdaData { params, ret, attrs } = data;
    LambdaData { params, ret: ret.map(|t| tables.ty(t)), attrs: tables.attrs(attrs) }
}

/// Translates the parts of a function other than its body.
pub(crate) fn translate_head(function: &mut Function, tables: &mut impl Translate) {
    let Function { global, visibility: _, ret, attrs, meta, body: _, kind: _, span } = function;
    *span = tables.span(*span);
    *global = global.map(|g| tables.global(g));
    *ret = ret.map(|t| tables.ty(t));
    *attrs = tables.attrs(*attrs);
    *meta = tables.attrs(*meta);
}

//! Checks rules 9 and 10: operands, attributes and types of a node.

use crate::core::body::Body;
use crate::core::context::{Context, GlobalTarget};
use crate::core::entity::{AttrsId, EntityId, ExprId, GlobalId, TypeId};
use crate::core::expr::Expr;
use crate::infer::call_types::CallTypes;
use crate::infer::infer_expr;
use crate::ops::purity::carries_functions;
use crate::tables::attrs::Attr;
use crate::tables::dtype::DType;
use crate::tables::types::Type;

/// Checks nodes against inference.
pub(super) struct TypeChecker {
    /// A copy of the module's tables, to which inference adds types.
    pub(super) cx: Context,
    /// True if attributes may hold or name functions.
    pub(super) attrs_carry_functions: bool,
    /// For each attribute, a global that it names and that resolves to nothing. Empty if all
    /// globals resolve.
    missing_in_attr: Vec<Option<GlobalId>>,
    /// The type of conditions.
    boolean: TypeId,
}

impl TypeChecker {
    pub(super) fn new(cx: &Context) -> TypeChecker {
        let attrs_carry_functions = carries_functions(cx);
        let missing_in_attr = if attrs_carry_functions { missing_in_attrs(cx) } else { Vec::new() };
        let mut cx = cx.clone();
        // What was remembered before is not trusted.
        cx.types.calls = CallTypes::default();
        let boolean = cx.types.scalar(DType::Bool);
        TypeChecker { cx, attrs_carry_functions, missing_in_attr, boolean }
    }

    /// Returns a global that attributes name and that resolves to nothing.
    pub(super) fn missing_global(&self, attrs: AttrsId) -> Option<GlobalId> {
        if self.missing_in_attr.is_empty() {
            return None;
        }
        self.cx.attrs.list(attrs).iter().find_map(|(_, value)| *self.missing_in_attr.get(value.index())?)
    }

    /// Returns the message and the help if a call, tuple, projection, If or Lambda is wrong. Its
    /// parts must have been checked.
    #[inline]
    pub(super) fn check(&mut self, body: &Body, id: ExprId) -> Option<(String, Option<String>)> {
        let stored = body.ty(id);
        match body.expr(id) {
            Expr::Proj { tuple, index } => {
                if let Type::Tuple(fields) = self.cx.types.get(body.type_of(tuple))
                    && fields.get(index as usize) == Some(&stored)
                {
                    return None;
                }
            }
            Expr::If { cond, then_block, else_block } => {
                // The usual case: both branches have the stored type.
                if body.ty(cond) == self.boolean
                    && !matches!(body.expr(cond), Expr::Let { .. })
                    && body.type_of(then_block) == stored
                    && body.type_of(else_block) == stored
                {
                    return None;
                }
            }
            Expr::Lambda { lambda, body: block } => {
                if let Some(ret) = body.lambda(lambda).ret {
                    let found = body.type_of(block);
                    if !self.cx.types.accepts(ret, found) {
                        let (ret, found) = (self.cx.type_text(ret), self.cx.type_text(found));
                        return Some((format!("the function returns {found}, but {ret} is stated"), None));
                    }
                }
            }
            Expr::CallOp { .. } | Expr::Call { .. } | Expr::Tuple(_) => {}
            Expr::Let { .. } | Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => {
                return None;
            }
        }
        self.infer(body, id).and_then(|ty| self.compare(stored, ty)).err()
    }

    fn infer(&mut self, body: &Body, id: ExprId) -> Result<TypeId, (String, Option<String>)> {
        if let Expr::CallOp { op, attrs, .. } = body.expr(id) {
            let checked = self.cx.check_op_attrs(op, attrs).map_err(|(e, _)| (e.message, e.help))?;
            if checked != attrs {
                let name = &self.cx.ops.get(op).name;
                let help = "leave out those that equal their default, and convert the others, as `check_op_attrs` does";
                let message = format!("the attributes of `{name}` are not in their one form");
                return Err((message, Some(help.to_string())));
            }
        }
        infer_expr(&mut self.cx, body, id).map_err(|e| (e.message, e.help))
    }

    fn compare(&self, stored: TypeId, inferred: TypeId) -> Result<(), (String, Option<String>)> {
        if stored == inferred {
            return Ok(());
        }
        let (stored, inferred) = (self.cx.type_text(stored), self.cx.type_text(inferred));
        Err((format!("the stored type is {stored}, but its parts give {inferred}"), None))
    }

    /// Returns a message if the type of an atom that is not a variable is wrong.
    pub(super) fn check_leaf(&mut self, body: &Body, id: ExprId) -> Option<String> {
        let stored = body.ty(id);
        let expected = match body.expr(id) {
            Expr::Literal(l) => self.cx.literal_type(l),
            Expr::Global(g) => self.cx.globals.get(g).signature?,
            Expr::Op(_) | Expr::None => self.cx.types.any(),
            _ => return None,
        };
        self.compare(stored, expected).err().map(|e| e.0)
    }
}

/// Returns, for each attribute, a global that it names and that resolves to nothing. One pass is
/// enough, since the ids of attributes are larger than those of their parts.
fn missing_in_attrs(cx: &Context) -> Vec<Option<GlobalId>> {
    if cx.globals.iter().all(|(_, global)| global.target != GlobalTarget::Missing) {
        return Vec::new();
    }
    let mut found: Vec<Option<GlobalId>> = Vec::with_capacity(cx.attrs.len());
    for (_, attr) in cx.attrs.iter() {
        found.push(match attr {
            Attr::Global(g) if cx.globals.get(*g).target == GlobalTarget::Missing => Some(*g),
            Attr::List(items) => items.iter().find_map(|i| found[i.index()]),
            _ => None,
        });
    }
    found
}

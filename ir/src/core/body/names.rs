//! Names of variables as the tables of the module spell them.

use super::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;
use crate::core::expr::Expr;

impl Body {
    /// Returns the name of the variable that a Let binds, or of a variable itself, as `cx` spells
    /// it; `None` if it has no name, and for anything else.
    pub fn binding_name<'c>(&self, cx: &'c Context, id: ExprId) -> Option<&'c str> {
        let var = match self.expr(id) {
            Expr::Let { var, .. } => var,
            _ => self.as_var(id)?,
        };
        self.var_name(var).map(|name| cx.names.get(name))
    }
}

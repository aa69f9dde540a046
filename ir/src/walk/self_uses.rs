//! Finds the `fn`s that name the variable which they are bound to.

use crate::core::body::Body;
use crate::core::entity::{ExprId, IdSet};
use crate::core::expr::{Expr, VarId};
use crate::walk::cursor::Step;

/// The variables of Lets whose value is a `fn` without a stated result type that uses the variable,
/// as far as a walk has come. A variable is complete when its Let is [`Step::Bound`].
#[derive(Default)]
pub(crate) struct SelfUses {
    /// The variables of the Lets whose value is such a `fn` and is being walked.
    open: IdSet<ExprId>,
    open_count: usize,
    used: IdSet<ExprId>,
}

impl SelfUses {
    /// Notes a step of the walk.
    #[inline]
    pub(crate) fn note(&mut self, body: &Body, step: Step) {
        match step {
            Step::Let(id) => {
                if let Some(var) = var_of_unstated(body, id) {
                    self.open.insert(var.expr());
                    self.open_count += 1;
                }
            }
            Step::Bound(id) if self.open_count > 0 => {
                if let Some(var) = var_of_unstated(body, id) {
                    self.open.remove(var.expr());
                    self.open_count -= 1;
                }
            }
            Step::Flat(id) if self.open_count > 0 => body.inputs(id).iter().for_each(|&input| self.use_of(input)),
            Step::Atom(id) if self.open_count > 0 => self.use_of(id),
            _ => {}
        }
    }

    fn use_of(&mut self, id: ExprId) {
        if self.open.contains(id) {
            self.used.insert(id);
        }
    }

    /// Returns true if the variable is used in the `fn` that it is bound to.
    #[inline]
    pub(crate) fn contains(&self, var: VarId) -> bool {
        self.used.contains(var.expr())
    }
}

/// Returns the variable of a Let whose value is a `fn` without a stated result type.
#[inline]
fn var_of_unstated(body: &Body, id: ExprId) -> Option<VarId> {
    let Expr::Let { var, value, .. } = body.expr(id) else { return None };
    let Expr::Lambda { lambda, .. } = body.expr(value) else { return None };
    body.lambda(lambda).ret.is_none().then_some(var)
}

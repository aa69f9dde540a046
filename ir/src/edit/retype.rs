//! Propagation of changed types.
//!
//! When a rewrite gives a value a more specific type, the types of its users are inferred again in
//! program order. Propagation stops where a type stays the same.

use rustc_hash::FxHashSet;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{ExprId, IdSet, TypeId};
use crate::core::expr::Expr;
use crate::infer::infer_expr;
use crate::ops::op::TypeError;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
use crate::walk::cursor::{Cursor, Step};

/// The error for a user whose type could not be inferred again.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{error}")]
pub struct RetypeError {
    /// The expression whose parts do not fit together any more.
    pub at: ExprId,
    /// The reason.
    #[source]
    pub error: TypeError,
}

/// Expressions whose types changed, which a sweep propagates to their users.
///
/// ```
/// # use anfora_ir::{Body, Context, ExprId, RetypeError, Retype};
/// # fn rewrite(cx: &mut Context, body: &mut Body, value: ExprId) -> Result<usize, RetypeError> {
/// let mut retype = Retype::new(body);
/// // … `value` was overwritten, and its type set …
/// retype.changed(value);
/// retype.sweep(cx, body, body.root())
/// # }
/// ```
pub struct Retype {
    changed: IdSet<ExprId>,
    /// Expressions whose own type must be inferred again.
    due: FxHashSet<ExprId>,
    any: bool,
}

impl Retype {
    /// Returns an empty set of changes.
    pub fn new(body: &Body) -> Retype {
        Retype { changed: IdSet::with_capacity(body.len()), due: FxHashSet::default(), any: false }
    }

    /// Records that the type of an expression changed. The sweep updates the variable that a Let
    /// binds to it.
    pub fn changed(&mut self, id: ExprId) {
        self.any = true;
        self.changed.insert(id);
    }

    /// Records an expression whose type must be inferred again although no part of it changed, for
    /// instance because its attributes did.
    ///
    /// Cost: one entry.
    pub fn infer_again(&mut self, id: ExprId) {
        self.any = true;
        self.due.insert(id);
    }

    /// Returns true if there are changes to propagate.
    pub fn is_needed(&self) -> bool {
        self.any
    }

    /// Infers the types of the users of changed expressions again, in program order from `from` on
    /// (a Let, or the root of the body, with everything under it and after it in its chain).
    /// Returns the number of changed types, and clears the recorded changes. Linear in the part
    /// that is walked; an expression with unchanged operands costs one check of these.
    ///
    /// `from` must be in a block that encloses every use of the changed expressions; the root
    /// always is.
    ///
    /// # Errors
    /// If the parts of a user do not fit together any more. The users before it have their new
    /// types.
    pub fn sweep(&mut self, cx: &mut Context, body: &mut Body, from: ExprId) -> Result<usize, RetypeError> {
        if !self.any {
            body.note_stop(None);
            return Ok(0);
        }
        self.sweep_with(cx, body, from, |_, _, _, _| Ok(false))
    }

    /// Sweeps as [`Retype::sweep`] does, and calls `visit` first at each step. `visit` may change
    /// types, which it must record, and nodes that the walk is about to leave. It returns true if
    /// the type of such a node must be inferred although none of its parts changed.
    pub(crate) fn sweep_with(
        &mut self,
        cx: &mut Context,
        body: &mut Body,
        from: ExprId,
        mut visit: impl FnMut(&mut Retype, &mut Context, &mut Body, Step) -> Result<bool, TypeError>,
    ) -> Result<usize, RetypeError> {
        body.note_stop(None);
        let mut count = 0;
        let mut result = Ok(());
        let mut cursor = Cursor::at(body, from);
        while let Some(step) = cursor.next(body) {
            let visited = visit(self, cx, body, step);
            match step {
                Step::Flat(id) | Step::Exit(id) => {
                    let is_due = |visited| visited || self.due.contains(&id) || self.affects(body, id);
                    let typed = visited.and_then(|visited| match is_due(visited) {
                        true => infer_expr(cx, body, id).map(Some),
                        false => Ok(None),
                    });
                    match typed {
                        Ok(Some(ty)) => count += usize::from(self.set_type(body, id, ty)),
                        Ok(None) => {}
                        Err(error) => {
                            body.note_stop(cursor.binding().or(Some(id)));
                            result = Err(RetypeError { at: id, error });
                            break;
                        }
                    }
                }
                Step::Bound(id) => {
                    let Expr::Let { var, value, .. } = body.expr(id) else { continue };
                    let tail = body.tail(value);
                    if self.has_changed(tail) {
                        count += usize::from(self.set_type(body, var.expr(), body.ty(tail)));
                    }
                }
                _ => {}
            }
        }
        self.any = false;
        self.changed.clear();
        self.due.clear();
        result.map(|()| count)
    }

    /// Returns true if the type of an expression changed.
    pub(crate) fn has_changed(&self, id: ExprId) -> bool {
        self.changed.contains(id)
    }

    /// Sets the type of an expression, and records a change if the type differs from before.
    /// Returns true if it does.
    pub(crate) fn set_type(&mut self, body: &mut Body, id: ExprId, ty: TypeId) -> bool {
        let is_other = ty != body.ty(id);
        if is_other {
            body.set_type(id, ty);
            self.changed(id);
        }
        is_other
    }

    /// Returns true if a part that determines the type of an expression changed.
    fn affects(&self, body: &Body, id: ExprId) -> bool {
        let tail_changed = |block: ExprId| self.changed.contains(body.tail(block));
        body.parts(id).any(tail_changed)
            || matches!(body.expr(id), Expr::Lambda { lambda, .. }
                if body.lambda_params(lambda).any(|p| self.changed.contains(p.expr())))
    }
}

/// Propagates the changed type of one expression. Shorthand for a [`Retype`] with one change.
///
/// # Errors
/// The errors of [`Retype::sweep`].
pub fn retype_from(cx: &mut Context, body: &mut Body, changed: ExprId, from: ExprId) -> Result<usize, RetypeError> {
    let mut retype = Retype::new(body);
    retype.changed(changed);
    retype.sweep(cx, body, from)
}

impl IntoDiagnostics for RetypeError {
    const MAY_END_WALK: bool = true;

    fn into_diagnostics(self) -> Diagnostics {
        self.error.into_diagnostics()
    }
}

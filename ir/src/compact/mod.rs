//! Compaction: removes unreachable nodes, and puts the others in program order.
//!
//! Passes unlink nodes and leave them in the arenas. Between passes, if much of an arena is dead,
//! [`compact_body`] replaces it by a copy of the reachable nodes, in program order and parts before
//! wholes. Text and meaning stay, but ids change, so the body's generation goes up and side tables
//! made before are refused. [`Module::compact`] does this for every function and drops the entries
//! of the module's tables that nothing uses.

mod tables;

use std::ops::ControlFlow;

use bumpalo::Bump;

use crate::core::body::Body;
use crate::core::entity::{EntityId, ExprId, FunctionKey, LambdaId};
use crate::core::expr::{Expr, VarId};
use crate::core::module::Module;
use crate::core::translate::SameTables;
use crate::edit::transplant::{Copied, rebuild};
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
use crate::walk::cursor::{BlockKind, Cursor, Step};

/// The reason why nothing was compacted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CompactError {
    /// An edit is open, and its journal refers to expressions by id.
    #[error("an edit is open; commit it or roll it back first")]
    EditOpen,
}

/// The new ids of the nodes of a compacted body.
#[derive(Clone, Debug)]
pub struct Remap {
    exprs: Copied,
    lambdas: Vec<Option<LambdaId>>,
}

impl Remap {
    /// Returns the new id of an expression; `None` if it was dropped.
    #[inline]
    pub fn expr(&self, old: ExprId) -> Option<ExprId> {
        self.exprs.get(old)
    }

    /// Returns the new variable for an old one; `None` if it was dropped.
    pub fn var(&self, old: VarId) -> Option<VarId> {
        self.expr(old.expr()).map(VarId::from_expr)
    }

    /// Returns the new id of a `fn`; `None` if it was dropped.
    pub fn lambda(&self, old: LambdaId) -> Option<LambdaId> {
        self.lambdas.get(old.index()).copied().flatten()
    }
}

/// Returns the number of reachable nodes of a body. Temporary tables are in `scratch`. Linear.
pub fn live_nodes(body: &Body, scratch: &Bump) -> usize {
    let mut live = 0;
    _ = for_each_live(body, scratch, |_| {
        live += 1;
        ControlFlow::Continue(())
    });
    live
}

/// Returns true if more than half of a body's nodes are dead, so that compacting it pays. Temporary
/// tables are in `scratch`. Linear; ends when half of the nodes are known to be reachable.
pub fn is_sparse(body: &Body, scratch: &Bump) -> bool {
    let mut live = 0;
    let counted = for_each_live(body, scratch, |_| {
        live += 1;
        if live * 2 < body.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    counted.is_continue()
}

/// Rebuilds a body without its unreachable nodes, in program order, and returns the new ids.
/// Linear.
///
/// # Errors
/// If a journal is open.
pub fn compact_body(body: &mut Body) -> Result<Remap, CompactError> {
    if body.has_journal() {
        return Err(CompactError::EditOpen);
    }
    // Compacted bodies are usually half dead or more, and a full vector doubles its room.
    let (mut new, copied) = rebuild(body, body.len() / 2, &mut SameTables);
    let remap = remap(body, &mut new, copied);
    *body = new;
    Ok(remap)
}

impl Module {
    /// Compacts every function, and drops the names, types, dimensions, attributes, constants,
    /// opaque operators and globals that nothing uses any more. Keys of functions stay; all other
    /// ids change. Returns the new ids of the nodes of each function. Linear.
    ///
    /// # Errors
    /// If an edit is open.
    pub fn compact(&mut self) -> Result<Vec<(FunctionKey, Remap)>, CompactError> {
        if self.has_edit() || self.functions().any(|(_, f)| f.body.has_journal()) {
            return Err(CompactError::EditOpen);
        }
        Ok(tables::compact_module(self))
    }
}

/// Returns the reachable nodes of a body, in the order of [`for_each_live`].
pub(crate) fn live(body: &Body) -> Vec<ExprId> {
    let mut live = Vec::new();
    _ = for_each_live(body, &Bump::new(), |id| {
        live.push(id);
        ControlFlow::Continue(())
    });
    live
}

/// Calls `each` with the reachable nodes of a body: parameters, then values, variables and Lets in
/// the order of evaluation, each once, until it breaks.
fn for_each_live(body: &Body, scratch: &Bump, mut each: impl FnMut(ExprId) -> ControlFlow<()>) -> ControlFlow<()> {
    let seen = scratch.alloc_slice_fill_copy(body.len(), false);
    let mut add = |id: ExprId| match std::mem::replace(&mut seen[id.index()], true) {
        false => each(id),
        true => ControlFlow::Continue(()),
    };
    body.params().iter().try_for_each(|p| add(p.expr()))?;
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Atom(id) | Step::Exit(id) => add(id)?,
            Step::Flat(id) => {
                body.inputs(id).iter().try_for_each(|&input| add(input))?;
                add(id)?;
            }
            Step::EnterBlock(_, BlockKind::Lambda(id)) => {
                if let Expr::Lambda { lambda, .. } = body.expr(id) {
                    body.lambda_params(lambda).try_for_each(|p| add(p.expr()))?;
                }
            }
            Step::Bound(id) => {
                if let Expr::Let { var, .. } = body.expr(id) {
                    add(var.expr())?;
                }
                add(id)?;
            }
            Step::EnterBlock(..) | Step::ExitBlock(..) | Step::Let(_) | Step::Enter(_) | Step::Seen(_) => {}
        }
    }
    ControlFlow::Continue(())
}

/// Returns the new ids of the nodes of a body in one that was [rebuilt](rebuild) from it, and sets
/// the generation of the new body to the next one.
fn remap(body: &Body, new: &mut Body, copied: Copied) -> Remap {
    new.set_generation(body.generation().wrapping_add(1));
    let mut lambdas: Vec<Option<LambdaId>> = vec![None; body.lambda_count()];
    if !lambdas.is_empty() {
        for (id, expr) in body.exprs() {
            if let (Expr::Lambda { lambda: old, .. }, Some(copy)) = (expr, copied.get(id))
                && let Expr::Lambda { lambda, .. } = new.expr(copy)
            {
                lambdas[old.index()] = Some(lambda);
            }
        }
    }
    Remap { exprs: copied, lambdas }
}

impl IntoDiagnostics for CompactError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

//! SimplifyShapes with mistakes: small implementations of its parts that leave one thing out.

use std::sync::Arc;

use anfora::ir::{DType, Editor, Expr, ExprId, OpPurity, TypeId, VarId};
use anfora::manager::{FunctionPass, Pass, PassError};
use anfora::visit::{Edits, Mutator, Refused, Rewrite, RewriteError, Scope, Site, Slot, Verdict, mutate};

use super::{Broken, is_call_of};
use crate::random_programs::checking::Why;

const OF: &str = "SimplifyShapes";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: OF,
        mistake: "takes values whose elements are not known for equal if their types are equal",
        why: &[Why::OtherResult, Why::OtherEffects, Why::Fails],
        make: || pass(|editor| mutate(editor, &mut Number { known: Vec::new(), scopes: Vec::new() })),
    },
    Broken {
        of: OF,
        mistake: "removes an expansion although the result has another shape then",
        why: &[Why::OtherResult, Why::IllFormed, Why::Fails],
        make: || pass(|editor| mutate(editor, &mut Shrink)),
    },
];

fn pass(edit: fn(&mut Editor<'_>) -> Result<(), RewriteError>) -> Arc<dyn Pass> {
    Arc::new(FunctionPass::new(OF, 2, move |function, _, _| {
        edit(&mut function.editor()).map_err(|e| PassError::new(e.to_string()))
    }))
}

/// Removes the expansions of the operands of `negative` and `tanh`.
struct Shrink;

impl Mutator for Shrink {
    type Error = RewriteError;
    const VALUES: bool = true;
    const REFUSED: Refused = Refused::Retype;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        if !is_call_of(&site.editor, id, &["negative", "tanh"]) {
            return Ok(Rewrite::Keep);
        }
        let (Expr::CallOp { op, attrs, .. }, &[operand]) =
            (site.editor.body.expr(id), site.editor.body.operands_of(id))
        else {
            return Ok(Rewrite::Keep);
        };
        let Some(expansion) = site.value_of(operand) else { return Ok(Rewrite::Keep) };
        if !is_call_of(&site.editor, expansion, &["broadcast_to"]) {
            return Ok(Rewrite::Keep);
        }
        let source = site.editor.body.operands_of(expansion)[0];
        Ok(Rewrite::Replace(site.editor.call_op(op, &[source], attrs).map_err(RewriteError::Type)?))
    }
}

/// Numbers values by their types.
struct Number {
    known: Vec<(TypeId, VarId)>,
    scopes: Vec<usize>,
}

impl Number {
    /// Returns the type by which a value is compared.
    fn key(editor: &Editor<'_>, value: ExprId) -> Option<TypeId> {
        let Expr::CallOp { op, .. } = editor.body.expr(value) else { return None };
        let row = editor.cx.ops.get(op);
        if row.purity != OpPurity::Pure || row.name == "match_cast" {
            return None;
        }
        let ty = editor.body.ty(value);
        let dtype = editor.cx.types.as_tensor(ty)?.dtype;
        (dtype.is_integer() || dtype == DType::Bool).then_some(ty)
    }
}

impl Mutator for Number {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;

    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Some(binding) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
        let Some(key) = Self::key(&site.editor, binding.value) else { return Ok(Verdict::Keep) };
        match self.known.iter().find(|(ty, _)| *ty == key) {
            Some(&(_, first)) => Ok(Verdict::Var(first.expr())),
            None => {
                self.known.push((key, binding.var));
                Ok(Verdict::Keep)
            }
        }
    }

    fn enter(&mut self, _: &mut Site<'_>, _: Scope) -> Result<(), RewriteError> {
        self.scopes.push(self.known.len());
        Ok(())
    }

    fn exit(&mut self, _: &mut Site<'_>, _: Scope) -> Result<(), RewriteError> {
        let known = self.scopes.pop().expect("scopes are left in order");
        self.known.truncate(known);
        Ok(())
    }
}

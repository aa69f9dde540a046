//! EliminateCommonSubexpr with mistakes: a small implementation that leaves one thing out.

use std::sync::Arc;

use anfora::ir::{Attr, Dim, Editor, Expr, ExprId, Literal, OpPurity, VarId};
use anfora::manager::{FunctionPass, Pass, PassError};
use anfora::visit::{Edits, Mutator, RewriteError, Scope, Site, Slot, Verdict, mutate};

use super::Broken;
use crate::random_programs::checking::Why;

const OF: &str = "EliminateCommonSubexpr";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: OF,
        mistake: "merges impure calls",
        why: &[Why::OtherEffects, Why::OtherResult],
        make: || pass(Mistake::MergesImpure),
    },
    Broken {
        of: OF,
        mistake: "offers what a branch computed to the other branch and to what follows",
        why: &[Why::IllFormed],
        make: || pass(Mistake::ForgetsNothing),
    },
    Broken { of: OF, mistake: "takes -0.0 for 0.0", why: &[Why::OtherResult], make: || pass(Mistake::ComparesNumbers) },
    Broken {
        of: OF,
        mistake: "merges casts that bind symbols",
        why: &[Why::IllFormed, Why::Fails],
        make: || pass(Mistake::MergesCasts),
    },
    Broken {
        of: OF,
        mistake: "does not compare attributes",
        why: &[Why::IllFormed, Why::OtherResult, Why::Fails],
        make: || pass(Mistake::ForgetsAttributes),
    },
];

#[derive(Copy, Clone, PartialEq)]
enum Mistake {
    MergesImpure,
    ForgetsNothing,
    ComparesNumbers,
    MergesCasts,
    ForgetsAttributes,
}

fn pass(mistake: Mistake) -> Arc<dyn Pass> {
    Arc::new(FunctionPass::new(OF, 1, move |function, _, _| {
        let mut merge = Merge { mistake, seen: Vec::new(), scopes: Vec::new() };
        mutate(&mut function.editor(), &mut merge).map_err(|e| PassError::new(e.to_string()))
    }))
}

/// The key by which calls of operators are compared.
#[derive(PartialEq)]
struct Key {
    op: String,
    operands: Vec<ExprId>,
    attrs: usize,
}

struct Merge {
    mistake: Mistake,
    seen: Vec<(Key, VarId)>,
    scopes: Vec<usize>,
}

impl Merge {
    fn key(&self, editor: &mut Editor<'_>, value: ExprId) -> Option<Key> {
        use anfora::ir::EntityId;
        let Expr::CallOp { op, operands, mut attrs } = editor.body.expr(value) else { return None };
        let row = editor.cx.ops.get(op);
        let name = row.name.to_string();
        let is_cast = name == "match_cast";
        let impure = row.purity == OpPurity::Impure;
        if (impure && self.mistake != Mistake::MergesImpure) || (is_cast && self.mistake != Mistake::MergesCasts) {
            return None;
        }
        if self.mistake == Mistake::ForgetsAttributes {
            attrs = editor.cx.attrs.empty();
        }
        if is_cast {
            // Casts to different symbols have the same key.
            let to = editor.cx.find_attr(attrs, "to").map(|to| editor.cx.attrs.get(to).clone());
            let Some(Attr::Type(ty)) = to else { return None };
            let dims = editor.cx.types.as_tensor(ty)?.shape.clone()?;
            if !dims.iter().any(|&d| matches!(editor.cx.types.dims.get(d), Dim::Symbol(_))) {
                return None;
            }
            attrs = editor.cx.attrs.empty();
        }
        let mut operands = editor.body.operands(operands).to_vec();
        if self.mistake == Mistake::ComparesNumbers {
            for o in &mut operands {
                let Some(literal) = editor.body.as_literal(*o) else { continue };
                let literal = editor.cx.literals.get(literal);
                if literal.as_splat().is_some_and(|bytes| bytes == (-0.0f32).to_le_bytes()) {
                    let zero = Literal::splat(literal.shape(), 0f32);
                    *o = editor.literal(zero);
                }
            }
        }
        Some(Key { op: name, operands, attrs: attrs.index() })
    }

    fn open(&mut self) {
        self.scopes.push(self.seen.len());
    }

    fn close(&mut self) {
        let seen = self.scopes.pop().expect("scopes are left in order");
        if self.mistake != Mistake::ForgetsNothing {
            self.seen.truncate(seen);
        }
    }
}

impl Mutator for Merge {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;

    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Some(binding) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
        let Some(key) = self.key(&mut site.editor, binding.value) else { return Ok(Verdict::Keep) };
        let ty = |v: VarId| site.editor.body.ty(v.expr());
        let same_type = |v: VarId| ty(v) == ty(binding.var) || self.mistake == Mistake::MergesCasts;
        match self.seen.iter().find(|(k, v)| *k == key && same_type(*v)) {
            Some(&(_, first)) => Ok(Verdict::Var(first.expr())),
            None => {
                self.seen.push((key, binding.var));
                Ok(Verdict::Keep)
            }
        }
    }

    fn enter(&mut self, _: &mut Site<'_>, _: Scope) -> Result<(), RewriteError> {
        self.open();
        Ok(())
    }

    fn exit(&mut self, _: &mut Site<'_>, _: Scope) -> Result<(), RewriteError> {
        self.close();
        Ok(())
    }
}

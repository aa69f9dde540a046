//! DeadCodeElimination, with mistakes.

use std::collections::HashSet;
use std::sync::Arc;

use anfora::ir::{Expr, ExprId, Function, GlobalId, Module, Visibility};
use anfora::manager::{FunctionPass, ModulePass, Pass, PassError};
use anfora::visit::{Mutator, RewriteError, Site, Slot, Verdict, link_counts, mutate, program_order};

use super::{Broken, is_call_of};
use crate::random_programs::checking::Why;

const OF: &str = "DeadCodeElimination";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: OF,
        mistake: "drops impure bindings that nothing uses",
        why: &[Why::OtherEffects, Why::OtherResult],
        make: || drops(&["print", "assert", "random.uniform"]),
    },
    Broken {
        of: OF,
        mistake: "drops casts whose symbols are used",
        why: &[Why::IllFormed],
        make: || drops(&["match_cast"]),
    },
    Broken {
        of: OF,
        mistake: "removes functions that are named only in closures",
        why: &[Why::IllFormed],
        make: || removes(Counts::Callees),
    },
    Broken {
        of: OF,
        mistake: "removes functions that are named only in attributes",
        why: &[Why::IllFormed],
        make: || removes(Counts::Mentions),
    },
    Broken {
        of: OF,
        mistake: "removes private functions that have a symbol",
        why: &[Why::Unlinked],
        make: || {
            Arc::new(ModulePass::new(OF, 1, |module, _| {
                let linked = |f: &Function| f.visibility == Visibility::Private && f.is_external(&module.cx);
                let gone: Vec<_> = module.functions().filter(|(_, f)| linked(f)).map(|(key, _)| key).collect();
                module.remove(&gone);
                Ok(())
            }))
        },
    },
];

struct Drop {
    ops: &'static [&'static str],
    unused: HashSet<ExprId>,
}

impl Mutator for Drop {
    type Error = RewriteError;

    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Some(binding) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
        let gone = self.unused.contains(&binding.var.expr()) && is_call_of(&site.editor, binding.value, self.ops);
        Ok(if gone { Verdict::Drop } else { Verdict::Keep })
    }
}

fn drops(ops: &'static [&'static str]) -> Arc<dyn Pass> {
    Arc::new(FunctionPass::new(OF, 1, move |function, _, _| {
        let body = &function.function.body;
        let uses = link_counts(body);
        let unused = body.exprs().map(|(id, _)| id).filter(|&id| uses[id] == 0).collect();
        mutate(&mut function.editor(), &mut Drop { ops, unused }).map_err(|e| PassError::new(e.to_string()))
    }))
}

/// The occurrences of a function that count as uses.
#[derive(Copy, Clone, PartialEq)]
enum Counts {
    Callees,
    Mentions,
}

fn used(module: &Module, counts: Counts) -> HashSet<GlobalId> {
    let mut used = HashSet::new();
    for (_, function) in module.functions() {
        let body = &function.body;
        for id in program_order(body, body.root()) {
            let named = match body.expr(id) {
                Expr::Call { .. } => body.operands_of(id)[0],
                _ if counts == Counts::Callees => continue,
                _ => id,
            };
            let operands = if counts == Counts::Mentions { body.operands_of(id) } else { &[] };
            for &id in operands.iter().chain([&named]) {
                if let Expr::Global(g) = body.expr(id) {
                    used.insert(g);
                }
            }
        }
    }
    used
}

fn removes(counts: Counts) -> Arc<dyn Pass> {
    Arc::new(ModulePass::new(OF, 1, move |module, _| {
        loop {
            let used = used(module, counts);
            let gone: Vec<_> = module
                .functions()
                .filter(|(_, f)| !f.is_external(&module.cx) && f.global().is_some_and(|g| !used.contains(&g)))
                .map(|(key, _)| key)
                .collect();
            if gone.is_empty() {
                return Ok(());
            }
            module.remove(&gone);
        }
    }))
}

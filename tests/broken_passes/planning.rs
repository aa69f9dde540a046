//! PlanMemory with mistakes.

use std::sync::Arc;

use anfora::ir::{Attr, Editor, LetFlags, VarFlags};
use anfora::manager::{ModulePass, Pass};

use super::{Broken, after, in_sequence, registered};
use crate::random_programs::checking::Why;

const OF: &str = "PlanMemory";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: OF,
        mistake: "plans the memory before its last edit",
        why: &[Why::NotEstablished],
        make: || after(OF, more_values),
    },
    Broken {
        of: OF,
        mistake: "records an arena that is too small",
        why: &[Why::NotEstablished],
        make: || in_sequence([registered(OF), smaller_arenas()]),
    },
];

/// Binds another value at the beginning.
fn more_values(editor: &mut Editor<'_>) {
    let Some(&param) = editor.body.params().first() else { return };
    let Ok(value) = editor.op("negative", &[param.expr()], &[]) else { return };
    let (rest, ty) = (editor.body.root(), editor.body.ty(value));
    let var = editor.var(None, VarFlags::PLAIN, ty);
    let more = editor.let_(var, value, rest, LetFlags::PLAIN);
    editor.body.set_root(more);
}

/// Halves the arenas in the records.
fn smaller_arenas() -> Arc<dyn Pass> {
    Arc::new(ModulePass::new("Edit", 0, |module, _| {
        for key in module.order().to_vec() {
            let Some((function, cx)) = module.get_mut(key) else { continue };
            let recorded = cx.find_attr(function.meta, "memory.arena").map(|id| cx.attrs.get(id));
            if let Some(&Attr::Int(arena)) = recorded {
                let half = cx.int_attr(arena / 2);
                function.meta = cx.with_attr(function.meta, "memory.arena", Some(half));
            }
        }
        Ok(())
    }))
}

//! ConvertToDataflow and ToNonDataflow, with mistakes.

use std::sync::Arc;

use anfora::ir::{Editor, Expr, LetFlags, VarFlags};
use anfora::manager::Pass;
use anfora::visit::{Binding, set_var_flags};

use super::{Broken, after, each_function, exchange, is_call_of, lets, mentions, neighbours};
use crate::random_programs::checking::Why;

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: "ConvertToDataflow",
        mistake: "takes an impure call into a region",
        why: &[Why::IllFormed],
        make: || after("ConvertToDataflow", take_in_effects),
    },
    Broken {
        of: "ConvertToDataflow",
        mistake: "hides a variable that is used outside",
        why: &[Why::IllFormed],
        make: || after("ConvertToDataflow", hide_outputs),
    },
    Broken {
        of: "ToNonDataflow",
        mistake: "leaves variables visible only in a region that is gone",
        why: &[Why::IllFormed],
        make: dissolve_links_only,
    },
    Broken {
        of: "ToNonDataflow",
        mistake: "leaves the rest of a region whose beginning it dissolves",
        why: &[Why::IllFormed],
        make: || each_function(dissolve_beginnings),
    },
    Broken {
        of: "TopologicalSort",
        mistake: "puts a binding before one that it uses",
        why: &[Why::IllFormed],
        make: || after("TopologicalSort", exchange_dependent),
    },
    Broken {
        of: "TopologicalSort",
        mistake: "leaves the mark of a region's beginning on the binding that had it",
        why: &[Why::IllFormed],
        make: || after("TopologicalSort", move_the_beginning),
    },
    Broken {
        of: "Normalize",
        mistake: "merges regions, and hides what follows them uses",
        why: &[Why::IllFormed],
        make: || after("Normalize", hide_outputs),
    },
];

fn take_in_effects(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        if first.flags.is_dataflow() && !second.flags.is_dataflow() && is_call_of(editor, second.value, &["print"]) {
            editor.body.set_let_flags(second.id, LetFlags::DATAFLOW);
        }
    }
}

/// Makes the last variable of each region visible only in the region, even if it is used outside.
pub(super) fn hide_outputs(editor: &mut Editor<'_>) {
    let is_last = |b: &Binding| {
        let next = Binding::of(editor.body, b.rest);
        b.flags.is_dataflow() && next.is_none_or(|n| !n.flags.is_dataflow())
    };
    let last: Vec<_> = lets(editor.body).into_iter().filter(is_last).collect();
    for b in last {
        set_var_flags(editor.body, b.var, VarFlags::DATAFLOW);
    }
}

fn dissolve_links_only() -> Arc<dyn Pass> {
    each_function(|editor| {
        for b in lets(editor.body).into_iter().filter(|b| b.flags.is_dataflow()) {
            editor.body.set_let_flags(b.id, LetFlags::PLAIN);
        }
    })
}

fn dissolve_beginnings(editor: &mut Editor<'_>) {
    for b in lets(editor.body).into_iter().filter(|b| b.flags.starts_region()) {
        editor.body.set_let_flags(b.id, LetFlags::PLAIN);
        set_var_flags(editor.body, b.var, VarFlags::PLAIN);
    }
}

/// Exchanges neighbours in regions of which the second uses the first.
fn exchange_dependent(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        if second.flags == LetFlags::DATAFLOW && mentions(editor.body, second.value, first.var) {
            exchange(editor.body, &first, &second);
            return;
        }
    }
}

/// Moves the mark of the beginning of each region to its second binding.
fn move_the_beginning(editor: &mut Editor<'_>) {
    for (first, second) in neighbours(editor.body) {
        if first.flags == LetFlags::REGION_START && second.flags == LetFlags::DATAFLOW {
            for (at, flags) in [(&first, LetFlags::DATAFLOW), (&second, LetFlags::REGION_START)] {
                editor.body.set_expr(at.id, Expr::Let { var: at.var, value: at.value, body: at.rest, flags });
            }
        }
    }
}

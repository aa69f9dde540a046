//! ConvertToDataflow and ToNonDataflow, with mistakes.

use std::sync::Arc;

use anfora::ir::{Editor, LetFlags, VarFlags};
use anfora::manager::Pass;
use anfora::visit::{Binding, set_var_flags};

use super::{Broken, after, each_function, is_call_of, lets, neighbours};
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

//! Compaction of bodies in which passes have left dead nodes.

use std::sync::Arc;

use anfora_ir::{Body, Context, FunctionKey, Module, compact_body, is_sparse};
use rustc_hash::FxHashMap;

use crate::parallel::{Job, Workers};

/// For each function, the size of the edits since its body was last checked for being sparse.
pub(crate) type Edited = FxHashMap<FunctionKey, usize>;

/// Commits the edit of a pass, and compacts each body if more than half of its nodes are dead. The
/// check for dead nodes is linear in a body, so it waits until a good part of the body was edited,
/// by this pass or by earlier ones, whose edits are in `sums`. The threads that `workers_for`
/// returns for a number of jobs and nodes share the work.
pub(crate) fn keep<'w>(
    module: &mut Module,
    sums: &mut Edited,
    workers_for: impl FnOnce(usize, usize) -> Option<&'w Arc<Workers>>,
) {
    const PART: usize = 4;
    let edited: Vec<(FunctionKey, usize)> =
        module.functions().map(|(key, f)| (key, f.body.edit_size())).filter(|&(_, size)| size > 0).collect();
    module.commit();
    // An enclosing edit names expressions by their ids.
    if module.has_edit() {
        return;
    }
    let mut looked: Vec<FunctionKey> = Vec::new();
    let mut nodes = 0;
    for (key, size) in edited {
        let Some(function) = module.get(key) else { continue };
        let sum = sums.entry(key).or_default();
        *sum += size;
        if *sum >= function.body.len() / PART {
            *sum = 0;
            looked.push(key);
            nodes += function.body.len();
        }
    }
    if looked.is_empty() {
        return;
    }
    let workers = workers_for(looked.len(), nodes);
    let mut looked = looked.iter().peekable();
    let (functions, tables) = module.get_all_mut();
    let bodies = functions.into_iter().filter(|(key, _)| looked.next_if_eq(&key).is_some()).map(|(_, f)| &mut f.body);
    let compact_all = |bodies: Vec<_>| bodies.into_iter().for_each(|body| compact(tables, body));
    match workers {
        Some(workers) => {
            let jobs = bodies.map(|body| Job { size: body.len(), what: body }).collect();
            workers.map(workers.chunks(jobs), || (), |(), _, bodies| compact_all(bodies));
        }
        None => compact_all(bodies.collect()),
    }
}

/// Compacts a body if more than half of it is dead.
fn compact(tables: &Context, body: &mut Body) {
    if is_sparse(body, &tables.scratch()) {
        compact_body(body).expect("no journal is open outside of an edit");
    }
}

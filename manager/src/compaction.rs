//! What happens to nodes that passes leave behind.

use anfora_ir::{Body, Cursor, FunctionKey, Module, Step, compact_body, is_sparse};
use rustc_hash::FxHashMap;

/// How much was edited in functions since it was last looked whether they are sparse.
pub(crate) type Edited = FxHashMap<FunctionKey, usize>;

/// Keeps the edit of a pass, and compacts the bodies of which more than half is dead then. To look for what is dead is linear in a body, so it
/// waits until a good part of it was edited, by this pass or, as `sums` remember, by those before it.
pub(crate) fn keep(module: &mut Module, mut sums: Option<&mut Edited>) {
    const PART: usize = 4;
    let edited: Vec<(FunctionKey, usize)> =
        module.functions().map(|(key, f)| (key, f.body.edit_size())).filter(|&(_, size)| size > 0).collect();
    module.commit();
    // An edit around this one names expressions by their ids.
    if module.has_edit() {
        return;
    }
    for (key, size) in edited {
        let sum = size + sums.as_ref().and_then(|s| s.get(&key)).copied().unwrap_or(0);
        let Some((function, _)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        let look = sum >= body.len() / PART;
        if look && may_be_sparse(body) && is_sparse(body) {
            compact_body(body).expect("no journal is open outside of an edit");
        }
        if let Some(sums) = &mut sums {
            sums.insert(key, if look { 0 } else { sum });
        }
    }
}

/// Whether more than half of the nodes are dead if no constants and globals are counted among the living. Faster than to find out exactly.
fn may_be_sparse(body: &Body) -> bool {
    let mut live = body.params().len();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        live += match step {
            // The Let and its variable.
            Step::Bound(_) => 2,
            Step::Flat(_) | Step::Exit(_) => 1,
            _ => 0,
        };
    }
    live * 2 < body.len()
}

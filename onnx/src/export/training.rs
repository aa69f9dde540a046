//! Checks of training information. It is preserved unchanged, so its references to the graph must
//! still hold.

use rustc_hash::FxHashSet;

use crate::error::ExportProblem;
use crate::proto::{GraphProto, TrainingInfoProto};

/// Checks that the initializers that training changes and those that its graphs use exist.
///
/// # Errors
/// If one does not exist.
pub(super) fn check(training: &[TrainingInfoProto], graph: &GraphProto) -> Result<(), ExportProblem> {
    if training.is_empty() {
        return Ok(());
    }
    let mut state: FxHashSet<&str> = graph.initializer.iter().map(|t| t.name()).collect();
    state.extend(graph.sparse_initializer.iter().filter_map(|s| s.values.as_ref()).map(|t| t.name()));
    for info in training {
        let graphs = || info.initialization.iter().chain(&info.algorithm);
        let own: FxHashSet<&str> = graphs().flat_map(|g| &g.initializer).map(|t| t.name()).collect();
        let changed = info.initialization_binding.iter().chain(&info.update_binding).map(|e| e.key());
        if let Some(name) = changed.into_iter().find(|n| !state.contains(n) && !own.contains(n)) {
            return Err(ExportProblem::Training(name.to_owned()));
        }
        for g in graphs() {
            let inputs = g.input.iter().map(|i| i.name());
            let known: FxHashSet<&str> =
                inputs.chain(g.node.iter().flat_map(|n| n.output.iter().map(String::as_str))).collect();
            let used = g.node.iter().flat_map(|n| &n.input).map(String::as_str).filter(|n| !n.is_empty());
            if let Some(name) = used.into_iter().find(|n| !known.contains(n) && !state.contains(n) && !own.contains(n))
            {
                return Err(ExportProblem::Training(name.to_owned()));
            }
        }
    }
    Ok(())
}

//! The passes and pipelines by name.

use std::sync::Arc;

use anfora_manager::{PassRegistry, RegistryError};

use crate::canonicalize_bindings::CANONICALIZE_BINDINGS;
use crate::dead_code_elimination::DEAD_CODE_ELIMINATION;
use crate::eliminate_common_subexpr::ELIMINATE_COMMON_SUBEXPR;
use crate::fold_constant::{FOLD_CONSTANT, MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES};
use crate::to_a_normal_form::TO_A_NORMAL_FORM;
use crate::to_graph_normal_form::TO_GRAPH_NORMAL_FORM;

/// The pipelines: name, text, doc.
const PIPELINES: &[(&str, &str, &str)] = &[
    ("O0", "", "nothing"),
    ("O1", "ToANormalForm,CanonicalizeBindings,DeadCodeElimination", "what costs next to nothing"),
    (
        "O2",
        "ToANormalForm,fixpoint<4>(FoldConstant,CanonicalizeBindings,EliminateCommonSubexpr),DeadCodeElimination",
        "what always pays",
    ),
    ("O3", "O2", "everything"),
    ("phase0", "ToANormalForm", "ingestion: to A-normal form"),
    (
        "phase1",
        "fixpoint<4>(FoldConstant,CanonicalizeBindings,EliminateCommonSubexpr),DeadCodeElimination",
        "optimizations on A-normal form",
    ),
];

/// A registry of the passes, settings and pipelines of this crate.
///
/// # Panics
/// Never: their names differ.
pub fn registry() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    register(&mut registry).expect("the catalogue names each thing once");
    Arc::new(registry)
}

/// Registers the passes of this crate, the settings that they read, and the standard pipelines.
///
/// # Errors
/// If one of their names is taken.
pub fn register(registry: &mut PassRegistry) -> Result<(), RegistryError> {
    for entry in [
        TO_A_NORMAL_FORM,
        TO_GRAPH_NORMAL_FORM,
        FOLD_CONSTANT,
        CANONICALIZE_BINDINGS,
        ELIMINATE_COMMON_SUBEXPR,
        DEAD_CODE_ELIMINATION,
    ] {
        registry.register(entry)?;
    }
    for config in [MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES] {
        registry.register_config(config)?;
    }
    for &(name, text, doc) in PIPELINES {
        registry.register_pipeline(name, text, doc)?;
    }
    Ok(())
}

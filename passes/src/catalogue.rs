//! The passes and pipelines by name.

use std::sync::Arc;

use anfora_manager::{PassRegistry, RegistryError};

use crate::attach_global_symbol::ATTACH_GLOBAL_SYMBOL;
use crate::bind_params::BIND_PARAMS;
use crate::canonicalize_bindings::CANONICALIZE_BINDINGS;
use crate::convert_to_dataflow::CONVERT_TO_DATAFLOW;
use crate::dead_code_elimination::DEAD_CODE_ELIMINATION;
use crate::eliminate_common_subexpr::ELIMINATE_COMMON_SUBEXPR;
use crate::fold_batch_norm::FOLD_BATCH_NORM;
use crate::fold_constant::FOLD_CONSTANT;
use crate::fuse_ops::FUSE_OPS;
use crate::inline_functions::INLINE_FUNCTIONS;
use crate::lambda_lifting::LAMBDA_LIFTING;
use crate::normalize::NORMALIZE;
use crate::to_a_normal_form::TO_A_NORMAL_FORM;
use crate::to_graph_normal_form::TO_GRAPH_NORMAL_FORM;
use crate::to_non_dataflow::TO_NON_DATAFLOW;

/// The pipelines: name, text, doc.
const PIPELINES: &[(&str, &str, &str)] = &[
    ("O0", "", "nothing"),
    ("O1", "ToANormalForm,CanonicalizeBindings,DeadCodeElimination", "what costs next to nothing"),
    (
        "O2",
        "ToANormalForm,fixpoint<4>(FoldConstant,CanonicalizeBindings,EliminateCommonSubexpr),DeadCodeElimination",
        "what always pays",
    ),
    ("O3", "O2,FoldBatchNorm,LambdaLifting,ConvertToDataflow,FuseOps,DeadCodeElimination", "everything"),
];

/// What leads to each of the standard phases: number, passes, doc.
const MEGAPASSES: &[(&str, &str, &str)] = &[
    (
        "0",
        "ToANormalForm,Normalize,LambdaLifting,ConvertToDataflow",
        "ingestion: to A-normal form in dataflow regions, without functions in functions",
    ),
    (
        "1",
        "fixpoint<4>(FoldConstant,CanonicalizeBindings,EliminateCommonSubexpr),DeadCodeElimination,FuseOps",
        "optimizations: general ones, then fusion",
    ),
    ("2.1", "ToNonDataflow", "early build: no dataflow regions after it"),
    ("2.2", "", "early build: open to embedders"),
    ("2.3", "AttachGlobalSymbol", "early build: symbols for what links the functions"),
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
        LAMBDA_LIFTING,
        INLINE_FUNCTIONS,
        FOLD_BATCH_NORM,
        CONVERT_TO_DATAFLOW,
        FUSE_OPS,
        TO_NON_DATAFLOW,
        NORMALIZE,
        BIND_PARAMS,
        ATTACH_GLOBAL_SYMBOL,
    ] {
        registry.register(entry)?;
    }
    for &(name, text, doc) in PIPELINES {
        registry.register_pipeline(name, text, doc)?;
    }
    for &(phase, text, doc) in MEGAPASSES {
        let phase = phase.parse().expect("the numbers of the standard phases are numbers");
        registry.register_megapass(phase, text, doc)?;
    }
    Ok(())
}

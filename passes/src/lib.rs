//! The reference passes of anfora.
//!
//! Each pass is one file or folder. Its head lists what the pass needs, does, never does and costs.
//! A pass is a plain function, over the tables of a module and one function or over the module, and
//! an entry of the registry under the name that pipelines use ([`register`]):
//!
//! - over one function: [`fold_constant`], [`eliminate_common_subexpr`], [`canonicalize_bindings`],
//!   [`fold_batch_norm`], [`fuse_standard_ops`], [`combine_parallel_matmul`], [`decompose_ops`],
//!   [`convert_layout`],
//!   [`to_a_normal_form`], [`to_graph_normal_form`], [`normalize`], [`simplify_expr`],
//!   [`simplify_shapes`], [`convert_to_dataflow`], [`to_non_dataflow`],
//!   [`topological_sort`];
//! - over the module: [`eliminate_dead_code`], [`lift_lambdas`], [`inline_functions`],
//!   [`fuse_ops`], [`fuse_ops_by_pattern`], [`merge_composite_functions`], [`bind_params`],
//!   [`bind_symbols`], [`remove_unused_parameters`], [`remove_unused_outputs`],
//!   [`to_mixed_precision`], [`gradient`], [`attach_global_symbol`], [`plan_memory`].
//!
//! [`CheckMeaning`] is an instrument that interprets programs before and after passes, and detects
//! passes that change the results. [`PassContext::checked()`](CheckedContext::checked) is a context
//! that runs it and the verifier after each pass.
//!
//! The registry also has the pipelines `O0` to `O3`, `slim` and `slim_exact`, and the pipelines of
//! the phases, `phase0` to `phase2.3`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use anfora_ir::{Source, parse_module};
//! use anfora_manager::{PassContext, PassRegistry, parse_pipeline, run_pass};
//!
//! let text = "def @f(%x: int32) {
//!     let %a = add(1, 2);
//!     let %b = negative(%x);
//!     multiply(add(%a, %b), negative(%x))
//! }";
//! let mut module = parse_module(Source::new("example", text), anfora_ops::standard())
//!     .expect("the program is right");
//!
//! let mut registry = PassRegistry::new();
//! anfora_passes::register(&mut registry)?;
//! let pipeline = parse_pipeline(&registry, "O2")?;
//! let cx = PassContext::with_registry(Arc::new(registry));
//! run_pass(&pipeline, &mut module, &cx)?;
//! assert_eq!(module.to_string().matches("negative").count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`FOLD_CONSTANT`] and [`CheckMeaning`] evaluate programs. They, the interpreter and the kernels
//! need the feature `interp`, which is on by default. Without it, the pipelines do not contain
//! FoldConstant.
//!
//! [`simplify_expr`] and [`fuse_standard_ops`] consist of rules in text, like passes of users
//! ([`FromRules`]).
//!
//! The passes that rewrite bindings are [`Mutator`](anfora_visit::Mutator)s: the walk replaces
//! variables, removes bindings from their chains, keeps types and dataflow regions right as it
//! goes, and enters branches and functions with an explicit stack. None of them recurses, builds
//! lists of uses or infers a whole program again.

mod attach_global_symbol;
mod bind_params;
mod bind_symbols;
mod canonicalize_bindings;
mod catalogue;
#[cfg(feature = "interp")]
mod check_meaning;
mod checked_context;
mod combine_parallel_matmul;
mod convert_layout;
mod convert_to_dataflow;
mod dead_code_elimination;
mod decompose_ops;
mod eliminate_common_subexpr;
mod fold_batch_norm;
#[cfg(feature = "interp")]
mod fold_constant;
mod fold_budget;
mod from_rules;
mod fuse_ops;
mod fuse_ops_by_pattern;
mod fuse_standard_ops;
mod gradient;
mod inline_functions;
mod lambda_lifting;
mod lift_transform_params;
mod match_facts;
mod merge_composite_functions;
mod normalize;
mod npy;
mod outline;
mod parameter_symbols;
mod plan_memory;
mod private_functions;
mod region_scan;
mod remove_unused_outputs;
mod remove_unused_parameters;
mod run_codegen;
mod seen_scopes;
mod simplify_expr;
mod simplify_shapes;
mod to_a_normal_form;
mod to_graph_normal_form;
mod to_mixed_precision;
mod to_non_dataflow;
mod topological_sort;

pub use crate::fold_budget::{FoldBudget, MAX_FILE_BYTES, MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK};
#[cfg(feature = "npz")]
pub use crate::npy::read_npz;
pub use crate::npy::{NpyError, NpyFile, has_npy_type, read_npy, write_npy};
pub use attach_global_symbol::{ATTACH_GLOBAL_SYMBOL, GLOBAL_SYMBOL, SYSTEM_LIB_PREFIX, attach_global_symbol};
pub use bind_params::{BIND_PARAMS, ParamRef, bind_params};
pub use bind_symbols::{BIND_SYMBOLS, SymbolRef, bind_symbols, substitute_symbols};
pub use canonicalize_bindings::{CANONICALIZE_BINDINGS, Canonicalized, canonicalize_bindings, direct_call};
pub use catalogue::{install_default_registry, register, registry};
#[cfg(feature = "interp")]
pub use check_meaning::{CheckMeaning, Checked, same_meaning};
pub use checked_context::{CheckedContext, CheckedContextBuilder};
pub use combine_parallel_matmul::{COMBINE_PARALLEL_MATMUL, CombinedProducts, combine_parallel_matmul};
pub use convert_layout::{
    CONVERT_LAYOUT, ConvertedLayouts, DesiredLayout, DesiredLayouts, UnreadableLayout, convert_layout,
};
pub use convert_to_dataflow::{CONVERT_TO_DATAFLOW, Converted, convert_to_dataflow};
pub use dead_code_elimination::{DEAD_CODE_ELIMINATION, Eliminated, eliminate_dead_code};
pub use decompose_ops::{
    DECOMPOSE_OPS, DecomposedOps, DecompositionTarget, UnknownTarget, decompose_ops, decompose_where, onnx_version_with,
};
pub use eliminate_common_subexpr::{ELIMINATE_COMMON_SUBEXPR, OperandOrder, eliminate_common_subexpr};
pub use fold_batch_norm::{FOLD_BATCH_NORM, FoldedIntoWeights, fold_batch_norm};
#[cfg(feature = "interp")]
pub use fold_constant::{FOLD_CONSTANT, Folded, fold_constant};
pub use from_rules::{FromRules, NEVER_MAKE, TRACE_RULES, rules_of};
pub use fuse_ops::{FUSE_OPS, Fused, FusionLimits, MAX_FUSION_ARGS, MAX_FUSION_DEPTH, fuse_ops};
pub use fuse_ops_by_pattern::{
    CODEGEN, COMPOSITE, CompositePattern, FUSE_OPS_BY_PATTERN, Partition, Partitioned, fuse_ops_by_pattern,
    standard_patterns,
};
pub use fuse_standard_ops::{FUSE_STANDARD_OPS, fuse_standard_ops};
pub use gradient::{GRADIENT, GradientOptions, gradient};
pub use inline_functions::{INLINE_FUNCTIONS, Inlined, MAX_INLINE_GROWTH, inline_functions, inline_lambdas};
pub use lambda_lifting::{LAMBDA_LIFTING, lift_lambdas};
pub use lift_transform_params::{LIFT_TRANSFORM_PARAMS, LiftOptions, LiftedParams, NUM_INPUT, lift_transform_params};
pub use merge_composite_functions::{MERGE_COMPOSITE_FUNCTIONS, MergedFunctions, merge_composite_functions};
pub use normalize::{NORMALIZE, Normalized, normalize};
pub use parameter_symbols::{only_binders, symbols_named_by};
#[cfg(feature = "interp")]
pub use plan_memory::PlannedMemory;
pub use plan_memory::{
    FunctionPlan, LivePoint, MEMORY_PLANNED, MemoryOptions, MemoryPlan, PLAN_MEMORY, PlannedScope, Storage,
    StorageHome, TuplePlaces, ValuePlace, memory_planned, plan_memory,
};
pub use remove_unused_outputs::{REMOVE_UNUSED_OUTPUTS, remove_unused_outputs};
pub use remove_unused_parameters::{REMOVE_UNUSED_PARAMETERS, remove_unused_parameters};
pub use run_codegen::{Backend, CodegenInput, generate_code, register_backends, run_codegen};
pub use simplify_expr::{SIMPLIFY_EXPR, simplify_expr};
pub use simplify_shapes::{SIMPLIFY_SHAPES, SimplifiedShapes, simplify_shapes};
pub use to_a_normal_form::{TO_A_NORMAL_FORM, to_a_normal_form};
pub use to_graph_normal_form::{TO_GRAPH_NORMAL_FORM, to_graph_normal_form};
pub use to_mixed_precision::{
    LowPrecision, MixedPrecision, PrecisionOptions, TO_MIXED_PRECISION, UnknownPrecision, to_mixed_precision,
};
pub use to_non_dataflow::{TO_NON_DATAFLOW, to_non_dataflow};
pub use topological_sort::{SearchDirection, SearchOrder, TOPOLOGICAL_SORT, UnknownSearch, topological_sort};

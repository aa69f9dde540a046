//! The passes and pipelines by name.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use anfora_manager::{
    ConfigError, DefaultRegistryError, OptionDef, Options, PRINT_IR, PassRegistry, PipelineText, RegistryError,
    set_default_registry,
};

#[cfg(feature = "interp")]
use crate::FOLD_CONSTANT;
use crate::plan_memory::memory_planned;
use crate::{
    ATTACH_GLOBAL_SYMBOL, BIND_PARAMS, BIND_SYMBOLS, CANONICALIZE_BINDINGS, COMBINE_PARALLEL_MATMUL, CONVERT_LAYOUT,
    CONVERT_TO_DATAFLOW, DEAD_CODE_ELIMINATION, DECOMPOSE_OPS, ELIMINATE_COMMON_SUBEXPR, FOLD_BATCH_NORM, FUSE_OPS,
    FUSE_OPS_BY_PATTERN, FUSE_STANDARD_OPS, GRADIENT, INLINE_FUNCTIONS, LAMBDA_LIFTING, LIFT_TRANSFORM_PARAMS,
    MERGE_COMPOSITE_FUNCTIONS, NORMALIZE, PLAN_MEMORY, REMOVE_UNUSED_OUTPUTS, REMOVE_UNUSED_PARAMETERS, SIMPLIFY_EXPR,
    SIMPLIFY_SHAPES, TO_A_NORMAL_FORM, TO_GRAPH_NORMAL_FORM, TO_MIXED_PRECISION, TO_NON_DATAFLOW, TOPOLOGICAL_SORT,
};

/// The pipelines: name, text, doc.
const PIPELINES: &[(&str, &str, &str)] = &[
    ("O0", "", "nothing"),
    ("O1", "ToANormalForm,CanonicalizeBindings,DeadCodeElimination", "the cheapest passes"),
    // The program is smallest before SimplifyExpr, whose search costs more than the other passes.
    (
        "O2",
        "ToANormalForm,fixpoint<4>(FoldConstant,CanonicalizeBindings,SimplifyShapes,EliminateCommonSubexpr,DeadCodeElimination,SimplifyExpr)",
        "passes that pay off in every program",
    ),
    (
        "O3",
        "O2,FuseStandardOps,FoldBatchNorm,CombineParallelMatmul,InlineFunctions{only_lambdas=true},LambdaLifting,Normalize,ConvertToDataflow,FuseOps,DeadCodeElimination",
        "everything",
    ),
    // Convolutions take batch norms before equal convolutions become one, which has several users,
    // and after activations are fused, whose factors they would take.
    (
        "slim",
        "ToANormalForm,FoldConstant,CanonicalizeBindings,FuseStandardOps,FoldBatchNorm,O2,FuseStandardOps,FoldBatchNorm,O2,CombineParallelMatmul",
        "as few nodes as possible, without new functions",
    ),
    ("slim_exact", "O2", "as few nodes as possible, where all results keep their bits"),
];

/// Returns the pipelines that lead to the standard phases: number, passes, doc.
fn megapasses() -> [(&'static str, PipelineText, &'static str); 5] {
    [
        (
            "0",
            "ToANormalForm,Normalize,LambdaLifting,ConvertToDataflow".into(),
            "ingestion: A-normal form in dataflow regions, without nested functions",
        ),
        ("1", PipelineText::with_options(PHASE1_OPTIONS, phase1), "optimizations: general ones, then fusion"),
        ("2.1", "DecomposeOps,ToNonDataflow".into(), "early build: primitive operators, without dataflow regions"),
        ("2.2", "".into(), "early build: no passes, for embedders to extend"),
        ("2.3", "AttachGlobalSymbol".into(), "early build: symbols, by which a linker finds the functions"),
    ]
}

/// The value of an option of `phase1` for which the pass of that option does not run.
const UNCHANGED: &str = "unchanged";

const PHASE1_OPTIONS: &[OptionDef] = &[
    OptionDef::one_of(
        "precision",
        &[UNCHANGED, "float16", "bfloat16"],
        UNCHANGED,
        "the type in which ToMixedPrecision computes products, convolutions and what follows them",
    ),
    OptionDef::one_of(
        "layout",
        &[UNCHANGED, "NCHW", "NHWC"],
        UNCHANGED,
        "the layout that ConvertLayout gives convolutions over two dimensions",
    ),
];

/// Returns the passes of the pipeline of phase 1.
fn phase1(options: &Options) -> Result<String, ConfigError> {
    const GENERAL: &str = "fixpoint<4>(FoldConstant,CanonicalizeBindings,SimplifyShapes,EliminateCommonSubexpr)";
    let (precision, layout): (String, String) = (options.get("precision")?, options.get("layout")?);
    let mut passes = vec![GENERAL.to_string()];
    if precision != UNCHANGED {
        passes.push(format!("ToMixedPrecision{{to={precision}}}"));
    }
    if layout != UNCHANGED {
        passes.push(format!("ConvertLayout{{desired=[{layout}]}}"));
    }
    // Both passes make casts and permutations of constants, and equal ones.
    if passes.len() > 1 {
        passes.push(GENERAL.to_string());
    }
    passes.push("DeadCodeElimination,FuseOps".to_string());
    Ok(available(&passes.join(",")).into_owned())
}

/// Returns a pipeline without FoldConstant if the feature `interp` is off.
fn available(text: &str) -> Cow<'_, str> {
    if cfg!(feature = "interp") { text.into() } else { text.replace("FoldConstant,", "").into() }
}

/// Returns a registry of the passes, settings and pipelines of this crate.
///
/// # Panics
/// Never: their names differ.
pub fn registry() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    register(&mut registry).expect("the catalogue names each thing once");
    Arc::new(registry)
}

/// Makes a registry of the passes, settings and pipelines of this crate the default for contexts
/// that are given no registry. Then `PassContext::new()`, `PassContext::builder()` and
/// `PassContext::current()` find the dependencies of passes, their settings and pipelines. A
/// program should call this once at its beginning; further calls do nothing.
///
/// # Errors
/// If the process already has another default registry, set by [`set_default_registry`].
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_manager::{Declare, ModulePass, Pass, PassContext, parse_pipeline};
///
/// anfora_passes::install_default_registry()?;
/// // It cannot do its work on other programs than those in A-normal form.
/// let pass = ModulePass::new("Mine", 0, |_, _| Ok(())).requiring(["ToANormalForm"]);
/// let text = "def @f(%x: int32) { negative(negative(%x)) }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard())
///     .expect("the program is right");
/// let cx = PassContext::builder().config("FuseOps.max_depth", 64).build()?;
/// assert!(pass.apply(&mut module, &cx)?.is_changed());
/// parse_pipeline(PassContext::current().registry(), "O2")?
///     .apply(&mut module, &PassContext::new())?;
/// anfora_passes::install_default_registry()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn install_default_registry() -> Result<(), DefaultRegistryError> {
    static REGISTRY: LazyLock<Arc<PassRegistry>> = LazyLock::new(registry);
    set_default_registry(REGISTRY.clone())
}

/// Registers the passes of this crate, their settings, and the standard pipelines.
///
/// # Errors
/// If one of their names is taken.
pub fn register(registry: &mut PassRegistry) -> Result<(), RegistryError> {
    registry.register_property(memory_planned())?;
    for entry in [
        TO_A_NORMAL_FORM,
        TO_GRAPH_NORMAL_FORM,
        #[cfg(feature = "interp")]
        FOLD_CONSTANT,
        CANONICALIZE_BINDINGS,
        SIMPLIFY_EXPR,
        SIMPLIFY_SHAPES,
        ELIMINATE_COMMON_SUBEXPR,
        DEAD_CODE_ELIMINATION,
        LAMBDA_LIFTING,
        INLINE_FUNCTIONS,
        FOLD_BATCH_NORM,
        FUSE_STANDARD_OPS,
        COMBINE_PARALLEL_MATMUL,
        DECOMPOSE_OPS,
        CONVERT_LAYOUT,
        CONVERT_TO_DATAFLOW,
        FUSE_OPS,
        FUSE_OPS_BY_PATTERN,
        MERGE_COMPOSITE_FUNCTIONS,
        TO_NON_DATAFLOW,
        TOPOLOGICAL_SORT,
        NORMALIZE,
        BIND_PARAMS,
        BIND_SYMBOLS,
        REMOVE_UNUSED_PARAMETERS,
        REMOVE_UNUSED_OUTPUTS,
        LIFT_TRANSFORM_PARAMS,
        TO_MIXED_PRECISION,
        GRADIENT,
        ATTACH_GLOBAL_SYMBOL,
        PLAN_MEMORY,
        PRINT_IR,
    ] {
        registry.register(entry)?;
    }
    for &(name, text, doc) in PIPELINES {
        registry.register_pipeline(name, &*available(text), doc)?;
    }
    for (phase, passes, doc) in megapasses() {
        let phase = phase.parse().expect("the numbers of the standard phases are numbers");
        registry.register_megapass(phase, passes, doc)?;
    }
    Ok(())
}

//! One call that makes a program as small as possible.
//!
//! ```
//! use anfora::prelude::*;
//! use anfora::slim::{SlimOptions, slim};
//!
//! let text = "def @main(%x: Tensor[(n, 4), float32]) {
//!     let %t = permute_dims(%x, axes=[1, 0]);
//!     let %a = permute_dims(%t, axes=[1, 0]);
//!     let %b = exp(%a);
//!     let %c = exp(%a);
//!     add(%b, %c)
//! }";
//! let mut module = parse_module(Source::new("example.anf", text), anfora::ops::standard())?;
//! let slimmed = slim(&mut module, &SlimOptions::default())?;
//! assert_eq!((slimmed.before.bindings, slimmed.after.bindings), (4, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use anfora_ir::{Counts, Module, verify_module};
use anfora_manager::{
    ModulePass, Pass, PassContext, PassContextBuilder, PassError, PassFailure, PassRegistry, PassRemark, RunLog,
    RunRecord, Sequential, parse_pipeline,
};
use anfora_passes::CheckMeaning;

use crate::surgery::{KnownNumbers, NewExtent, set_extents};

/// The options of [`slim`].
#[derive(Clone, Debug)]
pub struct SlimOptions {
    /// The function whose parameters [`SlimOptions::input_shapes`] names.
    pub entry: String,
    /// Extents of parameters, by the name of the parameter without `%`. `None` leaves an extent as
    /// it is.
    pub input_shapes: Vec<(String, Vec<Option<usize>>)>,
    /// True if all results keep their bits. The call then uses the pipeline `slim_exact`, which
    /// omits the passes that change roundings.
    pub exact: bool,
    /// True if operators of `com.microsoft` may take the place of standard ones
    /// ([`fuse_contrib_ops`](anfora_onnx::fuse_contrib_ops)), as only onnxruntime reads them. The
    /// results are then not exact.
    #[cfg(feature = "onnx")]
    pub contrib: bool,
    /// The version of the standard operators of ONNX in which the program will be written, whatever
    /// version its file has ([`set_opset`](anfora_onnx::set_opset)).
    #[cfg(feature = "onnx")]
    pub opset: Option<i64>,
    /// The conversions of operators to ONNX, which tell the calls that the version lacks.
    #[cfg(feature = "onnx")]
    pub conversions: anfora_onnx::convert::Conversions,
    /// The passes, settings and pipelines. The pipelines `slim` and `slim_exact` must be among
    /// them.
    pub passes: Arc<PassRegistry>,
    /// The most bytes by which a folded call may grow the program;
    /// [`SlimOptions::SIZE_THRESHOLD`] by default. All folds in a function may add four times as
    /// much. With [`u64::MAX`], results of any size are folded. If the program is exported, set
    /// `ExportOptions::max_splat_bytes` to the same value: the exporter turns a larger constant
    /// that repeats one number into a node again.
    pub size_threshold: u64,
    /// Settings of passes, each as `key=value`.
    pub config: Vec<String>,
    /// The names of disabled passes.
    pub disable: Vec<String>,
    /// The number of random inputs on which the program is interpreted before and after each pass.
    /// If the results differ, the pass fails. With 0, nothing is interpreted.
    pub check: u64,
    /// The number of threads for function passes. With 0, the number of threads that the machine
    /// runs in parallel.
    pub threads: usize,
}

impl Default for SlimOptions {
    fn default() -> SlimOptions {
        SlimOptions {
            entry: "main".to_string(),
            input_shapes: Vec::new(),
            exact: false,
            #[cfg(feature = "onnx")]
            contrib: false,
            #[cfg(feature = "onnx")]
            opset: None,
            #[cfg(feature = "onnx")]
            conversions: Default::default(),
            passes: anfora_passes::registry(),
            size_threshold: SlimOptions::SIZE_THRESHOLD,
            config: Vec::new(),
            disable: Vec::new(),
            check: 0,
            threads: 1,
        }
    }
}

impl SlimOptions {
    /// The default of [`SlimOptions::size_threshold`]: 512 MiB.
    pub const SIZE_THRESHOLD: u64 = 512 << 20;

    /// Returns the name of the pipeline.
    pub fn pipeline(&self) -> &'static str {
        if self.exact { "slim_exact" } else { "slim" }
    }
}

/// The result of [`slim`].
#[derive(Clone, Debug)]
pub struct Slimmed {
    /// The counts before the passes ran.
    pub before: Counts,
    /// The counts after the passes ran.
    pub after: Counts,
    /// The passes that ran.
    pub runs: Vec<RunRecord>,
    /// The messages of the passes.
    pub remarks: Vec<PassRemark>,
}

/// Makes a program as small as possible without adding functions. Uses the pipeline `slim`, or
/// `slim_exact` if the options ask for it.
///
/// # Errors
/// If the options name a function, parameter, setting or pass that does not exist, or give extents
/// that contradict a type, if the program is not well-formed, or if a pass fails. The module is
/// then unchanged.
pub fn slim(module: &mut Module, options: &SlimOptions) -> Result<Slimmed, PassFailure> {
    verify_module(module).map_err(PassError::from)?;
    let before = Counts::of_module(module);
    // A pipeline that fails in the middle changes nothing.
    let mut slimmed = module.clone();
    #[cfg(feature = "onnx")]
    set_opset(&mut slimmed, options)?;
    let pipeline = parse_pipeline(&options.passes, options.pipeline()).map_err(PassError::from)?;
    let mut passes: Vec<Arc<dyn Pass>> = vec![Arc::new(pipeline)];
    #[cfg(feature = "onnx")]
    if options.contrib {
        passes.push(anfora_onnx::fuse_contrib_ops());
    }
    if !options.input_shapes.is_empty() {
        let (entry, shapes) = (options.entry.clone(), options.input_shapes.clone());
        passes.insert(0, Arc::new(ModulePass::new("InputShapes", 0, move |m, _| bind_inputs(m, &entry, &shapes))));
    }
    let all = Sequential::new(passes).map_err(PassError::from)?;

    let log = Arc::new(RunLog::new());
    let builder = PassContext::builder().registry(Arc::clone(&options.passes)).opt_level(3).threads(options.threads);
    let limit = (options.size_threshold < u64::MAX).then_some(options.size_threshold);
    let builder = builder
        .config("FoldConstant.max_growth_bytes", limit)
        .config("FoldConstant.max_total_growth_bytes", limit.map(|limit| limit.saturating_mul(4)));
    // What an export would write as the same nodes again is not fused, unless an operator of
    // `com.microsoft` may take its place.
    #[cfg(feature = "onnx")]
    let missing = anfora_onnx::missing_operators(&slimmed, options.contrib);
    #[cfg(feature = "onnx")]
    let builder = builder.config("Rules.never_make", missing);
    let builder = options.config.iter().fold(builder, |b, setting| b.config_text(setting.clone()));
    let builder = options.disable.iter().fold(builder, |b, pass| b.disable(pass));
    let builder = (0..options.check).fold(builder, |b, seed| b.instrument(Arc::new(CheckMeaning::new().seed(seed))));
    let context = PassContextBuilder::instrument(builder, log.clone()).build().map_err(PassError::from)?;

    all.apply(&mut slimmed, &context)?;
    // A pass may have made a call that the version lacks.
    #[cfg(feature = "onnx")]
    set_opset(&mut slimmed, options)?;
    *module = slimmed;
    Ok(Slimmed { before, after: Counts::of_module(module), runs: log.records(), remarks: context.take_remarks() })
}

/// Makes a program that can be written in the version of the operators that the options ask for.
#[cfg(feature = "onnx")]
fn set_opset(module: &mut Module, options: &SlimOptions) -> Result<(), PassError> {
    let Some(opset) = options.opset else { return Ok(()) };
    anfora_onnx::set_opset(module, opset, &options.conversions).map_err(|e| PassError::from(e.diagnostic()))
}

/// Gives the parameters of a function their extents. A number that contradicts the type of a
/// parameter is an error.
fn bind_inputs(module: &mut Module, entry: &str, shapes: &[(String, Vec<Option<usize>>)]) -> Result<(), PassError> {
    let extent = |extent: &Option<usize>| match extent.and_then(|e| u64::try_from(e).ok()) {
        Some(number) => NewExtent::Fixed(number),
        None => NewExtent::Kept,
    };
    let shapes: Vec<(String, Vec<NewExtent>)> =
        shapes.iter().map(|(name, extents)| (name.clone(), extents.iter().map(extent).collect())).collect();
    Ok(set_extents(module, entry, &shapes, KnownNumbers::Kept)?)
}

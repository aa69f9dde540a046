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

use std::collections::HashMap;
use std::sync::Arc;

use anfora_ir::{Counts, Dim, Editor, Module, Retype, SymbolId, TypeId, did_you_mean, verify_module};
use anfora_manager::{
    ModulePass, Pass, PassContext, PassContextBuilder, PassError, PassFailure, PassRemark, RunLog, RunRecord,
    Sequential, parse_pipeline,
};
use anfora_passes::{CheckMeaning, SymbolRef, bind_symbols};

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
    /// The most bytes by which a folded call may grow the program; 512 MiB by default. All folds in
    /// a function may add four times as much. With [`u64::MAX`], results of any size are folded. If
    /// the program is exported, set `ExportOptions::max_splat_bytes` to the same value: the
    /// exporter turns a larger constant that repeats one number into a node again.
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
            size_threshold: 512 << 20,
            config: Vec::new(),
            disable: Vec::new(),
            check: 0,
            threads: 1,
        }
    }
}

impl SlimOptions {
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
    let registry = anfora_passes::registry();
    let pipeline = parse_pipeline(&registry, options.pipeline()).map_err(PassError::from)?;
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
    let builder = PassContext::builder().registry(registry).opt_level(3).threads(options.threads);
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
    anfora_onnx::set_opset(module, opset, &Default::default()).map_err(|e| PassError::from(e.diagnostic()))
}

/// Gives the parameters of a function their extents.
fn bind_inputs(module: &mut Module, entry: &str, shapes: &[(String, Vec<Option<usize>>)]) -> Result<(), PassError> {
    for (name, extents) in shapes {
        bind_input(module, entry, name, extents).map_err(|e| e.in_function(entry).on_binding(name.clone()))?;
    }
    Ok(())
}

/// Gives one parameter its extents. Symbolic extents are bound in the whole function; unknown
/// extents become constants in the type of the parameter.
fn bind_input(module: &mut Module, entry: &str, name: &str, extents: &[Option<usize>]) -> Result<(), PassError> {
    let key = module.find(entry).ok_or_else(|| PassError::new(format!("there is no function `@{entry}`")))?;
    let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
    let names = |body: &anfora_ir::Body| -> Vec<String> {
        let names = body.params().iter().filter_map(|&v| body.var_name(v));
        names.map(|n| cx.names.get(n).to_string()).collect()
    };
    let params = names(&function.body);
    let Some(at) = params.iter().position(|p| p == name) else {
        let help = did_you_mean(name, params.iter().map(String::as_str)).map(|n| format!("did you mean `{n}`?"));
        return Err(PassError::new(format!("there is no input `{name}`")).with_optional_help(help));
    };
    let var = function.body.params()[at];
    let ty: TypeId = function.body.ty(var.expr());
    let tensor = cx.types.as_tensor(ty).ok_or_else(|| PassError::new("the input is no tensor"))?.clone();
    let dims = match &tensor.shape {
        Some(dims) if dims.len() == extents.len() => dims.clone(),
        Some(dims) => {
            let (given, has) = (extents.len(), dims.len());
            return Err(PassError::new(format!("{given} extents are given, and the input has {has}")));
        }
        None => extents.iter().map(|_| cx.types.dims.unknown()).collect(),
    };
    // Unknown extents are replaced in the type of the parameter, symbols in the whole function.
    let mut stated = dims.clone();
    let mut symbols: Vec<(SymbolRef<'_>, i64)> = Vec::new();
    let mut bound: HashMap<SymbolId, i64> = HashMap::new();
    for ((dim, stated), extent) in dims.iter().zip(&mut stated).zip(extents) {
        let Some(extent) = extent.and_then(|e| i64::try_from(e).ok()) else { continue };
        match *cx.types.dims.get(*dim) {
            Dim::Unknown => *stated = cx.types.dims.constant(extent),
            Dim::Symbol(symbol) => match bound.insert(symbol, extent) {
                None => symbols.push((SymbolRef::Symbol(symbol), extent)),
                Some(other) if other == extent => {}
                Some(other) => {
                    let symbol = cx.dim_text(*dim);
                    return Err(PassError::new(format!("the extents {other} and {extent} are given for `{symbol}`")));
                }
            },
            Dim::Const(known) if known == extent => {}
            _ => {
                let known = cx.dim_text(*dim);
                return Err(PassError::new(format!("the extent {extent} is given, and the input has {known}")));
            }
        }
    }
    if stated != dims {
        let ty = cx.types.tensor(tensor.dtype, &stated);
        function.body.set_type(var.expr(), ty);
        let mut retype = Retype::new(&function.body);
        retype.changed(var.expr());
        let root = function.body.root();
        let editor = Editor::new(cx, &mut function.body);
        retype.sweep(editor.cx, editor.body, root)?;
        anfora_ir::update_signatures(module, &[key])?;
    }
    if !symbols.is_empty() {
        bind_symbols(module, Some(entry), &symbols)?;
    }
    Ok(())
}

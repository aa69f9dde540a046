//! # RunCodegen
//!
//! ```text
//! Notation   @g a function with the attribute Codegen="B"; B a backend.
//! Needs      Nothing: any form.
//! Effect     def @g(%x: T) { … }   =>   declare @g(%x: T, Codegen="B", Pure=1,
//!                                                  global_symbol="s") -> U;
//!              where s is the result of the backend's closure; without Pure=1 if @g has effects.
//!              The closure is given a module of its own, in which the function is `@main`, with
//!              the functions that it calls.
//! Backends   Are given to `run_codegen`, or to `register_backends`, which also registers the
//!            pipeline `byoc`: FuseOpsByPattern for each backend, then Normalize,
//!            ConvertToDataflow, MergeCompositeFunctions, RunCodegen and DeadCodeElimination.
//! Fails      If a function is for a backend that has no closure, or a closure fails. The module is
//!            as it was then; side effects of closures stay.
//! Not done   The functions that only @g called stay: DeadCodeElimination removes them.
//! Cost       Linear in the modules that the closures are given, which repeat what several
//!            functions call. Idempotent: a declaration stays as it is.
//!
//! before     def @f(%x: int32) { @g(%x) }
//!            def private @g(%x: int32, Codegen="mine", Primitive=1) { negative(%x) }
//! after      def @f(%x: int32) { @g(%x) }
//!            declare @g(%x: int32, Codegen="mine", Pure=1, global_symbol="g") -> int32;
//! ```

use std::sync::Arc;

use anfora_ir::{
    Attr, Context, Function, FunctionKey, FunctionKind, GLOBAL_SYMBOL, GlobalId, GlobalTarget, Module, PRIMITIVE, PURE,
    Purity, SymbolWalk, TypeId, VarFlags, Visibility, did_you_mean,
};
use anfora_manager::{Declare, ModulePass, PassError, PassRegistry, RegistryError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::fuse_ops_by_pattern::CODEGEN;
use crate::outline::SymbolBinders;

/// A function for which a backend generates code.
#[derive(Copy, Clone, Debug)]
pub struct CodegenInput<'a> {
    /// A module in which the function is `@main`. It also has the functions that it calls.
    pub module: &'a Module,
    /// The name of the function in the program, without `@`.
    pub name: &'a str,
}

type Generate = dyn Fn(CodegenInput<'_>) -> Result<String, PassError> + Send + Sync;

/// A backend: the patterns of the operators that it computes, and a closure that generates code for
/// functions.
#[derive(Clone)]
pub struct Backend {
    name: String,
    patterns: String,
    generate: Arc<Generate>,
}

impl Backend {
    /// Returns a backend for the standard patterns. Its closure generates code for a function, and
    /// returns the symbol by which a linker, or the interpreter, finds the code.
    pub fn new(
        name: impl Into<String>,
        generate: impl Fn(CodegenInput<'_>) -> Result<String, PassError> + Send + Sync + 'static,
    ) -> Backend {
        Backend { name: name.into(), patterns: "standard".to_string(), generate: Arc::new(generate) }
    }

    /// Sets the patterns, as the option of [`FUSE_OPS_BY_PATTERN`](crate::FUSE_OPS_BY_PATTERN) has
    /// them: names of standard patterns, or `name=expression`, separated by commas.
    #[must_use]
    pub fn patterns(self, patterns: impl Into<String>) -> Backend {
        Backend { patterns: patterns.into(), ..self }
    }
}

anfora_ir::brief_debug! { Backend; }

/// Registers the pass RunCodegen for some backends, and the pipeline `byoc`, which moves what the
/// backends compute into functions and generates code for them. The patterns of a backend have
/// precedence over those of the backends after it.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_manager::{PassContext, PassRegistry, parse_pipeline, run_pass};
/// use anfora_passes::{Backend, register_backends};
///
/// let backend = Backend::new("mine", |function| {
///     assert!(function.module.to_string().contains("matmul"));
///     Ok(format!("mine_{}", function.name))
/// });
/// let mut registry = PassRegistry::new();
/// anfora_passes::register(&mut registry)?;
/// register_backends(&mut registry, vec![backend.patterns("matmul_activation,matmul")])?;
///
/// let text = "def @main(%x: Tensor[(2, 2), float32]) { nn.relu(matmul(%x, %x)) }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let byoc = parse_pipeline(&registry, "ToANormalForm,byoc")?;
/// run_pass(&byoc, &mut module, &PassContext::with_registry(registry.into()))?;
/// assert!(module.to_string().contains("global_symbol=\"mine_fused_matmul_relu_mine\""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Wrong patterns, and names of backends with a dot, are errors where `byoc` is read.
///
/// Cost: linear in the text.
///
/// # Errors
/// If the registry has a pass or a pipeline of that name. RunCodegen may be registered then.
pub fn register_backends(registry: &mut PassRegistry, backends: Vec<Backend>) -> Result<(), RegistryError> {
    let partitions = backends.iter().map(|Backend { name, patterns, .. }| {
        format!("FuseOpsByPattern{{patterns={},backend={}}},", quoted(patterns), quoted(name))
    });
    let text: String = partitions.collect();
    let rest = "Normalize,ConvertToDataflow{min_size=1},MergeCompositeFunctions,RunCodegen,DeadCodeElimination";
    registry.register_pass(run_codegen(backends), "Replaces functions for backends by the code that they generate")?;
    registry.register_pipeline("byoc", text + rest, "what backends compute, as functions for which they generate code")
}

/// Returns a text as the value of an option.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the pass RunCodegen for some backends. The name of a backend is what a composite
/// function has before the first dot of its attribute, so it has no dot.
pub fn run_codegen(backends: Vec<Backend>) -> ModulePass {
    ModulePass::new("RunCodegen", 0, move |module, cx| {
        let purity = cx.analyses().of_module(module, Purity::of_module);
        cx.count("functions", generate_code(module, &purity, &backends)? as u64);
        Ok(())
    })
    .breaking(["global-symbols"])
}

/// Replaces the functions for backends by declarations, and returns their number.
///
/// # Errors
/// If a function is for a backend that is not in the list, calls itself through others, or calls a
/// function named `main`; if a backend fails, or returns no symbol or that of another function. The
/// functions are unchanged then.
pub fn generate_code(module: &mut Module, purity: &Purity, backends: &[Backend]) -> Result<usize, PassError> {
    let mut declarations = Vec::new();
    // Those of functions for backends are replaced.
    let stays = |f: &Function| !f.is_definition() || codegen_of(&module.cx, f).is_none();
    let symbol_of = |(_, f): (FunctionKey, &Function)| f.global_symbol(&module.cx).filter(|_| stays(f));
    let mut symbols: FxHashSet<String> =
        module.functions().filter_map(symbol_of).map(|symbol| module.cx.names.get(symbol).to_string()).collect();
    for key in module.order().to_vec() {
        let Some(function) = module.get(key).filter(|function| function.is_definition()) else { continue };
        let (Some(name), Some(global)) = (codegen_of(&module.cx, function), function.global()) else { continue };
        let in_function = |error: PassError| error.in_function(module.name(key));
        let backend = backends.iter().find(|backend| backend.name == name);
        let backend = backend.ok_or_else(|| in_function(unknown(name, backends)))?;
        let own = module_of(module, key).map_err(in_function)?;
        let symbol = (backend.generate)(CodegenInput { module: &own, name: module.name(key) }).map_err(in_function)?;
        if symbol.is_empty() || !symbols.insert(symbol.clone()) {
            let error = PassError::new(format!("the backend `{name}` returns the symbol `{symbol}`"));
            let help = "each function needs a symbol that no other function has";
            return Err(error.with_help(help).in_function(module.name(key)));
        }
        let Some((function, cx)) = module.get_mut(key) else { continue };
        declarations.push((key, global, declaration(function, cx, purity.global_is_pure(global), &symbol)));
    }
    let generated = declarations.len();
    if generated > 0 {
        replace(module, declarations);
    }
    Ok(generated)
}

/// Returns the value of the attribute [`CODEGEN`].
fn codegen_of<'m>(cx: &'m Context, function: &Function) -> Option<&'m str> {
    match cx.attrs.get(cx.find_attr(function.attrs, CODEGEN)?) {
        &Attr::Str(name) => Some(cx.names.get(name)),
        _ => None,
    }
}

#[cold]
fn unknown(name: &str, backends: &[Backend]) -> PassError {
    let error = PassError::new(format!("no backend `{name}` generates code"));
    match did_you_mean(name, backends.iter().map(|backend| backend.name.as_str())) {
        Some(known) => error.with_help(format!("did you mean `{known}`?")),
        None => error.with_help("give it to `run_codegen`, or leave out its functions"),
    }
}

/// Returns a module with a function as `@main`, and the functions that it calls.
fn module_of(from: &Module, key: FunctionKey) -> Result<Module, PassError> {
    let mut own = Module::new(from.cx.ops.registry().clone());
    let main = own.take_function(from, key, "main")?;
    if let Some((function, cx)) = own.get_mut(main) {
        function.visibility = Visibility::Public;
        for attr in [CODEGEN, PRIMITIVE] {
            function.attrs = cx.with_attr(function.attrs, attr, None);
        }
    }
    let mut taken: FxHashSet<FunctionKey> = [key].into_iter().collect();
    let mut left = vec![key];
    while let Some(caller) = left.pop() {
        let Some(function) = from.get(caller) else { continue };
        for (_, global) in function.body.global_leaves() {
            if caller != key && from.get(key).is_some_and(|f| f.global() == Some(global)) {
                let message = format!("it calls itself through `@{}`", from.name(caller));
                return Err(PassError::new(message).with_help("a backend is given functions that stand alone"));
            }
            let target = from.cx.globals.get(global).target;
            let (GlobalTarget::Definition(callee) | GlobalTarget::Declaration(callee)) = target else { continue };
            if taken.insert(callee) {
                if from.name(callee) == "main" {
                    let message = "it calls `@main`, whose name the function itself has in the module for the backend";
                    return Err(PassError::new(message).with_help("rename `@main`"));
                }
                own.take_function(from, callee, from.cx.global_name(global))?;
                left.push(callee);
            }
        }
    }
    Ok(own)
}

/// Returns the result type of a function, in which its parameters bind all symbols.
fn result_type(function: &Function, cx: &mut Context) -> TypeId {
    let ty = function.ret.unwrap_or_else(|| function.body.type_of(function.body.root()));
    let binders = SymbolBinders::of(cx, function);
    let mut is_bound = true;
    SymbolWalk::new().in_type(cx, ty, |symbol| is_bound &= binders.binder(symbol).is_some());
    if is_bound {
        return ty;
    }
    // Callers see the type of the signature, which names no symbol that only the body binds.
    let signature = function.global().and_then(|global| cx.globals.get(global).signature);
    signature.and_then(|ty| cx.types.as_function(ty).map(|f| f.ret)).unwrap_or(ty)
}

/// Returns the declaration that a function becomes.
fn declaration(function: &Function, cx: &mut Context, is_pure: bool, symbol: &str) -> Function {
    let mut declaration = Function::new(&cx.types, cx.attrs.empty());
    declaration.kind = FunctionKind::Declaration;
    declaration.ret = Some(result_type(function, cx));
    declaration.span = function.span;
    let (one, symbol) = (cx.attr(Attr::Int(1)), cx.str_attr(symbol));
    declaration.attrs = cx.with_attr(function.attrs, PRIMITIVE, None);
    declaration.attrs = cx.with_attr(declaration.attrs, PURE, is_pure.then_some(one));
    declaration.attrs = cx.with_attr(declaration.attrs, GLOBAL_SYMBOL, Some(symbol));
    for &param in function.body.params() {
        let (ty, span) = (function.body.ty(param.expr()), function.body.span(param.expr()));
        let var = declaration.body.push_var(function.body.var_name(param), VarFlags::PLAIN, ty, span);
        declaration.body.push_param(var);
    }
    declaration
}

/// Replaces functions by declarations, in their places in the program.
fn replace(module: &mut Module, declarations: Vec<(FunctionKey, GlobalId, Function)>) {
    let mut order = module.order().to_vec();
    let keys: Vec<FunctionKey> = declarations.iter().map(|&(key, ..)| key).collect();
    module.remove(&keys);
    let mut new: FxHashMap<FunctionKey, FunctionKey> = FxHashMap::default();
    for (key, global, declaration) in declarations {
        let added = module.add(global, declaration);
        new.insert(key, added.expect("the name is free, since its function was removed"));
    }
    for key in &mut order {
        *key = new.get(key).copied().unwrap_or(*key);
    }
    module.set_order(order);
}

//! The part of a program between some of its values.

use anfora_ir::{
    Body, Context, Cursor, Diagnostic, Diagnostics, Dim, DimId, Editor, Expr, ExprId, Function, FunctionKey, IdSet,
    IntoDiagnostics, Module, NameId, Retype, Step, SymbolId, SymbolWalk, TypeId, VarFlags, VarId, update_signatures,
};
use anfora_passes::{only_binders, symbols_named_by, to_a_normal_form};
use anfora_visit::{
    BackwardSweep, Binding, CallGraph, Link, bindings, chain, insert_before, link_counts, set_var_flags, substitute,
    sweep_back, tail_link,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{edit, find_entry, retype, unknown, without_sigil};

/// A part of a program, by the names of its values: see [`extract`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// The inputs of the part, in order. With `None`, those inputs of the program that the outputs
    /// need.
    pub inputs: Option<Vec<String>>,
    /// The outputs of the part, in order. With `None`, the outputs of the program.
    pub outputs: Option<Vec<String>>,
}

/// Reduces a program to what computes the outputs of a part from its inputs.
///
/// An input is an input of the program, or a value that the program computes, which becomes an
/// input. An output is any value, or an output of the program. Values inside of branches and `fn`s
/// are neither. Bindings that the outputs do not need are removed, also if they have effects;
/// branches and `fn`s that stay keep theirs. Functions that the part does not call are removed.
/// Constants stay constants.
///
/// An input whose extents are expressions of symbols, such as `2 * n`, gets symbols of its own for
/// extents that no input determines otherwise.
///
/// The inputs have the order in which they are given, and those that no output needs stay inputs.
/// `onnx.utils.extract_model` does the same for files of up to 2 GiB; it needs both lists, and does
/// not say which input is missing.
///
/// Linear in the program.
///
/// # Errors
/// If a name is unknown, given twice, or the name of a value in a branch or `fn`; if the outputs
/// need an input that is not given; if another function calls the entry; or if the part names a
/// symbolic dimension that no input has.
pub fn extract(module: &mut Module, entry: &str, part: &Part) -> Result<(), Diagnostics> {
    edit(module, |module| {
        let key = find_entry(module, entry)?;
        refuse_calls(module, key, entry)?;
        let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
        cut_out(cx, function, part).map_err(|errors| in_function(errors, entry))?;
        #[cfg(feature = "onnx")]
        anfora_onnx::forget_training(module);
        let used: FxHashSet<FunctionKey> = CallGraph::of(module).reachable([key]).into_iter().collect();
        let unused: Vec<FunctionKey> = module.order().iter().copied().filter(|key| !used.contains(key)).collect();
        module.remove(&unused);
        update_signatures(module, &[key]).map_err(IntoDiagnostics::into_diagnostics)
    })
}

/// Names the function in errors that name none.
fn in_function(errors: Diagnostics, entry: &str) -> Diagnostics {
    let named = |error: Diagnostic| if error.function.is_none() { error.in_function(entry) } else { error };
    errors.into_iter().map(named).collect()
}

/// Returns an error if a function calls the entry or uses it as a value.
fn refuse_calls(module: &Module, key: FunctionKey, entry: &str) -> Result<(), Diagnostics> {
    let Some(global) = module.get(key).and_then(Function::global) else { return Ok(()) };
    for (caller, function) in module.functions() {
        if function.body.global_leaves().iter().any(|(_, used)| *used == global) {
            let caller = module.name(caller);
            let error = Diagnostic::error(format!("`@{caller}` uses `@{entry}`, so its inputs and outputs must stay"));
            return Err(error.with_help("inline its calls first (InlineFunctions)").into());
        }
    }
    Ok(())
}

/// Keeps the bindings in branches and `fn`s that stay, and casts that bind a symbol which a value
/// after them names. Other bindings that nothing uses are removed.
struct KeepNested<'c> {
    cx: &'c Context,
    outermost: IdSet<ExprId>,
    /// The symbols that values name which stay, and those that parameters bind.
    named: FxHashSet<SymbolId>,
    bound: FxHashSet<SymbolId>,
    walk: SymbolWalk,
}

impl BackwardSweep for KeepNested<'_> {
    fn is_kept(&mut self, body: &Body, binding: Binding) -> bool {
        if !self.outermost.contains(binding.id) {
            return true;
        }
        let mut binds = false;
        if let Some(ty) = self.cx.cast_type(body.expr(binding.value)) {
            let is_needed = |symbol| self.named.contains(&symbol) && !self.bound.contains(&symbol);
            self.cx.types.for_each_binding_symbol(ty, |symbol| binds |= is_needed(symbol));
        }
        binds
    }

    fn live_value(&mut self, body: &Body, value: ExprId) {
        let KeepNested { cx, named, walk, .. } = self;
        stated_symbols(cx, body, value, walk, |symbol| _ = named.insert(symbol));
    }
}

/// Calls `each` with the symbols that a node states: in the attributes of a call, and in the types
/// of the parameters of a `fn`. Those in the type of a node follow from its parts.
fn stated_symbols(cx: &Context, body: &Body, id: ExprId, walk: &mut SymbolWalk, mut each: impl FnMut(SymbolId)) {
    match body.expr(id) {
        Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => walk.in_attrs(cx, attrs, each),
        Expr::Lambda { lambda, .. } => {
            body.lambda_params(lambda).for_each(|param| walk.in_type(cx, body.ty(param.expr()), &mut each));
        }
        _ => {}
    }
}

fn cut_out(cx: &mut Context, function: &mut Function, part: &Part) -> Result<(), Diagnostics> {
    to_a_normal_form(cx, &mut function.body);
    bind_tail(cx, function);
    let values = NamedValues::of(cx, function);
    let outputs = part.outputs.as_deref().map(|names| values.outputs(cx, &function.body, names)).transpose()?;
    let inputs = part.inputs.as_deref().map(|names| values.inputs(cx, &function.body, names)).transpose()?;

    // The outputs become the tail.
    if let Some(outputs) = &outputs {
        let mut editor = Editor::new(cx, &mut function.body);
        let tail = match outputs[..] {
            [(_, only)] => only,
            _ => editor.tuple(&outputs.iter().map(|&(_, value)| value).collect::<Vec<_>>()),
        };
        tail_link(editor.body, Link::Root).set(editor.body, tail);
        for &(_, value) in outputs {
            if let Some(var) = editor.body.as_var(value).filter(|&var| editor.body.is_dataflow_var(var)) {
                set_var_flags(editor.body, var, VarFlags::PLAIN);
            }
        }
    }
    // Inputs that were values become parameters.
    let mut params = Vec::new();
    let mut replaced = Vec::new();
    let before: FxHashSet<VarId> = function.body.params().iter().copied().collect();
    for &var in inputs.iter().flatten() {
        if before.contains(&var) {
            params.push(var);
            continue;
        }
        let mut editor = Editor::new(cx, &mut function.body);
        let (name, ty) = (editor.body.var_name(var), editor.body.ty(var.expr()));
        let param = editor.var(name, VarFlags::PLAIN, ty);
        replaced.push((var, param.expr()));
        params.push(param);
    }
    if !replaced.is_empty() {
        // The new variables must be parameters when they are used.
        let all: Vec<VarId> =
            function.body.params().iter().copied().chain(params_of(&replaced, &function.body)).collect();
        function.body.set_params(all);
        let mut editor = Editor::new(cx, &mut function.body);
        substitute(&mut editor, Link::Root, &replaced).map_err(IntoDiagnostics::into_diagnostics)?;
    }
    // What nothing needs is removed.
    let mut sweep = KeepNested {
        cx,
        outermost: IdSet::with_capacity(function.body.len()),
        named: FxHashSet::default(),
        bound: bound_symbols(cx, function, if inputs.is_some() { &params } else { function.body.params() }),
        walk: SymbolWalk::new(),
    };
    for binding in chain(&function.body, function.body.root()) {
        sweep.outermost.insert(binding.id);
    }
    sweep_back(cx, &mut function.body, &mut sweep).map_err(IntoDiagnostics::into_diagnostics)?;
    // The other parameters go.
    function.ret = None;
    set_inputs(cx, function, inputs.is_some().then_some(params))?;
    #[cfg(feature = "onnx")]
    if let Some(outputs) = outputs {
        let names: Vec<String> = outputs.into_iter().map(|(name, _)| name).collect();
        anfora_onnx::set_output_names(cx, function, &names);
    }
    Ok(())
}

fn params_of(replaced: &[(VarId, ExprId)], body: &Body) -> Vec<VarId> {
    replaced.iter().filter_map(|&(_, by)| body.as_var(by)).collect()
}

/// Binds a tail that is computed, so that the result is a value with a name, if it has one.
fn bind_tail(cx: &mut Context, function: &mut Function) {
    let body = &function.body;
    let link = tail_link(body, Link::Root);
    let tail = link.target(body);
    if body.expr(tail).is_atom() || matches!(body.expr(tail), Expr::Tuple(_)) {
        return;
    }
    #[cfg(feature = "onnx")]
    let name = anfora_onnx::output_names(cx, function).and_then(|names| names.into_iter().next());
    #[cfg(not(feature = "onnx"))]
    let name: Option<String> = None;
    let name: Option<NameId> = name.map(|name| cx.names.intern(&name));
    let mut editor = Editor::new(cx, &mut function.body);
    let ty = editor.body.ty(tail);
    let var = editor.var(name, VarFlags::PLAIN, ty);
    let link = insert_before(&mut editor, link, &[(var, tail)]);
    link.set(editor.body, var.expr());
}

/// The values of a function that have names: parameters, and bindings outside of branches and
/// `fn`s.
struct NamedValues {
    by_name: FxHashMap<String, VarId>,
    /// The names in order of appearance, for messages.
    names: Vec<String>,
    /// The outputs by the names that the file gives them.
    outputs: FxHashMap<String, ExprId>,
}

impl NamedValues {
    fn of(cx: &Context, function: &Function) -> NamedValues {
        let body = &function.body;
        let (mut by_name, mut names) = (FxHashMap::default(), Vec::new());
        let vars = body.params().iter().copied().chain(chain(body, body.root()).map(|b| b.var));
        for var in vars {
            let Some(name) = body.var_name(var) else { continue };
            let name = cx.names.get(name);
            // The last one of a name is visible at the end.
            if by_name.insert(name.to_string(), var).is_none() {
                names.push(name.to_string());
            }
        }
        #[cfg(feature = "onnx")]
        let outputs = anfora_onnx::output_names(cx, function).unwrap_or_default();
        #[cfg(not(feature = "onnx"))]
        let outputs: Vec<String> = Vec::new();
        let results = results_of(body);
        let outputs = match outputs.len() == results.len() {
            true => outputs.into_iter().zip(results).collect(),
            false => FxHashMap::default(),
        };
        NamedValues { by_name, names, outputs }
    }

    fn inputs(&self, cx: &Context, body: &Body, names: &[String]) -> Result<Vec<VarId>, Diagnostics> {
        let mut seen = FxHashSet::default();
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let bare = without_sigil(name, |n| self.by_name.contains_key(n));
            let Some(&var) = self.by_name.get(bare) else { return Err(self.missing(cx, body, bare, "value").into()) };
            if !seen.insert(var) {
                return Err(Diagnostic::error(format!("the input `%{bare}` is given twice")).into());
            }
            found.push(var);
        }
        Ok(found)
    }

    fn outputs(&self, cx: &Context, body: &Body, names: &[String]) -> Result<Vec<(String, ExprId)>, Diagnostics> {
        let is_known = |n: &str| self.by_name.contains_key(n) || self.outputs.contains_key(n);
        let mut seen = FxHashSet::default();
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let bare = without_sigil(name, is_known);
            if !seen.insert(bare) {
                return Err(Diagnostic::error(format!("the output `%{bare}` is given twice")).into());
            }
            let value = self.outputs.get(bare).copied().or_else(|| Some(self.by_name.get(bare)?.expr()));
            found.push((bare.to_string(), value.ok_or_else(|| self.missing(cx, body, bare, "value"))?));
        }
        match found.is_empty() {
            true => Err(Diagnostic::error("the part has no outputs").with_help("name at least one value").into()),
            false => Ok(found),
        }
    }

    /// Returns the error for a name that no value has.
    fn missing(&self, cx: &Context, body: &Body, name: &str, what: &str) -> Diagnostic {
        let is_it = |b: &Binding| body.var_name(b.var).is_some_and(|n| cx.names.get(n) == name);
        if bindings(body, body.root()).any(|b| is_it(&b)) {
            let error = Diagnostic::error(format!("`%{name}` is computed in a branch or `fn`"));
            return error.with_help("the inputs and outputs of a part are outside of these");
        }
        let outputs = self.outputs.keys().map(String::as_str).collect::<FxHashSet<&str>>();
        let mut outputs: Vec<&str> = outputs.into_iter().filter(|n| !self.by_name.contains_key(*n)).collect();
        outputs.sort_unstable();
        unknown(what, "%", name, self.names.iter().map(String::as_str).chain(outputs))
    }
}

/// Returns the results of a function: the fields of the tuple that it returns, or its only result.
fn results_of(body: &Body) -> Vec<ExprId> {
    let tail = body.tail(body.root());
    let value = match body.as_var(tail) {
        Some(var) => chain(body, body.root()).find(|b| b.var == var).map_or(tail, |b| b.value),
        None => tail,
    };
    match body.expr(value) {
        Expr::Tuple(fields) => body.operands(fields).to_vec(),
        _ => vec![tail],
    }
}

// ---- Parameters ----

/// Sets the parameters of a function: the given ones, or those that it needs.
fn set_inputs(cx: &mut Context, function: &mut Function, given: Option<Vec<VarId>>) -> Result<(), Diagnostics> {
    let before = function.body.params().to_vec();
    let uses = link_counts(&function.body);
    let is_used = |var: &VarId| uses[var.expr()] > 0;
    let needed = match &given {
        Some(given) => given.clone(),
        None => before.iter().copied().filter(is_used).collect(),
    };
    let kept: FxHashSet<VarId> = needed.iter().copied().collect();
    let others: Vec<VarId> = before.iter().copied().filter(|var| !kept.contains(var)).collect();
    let missing: Vec<String> =
        others.iter().filter(|var| is_used(var)).map(|&var| quoted(cx, &function.body, var)).collect();
    if !missing.is_empty() {
        let (plural, them) = if missing.len() == 1 { ("input", "it") } else { ("inputs", "them") };
        let error = Diagnostic::error(format!("the outputs need the {plural} {} too", listed(&missing)));
        let help = format!("add {them} to the inputs, or name inputs that are computed from {them}");
        return Err(error.with_help(help).into());
    }
    if given.is_none() {
        // Parameters that alone bind a symbol stay.
        let is_needed: Vec<bool> = before.iter().map(|var| kept.contains(var)).collect();
        let binders = only_binders(cx, &function.body, &is_needed, || symbols_named_by(cx, function));
        let kept: FxHashSet<VarId> = kept.into_iter().chain(binders.into_iter().map(|i| before[i])).collect();
        function.body.set_params(before.into_iter().filter(|var| kept.contains(var)).collect());
        return Ok(());
    }
    let binders = missing_binders(cx, function, &needed, &others);
    if !binders.is_empty() {
        let names: Vec<String> = binders.into_iter().map(|var| quoted(cx, &function.body, var)).collect();
        let error = Diagnostic::error("the part names a symbolic dimension that none of its inputs has");
        return Err(error.with_help(format!("add {} to the inputs", listed(&names))).into());
    }
    function.body.set_params(needed.clone());
    own_extents(cx, function, &needed)
}

/// Returns those of the other parameters that bind a symbol which the body names and no needed
/// parameter binds. If several bind it, the first is returned.
fn missing_binders(cx: &Context, function: &Function, needed: &[VarId], others: &[VarId]) -> Vec<VarId> {
    let body = &function.body;
    let (mut named, mut walk) = (FxHashSet::default(), SymbolWalk::new());
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        if let Step::Flat(id) | Step::Enter(id) = step {
            stated_symbols(cx, body, id, &mut walk, |symbol| _ = named.insert(symbol));
        }
    }
    let mut bound = bound_symbols(cx, function, needed);
    let mut binders = Vec::new();
    for &var in others {
        let mut is_binder = false;
        cx.types.for_each_binding_symbol(function.body.ty(var.expr()), |symbol| {
            is_binder |= named.contains(&symbol) && bound.insert(symbol);
        });
        binders.extend(is_binder.then_some(var));
    }
    binders
}

/// Returns the symbols that parameters bind.
fn bound_symbols(cx: &Context, function: &Function, params: &[VarId]) -> FxHashSet<SymbolId> {
    let mut bound = FxHashSet::default();
    for var in params {
        cx.types.for_each_binding_symbol(function.body.ty(var.expr()), |symbol| _ = bound.insert(symbol));
    }
    bound
}

fn quoted(cx: &Context, body: &Body, var: VarId) -> String {
    format!("`%{}`", body.var_name(var).map_or("", |name| cx.names.get(name)))
}

fn listed(names: &[String]) -> String {
    /// The greatest number of listed names.
    const MOST_NAMES: usize = 8;
    let more = if names.len() > MOST_NAMES { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(MOST_NAMES)].join(", "))
}

/// Gives the parameters symbols of their own for extents that they do not bind, and infers the
/// types again.
fn own_extents(cx: &mut Context, function: &mut Function, params: &[VarId]) -> Result<(), Diagnostics> {
    let bound = bound_symbols(cx, function, params);
    let mut fresh = FreshSymbols { bound, taken: None, by_dim: FxHashMap::default() };
    let mut changed = Retype::new(&function.body);
    for &var in params {
        let before = function.body.ty(var.expr());
        let after = fresh.in_type(cx, function, var, before);
        if after != before {
            function.body.set_type(var.expr(), after);
            changed.changed(var.expr());
        }
    }
    if changed.is_needed() {
        retype(cx, &mut function.body, changed)?;
        #[cfg(feature = "onnx")]
        anfora_onnx::forget_stated_types(cx, function);
    }
    Ok(())
}

/// New symbols for extents that are not determined.
struct FreshSymbols {
    bound: FxHashSet<SymbolId>,
    /// The names of all symbols of the function, once they are needed.
    taken: Option<FxHashSet<String>>,
    by_dim: FxHashMap<DimId, DimId>,
}

impl FreshSymbols {
    /// Returns the type of a parameter with its undetermined extents replaced.
    fn in_type(&mut self, cx: &mut Context, function: &Function, var: VarId, ty: TypeId) -> TypeId {
        let Some(tensor) = cx.types.as_tensor(ty).cloned() else { return ty };
        let is_open = |cx: &Context, dim: DimId| {
            let mut open = false;
            cx.types.dims.for_each_symbol(dim, |s| {
                if let Dim::Symbol(symbol) = cx.types.dims.get(s) {
                    open |= !self.bound.contains(symbol);
                }
            });
            open
        };
        let has_open = |cx: &Context, dims: Option<&[DimId]>| dims.is_some_and(|d| d.iter().any(|&d| is_open(cx, d)));
        let (open_shape, open_elements) =
            (has_open(cx, tensor.shape.as_deref()), has_open(cx, tensor.elements.as_deref()));
        if !open_shape && !open_elements {
            return ty;
        }
        let Some(shape) = tensor.shape else { return ty };
        let is_open: Vec<bool> = shape.iter().map(|&dim| is_open(cx, dim)).collect();
        let mut dims = Vec::with_capacity(shape.len());
        for (axis, (&dim, is_open)) in shape.iter().zip(is_open).enumerate() {
            dims.push(if is_open { self.symbol_for(cx, function, var, axis, dim) } else { dim });
        }
        let new = cx.types.tensor(tensor.dtype, &dims);
        match tensor.elements {
            Some(elements) if !open_elements => cx.types.with_elements(new, &elements),
            _ => new,
        }
    }

    /// Returns the symbol for an extent, which is the same for equal extents.
    fn symbol_for(&mut self, cx: &mut Context, function: &Function, var: VarId, axis: usize, dim: DimId) -> DimId {
        if let Some(&symbol) = self.by_dim.get(&dim) {
            return symbol;
        }
        let taken = self.taken.get_or_insert_with(|| symbol_names(cx, function));
        let name = function.body.var_name(var).map_or("", |name| cx.names.get(name));
        let mut word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            word.insert(0, 'd');
        }
        let mut wish = format!("{word}_{axis}");
        while !taken.insert(wish.clone()) {
            wish.push('_');
        }
        let name = cx.names.intern(&wish);
        let symbol = cx.types.dims.new_symbol(name);
        let symbol = cx.types.dims.symbol(symbol);
        self.by_dim.insert(dim, symbol);
        symbol
    }
}

/// Returns the names of the symbols that a function names.
fn symbol_names(cx: &Context, function: &Function) -> FxHashSet<String> {
    let symbols = super::symbols_of(cx, function);
    symbols.into_iter().map(|s| cx.names.get(cx.types.dims.symbol_name(s)).to_string()).collect()
}

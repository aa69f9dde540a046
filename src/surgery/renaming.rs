//! New names for values, functions and symbolic dimensions.

use anfora_ir::{
    Body, Context, Cursor, Diagnostic, Diagnostics, Expr, Function, FunctionKey, GlobalId, IntoDiagnostics, Module,
    NameId, Step, SymbolId, SymbolSubstitution, VarId, update_signatures,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{edit, find_entry, symbols_of, unknown, without_sigil};

/// New names, each after the old one: see [`rename`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Renames {
    /// Values of the entry: its inputs, outputs, constants, and all that it computes, in branches
    /// and `fn`s too.
    pub values: Vec<(String, String)>,
    /// Functions of the module, without `@`.
    pub functions: Vec<(String, String)>,
    /// Symbolic dimensions, in all functions. For a model, the old name may be that in the file.
    pub symbols: Vec<(String, String)>,
}

/// Renames values of the entry, functions, and symbolic dimensions. All renames take place at once,
/// so two values or functions may swap their names.
///
/// For a model, an output of the graph that has the name of its value gets the new name too, and so
/// do the statements of the file about a value. In functions with a renamed dimension, the types
/// that the file states beside those of the program are left out.
///
/// Linear in the program.
///
/// # Errors
/// If nothing has an old name, a new name is empty or taken, two things get the same name, or a
/// symbolic dimension gets a name that is not a word.
pub fn rename(module: &mut Module, entry: &str, names: &Renames) -> Result<(), Diagnostics> {
    edit(module, |module| {
        rename_values(module, entry, &names.values)?;
        rename_symbols(module, &names.symbols)?;
        rename_functions(module, &names.functions)
    })
}

// ---- Values ----

fn rename_values(module: &mut Module, entry: &str, renames: &[(String, String)]) -> Result<(), Diagnostics> {
    if renames.is_empty() {
        return Ok(());
    }
    let key = find_entry(module, entry)?;
    let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
    let vars = variables(&function.body);
    let mut known = Known::default();
    for &var in &vars {
        if let Some(name) = function.body.var_name(var) {
            known.add(cx.names.get(name));
        }
    }
    #[cfg(feature = "onnx")]
    anfora_onnx::for_each_file_name(cx, function, |name| known.add(name));
    let map = known.map(renames, "value", "%")?;
    let renamed: Vec<(VarId, String)> = vars
        .into_iter()
        .filter_map(|var| {
            let name = cx.names.get(function.body.var_name(var)?);
            Some((var, map.get(name)?.clone()))
        })
        .collect();
    for (var, name) in renamed {
        let Expr::Var { flags, .. } = function.body.expr(var.expr()) else { continue };
        let name = Some(cx.names.intern(&name));
        function.body.set_expr(var.expr(), Expr::Var { name, flags });
    }
    #[cfg(feature = "onnx")]
    anfora_onnx::rename_in_file(cx, function, &map);
    Ok(())
}

/// Returns the variables of a function: its parameters, those of `fn`s, and those of bindings.
fn variables(body: &Body) -> Vec<VarId> {
    let mut vars = body.params().to_vec();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Let(id) => {
                if let Expr::Let { var, .. } = body.expr(id) {
                    vars.push(var);
                }
            }
            Step::Enter(id) => {
                if let Expr::Lambda { lambda, .. } = body.expr(id) {
                    vars.extend(body.lambda_params(lambda));
                }
            }
            _ => {}
        }
    }
    vars
}

/// The names that things have.
#[derive(Default)]
struct Known {
    set: FxHashSet<String>,
    /// The names in order of appearance, for messages.
    list: Vec<String>,
}

impl Known {
    fn add(&mut self, name: &str) {
        if !name.is_empty() && self.set.insert(name.to_string()) {
            self.list.push(name.to_string());
        }
    }

    /// Returns the new names by the old ones.
    fn map(
        &self,
        renames: &[(String, String)],
        what: &str,
        sigil: &str,
    ) -> Result<FxHashMap<String, String>, Diagnostics> {
        let mut map = FxHashMap::default();
        for (from, to) in renames {
            let old = without_sigil(from, |name| self.set.contains(name));
            if !self.set.contains(old) {
                return Err(unknown(what, sigil, old, self.list.iter().map(String::as_str)).into());
            }
            if to.is_empty() {
                let error = Diagnostic::error(format!("`{sigil}{old}` needs a name, and the new one is empty"));
                return Err(error.with_help("give a name of at least one character").into());
            }
            if let Some(before) = map.insert(old.to_string(), to.clone()) {
                let error = Diagnostic::error(format!("`{sigil}{old}` is given two names"));
                return Err(error.with_help(format!("choose one of `{sigil}{before}` and `{sigil}{to}`")).into());
            }
        }
        let mut taken: FxHashSet<&str> = FxHashSet::default();
        for (from, to) in renames {
            // A name that is given away is free.
            let is_free = !self.set.contains(to) || map.contains_key(to);
            if !is_free || !taken.insert(to) {
                return Err(is_taken(sigil, from, to));
            }
        }
        Ok(map)
    }
}

/// Returns the error for a new name that something has.
fn is_taken(sigil: &str, from: &str, to: &str) -> Diagnostics {
    let error = Diagnostic::error(format!("`{sigil}{from}` cannot be named `{sigil}{to}`: the name is taken"));
    error.with_help(format!("rename `{sigil}{to}` too, or take another name")).into()
}

// ---- Functions ----

fn rename_functions(module: &mut Module, renames: &[(String, String)]) -> Result<(), Diagnostics> {
    let mut known = Known::default();
    module.order().iter().for_each(|&key| known.add(module.name(key)));
    let bare = |name: &str| name.trim_start_matches('@').to_string();
    let renames: Vec<(String, String)> = renames.iter().map(|(from, to)| (bare(from), bare(to))).collect();
    let map = known.map(&renames, "function", "@")?;
    let mut renamed: Vec<(FunctionKey, GlobalId, NameId)> = Vec::with_capacity(renames.len());
    for (from, _) in &renames {
        let (Some(key), Some(to)) = (module.find(from), map.get(from)) else { continue };
        let Some(global) = module.get(key).and_then(Function::global) else { continue };
        renamed.push((key, global, module.cx.names.intern(to)));
        #[cfg(feature = "onnx")]
        if let Some((function, cx)) = module.get_mut(key) {
            anfora_onnx::rename_file_function(cx, function, to);
        }
    }
    // The old names are given away first, so that functions may swap theirs. A name that no
    // function has may still be taken by a name that calls refer to.
    let mut numbers = 0..;
    for &(_, global, _) in &renamed {
        let mut is_free = |number: u64| {
            let name = module.cx.names.intern(&format!("{number}"));
            module.rename(global, name)
        };
        numbers.by_ref().any(&mut is_free);
    }
    for ((from, to), &(_, global, name)) in renames.iter().zip(&renamed) {
        if !module.rename(global, name) {
            return Err(is_taken("@", from, to));
        }
    }
    Ok(())
}

// ---- Symbolic dimensions ----

fn rename_symbols(module: &mut Module, renames: &[(String, String)]) -> Result<(), Diagnostics> {
    if renames.is_empty() {
        return Ok(());
    }
    let symbols: Vec<(FunctionKey, Vec<SymbolId>)> =
        module.functions().map(|(key, function)| (key, symbols_of(&module.cx, function))).collect();
    let name_of = |cx: &Context, symbol: SymbolId| cx.names.get(cx.types.dims.symbol_name(symbol)).to_string();
    let mut known = Known::default();
    for &symbol in symbols.iter().flat_map(|(_, symbols)| symbols) {
        known.add(&name_of(&module.cx, symbol));
    }
    // A dimension of a file may have a name that is no word.
    #[cfg(feature = "onnx")]
    let in_file: FxHashMap<String, String> = anfora_onnx::file_dimensions(module).into_iter().collect();
    #[cfg(not(feature = "onnx"))]
    let in_file: FxHashMap<String, String> = FxHashMap::default();
    let renames: Vec<(String, String)> =
        renames.iter().map(|(from, to)| (in_file.get(from).unwrap_or(from).clone(), to.clone())).collect();
    let map = known.map(&renames, "symbolic dimension", "")?;
    if let Some((_, to)) = renames.iter().find(|(_, to)| !is_word(to)) {
        let error = Diagnostic::error(format!("a symbolic dimension cannot be named `{to}`"));
        return Err(error.with_help("a name consists of letters, digits and `_`, and begins with no digit").into());
    }
    let mut changed = Vec::new();
    for (key, symbols) in symbols {
        let mut substitution = SymbolSubstitution::new();
        for symbol in symbols {
            let cx = &mut module.cx;
            if let Some(to) = map.get(&name_of(cx, symbol)) {
                let name = cx.names.intern(to);
                let new = cx.types.dims.new_symbol(name);
                let new = cx.types.dims.symbol(new);
                substitution.set(symbol, new);
            }
        }
        if substitution.is_empty() {
            continue;
        }
        substitution.in_function(module, key, &[]).map_err(|failed| failed.error.into_diagnostics())?;
        #[cfg(feature = "onnx")]
        if let Some((function, cx)) = module.get_mut(key) {
            anfora_onnx::forget_file_dimensions(cx, function, |symbol| map.contains_key(symbol));
            // They name the dimension too.
            anfora_onnx::forget_stated_types(cx, function);
        }
        changed.push(key);
    }
    update_signatures(module, &changed).map_err(IntoDiagnostics::into_diagnostics)
}

/// Returns true if a text is a name of the text format.
pub(super) fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

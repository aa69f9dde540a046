//! Edits of programs by the names of their values, as deployers of models need them: a part of a
//! program, other names, other shapes of inputs, other attributes.
//!
//! ```
//! use anfora::prelude::*;
//! use anfora::surgery::{AttributeEdit, NewExtent, Part, Renames};
//! use anfora::surgery::{extract, rename, set_attributes, set_shapes};
//!
//! let text = "def @main(%x: Tensor[(1, 8), float32]) {
//!     let %features = tanh(%x);
//!     let %scores = nn.softmax(%features, axis=0);
//!     let %loss = sum(%scores);
//!     %loss
//! }";
//! let mut module = parse_module(Source::new("example.anf", text), anfora::ops::standard())?;
//! let part = Part { inputs: Some(vec!["features".into()]), outputs: Some(vec!["scores".into()]) };
//! extract(&mut module, "main", &part)?;
//! set_attributes(&mut module, "main", &[AttributeEdit::new("scores", "axis", -1)])?;
//! let extents = vec![NewExtent::Named("batch".into()), NewExtent::Kept];
//! set_shapes(&mut module, "main", &[("features".into(), extents)])?;
//! let names = Renames { values: vec![("scores".into(), "y".into())], ..Renames::default() };
//! rename(&mut module, "main", &names)?;
//! assert_eq!(
//!     module.to_text(),
//!     "def @main(%features: Tensor[(batch, 8), float32]) -> Tensor[(batch, 8), float32] {
//!   let %y = nn.softmax(%features);
//!   %y
//! }
//! "
//! );
//! # Ok::<(), anfora::ir::Diagnostics>(())
//! ```
//!
//! Each function edits one function, the *entry*, and is given its name without `@`: `main` for a
//! model. Names of values are given without `%`; a name that no value has may also have one. They
//! are the names in the text and, for a model, those in its file: a value has the name of its
//! output, and a node is also found by its own name.
//!
//! Types are inferred again where they depend on the edit, and the result is verified. If an edit
//! fails, the module is unchanged.

mod attributes;
mod extraction;
mod renaming;
mod shapes;

use anfora_ir::{
    Body, Context, Diagnostic, Diagnostics, EntityId, Function, FunctionKey, IntoDiagnostics, Module, Retype, SymbolId,
    SymbolWalk, did_you_mean, verify_module,
};
use anfora_passes::symbols_named_by;

pub use attributes::{AttributeEdit, NewAttribute, set_attributes};
pub use extraction::{Part, extract};
pub use renaming::{Renames, rename};
#[cfg(feature = "interp")]
pub(crate) use shapes::{KnownNumbers, set_extents};
pub use shapes::{NewExtent, set_shapes};

/// Runs an edit and verifies the module. If either fails, the module is as it was.
fn edit(module: &mut Module, change: impl FnOnce(&mut Module) -> Result<(), Diagnostics>) -> Result<(), Diagnostics> {
    module.begin_edit();
    let done = change(module).and_then(|()| verify_module(module).map(drop));
    match done {
        Ok(()) => _ = module.commit(),
        Err(_) => module.rollback(),
    }
    done
}

/// Returns the function that is edited.
fn find_entry(module: &Module, name: &str) -> Result<FunctionKey, Diagnostics> {
    let is_definition = |key: &FunctionKey| module.get(*key).is_some_and(|f| f.is_definition());
    module.find(name).filter(is_definition).ok_or_else(|| {
        let names = module.order().iter().filter(|key| is_definition(key)).map(|&key| module.name(key));
        unknown("function", "@", name, names).into()
    })
}

/// Returns the error for a name that nothing has, with the nearest names.
fn unknown<'a>(what: &str, sigil: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Diagnostic {
    /// The greatest number of listed names.
    const MOST_NAMES: usize = 8;
    let error = Diagnostic::error(format!("there is no {what} `{sigil}{name}`"));
    if let Some(near) = did_you_mean(name, names.clone()) {
        return error.with_help(format!("did you mean `{sigil}{near}`?"));
    }
    let mut left = names;
    let mut listed: Vec<String> = left.by_ref().take(MOST_NAMES).map(|n| format!("`{sigil}{n}`")).collect();
    listed.extend(left.next().map(|_| "…".to_string()));
    match listed.is_empty() {
        true => error.with_help("there are none"),
        false => error.with_help(format!("there are {}", listed.join(", "))),
    }
}

/// Returns the name that `is_known` accepts: the name as it is given, or without a leading `%`.
fn without_sigil(name: &str, is_known: impl Fn(&str) -> bool) -> &str {
    match name.strip_prefix('%') {
        Some(bare) if !is_known(name) && is_known(bare) => bare,
        _ => name,
    }
}

/// Infers the types of the users of changed expressions again. Returns the number of changed types.
fn retype(cx: &mut Context, body: &mut Body, mut changed: Retype) -> Result<usize, Diagnostics> {
    let root = body.root();
    let error = match changed.sweep(cx, body, root) {
        Ok(count) => return Ok(count),
        Err(error) => error,
    };
    let binding = body.stop().and_then(|at| body.binding_name(cx, at));
    let mut errors = error.into_diagnostics().into_vec();
    if let (Some(first), Some(name)) = (errors.first_mut(), binding)
        && first.binding.is_none()
    {
        first.binding = Some(name.to_string());
    }
    Err(errors.into())
}

/// Returns the symbols that a function names, in its parameters, its result and its body, in the
/// order of their ids.
fn symbols_of(cx: &Context, function: &Function) -> Vec<SymbolId> {
    let mut named = symbols_named_by(cx, function);
    let mut walk = SymbolWalk::new();
    for &param in function.body.params() {
        walk.in_type(cx, function.body.ty(param.expr()), |symbol| _ = named.insert(symbol));
    }
    let mut symbols: Vec<SymbolId> = named.into_iter().collect();
    symbols.sort_unstable_by_key(|symbol| symbol.index());
    symbols
}

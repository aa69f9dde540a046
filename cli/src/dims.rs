//! Extents of symbolic dimensions, as the command line gives them.

use anfora::ir::{Dim, Function, Literal, Module, SymbolId, did_you_mean};
use rustc_hash::FxHashMap;

use crate::report::Failure;

/// Reads `NAME=EXTENT`s of the dimensions that a function's parameters name.
///
/// # Errors
/// If one is not written so, no parameter names it, or an input that is given says something else.
pub(crate) fn read(
    given: &[String],
    module: &Module,
    function: &Function,
    inputs: &FxHashMap<usize, Literal>,
) -> Result<Vec<(String, usize)>, Failure> {
    let symbols = symbols_of(module, function);
    let name_of = |s: SymbolId| module.cx.names.get(module.cx.types.dims.symbol_name(s));
    let mut dims: Vec<(String, usize)> = Vec::with_capacity(given.len());
    for text in given {
        let parts = text.split_once('=').and_then(|(name, extent)| Some((name.trim(), extent.trim().parse().ok()?)));
        let Some((name, extent)) = parts else {
            return Err(Failure::Usage(format!("--dim {text}: write it as NAME=EXTENT, with a number from 0")));
        };
        let Some(&symbol) = symbols.iter().find(|&&s| name_of(s) == name) else {
            let names = symbols.iter().map(|&s| name_of(s));
            let help = match did_you_mean(name, names.clone()) {
                _ if symbols.is_empty() => "they have none".to_string(),
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("they have {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(Failure::Message(format!("the inputs have no symbolic dimension `{name}`; {help}")));
        };
        if let Some(&(_, before)) = dims.iter().find(|d| d.0 == name)
            && before != extent
        {
            return Err(Failure::Usage(format!("--dim {text}: the same dimension is {before} before")));
        }
        if let Some((parameter, found)) = contradiction(module, function, inputs, symbol, extent) {
            let message = format!("--dim {text}: the input `{parameter}` that is given has {found} there");
            return Err(Failure::Message(message));
        }
        dims.push((name.to_string(), extent));
    }
    Ok(dims)
}

/// The symbols that the types of parameters name, in order.
fn symbols_of(module: &Module, function: &Function) -> Vec<SymbolId> {
    let types = &module.cx.types;
    let mut symbols = Vec::new();
    for &param in function.body.params() {
        types.for_each_symbol(function.body.ty(param.expr()), |dim| {
            if let Dim::Symbol(s) = *types.dims.get(dim)
                && !symbols.contains(&s)
            {
                symbols.push(s);
            }
        });
    }
    symbols
}

/// A given input that says something else of a dimension than it is to come to, and what.
fn contradiction(
    module: &Module,
    function: &Function,
    inputs: &FxHashMap<usize, Literal>,
    symbol: SymbolId,
    extent: usize,
) -> Option<(String, usize)> {
    let (cx, body) = (&module.cx, &function.body);
    for (i, &param) in body.params().iter().enumerate() {
        let Some((tensor, input)) = cx.types.as_tensor(body.ty(param.expr())).zip(inputs.get(&i)) else { continue };
        let mut dims = tensor.shape.iter().flatten().zip(input.shape());
        let is_symbol = |d| matches!(*cx.types.dims.get(d), Dim::Symbol(s) if s == symbol);
        if let Some((_, &found)) = dims.find(|&(&d, &e)| is_symbol(d) && e != extent) {
            let name = body.var_name(param).map_or_else(|| i.to_string(), |n| cx.names.get(n).to_string());
            return Some((name, found));
        }
    }
    None
}

//! Extents of symbolic dimensions, as the command line gives them.

use std::hash::Hash;

use anfora::ir::{Dim, Function, Literal, Module, SymbolId, did_you_mean};
use anfora::onnx::file_dimensions;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::by_name::ByName;
use crate::report::Failure;

/// Parses a list of `NAME=EXTENT`, the values of a flag. A dimension may be given several times
/// with the same extent.
///
/// # Errors
/// If an item does not have that form, or a dimension is given two different extents.
pub(crate) fn parse<'a>(flag: &str, given: &'a [String]) -> Result<Vec<(&'a str, usize)>, Failure> {
    let mut by_name = ByName::default();
    let mut dims = Vec::with_capacity(given.len());
    for text in given {
        // An extent has no sign and fits in an `i64`, like the extents in programs.
        let extent = |text: &str| text.parse::<i64>().ok().filter(|_| !text.starts_with('+'));
        let parts = text.rsplit_once('=').and_then(|(name, number)| Some((name.trim(), extent(number.trim())?)));
        let Some((name, extent)) = parts.and_then(|(name, extent)| Some((name, usize::try_from(extent).ok()?))) else {
            return Err(Failure::Usage(format!("{flag} {text}: write it as NAME=EXTENT, with a number from 0")));
        };
        match by_name.insert(name, extent) {
            Some(&before) if before != extent => {
                return Err(Failure::Usage(format!("{flag} {text}: `{name}` was already given as {before}")));
            }
            Some(_) => {}
            None => dims.push((name, extent)),
        }
    }
    Ok(dims)
}

/// Replaces the names of dimensions in the ONNX file by their names in the module.
///
/// # Errors
/// If a dimension is given two different extents under its two names.
pub(crate) fn in_module(flag: &str, dims: &[(&str, usize)], module: &Module) -> Result<Vec<(String, usize)>, Failure> {
    if dims.is_empty() {
        return Ok(Vec::new());
    }
    let in_file = file_dimensions(module);
    let in_file: ByName<'_, &String> = in_file.iter().map(|(there, here)| (there.as_str(), here)).collect();
    let mut named = Vec::with_capacity(dims.len());
    let mut extents: FxHashMap<String, usize> = FxHashMap::default();
    for &(name, extent) in dims {
        let here = in_file.get(name).map_or(name, |here| here.as_str());
        match extents.insert(here.to_string(), extent) {
            Some(before) if before != extent => {
                return Err(Failure::Message(format!(
                    "{flag} {name}={extent}: `{here}` was already given as {before}"
                )));
            }
            Some(_) => {}
            None => named.push((here.to_string(), extent)),
        }
    }
    Ok(named)
}

/// Checks extents of dimensions against a function's parameters and the inputs that are given for
/// them.
///
/// # Errors
/// If a dimension occurs in no parameter type, or a given input has another extent for it.
pub(crate) fn check(
    dims: &[(String, usize)],
    module: &Module,
    function: &Function,
    inputs: &FxHashMap<usize, Literal>,
) -> Result<(), Failure> {
    if dims.is_empty() {
        return Ok(());
    }
    let symbols = symbols_of(module, function);
    let name_of = |s: SymbolId| module.cx.names.get(module.cx.types.dims.symbol_name(s));
    let by_name: ByName<'_, SymbolId> = symbols.iter().map(|&s| (name_of(s), s)).collect();
    let mut extents: FxHashMap<SymbolId, usize> = FxHashMap::default();
    for (name, extent) in dims {
        let Some(&symbol) = by_name.get(name) else {
            let names = symbols.iter().map(|&s| name_of(s));
            let help = match did_you_mean(name, names.clone()) {
                _ if symbols.is_empty() => "they have none".to_string(),
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("they have {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(Failure::Message(format!("the inputs have no symbolic dimension `{name}`; {help}")));
        };
        extents.insert(symbol, *extent);
    }
    match contradiction(module, function, inputs, &extents) {
        None => Ok(()),
        Some((symbol, parameter, found)) => {
            let name = name_of(symbol);
            let extent = extents[&symbol];
            let message = format!("--dim {name}={extent}: the input `{parameter}` that is given has {found} there");
            Err(Failure::Message(message))
        }
    }
}

/// Returns the symbols in the types of the parameters, in order and without duplicates.
fn symbols_of(module: &Module, function: &Function) -> Vec<SymbolId> {
    let types = &module.cx.types;
    let mut symbols = Vec::new();
    for &param in function.body.params() {
        types.for_each_symbol(function.body.ty(param.expr()), |dim| {
            if let Dim::Symbol(s) = *types.dims.get(dim) {
                symbols.push(s);
            }
        });
    }
    distinct(symbols)
}

/// Removes duplicates, keeping the first of each. Takes linear time.
fn distinct<T: Copy + Eq + Hash>(mut list: Vec<T>) -> Vec<T> {
    let mut seen: FxHashSet<T> = FxHashSet::with_capacity_and_hasher(list.len(), FxBuildHasher);
    list.retain(|item| seen.insert(*item));
    list
}

/// Returns the first symbol whose extent differs from that of a given input, with the name (or the
/// index) of the parameter and the extent in the input.
fn contradiction(
    module: &Module,
    function: &Function,
    inputs: &FxHashMap<usize, Literal>,
    extents: &FxHashMap<SymbolId, usize>,
) -> Option<(SymbolId, String, usize)> {
    let (cx, body) = (&module.cx, &function.body);
    for (i, &param) in body.params().iter().enumerate() {
        let Some((tensor, input)) = cx.types.as_tensor(body.ty(param.expr())).zip(inputs.get(&i)) else { continue };
        for (&dim, &found) in tensor.shape.iter().flatten().zip(input.shape()) {
            if let Dim::Symbol(symbol) = *cx.types.dims.get(dim)
                && extents.get(&symbol).is_some_and(|&extent| extent != found)
            {
                let name = body.var_name(param).map_or_else(|| i.to_string(), |n| cx.names.get(n).to_string());
                return Some((symbol, name, found));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    /// A number whose comparisons are counted.
    #[derive(Copy, Clone, Debug)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Counted) -> bool {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted {}

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            state.write_u32(self.0);
        }
    }

    #[test]
    fn symbols_are_told_apart_with_few_comparisons() {
        let comparisons = |n: u32| {
            COMPARISONS.set(0);
            let list = (0..n).chain(0..n).map(Counted).collect();
            let found: Vec<u32> = distinct(list).iter().map(|c| c.0).collect();
            assert!(found.into_iter().eq(0..n), "each is there once, in order");
            COMPARISONS.get()
        };
        let (small, large) = (comparisons(1000), comparisons(8000));
        assert!(large <= small * 12, "{small} comparisons of 1000 symbols, {large} of 8000");
    }
}

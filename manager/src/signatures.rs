//! The signatures of functions that a pass worked on.

use anfora_ir::{Function, FunctionKey, Module, TypeId};

use crate::error::PassError;

/// A function that a pass worked on.
pub(crate) struct Visited {
    pub(crate) key: FunctionKey,
    /// The type of its block, if that is its result type and was looked up. Finding the tail is
    /// linear in the block, so the thread that has just worked on the function does it.
    pub(crate) result: Option<TypeId>,
}

impl Visited {
    /// Makes the record of a function, after the work on it and on the same thread.
    pub(crate) fn new(key: FunctionKey, function: &Function) -> Visited {
        let looks = function.ret.is_none() && function.is_definition() && function.body.is_edited();
        Visited { key, result: looks.then(|| function.body.type_of(function.body.root())) }
    }
}

/// Updates the signatures of edited functions whose result is not stated to the types of their
/// blocks, types their callers again, and so on. Linear in the edited bodies, and in the module if
/// a signature changed.
///
/// # Errors
/// If a caller is ill-typed with the new signatures.
pub(crate) fn update_signatures(module: &mut Module, edited: &[Visited]) -> Result<(), PassError> {
    let changed: Vec<FunctionKey> = edited.iter().filter(|f| has_changed(module, f)).map(|f| f.key).collect();
    if !changed.is_empty() {
        anfora_ir::update_signatures(module, &changed)?;
    }
    Ok(())
}

/// Returns true if the signature according to the block of a function differs from the one that its
/// name has. An external function, which others may call, keeps a result type that does not accept
/// that of its block: the verifier refuses it.
fn has_changed(module: &mut Module, visited: &Visited) -> bool {
    let Some((f, cx)) = module.get_mut(visited.key) else { return false };
    let Some(global) = f.global().filter(|_| f.ret.is_none() && f.is_definition()) else { return false };
    let ret = visited.result.unwrap_or_else(|| f.body.type_of(f.body.root()));
    let signature = f.signature(cx, ret);
    let known = cx.globals.get(global).signature;
    // Both are read from signatures, in which the symbols of the parameters are numbered.
    let results = cx.types.as_function(signature).zip(known.and_then(|known| cx.types.as_function(known)));
    let keeps = f.is_external(cx) && results.is_some_and(|(new, known)| !cx.types.accepts(known.ret, new.ret));
    known != Some(signature) && !keeps
}

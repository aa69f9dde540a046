//! What callers see of functions whose result became more specific.

use std::collections::VecDeque;

use anfora_ir::{Function, FunctionKey, GlobalId, Module, Retype, TypeId, signature_type};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::error::PassError;

/// Each time a callee's result becomes more specific, its callers are typed again. Types become more specific only so often.
const MOST_TIMES: u32 = 64;

/// A function that a pass worked on.
pub(crate) struct WorkedOn {
    pub(crate) key: FunctionKey,
    /// The type of its block, if that is its result type and somebody has looked: to find the tail is linear in the block, and best done by the thread that was there
    /// last.
    pub(crate) result: Option<TypeId>,
}

impl WorkedOn {
    /// To be asked after the work, and on its thread.
    pub(crate) fn new(key: FunctionKey, function: &Function) -> WorkedOn {
        let looks = function.ret.is_none() && function.is_definition() && function.body.is_edited();
        WorkedOn { key, result: looks.then(|| function.body.type_of(function.body.root())) }
    }
}

/// Gives the names of edited functions the signatures that their blocks have now, where the result is not stated, and types their callers
/// again, and so on. Linear in the bodies that are edited, and in the module if a signature changed.
///
/// # Errors
/// If a caller cannot be typed any more.
pub(crate) fn update_signatures(module: &mut Module, edited: &[WorkedOn]) -> Result<(), PassError> {
    let changed: Vec<GlobalId> = edited.iter().filter_map(|f| update_signature(module, f.key, f.result)).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let mut callers: FxHashMap<GlobalId, Vec<FunctionKey>> = FxHashMap::default();
    for (key, f) in module.functions() {
        for (_, global) in f.body.global_leaves() {
            callers.entry(global).or_default().push(key);
        }
    }
    let callers_of = |global: GlobalId| callers.get(&global).into_iter().flatten().copied();
    // Each caller is in the queue once, however many of those that it names changed.
    let mut queue: VecDeque<FunctionKey> = VecDeque::new();
    let mut queued: FxHashSet<FunctionKey> = FxHashSet::default();
    queue.extend(changed.into_iter().flat_map(callers_of).filter(|&key| queued.insert(key)));
    let mut times: FxHashMap<FunctionKey, u32> = FxHashMap::default();
    while let Some(key) = queue.pop_front() {
        queued.remove(&key);
        if !retype_calls(module, key)? {
            continue;
        }
        let n = times.entry(key).or_default();
        *n += 1;
        if *n > MOST_TIMES {
            return Err(PassError::new("the type of its result does not settle").in_function(module.name(key)));
        }
        if let Some(global) = update_signature(module, key, None) {
            queue.extend(callers_of(global).filter(|&key| queued.insert(key)));
        }
    }
    Ok(())
}

/// Gives a function's name the signature that its block has; the name, if that is another than before. `result` is the type of the block, if that is known.
fn update_signature(module: &mut Module, key: FunctionKey, result: Option<TypeId>) -> Option<GlobalId> {
    let (f, cx) = module.get_mut(key)?;
    let global = f.global()?;
    if f.ret.is_some() || !f.is_definition() {
        return None;
    }
    let params: SmallVec<[TypeId; 8]> = f.body.params().iter().map(|p| f.body.ty(p.expr())).collect();
    let ret = result.unwrap_or_else(|| f.body.type_of(f.body.root()));
    let signature = signature_type(cx, &params, ret);
    if cx.globals.get(global).signature == Some(signature) {
        return None;
    }
    module.set_signature(global, signature);
    Some(global)
}

/// Gives a body's uses of globals the signatures that these have, and types what uses them; whether any was another than before.
fn retype_calls(module: &mut Module, key: FunctionKey) -> Result<bool, PassError> {
    let Some((f, cx)) = module.get_mut(key) else { return Ok(false) };
    let body = &mut f.body;
    let mut retype = Retype::new(body);
    for (node, global) in body.global_leaves() {
        if let Some(signature) = cx.globals.get(global).signature
            && signature != body.ty(node)
        {
            body.set_type(node, signature);
            retype.changed(node);
        }
    }
    if !retype.is_needed() {
        return Ok(false);
    }
    let root = body.root();
    match retype.sweep(cx, body, root) {
        Ok(_) => Ok(true),
        Err(e) => Err(PassError::new("a caller of a function whose result became more specific has no type")
            .with_cause(e)
            .in_function(module.name(key))),
    }
}

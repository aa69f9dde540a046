//! The functions whose signatures a pass may change: all their uses are calls in the module.

use anfora_ir::{Attr, Body, Cursor, Expr, ExprId, Function, FunctionKey, GlobalId, IdSet, Module, Step, Visibility};
use anfora_visit::RewriteError;
use rustc_hash::FxHashMap;

/// Returns the functions that attributes name, or functions in attributes.
pub(crate) fn named_by_attrs(module: &Module) -> IdSet<GlobalId> {
    let mut named = IdSet::with_capacity(0);
    for (_, value) in module.cx.attrs.iter() {
        if let Attr::Global(global) = value {
            named.insert(*global);
        }
    }
    for (_, function) in module.cx.function_attrs.iter() {
        for (_, global) in function.body.global_leaves() {
            named.insert(global);
        }
    }
    named
}

/// Returns the private functions that are only called: they have a body, are neither external nor
/// primitive, and are named by no attribute and used as no value.
///
/// # Errors
/// If a function that names one of them is not in A-normal form.
pub(crate) fn only_called(module: &Module) -> Result<FxHashMap<GlobalId, FunctionKey>, RewriteError> {
    only_called_among(module, |function| {
        function.is_definition()
            && function.visibility == Visibility::Private
            && !function.is_external(&module.cx)
            && !function.is_primitive(&module.cx)
    })
}

/// Returns those of the chosen functions that are only called: they are named by no attribute and
/// used as no value.
///
/// # Errors
/// If a function that names one of them is not in A-normal form.
pub(crate) fn only_called_among(
    module: &Module,
    is_chosen: impl Fn(&Function) -> bool,
) -> Result<FxHashMap<GlobalId, FunctionKey>, RewriteError> {
    let cx = &module.cx;
    let by_attrs = named_by_attrs(module);
    let mut found: FxHashMap<GlobalId, FunctionKey> = module
        .functions()
        .filter(|&(_, function)| is_chosen(function))
        .filter_map(|(key, function)| Some((function.global()?, key)))
        .filter(|(global, _)| !by_attrs.contains(*global))
        .collect();
    if found.is_empty() {
        return Ok(found);
    }
    for (_, function) in module.functions() {
        let body = &function.body;
        if !body.global_leaves().iter().any(|(_, global)| found.contains_key(global)) {
            continue;
        }
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            RewriteError::unless_anf(cx, body, &cursor, step)?;
            match step {
                Step::Atom(id) => forget(&mut found, body, id),
                Step::Flat(id) => {
                    let is_callee = usize::from(matches!(body.expr(id), Expr::Call { .. }));
                    body.inputs(id).iter().skip(is_callee).for_each(|&input| forget(&mut found, body, input));
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// Removes a function that is used as a value.
fn forget(found: &mut FxHashMap<GlobalId, FunctionKey>, body: &Body, value: ExprId) {
    if let Expr::Global(global) = body.expr(value) {
        found.remove(&global);
    }
}

/// Returns the function that a value calls, if it is one of these.
pub(crate) fn callee_of(
    functions: &FxHashMap<GlobalId, FunctionKey>,
    body: &Body,
    value: ExprId,
) -> Option<FunctionKey> {
    match (body.expr(value), body.inputs(value)) {
        (Expr::Call { .. }, &[callee, ..]) => match body.expr(callee) {
            Expr::Global(global) => functions.get(&global).copied(),
            _ => None,
        },
        _ => None,
    }
}

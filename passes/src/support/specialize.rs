//! Functions of which symbols become constants, and so their signatures.

use anfora_ir::{ExprId, FunctionKey, GlobalId, IntoDiagnostics, Module, SignatureError};

use crate::bind_params::mistake;
use crate::support::failure::{Failure, binding_name};
use crate::support::symbols::{Substitution, substitute_symbols};

/// Puts what symbols stand for into the parameters, the result, the attributes and the body of a
/// function, and gives its name its new signature. `changed` are the nodes whose type changed
/// before.
///
/// # Errors
/// If an expression has no type any more. The function is half rewritten then.
pub(crate) fn specialize_function(
    module: &mut Module,
    key: FunctionKey,
    global: GlobalId,
    symbols: &mut Substitution,
    mut changed: Vec<ExprId>,
) -> Result<(), Failure> {
    let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
    for i in 0..function.body.params().len() {
        let param = function.body.params()[i].expr();
        let ty = symbols.ty(cx, function.body.ty(param));
        if ty != function.body.ty(param) {
            function.body.set_type(param, ty);
            changed.push(param);
        }
    }
    function.attrs = symbols.attrs(cx, function.attrs);
    if let Some(ret) = function.ret {
        let ret = symbols.ty(cx, ret);
        function.ret = Some(ret);
        // Calls of itself are typed by it.
        let signature = function.signature(cx, ret);
        for (leaf, g) in function.body.global_leaves() {
            if g == global && function.body.ty(leaf) != signature {
                function.body.set_type(leaf, signature);
                changed.push(leaf);
            }
        }
        module.set_signature(global, signature);
    }
    let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
    substitute_symbols(cx, &mut function.body, symbols, &changed)
        .map_err(|(at, error)| Failure::Type { error, binding: binding_name(cx, &function.body, at) })?;
    if function.ret.is_none() {
        let ret = function.body.type_of(function.body.root());
        let signature = function.signature(cx, ret);
        module.set_signature(global, signature);
    }
    Ok(())
}

/// Returns the failure of a pass for the error of a change of signatures, with the name of the
/// function that it is about.
pub(crate) fn of_signature(error: SignatureError) -> (Option<String>, Failure) {
    let message = error.to_string();
    let told = error.clone().into_diagnostics().into_iter().next();
    let (function, binding, help) = told.map_or((None, None, None), |d| (d.function, d.binding, d.help));
    match error {
        SignatureError::Mistyped { error, .. } => (function, Failure::Type { error: *error, binding }),
        _ => (function, mistake(message, help)),
    }
}

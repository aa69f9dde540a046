//! Functions of which symbols become constants, and so their signatures.

use anfora_ir::{ExprId, FunctionKey, GlobalId, Module};
use anfora_visit::RewriteError;

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
) -> Result<(), RewriteError> {
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
        .map_err(|(at, error)| RewriteError::untyped(error, function.body.binding_name(cx, at)))?;
    if function.ret.is_none() {
        let ret = function.body.type_of(function.body.root());
        let signature = function.signature(cx, ret);
        module.set_signature(global, signature);
    }
    Ok(())
}

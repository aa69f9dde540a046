//! Primitive functions: groups of operators that FuseOps put together, to be compiled as one.

use anfora_ir::{Attr, Context, Function};

/// The attribute that says so.
pub(crate) const PRIMITIVE: &str = "Primitive";

/// Returns true if a function is a group of operators: it has the attribute `Primitive`, and that is not 0 or `false`.
///
/// What it computes, and by which operators, stays as it is: no pass optimises it. Its form does not: the passes that
/// establish a property of all functions (ToANormalForm, LambdaLifting, ToNonDataflow) rewrite it too. InlineFunctions
/// inlines it and into it, and FuseOps compares it with the groups that it makes.
#[inline]
pub fn is_primitive(cx: &Context, function: &Function) -> bool {
    function.attrs != cx.attrs.empty()
        && cx
            .find_attr(function.attrs, PRIMITIVE)
            .is_some_and(|value| !matches!(cx.attrs.get(value), Attr::Int(0) | Attr::Bool(false) | Attr::None))
}

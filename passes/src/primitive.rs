//! Primitive functions: groups of operators that FuseOps put together, to be compiled as one.

use anfora_ir::{Attr, Context, Function};

/// The attribute that says so.
pub(crate) const PRIMITIVE: &str = "Primitive";

/// Whether a function is a group of operators: it has the attribute `Primitive`, and that is not 0 or `false`. What is in it stays as it is: no pass
/// looks into it but InlineFunctions, and FuseOps for equal groups.
#[inline]
pub fn is_primitive(cx: &Context, function: &Function) -> bool {
    function.attrs != cx.attrs.empty()
        && cx
            .find_attr(function.attrs, PRIMITIVE)
            .is_some_and(|value| !matches!(cx.attrs.get(value), Attr::Int(0) | Attr::Bool(false) | Attr::None))
}

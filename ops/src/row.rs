//! A row with a kernel, as most are.

use anfora_ir::{Arity, Kernel, OpDef, TypeRule};

/// An operator that a kernel evaluates; see [`OpDef::new`].
pub(crate) fn row(name: &'static str, doc: &'static str, arity: Arity, infer: TypeRule, kernel: Kernel) -> OpDef {
    OpDef::new(name, doc, arity, infer).kernel(kernel)
}

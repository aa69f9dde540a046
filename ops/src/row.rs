//! Rows with a kernel.

use anfora_ir::{Arity, OpDef, TypeRule};

/// Defines functions that make rows with a kernel, which is their last parameter. Without the
/// feature `kernels`, the kernel is not converted to a function pointer, so that no kernel is
/// compiled.
macro_rules! with_kernel {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($part:ident: $ty:ty),+; $kernel:ident) -> OpDef $row:block) => {
        $(#[$doc])*
        #[cfg(feature = "kernels")]
        $vis fn $name($($part: $ty),+, $kernel: ::anfora_ir::Kernel) -> OpDef $row

        $(#[$doc])*
        #[cfg(not(feature = "kernels"))]
        $vis fn $name(
            $($part: $ty),+,
            $kernel: impl Fn(
                &::anfora_ir::KernelCall<'_>,
            ) -> Result<Vec<::anfora_ir::Literal>, ::anfora_ir::KernelError>,
        ) -> OpDef $row
    };
}

pub(crate) use with_kernel;

with_kernel! {
    /// Returns the row of an operator that a kernel evaluates; see [`OpDef::new`].
    pub(crate) fn row(name: &'static str, doc: &'static str, arity: Arity, infer: TypeRule; kernel) -> OpDef {
        let row = OpDef::new(name, doc, arity, infer);
        #[cfg(feature = "kernels")]
        let row = row.kernel(kernel);
        #[cfg(not(feature = "kernels"))]
        let _ = kernel;
        row
    }
}

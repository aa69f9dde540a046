//! Names of attributes that functions have by convention.

/// The attribute of functions that holds their symbol for a linker. A function with this attribute
/// is external, be it public or private ([`Function::is_external`](crate::Function::is_external)),
/// and no other definition of the module has the same symbol.
pub const GLOBAL_SYMBOL: &str = "global_symbol";

/// The attribute of functions that are groups of operators: see
/// [`Context::is_primitive`](crate::Context::is_primitive).
pub const PRIMITIVE: &str = "Primitive";

/// The attribute of a declaration whose calls have no effects.
pub const PURE: &str = "Pure";

//! Programs: ids, expressions, the bodies that hold them, functions, modules and the builder.

pub(crate) mod entity;
pub(crate) mod expr;
pub(crate) mod attr_names;
pub(crate) mod body;
pub(crate) mod function;
mod function_attrs;
pub(crate) mod context;
mod context_attrs;
pub(crate) mod module;
pub(crate) mod builder;
pub(crate) mod phase;
pub(crate) mod invariant;
pub(crate) mod translate;

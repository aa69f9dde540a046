//! The tables that the functions of a module share: names, types, dimensions, literals and
//! attributes, each value stored once.

pub(crate) mod intern;
pub(crate) mod names;
pub(crate) mod numbered;
pub(crate) mod dtype;
pub(crate) mod dim;
pub(crate) mod types;
pub(crate) mod literal;
pub(crate) mod attrs;
pub(crate) mod entry;
pub(crate) mod value;
mod module_values;
pub(crate) mod scratch;
pub(crate) mod parallel;

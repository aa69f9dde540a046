//! Operators: their rows in the registry, their type rules and kernels, and the effects of calls.

pub(crate) mod op_kinds;
pub(crate) mod op_def;
pub(crate) mod facts;
pub(crate) mod op;
pub(crate) mod register_error;
mod register;
pub(crate) mod op_call;
pub(crate) mod decomposition;
pub(crate) mod adjoint;
mod write_steps;
pub(crate) mod relayout;
pub(crate) mod catch_panic;
mod kernel;
pub(crate) mod purity;

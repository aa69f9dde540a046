//! Operators: their rows in the registry, their type rules and kernels, and the effects of calls.

pub(crate) mod op_def;
pub(crate) mod facts;
pub(crate) mod op;
pub(crate) mod register;
pub(crate) mod op_call;
pub(crate) mod decomposition;
pub(crate) mod adjoint;
pub(crate) mod relayout;
pub(crate) mod kernel;
pub(crate) mod purity;

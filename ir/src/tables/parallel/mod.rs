//! The shared tables while several threads work on functions: frozen, with an overlay for
//! each thread that is merged back in the order of the module.

pub(crate) mod layers;
pub(crate) mod overlay;
pub(crate) mod fork;

//! The shared tables while several threads work on functions. They are frozen, and each thread has
//! an overlay, which is merged back in the order of the module.

pub(crate) mod layers;
pub(crate) mod overlay;
pub(crate) mod fork;

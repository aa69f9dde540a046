//! Parts that several passes share: the forward sweep with its definitions, effects, regions, symbols,
//! sources of literals, and failures.

pub(crate) mod definitions;
pub(crate) mod effects;
pub(crate) mod failure;
pub(crate) mod fold_budget;
pub(crate) mod named_symbols;
pub(crate) mod names;
pub(crate) mod npy;
pub(crate) mod primitive;
pub(crate) mod specialize;
pub(crate) mod sweep;
pub(crate) mod symbols;

//! Parts that several passes share: the forward sweep with its definitions and regions.

pub(crate) mod definitions;
pub(crate) mod regions;
pub(crate) mod sweep;

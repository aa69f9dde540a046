//! Parts that several passes share.

pub(crate) mod regions;

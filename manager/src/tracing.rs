//! The spans and events of the feature `tracing`. Without the feature, everything here is empty.

pub(crate) mod outcomes;
pub(crate) mod spans;

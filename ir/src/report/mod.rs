//! Diagnostics: errors with places, the sources that they refer to, and their rendering.

pub(crate) mod diagnostic;
pub(crate) mod diagnostics;
pub(crate) mod source;
pub(crate) mod suggest;
pub(crate) mod render;
pub(crate) mod brief_debug;

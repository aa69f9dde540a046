//! Diagnostics: errors with places, the sources that they point into, and how they are shown.

pub(crate) mod diagnostic;
pub(crate) mod diagnostics;
pub(crate) mod source;
pub(crate) mod suggest;
pub(crate) mod render;
pub(crate) mod brief_debug;

//! Checks of the public items of the crates, which are read from their sources.

mod entry_points;
mod sources;
mod surface;

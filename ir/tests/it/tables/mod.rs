//! The tables of a context: names, dimensions, types, constants, and what their ids index.

mod dims;
mod elements;
mod ids;
mod literals;
mod names;
mod retype;
mod suggestions;
mod types;

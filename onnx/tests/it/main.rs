//! Import and export, through models that are made here.

mod conversions;
mod deep;
mod errors;
mod exporting;
mod functions;
mod models;
mod mutations;
mod round_trip;
mod wire;

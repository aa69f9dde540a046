//! Tests of import and export on models that are built here.

mod advisories;
mod control;
mod conversions;
mod custom;
mod deep;
mod elementwise;
mod errors;
mod exporting;
mod external;
mod file_functions;
mod forms;
mod functions;
mod kept_types;
mod models;
mod mutations;
mod odd_models;
mod passes;
mod resizing;
mod round_trip;
mod rounds;
mod sequences;
mod sparse;
mod symbolic;
mod versions;
mod windows;
mod wire;

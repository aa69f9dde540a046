//! The command line, as a user calls it.

mod commands;
mod debugging;
mod onnx_files;
mod passes;
mod program;
mod reports;

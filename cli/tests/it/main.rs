//! The command line, as a user calls it.

mod commands;
mod debugging;
mod embedding;
mod hostile;
mod onnx_files;
mod output_files;
mod passes;
mod program;
mod reports;
mod slim;
mod surgery;

//! The command line, as a user calls it.

mod commands;
mod debugging;
mod embedding;
mod faults;
mod hostile;
mod onnx_files;
mod output_files;
mod pages;
mod passes;
mod program;
mod reports;
mod slim;
mod surgery;
mod why_not;

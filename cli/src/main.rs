//! The `anfora` program.

use std::process::ExitCode;

use anfora_cli::{CommandLine, main_with};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(main_with(CommandLine::default(), std::env::args_os()))
}

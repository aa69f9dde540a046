//! The command line of anfora, with the passes and operators of this package.

use std::process::ExitCode;

fn main() -> Result<ExitCode, my_passes::SetupError> {
    Ok(ExitCode::from(anfora_cli::main_with(my_passes::command_line()?, std::env::args_os())))
}

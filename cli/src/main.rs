//! The `anfora` program: reads a module, runs passes over it, writes it back.

mod check;
mod convert;
mod diff;
mod dims;
mod file;
mod generate;
mod interpret;
mod list;
mod npy;
mod optimize;
mod remarks;
mod replay;
mod report;
mod stress;
mod summary;
mod types;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

use crate::report::Failure;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Compiler passes that cannot overflow the stack, over programs in A-normal form.
#[derive(Parser)]
#[command(name = "anfora", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a pipeline of passes and writes the result
    Opt(Box<optimize::Opt>),
    /// Parses, infers types and verifies; prints the form and counts
    Check(check::Check),
    /// Converts between `.anf` and `.onnx` without running passes
    Convert(convert::Convert),
    /// Runs the pass of a reproducer again
    Replay(replay::Replay),
    /// Interprets a program
    Run(interpret::Run),
    /// Compares two programs up to the names of their variables
    Diff(diff::Diff),
    /// Writes a program of a given shape and size
    Gen(generate::Gen),
    /// Runs everything on every shape of program, on a small stack
    Stress(stress::Stress),
    /// Lists the passes
    Passes(list::List),
    /// Lists the operators
    Ops(list::List),
    /// Lists the configuration options
    Configs(list::List),
    /// Lists the named pipelines
    Pipelines(list::List),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Opt(c) => c.run(),
        Command::Check(c) => c.run(),
        Command::Convert(c) => c.run(),
        Command::Replay(c) => c.run(),
        Command::Run(c) => c.run(),
        Command::Diff(c) => c.run(),
        Command::Gen(c) => c.run(),
        Command::Stress(c) => c.run(),
        Command::Passes(c) => c.passes(),
        Command::Ops(c) => c.ops(),
        Command::Configs(c) => c.configs(),
        Command::Pipelines(c) => c.pipelines(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Reported) => ExitCode::FAILURE,
        // Who reads our output has seen enough.
        Err(Failure::Output(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            report::print_failure(&failure);
            ExitCode::from(if matches!(failure, Failure::Usage(_)) { 2 } else { 1 })
        }
    }
}

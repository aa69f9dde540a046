//! The `anfora` program: reads a module, runs passes over it, writes it back.
//!
//! It is a library. The Python package carries it, and a program with passes and operators of its
//! own has the same commands for them: it passes a [`CommandLine`] to [`main_with`].
//! `examples/my_passes` is a template of such a program.

mod bisect;
mod by_name;
mod check;
mod command_line;
mod convert;
mod diff;
mod dims;
mod file;
mod generate;
mod interpret;
mod list;
mod meaning_checks;
mod optimize;
mod page;
mod pass_settings;
mod plan;
mod reduce;
mod remarks;
mod replay;
mod report;
mod signals;
mod slim;
mod stress;
mod summary;
mod surgery;
mod test_command;
mod types;
mod watch;
mod why_not;

use std::ffi::OsString;
use std::io::Write;
use std::thread;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::report::Failure;

pub use command_line::CommandLine;

// The command line names and describes it.
#[derive(Parser)]
#[command(max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a pipeline of passes and writes the result
    Opt(Box<optimize::Opt>),
    /// Makes a model as small as it gets
    Slim(slim::Slim),
    /// Parses, infers types and verifies; prints the form and counts
    Check(check::Check),
    /// Converts between `.anf` and `.onnx` without running passes
    Convert(convert::Convert),
    /// Runs the pass of a reproducer again
    Replay(replay::Replay),
    /// Finds the pass, function and rewrite that break a program
    Bisect(bisect::Bisect),
    /// Makes a program smaller that shows a fault
    Reduce(Box<reduce::Reduce>),
    /// Interprets a program
    Run(interpret::Run),
    /// Edits a model by the names of its values
    Surgery(Box<surgery::Surgery>),
    /// Plans the memory of a program
    Plan(plan::Plan),
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
    /// Lists the operators of ONNX whose result types are known
    OnnxOps(list::List),
    /// Lists the configuration options
    Configs(list::List),
    /// Lists the named pipelines
    Pipelines(list::List),
}

/// The stack size of the thread that runs a command. The stack size of the main thread depends on
/// the environment in which the program is started.
const STACK_BYTES: usize = 8 << 20;

/// Runs the command that the arguments name, the name of the program first, with the passes and
/// operators of a command line, and returns the exit status: 0 if it is done, 1 if the input, a
/// pass or a check failed, 2 for wrong arguments. The command has a thread of its own.
///
/// The calling thread waits for the command, and meanwhile handles the signals that end a process:
/// unfinished files are removed first. Afterwards these signals have their default actions.
pub fn main_with<S: Into<OsString> + Clone>(cli: CommandLine, arguments: impl IntoIterator<Item = S>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let command = move || run(&cli, arguments);
    let thread = thread::Builder::new().name("main".to_string()).stack_size(STACK_BYTES);
    match signals::run_handling_signals(thread, command) {
        Ok(Ok(code)) => code,
        // The message of the panic has already been printed.
        Ok(Err(_)) => 101,
        Err(e) => {
            report::say(&format!("error: cannot start a thread: {e}"));
            1
        }
    }
}

impl Command {
    /// Runs the command, given all arguments.
    fn run(self, cli: &CommandLine, arguments: &[OsString]) -> Result<(), Failure> {
        match self {
            Command::Opt(c) => c.run(cli, arguments),
            Command::Slim(c) => c.run(cli),
            Command::Check(c) => c.run(cli),
            Command::Convert(c) => c.run(cli),
            Command::Replay(c) => c.run(cli),
            Command::Bisect(c) => c.run(cli),
            Command::Reduce(c) => c.run(cli),
            Command::Run(c) => c.run(cli),
            Command::Surgery(c) => c.run(cli),
            Command::Plan(c) => c.run(cli),
            Command::Diff(c) => c.run(cli, arguments),
            Command::Gen(c) => c.run(cli),
            Command::Stress(c) => c.run(cli),
            Command::Passes(c) => c.passes(cli),
            Command::Ops(c) => c.ops(cli),
            Command::OnnxOps(c) => c.onnx_ops(),
            Command::Configs(c) => c.configs(cli),
            Command::Pipelines(c) => c.pipelines(cli),
        }
    }
}

fn run(cli: &CommandLine, arguments: Vec<OsString>) -> u8 {
    let mut command = cli.describe(Arguments::command());
    let parsed = command.try_get_matches_from_mut(&arguments).and_then(|matches| Arguments::from_arg_matches(&matches));
    let done = match parsed.map_err(|usage| usage.format(&mut command)) {
        Ok(parsed) => parsed.command.run(cli, &arguments),
        Err(usage) => report::print_usage(&usage),
    };
    // Text after the last newline stays in the buffer until this flush.
    let flushed = std::io::stdout().flush().map_err(Failure::Output);
    match done.and(flushed) {
        Ok(()) => 0,
        Err(Failure::Reported) => 1,
        // The reader of the output has closed the pipe and needs no more of it.
        Err(Failure::Output(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(failure) => {
            report::print_failure(&failure);
            failure.exit_code()
        }
    }
}

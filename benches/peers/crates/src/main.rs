//! The benchmark program in the forms that other compilers read, and its times in anfora and in
//! crates that do the same work.
//!
//! `write` prints one form of the program. `time` prints a line of JSON per stage: the time of each
//! run, in seconds of CPU time of one thread, and the number of operations after the stage (after
//! lifting lambdas, of functions). `process` reads, optimises and writes one program in anfora, as
//! a process of a user does, and prints the same lines. The script `benches/peers/run` calls all of
//! them and makes the table.

mod anfora_stages;
mod cranelift;
mod egg_stages;
mod forms;
mod pliron_stages;
mod program;
mod stage;

use std::io::Write;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use mimalloc::MiMalloc;

use crate::forms::Form;
use crate::program::Program;
use crate::stage::Report;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The benchmark program in other forms, and timed in Rust.
#[derive(Parser)]
enum Command {
    /// Writes the program to standard output.
    Write {
        /// The form.
        form: Form,
        /// The number of operations.
        n: usize,
    },
    /// Times every stage that a system has.
    Time {
        /// The system.
        system: System,
        /// The number of operations.
        n: usize,
        /// The number of runs of each stage.
        #[arg(long, default_value_t = 5)]
        runs: usize,
    },
    /// Reads a program in anfora's text format, runs a pipeline, and writes the result. Times the
    /// three once each.
    Process {
        /// The name under which the pipeline is timed.
        stage: String,
        /// The pipeline.
        pipeline: String,
        /// The file with the program.
        input: PathBuf,
        /// The file of the result.
        output: PathBuf,
    },
}

#[derive(Copy, Clone, ValueEnum)]
enum System {
    Anfora,
    Cranelift,
    Egg,
    Pliron,
}

fn main() -> std::io::Result<()> {
    let out = std::io::stdout().lock();
    match Command::parse() {
        Command::Write { form, n } => {
            let mut out = std::io::BufWriter::new(out);
            form.write(&Program::new(n), &mut out)?;
            out.flush()
        }
        Command::Time { system, n, runs } => {
            let mut report = Report::new(out, n, runs);
            match system {
                System::Anfora => anfora_stages::time(&mut report),
                System::Cranelift => cranelift::time(&mut report),
                System::Egg => egg_stages::time(&mut report),
                System::Pliron => pliron_stages::time(&mut report),
            }
            report.finish()
        }
        Command::Process { stage, pipeline, input, output } => {
            let mut report = Report::new(out, 0, 1);
            anfora_stages::process(&mut report, &stage, &pipeline, &input, &output)?;
            report.finish()
        }
    }
}

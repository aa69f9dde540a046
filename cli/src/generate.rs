//! `anfora gen`

use std::path::PathBuf;

use anfora_testing::programs::Shape;
use clap::Args;

use crate::command_line::CommandLine;
use crate::file::{self, Constants, Format};
use crate::report::Failure;

/// The largest size of a program that may be requested. Each shape takes up to 500 bytes per
/// binding or level while it is built and written, which comes to at most 5 GB.
pub(crate) const LARGEST_SIZE: u64 = 10_000_000;

/// Writes a program of a given shape and size.
#[derive(Args)]
#[command(after_help = shapes_help())]
pub(crate) struct Gen {
    /// The shape of the program; see below
    shape: Shape,
    /// The number of bindings, or the depth
    #[arg(value_parser = clap::value_parser!(u64).range(..=LARGEST_SIZE))]
    size: u64,
    /// The seed of a random program
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to write it: a `.anf` or `.onnx` file, or `-`
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
    /// The format of the output
    #[arg(long)]
    to: Option<Format>,
}

fn shapes_help() -> String {
    let mut text = String::from("Shapes:\n");
    for shape in Shape::all() {
        text.push_str(&format!("  {:13} {}\n", shape.name(), shape.doc()));
    }
    text
}

impl Gen {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let module = self.shape.build(self.size as usize, self.seed).map_err(|e| Failure::Message(e.to_string()))?;
        file::store(&module, &self.output, self.to, &Constants::default(), cli.export_options(), 1)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anfora::ir::{Counts, Module, PrintOptions, work, write_module};

    use super::*;

    /// Returns the number of nodes of a program of the given size, the number of bytes of its text,
    /// and the number of accesses to it while it is built and written.
    fn counted(shape: Shape, size: usize) -> [usize; 3] {
        let before = work::count();
        let module: Module = shape.build(size, 7).expect("a shape builds");
        let mut text = Vec::new();
        write_module(&module, &PrintOptions::default(), &mut text).expect("a vector grows");
        let accesses = usize::try_from(work::count() - before).expect("a small number");
        let Counts { bindings, calls, ifs, lambdas, regions, .. } = Counts::of_module(&module);
        [bindings + calls + ifs + lambdas + regions, text.len(), accesses]
    }

    #[test]
    fn programs_grow_in_proportion_to_their_size() {
        for shape in Shape::all() {
            for size in [1000, 4000] {
                let (once, twice) = (counted(shape, size), counted(shape, 2 * size));
                for (what, once, twice) in [
                    ("nodes", once[0], twice[0]),
                    ("bytes of text", once[1], twice[1]),
                    ("accesses", once[2], twice[2]),
                ] {
                    // Random programs of two sizes are unrelated programs.
                    let factor = if shape.name() == "random" { 4.0 } else { 2.1 };
                    let most = once as f64 * factor + 1000.0;
                    let shape = shape.name();
                    assert!((twice as f64) < most, "{shape} of {size}: {once} {what}, {twice} of twice that size");
                }
            }
        }
    }
}

//! `anfora gen`

use std::path::PathBuf;

use anfora::onnx::ExportOptions;
use anfora::programs::Shape;
use clap::Args;

use crate::file::{self, Constants, Format};
use crate::report::Failure;

/// Writes a program of a given shape and size.
#[derive(Args)]
#[command(after_help = shapes_help())]
pub(crate) struct Gen {
    /// The shape of the program; see below
    shape: Shape,
    /// How many bindings, or how deep
    size: usize,
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
    pub(crate) fn run(self) -> Result<(), Failure> {
        let module = self.shape.build(self.size, self.seed).map_err(|e| Failure::Message(e.to_string()))?;
        file::store(&module, &self.output, self.to, &Constants::default(), ExportOptions::default())?;
        Ok(())
    }
}

//! `anfora slim`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anfora::onnx::{ExportOptions, WRITTEN_OPSETS};
use anfora::slim::{SlimOptions, slim};
use anfora::surgery::NewExtent;
use clap::Args;

use crate::command_line::CommandLine;
use crate::file::{self, Constants, Format, Loaded};
use crate::report::{self, Failure};
use crate::summary::{self, Sizes};
use crate::surgery;

/// Makes a model as small as it gets, in one call.
///
/// The pipeline is `slim`: it leaves no more nodes than `-O2`, and adds no functions.
#[derive(Args)]
pub(crate) struct Slim {
    /// The model: a `.onnx` or `.anf` file, or `-`
    input: PathBuf,
    /// Where to write the result: a `.onnx` or `.anf` file, or `-`
    output: PathBuf,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// The format of the output
    #[arg(long)]
    to: Option<Format>,
    #[command(flatten)]
    constants: Constants,
    /// Gives an input its extents, such as `x=1,3,224,224`; `?` leaves an extent as it is
    #[arg(long = "input-shape", value_name = "NAME=EXTENTS")]
    input_shapes: Vec<String>,
    /// Leaves out what rounds differently: all results keep their bits
    #[arg(long)]
    exact: bool,
    /// Uses operators of `com.microsoft`, which only onnxruntime has
    #[arg(long, conflicts_with = "exact")]
    contrib: bool,
    /// Writes a model for version N of ONNX's operators. Calls that the version lacks are written
    /// in other operators
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(WRITTEN_OPSETS))]
    opset: Option<i64>,
    /// Leaves calls whose constant result would add more than BYTES to the file; all together add
    /// at most four times as much
    #[arg(long, value_name = "BYTES", default_value_t = SlimOptions::SIZE_THRESHOLD)]
    size_threshold: u64,
    /// Sets a configuration option; the command `configs` lists them
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// Leaves a pass out
    #[arg(long, value_name = "PASS")]
    disable: Vec<String>,
    /// Interprets the model on N random inputs before and after each pass, and fails if a result
    /// differs
    #[arg(long, value_name = "N", default_value_t = 0)]
    check: u64,
    /// Number of threads for passes over functions; 0 for as many as the machine runs at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=anfora::manager::MAX_THREADS as i64))]
    threads: u16,
    /// Prints no summary
    #[arg(long)]
    quiet: bool,
}

impl Slim {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let input_shapes = self.input_shapes.iter().map(|text| input_shape(text)).collect::<Result<_, _>>()?;
        let options = SlimOptions {
            input_shapes,
            exact: self.exact,
            contrib: self.contrib,
            opset: self.opset,
            size_threshold: self.size_threshold,
            config: self.config,
            disable: self.disable,
            check: self.check,
            threads: usize::from(self.threads),
            passes: Arc::clone(cli.pass_registry()),
            conversions: cli.conversion_table().clone(),
            ..SlimOptions::default()
        };
        let start = Instant::now();
        let Loaded { mut module, onnx_nodes, bytes, kept, warnings: _ } = file::load(cli, &self.input, self.from)?;
        let slimmed = slim(&mut module, &options).map_err(|f| Failure::in_module(&f.to_diagnostics(), &module))?;
        let export = ExportOptions {
            max_splat_bytes: options.size_threshold,
            max_total_splat_bytes: u64::MAX,
            ..cli.export_options()
        };
        let written = file::store(&module, &self.output, self.to, &self.constants, export, usize::from(self.threads))?;
        if !self.quiet {
            let headline = summary::headline(&slimmed.runs, &self.input, options.pipeline(), start.elapsed());
            let sizes = Sizes {
                program: cli.name(),
                counts: [slimmed.before, slimmed.after],
                onnx_nodes: [onnx_nodes.as_ref(), written.onnx_nodes.as_ref()],
                bytes: [bytes, written.bytes],
                kept: &kept,
            };
            report::say(&format!("{headline}{}{}", summary::table(&sizes), summary::remarks(&slimmed.remarks)));
            if self.output != Path::new("-") {
                report::say(&format!("wrote {}", self.output.display()));
            }
            if let Some(data) = &written.data {
                report::say(&format!("wrote {}", data.display()));
            }
        }
        Ok(())
    }
}

/// Parses the extents of an input.
fn input_shape(text: &str) -> Result<(String, Vec<Option<usize>>), Failure> {
    let (name, extents) = surgery::shape("--input-shape", text)?;
    let extent = |extent: NewExtent| match extent {
        NewExtent::Kept => Ok(None),
        NewExtent::Fixed(number) => Ok(usize::try_from(number).ok()),
        NewExtent::Named(symbol) => Err(Failure::Usage(format!(
            "--input-shape {text}: `{symbol}` is no number; `surgery set-shape` gives inputs symbolic extents"
        ))),
    };
    Ok((name, extents.into_iter().map(extent).collect::<Result<_, _>>()?))
}

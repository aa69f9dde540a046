//! `anfora opt`

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anfora::ir::{Counts, Module, RewriteOptions, WhyNot};
use anfora::manager::{Pass, PassContext, PassContextBuilder, PassRegistry, Sequential, parse_pipeline};
use anfora::onnx::ExportOptions;
use clap::{Args, ValueEnum};

use crate::command_line::CommandLine;
use crate::dims;
use crate::file::{self, Constants, Format, Loaded, Stored};
use crate::page::PageFacts;
use crate::pass_settings::PassSettings;
use crate::remarks::Remarks;
use crate::report::{self, Failure};
use crate::summary::{self, Sizes};
use crate::watch::{Watch, Watching};
use crate::why_not::Questions;

/// Runs a pipeline of passes over a program and writes the result.
#[derive(Args)]
pub(crate) struct Opt {
    /// The program: a `.anf` or `.onnx` file, or `-`
    input: PathBuf,
    /// Where to write the result: a `.anf` or `.onnx` file, or `-`; without it, text goes to
    /// standard output
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// The format of the output
    #[arg(long)]
    to: Option<Format>,
    #[command(flatten)]
    constants: Constants,
    /// Passes with options, e.g.
    /// `FoldConstant,fixpoint<4>(CanonicalizeBindings,EliminateCommonSubexpr{commutative=true})`,
    /// or the name of a pipeline
    #[arg(long, value_name = "PIPELINE")]
    passes: Option<String>,
    /// Gives a symbolic dimension its extent, before the passes run, in all external functions that
    /// have it: public ones, and those with a symbol for a linker (see the pass BindSymbols)
    #[arg(long = "dim", value_name = "NAME=EXTENT")]
    dims: Vec<String>,
    #[command(flatten)]
    settings: PassSettings,
    /// The number of threads for passes over functions, and for reading and writing text; 0 for as
    /// many as the machine runs at once. It does not change the result
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=anfora::manager::MAX_THREADS as i64))]
    threads: u16,
    /// Stops after this number of rewrites of single bindings, counted over all passes. `anfora
    /// bisect` searches for the first wrong one in this way
    #[arg(long, value_name = "N")]
    limit_rewrites: Option<u64>,
    /// Prints why rewrites nearly applied and did not: those of a rule or pass, at a binding (as in
    /// `FoldConstant@%y`), or at any (`FoldConstant`). May be given several times
    #[arg(long, value_name = "RULE[@BINDING]")]
    why_not: Vec<WhyNot>,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    remarks: Remarks,
    /// The result to write
    #[arg(long, value_enum, default_value_t = Emit::Module)]
    emit: Emit,
    /// Prints the nodes by operator, before and after, if input and output are ONNX files
    #[arg(long)]
    table: bool,
    /// Prints no summary
    #[arg(long)]
    quiet: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The optimised module
    Module,
    /// Nothing
    None,
}

impl Opt {
    pub(crate) fn run(self, cli: &CommandLine, arguments: &[OsString]) -> Result<(), Failure> {
        let registry = cli.pass_registry();
        // Read the arguments.
        let passes = match &self.passes {
            Some(text) => text.clone(),
            None => format!("O{}", self.settings.level),
        };
        let dims = dims::parse("--dim", &self.dims)?;
        if !dims.is_empty() && self.settings.disable.iter().any(|pass| pass == "BindSymbols") {
            let message = "--dim: BindSymbols gives dimensions their extents, and --disable leaves it out".to_string();
            return Err(Failure::Usage(message));
        }
        let parse = |pipeline: &str| {
            parse_pipeline(registry, pipeline).map_err(|e| Failure::Usage(format!("{e}\n{}", e.marked())))
        };
        // The text as given is parsed first, so that errors show it without the extents of
        // dimensions.
        let given = parse(&passes)?;
        let settings = self.settings(registry);
        // Errors in the arguments are reported before the program is read.
        settings().build().map_err(|e| Failure::Usage(e.to_string()))?;
        self.watch.check(registry, (self.emit == Emit::Module).then(|| self.output_path()))?;

        // Read and check the program.
        let loaded = file::load_with(cli, &self.input, self.from, cli.import_options(), usize::from(self.threads))?;
        let Loaded { mut module, onnx_nodes, bytes, kept, warnings: _ } = loaded;
        if let Err(errors) = anfora::ir::verify_module(&module) {
            return Err(Failure::in_module(&errors, &module));
        }
        // Bind the dimensions of the program, and build the context.
        let (pipeline, passes) = self.with_extents(&module, &dims, (passes, given), parse)?;
        let watching = self.watch.instruments(&module)?;
        let instruments = watching.before_checks().into_iter().chain(watching.after_checks());
        let context = instruments.fold(settings(), PassContextBuilder::instrument);
        let context = context.build().map_err(|e| Failure::Usage(e.to_string()))?;
        // Run the passes.
        let questions = Questions::new(&self.why_not, &module);
        let before = Counts::of_module(&module);
        let start = Instant::now();
        let done = context.scope(|| passes.apply(&mut module, &context)).and_then(|done| done);
        let time = start.elapsed();
        // If a report cannot be written, the result and the other reports still are.
        let reported = watching.report(cli, &context).map_err(|failure| {
            report::print_failure(&failure);
            Failure::Reported
        });
        let remarks = context.take_remarks();
        self.remarks.show(&remarks, &done, &module);
        questions.answer(&module, &context);
        let records = watching.log().records();
        let headline = summary::headline(&records, &self.input, &pipeline, time);
        let ran = headline + &summary::passes(records);
        let mut about = PageFacts {
            program: cli.name(),
            input: &self.input,
            output: None,
            pipeline: &pipeline,
            level: self.settings.level,
            arguments,
            counts: [before, Counts::of_module(&module)],
            onnx_nodes: [onnx_nodes.as_ref(), None],
            bytes: [Some(bytes), None],
        };
        // Write the result, and say what was done.
        let done = done.map_err(|failure| Failure::in_module(&failure.to_diagnostics(), &module));
        let written = match done.and_then(|_| self.write(cli, &module, &context)) {
            Ok(written) => written,
            Err(failure) => {
                self.end_early(&ran, &watching, &about);
                return Err(failure);
            }
        };
        if self.emit == Emit::Module {
            about.output = Some(self.output_path()).filter(|path| !file::is_standard_output(path));
            (about.onnx_nodes[1], about.bytes[1]) = (written.onnx_nodes.as_ref(), Some(written.bytes));
        }
        if !self.quiet {
            let sizes = Sizes {
                program: cli.name(),
                counts: about.counts,
                onnx_nodes: [onnx_nodes.as_ref(), written.onnx_nodes.as_ref()],
                bytes: [bytes, written.bytes],
                kept: &kept,
            };
            let first = if self.remarks.are_shown() { String::new() } else { summary::remarks(&remarks) };
            self.say_done(&ran, &sizes, &first, &written);
        }
        self.write_page(&watching, &about)?;
        reported
    }

    /// Says which passes ran, and writes the page of `--report`, if a pass failed or the result
    /// cannot be written. That failure is reported in any case.
    fn end_early(&self, ran: &str, watching: &Watching<'_>, about: &PageFacts<'_>) {
        if !self.quiet {
            report::say(ran);
        }
        if let Err(unwritten) = self.write_page(watching, about) {
            report::print_failure(&unwritten);
        }
    }

    /// Says which passes ran, what became of the sizes, and what was written.
    fn say_done(&self, ran: &str, sizes: &Sizes<'_>, remarks: &str, written: &Stored) {
        let sizes = if self.table { summary::table(sizes) } else { summary::sizes(sizes) };
        report::say(&format!("{ran}{sizes}{remarks}"));
        if let Some(output) = &self.output
            && output != Path::new("-")
            && self.emit == Emit::Module
        {
            report::say(&format!("wrote {}", output.display()));
            if let Some(data) = &written.data {
                report::say(&format!("wrote {}", data.display()));
            }
        }
    }

    /// Returns the pipeline with the extents of dimensions, and its passes.
    fn with_extents(
        &self,
        module: &Module,
        dims: &[(&str, usize)],
        (pipeline, passes): (String, Sequential),
        parse: impl Fn(&str) -> Result<Sequential, Failure>,
    ) -> Result<(String, Sequential), Failure> {
        Ok(match dims::in_module("--dim", dims, module)?.as_slice() {
            [] => (pipeline, passes),
            dims => {
                let pipeline = with_dims(dims, &pipeline);
                let passes = parse(&pipeline)?;
                (pipeline, passes)
            }
        })
    }

    /// Writes the page of `--report`, if it was requested, and says so.
    fn write_page(&self, watching: &Watching<'_>, about: &PageFacts<'_>) -> Result<(), Failure> {
        if let Some(page) = watching.write_page(about)?
            && !self.quiet
        {
            report::say(&format!("wrote {}", page.display()));
        }
        Ok(())
    }

    /// Returns the path that the result is written to.
    fn output_path(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new("-"))
    }

    /// Returns a function that makes contexts with the requested settings, but without instruments.
    fn settings<'a>(&'a self, registry: &'a Arc<PassRegistry>) -> impl Fn() -> PassContextBuilder + 'a {
        || {
            let mut builder = self.settings.builder(registry).threads(usize::from(self.threads));
            if !self.why_not.is_empty() {
                let explained = self.why_not.clone();
                builder = builder.rewrites(RewriteOptions { explained, ..RewriteOptions::default() });
            }
            if let Some(limit) = self.limit_rewrites {
                builder = builder.limit_rewrites(limit);
            }
            builder
        }
    }

    /// Writes the result.
    fn write(&self, cli: &CommandLine, module: &Module, context: &PassContext) -> Result<Stored, Failure> {
        if self.emit == Emit::None {
            return Ok(Stored::default());
        }
        // The limits by which folding may grow a module also limit how much splats may grow an ONNX
        // file, where splats have no short form of their own.
        let budget = |key: &str| {
            context
                .config::<Option<u64>>(key)
                .map_err(|e| Failure::Message(e.to_string()))
                .map(|b| b.unwrap_or(u64::MAX))
        };
        let options = ExportOptions {
            max_splat_bytes: budget("FoldConstant.max_growth_bytes")?,
            max_total_splat_bytes: budget("FoldConstant.max_total_growth_bytes")?,
            ..cli.export_options()
        };
        file::store(module, self.output_path(), self.to, &self.constants, options, usize::from(self.threads))
    }
}

/// Returns a pipeline that first gives dimensions their extents and then runs `passes`.
fn with_dims(dims: &[(String, usize)], passes: &str) -> String {
    let dims: Vec<String> = dims
        .iter()
        .map(|(name, extent)| {
            let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            // The pass has an option named `function`, so a dimension of that name is quoted.
            match is_word && name != "function" {
                true => format!("{name}={extent}"),
                false => format!("\"{}\"={extent}", name.replace('\\', "\\\\").replace('"', "\\\"")),
            }
        })
        .collect();
    let comma = if passes.trim().is_empty() { "" } else { "," };
    format!("BindSymbols{{{}}}{comma}{passes}", dims.join(","))
}

//! Modules in files. The suffix gives the format; `-` is standard input or output.

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora::ir::{self, Diagnostic, Module, PrintOptions, Source, UnfinishedFile};
use anfora::onnx::{
    DataFiles, DataFolder, ExportOptions, ExternalData, ImportOptions, Imported, ModelFile, NodeCounts,
    UnsupportedNodes, WhenExternal,
};
use clap::{Args, ValueEnum};

use crate::command_line::CommandLine;
use crate::report::{self, Failure};

/// The way in which a module is written down.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Format {
    /// The text format
    Anf,
    /// ONNX
    Onnx,
}

/// Returns the given format, or else that of the file's suffix. Standard input and output default
/// to text.
pub(crate) fn format_of(path: &Path, given: Option<Format>) -> Result<Format, Failure> {
    if let Some(format) = given {
        return Ok(format);
    }
    if path == Path::new("-") || is_standard_output(path) {
        return Ok(Format::Anf);
    }
    match path.extension().and_then(|e| e.to_str()) {
        Some("anf") => Ok(Format::Anf),
        Some("onnx") => Ok(Format::Onnx),
        _ => Err(Failure::Usage(format!(
            "{}: the suffix says nothing about the format; name the file .anf or .onnx, or give --from or --to",
            path.display()
        ))),
    }
}

/// Returns true if the path stands for standard output. Redirected output is written in place.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// The arguments of a command that reads a program and writes it again.
#[derive(Args)]
pub(crate) struct InputAndOutput {
    /// The program: a `.anf` or `.onnx` file, or `-`
    input: PathBuf,
    /// Where to write it: a `.anf` or `.onnx` file, or `-`
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// The format of the output
    #[arg(long)]
    to: Option<Format>,
    #[command(flatten)]
    constants: Constants,
}

impl InputAndOutput {
    /// Reads the program.
    pub(crate) fn load(&self, cli: &CommandLine) -> Result<Module, Failure> {
        Ok(load(cli, &self.input, self.from)?.module)
    }

    /// Writes the program.
    pub(crate) fn store(&self, cli: &CommandLine, module: &Module) -> Result<(), Failure> {
        store(module, &self.output, self.to, &self.constants, cli.export_options(), 1)?;
        Ok(())
    }
}

/// Sources of up to this many bytes are kept, so that diagnostics of passes can show them. For
/// larger sources, diagnostics show the printed module.
const KEPT_SOURCE: usize = 16 << 20;

/// A module that was read from a file.
pub(crate) struct Loaded {
    /// The module.
    pub(crate) module: Module,
    /// The number of nodes of the ONNX file; `None` for text.
    pub(crate) onnx_nodes: Option<NodeCounts>,
    /// The number of bytes of the file.
    pub(crate) bytes: u64,
    /// The nodes of the ONNX file that have no meaning in operators of ours, and the initializers
    /// that no constant of ours can hold.
    pub(crate) kept: Vec<UnsupportedNodes>,
    /// Warnings about the ONNX file. They have already been printed.
    pub(crate) warnings: Vec<Diagnostic>,
}

impl Loaded {
    /// Returns the number of nodes of the ONNX file that are kept as they are.
    pub(crate) fn kept_nodes(&self) -> usize {
        self.kept.iter().filter(|k| !k.is_initializer).map(|k| k.count).sum()
    }
}

/// Reads a module. Prints warnings about faults that do not prevent reading it.
///
/// # Errors
/// If the file cannot be read, or is not a program.
pub(crate) fn load(cli: &CommandLine, path: &Path, from: Option<Format>) -> Result<Loaded, Failure> {
    load_with(cli, path, from, cli.import_options(), 1)
}

/// Reads a module as [`load`] does, with options for ONNX files, and text on up to `threads`
/// threads. Files beside the model are the source of its data.
///
/// # Errors
/// If the file cannot be read, or is not a program.
pub(crate) fn load_with(
    cli: &CommandLine,
    path: &Path,
    from: Option<Format>,
    options: ImportOptions,
    threads: usize,
) -> Result<Loaded, Failure> {
    let format = format_of(path, from)?;
    let unreadable = |e: io::Error| Failure::Message(format!("cannot read {}: {e}", path.display()));
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "<stdin>".to_string() } else { path.display().to_string() };
    match format {
        Format::Anf => {
            let bytes = match is_stdin {
                true => {
                    let mut bytes = Vec::new();
                    io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
                }
                false => fs::read(path),
            };
            let bytes = bytes.map_err(unreadable)?;
            let size = bytes.len() as u64;
            let text = String::from_utf8(bytes).map_err(|e| {
                Failure::Message(format!("{name}: byte {} is not UTF-8 text", e.utf8_error().valid_up_to()))
            })?;
            let source = Arc::new(Source::new(name, text));
            let registry = Arc::clone(cli.op_registry());
            let module = ir::parse_module_on(threads, Arc::clone(&source), registry);
            let mut module = module.map_err(Failure::Diagnostics)?;
            if source.text().len() > KEPT_SOURCE {
                module.set_source(None);
            }
            Ok(Loaded { module, onnx_nodes: None, bytes: size, kept: Vec::new(), warnings: Vec::new() })
        }
        Format::Onnx => {
            // Standard input has no folder in which data files could be.
            let (model, folder) = match is_stdin {
                true => (ModelFile::read_from(&mut io::stdin().lock()), None),
                false => (ModelFile::read(path), Some(DataFolder::beside(path))),
            };
            let model = model.map_err(unreadable)?;
            let size = model.len();
            let data_files = folder.map(|f| Arc::new(f) as Arc<dyn DataFiles>);
            let imported = anfora::onnx::import_file(model, &ImportOptions { data_files, ..options })
                .map_err(|e| Failure::Message(format!("{name}: {e}")))?;
            let Imported { module, nodes, kept, warnings } = imported;
            report::print_warnings(cli, &name, &warnings);
            Ok(Loaded { module, onnx_nodes: Some(nodes), bytes: size, kept, warnings })
        }
    }
}

/// The place where the constants of an ONNX file go.
#[derive(Args, Default)]
pub(crate) struct Constants {
    /// A number writes constants of at least so many bytes to OUTPUT.data, beside the ONNX file.
    /// `keep` leaves constants that are in data files beside the output or below there, and writes
    /// all others into the ONNX file. `inline` writes all into the ONNX file. With `keep` and
    /// `inline`, constants from 1024 bytes on go to OUTPUT.data if the file would be larger than
    /// 2 GiB, which ONNX files cannot be
    #[arg(
        long,
        value_name = "BYTES|keep|inline",
        num_args = 0..=1,
        require_equals = true,
        default_value = "keep",
        default_missing_value = "1024",
        value_parser = constant_place
    )]
    external_data: ConstantPlace,
}

/// The place of large constants.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum ConstantPlace {
    /// The data files that they are in, or the ONNX file.
    #[default]
    Keep,
    /// The ONNX file.
    Inline,
    /// A data file, for constants of at least so many bytes.
    Beside(u64),
}

fn constant_place(text: &str) -> Result<ConstantPlace, String> {
    match text {
        "keep" => Ok(ConstantPlace::Keep),
        "inline" => Ok(ConstantPlace::Inline),
        number => match number.parse() {
            Ok(bytes) => Ok(ConstantPlace::Beside(bytes)),
            Err(_) => Err("write a number of bytes, `keep` or `inline`".to_string()),
        },
    }
}

impl Constants {
    /// Returns the path of the data file and the options for the library. Only a regular file can
    /// have a data file beside it. If the output is a symbolic link, the data file goes beside the
    /// link, since readers look for it beside the path that they are given.
    fn external_data(&self, output: &Path) -> Result<Option<(PathBuf, ExternalData)>, Failure> {
        let is_file = !is_standard_output(output) && fs::metadata(output).map_or(true, |m| m.is_file());
        let external = match is_file {
            true => {
                let location = output.file_name().and_then(|n| n.to_str()).map(|n| format!("{n}.data"));
                location.map(|l| (output.with_file_name(&l), ExternalData::new(l)))
            }
            false => None,
        };
        match (self.external_data, external) {
            (ConstantPlace::Keep | ConstantPlace::Inline, external) => Ok(external),
            (ConstantPlace::Beside(min_bytes), Some((path, e))) => {
                Ok(Some((path, ExternalData { min_bytes, when: WhenExternal::Always, ..e })))
            }
            (ConstantPlace::Beside(_), None) => {
                let output = output.display();
                Err(Failure::Usage(format!("--external-data: {output} is not a file that another can be beside")))
            }
        }
    }
}

/// The result of writing a module.
#[derive(Default)]
pub(crate) struct Stored {
    /// The number of nodes of the ONNX file; `None` for text.
    pub(crate) onnx_nodes: Option<NodeCounts>,
    /// The number of bytes of the ONNX file, without those of the file beside it; 0 for text.
    pub(crate) bytes: u64,
    /// The file that holds constants of the ONNX file, if one was written.
    pub(crate) data: Option<PathBuf>,
}

/// Makes a module that is written in a version of ONNX's operators.
///
/// # Errors
/// If a node that is kept as it is would be written in another version than its own.
pub(crate) fn set_opset(cli: &CommandLine, module: &mut Module, opset: i64) -> Result<(), Failure> {
    let made = anfora::onnx::set_opset(module, opset, cli.conversion_table());
    made.map_err(|e| Failure::Diagnostics(e.diagnostic().into()))
}

/// Writes a module. Files appear only once everything is written.
///
/// # Errors
/// If the module cannot be written, or not in this format.
pub(crate) fn store(
    module: &Module,
    path: &Path,
    to: Option<Format>,
    constants: &Constants,
    options: ExportOptions,
    threads: usize,
) -> Result<Stored, Failure> {
    match format_of(path, to)? {
        Format::Anf => {
            write_file(path, |mut out| {
                ir::write_module_on(threads, module, &PrintOptions::default(), &mut out)?;
                module.cx.literals.failure().map_err(io::Error::other)
            })?;
            Ok(Stored::default())
        }
        Format::Onnx => {
            let (beside, external_data) = constants.external_data(path)?.unzip();
            let keeps = beside.is_some() && constants.external_data == ConstantPlace::Keep;
            let keep_data_beside = keeps.then(|| path.to_path_buf());
            let options = ExportOptions { external_data, keep_data_beside, ..options };
            let exported = anfora::onnx::export_model(module, &options)
                .map_err(|e| Failure::Diagnostics(e.diagnostic().into()))?;
            let model = &exported.model;
            let data = match exported.data.as_ref().zip(beside) {
                Some((data, beside)) => {
                    refuse_weights_behind_link(path, &beside)?;
                    let written = UnfinishedFile::write(&beside, |out| data.write_to_file(out));
                    let written = written.map_err(|e| cannot_write(&beside, &e))?;
                    let model = UnfinishedFile::write(path, |out| model.write_to_file(out))
                        .map_err(|e| cannot_write(path, &e))?;
                    // The error names the file that could not be written.
                    UnfinishedFile::finish_all([written, model])
                        .map_err(|e| Failure::Message(format!("cannot write {e}")))?;
                    Some(beside)
                }
                None => {
                    match is_standard_output(path) {
                        true => write_file(path, |out| model.write_to(out))?,
                        false => {
                            ir::write_file(path, |out| model.write_to_file(out)).map_err(|e| cannot_write(path, &e))?
                        }
                    }
                    None
                }
            };
            Ok(Stored { onnx_nodes: Some(exported.nodes), bytes: model.len(), data })
        }
    }
}

/// Checks that a model that is written through a symbolic link is not paired with other weights.
/// The model goes to the link's target, and readers that open the target by its own path read the
/// data file beside the target.
///
/// # Errors
/// If another file with the name of the data file is beside the link's target.
fn refuse_weights_behind_link(model: &Path, data: &Path) -> Result<(), Failure> {
    let Ok(target) = ir::follow_links(model) else { return Ok(()) };
    let Some(behind) = data.file_name().map(|name| target.with_file_name(name)) else { return Ok(()) };
    let is_other = match (fs::canonicalize(&behind), fs::canonicalize(data)) {
        (Ok(behind), Ok(data)) => behind != data,
        (Ok(behind), Err(_)) => {
            data.parent().and_then(|p| fs::canonicalize(p).ok()) != behind.parent().map(Path::to_owned)
        }
        (Err(_), _) => false,
    };
    if !is_other {
        return Ok(());
    }
    let (link, target, behind) = (model.display(), target.display(), behind.display());
    let error = Diagnostic::error(format!(
        "cannot write {link}: it is a link to {target}, and {behind} holds the weights of the model there"
    ));
    Err(Failure::Diagnostics(error.with_help(format!("write to {target}, or remove the link first")).into()))
}

/// Returns the failure to write a file.
pub(crate) fn cannot_write(path: &Path, e: &dyn std::fmt::Display) -> Failure {
    Failure::Message(format!("cannot write {}: {e}", path.display()))
}

/// Writes a file that appears only once all of it is written, or writes to standard output.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    if is_standard_output(path) {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write(&mut out)?;
        return Ok(out.flush()?);
    }
    ir::write_file(path, |out| write(out)).map_err(|e| cannot_write(path, &e))
}

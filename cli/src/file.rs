//! Modules in files: the kind goes by suffix, `-` is standard input or output.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora::ir::{Module, PrintOptions, Source};
use anfora::onnx::{DataFiles, DataFolder, ExportOptions, ExternalData, ImportOptions, KeptNodes, WhenExternal};
use clap::{Args, ValueEnum};

use crate::report::Failure;

/// How a module is written down.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Format {
    /// The text format
    Anf,
    /// ONNX
    Onnx,
}

/// The format that is given, or that of the file's suffix; text for standard input and output.
fn format_of(path: &Path, given: Option<Format>) -> Result<Format, Failure> {
    if let Some(format) = given {
        return Ok(format);
    }
    if path == Path::new("-") {
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

/// Sources up to this many bytes are kept, so that diagnostics of passes show them. Those of programs from larger ones show the printed module.
const KEPT_SOURCE: usize = 64 << 20;

/// A module as it was read.
pub(crate) struct Loaded {
    /// The module.
    pub(crate) module: Module,
    /// Nodes of the ONNX file, those of subgraphs included.
    pub(crate) onnx_nodes: Option<usize>,
    /// The nodes of the ONNX file that have no meaning in operators of ours.
    pub(crate) kept: Vec<KeptNodes>,
}

/// Reads a module.
///
/// # Errors
/// If it cannot be read, or is not a program.
pub(crate) fn load(path: &Path, from: Option<Format>) -> Result<Loaded, Failure> {
    let format = format_of(path, from)?;
    let unreadable = |e: io::Error| Failure::Message(format!("cannot read {}: {e}", path.display()));
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(unreadable)?;
        bytes
    } else {
        fs::read(path).map_err(unreadable)?
    };
    let name = if path == Path::new("-") { "<stdin>".to_string() } else { path.display().to_string() };
    match format {
        Format::Anf => {
            let text = String::from_utf8(bytes).map_err(|e| {
                Failure::Message(format!("{name}: byte {} is not UTF-8 text", e.utf8_error().valid_up_to()))
            })?;
            let source = Arc::new(Source::new(name, text));
            let mut module = match anfora::ir::parse_module(Arc::clone(&source), anfora::onnx::registry()) {
                Ok(module) => module,
                Err(errors) => return Err(Failure::Diagnostics(errors, Some(source))),
            };
            if source.text().len() > KEPT_SOURCE {
                module.set_source(None);
            }
            Ok(Loaded { module, onnx_nodes: None, kept: Vec::new() })
        }
        Format::Onnx => {
            // Beside standard input there are no files.
            let folder = (path != Path::new("-")).then(|| DataFolder::beside(path));
            let data_files = folder.map(|f| Arc::new(f) as Arc<dyn DataFiles>);
            let imported =
                anfora::onnx::import(bytes.into(), &ImportOptions { data_files, ..ImportOptions::default() })
                    .map_err(|e| Failure::Message(format!("{name}: {e}")))?;
            Ok(Loaded { module: imported.module, onnx_nodes: Some(imported.nodes), kept: imported.kept })
        }
    }
}

/// Where the constants of an ONNX file go.
#[derive(Args, Default)]
pub(crate) struct Constants {
    /// Writes constants of at least BYTES to OUTPUT.data, beside the ONNX file. Without it that is done, from 1024 bytes on, where the
    /// file would be larger than 2 GiB, which ONNX files cannot be
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = "1024")]
    external_data: Option<u64>,
}

impl Constants {
    /// The same for the library. Only a regular file has another one beside it.
    fn external_data(&self, output: &Path) -> Result<Option<ExternalData>, Failure> {
        let is_file = output != Path::new("-") && fs::metadata(output).map_or(true, |m| m.is_file());
        let name = output.file_name().and_then(|n| n.to_str()).filter(|_| is_file);
        let external = name.map(|n| ExternalData::new(format!("{n}.data")));
        match (self.external_data, external) {
            (None, external) => Ok(external),
            (Some(min_bytes), Some(e)) => Ok(Some(ExternalData { min_bytes, when: WhenExternal::Always, ..e })),
            (Some(_), None) => {
                let output = output.display();
                Err(Failure::Usage(format!("--external-data: {output} is not a file that another can be beside")))
            }
        }
    }
}

/// What was written.
#[derive(Default)]
pub(crate) struct Stored {
    /// Nodes of the ONNX file, those of subgraphs included.
    pub(crate) onnx_nodes: Option<usize>,
    /// The file with constants of the ONNX file.
    pub(crate) data: Option<PathBuf>,
}

/// Writes a module. Files appear only when all is written.
///
/// # Errors
/// If it cannot be written, or not in this format.
pub(crate) fn store(
    module: &Module,
    path: &Path,
    to: Option<Format>,
    constants: &Constants,
    options: ExportOptions,
) -> Result<Stored, Failure> {
    match format_of(path, to)? {
        Format::Anf => {
            write_file(path, |mut out| anfora::ir::write_module(module, &PrintOptions::default(), &mut out))?;
            Ok(Stored::default())
        }
        Format::Onnx => {
            let options = ExportOptions { external_data: constants.external_data(path)?, ..options };
            let exported = anfora::onnx::export(module, &options).map_err(|e| Failure::Message(e.to_string()))?;
            let data = match &exported.data {
                Some(data) => {
                    let beside = path.with_file_name(data.location());
                    let written = Unfinished::write(&beside, |out| data.write_to(out))?;
                    let model = Unfinished::write(path, |out| out.write_all(&exported.bytes))?;
                    written.finish()?;
                    model.finish()?;
                    Some(beside)
                }
                None => {
                    write_file(path, |out| out.write_all(&exported.bytes))?;
                    None
                }
            };
            Ok(Stored { onnx_nodes: Some(exported.nodes), data })
        }
    }
}

/// A file that is written, under a temporary name beside the one that it is to have. Removed if it does not get that.
struct Unfinished<'a> {
    temporary: PathBuf,
    path: &'a Path,
}

impl<'a> Unfinished<'a> {
    fn write(path: &'a Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Unfinished<'a>, Failure> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}.part", std::process::id()));
        let file = Unfinished { temporary: PathBuf::from(temporary), path };
        let written = (|| {
            let mut out = BufWriter::with_capacity(1 << 16, File::create(&file.temporary)?);
            write(&mut out)?;
            out.flush()
        })();
        written.map_err(|e| cannot_write(path, &e))?;
        Ok(file)
    }

    /// Gives the file its name.
    fn finish(self) -> Result<(), Failure> {
        fs::rename(&self.temporary, self.path).map_err(|e| cannot_write(self.path, &e))
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // It is not there any more if it got its name.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn cannot_write(path: &Path, e: &io::Error) -> Failure {
    Failure::Message(format!("cannot write {}: {e}", path.display()))
}

/// Writes a file through a temporary one beside it, so that a failure leaves no half of it. What is not a regular file (standard
/// output, a device) is written as it is.
fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    if path == Path::new("-") {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write(&mut out)?;
        return Ok(out.flush()?);
    }
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        let failed = |e: io::Error| cannot_write(path, &e);
        let mut out = BufWriter::new(File::create(path).map_err(failed)?);
        write(&mut out).map_err(failed)?;
        return out.flush().map_err(failed);
    }
    Unfinished::write(path, write)?.finish()
}

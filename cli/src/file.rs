//! Modules in files: the kind goes by suffix, `-` is standard input or output.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora::ir::{Module, PrintOptions, Source};
use anfora::onnx::{ExportOptions, ImportOptions};
use clap::ValueEnum;

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
            Ok(Loaded { module, onnx_nodes: None })
        }
        Format::Onnx => {
            let imported = anfora::onnx::import(bytes.into(), &ImportOptions::default())
                .map_err(|e| Failure::Message(format!("{name}: {e}")))?;
            Ok(Loaded { module: imported.module, onnx_nodes: Some(imported.nodes) })
        }
    }
}

/// What was written.
pub(crate) struct Stored {
    /// Nodes of the ONNX file, those of subgraphs included.
    pub(crate) onnx_nodes: Option<usize>,
}

/// Writes a module. A file appears only when all of it is written.
///
/// # Errors
/// If it cannot be written, or not in this format.
pub(crate) fn store(
    module: &Module,
    path: &Path,
    to: Option<Format>,
    options: &ExportOptions,
) -> Result<Stored, Failure> {
    match format_of(path, to)? {
        Format::Anf => {
            write_file(path, |mut out| anfora::ir::write_module(module, &PrintOptions::default(), &mut out))?;
            Ok(Stored { onnx_nodes: None })
        }
        Format::Onnx => {
            let exported = anfora::onnx::export(module, options).map_err(|e| Failure::Message(e.to_string()))?;
            write_file(path, |out| out.write_all(&exported.bytes))?;
            Ok(Stored { onnx_nodes: Some(exported.nodes) })
        }
    }
}

/// Writes a file through a temporary one beside it, so that a failure leaves no half of it. What is not a regular file (standard
/// output, a device) is written as it is.
fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    if path == Path::new("-") {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write(&mut out)?;
        return Ok(out.flush()?);
    }
    let failed = |e: io::Error| Failure::Message(format!("cannot write {}: {e}", path.display()));
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        let mut out = BufWriter::new(File::create(path).map_err(failed)?);
        write(&mut out).map_err(failed)?;
        return out.flush().map_err(failed);
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.part", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let result = (|| {
        let mut out = BufWriter::with_capacity(1 << 16, File::create(&temporary)?);
        write(&mut out)?;
        out.flush()?;
        fs::rename(&temporary, path)
    })();
    if let Err(e) = result {
        let _ = fs::remove_file(&temporary);
        return Err(failed(e));
    }
    Ok(())
}

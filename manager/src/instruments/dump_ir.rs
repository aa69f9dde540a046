//! Modules as files, one after each pass.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anfora_ir::{Module, write_file};

use crate::error::{PassError, PassFailure};
use crate::info::{Outcome, PassKind};
use crate::instrument::{Instrument, PassRun};
use crate::sync::lock;

/// An instrument that writes the module that a pipeline is given and the module after each pass
/// into a folder, as numbered files: `000_input.anf`, `001_FoldConstant.anf` and so on. For a pass
/// that fails, the message is written (`002_FuseOps.error.txt`). Sequences have no files, only
/// their passes.
pub struct DumpIr {
    folder: PathBuf,
    unchanged: Unchanged,
    /// True if the files of an earlier run are removed.
    replaces: bool,
    /// The number of files.
    files: Mutex<usize>,
}

/// The treatment of passes that left the module unchanged.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Unchanged {
    /// The pass has a file.
    #[default]
    Dumped,
    /// The pass has no file, and no number.
    LeftOut,
}

impl DumpIr {
    /// Writes into a folder, which is created when the first file is written.
    pub fn new(folder: impl Into<PathBuf>, unchanged: Unchanged) -> DumpIr {
        DumpIr { folder: folder.into(), unchanged, replaces: false, files: Mutex::new(0) }
    }

    /// Removes the files of an earlier run from the folder before the first file is written: those
    /// whose names have the form that this instrument gives. Without this, files of the same name
    /// are overwritten and others stay.
    #[must_use]
    pub fn replacing_earlier(self) -> DumpIr {
        DumpIr { replaces: true, ..self }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn write(&self, name: &str, ending: &str, text: &str) -> Result<(), PassError> {
        let mut files = lock(&self.files);
        let path = self.folder.join(format!("{:03}_{}{ending}", *files, file_name(name)));
        std::fs::create_dir_all(&self.folder)
            .and_then(|()| if *files == 0 && self.replaces { self.remove_earlier() } else { Ok(()) })
            .and_then(|()| write_file(&path, |out| out.write_all(text.as_bytes())))
            .map_err(|e| PassError::new(format!("`{}` cannot be written", path.display())).with_cause(e))?;
        *files += 1;
        Ok(())
    }

    fn remove_earlier(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_ours) && entry.file_type()?.is_file() {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Returns true if a name has the form of those that this instrument gives: a number of three
/// digits or more, `_`, and one of its endings.
fn is_ours(name: &str) -> bool {
    let Some((number, rest)) = name.split_once('_') else { return false };
    let is_number = number.len() >= 3 && number.bytes().all(|b| b.is_ascii_digit());
    is_number && (rest.ends_with(".anf") || rest.ends_with(".error.txt"))
}

/// The maximum number of characters of the name of a pass in the name of a file.
const LONGEST_NAME: usize = 100;

/// Returns a name in which each character that might not be allowed in file names is `_`.
fn file_name(name: &str) -> String {
    name.chars()
        .take(LONGEST_NAME)
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .collect()
}

impl Instrument for DumpIr {
    fn name(&self) -> &str {
        "DumpIr"
    }

    fn run_before(&self, module: &Module, _: &PassRun<'_>) -> Result<(), PassError> {
        if *lock(&self.files) == 0 { self.write("input", ".anf", &module.to_string()) } else { Ok(()) }
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        if run.kind() == PassKind::Sequence || (self.unchanged == Unchanged::LeftOut && !outcome.is_changed()) {
            return Ok(());
        }
        self.write(run.name(), ".anf", &module.to_string())
    }

    fn on_error(&self, _: &Module, run: &PassRun<'_>, failure: &PassFailure) {
        if run.kind() != PassKind::Sequence {
            let text: String = failure.to_diagnostics().iter().map(|d| format!("{d}\n")).collect();
            if let Err(error) = self.write(run.name(), ".error.txt", &text) {
                run.context().remark(anfora_ir::Diagnostic::error(error.message()));
            }
        }
    }
}

anfora_ir::brief_debug! { DumpIr; }

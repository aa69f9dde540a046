//! A file from which a failing pass can be run again, even if the pass ended the process.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anfora_ir::{Diagnostic, Module, PrintOptions, follow_links, write_file, write_module};

use crate::error::{PassError, PassFailure};
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::open_runs::{OpenRuns, RunRole};
use crate::reproducer_file::{MAGIC, header};
use crate::sync::lock;

/// An instrument that writes, before each pass, everything that is needed to run that pass again
/// into a file: the module as it is then, the pass with its options, and the context. If the pass
/// ends the process, the file stays. If the pass fails, or an instrument rejects its result, the
/// failure is added to the file. When the outermost pass or sequence has succeeded, the file is
/// removed.
///
/// [`ReproducerFile`](crate::ReproducerFile) reads the file. It is a program in the text format
/// with everything else in comments before it, so any reader of programs can read it.
///
/// A pass that is run by another pass that is not a sequence belongs to that pass. If a sequence
/// fails for another reason than one of its passes, it is written as a whole, with the module at
/// that time. One instrument keeps one file, which is that of the last pass, even if a context is
/// used on several threads or for several modules.
///
/// The file is written under another name and then renamed ([`write_file`]), so it is complete at
/// any time: a process that ends while it is written leaves the file of the pass before, and the
/// incomplete file, which ends in `.part`. The file survives the end of the process, but is not
/// forced to the disk, so it may not survive a crash of the machine. Cost: the module is printed
/// once for each pass that runs.
pub struct Reproducer {
    path: PathBuf,
    state: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// For the outermost run, true if the file has the failure with which the runs are ending.
    runs: OpenRuns<bool>,
    /// True if the file was written by this instrument.
    written: bool,
}

impl Reproducer {
    /// Writes to this file. Its folder must exist. If the file exists and is a reproducer or empty,
    /// it is replaced; any other file is kept, and the first pass fails.
    pub fn new(path: impl Into<PathBuf>) -> Reproducer {
        Reproducer { path: path.into(), state: Mutex::default() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the file is written: that of a running pass, or of the last pass that
    /// failed.
    pub fn is_written(&self) -> bool {
        lock(&self.state).written
    }

    /// Writes the file. A file that this instrument did not write is replaced only if nothing is
    /// lost by that.
    fn write(
        &self,
        is_ours: bool,
        module: &Module,
        run: &PassRun<'_>,
        failure: Option<&PassFailure>,
    ) -> Result<(), PassError> {
        let written = (|| -> io::Result<()> {
            if !is_ours {
                check_reproducer_place(&self.path)?;
            }
            write_file(&self.path, |mut out| {
                out.write_all(header(run, failure).as_bytes())?;
                write_module(module, &PrintOptions::default(), &mut out)
            })
        })();
        written.map_err(|e| {
            PassError::new(format!("the reproducer `{}` cannot be written", self.path.display())).with_cause(e)
        })
    }
}

/// Checks that a reproducer may be written to this path: a file there must be a reproducer or
/// empty. Devices and pipes are refused.
///
/// # Errors
/// If something else is there, or the file cannot be read.
pub fn check_reproducer_place(path: &Path) -> io::Result<()> {
    let is_lost = match fs::metadata(path) {
        Ok(there) if there.is_file() => {
            let mut beginning = Vec::new();
            File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut beginning)?;
            !beginning.is_empty() && beginning != MAGIC.as_bytes()
        }
        Ok(_) => true,
        Err(_) => false,
    };
    if is_lost { Err(io::Error::other("what is there is not a reproducer, and is left as it is")) } else { Ok(()) }
}

impl Instrument for Reproducer {
    fn name(&self) -> &str {
        "Reproducer"
    }

    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        let mut state = lock(&self.state);
        let role = state.runs.role(run);
        if role == RunRole::Whole {
            self.write(state.written, module, run, None)?;
            state.written = true;
        }
        state.runs.begin(run, false);
        Ok(())
    }

    fn on_end(&self, module: &Module, run: &PassRun<'_>, result: Result<&Outcome, &PassFailure>) {
        let mut state = lock(&self.state);
        let Some(role) = state.runs.role_of_innermost() else { return };
        if let Err(failure) = result
            && role != RunRole::Part
            && state.runs.outermost().is_some_and(|recorded| !std::mem::replace(recorded, true))
        {
            match self.write(state.written, module, run, Some(failure)) {
                Ok(()) => state.written = true,
                Err(error) => run.context().remark(Diagnostic::error(error.to_string())),
            }
        }
        state.runs.end();
        if result.is_ok() && state.runs.is_empty() && std::mem::take(&mut state.written) {
            // If the file was removed in the meantime, nothing is to be done.
            let _ = follow_links(&self.path).and_then(fs::remove_file);
        }
    }
}

anfora_ir::brief_debug! { Reproducer; }

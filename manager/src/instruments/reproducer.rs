//! A file from which a failing pass can be run again, even if it took the process with it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use anfora_ir::{Diagnostic, Module, PrintOptions, write_module};

use crate::context::lock;
use crate::error::{PassError, PassFailure};
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::pass::PassKind;
use crate::reproducer_file::header;

/// Before each pass, writes what it takes to run that pass again into a file: the module as it is then, the pass with its options, and the
/// context. If the pass ends the process, the file is there. If it fails, or an instrument rejects what it made, the failure is added to the
/// file. When the outermost pass or sequence has finished well, the file is removed.
///
/// [`ReproducerFile`](crate::ReproducerFile) reads the file. It is a program in the text format with the rest in comments before it, so whatever
/// reads programs reads it as well.
///
/// A pass that is run by another one that is no sequence belongs to that one. A sequence that fails for another reason than one of its
/// passes is written as a whole, with the module as it was then. One instrument keeps one file: that of the last pass, also where a context is used on
/// several threads or for several modules.
///
/// The file is written beside its place and then renamed, so it is whole at any time. It survives the process, but is not forced to the
/// disk, so not the machine. Cost: the module is printed once for each pass that runs.
pub struct Reproducer {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    threads: HashMap<ThreadId, Runs>,
    /// Whether the file is one of this instrument.
    written: bool,
}

/// The runs that have begun on a thread.
#[derive(Default)]
struct Runs {
    open: Vec<Open>,
    /// Whether the file has the failure that they are ending with.
    recorded: bool,
}

#[derive(Copy, Clone, PartialEq)]
enum Open {
    Sequence,
    Pass,
    /// Run by a pass that is no sequence.
    PartOfPass,
}

impl Reproducer {
    /// Writes to this file. The folder has to be there; a file that is there is overwritten.
    pub fn new(path: impl Into<PathBuf>) -> Reproducer {
        Reproducer { path: path.into(), state: Mutex::default() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&self, module: &Module, run: &PassRun<'_>, failure: Option<&PassFailure>) -> Result<(), PassError> {
        let mut temporary = self.path.as_os_str().to_owned();
        temporary.push(format!(".{}.part", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let written = (|| -> io::Result<()> {
            let mut out = BufWriter::with_capacity(1 << 16, File::create(&temporary)?);
            out.write_all(header(run, failure).as_bytes())?;
            write_module(module, &PrintOptions::default(), &mut out)?;
            out.flush()?;
            fs::rename(&temporary, &self.path)
        })();
        written.map_err(|e| {
            // The temporary file may not be there.
            let _ = fs::remove_file(&temporary);
            PassError::new(format!("the reproducer `{}` cannot be written", self.path.display())).with_cause(e)
        })
    }
}

impl Instrument for Reproducer {
    fn name(&self) -> &str {
        "Reproducer"
    }

    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        let mut state = lock(&self.state);
        let runs = state.threads.get(&thread::current().id());
        let open = match (runs.and_then(|runs| runs.open.last()), run.kind()) {
            (Some(Open::Pass | Open::PartOfPass), _) => Open::PartOfPass,
            (_, PassKind::Sequence) => Open::Sequence,
            _ => Open::Pass,
        };
        if open == Open::Pass {
            self.write(module, run, None)?;
            state.written = true;
        }
        state.threads.entry(thread::current().id()).or_default().open.push(open);
        Ok(())
    }

    fn on_end(&self, module: &Module, run: &PassRun<'_>, result: Result<&Outcome, &PassFailure>) {
        let mut state = lock(&self.state);
        let id = thread::current().id();
        let Some(runs) = state.threads.get_mut(&id) else { return };
        let open = runs.open.pop();
        let is_outermost = runs.open.is_empty();
        if let Err(failure) = result
            && open != Some(Open::PartOfPass)
            && !std::mem::replace(&mut runs.recorded, true)
        {
            match self.write(module, run, Some(failure)) {
                Ok(()) => state.written = true,
                Err(error) => run.context().remark(Diagnostic::error(error.to_string())),
            }
        }
        if is_outermost {
            state.threads.remove(&id);
            if result.is_ok() && state.threads.is_empty() && std::mem::take(&mut state.written) {
                // Who took it away has seen it.
                let _ = fs::remove_file(&self.path);
            }
        }
    }
}

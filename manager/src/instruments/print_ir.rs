//! Modules as text, between passes.

use std::io::Write;
use std::sync::Mutex;

use anfora_ir::Module;

use crate::context::lock;
use crate::error::PassError;
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::pass::PassKind;

/// Prints the module before or after passes, under a heading in a comment.
pub struct PrintIr {
    before: PrintWhen,
    after: PrintWhen,
    only_changed: bool,
    to: Mutex<Box<dyn Write + Send>>,
}

/// Which passes the module is printed around. Of a sequence, it is printed around its passes, unless the sequence itself is named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrintWhen {
    /// None.
    Never,
    /// Each.
    Always,
    /// Those of these names.
    Named(Vec<String>),
}

impl PrintWhen {
    fn is_now(&self, run: &PassRun<'_>) -> bool {
        match self {
            PrintWhen::Never => false,
            PrintWhen::Always => run.kind() != PassKind::Sequence,
            PrintWhen::Named(names) => names.iter().any(|n| n == run.name()),
        }
    }
}

impl PrintIr {
    /// Prints before and after passes.
    pub fn new(before: PrintWhen, after: PrintWhen, to: impl Write + Send + 'static) -> PrintIr {
        PrintIr { before, after, only_changed: false, to: Mutex::new(Box::new(to)) }
    }

    /// Prints after each pass that changed the module.
    pub fn changed(to: impl Write + Send + 'static) -> PrintIr {
        PrintIr { only_changed: true, ..PrintIr::new(PrintWhen::Never, PrintWhen::Always, to) }
    }

    fn print(&self, module: &Module, when: &str, run: &PassRun<'_>) -> Result<(), PassError> {
        let to = &mut *lock(&self.to);
        write!(to, "// {when} {}\n{module}\n", run.name())
            .and_then(|()| to.flush())
            .map_err(|e| PassError::new("the module cannot be printed").with_cause(e))
    }
}

impl Instrument for PrintIr {
    fn name(&self) -> &str {
        "PrintIr"
    }

    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        if self.before.is_now(run) { self.print(module, "before", run) } else { Ok(()) }
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        if !self.after.is_now(run) || (self.only_changed && !outcome.is_changed()) {
            return Ok(());
        }
        self.print(module, "after", run)
    }
}

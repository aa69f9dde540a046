//! Commands that test whether a program shows a fault.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anfora::ir::Module;

use crate::command_line::CommandLine;
use crate::file::{self, Constants, Format};
use crate::replay::wait;
use crate::report::Failure;

/// A command that ends with status 0 if the program in the file that it is given shows a fault.
pub(crate) struct TestCommand {
    cli: CommandLine,
    command: String,
    timeout: Option<Duration>,
    format: Format,
    /// The folder of the file. It is removed at the end.
    folder: PathBuf,
    has_run: Cell<bool>,
    /// The reason why the command could not be run.
    failure: RefCell<Option<Failure>>,
}

/// The exit statuses of a shell that cannot run a command.
const CANNOT_RUN: [i32; 2] = [126, 127];

impl TestCommand {
    /// Makes a test of programs that are written in a format.
    ///
    /// # Errors
    /// If the folder for the programs cannot be made.
    pub(crate) fn new(
        cli: &CommandLine,
        command: &str,
        timeout: Option<Duration>,
        format: Format,
    ) -> Result<TestCommand, Failure> {
        let folder = std::env::temp_dir().join(format!("anfora-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| file::cannot_write(&folder, &e))?;
        let (command, has_run, failure) = (command.to_string(), Cell::new(false), RefCell::new(None));
        Ok(TestCommand { cli: cli.clone(), command, timeout, format, folder, has_run, failure })
    }

    /// Returns the folder in which programs are written for the command.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Returns true if the command ends with status 0 on a program. A program that cannot be
    /// written, and a run that takes too long, show nothing.
    pub(crate) fn shows_fault(&self, module: &Module) -> bool {
        if self.failure.borrow().is_some() {
            return false;
        }
        let suffix = if self.format == Format::Onnx { "onnx" } else { "anf" };
        let path = self.folder.join(format!("program.{suffix}"));
        let constants = Constants::default();
        if file::store(module, &path, Some(self.format), &constants, self.cli.export_options()).is_err() {
            return false;
        }
        let cannot = |why: String| {
            self.failure.replace(Some(Failure::Message(format!("the command `{}` {why}", self.command))));
            false
        };
        let spawned = self.shell().arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let ended = spawned.and_then(|mut child| wait(&mut child, self.timeout));
        let is_first = !self.has_run.replace(true);
        match ended {
            Err(e) => cannot(format!("cannot be run: {e}")),
            Ok(Some(status)) => match status.code() {
                Some(code) if is_first && CANNOT_RUN.contains(&code) => {
                    cannot(format!("cannot be run: the shell ends with status {code}"))
                }
                code => code == Some(0),
            },
            Ok(None) => false,
        }
    }

    /// Returns the reason why the command could not be run, if there is one.
    ///
    /// # Errors
    /// That reason.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Returns the shell that runs the command with further arguments.
    fn shell(&self) -> Command {
        if cfg!(windows) {
            let mut shell = Command::new("cmd");
            shell.args(["/C", &self.command]);
            return shell;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{} \"$@\"", self.command), "sh"]);
        shell
    }
}

impl Drop for TestCommand {
    fn drop(&mut self) {
        // A file that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

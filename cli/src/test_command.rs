//! Commands that test whether a program shows a fault.

use std::cell::{Cell, RefCell};
use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anfora::bisect::Judgement;
use anfora::ir::Module;

use crate::command_line::CommandLine;
use crate::file::{self, Constants, Format};
use crate::replay::{kill, wait};
use crate::report::Failure;

/// A command that ends with status 0 if the program in the file that it is given shows a fault.
pub(crate) struct TestCommand {
    cli: CommandLine,
    command: String,
    timeout: Option<Duration>,
    format: Format,
    place: Arc<TestPlace>,
    has_run: Cell<bool>,
    /// The reason why the command could not be run.
    failure: RefCell<Option<Failure>>,
}

/// The exit statuses of a shell that cannot run a command.
const CANNOT_RUN: [i32; 2] = [126, 127];
/// The exit status of a command that cannot tell, as for `git bisect run`.
const CANNOT_TELL: i32 = 125;

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
        let temporary = std::env::temp_dir();
        let folder = make_folder(&temporary).map_err(|e| file::cannot_write(&temporary, &e))?;
        let place = Arc::new(TestPlace { folder, state: Mutex::new(PlaceState::Idle) });
        let (command, has_run, failure) = (command.to_string(), Cell::new(false), RefCell::new(None));
        Ok(TestCommand { cli: cli.clone(), command, timeout, format, place, has_run, failure })
    }

    /// Returns what an interruption must clear.
    pub(crate) fn place(&self) -> Arc<TestPlace> {
        Arc::clone(&self.place)
    }

    /// Returns [`Judgement::Wrong`] if the command ends with status 0 on a program: it finds the
    /// fault. A program that cannot be written, a run that takes too long, and status 125 decide
    /// nothing.
    pub(crate) fn judge(&self, module: &Module) -> Judgement {
        if self.failure.borrow().is_some() {
            return Judgement::Undecided;
        }
        let suffix = if self.format == Format::Onnx { "onnx" } else { "anf" };
        let path = self.place.folder.join(format!("program.{suffix}"));
        let constants = Constants::default();
        if file::store(module, &path, Some(self.format), &constants, self.cli.export_options(), 1).is_err() {
            return Judgement::Undecided;
        }
        let cannot = |why: String| {
            self.failure.replace(Some(Failure::Message(format!("the command `{}` {why}", self.command))));
            Judgement::Undecided
        };
        let ended = self.start(&path).and_then(|child| {
            let Some(mut child) = child else { return Ok(None) };
            let ended = wait(&mut child, self.timeout, |child| kill_group(child.id(), Some(child)));
            self.place.note_end();
            ended
        });
        let is_first = !self.has_run.replace(true);
        match ended.map(|status| status.map(|status| status.code())) {
            Err(e) => cannot(format!("cannot be run: {e}")),
            // Without a status, the shell itself was ended.
            Ok(None | Some(None) | Some(Some(CANNOT_TELL))) => Judgement::Undecided,
            Ok(Some(Some(code))) if is_first && CANNOT_RUN.contains(&code) => {
                cannot(format!("cannot be run: the shell ends with status {code}"))
            }
            Ok(Some(Some(0))) => Judgement::Wrong,
            Ok(Some(_)) => Judgement::Right,
        }
    }

    /// Returns the reason why the command could not be run, if there is one.
    ///
    /// # Errors
    /// That reason.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Starts the command on a file, in a group of processes of its own. Returns `None` if the
    /// search is over.
    fn start(&self, path: &Path) -> io::Result<Option<Child>> {
        let mut shell = self.shell();
        shell.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        // The lock is held, so that an interruption finds the process or prevents it.
        let mut state = self.place.lock();
        if *state == PlaceState::Over {
            return Ok(None);
        }
        let child = shell.spawn()?;
        *state = PlaceState::Running(child.id());
        Ok(Some(child))
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

/// The folder of the tested programs, and the running command.
pub(crate) struct TestPlace {
    folder: PathBuf,
    state: Mutex<PlaceState>,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum PlaceState {
    /// No command is running.
    Idle,
    /// A command is running. Its process leads its group.
    Running(u32),
    /// No command may start any more.
    Over,
}

impl TestPlace {
    fn lock(&self) -> MutexGuard<'_, PlaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the running command has ended.
    fn note_end(&self) {
        let mut state = self.lock();
        if let PlaceState::Running(_) = *state {
            *state = PlaceState::Idle;
        }
    }

    /// Ends the running command, prevents further ones, and removes the folder.
    pub(crate) fn clear(&self) {
        if let PlaceState::Running(process) = std::mem::replace(&mut *self.lock(), PlaceState::Over) {
            kill_group(process, None);
        }
        // A file that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for TestPlace {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Ends all processes of the group that a process leads. On systems without groups, ends the
/// process alone.
fn kill_group(process: u32, child: Option<&mut Child>) {
    if cfg!(unix) {
        // The standard library sends no signals to groups; every shell does.
        let script = "kill -s KILL -- \"-$1\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh", &process.to_string()]);
        let _ = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    child.into_iter().for_each(kill);
}

/// Makes a new folder that only this user can enter.
fn make_folder(within: &Path) -> io::Result<PathBuf> {
    /// The number of names that are tried. Other processes may have made folders of these names.
    const MOST_NAMES: u32 = 1000;
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let mut number = 0;
    loop {
        let folder = within.join(format!("anfora-test-{}-{number}", std::process::id()));
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < MOST_NAMES => number += 1,
            Err(e) => return Err(e),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_ends_all_processes_of_a_test() {
        let folder = make_folder(&std::env::temp_dir()).expect("a folder");
        let other = make_folder(&std::env::temp_dir()).expect("another folder");
        assert_ne!(folder, other);
        let left = folder.join("left");
        // The process in the background would write the file after the end of the shell.
        let command = format!("(sleep 0.5; touch '{}') & sleep 60; true", left.display());
        let cli = CommandLine::default();
        let test = TestCommand::new(&cli, &command, Some(Duration::from_millis(100)), Format::Anf).expect("a folder");
        let module = anfora::ir::Module::new(Arc::clone(cli.op_registry()));
        let place = test.place().folder.clone();
        assert_eq!(test.judge(&module), Judgement::Undecided);
        std::thread::sleep(Duration::from_secs(1));
        assert!(!left.exists(), "a process of the test was left");
        drop(test);
        assert!(!place.exists());
        for (command, expected) in
            [("true", Judgement::Wrong), ("false", Judgement::Right), ("exit 125;", Judgement::Undecided)]
        {
            let test = TestCommand::new(&cli, command, None, Format::Anf).expect("a folder");
            assert_eq!(test.judge(&module), expected, "{command}");
        }
        [folder, other].iter().for_each(|folder| std::fs::remove_dir_all(folder).expect("it is there"));
    }
}

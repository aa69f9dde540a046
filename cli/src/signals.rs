//! Signals that end the program.

use std::sync::{Mutex, PoisonError};
use std::{io, thread};

/// The action that a command takes before a signal ends the program.
static BEFORE_END: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Sets the action that is taken once before a signal ends the program, until the returned value is
/// dropped. It runs on another thread, while the command continues. Systems other than Unix do
/// not have these signals.
pub(crate) fn before_end(action: impl FnOnce() + Send + 'static) -> ActionBeforeEnd {
    *BEFORE_END.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
    ActionBeforeEnd(())
}

/// The time in which an action is taken before a signal ends the program: see [`before_end`].
#[must_use]
pub(crate) struct ActionBeforeEnd(());

impl Drop for ActionBeforeEnd {
    fn drop(&mut self) {
        *BEFORE_END.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Runs a command on a new thread and handles signals on this one until the command ends. Returns
/// the result of the command, or its panic.
///
/// The signals that end the program (SIGHUP, SIGINT, SIGQUIT, SIGTERM) first take the action of the
/// command ([`before_end`]) and remove unfinished files. The program still ends by the signal, and
/// its parent process sees that. A write past the largest size of a file (`ulimit -f`) fails, and
/// does not end the program by SIGXFSZ.
///
/// A signal that is ignored, as SIGHUP is under `nohup`, stays ignored. Linux lists the ignored
/// signals in `/proc/self/status`. Where that file cannot be read, SIGHUP gets no handler, so files
/// are not removed on it, and the other signals are assumed not to be ignored.
///
/// # Errors
/// If the thread cannot be started.
pub(crate) fn run_handling_signals<T: Send + 'static>(
    thread: thread::Builder,
    command: impl FnOnce() -> T + Send + 'static,
) -> io::Result<thread::Result<T>> {
    let mut handlers = Handlers::install();
    let end = handlers.end();
    let running = thread.spawn(move || {
        let _end = end;
        command()
    })?;
    handlers.run();
    Ok(running.join())
}

/// The handlers of signals during a command. Where they cannot be installed, signals keep their
/// default actions.
#[cfg(unix)]
struct Handlers(Option<signal_hook::iterator::Signals>);

/// Makes [`Handlers::run`] return when this is dropped.
#[cfg(unix)]
struct EndOfHandlers(Option<signal_hook::iterator::Handle>);

#[cfg(unix)]
impl Drop for EndOfHandlers {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.close();
        }
    }
}

/// True while no command runs. A signal that ends the program then takes its default action at
/// once, also if the process goes on after the command, as that of Python does.
#[cfg(unix)]
static IS_IDLE: std::sync::OnceLock<std::sync::Arc<std::sync::atomic::AtomicBool>> = std::sync::OnceLock::new();

#[cfg(unix)]
impl Handlers {
    fn install() -> Handlers {
        use std::sync::atomic::Ordering;

        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
        use signal_hook::iterator::Signals;

        let signals: Vec<i32> = match ignored_signals() {
            Some(ignored) => {
                let ending = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter();
                ending.filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
            }
            None => vec![SIGINT, SIGQUIT, SIGTERM],
        };
        // With a handler, which only sets a flag that nobody reads, the write returns an error. If
        // the handler cannot be installed, the signal ends the program.
        let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
        // The handlers of a command are removed with it, which leaves signals without any effect.
        let is_idle = IS_IDLE.get_or_init(|| {
            let is_idle = std::sync::Arc::default();
            for &signal in &signals {
                let _ = signal_hook::flag::register_conditional_default(signal, std::sync::Arc::clone(&is_idle));
            }
            is_idle
        });
        let handlers = Handlers(Signals::new(signals).ok());
        is_idle.store(handlers.0.is_none(), Ordering::SeqCst);
        handlers
    }

    fn end(&self) -> EndOfHandlers {
        EndOfHandlers(self.0.as_ref().map(signal_hook::iterator::Signals::handle))
    }

    /// Waits for signals and handles them until the command has ended.
    fn run(&mut self) {
        use std::panic::{AssertUnwindSafe, catch_unwind};

        for signal in self.0.iter_mut().flat_map(signal_hook::iterator::Signals::forever) {
            let action = BEFORE_END.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(action) = action {
                // After a panic, which prints its message, the program still ends by the signal.
                let _ = catch_unwind(AssertUnwindSafe(action));
            }
            anfora::ir::remove_unfinished_files();
            // Returns only if the signal has no default action.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

/// Returns the signals that the program was started to ignore, with bit `n - 1` for signal `n`.
/// Returns `None` where the system has no file that lists them.
#[cfg(unix)]
fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(unix)]
impl Drop for Handlers {
    fn drop(&mut self) {
        if let Some(is_idle) = IS_IDLE.get() {
            is_idle.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
}

/// Stands for the handlers on other systems, which do not have these signals.
#[cfg(not(unix))]
struct Handlers;

#[cfg(not(unix))]
struct EndOfHandlers;

#[cfg(not(unix))]
impl Handlers {
    fn install() -> Handlers {
        Handlers
    }

    fn end(&self) -> EndOfHandlers {
        EndOfHandlers
    }

    fn run(&mut self) {}
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{self, Read, Write};
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Command, ExitStatus, Stdio};
    use std::{env, fs, thread, time::Duration};

    /// The environment variable with the folder in which a child process begins a file and does not
    /// finish it.
    const FOLDER: &str = "ANFORA_UNFINISHED_IN";

    /// Begins to overwrite `old`, and in the middle of the write waits for the end of its input.
    fn write_until_told(folder: &Path) {
        let file = folder.join("old");
        let write = move || {
            anfora::ir::write_file(&file, |sink| {
                sink.write_all(b"new")?;
                io::stdin().read_to_end(&mut Vec::new()).map(drop)
            })
        };
        let written = super::run_handling_signals(thread::Builder::new(), write);
        written.expect("a thread").expect("no panic").expect("a file");
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs the named test again in a child process, which writes a file. Sends it signals in the
    /// middle of the write and returns its exit status. The shell that starts it runs `before`
    /// first.
    fn killed_in_mid_write(test: &str, before: &str, signals: &[&str]) -> ExitStatus {
        let folder = env::temp_dir().join(format!("anfora-{}-{test}-{}", std::process::id(), signals.join("-")));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("old"), "old").unwrap();
        let mut child = Command::new("sh")
            .args(["-c", &format!("{before} exec \"$@\""), "sh"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", &format!("signals::tests::{test}")])
            .env(FOLDER, &folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell");
        // Once there is a second file, the child waits in the middle of its write.
        while names(&folder).len() < 2 {
            assert_eq!(child.try_wait().unwrap(), None, "the child ended before it wrote");
            thread::sleep(Duration::from_millis(5));
        }
        for signal in signals {
            let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
            assert!(sent.expect("kill is there").success());
        }
        // With its input, `wait` would close it, and the child would finish the write.
        let input = child.stdin.take();
        let status = child.wait().unwrap();
        drop(input);
        assert_eq!(fs::read_to_string(folder.join("old")).unwrap(), "old");
        assert_eq!(names(&folder), ["old"], "{status}");
        fs::remove_dir_all(&folder).unwrap();
        status
    }

    #[test]
    fn a_signal_in_mid_write_leaves_the_old_file_and_nothing_else() {
        if let Some(folder) = env::var_os(FOLDER) {
            return write_until_told(Path::new(&folder));
        }
        let test = "a_signal_in_mid_write_leaves_the_old_file_and_nothing_else";
        // Child processes inherit the ignored signals of this process, such as those that `nohup`
        // sets.
        let ignored = super::ignored_signals().unwrap_or(0);
        let all = [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)];
        for (signal, number) in all.into_iter().filter(|(_, number)| ignored >> (number - 1) & 1 == 0) {
            assert_eq!(killed_in_mid_write(test, "ulimit -c 0;", &[signal]).signal(), Some(number), "{signal}");
        }
    }

    // On other systems, safe code cannot find out which signals are ignored.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_signal_that_is_ignored_stays_ignored() {
        if let Some(folder) = env::var_os(FOLDER) {
            return write_until_told(Path::new(&folder));
        }
        let test = "a_signal_that_is_ignored_stays_ignored";
        assert_eq!(killed_in_mid_write(test, "trap '' HUP;", &["HUP", "TERM"]).signal(), Some(15));
    }

    #[test]
    fn a_signal_after_a_command_ends_the_process() {
        if env::var_os(FOLDER).is_some() {
            let done = super::run_handling_signals(thread::Builder::new(), || 7);
            assert_eq!(done.expect("a thread").expect("no panic"), 7);
            let pid = std::process::id().to_string();
            Command::new("kill").args(["-TERM", &pid]).status().expect("kill is there");
            thread::sleep(Duration::from_secs(20));
            return;
        }
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "signals::tests::a_signal_after_a_command_ends_the_process"])
            .env(FOLDER, "none")
            .stdout(Stdio::null())
            .status();
        assert_eq!(child.expect("the test starts").signal(), Some(15));
    }
}

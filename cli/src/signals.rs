//! Signals that end the program.

/// From now on, a signal that ends the program (SIGHUP, SIGINT, SIGQUIT, SIGTERM) removes the files
/// that are not finished first. The program still ends by that signal, and whoever started it sees
/// so. A write past the largest size of a file (`ulimit -f`) fails, and does not end the program by
/// SIGXFSZ.
///
/// A signal that is ignored, as `nohup` has it for SIGHUP, stays ignored. Linux says in
/// `/proc/self/status` which are; where that cannot be read, SIGHUP is left as it is, so that files
/// are not removed on it, and the others are taken not to be ignored.
#[cfg(unix)]
pub(crate) fn remove_files_on_signals() {
    use std::sync::{Arc, mpsc};
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let signals: Vec<i32> = match ignored_signals() {
        Some(ignored) => {
            let ending = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter();
            ending.filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
        }
        None => vec![SIGINT, SIGQUIT, SIGTERM],
    };
    // With a handler, though it only sets a flag that nobody reads, the write goes on to fail. Without it the program ends as
    // ever.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let (ready, is_ready) = mpsc::channel();
    // Signals are caught only once there is a thread that waits for them.
    let waiting = thread::Builder::new().name("signals".to_string()).spawn(move || {
        let Ok(mut caught) = Signals::new(signals) else { return };
        // The other end waits for this, or for the end of this thread.
        let _ = ready.send(());
        for signal in caught.forever() {
            anfora::manager::remove_unfinished_files();
            // Returns only if the signal has no default action.
            let _ = emulate_default_handler(signal);
        }
    });
    if waiting.is_ok() {
        // Without the thread the signals do what they do by default.
        let _ = is_ready.recv();
    }
}

/// Returns the signals that the program was started to ignore, bit `n - 1` for signal `n`; nothing
/// where the system does not say so in a file.
#[cfg(unix)]
fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Does nothing: there are no such signals.
#[cfg(not(unix))]
pub(crate) fn remove_files_on_signals() {}

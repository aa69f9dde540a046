//! `anfora replay`

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anfora::ir::Source;
use anfora::manager::{Instrument, Outcome, ReproducerFile, Verdict};
use anfora::passes::CheckMeaning;
use clap::Args;

use crate::command_line::CommandLine;
use crate::report::{self, Failure};

/// Runs the pass of a reproducer again, on the recorded program and under the recorded context. The
/// module is verified after the pass, and CheckMeaning runs if it was on. The exit status is 0 if
/// the pass no longer fails, and 1 if it does.
#[derive(Args)]
pub(crate) struct Replay {
    /// The file that `opt --reproducer` left
    file: PathBuf,
    /// Runs the pass in a process of its own, and reports how that ended: for passes that end the
    /// process or do not end
    #[arg(long)]
    child: bool,
    /// Ends the child process after this time
    #[arg(long, value_name = "SECONDS", requires = "child", value_parser = seconds)]
    timeout: Option<Duration>,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a number of seconds");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

impl Replay {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let name = self.file.display().to_string();
        let text =
            std::fs::read_to_string(&self.file).map_err(|e| Failure::Message(format!("cannot read {name}: {e}")))?;
        let source = Arc::new(Source::new(name, text));
        let reproducer = ReproducerFile::parse(Arc::clone(&source)).map_err(Failure::Diagnostics)?;
        if self.child {
            return in_child(cli, &self.file, self.timeout);
        }
        let mut instruments: Vec<Arc<dyn Instrument>> = Vec::new();
        if reproducer.instruments().any(|i| i == "CheckMeaning") {
            instruments.push(Arc::new(CheckMeaning::new()));
        }
        report::say(&headline(&reproducer));
        let replay = reproducer
            .run(cli.pass_registry(), Arc::clone(cli.op_registry()), &instruments)
            .map_err(Failure::Diagnostics)?;
        for remark in replay.context.take_remarks() {
            report::say(&format!("  {}: {}", remark.pass, remark.diagnostic));
        }
        let verdict = match replay.verdict {
            Verdict::Passed => match &replay.result {
                Ok(Outcome::Skipped(reason)) => format!("the pass did not run: {reason}"),
                Ok(outcome) if outcome.is_changed() => "the pass did not fail, and changed the program".to_string(),
                _ => "the pass did not fail, and left the program as it was".to_string(),
            },
            Verdict::FailedAsRecorded => "the pass failed as recorded".to_string(),
            Verdict::FailedOtherwise => {
                format!("the pass failed, but not as recorded: {}", reproducer.failure().unwrap_or_default())
            }
            Verdict::Failed => "the pass failed; no failure was recorded".to_string(),
        };
        report::print(&verdict)?;
        match replay.result {
            Ok(_) => Ok(()),
            Err(failure) => Err(Failure::in_module(&failure.to_diagnostics(), &replay.module)),
        }
    }
}

/// Returns a line with the pass, its level and the passes that contain it.
fn headline(reproducer: &ReproducerFile) -> String {
    let within: Vec<&str> = reproducer.within().collect();
    let within = if within.is_empty() { String::new() } else { format!(", part of {}", within.join(" > ")) };
    format!("replaying {} at level {}{within}", reproducer.pipeline_text(), reproducer.opt_level())
}

/// The number of lines that are shown of the child's standard error: the last ones.
const LAST_LINES: usize = 20;
/// Longer lines are split into lines of this many bytes.
const LINE_BYTES: u64 = 4096;
/// The interval at which a child process with a time limit is polled.
const TICK: Duration = Duration::from_millis(5);

/// Runs the replay in a child process.
fn in_child(cli: &CommandLine, file: &Path, timeout: Option<Duration>) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::Message(format!("the child process cannot be run: {e}"));
    let mut command = cli.start_again().map_err(cannot)?;
    // After `--`, a file name that looks like an option is still a file name.
    command.arg("replay").arg("--").arg(file).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    let stderr = child.stderr.take();
    let reader = std::thread::spawn(move || stderr.map(last_lines).unwrap_or_default());
    let ended = wait(&mut child, timeout, kill).map_err(cannot)?;
    let lines = reader.join().unwrap_or_default();
    let ending = match ended {
        Some(status) => ending(status),
        None => Some(format!("no end within {:?}: the child process was ended", timeout.unwrap_or_default())),
    };
    for line in &lines {
        report::say(line);
    }
    match (ending, ended) {
        (Some(ending), _) => {
            report::print(&ending)?;
            Err(Failure::Reported)
        }
        (None, Some(status)) if status.success() => Ok(()),
        // The last lines of the child say what failed.
        _ => Err(Failure::Reported),
    }
}

/// Waits until the process ends and returns its status. If it takes longer than `timeout`, ends it
/// with `kill` and returns `None`.
pub(crate) fn wait(
    child: &mut Child,
    timeout: Option<Duration>,
    kill: impl FnOnce(&mut Child),
) -> std::io::Result<Option<ExitStatus>> {
    let Some(timeout) = timeout else { return child.wait().map(Some) };
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() {
            kill(child);
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(left.min(TICK));
    }
}

/// Ends a process. This fails if it has just ended by itself, which does no harm.
pub(crate) fn kill(child: &mut Child) {
    let _ = child.kill();
}

fn last_lines(stderr: impl Read) -> VecDeque<String> {
    let mut reader = BufReader::new(stderr);
    let mut lines = VecDeque::new();
    loop {
        let mut line = Vec::new();
        match reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return lines,
            Ok(_) => lines.push_back(String::from_utf8_lossy(&line).trim_end().to_string()),
        }
        if lines.len() > LAST_LINES {
            lines.pop_front();
        }
    }
}

/// Returns a description of an end that is not regular: a status other than those of this program,
/// or a signal. Returns `None` for a regular end.
fn ending(status: ExitStatus) -> Option<String> {
    match status.code() {
        Some(0..=2) => None,
        Some(code) => Some(format!("the child process ended with status {code}")),
        None => Some(format!("the child process was ended by {}", signal(status))),
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    let number = status.signal().unwrap_or_default();
    let name = match number {
        4 => " (illegal instruction)",
        6 => " (abort)",
        8 => " (arithmetic)",
        9 => " (kill)",
        11 => " (segmentation fault)",
        15 => " (termination)",
        _ => "",
    };
    format!("signal {number}{name}")
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> String {
    "the system".to_string()
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn endings_are_told_apart() {
        let end = |script: &str| {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            wait(&mut child, Some(Duration::from_secs(60)), kill).unwrap().and_then(ending)
        };
        assert_eq!(end("exit 0"), None);
        assert_eq!(end("exit 1"), None);
        assert_eq!(end("exit 77"), Some("the child process ended with status 77".to_string()));
        assert_eq!(end("kill -ABRT $$"), Some("the child process was ended by signal 6 (abort)".to_string()));
        assert_eq!(
            end("kill -SEGV $$"),
            Some("the child process was ended by signal 11 (segmentation fault)".to_string())
        );
    }

    #[test]
    fn a_process_that_takes_too_long_is_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(wait(&mut child, Some(Duration::from_millis(20)), kill).unwrap(), None);
        assert!(child.try_wait().unwrap().is_some());
    }

    #[test]
    fn the_last_lines_are_kept() {
        let text: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let lines = last_lines(text.as_bytes());
        assert_eq!(lines.len(), LAST_LINES);
        assert_eq!((lines[0].as_str(), lines[LAST_LINES - 1].as_str()), ("line 80", "line 99"));
        assert!(last_lines(&[0xff; 10_000][..]).iter().all(|l| !l.is_empty()));
    }
}

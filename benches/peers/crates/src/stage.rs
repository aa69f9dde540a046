//! The timing of a stage, and the line with its result.

use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use cpu_time::ThreadTime;
use serde_json::json;

/// The output of the figures, with the size of the program and the number of runs.
pub(crate) struct Report<W> {
    out: W,
    n: usize,
    runs: usize,
    written: std::io::Result<()>,
}

impl<W: Write> Report<W> {
    /// Makes a report of stages on a program of `n` operations, each of which is run `runs` times.
    pub(crate) fn new(out: W, n: usize, runs: usize) -> Report<W> {
        Report { out, n, runs, written: Ok(()) }
    }

    /// Returns the number of operations of the program.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Times `work` on an input that `make` makes afresh for each run. Neither making the input nor
    /// dropping the output is timed. `operations` counts the operations after the stage, or returns
    /// `None` where their number says nothing.
    pub(crate) fn stage<I, O>(
        &mut self,
        name: &str,
        mut make: impl FnMut() -> I,
        mut work: impl FnMut(I) -> O,
        operations: impl FnOnce(&O) -> Option<usize>,
    ) {
        let mut seconds = Vec::with_capacity(self.runs);
        let mut last = None;
        for _ in 0..self.runs.max(1) {
            // The output of the run before is dropped first, so that no run has two programs in
            // memory.
            drop(last.take());
            let input = make();
            let started = ThreadTime::now();
            let output = black_box(work(black_box(input)));
            seconds.push(Duration::as_secs_f64(&started.elapsed()));
            last = Some(output);
        }
        let operations = last.as_ref().and_then(operations);
        self.line(json!({ "stage": name, "n": self.n, "seconds": seconds, "operations": operations }));
    }

    fn line(&mut self, line: serde_json::Value) {
        if self.written.is_ok() {
            self.written = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
        }
    }

    /// Returns an error if a line could not be written.
    pub(crate) fn finish(self) -> std::io::Result<()> {
        self.written
    }
}

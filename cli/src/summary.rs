//! The summary of `anfora opt`, which fits on one screen.

use std::path::Path;
use std::time::Duration;

use anfora::ir::Counts;
use anfora::manager::{PassRemark, RunRecord};

/// The largest width of a line.
const COLUMNS: usize = 80;
/// At most this many different passes, and at most [`MOST_REMARKS`] remarks, are listed. The others
/// are only counted.
const MOST_PASSES: usize = 12;
const MOST_REMARKS: usize = 4;

/// The sizes of a program before and after the passes. The number of ONNX nodes may be known for
/// one of the two only.
pub(crate) struct Sizes {
    pub(crate) counts: [Counts; 2],
    pub(crate) onnx_nodes: [Option<usize>; 2],
    /// The number of nodes of the ONNX file that are kept as they are, which passes know nothing
    /// about.
    pub(crate) kept_nodes: usize,
}

/// Returns the first line, and for each pass how often it ran, changed the program and failed, and
/// how long it took.
pub(crate) fn passes(records: Vec<RunRecord>, input: &Path, pipeline: &str, time: Duration) -> String {
    if pipeline.trim().is_empty() {
        const NO_PASSES: &str = ": no passes (the pipeline is empty)";
        return format!("{}{NO_PASSES}\n", clipped(&input.display().to_string(), COLUMNS - NO_PASSES.len()));
    }
    struct Row {
        pass: String,
        runs: usize,
        changed: usize,
        failed: usize,
        time: Duration,
    }
    let mut rows: Vec<Row> = Vec::new();
    for record in records {
        let i = rows.iter().position(|r| r.pass == record.pass).unwrap_or_else(|| {
            rows.push(Row { pass: record.pass, runs: 0, changed: 0, failed: 0, time: Duration::ZERO });
            rows.len() - 1
        });
        rows[i].runs += 1;
        rows[i].changed += usize::from(record.changed == Some(true));
        rows[i].failed += usize::from(record.changed.is_none());
        rows[i].time += record.time;
    }
    let in_passes: Duration = rows.iter().map(|r| r.time).sum();
    let times = format!(" in {}, passes {}", milliseconds(time), milliseconds(in_passes));
    let what = clipped(&format!("{}: {pipeline}", input.display()), COLUMNS.saturating_sub(times.len()));
    let mut text = format!("{what}{times}\n");
    for row in rows.iter().take(MOST_PASSES) {
        let outcome = match (row.runs, row.changed) {
            _ if row.failed > 0 => "failed".to_string(),
            (1, 0) => "unchanged".to_string(),
            (1, _) => "changed".to_string(),
            (runs, changed) => format!("changed {changed} of {runs} times"),
        };
        text.push_str(&format!("  {:36} {outcome:24} {:>14}\n", clipped(&row.pass, 36), milliseconds(row.time)));
    }
    if let Some(more @ 1..) = rows.len().checked_sub(MOST_PASSES) {
        let time: Duration = rows[MOST_PASSES..].iter().map(|r| r.time).sum();
        text.push_str(&format!(
            "  {:36} {:24} {:>14}\n",
            format!("and {more} more (--timing)"),
            "",
            milliseconds(time)
        ));
    }
    text
}

/// Returns the lines with the sizes before and after the passes.
pub(crate) fn sizes(sizes: &Sizes) -> String {
    let mut text = String::new();
    let mut line = |what: &str, before: Option<usize>, after: Option<usize>| {
        let figures = match (before, after) {
            (Some(before), Some(after)) => format!("{before} -> {after}"),
            (Some(n), None) | (None, Some(n)) => n.to_string(),
            (None, None) => return,
        };
        text.push_str(&format!("  {what:36} {figures}\n"));
    };
    let [before, after] = &sizes.counts;
    line("bindings", Some(before.bindings), Some(after.bindings));
    if before.functions != after.functions {
        line("functions", Some(before.functions), Some(after.functions));
    }
    line("ONNX nodes", sizes.onnx_nodes[0], sizes.onnx_nodes[1]);
    if sizes.kept_nodes > 0 {
        text.push_str(&format!("  {:36} {} (`anfora check` says why)\n", "nodes kept as they are", sizes.kept_nodes));
    }
    text
}

/// Returns the lines with the first remarks of the passes.
pub(crate) fn remarks(remarks: &[PassRemark]) -> String {
    let mut text = String::new();
    for remark in remarks.iter().take(MOST_REMARKS) {
        let line = format!("  {}: {}", remark.pass, remark.diagnostic).replace(['\n', '\r'], " ");
        text.push_str(&clipped(&line, COLUMNS));
        text.push('\n');
    }
    if let Some(more @ 1..) = remarks.len().checked_sub(MOST_REMARKS) {
        text.push_str(&format!("  and {more} more, which --remarks shows\n"));
    }
    text
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn clipped(text: &str, columns: usize) -> String {
    match text.chars().count() {
        n if n <= columns => text.to_string(),
        _ => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
    }
}

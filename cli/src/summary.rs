//! The summaries of `anfora opt` and `anfora slim`.

use std::path::Path;
use std::time::Duration;

use anfora::ir::Counts;
use anfora::manager::{PassRemark, RunRecord};
use anfora::onnx::{NodeCounts, UnsupportedNodes};

/// The largest width of a line.
const COLUMNS: usize = 80;
/// At most this many different passes, and at most [`MOST_REMARKS`] remarks, are listed. The others
/// are only counted.
const MOST_PASSES: usize = 12;
const MOST_REMARKS: usize = 4;
/// At most this many reasons why nodes are kept as they are are listed.
const MOST_REASONS: usize = 12;

/// The sizes of a program before and after the passes. The number of ONNX nodes may be known for
/// one of the two only.
pub(crate) struct Sizes<'a> {
    /// The name of this program.
    pub(crate) program: &'a str,
    pub(crate) counts: [Counts; 2],
    pub(crate) onnx_nodes: [Option<&'a NodeCounts>; 2],
    /// The number of bytes of the files, without data beside ONNX files.
    pub(crate) bytes: [u64; 2],
    /// The nodes of the ONNX file that are kept as they are, and the initializers.
    pub(crate) kept: &'a [UnsupportedNodes],
}

/// Returns the first line: the file, the pipeline, and the times of everything and of the passes.
pub(crate) fn headline(records: &[RunRecord], input: &Path, pipeline: &str, time: Duration) -> String {
    if pipeline.trim().is_empty() {
        const NO_PASSES: &str = ": no passes (the pipeline is empty)";
        return format!("{}{NO_PASSES}\n", clipped(&input.display().to_string(), COLUMNS - NO_PASSES.len()));
    }
    let in_passes: Duration = records.iter().map(|r| r.time).sum();
    let times = format!(" in {}, passes {}", milliseconds(time), milliseconds(in_passes));
    let what = clipped(&format!("{}: {pipeline}", input.display()), COLUMNS.saturating_sub(times.len()));
    format!("{what}{times}\n")
}

/// Returns for each pass how often it ran, changed the program and failed, and how long it took.
pub(crate) fn passes(records: Vec<RunRecord>) -> String {
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
    let mut text = String::new();
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
pub(crate) fn sizes(sizes: &Sizes<'_>) -> String {
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
    let [onnx_before, onnx_after] = sizes.onnx_nodes.map(|nodes| nodes.map(NodeCounts::total));
    line("ONNX nodes", onnx_before, onnx_after);
    let kept_nodes: usize = sizes.kept.iter().filter(|k| !k.is_initializer).map(|k| k.count).sum();
    if kept_nodes > 0 {
        text.push_str(&format!(
            "  {:36} {kept_nodes} (`{} check` says why)\n",
            "nodes kept as they are", sizes.program
        ));
    }
    text
}

/// Returns the table of nodes by operator before and after the passes, the sizes of the files, and
/// what is not known about the model and why; [`sizes`] if not both files are ONNX files.
pub(crate) fn table(of: &Sizes<'_>) -> String {
    let [Some(before), Some(after)] = of.onnx_nodes else { return sizes(of) };
    let mut text = before.table(after);
    let [bytes_before, bytes_after] = of.bytes;
    text.push_str(&format!("bytes: {bytes_before} before, {bytes_after} after\n"));
    if !of.kept.is_empty() {
        text.push_str("kept as they are:\n");
    }
    for kept in of.kept.iter().take(MOST_REASONS) {
        text.push_str(&format!("  {}\n", kept.to_string().replace(char::is_control, " ")));
    }
    if let Some(more @ 1..) = of.kept.len().checked_sub(MOST_REASONS) {
        text.push_str(&format!("  and {more} more, which `{} check` lists\n", of.program));
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

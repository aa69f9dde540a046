//! Recordings as JSON.

use anfora_ir::diagnostics_json_with;
use serde_json::{Map, Value, json};

use super::{FunctionChange, Hunk, RecordedOutcome, RecordedPass, Recording};
use crate::info::PassKind;

impl Recording {
    /// Returns the recording as JSON, for machines and for the page of a report. Times are in
    /// microseconds. Numbers of lines are indices of `lines`, numbers of types indices of `types`,
    /// and so on. Linear.
    ///
    /// - `lines`: a list of `[text, type or -1, depth]`.
    /// - `types` and `functions`: lists of texts.
    /// - `reasons`: the different reasons of rewrites.
    /// - `program`: a list of `[function, lines]`.
    /// - `operators`: the calls of each operator, by name.
    /// - `runs`: a list of objects: `name`, `text`, `kind`, `parent`, `round`, `for` (the pass that
    ///   depends on this one), `begin`, `time`, `outcome`, `reason` (why a pass was skipped or has
    ///   failed), `bytes` (before and after), `counts` (by name), `messages` (as
    ///   [`diagnostics_json`](anfora_ir::diagnostics_json) has them), `messages_left_out`,
    ///   `rewrites` (a list of `[function or null, binding or null, reason]`), `rewrites_left_out`,
    ///   `near_misses` (a list of `[rule, function, binding, why not]`), `near_misses_left_out`, `operators` (the differences), and
    ///   `changes`. A field without a content is left out.
    /// - `changes`: a list of objects: `function`, `added`, `removed`, `bindings` (the numbers of
    ///   added, changed and removed ones), `rows_left_out`, and `hunks`, a list of `[index of the
    ///   first old row, index of the first new row, old lines, new lines, lines before, lines
    ///   after]`.
    /// - `runs_left_out`: the number of runs for which there was no room.
    pub fn to_json(&self) -> Value {
        let lines = self.lines.iter().map(|line| json!([line.text, line.ty.map_or(-1, i64::from), line.depth]));
        let messages = self.runs.iter().flat_map(|run| &run.messages).map(|message| (None, message));
        let messages = diagnostics_json_with(messages, self.source.as_deref());
        let mut messages = messages.lines().map(|object| serde_json::from_str(object).unwrap_or(Value::Null));
        let runs = self.runs.iter().map(|run| run_json(run, messages.by_ref().take(run.messages.len()).collect()));
        let runs: Value = runs.collect();
        json!({
            "lines": lines.collect::<Value>(),
            "types": self.types,
            "functions": self.functions,
            "reasons": self.reasons,
            "program": self.program,
            "operators": self.operators,
            "runs": runs,
            "runs_left_out": self.runs_left_out,
        })
    }
}

fn run_json(run: &RecordedPass, messages: Vec<Value>) -> Value {
    let (outcome, reason) = match &run.outcome {
        RecordedOutcome::Running => ("running", None),
        RecordedOutcome::Changed => ("changed", None),
        RecordedOutcome::Unchanged => ("unchanged", None),
        RecordedOutcome::Skipped(reason) => ("skipped", Some(reason)),
        RecordedOutcome::Failed(reason) => ("failed", Some(reason)),
    };
    let kind = match run.kind {
        PassKind::Module => "module",
        PassKind::Function => "function",
        PassKind::DataflowBlock => "dataflow block",
        PassKind::Sequence => "sequence",
    };
    let micros = |time: std::time::Duration| time.as_nanos() as f64 / 1000.0;
    let counts: Map<String, Value> = run.counts.iter().map(|(name, n)| (name.to_string(), json!(n))).collect();
    let changes: Vec<Value> = run.changes.iter().map(change_json).collect();
    let rewrites: Value = run.rewrites.iter().map(|r| json!([r.function, r.binding, r.why])).collect();
    let near_misses: Value =
        run.near_misses.iter().map(|m| json!([m.what, m.function.as_deref(), m.binding, m.why])).collect();
    let mut object = Map::new();
    object.extend(run.parent.map(|parent| ("parent".to_string(), json!(parent))));
    for (key, value) in [
        ("name", json!(run.name)),
        ("text", json!(run.text)),
        ("kind", json!(kind)),
        ("round", json!(run.round)),
        ("for", json!(run.dependency_of)),
        ("begin", json!(micros(run.begin))),
        ("time", json!(micros(run.time))),
        ("outcome", json!(outcome)),
        ("reason", json!(reason)),
        ("bytes", json!(run.bytes)),
        ("counts", Value::Object(counts)),
        ("messages", Value::Array(messages)),
        ("messages_left_out", json!(run.messages_left_out)),
        ("rewrites", rewrites),
        ("rewrites_left_out", json!(run.rewrites_left_out)),
        ("near_misses", near_misses),
        ("near_misses_left_out", json!(run.near_misses_left_out)),
        ("operators", json!(run.operators)),
        ("changes", Value::Array(changes)),
    ] {
        if !is_empty(&value) {
            object.insert(key.to_string(), value);
        }
    }
    Value::Object(object)
}

fn change_json(change: &FunctionChange) -> Value {
    let hunk = |h: &Hunk| json!([h.at[0], h.at[1], h.old, h.new, h.before, h.after]);
    let hunks: Vec<Value> = change.hunks.iter().map(hunk).collect();
    let mut object = Map::new();
    object.insert("function".to_string(), json!(change.function));
    for (key, value) in [
        ("added", json!(change.is_added)),
        ("removed", json!(change.is_removed)),
        ("bindings", json!(change.bindings)),
        ("rows_left_out", json!(change.rows_left_out)),
        ("hunks", Value::Array(hunks)),
    ] {
        if !is_empty(&value) {
            object.insert(key.to_string(), value);
        }
    }
    Value::Object(object)
}

/// Returns true for a value that says nothing: none, zero, false, and an empty text, list or
/// object.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_true) => !is_true,
        Value::Number(n) => n.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

//! Recordings as JSON.

use anfora_ir::{NearMiss, diagnostics_json_with, spelled_label, spelled_local};
use anfora_manager::PassKind;
use serde_json::{Map, Value, json};

use super::{FunctionChange, Hunk, LineKind, RecordedLine, RecordedOutcome, RecordedPass, Recording};

impl Recording {
    /// Returns the recording as JSON, for machines and for the page of a report. Times are in
    /// microseconds. Numbers of lines are indices of `lines`, numbers of types indices of `types`,
    /// and so on. Linear.
    ///
    /// - `lines`: a list of `[text, flags, type or -1, depth, label, binding or -1, uses,
    ///   parameters]`: flag 1 is the signature of a function, flag 2 a text that does not show all
    ///   of the line; the last lists are left out if they are empty.
    /// - `types`, `names` (of variables, as lines spell them), `labels` (operators of lines) and
    ///   `functions`: lists of texts.
    /// - `reasons`: the different reasons of rewrites.
    /// - `program`: a list of `[function, lines]`.
    /// - `operators`: the calls of each operator, by name.
    /// - `runs`: a list of objects: `name`, `text`, `kind`, `parent`, `round`, `for` (the pass that
    ///   depends on this one), `begin`, `time`, `outcome`, `reason` (why a pass was skipped or has
    ///   failed), `bytes` (before and after), `counts` (by name), `messages` (as
    ///   [`diagnostics_json`](anfora_ir::diagnostics_json) has them, with `name`, the binding as
    ///   lines spell it), `messages_left_out`, `rewrites` (a list of `[function or null, name or
    ///   null, reason]`), `rewrites_left_out`, `near_misses` (a list of `[rule, name of the
    ///   function, binding as lines spell it, why not]`), `has_more_near_misses`, `operators` (the
    ///   differences), `changes` and `functions_left_out`. A field without a content is left out.
    /// - `changes`: a list of objects: `function`, `added`, `removed`, `bindings` (the numbers of
    ///   added, changed and removed ones), `rows_left_out`, and `hunks`, a list of `[index of the
    ///   first old row, index of the first new row, old lines, new lines, lines before, lines
    ///   after, old rows left out, new rows left out]`, where the last two are left out if they are
    ///   0.
    /// - `runs_left_out`: the number of runs for which there was no room.
    pub fn to_json(&self) -> Value {
        let messages = self.runs.iter().flat_map(|run| &run.messages);
        let objects = diagnostics_json_with(messages.clone().map(|message| (None, message)), self.source.as_deref());
        let mut messages = objects.lines().zip(messages).map(|(object, message)| {
            let mut object = serde_json::from_str(object).unwrap_or(Value::Null);
            if let (Value::Object(fields), Some(binding)) = (&mut object, &message.binding) {
                fields.insert("name".to_string(), json!(spelled_local(binding)));
            }
            object
        });
        let runs = self.runs.iter().map(|run| run_json(run, messages.by_ref().take(run.messages.len()).collect()));
        let runs: Value = runs.collect();
        json!({
            "lines": self.lines.iter().map(line_json).collect::<Value>(),
            "types": self.types,
            "names": self.names,
            "labels": self.labels,
            "functions": self.functions,
            "reasons": self.reasons,
            "program": self.program,
            "operators": self.operators,
            "runs": runs,
            "runs_left_out": self.runs_left_out,
        })
    }
}

fn line_json(line: &RecordedLine) -> Value {
    let flags = u8::from(line.kind == LineKind::Signature) | u8::from(line.is_abridged) << 1;
    let index = |of: Option<u32>| of.map_or(-1, i64::from);
    let mut items = vec![
        json!(line.text),
        json!(flags),
        json!(index(line.ty)),
        json!(line.depth),
        json!(line.label),
        json!(index(line.binding)),
    ];
    if !(line.uses.is_empty() && line.parameters.is_empty()) {
        items.push(json!(line.uses));
    }
    if !line.parameters.is_empty() {
        items.push(json!(line.parameters));
    }
    Value::Array(items)
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
    let near_miss =
        |m: &NearMiss| json!([m.what, m.function.as_deref(), m.binding.as_deref().map(spelled_label), m.why]);
    let near_misses: Value = run.near_misses.iter().map(near_miss).collect();
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
        ("has_more_near_misses", json!(run.has_more_near_misses)),
        ("operators", json!(run.operators)),
        ("changes", Value::Array(changes)),
        ("functions_left_out", json!(run.functions_left_out)),
    ] {
        if !is_empty(&value) {
            object.insert(key.to_string(), value);
        }
    }
    Value::Object(object)
}

fn change_json(change: &FunctionChange) -> Value {
    let hunk = |h: &Hunk| match h.left_out {
        [0, 0] => json!([h.at[0], h.at[1], h.old, h.new, h.before, h.after]),
        [old, new] => json!([h.at[0], h.at[1], h.old, h.new, h.before, h.after, old, new]),
    };
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

//! Renders diagnostics as JSON, for other tools.

use std::cell::OnceCell;
use std::fmt::Write;
use std::ops::Range;

use super::lines::Lines;
use crate::report::diagnostic::Diagnostic;
use crate::report::source::Source;

/// Returns diagnostics as a JSON array of objects, one on each line.
///
/// Each object has `severity` and `message`, and also `file`, `label`, `function`, `binding` and
/// `help` if they are known. A place is `start` and `end` (bytes) with `line` and `column` (from 1,
/// in characters); `related` is a list of places with a `label` each. Linear in the text (once) and
/// the diagnostics.
pub fn diagnostics_json(diagnostics: &[Diagnostic], source: Option<&Source>) -> String {
    let objects = diagnostics_json_with(diagnostics.iter().map(|d| (None, d)), source);
    // No object contains a line break.
    match objects.strip_suffix('\n') {
        Some(objects) => format!("[\n{}\n]", objects.replace('\n', ",\n")),
        None => "[]".to_string(),
    }
}

/// Returns diagnostics as JSON objects like those of [`diagnostics_json`], each on a line of its
/// own. If an item has a first field, its object begins with that field. Linear in the text (once)
/// and the diagnostics.
pub fn diagnostics_json_with<'d>(
    diagnostics: impl IntoIterator<Item = (Option<(&'d str, &'d str)>, &'d Diagnostic)>,
    source: Option<&Source>,
) -> String {
    let found = OnceCell::new();
    let lines = || found.get_or_init(|| source.map(|s| Lines::new(s.text()))).as_ref();
    let mut out = String::new();
    for (first, d) in diagnostics {
        object(&mut out, first, d, source, &lines);
        out.push('\n');
    }
    out
}

fn object<'l>(
    out: &mut String,
    first: Option<(&str, &str)>,
    d: &Diagnostic,
    source: Option<&Source>,
    lines: &dyn Fn() -> Option<&'l Lines<'l>>,
) {
    let Diagnostic { severity, message, span, label, related, function, binding, help } = d;
    let mut begin = '{';
    if let Some((key, value)) = first {
        field(out, begin, key, value);
        begin = ',';
    }
    field(out, begin, "severity", severity.name());
    field(out, ',', "message", message);
    if let Some(span) = span {
        if let Some(source) = source {
            field(out, ',', "file", source.name());
        }
        place(out, ',', span, lines());
    }
    for (key, value) in [("label", label), ("function", function), ("binding", binding), ("help", help)] {
        if let Some(value) = value {
            field(out, ',', key, value);
        }
    }
    if !related.is_empty() {
        out.push_str(",\"related\":[");
        for (i, (span, label)) in related.iter().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            place(out, '{', span, lines());
            field(out, ',', "label", label);
            out.push('}');
        }
        out.push(']');
    }
    out.push('}');
}

fn place(out: &mut String, begin: char, span: &Range<usize>, lines: Option<&Lines<'_>>) {
    // Writing to a string succeeds.
    let _ = write!(out, "{begin}\"start\":{},\"end\":{}", span.start, span.end);
    if let Some(lines) = lines {
        let at = lines.position(span.start);
        let _ = write!(out, ",\"line\":{},\"column\":{}", at.line, at.column);
    }
}

/// Appends a field of an object, after `begin`.
pub(crate) fn field(out: &mut String, begin: char, key: &str, value: &str) {
    out.push(begin);
    string(out, key);
    out.push(':');
    string(out, value);
}

/// Appends a string.
pub(crate) fn string(out: &mut String, s: &str) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

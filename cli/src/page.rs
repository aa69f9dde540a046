//! The pages of `opt --report` and `diff --report`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use anfora::ir::{Counts, Differences, Module};
use anfora::onnx::NodeCounts;
use anfora::report::{DiffPage, Page, Recording};

/// The facts of a run that are not part of its recording.
pub(crate) struct PageFacts<'a> {
    /// The name of the program.
    pub(crate) program: &'a str,
    pub(crate) input: &'a Path,
    /// The file of the result, if one was written.
    pub(crate) output: Option<&'a Path>,
    pub(crate) pipeline: &'a str,
    pub(crate) level: u8,
    /// The arguments of the program, its name first.
    pub(crate) arguments: &'a [OsString],
    /// The counts before and after the passes.
    pub(crate) counts: [Counts; 2],
    /// The ONNX nodes before and after, where they are known.
    pub(crate) onnx_nodes: [Option<&'a NodeCounts>; 2],
    /// The bytes of the files before and after, where they are known.
    pub(crate) bytes: [Option<u64>; 2],
}

/// Returns the page of a recording.
pub(crate) fn of_recording(recording: &Recording, about: &PageFacts<'_>) -> String {
    let title = name_of(about.input);
    let command = command(about.program, about.arguments);
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_string(), value));
    fact("input", about.input.display().to_string());
    if let Some(output) = about.output {
        fact("result", output.display().to_string());
    }
    let figures = |values: [Option<u64>; 2]| match values {
        [Some(before), Some(after)] => Some(format!("{before} → {after}")),
        [None, None] => None,
        [before, after] => before.or(after).map(|n| n.to_string()),
    };
    let numbers: [(&str, [Option<u64>; 2]); 4] = [
        ("bindings", about.counts.map(|counts| Some(counts.bindings as u64))),
        ("functions", about.counts.map(|counts| Some(counts.functions as u64))),
        ("ONNX nodes", about.onnx_nodes.map(|nodes| nodes.map(|nodes| nodes.total() as u64))),
        ("bytes of the files", about.bytes),
    ];
    for (name, values) in numbers {
        figures(values).into_iter().for_each(|value| fact(name, value));
    }
    fact("level", about.level.to_string());
    fact("anfora", env!("CARGO_PKG_VERSION").to_string());
    Page { recording, title: &title, pipeline: about.pipeline, command: &command, facts }.to_html()
}

/// Returns the page of the differences of two programs, each given with its path.
pub(crate) fn of_differences(
    differences: &Differences,
    programs: [(&Path, &Module); 2],
    program: &str,
    arguments: &[OsString],
) -> String {
    let mut facts = Vec::new();
    for (side, (path, module)) in ["left", "right"].into_iter().zip(programs) {
        let Counts { bindings, functions, .. } = Counts::of_module(module);
        facts.push((side.to_string(), path.display().to_string()));
        facts.push(("bindings".to_string(), bindings.to_string()));
        facts.push(("functions".to_string(), functions.to_string()));
    }
    facts.push(("anfora".to_string(), env!("CARGO_PKG_VERSION").to_string()));
    let [left, right] = programs.map(|(path, _)| name_of(path));
    // Two files of the same name are told apart by their paths.
    let [left, right] = match left == right {
        true => programs.map(|(path, _)| path.to_string_lossy()),
        false => [left, right],
    };
    let command = command(program, arguments);
    DiffPage { command: &command, facts, ..DiffPage::new(differences, &left, &right) }.to_html()
}

/// Returns the name of a file.
fn name_of(path: &Path) -> Cow<'_, str> {
    match path.file_name() {
        Some(name) if name != "-" => name.to_string_lossy(),
        _ => "standard input".into(),
    }
}

/// Returns the command of a program with these arguments, as a POSIX shell reads it.
fn command(program: &str, arguments: &[OsString]) -> String {
    let words = arguments.iter().skip(1).map(|argument| shell_word(&argument.to_string_lossy()));
    [shell_word(program)].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

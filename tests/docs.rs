//! `docs/passes.md` repeats the registry, the heads of the passes' files and the tables in
//! `docs/peer-cases`. Each row of these tables names tests that exist, or says why there is none.
//! README.md counts the operators.
//!
//! `ANFORA_BLESS=1` writes the page anew.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anfora::manager::{OptionDef, PassRegistry, RegisteredPass};

const INTRODUCTION: &str = "\
# The passes

This page lists the passes, the pipelines and the settings, as `anfora passes`, `anfora pipelines`
and `anfora configs` do. The section of a pass repeats the head of its source file. A table then
lists the cases on which another compiler, the peer, tests the same pass, each with our test of the
case. The peer is TVM's Relax unless another one is named. `tests/docs.rs` makes the page from the
sources (`ANFORA_BLESS=1 cargo test -p anfora --test docs`). The tables of cases are in
[peer-cases](peer-cases).

A pass runs in contexts whose level is at least its own (`-O1` is level 1). Options follow its name
in a pipeline: `Name{key=value}`. Settings belong to the context: `--config KEY=VALUE`.

No pass optimises functions with the attribute `Primitive=1`, which FuseOps makes. InlineFunctions
inlines them, and ToANormalForm, LambdaLifting, DecomposeOps, ToNonDataflow and ToMixedPrecision
bring them into the same form as other functions. No pass removes an external function: a public
one, or one with a `global_symbol`. Passes that work function by function skip functions with
`SkipOptimization=1`. These are all passes except DeadCodeElimination, LambdaLifting,
InlineFunctions, FuseOps, FuseOpsByPattern, MergeCompositeFunctions, BindParams, BindSymbols,
RemoveUnusedParameters, RemoveUnusedOutputs, LiftTransformParams, ToMixedPrecision, Gradient,
AttachGlobalSymbol, PrintIR and EnterPhase. RunCodegen is registered by `register_backends`, for the
backends of an embedder.
";

const PROPERTIES: &str = "
## Properties and phases

If a pass needs a property that a pass before it breaks, the pipeline is refused before anything
runs. A pass that establishes a property breaks those that the property excludes. A module claims a
phase (`#![phase=…]`). A pass that changes the module and breaks a property of that phase lowers the
claim; `EnterPhase` raises it.
";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the names of the settings that belong to a pass.
fn settings(registry: &PassRegistry, pass: &RegisteredPass) -> Vec<String> {
    let own = format!("{}.", pass.name());
    registry.configs().iter().filter(|c| c.key.starts_with(&own)).map(|c| format!("`{}`", c.key)).collect()
}

fn options(options: &[OptionDef]) -> String {
    let line = |o: &OptionDef| match o.default.to_string() {
        default if default.is_empty() => format!("`{}`: {}", o.key, o.doc),
        default => format!("`{}` ({default}): {}", o.key, o.doc),
    };
    options.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// Returns the title of each file of a pass, and the rest of its head.
fn heads() -> Vec<(String, String)> {
    let mut heads = Vec::new();
    // The manager has passes of its own.
    let own = ["enter_phase", "print_module"].map(|name| root().join(format!("manager/src/{name}.rs")));
    for path in files(&root().join("passes/src"), ".rs").into_iter().chain(own) {
        let text = read(&path);
        let Some(title) = text.lines().next().and_then(|l| l.strip_prefix("//! # ")) else { continue };
        let head: Vec<&str> = text
            .lines()
            .skip(1)
            .map_while(|l| l.strip_prefix("//!"))
            .map(|l| l.strip_prefix(' ').unwrap_or(l))
            .collect();
        heads.push((title.trim().to_string(), without_links(&head)));
    }
    heads
}

/// Replaces links between items of Rust, which mean nothing in the page, by their words.
fn without_links(lines: &[&str]) -> String {
    let mut text = String::new();
    let mut code = false;
    for line in lines {
        code ^= line.starts_with("```");
        if code || line.starts_with("```") {
            writeln!(text, "{line}").unwrap();
            continue;
        }
        let mut rest = *line;
        while let Some(start) = rest.find("[`") {
            let Some(end) = rest[start..].find("`]").map(|e| start + e) else { break };
            text.push_str(&rest[..start]);
            text.push_str(&rest[start + 1..=end]);
            rest = &rest[end + 2..];
            if rest.starts_with('(') {
                rest = rest.split_once(')').map_or("", |(_, after)| after);
            }
        }
        writeln!(text, "{rest}").unwrap();
    }
    text.trim().to_string()
}

/// Returns the properties that a pass needs, establishes and breaks.
fn properties(registry: &PassRegistry, pass: &RegisteredPass) -> [String; 3] {
    let made = registry.make(pass.name()).expect("a registered pass");
    let info = made.info();
    [&info.needs, &info.establishes, &info.breaks].map(|names| quoted_list(names))
}

fn quoted_list<S: std::fmt::Display>(names: &[S]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

fn page(registry: &PassRegistry) -> String {
    let heads = heads();
    let mut page = INTRODUCTION.to_string();
    page.push_str("\n| pass | level | what it does | options | settings |\n|---|---|---|---|---|\n");
    for pass in registry.passes() {
        let anchor = pass.name().to_lowercase();
        let (name, level, doc) = (pass.name(), pass.opt_level(), pass.doc());
        let (options, settings) = (options(pass.options()), settings(registry, pass).join(", "));
        writeln!(page, "| [{name}](#{anchor}) | {level} | {doc} | {options} | {settings} |").unwrap();
    }
    page.push_str("\n## Pipelines\n\n| name | passes | options | what for |\n|---|---|---|---|\n");
    for pipeline in registry.pipelines() {
        let text = if pipeline.text.is_empty() { String::new() } else { format!("`{}`", pipeline.text) };
        let options = options(pipeline.options);
        writeln!(page, "| `{}` | {text} | {options} | {} |", pipeline.name, pipeline.doc).unwrap();
    }
    page.push_str(PROPERTIES);
    page.push_str("\n| pass | needs | establishes | breaks |\n|---|---|---|---|\n");
    for pass in registry.passes() {
        let [needs, establishes, breaks] = properties(registry, pass);
        writeln!(page, "| {} | {needs} | {establishes} | {breaks} |", pass.name()).unwrap();
    }
    page.push_str("\n| property | what holds | excludes |\n|---|---|---|\n");
    for property in registry.properties() {
        let excludes = quoted_list(property.excludes());
        writeln!(page, "| `{}` | {} | {excludes} |", property.name(), property.doc()).unwrap();
    }
    page.push_str("\n| phase | what for | what holds from it on |\n|---|---|---|\n");
    for entry in registry.phases() {
        let holding = quoted_list(&registry.holding_from(entry.phase));
        writeln!(page, "| {} | {} | {holding} |", entry.phase, entry.doc).unwrap();
    }
    page.push_str("\n## Settings\n\n| key | default | what it sets |\n|---|---|---|\n");
    for config in registry.configs() {
        writeln!(page, "| `{}` | {} | {} |", config.key, config.default, config.doc).unwrap();
    }
    // RunCodegen is registered by embedders, with their backends.
    for name in registry.passes().iter().map(|pass| pass.name()).chain(["RunCodegen"]) {
        let (_, head) =
            heads.iter().find(|(title, _)| title == name).unwrap_or_else(|| panic!("no file is about {name}"));
        write!(page, "\n## {name}\n\n{head}\n").unwrap();
        let cases = root().join(format!("docs/peer-cases/{name}.md"));
        if cases.exists() {
            write!(page, "\n### Cases of {name}\n\n{}\n", read(&cases).trim()).unwrap();
        }
    }
    page
}

#[test]
fn the_page_says_what_there_is() {
    let path = root().join("docs/passes.md");
    let made = page(&anfora::passes::registry());
    if std::env::var_os("ANFORA_BLESS").is_some() {
        fs::write(&path, made).unwrap();
        return;
    }
    let written = read(&path);
    for (i, (a, b)) in written.lines().zip(made.lines()).enumerate() {
        assert_eq!(a, b, "line {} of docs/passes.md (ANFORA_BLESS=1 writes it anew)", i + 1);
    }
    assert!(written == made, "docs/passes.md ends elsewhere (ANFORA_BLESS=1 writes it anew)");
}

#[test]
fn every_table_is_about_a_pass_that_there_is() {
    let registry = anfora::passes::registry();
    for path in files(&root().join("docs/peer-cases"), ".md") {
        let name = path.file_stem().unwrap().to_string_lossy().to_string();
        // The pages of the pass manager and of its tests in Python are not about a pass. Embedders
        // register RunCodegen.
        if ["pass-manager", "python", "RunCodegen"].contains(&name.as_str()) {
            continue;
        }
        assert!(registry.passes().iter().any(|p| p.name() == name), "{} is about no pass", path.display());
    }
}

/// Returns the words of a text between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// A row of a table, or a paragraph, of a page of peers' cases.
struct Line {
    /// The place of its first line, as `path:number`.
    place: String,
    text: String,
    /// The texts between the bars, if it is a row and not the head of its table.
    cells: Vec<String>,
}

/// Returns the rows and paragraphs of the pages of peers' cases, page by page.
fn pages() -> Vec<Vec<Line>> {
    files(&root().join("docs/peer-cases"), ".md").iter().map(|path| lines_of(path)).collect()
}

fn lines_of(path: &Path) -> Vec<Line> {
    let text = read(path);
    let lines: Vec<&str> = text.lines().collect();
    let mut found: Vec<Line> = Vec::new();
    // True if the line continues the paragraph of the line before it.
    let mut goes_on = false;
    for (i, line) in lines.iter().enumerate() {
        let is_rule = |line: &str| line.starts_with("|--");
        let is_head = lines.get(i + 1).is_some_and(|next| is_rule(next));
        let row = line.strip_prefix('|').filter(|_| !is_head && !is_rule(line));
        if goes_on && !line.starts_with(['|', '-', '#']) && !line.is_empty() {
            let paragraph = found.last_mut().expect("the line that it goes on with");
            paragraph.text = format!("{} {line}", paragraph.text);
            continue;
        }
        let cells = row.map_or_else(Vec::new, |row| {
            row.trim_end().trim_end_matches('|').split('|').map(|c| c.trim().to_string()).collect()
        });
        found.push(Line { place: format!("{}:{}", path.display(), i + 1), text: (*line).to_string(), cells });
        goes_on = !line.starts_with(['|', '#']) && !line.is_empty();
    }
    found
}

/// Returns the text of a test's file, or an empty one if the path is that of a folder.
fn test_file(path: &str) -> Result<String, String> {
    let path = root().join(path);
    if path.is_dir() {
        return Ok(String::new());
    }
    fs::read_to_string(&path).map_err(|e| e.to_string())
}

/// Returns true if a file of tests defines `name`: a function of a program, or a test in Rust.
fn defines(file: &str, text: &str, name: &str) -> bool {
    let ways: &[&str] = if file.ends_with(".rs") { &["fn "] } else { &["def ", "def private ", "declare "] };
    ways.iter().any(|way| {
        text.match_indices(&format!("{way}{name}")).any(|(at, found)| text[at + found.len()..].starts_with(['(', '<']))
    })
}

fn is_test_path(word: &str) -> bool {
    word.starts_with("tests/") || word.contains("/tests/")
}

#[test]
fn the_tests_that_tables_name_are_there() {
    let mut problems = String::new();
    let mut named = 0;
    for line in pages().iter().flatten() {
        // The last file that the line names. The functions and tests named after it are in this
        // file.
        let mut file: Option<(String, String)> = None;
        for word in quoted(&line.text) {
            let beside = file.as_ref().and_then(|(name, _)| Some(format!("{}/{word}", name.rsplit_once('/')?.0)));
            let word = match beside {
                Some(path) if !word.contains('/') && word.ends_with(".anf") => path,
                _ => word.to_string(),
            };
            if is_test_path(&word) {
                named += 1;
                match test_file(&word) {
                    Ok(text) => file = Some((word, text)),
                    Err(e) => writeln!(problems, "{}: `{word}`: {e}", line.place).unwrap(),
                }
            } else if let Some((name, text)) = &file
                && (word.starts_with('@') && name.ends_with(".anf")
                    || word.contains('_') && (name.ends_with(".rs") || name.ends_with(".py")))
                && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '@'))
                && !defines(name, text, &word)
            {
                writeln!(problems, "{}: `{name}` does not define `{word}`", line.place).unwrap();
            }
        }
        let unquoted = line.text.split('`').step_by(2).flat_map(str::split_whitespace);
        for word in unquoted.filter(|w| w.contains(".anf") || w.contains(".rs")) {
            writeln!(problems, "{}: {word} is not between backticks", line.place).unwrap();
        }
    }
    assert!(problems.is_empty(), "{problems}");
    assert!(named > 100, "only {named} tests are named");
}

#[test]
fn every_case_has_one_row_that_names_a_test_or_says_why_there_is_none() {
    let mut problems = String::new();
    let mut rows = 0;
    for page in pages() {
        let mut cases = HashSet::new();
        for line in page.iter().filter(|line| !line.cells.is_empty()) {
            rows += 1;
            let [case, ours] = &line.cells[..] else {
                writeln!(problems, "{}: a row has two cells", line.place).unwrap();
                continue;
            };
            if !cases.insert(case.clone()) {
                writeln!(problems, "{}: `{case}` has two rows", line.place).unwrap();
            }
            let reasons = ["does not apply", "do not apply", "held by", "cannot arise"];
            if !quoted(ours).any(is_test_path) && !reasons.iter().any(|r| ours.starts_with(r)) {
                writeln!(problems, "{}: `{case}` names no test, and does not say why", line.place).unwrap();
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
    assert!(rows > 200, "there are only {rows} rows");
}

#[test]
fn the_readme_counts_the_operators() {
    let readme = read(&root().join("README.md"));
    let count = anfora::ops::standard().rows().len();
    assert!(readme.contains(&format!(" {count} operators")), "README.md: there are {count} operators");
}

/// Returns the numbers of the lines of prose that are longer than 100 columns: comments in Rust; in
/// Markdown, what is no code, no table, no link target and not written by a program.
fn long_lines(text: &str, is_markdown: bool) -> Vec<usize> {
    let (mut is_code, mut is_generated) = (false, false);
    let mut long = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        is_code ^= is_markdown && trimmed.starts_with("```");
        if trimmed.starts_with("<!--") {
            is_generated = !trimmed.starts_with("<!-- end");
        }
        let is_prose = match is_markdown {
            true => !is_code && !is_generated && !trimmed.starts_with(['|', '[']),
            false => trimmed.starts_with("//"),
        };
        if is_prose && line.chars().count() > 100 {
            long.push(i + 1);
        }
    }
    long
}

#[test]
fn prose_has_at_most_100_columns() {
    let mut folders = vec![root().to_path_buf()];
    let mut long = Vec::new();
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let is_markdown = path.extension().is_some_and(|e| e == "md");
            if path.is_dir() {
                if !["target", "node_modules"].contains(&name) && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if is_markdown || path.extension().is_some_and(|e| e == "rs") {
                files += 1;
                let lines = long_lines(&read(&path), is_markdown);
                long.extend(lines.iter().map(|line| format!("{}:{line}", path.display())));
            }
        }
    }
    assert!(files > 600, "{files} files");
    assert!(long.is_empty(), "lines of prose of more than 100 columns:\n{}", long.join("\n"));
}

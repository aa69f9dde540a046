//! Runs the pipelines that the files under `tests/files` name on the programs in them.
//!
//! The first line is `// RUN: PIPELINE`, with `; KEY=VALUE` for each setting of the context. The
//! input follows, then a line `// ----`, then the expected output: the remarks, as comments, and
//! the text of the module, or the error, as a comment. `ANFORA_BLESS=1` writes the actual output
//! instead. `ANFORA_FILES=DeadCode` runs only files whose path contains this text.
//!
//! Each result is also verified, parsed again and compared with itself. Unless the first line ends
//! in `; again`, a second run must not change it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora_ir::{Module, Source, parse_module, verify_module};
use anfora_manager::{Outcome, Pass, PassContext, PassRegistry, parse_pipeline, run_pass};

const SEPARATOR: &str = "// ----\n";

struct Case<'a> {
    pipeline: &'a str,
    config: Vec<&'a str>,
    /// True if a second run may change something.
    changes_again: bool,
    input: &'a str,
    expected: &'a str,
}

fn split(text: &str) -> Result<Case<'_>, String> {
    let rest = text.strip_prefix("// RUN:").ok_or("the first line is not `// RUN: PIPELINE`")?;
    let (run, rest) = rest.split_once('\n').ok_or("there is only one line")?;
    let mut parts = run.split(';').map(str::trim);
    let pipeline = parts.next().unwrap_or_default();
    let (again, config): (Vec<&str>, Vec<&str>) = parts.partition(|p| *p == "again");
    let (input, expected) = rest.split_once(SEPARATOR).unwrap_or((rest, ""));
    Ok(Case { pipeline, config, changes_again: !again.is_empty(), input, expected })
}

fn parse(name: &str, text: &str) -> Result<Module, String> {
    parse_module(Source::new(name, text), anfora_ops::standard())
        .map_err(|all| all.iter().map(|d| format!("{d}\n")).collect::<String>())
}

fn verify(module: &Module) -> Result<(), String> {
    verify_module(module)
        .map(|_| ())
        .map_err(|all| all.iter().map(|d| format!("{d}\n")).collect::<String>() + &module.to_string())
}

fn run(case: &Case<'_>, registry: &Arc<PassRegistry>) -> Result<String, String> {
    let mut module = parse("input", case.input)?;
    let pipeline = parse_pipeline(registry, case.pipeline).map_err(|e| format!("{e}\n{}", e.marked()))?;
    let mut builder = PassContext::builder().registry(registry.clone()).opt_level(3);
    for config in &case.config {
        builder = builder.config_text(*config);
    }
    let cx = builder.build().map_err(|e| e.to_string())?;
    let before = module.to_string();
    let mut out = String::new();
    let done = run_pass(&pipeline as &dyn Pass, &mut module, &cx);
    for remark in cx.take_remarks() {
        writeln!(out, "// {}", remark.diagnostic).expect("strings take any text");
    }
    let outcome = match done {
        Ok(outcome) => outcome,
        Err(failure) => {
            if module.to_string() != before {
                return Err("a failing pass changed the module".to_string());
            }
            for diagnostic in failure.to_diagnostics() {
                writeln!(out, "// {diagnostic}").expect("strings take any text");
            }
            return Ok(out);
        }
    };
    verify(&module)?;
    let text = module.to_string();
    if outcome == Outcome::Unchanged && text != before {
        return Err("a run that said Unchanged changed something".to_string());
    }
    let again = parse("output", &text).map_err(|e| format!("the result does not parse:\n{e}\n{text}"))?;
    if again.to_string() != text {
        return Err(format!("the result does not print as it was read:\n{text}\nthen\n{again}"));
    }
    if !case.changes_again && run_pass(&pipeline, &mut module, &cx).map_err(|e| e.to_string())?.is_changed() {
        return Err(format!("a second run changed the result:\n{text}\nto\n{module}"));
    }
    out.push_str(&text);
    Ok(out)
}

fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "anf") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn files_come_out_as_they_say() {
    let mut registry = PassRegistry::new();
    anfora_passes::register(&mut registry).unwrap();
    let registry = Arc::new(registry);
    let bless = std::env::var_os("ANFORA_BLESS").is_some();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files");
    let mut failures = String::new();
    let mut tested = 0;
    let only = std::env::var("ANFORA_FILES").unwrap_or_default();
    for path in files(&root) {
        if !path.to_string_lossy().contains(&only) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if !text.starts_with("// RUN:") {
            continue;
        }
        tested += 1;
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let case = match split(&text) {
            Ok(case) => case,
            Err(e) => {
                writeln!(failures, "=== {name}: {e}").unwrap();
                continue;
            }
        };
        match run(&case, &registry) {
            Ok(out) if out == case.expected => {}
            Ok(out) if bless => {
                let input = &text[..text.find(SEPARATOR).unwrap_or(text.len())];
                let newline = if input.ends_with('\n') { "" } else { "\n" };
                std::fs::write(&path, format!("{input}{newline}{SEPARATOR}{out}")).unwrap();
            }
            Ok(out) => writeln!(failures, "=== {name}: expected\n{}\nbut got\n{out}", case.expected).unwrap(),
            Err(e) => writeln!(failures, "=== {name}: {e}").unwrap(),
        }
    }
    assert!(tested > 0, "there are no files in {}", root.display());
    assert!(failures.is_empty(), "{failures}\n(ANFORA_BLESS=1 writes what came out)");
}

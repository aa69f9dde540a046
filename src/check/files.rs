//! Tests of passes on files: each names a pipeline, and has a program and the expected result.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora_ir::{LogPosition, Module, OpRegistry, RewriteOptions, Source, WhyNot, parse_module, verify_module};
use anfora_manager::{Outcome, Pass, PassContext, PassRegistry, parse_pipeline, run_pass};

use super::CheckFailure;

/// The line between the input and the expected output.
const SEPARATOR: &str = "// ----\n";

/// The beginning of a selection of near misses.
const WHY_NOT: &str = "why-not=";

/// Runs the `.anf` files in a folder and in the folders below it as tests of passes. Returns the
/// number of tests.
///
/// The first line of a test is `// RUN: PIPELINE`, with `; KEY=VALUE` for each setting of the
/// context, and `; why-not=RULE@BINDING` for each selection of near misses
/// ([`WhyNot`](anfora_ir::WhyNot)). Files without this line are ignored. The input follows, then a
/// line `// ----`, then the expected output: the near misses and the remarks, as comments, and the
/// text of the module, or the errors, as comments. The context has level 3.
///
/// Each result is also verified, parsed again and compared with itself. Unless the first line ends
/// in `; again`, a second run must not change it. A pipeline that fails must leave the program as
/// it was.
///
/// The environment variable `ANFORA_BLESS=1` writes the actual outputs into the files instead of
/// comparing them, and `ANFORA_FILES=DeadCode` selects the files whose path contains this text.
///
/// ```
/// use anfora::check::check_files;
///
/// # let folder = std::env::temp_dir().join(format!("anfora-check-files-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let test = "// RUN: ToANormalForm,FoldConstant,DeadCodeElimination
/// def @f(%x: int32) { multiply(%x, add(1, 2)) }
/// // ----
/// def @f(%x: Tensor[(), int32]) -> Tensor[(), int32] {
///   multiply(%x, 3)
/// }
/// ";
/// std::fs::write(folder.join("sum.anf"), test)?;
/// let tests = check_files(&folder, &anfora::passes::registry(), &anfora::ops::standard())?;
/// assert_eq!(tests, 1);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If an output is not as expected, a file is not a test, a file cannot be read or written, or no
/// test was selected. The error lists all failures.
pub fn check_files(
    folder: &Path,
    passes: &Arc<PassRegistry>,
    operators: &Arc<OpRegistry>,
) -> Result<usize, CheckFailure> {
    let bless = std::env::var_os("ANFORA_BLESS").is_some();
    let selected = std::env::var("ANFORA_FILES").unwrap_or_default();
    let files = files_below(folder).map_err(|e| CheckFailure(format!("{}: {e}", folder.display())))?;
    let mut failures = String::new();
    let mut tests = 0;
    for path in files.iter().filter(|path| path.to_string_lossy().contains(&selected)) {
        let name = path.strip_prefix(folder).unwrap_or(path).display();
        match check_file(path, passes, operators, bless) {
            Ok(is_test) => tests += usize::from(is_test),
            Err(failure) => {
                tests += 1;
                let _ = writeln!(failures, "=== {name}: {failure}");
            }
        }
    }
    match tests {
        0 => Err(CheckFailure(format!("{}: no file is a test", folder.display()))),
        _ if !failures.is_empty() => Err(CheckFailure(format!("{failures}\n(ANFORA_BLESS=1 writes what came out)"))),
        _ => Ok(tests),
    }
}

/// Returns the `.anf` files in a folder and in those below it, in order.
fn files_below(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "anf") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Runs one file, and writes its output if `bless` is true. Returns false if the file is no test.
fn check_file(
    path: &Path,
    passes: &Arc<PassRegistry>,
    operators: &Arc<OpRegistry>,
    bless: bool,
) -> Result<bool, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    if !text.starts_with("// RUN:") {
        return Ok(false);
    }
    let case = FileCase::of(&text)?;
    let out = case.run(passes, operators)?;
    if out == case.expected {
        return Ok(true);
    }
    if !bless {
        return Err(format!("expected\n{}\nbut got\n{out}", case.expected));
    }
    let input = &text[..text.find(SEPARATOR).unwrap_or(text.len())];
    let newline = if input.ends_with('\n') { "" } else { "\n" };
    fs::write(path, format!("{input}{newline}{SEPARATOR}{out}")).map_err(|e| e.to_string())?;
    Ok(true)
}

/// The parts of a file.
struct FileCase<'a> {
    pipeline: &'a str,
    config: Vec<&'a str>,
    why_not: Vec<WhyNot>,
    /// True if a second run may change something.
    changes_again: bool,
    input: &'a str,
    expected: &'a str,
}

impl FileCase<'_> {
    fn of(text: &str) -> Result<FileCase<'_>, String> {
        let rest = text.strip_prefix("// RUN:").ok_or("the first line is not `// RUN: PIPELINE`")?;
        let (run, rest) = rest.split_once('\n').ok_or("there is only one line")?;
        let mut parts = run.split(';').map(str::trim);
        let pipeline = parts.next().unwrap_or_default();
        let (again, config): (Vec<&str>, Vec<&str>) = parts.partition(|p| *p == "again");
        let (asked, config): (Vec<&str>, Vec<&str>) = config.into_iter().partition(|p| p.starts_with(WHY_NOT));
        let why_not = asked.iter().filter_map(|asked| asked[WHY_NOT.len()..].parse().ok()).collect();
        let (input, expected) = rest.split_once(SEPARATOR).unwrap_or((rest, ""));
        Ok(FileCase { pipeline, config, why_not, changes_again: !again.is_empty(), input, expected })
    }

    /// Returns the output of the pipeline: remarks and the program, or errors.
    fn run(&self, passes: &Arc<PassRegistry>, operators: &Arc<OpRegistry>) -> Result<String, String> {
        let parse = |name: &str, text: &str| {
            parse_module(Source::new(name, text), operators.clone())
                .map_err(|all| all.iter().map(|d| format!("{d}\n")).collect::<String>())
        };
        let mut module = parse("input", self.input)?;
        let pipeline = parse_pipeline(passes, self.pipeline).map_err(|e| format!("{e}\n{}", e.marked()))?;
        let builder = PassContext::builder().registry(passes.clone()).opt_level(3);
        let builder = self.config.iter().fold(builder, |builder, setting| builder.config_text(*setting));
        let builder = match self.why_not.is_empty() {
            true => builder,
            false => {
                let explained = self.why_not.clone();
                builder.rewrites(RewriteOptions { explained, ..RewriteOptions::default() })
            }
        };
        let cx = builder.build().map_err(|e| e.to_string())?;
        let before = module.to_string();
        let mut out = String::new();
        let done = run_pass(&pipeline as &dyn Pass, &mut module, &cx);
        for miss in cx.rewrites().read_near_misses(&mut LogPosition::default(), &self.why_not).found {
            let _ = writeln!(out, "// {miss}");
        }
        for remark in cx.take_remarks() {
            let _ = writeln!(out, "// {}", remark.diagnostic);
        }
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(_) if module.to_string() != before => return Err("a failing pass changed the module".to_string()),
            Err(failure) => {
                for diagnostic in failure.to_diagnostics() {
                    let _ = writeln!(out, "// {diagnostic}");
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
        if !self.changes_again && run_pass(&pipeline, &mut module, &cx).map_err(|e| e.to_string())?.is_changed() {
            return Err(format!("a second run changed the result:\n{text}\nto\n{module}"));
        }
        out.push_str(&text);
        Ok(out)
    }
}

fn verify(module: &Module) -> Result<(), String> {
    verify_module(module)
        .map(|_| ())
        .map_err(|all| all.iter().map(|d| format!("{d}\n")).collect::<String>() + &module.to_string())
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;

    /// Writes one file into a folder of its own, and checks the folder.
    fn checked(name: &str, text: &str) -> Result<usize, CheckFailure> {
        let folder = std::env::temp_dir().join(format!("anfora-files-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        fs::write(folder.join("case.anf"), text).expect("a file can be written");
        let done = check_files(&folder, &anfora_passes::registry(), &anfora_ops::standard());
        fs::remove_dir_all(&folder).expect("the folder can be removed");
        done
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        let input = "def @f(%x: float32) { let %a = exp(%x); tanh(%x) }\n";
        let output = "def @f(%x: Tensor[(), float32]) -> Tensor[(), float32] {\n  tanh(%x)\n}\n";
        let run = "// RUN: DeadCodeElimination";
        let said = |done: Result<usize, CheckFailure>| done.expect_err("it fails").to_string();
        assert_eq!(checked("right", &format!("{run}\n{input}{SEPARATOR}{output}")).ok(), Some(1));
        let failure = said(checked("other", &format!("{run}\n{input}{SEPARATOR}{input}")));
        assert!(failure.contains("=== case.anf: expected") && failure.contains("but got\ndef @f"), "{failure}");
        let failure = said(checked("pass", &format!("// RUN: DeadCode\n{input}{SEPARATOR}{output}")));
        assert!(failure.contains("DeadCode"), "{failure}");
        let failure = said(checked("setting", &format!("{run}; FoldConst=1\n{input}{SEPARATOR}{output}")));
        assert!(failure.contains("FoldConst"), "{failure}");
        assert!(said(checked("line", "// RUN: O2")).contains("there is only one line"));
        assert!(said(checked("none", input)).contains("no file is a test"));
    }
}

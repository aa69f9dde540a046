//! The command line with the passes and operators of this package.

use std::path::PathBuf;
use std::process::Command;

use my_passes::SetupError;

/// Runs the program, and returns its standard output.
fn run(arguments: &[&str]) -> Result<String, SetupError> {
    let output = Command::new(env!("CARGO_BIN_EXE_my-passes")).args(arguments).output()?;
    let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    match output.status.success() {
        true => Ok(out),
        false => Err(format!("{arguments:?} ended with {}:\n{out}\n{err}", output.status).into()),
    }
}

/// Returns the path of a file for one test.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn programs_go_through_passes_to_onnx_and_back() -> Result<(), SetupError> {
    let (text, model) = (file("capped.anf"), file("capped.onnx"));
    let program = "def @main(%x: Tensor[(2,), float32]) { let %a = tanh(divide(%x, 30f)); multiply(%a, 30f) }";
    std::fs::write(&text, program)?;
    let (text, model) = (text.to_string_lossy(), model.to_string_lossy());
    run(&["opt", &text, "--passes", "my_O2", "-o", &model, "--check-meaning", "--quiet"])?;
    let read = run(&["convert", &model])?;
    assert!(read.contains("my.soft_cap(%x)") && !read.contains("tanh"), "{read}");
    // The kernel computes the same bits as the operators that it replaces.
    assert_eq!(run(&["run", &model])?, run(&["run", &text])?);
    Ok(())
}

#[test]
fn lists_and_stress_have_the_passes() -> Result<(), SetupError> {
    assert!(run(&["passes"])?.contains("FuseSoftCap"));
    assert!(run(&["pipelines"])?.contains("my_O2"));
    assert!(run(&["ops"])?.contains("my.soft_cap"));
    assert!(run(&["--version"])?.starts_with("my-passes "));
    let figures = run(&["stress", "--depth", "500", "--stack-kib", "256", "--operation", "FuseSoftCap"])?;
    assert!(figures.contains("FuseSoftCap"), "{figures}");
    Ok(())
}

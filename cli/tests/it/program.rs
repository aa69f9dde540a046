//! The program, run as its user runs it, and folders for the files of a test.

use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs the program without input.
pub(crate) fn anfora(arguments: &[&str]) -> Output {
    with_input(arguments, "")
}

/// Runs the program on an input.
pub(crate) fn with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_anfora"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The write fails if the program does not read its input.
    let _ = child.stdin.take().expect("it was piped").write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends")
}

/// Returns standard output and standard error as text.
pub(crate) fn said(output: Output) -> (String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    (text(output.stdout), text(output.stderr))
}

/// Asserts the exit status. Returns standard output and standard error.
#[track_caller]
pub(crate) fn ends(output: Output, status: i32) -> (String, String) {
    let code = output.status.code();
    let (out, err) = said(output);
    assert_eq!(code, Some(status), "standard output:\n{out}\nstandard error:\n{err}");
    (out, err)
}

/// A folder for the files of one test, which is removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes an empty folder. Each test must use a name of its own.
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("anfora-cli-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Scratch(path)
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.join(name).into_os_string().into_string().expect("a path in UTF-8")
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Writes a program as text and as an ONNX file. Returns the path of the ONNX file.
    pub(crate) fn onnx(&self, name: &str, text: &str) -> String {
        let (anf, onnx) = (self.file(&format!("{name}.anf"), text), self.path(&format!("{name}.onnx")));
        ends(anfora(&["convert", &anf, "-o", &onnx]), 0);
        onnx
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

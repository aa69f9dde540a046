//! Sizes, names and contents of hostile inputs.

use crate::program::{Scratch, anfora, ends, with_input};

#[test]
fn a_size_that_no_program_has_is_refused() {
    let (help, _) = ends(anfora(&["gen", "--help"]), 0);
    let shapes: Vec<&str> = help
        .lines()
        .skip_while(|l| *l != "Shapes:")
        .skip(1)
        .map_while(|l| l.strip_prefix("  ")?.split_whitespace().next())
        .collect();
    assert!(shapes.len() > 10 && shapes.contains(&"random"), "{help}");
    for shape in shapes {
        for size in ["18446744073709551615", "10000001"] {
            let (out, err) = ends(anfora(&["gen", shape, size]), 2);
            assert_eq!(out, "");
            assert!(err.contains(size) && err.contains("0..=10000000"), "{shape} {size}: {err}");
        }
    }
    for (arguments, largest) in [
        (["stress", "--depth", "18446744073709551615"], "10000000"),
        (["stress", "--stack-kib", "18446744073709551615"], "1048576"),
        (["opt", "-", "--threads=65535"], "256"),
    ] {
        let (_, err) = ends(anfora(&arguments), 2);
        assert!(err.contains(largest), "{arguments:?}: {err}");
    }
    for number in ["18446744073709551616", "-1", "1e3", "0x10", "½"] {
        ends(anfora(&["gen", "chain", "--", number]), 2);
        ends(anfora(&["gen", "random", "3", &format!("--seed={number}")]), 2);
    }
}

#[test]
fn an_empty_pipeline_is_said_in_words() {
    for passes in ["", "  "] {
        let (out, err) = ends(with_input(&["opt", "-", "--passes", passes], "def @main(%x: int32) { %x }"), 0);
        assert!(out.contains("def @main"), "{out}");
        assert!(err.starts_with("-: no passes (the pipeline is empty)\n"), "{err}");
        assert!(!err.contains(" ms"), "{err}");
    }
}

#[test]
fn contents_that_are_no_text_have_a_place() {
    let dir = Scratch::new("contents");
    let nul = dir.file("nul.anf", "def @main(%x: int32) { %x }\0");
    let (_, err) = ends(anfora(&["check", &nul]), 1);
    assert!(err.contains("nul.anf:1:28"), "{err}");
    let path = dir.join("bytes.anf");
    std::fs::write(&path, b"def @main() { 1 } // \xff\xfe").unwrap();
    let (_, err) = ends(anfora(&["check", path.to_str().unwrap()]), 1);
    assert!(err.contains("byte 21 is not UTF-8 text"), "{err}");
    for kind in ["anf", "onnx"] {
        let folder = dir.path("");
        let (_, err) = ends(anfora(&["check", &folder, "--from", kind]), 1);
        assert!(err.contains("cannot read"), "{err}");
    }
}

// The file systems of macOS refuse names that are not UTF-8.
#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn paths_may_be_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    let dir = Scratch::new("bytes");
    let name = |bytes: &[u8]| dir.join(OsStr::from_bytes(bytes));
    std::fs::write(name(b"in\xff.anf"), "def @main(%x: Tensor[(2,), float32]) { add(%x, %x) }").unwrap();
    for (from, to) in [(b"in\xff.anf", &b"out\xff.onnx"[..]), (b"in\xff.anf", b"out\xff.anf")] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_anfora")).arg("opt").arg(name(from)).arg("-o").arg(name(to)).output();
        ends_in_words(output.unwrap(), 0);
        assert!(name(to).exists());
    }
    let output = Command::new(env!("CARGO_BIN_EXE_anfora")).arg("check").arg(name(b"none\xff.anf")).output();
    ends_in_words(output.unwrap(), 1);
    for option in ["--passes", "--dim", "--config"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anfora"));
        let output = command.args(["opt", "-", option]).arg(OsStr::from_bytes(b"\xff")).output();
        ends_in_words(output.unwrap(), 2);
    }
}

/// Asserts the exit status, and that no panic is reported.
#[cfg(all(unix, not(target_vendor = "apple")))]
#[track_caller]
fn ends_in_words(output: std::process::Output, status: i32) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

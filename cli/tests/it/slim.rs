//! `anfora slim`

use crate::program::{Scratch, anfora, ends};

const TEXT: &str = "def @main(%x: Tensor[(batch, 4), float32], %w: Tensor[(?, 4), float32]) {
  let %t = permute_dims(%x, axes=[1, 0]);
  let %a = permute_dims(%t, axes=[1, 0]);
  let %b = exp(%a);
  let %c = exp(%a);
  let %d = add(%b, %c);
  concat(%d, %w, axis=0)
}";

#[test]
fn a_model_is_made_smaller_in_one_call() {
    let dir = Scratch::new("slim");
    let model = dir.onnx("model", TEXT);
    let out = dir.path("out.onnx");
    let (_, err) = ends(anfora(&["slim", &model, &out, "--check", "2"]), 0);
    let table = "operator     before     after
Add               1         1
Concat            1         1
Exp               2         1 *
Transpose         2         0 *
all nodes         6         3 *
";
    assert!(err.contains(table), "{err}");
    let bytes = |path: &str| std::fs::metadata(path).unwrap().len();
    assert!(err.contains(&format!("bytes: {} before, {} after\n", bytes(&model), bytes(&out))), "{err}");
    let (text, _) = ends(anfora(&["convert", &out]), 0);
    assert!(!text.contains("permute"), "{text}");
    // Never more than the usual pipeline leaves, and nothing is printed if nothing is to be said.
    let (_, err) = ends(anfora(&["opt", &model, "-O2", "-o", &dir.path("o2.onnx")]), 0);
    assert!(err.contains("6 -> 3"), "{err}");
    let (said, err) = ends(anfora(&["slim", &model, &out, "--quiet"]), 0);
    assert_eq!((said.as_str(), err.as_str()), ("", ""));
}

#[test]
fn inputs_are_given_their_extents() {
    let dir = Scratch::new("slim-shapes");
    let model = dir.file("model.anf", TEXT);
    let (out, _) =
        ends(anfora(&["slim", &model, "-", "--input-shape", "x=2,4", "--input-shape", "w:3,?", "--quiet"]), 0);
    assert!(out.contains("%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32]"), "{out}");
    assert!(out.contains("-> Tensor[(5, 4), float32]"), "{out}");
    for (shape, message) in [
        ("y=1", "there is no input `y`"),
        ("x=2", "1 extents are given, and the input has 2"),
        ("x=2,5", "the extent 5 is given, and the input has 4"),
    ] {
        let (_, err) = ends(anfora(&["slim", &model, "-", "--input-shape", shape]), 1);
        assert!(err.contains(message), "{err}");
    }
    // A symbol may stand for several extents of an input.
    let square = dir.file("square.anf", "def @main(%x: Tensor[(n, n), float32]) { exp(%x) }");
    let (out, _) = ends(anfora(&["slim", &square, "-", "--input-shape", "x=3,3", "--quiet"]), 0);
    assert!(out.contains("%x: Tensor[(3, 3), float32]"), "{out}");
    let (_, err) = ends(anfora(&["slim", &square, "-", "--input-shape", "x=3,4"]), 1);
    assert!(err.contains("the extents 3 and 4 are given for `n`"), "{err}");
    let (_, err) = ends(anfora(&["slim", &model, "-", "--input-shape", "=2"]), 2);
    assert!(err.contains("x=1,3,224,224"), "{err}");
    let (_, err) = ends(anfora(&["slim", &model, "-", "--disable", "FoldConstnt"]), 1);
    assert!(err.contains("FoldConstant"), "{err}");
}

#[test]
fn what_rounds_differently_is_left_out_on_request() {
    let dir = Scratch::new("slim-exact");
    let model = dir.onnx(
        "model",
        "def @main(%x: Tensor[(1, 2, 4, 4), float32]) {
  let %c = nn.conv2d(%x, dense<Tensor[(2, 2, 1, 1), float32]>[1.1, 2.3, 3.7, 4.9]);
  let %scale = dense<Tensor[(2,), float32]>[0.3, 0.7];
  nn.batch_norm(%c, %scale, %scale, %scale, %scale)
}",
    );
    let nodes = |flags: &[&str]| {
        let out = dir.path("out.onnx");
        let (_, err) = ends(anfora(&[&["slim", &model, &out], flags].concat()), 0);
        err.lines().find(|line| line.starts_with("all nodes")).unwrap().to_string()
    };
    let (rounded, exact) = (nodes(&[]), nodes(&["--exact"]));
    assert!(rounded.ends_with("1 *") && exact.split_whitespace().nth(3) == Some("2"), "{rounded}\n{exact}");
}

#[test]
fn what_is_not_known_is_listed_with_the_reason() {
    let dir = Scratch::new("slim-kept");
    let model = dir.onnx(
        "model",
        "def @main(%x: Tensor[(4,), float32]) { let %y: Tensor[(4,), float32] = onnx.com.example.Sharpen(%x); %y }",
    );
    let out = dir.path("out.onnx");
    for command in [&["slim", &model, &out][..], &["opt", &model, "-o", &out, "--table"]] {
        let (_, err) = ends(anfora(command), 0);
        assert!(err.contains("com.example.Sharpen         1         1\n"), "{err}");
        assert!(err.contains("kept as they are:\n  node `com.example.Sharpen` (version 1)"), "{err}");
    }
    let (_, err) = ends(anfora(&["opt", &model, "-o", &out]), 0);
    assert!(!err.contains("operator"), "{err}");
}

#[test]
fn constants_that_repeat_a_number_are_nodes_only_above_a_limit() {
    let dir = Scratch::new("slim-sizes");
    let model = dir.onnx(
        "model",
        "def @main(%x: Tensor[(64, 256), float32]) { concat(%x, dense<Tensor[(64, 256), float32]>[1], axis=0) }",
    );
    let out = dir.path("out.onnx");
    for (flags, after) in [(&[][..], "1"), (&["--size-threshold", "65536"], "1"), (&["--size-threshold", "65535"], "2")]
    {
        let (_, err) = ends(anfora(&[&["slim", &model, &out][..], flags].concat()), 0);
        let all = err.lines().find(|line| line.starts_with("all nodes")).unwrap();
        assert_eq!(all.split_whitespace().nth(3), Some(after), "{flags:?}: {err}");
    }
}

/// Attention from its parts, before the version that has it.
const ATTENTION: &str = "#![onnx_ir_version=8, onnx_opsets=[[\"\", 17]]]
def @main(%q: Tensor[(1, 2, 3, 4), float32], %k: Tensor[(1, 2, 3, 4), float32]) {
  let %t = permute_dims(%k, axes=[0, 1, 3, 2]);
  let %s = matmul(%q, %t);
  let %d = divide(%s, 2f);
  let %p = nn.softmax(%d, axis=-1);
  matmul(%p, %k)
}";

#[test]
fn nothing_is_fused_that_is_written_as_its_parts_again() {
    let dir = Scratch::new("slim-attention");
    let model = dir.file("model.anf", ATTENTION);
    for (flags, after) in [(&[][..], 5), (&["--contrib"], 3)] {
        let (_, err) = ends(anfora(&[&["slim", &model, &dir.path("out.onnx")][..], flags].concat()), 0);
        assert!(err.contains("wrote "), "{err}");
        let (text, _) = ends(anfora(&["convert", &dir.path("out.onnx")]), 0);
        assert_eq!(text.matches(" = ").count(), after, "{flags:?}: {text}");
        assert!(!text.contains("nn.attention"), "{text}");
    }
}

#[test]
fn settings_are_given() {
    let dir = Scratch::new("slim-config");
    let model = dir.file("model.anf", "def @main(%x: float32) { add(%x, multiply(2f, 3f)) }");
    let (out, _) = ends(anfora(&["slim", &model, "-", "--quiet"]), 0);
    assert!(out.contains("add(%x, 6f)"), "{out}");
    let (out, _) = ends(anfora(&["slim", &model, "-", "--quiet", "--config", "FoldConstant.max_work=0"]), 0);
    assert!(out.contains("multiply(2f, 3f)"), "{out}");
    let (_, err) = ends(anfora(&["slim", &model, "-", "--config", "FoldConstant.max_wrok=0"]), 1);
    assert!(err.contains("did you mean `FoldConstant.max_work`"), "{err}");
}

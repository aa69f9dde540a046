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
    assert!(err.contains("ONNX nodes                           6 -> 3"), "{err}");
    let (text, _) = ends(anfora(&["convert", &out]), 0);
    assert!(!text.contains("permute"), "{text}");
    // Never more than the usual pipeline leaves, and nothing is printed if nothing is to be said.
    let (_, err) = ends(anfora(&["opt", &model, "-O2", "-o", &dir.path("o2.onnx")]), 0);
    assert!(err.contains("6 -> 5"), "{err}");
    let (said, err) = ends(anfora(&["slim", &model, &out, "--quiet"]), 0);
    assert_eq!((said.as_str(), err.as_str()), ("", ""));
}

#[test]
fn inputs_are_given_their_extents() {
    let dir = Scratch::new("slim-shapes");
    let model = dir.file("model.anf", TEXT);
    let (out, _) =
        ends(anfora(&["slim", &model, "-", "--input-shape", "x:2,4", "--input-shape", "w:3,?", "--quiet"]), 0);
    assert!(out.contains("%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32]"), "{out}");
    assert!(out.contains("-> Tensor[(5, 4), float32]"), "{out}");
    for (shape, message) in [
        ("y:1", "there is no input `y`"),
        ("x:2", "1 extents are given, and the input has 2"),
        ("x:2,5", "the extent 5 is given, and the input has 4"),
    ] {
        let (_, err) = ends(anfora(&["slim", &model, "-", "--input-shape", shape]), 1);
        assert!(err.contains(message), "{err}");
    }
    let (_, err) = ends(anfora(&["slim", &model, "-", "--input-shape", "x=2"]), 2);
    assert!(err.contains("x:1,3,224,224"), "{err}");
    let (_, err) = ends(anfora(&["slim", &model, "-", "--disable", "FoldConstnt"]), 1);
    assert!(err.contains("FoldConstant"), "{err}");
}

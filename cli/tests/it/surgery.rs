//! `anfora surgery`

use crate::program::{Scratch, anfora, ends};

const TEXT: &str = "def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(4, 4), float32]) {
  let %a = matmul(%x, %w);
  let %b = tanh(%a);
  let %y = nn.softmax(%b);
  %y
}";

#[test]
fn models_are_edited_one_step_after_the_other() {
    let dir = Scratch::new("surgery");
    let model = dir.onnx("model", TEXT);
    let (part, named, shaped, done) =
        (dir.path("part.onnx"), dir.path("named.onnx"), dir.path("shaped.onnx"), dir.path("done.onnx"));
    let silent = |arguments: &[&str]| {
        assert_eq!(ends(anfora(arguments), 0), (String::new(), String::new()));
        ends(anfora(&["check", arguments[4]]), 0);
    };
    silent(&["surgery", "extract", &model, "-o", &part, "--inputs", "a", "--outputs", "b,y"]);
    silent(&["surgery", "rename", &part, "-o", &named, "--value", "a=logits", "--value", "y=scores"]);
    silent(&["surgery", "set-shape", &named, "-o", &shaped, "--input", "logits=batch,?"]);
    silent(&["surgery", "set-attribute", &shaped, "-o", &done, "--set", "scores.axis=0"]);
    let (text, _) = ends(anfora(&["convert", &done]), 0);
    let wanted = "def @main(%logits: Tensor[(batch, 4), float32]) -> (Tensor[(batch, 4), float32], Tensor[(batch, 4), float32]) {
  let %b = tanh(%logits);
  let %scores = nn.softmax(%b, axis=0);
  (%b, %scores)
}
";
    assert!(text.contains("onnx_outputs=[\"b\", \"scores\"]") && text.ends_with(wanted), "{text}");
}

#[test]
fn texts_are_edited_one_step_after_the_other() {
    let dir = Scratch::new("surgery-text");
    let file = dir.file("model.anf", TEXT);
    let step = |from: &str, arguments: &[&str]| {
        let (text, messages) = ends(anfora(&[&["surgery", arguments[0], from], &arguments[1..]].concat()), 0);
        assert_eq!(messages, "");
        let step = dir.file("step.anf", &text);
        ends(anfora(&["check", &step]), 0);
        step
    };
    let part = step(&file, &["extract", "--inputs", "%a", "--outputs", "%b,%y"]);
    let named = step(&part, &["rename", "--value", "a=logits", "--value", "y=scores"]);
    let shaped = step(&named, &["set-shape", "--input", "logits=batch,?"]);
    let done = step(&shaped, &["set-attribute", "--set", "scores.axis=0"]);
    let wanted = "def @main(%logits: Tensor[(batch, 4), float32]) -> (Tensor[(batch, 4), float32], Tensor[(batch, 4), float32]) {
  let %b = tanh(%logits);
  let %scores = nn.softmax(%b, axis=0);
  (%b, %scores)
}
";
    assert_eq!(std::fs::read_to_string(done).unwrap(), wanted);
    let (text, _) = ends(anfora(&["surgery", "rename", &file, "--function", "@main=@run"]), 0);
    assert!(text.starts_with("def @run("), "{text}");
}

#[test]
fn mistakes_are_told_with_suggestions() {
    let dir = Scratch::new("surgery-mistakes");
    let model = dir.onnx("model", TEXT);
    for (arguments, status, messages) in [
        (&["extract", "--outputs", "yy"][..], 1, &["there is no value `%yy`", "did you mean `%y`?"][..]),
        (&["extract", "--inputs", "b", "--outputs", "a"], 1, &["the outputs need the inputs `%x`, `%w` too"]),
        (&["extract", "--entry", "@mian"], 1, &["there is no function `@mian`", "did you mean `@main`?"]),
        (&["rename", "--value", "a"], 2, &["--value a: write it as OLD=NEW"]),
        (&["rename", "--dim", "n=m"], 1, &["there is no symbolic dimension `n`", "there are none"]),
        (&["set-shape", "--input", "x=1,2,3"], 1, &["3 extents are given, and the input has 2"]),
        (&["set-shape", "--input", "x"], 2, &["write it as NAME=EXTENTS"]),
        (&["set-shape", "--input", "x=2,5"], 1, &["matmul", "%a"]),
        (
            &["set-attribute", "--set", "y.axiss=1"],
            1,
            &["`nn.softmax` has no attribute `axiss`", "did you mean `axis`?"],
        ),
        (&["set-attribute", "--set", "y=1"], 2, &["write it as NODE.ATTRIBUTE=VALUE"]),
    ] {
        let mut all = vec!["surgery", arguments[0], &model];
        all.extend(&arguments[1..]);
        let (out, err) = ends(anfora(&all), status);
        assert_eq!(out, "", "nothing is written");
        for message in messages {
            assert!(err.contains(message), "{arguments:?}: {err}");
        }
    }
}

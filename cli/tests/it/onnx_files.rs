//! ONNX files: nodes and initializers that are kept, symbolic dimensions, external data.

use crate::program::{Scratch, anfora, ends};

const KEPT: &str = "def @main(%x: Tensor[(2, 3), float32]) {
  let %a = negative(%x);
  let %b: Tensor[(2, 3), float32] = onnx.com.example.Frobnicate(%a);
  let %c: Tensor[(2, 3), float32] = onnx.com.example.Frobnicate(%b);
  %c
}";

/// A program whose initializer has two strings, the second of which is not UTF-8.
const NO_TEXT: &str = r#"#![onnx_ir_version=8, onnx_opsets=[["", 17]]]

#[onnx_graph="g", onnx_outputs=["k", "z"]]
def @main(%x: Tensor[(3, 4), float32]) -> (Tensor[(2,), string], Tensor[(3, 4), float32]) {
  #[onnx_metadata=[["anfora.initializer", ""]]]
  let %k: Tensor[(2,), string] = onnx.Constant(onnx_raw=[dense<Tensor[(23,), uint8]>"0x0A0576616C75652A0B080210083201613202FFFEA00104"]);
  let %z = nn.relu(%x);
  (%k, %z)
}"#;

#[test]
fn an_initializer_that_is_kept_is_said_to_be_one() {
    let dir = Scratch::new("initializer");
    let model = dir.onnx("text", NO_TEXT);
    let (out, _) = ends(anfora(&["check", &model]), 0);
    let expected = "kept nodes    0\n  initializer `k`: element 1 is not UTF-8 text\n";
    assert!(out.ends_with(expected), "{out}");
    let (out, _) = ends(anfora(&["check", &model, "--stats=json"]), 0);
    let json: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    let kept =
        serde_json::json!([{ "initializer": true, "reason": "element 1 is not UTF-8 text", "first": "k", "count": 1 }]);
    assert_eq!(json["kept"], kept);
}

#[test]
fn what_is_kept_is_said_with_the_reason_and_the_place() {
    let dir = Scratch::new("kept");
    let model = dir.onnx("kept", KEPT);
    let (out, _) = ends(anfora(&["check", &model]), 0);
    assert!(out.contains("kept nodes    2\n  2 nodes `com.example.Frobnicate` (version 1), the first `b`:"), "{out}");
    assert!(out.lines().all(|l| l.chars().count() <= 80), "{out}");
    let (out, _) = ends(anfora(&["check", &model, "--stats=json"]), 0);
    let json: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    let kept = &json["kept"][0];
    assert_eq!((&kept["op_type"], &kept["count"]), (&"Frobnicate".into(), &2.into()), "{json}");
    assert_eq!((&kept["domain"], &kept["version"]), (&"com.example".into(), &1.into()), "{json}");
    assert!(kept["reason"].as_str().is_some_and(|r| !r.is_empty()), "{json}");

    let (_, err) = ends(anfora(&["run", &model]), 1);
    for part in ["onnx.com.example.Frobnicate", "no kernel", "(version 1)", kept["reason"].as_str().unwrap()] {
        assert!(err.contains(part), "no `{part}` in {err}");
    }
    assert!(err.contains("let %b"), "the place is not shown: {err}");

    let (_, err) = ends(anfora(&["opt", &model, "-o", &dir.path("out.onnx")]), 0);
    assert!(err.contains("nodes kept as they are               2 (`anfora check` says why)"), "{err}");
    let (_, err) = ends(anfora(&["run", &dir.path("kept.anf")]), 1);
    assert!(err.contains("has no kernel") && err.contains("`anfora check` on the ONNX file"), "{err}");

    let plain = dir.onnx("plain", "def @main(%x: Tensor[(2,), float32]) { negative(%x) }");
    let (out, _) = ends(anfora(&["check", &plain, "--stats=json"]), 0);
    assert!(out.contains("\"kept\":[]"), "{out}");
    let (_, err) = ends(anfora(&["opt", &plain, "-o", &dir.path("out.onnx")]), 0);
    assert!(!err.contains("nodes kept"), "{err}");
}

#[test]
fn symbolic_dimensions_are_what_inputs_and_options_say() {
    let dir = Scratch::new("dims");
    let text = "def @main(%x: Tensor[(batch, 3), float32], %y: Tensor[(batch, n), float32]) {
  concat(%x, %y, axis=1)
}";
    let model = dir.onnx("dims", text);
    let shape = |arguments: &[&str]| {
        let (out, _) = ends(anfora(&[&["run", &model][..], arguments].concat()), 0);
        out.split_once("float32 ").and_then(|(_, s)| s.split_once(']')).expect("a shape").0.to_string() + "]"
    };
    assert_eq!(shape(&[]), "[2, 5]");
    assert_eq!(shape(&["--dim", "batch=4"]), "[4, 5]");
    assert_eq!(shape(&["--dim", "n=7", "--dim", "batch=0"]), "[0, 10]");

    // An output of shape 6 x 3 is the input of the next run.
    let row = dir.onnx("row", "def @main(%x: Tensor[(n, 3), float32]) { negative(%x) }");
    ends(anfora(&["run", &row, "--dim", "n=6", "-o", &dir.path("given")]), 0);
    let given = format!("x={}", dir.path("given/output_0.npy"));
    assert_eq!(shape(&["--input", &given]), "[6, 5]");
    assert_eq!(shape(&["--input", &given, "--dim", "batch=6", "--dim", "n=1"]), "[6, 4]");

    let fails = |arguments: &[&str], status: i32, expected: &str| {
        let (_, err) = ends(anfora(&[&["run", &model][..], arguments].concat()), status);
        assert!(err.contains(expected), "no `{expected}` in {err}");
    };
    fails(&["--input", &given, "--dim", "batch=5"], 1, "the input `x` that is given has 6 there");
    fails(&["--dim", "bacth=5"], 1, "did you mean `batch`?");
    fails(&["--dim", "nonesuch=5"], 1, "they have batch, n");
    fails(&["--dim", "n=-1"], 2, "NAME=EXTENT");
    fails(&["--dim", "n=1", "--dim", "n=2"], 2, "already given as 1");
    // The two inputs disagree.
    let other = format!("y={}", dir.path("given/output_0.npy"));
    ends(anfora(&["run", &row, "--dim", "n=5", "-o", &dir.path("five")]), 0);
    let five = format!("x={}", dir.path("five/output_0.npy"));
    fails(&["--input", &five, "--input", &other], 1, "argument 1");
}

#[test]
fn constants_go_to_a_file_beside_the_model_if_asked_to() {
    let dir = Scratch::new("data");
    let text = "def @main(%x: Tensor[(2, 3), float32]) {
  let %a = add(%x, dense<Tensor[(2, 3), float32]>[1, 2, 3, 4, 5, 6]);
  multiply(%a, dense<Tensor[(3,), float32]>[7, 8, 9])
}";
    let model = dir.onnx("model", text);
    let (expected, _) = ends(anfora(&["run", &model]), 0);
    let output = dir.path("out.onnx");
    let (_, err) = ends(anfora(&["opt", &model, "-o", &output, "--external-data=16"]), 0);
    assert!(err.ends_with(&format!("wrote {output}\nwrote {output}.data\n")), "{err}");
    assert_eq!(std::fs::metadata(dir.path("out.onnx.data")).unwrap().len(), 24);
    assert_eq!(ends(anfora(&["run", &output]), 0).0, expected);

    // Overwrites the files that it reads, and then writes a single file again.
    ends(anfora(&["convert", &output, "-o", &output, "--external-data=1"]), 0);
    assert_eq!(std::fs::metadata(dir.path("out.onnx.data")).unwrap().len(), 64 + 12);
    assert_eq!(ends(anfora(&["run", &output]), 0).0, expected);
    let whole = dir.path("whole.onnx");
    ends(anfora(&["convert", &output, "-o", &whole, "--external-data=inline"]), 0);
    assert_eq!(ends(anfora(&["run", &whole]), 0).0, expected);
    // No constant has 1024 bytes or more, so no data file is written.
    ends(anfora(&["convert", &output, "-o", &dir.path("default.onnx"), "--external-data"]), 0);

    let names = |dir: &Scratch| {
        let mut names: Vec<String> =
            dir.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&dir), ["default.onnx", "model.anf", "model.onnx", "out.onnx", "out.onnx.data", "whole.onnx"]);
    // A write that fails leaves no files.
    std::fs::create_dir(dir.path("bad.onnx.data")).unwrap();
    let (_, err) = ends(anfora(&["convert", &model, "-o", &dir.path("bad.onnx"), "--external-data=1"]), 1);
    assert!(err.contains("cannot write") && err.contains("bad.onnx.data"), "{err}");
    assert!(!names(&dir).iter().any(|n| n == "bad.onnx" || n.ends_with(".part")), "{:?}", names(&dir));
    let (_, err) = ends(anfora(&["convert", &model, "--to", "onnx", "--external-data"]), 2);
    assert!(err.contains("not a file that another can be beside"), "{err}");

    std::fs::remove_file(dir.path("out.onnx.data")).unwrap();
    let (_, err) = ends(anfora(&["check", &output]), 1);
    assert!(err.contains("`out.onnx.data`, which cannot be read"), "{err}");
}

#[test]
fn constants_stay_in_the_data_file_that_they_are_in() {
    let dir = Scratch::new("keep");
    let text = "def @main(%x: Tensor[(2, 3), float32]) {
  let %a = add(%x, dense<Tensor[(2, 3), float32]>[1, 2, 3, 4, 5, 6]);
  let %b = permute_dims(%a, axes=[1, 0]);
  let %c = permute_dims(%b, axes=[1, 0]);
  multiply(%c, dense<Tensor[(3,), float32]>[7, 8, 9])
}";
    let source = dir.file("source.anf", text);
    let model = dir.path("m.onnx");
    ends(anfora(&["convert", &source, "-o", &model, "--external-data=1"]), 0);
    let data = std::fs::read(dir.path("m.onnx.data")).unwrap();
    let (expected, _) = ends(anfora(&["run", &model]), 0);
    // Beside the input, in its place, and in a folder from which no path leads to the file.
    std::fs::create_dir(dir.path("other")).unwrap();
    for (output, stays) in [("small.onnx", true), ("m.onnx", true), ("other/m.onnx", false)] {
        let output = dir.path(output);
        let (_, err) = ends(anfora(&["slim", &model, &output]), 0);
        assert!(!err.contains(".data"), "no data file is written: {err}");
        assert_eq!(ends(anfora(&["run", &output]), 0).0, expected);
        let bytes = std::fs::read(&output).unwrap();
        assert_eq!(bytes.windows(11).any(|w| w == b"m.onnx.data"), stays, "{output}");
        assert_eq!(std::fs::read(dir.path("m.onnx.data")).unwrap(), data);
    }
    ends(anfora(&["opt", &model, "-o", &dir.path("opt.onnx"), "--external-data=keep", "--quiet"]), 0);
    assert_eq!(ends(anfora(&["run", &dir.path("opt.onnx")]), 0).0, expected);
    let (_, err) = ends(anfora(&["slim", &model, &dir.path("no.onnx"), "--external-data=some"]), 2);
    assert!(err.contains("write a number of bytes, `keep` or `inline`"), "{err}");
}

/// A program whose result has two elements, but is declared with seven.
const CONTRADICTED: &str =
    "#[onnx_output_infos=[dense<Tensor[(15,), uint8]>[10, 1, 121, 18, 10, 10, 8, 8, 1, 18, 4, 10, 2, 8, 7]], \
  onnx_outputs=[\"y\"]]
def @main(%x: Tensor[(2,), float32]) { let %y = negative(%x); %y }";

#[test]
fn what_is_wrong_in_a_file_is_said_and_it_is_read_all_the_same() {
    let dir = Scratch::new("contradicted");
    let model = dir.onnx("contradicted", CONTRADICTED);
    let warning = format!(
        "warning: {model}: the graph `graph`, node 0 (`Neg`): `y` is Tensor[(2,), float32], but the file says Tensor[(7,), float32]"
    );
    let again = dir.path("again.onnx");
    for command in [
        vec!["check", model.as_str()],
        vec!["convert", &model, "-o", &again],
        vec!["opt", &model, "-O3", "--quiet", "-o", &again],
    ] {
        let (_, err) = ends(anfora(&command), 0);
        assert!(err.starts_with(&warning) && err.contains("help"), "{command:?}: {err}");
        assert_eq!(err.matches("warning").count(), 1, "{command:?}: {err}");
    }
    let (_, err) = ends(anfora(&["check", &again]), 0);
    assert_eq!(err, "", "what is written is right");
    let (out, _) = ends(anfora(&["check", &model, "--stats=json"]), 0);
    let json: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    assert!(json["warnings"][0].as_str().is_some_and(|w| w.contains("the file says")), "{json}");
}

#[test]
fn a_dimension_becomes_known_before_the_passes_run() {
    let dir = Scratch::new("bound-dims");
    let text = "def @main(%x: Tensor[(n, 3), float32], %y: Tensor[(n, k), float32]) {
      let %s = shape_of(%x);
      let %a = add(%x, %x);
      (%a, %s, %y)
    }";
    let (model, text) = (dir.onnx("model", text), dir.path("model.anf"));
    for input in [&model, &text] {
        let (out, err) = ends(anfora(&["opt", input, "--to", "anf", "-o", "-", "--dim", "n=4", "--dim=n=4"]), 0);
        for part in ["%x: Tensor[(4, 3), float32]", "%y: Tensor[(4, k), float32]", "[4, 3]"] {
            assert!(out.contains(part), "no {part} in {out}");
        }
        assert!(!out.contains("shape_of"), "what is known is folded: {out}");
        assert!(err.contains("  BindSymbols{n=4} ") && err.contains("  FoldConstant "), "{err}");
        let bound = dir.path("bound.onnx");
        ends(anfora(&["opt", input, "-o", &bound, "--dim", "n=4", "--quiet", "--passes", ""]), 0);
        let (as_bound, _) = ends(anfora(&["run", &bound]), 0);
        let (as_run, _) = ends(anfora(&["run", input, "--dim", "n=4"]), 0);
        assert_eq!(as_bound, as_run);

        for (name, help) in [("m", "did you mean `n`?"), ("length", "there are n, k")] {
            let (_, err) = ends(anfora(&["opt", input, "--dim", &format!("{name}=4")]), 1);
            assert!(err.contains(&format!("there is no symbol `{name}`")) && err.contains(help), "{err}");
        }
    }
    for dims in [&["--dim=n=4", "--dim=n=5"][..], &["--dim=n"], &["--dim=n=-1"], &["--dim=n=9223372036854775808"]] {
        for command in ["opt", "run"] {
            let (_, err) = ends(anfora(&[&[command, &text], dims].concat()), 2);
            assert!(err.contains("error: --dim n"), "{err}");
        }
    }
}

#[test]
fn weights_come_from_files() {
    let dir = Scratch::new("weights");
    let weights = dir.file("weights.anf", "def @main() { dense<Tensor[(3,), float32]>[1, 2, 3] }");
    ends(anfora(&["run", &weights, "-o", &dir.path("")]), 0);
    let program = dir.file("in.anf", "def @main(%x: Tensor[(n,), float32], %w: Tensor[(n,), float32]) { add(%x, %w) }");
    let bind = |file: &str| format!("BindParams{{function=main,params=\"%w={file}\"}}");
    let (out, _) = ends(anfora(&["opt", &program, "--quiet", "--passes", &bind(&dir.path("output_0.npy"))]), 0);
    assert!(out.contains("def @main(%x: Tensor[(3,), float32])") && out.contains("[1, 2, 3]"), "{out}");
    let (_, err) = ends(anfora(&["opt", &program, "--quiet", "--passes", &bind(&dir.path("none.npy"))]), 1);
    assert!(err.contains("cannot read") && err.contains("none.npy") && err.contains("No such file"), "{err}");
}

#[test]
fn a_dimension_goes_by_its_name_in_the_file() {
    let dir = Scratch::new("file-dims");
    let text = r#"#[onnx_dimensions=[["batch_size", "batch size"], ["n_1", "n"]]]
def @main(%x: Tensor[(batch_size, n_1), float32]) { negative(%x) }"#;
    let model = dir.onnx("model", text);
    for name in ["batch size", "batch_size"] {
        let dims = [&format!("--dim={name}=4"), "--dim=n=3"];
        let (out, _) = ends(anfora(&["run", &model, dims[0], dims[1]]), 0);
        assert!(out.contains("[4, 3]"), "{name}: {out}");
        let (out, _) = ends(anfora(&["opt", &model, "--to", "anf", dims[0], dims[1]]), 0);
        assert!(out.contains("%x: Tensor[(4, 3), float32]"), "{name}: {out}");
    }
    for command in ["run", "opt"] {
        let (_, err) = ends(anfora(&[command, &model, "--dim=batch size=4", "--dim=batch_size=5"]), 1);
        assert!(err.contains("`batch_size` was already given as 4"), "{err}");
    }
}

#[test]
fn an_extent_is_not_left_out_and_no_error_shows_what_nobody_wrote() {
    let (_, err) = ends(anfora(&["opt", "-", "--dim", "n=4", "--quiet", "--disable", "BindSymbols"]), 2);
    assert!(err.contains("--dim") && err.contains("--disable"), "{err}");
    let (_, err) = ends(anfora(&["opt", "-", "--dim", "n=4", "--passes", "Fold"]), 2);
    assert!(err.contains("\nFold\n^"), "{err}");
}

#[test]
fn models_are_written_for_other_versions_of_the_operators() {
    let dir = Scratch::new("opset");
    let text = r#"#![onnx_ir_version=9, onnx_opsets=[["", 20]]]
def @main(%x: Tensor[(2, 3), float32]) {
  let %a = nn.mish(%x);
  let %b = nn.shrink(%a);
  nn.celu(%b)
}"#;
    let model = dir.onnx("new", text);
    let old = dir.path("old.onnx");
    ends(anfora(&["convert", &model, "-o", &old, "--opset=11"]), 0);
    let (text, _) = ends(anfora(&["convert", &old]), 0);
    assert!(text.contains("onnx_opsets=[[\"\", 11]]"), "{text}");
    assert!(text.contains("nn.shrink") && !text.contains("nn.mish") && !text.contains("nn.celu"), "{text}");
    assert_eq!(ends(anfora(&["run", &old]), 0).0.lines().count(), ends(anfora(&["run", &model]), 0).0.lines().count());
    ends(anfora(&["slim", &model, &old, "--quiet", "--opset=8", "--check=2"]), 1);
    ends(anfora(&["slim", &model, &old, "--quiet", "--opset=9", "--check=2"]), 0);
    let (text, _) = ends(anfora(&["convert", &old]), 0);
    assert!(text.contains("onnx_opsets=[[\"\", 9]]") && !text.contains("nn.celu"), "{text}");
    let (_, err) = ends(anfora(&["convert", &model, "--opset=29"]), 2);
    assert!(err.contains("29 is not in 6..=28"), "{err}");
}

//! The program as its user runs it: with arguments, and checked by its files, output and exit
//! status.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{Scratch, anfora, ends, with_input};

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name).display().to_string()
}

#[test]
fn the_readme_command_optimises_a_model_and_keeps_what_it_computes() {
    let dir = Scratch::new("readme");
    let (optimised, before, after) = (dir.join("optimized.onnx"), dir.join("before"), dir.join("after"));
    let optimised = optimised.to_str().unwrap();
    let (out, err) = ends(anfora(&["opt", &example("residual.onnx"), "-o", optimised]), 0);
    assert_eq!(out, "");
    assert!(err.contains("O2") && err.contains("ONNX nodes") && err.contains("FoldConstant"), "{err}");
    assert!(err.lines().count() <= 24 && err.lines().all(|l| l.len() <= 80 || l.contains("residual.onnx")), "{err}");

    ends(anfora(&["run", &example("residual.onnx"), "--random", "7", "-o", before.to_str().unwrap()]), 0);
    ends(anfora(&["run", optimised, "--random", "7", "-o", after.to_str().unwrap()]), 0);
    let read = |d: &Path| std::fs::read(d.join("output_0.npy")).expect("an output");
    assert_eq!(read(&before), read(&after), "the optimised model computes something else");

    let (out, _) = ends(anfora(&["check", optimised, "--stats=json"]), 0);
    let counts: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    let (was, _) = ends(anfora(&["check", &example("residual.onnx"), "--stats=json"]), 0);
    let was: serde_json::Value = serde_json::from_str(&was).expect("one JSON object");
    assert_eq!(counts["form"], "ANF");
    assert!(counts["onnx_nodes"].as_u64().unwrap() * 2 < was["onnx_nodes"].as_u64().unwrap(), "{counts} {was}");
}

#[test]
fn types_of_all_values_are_listed() {
    let dir = Scratch::new("types");
    let path = dir.join("types.anf");
    let text = "def @main(%x: Tensor[(n, 4), float32], %c: Tensor[(), bool]) {
      let %f = fn(%a: Tensor[(2,), int64]) { add(%a, %a) };
      let %p = (%x, %c);
      let %y = concat(%x, %x, axis=0);
      let %k: Tensor[(?, 3), float32] = onnx.Mystery(%y);
      %k
    }";
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let (out, _) = ends(anfora(&["check", path, "--types"]), 0);
    for line in
        ["@main %x: Tensor[(n, 4), float32]", "@main %a: Tensor[(2,), int64]", "@main %y: Tensor[(2 * n, 4), float32]"]
    {
        assert!(out.lines().any(|l| l == line), "{line} is not in\n{out}");
    }
    let (out, _) = ends(anfora(&["check", path, "--types", "--stats=json"]), 0);
    let found: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    let of = |name: &str| found["values"].as_array().unwrap().iter().find(|v| v["name"] == name).unwrap().clone();
    assert_eq!(of("y")["shape"], serde_json::json!(["2 * n", 4]));
    assert_eq!(of("k")["shape"], serde_json::json!([null, 3]));
    assert_eq!((&of("k")["op"], &of("k")["dtype"]), (&"onnx.Mystery".into(), &"float32".into()));
    assert_eq!((&of("p")["shape"], &of("p")["op"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let (out, _) = ends(anfora(&["check", path, "--stats=json"]), 0);
    assert!(!out.contains("values"), "{out}");
}

#[test]
fn text_goes_through_pipes() {
    let (program, _) = ends(anfora(&["gen", "chain", "200"]), 0);
    assert!(program.starts_with("def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {"), "{program}");
    assert!(program.contains("dataflow {"));
    let passes = "FoldConstant,EliminateCommonSubexpr,DeadCodeElimination";
    let (optimised, err) = ends(with_input(&["opt", "-", "--passes", passes, "--quiet"], &program), 0);
    assert_eq!(err, "");
    assert!(optimised.matches("let ").count() < 120);
    let (again, _) = ends(with_input(&["opt", "-", "--passes", passes, "--quiet"], &optimised), 0);
    assert_eq!(again, optimised, "the pipeline is idempotent");
    let (same, _) = ends(with_input(&["convert", "-"], &program), 0);
    assert_eq!(same, program);
}

#[test]
fn random_programs_are_reproducible_and_differ_by_seed() {
    let (a, _) = ends(anfora(&["gen", "random", "60", "--seed", "3"]), 0);
    let (b, _) = ends(anfora(&["gen", "random", "60", "--seed", "3"]), 0);
    let (c, _) = ends(anfora(&["gen", "random", "60", "--seed", "4"]), 0);
    assert_eq!(a, b);
    assert_ne!(a, c);
}

#[test]
fn diff_ignores_names_and_finds_every_difference() {
    let dir = Scratch::new("diff");
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let a = write("a.anf", "def @main(%x: int32) { let %y = add(%x, %x); multiply(%y, %y) }");
    let b = write("b.anf", "def @main(%u: int32) { let %v = add(%u, %u); multiply(%v, %v) }");
    let c = write("c.anf", "def @main(%x: int32) { let %y = add(%x, 1); multiply(%y, %y) }");
    let (out, _) = ends(anfora(&["diff", &a, &b]), 0);
    assert_eq!(out, "");
    let (out, _) = ends(anfora(&["diff", &a, &c]), 1);
    assert_eq!(out, "@main %y: operand 1 %x -> 1\n");
    let (out, _) = ends(anfora(&["diff", &a, &c, "--json"]), 1);
    let found: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    let item = &found["functions"][0]["items"][0];
    assert_eq!((&item["left"], &item["changes"][0]["index"]), (&"y".into(), &1.into()), "{out}");
    let (out, _) = ends(anfora(&["diff", &a, &b, "--json"]), 0);
    assert_eq!(out, "{\"module\":[],\"functions\":[]}\n");
}

#[test]
fn diff_of_models_reads_like_a_review() {
    let dir = Scratch::new("diff-models");
    let text = |pads: &str, name: &str| {
        format!(
            "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {{
               #[onnx_name=\"{name}\"]
               let %conv1 = nn.conv2d(%x, %w, padding=[{pads}]);
               let %y = nn.relu(%conv1);
               %y
             }}"
        )
    };
    let model = |file: &str, text: String| {
        let (source, path) = (dir.path(&format!("{file}.anf")), dir.path(&format!("{file}.onnx")));
        std::fs::write(&source, text).unwrap();
        ends(anfora(&["convert", &source, "-o", &path]), 0);
        path
    };
    let (a, b) = (model("a", text("0, 0, 0, 0", "conv_a")), model("b", text("1, 1, 1, 1", "conv_b")));
    let (out, _) = ends(anfora(&["diff", &a, &b]), 1);
    assert_eq!(out, "@main %conv1: attribute padding [0, 0, 0, 0] -> [1, 1, 1, 1]\n");
    let (out, _) = ends(anfora(&["diff", &a, &b, "--metadata"]), 1);
    assert!(out.contains("#[onnx_name] \"conv_a\" -> \"conv_b\""), "{out}");
}

#[test]
fn a_program_is_run_on_the_inputs_that_it_is_given() {
    let dir = Scratch::new("run");
    let program = dir.join("double.anf");
    std::fs::write(&program, "def @main(%x: Tensor[(3,), float32]) { add(%x, %x) }").unwrap();
    let program = program.to_str().unwrap();
    let (first, second) = (dir.join("first"), dir.join("second"));
    let (out, _) = ends(anfora(&["run", program, "--random", "1", "-o", first.to_str().unwrap()]), 0);
    assert!(out.contains("float32") && out.contains('3'), "{out}");
    let input = format!("x={}", first.join("output_0.npy").display());
    ends(anfora(&["run", program, "--input", &input, "-o", second.to_str().unwrap()]), 0);
    let values = |d: &Path| -> Vec<f32> {
        let bytes = std::fs::read(d.join("output_0.npy")).unwrap();
        let data = &bytes[bytes.len() - 12..];
        data.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
    };
    let doubled: Vec<f32> = values(&first).iter().map(|v| v + v).collect();
    assert_eq!(values(&second), doubled);
    assert!(doubled.iter().any(|v| *v != 0.0));

    let (_, err) = ends(anfora(&["run", program, "--input", "y=nowhere.npy"]), 1);
    assert!(err.contains('y') && err.contains('x'), "{err}");
}

#[test]
fn a_result_that_no_memory_holds_is_shown_if_it_is_one_number() {
    let dir = Scratch::new("splat");
    for body in [
        "dense<Tensor[(4000000000, 4000000000), float32]>[1]",
        "nn.softmax(dense<Tensor[(4000000000, 2), float32]>[0.1])",
    ] {
        let program = format!("def @main() {{ {body} }}");
        let (out, _) = ends(with_input(&["run", "-"], &program), 0);
        assert!(out.starts_with("output 0: float32 [4000000000, "), "{out}");
        let folder = dir.path("outputs");
        let (_, err) = ends(with_input(&["run", "-", "-o", &folder], &program), 1);
        assert!(err.contains("output 0") && err.contains("8 GiB") && err.contains("--output"), "{err}");
        assert!(!Path::new(&folder).exists());
    }
    let shown = |body: &str| ends(with_input(&["run", "-"], &format!("def @main() {{ {body} }}")), 0).0;
    let half = shown("dense<Tensor[(4000000000,), float32]>[0.5]");
    assert!(half.ends_with("min 0.5 max 0.5 mean 0.500000\n"), "{half}");
    let digest = |elements: &str| shown(&format!("dense<Tensor[(2,), int64]>[{elements}]"));
    assert_eq!(digest("3"), digest("3, 3"));
    assert_ne!(digest("3"), digest("4"));
    assert_ne!(digest("3").rsplit(' ').next(), shown("dense<Tensor[(3,), int64]>[3]").rsplit(' ').next());
}

#[test]
fn a_large_input_is_not_drawn() {
    for ty in ["Tensor[(4000000000,), int8]", "Tensor[(8000000000,), bool]", "Tensor[(1000000000,), float32]"] {
        let (_, err) = ends(with_input(&["run", "-"], &format!("def @main(%x: {ty}) {{ 1f }}")), 1);
        assert!(err.contains("cannot be drawn: it is too large; give it with --input x=FILE"), "{err}");
    }
}

#[test]
fn mistakes_are_explained_and_leave_no_output() {
    let dir = Scratch::new("mistakes");
    let out_file = dir.join("out.onnx");
    let cases: [(&str, &str, &[&str]); 4] = [
        ("a.anf", "def @main(%x: int32) { let %y = ad(%x, %x); %y }", &["ad", "did you mean `add`", "a.anf:1:"]),
        ("b.anf", "def @main(%x: int32) { let %y = add(%x, %z); %y }", &["%z", "b.anf:1:"]),
        ("c.anf", "def @main(%x: int32) { add(%x, 1.5f) }", &["float32", "int32"]),
        ("d.onnx", "this is no protobuf", &["d.onnx"]),
    ];
    for (name, contents, expected) in cases {
        let path = dir.join(name);
        std::fs::write(&path, contents).unwrap();
        let output = anfora(&["opt", path.to_str().unwrap(), "-o", out_file.to_str().unwrap()]);
        let (out, err) = ends(output, 1);
        assert_eq!(out, "");
        for part in expected {
            assert!(err.contains(part), "{name}: {err}");
        }
        assert!(!out_file.exists(), "{name} left an output");
    }
    let (_, err) = ends(anfora(&["opt", dir.join("absent.anf").to_str().unwrap()]), 1);
    assert!(err.contains("absent.anf"), "{err}");
    let (_, err) = ends(anfora(&["opt", "-", "--passes", "FoldConstants"]), 2);
    assert_eq!(err.matches("did you mean `FoldConstant`").count(), 1, "{err}");
    let (_, err) = ends(anfora(&["opt", "-", "--disable", "FoldConstants"]), 2);
    assert!(err.contains("FoldConstant"), "{err}");
    let (_, err) = ends(anfora(&["opt", "-", "--config", "FoldConstant.max_groth_bytes=1"]), 2);
    assert!(err.contains("FoldConstant.max_growth_bytes"), "{err}");
    let (_, err) = ends(anfora(&["gen", "chian", "3"]), 2);
    assert!(err.contains("did you mean `chain`"), "{err}");
    ends(anfora(&["frobnicate"]), 2);
}

#[test]
fn reports_are_printed_when_asked_for() {
    let program = "def @main(%x: int32) { let %a = add(1, 2); let %d = add(%x, %x); multiply(%x, %a) }";
    let (out, err) =
        ends(with_input(&["opt", "-", "--timing", "--stats", "--print-ir-after", "FoldConstant"], program), 0);
    assert!(out.contains("multiply(%x, 3)"), "{out}");
    assert!(err.contains("// after FoldConstant"), "{err}");
    assert!(err.contains("FoldConstant") && err.contains("folded") && err.contains("% up"), "{err}");
    let (_, err) = ends(with_input(&["opt", "-", "--quiet", "--stats=json", "--emit", "none"], program), 0);
    let stats: serde_json::Value = serde_json::from_str(&err).expect("JSON in a line");
    assert!(
        stats.as_array().expect("a list").iter().any(|row| row["counter"] == "folded" && row["value"] == 1),
        "{err}"
    );
    let (_, err) = ends(with_input(&["opt", "-", "--quiet", "--timing=json", "--emit", "none"], program), 0);
    assert!(serde_json::from_str::<serde_json::Value>(&err).is_ok(), "{err}");
    for verify in ["--verify-each", "--verify-each=false"] {
        ends(with_input(&["opt", "-", "--quiet", verify], program), 0);
    }
    let (_, err) = ends(with_input(&["opt", "-", "--print-changed", "--passes", "O1"], program), 0);
    assert!(err.contains("// after DeadCodeElimination") && !err.contains("// after FoldConstant"), "{err}");
    let (_, err) = ends(anfora(&["opt", "-", "--print-ir-after", "FoldConstants"]), 2);
    assert!(err.contains("FoldConstant"), "{err}");
}

#[test]
fn lists_name_what_there_is() {
    let (passes, _) = ends(anfora(&["passes"]), 0);
    for name in
        ["ToANormalForm", "FoldConstant", "EliminateCommonSubexpr", "DeadCodeElimination", "CanonicalizeBindings"]
    {
        assert!(passes.lines().any(|l| l.starts_with(name)), "{passes}");
    }
    let (ops, _) = ends(anfora(&["ops", "--json"]), 0);
    let names: Vec<String> = ops
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).expect("one object per line")["name"].to_string())
        .collect();
    assert!(names.contains(&"\"nn.conv2d\"".to_string()));
    let (pipelines, _) = ends(anfora(&["pipelines"]), 0);
    assert!(pipelines.contains("O2"));
    let (configs, _) = ends(anfora(&["configs"]), 0);
    assert!(configs.contains("FoldConstant.max_growth_bytes"));
    let (known, _) = ends(anfora(&["onnx-ops"]), 0);
    assert!(known.lines().any(|l| l.starts_with("com.microsoft.Gelu ") && l.ends_with("versions 1 to 1, pure")));
    let (known, _) = ends(anfora(&["onnx-ops", "--json"]), 0);
    let known: Vec<serde_json::Value> =
        known.lines().map(|l| serde_json::from_str(l).expect("one object per line")).collect();
    let dropout = known.iter().find(|k| k["operator"] == "Dropout" && k["to"] == 9).expect("it is known");
    assert_eq!(dropout["outputs"], serde_json::json!(["of 0", "of 0"]));
    assert_eq!((&dropout["pure"], &dropout["repeats"]), (&false.into(), &false.into()));
}

#[test]
fn who_stops_reading_gets_no_complaint() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_anfora"))
        .args(["gen", "chain", "100000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    let (_, err) = ends(output, 0);
    assert_eq!(err, "");
}

#[test]
fn stress_prints_a_line_an_operation() {
    // The stack has room for the frames of a build without optimisation.
    let arguments = ["stress", "--depth", "1000", "--stack-kib", "128", "--shape", "chain", "--shape", "nested-if"];
    let (out, err) =
        ends(anfora(&[&arguments[..], &["--operation", "print", "--operation", "FoldConstant"]].concat()), 0);
    assert!(err.contains("4 pairs") && err.contains("1000 deep") && err.contains("128 KiB: all survive"), "{err}");
    let rows: Vec<&str> = out.lines().collect();
    assert_eq!(rows.len(), 3, "{out}");
    assert!(rows[0].contains("ns/binding") && rows[0].contains("growth"), "{out}");
    assert!(rows[1].starts_with("print") && rows[2].starts_with("FoldConstant"), "{out}");
    assert!(rows[1..].iter().all(|r| r.contains(" 2/2 ")) && rows.iter().all(|r| r.len() <= 80), "{out}");

    let (out, _) = ends(anfora(&[&arguments[..], &["--operation", "print", "--json"]].concat()), 0);
    let cells: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(cells.as_array().map(Vec::len), Some(2));
    assert_eq!((&cells[0]["operation"], &cells[0]["size"]), (&"print".into(), &1000.into()));

    // What depends on nothing but the depth runs once.
    let operations = ["--operation", "dimensions", "--operation", "parse"];
    let (out, err) = ends(anfora(&[&arguments[..], &operations].concat()), 0);
    assert!(out.contains(" 1/1 ") && out.contains(" 2/2 ") && err.contains("3 pairs"), "{out}{err}");

    let (_, err) = ends(anfora(&["stress", "--operation", "FoldConstants"]), 2);
    assert!(err.contains("did you mean `FoldConstant`?"), "{err}");
}

#[test]
fn a_limit_on_passes_is_bisected_through_what_they_leave() {
    let dir = Scratch::new("bisect");
    let folder = dir.join("dump");
    let folder = folder.to_str().unwrap();
    let program = "def @f(%x: int32) { let %a = add(1, 2); let %b = negative(%x); add(%a, %b) }";
    let passes = "FoldConstant,EliminateCommonSubexpr,DeadCodeElimination";
    let arguments =
        ["opt", "-", "--passes", passes, "--bisect-limit", "1", "--dump-dir", folder, "--emit", "none", "--quiet"];
    let (_, err) = ends(with_input(&arguments, program), 0);
    assert_eq!(err.trim(), "bisect: 1 of 3 passes ran; the last was 1, FoldConstant");
    let read = |name: &str| std::fs::read_to_string(Path::new(folder).join(name)).expect("a file of the folder");
    assert!(read("000_input.anf").contains("add(1, 2)"));
    assert!(read("001_FoldConstant.anf").contains("add(3, %b)"));
    assert_eq!(std::fs::read_dir(folder).expect("the folder").count(), 2);
}

#[test]
fn the_memory_of_a_program_is_planned_and_a_program_runs_inside_its_plan() {
    let dir = Scratch::new("plan");
    let path = dir.join("plan.anf");
    let text = "def @main(%x: Tensor[(n, 8), float32]) {
      let %a = exp(%x);
      let %b = tanh(%a);
      let %c = matmul(%b, %w);
      (%c, %b)
    }"
    .replace("%w", "dense<Tensor[(8, 1), float32]>[1]");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();

    let (out, _) = ends(anfora(&["plan", path, "--bound", "n=4", "--json"]), 0);
    let plan: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    let main = &plan["functions"][0];
    assert_eq!((&main["values"], &main["arena"]), (&serde_json::json!(272), &serde_json::json!(144)), "{out}");
    assert_eq!(main["bindings"][0]["place"], main["bindings"][1]["place"], "%b is written over %a");
    let (out, _) = ends(anfora(&["plan", path, "--bound", "n=4"]), 0);
    assert!(out.contains("arena") && out.contains("144 B") && out.lines().all(|l| l.chars().count() <= 60), "{out}");
    assert!(out.contains("%b"), "the chart names bindings: {out}");
    let (out, _) = ends(anfora(&["plan", path]), 0);
    assert!(out.contains("unbounded: 2"), "{out}");
    let (_, err) = ends(anfora(&["plan", path, "--bound", "m=4"]), 1);
    assert!(err.contains("no symbolic dimension is called `m`"), "{err}");

    let plain = ends(anfora(&["run", &example("residual.onnx")]), 0);
    let inside = ends(anfora(&["run", &example("residual.onnx"), "--in-plan"]), 0);
    assert_eq!(plain.0, inside.0);
    assert!(inside.1.contains("ran in a buffer of"), "{}", inside.1);
}

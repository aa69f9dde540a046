//! The reports of `anfora opt` on the passes that it runs, and its messages for misspelt names.

use std::path::Path;

use expect_test::expect;

use crate::program::{Scratch, said, with_input};

/// Runs the program on an input. Returns the exit status, standard output and standard error.
fn anfora(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let output = with_input(arguments, input);
    let status = output.status.code();
    let (out, err) = said(output);
    (status, out, err)
}

/// Returns the names of the files in a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("it is there");
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Replaces numbers with a fraction, which differ from run to run, and the space around them.
fn masked(text: &str) -> String {
    let is_time = |word: &str| word.parse::<f64>().is_ok() && word.contains('.');
    let lines = text.lines().map(|line| {
        assert!(line.chars().count() <= 80, "{line}");
        match line.split_whitespace().any(is_time) {
            false => format!("{line}\n"),
            true => {
                let words: Vec<&str> = line.split_whitespace().map(|w| if is_time(w) { "#" } else { w }).collect();
                format!("{}\n", words.join(" "))
            }
        }
    });
    lines.collect()
}

const PROGRAM: &str = "\
def @main(%x: int32) -> int32 {
  let %a = add(1, 2);
  let %d = add(%x, %x);
  let %e = add(%x, %x);
  let %s = add(%d, %e);
  let %r = multiply(%s, %a);
  %r
}
def @other(%x: int32) -> int32 {
  let %unused = add(%x, %x);
  %x
}
";

#[test]
fn a_summary_says_what_ran_and_what_became_of_the_program() {
    let passes = "ToANormalForm,FoldConstant,fixpoint<4>(EliminateCommonSubexpr,DeadCodeElimination)";
    let (status, _, err) = anfora(&["opt", "-", "--passes", passes, "--emit", "none"], PROGRAM);
    assert_eq!(status, Some(0), "{err}");
    let (first, others) = err.split_once('\n').expect("a line for each pass");
    // The times take the columns that they need of the 80; the pipeline has the rest.
    let (pipeline, times) = first.split_once('…').expect("the pipeline is too long for a line");
    assert_eq!(first.chars().count(), 80, "{first}");
    assert!(pipeline.len() > 40 && format!("-: {passes}").starts_with(pipeline), "{first}");
    assert_eq!(masked(times), "in # ms, passes # ms\n", "{first}");
    expect![[r#"
        ToANormalForm unchanged # ms
        FoldConstant changed # ms
        EliminateCommonSubexpr changed 1 of 2 times # ms
        DeadCodeElimination changed 1 of 2 times # ms
          bindings                             6 -> 3
    "#]]
    .assert_eq(&masked(others));
}

#[test]
fn reports_are_tables_of_80_columns() {
    let passes = "FoldConstant,fixpoint<4>(EliminateCommonSubexpr,DeadCodeElimination)";
    let arguments = ["opt", "-", "--passes", passes, "--emit", "none", "--quiet", "--timing", "--stats"];
    let (status, _, err) = anfora(&arguments, PROGRAM);
    assert_eq!(status, Some(0), "{err}");
    expect![[r#"
          total ms    self ms     %  % up     runs  pass
        # # # # 1 pipeline
        # # # # 1 FoldConstant
        # # # # 1 fixpoint<4>
        # # # # 2 EliminateCommonSubexpr
        # # # # 2 DeadCodeElimination
             value  pass                    counter
                 1  FoldConstant            folded
                 0                          branches
                 4                          bytes
                 1  EliminateCommonSubexpr  merged
                 1  DeadCodeElimination     bindings
                 0                          functions
    "#]]
    .assert_eq(&masked(&err));
    let (_, _, err) = anfora(&["opt", "-", "--passes", passes, "--emit", "none", "--quiet", "--memory"], PROGRAM);
    assert!(err.lines().all(|l| l.chars().count() <= 80), "{err}");
    assert!(err.starts_with("    before      after      change  pass\n"), "{err}");
    let (_, _, err) = anfora(&["opt", "-", "--passes", passes, "--emit", "none", "--quiet", "--memory=json"], PROGRAM);
    let memory: serde_json::Value = serde_json::from_str(&err).expect("JSON in a line");
    assert!(memory["runs"][0]["before_bytes"].as_u64().is_some_and(|n| n > 0), "{err}");
}

#[test]
fn what_changed_is_shown_as_a_diff() {
    let arguments = ["opt", "-", "--passes", "FoldConstant,DeadCodeElimination", "--emit", "none", "--quiet"];
    let (status, _, err) = anfora(&[&arguments[..], &["--print-changed=diff"]].concat(), PROGRAM);
    assert_eq!(status, Some(0), "{err}");
    expect![[r#"
        // after FoldConstant
        --- @main before FoldConstant
        +++ @main after FoldConstant
        @@ -1,8 +1,7 @@
         def @main(%x: Tensor[(), int32]) -> Tensor[(), int32] {
        -  let %a = add(1, 2);
           let %d = add(%x, %x);
           let %e = add(%x, %x);
           let %s = add(%d, %e);
        -  let %r = multiply(%s, %a);
        +  let %r = multiply(%s, 3);
           %r
         }

        // after DeadCodeElimination
        --- @other before DeadCodeElimination
        +++ @other after DeadCodeElimination
        @@ -1,4 +1,3 @@
         def @other(%x: Tensor[(), int32]) -> Tensor[(), int32] {
        -  let %unused = add(%x, %x);
           %x
         }

    "#]]
    .assert_eq(&err);
    let (_, _, err) =
        anfora(&[&arguments[..], &["--print-changed=diff", "--print-functions", "@other"]].concat(), PROGRAM);
    assert!(err.contains("@other after DeadCodeElimination") && !err.contains("@main"), "{err}");
    let (_, _, err) =
        anfora(&[&arguments[..], &["--print-ir-after", "*", "--print-functions=other"]].concat(), PROGRAM);
    assert_eq!(err.matches("def @other").count(), 2, "{err}");
    assert!(!err.contains("@main"), "{err}");
}

#[test]
fn long_constants_are_left_out_unless_they_are_asked_for() {
    let values: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let program = format!(
        "def @main() {{ let %a = dense<Tensor[(20,), int32]>[{}]; let %b = negative(%a); %a }}",
        values.join(", ")
    );
    let arguments =
        ["opt", "-", "--passes", "DeadCodeElimination", "--emit", "none", "--quiet", "--print-ir-after", "*"];
    let (_, _, err) = anfora(&arguments, &program);
    assert!(err.contains("[elided 20]"), "{err}");
    for shown in ["20", "all"] {
        let (_, _, err) = anfora(&[&arguments[..], &["--print-literals", shown]].concat(), &program);
        assert!(!err.contains("elided") && err.contains("19"), "{err}");
    }
}

/// A pipeline whose second pass fails: the program has no function `@nowhere`.
const FAILING: &str = "FoldConstant,BindParams{function=nowhere,params=\"%x=1\"}";

#[test]
fn a_failing_pass_leaves_every_report() {
    let folder = Scratch::new("failing");
    let (dump, trace) = (folder.path("dump"), folder.path("trace.json"));
    let arguments = [
        "opt",
        "-",
        "--passes",
        FAILING,
        "--timing",
        "--stats",
        "--memory",
        "--print-changed=diff",
        "--dump-dir",
        &dump,
        "--trace",
        &trace,
        "--bisect-limit",
        "9",
    ];
    let (status, out, err) = anfora(&arguments, PROGRAM);
    assert_eq!(status, Some(1), "{err}");
    assert_eq!(out, "");
    for part in [
        "--- @main before FoldConstant",
        "// BindParams failed, and its changes were rolled back",
        "BindParams (failed)",
        "folded",
        "bisect: 2 of 2 passes ran",
        "failed  ",
        "error: pass `BindParams` failed",
    ] {
        assert!(err.contains(part), "`{part}` is not in\n{err}");
    }
    let files = files(Path::new(&dump));
    assert_eq!(files, ["000_input.anf", "001_FoldConstant.anf", "002_BindParams.error.txt"]);
    let trace: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&trace).unwrap()).expect("JSON");
    let outcomes: Vec<_> = trace["traceEvents"].as_array().unwrap().iter().map(|e| &e["args"]["outcome"]).collect();
    assert_eq!(outcomes[1..], ["failed", "changed", "failed"]);
}

#[test]
fn dumps_take_the_place_of_those_of_an_earlier_run() {
    let folder = Scratch::new("dumps");
    let dump = folder.display().to_string();
    std::fs::write(folder.path("notes.txt"), "mine").unwrap();
    let run = |passes: &str| {
        let (status, _, err) =
            anfora(&["opt", "-", "--passes", passes, "--emit", "none", "--quiet", "--dump-dir", &dump], PROGRAM);
        assert_eq!(status, Some(0), "{err}");
    };
    run("ToANormalForm,FoldConstant,DeadCodeElimination");
    assert_eq!(files(&folder).len(), 5);
    run("DeadCodeElimination");
    assert_eq!(files(&folder), ["000_input.anf", "001_DeadCodeElimination.anf", "notes.txt"]);
    // A dump can be read as a program.
    let dumped = Path::new(&dump).join("001_DeadCodeElimination.anf");
    let (status, _, err) = anfora(&["check", dumped.to_str().unwrap()], "");
    assert_eq!(status, Some(0), "{err}");
}

#[test]
fn an_interval_of_passes_can_be_run() {
    let passes = "ToANormalForm,FoldConstant,EliminateCommonSubexpr,DeadCodeElimination";
    for (limit, said) in [
        ("2", "bisect: 2 of 4 passes ran; the last was 2, FoldConstant\n"),
        ("3-3", "bisect: 1 of 4 passes ran; the last was 3, EliminateCommonSubexpr\n"),
        ("2-9", "bisect: 3 of 4 passes ran; the last was 4, DeadCodeElimination\n"),
        ("0", "bisect: 0 of 4 passes ran\n"),
    ] {
        let (status, _, err) =
            anfora(&["opt", "-", "--passes", passes, "--emit", "none", "--quiet", "--bisect-limit", limit], PROGRAM);
        assert_eq!((status, err.as_str()), (Some(0), said), "{limit}");
    }
}

#[test]
fn threads_do_not_show() {
    let (status, chain, _) = anfora(&["gen", "chain", "100"], "");
    assert_eq!(status, Some(0));
    let program: String = (0..60).map(|i| chain.replace("@main", &format!("@f{i}"))).collect();
    let optimised = |threads: &str| {
        let passes = "FoldConstant,EliminateCommonSubexpr,CanonicalizeBindings,ToGraphNormalForm";
        let (status, out, err) =
            anfora(&["opt", "-", "--passes", passes, "--threads", threads, "--emit", "module"], &program);
        assert_eq!(status, Some(0), "{err}");
        out
    };
    let one = optimised("1");
    assert!(one.contains("def @f59"), "{one}");
    assert_eq!(["0", "2", "7"].map(optimised), [&*one; 3]);
    for threads in ["257", "-1", "many"] {
        let (status, _, err) = anfora(&["opt", "-", "--threads", threads], &program);
        assert_eq!(status, Some(2), "{err}");
    }
}

/// A program in which nothing is folded, because no byte may be added. Its constants have other
/// users, so a fold frees nothing.
const UNFOLDED: &str = "def @main(%x: Tensor[(8,), float32]) {
  let %long_name_of_what_is_not_folded = add(dense<Tensor[(8,), float32]>[1], dense<Tensor[(8,), float32]>[2]);
  let %a = multiply(%x, dense<Tensor[(8,), float32]>[1]);
  let %b = multiply(%a, dense<Tensor[(8,), float32]>[2]);
  add(%b, %long_name_of_what_is_not_folded)
}";

#[test]
fn remarks_are_shown_in_full_or_clipped() {
    let run = |more: &[&str]| {
        let no_byte = ["--config", "FoldConstant.max_growth_bytes=0"];
        let (status, out, err) = anfora(
            &[&["opt", "-", "--passes", "FoldConstant", "--emit", "none"], &no_byte[..], more].concat(),
            UNFOLDED,
        );
        assert_eq!((status, out.as_str()), (Some(0), ""), "{err}");
        err
    };
    let summary = run(&[]);
    assert!(summary.contains("\n  FoldConstant: remark: `add` on constants was not folded"), "{summary}");
    assert!(summary.lines().all(|line| line.chars().count() <= 80), "{summary}");
    let text = run(&["--remarks"]);
    let beginning =
        "remark: FoldConstant: `add` on constants was not folded: the result would take 4 bytes\n --> <stdin>:2:3";
    assert!(text.starts_with(beginning), "{text}");
    assert!(text.contains("= help: raise FoldConstant.max_growth_bytes"), "{text}");
    assert!(!text.contains("FoldConstant: remark"), "a summary does not repeat them: {text}");
    let json: serde_json::Value = serde_json::from_str(&run(&["--remarks=json", "--quiet"])).unwrap();
    assert_eq!(json["pass"], "FoldConstant");
    assert_eq!((&json["line"], &json["binding"]), (&2.into(), &"long_name_of_what_is_not_folded".into()));
}

#[test]
fn passes_that_do_not_run_cannot_be_printed_around() {
    let run = |name: &str| {
        let (status, _, err) =
            anfora(&["opt", "-", "--passes", "O1", "--print-ir-after", name, "--emit", "none", "--quiet"], PROGRAM);
        assert_eq!(status, Some(0), "{err}");
        err
    };
    assert_eq!(run("FuseOps"), "`FuseOps` did not run, so the program was not printed around it\n");
    for ran in ["O1", "DeadCodeElimination", "*"] {
        assert!(!run(ran).contains("did not run"));
    }
}

#[test]
fn a_trace_that_cannot_be_written_takes_nothing_with_it() {
    let folder = Scratch::new("trace");
    let (trace, output) = (folder.path("no/such/trace.json"), folder.path("out.anf"));
    let (status, _, err) = anfora(&["opt", "-", "--from", "anf", "--trace", &trace, "-o", &output], PROGRAM);
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("cannot write") && err.contains("trace.json: ") && err.contains("wrote "), "{err}");
    assert_eq!(files(&folder), ["out.anf"]);
}

#[test]
fn what_is_misspelt_is_told_with_what_was_meant() {
    let cases: &[(&[&str], &str)] = &[
        (&["--passes", "FoldConstants"], "did you mean `FoldConstant`?"),
        (&["--passes", "FoldConstant{max_growth=1}"], "FoldConstant"),
        (&["--passes", "EliminateCommonSubexpr{comutative=true}"], "did you mean `commutative`?"),
        (&["--passes", "fixpont<4>(FoldConstant)"], "did you mean `fixpoint`?"),
        (&["--passes", "O22"], "did you mean `O2`?"),
        (&["--passes", "phase00"], "did you mean `phase0`?"),
        (&["--disable", "FoldConstants"], "did you mean `FoldConstant`?"),
        (&["--require", "DeadCodeEliminaton"], "did you mean `DeadCodeElimination`?"),
        (&["--config", "FoldConstant.max_groth_bytes=1"], "did you mean `FoldConstant.max_growth_bytes`?"),
        (&["--config", "FoldConstant.max_growth_bytes=much"], "takes a whole number, also as `16KiB`, or `unlimited`"),
        (&["--config", "FoldConstant.max_growth_bytes"], "KEY=VALUE"),
        (&["--print-ir-before", "FoldConstants"], "did you mean `FoldConstant`?"),
        (&["--print-ir-after", "FuseOp"], "did you mean `FuseOps`?"),
        (&["--print-ir-after", "*", "--print-functions", "@man"], "did you mean `main`?"),
        (&["--print-changed=dif"], "diff"),
        (&["--print-literals", "some"], "a number of elements or `all`"),
        (&["--timing=jsn"], "json"),
        (&["--stats=jsn"], "json"),
        (&["--memory=txt"], "text"),
        (&["--bisect-limit", "few"], "a number of passes"),
        (&["--bisect-limit", "5-3"], "a number of passes"),
        (&["--emit", "modul"], "module"),
        (&["--timng"], "--timing"),
        (&["--print-change"], "--print-changed"),
        (&["--dump-dri", "x"], "--dump-dir"),
        (&["-O4"], "0..=3"),
    ];
    for (arguments, said) in cases {
        let (status, out, err) = anfora(&[&["opt", "-"], *arguments].concat(), PROGRAM);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: `{said}` is not in\n{err}");
    }
    for (command, said) in [("pases", "passes"), ("config", "configs"), ("pipeline", "pipelines")] {
        let (status, _, err) = anfora(&[command], "");
        assert_eq!(status, Some(2), "{err}");
        assert!(err.contains(&format!("'{said}'")), "{err}");
    }
}

#[test]
fn lists_say_what_settings_take() {
    let json = |command: &str| -> Vec<serde_json::Value> {
        let (status, out, err) = anfora(&[command, "--json"], "");
        assert_eq!(status, Some(0), "{err}");
        out.lines().map(|l| serde_json::from_str(l).expect("one object per line")).collect()
    };
    let configs = json("configs");
    let depth = configs.iter().find(|c| c["key"] == "FuseOps.max_depth").expect("FuseOps has a depth");
    assert_eq!(depth["type"], "int");
    assert!(depth["min"].is_i64() && depth["max"].is_i64() && depth["default"].is_string(), "{depth}");
    let bytes = configs.iter().find(|c| c["key"] == "FoldConstant.max_growth_bytes").expect("there is a budget");
    assert_eq!(bytes["type"], "limit");
    for config in &configs {
        assert!(config["doc"].as_str().is_some_and(|d| !d.is_empty()), "{config}");
    }
    let passes = json("passes");
    let cse = passes.iter().find(|p| p["name"] == "EliminateCommonSubexpr").expect("there is CSE");
    assert_eq!((&cse["options"][0]["key"], &cse["options"][0]["type"]), (&"commutative".into(), &"bool".into()));
    let ops = json("ops");
    let conv = ops.iter().find(|o| o["name"] == "nn.conv2d").expect("there are convolutions");
    assert!(
        conv["attributes"].as_array().unwrap().iter().all(|a| a["name"].is_string() && a["type"].is_string()),
        "{conv}"
    );
    assert_eq!(conv["operands"]["min"], 2);
    let named = |name: &str| ops.iter().find(|o| o["name"] == name).expect("it is listed");
    let slope = &named("nn.leaky_relu")["attributes"][0];
    assert_eq!((&slope["name"], &slope["type"], &slope["default"]), (&"alpha".into(), &"float".into(), &0.01.into()));
    assert_eq!(named("zeros")["attributes"][1]["default"], "float32");
    assert_eq!((&named("divide")["may_fail"], &named("add")["may_fail"]), (&true.into(), &false.into()));
    assert_eq!((&named("print")["pure"], &named("print")["kernel"]), (&false.into(), &false.into()));
    let add = &named("add")["onnx"];
    let is_add = |o: &serde_json::Value| o["operator"] == "Add" && o["from"] == 7 && o["import"] == true;
    assert!(add.as_array().unwrap().iter().any(is_add), "{add}");
    let (_, out, _) = anfora(&["ops"], "");
    assert!(out.contains("1 operand, pure, fused as ElemWise, has a kernel"), "{out}");
    assert!(out.contains("alpha: float = 0.01  slope where it is negative"), "{out}");
    assert!(out.contains("ONNX LeakyRelu, versions 6 to 28: read and written"), "{out}");
    assert!(out.contains("ONNX Add, version 6: read and written"), "{out}");
    assert!(
        json("pipelines")
            .iter()
            .any(|p| p["name"] == "O2" && p["doc"].is_string() && p["options"] == serde_json::json!([]))
    );
    let pipelines = json("pipelines");
    let phase1 = pipelines.iter().find(|p| p["name"] == "phase1").expect("it is listed");
    assert_eq!(phase1["options"][0]["values"], serde_json::json!(["unchanged", "float16", "bfloat16"]));
    let (_, out, _) = anfora(&["pipelines"], "");
    assert!(out.contains("{layout=unchanged}  one of unchanged, NCHW, NHWC: the layout that ConvertLayout"), "{out}");

    let (_, out, _) = anfora(&["configs"], "");
    let line = out.lines().find(|l| l.starts_with("FuseOps.max_depth ")).expect("it is listed");
    assert!(line.contains("a whole number from") && line.contains("default"), "{line}");
}

#[test]
fn the_program_is_printed_in_the_middle_of_a_pipeline() {
    let pipeline = "FoldConstant,PrintIR{header=\"after folding\"},DeadCodeElimination";
    let (status, out, err) = anfora(&["opt", "-", "--passes", pipeline, "--quiet"], PROGRAM);
    assert_eq!(status, Some(0), "{err}");
    assert!(err.starts_with("// PrintIR: after folding\ndef @main("), "{err}");
    assert!(!out.contains("PrintIR"), "{out}");
    let (status, _, err) = anfora(&["opt", "-", "--passes", "PrintIR{headr=a}"], PROGRAM);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("did you mean `header`?"), "{err}");
}

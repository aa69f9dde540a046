//! `anfora bisect` and `anfora reduce`.

use crate::program::{Scratch, anfora, ends};

const PROGRAM: &str = "def @main(%x: Tensor[(4,), float32]) {
  let %a = multiply(%x, 1f);
  let %b = tanh(%a);
  let %c = multiply(%b, 1f);
  let %d = exp(%c);
  let %e = multiply(%d, 1f);
  %e
}";
const WRONG: &str = "SimplifyExpr,BindParams{function=main,params=\"%y=1f\"},DeadCodeElimination";

#[test]
fn a_number_of_rewrites_is_made() {
    let scratch = Scratch::new("limit");
    let program = scratch.file("in.anf", PROGRAM);
    for (limit, left) in [("0", 3), ("1", 2), ("2", 1), ("9", 1)] {
        let (out, _) = ends(anfora(&["opt", &program, "--passes", "SimplifyExpr", "--limit-rewrites", limit]), 0);
        assert_eq!(out.matches("multiply").count(), left, "{out}");
    }
}

#[cfg(unix)]
#[test]
fn a_command_finds_the_wrong_rewrite() {
    let scratch = Scratch::new("bisect");
    let (program, left) = (scratch.file("in.anf", PROGRAM), scratch.path("left.anf"));
    let test = "! grep -q '%c = multiply'";
    let arguments = ["bisect", &program, "--passes", "O1,SimplifyExpr", "--test", test, "-o", &left];
    let (out, err) = ends(anfora(&arguments), 0);
    assert!(
        out.contains("pass:      SimplifyExpr, run 4: SimplifyExpr\nfunction:  @main\nrewrite:   1 of 2 at %c: "),
        "{out}"
    );
    assert!(err.contains("bisect: rewrites: ") && err.contains("runs the pass again"), "{err}");
    let text = std::fs::read_to_string(&left).expect("a reproducer");
    assert!(text.contains("// rewrites: 1\n") && text.contains("%a = multiply"), "{text}");
    let (out, _) = ends(anfora(&["replay", &left]), 0);
    assert_eq!(out, "the pass did not fail, and changed the program\n");
    let (_, err) = ends(anfora(&["bisect", &program, "--test", "false", "-o", &left]), 1);
    assert!(err.contains("the program is right after the whole pipeline"), "{err}");
    let (_, err) = ends(anfora(&["bisect", &program, "--test", "no-such-command-anywhere", "-o", &left]), 1);
    assert!(err.contains("the command `no-such-command-anywhere` cannot be run"), "{err}");
}

#[test]
fn a_failing_pass_is_found() {
    let scratch = Scratch::new("fails");
    let (program, left) = (scratch.file("in.anf", PROGRAM), scratch.path("left.anf"));
    let (out, err) = ends(anfora(&["bisect", &program, "--passes", WRONG, "-o", &left, "--quiet"]), 0);
    assert!(out.starts_with("pass:      BindParams, run 2: BindParams{") && out.contains("none of 2;"), "{out}");
    assert!(out.contains("there is no parameter `%y`") && !err.contains("bisect:"), "{out}{err}");
    let (out, _) = ends(anfora(&["replay", &left]), 1);
    assert_eq!(out, "the pass failed as recorded\n");
    let (_, err) = ends(anfora(&["bisect", &program, "-O3", "-o", &left]), 1);
    assert!(err.contains("the program is right after the whole pipeline"), "{err}");
    let (_, err) = ends(anfora(&["bisect", &program, "--passes", "FoldConstnt"]), 2);
    assert!(err.contains("did you mean `FoldConstant`?"), "{err}");
}

#[test]
fn a_program_is_reduced_while_a_pipeline_fails() {
    let scratch = Scratch::new("reduce");
    let program = scratch.file("in.anf", PROGRAM);
    let (out, err) = ends(anfora(&["reduce", &program, "--fails", WRONG]), 0);
    assert!(out.starts_with("5 bindings in 1 functions became 0 bindings in 1 functions after "), "{out}");
    assert!(err.contains("in.reduced.anf\n") && err.contains("in.reproducer.anf` runs the pass again"), "{err}");
    let (out, _) = ends(anfora(&["replay", &scratch.path("in.reproducer.anf")]), 1);
    assert_eq!(out, "the pass failed as recorded\n");
    ends(anfora(&["check", &scratch.path("in.reduced.anf")]), 0);
    let (_, err) = ends(anfora(&["reduce", &program, "--miscompiles", "O3"]), 1);
    assert!(err.contains("the pipeline does not fail on the program"), "{err}");
    let (_, err) = ends(anfora(&["reduce", &program]), 2);
    assert!(err.contains("--miscompiles"), "{err}");
}

#[cfg(unix)]
#[test]
fn a_model_is_reduced_while_a_command_agrees() {
    let scratch = Scratch::new("reduce-onnx");
    let (model, small) = (scratch.onnx("model", PROGRAM), scratch.path("small.onnx"));
    let (out, _) = ends(anfora(&["reduce", &model, "--test", "grep -q Tanh", "-o", &small, "--timeout", "60"]), 0);
    assert!(out.contains("became 0 bindings in 1 functions"), "{out}");
    let (text, _) = ends(anfora(&["convert", &small, "-o", "-"]), 0);
    assert!(text.contains("tanh(") && !text.contains("exp") && !text.contains("multiply"), "{text}");
    // The program of `--test` is of the format of the output.
    let text = scratch.path("small.anf");
    ends(anfora(&["reduce", &model, "--test", "grep -q tanh", "-o", &text]), 0);
    ends(anfora(&["check", &text]), 0);
    let (_, err) = ends(anfora(&["reduce", &model, "--test", "false", "-o", &text]), 1);
    assert!(err.contains("the command finds no fault in the whole program"), "{err}");
}

/// A reduction that is interrupted writes the smallest program so far, and ends by the signal.
#[cfg(unix)]
#[test]
fn an_interrupted_reduction_writes_its_best() {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    let scratch = Scratch::new("interrupt");
    let calls: String = (1..60).map(|i| format!("let %v{i} = exp(%v{});\n", i - 1)).collect();
    let text = format!("def @main(%x: float32) {{ let %v0 = tanh(%x); {calls} %v59 }}");
    let (program, small) = (scratch.file("in.anf", &text), scratch.path("small.anf"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_anfora"))
        .args(["reduce", &program, "--test", "sleep 0.2; grep -q 'tanh.*' ", "-o", &small])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it was piped")).lines();
    let first = lines.next().expect("it says something").expect("text");
    assert!(first.starts_with("reduce: "), "{first}");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill is there");
    assert!(killed.success());
    assert_eq!(child.wait().expect("it ends").signal(), Some(15));
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert!(rest.iter().any(|line| line.starts_with("interrupted; wrote ")), "{rest:?}");
    let best = std::fs::read_to_string(&small).expect("the smallest program so far");
    assert!(best.contains("tanh") && best.len() < text.len(), "{best}");
    ends(anfora(&["check", &small]), 0);
}

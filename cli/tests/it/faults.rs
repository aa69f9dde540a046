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

/// States that the command cannot judge are skipped: with status 125, after the timeout, and where
/// the result cannot be written in the format of the input.
#[cfg(unix)]
#[test]
fn states_that_cannot_be_judged_are_skipped() {
    let scratch = Scratch::new("undecided");
    let (program, left) = (scratch.file("in.anf", PROGRAM), scratch.path("left.anf"));
    let judge = |two_left: &str| {
        let text = format!("case $(grep -c multiply \"$1\") in 3) exit 1;; 2) {two_left};; *) exit 0;; esac\n");
        format!("sh {}", scratch.file("judge.sh", &text))
    };
    let bisect = |test: &str, more: &[&str]| {
        let arguments = ["bisect", &program, "--passes", "SimplifyExpr", "--test", test, "-o", &left];
        ends(anfora(&[&arguments[..], more].concat()), 0)
    };
    let (out, err) = bisect(&judge("exit 1"), &[]);
    assert!(out.contains("rewrite:   2 of 2 at %e: ") && !out.contains("undecided"), "{out}{err}");
    for (two_left, more) in [("exit 125", &[][..]), ("sleep 60", &["--timeout", "1"][..])] {
        let (out, err) = bisect(&judge(two_left), more);
        assert!(out.contains("rewrite:   2 of 2 at %e: "), "{out}{err}");
        assert!(out.contains("           or one of those before it, from 1 on\nundecided: 1 state"), "{out}{err}");
        assert!(err.contains("undecided after 1 rewrite\n"), "{out}{err}");
        ends(anfora(&["replay", &left]), 0);
    }
    let (_, err) = ends(anfora(&["bisect", &program, "--test", "exit 125;", "-o", &left]), 1);
    assert!(err.contains("the result of the whole pipeline cannot be judged"), "{err}");
}

/// An operator that the interpreter does not know hides all results.
#[test]
fn programs_that_cannot_be_interpreted_are_not_called_right() {
    let scratch = Scratch::new("not-compared");
    let text = "def @main(%x: Tensor[(4,), float32]) {
      let %t = tanh(%x);
      let %a = multiply(%t, 1f);
      let %b: Tensor[(4,), float32] = onnx.Foo(%a);
      %b
    }";
    let (program, left) = (scratch.file("in.anf", text), scratch.path("left.anf"));
    for arguments in [
        vec!["bisect", &program, "--passes", "SimplifyExpr", "-o", &left],
        vec!["reduce", &program, "--miscompiles", "SimplifyExpr"],
    ] {
        let (_, err) = ends(anfora(&arguments), 1);
        assert!(err.contains("not compared: ") && err.contains("onnx.Foo"), "{err}");
        assert!(err.contains("nothing could be compared") && err.contains("give --test"), "{err}");
    }
    // If no pass changes anything, there is nothing to compare.
    let (_, err) = ends(anfora(&["bisect", &program, "--passes", "ToANormalForm", "-o", &left]), 1);
    assert!(err.contains("the program is right after the whole pipeline"), "{err}");
}

/// A file that is no reproducer is not lost.
#[test]
fn other_files_are_not_overwritten_by_reproducers() {
    let scratch = Scratch::new("places");
    let (program, other) = (scratch.file("in.anf", PROGRAM), scratch.file("notes.txt", "keep me"));
    for arguments in [
        vec!["bisect", &program, "--passes", WRONG, "-o", &other],
        vec!["reduce", &program, "--fails", WRONG, "--reproducer", &other],
    ] {
        let (_, err) = ends(anfora(&arguments), 1);
        assert!(err.contains("not a reproducer, and is left as it is"), "{err}");
        assert!(!err.contains("bisect:") && !err.contains("reduce:"), "the search does not begin: {err}");
    }
    assert_eq!(std::fs::read_to_string(&other).expect("it is there"), "keep me");
    // A reproducer is replaced.
    let left = scratch.path("left.anf");
    for _ in 0..2 {
        ends(anfora(&["bisect", &program, "--passes", WRONG, "-o", &left, "--quiet"]), 0);
    }
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
    assert!(out.starts_with("5 bindings in 1 function became 0 bindings in 1 function after "), "{out}");
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
    assert!(out.contains("became 0 bindings in 1 function"), "{out}");
    let (text, _) = ends(anfora(&["convert", &small, "-o", "-"]), 0);
    assert!(text.contains("tanh(") && !text.contains("exp") && !text.contains("multiply"), "{text}");
    // The program of `--test` is of the format of the output.
    let text = scratch.path("small.anf");
    ends(anfora(&["reduce", &model, "--test", "grep -q tanh", "-o", &text]), 0);
    ends(anfora(&["check", &text]), 0);
    let (_, err) = ends(anfora(&["reduce", &model, "--test", "false", "-o", &text]), 1);
    assert!(err.contains("the command finds no fault in the whole program"), "{err}");
}

/// Starts the program, waits for a line that contains a text, ends the program by a signal, and
/// returns the other lines of its standard error.
#[cfg(unix)]
fn interrupted(arguments: &[&str], after: &str) -> Vec<String> {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    let mut child = Command::new(env!("CARGO_BIN_EXE_anfora"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it was piped")).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.contains(after)), "no line contains {after}");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill is there");
    assert!(killed.success());
    assert_eq!(child.wait().expect("it ends").signal(), Some(15));
    lines.collect()
}

/// A reduction that is interrupted writes the smallest program so far, and ends by the signal. So
/// do the processes of the test.
#[cfg(unix)]
#[test]
fn an_interrupted_reduction_writes_its_best() {
    let scratch = Scratch::new("interrupt");
    let calls: String = (1..60).map(|i| format!("let %v{i} = exp(%v{});\n", i - 1)).collect();
    let text = format!("def @main(%x: float32) {{ let %v0 = tanh(%x); {calls} %v59 }}");
    // ONNX writes the operator as `Tanh`.
    let test = "sleep 0.2; grep -q -a -i tanh ";
    let reduce = |program: String, small: &str| {
        let rest = interrupted(&["reduce", &program, "--test", test, "-o", small], "reduce: ");
        assert!(rest.iter().any(|line| line.starts_with("interrupted; wrote ")), "{rest:?}");
        ends(anfora(&["check", small]), 0);
    };
    let [small, model] = ["small.anf", "small.onnx"].map(|name| scratch.path(name));
    reduce(scratch.file("in.anf", &text), &small);
    reduce(scratch.onnx("in", &text), &model);
    let small = std::fs::read_to_string(&small).expect("the smallest program so far");
    let (model, _) = ends(anfora(&["convert", &model]), 0);
    for best in [small, model] {
        assert!(best.contains("tanh") && best.matches("exp(").count() < 59, "{best}");
    }
}

/// The reproducer of a failing pipeline is written too.
#[cfg(unix)]
#[test]
fn an_interrupted_reduction_of_a_failure_writes_a_reproducer() {
    let scratch = Scratch::new("interrupt-fails");
    // The symbol contradicts one type among many.
    let size = 20_000;
    let calls: String = (1..size)
        .map(|i| match i == size * 61 / 100 {
            true => format!("let %v{i} = add(%v{}, %y);\n", i - 1),
            false => format!("let %v{i} = exp(%v{});\n", i - 1),
        })
        .collect();
    let params = "%x: Tensor[(n,), float32], %y: Tensor[(8,), float32]";
    let text = format!("def @main({params}) {{ let %v0 = exp(%x); {calls} %v{} }}", size - 1);
    let (program, small) = (scratch.file("in.anf", &text), scratch.path("small.anf"));
    let left = scratch.path("left.anf");
    let arguments = ["reduce", &program, "--fails", "BindSymbols{n=5}", "-o", &small, "--reproducer", &left];
    let rest = interrupted(&arguments, "reduce: ");
    assert!(rest.iter().any(|line| line.starts_with("interrupted; wrote ")), "{rest:?}");
    ends(anfora(&["check", &small]), 0);
    let (out, _) = ends(anfora(&["replay", &left]), 1);
    assert_eq!(out, "the pass failed as recorded\n");
}

/// A search that is interrupted writes the reproducer of the nearest wrong state so far.
#[cfg(unix)]
#[test]
fn an_interrupted_bisection_writes_its_best() {
    let scratch = Scratch::new("interrupt-bisect");
    let calls: String = (1..240).map(|i| format!("let %v{i} = multiply(exp(%v{}), 1f);\n", i - 1)).collect();
    let text = format!("def @main(%x: float32) {{ let %v0 = tanh(%x); {calls} %v239 }}");
    let (program, left) = (scratch.file("in.anf", &text), scratch.path("left.anf"));
    let marker = scratch.path("ended");
    // The processes of the test end with the search.
    let judge = format!("trap '' TERM; sleep 0.15; touch {marker}; ! grep -q '%v120 = multiply' \"$1\"\n");
    let test = format!("rm -f {marker}; sh {}", scratch.file("judge.sh", &judge));
    let arguments = ["bisect", &program, "--passes", "ToANormalForm,SimplifyExpr", "--test", &test, "-o", &left];
    let rest = interrupted(&arguments, "bisect: rewrites: wrong");
    let _ = std::fs::remove_file(&marker);
    assert!(rest.iter().any(|line| line.starts_with("interrupted; the nearest wrong state so far")), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("SimplifyExpr, run")), "{rest:?}");
    let (out, _) = ends(anfora(&["replay", &left]), 0);
    assert_eq!(out, "the pass did not fail, and changed the program\n");
    // Five times as long as the test sleeps.
    std::thread::sleep(std::time::Duration::from_millis(800));
    assert!(!std::path::Path::new(&marker).exists(), "a process of the test was left");
}

//! `anfora opt --why-not`.

use std::fmt::Write;

use crate::program::{Scratch, anfora, ends};

/// Returns a program in which FoldConstant nearly folds each of `length` bindings.
fn chain(length: usize) -> String {
    let mut text = "def @main(%v0: float32) {\n".to_string();
    for i in 1..=length {
        let _ = writeln!(text, "  let %v{i} = add(%v{}, 1f);", i - 1);
    }
    let _ = write!(text, "  %v{length}\n}}");
    text
}

#[test]
fn a_report_takes_no_answers_away() {
    let scratch = Scratch::new("why-not");
    let (program, page) = (scratch.file("in.anf", &chain(3000)), scratch.path("page.html"));
    let arguments = ["opt", &program, "--passes", "FoldConstant", "--emit", "none", "--quiet"];
    let question = ["--why-not", "FoldConstant@%v2999"];
    let expected = "why not FoldConstant at @main %v2999: %v2998 is not constant\n";
    let (_, err) = ends(anfora(&[&arguments[..], &question].concat()), 0);
    assert_eq!(err, expected);
    let (_, err) = ends(anfora(&[&arguments[..], &question, &["--report", &page]].concat()), 0);
    assert_eq!(err, expected);
    let (_, err) = ends(anfora(&[&arguments[..], &["--why-not", "FoldConstant", "--report", &page]].concat()), 0);
    assert_eq!(err.lines().count(), 3000);
}

#[test]
fn fusion_and_rules_answer() {
    let scratch = Scratch::new("why-not-passes");
    let text = "def @main(%x: Tensor[(4,), float32], %k: Tensor[(4,), float32]) {
  let %a = exp(%x);
  let %b = multiply(%a, %k);
  let %c = tanh(%a);
  add(%b, %c)
}";
    let program = scratch.file("in.anf", text);
    for (passes, question, answer) in [
        (
            "ConvertToDataflow,FuseOps",
            "FuseOps",
            "why not FuseOps at @main %a: it is used by %b and %c, which lead to no common binding\n",
        ),
        (
            "SimplifyExpr",
            "multiply(%x, 1) => %x@%b",
            "why not SimplifyExpr: multiply(%x, 1) => %x at @main %b: \
             no operand of `multiply(%a, %k)` is the constant 1\n",
        ),
    ] {
        let arguments = ["opt", &program, "--passes", passes, "--why-not", question, "--emit", "none", "--quiet"];
        let (_, err) = ends(anfora(&arguments), 0);
        assert_eq!(err, answer);
    }
}

#[test]
fn a_run_without_room_says_so() {
    let scratch = Scratch::new("why-not-cut");
    for (length, is_cut) in [(1000, false), (1001, true)] {
        let program = scratch.file("in.anf", &chain(length));
        let arguments = ["opt", &program, "--passes", "FoldConstant", "--why-not", "", "--emit", "none", "--quiet"];
        let (_, err) = ends(anfora(&arguments), 0);
        let answers = err.lines().filter(|line| line.starts_with("why not FoldConstant at @main")).count();
        assert_eq!(answers, 1000);
        let last = "why not: there may be more near misses; ask for a rule, a pass or a binding\n";
        assert_eq!(err.ends_with(last), is_cut, "{length}");
    }
}

#[test]
fn answers_are_printed_once() {
    let scratch = Scratch::new("why-not-once");
    let text = "def @main(%x: float32, %y: float32) {
  let %a = add(%x, %y);
  let %b = add(%x, %y);
  let %c = add(%b, 1f);
  let %d = multiply(%a, %c);
  %d
}";
    let (program, page) = (scratch.file("in.anf", text), scratch.path("page.html"));
    let passes = "fixpoint<4>(FoldConstant,EliminateCommonSubexpr)";
    let arguments =
        ["opt", &program, "--passes", passes, "--why-not", "FoldConstant@%c", "--emit", "none", "--quiet", "-O3"];
    let (_, alone) = ends(anfora(&arguments), 0);
    // In the second round, it is `%a` that is not constant.
    assert_eq!(alone.matches("why not FoldConstant at @main %c: %b is not constant").count(), 1, "{alone}");
    let (_, reported) = ends(anfora(&[&arguments[..], &["--report", &page]].concat()), 0);
    assert_eq!(alone, reported);
}

#[test]
fn answers_for_which_there_is_no_room_are_counted() {
    let scratch = Scratch::new("why-not-room");
    let program = scratch.file("in.anf", &chain(10_003));
    let passes = "FoldConstant,FoldConstant";
    let arguments = ["opt", &program, "--passes", passes, "--why-not", "FoldConstant", "--emit", "none", "--quiet"];
    let (_, err) = ends(anfora(&arguments), 0);
    assert_eq!(err.lines().count(), 10_001);
    assert!(err.ends_with("why not: 3 more near misses\n"), "{}", &err[err.len() - 200..]);
}

#[test]
fn names_are_written_as_in_programs() {
    let scratch = Scratch::new("why-not-names");
    let text = r#"def @main(%x: float32) { let %"a/b" = add(%x, 1f); let %"c@d" = add(%"a/b", 1f); %"c@d" }"#;
    let program = scratch.file("in.anf", text);
    for (question, name) in [
        (r#"FoldConstant@%"a/b""#, "a/b"),
        ("FoldConstant@%a/b", "a/b"),
        (r#"@"a/b""#, "a/b"),
        (r#"FoldConstant@%"c@d""#, "c@d"),
    ] {
        let arguments =
            ["opt", &program, "--passes", "FoldConstant", "--why-not", question, "--emit", "none", "--quiet"];
        let (_, err) = ends(anfora(&arguments), 0);
        assert!(err.starts_with(&format!("why not FoldConstant at @main %{name}: ")), "{question}: {err}");
    }
}

#[test]
fn mistakes_have_suggestions() {
    let scratch = Scratch::new("why-not-mistakes");
    let program = scratch.file("in.anf", &chain(3));
    let question = |question: &str| {
        let arguments = [
            "opt",
            &program,
            "--passes",
            "FoldConstant,SimplifyExpr",
            "--why-not",
            question,
            "--emit",
            "none",
            "--quiet",
        ];
        ends(anfora(&arguments), 0).1
    };
    let err = question("FoldConstnat");
    assert!(err.contains("unknown pass or rule `FoldConstnat`; did you mean `FoldConstant`?"), "{err}");
    let err = question("FoldConstant@%v33");
    assert!(err.contains("unknown binding `v33`; did you mean `v3`? (known: v0, v1, v2, v3)"), "{err}");
    let err = question("multiply(%x, 1) => x");
    assert!(err.contains("did you mean `multiply(%x, 1) => %x`?"), "{err}");
    assert_eq!(question("FuseOps"), "why not FuseOps: `FuseOps` did not run\n");
    assert_eq!(question("FoldConstant@%v0"), "why not FoldConstant@%v0: nothing that was asked for nearly applied\n");
}

#[test]
fn a_page_is_written_although_the_result_cannot_be() {
    let scratch = Scratch::new("page-without-result");
    let (program, page) = (scratch.file("in.anf", &chain(3)), scratch.path("page.html"));
    let (_, err) = ends(anfora(&["opt", &program, "-o", &scratch.path("no/such/out.anf"), "--report", &page]), 1);
    assert!(err.contains("error: cannot write ") && err.contains(&format!("wrote {page}")), "{err}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("FoldConstant"));
}

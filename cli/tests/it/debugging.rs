//! The messages and files that are left when a pass breaks a program.

use crate::program::{Scratch, anfora, ends};

const PROGRAM: &str = "def @main(%x: Tensor[(4,), float32]) { tanh(exp(%x)) }";
const WRONG: &str = "ToANormalForm,BindParams{function=main,params=\"%y=1f\"}";

#[test]
fn a_failing_pass_is_replayed() {
    let scratch = Scratch::new("replay");
    let (program, left) = (scratch.file("in.anf", PROGRAM), scratch.path("left.anf"));
    let (out, err) = ends(anfora(&["opt", &program, "--passes", WRONG, "--reproducer", &left]), 1);
    assert!(out.is_empty() && err.contains("there is no parameter `%y`"), "{out}{err}");
    assert!(err.contains(&format!("wrote {left}; `anfora replay {left}` runs the pass again")), "{err}");
    let text = std::fs::read_to_string(&left).expect("a reproducer");
    assert!(
        text.contains("// pipeline: BindParams{function=main,params=\"%y=1f\"}\n")
            && text.contains("let %0 = exp(%x);"),
        "{text}"
    );
    ends(anfora(&["check", &left]), 0);

    let (out, err) = ends(anfora(&["replay", &left]), 1);
    assert_eq!(out, "the pass failed as recorded\n");
    assert!(err.contains("did you mean `%x`?") && err.contains("at level 2, part of pipeline"), "{err}");
    let (out, err) = ends(anfora(&["replay", &left, "--child", "--timeout", "60"]), 1);
    assert_eq!(out, "the pass failed as recorded\n");
    assert!(err.contains("did you mean `%x`?"), "{err}");

    let (out, _) = ends(anfora(&["replay", &scratch.file("other.anf", &text.replace("`%y`", "`%z`"))]), 1);
    assert!(
        out.starts_with("the pass failed, but not as recorded: pass `BindParams` failed: there is no parameter `%z`"),
        "{out}"
    );
    let (out, _) = ends(
        anfora(&["replay", &scratch.file("fixed.anf", &text.replace("%y=1f", "%x=dense<Tensor[(4,), float32]>[1]"))]),
        0,
    );
    assert_eq!(out, "the pass did not fail, and changed the program\n");
}

#[test]
fn what_goes_well_leaves_no_reproducer() {
    let scratch = Scratch::new("well");
    let (program, left) = (scratch.file("in.anf", PROGRAM), scratch.path("left.anf"));
    let (_, err) = ends(anfora(&["opt", &program, "--reproducer", &left, "--emit", "none"]), 0);
    assert!(!err.contains("replay") && !std::path::Path::new(&left).exists(), "{err}");
    let (_, err) = ends(anfora(&["opt", &program, "--reproducer", &scratch.path("no/such/file.anf")]), 1);
    assert!(err.contains("file.anf` cannot be written"), "{err}");
    let (_, err) = ends(anfora(&["opt", &program, "--reproducer", &program]), 1);
    assert!(err.contains("is not a reproducer, and is left as it is"), "{err}");
    assert_eq!(std::fs::read_to_string(&program).unwrap(), PROGRAM);
}

#[test]
fn meaning_is_checked_when_asked_for() {
    let scratch = Scratch::new("meaning");
    let program = scratch.file("in.anf", PROGRAM);
    let (_, err) = ends(anfora(&["opt", &program, "-O3", "--check-meaning", "--emit", "none"]), 0);
    assert!(err.contains("check-meaning: 8 runs after 4 passes that changed something, 0 notes"), "{err}");
    let text = "declare @far(%x: float32) -> float32; def @main(%x: float32) { exp(@far(%x)) }";
    let (_, err) = ends(anfora(&["opt", &scratch.file("far.anf", text), "--check-meaning", "--emit", "none"]), 0);
    assert!(err.contains("the meaning of `@main` is not checked: `@far` is declared"), "{err}");
}

#[test]
fn mistakes_in_reproducers_are_explained() {
    let scratch = Scratch::new("mistakes");
    let head = "// anfora reproducer 1\n// level: 2\n";
    let cases = [
        (PROGRAM.to_string(), "this is not a reproducer"),
        (format!("{head}// pipeline: FuseOp\n// ----\n{PROGRAM}"), "did you mean `FuseOps`?"),
        (format!("{head}// pipline: FuseOps\n// ----\n{PROGRAM}"), "did you mean `pipeline`?"),
        (
            format!("{head}// pipeline: O1\n// config: FuseOps.max_dept=3\n// ----\n{PROGRAM}"),
            "did you mean `FuseOps.max_depth`?",
        ),
        (format!("{head}// pipeline: O1\n// ----\ndef @main() {{ %x }}"), "%x"),
    ];
    for (text, expected) in cases {
        let path = scratch.file("wrong.anf", &text);
        let (out, err) = ends(anfora(&["replay", &path]), 1);
        assert!(out.is_empty() && err.contains(expected) && err.contains("wrong.anf"), "{err}");
    }
    let (_, err) = ends(anfora(&["replay", &scratch.path("absent.anf")]), 1);
    assert!(err.contains("cannot read") && err.contains("absent.anf"), "{err}");
    let (_, err) = ends(anfora(&["replay", "x.anf", "--timeout", "5"]), 2);
    assert!(err.contains("--child"), "{err}");
    let (_, err) = ends(anfora(&["replay", "x.anf", "--child", "--timeout", "soon"]), 2);
    assert!(err.contains("`soon` is not a number of seconds"), "{err}");
}

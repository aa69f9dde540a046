//! Rendering of diagnostics.

use std::sync::Arc;

use anfora_ir::{
    DType, Diagnostic, FunctionBuilder, Module, OpRegistry, RenderOptions, Severity, Source, diagnostics_json,
    render_diagnostics, render_module_diagnostics,
};
use expect_test::expect;

fn render(diagnostics: &[Diagnostic], text: &str) -> String {
    render_diagnostics(diagnostics, Some(&Source::new("a.anf", text)), &RenderOptions::default())
}

#[test]
fn places_labels_and_help() {
    let text = "def @main(%x: float32) {\n  let %ü = %x;\n  ad(%ü, 2)\n}\n";
    let at = text.find("ad(").unwrap();
    let d = Diagnostic::error("unknown operator `ad`")
        .at(at..at + 2)
        .labelled("not an operator")
        .with_related(27..30, "after this")
        .with_help("did you mean `add`?");
    let note = Diagnostic::new(Severity::Remark, "not fused").at(0..3);
    expect![[r#"
        error: unknown operator `ad`
         --> a.anf:3:3
          |
        3 |   ad(%ü, 2)
          |   ^^ not an operator
          |
         ::: a.anf:2:3
          |
        2 |   let %ü = %x;
          |   --- after this
          |
          = help: did you mean `add`?

        remark: not fused
         --> a.anf:1:1
          |
        1 | def @main(%x: float32) {
          | ^^^
    "#]]
    .assert_eq(&render(&[d, note], text));
}

#[test]
fn a_part_of_a_long_line_is_shown() {
    let text = format!("short\n{}%here{}", "exp(".repeat(300_000), ")".repeat(300_000));
    let at = text.find("%here").unwrap();
    let all: Vec<Diagnostic> = (0..2000).map(|i| Diagnostic::error("e").at(at - i..at + 5)).collect();
    expect![[r#"
        error: e
         --> a.anf:2:1200001
          |
        2 | …p(exp(exp(exp(exp(exp(exp(exp(exp(exp(exp(exp(exp(%here)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))…
          |                                                    ^^^^^
    "#]]
    .assert_eq(&render(&all[..1], &text));
    assert!(render(&all, &text).lines().all(|l| l.chars().count() < 180));
}

#[test]
fn without_a_source_the_printed_module_is_shown() {
    let mut m = Module::new(Arc::new(OpRegistry::new()));
    let ty = m.cx.types.scalar(DType::Float32);
    let mut f = FunctionBuilder::new(&mut m, "main");
    let x = f.param("x", ty);
    let pair = f.tuple(&[x, x]);
    f.bind("plain", pair);
    let again = f.tuple(&[x]);
    let tail = f.bind("with \"quotes\"", again);
    f.finish(tail).unwrap();
    let e = || Diagnostic::error("wrong").in_function("main");
    let all = [
        e().on_binding("with \"quotes\"").labelled("here"),
        e(),
        e().on_binding("gone"),
        e().on_binding("plain").with_help("do better"),
        Diagnostic::error("wrong").in_function("gone"),
    ];
    expect![[r#"
        error: wrong
         --> @main, as printed:3:7
          |
        3 |   let %"with \"quotes\"" = (%x,);
          |       ^^^^^^^^^^^^^^^^^^ here

        error: wrong
         --> @main, as printed:1:5
          |
        1 | def @main(%x: Tensor[(), float32]) -> (Tensor[(), float32],) {
          |     ^^^^^

        error: wrong (in @main, at %gone)
         --> @main, as printed:1:5
          |
        1 | def @main(%x: Tensor[(), float32]) -> (Tensor[(), float32],) {
          |     ^^^^^

        error: wrong
         --> @main, as printed:2:7
          |
        2 |   let %plain = (%x, %x);
          |       ^^^^^^
          |
          = help: do better

        error: wrong (in @gone)
    "#]]
    .assert_eq(&render_module_diagnostics(&all, &m, &RenderOptions::default()));
}

#[test]
fn machines_get_json() {
    let d =
        Diagnostic::error("a \"quoted\"\nmessage\u{1}").at(3..9).labelled("l").with_related(0..1, "r").with_help("h");
    let e = Diagnostic::new(Severity::Warning, "w").in_function("f").on_binding("b");
    expect![[r#"
        [
        {"severity":"error","message":"a \"quoted\"\nmessage\u0001","file":"a.anf","start":3,"end":9,"line":2,"column":1,"label":"l","help":"h","related":[{"start":0,"end":1,"line":1,"column":1,"label":"r"}]},
        {"severity":"warning","message":"w","function":"f","binding":"b"}
        ]"#]]
    .assert_eq(&diagnostics_json(&[d, e], Some(&Source::new("a.anf", "é\nüx"))));
    assert_eq!(diagnostics_json(&[], None), "[]");
}

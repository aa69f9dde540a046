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

#[test]
fn the_place_is_underlined_with_line_and_column() {
    let text = "def @main() {\n  ad(1, 2)\n}\n";
    let d = Diagnostic::error("unknown operator `ad`")
        .at(16..18)
        .labelled("not an operator")
        .with_help("did you mean `add`?");
    let out = render(&[d], text);
    assert!(out.contains("error: unknown operator `ad`"), "{out}");
    assert!(out.contains("a.anf:2:3"), "{out}");
    assert!(out.contains("ad(1, 2)") && out.contains("^^ not an operator"), "{out}");
    assert!(out.contains("help: did you mean `add`?"), "{out}");
}

#[test]
fn any_span_is_survived() {
    let text = "é\nüber\r\nx";
    for start in 0..12 {
        for end in 0..12 {
            let related = Diagnostic::error("e").at(start..end).with_related(end..start, "there");
            assert!(render(&[related], text).contains("a.anf:"));
        }
    }
    assert!(render(&[Diagnostic::error("e").at(0..0)], "").contains("error: e"));
}

#[test]
fn a_long_line_is_cut() {
    let text = format!("{}here{}", "a".repeat(5000), "b".repeat(5000));
    let out = render(&[Diagnostic::error("e").at(5000..5004)], &text);
    assert!(out.contains("here") && out.contains("a.anf:1:5001"), "{out}");
    assert!(out.lines().all(|l| l.chars().count() <= 180), "{out}");
}

#[test]
fn without_a_span_the_binding_is_named() {
    let d = Diagnostic::error("e").in_function("f").on_binding("x");
    assert!(render(&[d], "text").contains("error: e (in @f, at %x)"));
}

#[test]
fn columns_count_characters() {
    let place = |text: &str, at: usize| {
        let shown = render(&[Diagnostic::error("e").at(at..at)], text);
        let line = shown.lines().find_map(|line| line.trim_start().strip_prefix("--> a.anf:"));
        line.unwrap_or_else(|| panic!("{shown}")).to_string()
    };
    let text = format!("é{}\nüx", "ö".repeat(3000));
    assert_eq!(place(&text, 2 * 2001), "1:2002");
    assert_eq!(place(&text, 2 * 2001 + 1), "1:2002");
    assert_eq!(place(&text, usize::MAX), "2:3");
    assert_eq!(place("", 7), "1:1");
    for length in [255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097] {
        assert_eq!(place(&"a".repeat(length), length), format!("1:{}", length + 1));
    }
}

#[test]
fn a_part_of_a_long_line_holds_the_place() {
    let text = format!("{}hier{}", "ä".repeat(500), "b".repeat(500));
    let shown = render(&[Diagnostic::error("e").at(1000..1004)], &text);
    assert!(shown.contains("--> a.anf:1:501"), "{shown}");
    let lines: Vec<Vec<char>> = shown.lines().map(|line| line.chars().collect()).collect();
    let column = |part: &str| {
        let part: Vec<char> = part.chars().collect();
        lines.iter().find_map(|line| line.windows(4).position(|four| *four == part[..]))
    };
    let (text, mark) = (column("hier"), column("^^^^"));
    assert!(text.is_some() && text == mark, "{shown}");
    assert!(lines.iter().all(|line| line.len() <= 180), "{shown}");
}

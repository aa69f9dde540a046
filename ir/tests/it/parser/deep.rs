//! Every kind of deep nesting, on a small stack.

use anfora_ir::{Module, alpha_equal};
use anfora_testing::{depth, on_small_stack};

use super::{parse, registry};

/// Returns `open` repeated n times, `inner`, and `close` repeated n times, between `before` and
/// `after`.
fn nest(n: usize, before: &str, open: &str, inner: &str, close: &str, after: &str) -> String {
    [before, &open.repeat(n), inner, &close.repeat(n), after].concat()
}

const HEAD: &str = "def @main(%x: float32, %c: bool) { ";

#[track_caller]
fn parses(text: String) {
    let nodes = on_small_stack(move || {
        let m = parse(&text).unwrap_or_else(|e| panic!("{}", e[0]));
        let f = m.get(m.order()[0]).unwrap();
        f.body.len()
    });
    assert!(nodes > 0);
}

#[test]
fn every_nest_of_expressions() {
    let n = depth(5_000);
    parses(nest(n, HEAD, "exp(", "%x", ")", " }"));
    parses(nest(n, HEAD, "if (%c) { ", "%x", " } else { %x }", " }"));
    parses(nest(n, HEAD, "if (", "%c", ") { %c } else { %c }", " }"));
    parses(nest(n, HEAD, "fn(%a: float32) { ", "%x", " }", " }"));
    parses(nest(n, HEAD, "let %a = { ", "%x", " }; %a", " }"));
    parses(nest(n, HEAD, "(", "%x", ")", " }"));
    parses(nest(n, HEAD, "{", "%x", "}", " }"));
    parses(nest(n, HEAD, "(%x, ", "%x", ")", " }"));
    parses(nest(n, HEAD, "(", "%x", ",).0", " }"));
    parses(nest(n, HEAD, "(fn(%a: float32) { ", "%x", " })(%x)", " }"));
    parses(nest(n, HEAD, "let %f = fn(%a: float32) -> float32 { ", "%x", " }; %x", " }"));
}

#[test]
fn many_bindings() {
    let n = depth(5_000);
    parses(nest(n, HEAD, "let %x = exp(%x); ", "%x", "", " }"));
    parses(nest(n, HEAD, "dataflow { let %x = exp(%x); output(%x) } ", "%x", "", " }"));
    parses(nest(n, HEAD, "%x = exp(%x); ", "%x", "", " }"));
}

#[test]
fn deep_types_attributes_and_dimensions() {
    let n = 100_000;
    parses(nest(n, "def @main(%x: ", "(int8, ", "int8", ")", ") { 1 }"));
    parses(nest(n, "def @main(%x: ", "(", "int8", ")", ") { 1 }"));
    parses(nest(n, "def @main(%x: ", "fn(", "Tensor[(n,), int8]", ") -> int8", ") { 1 }"));
    parses(nest(n, "def @main(%x: ", "fn(Tensor[(n,), int8]) -> ", "Tensor[(n,), int8]", "", ") { 1 }"));
    parses(nest(n, "def @main(%x: Tensor[(n, ", "floordiv(", "n", ", 7)", "), int8]) { 1 }"));
    parses(nest(n, "def @main(%x: Tensor[(n, ", "(", "n", ")", "), int8]) { 1 }"));
    parses(nest(n, "def @main(%x: Tensor[(n, ", "(1 + 2 * ", "n", ")", "), int8]) { 1 }"));
    parses(nest(n, "def @main(%x: Tensor[(n, ", "n + ", "n", "", "), int8]) { 1 }"));
    parses(nest(n, "def @main(K=", "[1, ", "2", "]", ") { 1 }"));
    parses(nest(n, "def @main(%x: int8) { note(%x, value=", "[", "", "]", ") }"));
    parses(nest(n, "attr !a = ", "[", "", "]", "; def @main() { 1 }"));
    parses(nest(n, "#![a=", "[", "", "]", "] def @main() { 1 }"));
    parses(nest(n, "def @main(%x: int8) { note(%x, value=", "fn(%x: int8) { note(%x, value=", "1", ") }", ") }"));
    parses(nest(n, "def @main(K=", "fn(K=", "1", ") { 1 }", ") { 1 }"));
    parses(nest(n, "", "/* ", "", "*/ ", "def @main() { 1 }"));
}

#[test]
fn every_level_of_a_nest_binds_a_symbol() {
    let n = 100_000;
    let open: String = (0..n).map(|i| format!("fn(%a: Tensor[(k{i},), float32]) {{ ")).collect();
    parses([HEAD, &open, "%x", &" }".repeat(n), " }"].concat());
    let types: String = (0..n).map(|i| format!("fn(Tensor[(k{i},), float32]) -> ")).collect();
    parses(["def @main(%x: ", &types, "Any) { 1 }"].concat());
    let casts: String = (0..n).map(|i| format!("let %y = match_cast(%x, to=Tensor[(k{i},), float32]); ")).collect();
    parses([HEAD, &casts, "%x }"].concat());
}

#[test]
fn many_functions_and_names() {
    let n = 100_000;
    let mut text: String = (0..n).map(|i| format!("def @f{i}(%x: float32) {{ @f{}(%x) }}\n", i + 1)).collect();
    text += &format!("def @f{n}(%x: float32) {{ exp(%x) }}\n");
    parses(text);
    let params: Vec<String> = (0..n).map(|i| format!("%p{i}: Tensor[(n{i},), int8]")).collect();
    let attrs: Vec<String> = (0..n).map(|i| format!("k{i}={i}")).collect();
    parses(format!("def @main({}, {}) {{ 1 }}", params.join(", "), attrs.join(", ")));
}

#[test]
fn what_is_not_closed_is_an_error_however_deep() {
    for open in [
        "exp(",
        "(",
        "{",
        "if (",
        "if (%c) {",
        "fn(%a: int8) {",
        "let %a = {",
        "(%x, ",
        "note(%x, value=[",
        "note(%x, value=fn() {",
    ] {
        let text = [HEAD, &open.repeat(200_000)].concat();
        let errors = on_small_stack(move || parse(&text).err().unwrap_or_default());
        assert!(!errors.is_empty());
    }
    for open in ["(", "fn(", "fn() -> ", "Tensor[(", "Tensor[((", "Tensor[(min(", "Tensor[(1 + "] {
        let text = ["def @f(%x: ", &open.repeat(200_000)].concat();
        assert!(!on_small_stack(move || parse(&text).err().unwrap_or_default()).is_empty());
    }
}

#[test]
fn deep_programs_print_and_read_back() {
    for (open, close) in [("exp(", ")"), ("if (%c) { ", " } else { %x }"), ("let %a = { ", " }; %a")] {
        let text = nest(50_000, HEAD, open, "%x", close, " }");
        on_small_stack(move || {
            let m: Module = parse(&text).unwrap_or_else(|e| panic!("{}", e[0]));
            let printed = m.to_string();
            let again =
                anfora_ir::parse_module(anfora_ir::Source::new("again.anf", printed.clone()), registry()).unwrap();
            assert_eq!(again.to_string(), printed);
            assert!(alpha_equal(&m, &again));
        });
    }
}

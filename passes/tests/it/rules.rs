//! Tests of passes that consist of rules: counts, remarks, and mistakes in rules.

use anfora_ir::{Module, Source, parse_module};
use anfora_manager::{FunctionPass, Pass, PassContext};
use anfora_passes::FromRules;
use anfora_visit::pattern::{RuleSet, capture, op};
use anfora_visit::rules;

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora_ops::standard()).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the text of a program after a pass of rules, its remarks, each after its binding, and
/// the context.
fn run(rules: RuleSet, text: &str, trace: bool) -> (String, Vec<String>, PassContext) {
    let pass = FunctionPass::from_rules("Test", 0, rules);
    let builder = PassContext::builder().registry(anfora_passes::registry());
    let cx = builder.config("Rules.trace", trace).build().unwrap();
    let mut module = parse(text);
    pass.apply(&mut module, &cx).unwrap();
    let said = |remark: &anfora_ir::Diagnostic| {
        let binding = remark.binding.as_deref().map_or(String::new(), |binding| format!("{binding}: "));
        format!("{binding}{}", remark.message)
    };
    let remarks = cx.take_remarks().iter().map(|remark| said(&remark.diagnostic)).collect();
    (module.to_text(), remarks, cx)
}

const PROGRAM: &str = "def @main(%x: float32, %y: float32) {
    let %a = multiply(%x, 1f);
    let %b = multiply(1f, %y);
    let %c = exp(%a);
    add(%c, %b)
}";

#[test]
fn each_rule_is_counted_by_its_text() {
    let rules = rules!["multiply(%x, 1)" => "%x", "log(%x)" => "%x"].rule("exp(%x)", "tanh(%x)");
    let (text, remarks, cx) = run(rules, PROGRAM, false);
    assert!(text.contains("let %c = tanh(%x);\n  add(%c, %y)"), "{text}");
    assert!(remarks.is_empty(), "{remarks:?}");
    let counted: Vec<(&str, u64)> = cx.statistics().rows().iter().map(|row| (row.counter, row.value)).collect();
    let others = "rules that were made when the pass was";
    assert_eq!(counted, [("multiply(%x, 1) => %x", 2), (others, 1)]);
}

#[test]
fn a_rule_that_matches_what_it_makes_is_named_and_taken_back() {
    let before = parse(PROGRAM).to_text();
    let (text, remarks, cx) = run(rules!["exp(%x)" => "exp(negative(%x))"], PROGRAM, false);
    assert_eq!(text, before);
    let [remark] = &remarks[..] else { panic!("{remarks:?}") };
    assert!(remark.starts_with("c: the rule `exp(%x) => exp(negative(%x))` still applies after"), "{remark}");
    assert!(cx.statistics().is_empty());
}

#[test]
fn a_rule_that_does_not_fit_by_type_is_named() {
    let text =
        "def @main(%x: float32, %y: Tensor[(3,), float32]) { let %a = add(%x, %y); let %b = add(%x, %a); exp(%b) }";
    let (_, remarks, _) = run(rules!["add(%x, %y)" => "%x", "exp(%x)" => "matmul(%x, (%x,).0)"], text, false);
    assert_eq!(
        remarks,
        [
            "a: the rule `add(%x, %y) => %x` matched and did not apply: what it makes is of type Tensor[(), float32], in the place of Tensor[(3,), float32], and 1 time more",
            "the rule `exp(%x) => matmul(%x, (%x,).0)` matched and did not apply: what it makes is of type Tensor[(), float32], in the place of Tensor[(3,), float32]",
        ]
    );
}

#[test]
fn the_trace_says_which_rule_changed_which_binding() {
    let rules = || rules!["multiply(%x, 1)" => "%x", "exp(%x)" => "tanh(negative(%x))"];
    let (_, remarks, _) = run(rules(), PROGRAM, true);
    assert_eq!(
        remarks,
        [
            "a: `multiply(%x, constant Tensor[(), float32])` became `%x` by the rule `multiply(%x, 1) => %x`",
            "b: `multiply(constant Tensor[(), float32], %y)` became `%y` by the rule `multiply(%x, 1) => %x`",
            "c: `exp(%x)` became `tanh(…)` by the rule `exp(%x) => tanh(negative(%x))`",
        ]
    );
    assert!(run(rules(), PROGRAM, false).1.is_empty());
}

#[test]
fn the_trace_says_attributes() {
    let rules = rules!["sum(negative(%x), axis=%a, keepdims=%k)" => "negative(sum(%x, axis=%a, keepdims=%k))"];
    let text = "def @main(%x: Tensor[(2, 3), int32]) {
        let %n = negative(%x);
        let %s = sum(%n, axis=[1], keepdims=true);
        let %y = astype(%s, dtype=float32);
        exp(%y)
    }";
    let (_, remarks, _) = run(rules.rule("exp(astype(%x, dtype=float32))", "astype(%x, dtype=float32)"), text, true);
    assert!(remarks[0].starts_with("s: `sum(%n, axis=[1], keepdims=true)` became `negative(…)` by"), "{remarks:?}");
    assert!(remarks[1].starts_with("`exp(%y)` became `astype(%s, dtype=float32)` by"), "{remarks:?}");
}

#[test]
fn mistakes_in_rules_fail_the_pass_with_their_places() {
    let rules = rules!["exp(%x)" => "tanh(%x)", "multply(%x, 1)" => "%x", "add(%value, 0)" => "%vale"].replace(
        "built",
        op("lgo", [capture("x")]),
        capture("x"),
    );
    let pass = FunctionPass::from_rules("Test", 0, rules);
    let mut module = parse(PROGRAM);
    let before = module.to_text();
    let failure = pass.apply(&mut module, &PassContext::new()).unwrap_err();
    assert_eq!(module.to_text(), before);
    let said: Vec<String> = failure
        .to_diagnostics()
        .iter()
        .map(|d| format!("{}; {}", d.message, d.help.as_deref().unwrap_or("")))
        .collect();
    // The first message names the pass.
    for (told, wanted) in said[1..].iter().zip([
        "unknown operator `multply`, at column 1 of the rule `multply(%x, 1) => %x`; did you mean `multiply`?",
        "`%vale` occurs on the right, but nothing on the left binds it, at column 19 of the rule `add(%value, 0) => %vale`; did you mean `%value`?",
        "the rule `built`: unknown operator `lgo`; did you mean `log`?",
    ]) {
        assert!(told.contains(wanted), "{said:#?}");
    }
    assert_eq!(said.len(), 4, "{said:#?}");
}

#[test]
fn the_rules_of_simplify_expr_are_right_and_keep_every_element_type() {
    let types = ["float16", "bfloat16", "float32", "float64", "int8", "int64", "uint8", "uint64"];
    for ty in types {
        let one = match ty {
            "float32" => "1f".to_string(),
            "float16" | "bfloat16" | "float64" => format!("1{}", ty.replace("loat", "")),
            _ => format!("1{}", ty.replace("uint", "u").replace("int", "i")),
        };
        let text = format!(
            "def @main(%x: Tensor[(n,), {ty}]) {{ let %a = abs(%x); let %b = multiply({one}, %a); let %c = divide(%b, {one}); let %d = negative(%c); negative(%d) }}"
        );
        let mut module = parse(&text);
        let cx = PassContext::builder().registry(anfora_passes::registry()).opt_level(3).build().unwrap();
        let pass = anfora_passes::registry().make("SimplifyExpr").unwrap();
        pass.apply(&mut module, &cx).unwrap();
        let text = module.to_text();
        assert!(text.contains("{\n  let %a = abs(%x);\n  %a\n}"), "{text}");
    }
}

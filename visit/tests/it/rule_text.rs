//! Tests of rules in text: matches, replacements, conditions and mistakes.

use anfora_ir::{Context, Editor, verify_module};
use anfora_visit::pattern::{Outcome, PatternOptions, RuleSet, rewrite_rules};
use anfora_visit::rules;
use expect_test::{Expect, expect};

use crate::rewrite_patterns::parse;

/// Rewrites a function by rules, and returns the text of its block.
fn rewritten(rules: &RuleSet, text: &str) -> (String, Outcome) {
    let mut module = parse(text);
    let key = module.order()[0];
    let (function, cx) = module.get_mut(key).unwrap();
    let outcome = rewrite_rules(&mut Editor::new(cx, &mut function.body), rules, &PatternOptions::default()).unwrap();
    verify_module(&module).unwrap();
    let text = module.to_text();
    let block = text.trim_end().strip_suffix('}').and_then(|text| text.split_once("{\n")).unwrap().1;
    (block.lines().map(str::trim).collect::<Vec<_>>().join(" "), outcome)
}

/// Checks a rule on the block of a function of `%x` and `%y`, of type `ty`.
fn check(rules: RuleSet, ty: &str, block: &str, after: &str) {
    let (found, _) = rewritten(&rules, &format!("def @main(%x: {ty}, %y: {ty}, %c: bool) {{ {block} }}"));
    assert_eq!(found, after, "{rules:?} on {ty}: {block}");
}

#[test]
fn one_is_that_of_every_element_type_scalar_or_splat() {
    let one = || rules!["multiply(%x, 1)" => "%x"];
    for (ty, number) in [
        ("Tensor[(2,), float32]", "1f"),
        ("Tensor[(2,), float16]", "1f16"),
        ("Tensor[(2,), bfloat16]", "1bf16"),
        ("Tensor[(2,), float64]", "1f64"),
        ("Tensor[(2,), int8]", "1i8"),
        ("Tensor[(2,), uint64]", "1u64"),
        ("Tensor[(2,), float32]", "dense<Tensor[(2,), float32]>[1]"),
    ] {
        check(one(), ty, &format!("multiply(%x, {number})"), "%x");
        check(one(), ty, &format!("multiply({number}, %x)"), "%x");
    }
    check(one(), "int32", "multiply(%x, 2)", "multiply(%x, 2)");
    check(one(), "float32", "multiply(%x, -1f)", "multiply(%x, -1f)");
    // The product has another shape.
    check(
        one(),
        "float32",
        "multiply(%x, dense<Tensor[(2,), float32]>[1])",
        "multiply(%x, dense<Tensor[(2,), float32]>[1])",
    );
}

#[test]
fn a_splat_counts_only_where_extents_are_known() {
    let one = || rules!["multiply(%x, 1)" => "%x"];
    // If `%x` has one element, the product has two.
    let splat = "multiply(%x, dense<Tensor[(2,), float32]>[1])";
    check(one(), "Tensor[?, float32]", splat, splat);
    check(one(), "Tensor[?, float32]", "multiply(%x, 1f)", "%x");
    check(one(), "Tensor[(n, 2), float32]", splat, "%x");
}

#[test]
fn zero_is_that_of_integers_only() {
    let zero = || rules!["add(%x, 0)" => "%x", "subtract(%x, %x)" => "0"];
    check(zero(), "int64", "add(0i64, %x)", "%x");
    check(zero(), "float32", "add(%x, 0f)", "add(%x, 0f)");
    check(zero(), "float32", "add(%x, -0.0f)", "add(%x, -0.0f)");
    check(zero(), "uint8", "maximum(subtract(%x, %x), %y)", "maximum(0u8, %y)");
    check(zero(), "float32", "subtract(%x, %x)", "subtract(%x, %x)");
}

#[test]
fn numbers_with_suffixes_are_exact_and_typed() {
    let minus_zero = || rules!["add(%x, -0f)" => "%x"];
    check(minus_zero(), "float32", "add(%x, -0f)", "%x");
    check(minus_zero(), "float32", "add(%x, 0f)", "add(%x, 0f)");
    check(minus_zero(), "float64", "add(%x, -0.0f64)", "add(%x, -0.0f64)");
    check(rules!["add(%x, 2f)" => "subtract(%x, -2f)"], "float32", "add(%x, 2f)", "subtract(%x, -2f)");
    check(rules!["where(true, %x, %_)" => "%x"], "float32", "where(true, %x, %y)", "%x");
    let exact = || rules!["reshape(%x, dense<Tensor[(1,), int64]>[-1])" => "%x"];
    check(exact(), "Tensor[(4,), float32]", "reshape(%x, dense<Tensor[(1,), int64]>[-1])", "%x");
}

#[test]
fn nested_calls_match_through_bindings_and_a_hole_is_one_value() {
    let factor = || rules!["add(multiply(%x, %a), multiply(%x, %b))" => "multiply(%x, add(%a, %b))"];
    let block = "let %p = multiply(%x, %y); let %q = multiply(%x, %x); add(%p, %q)";
    check(factor(), "int32", block, "let %0 = add(%y, %x); multiply(%x, %0)");
    let other = "let %p = multiply(%x, 2); let %q = multiply(%y, 2); add(%p, %q)";
    // The common factor is the constant.
    check(factor(), "int32", other, "let %0 = add(%x, %y); multiply(2, %0)");
    let none = "let %p = multiply(%x, 2); let %q = multiply(%y, 3); add(%p, %q)";
    check(factor(), "int32", none, none);
}

#[test]
fn tuples_projections_and_calls_are_written_as_they_are() {
    check(rules!["(%a, %b).1" => "%b"], "float32", "let %t = (%x, %y); exp(%t.1)", "exp(%y)");
    check(rules!["add(%a, %b)" => "((%a, %b), %a).0.1"], "float32", "exp(add(%x, %y))", "exp(((%x, %y), %x).0.1)");
    let lambda = "let %f = fn (%z: Tensor[(), float32]) { exp(%z) };";
    let before = format!("{lambda} %f(tanh(%x))");
    check(rules!["%f(tanh(%a))" => "%f(%a)"], "float32", &before, &format!("{lambda} %f(%x)"));
}

#[test]
fn attributes_are_exact_absent_bound_or_any() {
    let sum = |block: &str| format!("sum(%x{block})");
    let ty = "Tensor[(2, 3), float32]";
    let whole = rules!["sum(%x)" => "max(%x, axis=[0])"];
    check(whole, ty, &sum(", axis=[0], keepdims=false"), "max(%x, axis=[0])");
    let exact = || rules!["sum(%x, axis=[1])" => "max(%x, axis=[1])"];
    check(exact(), ty, &sum(", axis=[1]"), "max(%x, axis=[1])");
    check(exact(), ty, &sum(", axis=[0]"), &sum(", axis=[0]"));
    let absent = || rules!["sum(%x, axis=none)" => "max(%x)"];
    check(absent(), ty, &sum(""), "max(%x)");
    check(absent(), ty, &sum(", axis=[0]"), &sum(", axis=[0]"));
    let bound = || rules!["sum(negative(%x), axis=%a, keepdims=%k)" => "negative(sum(%x, axis=%a, keepdims=%k))"];
    check(bound(), ty, "sum(negative(%x), axis=[1], keepdims=true)", "negative(sum(%x, axis=[1], keepdims=true))");
    check(bound(), ty, "sum(negative(%x))", "negative(sum(%x))");
    let twice = || rules!["squeeze(expand_dims(%x, axis=%a), axis=%a)" => "%x"];
    check(twice(), ty, "squeeze(expand_dims(%x, axis=[0]), axis=[0])", "%x");
    let other = "squeeze(expand_dims(%x, axis=[0, 1]), axis=[1])";
    check(twice(), ty, other, other);
}

#[test]
fn a_condition_sees_what_is_captured_and_decides_among_the_ways_to_match() {
    let constant = || rules!["add(%x, %k)" => "subtract(%k, %x)", if |m| m.literal("k").is_some()];
    check(constant(), "int32", "add(%x, %y)", "add(%x, %y)");
    check(constant(), "int32", "add(%x, 7)", "subtract(7, %x)");
    check(constant(), "int32", "add(7, %x)", "subtract(7, %x)");
    let integers = || rules!["add(%a, %a)" => "multiply(%a, 2)", if |m| m.is_integer("a"), "exp(%a)" => "%a"];
    check(integers(), "int64", "add(%x, %x)", "multiply(%x, 2i64)");
    check(integers(), "float32", "add(%x, %x)", "add(%x, %x)");
    let same = || rules!["astype(%x, dtype=%_)" => "%x", if |m| m.has_type_of_root("x")];
    check(same(), "float32", "astype(%x, dtype=float32)", "%x");
    check(same(), "float32", "astype(%x, dtype=int8)", "astype(%x, dtype=int8)");
}

/// Checks the messages about mistakes in rules.
fn mistakes(rules: RuleSet, expected: Expect) {
    let mut cx = Context::new(anfora_ops::standard());
    expected.assert_eq(&format!("{}\n", rules.check(&mut cx).unwrap_err()));
}

/// A whole number has its exact value in each element type, or does not exist: float16 has no 2049
/// and no 100000.
#[test]
fn whole_numbers_are_exact() {
    let pass = |rules: RuleSet, text: &str| rewritten(&rules, text).1.rewrites;
    let nearest = "def @f(%x: float16) { multiply(%x, 2048f16) }";
    assert_eq!(pass(rules!["multiply(%x, 2048)" => "negative(%x)"], nearest), 1);
    assert_eq!(pass(rules!["multiply(%x, 2049)" => "negative(%x)"], nearest), 0);
    assert_eq!(pass(rules!["exp(%x)" => "multiply(%x, 2048)"], "def @f(%x: float16) { exp(%x) }"), 1);
    assert_eq!(pass(rules!["exp(%x)" => "multiply(%x, 100000)"], "def @f(%x: float16) { exp(%x) }"), 0);
    assert_eq!(pass(rules!["exp(%x)" => "multiply(%x, 100000)"], "def @f(%x: float32) { exp(%x) }"), 1);
}

#[test]
fn calls_on_the_right_have_the_operands_and_attributes_that_they_need() {
    mistakes(
        rules![
            "multiply(%x, 1)" => "add(%x)",
            "exp(%x)" => "log(%x, %x)",
            "tanh(%x)" => "negative(astype(%x))",
        ],
        expect![[r#"
            error: a pattern of `add` has 1 operands, but it takes 2
             --> rules:1:20
              |
            1 | multiply(%x, 1) => add(%x)
              |                    ^^^^^^^

            error: a pattern of `log` has 2 operands, but it takes 1
             --> rules:2:12
              |
            2 | exp(%x) => log(%x, %x)
              |            ^^^^^^^^^^^

            error: `astype` needs the attribute `dtype`
             --> rules:3:22
              |
            3 | tanh(%x) => negative(astype(%x))
              |                      ^^^^^^^^^^
        "#]],
    );
    // An attribute with a default may be omitted.
    let mut cx = Context::new(anfora_ops::standard());
    let rules = rules!["exp(%x)" => "sum(%x)", "tanh(%x)" => "astype(%x, dtype=float16)"];
    assert!(rules.check(&mut cx).is_ok());
}

#[test]
fn the_right_side_names_functions_that_there_are() {
    let mut module = parse("def @slow_tanh(%x: float32) { tanh(%x) } def @main(%x: float32) { exp(%x) }");
    let rules = rules!["exp(%x)" => "@slow_tahn(%x)"];
    let mistakes = rules.check(&mut module.cx).unwrap_err();
    assert_eq!(mistakes[0].message, "there is no function `@slow_tahn`");
    assert_eq!(mistakes[0].help.as_deref(), Some("did you mean `@slow_tanh`?"));
    assert!(mistakes.to_string().contains("rules:1:12"), "{mistakes}");
    assert!(rules!["exp(%x)" => "@slow_tanh(%x)"].check(&mut module.cx).is_ok());
}

#[test]
fn only_names_are_suggested_and_many_mistakes_take_linear_time() {
    let mut cx = Context::new(anfora_ops::standard());
    let rules = RuleSet::new().rule("add(%_, %_)", "%a").rule("add(%_, %x)", "%other");
    let mistakes = rules.check(&mut cx).unwrap_err();
    assert_eq!(mistakes[0].help.as_deref(), Some("the left side names no hole"));
    assert_eq!(mistakes[1].help.as_deref(), Some("the left side has `%x`"));
    let holes = |letter: &str, n| (0..n).map(|i| format!("%{letter}{i}")).collect::<Vec<_>>().join(", ");
    let left = format!("({})", holes("left", 3_000));
    let right = format!("({})", holes("right", 3_000));
    let mistakes = RuleSet::new().rule(&left, &right).check(&mut cx).unwrap_err();
    assert_eq!(mistakes.len(), 3_000);
    let longest = mistakes.iter().filter_map(|mistake| mistake.help.as_ref()).map(String::len).max();
    assert!(longest.is_some_and(|len| len < 1_000), "{longest:?}");
}

#[test]
fn a_set_is_right_for_each_module_that_it_is_used_on() {
    let rules = rules!["exp(%x)" => "@g(%x)"];
    let with = "def @main(%x: float32) { exp(%x) } def @g(%x: float32) { tanh(%x) }";
    assert_eq!(rewritten(&rules, with).1.rewrites, 1);
    let mut without = parse("def @main(%x: float32) { exp(%x) }");
    assert!(rules.check(&mut without.cx).is_err());
    // Also with another registry, and with a further rule.
    let rules = rules!["exp(%x)" => "%x"];
    assert!(rules.check(&mut without.cx).is_ok());
    assert!(rules.check(&mut Context::new(anfora_ir::OpRegistry::new().into())).is_err());
    assert_eq!(rewritten(&rules.rule("tanh(%x)", "%x"), "def @main(%x: float32) { tanh(exp(%x)) }").1.rewrites, 2);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of rows")]
fn mistakes_in_rules_have_their_places() {
    mistakes(
        rules![
            "multply(%x, 1)" => "%x",
            "add(%x, %value)" => "add(%vale, %_)",
            "add(%x" => "%x",
            "add(%x, 1))" => "%x",
            "sum(%x, axes=[1])" => "%x",
            "sum(%x, keepdims=3)" => "%x",
            "exp(%x, %y)" => "%x",
            "%x" => "%x",
            "exp(x)" => "x",
            "exp(1.5)" => "%x",
            "let %a = exp(%x); %a" => "%x",
            "sum(%x, axis=%x)" => "%x",
            "sum(permute_dims(%x, axes=%a), keepdims=%a)" => "%x",
            "add(%x, 1) add" => "%x",
        ],
        expect![[r#"
            error: unknown operator `multply`
             --> rules:1:1
              |
            1 | multply(%x, 1) => %x
              | ^^^^^^^^^^^^^^
              |
              = help: did you mean `multiply`?

            error: `%vale` occurs on the right, but nothing on the left binds it
             --> rules:2:24
              |
            2 | add(%x, %value) => add(%vale, %_)
              |                        ^^^^^
              |
              = help: did you mean `%value`?

            error: `%_` occurs on the right, but nothing on the left binds it
             --> rules:2:31
              |
            2 | add(%x, %value) => add(%vale, %_)
              |                               ^^
              |
              = help: `%_` matches anything, and binds nothing: give it a name

            error: expected `,` or `)`, found the end of the text
             --> rules:3:7
              |
            3 | add(%x => %x
              |       ^
              |
             ::: rules:3:4
              |
            3 | add(%x => %x
              |    - this is not closed
              |
              = help: add `)`

            error: nothing is opened that this `)` closes
             --> rules:4:11
              |
            4 | add(%x, 1)) => %x
              |           ^
              |
              = help: leave it out

            error: `sum` has no attribute `axes`
             --> rules:5:9
              |
            5 | sum(%x, axes=[1]) => %x
              |         ^^^^^^^^
              |
              = help: did you mean `axis`?

            error: attribute `keepdims` of `sum` must be a boolean
             --> rules:6:9
              |
            6 | sum(%x, keepdims=3) => %x
              |         ^^^^^^^^^^

            error: a pattern of `exp` has 2 operands, but it takes 1
             --> rules:7:1
              |
            7 | exp(%x, %y) => %x
              | ^^^^^^^^^^^

            error: expected `(`, found `)`
             --> rules:9:6
              |
            9 | exp(x) => x
              |      ^
              |
              = help: holes are `%x`, and operators have operands: `x(%x)`

            error: expected `(`, found the end of the text
             --> rules:9:12
              |
            9 | exp(x) => x
              |            ^
              |
              = help: holes are `%x`, and operators have operands: `x(%x)`

            error: `1.5` needs a suffix
              --> rules:10:5
               |
            10 | exp(1.5) => %x
               |     ^^^
               |
               = help: write `1.5f` for float32

            error: expected a call, a tuple, a constant or a hole, found `let`
              --> rules:11:1
               |
            11 | let %a = exp(%x); %a => %x
               | ^^^
               |
               = help: a rule looks through bindings by itself, and has no blocks: nest what is bound

            error: `x` is captured as two of these: an expression, a list, an attribute
              --> rules:12:5
               |
            12 | sum(%x, axis=%x) => %x
               |     ^^

            error: `a` stands for another attribute too, which has another kind or default than `keepdims` of `sum`
              --> rules:13:32
               |
            13 | sum(permute_dims(%x, axes=%a), keepdims=%a) => %x
               |                                ^^^^^^^^^^^

            error: expected the end of the term, found `add`
              --> rules:14:12
               |
            14 | add(%x, 1) add => %x
               |            ^^^
        "#]],
    );
}

#[test]
fn a_condition_that_becomes_known_selects_the_type_of_its_if() {
    check(
        rules!["less_equal(%x, %x)" => "true"],
        "int64",
        "let %k = less_equal(%x, %x); let %r = if (%k) { 1i64 } else { %y }; add(%r, %y)",
        "let %r = if (true) { 1i64 } else { %y }; add(%r, %y)",
    );
}

#[test]
fn constants_are_found_through_variables() {
    let rules = || rules!["multiply(%x, 1)" => "%x"];
    for block in [
        "let %k = 1f; let %a = multiply(%x, %k); exp(%a)",
        "let %k = 1f; let %l = %k; let %m = %l; let %a = multiply(%m, %x); exp(%a)",
    ] {
        let (found, outcome) = rewritten(&rules(), &format!("def @main(%x: float32) {{ {block} }}"));
        assert_eq!(outcome.rewrites, 1, "{found}");
        assert!(found.ends_with("exp(%x)"), "{found}");
    }
    // Constants of other calls do not matter.
    let (_, outcome) = rewritten(&rules(), "def @main(%x: float32) { let %a = add(%x, 1f); multiply(%a, 2f) }");
    assert_eq!(outcome.rewrites, 0);
}

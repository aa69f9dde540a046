//! Arguments for test runs, and differences between results.

use anfora_interp::{Agreement, ArgumentGenerator, Interpreter, Numbers, Outcome};
use anfora_ir::{Literal, Module, Source, parse_module};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora_ops::standard()).unwrap()
}

/// Returns the arguments of `@main` as texts.
fn drawn(text: &str, draw: &ArgumentGenerator) -> Result<Vec<String>, String> {
    let module = parse(text);
    let main = module.get(module.find("main").unwrap()).unwrap();
    let arguments = draw.arguments(&module.cx, main).map_err(|e| e.to_string())?;
    Ok(arguments.list.iter().map(|&a| arguments.values.text(a, 1000)).collect())
}

fn shapes(text: &str, draw: &ArgumentGenerator) -> String {
    let texts = drawn(text, draw).unwrap();
    texts.iter().map(|t| t[t.find('(').unwrap()..=t.find(')').unwrap()].to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn extents_are_those_of_the_signature() {
    let text =
        "def @main(%a: Tensor[(m, 2 * n), float32], %b: Tensor[(n, m + 1, k), float32], %c: Tensor[(?,), int8]) { 1 }";
    assert_eq!(shapes(text, &ArgumentGenerator::new(1)), "(2, 4) (2, 3, 2) (2,)");
    assert_eq!(shapes(text, &ArgumentGenerator::new(1).extents(&[3, 5])), "(3, 10) (5, 4, 3) (2,)");
    let given = Literal::splat(&[4, 7, 1], 0f32);
    assert_eq!(shapes(text, &ArgumentGenerator::new(1).given(1, given)), "(2, 8) (4, 7, 1) (2,)");
}

#[test]
fn a_parameter_is_drawn_from_its_name() {
    let both =
        drawn("def @main(%a: Tensor[(4,), float32], %b: Tensor[(4,), float32]) { 1 }", &ArgumentGenerator::new(1))
            .unwrap();
    let one = drawn("def @main(%b: Tensor[(4,), float32]) { 1 }", &ArgumentGenerator::new(1)).unwrap();
    assert_eq!(one[0], both[1]);
    assert_ne!(both[0], both[1]);
    assert_ne!(one, drawn("def @main(%b: Tensor[(4,), float32]) { 1 }", &ArgumentGenerator::new(2)).unwrap());
    let parts = drawn(
        "def @main(%t: ((int64, Tensor[(2,), float32]), Tensor[(2,), float32])) { 1 }",
        &ArgumentGenerator::new(1),
    );
    assert!(parts.as_ref().unwrap()[0].starts_with("((Tensor[(), int64]"), "{parts:?}");
}

#[test]
fn extreme_numbers_are_extreme() {
    let text = "def @main(%a: Tensor[(8,), float32]) { 1 }";
    let found = &drawn(text, &ArgumentGenerator::new(1).numbers(Numbers::Extreme)).unwrap()[0];
    assert!(["inf", "-inf", "NaN", "-0", "340282"].iter().all(|n| found.contains(n)), "{found}");
}

#[test]
fn a_boolean_is_drawn_both_ways_from_one_seed() {
    for seed in 0..20 {
        let both = [Numbers::Ordinary, Numbers::Extreme]
            .map(|numbers| drawn("def @main(%p: bool) { 1 }", &ArgumentGenerator::new(seed).numbers(numbers)).unwrap());
        assert_ne!(both[0], both[1], "{seed}");
    }
}

#[test]
fn what_cannot_be_drawn_says_why() {
    let why = |ty: &str| {
        drawn(&format!("def @main(%p: {ty}) {{ 1 }}"), &ArgumentGenerator::new(0).most_bytes(1 << 20)).unwrap_err()
    };
    let begin = "the parameter `%p` of type";
    assert_eq!(
        why("fn(int64) -> int64"),
        format!("{begin} fn(Tensor[(), int64]) -> Tensor[(), int64] cannot be drawn")
    );
    assert_eq!(why("(int64, Any)"), format!("{begin} (Tensor[(), int64], Any) cannot be drawn: it holds Any"));
    assert!(why("Tensor[?, float32]").ends_with("cannot be drawn: its rank is not known"));
    assert!(
        why("Tensor[(n, n - 3), float32]").ends_with("its extent n - 3 comes to -1"),
        "{}",
        why("Tensor[(n, n - 3), float32]")
    );
    assert!(why("Tensor[(1048576,), float32]").ends_with("it is too large"));
    assert!(why("Tensor[(2,), string]").ends_with("string has no kernels"));
    // Without a limit, tensors that no memory can hold are rejected.
    for dtype in ["int8", "bool", "int64", "float16", "float64"] {
        let text = format!("def @main(%p: Tensor[(1152921504606846975,), {dtype}]) {{ 1 }}");
        assert!(drawn(&text, &ArgumentGenerator::new(0)).unwrap_err().ends_with("it is too large"));
    }
    let text = "def @main(%p: Tensor[(1152921504606846975,), float32]) { 1 }";
    assert!(
        drawn(text, &ArgumentGenerator::new(0).numbers(Numbers::Extreme)).unwrap_err().ends_with("it is too large")
    );
}

fn run(text: &str) -> Outcome {
    let module = parse(text);
    let main = module.get(module.find("main").unwrap()).unwrap();
    let arguments = ArgumentGenerator::new(3).arguments(&module.cx, main).unwrap();
    Interpreter::new(&module).call("main", arguments.values, &arguments.list).unwrap()
}

#[track_caller]
fn differ(agreement: Agreement, before: &str, after: &str, expected: &str) {
    let of = |body: &str| run(&format!("def @main(%x: Tensor[(2, 3), float32]) {{ {body} }}"));
    let (before, after) = (of(before), of(after));
    let found = agreement.first_difference(&before, &after).map(|d| d.to_string());
    assert_eq!(found.as_deref(), (!expected.is_empty()).then_some(expected));
    assert_eq!(agreement.holds(&before, &after), expected.is_empty());
    assert_eq!(Agreement::Exact.first_difference(&before, &before), None);
}

#[test]
fn the_first_difference_is_named() {
    let (exact, near) = (Agreement::Exact, Agreement::Within(1e-4));
    differ(exact, "1", "2", "the result: 1 before, 2 after");
    differ(exact, "1f", "-1f", "the result: 1 (0x3f800000) before, -1 (0xbf800000) after");
    differ(exact, "0f", "-0.0f", "the result: 0 (0x00000000) before, -0 (0x80000000) after");
    differ(near, "0f", "-0.0f", "");
    differ(exact, "1f", "1.00001f", "the result: 1 (0x3f800000) before, 1.00001 (0x3f800054) after");
    differ(near, "1f", "1.00001f", "");
    differ(near, "1f", "1.001f", "the result: 1 (0x3f800000) before, 1.001 (0x3f8020c5) after");
    let in_range = near.within_range();
    differ(in_range, "1f", "inff", "");
    differ(in_range, "nanf", "1f", "");
    differ(in_range, "1f", "1.001f", "the result: 1 (0x3f800000) before, 1.001 (0x3f8020c5) after");
    assert_eq!(exact.within_range(), exact);
    differ(exact, "1", "1f", "the result: Tensor[(), int32][1] before, Tensor[(), float32][1] after");
    let pair = "(%x, (1, dense<Tensor[(2, 2), int8]>[1, 2, 3, 4]))";
    differ(exact, pair, pair, "");
    let other = pair.replace("3, 4", "5, 6");
    differ(exact, pair, &other, "field .1.1 of the result, element [1, 0]: 3 before, 5 after");
    differ(
        exact,
        "(1, 2)",
        "(1, 2, 3)",
        "the result: (Tensor[(), int32][1], Tensor[(), int32][2]) before, (Tensor[(), int32][1], Tensor[(), int32][2], Tensor[(), int32][3]) after",
    );
    differ(exact, "let %p = print(1); 2", "let %p = print(3); 2", "operand 0 of effect 0: 1 before, 3 after");
    differ(
        exact,
        "let %p = print(1); let %q = print(2); 2",
        "let %p = print(1); 2",
        "effect 1: print before, nothing after",
    );
    differ(
        exact,
        "let %p = print(1); 2",
        "let %p = print(1, 1); 2",
        "effect 0: print of 1 operands before, print of 2 operands after",
    );
}

#[test]
fn splats_and_what_is_written_out_are_compared_by_element() {
    let before = run("def @main() { dense<Tensor[(2, 2), int64]>[7] }");
    let after = run("def @main() { dense<Tensor[(2, 2), int64]>[7, 7, 8, 7] }");
    let found = Agreement::Exact.first_difference(&before, &after).unwrap();
    assert_eq!(found.to_string(), "the result, element [1, 0]: 7 before, 8 after");
}

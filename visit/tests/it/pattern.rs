//! Tests of the matches of patterns.

use anfora_ir::{
    DType, Editor, ExprId, FunctionBuilder, FusionPattern, Literal, Module, Source, parse_module, verify_module,
};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::pattern::{
    Matcher, Pattern, PatternError, PatternOptions, PatternRewriteError, Rule, StopReason, any, any_literal, any_of,
    call, capture, global, literal, literal_where, none, op, op_in, op_where, proj, rest, rewrite_patterns, tuple,
};

use crate::programs::{Shape, deep};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), anfora_ops::standard())
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(|e| format!("{e}\n")).collect::<String>()))
}

/// Returns the number of nodes of `@main` at which a pattern matches.
fn count(text: &str, pattern: &Pattern) -> usize {
    let mut module = parse(text);
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    Matcher::new(cx, &function.body, pattern, None).unwrap_or_else(|e| panic!("{e}")).find_all().len()
}

/// Returns true if a pattern matches the tail of `block` in `@main(%x: Tensor[(2, 3), float32], %y:
/// Tensor[(2, 3), float32], %i: int32, %c: bool)`.
fn matches(block: &str, pattern: Pattern) -> bool {
    let text = format!(
        "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32], %i: int32, %c: bool) {{ {block} }}"
    );
    let mut module = parse(&text);
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let tail = function.body.tail(function.body.root());
    Matcher::new(cx, &function.body, &pattern, None).unwrap_or_else(|e| panic!("{e}")).at(tail).is_some()
}

#[test]
fn operands_are_looked_through_lets_and_aliases() {
    let pattern = || op("exp", [op("log", [any()])]);
    assert!(matches("let %a = log(%x); exp(%a)", pattern()));
    assert!(matches("exp(log(%x))", pattern()));
    assert!(matches("let %a = log(%x); let %b = %a; let %d = %b; exp(%d)", pattern()));
    assert!(matches("let %a = log(%x); if (%c) { exp(%a) } else { %x }", any()));
    assert_eq!(
        count("def @main(%x: float32, %c: bool) { let %a = log(%x); if (%c) { exp(%a) } else { %x } }", &pattern()),
        1
    );
    assert!(!matches("let %a = if (%c) { log(%x) } else { %x }; exp(%a)", pattern()));
    assert!(!matches("let %a = { let %t = log(%x); %t }; exp(%a)", pattern()));
    assert!(!matches("exp(%x)", pattern()));
}

#[test]
fn literals_are_numbers_of_any_width_and_zeros_have_signs() {
    let times = |p: Pattern| op("multiply", [any(), p]);
    assert!(matches("multiply(%x, 1f)", times(literal(1.0))));
    assert!(matches("multiply(%x, dense<Tensor[(2, 3), float32]>[1])", times(literal(1.0))));
    assert!(!matches("multiply(%x, dense<Tensor[(3,), float32]>[1, 2, 1])", times(literal(1.0))));
    assert!(!matches("multiply(%x, 1f)", times(literal(1))));
    assert!(matches("multiply(%i, -3)", times(literal(-3))));
    assert!(!matches("multiply(%i, 1)", times(literal(1.0))));
    assert!(matches("multiply(%x, 0f)", times(literal(0.0))) && !matches("multiply(%x, 0f)", times(literal(-0.0))));
    assert!(matches("multiply(%x, -0f)", times(literal(-0.0))) && !matches("multiply(%x, -0f)", times(literal(0.0))));
    assert!(matches("multiply(%x, nanf)", times(literal(f64::NAN))));
    for number in ["1f16", "1bf16", "1.0f64"] {
        assert!(matches(&format!("multiply({number}, {number})"), op("multiply", [literal(1.0), any_literal()])));
    }
    for number in ["-1i8", "-1i16", "-1", "-1i64"] {
        assert!(matches(&format!("abs({number})"), op("abs", [literal(-1)])), "{number}");
    }
    for number in ["255u8", "255u16", "255u32", "255u64"] {
        assert!(matches(&format!("abs({number})"), op("abs", [literal(255)])), "{number}");
        assert!(!matches(&format!("abs({number})"), op("abs", [literal(-1)])), "{number}");
    }
    assert!(matches("logical_not(true)", op("logical_not", [literal(true)])));
    assert!(matches("multiply(%x, 2f)", times(literal_where(|l| l.rank() == 0))));
    assert!(matches("let %t = 1f; multiply(%x, %t)", times(literal(1.0).rank(0))));
    assert!(!matches("multiply(%x, 1f)", times(literal(1.0).rank(2))));
}

#[test]
fn operands_of_commutative_operators_stand_in_either_order() {
    let pattern = || op("add", [op("exp", [any()]), capture("y")]);
    assert!(matches("let %e = exp(%x); add(%e, %y)", pattern()));
    assert!(matches("let %e = exp(%x); add(%y, %e)", pattern()));
    assert!(!matches("let %e = exp(%x); add(%y, %e)", pattern().ordered()));
    let difference = || op("subtract", [op("exp", [any()]), any()]);
    assert!(!matches("let %e = exp(%x); subtract(%y, %e)", difference()));
    assert!(matches("let %e = exp(%x); subtract(%y, %e)", difference().commutative()));
    // Found only by backtracking: `a` must be the same in both products.
    let same = op("add", [op("multiply", [capture("a"), any()]), op("multiply", [capture("a"), any()])]);
    assert!(matches("let %p = multiply(%y, %x); let %q = multiply(%x, %x); add(%p, %q)", same.clone()));
    assert!(!matches("let %p = multiply(%y, %y); let %q = multiply(%x, %x); add(%p, %q)", same));
}

#[test]
fn a_capture_that_stands_twice_is_one_expression() {
    let same = || op("subtract", [capture("x"), capture("x")]);
    assert!(matches("subtract(%x, %x)", same()));
    assert!(matches("let %a = %x; subtract(%a, %x)", same()));
    assert!(!matches("subtract(%x, %y)", same()));
    assert!(matches("subtract(1f, 1f)", same()));
    let lists = tuple([tuple([rest().capture("r")]), tuple([any(), rest().capture("r")])]);
    assert!(matches("let %a = (%x, %y); let %b = (%c, %x, %y); (%a, %b)", lists.clone()));
    assert!(!matches("let %a = (%x, %y); let %b = (%c, %y, %x); (%a, %b)", lists));
}

#[test]
fn attributes_have_their_defaults() {
    assert!(matches("sum(%x, axis=[1])", op("sum", [any()]).attr("axis", [1])));
    assert!(!matches("sum(%x, axis=[0])", op("sum", [any()]).attr("axis", [1])));
    assert!(matches("sum(%x)", op("sum", [any()]).attr("keepdims", false)));
    assert!(!matches("sum(%x, keepdims=true)", op("sum", [any()]).attr("keepdims", false)));
    assert!(matches("nn.leaky_relu(%x)", op("nn.leaky_relu", [any()]).attr("alpha", 0.01)));
    assert!(matches("nn.gelu(%x)", op("nn.gelu", [any()]).capture("g").attr("approximate", "none")));
    assert!(matches("astype(%x, dtype=int32)", op("astype", [any()]).attr("dtype", DType::Int32)));
    assert!(matches("let %s = sum(%x, axis=[1]); exp(%s)", op("exp", [op("sum", [any()]).attr("axis", [1])])));
    let some = |p: Pattern| p.attrs_where(|attrs| attrs.ints("axis").is_some_and(|a| a.contains(&1)));
    assert!(matches("max(%x, axis=[0, 1])", some(op_in(["max", "min"], [any()]))));
}

#[test]
fn the_rest_is_any_number() {
    assert!(matches("(%x, %y, %i)", tuple([any(), rest()])) && matches("(%x, %y)", tuple([any(), any(), rest()])));
    assert!(!matches("(%x, %y)", tuple([any()])) && !matches("(%x, %y)", tuple([any(), any(), any(), rest()])));
    assert!(matches("add(%x, %y)", op("add", [rest()])));
}

#[test]
fn what_is_left_out_is_none() {
    let bounds = |low: Pattern, high: Pattern| op("clip", [any(), low, high]);
    for text in ["clip(%x)", "clip(%x, none)", "clip(%x, none, none)"] {
        assert!(matches(text, op("clip", [any()])) && matches(text, bounds(none(), none())));
        assert!(!matches(text, bounds(none(), any())) && !matches(text, bounds(any_literal(), none())));
    }
    assert!(matches("clip(%x, 1f, none)", bounds(any_literal(), none())));
    assert!(!matches("clip(%x, none, 1f)", bounds(none(), none())));
}

#[test]
fn tuples_projections_calls_and_globals() {
    assert!(matches("let %t = (%x, %y); %t.1", proj(tuple([any(), any()]), 1)));
    assert!(
        !matches("let %t = (%x, %y); %t.1", proj(any(), 0)) && matches("let %t = (%x, %y); %t.1", proj(any(), None))
    );
    let text = "def @f(%x: float32) { %x } def @main(%x: float32) { let %g = @f; let %a = %g(%x); @f(%a) }";
    assert_eq!(count(text, &call(global("f"), [any()])), 2);
    assert_eq!(count(text, &call(global("main"), [any()])), 0);
    assert_eq!(count(text, &call(global("nobody"), [any()])), 0);
    assert!(matches("let %f = fn (%p: float32) { %p }; %f(1f)", call(any(), [any_literal()])));
    assert!(!matches("(none, %x)", tuple([any(), none()])));
    assert!(matches("(none, %x)", tuple([none(), any()])));
}

#[test]
fn alternatives_and_optional_parts() {
    let either = || op("exp", [any()]) | op("log", [any()]);
    assert!(matches("exp(%x)", either()) && matches("log(%x)", either()) && !matches("tanh(%x)", either()));
    assert!(matches("let %a = log(%x); negative(%a)", op("negative", [any_of([either(), any()])])));
    // The first alternative fails later on, and the next one is tried.
    let later = op("add", [op("exp", [capture("x")]) | capture("x"), capture("x")]).ordered();
    assert!(matches("let %e = exp(%x); add(%e, %e)", later.clone()) && matches("let %e = exp(%x); add(%e, %x)", later));
    let layer = || {
        op("matmul", [any(), any()])
            .optional(|m| op("add", [m, capture("bias")]))
            .optional(|m| op("nn.relu", [m]).capture("relu"))
    };
    let found = |block: &str| {
        let mut module =
            parse(&format!("def @main(%a: Tensor[(2, 2), float32], %b: Tensor[(2,), float32]) {{ {block} }}"));
        let (function, cx) = module.get_mut(module.order()[0]).unwrap();
        let tail = function.body.tail(function.body.root());
        let pattern = layer();
        let mut matcher = Matcher::new(cx, &function.body, &pattern, None).unwrap();
        matcher.at(tail).map(|c| (c.has("bias"), c.has("relu")))
    };
    assert_eq!(found("matmul(%a, %a)"), Some((false, false)));
    assert_eq!(found("let %m = matmul(%a, %a); nn.relu(%m)"), Some((false, true)));
    assert_eq!(found("let %m = matmul(%a, %a); let %s = add(%b, %m); nn.relu(%s)"), Some((true, true)));
    assert_eq!(found("let %m = matmul(%a, %a); add(%m, %b)"), Some((true, false)));
    assert_eq!(found("let %s = add(%a, %b); nn.relu(%s)"), None);
}

#[test]
fn types_and_uses() {
    let exp = |p: Pattern| matches("exp(%x)", op("exp", [p]));
    assert!(exp(any().dtype(DType::Float32)) && !exp(any().dtype(DType::Float16)));
    assert!(exp(any().rank(2)) && !exp(any().rank(1)) && exp(any().static_shape()));
    assert!(exp(any().shape(&[Some(2), None])) && !exp(any().shape(&[Some(3), None])) && !exp(any().shape(&[None])));
    assert!(exp(any().type_where(|types, ty| types.static_shape(ty).is_some_and(|s| s[1] == 3))));
    assert!(exp(any().filter(|c| c.expr == c.body.params()[0].expr() && c.value == c.expr)));
    // The capture for the comparison may come later.
    let same = || op("add", [any(), capture("y")]).ordered().same_type_as("y");
    assert!(matches("add(%x, %y)", same()) && !matches("add(%x, 1f)", same()));
    let once = || op("exp", [op("log", [any()]).used_once()]);
    assert!(matches("let %a = log(%x); exp(%a)", once()));
    assert!(!matches("let %a = log(%x); let %b = tanh(%a); exp(%a)", once()));
    assert!(!matches("let %a = log(%x); let %b = %a; let %d = tanh(%a); exp(%b)", once()));
    assert!(matches("exp(log(%x))", once()));
    assert!(matches("exp(%x)", op_where(|row| row.fusion == FusionPattern::ElemWise, [any()])));
    assert!(!matches("add(%x, %y)", op_where(|row| row.fusion == FusionPattern::ElemWise, [rest()])));
}

#[test]
fn captures_by_name_and_number() {
    let mut module = parse("def @main(%x: float32, %y: float32) { let %e = exp(%x); add(%y, %e) }");
    let (function, cx) = module.get_mut(module.order()[0]).unwrap();
    let [x, y] = [0, 1].map(|i| function.body.params()[i].expr());
    let pattern = op("add", [op("exp", [capture("x")]).capture("e"), capture("y")]).capture("sum");
    let tail = function.body.tail(function.body.root());
    let mut matcher = Matcher::new(cx, &function.body, &pattern, None).unwrap();
    let captures = matcher.at(tail).unwrap();
    assert_eq!((captures["sum"], captures["x"], captures["y"]), (tail, x, y));
    assert_eq!((captures[0], captures[2], captures.get("nothing"), captures.root()), (tail, x, None, tail));
    let names: Vec<&str> = captures.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["sum", "e", "x", "y"]);
}

/// Each level can match in two ways, and the innermost expression does not match: 2^40 ways to
/// fail.
#[test]
fn many_ways_to_match_end_at_the_budget() {
    let mut text = String::from("def @main(%x: float32) { let %a = exp(%x);");
    let mut pattern = op("log", [any()]);
    for _ in 0..40 {
        text.push_str("let %a = add(%a, %a);");
        pattern = op("add", [any(), pattern]).optional(|p| op("add", [p, any()]));
    }
    text.push_str("%a }");
    assert_eq!(count(&text, &pattern), 0);
}

#[test]
fn deep_patterns_on_a_small_stack() {
    let n = depth(5_000);
    for shape in [Shape::NestedCall, Shape::Diamonds] {
        on_small_stack(move || {
            let mut module = deep(shape, n);
            let key = module.order()[0];
            let (function, cx) = module.get_mut(key).unwrap();
            let mut pattern = op("negative", [capture("x")]);
            for _ in 0..n {
                pattern = match shape {
                    Shape::NestedCall => op("negative", [pattern]),
                    _ => op("add", [any(), pattern]),
                };
            }
            let root = function.body.tail(function.body.root());
            let copy = pattern.clone();
            let mut matcher = Matcher::new(cx, &function.body, &copy, None).unwrap();
            drop(pattern);
            let x: ExprId = function.body.params()[0].expr();
            assert_eq!(matcher.at(root).map(|c| c["x"]), Some(x), "{shape:?}");
        });
    }
}

#[test]
fn deep_names_conditions_and_optional_parts() {
    on_small_stack(|| {
        const N: usize = 200_000;
        let mut pattern = op("negative", [any()]);
        for i in 0..N {
            pattern = match i % 3 {
                0 => pattern.rank(0),
                1 => pattern.optional(|p| op("add", [any(), p])),
                _ => pattern | op("add", [any(), any()]),
            };
        }
        let mut module = deep(Shape::NestedCall, 100);
        let key = module.order()[0];
        let (function, cx) = module.get_mut(key).unwrap();
        let root = function.body.root();
        assert!(Matcher::new(cx, &function.body, &pattern, None).unwrap().at(root).is_some());
    });
}

#[test]
fn a_float_is_rounded_to_the_type_of_the_literal() {
    let times = |number: f64| op("multiply", [any(), literal(number)]);
    assert!(matches("multiply(%x, 0.1f)", times(0.1)));
    assert!(matches("multiply(%x, 0.1f)", op("multiply", [any(), literal(0.1f32)])));
    assert!(!matches("multiply(%x, 0.1f)", times(0.1001)));
    assert!(matches("multiply(%x, dense<Tensor[(2, 3), float32]>[0.3])", times(0.3)));
    // A number that is neither zero nor infinite does not match zero or infinity in a narrow type.
    assert!(!matches("multiply(%x, 0f)", times(1e-300)));
    assert!(!matches("multiply(%x, dense<Tensor[(2, 3), float32]>[inf])", times(1e300)));
    assert!(matches("multiply(%x, dense<Tensor[(2, 3), float32]>[inf])", times(f64::INFINITY)));
    for ty in ["float16", "bfloat16", "float64"] {
        let text = |number: &str| {
            format!("def @main(%h: Tensor[(2,), {ty}]) {{ multiply(%h, dense<Tensor[(2,), {ty}]>[{number}]) }}")
        };
        assert_eq!(count(&text("0.1"), &times(0.1)), 1, "{ty}");
        assert_eq!(count(&text("0.2"), &times(0.1)), 0, "{ty}");
    }
}

#[test]
fn a_pattern_that_no_operator_passes_is_refused_for_that() {
    let mut module = parse("def @main(%x: float32) { exp(%x) }");
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let mut error = |pattern: Pattern| Matcher::new(cx, &function.body, &pattern, None).err();
    assert_eq!(error(op_where(|_| false, [any()])), Some(PatternError::NoOperator));
    assert_eq!(error(op_in([], [any()]).capture("r")), Some(PatternError::NoOperator));
    assert_eq!(error(literal(1)), Some(PatternError::AtomRoot));
    assert_eq!(error(op_in([], [any()]) | op("exp", [any()])), None);
    let text = PatternError::AtomRoot.to_string();
    assert!(!text.contains("rewritten"), "{text}");
}

/// Rewrites `@main` of a module and returns the outcome.
fn rewrite(module: &mut Module, rules: &mut [Rule<'_>]) -> Result<anfora_visit::pattern::Outcome, PatternRewriteError> {
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    rewrite_patterns(&mut Editor::new(cx, &mut function.body), rules, &PatternOptions::default())
}

#[test]
fn a_list_and_an_expression_are_not_exchanged_on_the_right_side() {
    let refused = |left: Pattern, right: Pattern| {
        let mut module = parse("def @main(%x: float32) { (%x, %x) }");
        match rewrite(&mut module, &mut [Rule::replace("r", left, right)]) {
            Err(PatternRewriteError::Pattern { error, .. }) => error,
            other => panic!("{other:?}"),
        }
    };
    let list = || tuple([rest().capture("xs")]);
    let mixed = PatternError::MixedCapture("xs".into());
    assert_eq!(refused(list(), capture("xs")), mixed);
    assert_eq!(refused(list(), tuple([capture("xs")])), mixed);
    assert_eq!(refused(tuple([capture("xs"), any()]), tuple([rest().capture("xs")])), mixed);
    assert_eq!(refused(list(), proj(rest().capture("xs"), 0)), PatternError::Rest);
    assert_eq!(refused(list(), rest().capture("xs")), PatternError::Rest);
    assert!(matches!(refused(list(), capture("xz")), PatternError::UnknownCapture { .. }));
}

#[test]
fn a_long_row_of_aliases_is_followed_in_constant_work() {
    for n in [10, 20_000] {
        let mut module = Module::new(anfora_ops::standard());
        let float = module.cx.types.scalar(DType::Float32);
        let mut f = FunctionBuilder::new(&mut module, "main");
        let x = f.param("x", float);
        let one = f.literal(Literal::scalar(1f32));
        let log = f.call_op("log", &[x], &[]).unwrap();
        let log = f.bind("a", log);
        let mut alias = f.call_op("multiply", &[log, one], &[]).unwrap();
        let mut last = x;
        for _ in 0..n {
            alias = f.bind("a", alias);
            let exp = f.call_op("exp", &[alias], &[]).unwrap();
            let exp = f.bind("e", exp);
            last = f.call_op("add", &[last, exp], &[]).unwrap();
            last = f.bind("s", last);
        }
        f.finish(last).unwrap();
        let mut looked = 0;
        let mut rules = [
            Rule::new("exp log", op("exp", [op("log", [capture("x")])]), |rw, c| {
                let (_, body) = rw.program();
                let operand = body.operands_of(c.root())[0];
                looked += usize::from(rw.op_of(operand).is_some_and(|row| row.name == "log"));
                Ok(Some(c["x"]))
            }),
            // The last value of the row is replaced.
            Rule::replace("x * 1", op("multiply", [capture("x"), literal(1.0)]), capture("x")),
        ];
        let outcome = rewrite(&mut module, &mut rules).unwrap();
        assert_eq!(outcome.stop, StopReason::Fixpoint);
        assert_eq!((outcome.rules[0].rewrites, outcome.rules[0].gave_up, outcome.rules[0].declined), (n, 0, 0));
        drop(rules);
        assert_eq!(looked as u64, n);
        verify_module(&module).unwrap_or_else(|e| panic!("{e:?}"));
    }
}

#[test]
fn a_captured_list_is_looked_at_where_it_stands() {
    // This many projections of a tuple with this many fields: copying the fields for each would
    // take hours.
    let n = 200_000;
    let mut module = Module::new(anfora_ops::standard());
    let float = module.cx.types.scalar(DType::Float32);
    let mut f = FunctionBuilder::new(&mut module, "main");
    let x = f.param("x", float);
    let fields = f.tuple(&vec![x; n]);
    let fields = f.bind("t", fields);
    let mut last = x;
    for i in 0..n {
        last = f.proj(fields, i as u32).unwrap();
        last = f.bind("p", last);
    }
    f.finish(last).unwrap();
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let pattern = proj(tuple([any(), rest().capture("xs")]), None);
    let mut matcher = Matcher::new(cx, &function.body, &pattern, None).unwrap();
    let roots = matcher.find_all();
    assert_eq!(roots.len(), n);
    let captures = matcher.at(roots[n - 1]).unwrap();
    assert_eq!(captures.list(&function.body, "xs").len(), n - 1);
}

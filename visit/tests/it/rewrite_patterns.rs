//! Tests of rewriting by rules, on the standard operators.

use crate::programs;
use std::sync::Arc;

use anfora_ir::{
    Arity, DType, Editor, Expr, FunctionBuilder, Literal, Module, OpDef, OpRegistry, Purity, Source, TypeError,
    parse_module, verify_module,
};
use anfora_testing::programs::{Random, Vocabulary};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::pattern::{
    Outcome, Pattern, PatternOptions, Rewriter, Rule, StopReason, any, any_literal, call, capture, literal, op, op_in,
    rest, rewrite_patterns, tuple,
};
use expect_test::expect;

/// Returns the standard operators and a fused one.
pub(crate) fn registry() -> Arc<OpRegistry> {
    let mut registry = OpRegistry::new();
    anfora_ops::register(&mut registry).unwrap();
    registry
        .register(OpDef::new("fused.conv_bias_relu", "A convolution, a bias and a relu.", Arity::exactly(3), |call| {
            let (conv, empty) = (call.cx.ops.find("nn.conv2d").unwrap(), call.cx.attrs.empty());
            let any = call.cx.types.any();
            anfora_ir::infer_op(call.cx, conv, &call.operands()[..2], empty, any)
        }))
        .unwrap();
    Arc::new(registry)
}

pub(crate) fn parse(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), registry())
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(|e| format!("{e}\n")).collect::<String>()))
}

/// Rewrites every function of a text. Returns the new text, and the outcome for the last function.
pub(crate) fn rewritten(text: &str, rules: &mut [Rule<'_>]) -> (String, Outcome) {
    let mut module = parse(text);
    assert!(verify_module(&module).is_ok(), "{:?}", verify_module(&module).err());
    let purity = Purity::of_module(&module);
    let options = PatternOptions { purity: Some(&purity), ..PatternOptions::default() };
    let mut outcome = None;
    for key in module.order().to_vec() {
        let (function, cx) = module.get_mut(key).unwrap();
        function.body.begin_journal();
        let done = rewrite_patterns(&mut Editor::new(cx, &mut function.body), rules, &options)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(function.body.commit_journal(), done.rewrites > 0);
        outcome = Some(done);
    }
    if let Err(errors) = verify_module(&module) {
        panic!("{errors:?}\n{module}");
    }
    let text = module.to_text();
    let again =
        parse_module(Source::new("again", text.clone()), registry()).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    assert_eq!(again.to_text(), text);
    (text, outcome.unwrap())
}

pub(crate) fn after(text: &str, rules: &mut [Rule<'_>]) -> String {
    let (text, outcome) = rewritten(text, rules);
    assert_eq!(outcome.stop, StopReason::Fixpoint);
    text
}

pub(crate) fn one() -> Pattern {
    literal(1) | literal(1.0)
}

pub(crate) fn times_one() -> Rule<'static> {
    Rule::replace("x * 1", op("multiply", [capture("x"), one()]), capture("x"))
}

/// Returns a rule that removes additions of zero. `-0 + 0` is `0`, so of floats, only `-0` can be
/// removed.
pub(crate) fn plus_zero() -> Rule<'static> {
    Rule::replace("x + 0", op("add", [capture("x"), literal(0) | literal(-0.0)]), capture("x"))
}

/// Returns a rule that replaces two transpositions by one or none.
fn transposes() -> Rule<'static> {
    let twice = op("permute_dims", [op("permute_dims", [capture("x")]).capture("inner")]).capture("outer");
    Rule::new("transpose of transpose", twice, |rw, c| {
        let rank = |rw: &Rewriter<'_, '_>| {
            let (cx, body) = rw.program();
            Some(cx.types.as_tensor(body.type_of(c["x"]))?.shape.as_ref()?.len())
        };
        let Some(rank) = rank(rw) else { return Ok(None) };
        let axes = |rw: &Rewriter<'_, '_>, id| match rw.attrs(id).and_then(|attrs| attrs.ints("axes")) {
            Some(axes) => axes.iter().map(|&a| a.rem_euclid(rank as i64) as usize).collect::<Vec<_>>(),
            None => (0..rank).rev().collect(),
        };
        let (inner, outer) = (axes(rw, c["inner"]), axes(rw, c["outer"]));
        let composed: Vec<i64> = outer.iter().map(|&a| inner[a] as i64).collect();
        if composed.iter().enumerate().all(|(i, &a)| a == i as i64) {
            return Ok(Some(c["x"]));
        }
        Ok(Some(rw.op_with("permute_dims", &[c["x"]], &[("axes", composed.into())])?))
    })
}

#[test]
fn a_product_with_one_disappears_wherever_it_stands() {
    let text = after(
        "def @main(%x: Tensor[(n,), float32], %i: Tensor[(n,), int8], %c: bool) {
            let %a = multiply(%x, 1f);
            let %b = if (%c) { let %t = multiply(1f, %a); tanh(%t) } else { multiply(%x, 2f) };
            let %f = fn (%p: Tensor[(3,), float16]) { multiply(%p, dense<Tensor[(3,), float16]>[1]) };
            let %j = multiply(%i, 1i8);
            (%a, multiply(%b, 1f), %f, %j, multiply(1f, %a))
        }",
        &mut [times_one()],
    );
    expect![[r#"
        def @main(%x: Tensor[(n,), float32], %i: Tensor[(n,), int8], %c: Tensor[(), bool]) -> (Tensor[(n,), float32], Tensor[(n,), float32], fn(Tensor[(3,), float16]) -> Tensor[(3,), float16], Tensor[(n,), int8], Tensor[(n,), float32]) {
          let %b = if (%c) { tanh(%x) } else { multiply(%x, 2f) };
          let %f = fn (%p: Tensor[(3,), float16]) { %p };
          (%x, %b, %f, %i, %x)
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_replacement_of_another_type_is_left_alone_and_counted() {
    let program = "def @main(%x: float32) { multiply(%x, dense<Tensor[(3,), float32]>[1]) }";
    let (text, outcome) = rewritten(program, &mut [times_one()]);
    assert!(text.contains("multiply"));
    assert_eq!((outcome.rewrites, outcome.rules[0].mistyped), (0, 1));
}

#[test]
fn only_the_zero_that_changes_nothing_is_left_out() {
    let text = after(
        "def @main(%x: float32, %i: int32) {
            let %a = add(%x, 0f);
            let %b = add(%a, -0f);
            let %c = add(0, %i);
            (%b, %c)
        }",
        &mut [plus_zero()],
    );
    expect![[r#"
        def @main(%x: Tensor[(), float32], %i: Tensor[(), int32]) -> (Tensor[(), float32], Tensor[(), int32]) {
          let %a = add(%x, 0f);
          (%a, %i)
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn transposes_are_composed() {
    let text = after(
        "def @main(%x: Tensor[(2, 3, 4), float32]) {
            let %a = permute_dims(%x, axes=[1, 2, 0]);
            let %b = permute_dims(%a, axes=[1, 2, 0]);
            let %c = permute_dims(%b, axes=[1, -1, 0]);
            let %d = permute_dims(%x);
            (%a, %b, %c, permute_dims(%d))
        }",
        &mut [transposes()],
    );
    expect![[r#"
        def @main(%x: Tensor[(2, 3, 4), float32]) -> (Tensor[(3, 4, 2), float32], Tensor[(4, 2, 3), float32], Tensor[(2, 3, 4), float32], Tensor[(2, 3, 4), float32]) {
          let %a = permute_dims(%x, axes=[1, 2, 0]);
          let %b = permute_dims(%x, axes=[2, 0, 1]);
          (%a, %b, %x, %x)
        }
    "#]]
    .assert_eq(&text);
}

/// Matches a convolution without other uses, the addition of a bias, and a relu.
fn conv_bias_relu() -> Pattern {
    let conv = op("nn.conv2d", [capture("data"), capture("weight")]).capture("conv").used_once();
    op("nn.relu", [op("add", [conv, capture("bias").rank(3)]).used_once()])
}

const CONVOLUTIONS: &str =
    "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(3, 3, 1, 1), float32], %b: Tensor[(3, 1, 1), float32]) {
    dataflow {
        let %conv = nn.conv2d(%x, %w);
        let %sum = add(%b, %conv);
        let %y = nn.relu(%sum);
        let %again = nn.conv2d(%y, %w);
        let %sum2 = add(%again, %b);
        let %z = nn.relu(%sum2);
        output(%z, %again)
    }
    (%z, %again)
}";

#[test]
fn a_convolution_with_bias_and_relu_becomes_one_call() {
    let fused = op("fused.conv_bias_relu", [capture("data"), capture("weight"), capture("bias")]);
    let text = after(CONVOLUTIONS, &mut [Rule::replace("conv + bias + relu", conv_bias_relu(), fused)]);
    expect![[r#"
        def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(3, 3, 1, 1), float32], %b: Tensor[(3, 1, 1), float32]) -> (Tensor[(1, 3, 8, 8), float32], Tensor[(1, 3, 8, 8), float32]) {
          dataflow {
            let %y = fused.conv_bias_relu(%x, %w, %b);
            let %again = nn.conv2d(%y, %w);
            let %sum2 = add(%again, %b);
            let %z = nn.relu(%sum2);
            output(%again, %z);
          }
          (%z, %again)
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_convolution_with_bias_and_relu_becomes_a_lambda_with_an_attribute() {
    let rule = Rule::new("fuse", conv_bias_relu(), |rw, c| {
        let inputs = [c["data"], c["weight"], c["bias"]];
        let types = inputs.map(|id| rw.ty(id));
        let conv = c["conv"];
        let fused =
            rw.lambda(&types, &[("Composite", "conv_bias_relu".into()), ("Primitive", 1.into())], |rw, p| {
                let conv = rw.op_like(conv, &p[..2])?;
                let sum = rw.op("add", &[conv, p[2]])?;
                rw.op("nn.relu", &[sum])
            })?;
        Ok(Some(rw.call(fused, &inputs)?))
    });
    let text = after(CONVOLUTIONS, &mut [rule]);
    expect![[r#"
        def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(3, 3, 1, 1), float32], %b: Tensor[(3, 1, 1), float32]) -> (Tensor[(1, 3, 8, 8), float32], Tensor[(1, 3, 8, 8), float32]) {
          dataflow {
            let %0 = fn (%1: Tensor[(1, 3, 8, 8), float32], %2: Tensor[(3, 3, 1, 1), float32], %3: Tensor[(3, 1, 1), float32], Composite="conv_bias_relu", Primitive=1) {
              let %4 = nn.conv2d(%1, %2);
              let %5 = add(%4, %3);
              nn.relu(%5)
            };
            let %y = %0(%x, %w, %b);
            let %again = nn.conv2d(%y, %w);
            let %sum2 = add(%again, %b);
            let %z = nn.relu(%sum2);
            output(%again, %z);
          }
          (%z, %again)
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn nested_parts_are_bound_once_before_what_is_rewritten() {
    let rule = Rule::new("square of sum", op("square", [op("add", [capture("a"), capture("b")])]), |rw, c| {
        let sum = rw.op("add", &[c["a"], c["b"]])?;
        Ok(Some(rw.op("multiply", &[sum, sum])?))
    });
    let negated = Rule::replace(
        "negative of negative sum",
        op("negative", [op("tanh", [capture("x")])]),
        op("subtract", [op("negative", [capture("x")]), op("abs", [op("exp", [capture("x")])])]),
    );
    let text = after(
        "def @main(%x: float32, %y: float32, %c: bool) {
            dataflow { let %s = add(%x, %y); let %q = square(%s); output(%q) }
            let %t = tanh(%q);
            if (%c) { negative(%t) } else { let %u = tanh(%x); let %n = negative(%u); exp(%n) }
        }",
        &mut [rule, negated],
    );
    expect![[r#"
        def @main(%x: Tensor[(), float32], %y: Tensor[(), float32], %c: Tensor[(), bool]) -> Tensor[(), float32] {
          dataflow {
            let %0 = add(%x, %y);
            let %q = multiply(%0, %0);
            output(%q);
          }
          if (%c) {
            let %1 = negative(%q);
            let %2 = exp(%q);
            let %3 = abs(%2);
            subtract(%1, %3)
          } else {
            let %4 = negative(%x);
            let %5 = exp(%x);
            let %6 = abs(%5);
            let %n = subtract(%4, %6);
            exp(%n)
          }
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn nested_parts_are_computed_in_the_order_of_operands() {
    // Parts are made in an order other than that of their evaluation, around the replaced value.
    let rule = Rule::new("print", op("sin", [capture("x")]), |rw, c| {
        let late = rw.op("exp", &[c["x"]])?;
        let early = rw.op("tanh", &[c["x"]])?;
        let root = rw.op("cos", &[c["x"]])?;
        let sum = rw.op("add", &[early, late])?;
        Ok(Some(rw.op("multiply", &[sum, root])?))
    });
    let text = after("def @main(%x: float32) { let %s = sin(%x); %s }", &mut [rule]);
    expect![[r#"
        def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
          let %0 = tanh(%x);
          let %1 = exp(%x);
          let %2 = add(%0, %1);
          let %3 = cos(%x);
          let %s = multiply(%2, %3);
          %s
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_variable_of_another_region_becomes_an_output() {
    let text = after(
        "def @main(%x: float32) {
            dataflow { let %a = exp(%x); let %b = negative(%a); let %d = tanh(%a); output(%b, %d) }
            let %c = negative(%b);
            (%c, %d)
        }",
        &mut [Rule::replace("negative of negative", op("negative", [op("negative", [capture("x")])]), capture("x"))],
    );
    expect![[r#"
        def @main(%x: Tensor[(), float32]) -> (Tensor[(), float32], Tensor[(), float32]) {
          dataflow {
            let %a = exp(%x);
            let %d = tanh(%a);
            output(%a, %d);
          }
          (%a, %d)
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_graph_is_rewritten_as_a_graph() {
    let text = after(
        "def @main(%x: float32, %y: float32) {
            %s = multiply(add(%x, -0f), 1f);
            %q = square(add(%s, %y));
            (%q, negative(%q), %s)
        }",
        &mut [
            times_one(),
            plus_zero(),
            Rule::new("square", op("square", [capture("a")]), |rw, c| {
                let exp = rw.op("exp", &[c["a"]])?;
                Ok(Some(rw.op("multiply", &[exp, exp])?))
            }),
        ],
    );
    expect![[r#"
        def @main(%x: Tensor[(), float32], %y: Tensor[(), float32]) -> (Tensor[(), float32], Tensor[(), float32], Tensor[(), float32]) {
          %0 = exp(add(%x, %y));
          %1 = multiply(%0, %0);
          (%1, negative(%1), %x)
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn what_is_impure_stays_and_is_not_looked_through() {
    let program = "def @noisy(%x: float32) { let %u = print(%x); %x }
        def @quiet(%x: float32) { exp(%x) }
        def @main(%x: float32) {
            let %a = @noisy(%x);
            let %b = @quiet(%a);
            let %c = negative(%b);
            let %d = negative(%a);
            let %e = multiply(%d, 0f);
            (%c, %e)
        }";
    let through = |name| op("negative", [call(any(), [capture(name)])]);
    let text = after(program, &mut [Rule::replace("look through", through("x"), op("tanh", [capture("x")]))]);
    let main = text.split("def @main").nth(1).unwrap();
    expect![[r#"
        (%x: Tensor[(), float32]) -> (Tensor[(), float32], Tensor[(), float32]) {
          let %a = @noisy(%x);
          let %c = tanh(%a);
          let %d = negative(%a);
          let %e = multiply(%d, 0f);
          (%c, %e)
        }
    "#]]
    .assert_eq(main);
    // In a graph, a pattern does not match impure operands at all.
    let text = after(
        "def @main(%x: float32) { let %u = multiply(random.uniform(shape=shape(), low=0.0, high=1.0), 0f); %u }",
        &mut [Rule::replace("x * 0", op("multiply", [any(), literal(0.0)]), literal(0.0))],
    );
    assert!(text.contains("random.uniform") && text.contains("multiply"), "{text}");
}

#[test]
fn a_bound_value_is_used_once_only_in_its_own_block() {
    let fuse = || {
        let inner = op("exp", [capture("x")]).used_once();
        Rule::replace("log of exp", op("log", [inner]), capture("x"))
    };
    let text = after(
        "def @main(%x: float32) {
            let %a = exp(%x);
            let %f = fn (%p: float32) { let %l = log(%a); add(%l, %p) };
            let %b = exp(%x);
            let %c = log(%b);
            (%f, %c, %f(%c))
        }",
        &mut [fuse()],
    );
    assert!(text.contains("log(%a)") && !text.contains("%b"), "{text}");
}

#[test]
fn what_becomes_used_once_is_looked_at_again() {
    let text = after(
        "def @main(%x: float32) {
            let %a = exp(%x);
            let %b = log(%a);
            let %n = negative(%a);
            let %m = multiply(%n, 1f);
            let %k = negative(%m);
            let %z = subtract(%k, %k);
            add(%b, %z)
        }",
        &mut [
            Rule::replace("log of exp", op("log", [op("exp", [capture("x")]).used_once()]), capture("x")),
            times_one(),
            Rule::replace("x - x", op("subtract", [capture("x"), capture("x")]), literal(-0.0)),
            plus_zero(),
        ],
    );
    expect![[r#"
        def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
          %x
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn more_specific_types_reach_the_users() {
    let mut module = parse(
        "def @main(%x: Tensor[(4,), float32], %y: Tensor[(n,), float32], %c: bool) {
            let %s = shape_of(%x);
            let %a = reshape(%x, %s);
            let %b = exp(%a);
            let %i = if (%c) { let %d = tanh(%b); %d } else { negative(%b) };
            let %t = (%i, %b);
            let %u = %t.0;
            %u
        }",
    );
    let key = module.order()[0];
    let (function, cx) = module.get_mut(key).unwrap();
    let mut rules = [Rule::replace("reshape", op("reshape", [capture("x"), any()]), capture("x"))];
    let _ = rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &PatternOptions::default()).unwrap();
    let found = function.body.type_of(function.body.root());
    assert_eq!(found, cx.types.static_tensor(DType::Float32, &[4]));
    // No result type is stated, so the caller must set the signature.
    let global = module.get(key).unwrap().global().unwrap();
    let params: Vec<_> =
        module.get(key).map(|f| f.body.params().iter().map(|p| f.body.ty(p.expr())).collect()).unwrap();
    let signature = anfora_ir::signature_type(&mut module.cx, &params, found);
    module.set_signature(global, signature);
    assert!(verify_module(&module).is_ok(), "{:?}\n{module}", verify_module(&module).err());
}

#[test]
fn what_is_replaced_may_be_a_part_of_its_replacement() {
    let wrap = || {
        let bare = op("exp", [any().filter(|c| !matches!(c.body.expr(c.value), Expr::CallOp { .. }))]).capture("e");
        Rule::new("clip", bare.filter(|c| c.body.len() < 8), |rw, c| {
            let one = rw.number_like(1.0, c["e"]).ok_or_else(|| TypeError::new("not a tensor"))?;
            Ok(Some(rw.op("minimum", &[c["e"], one])?))
        })
    };
    let text = after("def @main(%x: float32) { let %a = exp(%x); tanh(%a) }", &mut [wrap()]);
    expect![[r#"
        def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
          let %0 = exp(%x);
          let %a = minimum(%0, 1f);
          tanh(%a)
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn lists_are_captured_and_put_back() {
    let flat = Rule::replace("concat of one", op("concat", [capture("only")]), capture("only"));
    let drop_first = Rule::replace(
        "tuple of a literal",
        tuple([any_literal(), rest().capture("others")]),
        tuple([rest().capture("others")]),
    );
    let exps = Rule::new("log", op_in(["exp", "log"], [rest().capture("all")]), |rw, c| {
        assert_eq!((rw.list(c, "all").len(), c.get("all"), c.has("all")), (1, None, true));
        Ok(Some(rw.op("tanh", &rw.list(c, "all"))?))
    });
    let text = after(
        "def @main(%x: Tensor[(2,), float32]) { let %l = log(%x); let %j = concat(%l, axis=0); abs(%j) }",
        &mut [flat, exps],
    );
    assert!(text.ends_with("  let %l = tanh(%x);\n  abs(%l)\n}\n"), "{text}");
    let mut module = parse("def @main(%x: float32, %y: float32) { let %t = (1f, 2f, %x, %y, 3f); %t }");
    let (function, cx) = module.get_mut(module.order()[0]).unwrap();
    // A tuple with fewer fields has another type.
    let outcome =
        rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut [drop_first], &PatternOptions::default());
    assert_eq!(outcome.unwrap().rules[0].mistyped, 1);
}

#[test]
fn lists_stand_anywhere_in_what_is_built() {
    let left = tuple([tuple([any_literal(), rest().capture("a")]), tuple([any_literal(), rest().capture("b")])]);
    let right = tuple([tuple([rest().capture("b"), rest().capture("a")]), tuple([])]);
    let swap = Rule::replace("swap", left, right);
    let text = "def @main(%x: float32, %y: float32) { ((1f, %x), (2f, %y)) }";
    let mut module = parse(text);
    let (function, cx) = module.get_mut(module.order()[0]).unwrap();
    let mut rules = [swap];
    let outcome = rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &PatternOptions::default());
    // The replacement has another type, which shows that it was built.
    assert_eq!(outcome.unwrap().rules[0].mistyped, 1);
    let either = Rule::replace("neg", op("negative", [capture("x")]), op("exp", [capture("x")]).commutative());
    let text = after("def @main(%x: float32) { negative(%x) }", &mut [either]);
    assert!(text.ends_with("  exp(%x)\n}\n"), "{text}");
}

/// Returns `@main(%x: float32)` with a chain of `n` products with one, in a dataflow region.
fn chain_of_ones(n: usize) -> Module {
    let mut module = Module::new(registry());
    let float = module.cx.types.scalar(DType::Float32);
    let mut f = FunctionBuilder::new(&mut module, "main");
    let x = f.param("x", float);
    let one = f.literal(Literal::scalar(1f32));
    f.begin_dataflow();
    let mut last = x;
    for i in 0..n {
        let product = f.call_op("multiply", &[last, one], &[]).unwrap();
        last = f.bind("a", product);
        if i % 2 == 0 {
            let negative = f.call_op("negative", &[last], &[]).unwrap();
            last = f.bind("b", negative);
        }
    }
    f.end_dataflow(&[last]);
    f.finish(last).unwrap();
    module
}

#[test]
fn every_match_of_a_long_chain_is_replaced_in_constant_work() {
    for n in [1_000, depth(5_000)] {
        on_small_stack(move || {
            let mut module = chain_of_ones(n);
            let (function, cx) = module.get_mut(module.order()[0]).unwrap();
            let before = function.body.len();
            let negatives =
                Rule::replace("- - x", op("negative", [op("negative", [capture("x")]).used_once()]), capture("x"));
            let mut rules = [times_one(), negatives];
            let outcome =
                rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &PatternOptions::default())
                    .unwrap();
            let pairs = n / 4;
            assert_eq!(outcome.stop, StopReason::Fixpoint);
            assert_eq!((outcome.rules[0].rewrites, outcome.rules[1].rewrites), (n as u64, pairs as u64));
            assert_eq!((outcome.erased, outcome.sweeps), (pairs as u64, 2));
            // Nothing was appended: each rewrite changes links of existing nodes.
            assert_eq!(function.body.len(), before);
            assert!(verify_module(&module).is_ok());
        });
    }
}

/// Each value becomes used once when the value bound after it is rewritten: a series of matches in
/// reverse program order.
#[test]
fn what_becomes_used_once_is_found_backward_in_constant_work() {
    for n in [1_000, depth(5_000)] {
        let mut module = Module::new(registry());
        let float = module.cx.types.scalar(DType::Float32);
        let mut f = FunctionBuilder::new(&mut module, "main");
        let x = f.param("x", float);
        let (mut last, mut logs) = (x, x);
        for _ in 0..n {
            let sum = f.call_op("add", &[x, last], &[]).unwrap();
            last = f.bind("sum", sum);
            let log = f.call_op("log", &[last], &[]).unwrap();
            let log = f.bind("log", log);
            let both = f.call_op("maximum", &[logs, log], &[]).unwrap();
            logs = f.bind("logs", both);
        }
        f.finish(logs).unwrap();
        let (function, cx) = module.get_mut(module.order()[0]).unwrap();
        let sum = op("add", [capture("x"), any()]).ordered().used_once();
        let mut rules = [Rule::replace("log of sum", op("log", [sum]), capture("x"))];
        let before = anfora_ir::work::count();
        let outcome =
            rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &PatternOptions::default()).unwrap();
        let work = anfora_ir::work::count() - before;
        assert_eq!((outcome.rewrites, outcome.stop), (n as u64, StopReason::Fixpoint));
        assert!(work < 400 * n as u64, "{work} accesses for {n} rewrites in {} sweeps", outcome.sweeps);
        assert_eq!(outcome.sweeps, 2);
    }
}

/// A rule may capture a wide node of a graph, and all the rest of a nest.
#[test]
fn what_a_rewrite_shares_is_not_walked_each_time() {
    let counted = |n: usize, width: usize, is_written: bool| {
        let text = format!(
            "def @main(%x: Tensor[(1,), float32], %y: Tensor[({width},), float32]) {{ let %c = concat({}); {}%y{} }}",
            vec!["%x"; width].join(", "),
            "add(%c, negative(".repeat(n),
            "))".repeat(n)
        );
        let mut module = parse(&text);
        let (function, cx) = module.get_mut(module.order()[0]).unwrap();
        let sum = op("add", [capture("x"), op("negative", [capture("y")])]).ordered();
        let mut rules = [match is_written {
            true => Rule::replace("written", sum, op("subtract", [capture("x"), capture("y")])),
            false => Rule::new("built", sum, |rw, c| Ok(Some(rw.op("subtract", &[c["x"], c["y"]])?))),
        }];
        let before = anfora_ir::work::count();
        let outcome =
            rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &PatternOptions::default()).unwrap();
        assert_eq!(outcome.rewrites, n as u64);
        (anfora_ir::work::count() - before) as f64 / (n + width) as f64
    };
    for is_written in [true, false] {
        let (small, large) = (counted(500, 1000, is_written), counted(8000, 1000, is_written));
        assert!(large <= small, "{small} accesses a node, and {large} where the nest is deeper");
    }
}

#[test]
fn every_shape_is_rewritten_on_a_small_stack() {
    for shape in programs::SHAPES {
        on_small_stack(move || {
            let mut module = programs::deep(shape, depth(5_000));
            let (function, cx) = module.get_mut(module.order()[0]).unwrap();
            let mut rules = [
                Rule::replace("- - x", op("negative", [op("negative", [capture("x")])]), capture("x")),
                Rule::replace("x + x", op("add", [capture("x"), capture("x")]), op("negative", [capture("x")])),
                Rule::replace(
                    "a + x",
                    op("add", [op("add", [capture("a"), capture("x")]), capture("x")]),
                    op("add", [capture("a"), op("negative", [op("negative", [capture("x")])])]),
                ),
            ];
            let options = PatternOptions { fuel: Some(100_000), ..PatternOptions::default() };
            let outcome = rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &options).unwrap();
            assert!(matches!(outcome.stop, StopReason::Fixpoint | StopReason::OutOfFuel), "{shape:?}");
            let rewrites =
                matches!(shape, programs::Shape::Chain | programs::Shape::NestedCall | programs::Shape::Diamonds);
            assert_eq!(outcome.rewrites > 0, rewrites, "{shape:?}");
        });
    }
}

#[test]
fn a_deep_replacement_is_taken_apart_without_recursion() {
    let n = depth(5_000);
    on_small_stack(move || {
        let mut module = parse("def @main(%x: float32) { let %a = exp(%x); tanh(%a) }");
        let (function, cx) = module.get_mut(module.order()[0]).unwrap();
        let mut by = capture("x");
        for _ in 0..n {
            by = op("negative", [by]);
        }
        let mut rules = [Rule::replace("deep", op("exp", [capture("x")]), by)];
        let outcome =
            rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &PatternOptions::default()).unwrap();
        assert_eq!((outcome.rewrites, outcome.stop), (1, StopReason::Fixpoint));
        assert_eq!(anfora_visit::chain(&function.body, function.body.root()).count(), n);
    });
}

/// Rewriting random programs by rules keeps them well-formed and keeps their results, and a second
/// run finds nothing.
#[test]
fn random_programs_stay_whole_and_mean_the_same() {
    let rules = || {
        [
            times_one(),
            plus_zero(),
            Rule::replace("- - x", op("negative", [op("negative", [capture("x")])]), capture("x")),
            Rule::replace(
                "a * (b + c)",
                op("multiply", [capture("a"), op("add", [capture("b"), capture("c")]).used_once()]),
                op("add", [op("multiply", [capture("a"), capture("b")]), op("multiply", [capture("a"), capture("c")])]),
            ),
            Rule::replace("x + x", op("add", [capture("x"), capture("x")]), op("multiply", [capture("x"), literal(2)])),
            Rule::replace("- x * y", op("multiply", [op("negative", [capture("x")]), capture("y")]), {
                op("negative", [op("multiply", [capture("x"), capture("y")])])
            }),
        ]
    };
    let run = |text: &str| -> Vec<anfora_interp::Outcome> {
        let module = parse(text);
        let interpreter = anfora_interp::Interpreter::new(&module);
        let arguments = [(0, true), (7, false), (-3, true)];
        arguments
            .iter()
            .map(|&(v, c)| interpreter.run("main", &[Literal::scalar(v), Literal::scalar(c)]).unwrap())
            .collect()
    };
    let mut rewrites = 0;
    // Every rule is exact in arithmetic of integers.
    let programs = anfora_testing::cases(100);
    for seed in 0..programs as u64 {
        let text = Random { vocabulary: Vocabulary::Arithmetic, size: 30, seed }.module().to_text();
        let (after, outcome) = rewritten(&text, &mut rules());
        assert_eq!(outcome.stop, StopReason::Fixpoint, "{text}");
        rewrites += outcome.rewrites;
        let same = run(&text).iter().zip(&run(&after)).all(|(a, b)| a.same(b));
        assert!(same, "{text}\n{after}");
        let (again, outcome) = rewritten(&after, &mut rules());
        assert_eq!((&again, outcome.rewrites), (&after, 0), "{text}");
    }
    assert!(rewrites > 5 * programs as u64, "{rewrites}");
}

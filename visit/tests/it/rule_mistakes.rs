//! Tests of mistakes in rules: rewriting without end, types that do not fit, failures, and illegal
//! edits.

use anfora_ir::{Editor, Expr, verify_module};
use anfora_visit::pattern::{
    Captures, PatternError, PatternOptions, PatternRewriteError, Rewriter, Rule, RuleError, StopReason, any, any_of,
    capture, literal, op, rest, rewrite_patterns, tuple,
};
use expect_test::expect;

use crate::rewrite_patterns::{parse, times_one};

#[test]
fn rules_that_go_round_stop_when_the_fuel_is_used_up() {
    let around = || {
        Rule::replace(
            "a + b",
            op("add", [capture("a"), capture("b")]).ordered(),
            op("add", [capture("b"), capture("a")]),
        )
    };
    let mut module = parse("def @main(%x: float32, %y: float32) { let %a = add(%x, %y); add(%a, %y) }");
    let key = module.order()[0];
    for fuel in [0, 1, 100] {
        let (function, cx) = module.get_mut(key).unwrap();
        let options = PatternOptions { fuel: Some(fuel), ..PatternOptions::default() };
        let outcome = rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut [around()], &options).unwrap();
        assert_eq!((outcome.stop, outcome.rewrites), (StopReason::OutOfFuel, fuel));
        assert!(verify_module(&module).is_ok());
    }
    // Rules that terminate do not reach a default limit.
    let before = module.to_text();
    let (function, cx) = module.get_mut(key).unwrap();
    let outcome =
        rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut [around()], &PatternOptions::default())
            .unwrap();
    assert_eq!((outcome.stop, outcome.rewrites, outcome.rules[0].rewrites), (StopReason::OutOfFuel, 0, 1016));
    assert!(outcome.was_taken_back());
    assert_eq!(module.to_text(), before);
}

/// Returns the remarks for the author of rules, each after the name of its binding, and the text of
/// the program.
fn remarks(text: &str, rules: &mut [Rule<'_>], options: &PatternOptions<'_>) -> (String, String) {
    let mut module = parse(text);
    let key = module.order()[0];
    let (function, cx) = module.get_mut(key).unwrap();
    let outcome = rewrite_patterns(&mut Editor::new(cx, &mut function.body), rules, options).unwrap();
    let mut said = String::new();
    for (at, remark) in outcome.remarks() {
        let name = match function.body.expr(at) {
            Expr::Let { var, .. } => cx.names.get(function.body.var_name(var).unwrap()),
            Expr::CallOp { op, .. } => &*cx.ops.get(op).name,
            _ => "",
        };
        said.push_str(&format!("{name}: {}\n", remark.message));
        said.extend(remark.help.map(|help| format!("  {help}\n")));
    }
    assert!(verify_module(&module).is_ok());
    (said, module.to_text())
}

#[test]
fn rules_that_go_round_are_named_and_what_they_made_is_taken_back() {
    let text = "def @main(%x: float32, %y: float32) { let %m = multiply(%x, 1f); let %a = exp(%m); let %b = log(%y); add(%a, %b) }";
    let once = || Rule::replace("x * 1", op("multiply", [capture("x"), literal(1.0)]), capture("x"));
    // A rule that applies to its own result, and an unrelated rule.
    let wrap = Rule::replace("exp of -x", op("exp", [capture("x")]), op("exp", [op("negative", [capture("x")])]));
    let (said, after) = remarks(text, &mut [once(), wrap], &PatternOptions::default());
    expect![[r#"
        a: the rule `exp of -x` still applies after 1032 rewrites: nothing was rewritten
          it applies to what it, or another rule, makes of what it matched
    "#]]
    .assert_eq(&said);
    assert_eq!(after, parse(text).to_text());
    // A stated limit names only the rule that it refused.
    let fuel = PatternOptions { fuel: Some(5), ..PatternOptions::default() };
    let wrap = Rule::replace("exp of -x", op("exp", [capture("x")]), op("exp", [op("negative", [capture("x")])]));
    let (said, _) = remarks(text, &mut [once(), wrap], &fuel);
    assert_eq!(said, "a: the rule `exp of -x` still applies after 5 rewrites\n");
    // Two rules that undo each other.
    let there = Rule::replace("log to exp", op("log", [capture("x")]), op("exp", [capture("x")]));
    let back = Rule::replace("exp to log", op("exp", [capture("x")]), op("log", [capture("x")]));
    let (said, after) = remarks(text, &mut [once(), there, back], &PatternOptions::default());
    assert_eq!(said.matches("still applies").count(), 2, "{said}");
    assert!(said.contains("log to exp") && said.contains("exp to log") && !said.contains("x * 1"), "{said}");
    assert_eq!(after, parse(text).to_text());
    // Without end by sweeps: a `fn` around the match itself.
    let mut outline = [Rule::new("outline", op("exp", [capture("x")]), |rw, found| {
        let types = [rw.ty(found["x"])];
        let function = rw.lambda(&types, &[], |rw, p| rw.op("exp", &[p[0]]))?;
        Ok(Some(rw.call(function, &[found["x"]])?))
    })];
    let (said, after) = remarks(text, &mut outline, &PatternOptions::default());
    assert!(
        said.contains("the rule `outline` still applies after 32 sweeps of the body: nothing was rewritten"),
        "{said}"
    );
    assert_eq!(after, parse(text).to_text());
    // A limit that the author states keeps the changes, and is reported too.
    let options = PatternOptions { sweeps: Some(2), ..PatternOptions::default() };
    let (said, after) = remarks(text, &mut outline, &options);
    expect![[r#"
        a: the rule `outline` applied in the last of 2 sweeps of the body, and may apply again
    "#]]
    .assert_eq(&said);
    assert_eq!(after.matches("fn (").count(), 2, "{after}");
}

#[test]
fn a_rule_that_does_not_fit_by_type_is_named() {
    let text = "def @main(%x: Tensor[(3,), float32], %w: Tensor[(2, 3), float32]) {
        let %a = add(%x, %w); let %b = add(%x, %w); exp((%a, %b).1)
    }";
    let mut rules = [
        Rule::replace("a + b", op("add", [capture("a"), capture("b")]).ordered(), capture("a")),
        Rule::replace(
            "no such call",
            op("add", [capture("a"), capture("b")]),
            op("matmul", [capture("b"), capture("b")]),
        ),
    ];
    let (said, _) = remarks(text, &mut rules, &PatternOptions::default());
    expect![[r#"
        add: the rule `a + b` matched and did not apply: what it makes is of type Tensor[(3,), float32], in the place of Tensor[(2, 3), float32], and 1 time more
        add: the rule `no such call` matched and did not apply: `matmul`: the summed extent of operand 1 is 2, but 3 is expected, and 1 time more
    "#]].assert_eq(&said);
}

#[test]
fn a_rule_that_fails_is_named_and_its_edits_are_taken_back() {
    let mut module = parse("def @main(%x: float32) { let %a = multiply(%x, 1f); let %b = exp(%a); %b }");
    let before = module.to_text();
    module.begin_edit();
    let (function, cx) = module.get_mut(module.order()[0]).unwrap();
    let failing = Rule::new("broken", op("exp", [any()]), |_, _| Err(RuleError::from("no luck")));
    let error = rewrite_patterns(
        &mut Editor::new(cx, &mut function.body),
        &mut [times_one(), failing],
        &PatternOptions::default(),
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "the rule `broken` failed: no luck");
    assert_eq!(module.to_text(), before);
    module.rollback();
    assert_eq!(module.to_text(), before);
}

fn refused(rule: Rule<'_>) -> String {
    let mut module = parse("def @main(%x: float32) { exp(%x) }");
    let (function, cx) = module.get_mut(module.order()[0]).unwrap();
    let mut rules = [rule];
    match rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &PatternOptions::default()) {
        Err(error @ PatternRewriteError::Pattern { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn mistakes_in_rules_are_refused_with_a_suggestion() {
    let rule = |left, right| refused(Rule::replace("r", left, right));
    expect!["the rule `r`: unknown operator `multpily`; did you mean `multiply`?"]
        .assert_eq(&rule(op("multpily", [any(), any()]), capture("x")));
    expect!["the rule `r`: a pattern of `multiply` has 1 operands, but it takes 2"]
        .assert_eq(&rule(op("multiply", [capture("x")]), capture("x")));
    expect!["the rule `r`: `permute_dims` has no attribute `axis`; did you mean `axes`?"]
        .assert_eq(&rule(op("permute_dims", [capture("x")]).attr("axis", 1), capture("x")));
    expect!["the rule `r`: attribute `axes` of `permute_dims` must be a list of integers"]
        .assert_eq(&rule(op("permute_dims", [capture("x")]).attr("axes", 1), capture("x")));
    expect!["the rule `r`: nothing is captured as `date`; did you mean `data`?"]
        .assert_eq(&rule(op("exp", [capture("data")]), capture("date")));
    expect!["the rule `r`: a wildcard without a name cannot be on the right side of a rule: it does not determine what to build"]
        .assert_eq(&rule(op("exp", [capture("x")]), any()));
    expect!["the rule `r`: there is no operator for a condition on attributes"]
        .assert_eq(&rule(op("exp", [capture("x").attr("axes", 1)]), capture("x")));
    expect!["the rule `r`: `rest()` has to be the last operand, argument or field, without conditions"]
        .assert_eq(&rule(tuple([rest(), any()]), capture("x")));
    expect!["the rule `r`: a match begins at a call, tuple, projection, `if` or `fn`, not at an atom"]
        .assert_eq(&rule(literal(1), literal(1)));
    expect!["the rule `r`: operands can be exchanged only if there are two, not 1"]
        .assert_eq(&rule(op("exp", [capture("x")]).commutative(), capture("x")));
    expect!["the rule `r`: there is no alternative to match"].assert_eq(&rule(any_of([]), capture("x")));
    let error = PatternError::Hole;
    let mut leaked = None;
    let _ = any().optional(|x| {
        leaked = Some(x.clone());
        x
    });
    assert_eq!(rule(op("exp", [leaked.unwrap()]), capture("x")), format!("the rule `r`: {error}"));
}

#[test]
fn edits_that_are_not_legal_are_errors() {
    let program = "def @main(%x: float32, %c: bool) {
        let %i = if (%c) { exp(%x) } else { %x };
        let %f = fn (%p: float32) { negative(%p) };
        tanh(%x)
    }";
    let run = |build: fn(&mut Rewriter<'_, '_>, &Captures<'_>) -> Result<Option<anfora_ir::ExprId>, RuleError>| {
        let mut module = parse(program);
        let (function, cx) = module.get_mut(module.order()[0]).unwrap();
        let mut rules = [Rule::new("r", op("tanh", [capture("x")]), build)];
        rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &PatternOptions::default())
            .map_err(|e| e.to_string())
            .map(|o| (o.rewrites, module.to_text()))
    };
    // A part of a branch: a tail, which has no name.
    let tail = run(|rw, _| {
        let (cx, body) = rw.program();
        let exp = cx.ops.find("exp");
        Ok(body.exprs().find(|(_, e)| matches!(e, Expr::CallOp { op, .. } if Some(*op) == exp)).map(|(id, _)| id))
    });
    assert!(tail.unwrap_err().contains("other parts of the program"));
    // A value with a name stands for its name.
    let (_, text) = run(|rw, c| {
        let (_, body) = rw.program();
        let value = body.exprs().find(|(_, e)| matches!(e, Expr::If { .. })).map(|(id, _)| id).unwrap();
        Ok(Some(rw.op("add", &[value, c["x"]])?))
    })
    .unwrap();
    assert!(text.contains("add(%i, %x)"), "{text}");
    let error = run(|rw, c| Ok(Some(rw.op("add", &[c["x"]])?))).unwrap_err();
    assert!(error.contains("the rule `r` failed: `add` takes 2 operands, not 1"), "{error}");
}

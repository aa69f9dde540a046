//! Tests that results of rules stand only where their variables are visible and their effects are
//! allowed.

use anfora_ir::{Editor, ExprId, FunctionBuilder, Module, Purity, Source, parse_module, verify_module};
use anfora_visit::pattern::{
    Outcome, PatternOptions, PatternRewriteError, Rewriter, Rule, capture, op, rewrite_patterns,
};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), anfora_ops::standard())
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(|e| format!("{e}\n")).collect::<String>()))
}

/// Rewrites `@main` of a module by one rule, and verifies the result.
fn rewrite(module: &mut Module, rule: Rule<'_>) -> Result<Outcome, PatternRewriteError> {
    verify_module(module).unwrap_or_else(|e| panic!("{e:?}"));
    let purity = Purity::of_module(module);
    let options = PatternOptions { purity: Some(&purity), ..PatternOptions::default() };
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let outcome = rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut [rule], &options)?;
    if let Err(errors) = verify_module(module) {
        panic!("{errors:?}\n{module}");
    }
    Ok(outcome)
}

/// Returns the variable with a name.
fn named(rw: &Rewriter<'_, '_>, name: &str) -> ExprId {
    let (cx, body) = rw.program();
    (0..body.len())
        .map(<ExprId as anfora_ir::EntityId>::from_index)
        .find(|&id| body.as_var(id).and_then(|var| body.var_name(var)).is_some_and(|n| cx.names.get(n) == name))
        .unwrap()
}

/// Returns a rule that replaces `exp` by `tanh` of the named variable, which it finds in the
/// program.
fn digging(name: &'static str) -> Rule<'static> {
    Rule::new("dig", op("exp", [capture("x")]), move |rw, _| {
        let var = named(rw, name);
        Ok(Some(rw.op("tanh", &[var])?))
    })
}

fn refused(text: &str, rule: Rule<'_>) -> String {
    rewrite(&mut parse(text), rule).unwrap_err().to_string()
}

const NOT_VISIBLE: &str = "the rule `dig`: the replacement uses a variable that is not visible at its place";

#[test]
fn a_variable_of_a_branch_is_not_visible_outside_of_it() {
    let text = "def @main(%x: float32, %c: bool) {
        let %i = if (%c) { let %t = log(%x); negative(%t) } else { let %u = sqrt(%x); negative(%u) };
        let %e = exp(%x);
        add(%e, %i)
    }";
    assert_eq!(refused(text, digging("t")), NOT_VISIBLE);
    assert_eq!(refused(text, digging("u")), NOT_VISIBLE);
    assert_eq!(rewrite(&mut parse(text), digging("i")).unwrap().rewrites, 1);
    let sideways = "def @main(%x: float32, %c: bool) {
        if (%c) { let %t = log(%x); negative(%t) } else { exp(%x) }
    }";
    assert_eq!(refused(sideways, digging("t")), NOT_VISIBLE);
    let parameter = "def @main(%x: float32) { let %f = fn (%p: float32) { log(%p) }; let %y = exp(%x); %f(%y) }";
    assert_eq!(refused(parameter, digging("p")), NOT_VISIBLE);
    let inside = "def @main(%x: float32) { let %f = fn (%p: float32) { let %q = log(%x); exp(%q) }; %f(%x) }";
    assert_eq!(rewrite(&mut parse(inside), digging("p")).unwrap().rewrites, 1);
}

#[test]
fn a_variable_is_not_visible_before_it_is_bound() {
    let text = "def @main(%x: float32, %c: bool) {
        let %a = log(%x);
        let %i = if (%c) { exp(%a) } else { %x };
        let %b = sqrt(%i);
        add(%a, %b)
    }";
    assert_eq!(refused(text, digging("b")), NOT_VISIBLE);
    assert_eq!(refused(text, digging("i")), NOT_VISIBLE);
    assert_eq!(rewrite(&mut parse(text), digging("a")).unwrap().rewrites, 1);
    let flat = "def @main(%x: float32) { let %a = exp(%x); let %b = sqrt(%a); %b }";
    assert_eq!(refused(flat, digging("b")), NOT_VISIBLE);
    // Also in a graph.
    let nested = "def @main(%x: float32) { let %a = negative(exp(%x)); let %b = sqrt(%a); %b }";
    assert_eq!(refused(nested, digging("b")), NOT_VISIBLE);
    assert_eq!(rewrite(&mut parse(nested), digging("x")).unwrap().rewrites, 1);
}

#[test]
fn the_order_of_new_bindings_is_known_however_many_stand_at_one_place() {
    // Each rewrite inserts bindings before the call. The next rewrite uses one of them and rewrites
    // another.
    for front in [false, true] {
        let mut module = parse("def @main(%x: float32) { let %a = sqrt(%x); let %e = exp(%a); let %z = log(%e); %z }");
        let mut left = 2000;
        let rule = Rule::new("grow", op("exp", [capture("x")]), move |rw, c| {
            if left == 0 {
                return Ok(None);
            }
            left -= 1;
            let var = named(rw, "a");
            let inner = rw.op(if front { "exp" } else { "tanh" }, &[c["x"]])?;
            let both = rw.op("add", &[inner, var])?;
            Ok(Some(rw.op(if front { "negative" } else { "exp" }, &[both])?))
        });
        let options = PatternOptions { fuel: Some(10_000), ..PatternOptions::default() };
        let key = module.find("main").unwrap();
        let (function, cx) = module.get_mut(key).unwrap();
        let mut rules = [rule];
        let outcome = rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &options).unwrap();
        assert_eq!(outcome.rewrites, 2000);
        verify_module(&module).unwrap_or_else(|e| panic!("{e:?}"));
    }
}

#[test]
fn what_a_rule_makes_in_a_function_stays_in_it() {
    let text = "def @main(%x: float32) { exp(%x) }";
    let rule = Rule::new("leak", op("exp", [capture("x")]), |rw, c| {
        let ty = rw.ty(c["x"]);
        let mut leaked = None;
        let function = rw.lambda(&[ty], &[], |rw, params| {
            leaked = Some(params[0]);
            rw.op("tanh", params)
        })?;
        let leaked = leaked.unwrap_or(c["x"]);
        Ok(Some(rw.call(function, &[leaked])?))
    });
    assert!(refused(text, rule).ends_with("not visible at its place"));
}

#[test]
fn nothing_impure_gets_into_a_dataflow_region() {
    let region = "def @main(%x: float32, %f: fn(float32) -> float32) {
        dataflow { let %a = exp(%x); let %b = tanh(%a); output(%b) }
        %b
    }";
    let outside = "def @main(%x: float32, %f: fn(float32) -> float32) { let %a = exp(%x); tanh(%a) }";
    let printing = || {
        Rule::new("print", op("exp", [capture("x")]), |rw, c| {
            let _ = rw.op("print", &[c["x"]])?;
            let printed = rw.op("print", &[c["x"]])?;
            let both = rw.tuple(&[printed, c["x"]]);
            let x = rw.proj(both, 1)?;
            Ok(Some(rw.op("tanh", &[x])?))
        })
    };
    let calling = || {
        Rule::new("call", op("exp", [capture("x")]), |rw, c| {
            let f = named(rw, "f");
            Ok(Some(rw.call(f, &[c["x"]])?))
        })
    };
    assert_eq!(
        refused(region, printing()),
        "the rule `print`: the replacement contains an impure call, but its place is in a dataflow region"
    );
    assert_eq!(
        refused(region, calling()),
        "the rule `call`: the replacement contains an impure call, but its place is in a dataflow region"
    );
    for rule in [printing(), calling()] {
        assert_eq!(rewrite(&mut parse(outside), rule).unwrap().rewrites, 1);
    }
    // A pure function can be called there.
    let fusing = Rule::new("fuse", op("exp", [capture("x")]), |rw, c| {
        let ty = rw.ty(c["x"]);
        let function = rw.lambda(&[ty], &[("Primitive", 1.into())], |rw, params| rw.op("exp", params))?;
        Ok(Some(rw.call(function, &[c["x"]])?))
    });
    assert_eq!(rewrite(&mut parse(region), fusing).unwrap().rewrites, 1);
}

#[test]
fn a_node_that_a_region_shares_with_what_is_outside_is_checked_at_all_its_places() {
    let mut module = Module::new(anfora_ops::standard());
    let ty = module.cx.types.scalar(anfora_ir::DType::Float32);
    let build = |module: &mut Module| {
        let mut f = FunctionBuilder::new(module, "main");
        let x = f.param("x", ty);
        f.begin_dataflow();
        let a = f.call_op("sqrt", &[x], &[]).unwrap();
        f.bind("a", a);
        let shared = f.call_op("exp", &[x], &[]).unwrap();
        let b = f.call_op("log", &[shared], &[]).unwrap();
        let b = f.bind("b", b);
        f.end_dataflow(&[b]);
        let tail = f.call_op("add", &[b, shared], &[]).unwrap();
        f.finish(tail).unwrap();
    };
    build(&mut module);
    assert_eq!(rewrite(&mut module, digging("a")).unwrap().rewrites, 1);
    assert!(module.to_text().contains("tanh(%a)"), "{module}");
}

/// Returns the call of the named operator.
fn call_of(rw: &Rewriter<'_, '_>, name: &str) -> ExprId {
    let (cx, body) = rw.program();
    let is_it =
        |expr: anfora_ir::Expr| matches!(expr, anfora_ir::Expr::CallOp { op, .. } if cx.ops.get(op).name == name);
    body.exprs().find(|&(_, expr)| is_it(expr)).unwrap().0
}

/// Returns a rule that replaces `exp` by `tanh` of a call at another place of a graph.
fn sharing(name: &'static str) -> Rule<'static> {
    Rule::new("share", op("exp", [capture("x")]), move |rw, _| {
        let call = call_of(rw, name);
        Ok(Some(rw.op("tanh", &[call])?))
    })
}

#[test]
fn a_graph_does_not_become_a_part_of_itself() {
    let cyclic = "the rule `share`: the replacement shares a part of the program that contains the replaced expression";
    let user = "def @main(%x: float32) { sqrt(negative(exp(%x))) }";
    assert_eq!(refused(user, sharing("negative")), cyclic);
    assert_eq!(refused(user, sharing("sqrt")), cyclic);
    let around = "def @main(%x: float32, %c: bool) { sqrt(if (%c) { negative(exp(%x)) } else { log(%x) }) }";
    assert_eq!(refused(around, sharing("sqrt")), cyclic);
    // The replaced node, its parts, and nodes next to it can be shared.
    let beside = "def @main(%x: float32) { add(exp(log(sqrt(%x))), negative(%x)) }";
    for name in ["exp", "log", "sqrt", "negative"] {
        let mut options = PatternOptions { fuel: Some(1), ..PatternOptions::default() };
        options.sweeps = Some(1);
        let mut module = parse(beside);
        let key = module.find("main").unwrap();
        let (function, cx) = module.get_mut(key).unwrap();
        let outcome = rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut [sharing(name)], &options);
        assert_eq!(outcome.unwrap().rewrites, 1, "{name}");
        verify_module(&module).unwrap_or_else(|e| panic!("{name}: {e:?}\n{module}"));
    }
}

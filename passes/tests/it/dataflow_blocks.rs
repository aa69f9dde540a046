//! Tests of passes over single dataflow regions: their input, the use of their result, and refused
//! results.

use std::sync::{Arc, Mutex};

use anfora_ir::{
    Body, Cursor, DType, Diagnostic, Editor, Expr, ExprId, LetFlags, Module, Source, Step, VarFlags, VarId,
    parse_module,
};
use anfora_manager::{
    DataflowBlockPass, FunctionEdit, Outcome, Pass, PassContext, PassError, PassFailure, PassKind, Verification,
    VerifyEach,
};
use anfora_visit::pattern::{PatternOptions, rewrite_rules};
use anfora_visit::{Binding, Mutator, RewriteError, Site, Slot, Verdict, chain, mutate, rules};

fn parse(text: &str) -> Module {
    let source = Source::new("test", text);
    parse_module(source, anfora_ops::standard()).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn verifying() -> PassContext {
    PassContext::builder().instrument(Arc::new(VerifyEach::with_input())).build().unwrap()
}

fn pass(work: impl Fn(&mut FunctionEdit<'_>) -> Result<(), PassError> + Send + Sync + 'static) -> DataflowBlockPass {
    DataflowBlockPass::new("p", 0, move |block, _, _| work(block))
}

/// Returns the text of a program after a pass, and verifies it.
fn after(text: &str, pass: &DataflowBlockPass) -> String {
    let mut module = parse(text);
    assert_eq!(pass.apply(&mut module, &verifying()).unwrap(), Outcome::Changed);
    module.to_text()
}

/// Returns the failure of a pass, and checks that the program is unchanged.
fn failure(text: &str, pass: &DataflowBlockPass) -> PassFailure {
    let mut module = parse(text);
    let before = module.to_text();
    let failure = pass.apply(&mut module, &PassContext::new()).unwrap_err();
    assert_eq!(module.to_text(), before);
    failure
}

/// Regions next to each other, in branches, in a function value in a region, and in a function that
/// is skipped.
const PLACES: &str = "def @first(%x: float32, %c: bool) {
  dataflow { let %a = exp(%x); let %b = add(%a, %x); output(%b); }
  dataflow { let %d = exp(%b); output(%d); }
  let %between = tanh(%d);
  let %i = if (%c) { dataflow { let %e = exp(%between); output(%e); } %e } else { %between };
  dataflow {
    let %g = fn(%y: float32) { dataflow { let %h = exp(%y); output(%h); } %h };
    let %j = exp(%i);
    output(%g, %j);
  }
  add(%g(%j), { dataflow { let %k = exp(%j); output(%k); } %k })
}
def @skipped(%x: float32, SkipOptimization=true) { dataflow { let %z = exp(%x); output(%z); } %z }
def @second(%x: float32) { dataflow { let %l = exp(%x); output(%l); } %l }
";

/// Replaces `exp(x)` by `negative(negative(exp(x)))`, with bindings of its own.
struct Around;

impl Mutator for Around {
    type Error = RewriteError;

    fn rewrite_value(&mut self, site: &mut Site, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Some(binding) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
        let Expr::CallOp { op, .. } = site.editor.body.expr(binding.value) else { return Ok(Verdict::Keep) };
        if site.editor.cx.ops.get(op).name != "exp" {
            return Ok(Verdict::Keep);
        }
        let inner = site.bind(None, binding.value);
        let once = site.editor.call_named("negative", &[inner])?;
        let once = site.bind(None, once);
        Ok(Verdict::Value(site.editor.call_named("negative", &[once])?))
    }
}

fn names(block: &FunctionEdit<'_>) -> String {
    let name = |id: ExprId| block.binding_name(id).unwrap_or("?");
    let inputs: Vec<&str> = block.function.body.params().iter().map(|p| name(p.expr())).collect();
    let bound: Vec<&str> = chain(&block.function.body, block.function.body.root()).map(|b| name(b.id)).collect();
    let outputs: Vec<&str> = block.outputs().iter().map(|o| name(o.expr())).collect();
    format!("@{} ({}) [{}] ({})", block.name(), inputs.join(" "), bound.join(" "), outputs.join(" "))
}

#[test]
fn each_region_is_seen_once_in_program_order_with_its_inputs_and_outputs() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let to = seen.clone();
    let look = pass(move |block| {
        to.lock().unwrap().push(names(block));
        Ok(())
    });
    assert_eq!(look.kind(), PassKind::DataflowBlock);
    let mut module = parse(PLACES);
    assert_eq!(look.apply(&mut module, &PassContext::new()).unwrap(), Outcome::Unchanged);
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "@first (x) [a b] (b)",
            "@first (b) [d] (d)",
            "@first (between) [e] (e)",
            "@first (i) [g j] (g j)",
            "@first (j) [k] (k)",
            "@second (x) [l] (l)",
        ]
    );
}

#[test]
fn what_became_of_a_region_takes_its_place() {
    let around = pass(|block| Ok(mutate(&mut block.editor(), &mut Around)?));
    let text = after(PLACES, &around);
    // The region of the function value is a part of the region around it.
    assert_eq!(text.matches("negative").count(), 14, "{text}");
    assert_eq!(text.matches("dataflow {").count(), 8, "{text}");
    let small = "def @main(%x: float32) { dataflow { let %a = exp(%x); let %b = add(%a, %x); output(%b); } tanh(%b) }";
    assert_eq!(
        after(small, &around),
        "def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
  dataflow {
    let %0 = exp(%x);
    let %1 = negative(%0);
    let %a = negative(%1);
    let %b = add(%a, %x);
    output(%b);
  }
  tanh(%b)
}
"
    );
}

#[test]
fn an_emptied_region_is_gone() {
    let text = "def @main(%x: float32, %c: bool) {
  dataflow { let %a = exp(%x); output(); }
  dataflow { let %b = exp(%x); output(); }
  let %i = if (%c) { dataflow { let %d = exp(%x); output(); } %x } else { %x };
  add({ dataflow { let %e = exp(%x); output(); } %x }, %i)
}
";
    let empty = pass(|block| {
        let end = chain(&block.function.body, block.function.body.root()).last().map(|b| b.rest);
        end.into_iter().for_each(|end| block.function.body.set_root(end));
        Ok(())
    });
    let text = after(text, &empty);
    assert!(!text.contains("dataflow") && !text.contains("exp"), "{text}");
}

#[test]
fn flags_of_a_region_are_kept_right() {
    let text = "def @main(%x: float32) { dataflow { let %a = exp(%x); let %b = add(%a, %a); output(%b); } %b }";
    let plain = pass(|block| {
        let Binding { var, value, rest, .. } = Binding::of(&block.function.body, block.function.body.root()).unwrap();
        let mut editor = block.editor();
        let new = editor.var(None, VarFlags::PLAIN, editor.body.ty(value));
        let first = editor.let_(new, value, rest, LetFlags::PLAIN);
        let copy = editor.let_(var, new.expr(), rest, LetFlags::PLAIN);
        editor.body.set_let_body(first, copy);
        editor.body.set_root(first);
        Ok(())
    });
    let text = after(text, &plain);
    assert!(text.contains("let %0 = exp(%x);\n    let %a = %0;\n    let %b"), "{text}");
    assert_eq!(text.matches("dataflow {").count(), 1, "{text}");
}

#[test]
fn users_of_an_output_follow_its_type() {
    let text = "def @main(%x: Tensor[(2, 3), float32]) {
  dataflow { let %a = match_cast(%x, to=Tensor[?, float32]); output(%a); }
  let %b = tanh(%a);
  %b
}";
    let cut = pass(|block| {
        let Binding { id, var, rest, flags, .. } =
            Binding::of(&block.function.body, block.function.body.root()).unwrap();
        let input = block.function.body.params()[0].expr();
        block.function.body.set_expr(id, Expr::Let { var, value: input, body: rest, flags });
        let ty = block.function.body.ty(input);
        block.function.body.set_type(var.expr(), ty);
        Ok(())
    });
    let text = after(text, &cut);
    assert!(text.contains("-> Tensor[(2, 3), float32]"), "{text}");
}

#[test]
fn a_user_that_does_not_take_the_new_type_of_an_output_is_an_error() {
    let text = "def @main(%x: float32) {
  dataflow { let %a = exp(%x); output(%a); }
  let %b = add(%a, %x);
  %b
}";
    let retypes = pass(|block| {
        let Binding { value, var, .. } = Binding::of(&block.function.body, block.function.body.root()).unwrap();
        let integer = block.cx.types.scalar(DType::Int64);
        for id in [value, var.expr()] {
            block.function.body.set_type(id, integer);
        }
        Ok(())
    });
    let failure = failure(text, &retypes);
    let message = failure.error().message();
    assert!(message.starts_with("a user of an output whose type changed has no type: "), "{message}");
    assert_eq!((failure.function(), failure.binding()), (Some("main"), Some("b")));
}

#[test]
fn an_output_has_to_stay_bound() {
    let text =
        "def @main(%x: float32) { dataflow { let %a = exp(%x); let %b = tanh(%a); output(%a, %b); } add(%a, %b) }";
    let drops = pass(|block| {
        let [a, b] = [0, 1].map(|i| chain(&block.function.body, block.function.body.root()).nth(i).unwrap());
        block.function.body.set_let_body(a.id, b.rest);
        Ok(())
    });
    let lost = failure(text, &drops);
    assert_eq!((lost.function(), lost.binding()), (Some("main"), Some("a")));
    assert!(lost.error().message().contains("begins at %a does not bind its output %b any more"), "{lost}");

    let hides = pass(|block| {
        let output = block.outputs()[0];
        let Expr::Var { name, .. } = block.function.body.expr(output.expr()) else { unreachable!() };
        block.function.body.set_expr(output.expr(), Expr::Var { name, flags: VarFlags::DATAFLOW });
        Ok(())
    });
    assert!(failure(text, &hides).error().message().contains("does not show its output %a outside"));
}

#[test]
fn an_output_that_becomes_another_value_is_bound_to_it() {
    let rules = rules!["tanh(%x)" => "%x", "floor(%x)" => "2f"];
    let simplify = pass(move |block| {
        let mut editor = Editor::new(block.cx, &mut block.function.body);
        let outcome = rewrite_rules(&mut editor, &rules, &PatternOptions::default())?;
        assert!(!outcome.was_taken_back());
        Ok(())
    });
    // An output becomes a variable of the region, an input, another output, the input that another
    // output becomes, and a constant.
    for (region, rest) in [
        ("let %a = exp(%x); let %b = tanh(%a); output(%b);", "let %a = exp(%x); let %b = %a; output(%b);"),
        ("let %b = tanh(%x); output(%b);", "let %b = %x; output(%b);"),
        ("let %a = exp(%x); let %b = tanh(%a); output(%a, %b);", "let %a = exp(%x); let %b = %a; output(%a, %b);"),
        ("let %a = tanh(%x); let %b = tanh(%a); output(%a, %b);", "let %a = %x; let %b = %x; output(%a, %b);"),
        ("let %b = floor(%x); let %a = exp(%x); output(%b, %a);", "let %a = exp(%x); let %b = 2f; output(%a, %b);"),
    ] {
        let result = if region.ends_with("output(%b);") { "exp(%b)" } else { "add(%a, %b)" };
        let program = |region: &str| format!("def @main(%x: float32) {{ dataflow {{ {region} }} {result} }}");
        assert_eq!(after(&program(region), &simplify), parse(&program(rest)).to_text());
    }
}

#[test]
fn a_dimension_that_is_bound_has_to_stay_bound() {
    let cast = |region: &str| {
        format!(
            "def @main(%x: Tensor[?, float32], %k: Tensor[(k,), float32]) {{
  dataflow {{ {region} output(%b); }}
  match_cast(%b, to=Tensor[(n,), float32])
}}"
        )
    };
    let uncast = || {
        pass(|block| {
            let Binding { id, var, rest, flags, .. } =
                Binding::of(&block.function.body, block.function.body.root()).unwrap();
            let input = block.function.body.params()[0].expr();
            block.function.body.set_expr(id, Expr::Let { var, value: input, body: rest, flags });
            Ok(())
        })
    };
    let lost = failure(&cast("let %a = match_cast(%x, to=Tensor[(n,), float32]); let %b = exp(%a);"), &uncast());
    assert!(lost.error().message().contains("begins at %a does not bind the dimension n any more"), "{lost}");
    // A parameter binds `k`.
    let kept = cast("let %a = match_cast(%x, to=Tensor[(k,), float32]); let %b = exp(%a);");
    let mut module = parse(&kept);
    // The result is ill-formed anyway, since its type is not that of the variable.
    let context = PassContext::builder().verification(Verification::Off).build().unwrap();
    assert!(uncast().apply(&mut module, &context).unwrap().is_changed());
}

#[test]
fn regions_in_regions_are_not_given_again() {
    const DEEP: usize = 100;
    let (mut text, mut end) = ("def @main(%x: float32) { ".to_string(), String::new());
    for i in 0..DEEP {
        text += &format!("dataflow {{ let %f{i} = fn(%y{i}: float32) {{ ");
        end = format!("}}; output(%f{i}); }} %f{i} {end}");
    }
    text += &format!("dataflow {{ let %e = exp(%x); output(%e); }} %e {end} }}");
    let bindings = DataflowBlockPass::new("p", 0, |block, _, cx| {
        let mut cursor = Cursor::new(&block.function.body);
        while let Some(step) = cursor.next(&block.function.body) {
            cx.count("bindings", matches!(step, Step::Let(_)).into());
        }
        Ok(())
    });
    let cx = PassContext::new();
    bindings.apply(&mut parse(&text), &cx).unwrap();
    assert_eq!(cx.statistics().get("p", "bindings"), DEEP as u64 + 1);
}

#[test]
fn a_region_binds_variables_once_and_none_that_it_is_given() {
    let text = "def @main(%x: float32) {
  let %z = tanh(%x);
  dataflow { let %a = exp(%z); let %b = tanh(%a); output(%b); }
  add(%b, %z)
}";
    // Binds another variable before all others.
    let binds = |which: fn(&FunctionEdit<'_>) -> VarId| {
        pass(move |block| {
            let (var, input, root) = (which(block), block.function.body.params()[0].expr(), block.function.body.root());
            block.function.body.set_params(Vec::new());
            let value = block.editor().call_named("exp", &[input])?;
            let first = block.editor().let_(var, value, root, LetFlags::PLAIN);
            block.function.body.set_root(first);
            Ok(())
        })
    };
    let message = |pass: &DataflowBlockPass| failure(text, pass).error().message().to_string();
    let given = message(&binds(|block| block.function.body.params()[0]));
    assert_eq!(given, "the dataflow region that begins at %a binds %z, which it is given");
    let twice = message(&binds(|block| block.outputs()[0]));
    assert_eq!(twice, "the dataflow region that begins at %a binds %b twice");

    let endless = pass(|block| {
        let last = chain(&block.function.body, block.function.body.root()).last().unwrap();
        block.function.body.set_let_body(last.id, block.function.body.root());
        Ok(())
    });
    assert_eq!(message(&endless), "the dataflow region that begins at %a binds %a twice");

    let overwrites = pass(|block| {
        block.function.body.set_expr(block.outputs()[0].expr(), Expr::None);
        Ok(())
    });
    assert!(message(&overwrites).ends_with("binds what is not a variable any more"));
}

#[test]
fn the_body_of_a_region_stays() {
    let text = "def @main(%x: float32) { dataflow { let %a = exp(%x); output(%a); } %a }";
    let assigns = pass(|block| {
        block.function.body = Body::new(&block.cx.types);
        Ok(())
    });
    let replaces = pass(|block| {
        let new = block.function.body.clone();
        block.function.body.replace(new);
        Ok(())
    });
    for pass in [assigns, replaces] {
        let refused = failure(text, &pass);
        assert!(refused.error().message().starts_with("another body was put in the place"), "{refused}");
    }
}

#[test]
fn the_attributes_and_the_signature_of_the_function_stay() {
    let text = "def @main(%x: float32) { dataflow { let %a = exp(%x); output(%a); } %a }";
    let attributes = pass(|block| {
        let level = block.cx.int_attr(1);
        block.function.attrs = block.cx.with_attr(block.function.attrs, "level", Some(level));
        Ok(())
    });
    let result = pass(|block| {
        block.function.ret = Some(block.cx.types.any());
        Ok(())
    });
    for pass in [attributes, result] {
        let refused = failure(text, &pass);
        assert!(refused.error().message().contains("other attributes, or another signature"), "{refused}");
    }
}

#[test]
fn nothing_outside_can_be_used() {
    let text = "def @main(%x: float32, %y: float32) { dataflow { let %a = exp(%x); output(%a); } add(%a, %y) }";
    let strays = pass(|block| {
        let mut editor = block.editor();
        let ty = editor.body.ty(editor.body.params()[0].expr());
        let name = editor.cx.names.intern("y");
        let other = editor.var(Some(name), VarFlags::PLAIN, ty);
        let call = editor.call_named("exp", &[other.expr()])?;
        let Binding { id, var, rest, flags, .. } = Binding::of(editor.body, editor.body.root()).unwrap();
        editor.body.set_expr(id, Expr::Let { var, value: call, body: rest, flags });
        Ok(())
    });
    let failed = failure(text, &strays);
    assert!(failed.error().message().contains("uses %y, which it neither binds nor has as a parameter"), "{failed}");
}

#[test]
fn reports_about_a_region_have_places() {
    let calls = |block: &FunctionEdit<'_>| {
        let mut calls = Vec::new();
        let mut cursor = Cursor::new(&block.function.body);
        while let Some(step) = cursor.next(&block.function.body) {
            if let Step::Flat(id) = step {
                calls.push(id);
            }
        }
        calls
    };
    let speaks = pass(move |block| {
        for call in calls(block) {
            if matches!(block.function.body.expr(call), Expr::CallOp { .. }) {
                block.warn(call, "a call");
            }
        }
        let output = block.outputs()[0];
        block.report(output.expr(), Diagnostic::error("an output").with_help("bind none"));
        Ok(())
    });
    let text = "def @main(%x: float32) { dataflow { let %a = exp(%x); let %b = tanh(%a); output(%b); } %b }";
    let cx = PassContext::new();
    let failed = speaks.apply(&mut parse(text), &cx).unwrap_err();
    assert_eq!(failed.to_string(), "pass `p` failed: an output (in @main, at %b); bind none");
    let left: Vec<String> = cx.take_remarks().iter().map(|r| r.diagnostic.to_string()).collect();
    assert_eq!(left[..2], ["warning: a call (in @main, at %a)", "warning: a call (in @main, at %b)"]);

    let fails = pass(|block| Err(block.error_at(block.function.body.root(), "no")));
    assert_eq!(failure(text, &fails).to_string(), "pass `p` failed: no (in @main, at %a)");
}

#[test]
fn an_editor_of_a_region_makes_what_a_region_holds() {
    let text = "def @main(%x: float32) { dataflow { let %a = exp(%x); output(%a); } %a }";
    let rebuilds = pass(|block| {
        let mut editor: Editor<'_> = block.editor();
        let input = editor.body.params()[0].expr();
        let sum = editor.call_named("add", &[input, input])?;
        let Binding { id, var, rest, flags, .. } = Binding::of(editor.body, editor.body.root()).unwrap();
        editor.body.set_expr(id, Expr::Let { var, value: sum, body: rest, flags });
        Ok(())
    });
    assert!(after(text, &rebuilds).contains("let %a = add(%x, %x);"));
}

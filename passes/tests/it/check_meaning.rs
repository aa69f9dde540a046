//! Tests that CheckMeaning finds the passes that change results, and only those.

use std::sync::Arc;

use anfora_interp::Limits;
use anfora_ir::{Expr, Literal, Module, Source, parse_module};
use anfora_manager::{
    Declare, FailureKind, FunctionPass, ModulePass, Outcome, Pass, PassContext, Sequential, Verification,
    parse_pipeline,
};
use anfora_passes::{CheckMeaning, Checked};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora_ops::standard()).unwrap()
}

fn context(check: &Arc<CheckMeaning>) -> PassContext {
    let registry = anfora_passes::registry();
    // Some of the passes here make ill-formed programs.
    let context = PassContext::builder().registry(registry).opt_level(3).verification(Verification::Off);
    context.instrument(check.clone()).build().unwrap()
}

/// Returns a pass that sets the scalar constants of each function to a value.
fn set_constant(name: &str, value: f32) -> FunctionPass {
    FunctionPass::new(name, 0, move |function, _, _| {
        let mut editor = function.editor();
        let literal = editor.literal(Literal::scalar(value));
        for (id, expr) in editor.body.exprs().collect::<Vec<_>>() {
            if let Expr::CallOp { operands, .. } = expr {
                for i in 0..editor.body.operands_of(id).len() {
                    let operand = editor.body.operands_of(id)[i];
                    if editor.body.as_literal(operand).is_some() && operand != literal {
                        editor.body.set_operand(operands, i, literal);
                    }
                }
            }
        }
        Ok(())
    })
}

const PROGRAM: &str = "def @main(%x: Tensor[(n, 3), float32]) { let %a = multiply(%x, 2f); (%a, (tanh(%a),)) }";

#[test]
fn the_first_difference_fails_the_pass() {
    let mut module = parse(PROGRAM);
    let before = module.to_text();
    let check = Arc::new(CheckMeaning::new());
    let cx = context(&check);
    let failure = set_constant("Wrong", 3.0).apply(&mut module, &cx).unwrap_err();
    assert_eq!(module.to_text(), before);
    assert_eq!(*failure.kind(), FailureKind::Instrument { instrument: "CheckMeaning".to_string(), hook: "run_after" });
    let text = failure.to_string();
    let begin = "pass `Wrong` failed in CheckMeaning (run_after): `@main` computes something else on ordinary numbers of seed 0, \
                 symbolic extents 2: field .0 of the result, element [0, 0]: ";
    assert!(text.starts_with(begin) && text.ends_with(" after (in @main)"), "{text}");
    assert_eq!(failure.function(), Some("main"));
    // A second run gives the same message, byte for byte.
    assert_eq!(set_constant("Wrong", 3.0).apply(&mut module, &cx).unwrap_err().to_string(), text);
    let other = context(&Arc::new(CheckMeaning::new().seed(5)));
    let other = set_constant("Wrong", 3.0).apply(&mut module, &other).unwrap_err().to_string();
    assert!(other.contains("of seed 5") && other != text, "{other}");
}

#[test]
fn both_sides_of_a_branch_are_looked_at() {
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        for [then, otherwise] in [["add", "subtract"], ["subtract", "add"]] {
            let text = format!(
                "def @main(%{name}: bool, %x: int32) {{ if (%{name}) {{ {then}(%x, 1) }} else {{ {otherwise}(%x, 1) }} }}"
            );
            let wrong = FunctionPass::new("Wrong", 0, |function, _, _| {
                let add = function.cx.ops.find("add").expect("the program names it");
                let body = &mut function.function.body;
                for (id, expr) in body.exprs().collect::<Vec<_>>() {
                    if let Expr::CallOp { operands, attrs, .. } = expr {
                        body.set_expr(id, Expr::CallOp { op: add, operands, attrs });
                    }
                }
                Ok(())
            });
            let failure = wrong.apply(&mut parse(&text), &context(&Arc::new(CheckMeaning::new()))).unwrap_err();
            assert!(failure.to_string().contains("computes something else"), "{failure}");
        }
    }
}

#[test]
fn each_pass_is_held_against_the_one_before_it() {
    let mut module = parse(PROGRAM);
    let check = Arc::new(CheckMeaning::new());
    let cx = context(&check);
    let passes: Vec<Arc<dyn Pass>> = vec![
        Arc::new(FunctionPass::new("Harmless", 0, |function, _, _| {
            let mut editor = function.editor();
            let root = editor.body.root();
            let pair = editor.tuple(&[root]);
            let first = editor.proj(pair, 0)?;
            editor.body.set_root(first);
            Ok(())
        })),
        Arc::new(FunctionPass::new("Idle", 0, |_, _, _| Ok(()))),
        Arc::new(set_constant("Rounds", 2.0001).with_tolerance(1e-3)),
        Arc::new(set_constant("Wrong", 2.0)),
    ];
    let failure = Sequential::new(passes).unwrap().apply(&mut module, &cx).unwrap_err();
    assert_eq!(failure.pass(), "Wrong");
    // Three inputs after each of two passes, and the input that showed the difference.
    assert_eq!(check.checked(), Checked { passes: 3, runs: 7, notes: 0 });
    assert!(cx.take_remarks().is_empty());
}

#[test]
fn rounding_is_let_to_those_who_declare_it_and_no_further() {
    let tries = |value: f32, tolerance: f64| {
        let pass = set_constant("Rounds", value).with_tolerance(tolerance);
        pass.apply(&mut parse(PROGRAM), &context(&Arc::new(CheckMeaning::new()))).is_ok()
    };
    assert!(!tries(2.0001, 0.0));
    assert!(tries(2.0001, 1e-3));
    assert!(!tries(2.1, 1e-3));
    assert_eq!(anfora_passes::registry().make("FoldBatchNorm").unwrap().info().tolerance, 1e-4);
}

#[test]
fn an_infinite_tolerance_lets_anything_differ_and_the_next_pass_nothing() {
    let check = Arc::new(CheckMeaning::new());
    let cx = context(&check);
    let mut module = parse(PROGRAM);
    let coarse = set_constant("Coarse", 7.0).with_tolerance(f64::INFINITY);
    assert_eq!(coarse.apply(&mut module, &cx).unwrap(), Outcome::Changed);
    let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(coarse), Arc::new(set_constant("Wrong", 2.0))];
    let failure = Sequential::new(passes).unwrap().apply(&mut parse(PROGRAM), &cx).unwrap_err();
    assert_eq!(failure.pass(), "Wrong");
    assert_eq!(anfora_passes::registry().make("ToMixedPrecision").unwrap().info().tolerance, f64::INFINITY);
}

#[test]
fn what_cannot_be_told_is_noted() {
    let text = "
        declare @far(%x: float32) -> float32;
        def @calls(%x: float32) { @far(%x) }
        def @takes(%f: fn(float32) -> float32, %x: float32) { %f(%x) }
        def @fails(%x: float32) { let %a = assert(false); multiply(%x, 2f) }
        def @long(%x: float32) -> float32 { @long(multiply(%x, 2f)) }
        def private @hidden(%x: float32) { multiply(%x, 2f) }
        def @fine(%x: float32) { exp(%x) }";
    let mut module = parse(text);
    let limits = Limits { steps: 10_000, ..Limits::default() };
    let check = Arc::new(CheckMeaning::new().limits(limits));
    let cx = context(&check);
    assert_eq!(set_constant("Any", 3.0).apply(&mut module, &cx).unwrap(), Outcome::Changed);
    let notes: Vec<String> = cx.take_remarks().iter().map(|r| r.diagnostic.to_string()).collect();
    assert_eq!(
        notes,
        [
            "note: the meaning of `@calls` is not checked: `@far` is declared, not defined: it cannot be interpreted (in @calls)",
            "note: the meaning of `@takes` is not checked: the parameter `%f` of type fn(Tensor[(), float32]) -> Tensor[(), float32] cannot be drawn (in @takes)",
            "note: the meaning of `@fails` is not checked: it fails on everything that was drawn: assertion failed (in @fails, at %a)",
            "note: the meaning of `@long` is not checked: the program takes more than 10000 steps (in @long)",
        ]
    );
    // The runs of @fine.
    assert_eq!(check.checked(), Checked { passes: 1, runs: 2, notes: 4 });
}

/// The time of all runs together is bounded, whether they succeed or fail.
#[test]
fn the_work_of_all_runs_is_bounded() {
    for tail in ["%b", "let %c = assert(false); %b"] {
        // About two thousand steps of kernels for each of two runs, and few of the interpreter.
        let function = |i: usize| {
            format!(
                "def @f{i}(%x: Tensor[(10, 10), float32]) {{ let %a = matmul(%x, %x); let %b = multiply(%a, 2f); {tail} }}\n"
            )
        };
        let mut module = parse(&(0..100).map(function).collect::<String>());
        let check = Arc::new(CheckMeaning::new().limits(Limits { work: 4000, ..Limits::default() }));
        let cx = context(&check);
        // A change of the functions that could not be run is not reported.
        set_constant("Same", 2.0).apply(&mut module, &cx).unwrap();
        let unchecked =
            check.notes().iter().filter(|n| n.ends_with("all functions together take too many steps")).count();
        assert!((50..95).contains(&unchecked), "{unchecked}");
    }
}

#[test]
fn other_parameters_are_noted_and_later_passes_checked() {
    let mut module = parse("def @main(%x: float32, %y: float32) { multiply(%x, add(%y, 2f)) }");
    let check = Arc::new(CheckMeaning::new());
    let cx = context(&check);
    let bind =
        parse_pipeline(cx.registry(), "BindParams{function=main,params=\"%y=1f\"},ToANormalForm,FoldConstant").unwrap();
    bind.apply(&mut module, &cx).unwrap();
    let notes: Vec<String> = cx.take_remarks().iter().map(|r| r.diagnostic.message.clone()).collect();
    assert_eq!(
        notes,
        [
            "the meaning of `@main` is not checked: the pass changes its parameters, so that its results cannot be compared"
        ]
    );
    assert_eq!(check.checked().passes, 3);
    assert_eq!(check.checked().runs, 4);
}

#[test]
fn an_external_function_that_goes_is_a_difference() {
    for other in ["def @other(%x: float32) { %x }", "def private @other(%x: float32, global_symbol=\"s\") { %x }"] {
        let mut module = parse(&format!("def @main(%x: float32) {{ %x }} {other}"));
        let failure = removes_other().apply(&mut module, &context(&Arc::new(CheckMeaning::new()))).unwrap_err();
        assert!(failure.to_string().contains("the external function `@other` is gone"), "{failure}");
    }
    let mut module = parse("def @main(%x: float32) { %x } def private @other(%x: float32) { %x }");
    assert!(removes_other().apply(&mut module, &context(&Arc::new(CheckMeaning::new()))).is_ok());
}

#[test]
fn a_private_function_with_a_symbol_may_be_renamed() {
    // `@g` gets the symbol that `@h` had before.
    let mut module = parse(
        "#![system_lib_prefix=\"p_\"]
        def @main(%y: float32) { (@g(%y), @h(%y)) }
        def private @g(%y: float32, Primitive=1, global_symbol=\"g\") { multiply(%y, 2f) }
        def private @h(%y: float32, Primitive=1, global_symbol=\"p_g\") { tanh(%y) }",
    );
    let check = Arc::new(CheckMeaning::new());
    let cx = context(&check);
    let pipeline = parse_pipeline(&anfora_passes::registry(), "AttachGlobalSymbol").unwrap();
    pipeline.apply(&mut module, &cx).unwrap_or_else(|e| panic!("{e}"));
    assert!(module.find("p_g").is_some() && module.find("p_h").is_some() && module.find("g").is_none());
    assert_eq!(check.checked(), Checked { passes: 1, runs: 6, notes: 0 });
    // Later passes are checked under the new name.
    let failure = set_constant("Wrong", 3.0).apply(&mut module, &cx).unwrap_err().to_string();
    assert!(failure.contains("`@main` computes something else"), "{failure}");
    // Another module's function is found by its symbol.
    let text = module.to_text().replace("@p_g", "@other");
    let exact = anfora_interp::Agreement::Exact;
    let same = |text: &str| anfora_passes::same_meaning(&module, &parse(text), exact).map_err(|e| e.to_string());
    assert_eq!(same(&text).map(|checked| checked.runs), Ok(6));
    let gone = same(&text.replace("global_symbol=\"p_g\"", "x=1")).unwrap_err();
    assert!(gone.contains("the external function `@p_g` is gone"), "{gone}");
}

#[test]
fn sums_that_overflow_only_before_the_pass_are_no_difference() {
    // A sum of the largest numbers is infinite, and that of a quarter of each is not.
    let mut module = parse(
        "def @main(%x: Tensor[(8, 4, 5), float32]) {
            let %v = nn.conv1d(%x, dense<Tensor[(2, 4, 1), float32]>[1, 2, 3, 4, 5, 6, 7, 8]);
            multiply(%v, 0.01f)
        }",
    );
    let checks: Vec<_> = (0..8).map(|seed| Arc::new(CheckMeaning::new().seed(seed))).collect();
    let builder = PassContext::builder().registry(anfora_passes::registry()).opt_level(3);
    let cx = checks.iter().fold(builder, |b, check| b.instrument(check.clone())).build().unwrap();
    let pipeline = parse_pipeline(&anfora_passes::registry(), "FoldBatchNorm").unwrap();
    pipeline.apply(&mut module, &cx).unwrap_or_else(|e| panic!("{e}"));
    assert!(!module.to_text().contains("multiply"));
    assert!(checks.iter().all(|check| check.checked().passes == 1));
}

fn removes_other() -> ModulePass {
    ModulePass::new("Removes", 0, |module, _| {
        let key = module.find("other").ok_or("there is none")?;
        module.remove(&[key]);
        Ok(())
    })
}

#[test]
fn a_program_that_fails_only_after_the_pass_fails_it() {
    let mut module = parse("def @main(%x: float32) { let %a = assert(less(2f, 3f)); %x }");
    let pass = set_constant("Breaks", 7.0);
    let failure = pass.apply(&mut module, &context(&Arc::new(CheckMeaning::new()))).unwrap_err();
    let text = failure.to_string();
    assert!(text.contains("`@main` fails on ordinary numbers of seed 0: assertion failed (in @main, at %a)"), "{text}");
}

#[test]
fn a_pass_that_makes_a_program_run_forever_fails_soon() {
    let loops = "def @main(%x: float32) -> float32 {
        if (less_equal(multiply(%x, 3f), 3f)) { @main(add(%x, 3f)) } else { %x }
    }";
    let context = context(&Arc::new(CheckMeaning::new()));
    let text = set_constant("Stays", 0.0).apply(&mut parse(loops), &context).unwrap_err().to_string();
    assert!(text.contains("`@main` fails on ordinary numbers of seed 0: the program takes more than"), "{text}");
}

/// Passes that a pass runs itself are checked together with it.
#[test]
fn a_pass_in_a_pass_may_be_wrong_for_a_while() {
    let outer = ModulePass::new("Outer", 0, |module, cx| {
        set_constant("There", 5.0).apply(module, cx)?;
        set_constant("Back", 2.0).apply(module, &cx.derive().build()?)?;
        Ok(())
    });
    let check = Arc::new(CheckMeaning::new());
    outer.apply(&mut parse(PROGRAM), &context(&check)).unwrap();
    assert_eq!(check.checked().passes, 1);
}

#[test]
fn deep_programs_are_checked_on_a_small_stack() {
    let work = || {
        let mut text = String::from("def @main(%x: float32) { let %b0 = exp(%x); ");
        for i in 1..100_000 {
            text.push_str(&format!("let %b{i} = multiply(%b{}, 1f); ", i - 1));
        }
        text.push_str("%b99999 }");
        let mut module = parse(&text);
        let check = Arc::new(CheckMeaning::new());
        let failure = set_constant("Wrong", 2.0).apply(&mut module, &context(&check)).unwrap_err();
        assert!(failure.to_string().contains("computes something else"), "{failure}");
        let cx = context(&check);
        let passes = parse_pipeline(cx.registry(), "CanonicalizeBindings,FoldConstant,DeadCodeElimination").unwrap();
        passes.apply(&mut module, &cx).unwrap();
        assert!(cx.take_remarks().iter().all(|r| r.diagnostic.severity != anfora_ir::Severity::Note));
    };
    std::thread::Builder::new().stack_size(128 << 10).spawn(work).unwrap().join().unwrap();
}

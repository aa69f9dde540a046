//! Properties of text, passes and pipelines that must hold for every program, on random well-typed
//! programs of the whole language.
//!
//! `ANFORA_CASES=5000` sets the number of programs for each property. A failing property of passes
//! prints `ANFORA_SEED` and `ANFORA_SIZE`, which select that program alone.

mod broken_passes;
mod random_programs;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use anfora::interp::{Agreement, EvalError, Externals, Interpreter, Outcome, ValueId, Values};
use anfora::ir::{
    Attr, ChangedPart, Form, FunctionBuilder, Literal, Module, PartChange, PrintOptions, RewriteOptions, Source,
    alpha_equal, diff, module_hash, parse_module, print_function, verify_module,
};
use anfora::manager::{
    FailureKind, ModulePass, Pass, PassContext, PassError, PassFailure, PassRegistry, Verification, parse_pipeline,
};
use anfora::passes::{Backend, CheckMeaning, NUM_INPUT, register_backends};
use anfora::visit::copy_function;
use broken_passes::Broken;
use broken_passes::backends::WITH_GROUPS;
use proptest::prelude::*;
use random_programs::checking::{
    Again, Needs, Program, Promise, Why, check_pass, check_pass_and_shrink, context, pool,
};
use random_programs::{call_main, check, config, meaning, normal, parse, programs, run, same_meaning};

/// Passes that take any form; the others need A-normal form.
const ANY_FORM: [&str; 11] = [
    "PrintIR",
    "FuseStandardOps",
    "SimplifyExpr",
    "ToANormalForm",
    "ToGraphNormalForm",
    "Normalize",
    "ToNonDataflow",
    "AttachGlobalSymbol",
    "BindParams",
    "BindSymbols",
    "EnterPhase",
];

/// Passes whose second run may change something, and why.
const CHANGES_AGAIN: [(&str, &str); 0] = [];

/// Passes that do nothing unless they are told what to do.
/// [`bound_symbols_keep_meaning`] tells BindSymbols, [`weights_that_are_prepared_keep_meaning`]
/// LiftTransformParams, and [`functions_of_backends_keep_meaning`] MergeCompositeFunctions.
/// `passes/tests/gradients.rs` tells Gradient.
const DOES_NOTHING: [&str; 6] =
    ["BindParams", "BindSymbols", "Gradient", "LiftTransformParams", "MergeCompositeFunctions", "PrintIR"];

/// Returns how closely the results of a pass have to agree. In random programs, nothing else
/// depends on values that a pass rewrites with rounding.
fn agreement(name: &str) -> Agreement {
    match anfora::passes::registry().make(name).map_or(0.0, |pass| pass.info().tolerance) {
        0.0 => Agreement::Exact,
        tolerance => Agreement::Within(tolerance),
    }
}

fn promise(name: &str) -> Promise {
    Promise {
        needs: if ANY_FORM.contains(&name) { Needs::AnyForm } else { Needs::ANormalForm },
        again: if CHANGES_AGAIN.iter().any(|c| c.0 == name) { Again::MayChange } else { Again::Idempotent },
        agreement: agreement(name),
        establishes: anfora::passes::registry()
            .make(name)
            .map_or_else(|_| Vec::new(), |pass| pass.info().establishes.clone()),
        low: (name == "ToMixedPrecision").then_some("float16"),
    }
}

/// Passes that leave most random programs as they are, and why.
const SELDOM_CHANGES: [(&str, &str); 1] =
    [("EnterPhase", "no phase can be claimed of a program with nested functions, as most have")];

/// Returns the number of programs of which a pass must change at least one. A pass that changes
/// fewer programs is hardly tested by them.
fn one_in(name: &str) -> usize {
    if SELDOM_CHANGES.iter().any(|c| c.0 == name) { 32 } else { 16 }
}

/// A property of meaning says nothing about a program that fails, and a property of a construct
/// says nothing about a program without it.
#[test]
fn most_random_programs_succeed_and_exercise_the_language() {
    let (mut succeeded, mut extreme, mut graphs, mut effects) = (0, 0, 0, 0);
    let mut text = String::new();
    let mut differs = 0;
    for seed in 0..200 {
        let program = Program::new(100, seed);
        succeeded += usize::from(meaning(&program.original, seed).is_ok());
        extreme += usize::from(program.runs.len() == 2);
        effects += usize::from(program.runs.iter().any(|r| !r.1.trace.is_empty()));
        graphs += usize::from(verify_module(&program.original).is_ok_and(|report| report.form() == Form::Graph));
        if let [(_, a), (_, b)] = &program.runs[..] {
            differs += usize::from(!a.same(b));
        }
        text.push_str(&program.original.to_text());
        if seed % 2 == 0 {
            text.push_str(&program.normal.to_text());
        }
    }
    assert!(succeeded >= 190, "{succeeded} of 200 succeed");
    assert!(extreme >= 190, "{extreme} of 200 succeed on extreme inputs too");
    assert!(graphs >= 50, "{graphs} of 200 are in graph form");
    assert!(effects >= 100, "{effects} of 200 have effects");
    assert!(differs >= 150, "{differs} of 200 depend on their inputs");
    let parts = [
        "dataflow {",
        "output(",
        "if (",
        "fn (",
        "print(",
        "assert(",
        "random.uniform(",
        "match_cast(",
        "make_closure(@pairwise",
        "@loop(",
        "@even(",
        "@odd(",
        "@maker(",
        "@sized(",
        "@helper0(",
        "%again(",
        "%deeper",
        "%inner(",
        "%apply(",
        "let %maker",
        "%maker1",
        "companion=@spare",
        "#![version=1]",
        "cost=",
        "nan(0x",
        "nan",
        "-inf",
        "-0.0",
        "9223372036854775807i64",
        "-9223372036854775808i64",
        ".0",
        ".1",
        "= {",
        "maximum({",
        "(if (",
        "Tensor[(n,), float32]",
        "Tensor[(k1,), float32]",
        "2 * n",
        "concat(",
        "shape_of(",
        "split(",
        "sum(",
        "matmul(",
        "nn.softmax(",
        "nn.conv2d(",
        "nn.batch_norm(",
        "floor_divide(",
        "-> fn(Tensor[(8,), float32]) -> Tensor[(8,), float32]",
        "\n  %0 = ",
    ];
    let dtypes = ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float64"];
    let missing: Vec<_> = parts.iter().chain(&dtypes).filter(|part| !text.contains(**part)).collect();
    assert!(missing.is_empty(), "no program has {missing:?}");
    assert!(text.lines().any(|l| l.starts_with(&" ".repeat(6)) && l.contains("= fn (")), "no lambda in a lambda");
    assert!(text.contains("        let") && text.contains("          let"), "no blocks in blocks in blocks");
}

/// Checks that printing and parsing are inverse. Returns the parsed module.
fn survives_its_text(module: &Module) -> Result<Module, TestCaseError> {
    let text = module.to_text();
    let parsed = parse(&text);
    check(&parsed, "as parsed");
    prop_assert_eq!(parsed.to_text(), text);
    prop_assert!(alpha_equal(module, &parsed));
    prop_assert_eq!(module_hash(module), module_hash(&parsed));
    Ok(parsed)
}

/// Returns the names of the symbols in the text of a program.
fn symbols(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"%@._".contains(c));
    let is_symbol = |word: &&str| {
        let digits = word.strip_prefix(['n', 'k']);
        digits.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    let names: BTreeSet<String> = words.filter(is_symbol).map(str::to_string).collect();
    names.into_iter().collect()
}

/// Every registered pass keeps its promises.
#[test]
fn passes_keep_meaning_and_say_what_they_do() {
    let registry = anfora::passes::registry();
    let check = |name: &str| {
        let pass = registry.make(name).expect("a registered pass");
        match check_pass_and_shrink(&*pass, &promise(name), pool()) {
            Err(caught) => Some(format!("{name}: {caught}")),
            Ok(changed)
                if changed * one_in(name) < pool().len() && pool().len() >= 64 && !DOES_NOTHING.contains(&name) =>
            {
                Some(format!(
                    "{name} changes only {changed} of {} programs, so that little is known of it",
                    pool().len()
                ))
            }
            Ok(_) => None,
        }
    };
    let names: Vec<&str> = registry.passes().iter().map(|p| p.name()).collect();
    let failures = on_all_cores(&names, |name| check(name));
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The number of limits that are tried of a run with many rewrites.
const MOST_LIMITS: u64 = 32;

/// Runs a pass with limits of rewrites. With none left, nothing changes. With any number of them,
/// the result is well-formed and computes the same.
fn stops_anywhere(pass: &dyn Pass, promise: &Promise, program: &Program) -> Result<(), String> {
    let before = match promise.needs {
        Needs::AnyForm => &program.original,
        Needs::ANormalForm => &program.normal,
    };
    let run = |limit: Option<u64>| {
        let options = RewriteOptions { limit, ..RewriteOptions::default() };
        let cx = context(&anfora::passes::registry()).derive().rewrites(options).build().expect("a context");
        let mut module = before.clone();
        let wrong = |why: &dyn std::fmt::Display, module: &Module| {
            let Program { size, seed, .. } = program;
            format!("limit {limit:?}, ANFORA_SIZE={size} ANFORA_SEED={seed}: {why}\n{before}\n{module}")
        };
        pass.apply(&mut module, &cx).map_err(|e| wrong(&e, &module))?;
        verify_module(&module).map_err(|errors| wrong(&errors[0], &module))?;
        let count = cx.rewrites().count();
        if let Some(limit) = limit.filter(|&limit| count != limit) {
            return Err(wrong(&format!("{count} rewrites instead of {limit}"), &module));
        }
        for (input, expected) in program.runs.iter().filter(|_| promise.low.is_none()) {
            let found = call_main(&module, input).map_err(|e| wrong(&e, &module))?;
            if !promise.agreement.holds(expected, &found) {
                return Err(wrong(&"another result", &module));
            }
        }
        Ok((module.to_text(), count))
    };
    let (whole, total) = run(None)?;
    for limit in (0..=total).step_by(total.div_ceil(MOST_LIMITS).max(1) as usize).chain([total]) {
        let (text, _) = run(Some(limit))?;
        let expected = [(0, before.to_text()), (total, whole.clone())].into_iter().find(|e| e.0 == limit);
        if expected.is_some_and(|(_, expected)| expected != text) {
            return Err(format!("limit {limit} of {total}\n{before}\n{whole}\n{text}"));
        }
    }
    Ok(())
}

#[test]
fn passes_stop_after_any_number_of_rewrites() {
    let registry = anfora::passes::registry();
    let names: Vec<&str> = registry.passes().iter().map(|p| p.name()).chain(["O2", "O3", "slim"]).collect();
    let failures = on_all_cores(&names, |name| {
        let pass = parse_pipeline(&registry, name).expect("a registered pass or pipeline");
        let is_pipeline = registry.passes().iter().all(|p| p.name() != *name);
        let promise = match is_pipeline {
            true => Promise { needs: Needs::AnyForm, agreement: agreement("FoldBatchNorm"), ..promise(name) },
            false => promise(name),
        };
        let few = if is_pipeline { 4 } else { 12 };
        let mut small = pool().iter().filter(|program| program.size <= 80).take(few);
        small.find_map(|program| stops_anywhere(&pass, &promise, program).err()).map(|e| format!("{name}: {e}"))
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Returns the module with symbols of a function bound to 8; `None` if nothing was bound.
fn with_bound(module: &Module, function: &str, names: &[String]) -> Result<Option<Module>, PassFailure> {
    let registry = anfora::passes::registry();
    let given: String = names.iter().map(|name| format!(",\"{name}\"=8")).collect();
    let pass = parse_pipeline(&registry, &format!("BindSymbols{{function={function}{given}}}")).expect("a pass");
    let mut bound = module.clone();
    pass.apply(&mut bound, &context(&registry)).map(|outcome| outcome.is_changed().then_some(bound))
}

/// A program whose symbols are bound to the extents of the values computes the same.
#[test]
fn bound_symbols_keep_meaning() {
    let results = on_all_cores(pool(), |program| {
        let Program { size, seed, .. } = *program;
        let module = parse(&program.original.to_text());
        let mut bound = module.clone();
        for key in module.order() {
            let function = module.name(*key);
            let mut text = String::new();
            print_function(&module, *key, &PrintOptions::default(), &mut text).expect("a string takes all");
            let names = symbols(&text);
            let (parameters, casts): (Vec<String>, Vec<String>) = names.into_iter().partition(|n| n.starts_with('n'));
            // Casts are of vectors of eight. The arguments of functions may be longer, and then the
            // binding is refused.
            let all = [casts.clone(), parameters].concat();
            let next = match with_bound(&bound, function, &all) {
                _ if all.is_empty() => continue,
                Ok(next) => next,
                Err(_) if casts.is_empty() => continue,
                Err(_) => with_bound(&bound, function, &casts)
                    .unwrap_or_else(|e| panic!("size {size}, seed {seed}: {e}\n{module}")),
            };
            bound = next.unwrap_or_else(|| panic!("size {size}, seed {seed}: nothing is bound\n{module}"));
        }
        if bound.to_text() == module.to_text() {
            return None;
        }
        check(&bound, "with its symbols bound");
        let parsed = parse(&bound.to_text());
        assert!(alpha_equal(&bound, &parsed), "size {size}, seed {seed}: it does not survive its text\n{bound}");
        same_meaning(&module, &parsed, seed, "binding symbols");
        Some(symbols(&parsed.to_text()).is_empty())
    });
    let all = results.iter().filter(|&&all| all).count();
    let few = pool().len() >= 64 && (results.len() * 2 < pool().len() || all * 8 < pool().len());
    assert!(!few, "symbols of {} programs are bound, all of {all}", results.len());
}

/// Calls a function after LiftTransformParams, on the inputs and on what the weights become.
fn call_with_prepared_weights(
    module: &Module,
    [name, transform]: [&str; 2],
    inputs: usize,
    arguments: &[Literal],
) -> Result<Outcome, EvalError> {
    let mut values = Values::new();
    let weights: Vec<ValueId> = arguments[inputs..].iter().map(|weight| values.tensor(weight.clone())).collect();
    let tuple = values.tuple(&weights);
    let interpreter = Interpreter::new(module);
    let mut prepared = interpreter.call(transform, values, &[tuple])?;
    let fields = prepared.values.as_tuple(prepared.result).expect("it returns a tuple").to_vec();
    let inputs = arguments[..inputs].iter().map(|input| prepared.values.tensor(input.clone()));
    let arguments: Vec<ValueId> = inputs.collect::<Vec<_>>().into_iter().chain(fields).collect();
    interpreter.call(name, prepared.values, &arguments)
}

/// Prepares the weights of a program, whose last parameters from `inputs` on are weights: with a
/// function of its own, with one that it shares with a copy of it, or with one that was there.
fn with_prepared_weights(program: &Program, inputs: usize, way: usize) -> Module {
    let mut module = program.normal.clone();
    let main = module.find("main").expect("a program has a main");
    let (function, cx) = module.get_mut(main).expect("it was just found");
    let number = cx.attr(Attr::Int(inputs as i64));
    function.attrs = cx.named_attrs(&[(NUM_INPUT, number)]);
    let weights: Vec<_> = function.body.params()[inputs..].iter().map(|p| function.body.ty(p.expr())).collect();
    let pipeline = match way {
        0 => "LiftTransformParams",
        1 => {
            copy_function(&mut module, main, "twin").expect("the name is free");
            "LiftTransformParams{shared_transform=true}"
        }
        _ => {
            let tuple = module.cx.types.tuple(&weights);
            let mut same = FunctionBuilder::new(&mut module, "main_transform_params");
            let params = same.param("weights", tuple);
            same.finish(params).expect("it is in order");
            "LiftTransformParams"
        }
    };
    run(&anfora::passes::registry(), pipeline, &mut module);
    let once = module.to_text();
    run(&anfora::passes::registry(), pipeline, &mut module);
    assert_eq!(once, module.to_text(), "the second run changes nothing");
    module
}

/// A program computes the same if what it computes from weights is computed before it runs.
#[test]
fn weights_that_are_prepared_keep_meaning() {
    let moved = on_all_cores(pool(), |program| {
        let Program { size, seed, .. } = *program;
        let main = program.normal.find("main").and_then(|key| program.normal.get(key)).expect("a program has a main");
        let inputs = main.body.params().len() / 2;
        let mut has_moved = false;
        for (way, names) in [
            (0, ["main", "main_transform_params"]),
            (1, ["main", "transform_params"]),
            (1, ["twin", "transform_params"]),
            (2, ["main", "main_transform_params"]),
        ] {
            let module = with_prepared_weights(program, inputs, way);
            check(&module, "with prepared weights");
            for (arguments, expected) in &program.runs {
                match call_with_prepared_weights(&module, names, inputs, arguments) {
                    Ok(found) => {
                        assert!(expected.same(&found), "size {size}, seed {seed}\n{}\n{module}", program.normal);
                    }
                    Err(error) => panic!("size {size}, seed {seed}: {error}\n{}\n{module}", program.normal),
                }
            }
            let after = module.find(names[0]).and_then(|key| module.get(key));
            has_moved |= after.is_some_and(|f| f.body.params() != main.body.params());
        }
        has_moved.then_some(())
    });
    let few = pool().len() >= 64 && moved.len() * 4 < pool().len();
    assert!(!few, "something moves in {} programs", moved.len());
}

/// A program computes the same in 16 bits, if these are read as `float32`, whatever is left out and
/// whichever inputs and outputs change.
#[test]
fn mixed_precision_keeps_meaning_but_for_rounding() {
    let registry = anfora::passes::registry();
    for (options, low) in
        [("to=bfloat16", "bfloat16"), ("keep_io=false", "float16"), ("except_ops=[add, permute_dims]", "float16")]
    {
        let pass = parse_pipeline(&registry, &format!("ToMixedPrecision{{{options}}}")).expect("a pass");
        let promise = Promise { low: Some(low), ..promise("ToMixedPrecision") };
        match check_pass_and_shrink(&pass, &promise, pool()) {
            Ok(changed) => assert!(changed * 4 >= pool().len(), "{options}: {changed} programs"),
            Err(caught) => panic!("{options}: {caught}"),
        }
    }
}

/// A backend whose code is the interpreter of the function that it is given. `externals` gets the
/// code.
fn interpreting_backend(name: &str, externals: &Arc<Mutex<Externals>>) -> Backend {
    let externals = Arc::clone(externals);
    Backend::new(name, move |function| {
        verify_module(function.module).map_err(|found| PassError::new(found[0].to_string()))?;
        let module = function.module.clone();
        let symbol = format!("code_of_{}", function.name);
        externals.lock().expect("no test failed").insert(symbol.clone(), move |arguments: &[Literal]| {
            let outcome = Interpreter::new(&module).run("main", arguments).map_err(|error| error.to_string())?;
            Ok(outcome.values.tensors(outcome.result, usize::MAX).into_iter().cloned().collect())
        });
        Ok(symbol)
    })
}

/// A program computes the same if backends compute parts of it.
#[test]
fn functions_of_backends_keep_meaning() {
    let changed = on_all_cores(pool(), |program| {
        let Program { size, seed, .. } = *program;
        let externals = Arc::new(Mutex::new(Externals::new()));
        let mut registry = PassRegistry::new();
        anfora::passes::register(&mut registry).expect("names that differ");
        let a = interpreting_backend("a", &externals).patterns("e=exp(%x),n=negative(%x),m=multiply(%x, %y)");
        let b = interpreting_backend("b", &externals).patterns("t=tanh(%x),s=add(%x, %y)");
        register_backends(&mut registry, vec![a, b]).expect("a new name");
        let registry = Arc::new(registry);
        // Once with the functions of the groups, and once with their code.
        let mut merged = program.normal.clone();
        run(&registry, WITH_GROUPS, &mut merged);
        check(&merged, "with groups of backends");
        assert!(!run(&registry, "MergeCompositeFunctions", &mut merged), "size {size}, seed {seed}: not idempotent");
        let mut module = program.normal.clone();
        run(&registry, "byoc", &mut module);
        check(&module, "with code of backends");
        let externals = externals.lock().expect("no test failed");
        for (arguments, expected) in &program.runs {
            for (module, kind) in [(&merged, "groups"), (&module, "code")] {
                match Interpreter::new(module).externals(&externals).run("main", arguments) {
                    Ok(found) => {
                        assert!(expected.same(&found), "size {size}, seed {seed}, {kind}\n{}\n{module}", program.normal)
                    }
                    Err(error) => panic!("size {size}, seed {seed}, {kind}: {error}\n{}\n{module}", program.normal),
                }
            }
        }
        module.to_text().contains("global_symbol=\"code_of_").then_some(())
    });
    let few = pool().len() >= 64 && changed.len() * 4 < pool().len();
    assert!(!few, "backends compute something in {} programs", changed.len());
}

/// Returns the text with one operator or one statement more or less, if the statement that the
/// number selects can be edited.
fn edited(text: &str, number: usize) -> Option<String> {
    const OPERATORS: [(&str, &str); 4] =
        [("add(", "subtract("), ("multiply(", "add("), ("tanh(", "exp("), ("negative(", "abs(")];
    let lines: Vec<&str> = text.lines().collect();
    let statements: Vec<usize> =
        (0..lines.len()).filter(|&i| lines[i].trim_start().starts_with("let %") && lines[i].ends_with(';')).collect();
    let at = *statements.get(number % statements.len().max(1))?;
    let mut new: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
    let operator = OPERATORS.iter().find_map(|(from, to)| {
        let begin = lines[at].match_indices(from).find(|(i, _)| lines[at][..*i].ends_with([' ', '(']))?.0;
        Some(format!("{}{to}{}", &lines[at][..begin], &lines[at][begin + from.len()..]))
    });
    match operator.filter(|_| !number.is_multiple_of(3)) {
        Some(line) => new[at] = line,
        None => new.insert(at + 1, "let %inserted = (1f, 2f);".to_string()),
    }
    Some(new.join("\n"))
}

/// A diff has differences exactly if two programs are not alpha-equal, and one for a single edit.
#[test]
fn single_edits_are_single_differences() {
    let edits = on_all_cores(pool(), |program| {
        let mut edits = 0;
        for module in [&program.original, &program.normal] {
            let text = module.to_text();
            let parsed = parse(&text);
            assert_eq!(diff(module, &parsed).to_string(), "");
            for number in 0..6 {
                let other = edited(&text, number * 7 + program.seed as usize).map(|text| Source::new("edited", text));
                let Some(Ok(other)) = other.map(|text| parse_module(text, anfora::onnx::registry())) else { continue };
                let found = diff(module, &other);
                let is_whole = |c: &PartChange| c.part == ChangedPart::Structure;
                assert!(!found.module.iter().any(is_whole), "{found}");
                assert_eq!(found.len(), 1, "{found}\n{module}");
                assert!(!alpha_equal(module, &other));
                edits += 1;
            }
        }
        Some(edits)
    });
    let edits: usize = edits.into_iter().sum();
    assert!(edits >= pool().len(), "{edits} edits of {} programs", pool().len());
}

/// The changes of passes show as differences, item by item, and nothing else does.
#[test]
fn differences_are_those_of_alpha_equality() {
    let registry = anfora::passes::registry();
    on_all_cores(pool(), |program| -> Option<()> {
        for pass in ["EliminateCommonSubexpr", "SimplifyExpr", "InlineFunctions", "FuseOps", "ToGraphNormalForm"] {
            let mut after = program.normal.clone();
            run(&registry, pass, &mut after);
            for (left, right) in [(&program.normal, &after), (&after, &program.normal)] {
                let found = diff(left, right);
                assert_eq!(found.is_empty(), alpha_equal(left, right), "{pass}: {found}");
                assert!(!found.module.iter().any(|c| c.part == ChangedPart::Structure), "{pass}: {found}");
            }
        }
        None
    });
}

/// The usual mistakes in passes are caught, and for the right reason.
#[test]
fn broken_passes_are_caught() {
    let registry = anfora::passes::registry();
    let registered = |b: &Broken| registry.passes().iter().any(|p| p.name() == b.of);
    let all: Vec<Broken> = broken_passes::all().into_iter().filter(registered).collect();
    let failures = on_all_cores(&all, |broken| {
        let Broken { of, mistake, why, make } = broken;
        let mut promise = promise(of);
        if !why.contains(&Why::NotIdempotent) {
            promise.again = Again::MayChange;
        }
        match check_pass(&*make(), &promise, pool()) {
            Err(caught) if why.contains(&caught.why) => None,
            Err(caught) => Some(format!("{of} that {mistake} is caught for another reason: {caught}")),
            Ok(_) => Some(format!("{of} that {mistake} is not caught")),
        }
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Runs a pass on a program under CheckMeaning. Returns the error if CheckMeaning rejects the
/// result.
fn is_rejected(pass: &dyn Pass, module: &Module, check: &Arc<CheckMeaning>) -> Option<String> {
    let registry = anfora::passes::registry();
    let cx = PassContext::builder()
        .registry(registry)
        .opt_level(3)
        .instrument(check.clone())
        .verification(Verification::Off)
        .print_to(std::io::sink())
        .build()
        .expect("a context");
    let failure = pass.apply(&mut module.clone(), &cx).err()?;
    let instrument = FailureKind::Instrument { instrument: "CheckMeaning".to_string(), hook: "run_after" };
    (*failure.kind() == instrument).then(|| failure.to_string())
}

#[test]
fn check_meaning_rejects_broken_passes_and_lets_the_others_pass() {
    let registry = anfora::passes::registry();
    let changes_meaning = |b: &Broken| b.why.contains(&Why::OtherResult) || b.why.contains(&Why::OtherEffects);
    let broken: Vec<Broken> = broken_passes::all().into_iter().filter(changes_meaning).collect();
    assert!(broken.len() >= 20, "{}", broken.len());
    let missed = on_all_cores(&broken, |Broken { of, mistake, why, make }| {
        let pass = make();
        let check = Arc::new(CheckMeaning::new());
        let mut rejected = pool().iter().filter_map(|program| is_rejected(&*pass, &program.normal, &check));
        // A mistake that may be caught for another reason need not be visible in results.
        let needed = why.iter().all(|w| matches!(w, Why::OtherResult | Why::OtherEffects));
        (rejected.next().is_none() && needed).then(|| format!("{of} that {mistake}"))
    });
    assert!(missed.is_empty(), "not rejected: {}", missed.join(", "));

    let names: Vec<&str> = registry.passes().iter().map(|p| p.name()).collect();
    let wrong = on_all_cores(&names, |name| {
        let pass = registry.make(name).expect("a registered pass");
        let check = Arc::new(CheckMeaning::new());
        let form = |program: &'static Program| match promise(name).needs {
            Needs::AnyForm => &program.original,
            Needs::ANormalForm => &program.normal,
        };
        let rejected = pool().iter().take(48).find_map(|program| is_rejected(&*pass, form(program), &check));
        let runs = check.checked().runs;
        // The results of a pass that computes in fewer bits are not compared.
        let is_compared = pass.info().tolerance.is_finite() && !DOES_NOTHING.contains(name);
        let idle = runs == 0 && pool().len() >= 48 && is_compared;
        rejected.or(idle.then(|| format!("{name}: no runs were held against each other")))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_registered_pass_has_two_broken_variants() {
    let registry = anfora::passes::registry();
    let broken = broken_passes::all();
    for pass in registry.passes() {
        let variants = broken.iter().filter(|b| b.of == pass.name()).count();
        assert!(variants >= 2, "{} has {variants} broken variants in tests/broken_passes", pass.name());
    }
}

/// Calls `of` for each item, on as many threads as there are cores. Returns the results.
fn on_all_cores<T: Sync, R: Send>(all: &[T], of: impl Fn(&T) -> Option<R> + Sync) -> Vec<R> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(one) = all.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            found.extend(of(one));
        }
        found
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|t| t.join().expect("what panics in a thread has printed why")).collect()
    })
}

/// Returns a pipeline of registered passes, chosen by `draws`, each in the form that it needs.
fn random_pipeline(draws: &[usize]) -> String {
    let registry = anfora::passes::registry();
    let names: Vec<&str> =
        registry.passes().iter().map(|p| p.name()).filter(|n| promise(n).agreement == Agreement::Exact).collect();
    let mut pipeline = Vec::new();
    let mut normal = false;
    for draw in draws {
        let name = names[draw % names.len()];
        if !normal && !ANY_FORM.contains(&name) {
            pipeline.push("ToANormalForm");
            normal = true;
        }
        // Orders that are refused say nothing about meaning. `tests/declarations.rs` tests them.
        if name == "FuseOps" {
            pipeline.extend(["ToANormalForm", "ConvertToDataflow"]);
            normal = true;
        }
        pipeline.push(name);
        normal = name == "ToANormalForm" || (normal && name != "ToGraphNormalForm");
    }
    pipeline.join(",")
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn programs_verify_run_and_survive_their_text_in_every_form(random in programs(1..120)) {
        let module = random.module();
        check(&module, "as built");
        let parsed = survives_its_text(&module)?;
        same_meaning(&module, &parsed, random.seed, "printing and parsing");
        let mut compacted = module.clone();
        compacted.compact().expect("no edit is open");
        prop_assert_eq!(compacted.to_text(), module.to_text());
        let registry = anfora::passes::registry();
        for form in ["ToANormalForm", "ToGraphNormalForm"] {
            let mut module = module.clone();
            run(&registry, form, &mut module);
            survives_its_text(&module)?;
        }
    }

    /// On the way from A-normal form to the graph and back, every binding gets to the place where
    /// it stays. A second round gives the same graph and the same text.
    #[test]
    fn graph_and_a_normal_form_settle_at_once(random in programs(1..120)) {
        let registry = anfora::passes::registry();
        let mut module = normal(&random);
        run(&registry, "ToGraphNormalForm", &mut module);
        let graph = module.clone();
        run(&registry, "ToANormalForm", &mut module);
        let settled = module.clone();
        check(&settled, "back in A-normal form");
        prop_assert_eq!(verify_module(&settled).map(|report| report.form()), Ok(Form::Anf));
        same_meaning(&random.module(), &settled, random.seed, "going to the graph and back");
        run(&registry, "ToGraphNormalForm", &mut module);
        prop_assert!(alpha_equal(&module, &graph), "another graph:\n{}\n{}", graph, module);
        prop_assert_eq!(module.to_text(), graph.to_text());
        run(&registry, "ToANormalForm", &mut module);
        prop_assert!(alpha_equal(&module, &settled), "another A-normal form:\n{}\n{}", settled, module);
        prop_assert_eq!(module.to_text(), settled.to_text());
    }

    #[test]
    fn pipelines_keep_meaning(random in programs(1..150), draws in proptest::collection::vec(any::<usize>(), 1..8)) {
        let registry = anfora::passes::registry();
        let program = Program::new(random.size, random.seed);
        let drawn = random_pipeline(&draws);
        let again = Again::MayChange;
        for (pipeline, needs, agreement) in [
            (drawn.as_str(), Needs::AnyForm, Agreement::Exact),
            ("O1", Needs::AnyForm, Agreement::Exact),
            ("O2", Needs::AnyForm, Agreement::Exact),
            ("O3", Needs::AnyForm, agreement("FoldBatchNorm")),
            ("phase0,phase1,phase2.1,phase2.3", Needs::AnyForm, agreement("DecomposeOps")),
        ] {
            let Ok(passes) = parse_pipeline(&registry, pipeline) else {
                prop_assert!(!drawn.is_empty() && pipeline.contains("phase"), "`{}` does not parse", pipeline);
                continue;
            };
            let promise = Promise { needs, again, agreement, establishes: Vec::new(), low: None };
            if let Err(caught) = check_pass(&passes, &promise, std::slice::from_ref(&program)) {
                return Err(TestCaseError::fail(format!("{pipeline}: {caught}")));
            }
        }
    }

    /// A repetition leaves out functions that a pass has left unchanged. This is not visible in the
    /// result.
    #[test]
    fn repetition_is_the_same_as_its_rounds(random in programs(1..200), draws in proptest::collection::vec(any::<usize>(), 1..5)) {
        let registry = anfora::passes::registry();
        let drawn = random_pipeline(&draws);
        let mut repeated = random.module();
        run(&registry, &format!("fixpoint<5>({drawn})"), &mut repeated);
        let mut module = random.module();
        let passes = parse_pipeline(&registry, &drawn).expect("a pipeline of registered passes");
        let context = context(&registry);
        for _ in 0..5 {
            let mut changed = false;
            for pass in passes.passes() {
                changed |= pass.apply(&mut module, &context).expect("it ran in the repetition").is_changed();
            }
            if !changed {
                break;
            }
        }
        prop_assert_eq!(repeated.to_text(), module.to_text(), "{}", drawn);
    }

    /// The text, messages and counts are the same for any number of threads.
    #[test]
    fn threads_do_not_show(random in programs(1..120), draws in proptest::collection::vec(any::<usize>(), 1..8)) {
        let registry = anfora::passes::registry();
        let names = registry.passes().iter().map(|p| if ANY_FORM.contains(&p.name()) { p.name().to_string() } else { format!("ToANormalForm,{}", p.name()) });
        let pipelines: Vec<String> = names.chain([random_pipeline(&draws), "O3".to_string()]).collect();
        for pipeline in pipelines {
            let Ok(passes) = parse_pipeline(&registry, &pipeline) else { continue };
            let run = |threads: usize| {
                let context = PassContext::builder().registry(Arc::clone(&registry)).opt_level(3).threads(threads).worth_sharing(0);
                let context = context.print_to(std::io::sink()).build().expect("an empty context");
                let mut module = random.module();
                let result = passes.apply(&mut module, &context).map_err(|f| f.to_string());
                (result, module.to_text(), context.take_remarks(), context.statistics())
            };
            let (one, four) = (run(1), run(4));
            prop_assert_eq!(&one.0, &four.0, "the result of {}", &pipeline);
            prop_assert_eq!(&one.1, &four.1, "the text after {}", &pipeline);
            prop_assert_eq!(&one.2, &four.2, "the messages of {}", &pipeline);
            prop_assert_eq!(&one.3, &four.3, "the counts of {}", &pipeline);
        }
    }

    /// Functions that another module takes over are the same program there. A module can take the
    /// place of any other module, and changes nothing if it is the same.
    #[test]
    fn modules_take_over_functions(random in programs(1..150), other in programs(1..60)) {
        let module = random.module();
        let text = module.to_text();
        let mut taken = Module::new(module.cx.ops.registry().clone());
        for &key in module.order() {
            taken.take_function(&module, key, module.name(key)).expect("the names are free");
        }
        check(&taken, "taken over");
        let mut plain = module.clone();
        plain.set_attrs(plain.cx.attrs.empty());
        prop_assert_eq!(taken.to_text(), plain.to_text());
        prop_assert!(alpha_equal(&taken, &plain));
        for given in [Module::new(module.cx.ops.registry().clone()), other.module(), normal(&random)] {
            let mut given = given;
            let before = given.to_text();
            given.begin_edit();
            given.replace_with(&module).expect("the operators are the same");
            prop_assert_eq!(given.to_text(), text.as_str());
            check(&given, "in another's place");
            prop_assert!(alpha_equal(&given, &module));
            given.begin_edit();
            given.replace_with(&module.clone()).expect("the operators are the same");
            prop_assert!(!given.has_changes(), "what is the same changes nothing:\n{}", text);
            given.commit();
            given.rollback();
            prop_assert_eq!(given.to_text(), before);
            check(&given, "rolled back");
        }
    }

    #[test]
    fn a_failing_pass_leaves_the_module_as_it_was(random in programs(1..120)) {
        let registry = anfora::passes::registry();
        let mut module = random.module();
        let before = module.to_text();
        let inner = Arc::clone(&registry);
        let failing = ModulePass::new("Failing", 0, move |module, _| {
            let passes = parse_pipeline(&inner, "O2").expect("a named pipeline");
            passes.apply(module, &PassContext::with_registry(Arc::clone(&inner)))?;
            let keys = module.order().to_vec();
            module.remove(&keys[..1]);
            Err(PassError::new("after all that"))
        });
        prop_assert!(failing.apply(&mut module, &PassContext::new()).is_err());
        prop_assert_eq!(module.to_text(), before);
        check(&module, "rolled back");
    }
}

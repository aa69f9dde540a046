//! What must hold of text, passes and pipelines for every program, on random well-typed ones of the whole language.
//!
//! `ANFORA_CASES=5000` sets how many programs each property is tried on.

mod random_programs;

use std::sync::Arc;

use anfora::ir::{Form, Module, alpha_equal, module_hash, verify_module};
use anfora::manager::{ModulePass, Pass, PassContext, PassError, parse_pipeline};
use proptest::prelude::*;
use random_programs::{Random, check, config, meaning, parse, programs, run, same_meaning};

/// Passes that take any form; the others need A-normal form.
const ANY_FORM: [&str; 2] = ["ToANormalForm", "ToGraphNormalForm"];

/// A property about meaning says nothing of a program that fails, and one about a construct nothing where there is none.
#[test]
fn most_random_programs_succeed_and_exercise_the_language() {
    let (mut succeeded, mut graphs) = (0, 0);
    let mut text = String::new();
    for seed in 0..200 {
        let module = Random { size: 100, seed }.module();
        succeeded += usize::from(meaning(&module, seed).is_ok());
        graphs += usize::from(verify_module(&module).is_ok_and(|report| report.form() == Form::Graph));
        text.push_str(&module.to_text());
    }
    assert!(succeeded >= 190, "{succeeded} of 200 succeed");
    assert!(graphs >= 50, "{graphs} of 200 are in graph form");
    let parts = [
        "dataflow {",
        "output(",
        "if (",
        "fn (",
        "print(",
        "match_cast(",
        "make_closure(",
        "@loop(",
        "%again(",
        "%apply(",
        "nan",
        "inf",
        ".0",
        ".1",
        "= {",
        "maximum({",
        "(if (",
        "Tensor[(n,), float32]",
        "Tensor[(k1,), float32]",
        "\n  %0 = ",
    ];
    let dtypes = ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float64"];
    for part in parts.iter().chain(&dtypes) {
        assert!(text.contains(part), "no program has `{part}`");
    }
}

/// Printing and parsing are inverse.
fn survives_its_text(module: &Module) -> Result<Module, TestCaseError> {
    let text = module.to_text();
    let parsed = parse(&text);
    check(&parsed, "as parsed");
    prop_assert_eq!(parsed.to_text(), text);
    prop_assert!(alpha_equal(module, &parsed));
    prop_assert_eq!(module_hash(module), module_hash(&parsed));
    Ok(parsed)
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
        for form in ANY_FORM {
            let mut module = module.clone();
            run(&registry, form, &mut module);
            survives_its_text(&module)?;
        }
    }

    #[test]
    fn passes_keep_meaning_and_say_what_they_do(random in programs(1..120)) {
        let registry = anfora::passes::registry();
        let (original, normal) = (random.module(), random.normal());
        for pass in registry.passes() {
            let name = pass.name();
            for before in [&original, &normal] {
                if std::ptr::eq(before, &original) && !ANY_FORM.contains(&name) {
                    continue;
                }
                let text = before.to_text();
                let mut after = before.clone();
                let changed = run(&registry, name, &mut after);
                check(&after, name);
                let result = after.to_text();
                prop_assert!(changed || result == text, "{} changed what it says it did not", name);
                same_meaning(before, &after, random.seed, name);
                let mut again = before.clone();
                run(&registry, name, &mut again);
                prop_assert_eq!(&again.to_text(), &result, "{} is not deterministic", name);
                prop_assert!(!run(&registry, name, &mut again), "{} is not idempotent\n{}\n{}", name, result, again);
            }
        }
    }

    /// From A-normal form to the graph and back puts every binding where it stays: the way there finds the same graph, and the way back
    /// the same text.
    #[test]
    fn graph_and_a_normal_form_settle_at_once(random in programs(1..120)) {
        let registry = anfora::passes::registry();
        let mut module = random.normal();
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
    fn pipelines_keep_meaning(random in programs(1..150), order in proptest::collection::vec(0usize..5, 1..8)) {
        let registry = anfora::passes::registry();
        let names = [
            "FoldConstant", "CanonicalizeBindings", "EliminateCommonSubexpr", "DeadCodeElimination",
            "ToGraphNormalForm,ToANormalForm",
        ];
        let mut pipeline = String::from("ToANormalForm");
        for i in order {
            pipeline.push(',');
            pipeline.push_str(names[i]);
        }
        let before = random.module();
        for pipeline in [pipeline.as_str(), "O1", "O2", "O3"] {
            let mut after = before.clone();
            run(&registry, pipeline, &mut after);
            check(&after, pipeline);
            same_meaning(&before, &after, random.seed, pipeline);
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

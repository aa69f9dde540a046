//! Tests that text cannot express: modules with missing functions, options, pipelines.

use std::sync::Arc;

use anfora_ir::{Attr, DType, FunctionBuilder, Module, Purity, Source, Visibility, parse_module};
use anfora_manager::{ConfigKind, Outcome, PassContext, PassRegistry, parse_pipeline, run_pass};
use anfora_passes::{attach_global_symbol, eliminate_dead_code};

fn registry() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    anfora_passes::register(&mut registry).unwrap();
    Arc::new(registry)
}

/// Returns a module in which `main` calls the missing `@gone`, and in which `@unused` is not called
/// and has a dead binding.
fn incomplete() -> Module {
    let mut module = Module::new(anfora_ops::standard());
    let ty = module.cx.types.scalar(DType::Int32);
    let gone = module.cx.global("gone");
    let signature = module.cx.types.function(&[ty], ty, &[]);
    module.set_signature(gone, signature);

    let mut f = FunctionBuilder::new(&mut module, "main");
    let x = f.param("x", ty);
    let gone = f.global("gone");
    let call = f.call(gone, &[x]).unwrap();
    let y = f.bind("y", call);
    f.finish(y).unwrap();

    let mut f = FunctionBuilder::new(&mut module, "unused");
    f.visibility(Visibility::Private);
    let x = f.param("x", ty);
    let value = f.call_op("negative", &[x], &[]).unwrap();
    f.bind("dead", value);
    f.finish(x).unwrap();
    module
}

#[test]
fn only_lambdas_and_functions_exclude_each_other() {
    let error = parse_pipeline(&registry(), "InlineFunctions{functions=g,only_lambdas=true}").unwrap_err();
    assert!(error.to_string().contains("`functions` are given, and `only_lambdas` inlines none"), "{error}");
}

#[test]
fn a_missing_function_keeps_all_functions() {
    let mut module = incomplete();
    let purity = Purity::of_module(&module);
    let done = eliminate_dead_code(&mut module, &purity, &[], &PassContext::new()).unwrap();
    assert_eq!((done.functions, done.bindings), (0, 1));
    assert!(done.remarks[0].message.contains("`@gone`"), "{}", done.remarks[0]);
    assert!(module.find("unused").is_some());
    module.begin_edit();
    eliminate_dead_code(&mut module, &purity, &[], &PassContext::new()).unwrap();
    assert!(!module.commit());
}

#[test]
fn a_function_that_an_attribute_names_stays() {
    let mut module = incomplete();
    let unused = module.cx.find_global("unused").unwrap();
    let value = module.cx.attr(Attr::Global(unused));
    let attrs = module.cx.named_attrs(&[("hook", value)]);
    let main = module.find("main").unwrap();
    let gone = module.cx.find_global("gone").unwrap();
    module.get_mut(main).unwrap().0.attrs = attrs;
    let ty = module.cx.types.scalar(DType::Int32);
    let mut f = FunctionBuilder::new(&mut module, "gone");
    f.visibility(Visibility::Private);
    let x = f.param("x", ty);
    f.finish(x).unwrap();
    let purity = Purity::of_module(&module);
    assert!(purity.global_is_pure(gone));
    let done = eliminate_dead_code(&mut module, &purity, &[], &PassContext::new()).unwrap();
    assert_eq!(done.functions, 0);
    let none = module.cx.attrs.empty();
    module.get_mut(main).unwrap().0.attrs = none;
    assert_eq!(eliminate_dead_code(&mut module, &purity, &[], &PassContext::new()).unwrap().functions, 1);
}

#[test]
fn reached_functions_are_cleaned_on_several_threads() {
    // A tree of calls, some of which have attributes that name functions, and such a tree that
    // nothing calls.
    let tree = |name: &str, external: &str| -> String {
        let function = |i: usize| {
            let (mut calls, mut last) = (String::new(), "%x".to_string());
            for callee in [2 * i + 1, 2 * i + 2].into_iter().filter(|&callee| callee < 60) {
                let hook = if callee % 5 == 0 { format!(", hook=@{name}{}", callee / 5) } else { String::new() };
                calls += &format!("let %d{callee} = @{name}{callee}({last}{hook}); ");
                last = format!("%d{callee}");
            }
            let visibility = if i == 0 { external } else { "private " };
            format!("def {visibility}@{name}{i}(%x: float32) {{ let %unused = cos(%x); {calls}{last} }}\n")
        };
        (0..60).map(function).collect()
    };
    let text = tree("f", "") + &tree("g", "private ");
    let clean = |threads: usize, entries: &[String]| {
        let mut module = parse_module(Source::new("test", text.clone()), anfora_ops::standard()).unwrap();
        let purity = Purity::of_module(&module);
        let cx = PassContext::builder().threads(threads).worth_sharing(0).build().unwrap();
        let done = eliminate_dead_code(&mut module, &purity, entries, &cx).unwrap();
        (module.to_string(), done)
    };
    // `@g7` calls `@g15`, an attribute of which names `@g3`, which reaches fifteen functions.
    for (entries, reached) in [(&[][..], 60), (&["g7".to_string()], 75)] {
        let (text, done) = clean(1, entries);
        assert_eq!(clean(3, entries), (text, done.clone()));
        assert_eq!((done.functions, done.bindings), (120 - reached, reached));
    }
}

#[test]
fn all_pipelines_can_be_made() {
    let registry = registry();
    for pipeline in registry.pipelines() {
        if let Err(error) = parse_pipeline(&registry, &pipeline.text) {
            panic!("{}: {error}", pipeline.name);
        }
        for option in pipeline.options {
            let ConfigKind::OneOf(words) = option.kind else { panic!("{} is no choice", option.key) };
            for word in words {
                let text = format!("{}{{{}={word}}}", pipeline.name, option.key);
                let made = parse_pipeline(&registry, &text).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!(made.to_string() == pipeline.text, option.default.to_string() == *word, "{text}");
            }
        }
    }
}

#[test]
fn passes_run_at_their_level_and_say_what_they_did() {
    let registry = registry();
    let text = "def @f(%x: int32) { let %a = add(1, 2); let %b = negative(%x); let %c = negative(%x); (%a, %b, %c) }";
    let source = Source::new("test", text);
    let mut module = parse_module(source, anfora_ops::standard()).unwrap();
    let pipeline = parse_pipeline(&registry, "FoldConstant,EliminateCommonSubexpr").unwrap();
    let cx = PassContext::builder().registry(registry.clone()).opt_level(1).build().unwrap();
    assert_eq!(run_pass(&pipeline, &mut module, &cx).unwrap(), Outcome::Changed);
    assert!(module.to_string().contains("add(1, 2)"), "FoldConstant wants level 2:\n{module}");
    assert!(!module.to_string().contains("%c"), "{module}");
    let cx = PassContext::builder().registry(registry.clone()).opt_level(2).build().unwrap();
    assert_eq!(run_pass(&pipeline, &mut module, &cx).unwrap(), Outcome::Changed);
    assert_eq!(run_pass(&pipeline, &mut module, &cx).unwrap(), Outcome::Unchanged);
}

#[test]
fn symbols_are_the_same_whenever_the_module_gets_its_prefix() {
    let program = "def @main(%x: int32) { @Pg(@g(@Ppublic(@public(%x)))) }
        def private @Pg(%x: int32, Primitive=1) { abs(%x) }
        def private @g1(%x: int32, Primitive=1) { negative(%x) }
        def private @g(%x: int32) { @g1(%x) }
        def @Ppublic(%x: int32, Primitive=1) { abs(%x) }
        def @public(%x: int32, Primitive=1) { negative(%x) }";
    let attached = |text: &str| {
        let mut module = parse_module(Source::new("m", text), anfora_ops::standard()).unwrap();
        attach_global_symbol(&mut module).unwrap();
        module.to_text()
    };
    let with_prefix = |text: &str| attached(&format!("#![system_lib_prefix=\"P\"]\n{text}"));
    let once = with_prefix(program);
    for name in ["Pg\"", "Pg1\"", "g\"", "PPpublic\"", "Ppublic\""] {
        assert!(once.contains(&format!("global_symbol=\"{name}")), "{once}");
    }
    assert_eq!(with_prefix(&attached(program)), once);
    assert_eq!(attached(&once), once);
}

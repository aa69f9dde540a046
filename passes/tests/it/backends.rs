//! Functions for backends, and the closures that generate their code.

use std::sync::{Arc, Mutex};

use anfora_interp::{Externals, Interpreter};
use anfora_ir::{Literal, Module, Source, parse_module, verify_module};
use anfora_manager::{Pass, PassContext, PassError, PassFailure, PassRegistry, parse_pipeline};
use anfora_passes::{Backend, register_backends, run_codegen};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora_ops::standard()).expect("a right program")
}

/// Returns a backend that makes symbols of names, and the text of the modules that it is given.
fn recording(name: &str) -> (Backend, Arc<Mutex<Vec<String>>>) {
    let given = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&given);
    let backend = Backend::new(name, move |function| {
        verify_module(function.module).expect("a well-formed module");
        all.lock().unwrap().push(function.module.to_text());
        Ok(format!("{}_code", function.name))
    });
    (backend, given)
}

fn apply(backends: Vec<Backend>, module: &mut Module) -> Result<(), PassFailure> {
    run_codegen(backends).apply(module, &PassContext::new()).map(drop)
}

#[test]
fn a_backend_is_given_the_function_and_what_it_calls() {
    let mut module = parse(
        "def @main(%x: Tensor[(k,), float32]) { @part(%x) }
        def private @part(%x: Tensor[(n,), float32], Codegen=\"mine\", Primitive=1) { @inner(@inner(%x)) }
        def private @inner(%x: Tensor[(m,), float32], Composite=\"mine.inner\", Primitive=1) { @last(%x) }
        def private @last(%x: Tensor[(m,), float32], Primitive=1) { exp(%x) }
        def private @unused(%x: Tensor[(m,), float32]) { tanh(%x) }",
    );
    let (backend, given) = recording("mine");
    apply(vec![backend], &mut module).expect("a backend");
    let given = given.lock().unwrap();
    assert_eq!(given.len(), 1);
    assert!(given[0].starts_with("def @main(%x: Tensor[(n,), float32]) -> Tensor[(n,), float32] {"), "{}", given[0]);
    assert!(given[0].contains("Composite=\"mine.inner\"") && given[0].contains("exp("), "{}", given[0]);
    assert!(!given[0].contains("@unused"), "{}", given[0]);
    verify_module(&module).expect("a well-formed module");
    let text = module.to_text();
    let declaration = "\ndeclare @part(%x: Tensor[(n,), float32], Codegen=\"mine\", Pure=1, global_symbol=\"part_code\") -> Tensor[(n,), float32];\n";
    assert!(text.contains(declaration), "{text}");
    assert!(text.find("declare @part") < text.find("@inner("), "the place in the program changed: {text}");
    // The text reads back, and another run changes nothing.
    assert_eq!(parse(&text).to_text(), text);
    let (backend, again) = recording("mine");
    apply(vec![backend], &mut module).expect("nothing to do");
    assert!(again.lock().unwrap().is_empty());
}

#[test]
fn effects_are_not_hidden() {
    let mut module = parse(
        "def @main(%x: float32) { @part(%x) }
        def private @part(%x: float32, Codegen=\"mine\") { let %u = print(%x); %x }",
    );
    apply(vec![recording("mine").0], &mut module).expect("a backend");
    assert!(!module.to_text().contains("Pure"), "{module}");
}

#[test]
fn what_fails_leaves_the_module_as_it_was() {
    let text = "def private @first(%x: float32, Codegen=\"mine\") { exp(%x) }
        def private @second(%x: float32, Codegen=\"mime\") { exp(%x) }
        def @main(%x: float32) { @second(@first(%x)) }";
    let mut module = parse(text);
    let before = module.to_text();
    let failure = apply(vec![recording("mine").0], &mut module).expect_err("an unknown backend");
    let message = failure.to_string();
    assert!(message.contains("no backend `mime` generates code"), "{message}");
    assert!(message.contains("did you mean `mine`?") && message.contains("@second"), "{message}");
    assert_eq!(module.to_text(), before);

    let mine = Backend::new("mine", |_| Ok("code".to_string()));
    let mime = Backend::new("mime", |_| Err(PassError::new("no instruction for `exp`")));
    let failure = apply(vec![mine, mime], &mut module).expect_err("a closure that fails");
    assert!(failure.to_string().contains("no instruction for `exp`"), "{failure}");
    assert_eq!(module.to_text(), before);
}

#[test]
fn a_program_is_partitioned_and_runs() {
    let externals = Arc::new(Mutex::new(Externals::new()));
    let all = Arc::clone(&externals);
    let backend = Backend::new("mine", move |function| {
        let module = function.module.clone();
        all.lock().unwrap().insert(function.name, move |arguments: &[Literal]| {
            let outcome = Interpreter::new(&module).run("main", arguments).map_err(|error| error.to_string())?;
            Ok(outcome.values.tensors(outcome.result, 100).into_iter().cloned().collect())
        });
        Ok(function.name.to_string())
    });
    let mut registry = PassRegistry::new();
    anfora_passes::register(&mut registry).expect("the catalogue");
    register_backends(&mut registry, vec![backend.patterns("matmul_activation,mine=exp(%x)")]).expect("new names");
    let registry = Arc::new(registry);
    // The product is used twice, so that the function of the backend has two results.
    let mut module = parse(
        "def @main(%x: Tensor[(2, 2), float32]) {
            let %p = nn.relu(matmul(%x, %x));
            let %e = exp(%p);
            add(%p, %e)
        }",
    );
    let argument = Literal::from_elements(&[2, 2], &[1f32, -2.0, 0.5, 3.0]).expect("four elements");
    let before = Interpreter::new(&module).run("main", std::slice::from_ref(&argument)).expect("it runs");
    let byoc = parse_pipeline(&registry, "ToANormalForm,byoc").expect("registered");
    byoc.apply(&mut module, &PassContext::with_registry(registry)).expect("it is partitioned");
    let text = module.to_text();
    assert!(text.contains("declare @fused_matmul_relu_exp_mine") && !text.contains("def private"), "{text}");
    let externals = externals.lock().unwrap();
    let after = Interpreter::new(&module).externals(&externals).run("main", &[argument]).expect("it runs");
    assert!(before.same(&after), "{before:?} {after:?}");
}

#[test]
fn functions_stand_alone_and_symbols_differ() {
    let failure = |text: &str, symbol: &'static str| {
        let mut module = parse(text);
        let before = module.to_text();
        let backend = Backend::new("mine", move |_| Ok(symbol.to_string()));
        let failure = apply(vec![backend], &mut module).expect_err("it is refused").to_string();
        assert_eq!(module.to_text(), before);
        failure
    };
    let through_another = "def private @g(%x: float32, Codegen=\"mine\") -> float32 { @h(%x) }
        def private @h(%x: float32) -> float32 { @g(%x) }";
    assert!(failure(through_another, "g").contains("it calls itself through `@h`"));
    let of_main = "def @main(%x: float32) { exp(%x) }
        def private @g(%x: float32, Codegen=\"mine\") { @main(%x) }";
    assert!(failure(of_main, "g").contains("it calls `@main`"));
    let two = "def private @g(%x: float32, Codegen=\"mine\") { exp(%x) }
        def private @h(%x: float32, Codegen=\"mine\") { tanh(%x) }";
    assert!(failure(two, "same").contains("returns the symbol `same`"));
    assert!(failure(two, "").contains("a symbol that no other function has"));
}

#[test]
fn a_declaration_names_no_symbol_of_the_body() {
    let mut module = parse(
        "def @main(%x: Tensor[?, float32]) { @g(%x) }
        def private @g(%x: Tensor[?, float32], Codegen=\"mine\", global_symbol=\"g_code\") {
            let %y = match_cast(%x, to=Tensor[(m, k), float32]);
            exp(%y)
        }",
    );
    apply(vec![recording("mine").0], &mut module).expect("a backend");
    assert_eq!(parse(&module.to_text()).to_text(), module.to_text());
}

#[test]
fn names_are_taken_once() {
    let mut registry = PassRegistry::new();
    anfora_passes::register(&mut registry).expect("the catalogue");
    register_backends(&mut registry, Vec::new()).expect("new names");
    let error = register_backends(&mut registry, Vec::new()).expect_err("the names are taken");
    assert!(error.to_string().contains("RunCodegen"), "{error}");
}

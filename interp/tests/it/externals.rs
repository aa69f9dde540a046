//! Functions without a body, computed by closures.

use anfora_interp::{Externals, Interpreter};
use anfora_ir::{Literal, Module, Source, parse_module};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora_ops::standard()).expect("a right program")
}

fn vector(elements: &[f32]) -> Literal {
    Literal::from_elements(&[elements.len()], elements).expect("a vector")
}

/// Returns the result of `@main`, or the error as text.
fn run(text: &str, externals: &Externals, arguments: &[Literal]) -> Result<String, String> {
    let module = parse(text);
    let outcome = Interpreter::new(&module).externals(externals).run("main", arguments);
    outcome.map(|outcome| outcome.values.text(outcome.result, 200)).map_err(|error| error.to_string())
}

#[test]
fn closures_are_found_by_symbol_and_by_name() {
    let text = "declare @f(%x: Tensor[(n,), float32], global_symbol=\"symbol\") -> Tensor[(n,), float32];
        declare @g(%x: Tensor[(n,), float32]) -> (Tensor[(n,), float32], Tensor[(2,), float32]);
        def @main(%x: Tensor[(3,), float32]) { let %p = @g(@f(%x)); %p.0 }";
    let mut externals = Externals::new();
    externals.insert("symbol", |arguments: &[Literal]| Ok(arguments.to_vec()));
    externals.insert("g", |arguments: &[Literal]| Ok(vec![arguments[0].clone(), vector(&[1.0, 2.0])]));
    let result = run(text, &externals, &[vector(&[1.0, 2.0, 3.0])]).expect("it runs");
    assert!(result.contains("[1, 2, 3]"), "{result}");
    assert_eq!(format!("{externals:?}"), "{\"g\", \"symbol\"}");
}

#[test]
fn what_a_closure_returns_is_checked() {
    let text = "declare @f(%x: Tensor[(n,), float32]) -> Tensor[(2,), float32];
        def @main(%x: Tensor[(3,), float32]) { @f(%x) }";
    let argument = [vector(&[1.0, 2.0, 3.0])];
    let with = |results: Result<Vec<Literal>, String>| {
        let mut externals = Externals::new();
        externals.insert("f", move |_: &[Literal]| results.clone());
        run(text, &externals, &argument).expect_err("the results do not fit")
    };
    let none = run(text, &Externals::new(), &argument).expect_err("there is no closure");
    assert!(none.contains("`@f` is declared, not defined"), "{none}");
    for results in [vec![], vec![vector(&[1.0])], vec![Literal::scalar(1i32)], vec![vector(&[1.0, 2.0]); 2]] {
        let error = with(Ok(results));
        assert!(error.contains("`@f` fails: its result is not Tensor[(2,), float32]"), "{error}");
    }
    let error = with(Err("out of memory".to_string()));
    assert!(error.contains("`@f` fails: out of memory"), "{error}");
}

#[test]
fn arguments_are_tensors() {
    let text = "declare @f(%x: (float32, float32)) -> float32;
        def @main(%x: float32) { @f((%x, %x)) }";
    let mut externals = Externals::new();
    externals.insert("f", |_: &[Literal]| Ok(vec![Literal::scalar(1f32)]));
    let error = run(text, &externals, &[Literal::scalar(1f32)]).expect_err("a tuple is given");
    assert!(error.contains("an argument is not a tensor"), "{error}");
}

//! Tests of BindParams that a file cannot express: parameters by variable, names that are not
//! unique, and invalid options.

use anfora_ir::{FunctionBuilder, Literal, Module, Source, VarFlags, parse_module, verify_module};
use anfora_manager::parse_pipeline;
use anfora_passes::{ParamRef, bind_params, registry};

fn parse(text: &str) -> Module {
    parse_module(Source::new("input", text), anfora_ops::standard()).unwrap_or_else(|e| panic!("{e:?}"))
}

#[test]
fn a_parameter_may_be_named_by_its_variable() {
    let mut module = parse("def @f(%x: int32, %y: int32) { add(%x, %y) }");
    let y = module.get(module.find("f").unwrap()).unwrap().body.params()[1];
    assert_eq!(bind_params(&mut module, "f", &[(y.into(), Literal::scalar(3i32))]).unwrap(), 1);
    verify_module(&module).unwrap();
    assert_eq!(
        module.to_string(),
        parse("def @f(%x: int32) { let %y = 3; add(%x, %y) }").to_string(),
        "the parameter became a Let"
    );
}

#[test]
fn a_variable_that_is_not_a_parameter_is_refused() {
    let mut module = parse("def @f(%x: int32) { %x }");
    let key = module.find("f").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let stray = function.body.push_var(None, VarFlags::PLAIN, cx.types.any(), None);
    let error = bind_params(&mut module, "f", &[(stray.into(), Literal::scalar(3i32))]).unwrap_err();
    assert_eq!(error.function(), Some("f"));
    assert_eq!(error.message(), "a variable that is to be bound is not a parameter");
}

#[test]
fn a_name_that_two_parameters_have_is_refused_and_their_variables_are_not() {
    let mut module = Module::new(anfora_ops::standard());
    let mut f = FunctionBuilder::new(&mut module, "f");
    let int = f.cx().types.scalar(anfora_ir::DType::Int32);
    let (x, second) = (f.param("x", int), f.param("x", int));
    let sum = f.call_op("add", &[x, second], &[]).unwrap();
    let key = f.finish(sum).unwrap();
    let error = bind_params(&mut module, "f", &[(ParamRef::Name("x"), Literal::scalar(3i32))]).unwrap_err();
    assert_eq!(error.message(), "2 parameters are called `%x`");
    let second = module.get(key).unwrap().body.params()[1];
    assert_eq!(bind_params(&mut module, "f", &[(second.into(), Literal::scalar(3i32))]).unwrap(), 1);
    verify_module(&module).unwrap();
}

#[test]
fn a_use_by_an_attribute_is_refused() {
    let mut module = parse("def private @f(%x: int32) { %x } def @g(%x: int32, callback=@f) { %x }");
    let error = bind_params(&mut module, "f", &[("x".into(), Literal::scalar(3i32))]).unwrap_err();
    assert_eq!(error.message(), "`@f` is used by an attribute, and its signature would change");
}

#[test]
fn options_that_are_no_parameters_are_errors_of_the_pipeline() {
    let registry = registry();
    for (text, wanted) in [
        ("BindParams{params=\"%w=1f\"}", "`params` are given, but not `function`"),
        ("BindParams{function=f,params=\"w=1f\"}", "`w=1f` is not of the form `%name=LITERAL, …`"),
        ("BindParams{function=f,params=\"%w\"}", "`%w` is not of the form `%name=LITERAL, …`"),
        ("BindParams{function=f,params=\"%w=1f %x=2f\"}", "`1f %x=2f` is not a literal"),
        ("BindParams{function=f,params=\"weights\"}", "is not of the form `%name=LITERAL, …`"),
        ("BindParams{function=f,params=\"weights.npz[w]\"}", "is not of the form `%name=LITERAL, …`"),
        ("BindParams{function=f,params=\"%w=weights.npz[]\"}", "is not a literal"),
        ("BindParams{function=f,params=\"%w=my weights.npy\"}", "is not a literal"),
        ("BindParams{function=f,params=\"%w=file(weights.npy)\"}", "is not a literal"),
        ("BindParams{function=f,params=\"%w=add(1, 2)\"}", "`add(1, 2)` is not a literal"),
        ("BindParams{function=f,params=\"%w=1 } def @g() { 2\"}", "is not a literal"),
        ("BindParams{function=f,params=\"%w=\"}", "`` is not a literal"),
        ("BindParams{function=f,params=\"%w=99999999999\"}", "`99999999999` is not a literal: "),
        ("BindParams{function=f,params=\"%\\\"w=1\"}", "is not of the form"),
    ] {
        let error = parse_pipeline(&registry, text).err().unwrap_or_else(|| panic!("{text} is taken")).to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

//! Signatures that change, and whom that concerns.

use anfora_ir::{
    DType, Literal, Module, NewParameter, SignatureChange, SignatureError, Source, TypeError, calls_of,
    change_signature, change_signatures, parse_module, retype_from, update_signatures, verify_module,
};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), anfora_ops::standard()).unwrap()
}

/// What a change of a function comes to, verified.
fn changed(text: &str, function: &str, change: impl FnOnce(&mut Module) -> SignatureChange<'static>) -> String {
    let mut module = parse(text);
    let key = module.find(function).unwrap();
    let change = change(&mut module);
    change_signature(&mut module, key, change).unwrap();
    verify_module(&module).unwrap();
    module.to_text()
}

/// The error of a change, which leaves the module as it was.
fn refused(text: &str, function: &str, change: SignatureChange<'_>) -> SignatureError {
    let mut module = parse(text);
    let before = module.to_text();
    let key = module.find(function).unwrap();
    let error = change_signature(&mut module, key, change).unwrap_err();
    assert_eq!(module.to_text(), before);
    verify_module(&module).unwrap();
    error
}

const TWO: &str = "def private @f(%x: Tensor[(n,), float32], %c: bool) { exp(%x) }
def @main(%a: Tensor[(4,), float32]) {
    let %y = if (true) { let %t = @f(%a, true); %t } else { @f(%a, false) };
    tanh(@f(%y, true))
}";

#[test]
fn parameters_are_reordered_taken_away_and_added() {
    assert_eq!(
        changed(TWO, "f", |_| SignatureChange::new().keep(1).keep(0)),
        "def private @f(%c: Tensor[(), bool], %x: Tensor[(n,), float32]) -> Tensor[(n,), float32] {
  exp(%x)
}

def @main(%a: Tensor[(4,), float32]) -> Tensor[(4,), float32] {
  let %y = if (true) {
    let %t = @f(true, %a);
    %t
  } else { @f(false, %a) };
  tanh(@f(true, %y))
}
"
    );
    let text = changed(TWO, "f", |module| {
        let ty = module.cx.types.scalar(DType::Int64);
        SignatureChange::new().append(NewParameter::constant("k", ty, Literal::scalar(7i64))).keep(0)
    });
    assert!(text.starts_with("def private @f(%k: Tensor[(), int64], %x: Tensor[(n,), float32])"), "{text}");
    assert!(text.contains("let %t = @f(7i64, %a);") && text.contains("tanh(@f(7i64, %y))"), "{text}");
}

#[test]
fn callers_of_callers_are_typed_again() {
    let text = "def @last(%x: Tensor[(4,), float32]) { let %p = @third(%x); %p.0 }
def private @third(%x: Tensor[(4,), float32]) { let %p = @second(%x); (%p, 1) }
def private @second(%x: Tensor[(4,), float32]) { @first(%x) }
def private @first(%x: Tensor[(?,), float32]) { exp(%x) }";
    let mut module = parse(text);
    let key = module.find("first").unwrap();
    let ty = module.cx.types.static_tensor(DType::Float32, &[4]);
    let (function, cx) = module.get_mut(key).unwrap();
    let (x, root) = (function.body.params()[0].expr(), function.body.root());
    function.body.set_type(x, ty);
    retype_from(cx, &mut function.body, x, root).unwrap();
    update_signatures(&mut module, &[key]).unwrap();
    verify_module(&module).unwrap();
    let text = module.to_text();
    assert!(text.contains("@last(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32]"), "{text}");
    assert!(!text.contains('?'), "{text}");
}

#[test]
fn functions_that_call_themselves_and_each_other() {
    let text = "def private @even(%x: Tensor[(4,), float32], %n: int32) -> Tensor[(4,), float32] {
    if (equal(%n, 0)) { %x } else { @odd(%x, subtract(%n, 1)) }
}
def private @odd(%x: Tensor[(4,), float32], %n: int32) -> Tensor[(4,), float32] {
    if (equal(%n, 0)) { negative(%x) } else { let %m = @odd(%x, 0); @even(%m, subtract(%n, 1)) }
}
def @main(%x: Tensor[(4,), float32]) { @even(%x, 6) }";
    let mut module = parse(text);
    let keys = ["even", "odd"].map(|name| module.find(name).unwrap());
    let swap = || SignatureChange::new().keep(1).keep(0);
    change_signatures(&mut module, Vec::from(keys.map(|key| (key, swap())))).unwrap();
    verify_module(&module).unwrap();
    let text = module.to_text();
    for call in ["@odd(subtract(%n, 1), %x)", "@odd(0, %x)", "@even(subtract(%n, 1), %m)", "@even(6, %x)"] {
        assert!(text.contains(call), "{call}\n{text}");
    }
}

#[test]
fn a_result_is_stated_and_no_longer() {
    let text = "def private @f(%x: Tensor[(n,), float32]) { exp(%x) }
def private @g(%x: Tensor[(4,), float32]) { let %y = @f(%x); %y }
def @main(%x: Tensor[(4,), float32]) { @g(%x) }";
    let text = changed(text, "f", |module| {
        let ty = module.cx.types.unranked(DType::Float32);
        SignatureChange::new().keep(0).result(Some(ty))
    });
    assert!(text.contains("@main(%x: Tensor[(4,), float32]) -> Tensor[?, float32]"), "{text}");
    // What is printed states all results.
    let back = changed(&text, "f", |_| SignatureChange::new().keep(0).result(None));
    assert!(back.contains("@f(%x: Tensor[(n,), float32]) -> Tensor[(n,), float32]"), "{back}");
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let error = refused(TWO, "f", SignatureChange::new().keep(1));
    assert_eq!(error.to_string(), "the parameter `%x` of `@f` is taken away, and it is used");
    let error = refused(TWO, "f", SignatureChange::new().keep(0).keep(2));
    assert_eq!(error.to_string(), "`@f` has 2 parameters, and 2 cannot be kept, or is kept twice");
    refused(TWO, "f", SignatureChange::new().keep(0).keep(0));
    let value = "def private @f(%x: float32) { %x }
def @main(%x: float32) { let %g = @f; let %y = %g(%x); %y }";
    let error = refused(value, "f", SignatureChange::new());
    assert!(matches!(error, SignatureError::ParameterUsed { .. }), "{error}");
    let value = value.replace("{ %x }", "{ 1f }");
    let error = refused(&value, "f", SignatureChange::new());
    assert_eq!(error.to_string(), "`@f` is used as a value at `%g`, and its signature would change");
}

#[test]
fn an_argument_that_cannot_be_made_is_named_with_its_call() {
    let text = "def private @f(%x: float32) { %x }
def @main(%a: float32, %c: bool) { let %y = if (%c) { let %t = @f(%a); %t } else { %a }; %y }";
    let place = |error: SignatureError| {
        let said = error.to_string();
        let SignatureError::Mistyped { name, binding, .. } = error else { panic!("{said}") };
        assert_eq!((name.as_str(), binding.as_deref()), ("main", Some("t")));
        said
    };
    let ty = parse(text).cx.types.scalar(DType::Float32);
    let fails = NewParameter::new("k", ty, |_, _| Err(TypeError::new("not today")));
    assert_eq!(place(refused(text, "f", SignatureChange::new().keep(0).append(fails))), "not today");
    let call = NewParameter::new("k", ty, |editor, call| {
        let argument = editor.body.operands_of(call)[1];
        Ok(editor.tuple(&[argument]))
    });
    assert_eq!(
        place(refused(text, "f", SignatureChange::new().keep(0).append(call))),
        "the argument that is made for the new parameter `%k` is not an atom"
    );
}

#[test]
fn attributes_that_nothing_has_any_more_are_no_uses() {
    let text = "def private @f(%x: float32) { 1f }
def private @h(%x: float32, hook=[1, @f]) { %x }
def @main(%x: float32) { @f(%x) }";
    let error = refused(text, "f", SignatureChange::new());
    assert_eq!(error.to_string(), "`@f` is used by an attribute, and its signature would change");
    let mut module = parse(text);
    let (f, h) = (module.find("f").unwrap(), module.find("h").unwrap());
    module.get_mut(h).unwrap().0.attrs = module.cx.attrs.empty();
    change_signature(&mut module, f, SignatureChange::new()).unwrap();
    verify_module(&module).unwrap();
    assert!(module.to_text().contains("  @f()"), "{module}");
}

#[test]
fn a_parameter_that_a_let_binds_by_then_may_be_used() {
    // Uses at every level of a deep nest are looked at once each.
    const DEPTH: usize = 20_000;
    let mut text = "def private @f(%x: float32, %y: float32) { ".to_string();
    for i in 0..DEPTH {
        text.push_str(&format!("let %v{i} = {{ "));
    }
    text.push_str("add(%x, %x)");
    for i in 0..DEPTH {
        text.push_str(&format!(" }}; add(%v{}, %x)", DEPTH - 1 - i));
    }
    text.push_str(" }\ndef @main(%x: float32) { @f(%x, %x) }");
    assert!(changed(&text, "f", |_| SignatureChange::new().keep(0)).contains("@f(%x)"));
    let error = refused(&text, "f", SignatureChange::new().keep(1));
    let SignatureError::ParameterUsed { binding, .. } = error else { panic!("{error}") };
    assert_eq!(binding, Some(format!("v{}", DEPTH - 1)));
}

#[test]
fn a_caller_that_loses_its_type_is_named() {
    let text = "def private @f(%x: float32) { %x }
def @main(%a: Tensor[(2, 3), float32]) { let %y = @f(1f); let %z = add(%a, %y); %z }";
    let mut module = parse(text);
    let before = module.to_text();
    let key = module.find("f").unwrap();
    module.begin_edit();
    let (function, cx) = module.get_mut(key).unwrap();
    let t = anfora_ir::Editor::new(cx, &mut function.body).literal(Literal::scalar(true));
    function.body.set_root(t);
    let error = update_signatures(&mut module, &[key]).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("`add`"), "{said}");
    let SignatureError::Mistyped { name, binding, .. } = error else { panic!("{said}") };
    assert_eq!((name.as_str(), binding.as_deref()), ("main", Some("z")));
    module.rollback();
    assert_eq!(module.to_text(), before);
}

#[test]
fn calls_are_found_by_function() {
    let module = parse(TWO);
    let calls = calls_of(&module, &[module.find("f").unwrap()]).unwrap();
    let counts: Vec<(&str, usize)> = calls.iter().map(|(key, calls)| (module.name(*key), calls.len())).collect();
    assert_eq!(counts, [("main", 3)]);
}

//! Changes of signatures, and their effects on callers.

use anfora_ir::{
    DType, IntoDiagnostics, Literal, Module, ModuleStamp, NewParameter, SignatureChange, SignatureError, Source,
    TypeError, calls_of, change_signature, change_signatures, parse_module, retype_from, update_signatures,
    update_signatures_with, verify_module,
};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), anfora_ops::standard()).unwrap()
}

/// Returns the text of a module after a change of a function, and verifies the module.
fn changed(text: &str, function: &str, change: impl FnOnce(&mut Module) -> SignatureChange<'static>) -> String {
    let mut module = parse(text);
    let key = module.find(function).unwrap();
    let change = change(&mut module);
    change_signature(&mut module, key, change).unwrap();
    verify_module(&module).unwrap();
    module.to_text()
}

/// Returns the text and the stamp of a module.
fn state(module: &Module) -> (String, ModuleStamp) {
    (module.to_text(), module.stamp())
}

/// Returns the error of a change, and checks that the module is unchanged.
fn refused(text: &str, function: &str, change: SignatureChange<'_>) -> SignatureError {
    refused_with(text, function, |_| change)
}

fn refused_with<'a>(
    text: &str,
    function: &str,
    change: impl FnOnce(&mut Module) -> SignatureChange<'a>,
) -> SignatureError {
    let mut module = parse(text);
    let key = module.find(function).unwrap();
    let change = change(&mut module);
    let before = state(&module);
    let error = change_signature(&mut module, key, change).unwrap_err();
    assert_eq!(state(&module), before);
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
    // The printed text states all result types.
    let back = changed(&text, "f", |_| SignatureChange::new().keep(0).result(None));
    assert!(back.contains("@f(%x: Tensor[(n,), float32]) -> Tensor[(n,), float32]"), "{back}");
}

#[test]
fn an_argument_for_a_removed_parameter_is_not_a_use() {
    let text = "def private @even(%n: int32, %q: int32) -> int32 { let %m = abs(%n); @odd(%m, %q) }
def private @odd(%n: int32, %q: int32) -> int32 { let %m = abs(%n); @even(%m, %q) }
def @main(%x: int32) { @even(%x, %x) }";
    let mut module = parse(text);
    let keys = ["even", "odd"].map(|name| module.find(name).expect("it is defined"));
    let changes = keys.map(|key| (key, SignatureChange::new().keep(0)));
    change_signatures(&mut module, changes.into()).expect("nothing else uses the parameters");
    verify_module(&module).unwrap();
    let after = module.to_text();
    for call in ["@odd(%m)", "@even(%m)", "@even(%x)"] {
        assert!(after.contains(call), "{after}");
    }
    // It is a use if the other parameter stays.
    refused(text, "odd", SignatureChange::new().keep(0));
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let error = refused(TWO, "f", SignatureChange::new().keep(1));
    assert_eq!(error.to_string(), "the parameter `%x` of `@f` is removed, but it is used");
    let error = refused(TWO, "f", SignatureChange::new().keep(0).keep(2));
    assert_eq!(error.to_string(), "`@f` has 2 parameters, and 2 cannot be kept, or is kept twice");
    refused(TWO, "f", SignatureChange::new().keep(0).keep(0));
    let value = "def private @f(%x: float32) { 1f }
def @main(%x: float32) { let %g = @f; let %y = %g(%x); %y }";
    let error = refused(value, "f", SignatureChange::new().no_parameters());
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
    let said = place(refused(text, "f", SignatureChange::new().keep(0).append(fails)));
    assert_eq!(said, "an expression loses its type: not today");
    let call = NewParameter::new("k", ty, |editor, call| {
        let argument = editor.body.operands_of(call)[1];
        Ok(editor.tuple(&[argument]))
    });
    assert_eq!(
        place(refused(text, "f", SignatureChange::new().keep(0).append(call))),
        "an expression loses its type: the argument that is made for the new parameter `%k` is not an atom"
    );
}

#[test]
fn attributes_that_nothing_has_any_more_are_no_uses() {
    let text = "def private @f(%x: float32) { 1f }
def private @h(%x: float32, hook=[1, @f]) { %x }
def @main(%x: float32) { @f(%x) }";
    let error = refused(text, "f", SignatureChange::new().no_parameters());
    assert_eq!(error.to_string(), "`@f` is used by an attribute, and its signature would change");
    let mut module = parse(text);
    let (f, h) = (module.find("f").unwrap(), module.find("h").unwrap());
    module.get_mut(h).unwrap().0.attrs = module.cx.attrs.empty();
    change_signature(&mut module, f, SignatureChange::new().no_parameters()).unwrap();
    verify_module(&module).unwrap();
    assert!(module.to_text().contains("  @f()"), "{module}");
}

#[test]
fn a_parameter_that_a_let_binds_by_then_may_be_used() {
    // Uses at every level of a deep nest are visited once each.
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

/// Changes the first parameter of `@g` to the extent 4, as a pass would, and then updates the
/// signatures.
fn with_extent_4(text: &str) -> (Module, Result<(), SignatureError>) {
    let mut module = parse(text);
    let key = module.find("g").unwrap();
    let ty = module.cx.types.static_tensor(DType::Float32, &[4]);
    let (function, cx) = module.get_mut(key).unwrap();
    let (x, root) = (function.body.params()[0].expr(), function.body.root());
    function.body.set_type(x, ty);
    retype_from(cx, &mut function.body, x, root).unwrap();
    let result = update_signatures(&mut module, &[key]);
    (module, result)
}

#[test]
fn functions_in_attributes_are_typed_again() {
    let hook = "fn (%v: Tensor[(4,), float32]) { @g(%v) }";
    let nested = format!("fn (%v: Tensor[(4,), float32], inner=[1, {hook}]) {{ %v }}");
    let g = "def private @g(%x: Tensor[(n,), float32]) { exp(%x) }\n";
    for text in [
        format!("{g}def @main(%a: Tensor[(4,), float32], hook={hook}) {{ @g(%a) }}"),
        format!("{g}def @main(%a: Tensor[(4,), float32], hook={nested}) {{ @g(%a) }}"),
        format!("{g}def @main(%a: Tensor[(4,), float32]) {{ let %f = fn (%b: bool, hook={hook}) {{ %b }}; %f }}"),
        format!("#![hook={hook}]\n{g}def @main(%a: Tensor[(4,), float32]) {{ @g(%a) }}"),
    ] {
        let (module, result) = with_extent_4(&text);
        result.unwrap();
        verify_module(&module).unwrap();
        // A change of only the result is a change too.
        changed(&text, "g", |module| {
            let ty = module.cx.types.unranked(DType::Float32);
            SignatureChange::new().result(Some(ty))
        });
        // Rolling back an enclosing edit undoes the effects on callers too.
        let mut module = parse(&text);
        module.begin_edit();
        let key = module.find("g").unwrap();
        let ty = module.cx.types.unranked(DType::Float32);
        change_signature(&mut module, key, SignatureChange::new().result(Some(ty))).unwrap();
        assert!(module.has_changes());
        module.rollback();
        verify_module(&module).unwrap();
    }
}

#[test]
fn a_function_in_an_attribute_that_a_signature_does_not_fit_is_told() {
    let g = "def private @g(%x: Tensor[(?,), float32]) { exp(%x) }\n";
    let main = |hook: &str| format!("{g}def @main(%a: Tensor[(4,), float32], hook={hook}) {{ @g(%a) }}");
    for hook in ["fn (%v: Tensor[(3,), float32]) { @g(%v) }", "fn (%v: Tensor[(?,), float32]) { (@g(%v), 1) }"] {
        let (_, result) = with_extent_4(&main(hook));
        let error = result.unwrap_err();
        assert_eq!(error.to_string(), "`@g` is used by an attribute, and its signature would change");
        let help = error.into_diagnostics().into_iter().next().unwrap().help;
        assert_eq!(help.as_deref(), Some("remove the attribute first"));
    }
    // A `fn` that states its result type.
    let error =
        refused_with(&main("fn (%v: Tensor[(4,), float32]) -> Tensor[(?,), float32] { @g(%v) }"), "g", |module| {
            let ty = module.cx.types.unranked(DType::Float32);
            SignatureChange::new().result(Some(ty))
        });
    assert!(matches!(error, SignatureError::UsedAsValue { function: None, .. }), "{error}");
    // Nothing has the attribute any more.
    let mut module = parse(&main("fn (%v: Tensor[(4,), float32]) -> Tensor[(?,), float32] { @g(%v) }"));
    let (main, g) = (module.find("main").unwrap(), module.find("g").unwrap());
    let ty = module.cx.types.unranked(DType::Float32);
    module.get_mut(main).unwrap().0.attrs = module.cx.attrs.empty();
    change_signature(&mut module, g, SignatureChange::new().result(Some(ty))).unwrap();
    verify_module(&module).unwrap();
}

#[test]
fn a_new_argument_is_held_against_the_parameter_even_if_the_signature_is_the_same() {
    let text = "def private @f(%a: float32, %b: float32) { %a }
def @main(%a: float32) { let %y = @f(%a, 1f); %y }";
    let ty = parse(text).cx.types.scalar(DType::Float32);
    let with = |value| SignatureChange::new().keep(0).append(NewParameter::constant("c", ty, value));
    let error = refused(text, "f", with(Literal::scalar(true)));
    let SignatureError::Mistyped { name, binding, .. } = &error else { panic!("{error}") };
    assert_eq!((name.as_str(), binding.as_deref()), ("main", Some("y")));
    assert!(error.to_string().contains("argument 1 is"), "{error}");
    assert!(changed(text, "f", |_| with(Literal::scalar(2f32))).contains("@f(%a, 2f)"));
    // The same with a function that calls itself.
    let text = "def private @f(%a: float32, %b: float32) -> float32 { if (true) { @f(%a, 1f) } else { %a } }
def @main(%a: float32) { @f(%a, 1f) }";
    refused(text, "f", with(Literal::scalar(true)));
    changed(text, "f", |_| with(Literal::scalar(2f32)));
}

#[test]
fn a_parameter_stays_that_alone_binds_a_symbol() {
    const X: &str = "%x: Tensor[(n,), float32]";
    let main = "def @main(%x: Tensor[(4,), float32], %y: Tensor[(5,), float32]) { @f(%x, %y) }";
    for body in [
        format!("{X}, %y: Tensor[(n + 1,), float32]) {{ exp(%y) }}"),
        format!("{X}, %y: Tensor[(?,), float32]) {{ zeros(shape=shape(2, n)) }}"),
        format!("{X}, %y: Tensor[(?,), float32]) {{ let %z = match_cast(%y, to=Tensor[(n + 1,), float32]); %y }}"),
        format!("{X}, %y: Tensor[(?,), float32]) {{ let %f = fn (%u: Tensor[(n,), float32]) {{ 1 }}; %y }}"),
        format!("{X}, %y: Tensor[(?,), float32], hook=shape(n)) {{ %y }}"),
    ] {
        let text = format!("def private @f({body}\n{main}");
        let error = refused(&text, "f", SignatureChange::new().keep(1));
        let wanted = "no remaining parameter of `@f` binds the symbolic dimension `n`, which it uses";
        assert_eq!(error.to_string(), wanted, "{text}");
        let told = error.into_diagnostics().into_iter().next().unwrap();
        assert_eq!(told.function.as_deref(), Some("f"));
        assert!(told.help.is_some());
    }
    // Another parameter binds the symbol too, or nothing names it.
    let both = format!("def private @f({X}, %y: Tensor[(n,), float32]) {{ exp(%y) }}");
    let main_4 = main.replace("(5,)", "(4,)");
    changed(&format!("{both}\n{main_4}"), "f", |_| SignatureChange::new().keep(1));
    let unnamed = format!("def private @f({X}, %y: Tensor[(m,), float32]) {{ exp(%y) }}");
    changed(&format!("{unnamed}\n{main}"), "f", |_| SignatureChange::new().keep(1));
}

#[test]
fn a_new_parameter_names_only_symbols_that_are_bound() {
    let text = "def private @f(%x: Tensor[(n + 1,), float32], %y: Tensor[(n,), float32]) { exp(%x) }
def @main(%x: Tensor[(5,), float32], %y: Tensor[(4,), float32]) { @f(%x, %y) }";
    let mut module = parse(text);
    let key = module.find("f").unwrap();
    let body = &module.get(key).unwrap().body;
    let ty = body.ty(body.params()[0].expr());
    let first = || NewParameter::new("z", ty, |editor, call| Ok(editor.body.operands_of(call)[1]));
    let before = state(&module);
    let error = change_signature(&mut module, key, SignatureChange::new().keep(0).append(first())).unwrap_err();
    assert!(matches!(&error, SignatureError::SymbolNotBound { symbol, .. } if symbol == "n"), "{error}");
    assert_eq!(state(&module), before);
    change_signature(&mut module, key, SignatureChange::new().keep(0).append(first()).keep(1)).unwrap();
    verify_module(&module).unwrap();
}

#[test]
fn the_result_that_is_stated_accepts_the_block() {
    let text = "def private @f(%x: Tensor[(3,), float32]) { exp(%x) }
def @main(%x: Tensor[(3,), float32]) { @f(%x) }";
    let error = refused_with(text, "f", |module| {
        let ty = module.cx.types.scalar(DType::Bool);
        SignatureChange::new().result(Some(ty))
    });
    assert_eq!(error.to_string(), "`@f` returns Tensor[(3,), float32], but Tensor[(), bool] is stated");
    assert_eq!(error.into_diagnostics().into_iter().next().unwrap().function.as_deref(), Some("f"));
}

#[test]
fn a_function_that_is_gone_or_given_twice_has_no_signature_to_change() {
    let mut module = parse(TWO);
    let key = module.find("f").unwrap();
    let before = state(&module);
    let same = || SignatureChange::new().keep(0).keep(1);
    let twice = change_signatures(&mut module, vec![(key, same()), (key, same())]);
    assert_eq!(twice, Err(SignatureError::NotAFunction));
    assert_eq!(state(&module), before);
    module.remove(&[key]);
    let before = state(&module);
    assert_eq!(change_signature(&mut module, key, same()), Err(SignatureError::NotAFunction));
    assert_eq!(update_signatures(&mut module, &[key]), Err(SignatureError::NotAFunction));
    assert_eq!(state(&module), before);
}

#[test]
fn types_that_grow_with_every_round_do_not_settle() {
    let mut module = parse("def private @f(%c: bool) -> int32 { @f(%c) }");
    let key = module.find("f").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    function.ret = None;
    let root = function.body.root();
    let tuple = anfora_ir::Editor::new(cx, &mut function.body).tuple(&[root]);
    function.body.set_root(tuple);
    let before = state(&module);
    let error = update_signatures(&mut module, &[key]).unwrap_err();
    assert_eq!(error.to_string(), "the type of the result of `@f` does not settle");
    assert_eq!(error.into_diagnostics().into_iter().next().unwrap().function.as_deref(), Some("f"));
    assert_eq!(state(&module), before);
}

#[test]
fn parameters_of_which_nothing_is_said_stay() {
    let text = "def private @f(%x: float32, %unused: bool) { %x }
def @main(%x: float32) { @f(%x, true) }";
    let stated = changed(text, "f", |module| {
        let ty = module.cx.types.unranked(DType::Float32);
        SignatureChange::new().result(Some(ty))
    });
    assert!(stated.contains("%unused: Tensor[(), bool]) -> Tensor[?, float32]"), "{stated}");
    assert!(stated.contains("@f(%x, true)"), "{stated}");
    assert_eq!(changed(text, "f", |_| SignatureChange::new()), parse(text).to_text());
    let none = text.replace("{ %x }", "{ 1f }");
    for change in [SignatureChange::new().no_parameters(), SignatureChange::new().keep_all([])] {
        assert!(changed(&none, "f", |_| change).contains("@f()"));
    }
}

#[test]
fn a_block_may_be_made_to_fit_the_result_that_is_stated() {
    let text = "def private @g(%x: Tensor[(?,), float32]) { exp(%x) }
def @main(%a: Tensor[(?,), float32]) -> Tensor[(?,), float32] { let %y = @g(%a); %y }";
    let to_bool = |module: &mut Module| {
        let key = module.find("g").unwrap();
        let (function, cx) = module.get_mut(key).unwrap();
        let t = anfora_ir::Editor::new(cx, &mut function.body).literal(Literal::scalar(true));
        function.body.set_root(t);
        key
    };
    let mut module = parse(text);
    let key = to_bool(&mut module);
    let mut asked = 0;
    update_signatures_with(&mut module, &[key], |cx, body, stated| {
        asked += 1;
        assert_eq!(cx.type_text(stated), "Tensor[(?,), float32]");
        let param = body.params()[0].expr();
        body.set_root(param);
    })
    .unwrap();
    assert_eq!(asked, 1);
    verify_module(&module).unwrap();
    // An edit that does not fix the error is rolled back.
    let mut module = parse(text);
    let key = to_bool(&mut module);
    let before = state(&module);
    let result = update_signatures_with(&mut module, &[key], |cx, body, _| {
        let one = anfora_ir::Editor::new(cx, body).literal(Literal::scalar(1i8));
        body.set_root(one);
    });
    assert!(matches!(result, Err(SignatureError::Result { .. })), "{result:?}");
    assert_eq!(state(&module), before);
}

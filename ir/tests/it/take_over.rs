//! Functions that are moved from another module.

use std::sync::Arc;

use anfora_ir::{
    Arity, Editor, Module, OpDef, OpRegistry, Source, TakeOverError, Transplant, TypeCall, alpha_equal, parse_module,
    verify_module,
};

fn ops() -> Arc<OpRegistry> {
    let mut registry = OpRegistry::new();
    for name in ["add", "negate"] {
        let rule = |call: &mut TypeCall<'_>| Ok(call.operand(0).unwrap_or_else(|| call.cx.types.any()));
        registry.register(OpDef::new(name, "for tests", Arity::at_least(1), rule)).unwrap();
    }
    registry.declare_opaque("vendor").unwrap();
    Arc::new(registry)
}

fn parsed(text: &str) -> Module {
    parse_module(Source::new("text", text), ops()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

fn take(into: &mut Module, from: &Module, name: &str, as_name: &str) -> Result<(), TakeOverError> {
    into.take_function(from, from.find(name).unwrap(), as_name).map(drop)
}

const LIBRARY: &str = "def private @even(%x: Tensor[(n, n * 2 + 1), float32], depth=[1, [\"a\", 2.5]]) -> Tensor[(n, n * 2 + 1), float32] {
  let %a = vendor.mystery(%x, mode=\"fast\", shape=shape(n, 3));
  let %b = @odd(%x);
  let %f = fn(%y: Tensor[(m,), int32]) -> Tensor[(m,), int32] { negate(%y) };
  add(%b, 2f)
}

def private @odd(%x: Tensor[(n, n * 2 + 1), float32]) -> Tensor[(n, n * 2 + 1), float32] {
  @even(%x)
}

def private @again(%x: float32) -> float32 {
  let %y = negate(%x);
  @again(%y)
}
";

#[test]
fn functions_that_call_each_other_are_taken_over_one_by_one() {
    let library = parsed(LIBRARY);
    // The contents of the tables, and their order, make no difference.
    for text in ["", "def @main(%odd: Tensor[(m, n * 3, n), float32]) { negate(%odd) }"] {
        let mut module = parsed(text);
        let before = module.to_string();
        take(&mut module, &library, "even", "even").unwrap();
        assert!(verify_module(&module).is_err(), "@odd is not there yet");
        take(&mut module, &library, "odd", "odd").unwrap();
        take(&mut module, &library, "again", "again").unwrap();
        verify_module(&module).unwrap_or_else(|e| panic!("{}\n{module}", e[0]));
        let blank = if before.is_empty() { "" } else { "\n" };
        assert_eq!(module.to_string(), format!("{before}{blank}{library}"));
        assert!(text.is_empty() == alpha_equal(&module, &library));
    }
}

#[test]
fn a_function_under_another_name_calls_itself_there() {
    let library = parsed(LIBRARY);
    let mut module = parsed("");
    take(&mut module, &library, "again", "forever").unwrap();
    verify_module(&module).unwrap();
    let wanted = "def private @forever(%x: Tensor[(), float32]) -> Tensor[(), float32] {\n  let %y = negate(%x);\n  @forever(%y)\n}\n";
    assert_eq!(module.to_string(), wanted);
}

#[test]
fn a_block_goes_to_another_module() {
    let library = parsed(LIBRARY);
    let key = library.find("even").unwrap();
    let source = &library.get(key).unwrap().body;
    let mut module = parsed("def @main(%p: Tensor[(m, n), int8], %q: Tensor[(?,), float32]) { negate(%p) }");
    let main = module.find("main").unwrap();
    let (function, cx) = module.get_mut(main).unwrap();
    let mut transplant = Transplant::from_module(cx, &library, key).unwrap();
    transplant.replace(source.params()[0].expr(), function.body.params()[1].expr());
    let block = transplant.copy(&mut Editor::new(cx, &mut function.body), Some(source), source.root());
    assert_eq!(transplant.copied(source.root()), Some(block));
    function.body.set_root(block);
    let text = module.to_string();
    for line in [
        "let %a = vendor.mystery(%q, mode=\"fast\", shape=shape(",
        "let %b = @odd(%q);",
        "let %f = fn (%y: Tensor[(m",
        "add(%b, 2f)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let unknown = Transplant::from_module(&mut Module::new(Arc::new(OpRegistry::new())).cx, &library, key);
    assert!(unknown.unwrap_err().to_string().contains("unknown operator"));
    let mut gone = library.clone();
    gone.remove(&[key]);
    assert_eq!(Transplant::from_module(&mut module.cx, &gone, key).err(), Some(TakeOverError::NoFunction));
}

#[test]
fn what_does_not_fit_is_told_and_changes_nothing() {
    let library = parsed(LIBRARY);
    let mut module = parsed("def @even(%x: float32) { negate(%x) } def @odd(%x: float32) { negate(%x) }");
    let before = module.to_string();
    let duplicate = take(&mut module, &library, "even", "even").unwrap_err();
    assert_eq!(duplicate.to_string(), "`@even` is defined already");
    let signature = take(&mut module, &library, "even", "mine").unwrap_err();
    assert_eq!(signature.to_string(), "`@odd`, which `@mine` names, has another type in this module");
    let mut elsewhere = parsed(LIBRARY);
    let key = elsewhere.find("odd").unwrap();
    elsewhere.remove(&[key]);
    assert_eq!(module.take_function(&elsewhere, key, "mine"), Err(TakeOverError::NoFunction));
    assert_eq!(module.to_string(), before);
    let mut bare = Module::new(Arc::new(OpRegistry::new()));
    let unknown = take(&mut bare, &library, "again", "again").unwrap_err();
    assert!(unknown.to_string().contains("unknown operator `negate`"), "{unknown}");
    assert!(bare.order().is_empty());
}

#[test]
fn what_was_taken_over_in_an_edit_is_taken_back() {
    let library = parsed(LIBRARY);
    let mut module = parsed("def @main(%x: float32) { negate(%x) }");
    let (before, stamp) = (module.to_string(), module.stamp());
    module.begin_edit();
    take(&mut module, &library, "even", "even").unwrap();
    take(&mut module, &library, "odd", "odd").unwrap();
    module.rollback();
    assert!(module.to_string() == before && module.stamp() == stamp);
    verify_module(&module).unwrap();
    module.begin_edit();
    module.replace_with(&library).unwrap();
    assert_eq!(module.to_string(), library.to_string());
    module.rollback();
    assert!(module.to_string() == before && module.stamp() == stamp);
}

#[test]
fn a_function_of_another_type_than_is_named_already_is_refused() {
    let library = parsed(LIBRARY);
    let other = parsed("def @odd(%x: int32) { negate(%x) }");
    let mut module = parsed("");
    take(&mut module, &library, "even", "even").unwrap();
    let before = module.to_string();
    let error = take(&mut module, &other, "odd", "odd").unwrap_err();
    assert_eq!(error, TakeOverError::Signature { function: "odd".into(), global: "odd".into() });
    assert_eq!(error.to_string(), "this module names `@odd` with another type");
    assert_eq!(module.to_string(), before);
    take(&mut module, &library, "odd", "odd").unwrap();
    verify_module(&module).unwrap();
}

#[test]
fn a_name_that_only_a_function_that_is_gone_had_takes_any_type() {
    let other = parsed("def @f(%x: int32) { negate(%x) }");
    let mut module = parsed("def @main(%x: float32) { let %y = @f(%x); %x } def private @f(%x: float32) { %x }");
    let key = module.find("f").unwrap();
    module.remove(&[key]);
    let (main, _) = module.get_mut(module.find("main").unwrap()).unwrap();
    let param = main.body.params()[0].expr();
    main.body.set_root(param);
    take(&mut module, &other, "f", "f").unwrap();
    verify_module(&module).unwrap();
}

#[test]
fn functions_that_are_attributes_are_found_again_just_if_they_are_equal() {
    let program = |name: &str, field: usize, ret: &str, begin: &str| {
        parsed(&format!(
            "{begin}def @main(%x: float32) {{
               vendor.call(%x, f=fn(%p: ((), ())) -> {ret} {{ let %{name} = %p.{field}; %{name} }})
             }}"
        ))
    };
    let original = program("a", 0, "()", "");
    for (other, is_equal) in [
        (program("a", 0, "()", "/* at another place */ "), true),
        (program("b", 0, "()", ""), false),
        (program("a", 1, "()", ""), false),
        (program("a", 0, "Any", ""), false),
    ] {
        let mut module = original.clone();
        module.begin_edit();
        module.replace_with(&other).unwrap();
        assert_eq!(module.commit(), !is_equal);
        assert_eq!(module.to_text(), other.to_text());
        assert_eq!(module.cx.function_attrs.iter().count(), 2 - usize::from(is_equal));
    }
}

//! Rules 12 and 13: globals and phases.

use anfora_ir::{Form, Function};

use super::Rule;
use super::programs::{CHAIN, LAMBDA, REGION, assert_fine, parse};

pub(super) fn rule_12_globals_resolve_and_signatures_agree(rule: &mut Rule) {
    let text = "def @helper(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { negative(%x) }
        def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %r = @helper(%x); %r }";
    let mut m = parse(text);
    assert_fine(&m, Form::Anf);
    let helper = m.find("helper").unwrap();
    m.remove(&[helper]);
    rule.broken_by(&m, "nothing defines or declares `@helper`", "@main %r");
    // In an attribute of a call, in a list of them, and of the function.
    let named = "def private @f(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { %x }
        def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
            let %a: Tensor[(8,), float32] = onnx.Foo(%x, callees=[1, [@f]]);
            %a
        }";
    let mut m = parse(named);
    assert_fine(&m, Form::Anf);
    m.remove(&[m.find("f").unwrap()]);
    rule.broken_by(&m, "nothing defines or declares `@f`", "@main %a");
    let mut m = parse(
        "def private @f(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { %x }
        def @main(%x: Tensor[(8,), float32], companion=@f) -> Tensor[(8,), float32] { %x }",
    );
    assert_fine(&m, Form::Anf);
    m.remove(&[m.find("f").unwrap()]);
    rule.broken_by(&m, "nothing defines or declares `@f`", "@main");
    let helpers = format!("{text} def @helpers(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {{ %x }}");
    let mut m = parse(&helpers);
    let helper = m.find("helper").unwrap();
    m.remove(&[helper]);
    rule.broken_by(&m, "did you mean `@helpers`?", "@main %r");
    let mut m = parse(CHAIN);
    let global = m.cx.find_global("main").unwrap();
    let any = m.cx.types.any();
    m.set_signature(global, any);
    rule.broken_by(&m, "the signature of the function is", "@main");
    // A function in the place of another, one without a name, and an order that names one that is gone.
    let twins = "def @f(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { %x }
        def @g(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { %x }";
    let mut m = parse(twins);
    let (f, g) = (m.find("f").unwrap(), m.find("g").unwrap());
    *m.get_mut(f).unwrap().0 = m.get(g).unwrap().clone();
    rule.broken_by(&m, "the function's name does not lead back to it", "@g");
    let mut m = parse(twins);
    let empty = m.cx.attrs.empty();
    let (body, mut unnamed) = (m.get(f).unwrap().body.clone(), Function::new(&m.cx.types, empty));
    unnamed.body = body;
    *m.get_mut(f).unwrap().0 = unnamed;
    rule.broken_by(&m, "a function of the module has no name", "");
    let mut m = parse(twins);
    m.remove(&[f]);
    m.set_order(vec![f]);
    rule.broken_by(&m, "the program order names a function that is not there", "");
    // A declaration has to state its result.
    let mut m = parse("declare @f(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32];");
    assert_fine(&m, Form::Anf);
    let f = m.find("f").unwrap();
    m.get_mut(f).unwrap().0.ret = None;
    rule.broken_by(&m, "states no result type", "@f");
}

pub(super) fn rule_13_a_claimed_phase_is_true(rule: &mut Rule) {
    let with = |phase: &str, text: &str| parse(&format!("#![phase={phase}]\n{text}"));
    let nested = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { negative(negative(%x)) }";
    rule.broken_by(&with("0", nested), "not in A-normal form", "@main");
    rule.broken_by(&with("1", LAMBDA), "holds a `fn`", "@main");
    rule.broken_by(&with("2.1", REGION), "has a dataflow region", "@main");
    rule.broken_by(&with("\"2.2\"", REGION), "has a dataflow region", "@main");
    rule.broken_by(&with("\"late\"", CHAIN), "not a number", "");
    assert_fine(&with("1", REGION), Form::Anf);
    assert_fine(&with("2.3", CHAIN), Form::Anf);
}

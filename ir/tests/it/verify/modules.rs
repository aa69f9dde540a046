//! Rules 12 and 13: globals and phases.

use anfora_ir::{Form, Function, Invariant, Phase, STANDARD_PHASES, verify_function};

use super::Rule;
use super::programs::{BRANCH, CHAIN, LAMBDA, REGION, assert_fine, parse};

pub(super) fn rule_12_globals_resolve_and_signatures_agree(rule: &mut Rule) {
    let text = "def @helper(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { negative(%x) }
        def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %r = @helper(%x); %r }";
    let mut m = parse(text);
    assert_fine(&m, Form::Anf);
    let helper = m.find("helper").unwrap();
    m.remove(&[helper]);
    rule.broken_by(&m, "nothing defines or declares `@helper`", "@main %r");
    // In an attribute of a call, in a list in an attribute, and in an attribute of the function.
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
    // A function in the place of another, a function without a name, and an order that names a
    // removed function.
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
    // A declaration must state its result type.
    let mut m = parse("declare @f(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32];");
    assert_fine(&m, Form::Anf);
    let f = m.find("f").unwrap();
    m.get_mut(f).unwrap().0.ret = None;
    rule.broken_by(&m, "states no result type", "@f");
    // A linker takes one definition of each symbol, public or private. A declaration names a
    // definition elsewhere.
    let linked = |first: &str, second: &str| {
        parse(&format!(
            "declare @d(%x: Tensor[(8,), float32], global_symbol=\"s\") -> Tensor[(8,), float32];
            def @f(%x: Tensor[(8,), float32], global_symbol={first}) -> Tensor[(8,), float32] {{ %x }}
            def private @g(%x: Tensor[(8,), float32], global_symbol={second}) -> Tensor[(8,), float32] {{ %x }}"
        ))
    };
    assert_fine(&linked("\"s\"", "\"f\""), Form::Anf);
    rule.broken_by(&linked("\"s\"", "\"s\""), "`@f` has the symbol \"s\" too", "@g");
    // The error is also found if only one of the two is checked.
    let twice = linked("\"s\"", "\"s\"");
    for (name, other) in [("f", "g"), ("g", "f")] {
        let errors = verify_function(&twice, twice.find(name).unwrap()).unwrap_err();
        assert_eq!(errors[0].function.as_deref(), Some(name));
        assert!(errors[0].message.contains(&format!("`@{other}` has the symbol \"s\" too")), "{}", errors[0]);
    }
    rule.broken_by(&linked("1", "\"s\""), "is a string that is not empty", "@f");
    rule.broken_by(&linked("\"s\"", "\"\""), "is a string that is not empty", "@g");
}

pub(super) fn rule_13_a_claimed_phase_is_true(rule: &mut Rule) {
    let with = |phase: &str, text: &str| parse(&format!("#![phase={phase}]\n{text}"));
    let nested = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        let %a = negative(negative(%x));
        %a
    }";
    rule.broken_by(&with("0", nested), "not in A-normal form", "@main %a");
    rule.broken_by(&with("1", LAMBDA), "holds a `fn`", "@main %f");
    rule.broken_by(&with("2.1", REGION), "has a dataflow region", "@main %a");
    rule.broken_by(&with("\"2.2\"", REGION), "has a dataflow region", "@main %a");
    rule.broken_by(&with("2.3", CHAIN), "has no `global_symbol`", "@main");
    rule.broken_by(&with("\"late\"", CHAIN), "not a number", "");
    rule.broken_by(&with("\"inf\"", CHAIN), "not a number", "");
    rule.broken_by(&with("true", CHAIN), "not a number", "");
    // A phase before the first, or between two, has the rules of the phases before it.
    assert_fine(&with("-1", REGION), Form::Anf);
    assert_fine(&with("1", REGION), Form::Anf);
    assert_fine(&with("2", REGION), Form::Anf);
    assert_fine(&with("2.2", CHAIN), Form::Anf);
    let symbol = CHAIN.replacen("%x: Tensor[(8,), float32])", "%x: Tensor[(8,), float32], global_symbol=\"main\")", 1);
    assert_fine(&with("2.3", &symbol), Form::Anf);
    // A declaration is defined elsewhere, so the rule does not hold for it.
    assert_fine(&with("2.3", "declare @f(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32];"), Form::Anf);
}

#[test]
fn claims_are_numbers_that_survive_the_text() {
    for (text, number) in [("0", 0.0), ("1", 1.0), ("1.5", 1.5), ("2.1", 2.1), ("\"2.2\"", 2.2)] {
        let mut m = parse(&format!("#![phase={text}]\n{CHAIN}"));
        let phase = m.phase().unwrap();
        assert_eq!(Some(phase), Phase::new(number));
        assert_eq!(phase.to_string(), text.trim_matches('"'));
        assert_eq!(phase.to_string().parse(), Ok(phase));
        m.set_phase(Some(phase));
        let printed = m.to_text();
        assert!(printed.starts_with(&format!("#![phase={phase}]")), "{printed}");
        assert_eq!(parse(&printed).phase(), Some(phase));
        m.set_phase(None);
        assert_eq!(m.phase(), None);
        assert_eq!(m.to_text(), parse(CHAIN).to_text());
    }
    assert!("late".parse::<Phase>().is_err() && "NaN".parse::<Phase>().is_err());
    assert_eq!(Phase::new(-0.0), Phase::new(0.0));
}

/// The invariants that passes check agree with the form that the verifier reports.
#[test]
fn invariants_say_what_the_verifier_says() {
    for text in [CHAIN, LAMBDA, REGION, BRANCH] {
        let m = parse(text);
        assert!(Invariant::ANormalForm.violations(&m).is_empty());
        assert_eq!(Invariant::NoNestedFunctions.violations(&m).is_empty(), text != LAMBDA);
        assert_eq!(Invariant::NoDataflowRegions.violations(&m).is_empty(), text != REGION);
    }
    let twice = format!(
        "{CHAIN}\ndef @g(%x: Tensor[(8,), float32]) {{ negative(negative(%x)) }}
        def @h(%x: Tensor[(8,), float32]) {{ let %a = {{ let %b = negative(%x); %b }}; %a }}"
    );
    let found = Invariant::ANormalForm.violations(&parse(&twice));
    let places: Vec<_> = found.iter().map(|d| (d.function.as_deref().unwrap(), d.binding.as_deref())).collect();
    assert_eq!(places, [("g", None), ("h", Some("a"))]);
    assert!(found.iter().all(|d| d.span.is_some() && d.help.is_some()));
    for invariant in Invariant::ALL {
        assert!(STANDARD_PHASES.iter().any(|p| p.invariants.contains(invariant)), "nothing holds {}", invariant.name());
    }
    assert!(STANDARD_PHASES.is_sorted_by(|a, b| a.phase < b.phase));
}

//! Module passes that return another module.

use std::sync::Arc;

use anfora_ir::{Module, Phase, Source, alpha_equal, parse_module, verify_module};
use anfora_manager::{Declare, ModulePass, Outcome, Pass, PassContext, PassError, Sequential, VerifyEach};

use crate::support::{Log, Recorder, add_function, bump, module, module_of, ops, snapshot};

fn parsed(text: &str) -> Module {
    parse_module(Source::new("text", text), ops()).unwrap_or_else(|e| panic!("{}", e[0]))
}

/// Makes a pass that returns the module of a text.
fn saying(text: &'static str) -> ModulePass {
    ModulePass::returning("Says", 0, move |_, _| Ok(parsed(text)))
}

const TWO: &str = "#![version=3]

def private @scale(%x: Tensor[(n, n * 2 + 1), float32]) -> Tensor[(n, n * 2 + 1), float32] {
  let %a: Tensor[(n, n * 2 + 1), float32] = negate(%x);
  add(%a, %x)
}

def @main(%x: Tensor[(3, 7), float32], %flag: bool) -> Tensor[(3, 7), float32] {
  let %k = fn(%y: Tensor[(m,), float32]) -> Tensor[(m,), float32] { negate(%y) };
  let %r = if (%flag) { @scale(%x) } else { %x };
  %r
}
";

#[test]
fn the_module_becomes_the_one_that_is_returned() {
    let wanted = parsed(TWO);
    for mut given in [module(), module_of(&[]), module_of(&["main", "other"]), parsed(TWO)] {
        let main = given.find("main");
        saying(TWO).apply(&mut given, &PassContext::new()).unwrap();
        assert_eq!(given.to_string(), wanted.to_string());
        assert!(alpha_equal(&given, &wanted));
        verify_module(&given).unwrap();
        // A function that is in both modules keeps its key.
        assert!(main.is_none() || given.find("main") == main);
    }
}

#[test]
fn a_module_that_says_the_same_leaves_it_unchanged() {
    for mut given in [module(), module_of(&[]), parsed(TWO)] {
        let before = (snapshot(&given), given.stamp());
        let copy = ModulePass::returning("Copies", 0, |module, _| Ok(module.clone()));
        assert_eq!(copy.apply(&mut given, &PassContext::new()).unwrap(), Outcome::Unchanged);
        assert!(snapshot(&given) == before.0 && given.stamp() == before.1);
        // All ids of a parsed module are different.
        let again = ModulePass::returning("Reads", 0, |module, _| {
            parse_module(Source::new("again", module.to_string()), ops()).map_err(PassError::from)
        });
        assert_eq!(again.apply(&mut given, &PassContext::new()).unwrap(), Outcome::Unchanged);
        assert!(snapshot(&given) == before.0);
    }
}

#[test]
fn only_what_is_different_is_changed() {
    let mut given = module();
    let stamps: Vec<_> = given.functions().map(|(_, f)| f.stamp()).collect();
    let renames = ModulePass::returning("Renames", 0, |module, _| {
        let text = module.to_string().replacen("%a", "%first", 3);
        Ok(parse_module(Source::new("renamed", text), ops())?)
    });
    assert_eq!(renames.apply(&mut given, &PassContext::new()).unwrap(), Outcome::Changed);
    let now: Vec<_> = given.functions().map(|(_, f)| f.stamp()).collect();
    assert!(now[0] != stamps[0] && now[1..] == stamps[1..]);
}

#[test]
fn a_failure_afterwards_takes_the_module_back() {
    struct Rejects;
    impl anfora_manager::Instrument for Rejects {
        fn name(&self) -> &str {
            "rejects"
        }
        fn run_after(
            &self,
            module: &Module,
            _: &anfora_manager::PassRun<'_>,
            outcome: &Outcome,
        ) -> Result<(), PassError> {
            assert_eq!((module.to_string(), outcome), (parsed(TWO).to_string(), &Outcome::Changed));
            Err("no".into())
        }
    }
    for mut given in [module(), module_of(&["main", "other"])] {
        let before = (snapshot(&given), given.stamp(), given.to_string());
        let cx = PassContext::builder().instrument(Arc::new(Rejects)).build().unwrap();
        saying(TWO).apply(&mut given, &cx).unwrap_err();
        assert_eq!(given.to_string(), before.2);
        assert!(snapshot(&given) == before.0 && given.stamp() == before.1);
        verify_module(&given).unwrap();
    }
}

#[test]
fn a_closure_that_fails_and_an_ill_formed_module_leave_it_as_it_was() {
    let ill_formed = ModulePass::returning("Breaks", 0, |module, _| {
        let mut new = module.clone();
        let g = new.find("g").unwrap();
        new.remove(&[g]);
        let f = new.find("f").unwrap();
        let (function, _) = new.get_mut(f).unwrap();
        let unit = function.body.params()[0].expr();
        function.body.set_type(unit, anfora_ir::Types::default().unit());
        Ok(new)
    });
    let fails = ModulePass::returning("Fails", 0, |_, _| Err("no".into()));
    let panics = ModulePass::returning("Panics", 0, |_, _| panic!("no"));
    for (pass, said) in [(ill_formed, "returned an ill-formed module"), (fails, "no"), (panics, "no")] {
        let mut given = module();
        let before = (snapshot(&given), given.stamp());
        let failure = pass.apply(&mut given, &PassContext::new()).unwrap_err();
        assert!(failure.to_string().contains(said), "{failure}");
        assert!(snapshot(&given) == before.0 && given.stamp() == before.1);
    }
}

#[test]
fn an_operator_that_the_module_does_not_know_is_told() {
    let elsewhere = ModulePass::returning("Elsewhere", 0, |_, _| {
        let mut rows = anfora_ir::OpRegistry::new();
        let rule = |call: &mut anfora_ir::TypeCall<'_>| Ok(call.cx.types.unit());
        let row = anfora_ir::OpDef::new("negatte", "", anfora_ir::Arity::exactly(0), rule);
        rows.register(row)?;
        let text = "def @f() { negatte() }";
        Ok(parse_module(Source::new("elsewhere", text), Arc::new(rows))?)
    });
    let mut given = module();
    let before = snapshot(&given);
    let failure = elsewhere.apply(&mut given, &PassContext::new()).unwrap_err();
    let told: Vec<String> = failure.to_diagnostics().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|t| t.contains("unknown operator `negatte`")), "{told:?}");
    assert_eq!(snapshot(&given), before);
}

#[test]
fn it_is_a_pass_as_any() {
    let log = Log::default();
    let cx = PassContext::builder()
        .instrument(Recorder::new("i", &log))
        .instrument(Arc::new(VerifyEach::new()))
        .build()
        .unwrap();
    let adds = ModulePass::returning("Adds", 0, |module, _| {
        let mut new = module.clone();
        add_function(&mut new, "added");
        Ok(new)
    });
    let all = Sequential::new(vec![Arc::new(bump("a")), Arc::new(adds), Arc::new(bump("b"))]).unwrap();
    let mut given = module();
    all.apply(&mut given, &cx).unwrap();
    assert!(given.find("added").is_some());
    assert_eq!(crate::support::bumps(&given), 2);
    assert!(log.take().contains(&"i after Adds".to_string()));
}

#[test]
fn the_claim_of_a_phase_is_that_of_the_returned_module_lowered_as_the_pass_says() {
    let phase = |n: f64| Phase::new(n);
    let claims = |pass: ModulePass| {
        let mut given = module();
        given.set_phase(phase(0.0));
        pass.apply(&mut given, &PassContext::new()).map(|_| given.phase())
    };
    let later = || {
        ModulePass::returning("Later", 0, move |module, _| {
            let mut new = module.clone();
            new.set_phase(Phase::new(1.0));
            Ok(new)
        })
    };
    assert_eq!(claims(later()).unwrap(), phase(1.0));
    assert_eq!(claims(later().breaking(["anf"])).unwrap(), None);
}

//! Properties and phases: orders that cannot work are refused, and a module claims no phase whose
//! properties do not hold.

use std::sync::Arc;

use anfora_ir::{Diagnostic, Module, Phase, verify_module};
use anfora_manager::{
    Declare, FailureKind, ModulePass, Outcome, Pass, PassContext, PassError, PassInfo, PassRegistry, PhaseEntry,
    Property, RegistryError, Repeat, Sequential, VerifyEach, parse_pipeline,
};

use crate::support::{Log, Recorder, add_function, bumps, empty_module, idle, module, module_of, set_bumps, snapshot};

/// Makes a pass that logs that it ran, and adds one to the count of the module.
fn noting(name: &str, log: &Log) -> ModulePass {
    let (own, log) = (name.to_string(), log.clone());
    ModulePass::new(name, 1, move |module, _| {
        log.note(own.clone());
        let n = bumps(module);
        set_bumps(module, n + 1);
        Ok(())
    })
}

/// Returns a registry with the property `tidy`, which can be checked: the module has at most three
/// functions. The property `messy` excludes it and cannot be checked.
fn registry(log: &Log) -> PassRegistry {
    let mut registry = PassRegistry::new();
    registry
        .register_property(Property::new("tidy", "there are three functions at most").checked_by(|module| {
            match module.functions().nth(3) {
                None => Ok(()),
                Some((key, _)) => Err(vec![
                    Diagnostic::error("there is a fourth function").in_function(module.name(key)).on_binding("a"),
                ]),
            }
        }))
        .unwrap();
    registry.register_property(Property::new("messy", "anything goes").excluding(["tidy"])).unwrap();
    registry.register_phase(PhaseEntry::new(phase(1.5), "tidied up").holding(["tidy"])).unwrap();
    registry.register_pass(noting("Tidy", log).establishing(["tidy"]), "").unwrap();
    registry.register_pass(noting("Mess", log).establishing(["messy"]), "").unwrap();
    registry.register_pass(noting("Break", log).breaking(["tidy"]), "").unwrap();
    registry.register_pass(noting("Use", log).needing(["tidy"]), "").unwrap();
    registry.register_pass(noting("UseMess", log).needing(["messy"]), "").unwrap();
    registry.register_pass(noting("Plain", log), "").unwrap();
    registry.register_pass(idle("Idle", 0), "").unwrap();
    registry.register_pass(noting("Late", log).requiring(["Break"]), "").unwrap();
    registry.register_pass(noting("Careful", log).requiring(["Tidy"]).needing(["tidy"]), "").unwrap();
    registry.register_pass(noting("Anf", log).breaking(["anf"]), "").unwrap();
    registry.register_megapass(phase(1.0), "", "").unwrap();
    registry.register_megapass(phase(1.5), "Tidy", "tidied up").unwrap();
    registry
}

fn phase(number: f64) -> Phase {
    Phase::new(number).unwrap()
}

fn claiming(number: f64) -> Module {
    let mut module = module();
    module.set_phase(Some(phase(number)));
    module
}

/// Returns the error of running the pipeline, or `fine`. Checks that a refused pipeline has not run
/// anything, and that it called no hook but `should_run`.
fn outcome(text: &str, module: &mut Module) -> String {
    let log = Log::default();
    let registry = Arc::new(registry(&log));
    let seen = Log::default();
    let cx = PassContext::builder().registry(registry.clone()).instrument(Recorder::new("i", &seen)).build().unwrap();
    let before = snapshot(module);
    match parse_pipeline(&registry, text).unwrap().apply(module, &cx) {
        Ok(_) => "fine".to_string(),
        Err(failure) => {
            assert_eq!(*failure.kind(), FailureKind::Order, "{failure}");
            assert_eq!(log.take(), Vec::<String>::new());
            assert!(seen.take().iter().all(|e| e.contains("should_run")));
            assert_eq!(snapshot(module), before);
            failure.to_string()
        }
    }
}

fn message(needing: &str, breaking: &str, path: &str) -> String {
    format!(
        "pass `{needing}` cannot run there: it needs `tidy`, which `{breaking}` breaks [{path}]; run `Tidy` between them"
    )
}

#[test]
fn orders_that_cannot_work_are_refused_before_anything_runs() {
    let told = |text: &str| outcome(text, &mut module());
    assert_eq!(told("Break,Use"), message("Use", "Break", "pipeline"));
    // Establishing an excluding property breaks a property.
    assert_eq!(told("Tidy,Mess,Plain,Use"), message("Use", "Mess", "pipeline"));
    assert_eq!(told("Break,Mess,Use"), message("Use", "Break", "pipeline"));
    // In sequences and fixpoints, and after them.
    assert_eq!(told("fixpoint<2>(Tidy,Break),Plain,Use"), message("Use", "Break", "pipeline"));
    assert_eq!(told("Break,fixpoint<2>(Plain,Use)"), message("Use", "Break", "pipeline > fixpoint<2>"));
    assert_eq!(
        told("fixpoint<3>(Plain,fixpoint<3>(Break),fixpoint<3>(Plain,Use))"),
        message("Use", "Break", "pipeline > fixpoint<3> > fixpoint<3>")
    );
    // The second round of a fixpoint comes after the first.
    assert_eq!(told("fixpoint<2>(Use,Break)"), message("Use", "Break", "pipeline > fixpoint<2>"));
    assert_eq!(
        told("fixpoint<2>(fixpoint<2>(Use,Plain),Break)"),
        message("Use", "Break", "pipeline > fixpoint<2> > fixpoint<2>")
    );
    assert_eq!(told("fixpoint<1>(Use,Break)"), "fine");
    // Dependencies run before the passes that depend on them.
    assert_eq!(told("Late,Use"), message("Use", "Break", "pipeline"));
    assert_eq!(told("Break,Careful,Use"), "fine");
    // Once `Tidy` has broken `messy`, only `Mess` establishes it again.
    assert_eq!(
        told("Mess,Tidy,UseMess"),
        "pass `UseMess` cannot run there: it needs `messy`, which `Tidy` breaks [pipeline]; run `Mess` between them"
    );
    for fine in ["Use", "Use,Break", "Break,Tidy,Use", "fixpoint<2>(Break,Tidy,Use)", "fixpoint<9>(Use),Break", ""] {
        assert_eq!(told(fine), "fine", "{fine}");
    }
}

#[test]
fn what_the_context_leaves_out_breaks_and_mends_nothing() {
    let log = Log::default();
    let registry = Arc::new(registry(&log));
    let run = |text: &str, cx: PassContext| {
        parse_pipeline(&registry, text).unwrap().apply(&mut module(), &cx).map_err(|f| f.kind().clone())
    };
    let cx = || PassContext::builder().registry(registry.clone());
    assert_eq!(run("Break,Use", cx().disable("Break").build().unwrap()), Ok(Outcome::Changed));
    assert_eq!(run("Break,Tidy,Use", cx().disable("Tidy").build().unwrap()), Err(FailureKind::Order));
    assert_eq!(run("Break,Use", cx().opt_level(0).build().unwrap()), Ok(Outcome::Unchanged));
    let forced = cx().opt_level(0).require("Break").require("Use").build().unwrap();
    assert_eq!(run("Break,Tidy,Use", forced), Err(FailureKind::Order));
}

#[test]
fn single_passes_and_passes_run_by_passes_are_looked_at_too() {
    let log = Log::default();
    let registry = Arc::new(registry(&log));
    let cx = PassContext::with_registry(registry.clone());
    let mut module = claiming(1.5);
    let failure = registry.make("UseMess").unwrap().apply(&mut module, &cx).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "pass `UseMess` cannot run there: it needs `messy`, but the module claims phase 1.5, from which on `tidy` holds; run `Mess` before it"
    );
    let inner = parse_pipeline(&registry, "Break,Use").unwrap();
    let outer = ModulePass::new("Outer", 0, move |module, cx| {
        set_bumps(module, 7);
        inner.apply(module, cx).map(|_| ()).map_err(PassError::from)
    });
    let mut module = module_of(&["f"]);
    let failure = outer.apply(&mut module, &cx).unwrap_err();
    assert_eq!((failure.pass(), bumps(&module)), ("Outer", 0));
    assert!(failure.to_diagnostics()[0].message.contains("it needs `tidy`, which `Break` breaks"), "{failure}");
    assert_eq!(log.take(), Vec::<String>::new());
}

#[test]
fn deep_fixpoints_are_looked_at_once() {
    let log = Log::default();
    let mut passes: Vec<Arc<dyn Pass>> = vec![
        Arc::new(ModulePass::new("Use", 0, |_, _| Ok(())).needing(["anf"])),
        Arc::new(noting("Break", &log).breaking(["anf"])),
    ];
    // If each sequence were visited twice by the one around it, this would not end.
    for _ in 0..60 {
        passes = vec![Arc::new(Repeat::new(passes, 2).unwrap())];
    }
    let failure = Sequential::new(passes).unwrap().apply(&mut module(), &PassContext::new()).unwrap_err();
    assert_eq!((failure.pass(), failure.path().len(), failure.kind()), ("Use", 61, &FailureKind::Order));
}

#[test]
fn claims_are_raised_where_all_holds() {
    let log = Log::default();
    let registry = Arc::new(registry(&log));
    let cx = PassContext::with_registry(registry.clone());
    let pipeline = parse_pipeline(&registry, "phase1.5").unwrap();
    assert_eq!(pipeline.to_string(), "Tidy,EnterPhase{phase=1.5}");
    assert_eq!(parse_pipeline(&registry, &pipeline.to_string()).unwrap().to_string(), pipeline.to_string());
    let mut module = module();
    assert_eq!(pipeline.apply(&mut module, &cx).unwrap(), Outcome::Changed);
    assert_eq!(module.phase(), Some(phase(1.5)));
    // Entering an earlier phase never lowers a claim.
    let run = |text: &str, module: &mut Module| parse_pipeline(&registry, text).unwrap().apply(module, &cx);
    assert_eq!(run("phase1", &mut module).unwrap(), Outcome::Unchanged);
    assert_eq!(module.phase(), Some(phase(1.5)));
    assert_eq!(run("EnterPhase{phase=2.2}", &mut module).unwrap(), Outcome::Changed);
    assert_eq!(module.phase(), Some(phase(2.2)));

    // A phase is not entered if one of its properties does not hold.
    let mut module = module_of(&["f", "g", "h", "i"]);
    let failure = run("EnterPhase{phase=2.1}", &mut module).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "pass `EnterPhase` failed: from phase 2.1 on `tidy` holds, but there is a fourth function (in @i, at %a) [pipeline]"
    );
    assert_eq!(module.phase(), None);
    // Without a phase, the greatest phase whose properties all hold is entered.
    assert_eq!(run("EnterPhase", &mut module).unwrap(), Outcome::Changed);
    assert_eq!(module.phase(), Some(phase(1.0)));
    let mut module = empty_module();
    assert_eq!(run("EnterPhase", &mut module).unwrap(), Outcome::Changed);
    assert_eq!(module.phase(), Some(phase(2.3)));
    assert_eq!(outcome("Mess,EnterPhase{phase=1.5}", &mut module), message("EnterPhase", "Mess", "pipeline"));
    assert_eq!(outcome("Mess,Tidy,EnterPhase{phase=1.5}", &mut module), "fine");
}

#[test]
fn what_breaks_a_property_lowers_the_claim() {
    let log = Log::default();
    let registry = Arc::new(registry(&log));
    let seen = Log::default();
    let claims = {
        let seen = seen.clone();
        move |module: &Module| seen.note(module.phase().map_or("none".to_string(), |p| p.to_string()))
    };
    let cx = PassContext::builder().registry(registry.clone()).instrument(Arc::new(After(claims))).build().unwrap();
    let run = |text: &str, module: &mut Module| {
        parse_pipeline(&registry, text).unwrap().apply(module, &cx).unwrap();
        let mut remarks = cx.take_remarks();
        let said = remarks.pop().map(|r| (r.pass, r.diagnostic.message));
        assert!(remarks.is_empty());
        (module.phase(), said)
    };
    let said = |pass: &str, message: &str| Some((pass.to_string(), message.to_string()));
    let mut module = claiming(2.2);
    assert_eq!(
        run("Break", &mut module),
        (
            Some(phase(1.0)),
            said("Break", "the module claimed phase 2.2; `Break` breaks `tidy`, so it claims phase 1 now")
        )
    );
    // Instruments see the module with the lowered claim.
    assert_eq!(seen.take(), ["1", "1"]);
    assert_eq!(run("Break", &mut module), (Some(phase(1.0)), None));
    assert_eq!(
        run("Anf", &mut module),
        (None, said("Anf", "the module claimed phase 1; `Anf` breaks `anf`, so it claims no phase any more"))
    );
    assert_eq!(run("Anf", &mut module), (None, None));
    let mut module = claiming(1.5);
    assert_eq!(run("Plain,Tidy", &mut module), (Some(phase(1.5)), None));
    assert_eq!(run("Mess", &mut module).0, Some(phase(1.0)));

    // A sequence that declares to break a property breaks it when it ends, if one of its passes
    // changed something.
    let sequence = |pass: &str| {
        let passes = vec![registry.make(pass).unwrap()];
        Sequential::named(PassInfo::new("Both", 0).breaking(["tidy"]), passes).unwrap()
    };
    let mut module = claiming(2.2);
    assert_eq!(sequence("Idle").apply(&mut module, &cx).unwrap(), Outcome::Unchanged);
    assert_eq!(module.phase(), Some(phase(2.2)));
    assert_eq!(sequence("Plain").apply(&mut module, &cx).unwrap(), Outcome::Changed);
    assert_eq!(module.phase(), Some(phase(1.0)));
    assert_eq!(cx.take_remarks().pop().unwrap().pass, "Both");
}

struct After<F>(F);

impl<F: Fn(&Module) + Send + Sync> anfora_manager::Instrument for After<F> {
    fn name(&self) -> &str {
        "After"
    }

    fn run_after(&self, module: &Module, _: &anfora_manager::PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
        (self.0)(module);
        Ok(())
    }
}

#[test]
fn claims_come_back_and_stay_with_what_did_not_happen() {
    let cx = PassContext::new();
    let mut module = claiming(2.1);
    let before = snapshot(&module);
    let idle = ModulePass::new("Idle", 0, |_, _| Ok(())).breaking(["anf"]);
    assert_eq!(idle.apply(&mut module, &cx).unwrap(), Outcome::Unchanged);
    assert_eq!((snapshot(&module), cx.take_remarks().len()), (before.clone(), 0));
    let failing = ModulePass::new("Failing", 0, |module, _| {
        set_bumps(module, 3);
        Err(PassError::new("after all"))
    })
    .breaking(["anf"]);
    assert!(failing.apply(&mut module, &cx).is_err());
    assert_eq!(snapshot(&module), before);
    // An instrument rolls the pass back after its claim was lowered.
    struct Veto;
    impl anfora_manager::Instrument for Veto {
        fn name(&self) -> &str {
            "Veto"
        }
        fn run_after(&self, m: &Module, _: &anfora_manager::PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
            Err(PassError::new(format!("phase {:?}", m.phase())))
        }
    }
    let cx = PassContext::builder().instrument(Arc::new(Veto)).build().unwrap();
    let log = Log::default();
    let failure = noting("Break", &log).breaking(["anf"]).apply(&mut module, &cx).unwrap_err();
    assert_eq!(failure.error().message(), "phase None");
    assert_eq!(snapshot(&module), before);
}

/// No pass declares that it breaks an observed property: the manager looks.
#[test]
fn observed_properties_are_checked_after_changes_and_before_needs() {
    let log = Log::default();
    let mut registry = PassRegistry::new();
    let even = Property::new("even", "the count is even").observed_by(|module| match bumps(module) {
        9 => panic!("the check panics"),
        n if n % 2 == 0 => Ok(()),
        n => Err(vec![Diagnostic::error(format!("the count is {n}"))]),
    });
    assert!(even.is_observed() && even.is_checkable());
    registry.register_property(even).unwrap();
    registry.register_phase(PhaseEntry::new(phase(1.5), "even").holding(["even"])).unwrap();
    let cx = PassContext::builder().registry(Arc::new(registry)).build().unwrap();
    let adding = |name: &str, more: i64| {
        ModulePass::new(name, 0, move |module, _| {
            let n = bumps(module);
            set_bumps(module, n + more);
            Ok(())
        })
    };
    let mut module = claiming(1.5);
    adding("Two", 2).apply(&mut module, &cx).unwrap();
    assert_eq!(module.phase(), Some(phase(1.5)), "it holds still");
    let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(adding("One", 1)), Arc::new(adding("Two", 2))];
    Sequential::new(passes).unwrap().apply(&mut module, &cx).unwrap();
    assert_eq!((bumps(&module), module.phase()), (5, Some(phase(1.0))));
    let remarks: Vec<String> = cx.take_remarks().into_iter().map(|r| r.diagnostic.message).collect();
    assert_eq!(remarks, ["the module claimed phase 1.5; `One` breaks `even`, so it claims phase 1 now"]);

    let needing = || noting("Use", &log).needing(["even"]);
    let failure = needing().apply(&mut module, &cx).unwrap_err();
    assert_eq!(failure.to_string(), "pass `Use` failed: it needs `even`, but the count is 5");
    let order = Sequential::new(vec![Arc::new(adding("Two", 2)), Arc::new(needing())]).unwrap();
    assert!(order.apply(&mut module, &cx).unwrap_err().to_string().contains("the count is 7"));
    assert_eq!(log.take(), Vec::<String>::new(), "it has not run");
    adding("One", 1).apply(&mut module, &cx).unwrap();
    needing().apply(&mut module, &cx).unwrap();
    assert_eq!((log.take(), bumps(&module)), (vec!["Use".to_string()], 9));
    assert!(needing().apply(&mut module, &cx).unwrap_err().to_string().contains("the check panics"));

    // A pass that establishes the property is trusted.
    set_bumps(&mut module, 1);
    module.set_phase(Some(phase(1.5)));
    adding("Make", 1).establishing(["even"]).apply(&mut module, &cx).unwrap();
    assert_eq!(module.phase(), Some(phase(1.5)));
}

#[test]
fn a_property_that_later_phases_exclude_holds_until_then() {
    let log = Log::default();
    let mut registry = PassRegistry::new();
    registry.register_phase(PhaseEntry::new(phase(0.5), "grouped").holding(["dataflow"])).unwrap();
    assert_eq!(registry.holding_from(phase(1.0)), ["anf", "no-nested-functions", "dataflow"]);
    assert_eq!(registry.holding_from(phase(2.1)), ["anf", "no-nested-functions", "no-dataflow", "primitive-operators"]);
    registry.register_pass(noting("Group", &log).establishing(["dataflow"]), "").unwrap();
    registry.register_pass(noting("Ungroup", &log).establishing(["no-dataflow"]), "").unwrap();
    registry.register_pass(noting("Spoil", &log).breaking(["no-dataflow"]), "").unwrap();
    let cx = PassContext::with_registry(Arc::new(registry));
    let after = |name: &str, claimed: f64| {
        let mut module = claiming(claimed);
        cx.registry().make(name).unwrap().apply(&mut module, &cx).unwrap();
        module.phase().map(Phase::number)
    };
    // A property that is broken in one way is not established in another, unless the pass declares
    // it.
    assert_eq!(after("Group", 2.2), Some(1.0));
    assert_eq!(after("Spoil", 2.2), Some(0.0));
    assert_eq!(after("Ungroup", 1.0), Some(0.0));
    assert_eq!(after("Ungroup", 2.2), Some(2.2));
}

#[test]
fn passes_that_break_what_they_do_not_say_are_caught() {
    let log = Log::default();
    let registry = Arc::new(registry(&log));
    let cx = PassContext::builder().registry(registry).instrument(Arc::new(VerifyEach::new())).build().unwrap();
    let grow = || {
        ModulePass::new("Grow", 0, |module, _| {
            add_function(module, "fourth");
            Ok(())
        })
    };
    let mut module = claiming(1.5);
    let before = snapshot(&module);
    let failure = grow().apply(&mut module, &cx).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "pass `Grow` failed in VerifyEach (run_after): the pass made an ill-formed module: from phase 1.5 on `tidy` holds, but there is a fourth function (in @fourth, at %a)"
    );
    assert_eq!(snapshot(&module), before);
    // The verifier does not know the property.
    assert!(verify_module(&module).is_ok());
    assert_eq!(grow().breaking(["tidy"]).apply(&mut module, &cx).unwrap(), Outcome::Changed);
    assert_eq!(module.phase(), Some(phase(1.0)));
    // The verifier does not check a standard property that holds from a phase of an embedder on.
    let mut registry = PassRegistry::new();
    registry.register_phase(PhaseEntry::new(phase(0.5), "").holding(["global-symbols"])).unwrap();
    let cx = PassContext::builder().registry(Arc::new(registry)).instrument(Arc::new(VerifyEach::new()));
    let failure = grow().apply(&mut claiming(1.0), &cx.build().unwrap()).unwrap_err();
    assert!(
        failure.to_string().contains("`global-symbols` holds, but the function has no `global_symbol`"),
        "{failure}"
    );
}

#[test]
fn names_that_there_are_not_are_told_with_the_right_ones() {
    let log = Log::default();
    let mut registry = registry(&log);
    let unknown = |e: RegistryError| match e {
        RegistryError::Unknown(unknown) => (unknown.what, unknown.suggestion),
        other => panic!("{other}"),
    };
    let told = |what: &str, name: &str| (what.to_string(), Some(name.to_string()));
    let error = registry.register_phase(PhaseEntry::new(phase(3.0), "").holding(["tidi"])).unwrap_err();
    assert_eq!(unknown(error), told("property", "tidy"));
    let error = registry.register_property(Property::new("new", "").excluding(["no-datafow"])).unwrap_err();
    assert_eq!(unknown(error), told("property", "no-dataflow"));
    let error = registry.register_megapass(phase(2.4), "", "").unwrap_err();
    assert!(error.to_string().starts_with("unknown phase `2.4`; did you mean `2."), "{error}");
    let mut taken = PassRegistry::new();
    taken.register_pipeline("phase1", "", "").unwrap();
    assert!(matches!(taken.register_megapass(phase(1.0), "", ""), Err(RegistryError::Duplicate { .. })));
    assert!(!taken.contains("EnterPhase"), "registered together or not at all");
    assert_eq!(
        registry.register_phase(PhaseEntry::new(phase(1.5), "")).unwrap_err().to_string(),
        "there is a phase `1.5` already"
    );
    assert_eq!(
        registry.register_property(Property::new("anf", "")).unwrap_err().to_string(),
        "there is a property `anf` already"
    );
    assert!(matches!(registry.register_property(Property::new("not so", "")), Err(RegistryError::Name(_))));
    let error = parse_pipeline(&registry, "Tidy,EnterPhase{phase=1.6}").unwrap_err();
    assert_eq!((error.column, error.suggestion.as_deref()), (6, Some("1.5")));
    assert!(parse_pipeline(&registry, "EnterPhase{phase=late}").unwrap_err().to_string().contains("unknown phase"));

    // Passes that name unknown properties are not made; such passes that are not registered do not
    // run.
    registry.register_pass(noting("Typo", &log).needing(["tidz"]), "").unwrap();
    let error = parse_pipeline(&registry, "Plain,Typo").unwrap_err();
    assert_eq!((error.column, error.suggestion.as_deref()), (7, Some("tidy")));
    let cx = PassContext::with_registry(Arc::new(registry));
    let typo = |info: PassInfo| {
        let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(noting("Plain", &log))];
        let all = Sequential::named(info, passes).unwrap();
        all.apply(&mut module(), &cx).unwrap_err().to_string()
    };
    for info in [
        PassInfo::new("s", 0).needing(["amf"]),
        PassInfo::new("s", 0).establishing(["amf"]),
        PassInfo::new("s", 0).breaking(["amf"]),
    ] {
        assert!(typo(info).starts_with("pass `s` failed: unknown property `amf`; did you mean `anf`?"));
    }
    assert_eq!(log.take(), Vec::<String>::new());
    // A context without a registry knows the standard properties.
    let any = |pass: ModulePass| pass.apply(&mut module(), &PassContext::new()).map_err(|f| f.to_string());
    for pass in [
        noting("Any", &log).needing(["amf"]),
        noting("Any", &log).establishing(["amf"]),
        noting("Any", &log).breaking(["amf"]),
    ] {
        let failure = any(pass).unwrap_err();
        assert!(failure.starts_with("pass `Any` failed: unknown property `amf`; did you mean `anf`?"), "{failure}");
    }
    assert_eq!(log.take(), Vec::<String>::new());
    assert!(any(noting("Any", &log).needing(["anf"])).is_ok());
}

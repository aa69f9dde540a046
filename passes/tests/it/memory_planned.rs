//! The property `memory-planned`: it holds for texts too, and the manager finds out that a pass has
//! broken it.

use std::sync::Arc;

use anfora_ir::{Module, Phase, Source, parse_module};
use anfora_manager::{Declare, ModulePass, Pass, PassContext, PassRegistry, PhaseEntry, Sequential, parse_pipeline};
use anfora_passes::{MEMORY_PLANNED, memory_planned};

const PHASE: f64 = 0.5;

/// Returns a registry in which memory is planned from a phase on.
fn registry() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    anfora_passes::register(&mut registry).expect("the names are free");
    let phase = Phase::new(PHASE).expect("a number of a phase");
    registry.register_phase(PhaseEntry::new(phase, "planned").holding([MEMORY_PLANNED])).expect("the phase is new");
    Arc::new(registry)
}

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora_ops::standard()).expect("a program")
}

/// Runs a pipeline on a module.
fn run(registry: &Arc<PassRegistry>, pipeline: &str, module: &mut Module) -> Result<(), String> {
    let cx = PassContext::builder().registry(Arc::clone(registry)).opt_level(3).build().expect("a context");
    let pass = parse_pipeline(registry, pipeline).expect("a pipeline");
    pass.apply(module, &cx).map(|_| ()).map_err(|error| error.to_string())
}

const PROGRAM: &str = "def @main(%x: Tensor[(n,), float32]) {
    let %a = exp(%x);
    let %b = @callee(%a);
    let %dead = tanh(%b);
    add(%b, 1f)
}
def private @callee(%x: Tensor[(n,), float32]) {
    let %y = exp(%x);
    let %z = exp(%y);
    let %dead = add(%z, %y);
    %z
}";

#[test]
fn a_plan_stays_in_the_text_and_is_lost_where_the_memory_changes() {
    let registry = registry();
    let mut module = parse(PROGRAM);
    assert!(memory_planned().check(&module).is_err());
    run(&registry, "PlanMemory{n=16},EnterPhase{phase=0.5}", &mut module).expect("the memory is planned");
    assert!(module.to_text().starts_with("#![phase=0.5]"), "{module}");
    let module = parse(&module.to_text());
    memory_planned().check(&module).expect("a text keeps the plan");

    let claim_after = |pipeline: &str| {
        let mut module = module.clone();
        run(&registry, pipeline, &mut module).expect("no pass fails");
        module.phase().map(|phase| phase.to_string())
    };
    assert_eq!(claim_after("AttachGlobalSymbol,ToNonDataflow").as_deref(), Some("0.5"), "no value changes");
    assert_eq!(claim_after("DeadCodeElimination").as_deref(), Some("0"));
    assert_eq!(claim_after("BindSymbols{n=4}").as_deref(), Some("0"));
    assert_eq!(claim_after("DeadCodeElimination,PlanMemory{n=16}").as_deref(), Some("0"), "a claim is not raised");
}

#[test]
fn a_pass_that_needs_a_plan_is_refused_without_one() {
    let registry = registry();
    let needing = || Arc::new(ModulePass::new("Allocate", 0, |_, _| Ok(())).needing([MEMORY_PLANNED]));
    let cx = PassContext::builder().registry(Arc::clone(&registry)).build().expect("a context");
    let after = |pipeline: &str| {
        let before = parse_pipeline(&registry, pipeline).expect("a pipeline");
        let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(before), needing()];
        Sequential::new(passes)
            .expect("a sequence")
            .apply(&mut parse(PROGRAM), &cx)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    let refused = |what: &str, function: &str| {
        let help = "run PlanMemory after the passes that change functions";
        Err(format!(
            "pass `Allocate` failed: it needs `memory-planned`, but {what} (in @{function}); {help} [pipeline]"
        ))
    };
    assert_eq!(after("PlanMemory"), Ok(()));
    assert_eq!(after("PlanMemory,AttachGlobalSymbol"), Ok(()));
    assert_eq!(after("AttachGlobalSymbol"), refused("the memory of the function is not planned", "main"));
    let outdated = "the plan of the memory is not that of the function";
    assert_eq!(after("PlanMemory{n=16},DeadCodeElimination"), refused(outdated, "callee"));
}

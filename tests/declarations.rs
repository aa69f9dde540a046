//! The declarations of passes about properties are true on random programs. After a pass, the
//! properties that it establishes hold, and those that held before still hold unless it breaks
//! them. A pass cannot do without the properties that it needs. An order of passes is refused
//! exactly if it cannot work. The manager finds out that a pass has broken an observed property,
//! which no pass declares.

mod random_programs;

use std::collections::BTreeMap;
use std::sync::Arc;

use anfora::ir::{Expr, Module, OpRegistry, Phase, Source, parse_module, verify_module};
use anfora::manager::{Declare, FailureKind, ModulePass, Pass, PassRegistry, PhaseEntry, Sequential, parse_pipeline};
use anfora::passes::{MEMORY_PLANNED, memory_planned};
use random_programs::checking::{context, pool};
use random_programs::{parse, run};

/// The pipelines that run before a pass, so that each property holds somewhere.
const BEFORE: [&str; 11] = [
    "",
    "ToANormalForm",
    "ToANormalForm,LambdaLifting",
    "ToANormalForm,AttachGlobalSymbol",
    "ToANormalForm,PlanMemory",
    "ToANormalForm,ToNonDataflow",
    "ToANormalForm,FuseOpsByPattern{backend=a,patterns=\"e=exp(%x),m=multiply(%x, %y)\"},Normalize,ConvertToDataflow{min_size=1},PlanMemory,AttachGlobalSymbol",
    "ToANormalForm,LambdaLifting,AttachGlobalSymbol,ConvertToDataflow",
    "phase0,phase1,phase2.1,phase2.3",
    "phase0,phase1{precision=bfloat16,layout=NHWC},phase2.1,phase2.3",
    "ToGraphNormalForm",
];

/// Programs with a pool whose window is not known to have all elements, or with a norm whose scale
/// has an unknown extent. Where a pass makes a type more exact, the call can be decomposed, and
/// `primitive-operators` does not hold any longer. The casts are taken away ([`without_casts`]).
const INEXACT_TYPES: [&str; 11] = [
    "def @folded(%x: Tensor[(2, 3, 4), float32]) {
       let %l = astype(dense<Tensor[(3,), float32]>[2.0, 3.0, 4.0], dtype=int64);
       let %y = reshape(%x, %l);
       nn.max_pool1d(%y, pool_size=[4])
     }",
    "def @renamed(%x: Tensor[(2, 3, 4), float32]) {
       let %y = match_cast(%x, to=Tensor[(2, 3, ?), float32]);
       nn.max_pool1d(%y, pool_size=[4])
     }",
    "def @twice(%x: Tensor[(2, 3, 4), float32]) {
       let %a = exp(%x);
       let %b = match_cast(exp(%x), to=Tensor[(2, 3, ?), float32]);
       let %c = nn.max_pool1d(%b, pool_size=[4]);
       (%a, %c)
     }",
    "def @same_shape(%x: Tensor[(2, 3, 4), float32]) {
       let %s = shape_of(%x);
       let %y = match_cast(reshape(%x, %s), to=Tensor[(2, 3, ?), float32]);
       nn.max_pool1d(%y, pool_size=[4])
     }",
    "def @reordered(%x: Tensor[(2, 3, 4), float32], %w: Tensor[(3, 3, 1), float32]) {
       let %a = match_cast(nn.conv1d(%x, %w), to=Tensor[(2, 3, ?), float32]);
       nn.max_pool1d(%a, pool_size=[4])
     }",
    // The scale has an element for each channel, or for each group.
    "def @scaled(%x: Tensor[(2, 4, 5), float32], %s: Tensor[(4,), float32]) {
       let %a = match_cast(exp(%s), to=Tensor[(?,), float32]);
       nn.group_norm(%x, %a, %s, num_groups=2)
     }",
    "def @scaled_and_back(%x: Tensor[(2, 4, 5), float32], %s: Tensor[(4,), float32]) {
       let %a = match_cast(negative(%s), to=Tensor[(?,), float32]);
       let %b = negative(%a);
       nn.group_norm(%x, %b, %s, num_groups=2)
     }",
    "def private @pool(%y: Tensor[(2, 3, ?), float32]) { nn.max_pool1d(%y, pool_size=[4]) }
     def @called(%x: Tensor[(2, 3, 4), float32]) { @pool(%x) }",
    "def @lambda(%x: Tensor[(2, 3, 4), float32]) {
       let %f = fn(%y: Tensor[(2, 3, ?), float32]) { nn.max_pool1d(%y, pool_size=[4]) };
       %f(%x)
     }",
    "def @products(%x: Tensor[(2, 3, 4), float32], %v: Tensor[(4, 4), float32], %w: Tensor[(4, 4), float32]) {
       let %a = match_cast(matmul(%x, %v), to=Tensor[(2, 3, ?), float32]);
       let %b = matmul(%x, %w);
       let %c = nn.max_pool1d(%a, pool_size=[4]);
       (%b, %c)
     }",
    "def private @two(%x: Tensor[(2, 3, 4), float32]) -> (Tensor[(2, 3, ?), float32], Tensor[(2, 3, 4), float32]) {
       let %a = exp(%x);
       let %b = tanh(%x);
       (%a, %b)
     }
     def @half_used(%x: Tensor[(2, 3, 4), float32]) {
       let %r = @two(%x);
       let %a = %r.0;
       nn.max_pool1d(%a, pool_size=[4])
     }",
];

/// A program with a symbol, whose weights a new function prepares.
const WITH_WEIGHTS: &str =
    "def @f(%x: float32, %w: float32, num_input=1, global_symbol=\"f\") { let %e = exp(%w); add(%x, %e) }";

/// Returns the names of the checkable properties that hold of a module.
fn holding(registry: &PassRegistry, module: &Module) -> Vec<String> {
    let holds = registry.properties().iter().filter(|p| p.is_checkable() && p.check(module).is_ok());
    holds.map(|p| p.name().to_string()).collect()
}

fn excludes(registry: &PassRegistry, one: &str, other: &str) -> bool {
    let says = |a: &str, b: &str| registry.property(a).is_ok_and(|p| p.excludes().iter().any(|e| e == b));
    says(one, other) || says(other, one)
}

/// Runs a pass on a module that has the properties that the pass needs. Returns an error if the
/// pass does not do as it declares.
fn lie(registry: &Arc<PassRegistry>, pass: &dyn Pass, module: &Module) -> Result<(), String> {
    let info = pass.info();
    let held = holding(registry, module);
    let mut after = module.clone();
    // The phase is cleared: its claim would be lowered anyway, and EnterPhase has rules of its own.
    after.set_phase(None);
    let text = after.to_text();
    pass.apply(&mut after, &context(registry)).map_err(|e| format!("{e}\n{text}"))?;
    for name in &info.establishes {
        if let Err(found) = registry.property(name).expect("a property").check(&after) {
            return Err(format!("{} does not establish `{name}`: {}\n{text}\n{after}", info.name, found[0]));
        }
    }
    for name in held {
        let property = registry.property(&name).expect("a property");
        let broken = info.breaks.contains(&name) || info.establishes.iter().any(|e| excludes(registry, e, &name));
        if broken || property.is_observed() {
            continue;
        }
        if let Err(found) = property.check(&after) {
            return Err(format!("{} breaks `{name}` and does not say so: {}\n{text}\n{after}", info.name, found[0]));
        }
    }
    Ok(())
}

/// Binds the operand of each cast that a Let binds, instead of the cast. The variable keeps its
/// type, which is less exact than that of its value, as passes may leave it.
fn without_casts(module: &mut Module) {
    for key in module.order().to_vec() {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        for (id, expr) in body.exprs().collect::<Vec<_>>() {
            if let Expr::Let { var, value, body: rest, flags } = expr
                && cx.cast_type(body.expr(value)).is_some()
            {
                let value = body.inputs(value)[0];
                body.set_expr(id, Expr::Let { var, value, body: rest, flags });
            }
        }
    }
}

/// Returns programs of each kind, of which different properties hold.
fn subjects(registry: &Arc<PassRegistry>) -> Vec<Module> {
    let mut subjects = Vec::new();
    for program in pool().iter().take(40) {
        for before in BEFORE {
            let mut module = program.original.clone();
            run(registry, before, &mut module);
            subjects.push(module);
        }
    }
    for text in INEXACT_TYPES.into_iter().chain([WITH_WEIGHTS]) {
        let source = Source::new("inexact", text);
        let mut module = parse_module(source, anfora::ops::standard()).unwrap_or_else(|e| panic!("{text}: {}", e[0]));
        without_casts(&mut module);
        let primitive = registry.property("primitive-operators").expect("a property");
        assert!(primitive.check(&module).is_ok(), "{text}");
        subjects.push(module.clone());
        run(registry, "ConvertToDataflow{min_size=1}", &mut module);
        subjects.push(module);
    }
    subjects
}

#[test]
fn passes_do_to_properties_what_they_say() {
    let registry = anfora::passes::registry();
    let subjects = subjects(&registry);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    // Runs each pass on a copy of a program, and returns the properties that the program has.
    let look_at = |module: &Module| {
        let held = holding(&registry, module);
        for pass in registry.passes() {
            let pass = registry.make(pass.name()).expect("a registered pass");
            let can = pass.info().needs.iter().all(|n| held.contains(n) || n == "dataflow");
            if can && let Err(what) = lie(&registry, &*pass, module) {
                panic!("{what}");
            }
        }
        held
    };
    let (first, second) = subjects.split_at(subjects.len() / 2);
    let look_at_all = |modules: &[Module]| modules.iter().flat_map(look_at).collect::<Vec<String>>();
    let held = std::thread::scope(|scope| {
        let other = scope.spawn(|| look_at_all(second));
        let held = look_at_all(first);
        [held, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))].concat()
    });
    held.into_iter().for_each(|name| *seen.entry(name).or_default() += 1);
    for property in registry.properties().iter().filter(|p| p.is_checkable()) {
        let count = seen.get(property.name()).copied().unwrap_or(0);
        assert!(count >= 50 && count < subjects.len(), "`{}` holds of {count} of {}", property.name(), subjects.len());
    }
}

/// Each property that a pass declares to break can be broken by it. Otherwise the claims of modules
/// would be lowered for nothing.
#[test]
fn passes_break_what_they_say() {
    let registry = anfora::passes::registry();
    let subjects = subjects(&registry);
    let mut never = Vec::new();
    // These do nothing unless they are told what to do:
    // `what_is_given_from_outside_breaks_primitive_operators` and
    // `derivatives_break_what_they_say` do that.
    let told = ["BindParams", "BindSymbols", "Gradient"];
    for pass in registry.passes().iter().filter(|pass| !told.contains(&pass.name())) {
        let pass = registry.make(pass.name()).expect("a registered pass");
        for name in &pass.info().breaks {
            let property = registry.property(name).expect("a property");
            let breaks = |module: &&Module| {
                let mut after = (*module).clone();
                property.check(module).is_ok()
                    && pass.apply(&mut after, &context(&registry)).is_ok()
                    && property.check(&after).is_err()
            };
            if !subjects.iter().any(|m| breaks(&m)) {
                never.push(format!("{} never breaks `{name}`", pass.info().name));
            }
        }
    }
    assert!(never.is_empty(), "{}", never.join("; "));
}

/// Extents of symbols and values of parameters, which are given from outside, make types more
/// exact, too.
#[test]
fn what_is_given_from_outside_breaks_primitive_operators() {
    let registry = anfora::passes::registry();
    let property = registry.property("primitive-operators").expect("a property");
    let bound = "BindParams{function=f,params=\"%x=dense<Tensor[(1, 1, 2), float32]>[1.0, 2.0]\"}";
    for (name, pipeline, extents) in [("BindSymbols", "BindSymbols{m=2}", "1, 1, m"), ("BindParams", bound, "1, 1, ?")]
    {
        let text = format!("def @f(%x: Tensor[({extents}), float32]) {{ nn.max_pool1d(%x, pool_size=[2]) }}");
        let mut module = parse_module(Source::new("outside", text), anfora::ops::standard()).expect("a program");
        assert!(property.check(&module).is_ok());
        let pipeline = parse_pipeline(&registry, pipeline).unwrap_or_else(|e| panic!("{e}"));
        pipeline.apply(&mut module, &context(&registry)).unwrap_or_else(|e| panic!("{e}"));
        let breaks = registry.make(name).expect("a registered pass").info().breaks.clone();
        let declared = breaks.iter().any(|b| b == "primitive-operators");
        assert_eq!(property.check(&module).is_err(), declared, "{module}");
    }
}

/// The derivative of a branch is a nested function, and new functions have no symbol.
#[test]
fn derivatives_break_what_they_say() {
    let registry = anfora::passes::registry();
    let text = "def @f(%x: float32, global_symbol=\"f\") -> float32 {
       let %c = less(%x, 0f);
       if (%c) { sin(%x) } else { %x }
     }";
    let before = parse_module(Source::new("branch", text), anfora::ops::standard()).expect("a program");
    let pipeline = parse_pipeline(&registry, "Gradient{function=f}").expect("a pass");
    let mut after = before.clone();
    pipeline.apply(&mut after, &context(&registry)).unwrap_or_else(|e| panic!("{e}"));
    let breaks = registry.make("Gradient").expect("a registered pass").info().breaks.clone();
    let holds = |name: &str, module: &Module| registry.property(name).expect("a property").check(module).is_ok();
    for property in holding(&registry, &before) {
        assert_eq!(holds(&property, &after), !breaks.contains(&property), "{property}: {after}");
    }
    assert!(breaks.iter().all(|property| holds(property, &before)), "{before}");
}

/// On some programs without a property that it needs, a pass cannot do its work: it fails or,
/// without regions, does nothing.
#[test]
fn passes_need_what_they_say() {
    let registry = anfora::passes::registry();
    let subjects = subjects(&registry);
    for pass in registry.passes() {
        let pass = registry.make(pass.name()).expect("a registered pass");
        for name in &pass.info().needs {
            let without: Vec<&Module> = match registry.property(name).expect("a property") {
                p if p.is_checkable() => subjects.iter().filter(|m| p.check(m).is_err()).collect(),
                _ => {
                    let no_regions = registry.property("no-dataflow").expect("a property");
                    subjects.iter().filter(|m| no_regions.check(m).is_ok()).collect()
                }
            };
            let outcomes = without.iter().map(|m| {
                let mut module = (*m).clone();
                module.set_phase(None);
                pass.apply(&mut module, &context(&registry)).map(|o| o.is_changed())
            });
            let (mut failed, mut idle, mut all) = (0, 0, 0);
            for outcome in outcomes {
                all += 1;
                failed += usize::from(outcome.is_err());
                idle += usize::from(outcome.is_ok_and(|changed| !changed));
            }
            assert!(failed > 0 || idle == all && all > 50, "{} does without `{name}`", pass.info().name);
        }
    }
}

/// Passes that declare less than they do are found out.
#[test]
fn lies_are_seen() {
    let registry = anfora::passes::registry();
    let of = |name: &str, declare: fn(ModulePass) -> ModulePass| {
        let inner = registry.make(name).expect("a registered pass");
        let cx = context(&registry);
        declare(ModulePass::new(format!("Lying{name}"), 0, move |module, _| {
            Ok(inner.apply(module, &cx).map(|_| ())?)
        }))
    };
    let liars = [
        of("ToGraphNormalForm", |p| p.establishing(["no-dataflow"])),
        of("InlineFunctions", |p| p.needing(["anf"])),
        of("FuseOps", |p| p),
        of("CanonicalizeBindings", |p| p.needing(["anf"]).establishing(["no-nested-functions"])),
        of("ConvertToDataflow", |p| p.needing(["anf"])),
    ];
    let subjects = subjects(&registry);
    for liar in liars {
        let caught = subjects.iter().any(|module| {
            let held = holding(&registry, module);
            liar.info().needs.iter().all(|n| held.contains(n)) && lie(&registry, &liar, module).is_err()
        });
        assert!(caught, "{} is not caught", liar.info().name);
    }
}

/// Returns true if a sequence of passes can work. It does not use the method of the manager: it
/// compares names, pass after pass.
fn can_work(registry: &PassRegistry, names: &[&str]) -> bool {
    let mut broken: Vec<String> = Vec::new();
    for name in names {
        let pass = registry.make(name).expect("a registered pass");
        let info = pass.info();
        if info.needs.iter().any(|n| broken.contains(n)) {
            return false;
        }
        for property in registry.properties().iter().map(|p| p.name()) {
            let excluded = info.establishes.iter().any(|e| excludes(registry, e, property));
            if excluded || info.breaks.iter().any(|b| b == property) {
                broken.push(property.to_string());
            }
        }
        broken.retain(|b| !info.establishes.contains(b));
    }
    true
}

#[test]
fn orders_are_refused_just_where_they_cannot_work() {
    let registry = anfora::passes::registry();
    let names: Vec<&str> = registry.passes().iter().map(|p| p.name()).collect();
    let mut random = fastrand::Rng::with_seed(7);
    let cx = context(&registry);
    let (mut refused, mut fine) = (0, 0);
    for _ in 0..2000 {
        let row: Vec<&str> = (0..1 + random.usize(..6)).map(|_| names[random.usize(..names.len())]).collect();
        let text = row.join(",");
        let nested = match random.usize(..3) {
            0 => text.clone(),
            1 => format!("fixpoint<1>({text})"),
            _ => {
                let at = random.usize(..row.len() + 1);
                format!("fixpoint<1>({}),fixpoint<1>({})", row[..at].join(","), row[at..].join(","))
            }
        };
        let mut empty = Module::new(Arc::new(OpRegistry::new()));
        let done = parse_pipeline(&registry, &nested).expect("a pipeline").apply(&mut empty, &cx);
        let is_refused = matches!(&done, Err(e) if *e.kind() == FailureKind::Order);
        assert_eq!(is_refused, !can_work(&registry, &row), "{nested}");
        refused += usize::from(is_refused);
        fine += usize::from(!is_refused);
    }
    assert!(refused > 100 && fine > 100, "{refused} of the orders are refused, and {fine} are not");
}

/// Claims of phases stay true through any passes: a pass that breaks a property lowers them, and
/// the verifier finds nothing.
#[test]
fn claims_stay_true() {
    let registry = anfora::passes::registry();
    let mut lowered = 0;
    for program in pool().iter().take(30) {
        let mut claiming = program.original.clone();
        run(&registry, "phase0,phase1,phase2.1,phase2.3", &mut claiming);
        let claimed = claiming.phase();
        assert_eq!(claimed.map(|p| p.to_string()).as_deref(), Some("2.3"));
        for pass in registry.passes() {
            let mut module = claiming.clone();
            let pass = registry.make(pass.name()).expect("a registered pass");
            match pass.apply(&mut module, &context(&registry)) {
                Ok(_) => {}
                // A pass that needs regions fails, since there are none.
                Err(e) => assert_eq!((pass.info().name.as_str(), e.kind()), ("FuseOps", &FailureKind::Order), "{e}"),
            }
            assert!(module.phase() <= claimed);
            lowered += usize::from(module.phase() < claimed);
            if let Err(errors) = verify_module(&module) {
                panic!("{}: {}\n{claiming}\n{module}", pass.info().name, errors[0]);
            }
        }
    }
    assert!(lowered >= 60, "only {lowered} claims are lowered");
}

// ---- Properties that the manager observes ----

/// Returns a registry in which memory is planned from phase 0.5 on.
fn planned_registry() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    anfora::passes::register(&mut registry).expect("the names are free");
    let phase = Phase::new(0.5).expect("a number of a phase");
    registry.register_phase(PhaseEntry::new(phase, "planned").holding([MEMORY_PLANNED])).expect("the phase is new");
    Arc::new(registry)
}

const TWO_FUNCTIONS: &str = "def @main(%x: Tensor[(n,), float32]) {
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
    let registry = planned_registry();
    let mut module = parse(TWO_FUNCTIONS);
    assert!(memory_planned().check(&module).is_err());
    run(&registry, "PlanMemory{n=16},EnterPhase{phase=0.5}", &mut module);
    assert!(module.to_text().starts_with("#![phase=0.5]"), "{module}");
    let module = parse(&module.to_text());
    memory_planned().check(&module).expect("a text keeps the plan");

    let claim_after = |pipeline: &str| {
        let mut module = module.clone();
        run(&registry, pipeline, &mut module);
        module.phase().map(|phase| phase.to_string())
    };
    assert_eq!(claim_after("AttachGlobalSymbol,ToNonDataflow").as_deref(), Some("0.5"), "no value changes");
    assert_eq!(claim_after("DeadCodeElimination").as_deref(), Some("0"));
    assert_eq!(claim_after("BindSymbols{n=4}").as_deref(), Some("0"));
    assert_eq!(claim_after("DeadCodeElimination,PlanMemory{n=16}").as_deref(), Some("0"), "a claim is not raised");
}

#[test]
fn a_pass_that_needs_a_plan_is_refused_without_one() {
    let registry = planned_registry();
    let needing = || Arc::new(ModulePass::new("Allocate", 0, |_, _| Ok(())).needing([MEMORY_PLANNED]));
    let cx = context(&registry);
    let after = |pipeline: &str| {
        let before = parse_pipeline(&registry, pipeline).expect("a pipeline");
        let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(before), needing()];
        Sequential::new(passes)
            .expect("a sequence")
            .apply(&mut parse(TWO_FUNCTIONS), &cx)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    let refused = |what: &str, function: &str| {
        let help = "run PlanMemory after the passes that change functions";
        Err(format!(
            "pass `Allocate` failed: it needs `memory-planned`, but {what} (in @{function}) [sequential]; {help}"
        ))
    };
    assert_eq!(after("PlanMemory"), Ok(()));
    assert_eq!(after("PlanMemory,AttachGlobalSymbol"), Ok(()));
    assert_eq!(after("AttachGlobalSymbol"), refused("the memory of the function is not planned", "main"));
    let outdated = "the plan of the memory is not that of the function";
    assert_eq!(after("PlanMemory{n=16},DeadCodeElimination"), refused(outdated, "callee"));
}

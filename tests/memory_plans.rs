//! Plans of memory on random programs. No two storages that are live together overlap, by a naive
//! check of all pairs. A program that runs inside its plan, in one buffer whose dead parts are
//! overwritten, has the results that it has without.
//!
//! `ANFORA_CASES=1000` sets the number of programs.

mod random_programs;

use anfora::interp::{Interpreter, Limits, ValueId, Values};
use anfora::ir::Module;
use anfora::passes::{FunctionPlan, MemoryOptions, MemoryPlan, PlannedMemory, Storage, plan_memory};
use random_programs::checking::{Program, pool};
use random_programs::{call_main, parse, run};

/// Returns an error if a storage is outside of its arena, or overlaps another while both are live.
fn overlap(plan: &FunctionPlan) -> Result<(), String> {
    let placed: Vec<(&Storage, u64, u64)> =
        plan.storages().iter().filter_map(|s| Some((s, s.offset()?, s.offset()? + s.bytes?))).collect();
    for (i, &(a, start, end)) in placed.iter().enumerate() {
        if end > plan.scopes()[a.scope as usize].arena || a.first > a.last {
            return Err(format!("{a:?} is outside of the arena"));
        }
        for &(b, other_start, other_end) in &placed[..i] {
            let in_time = a.scope == b.scope && a.first <= b.last && b.first <= a.last;
            if in_time && start < other_end && other_start < end {
                return Err(format!("{a:?} overlaps {b:?}"));
            }
        }
    }
    // At the first position of some storage, as many bytes are live as ever.
    for (i, scope) in (0..).zip(plan.scopes()) {
        let own = || placed.iter().filter(|p| p.0.scope == i);
        let live_at = |at: u32| own().filter(|p| p.0.first <= at && at <= p.0.last).map(|p| p.2 - p.1).sum::<u64>();
        let live = own().map(|p| live_at(p.0.first)).max().unwrap_or(0);
        if scope.live != live || scope.arena < live {
            return Err(format!("{live} bytes are live at once, not {} of {}", scope.live, scope.arena));
        }
    }
    Ok(())
}

/// Runs a program inside its plan, and compares the outcomes with those of runs without.
fn run_inside(program: &Program, module: &Module, plan: &MemoryPlan) -> Result<usize, String> {
    let mut bytes = 0;
    for (inputs, _) in &program.runs {
        let expected = call_main(module, inputs).map_err(|e| e.to_string())?;
        let mut values = Values::new();
        let arguments: Vec<ValueId> = inputs.iter().map(|a| values.tensor(a.clone())).collect();
        let limits = Limits { steps: 1 << 20, ..Limits::default() };
        let mut memory = PlannedMemory::new(module, plan);
        let outcome = Interpreter::new(module).limits(limits).call_mirrored("main", values, &arguments, &mut memory);
        match outcome {
            Ok(outcome) if outcome.same(&expected) => bytes += memory.bytes(),
            Ok(_) => return Err("the results differ".to_string()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(bytes)
}

#[test]
fn programs_run_inside_their_plans() {
    let registry = anfora::passes::registry();
    let (mut inside, mut shared, mut in_function) = (0, 0, [0; 4]);
    for program in pool() {
        for pipeline in ["", "O3"] {
            let mut module = program.normal.clone();
            run(&registry, pipeline, &mut module);
            let alignment = [1, 8, 64][program.seed as usize % 3];
            let options = MemoryOptions { alignment, ..MemoryOptions::default() };
            let plan = plan_memory(&module, &options).expect("a program in A-normal form");
            for function in plan.functions() {
                overlap(function).unwrap_or_else(|what| panic!("{what}\n{module}"));
                shared += function.scopes().iter().filter(|s| s.arena < s.separate).count();
                in_function[0] += function.scopes().len() - 1;
                in_function[1] += function.unbounded();
                in_function[2] += function.scopes().iter().map(|s| s.unplanned_calls as usize).sum::<usize>();
                in_function[3] += usize::from(function.own_scope().arena > function.own_scope().live);
            }
            let (size, seed) = (program.size, program.seed);
            inside += run_inside(program, &module, &plan)
                .unwrap_or_else(|what| panic!("{what}: ANFORA_SIZE={size} ANFORA_SEED={seed} {pipeline}\n{module}"));
        }
    }
    assert!(inside > 0 && shared > 0, "{inside} bytes in plans, {shared} plans share memory");
    assert!(in_function.iter().all(|&n| n > 0), "fns, unbounded, unplanned calls, larger than live: {in_function:?}");
}

/// Returns a transformer of some layers, with its weights as parameters.
fn transformer(layers: usize) -> Module {
    let mut text = String::from(
        "def @main(%x: Tensor[(128, 256), float32], %scale: Tensor[(256,), float32], %w: Tensor[(256, 256), float32], \
         %up: Tensor[(256, 1024), float32], %down: Tensor[(1024, 256), float32]) {\n",
    );
    let mut input = "%x".to_string();
    for i in 0..layers {
        let mut bind = |name: &str, value: &str| text.push_str(&format!("  let %{name}{i} = {value};\n"));
        bind("norm", &format!("nn.layer_norm({input}, %scale)"));
        for part in ["q", "k", "v"] {
            let heads = "dense<Tensor[(3,), int64]>[128, 8, 32]";
            bind(&format!("{part}_all"), &format!("matmul(%norm{i}, %w)"));
            bind(&format!("{part}_split"), &format!("reshape(%{part}_all{i}, {heads})"));
            let axes = if part == "k" { "[1, 2, 0]" } else { "[1, 0, 2]" };
            bind(part, &format!("permute_dims(%{part}_split{i}, axes={axes})"));
        }
        bind("scores", &format!("matmul(%q{i}, %k{i})"));
        bind("scaled", &format!("multiply(%scores{i}, 0.125f)"));
        bind("weights", &format!("nn.softmax(%scaled{i})"));
        bind("context", &format!("matmul(%weights{i}, %v{i})"));
        bind("moved", &format!("permute_dims(%context{i}, axes=[1, 0, 2])"));
        bind("joined", &format!("reshape(%moved{i}, dense<Tensor[(2,), int64]>[128, 256])"));
        bind("projected", &format!("matmul(%joined{i}, %w)"));
        bind("attended", &format!("add(%projected{i}, {input})"));
        bind("normed", &format!("nn.layer_norm(%attended{i}, %scale)"));
        bind("wide", &format!("matmul(%normed{i}, %up)"));
        bind("active", &format!("nn.gelu(%wide{i})"));
        bind("narrow", &format!("matmul(%active{i}, %down)"));
        bind("out", &format!("add(%narrow{i}, %attended{i})"));
        input = format!("%out{i}");
    }
    text.push_str(&format!("  {input}\n}}\n"));
    parse(&text)
}

#[test]
fn the_arena_of_a_transformer_is_near_what_is_live() {
    for layers in [1, 2, 12] {
        let module = transformer(layers);
        let plan = plan_memory(&module, &MemoryOptions::default()).expect("a program in A-normal form");
        let main = plan.function(module.find("main").expect("it is defined")).expect("it has a body");
        overlap(main).expect("a plan without overlaps");
        let scope = main.own_scope();
        assert!(scope.arena * 10 <= scope.live * 11, "{} bytes for {} that are live", scope.arena, scope.live);
        assert!(scope.arena * 4 < scope.separate, "{} bytes of {}", scope.arena, scope.separate);
    }
}

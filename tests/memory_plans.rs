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
use random_programs::{call_main, run};

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
            for alignment in [1, 8, 64] {
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
                inside += run_inside(program, &module, &plan).unwrap_or_else(|what| {
                    panic!("{what}: ANFORA_SIZE={size} ANFORA_SEED={seed} {pipeline}\n{module}")
                });
            }
        }
    }
    assert!(inside > 0 && shared > 0, "{inside} bytes in plans, {shared} plans share memory");
    assert!(in_function.iter().all(|&n| n > 0), "fns, unbounded, unplanned calls, larger than live: {in_function:?}");
}

//! Runs inside a plan of memory find plans that are wrong.

use anfora_interp::{Interpreter, Limits, Values};
use anfora_ir::Module;
use anfora_passes::{
    FunctionPlan, MemoryOptions, MemoryPlan, PlannedMemory, Storage, StorageHome, plan_memory, to_a_normal_form,
};
use anfora_testing::programs::{Random, Vocabulary};

/// Returns a random program in A-normal form.
fn program(seed: u64) -> Module {
    let mut module = Random { vocabulary: Vocabulary::Whole, size: 1 + (seed as usize * 37) % 120, seed }.module();
    for key in module.order().to_vec() {
        let (function, cx) = module.get_mut(key).expect("it is in the order");
        to_a_normal_form(cx, &mut function.body);
    }
    module
}

/// Runs a program inside a plan. Returns the error of the memory, if there is one.
fn overwritten(module: &Module, plan: &MemoryPlan) -> Option<String> {
    let main = module.find("main").and_then(|key| module.get(key)).expect("a program has a main");
    let mut values = Values::new();
    let arguments: Vec<_> = (0..)
        .zip(main.body.params())
        .map(|(i, param)| {
            let ty = main.body.ty(param.expr());
            let dtype = module.cx.types.as_tensor(ty).expect("inputs are tensors").dtype;
            let shape = module.cx.types.static_shape(ty).expect("inputs have constant shapes");
            values.tensor(anfora_interp::random_tensor(dtype, &shape, i).expect("it is small"))
        })
        .collect();
    let limits = Limits { steps: 1 << 20, ..Limits::default() };
    let mut memory = PlannedMemory::new(module, plan);
    let outcome = Interpreter::new(module).limits(limits).call_mirrored("main", values, &arguments, &mut memory);
    outcome.err().map(|e| e.to_string()).filter(|e| e.contains("overwritten"))
}

/// Returns the number of programs whose runs show that their plans, edited, are wrong.
fn caught(edit: impl Fn(&Module, &mut FunctionPlan)) -> usize {
    (0..40)
        .filter(|&seed| {
            let module = program(seed);
            let mut plan = plan_memory(&module, &MemoryOptions::default()).expect("it is in A-normal form");
            plan.functions_mut().for_each(|plan| edit(&module, plan));
            overwritten(&module, &plan).is_some()
        })
        .count()
}

/// Moves a storage of an arena to its beginning.
fn move_to_start(storage: &mut Storage) {
    if let StorageHome::Arena { offset } = &mut storage.home {
        *offset = 0;
    }
}

#[test]
fn runs_find_wrong_plans() {
    assert_eq!(caught(|_, _| {}), 0, "plans are right");
    let workspaces = |module: &Module, plan: &FunctionPlan| -> Vec<u32> {
        let function = module.get(plan.key()).expect("a planned function");
        function.body.exprs().filter_map(|(id, _)| plan.workspace(id)).collect()
    };
    let found = [
        caught(|_, plan| plan.storages_mut().iter_mut().for_each(move_to_start)),
        caught(|module, plan| {
            let moved = workspaces(module, plan);
            moved.into_iter().for_each(|id| move_to_start(&mut plan.storages_mut()[id as usize]));
        }),
        // A storage is free one position too early.
        caught(|_, plan| plan.storages_mut().iter_mut().for_each(|s| s.last = s.last.saturating_sub(2))),
    ];
    assert!(found.iter().all(|&n| n > 0), "programs that show each mistake: {found:?}");
}

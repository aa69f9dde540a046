//! The memory that passes use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anfora_ir::Module;
use anfora_manager::{AllocationCounts, Instrument, Memory, ModulePass, Pass, PassContext, Sequential};
use expect_test::expect;

use crate::support::{add_function, idle, module};

fn with(memory: &Arc<Memory>) -> PassContext {
    PassContext::builder().instrument(Arc::clone(memory) as Arc<dyn Instrument>).build().unwrap()
}

/// Makes a pass that adds functions, and ends with the result of `end`.
fn grow(name: &str, end: fn() -> Result<(), anfora_manager::PassError>) -> ModulePass {
    ModulePass::new(name, 0, move |module: &mut Module, _| {
        let from = module.order().len();
        (from..from + 100).for_each(|n| add_function(module, &format!("f{n}")));
        end()
    })
}

#[test]
fn each_run_says_what_the_module_held_before_and_after() {
    let memory = Arc::new(Memory::new());
    let cx = with(&memory);
    let passes = Sequential::new(vec![
        Arc::new(grow("grow", || Ok(()))),
        Arc::new(idle("idle", 0)),
        Arc::new(grow("fails", || Err("no".into()))),
    ])
    .unwrap();
    let mut module = module();
    let before = module.capacity_bytes();
    passes.apply(&mut module, &cx).unwrap_err();
    let runs = memory.runs();
    let said: Vec<_> = runs.iter().map(|r| (r.name.as_str(), r.depth, r.failed)).collect();
    assert_eq!(said, [("sequential", 0, true), ("grow", 1, false), ("idle", 1, false), ("fails", 1, true)]);
    assert_eq!(runs[0].before, before);
    assert!(runs[1].after.unwrap() > before);
    assert_eq!(Some(runs[2].before), runs[2].after);
    // The bodies of the functions that a failing pass added are gone, but the tables keep their
    // size.
    let bodies = |module: &Module| -> usize { module.functions().map(|(_, f)| f.body.capacity_bytes()).sum() };
    assert!(runs[3].after.unwrap() < runs[3].before + bodies(&module));
    assert_eq!(runs[0].after, Some(module.capacity_bytes()));
    let json = memory.to_json();
    assert_eq!(json["runs"][1]["after_bytes"].as_u64(), runs[1].after.map(|n| n as u64));
    assert_eq!((&json["runs"][1]["peak_bytes"], &json["runs_left_out"]), (&serde_json::Value::Null, &0.into()));
}

#[test]
fn a_probe_says_what_is_allocated_and_what_was_in_use_at_most() {
    // A process that allocates one block more each time it is asked, and whose peak is high only at
    // the third time.
    let asked = AtomicU64::new(0);
    let memory = Arc::new(Memory::with_probe(move || {
        let n = asked.fetch_add(1, Ordering::Relaxed);
        AllocationCounts { allocations: Some(10 * n), peak_bytes: Some(if n == 3 { 5_000_000 } else { 1000 }) }
    }));
    let cx = with(&memory);
    let inner = Sequential::new(vec![Arc::new(idle("a", 0)), Arc::new(idle("b", 0))]).unwrap();
    let passes = Sequential::new(vec![Arc::new(inner), Arc::new(idle("c", 0))]).unwrap();
    passes.apply(&mut module(), &cx).unwrap();
    let said: Vec<_> = memory.runs().into_iter().map(|r| (r.name, r.allocations, r.peak_bytes)).collect();
    let row = |name: &str, allocations, peak| (name.to_string(), Some(allocations), Some(peak));
    assert_eq!(
        said,
        [
            row("sequential", 90, 5_000_000),
            row("sequential", 50, 5_000_000),
            // The third answer is the one at the end of this pass.
            row("a", 10, 5_000_000),
            row("b", 10, 1000),
            row("c", 10, 1000)
        ]
    );
    let text: String = memory.to_string().lines().map(|l| format!("|{}\n", &l[33..])).collect();
    assert!(memory.to_string().lines().all(|l| l.chars().count() <= 80));
    expect![[r#"
        |       peak     allocs  pass
        |    4.8 MiB         90  sequential
        |    4.8 MiB         50    sequential
        |    4.8 MiB         10      a
        |     1000 B         10      b
        |     1000 B         10    c
    "#]]
    .assert_eq(&text);
}

#[test]
fn nothing_ran() {
    assert_eq!(Memory::new().to_string(), "no pass ran\n");
}

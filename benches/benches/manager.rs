//! The cost of the pass manager itself: passes that do nothing, on a module without functions, and
//! contexts that are entered and exited.

use std::hint::black_box;
use std::sync::Arc;

use anfora::ir::{Module, OpRegistry};
use anfora::manager::{FunctionPass, Instrument, ModulePass, Pass, PassContext, Sequential, run_pass};
use criterion::{Criterion, criterion_group, criterion_main};

/// An instrument that does nothing.
struct Idle;

impl Instrument for Idle {
    fn name(&self) -> &str {
        "idle"
    }
}

fn module_pass() -> ModulePass {
    ModulePass::new("idle", 0, |_, _| Ok(()))
}

fn function_pass() -> FunctionPass {
    FunctionPass::new("idle", 0, |_, _, _| Ok(()))
}

fn manager(c: &mut Criterion) {
    let ten: Vec<Arc<dyn Pass>> = (0..10).map(|_| Arc::new(module_pass()) as Arc<dyn Pass>).collect();
    let sequence = Sequential::new(ten).expect("it does not nest");
    let (module_pass, function_pass) = (module_pass(), function_pass());
    let passes: [(&str, &dyn Pass); 3] =
        [("module-pass", &module_pass), ("function-pass", &function_pass), ("sequence-of-10", &sequence)];
    let plain = PassContext::new();
    let watched = PassContext::builder().instrument(Arc::new(Idle)).build().expect("a context");
    for (kind, cx) in [("plain", plain), ("one-instrument", watched)] {
        let mut group = c.benchmark_group(format!("manager/{kind}"));
        let mut module = Module::new(Arc::new(OpRegistry::new()));
        for (name, pass) in passes {
            group.bench_function(name, |b| {
                b.iter(|| run_pass(black_box(pass), &mut module, &cx).expect("it does nothing"));
            });
        }
        group.bench_function("enter-exit", |b| {
            b.iter(|| black_box(&cx).enter().and_then(|guard| guard.exit()).expect("nothing fails"));
        });
        group.finish();
    }
}

criterion_group!(benches, manager);
criterion_main!(benches);

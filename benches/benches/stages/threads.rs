//! Function passes on one thread and on two.

use anfora::ir::Module;
use anfora_benches::programs::functions;
use anfora_benches::sizes::on_clones;
use anfora_benches::{PIPELINE, context, run_under};
use criterion::{BenchmarkId, Criterion, Throughput};

const PASSES: [(&str, &str); 6] = [
    ("FoldConstant", "FoldConstant"),
    ("EliminateCommonSubexpr", "EliminateCommonSubexpr"),
    ("CanonicalizeBindings", "CanonicalizeBindings"),
    ("Normalize", "Normalize"),
    ("ToGraphNormalForm", "ToGraphNormalForm"),
    ("pipeline", PIPELINE),
];

/// The numbers of functions, and the numbers of bindings of each function.
const MODULES: [(usize, usize); 2] = [(10_000, 100), (1_000, 1_000)];

/// Runs a group of benches for each pass, over the sizes of functions and the numbers of threads.
pub(crate) fn benches(c: &mut Criterion) {
    let registry = anfora::passes::registry();
    let modules =
        MODULES.map(|(count, n)| (n, count * n, std::cell::LazyCell::new(move || -> Module { functions(count, n) })));
    for (name, pipeline) in PASSES {
        let mut group = c.benchmark_group(format!("threads/{name}"));
        for (n, bindings, module) in &modules {
            group.throughput(Throughput::Elements(*bindings as u64));
            for threads in [1, 2] {
                let context = context(&registry, threads);
                group.bench_function(BenchmarkId::new(format!("functions of {n}"), threads), |b| {
                    on_clones(b, module, |m| run_under(&context, pipeline, m));
                });
            }
        }
        group.finish();
    }
}

//! Passes over functions, reading and printing, on one thread and on two.

use anfora::ir::{Module, PrintOptions, Source, parse_module_on, write_module_on};
use anfora_benches::programs::functions;
use anfora_benches::sizes::on_clones;
use anfora_benches::{PIPELINE, context, run_under};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};

const PASSES: [(&str, &str); 7] = [
    ("FoldConstant", "FoldConstant"),
    ("EliminateCommonSubexpr", "EliminateCommonSubexpr"),
    ("DeadCodeElimination", "DeadCodeElimination"),
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
    for (n, bindings, module) in &modules {
        let text = std::cell::LazyCell::new(|| Source::new("functions.anf", module.to_text()));
        for threads in [1, 2] {
            let id = BenchmarkId::new(format!("functions of {n}"), threads);
            let mut group = c.benchmark_group("threads/parse");
            group.throughput(Throughput::Elements(*bindings as u64));
            group.bench_function(id.clone(), |b| {
                let read = |source| parse_module_on(threads, source, anfora::ops::standard()).expect("it was printed");
                b.iter_batched(|| text.clone(), read, BatchSize::PerIteration);
            });
            group.finish();
            let mut group = c.benchmark_group("threads/print");
            group.throughput(Throughput::Elements(*bindings as u64));
            group.bench_function(id, |b| {
                let print = || write_module_on(threads, module, &PrintOptions::default(), &mut std::io::sink());
                b.iter(|| print().expect("a sink takes all text"));
            });
            group.finish();
        }
    }
}

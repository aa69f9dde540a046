//! The benchmark program through every stage, in bindings a second.

use std::time::Duration;

use anfora_benches::{PIPELINE, chain, chain_text, parse, run, verify};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

fn text(c: &mut Criterion) {
    let mut group = c.benchmark_group("text");
    for n in SIZES {
        group.throughput(Throughput::Elements(n as u64));
        let source = chain_text(n);
        let module = chain(n);
        group.bench_function(BenchmarkId::new("parse", n), |b| b.iter_with_large_drop(|| parse(&source)));
        group.bench_function(BenchmarkId::new("print", n), |b| b.iter_with_large_drop(|| module.to_text()));
        group.bench_function(BenchmarkId::new("verify", n), |b| b.iter(|| verify(&module)));
    }
    group.finish();
}

fn passes(c: &mut Criterion) {
    let registry = anfora::passes::registry();
    let mut group = c.benchmark_group("passes");
    let stages = [
        ("FoldConstant", "FoldConstant"),
        ("fold-and-canonicalize", "FoldConstant,CanonicalizeBindings"),
        ("EliminateCommonSubexpr", "EliminateCommonSubexpr"),
        ("DeadCodeElimination", "DeadCodeElimination"),
        ("pipeline", PIPELINE),
    ];
    for n in SIZES {
        group.throughput(Throughput::Elements(n as u64));
        let module = chain(n);
        for (name, pipeline) in stages {
            group.bench_function(BenchmarkId::new(name, n), |b| {
                b.iter_batched_ref(|| module.clone(), |m| run(&registry, pipeline, m), BatchSize::LargeInput);
            });
        }
        group.bench_function(BenchmarkId::new("pipeline-verified", n), |b| {
            b.iter_batched_ref(
                || module.clone(),
                |m| {
                    run(&registry, PIPELINE, m);
                    verify(m);
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = text, passes
}
criterion_main!(benches);

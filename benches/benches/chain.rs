//! The benchmark program through every stage, and other shapes through the passes that they are for, in bindings a second.

use std::time::Duration;

use anfora_benches::{PIPELINE, chain, chain_text, chains, context, parse, run, run_under, shape, verify};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

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

/// A thousand functions of so many bindings each, on one thread and on two.
fn threads(c: &mut Criterion) {
    let registry = anfora::passes::registry();
    let mut group = c.benchmark_group("threads");
    let passes = ["FoldConstant", "EliminateCommonSubexpr", "CanonicalizeBindings", "Normalize", "ToGraphNormalForm"];
    for bindings in [100, 1000] {
        let module = chains(1000, bindings);
        group.throughput(Throughput::Elements(1000 * bindings as u64));
        for pass in passes {
            for threads in [1, 2] {
                let context = context(&registry, threads);
                group.bench_function(BenchmarkId::new(format!("{pass} on functions of {bindings}"), threads), |b| {
                    b.iter_batched_ref(|| module.clone(), |m| run_under(&context, pass, m), BatchSize::LargeInput);
                });
            }
        }
    }
    group.finish();
}

/// A pass, the shapes that it is timed on, and how many bindings a unit of the shape's size has.
const WITH_SHAPES: [(&str, &str, usize); 9] = [
    ("FoldConstant", "const", 1),
    ("FoldConstant", "many-consts", 1),
    ("ToANormalForm", "nested-call", 1),
    ("ToGraphNormalForm", "chain", 1),
    ("ConvertToDataflow", "siblings", 2),
    ("LambdaLifting", "siblings", 2),
    ("LambdaLifting", "nested-fn", 2),
    ("FuseOps", "chain", 1),
    ("FuseOps", "region-chain", 1),
];

fn shapes(c: &mut Criterion) {
    let registry = anfora::passes::registry();
    let mut group = c.benchmark_group("shapes");
    for n in SIZES {
        for (pass, name, bindings) in WITH_SHAPES {
            // A shape of two bindings a unit is built half as large.
            let Some(module) = shape(name, n / bindings) else { continue };
            group.throughput(Throughput::Elements(n as u64));
            group.bench_function(BenchmarkId::new(format!("{pass} on {name}"), n), |b| {
                b.iter_batched_ref(|| module.clone(), |m| run(&registry, pass, m), BatchSize::LargeInput);
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = text, passes, threads, shapes
}
criterion_main!(benches);

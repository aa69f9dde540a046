//! Operations on modules as they are: building, reading, writing, verifying, comparing, hashing,
//! cloning, dropping and compacting.

use anfora::ir::{alpha_equal, module_hash};
use anfora_benches::programs::{CHAIN, FUNCTIONS};
use anfora_benches::sizes::{SIZES, bench, bench_prepared, on_clones};
use anfora_benches::{parse, run, verify};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};

pub(crate) fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("build");
    for n in SIZES {
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new(CHAIN.name, n), |b| b.iter_with_large_drop(|| CHAIN.build(n)));
    }
    group.finish();

    let both = [CHAIN, FUNCTIONS];
    bench_prepared(
        c,
        "parse",
        &both,
        |module| module.to_text(),
        |b, text| {
            b.iter_with_large_drop(|| parse(text));
        },
    );
    bench(c, "print", &both, |b, module| b.iter_with_large_drop(|| module.to_text()));
    bench(c, "verify", &both, |b, module| b.iter(|| verify(module)));

    bench_prepared(
        c,
        "equality",
        &[CHAIN],
        |module| (module.clone(), module),
        |b, (left, right)| {
            b.iter(|| assert!(alpha_equal(left, right)));
        },
    );
    bench(c, "hash", &[CHAIN], |b, module| b.iter(|| module_hash(module)));
    bench(c, "clone", &[CHAIN], |b, module| b.iter_with_large_drop(|| module.clone()));
    bench(c, "drop", &[CHAIN], |b, module| b.iter_batched(|| module.clone(), drop, BatchSize::LargeInput));

    // Dead nodes were removed from the chain and are still in the arenas.
    let registry = anfora::passes::registry();
    bench_prepared(
        c,
        "compact",
        &[CHAIN],
        |mut module| {
            run(&registry, "EliminateCommonSubexpr,DeadCodeElimination", &mut module);
            module
        },
        |b, module| on_clones(b, module, |m| m.compact().expect("the module is well-formed")),
    );
}

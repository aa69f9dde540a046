//! A visit and a rewrite: by recursion over a boxed tree, by the engine of `visit`, and by its
//! functor.

use std::time::Duration;

use anfora::ir::{ExprId, SideTable};
use anfora_benches::boxed_tree::Program;
use anfora_benches::rewrites::{Subject, mutate_products, recurse_products, recurse_uses, walk_uses};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

type Make = fn(usize) -> Subject;

const PROGRAMS: [(&str, Make); 2] = [("chain", Subject::chain), ("nest", Subject::nest)];

fn copy(subject: &Subject) -> Subject {
    Subject { module: subject.module.clone(), ..*subject }
}

fn uses(c: &mut Criterion) {
    let mut group = c.benchmark_group("count-uses");
    for n in SIZES {
        group.throughput(Throughput::Elements(n as u64));
        for (name, make) in PROGRAMS {
            let subject = make(n);
            let (body, tree) = (subject.body(), Program::of(subject.body()));
            let id = |how: &str| BenchmarkId::new(format!("{name}/{how}"), n);
            let by = |table: SideTable<ExprId, u32>| body.exprs().map(|(id, _)| table[id]).collect::<Vec<u32>>();
            assert_eq!(by(walk_uses(body)), tree.uses(body.len()));
            assert_eq!(by(recurse_uses(body)), tree.uses(body.len()));
            group.bench_function(id("boxed-tree"), |b| b.iter(|| tree.uses(body.len())));
            group.bench_function(id("walk"), |b| b.iter(|| walk_uses(body)));
            group.bench_function(id("functor"), |b| b.iter(|| recurse_uses(body)));
        }
    }
    group.finish();
}

fn products(c: &mut Criterion) {
    let mut group = c.benchmark_group("multiply-by-one");
    for n in SIZES {
        group.throughput(Throughput::Elements(n as u64));
        for (name, make) in PROGRAMS {
            let subject = make(n);
            let (len, multiply, one) = (subject.body().len(), subject.multiply, subject.one);
            let id = |how: &str| BenchmarkId::new(format!("{name}/{how}"), n);

            let tree = || Program::of(subject.body());
            let (mut by_engine, mut by_functor) = (copy(&subject), copy(&subject));
            let (mut in_place, mut rebuilt) = (tree(), tree());
            mutate_products(&mut by_engine);
            recurse_products(&mut by_functor);
            in_place.rewrite(len, multiply, one);
            rebuilt.rebuild(len, multiply, one);
            let expected = Program::of(by_engine.body()).flat();
            assert_ne!(expected, tree().flat());
            assert_eq!(expected, Program::of(by_functor.body()).flat());
            assert_eq!(expected, in_place.flat());
            assert_eq!(expected, rebuilt.flat());
            drop((by_engine, by_functor, in_place, rebuilt, expected));

            group.bench_function(id("boxed-tree"), |b| {
                b.iter_batched_ref(tree, |t| t.rewrite(len, multiply, one), BatchSize::LargeInput);
            });
            group.bench_function(id("boxed-tree-rebuilt"), |b| {
                b.iter_batched_ref(tree, |t| t.rebuild(len, multiply, one), BatchSize::LargeInput);
            });
            group.bench_function(id("mutate"), |b| {
                b.iter_batched_ref(|| copy(&subject), mutate_products, BatchSize::LargeInput);
            });
            group.bench_function(id("functor"), |b| {
                b.iter_batched_ref(|| copy(&subject), recurse_products, BatchSize::LargeInput);
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = uses, products
}
criterion_main!(benches);

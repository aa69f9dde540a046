//! A stage on programs of several sizes.

use std::cell::LazyCell;
use std::time::Duration;

use anfora::ir::Module;
use criterion::{BatchSize, Bencher, BenchmarkId, Criterion, Throughput};

use crate::programs::Program;

/// The numbers of bindings of the programs.
pub const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Returns the settings of the benches: the number of samples and the time that is measured.
pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

/// Runs a group of benches for a stage. Calls `time` for each program and size with the result of
/// `prepare`, which is not timed. Programs are made only for benches that run.
pub fn bench_prepared<T>(
    c: &mut Criterion,
    stage: &str,
    programs: &[Program],
    prepare: impl Fn(Module) -> T,
    mut time: impl FnMut(&mut Bencher<'_>, &T),
) {
    let mut group = c.benchmark_group(stage);
    for program in programs {
        for n in SIZES.into_iter().filter(|&n| program.reaches(n)) {
            let input = LazyCell::new(|| prepare(program.build(n)));
            group.throughput(Throughput::Elements(n as u64));
            group.bench_function(BenchmarkId::new(program.name, n), |b| time(b, &input));
        }
    }
    group.finish();
}

/// Does the same as [`bench_prepared`], with the program itself.
pub fn bench(c: &mut Criterion, stage: &str, programs: &[Program], time: impl FnMut(&mut Bencher<'_>, &Module)) {
    bench_prepared(c, stage, programs, |module| module, time);
}

/// Times work on a clone. Making and dropping the clone is not timed.
pub fn on_clones<R>(b: &mut Bencher<'_>, module: &Module, mut work: impl FnMut(&mut Module) -> R) {
    b.iter_batched_ref(|| module.clone(), &mut work, BatchSize::LargeInput);
}

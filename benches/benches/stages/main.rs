//! Every stage on the benchmark program, and on the programs that it is meant for, in bindings per
//! second. A group is a stage. A bench in it is a program and its number of bindings.

mod models;
mod passes;
mod representation;
mod threads;
mod visiting;

use anfora_benches::sizes::criterion;
use criterion::{criterion_group, criterion_main};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

criterion_group! {
    name = benches;
    config = criterion();
    targets = representation::benches, visiting::benches, passes::each, passes::pipelines, models::benches, threads::benches
}
criterion_main!(benches);

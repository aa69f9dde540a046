//! A walk, a visitor that does nothing, and a mutator that changes nothing.

use std::convert::Infallible;

use anfora::ir::{Body, Cursor, Editor, Module};
use anfora::visit::{Mutator, RewriteError, Visitor, mutate, walk};
use anfora_benches::programs::CHAIN;
use anfora_benches::sizes::{bench, on_clones};
use criterion::Criterion;

/// A visitor and mutator that does nothing.
struct Idle;

impl Visitor for Idle {
    type Break = Infallible;
}

impl Mutator for Idle {
    type Error = RewriteError;
}

fn only_body(module: &Module) -> &Body {
    let (_, function) = module.functions().next().expect("the benchmark program has a function");
    &function.body
}

fn steps(body: &Body) -> usize {
    let mut cursor = Cursor::new(body);
    let mut steps = 0;
    while cursor.next(body).is_some() {
        steps += 1;
    }
    steps
}

fn mutate_nothing(module: &mut Module) {
    let key = module.order()[0];
    let (function, cx) = module.get_mut(key).expect("the benchmark program has a function");
    mutate(&mut Editor::new(cx, &mut function.body), &mut Idle).expect("nothing changes");
}

pub(crate) fn benches(c: &mut Criterion) {
    bench(c, "walk", &[CHAIN], |b, module| b.iter(|| steps(only_body(module))));
    bench(c, "visit", &[CHAIN], |b, module| b.iter(|| walk(only_body(module), &mut Idle)));
    bench(c, "mutate", &[CHAIN], |b, module| on_clones(b, module, mutate_nothing));
}

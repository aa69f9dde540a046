//! Operations on modules as they are: building, reading, writing, verifying, comparing, hashing,
//! cloning, dropping and compacting.

use anfora::ir::{Editor, Expr, Module, alpha_equal, diff, module_hash};
use anfora::visit::{Link, bindings};
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
    bench_prepared(
        c,
        "diff",
        &[CHAIN],
        |module| {
            let mut other = module.clone();
            change_one_binding(&mut other);
            (module, other)
        },
        |b, (left, right)| b.iter(|| assert_eq!(diff(left, right).functions.len(), 1)),
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

/// Makes the binding in the middle of a function call another operator.
fn change_one_binding(module: &mut Module) {
    let key = module.order()[0];
    let (function, cx) = module.get_mut(key).expect("it is in the order");
    let mut editor = Editor::new(cx, &mut function.body);
    let all: Vec<_> = bindings(editor.body, editor.body.root()).collect();
    let middle = all[all.len() / 2];
    assert!(matches!(editor.body.expr(middle.value), Expr::CallOp { .. }), "chains consist of calls");
    let operands = editor.body.inputs(middle.value).to_vec();
    let call = editor.call_named("divide", &operands).expect("the operands are tensors");
    Link::Value(middle.id).set(editor.body, call);
}

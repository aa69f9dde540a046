//! Work grows in proportion to the program: every operation does the same work per binding on a
//! program of a shape and on a larger program of the same shape.
//!
//! Work is counted, never timed: reads and writes through arenas, pools and side tables, and bytes
//! allocated. The ordinary run compares 6,000 bindings with 12,000 for a shape of each kind;
//! `ANFORA_LINEAR=100000` compares 12,500 with 100,000 for all shapes. With either,
//! `ANFORA_SHAPES=chain,nested-if` chooses the shapes. The factors are powers of two, so that
//! vectors and tables that double when they grow are equally full in both programs.
//!
//! The allocations of one thread cannot be told from those of another, so each shape runs in a
//! process of its own.

use std::alloc::System;
use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use anfora::interp::{ArgumentGenerator, Interpreter, Value};
use anfora::ir::{Literal, Module, Source, parse_module, verify_module, work};
use anfora::passes::{SymbolRef, bind_params, bind_symbols};
use anfora::visit::copy_function;
use anfora_testing::programs::Shape;
use anfora_testing::stress::{Operation, Subject};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The largest factor by which work per binding may grow to a size that is several times as large.
/// It is this several for work that grows with the square of the size.
const GROWTH: f64 = 1.2;

/// The same for accesses and bytes, to a size that is twice as large. Arenas take chunks that
/// double, so bytes grow in steps.
const GROWTH_OF_TWICE: (f64, f64) = (1.1, 1.3);

/// The same for `reduce`. Each program that is kept has at most half of the bindings of the one
/// before, so all later ones together take as much work as the first. How much smaller they are
/// depends on the values that the binding in the middle needs: of two programs of a shape, one may
/// come down to nothing at once, and the other to two fifths.
const GROWTH_OF_SEARCH: f64 = 2.0;

/// Returns the number of bindings of the larger program, and its ratio to that of the smaller
/// program.
fn sizes() -> (usize, usize) {
    match std::env::var("ANFORA_LINEAR") {
        Ok(text) => (text.parse().expect("ANFORA_LINEAR is a number"), 8),
        Err(_) => (12_000, 2),
    }
}

/// The shapes of the ordinary run: wide, deep, with constants, with functions and with regions.
const ORDINARY: [&str; 8] =
    ["chain", "parallel", "weights", "nested-if", "nested-fn", "nested-attribute", "siblings", "region-chain"];

/// Returns the shapes of this run. The shape `random` is never among them, since random programs of
/// two sizes are unrelated programs.
fn shapes() -> Vec<Shape> {
    match std::env::var_os("ANFORA_LINEAR") {
        Some(_) => Shape::all().filter(|s| s.name() != "random").collect(),
        None => ORDINARY.map(|name| name.parse().expect("a shape")).into(),
    }
}

/// Returns the number of accesses and the number of allocated bytes of an operation.
fn counted(operation: &Operation, subject: &Subject) -> Result<(u64, u64), String> {
    let trial = operation.prepare(subject)?;
    let (work_before, bytes_before) = (work::count(), ALLOCATOR.stats().bytes_allocated);
    trial.run()?;
    Ok((work::count() - work_before, (ALLOCATOR.stats().bytes_allocated - bytes_before) as u64))
}

#[test]
fn work_a_binding_does_not_grow_with_the_program() {
    match std::env::var("ANFORA_SHAPES") {
        Ok(names) => grows_with_no_shape(names.split(',').map(|name| name.parse().expect("ANFORA_SHAPES are shapes"))),
        Err(_) => share_out(&shapes()),
    }
}

/// Runs this test in other processes, one for each of the shapes, as many at a time as there are
/// processors.
fn share_out(shapes: &[Shape]) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = String::new();
        while let Some(shape) = shapes.get(next.fetch_add(1, Relaxed)) {
            failures.push_str(&failures_of(shape));
        }
        failures
    };
    let failures: String = thread::scope(|scope| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|w| w.join().expect("it does not panic")).collect()
    });
    assert!(failures.is_empty(), "{failures}");
}

/// Runs this test for one shape in another process. Returns its output if it fails, or else an
/// empty string.
fn failures_of(shape: &Shape) -> String {
    let test = std::env::current_exe().expect("this program has a path");
    let output = Command::new(test)
        .args(["--exact", "work_a_binding_does_not_grow_with_the_program"])
        .env("ANFORA_SHAPES", shape.name())
        .output()
        .expect("a process starts");
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.success() && said.contains("1 passed") {
        true => String::new(),
        false => format!("{said}{}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn grows_with_no_shape(shapes: impl Iterator<Item = Shape>) {
    let (size, factor) = sizes();
    let most = if factor == 2 { GROWTH_OF_TWICE } else { (GROWTH, GROWTH) };
    let mut failures = Vec::new();
    for shape in shapes {
        let large = Subject::new(shape, size).expect("a shape builds");
        let small = Subject::new(shape, large.size() / factor).expect("a shape builds");
        let is_counted = |operation: &Operation| operation.needs_program() || shape.name() == "chain";
        for operation in Operation::all().into_iter().filter(is_counted) {
            let (a, b) = match (counted(&operation, &small), counted(&operation, &large)) {
                (Ok(a), Ok(b)) => (a, b),
                (Err(e), _) | (_, Err(e)) => {
                    failures.push(format!("{} on {}: {e}", operation.name(), shape.name()));
                    continue;
                }
            };
            // Work that does not depend on the size of the program may take a few thousand
            // accesses, and a chunk of a scratch arena.
            let growth = |a: u64, b: u64, least: u64| (b as f64 / factor as f64) / (a.max(least) as f64);
            let (accesses, bytes) = (growth(a.0, b.0, 4 << 10), growth(a.1, b.1, 64 << 10));
            let most = match operation.name() {
                "reduce" => (GROWTH_OF_SEARCH, GROWTH_OF_SEARCH),
                _ => most,
            };
            for (what, growth, most) in [("accesses", accesses, most.0), ("bytes", bytes, most.1)] {
                if growth > most {
                    failures.push(format!("{} on {}: {growth:.2}x {what}", operation.name(), shape.name()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "work grows faster than the program:\n{}", failures.join("\n"));
}

/// Returns the accesses of parsing and running a program with `n` parameters on drawn arguments.
/// Each parameter has a symbolic dimension of its own.
fn counted_run_with_symbols(n: usize) -> u64 {
    let each = |f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<Vec<_>>().join(", ");
    let params = each(&|i| format!("%x{i}: Tensor[(n{i}, 2), float32]"));
    let text = format!("def @main({params}) {{ ({},) }}", each(&|i| format!("%x{i}")));
    let before = work::count();
    let module = parse_module(Source::new("symbols", text), anfora::onnx::registry()).expect("a program");
    let function = module.get(module.find("main").expect("it is there")).expect("it is there");
    let draw = (0..n).fold(ArgumentGenerator::new(1), |draw, i| draw.dim(format!("n{i}"), 3));
    let arguments = draw.arguments(&module.cx, function).expect("tensors can be drawn");
    let outcome = Interpreter::new(&module).call("main", arguments.values, &arguments.list).expect("a result");
    assert!(matches!(outcome.values.get(outcome.result), Value::Tuple(fields) if fields.len() == n));
    work::count() - before
}

#[test]
fn work_a_symbolic_dimension_does_not_grow_with_their_number() {
    let (small, large) = (counted_run_with_symbols(500), counted_run_with_symbols(4000));
    let growth = (large as f64 / 8.0) / small as f64;
    assert!(small > 500, "accesses are counted: {small}");
    assert!(growth <= GROWTH, "{small} accesses of 500 symbols, {large} of 4000: {growth:.2}x");
}

/// Returns a chain of `n` tuples. The fields of each are the tuple before it and a tensor of a
/// symbolic dimension, so there are `n` types, and each contains all types before it.
fn nested_tuples(n: usize) -> Module {
    let mut text = String::from("def @main(%x: Tensor[(n,), float32], %a0: Tensor[(n,), float32]) {\n");
    for i in 1..=n {
        writeln!(text, "let %a{i} = (%a{}, %x);", i - 1).expect("a string can be written");
    }
    writeln!(text, "%a{n} }}").expect("a string can be written");
    parse_module(Source::new("tuples", text), anfora::onnx::registry()).expect("a program")
}

/// Returns the accesses of an operation on a chain of nested tuples, and of the verifier after it.
fn counted_on_nested_tuples(n: usize, operation: impl Fn(&mut Module)) -> u64 {
    let mut module = nested_tuples(n);
    let before = work::count();
    operation(&mut module);
    verify_module(&module).expect("it is in order");
    work::count() - before
}

/// Fails if an operation does more work per type when there are eight times as many types.
#[track_caller]
fn assert_linear_on_nested_tuples(operation: impl Fn(&mut Module)) {
    let (small, large) = (counted_on_nested_tuples(500, &operation), counted_on_nested_tuples(4000, &operation));
    let growth = (large as f64 / 8.0) / small as f64;
    assert!(small > 500, "accesses are counted: {small}");
    assert!(growth <= GROWTH, "{small} accesses of 500 types, {large} of 4000: {growth:.2}x");
}

#[test]
fn work_a_type_that_nests_does_not_grow_in_the_verifier() {
    assert_linear_on_nested_tuples(|_| {});
}

#[test]
fn work_a_type_that_nests_does_not_grow_where_symbols_are_bound() {
    assert_linear_on_nested_tuples(|module| {
        assert_eq!(bind_symbols(module, None, &[(SymbolRef::Name("n"), 4)]).unwrap(), 1);
        assert!(!module.to_text().contains("(n,)"));
    });
}

#[test]
fn work_a_type_that_nests_does_not_grow_where_parameters_are_bound() {
    assert_linear_on_nested_tuples(|module| {
        let literal = Literal::from_elements(&[2], &[1f32, 2f32]).expect("a literal");
        assert_eq!(bind_params(module, "main", &[("x".into(), literal)]).unwrap(), 1);
        assert!(!module.to_text().contains("(n,)"));
    });
}

#[test]
fn work_a_type_that_nests_does_not_grow_where_a_module_is_taken_over() {
    assert_linear_on_nested_tuples(|module| {
        let other = module.clone();
        module.replace_with(&other).expect("the operators are known");
    });
}

#[test]
fn work_a_type_that_nests_does_not_grow_where_a_function_is_copied() {
    assert_linear_on_nested_tuples(|module| {
        let key = module.find("main").expect("it is there");
        copy_function(module, key, "copy").expect("the name is free");
    });
}

//! The memory that the benchmark program takes from its text to its text, in bytes per binding,
//! counted by the allocator.
//!
//! The ordinary run has 60,000 bindings. With `ANFORA_BINDINGS=10000000`, the program must not
//! take more than 2.5 GB.

use std::io::{self, Write};

use anfora::ir::{PrintOptions, Source, parse_module, verify_module, write_module};
use anfora::manager::{Pass, PassContext, Verification, parse_pipeline};
use anfora_testing::programs::Shape;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The limit for the text and everything that is made of it, at once, in bytes per binding: 2.5 GB
/// for ten million bindings.
const PEAK: f64 = 250.0;

/// The limit for passes, which need no text: the memory of a module, and as much again for analyses
/// of it.
const WORKING: f64 = 220.0;

/// The limit for a parsed module whose source was dropped: 16-byte nodes (three per binding) with
/// types, spans and operands, names, and a little room to grow.
const PARSED: f64 = 110.0;

fn bindings() -> usize {
    match std::env::var("ANFORA_BINDINGS") {
        Ok(text) => text.parse().expect("ANFORA_BINDINGS is a number"),
        Err(_) => 60_000,
    }
}

/// A writer that counts the bytes written to it.
struct Length(usize);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `work` and checks the peak of the memory that was allocated meanwhile.
fn bounded<T>(what: &str, n: usize, limit: f64, work: impl FnOnce() -> T) -> T {
    ALLOCATOR.reset_peak_usage();
    let result = work();
    let peak = ALLOCATOR.peak_usage() as f64 / n as f64;
    println!("{what}: {peak:.1} bytes a binding");
    assert!(peak <= limit, "{what} takes {peak:.1} bytes a binding, more than {limit}");
    result
}

#[test]
fn the_benchmark_program_fits() {
    let n = bindings();
    let shape: Shape = "chain".parse().expect("a shape");
    let mut text = shape.build(n, 0).expect("the chain builds").to_text();
    text.shrink_to_fit();
    let mut module =
        bounded("parsing", n, PEAK, || match parse_module(Source::new("chain.anf", text), anfora::ops::standard()) {
            Ok(module) => module,
            Err(errors) => panic!("{}", errors[0]),
        });
    module.set_source(None);
    let parsed = ALLOCATOR.current_usage() as f64 / n as f64;
    println!("parsed: {parsed:.1} bytes a binding");
    assert!(parsed <= PARSED, "a module takes {parsed:.1} bytes a binding, more than {PARSED}");

    let registry = anfora::passes::registry();
    let context = PassContext::builder().registry(registry.clone()).opt_level(3).verification(Verification::Off);
    let context = context.build().expect("an empty context");
    for pipeline in ["PlanMemory", "FoldConstant,EliminateCommonSubexpr,DeadCodeElimination", "O2"] {
        let passes = parse_pipeline(&registry, pipeline).expect("a registered pipeline");
        bounded(pipeline, n, WORKING, || passes.apply(&mut module, &context).map(drop)).expect("no pass fails");
        bounded("verifying", n, WORKING, || verify_module(&module).map(drop))
            .expect("what passes leave is well-formed");
    }

    let mut length = Length(0);
    bounded("printing", n, PEAK, || write_module(&module, &PrintOptions::default(), &mut length))
        .expect("it is counted");
    assert!(length.0 > n, "all of it is printed");
    bounded("compacting", n, PEAK, || module.compact().map(drop)).expect("no edit is open");
}

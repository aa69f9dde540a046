//! The programs and stages that the benches time. Programs have any size, and each stage works on a
//! module of its own.

pub mod boxed_tree;
pub mod programs;
pub mod rewrites;
pub mod sizes;

use std::sync::Arc;

use anfora::ir::{Module, Source, parse_module, verify_module};
use anfora::manager::{Outcome, Pass, PassContext, PassRegistry, Verification, parse_pipeline};

/// The pipeline that every compared system runs: folding, elimination of common subexpressions, and
/// elimination of dead code.
pub const PIPELINE: &str = "FoldConstant,EliminateCommonSubexpr,DeadCodeElimination";

/// Parses a text.
///
/// # Panics
/// If it is not a program.
pub fn parse(text: &str) -> Module {
    match parse_module(Source::new("bench.anf", text), anfora::ops::standard()) {
        Ok(module) => module,
        Err(errors) => panic!("{}", errors[0]),
    }
}

/// Verifies a module.
///
/// # Panics
/// If it is not well-formed.
pub fn verify(module: &Module) {
    if let Err(errors) = verify_module(module) {
        panic!("{}", errors[0]);
    }
}

/// Runs a pipeline at level 3, on one thread and without instruments.
///
/// # Panics
/// If a pass fails.
pub fn run(registry: &Arc<PassRegistry>, pipeline: &str, module: &mut Module) -> Outcome {
    run_under(&context(registry, 1), pipeline, module)
}

/// Returns a context of level 3 without instruments, which shares function passes out to `threads`
/// threads.
///
/// # Panics
/// Never, since no setting of the context can be wrong.
pub fn context(registry: &Arc<PassRegistry>, threads: usize) -> PassContext {
    let builder = PassContext::builder()
        .registry(Arc::clone(registry))
        .opt_level(3)
        .threads(threads)
        .verification(Verification::Off);
    builder.build().expect("an empty context is valid")
}

/// Runs a pipeline under a context.
///
/// # Panics
/// If a pass fails.
pub fn run_under(context: &PassContext, pipeline: &str, module: &mut Module) -> Outcome {
    let pipeline = parse_pipeline(context.registry(), pipeline).expect("a pipeline of registered passes");
    match pipeline.apply(module, context) {
        Ok(outcome) => outcome,
        Err(failure) => panic!("{failure}"),
    }
}

//! The stages that the benches time, each on a module of its own.

pub mod boxed_tree;
pub mod rewrites;

use std::sync::Arc;

use anfora::ir::{Module, Source, parse_module, verify_module};
use anfora::manager::{Pass, PassContext, PassRegistry, parse_pipeline};
use anfora::programs::Shape;

/// Folding, elimination of common subexpressions, elimination of dead code: the pipeline that every compared system runs.
pub const PIPELINE: &str = "FoldConstant,EliminateCommonSubexpr,DeadCodeElimination";

/// The benchmark program of `n` bindings.
///
/// # Panics
/// If it cannot be built, which is a defect.
pub fn chain(n: usize) -> Module {
    let shape: Shape = "chain".parse().expect("a shape");
    shape.build(n, 0).expect("the chain is well-typed")
}

/// A module of so many functions, each the benchmark program of `n` bindings.
///
/// # Panics
/// If it cannot be built, which is a defect.
pub fn chains(functions: usize, n: usize) -> Module {
    let one = chain_text(n);
    let texts: String = (0..functions).map(|i| one.replacen("@main", &format!("@f{i}"), 1)).collect();
    parse(&texts)
}

/// A program of another shape, of that size; `None` if the shape does not go so far.
///
/// # Panics
/// If there is no such shape.
pub fn shape(name: &str, size: usize) -> Option<Module> {
    let shape: Shape = name.parse().expect("a shape");
    shape.max_size().is_none_or(|max| size <= max).then(|| shape.build(size, 0).expect("shapes are well-typed"))
}

/// The text of the benchmark program.
pub fn chain_text(n: usize) -> String {
    chain(n).to_text()
}

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

/// Runs a pipeline at level 3, without instruments.
///
/// # Panics
/// If a pass fails.
pub fn run(registry: &Arc<PassRegistry>, pipeline: &str, module: &mut Module) {
    run_under(&context(registry, 1), pipeline, module);
}

/// A context of level 3 without instruments that shares function passes out to so many threads.
///
/// # Panics
/// Never: nothing is asked of it that could be wrong.
pub fn context(registry: &Arc<PassRegistry>, threads: usize) -> PassContext {
    let builder = PassContext::builder().registry(Arc::clone(registry)).opt_level(3).threads(threads);
    builder.build().expect("an empty context is valid")
}

/// Runs a pipeline under a context.
///
/// # Panics
/// If a pass fails.
pub fn run_under(context: &PassContext, pipeline: &str, module: &mut Module) {
    let pipeline = parse_pipeline(context.registry(), pipeline).expect("a pipeline of registered passes");
    if let Err(failure) = pipeline.apply(module, context) {
        panic!("{failure}");
    }
}

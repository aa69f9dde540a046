//! A pipeline with a custom instrument, from a file to a file.
//!
//! `cargo run --release -p anfora --example pipeline -- examples/mlp.anf`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anfora::ir::Counts;
use anfora::manager::{Outcome, PassRun, PassTiming, VerifyEach};
use anfora::prelude::*;

/// An instrument that prints the number of bindings after each pass.
#[derive(Default)]
struct CountBindings {
    passes: AtomicUsize,
}

impl Instrument for CountBindings {
    fn name(&self) -> &str {
        "count-bindings"
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        let n = self.passes.fetch_add(1, Ordering::Relaxed) + 1;
        println!("{n:3} {:28} {:4} bindings, {outcome:?}", run.name(), Counts::of_module(module).bindings);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/mlp.anf".to_string());
    let text = std::fs::read_to_string(&path)?;
    let mut module = parse_module(Source::new(path, text), anfora::ops::standard())?;

    let registry = anfora::passes::registry();
    let passes =
        "ToANormalForm,fixpoint<4>(FoldConstant,CanonicalizeBindings,EliminateCommonSubexpr),DeadCodeElimination";
    let pipeline = parse_pipeline(&registry, passes)?;
    let timing = Arc::new(PassTiming::new());
    let context = PassContext::builder()
        .registry(registry)
        .opt_level(3)
        .config("FoldConstant.max_growth_bytes", 4096)
        .instrument(timing.clone())
        .instrument(Arc::new(CountBindings::default()))
        .instrument(Arc::new(VerifyEach::new()))
        .build()?;
    context.scope(|| pipeline.apply(&mut module, &context))??;

    println!("\n{timing}\n{module}");
    Ok(())
}

//! Each registered pass, and pipelines.

use anfora::ir::Module;
use anfora_benches::programs::{
    ACTIVATIONS, CHAIN, COMPOSITE, CONSTANT, CONSTANTS, CONVOLUTIONS, FAN_IN, FUNCTIONS, FUSED, GATES, IMAGES, LIFTED,
    NESTED_CALLS, NESTED_CLOSURES, NESTED_LAMBDAS, PARALLEL, PLAIN, Program, RANDOM, REGION, SIBLINGS, SYMBOLIC,
    TUPLES, WEIGHTS,
};
use anfora_benches::sizes::{SIZES, bench, bench_prepared, on_clones};
use anfora_benches::{PIPELINE, run, verify};
use criterion::Criterion;

/// The programs on which a pass is timed besides the benchmark program: those that it is meant for.
const PROGRAMS: &[(&str, &[Program])] = &[
    ("AttachGlobalSymbol", &[FUNCTIONS]),
    ("BindSymbols", &[SYMBOLIC]),
    ("CanonicalizeBindings", &[TUPLES]),
    ("CombineParallelMatmul", &[PARALLEL]),
    ("ConvertLayout", &[IMAGES]),
    ("ConvertToDataflow", &[PLAIN]),
    ("DeadCodeElimination", &[FUNCTIONS]),
    ("DecomposeOps", &[CONVOLUTIONS]),
    ("EliminateCommonSubexpr", &[FUNCTIONS]),
    ("FoldBatchNorm", &[CONVOLUTIONS]),
    ("FoldConstant", &[FUNCTIONS, CONSTANT, CONSTANTS]),
    ("FuseOps", &[REGION, FAN_IN]),
    ("FuseOpsByPattern", &[IMAGES]),
    ("FuseStandardOps", &[GATES]),
    ("Gradient", &[ACTIVATIONS]),
    ("InlineFunctions", &[FUSED, LIFTED]),
    ("LambdaLifting", &[SIBLINGS, NESTED_LAMBDAS, NESTED_CLOSURES]),
    ("LiftTransformParams", &[WEIGHTS]),
    ("MergeCompositeFunctions", &[COMPOSITE]),
    ("Normalize", &[NESTED_CALLS]),
    ("RemoveUnusedOutputs", &[RANDOM]),
    ("RemoveUnusedParameters", &[RANDOM]),
    ("SimplifyExpr", &[RANDOM]),
    ("SimplifyShapes", &[RANDOM]),
    ("ToANormalForm", &[NESTED_CALLS]),
    ("ToMixedPrecision", &[IMAGES]),
    ("TopologicalSort", &[RANDOM]),
];

/// Returns the pass as a pipeline, with options if it does nothing without them.
fn pipeline_of(pass: &str) -> &str {
    match pass {
        "BindParams" => r#"BindParams{function=main,params="%x=dense<Tensor[(8,), float32]>[1]"}"#,
        "BindSymbols" => "BindSymbols{n=8}",
        "Gradient" => "Gradient{function=main}",
        other => other,
    }
}

/// Runs a group of benches for each pass of the registry, except for PrintIR: its work is output.
///
/// # Panics
/// If a pass changes none of its programs, since its work would not be measured.
pub(crate) fn each(c: &mut Criterion) {
    let registry = anfora::passes::registry();
    for pass in registry.passes().iter().filter(|pass| pass.name() != "PrintIR") {
        let name = pass.name();
        let own = PROGRAMS.iter().find(|(n, _)| *n == name).map_or(&[][..], |(_, programs)| programs);
        // The benchmark program has no symbol to bind, and its result is not a scalar.
        let all: &[Program] = if matches!(name, "BindSymbols" | "Gradient") { &[] } else { &[CHAIN] };
        let programs = [all, own].concat();
        let pipeline = pipeline_of(name);
        let works = |p: &Program| run(&registry, pipeline, &mut p.build(SIZES[0])).is_changed();
        assert!(programs.iter().any(works), "{name} is timed on no program that it changes");
        bench(c, name, &programs, |b, module| on_clones(b, module, |m| run(&registry, pipeline, m)));
    }
}

pub(crate) fn pipelines(c: &mut Criterion) {
    let registry = anfora::passes::registry();
    for (name, pipeline) in [("fold-and-canonicalize", "FoldConstant,CanonicalizeBindings"), ("pipeline", PIPELINE)] {
        bench(c, name, &[CHAIN, FUNCTIONS], |b, module| on_clones(b, module, |m| run(&registry, pipeline, m)));
    }
    bench(c, "pipeline-verified", &[CHAIN], |b, module| {
        on_clones(b, module, |m| {
            run(&registry, PIPELINE, m);
            verify(m);
        });
    });
    // A phase begins with the result of the phases before it.
    let mut phases = String::new();
    for pipeline in registry.pipelines() {
        let name = &pipeline.name;
        let reach = |mut module: Module| {
            if name.starts_with("phase") {
                run(&registry, &phases, &mut module);
            }
            module
        };
        bench_prepared(c, name, &[CHAIN], reach, |b, module| on_clones(b, module, |m| run(&registry, name, m)));
        if name.starts_with("phase") {
            phases += if phases.is_empty() { "" } else { "," };
            phases += name;
        }
    }
}

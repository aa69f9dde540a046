//! Tests of FuseOpsByPattern with patterns that text cannot express, and of wrong options.

use anfora_ir::{Module, Purity, Source, parse_module};
use anfora_manager::parse_pipeline;
use anfora_passes::{CompositePattern, Partition, fuse_ops_by_pattern, registry, standard_patterns};
use anfora_visit::pattern::{any, any_of, op};

fn parse(text: &str) -> Module {
    parse_module(Source::new("patterns.anf", text), anfora_ops::standard()).unwrap_or_else(|e| panic!("{}", e[0]))
}

/// Partitions a module by patterns, and returns the names of the functions that were made.
fn partition(module: &mut Module, patterns: &[CompositePattern]) -> Vec<String> {
    let before = module.order().len();
    let purity = Purity::of_module(module);
    let partition = Partition { patterns, backend: "", annotate_codegen: false, bind_constants: true };
    fuse_ops_by_pattern(module, &purity, &partition).expect("the patterns are valid");
    module.order()[before..].iter().map(|&key| module.name(key).to_string()).collect()
}

#[test]
fn standard_patterns_and_conditions() {
    let text = "def @main(%x: Tensor[(4, 4), float32], %b: Tensor[(4,), float32]) {
        let %p = matmul(%x, %x);
        let %s = add(%p, %b);
        clip(%s, 0f, 1f)
    }";
    let mut module = parse(text);
    assert_eq!(partition(&mut module, &standard_patterns()), ["fused_matmul_add_clip"]);
    // Of two alternatives, the larger match is taken.
    let sum = || op("add", [op("matmul", [any(), any()]), any()]);
    let pattern = any_of([sum(), op("clip", [sum(), any(), any()])]);
    let either = CompositePattern { name: "either".into(), pattern };
    let mut module = parse(text);
    assert_eq!(partition(&mut module, &[either]), ["fused_matmul_add_clip"]);
    // A condition that refuses all matches.
    let refused = CompositePattern { name: "refused".into(), pattern: sum().guard(|_| false) };
    let mut module = parse(text);
    let before = module.to_text();
    assert_eq!(partition(&mut module, &[refused]), [""; 0]);
    assert_eq!(module.to_text(), before);
}

#[test]
fn wrong_options_have_suggestions() {
    let mistakes = [
        ("patterns=matmul_biass", "there is no standard pattern `matmul_biass`; did you mean `matmul_bias`?"),
        (
            "patterns=\"f(%x)\"",
            "there is no standard pattern `f(%x)`; a pattern of your own is written `name=expression`",
        ),
        (
            "patterns=\"mine=add(%x\"",
            "the pattern `mine=add(%x` cannot be read: expected `,` or `)`, found the end of the text",
        ),
        ("annotate_codegen=true", "`annotate_codegen` needs a `backend`"),
        ("backend=my.npu", "the name of a backend has no dot, but `my.npu` has one"),
    ];
    for (options, wanted) in mistakes {
        let error = parse_pipeline(&registry(), &format!("FuseOpsByPattern{{{options}}}")).map(drop).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

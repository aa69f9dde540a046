//! FuseOps together with ONNX: fused programs that are written as ONNX and read again have the same
//! functions, which compute the same. Also the work of fusing when operands are repeated.

use std::fmt::Write as _;

use anfora::ir::{Literal, Module, Source, first_difference, parse_module, verify_module, work};
use anfora::manager::{PassContext, parse_pipeline, run_pass};
use anfora::onnx::{ExportOptions, ImportOptions, export, import};
use anfora::passes::{FusionLimits, fuse_ops, registry};
use anfora_testing::programs::{Random, Vocabulary};

fn results(module: &Module) -> anfora::interp::Outcome {
    let floats = |shape: &[usize]| {
        let elements: Vec<f32> = (0..shape.iter().product()).map(|i| (i as f32 - 7.0) / 5.0).collect();
        Literal::from_elements(shape, &elements).expect("as many as the shape has")
    };
    let arguments = [floats(&[4, 4]), floats(&[4]), floats(&[5, 4]), floats(&[3, 4])];
    anfora::interp::Interpreter::new(module).run("main", &arguments).unwrap_or_else(|e| panic!("{e}\n{module}"))
}

/// Returns the module without regions, which ONNX does not have, without unused projections, and
/// without an order of bindings.
fn comparable(module: &Module) -> Module {
    let mut module = module.clone();
    let none = module.cx.attrs.empty();
    module.set_attrs(none);
    let registry = registry();
    let pipeline =
        parse_pipeline(&registry, "ToNonDataflow,DeadCodeElimination,ToGraphNormalForm").expect("a pipeline");
    let context = PassContext::builder().registry(registry).opt_level(3).build().expect("an empty context");
    run_pass(&pipeline, &mut module, &context).unwrap_or_else(|e| panic!("{e}\n{module}"));
    module
}

#[test]
fn fused_programs_come_back() {
    let mut functions = 0;
    let programs = anfora_testing::cases(100);
    for seed in 0..programs as u64 {
        let size = 10 + seed as usize % 40;
        let text = Random { vocabulary: Vocabulary::OnnxRegions, size, seed }.module().to_text();
        let mut module = parse_module(Source::new("input", text.as_str()), anfora::onnx::registry())
            .unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
        let max_depth = [256, 8, 3][seed as usize % 3];
        fuse_ops(&mut module, FusionLimits { max_depth, max_function_args: 0 });
        let written = export(&module, &ExportOptions::default()).unwrap_or_else(|e| panic!("{e}\n{module}"));
        let back = import(written.bytes.into(), &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}\n{module}"));
        let back = back.module;
        verify_module(&back).unwrap_or_else(|e| panic!("{}\n{module}\n{back}", e[0]));
        if let Some(difference) = first_difference(&comparable(&module), &comparable(&back)) {
            panic!("seed {seed}: {difference}\n{module}\ncame back as\n{back}");
        }
        assert!(results(&module).same(&results(&back)), "seed {seed}:\n{module}\n{back}");
        functions += back.functions().filter(|(_, f)| f.is_primitive(&back.cx)).count();
    }
    assert!(functions > programs, "only {functions} functions were made");
}

/// Returns a program of `size` values that two joins have as operands. One of the joins is joined
/// with itself `size` times.
fn repeated(size: usize) -> Module {
    let mut text = "def @main(%x: Tensor[(1,), float32]) {\n  dataflow {\n".to_string();
    (0..size).for_each(|i| writeln!(text, "    let %v{i} = exp(%x);").unwrap());
    let all: Vec<String> = (0..size).map(|i| format!("%v{i}")).collect();
    let (all, again) = (all.join(", "), "%b, ".repeat(size));
    writeln!(text, "    let %a = concat({all});\n    let %b = concat({all});").unwrap();
    writeln!(text, "    let %s = sum(%a, keepdims=true);\n    let %r = concat({again}%s);").unwrap();
    text.push_str("    output(%r)\n  }\n  %r\n}\n");
    parse_module(Source::new("input", text.as_str()), anfora::ops::standard()).unwrap_or_else(|e| panic!("{}", e[0]))
}

#[test]
fn an_operand_that_is_repeated_is_looked_at_once() {
    let counted = |size: usize| {
        let mut module = repeated(size);
        let before = work::count();
        fuse_ops(&mut module, FusionLimits::default());
        (work::count() - before) as f64 / size as f64
    };
    let (small, large) = (counted(1000), counted(8000));
    assert!(large <= 1.2 * small, "{small} accesses a binding for 1,000, {large} for 8,000");
}

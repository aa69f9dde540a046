//! ONNX models written and read, and programs run.

use anfora::interp::Interpreter;
use anfora::ir::Literal;
use anfora::onnx::{ExportOptions, ImportOptions, export, import};
use anfora_benches::programs::CHAIN;
use anfora_benches::sizes::{bench, bench_prepared};
use criterion::Criterion;

pub(crate) fn benches(c: &mut Criterion) {
    let options = ExportOptions::default();
    bench(c, "onnx-export", &[CHAIN], |b, module| {
        b.iter_with_large_drop(|| export(module, &options).expect("ONNX has what the benchmark program has"));
    });

    let import_options = ImportOptions::default();
    bench_prepared(
        c,
        "onnx-import",
        &[CHAIN],
        |module| bytes::Bytes::from(export(&module, &options).expect("ONNX has what the benchmark program has").bytes),
        |b, file| {
            b.iter_with_large_drop(|| import(file.clone(), &import_options).expect("what was written is read"));
        },
    );

    let arguments = [Literal::splat(&[8], 1.0f32)];
    bench(c, "interpret", &[CHAIN], |b, module| {
        let interpreter = Interpreter::new(module);
        b.iter_with_large_drop(|| interpreter.run("main", &arguments).expect("the benchmark program runs"));
    });
}

//! The files in `examples/` are the output of our own builders, and the programs there run.
//!
//! `ANFORA_BLESS=1 cargo test -p anfora --test examples` writes them.

use std::path::{Path, PathBuf};

use anfora::onnx::{ExportOptions, ImportOptions};

#[path = "../examples/custom_op.rs"]
mod custom_op;

#[test]
fn operators_of_ones_own_go_everywhere() {
    custom_op::main().expect("the example runs");
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// Compares a file with its expected contents, or writes it.
fn compare(name: &str, contents: &[u8]) {
    let path = example(name);
    if std::env::var_os("ANFORA_BLESS").is_some() {
        std::fs::write(&path, contents).expect("the examples can be written");
    }
    let found = std::fs::read(&path).expect("the examples can be read");
    assert!(found == contents, "{} is not what `anfora_testing::programs` makes", path.display());
}

#[test]
fn residual_is_made_by_our_builder() {
    let module = anfora_testing::programs::residual().expect("the model is well-typed");
    let exported = anfora::onnx::export(&module, &ExportOptions::default()).expect("the model can be exported");
    compare("residual.onnx", &exported.bytes);
}

#[test]
fn residual_comes_back_from_its_file() {
    let bytes = std::fs::read(example("residual.onnx")).expect("the examples can be read");
    let imported = anfora::onnx::import(bytes.clone().into(), &ImportOptions::default()).expect("a model of ours");
    let again = anfora::onnx::export(&imported.module, &ExportOptions::default()).expect("it was a model before");
    assert_eq!(again.nodes.total(), imported.nodes.total());
    let twice = anfora::onnx::import(again.bytes.into(), &ImportOptions::default()).expect("a model of ours");
    assert!(anfora::ir::first_difference(&imported.module, &twice.module).is_none());
}

#[test]
fn mlp_is_made_by_our_builder() {
    let module = anfora_testing::programs::mlp().expect("the model is well-typed");
    compare("mlp.anf", module.to_text().as_bytes());
}

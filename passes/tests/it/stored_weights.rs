//! Folding on constants that lie in files: large ones stay there, and what is read is read once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora_ir::{
    Context, DType, Expr, FileRange, FunctionBuilder, Literal, Module, StoredFile, StoredFileKind, verify_module,
};
use anfora_passes::{FoldBudget, LowPrecision, PrecisionOptions, fold_batch_norm, fold_constant, to_mixed_precision};
use half::bf16;

/// The size of the weight and of its file. Only constants of more than 1 MiB stay in a large file.
const BYTES: usize = 4 * 512 * 1024;

/// A folder with one file of float32 numbers, removed at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("anfora-weights-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder for temporary files");
        let scratch = Scratch(dir);
        fs::write(scratch.path(), (0..512 * 1024).flat_map(|i| (i as f32).to_le_bytes()).collect::<Vec<_>>()).unwrap();
        scratch
    }

    fn path(&self) -> PathBuf {
        self.0.join("w.bin")
    }

    /// Changes the file, so that every later read of its constants is an error.
    fn change(&self) {
        fs::write(self.path(), [0; 12]).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the numbers of a file as a constant of a shape.
fn weight(path: &Path, shape: &[usize]) -> Literal {
    let file = Arc::new(StoredFile::open(path, StoredFileKind::Data).unwrap());
    Literal::in_file(DType::Float32, shape, FileRange::new(file, 0, BYTES).unwrap()).unwrap()
}

/// Returns a budget that leaves large constants in files of more than `file` bytes.
fn budget(file: u64) -> FoldBudget {
    FoldBudget { per_call: None, file: Some(file), ..FoldBudget::default() }
}

/// Adds a function that applies two operators to a weight and returns both results.
fn add_readers(module: &mut Module, name: &str, weight: &Literal) {
    let mut f = FunctionBuilder::new(module, name);
    let w = f.literal(weight.clone());
    let values = ["negative", "abs"].map(|op| {
        let call = f.call_op(op, &[w], &[]).unwrap();
        f.bind(op, call)
    });
    let pair = f.tuple(&values);
    f.finish(pair).unwrap();
}

fn fold(module: &mut Module, name: &str, budget: FoldBudget) -> (usize, Vec<String>) {
    let key = module.find(name).unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let done = fold_constant(cx, function, budget).unwrap();
    verify_module(module).unwrap();
    (done.folded, done.remarks.iter().map(|r| r.to_string()).collect())
}

#[test]
fn constant_folding_leaves_large_constants_in_large_files() {
    let scratch = Scratch::new("budget");
    let mut module = Module::new(anfora_ops::standard());
    add_readers(&mut module, "main", &weight(&scratch.path(), &[512, 1024]));
    let (folded, remarks) = fold(&mut module, "main", budget(BYTES as u64 - 1));
    assert_eq!(folded, 0);
    assert!(remarks.iter().all(|r| r.contains("2097152 bytes stay in their file")), "{remarks:?}");
    assert_eq!(remarks.len(), 2);
    assert_eq!(fold(&mut module, "main", budget(BYTES as u64)), (2, Vec::new()));
    assert!(module.cx.literals.failure().is_ok());
}

#[test]
fn constants_that_stay_are_not_read() {
    let scratch = Scratch::new("unread");
    let mut module = Module::new(anfora_ops::standard());
    add_readers(&mut module, "main", &weight(&scratch.path(), &[512, 1024]));
    scratch.change();
    assert_eq!(fold(&mut module, "main", budget(0)).0, 0);
    assert!(module.cx.literals.failure().is_ok(), "nothing was read");
    assert_eq!(fold(&mut module, "main", budget(1 << 40)).0, 0);
    assert!(module.cx.literals.failure().is_err(), "the file has changed");
}

#[test]
fn constants_that_stay_get_other_shapes_unread() {
    let scratch = Scratch::new("shapes");
    let mut module = Module::new(anfora_ops::standard());
    let mut f = FunctionBuilder::new(&mut module, "main");
    let w = f.literal(weight(&scratch.path(), &[512, 1024]));
    let target = f.literal(Literal::from_elements(&[2], &[1024i64, 512]).unwrap());
    let call = f.call_op("reshape", &[w, target], &[]).unwrap();
    let shaped = f.bind("shaped", call);
    let call = f.call_op("shape_of", &[w], &[]).unwrap();
    let extents = f.bind("extents", call);
    let pair = f.tuple(&[shaped, extents]);
    f.finish(pair).unwrap();
    scratch.change();
    assert_eq!(fold(&mut module, "main", budget(0)), (2, Vec::new()));
    assert!(module.cx.literals.failure().is_ok(), "nothing was read");
    let body = &module.get(module.find("main").unwrap()).unwrap().body;
    let shapes =
        body.exprs().filter_map(|(id, _)| body.as_literal(id)).map(|l| module.cx.literals.get(l).shape().to_vec());
    assert!(shapes.collect::<Vec<_>>().contains(&vec![1024, 512]));
}

#[test]
fn kernels_read_a_constant_once() {
    let scratch = Scratch::new("once");
    let mut module = Module::new(anfora_ops::standard());
    let weight = weight(&scratch.path(), &[512, 1024]);
    add_readers(&mut module, "first", &weight);
    add_readers(&mut module, "second", &weight);
    assert_eq!(fold(&mut module, "first", budget(1 << 40)).0, 2);
    // The bytes are kept: a second read would find that the file has changed.
    scratch.change();
    assert_eq!(fold(&mut module, "second", budget(1 << 40)).0, 2);
    assert!(module.cx.literals.failure().is_ok());
}

/// Returns a program that scales the input and the result of a product with a weight.
fn scaled_product(weight: &Literal) -> Module {
    let mut module = Module::new(anfora_ops::standard());
    let mut f = FunctionBuilder::new(&mut module, "main");
    let dims = [2, 512].map(|extent| f.cx().types.dims.constant(extent));
    let ty = f.cx().types.tensor(DType::Float32, &dims);
    let x = f.param("x", ty);
    let (two, w, three) =
        (f.literal(Literal::scalar(2f32)), f.literal(weight.clone()), f.literal(Literal::scalar(3f32)));
    let call = f.call_op("multiply", &[x, two], &[]).unwrap();
    let a = f.bind("a", call);
    let call = f.call_op("matmul", &[a, w], &[]).unwrap();
    let b = f.bind("b", call);
    let call = f.call_op("multiply", &[b, three], &[]).unwrap();
    let c = f.bind("c", call);
    f.finish(c).unwrap();
    module
}

/// Returns the numbers of the dense constant in a function.
fn dense_constant(module: &Module) -> Vec<f32> {
    let body = &module.get(module.find("main").unwrap()).unwrap().body;
    let literal = |cx: &Context, expr| match expr {
        Expr::Literal(id) => Some(cx.literals.get(id)).filter(|l| l.is_dense()).cloned(),
        _ => None,
    };
    let found = body.exprs().filter_map(|(_, expr)| literal(&module.cx, expr)).last().expect("a weight");
    found.load().unwrap();
    found.elements::<f32>().unwrap().to_vec()
}

#[test]
fn scales_go_into_weights_that_may_be_read() {
    let scratch = Scratch::new("scales");
    for (file, folded, factor) in [(BYTES as u64 - 1, 0, 1.0), (BYTES as u64, 2, 6.0)] {
        let mut module = scaled_product(&weight(&scratch.path(), &[512, 1024]));
        let key = module.find("main").unwrap();
        let (function, cx) = module.get_mut(key).unwrap();
        let done = fold_batch_norm(cx, function, budget(file)).unwrap();
        verify_module(&module).unwrap();
        assert_eq!(done.folded, folded, "{:?}", done.remarks);
        assert_eq!(done.remarks.len(), 2 - folded);
        for remark in done.remarks.iter().map(|r| r.to_string()) {
            assert!(remark.contains("whose 2097152 bytes stay in their file"), "{remark}");
        }
        let expected: Vec<f32> = (0..512 * 1024).map(|i| i as f32 * factor).collect();
        assert_eq!(dense_constant(&module), expected);
    }
}

#[test]
fn weights_in_files_get_16_bits_without_being_kept() {
    let scratch = Scratch::new("bits");
    let weight = weight(&scratch.path(), &[512, 1024]);
    let options = PrecisionOptions { to: LowPrecision::BFloat16, ..PrecisionOptions::default() };
    let mut module = scaled_product(&weight);
    to_mixed_precision(&mut module, &options).unwrap();
    verify_module(&module).unwrap();
    let body = &module.get(module.find("main").unwrap()).unwrap().body;
    let literals = body.exprs().filter_map(|(id, _)| body.as_literal(id)).map(|id| module.cx.literals.get(id));
    let converted = literals.filter_map(Literal::elements::<bf16>).find(|elements| elements.len() > 1).unwrap();
    let expected: Vec<bf16> = (0..512 * 1024).map(|i| bf16::from_f32(i as f32)).collect();
    assert_eq!(converted.to_vec(), expected);
    // If the bytes had been kept, they could be read from a file that has changed.
    scratch.change();
    assert!(weight.load().is_err());
    assert!(to_mixed_precision(&mut scaled_product(&weight), &options).is_err(), "the file cannot be read");
}

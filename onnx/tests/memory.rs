//! The memory that import and export take in addition to the file, counted by the allocator. It is
//! linear in the file, and almost none of it is for the elements of constants.

use std::io::BufWriter;
use std::sync::Arc;

use anfora_ir::{Literal, alpha_equal, verify_module};
use anfora_onnx::proto::tensor_shape_proto::{Dimension, Extent};
use anfora_onnx::proto::type_proto::{Tensor, Value};
use anfora_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
};
use anfora_onnx::tensor::tensor_of;
use anfora_onnx::{
    DataFiles, ExportOptions, ExternalData, ImportOptions, ModelFile, WhenExternal, export, export_model, import,
    import_file,
};
use bytes::Bytes;
use peak_alloc::PeakAlloc;
use prost::Message;
use rustc_hash::FxHashMap;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Returns the peak of the memory that `work` allocates, and its result.
fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    (ALLOCATOR.peak_usage() - before, result)
}

fn float(name: &str, dims: &[i64]) -> ValueInfoProto {
    let dim = dims.iter().map(|&d| Dimension { value: Some(Extent::DimValue(d)), denotation: None }).collect();
    let tensor = Tensor { elem_type: Some(1), shape: Some(TensorShapeProto { dim }) };
    let ty = TypeProto { value: Some(Value::TensorType(tensor)), denotation: None };
    ValueInfoProto { name: Some(name.to_string()), r#type: Some(ty), ..ValueInfoProto::default() }
}

fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        input: inputs.iter().map(|i| i.to_string()).collect(),
        output: vec![output.to_string()],
        op_type: Some(op.to_string()),
        ..NodeProto::default()
    }
}

fn file(mut graph: GraphProto) -> Bytes {
    graph.name = Some("graph".to_string());
    let opset = OperatorSetIdProto { domain: Some(String::new()), version: Some(17) };
    let graph = Some(graph);
    ModelProto { ir_version: Some(8), opset_import: vec![opset], graph, ..ModelProto::default() }.encode_to_vec().into()
}

/// Returns a chain of `n` nodes. Every third is kept unchanged; every fourth has a constant of its
/// own.
fn chain(n: usize) -> Bytes {
    let mut graph = GraphProto { input: vec![float("x", &[4])], ..GraphProto::default() };
    let mut last = "x".to_string();
    for i in 0..n {
        let name = format!("value_{i}");
        let constant = format!("weight_{i}");
        graph.node.push(match i % 12 {
            0 | 4 | 8 => {
                let literal = Literal::from_elements(&[4], &[i as f32, 1.0, 2.0, 3.0]).expect("four elements");
                let tensor = tensor_of(&literal, 64).expect("it is small");
                graph.initializer.push(TensorProto { name: Some(constant.clone()), ..tensor });
                node("Add", &[&last, &constant], &name)
            }
            1 | 5 | 9 => node("Frob", &[&last], &name),
            _ => node("Relu", &[&last], &name),
        });
        graph.value_info.push(float(&name, &[4]));
        last = name;
    }
    graph.output = vec![float(&last, &[4])];
    file(graph)
}

fn weights(extents: &[i64], tensors: Vec<TensorProto>) -> Bytes {
    let names: Vec<String> = tensors.iter().map(|t| t.name().to_string()).collect();
    let inputs: Vec<&str> = std::iter::once("x").chain(names.iter().map(String::as_str)).collect();
    let graph = GraphProto {
        node: vec![node("Sum", &inputs, "y")],
        initializer: tensors,
        input: vec![float("x", extents)],
        output: vec![float("y", extents)],
        ..GraphProto::default()
    };
    file(graph)
}

/// Returns `n` functions of a single node each, called by the main graph or by the previous
/// function.
fn functions(n: usize, form: Calls) -> Bytes {
    let import =
        |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_string()), version: Some(version) };
    let call = |i: usize, input: &str, output: &str| NodeProto {
        domain: Some("f".to_string()),
        ..node(&format!("F{i}"), &[input], output)
    };
    let function = |i: usize| FunctionProto {
        name: Some(format!("F{i}")),
        domain: Some("f".to_string()),
        input: vec!["a".to_string()],
        output: vec!["b".to_string()],
        node: vec![if form == Calls::Chain && i + 1 < n { call(i + 1, "a", "b") } else { node("Relu", &["a"], "b") }],
        opset_import: vec![import("", 17), import("f", 1)],
        ..FunctionProto::default()
    };
    let calls = match form {
        Calls::None => 0,
        Calls::Chain => 1,
        Calls::Each => n,
    };
    let mut nodes: Vec<NodeProto> = (0..calls)
        .map(|i| call(i, &if i == 0 { "x".to_string() } else { format!("v{i}") }, &format!("v{}", i + 1)))
        .collect();
    nodes.push(node("Exp", &[&if calls == 0 { "x".to_string() } else { format!("v{calls}") }], "y"));
    let graph = GraphProto {
        name: Some("graph".to_string()),
        node: nodes,
        input: vec![float("x", &[4])],
        output: vec![float("y", &[4])],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: Some(8),
        opset_import: vec![import("", 17), import("f", 1)],
        graph: Some(graph),
        functions: (0..n).map(function).collect(),
        ..ModelProto::default()
    };
    model.encode_to_vec().into()
}

/// The callers of functions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Calls {
    None,
    Each,
    Chain,
}

/// Returns the most bytes that `anfora check` takes for each byte of a model: the model itself, its
/// import and its verification.
fn bytes_to_check(name: &str, bytes: Bytes) -> f64 {
    // Room for tables that do not grow with the model.
    const CONSTANT: usize = 4 << 20;
    let length = bytes.len();
    let (taken, _) = peak(|| {
        let imported = import(bytes, &ImportOptions::default());
        imported.is_ok_and(|imported| verify_module(&imported.module).is_ok())
    });
    let factor = (length + taken).saturating_sub(CONSTANT) as f64 / length as f64;
    println!("check: {name}: {factor:.1} bytes for each of {length}");
    factor
}

/// Checks the factor that SECURITY.md states, on models with as many parts as possible per byte.
fn check_takes_what_is_stated() {
    const STATED: f64 = 256.0;
    const COUNT: usize = 50_000;
    let small = |graph: GraphProto| file(graph);
    let names = |i: usize| format!("{i:x}");
    let named = |i: usize| ValueInfoProto { name: Some(names(i)), ..ValueInfoProto::default() };
    let scalar = |i: usize| TensorProto {
        name: Some(names(i)),
        data_type: Some(9),
        raw_data: Some(Bytes::from_static(&[1])),
        ..TensorProto::default()
    };
    let attribute = |i: usize| AttributeProto { name: Some(names(i)), i: Some(1), ..AttributeProto::default() };
    let relu = |i: usize| node("Relu", &[if i == 0 { "x".to_string() } else { names(i - 1) }.as_str()], &names(i));
    let dims = vec![Dimension { value: None, denotation: None }; COUNT];
    let shaped = |dim: Vec<Dimension>| {
        let tensor = Tensor { elem_type: Some(1), shape: Some(TensorShapeProto { dim }) };
        let ty = TypeProto { value: Some(Value::TensorType(tensor)), denotation: None };
        ValueInfoProto { name: Some("x".into()), r#type: Some(ty), ..ValueInfoProto::default() }
    };
    let x = || vec![float("x", &[1])];
    let entry = StringStringEntryProto::default();
    let many = vec![String::new(); COUNT];
    let empty = GraphProto::default;
    let cases = [
        ("empty nodes", small(GraphProto { node: vec![NodeProto::default(); COUNT], ..empty() })),
        ("nodes", small(GraphProto { node: (0..COUNT).map(relu).collect(), input: x(), ..empty() })),
        ("inputs", small(GraphProto { input: (0..COUNT).map(named).collect(), ..empty() })),
        ("statements", small(GraphProto { value_info: (0..COUNT).map(named).collect(), ..empty() })),
        ("outputs", small(GraphProto { output: vec![float("x", &[1]); COUNT], input: x(), ..empty() })),
        ("initializers", small(GraphProto { initializer: (0..COUNT).map(scalar).collect(), ..empty() })),
        ("empty initializers", small(GraphProto { initializer: vec![TensorProto::default(); COUNT], ..empty() })),
        ("extents", small(GraphProto { input: vec![shaped(dims)], ..empty() })),
        ("metadata", small(GraphProto { metadata_props: vec![entry; COUNT], ..empty() })),
        ("attributes", {
            let unknown = NodeProto { attribute: (0..COUNT).map(attribute).collect(), ..node("Frob", &["x"], "y") };
            small(GraphProto { node: vec![unknown], input: x(), ..empty() })
        }),
        ("absent operands", {
            let unknown = NodeProto { input: many.clone(), ..node("Frob", &["x"], "y") };
            small(GraphProto { node: vec![unknown], input: x(), ..empty() })
        }),
        ("results", {
            let unknown = NodeProto { output: (0..COUNT).map(names).collect(), ..node("Frob", &["x"], "y") };
            small(GraphProto { node: vec![unknown], input: x(), ..empty() })
        }),
        ("functions", functions(3_000, Calls::Each)),
        ("functions that call each other", functions(3_000, Calls::Chain)),
    ];
    for (name, bytes) in cases {
        let factor = bytes_to_check(name, bytes);
        assert!(factor <= STATED, "{name}: {factor} bytes for each byte; SECURITY.md states {STATED}");
    }
}

/// Checks that the elements of a model in a file are not in memory when it is read and written.
fn models_in_files_stay_there(model: &Bytes) {
    let few = 1 << 20;
    let folder = std::env::temp_dir().join(format!("anfora-memory-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let (path, out) = (folder.join("m.onnx"), folder.join("out.onnx"));
    std::fs::write(&path, model).expect("the model can be written");
    let (taken, imported) = peak(|| {
        let model = ModelFile::read(&path).expect("it can be read");
        import_file(model, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"))
    });
    assert!(taken < few, "{taken} bytes to read a model in a file");
    let external = ExternalData { when: WhenExternal::Always, ..ExternalData::new("out.onnx.data") };
    for external_data in [None, Some(external)] {
        let options = ExportOptions { external_data, ..ExportOptions::default() };
        let (taken, len) = peak(|| {
            let exported = export_model(&imported.module, &options).unwrap_or_else(|e| panic!("{e}"));
            let mut file = BufWriter::new(std::fs::File::create(&out).expect("it can be written"));
            exported.model.write_to_file(&mut file).expect("it can be written");
            exported.data.iter().for_each(|data| data.write_to_file(&mut file).expect("it can be written"));
            exported.model.len()
        });
        assert!(taken < few, "{taken} bytes to write a model of {len} bytes");
    }
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
}

/// A single test, since all tests of a program share the allocator.
#[test]
fn memory_is_linear_in_the_file() {
    // The length of a file, and the memory that its import and its export take.
    let nodes = |n: usize| {
        let bytes = chain(n);
        let length = bytes.len();
        let (taken, imported) = peak(|| import(bytes, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}")));
        let (written, exported) = peak(|| export(&imported.module, &ExportOptions::default()));
        assert_eq!(exported.unwrap_or_else(|e| panic!("{e}")).nodes.total(), n);
        println!(
            "{n} nodes: {} bytes in the file, {} for import, {} for export each",
            length / n,
            taken / n,
            written / n
        );
        [length, taken, written].map(|b| b as f64 / n as f64)
    };
    let [_, few_in, few_out] = nodes(1_500);
    let [length, in_each, out_each] = nodes(6_000);
    // Tables grow by doubling, so at one of the sizes they may have more unused space.
    assert!(in_each <= 1.6 * few_in && out_each <= 1.6 * few_out, "more for more");
    assert!(in_each <= 20.0 * length, "{in_each} bytes a node for import");
    assert!(out_each <= 24.0 * length, "{out_each} bytes a node for export");

    // Functions of the file.
    let count = std::env::var("ANFORA_FUNCTIONS").map_or(1_000, |n| n.parse().expect("a number"));
    for form in [Calls::None, Calls::Each, Calls::Chain] {
        let bytes = functions(count, form);
        let length = bytes.len();
        let (taken, imported) = peak(|| import(bytes, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}")));
        let each = taken / count;
        println!("{count} functions, calls: {form:?}: {} bytes in the file, {each} for import each", length / count);
        let in_module = if form == Calls::None { 0 } else { count };
        assert_eq!(imported.module.functions().count(), in_module + 1);
        // In a chain, all callers wait for the last function, each half built: the result types of
        // a call are known only after the nodes before it are imported. Besides its function, each
        // caller then holds its open graph, its names in scope, its extents and the rest of its
        // message.
        let most = if form == Calls::Chain { 4096 } else { 1536 };
        assert!(each <= most, "{each} bytes a function, calls: {form:?}");
    }

    // 16 MB of elements, in the model and in another file.
    const EXTENT: usize = 1 << 20;
    let elements: Vec<f32> = (0..EXTENT).map(|i| i as f32).collect();
    let tensors = (0..4).map(|i| {
        let literal = Literal::from_elements(&[EXTENT], &elements).expect("one element an extent");
        let mut tensor = tensor_of(&literal, u64::MAX).expect("it is a tensor");
        let raw = tensor.raw_data.take().expect("it has elements").to_vec();
        // The tensors differ, so that they are not a single literal.
        tensor.raw_data = Some([(i as f32).to_le_bytes().as_slice(), &raw[4..]].concat().into());
        TensorProto { name: Some(format!("w{i}")), ..tensor }
    });
    let bytes = weights(&[EXTENT as i64], tensors.collect());
    let few = 1 << 20;
    models_in_files_stay_there(&bytes);
    let (taken, imported) = peak(|| import(bytes, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}")));
    assert!(taken < few, "import takes {taken} bytes beside 16 MB of elements");
    let external = ExternalData { when: WhenExternal::Always, ..ExternalData::new("w") };
    let options = ExportOptions { external_data: Some(external), ..ExportOptions::default() };
    let (taken, exported) = peak(|| export(&imported.module, &options).unwrap_or_else(|e| panic!("{e}")));
    assert!(taken < few, "export to another file takes {taken} bytes");
    let mut data = Vec::with_capacity(32 << 20);
    let beside = exported.data.expect("the elements are in a file");
    let (taken, done) = peak(|| beside.write_to(&mut data));
    done.expect("memory can be written");
    assert!(taken < few, "writing the file takes {taken} bytes");
    let files: FxHashMap<String, Bytes> = [("w".to_string(), Bytes::from(data))].into_iter().collect();
    let options = ImportOptions { data_files: Some(Arc::new(files) as Arc<dyn DataFiles>), ..ImportOptions::default() };
    let (taken, again) = peak(|| import(exported.bytes.into(), &options).unwrap_or_else(|e| panic!("{e}")));
    assert!(taken < few, "import from another file takes {taken} bytes");
    assert!(alpha_equal(&again.module, &imported.module), "it is the same program");

    // A file may claim more elements than it holds: nothing is allocated for the claim.
    let vast =
        TensorProto { dims: vec![1 << 40], data_type: Some(1), name: Some("w".into()), ..TensorProto::default() };
    let (taken, refused) = peak(|| import(weights(&[1], vec![vast]), &ImportOptions::default()).is_err());
    assert!(refused && taken < few, "{taken} bytes for an empty tensor of 2^40 elements");
    // Small messages, with many per byte.
    let graph = GraphProto { node: vec![NodeProto::default(); 50_000], ..GraphProto::default() };
    let bytes = file(graph);
    let length = bytes.len();
    let (taken, refused) = peak(|| import(bytes, &ImportOptions::default()).is_err());
    assert!(refused && taken < 400 * length, "{taken} bytes for {length} of empty nodes");
    check_takes_what_is_stated();
}

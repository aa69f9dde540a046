//! Tensors whose elements are in other files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anfora_ir::{EntityId, Literal, LiteralId, Module, Source, parse_module};
use anfora_onnx::convert::tensor_attribute;
use anfora_onnx::proto::tensor_proto::DataLocation;
use anfora_onnx::proto::{AttributeProto, GraphProto, ModelProto, StringStringEntryProto, TensorProto};
use anfora_onnx::{
    DataFile, DataFiles, DataFolder, ExportOptions, Exported, ExternalData, ImportOptions, WhenExternal, export,
    import, registry,
};
use bytes::Bytes;
use prost::Message;
use rustc_hash::FxHashMap;

use crate::models::{FLOAT, float, floats, graph, graph_attribute, initializer, literals, model, node};

/// Files in memory that count their reads.
#[derive(Default)]
struct Counted {
    files: FxHashMap<String, Bytes>,
    reads: AtomicUsize,
}

impl DataFiles for Counted {
    fn read(&self, location: &str) -> io::Result<Bytes> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.files.read(location)
    }
}

/// Returns a file `w.bin` of the numbers 0 to 15 as `float32`.
fn numbers() -> Arc<Counted> {
    let bytes: Vec<u8> = (0..16).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let files = [("w.bin".to_string(), Bytes::from(bytes))].into_iter().collect();
    Arc::new(Counted { files, reads: AtomicUsize::new(0) })
}

fn reading(files: Arc<dyn DataFiles>) -> ImportOptions {
    ImportOptions { data_files: Some(files), ..ImportOptions::default() }
}

fn tensor(name: &str, dims: &[i64], entries: &[(&str, &str)]) -> TensorProto {
    let entry =
        |&(k, v): &(&str, &str)| StringStringEntryProto { key: Some(k.to_string()), value: Some(v.to_string()) };
    TensorProto {
        name: Some(name.to_string()).filter(|n| !n.is_empty()),
        dims: dims.to_vec(),
        data_type: Some(FLOAT),
        data_location: Some(DataLocation::External as i32),
        external_data: entries.iter().map(entry).collect(),
        ..TensorProto::default()
    }
}

/// Returns a model of `x + w` on two elements.
fn sum(w: TensorProto) -> ModelProto {
    let nodes = vec![node("Add", &["x", "w"], &["y"], vec![])];
    let g = graph("g", nodes, vec![float("x", &[2])], vec![float("y", &[2])]);
    model(13, GraphProto { initializer: vec![w], ..g })
}

fn bytes_of(model: &ModelProto) -> Bytes {
    model.encode_to_vec().into()
}

#[test]
fn elements_are_slices_of_the_file_wherever_the_tensor_is() {
    let at = |offset: &'static str| [("location", "./w.bin"), ("offset", offset), ("length", "8")];
    let inner = || {
        let g = graph("b", vec![node("Neg", &["v"], &["o"], vec![])], vec![], vec![float("o", &[2])]);
        GraphProto { initializer: vec![tensor("v", &[2], &at("16"))], ..g }
    };
    let mut m = sum(tensor("w", &[2], &at("4")));
    let g = m.graph.as_mut().unwrap();
    g.node.insert(0, node("Constant", &[], &["c"], vec![tensor_attribute("value", tensor("", &[2], &at("8")))]));
    g.node.push(node("Frob", &["c"], &["f"], vec![tensor_attribute("t", tensor("", &[2], &at("12")))]));
    g.node.push(node("Frob", &["c"], &["h"], vec![graph_attribute("body", &inner())]));
    g.output.extend([float("f", &[2]), float("h", &[2])]);
    let files = numbers();
    let imported = import(bytes_of(&m), &reading(files.clone())).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(files.reads.load(Ordering::Relaxed), 1, "a file is read once");

    let text = imported.module.to_string();
    for numbers in ["[1, 2]", "[2, 3]", "[3, 4]", "[4, 5]"] {
        assert!(text.contains(numbers), "{text}");
    }
    let file = files.files["w.bin"].as_ptr_range();
    let all: Vec<Literal> = (0..imported.module.cx.literals.len())
        .map(|i| imported.module.cx.literals.get(LiteralId::from_index(i)).clone())
        .collect();
    assert_eq!(all.len(), 4);
    for literal in &all {
        assert!(file.contains(&literal.as_dense().expect("they differ").as_ptr()), "the bytes are not the file's");
    }
    // The model can be written with all elements in it, or with all elements in a single file.
    let whole = export(&imported.module, &ExportOptions::default()).unwrap();
    assert_eq!(whole.data, None);
    let back = import(whole.bytes.into(), &ImportOptions::default()).unwrap();
    assert_eq!(back.module.to_string(), text);
}

#[test]
fn what_is_wrong_with_the_other_file_is_said() {
    let strings = TensorProto { data_type: Some(8), ..tensor("w", &[2], &[("location", "w.bin")]) };
    let twice = TensorProto { float_data: vec![1.0, 2.0], ..tensor("w", &[2], &[("location", "w.bin")]) };
    let at = |entries: &[(&str, &str)]| tensor("w", &[2], entries);
    let cases: Vec<(TensorProto, &[&str])> = vec![
        (at(&[("location", "v.bin")]), &["`v.bin`", "cannot be read", "no such file"]),
        (at(&[("location", "../w.bin")]), &["`../w.bin`", "not a path inside"]),
        (at(&[("location", "/w.bin")]), &["`/w.bin`", "not a path inside"]),
        (at(&[("location", "")]), &["does not say in which"]),
        (at(&[("offset", "4")]), &["does not say in which"]),
        (at(&[("location", "w.bin"), ("offset", "60")]), &["8 bytes from byte 60", "`w.bin`", "has 64"]),
        (at(&[("location", "w.bin"), ("offset", "18446744073709551615")]), &["from byte 18446744073709551615"]),
        (at(&[("location", "w.bin"), ("offset", "-4")]), &["`offset`", "`-4`", "not a number of bytes"]),
        (at(&[("location", "w.bin"), ("offset", "99999999999999999999")]), &["`offset`", "not a number of bytes"]),
        (at(&[("location", "w.bin"), ("length", "many")]), &["`length`", "`many`"]),
        (at(&[("location", "w.bin"), ("length", "12")]), &["12 bytes", "shape take 8"]),
        (tensor("w", &[i64::MAX], &[("location", "w.bin")]), &["nothing says how many bytes"]),
        (tensor("w", &[1 << 40], &[("location", "w.bin")]), &["4398046511104 bytes", "has 64"]),
        (tensor("w", &[-2], &[("location", "w.bin"), ("length", "8")]), &["-2 is not an extent"]),
        (strings, &["strings, which cannot"]),
        (twice, &["elements in the model as well"]),
    ];
    for (tensor, expected) in cases {
        let error = import(bytes_of(&sum(tensor)), &reading(numbers())).expect_err("it is refused").to_string();
        for part in [&["`g`", "`w`"], expected].concat() {
            assert!(error.contains(part), "no `{part}` in: {error}");
        }
    }
    let m = sum(tensor("w", &[2], &[("location", "w.bin")]));
    let error = import(bytes_of(&m), &ImportOptions::default()).expect_err("there are no files").to_string();
    assert!(error.contains("another file, `w.bin`") && error.contains("no source of other files"), "{error}");
    // Without a stated length, the length is that of the elements, whatever follows them.
    assert!(import(bytes_of(&m), &reading(numbers())).is_ok());
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("anfora-external-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder for temporary files");
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_folder_gives_its_own_files_only() {
    let dir = Scratch::new("folder");
    let inside = dir.0.join("model");
    std::fs::create_dir_all(inside.join("deeper")).unwrap();
    std::fs::write(dir.0.join("secret"), [0; 8]).unwrap();
    std::fs::write(inside.join("deeper/w.bin"), [0; 8]).unwrap();
    let folder = DataFolder::beside(&inside.join("m.onnx"));
    assert_eq!(folder, DataFolder::new(&inside));
    assert_eq!(folder.read("deeper/w.bin").unwrap().len(), 8);
    assert!(folder.read("absent").is_err());
    assert!(folder.read("deeper").is_err(), "a folder is no file");
    #[cfg(unix)]
    {
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, inside.join(name)).unwrap();
        link(&inside.join("deeper/w.bin"), "good");
        link(&dir.0.join("secret"), "bad");
        link(Path::new("/dev/zero"), "endless");
        assert_eq!(folder.read("good").unwrap().len(), 8);
        assert!(folder.read("bad").unwrap_err().to_string().contains("leads out"));
        assert!(folder.read("endless").is_err());
    }
    let relative = DataFolder::beside(Path::new("m.onnx"));
    assert_eq!(relative, DataFolder::new("."));
}

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{}", e[0]))
}

fn external(min_bytes: u64) -> ExportOptions {
    let external = ExternalData { min_bytes, when: WhenExternal::Always, ..ExternalData::new("m.data") };
    ExportOptions { external_data: Some(external), max_splat_bytes: u64::MAX, ..ExportOptions::default() }
}

fn contents(data: &DataFile) -> Bytes {
    let mut bytes = Vec::new();
    data.write_to(&mut bytes).expect("memory can be written");
    assert_eq!(bytes.len() as u64, data.len());
    bytes.into()
}

/// Reads an exported model with its file.
fn back(exported: &Exported) -> Module {
    let data = exported.data.as_ref().expect("there is a file");
    let files: FxHashMap<String, Bytes> = [(data.location().to_string(), contents(data))].into_iter().collect();
    import(exported.bytes.clone().into(), &reading(Arc::new(files))).unwrap_or_else(|e| panic!("{e}")).module
}

#[test]
fn constants_go_to_a_file_and_come_back() {
    let text = "def @main(%x: Tensor[(4,), float32]) {
  let %a = add(%x, dense<Tensor[(4,), float32]>[1, 2, 3, 4]);
  let %b = add(%a, dense<Tensor[(1,), float32]>[5]);
  let %c = add(%b, dense<Tensor[(3, 4), float32]>[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  let %d = add(%c, dense<Tensor[(20000, 3, 4), float32]>[0.5]);
  let %e: Tensor[(20000, 3, 4), float32] = onnx.Frob(%d, dense<Tensor[(2,), string]>[\"a long string of more than 16\", \"b\"]);
  %e
}";
    let module = parse(text);
    let exported = export(&module, &external(16)).unwrap();
    let written = ModelProto::decode(Bytes::from(exported.bytes.clone())).unwrap();
    let mut ends = 0;
    let mut outside = 0;
    for t in &written.graph.as_ref().unwrap().initializer {
        let find = |key: &str| t.external_data.iter().find(|e| e.key() == key).map(|e| e.value());
        let Some(location) = find("location") else { continue };
        assert_eq!((location, t.data_location), ("m.data", Some(DataLocation::External as i32)));
        assert!(t.raw_data.is_none());
        let number = |key: &str| find(key).and_then(|v| v.parse::<u64>().ok()).expect("a number");
        let (offset, length) = (number("offset"), number("length"));
        assert!(offset >= ends, "in program order, none over another");
        assert_eq!(offset % if length >= 65536 { 4096 } else { 64 }, 0, "aligned");
        ends = offset + length;
        outside += 1;
    }
    assert_eq!(outside, 3, "all of at least 16 bytes, but no strings");
    let data = exported.data.as_ref().unwrap();
    assert_eq!(data.len(), ends);
    let module_back = back(&exported);
    let whole = export(&module_back, &ExportOptions { max_splat_bytes: u64::MAX, ..ExportOptions::default() }).unwrap();
    assert_eq!(
        whole,
        export(&module, &ExportOptions { max_splat_bytes: u64::MAX, ..ExportOptions::default() }).unwrap()
    );

    // A second export gives the same result.
    assert_eq!(export(&module_back, &external(16)).unwrap(), exported);
    assert_eq!(export(&module, &external(1 << 40)).unwrap().data, None);
    for bad in ["../m.data", "/m.data", "", "a/./b"] {
        let external = ExternalData { when: WhenExternal::Always, ..ExternalData::new(bad) };
        let options = ExportOptions { external_data: Some(external), ..ExportOptions::default() };
        let error = export(&module, &options).expect_err("it is no place for a file").to_string();
        assert!(error.contains("not inside the model's folder"), "{error}");
    }
}

#[test]
fn constants_of_nodes_and_subgraphs_go_there_too() {
    let values = || floats(&(0..64).map(|i| i as f32).collect::<Vec<_>>());
    let inner = graph("b", vec![node("Neg", &["v"], &["o"], vec![])], vec![], vec![float("o", &[64])]);
    let inner = GraphProto { initializer: vec![initializer("v", &values())], ..inner };
    let nodes = vec![
        node(
            "Constant",
            &[],
            &["c"],
            vec![tensor_attribute(
                "value",
                TensorProto {
                    name: None,
                    ..initializer("", &Literal::from_elements(&[2, 32], &(0..64).collect::<Vec<i32>>()).unwrap())
                },
            )],
        ),
        node("Frob", &["c"], &["y"], vec![graph_attribute("body", &inner)]),
    ];
    let m = model(13, graph("g", nodes, vec![], vec![float("y", &[64])]));
    let imported = import(bytes_of(&m), &ImportOptions::default()).unwrap();
    let exported = export(&imported.module, &external(64)).unwrap();
    assert!(exported.data.as_ref().is_some_and(|d| d.len() >= 512), "{:?}", exported.data);
    assert!(exported.bytes.len() < 600);
    assert_eq!(back(&exported).to_string(), imported.module.to_string());
}

#[test]
fn a_model_that_would_be_too_large_takes_a_file_by_itself() {
    // 3 GB of a repeated number, stored once, in a version without a node that repeats it.
    let text = "def @main(%x: Tensor[(750000000,), float32]) { add(%x, dense<Tensor[(750000000,), float32]>[1.5]) }";
    let module = parse(text);
    let options = |external_data| ExportOptions {
        external_data,
        max_splat_bytes: u64::MAX,
        opset: Some(8),
        ..ExportOptions::default()
    };
    let error = export(&module, &options(None)).expect_err("it is too large").to_string();
    assert!(error.contains("2 GiB") && error.contains("a file beside it"), "{error}");
    let exported = export(&module, &options(Some(ExternalData::new("m.data")))).unwrap();
    assert!(exported.bytes.len() < 1000);
    assert_eq!(exported.data.unwrap().len(), 3_000_000_000);

    let small = parse("def @main(%x: Tensor[(2,), float32]) { add(%x, dense<Tensor[(2,), float32]>[1, 2]) }");
    assert_eq!(export(&small, &options(Some(ExternalData::new("m.data")))).unwrap().data, None);
}

#[test]
fn splats_in_a_data_file_have_a_limit() {
    // 4 TiB of a repeated number, and two constants that are each within the limit.
    for (extents, nodes, bytes) in [([1_u64 << 40, 1], 1, None), ([300_000_000, 400_000_000], 1, Some(1_200_000_000))] {
        let [a, b] = extents;
        let text =
            format!("def @main() {{ (dense<Tensor[({a},), float32]>[1.5], dense<Tensor[({b},), float32]>[2.5]) }}");
        let exported = export(&parse(&text), &external(16)).unwrap();
        let written = ModelProto::decode(Bytes::from(exported.bytes)).unwrap().graph.unwrap();
        let made = written.node.iter().filter(|n| n.op_type() == "ConstantOfShape").count();
        assert_eq!((made, exported.data.map(|d| d.len())), (nodes, bytes), "{extents:?}");
    }
}

/// Writes 2.2 GB to disk and reads them back, if `ANFORA_LARGE` is set. It needs as much space on
/// disk and in memory.
#[test]
fn more_than_two_gigabytes_go_to_disk_and_come_back() {
    if std::env::var_os("ANFORA_LARGE").is_none() {
        return;
    }
    const EXTENT: usize = 275_000_000;
    let text = format!(
        "def @main(%x: Tensor[({EXTENT},), float32]) {{
  let %a = add(%x, dense<Tensor[({EXTENT},), float32]>[1.5]);
  add(%a, dense<Tensor[({EXTENT},), float32]>[2.5])
}}"
    );
    let options = ExportOptions {
        external_data: Some(ExternalData::new("m.onnx.data")),
        max_splat_bytes: u64::MAX,
        // This version has no node that repeats a number.
        opset: Some(8),
        ..ExportOptions::default()
    };
    let exported = export(&parse(&text), &options).unwrap();
    let dir = Scratch::new("large");
    let path = dir.0.join("m.onnx.data");
    let mut file = std::fs::File::create(&path).unwrap();
    exported.data.expect("it is too large for one file").write_to(&mut file).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > i32::MAX as u64);
    let folder = Arc::new(DataFolder::beside(&dir.0.join("m.onnx")));
    let module = import(exported.bytes.into(), &reading(folder)).unwrap_or_else(|e| panic!("{e}")).module;
    let found = literals(&module);
    assert_eq!(found.len(), 2);
    for (literal, value) in found.iter().zip([1.5f32, 2.5]) {
        assert_eq!(literal.expanded_bytes(), Some(4 * EXTENT));
        let last = &literal.to_bytes()[4 * EXTENT - 4..];
        assert_eq!(last, value.to_le_bytes());
    }
}

/// The attribute of a node that is kept unchanged keeps its elements, too.
#[test]
fn tensors_in_attributes_without_another_form_are_read() {
    let mut a = AttributeProto { name: Some("ts".into()), ..AttributeProto::default() };
    a.set_type(anfora_onnx::proto::AttributeType::Tensors);
    a.tensors = vec![tensor("t", &[2], &[("location", "w.bin"), ("offset", "8")])];
    let m = model(13, graph("g", vec![node("Frob", &[], &["y"], vec![a])], vec![], vec![float("y", &[2])]));
    let imported = import(bytes_of(&m), &reading(numbers())).unwrap_or_else(|e| panic!("{e}"));
    let exported = export(&imported.module, &ExportOptions::default()).unwrap();
    let written = ModelProto::decode(Bytes::from(exported.bytes)).unwrap();
    let t = &written.graph.unwrap().node[0].attribute[0].tensors[0];
    assert_eq!(t.raw_data.as_deref(), Some(&[0, 0, 0, 64, 0, 0, 64, 64][..]));
    assert_eq!((t.name(), t.data_location, t.external_data.len()), ("t", None, 0));
}

/// Imports a file of 4 GiB, for which the system reserves memory that nothing touches.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_file_has_less_than_2_to_the_32_bytes() {
    let mut bytes: Vec<u8> = Vec::new();
    if bytes.try_reserve_exact(1 << 32).is_err() {
        return;
    }
    drop(bytes);
    let refused = |len: usize| {
        import(vec![0; len].into(), &ImportOptions::default()).expect_err("zeros are no model").to_string()
    };
    let error = refused(1 << 32);
    assert!(error.contains("4294967296 bytes") && error.contains("2^32"), "{error}");
    // One byte less is read, and its first byte is wrong.
    let error = refused((1 << 32) - 1);
    assert!(!error.contains("2^32"), "{error}");
}

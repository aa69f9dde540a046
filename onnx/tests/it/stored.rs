//! Models in files: large constants stay there, and are copied or referred to when the model is
//! written.

use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora_ir::{DType, Literal};
use anfora_onnx::proto::{GraphProto, ModelProto, TensorProto, TrainingInfoProto};
use anfora_onnx::tensor::tensor_of;
use anfora_onnx::{
    DataFolder, ExportOptions, ExportProblem, ExportedModel, ExternalData, ImportOptions, Imported, ModelFile,
    WhenExternal, export, export_model, import, import_file,
};
use bytes::Bytes;
use prost::Message;

use crate::models::{float, graph, model, node};

/// A folder that is removed at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("anfora-stored-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder for temporary files");
        Scratch(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The number of elements of the large weights. The small ones have a few.
const LARGE: i64 = 200_000;
const SIZES: [i64; 5] = [LARGE, 3, LARGE, 2000, 1];

/// Returns a model that adds weights of different sizes, two of which are equal.
fn sums() -> ModelProto {
    let mut g = graph("g", Vec::new(), vec![float("x", &[1])], vec![float("y", &[LARGE])]);
    for (i, n) in SIZES.into_iter().enumerate() {
        let elements: Vec<f32> = (0..n).map(|e| (e + n) as f32).collect();
        let literal = Literal::from_elements(&[n as usize], &elements).unwrap();
        let tensor = tensor_of(&literal, u64::MAX).unwrap();
        g.initializer.push(TensorProto { name: Some(format!("w{i}")), ..tensor });
        let output = if n == LARGE && i > 0 { "y".to_string() } else { format!("y{i}") };
        g.node.push(node("Add", &["x", &format!("w{i}")], &[&output], vec![]));
    }
    model(13, g)
}

fn write(path: &Path, model: &ModelProto) -> Bytes {
    let bytes = Bytes::from(model.encode_to_vec());
    fs::write(path, &bytes).expect("the model can be written");
    bytes
}

fn read(path: &Path) -> Imported {
    let options = ImportOptions { data_files: Some(Arc::new(DataFolder::beside(path))), ..ImportOptions::default() };
    import_file(ModelFile::read(path).expect("it is a file"), &options).unwrap_or_else(|e| panic!("{e}"))
}

fn written(exported: &ExportedModel, path: &Path) -> Vec<u8> {
    let mut file = BufWriter::new(fs::File::create(path).unwrap());
    exported.model.write_to_file(&mut file).unwrap();
    drop(file);
    let mut memory = Vec::new();
    exported.model.write_to(&mut memory).unwrap();
    let bytes = fs::read(path).unwrap();
    assert!(bytes == memory && memory.len() as u64 == exported.model.len(), "both ways give the same");
    bytes
}

/// Returns the constants in files, by their number of elements.
fn stored(imported: &Imported) -> Vec<usize> {
    let table = &imported.module.cx.literals;
    let all = (0..table.len()).map(|i| table.get(anfora_ir::EntityId::from_index(i)));
    all.filter(|l| l.file_range().is_some()).map(Literal::element_count).collect()
}

#[test]
fn a_model_in_a_file_is_read_and_written_as_one_in_memory() {
    let scratch = Scratch::new("same");
    let path = scratch.path("m.onnx");
    let mut model = sums();
    model.producer_name = Some("a tool".into());
    model.metadata_props.push(Default::default());
    let bytes = write(&path, &model);
    let (memory, file) = (import(bytes, &ImportOptions::default()).unwrap(), read(&path));
    assert_eq!(stored(&file), [LARGE as usize, 2000]);
    assert_eq!(stored(&memory), [0; 0]);
    assert!(memory.module.to_string() == file.module.to_string(), "the programs are equal");
    let wanted = export(&memory.module, &ExportOptions::default()).unwrap();
    let exported = export_model(&file.module, &ExportOptions::default()).unwrap();
    assert_eq!((exported.nodes.total(), &exported.data), (wanted.nodes.total(), &None));
    assert!(written(&exported, &scratch.path("out.onnx")) == wanted.bytes, "the models are equal");
    assert!(export(&file.module, &ExportOptions::default()).unwrap().bytes == wanted.bytes);
    // The output may replace the input.
    let out = scratch.path("out.onnx");
    fs::rename(&out, &path).unwrap();
    assert!(written(&exported, &out) == wanted.bytes, "the open file is read");
}

#[test]
fn faults_are_at_the_same_byte_in_a_file_and_in_memory() {
    let scratch = Scratch::new("faults");
    let path = scratch.path("m.onnx");
    let whole = sums().encode_to_vec();
    for cut in [whole.len() - 1, whole.len() - 9, 1_500_000, (1 << 20) + 3] {
        let bytes = Bytes::from(whole[..cut].to_vec());
        fs::write(&path, &bytes).unwrap();
        let wanted = import(bytes, &ImportOptions::default()).expect_err("it is cut").to_string();
        let found = import_file(ModelFile::read(&path).unwrap(), &ImportOptions::default());
        assert_eq!(found.expect_err("it is cut").to_string(), wanted);
    }
    // Unknown fields after the graph, and training, which refers to initializers.
    let mut unknown = whole.clone();
    unknown.extend([0xf8, 0x07, 1]);
    fs::write(&path, &unknown).unwrap();
    let wanted = import(unknown.into(), &ImportOptions::default()).expect_err("a field is unknown").to_string();
    let found = import_file(ModelFile::read(&path).unwrap(), &ImportOptions::default());
    assert_eq!(found.expect_err("a field is unknown").to_string(), wanted);
    let trained = ModelProto { training_info: vec![TrainingInfoProto::default()], ..sums() };
    write(&path, &trained);
    assert_eq!(stored(&read(&path)), [0; 0]);
}

/// Writes a model whose large weights are beside it. Returns what is read of it.
fn with_data_file(scratch: &Scratch) -> Imported {
    let imported = import(sums().encode_to_vec().into(), &ImportOptions::default()).unwrap();
    let external = ExternalData { when: WhenExternal::Always, ..ExternalData::new("m.onnx.data") };
    let options = ExportOptions { external_data: Some(external), ..ExportOptions::default() };
    let exported = export_model(&imported.module, &options).unwrap();
    written(&exported, &scratch.path("m.onnx"));
    let mut data = BufWriter::new(fs::File::create(scratch.path("m.onnx.data")).unwrap());
    exported.data.as_ref().unwrap().write_to_file(&mut data).unwrap();
    drop(data);
    read(&scratch.path("m.onnx"))
}

/// Returns options for a model in a folder.
fn keeping(folder: &Path) -> ExportOptions {
    ExportOptions { keep_data_beside: Some(folder.join("small.onnx")), ..ExportOptions::default() }
}

#[test]
fn weights_stay_in_a_data_file_of_the_folder() {
    let scratch = Scratch::new("keep");
    let imported = with_data_file(&scratch);
    assert_eq!(stored(&imported), [LARGE as usize, 2000]);
    let kept = export_model(&imported.module, &keeping(&scratch.0)).unwrap();
    assert!(kept.model.len() < 4096 && kept.data.is_none(), "{} bytes", kept.model.len());
    written(&kept, &scratch.path("small.onnx"));
    assert_eq!(read(&scratch.path("small.onnx")).module.to_string(), imported.module.to_string());
    let decoded = ModelProto::decode(&fs::read(scratch.path("small.onnx")).unwrap()[..]).unwrap();
    let places = |m: &ModelProto| -> Vec<_> {
        m.graph.iter().flat_map(|g: &GraphProto| &g.initializer).map(|t| t.external_data.clone()).collect()
    };
    let before = ModelProto::decode(&fs::read(scratch.path("m.onnx")).unwrap()[..]).unwrap();
    // The constants that are equal are in one place now.
    let mut wanted = places(&before);
    wanted[1] = wanted[0].clone();
    assert_eq!(places(&decoded), wanted);
    // From a folder above, the location has two parts; from elsewhere, the weights are copied.
    let above = export_model(&imported.module, &keeping(scratch.0.parent().unwrap())).unwrap();
    assert!(above.model.len() < 4096);
    let elsewhere = scratch.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let moved = export_model(&imported.module, &keeping(&elsewhere)).unwrap();
    let bytes = written(&moved, &elsewhere.join("m.onnx"));
    assert!(import(bytes.into(), &ImportOptions::default()).unwrap().module.to_string() == imported.module.to_string());
    // The model does not refer to a file that it replaces.
    let replacing = ExportOptions { keep_data_beside: Some(scratch.path("m.onnx.data")), ..ExportOptions::default() };
    assert!(export_model(&imported.module, &replacing).unwrap().model.len() > 4 * LARGE as u64);
    // A model in memory has no data file.
    let memory = import(sums().encode_to_vec().into(), &ImportOptions::default()).unwrap();
    assert!(export_model(&memory.module, &keeping(&scratch.0)).unwrap().model.len() > 4 * LARGE as u64);
}

#[test]
fn a_data_file_that_changes_is_an_error() {
    let scratch = Scratch::new("changes");
    let imported = with_data_file(&scratch);
    let data = scratch.path("m.onnx.data");
    let file = fs::OpenOptions::new().write(true).open(&data).unwrap();
    file.set_len(5000).unwrap();
    // The reference would be to other elements, so they are copied, which fails.
    let exported = export_model(&imported.module, &keeping(&scratch.0)).unwrap();
    let error = exported.model.write_to(&mut Vec::new()).expect_err("the file has changed").to_string();
    assert!(error.contains("m.onnx.data has changed since the program was read"), "{error}");
    let error = export(&imported.module, &ExportOptions::default()).expect_err("the file has changed");
    assert!(matches!(error.problem, ExportProblem::Storage(_)), "{error}");
    assert_eq!(imported.module.cx.literals.failure().unwrap_err().to_string(), error.problem.to_string());
}

#[test]
fn equal_weights_are_one_constant_wherever_they_are() {
    let scratch = Scratch::new("equal");
    // Beside the model and in it.
    let imported = with_data_file(&scratch);
    let kept = export_model(&imported.module, &keeping(&scratch.0)).unwrap();
    let mut model = ModelProto::decode(&written(&kept, &scratch.path("a.onnx"))[..]).unwrap();
    let inside = sums().graph.unwrap().initializer.swap_remove(0);
    assert_eq!(inside.data_type, Some(1), "{}", DType::Float32);
    let g = model.graph.as_mut().unwrap();
    g.initializer.push(TensorProto { name: Some("again".into()), ..inside });
    g.node.push(node("Neg", &["again"], &["z"], vec![]));
    g.output.push(float("z", &[LARGE]));
    write(&scratch.path("b.onnx"), &model);
    let again = read(&scratch.path("b.onnx"));
    assert_eq!(stored(&again), [LARGE as usize, 2000], "there is no second large constant");
}

//! Tests of NumPy files: reading, writing, and binding to parameters.

use std::path::{Path, PathBuf};

use anfora_ir::{DType, Literal, Module, Source, parse_module, verify_module};
use anfora_manager::{Pass, PassContext, parse_pipeline};
use anfora_passes::{has_npy_type, read_npy, registry, write_npy};
use half::f16;

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("anfora-npy-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }

    fn file(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, contents).expect("a file can be written");
        path
    }

    fn tensor(&self, name: &str, tensor: &Literal) -> PathBuf {
        self.file(name, &npy(tensor))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn npy(tensor: &Literal) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_npy(&mut bytes, tensor).expect("vectors take all bytes");
    bytes
}

/// Returns a file of version 1 with this header.
fn file_with(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn floats(shape: &[usize], elements: &[f32]) -> Literal {
    Literal::from_elements(shape, elements).expect("as many as the shape says")
}

#[test]
fn tensors_come_back_as_they_went() {
    let folder = Folder::new("back");
    for tensor in [
        floats(&[2, 3], &[1.0, -0.0, f32::NAN, 3.5, 4.0, 5.0]),
        Literal::from_elements(&[3], &[true, false, true]).unwrap(),
        Literal::scalar(i64::MIN),
        Literal::from_elements(&[0, 4], &[0u8; 0]).unwrap(),
        Literal::from_elements(&[2], &[f16::from_f32(1.5), f16::INFINITY]).unwrap(),
        Literal::splat(&[3, 30_000], 7u16),
    ] {
        let path = folder.tensor("t.npy", &tensor);
        assert_eq!(read_npy(&path).unwrap(), tensor);
        let bytes = std::fs::read(&path).unwrap();
        let data = bytes.len() - tensor.to_bytes().len();
        assert!(data.is_multiple_of(64) && bytes[data - 1] == b'\n', "the elements are aligned");
    }
    for dtype in [DType::BFloat16, DType::String, DType::Int4] {
        assert!(!has_npy_type(dtype));
    }
    let long = Literal::splat(&vec![1; 40_000], 1f32);
    assert_eq!(npy(&long)[6], 2, "a header that version 1 has no room for");
}

#[test]
fn all_orders_are_read() {
    let folder = Folder::new("orders");
    let read = |header: &str, data: &[u8]| read_npy(&folder.file("a.npy", &file_with(header, data)));
    let expected = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let bytes = |order: [f32; 6], big: bool| -> Vec<u8> {
        order.iter().flat_map(|f| if big { f.to_be_bytes() } else { f.to_le_bytes() }).collect()
    };
    let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let columns = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
    for (header, data) in [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", bytes(rows, false)),
        ("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", bytes(rows, true)),
        ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", bytes(columns, false)),
        ("{\"shape\":(2L,3L,),\"fortran_order\":True,\"descr\":\">f4\"}", bytes(columns, true)),
    ] {
        assert_eq!(read(header, &data).unwrap(), expected, "{header}");
    }
    let scalar = read("{'descr': '|b1', 'fortran_order': True, 'shape': ()}", &[1]).unwrap();
    assert_eq!(scalar, Literal::scalar(true));
    let cube: Vec<u8> = (0..24).collect();
    let cube = read("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}", &cube).unwrap();
    let at = |i: usize, j: usize, k: usize| cube.to_bytes()[(i * 3 + j) * 4 + k];
    assert_eq!((at(1, 0, 0), at(0, 1, 0), at(0, 0, 1), at(1, 2, 3)), (1, 2, 6, 23));
    let large = 1usize << 62;
    let empty = format!("{{'descr': '<f4', 'fortran_order': True, 'shape': ({large}, {large}, 0)}}");
    assert_eq!(read(&empty, &[]).unwrap().shape(), [large, large, 0]);
}

#[test]
fn what_is_no_tensor_is_refused_in_words() {
    let folder = Folder::new("refused");
    let deep = format!("{{'descr': {}", "(".repeat(60_000));
    for (contents, wanted) in [
        (b"".to_vec(), "this is no NumPy file"),
        (b"\x93NUMPY\x01\x00".to_vec(), "failed to fill whole buffer"),
        (b"\x93NUMPY\x09\x00".to_vec(), "version 9 of the format is not known"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}".to_vec(), "the header is too long"),
        (file_with("{}", b""), "the header is not that of a NumPy file"),
        (file_with("\u{fffd}", b""), "the header is not that of a NumPy file"),
        (file_with(&deep, b""), "structured arrays are not tensors"),
        (file_with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", &[0; 4]), "structured arrays"),
        (
            file_with("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"cos\nsystem\n"),
            "pickled Python objects",
        ),
        (file_with("{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", &[0; 12]), "elements of type U3"),
        (file_with("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", &[0; 4]), "the header is not that"),
        (file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", &[0; 4]), "the header is not that"),
        (file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", &[0; 4]), "there are 1"),
        (
            file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 1000)}", &[0; 4]),
            "claims 4000000000000 elements, but the file has",
        ),
        (
            file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", &[]),
            "the array is too large",
        ),
        (
            file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 9)}", &[]),
            "the array is too large",
        ),
    ] {
        let error = read_npy(&folder.file("a.npy", &contents)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    assert!(read_npy(&folder.0).is_err());
    assert!(read_npy(Path::new("/nowhere/x.npy")).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_read_once() {
    use std::os::fd::AsRawFd;

    let (pipe, mut end) = std::io::pipe().expect("a pipe");
    write_npy(&mut end, &floats(&[2], &[1.0, 2.0])).expect("the pipe has room");
    drop(end);
    let path = format!("/dev/fd/{}", pipe.as_raw_fd());
    let text = bound(&format!("%w=file(\"{path}\")")).unwrap();
    assert!(text.contains("let %w = dense<Tensor[(2,), float32]>[1, 2];"), "{text}");
    let (pipe, mut end) = std::io::pipe().expect("a pipe");
    std::io::Write::write_all(&mut end, b"PK\x03\x04").expect("the pipe has room");
    drop(end);
    let error = bound(&format!("file(\"/dev/fd/{}\")", pipe.as_raw_fd())).unwrap_err();
    assert!(error.contains("read"), "{error}");
}

// ---- BindParams ----

const PROGRAM: &str = "def @main(%x: Tensor[(n,), float32], %w: Tensor[(n,), float32], %b: float32) {
  multiply(add(%x, %w), %b)
}";

/// Returns the program after BindParams with these params.
fn bound(params: &str) -> Result<String, String> {
    let mut module: Module = parse_module(Source::new("input", PROGRAM), anfora_ops::standard()).expect("a program");
    let params = params.replace('\\', "\\\\").replace('"', "\\\"");
    let registry = registry();
    let text = format!("BindParams{{function=main,params=\"{params}\"}}");
    let pipeline = parse_pipeline(&registry, &text).map_err(|e| e.to_string())?;
    let cx = PassContext::with_registry(registry);
    pipeline.apply(&mut module, &cx).map_err(|e| format!("{e:?}"))?;
    verify_module(&module).expect("it is well-formed");
    Ok(module.to_string())
}

#[test]
fn parameters_are_bound_to_the_tensors_of_files() {
    let folder = Folder::new("bound");
    let w = folder.tensor("w-1.npy", &floats(&[2], &[1.0, 2.0])).display().to_string();
    let odd = folder.tensor("50% \"b\", c[0].bin", &Literal::scalar(3f32)).display().to_string();
    let odd = format!("file(\"{}\")", odd.replace('"', "\\\""));
    let expected = "def @main(%x: Tensor[(2,), float32]) -> Tensor[(2,), float32] {
  let %w = dense<Tensor[(2,), float32]>[1, 2];
  let %b = 3f;
  multiply(add(%x, %w), %b)
}
";
    for params in [
        format!("%w={w},%b=3f"),
        format!(" %b = 3f , %\"w\" = file( \"{w}\" ) , "),
        format!("%w={w}, %b={odd}"),
        "%w=dense<Tensor[(2,), float32]>[1, 2],%b=3f".to_string(),
    ] {
        assert_eq!(bound(&params).as_deref(), Ok(expected), "{params}");
    }
}

#[test]
fn files_that_do_not_fit_are_errors_of_the_pass() {
    let folder = Folder::new("unfit");
    let path = |name: &str, tensor: &Literal| folder.tensor(name, tensor).display().to_string();
    let doubles = path("doubles.npy", &Literal::from_elements(&[2], &[1f64, 2.0]).unwrap());
    let square = path("square.npy", &Literal::splat(&[2, 2], 1f32));
    let text = folder.file("text.npy", b"1, 2").display().to_string();
    for (params, wanted) in [
        ("%w=/nowhere/w.npy".to_string(), "No such file"),
        (format!("%w={text}"), "this is no NumPy file"),
        (format!("%w={doubles}"), "its literal is Tensor[(2,), float64]"),
        (format!("%w={square}"), "its literal is Tensor[(2, 2), float32]"),
        (format!("%w={square}[w]"), "it is no archive"),
        (format!("%v={square}"), "there is no parameter `%v`"),
    ] {
        let error = bound(&params).unwrap_err();
        assert!(error.contains(wanted), "{params}: {error}");
    }
}

#[cfg(feature = "npz")]
mod archives {
    use std::io::{Cursor, Write};

    use anfora_passes::read_npz;
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    fn archive(entries: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, contents) in entries {
            zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
            zip.write_all(contents).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn arrays_are_read_by_name_compressed_or_not() {
        let folder = Folder::new("archives");
        let w = floats(&[2], &[1.0, 2.0]);
        let entries =
            [("w.npy", npy(&w)), ("layer.0/b.npy", npy(&Literal::scalar(3f32))), ("readme.txt", b"no array".to_vec())];
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let path = folder.file("a.npz", &archive(&entries, method));
            let arrays = read_npz(&path).unwrap();
            assert_eq!(arrays[0], ("w".to_string(), w.clone()));
            assert_eq!(arrays[1].0, "layer.0/b");
            let path = path.display();
            let one = bound(&format!("%w={path},%b={path}[layer.0/b]")).unwrap();
            let other = bound(&format!("%w=file(\"{path}\")[\"w\"],%b=file(\"{path}\")[\"layer.0/b\"]")).unwrap();
            assert_eq!(one, other);
            assert!(one.contains("[1, 2]") && one.contains("let %b = 3f;"), "{one}");
            let error = bound(&format!("%w={path}[nobody]")).unwrap_err();
            assert!(error.contains("it has no array `nobody`"), "{error}");
            let error = bound(&path.to_string()).unwrap_err();
            assert!(error.contains("there is no parameter `%layer.0/b`"), "{error}");
        }
        let whole = archive(&[("w.npy", npy(&w)), ("b.npy", npy(&Literal::scalar(3f32)))], CompressionMethod::Deflated);
        let path = folder.file("all.npz", &whole);
        let all = bound(&path.display().to_string()).unwrap();
        assert!(all.starts_with("def @main(%x: Tensor[(2,), float32])"), "{all}");
        let error = bound(&format!("{}, %b=4f", path.display())).unwrap_err();
        assert!(error.contains("the parameter `%b` is bound twice"), "{error}");
    }

    #[test]
    fn broken_archives_are_errors() {
        let folder = Folder::new("broken");
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 100)}";
        let lies = archive(&[("w.npy", file_with(header, &[0; 64]))], CompressionMethod::Deflated);
        let error = read_npz(&folder.file("lies.npz", &lies)).unwrap_err().to_string();
        assert!(error.contains("array `w`: the header claims 400000000000 elements, but the file has"), "{error}");

        let whole = archive(&[("w.npy", npy(&floats(&[2], &[1.0, 2.0])))], CompressionMethod::Stored);
        for cut in 0..whole.len() {
            assert!(read_npz(&folder.file("cut.npz", &whole[..cut])).is_err(), "{cut}");
        }
        // If a byte of the file is changed, the result is an error or the same, never a panic.
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x15;
            let _ = read_npz(&folder.file("changed.npz", &changed));
        }
        let data = whole.windows(8).position(|w| w == [0, 0, 128, 63, 0, 0, 0, 64]).unwrap();
        let mut changed = whole.clone();
        changed[data] ^= 1;
        assert!(read_npz(&folder.file("sum.npz", &changed)).is_err(), "the check sum");
    }
}

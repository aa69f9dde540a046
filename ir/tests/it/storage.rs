//! Constants whose bytes are in a file.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora_ir::{
    DType, FileRange, FunctionBuilder, IntoDiagnostics, Literal, LiteralError, Module, Source, StorageError,
    StoredFile, StoredFileKind, module_hash, parse_module,
};
use bytes::Bytes;

/// A folder that is removed at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("anfora-storage-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder for temporary files");
        Scratch(dir)
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.join("w.bin");
        fs::write(&path, bytes).expect("the file can be written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> Arc<StoredFile> {
    Arc::new(StoredFile::open(path, StoredFileKind::Data).expect("it is a file"))
}

fn floats(file: &Arc<StoredFile>, offset: u64, n: usize) -> Literal {
    let range = FileRange::new(Arc::clone(file), offset, 4 * n).expect("it is inside the file");
    Literal::in_file(DType::Float32, &[n], range).expect("it can be read")
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the bytes of `n` numbers that differ, from `first` on.
fn numbers(first: usize, n: usize) -> Vec<u8> {
    (first..first + n).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

/// Among them are the largest that is kept, the largest that is hashed whole, and the next ones.
const SIZES: [usize; 7] = [2, 1024, 1025, 5000, 16_384, 16_385, 100_000];

fn module_of(literal: &Literal) -> Module {
    let mut module = Module::new(Default::default());
    let mut f = FunctionBuilder::new(&mut module, "main");
    let constant = f.literal(literal.clone());
    f.finish(constant).expect("a function");
    module
}

#[test]
fn a_constant_in_a_file_is_the_constant_in_memory() {
    let scratch = Scratch::new("same");
    for n in SIZES {
        let bytes = numbers(1, n);
        let twice = [&bytes[..], &bytes].concat();
        let file = open(&scratch.file(&twice));
        let (stored, copy) = (floats(&file, 0, n), floats(&file, 4 * n as u64, n));
        let memory = Literal::from_bytes(DType::Float32, &[n], Bytes::from(bytes.clone())).unwrap();
        assert!(stored.file_range().is_some() && stored.is_dense(), "it stays in the file");
        for same in [&memory, &copy, &floats(&file, 0, n)] {
            assert_eq!((&stored, same), (same, &stored));
        }
        assert_eq!((hash_of(&stored), hash_of(&copy)), (hash_of(&memory), hash_of(&memory)));
        let (a, b) = (module_of(&stored), module_of(&memory));
        assert_eq!(module_hash(&a), module_hash(&b));
        assert_eq!(a.to_string(), b.to_string());
        let mut table = anfora_ir::LiteralTable::default();
        assert_eq!(table.intern(stored.clone()), table.intern(memory.clone()));
        assert_eq!(table.intern(copy), table.intern(stored.clone()));
        // An element in the middle, outside of every sample, makes a difference.
        let mut other = bytes.clone();
        let at = bytes.len() / 4 * 3 / 4 * 4 - 4;
        other[at] ^= 1;
        let other = Literal::from_bytes(DType::Float32, &[n], other.into()).unwrap();
        assert!(n == 2 || stored != other);
        assert!(n == 2 || other != stored);
        assert_eq!(stored.elements::<f32>(), memory.elements::<f32>());
        assert_eq!(stored.as_dense(), memory.as_dense());
    }
}

#[test]
fn a_constant_that_repeats_a_number_is_a_splat_wherever_it_is() {
    let scratch = Scratch::new("splat");
    for n in SIZES {
        let mut bytes = 2f32.to_le_bytes().repeat(n);
        let file = open(&scratch.file(&bytes));
        assert_eq!(floats(&file, 0, n).as_splat(), Some(&2f32.to_le_bytes()[..]));
        *bytes.last_mut().unwrap() ^= 1;
        let file = open(&scratch.file(&bytes));
        assert!(floats(&file, 0, n).as_splat().is_none(), "the last of {n} elements differs");
    }
    // The bytes of these types may be stored in another form.
    let file = open(&scratch.file(&[0, 2, 1, 1]));
    let range = |n| FileRange::new(Arc::clone(&file), 0, n).unwrap();
    let bools = Literal::in_file(DType::Bool, &[4], range(4)).unwrap();
    assert_eq!(bools.elements::<bool>().unwrap().as_ref(), [false, true, true, true]);
    let packed = Literal::in_file(DType::UInt4, &[3], range(2)).unwrap();
    assert_eq!(packed, Literal::from_bytes(DType::UInt4, &[3], Bytes::from_static(&[0, 2])).unwrap());
}

#[test]
fn wrong_ranges_and_special_files_are_refused() {
    let scratch = Scratch::new("refused");
    let file = open(&scratch.file(&[0; 8]));
    for (offset, len) in [(0, 9), (8, 1), (u64::MAX, 1), (1, usize::MAX)] {
        let refused = FileRange::new(Arc::clone(&file), offset, len).expect_err("it is not inside the file");
        assert!(matches!(refused, StorageError::Outside { size: 8, .. }), "{refused}");
    }
    let range = FileRange::new(file, 0, 8).unwrap();
    let refused = Literal::in_file(DType::Float32, &[3], range).expect_err("it is too short");
    assert!(matches!(refused, LiteralError::ByteCount { expected: 12, actual: 8, .. }), "{refused}");
    assert!(StoredFile::open(&scratch.0, StoredFileKind::Data).is_err(), "a folder");
    #[cfg(unix)]
    assert!(StoredFile::open(Path::new("/dev/zero"), StoredFileKind::Data).is_err(), "a device");
}

/// Changes a file.
type Change = fn(&Path);

#[test]
fn a_file_that_changes_is_an_error_and_gives_no_other_bytes() {
    let scratch = Scratch::new("changed");
    let n = 100_000;
    let changes: [(&str, Change); 3] = [
        ("truncated", |path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(16).unwrap()),
        ("longer", |path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1 << 20).unwrap()),
        ("written", |path| {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }),
    ];
    for (name, change) in changes {
        let path = scratch.file(&numbers(1, n));
        let stored = floats(&open(&path), 0, n);
        let module = module_of(&stored);
        assert_eq!(module.cx.literals.failure(), Ok(()));
        let hash = hash_of(&stored);
        change(&path);
        let error = stored.load().expect_err(name);
        assert!(matches!(error, StorageError::Changed { .. }), "{name}: {error}");
        assert_eq!(stored.read_dense(), Err(error.clone()), "the first error stays");
        assert_eq!(module.cx.literals.failure(), Err(error.clone()), "a pass would fail");
        // It equals only itself, and has no elements.
        let memory = Literal::from_bytes(DType::Float32, &[n], numbers(1, n).into()).unwrap();
        assert!(stored == stored.clone() && stored != memory && hash_of(&stored) == hash);
        assert_eq!((stored.elements::<f32>(), stored.as_dense()), (None, None));
        assert_eq!(module_hash(&module), module_hash(&module));
        let text = module.to_string();
        assert!(text.contains("[unreadable ") && text.contains("has changed since"), "{text}");
        let errors = parse_module(Source::new("test", text), Default::default()).expect_err("it has no elements");
        assert!(errors[0].message.contains("could not be read"), "{errors}");
        let diagnostics = error.into_diagnostics();
        assert_eq!(diagnostics[0].help.as_deref(), Some("read the program again"));
    }
}

#[test]
fn a_file_that_is_replaced_is_read_as_it_was() {
    let scratch = Scratch::new("replaced");
    let n = 5000;
    let path = scratch.file(&numbers(1, n));
    let stored = floats(&open(&path), 0, n);
    let new = scratch.0.join("new.bin");
    fs::write(&new, numbers(7, n)).unwrap();
    fs::rename(&new, &path).unwrap();
    assert!(!stored.file_range().unwrap().file().is_in_place());
    assert_eq!(stored.to_bytes(), numbers(1, n));
    fs::remove_file(&path).unwrap();
    assert_eq!(stored.file_range().unwrap().len(), 4 * n);
    let mut copy = fs::File::create(scratch.0.join("copy.bin")).unwrap();
    stored.file_range().unwrap().copy_to(&mut copy).unwrap();
    assert_eq!(fs::read(scratch.0.join("copy.bin")).unwrap(), numbers(1, n));
}

#[test]
fn more_files_than_a_process_may_open_are_read() {
    let scratch = Scratch::new("many");
    let all: Vec<Literal> = (0..2000)
        .map(|i| {
            let path = scratch.0.join(format!("{i}.bin"));
            fs::write(&path, numbers(i, 2000)).unwrap();
            floats(&open(&path), 0, 2000)
        })
        .collect();
    for (i, literal) in all.iter().enumerate() {
        assert_eq!(literal.read_dense().unwrap(), numbers(i, 2000));
    }
    fs::remove_file(scratch.0.join("1999.bin")).unwrap();
    assert!(matches!(all[1999].load(), Err(StorageError::Changed { .. })), "the file is opened again for each read");
}

//! Files that are written completely or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anfora_ir::UnfinishedFile;

/// Returns an empty folder. Each test needs a name of its own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("anfora-output-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    folder
}

/// Returns the entries of a folder with their contents, sorted; the contents of a folder are
/// `None`.
fn contents(folder: &Path) -> Vec<(String, Option<String>)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry"));
    let mut contents: Vec<_> = entries
        .map(|e| (e.file_name().into_string().expect("names are in UTF-8"), fs::read_to_string(e.path()).ok()))
        .collect();
    contents.sort();
    contents
}

/// Writes a file beside the target, and returns it with its path.
fn unfinished(path: &Path) -> (UnfinishedFile, PathBuf) {
    let folder = path.parent().expect("a folder");
    let before = contents(folder);
    let file = UnfinishedFile::write(path, |out| out.write_all(b"new")).expect("a file beside it");
    let mut added = contents(folder);
    added.retain(|entry| !before.contains(entry));
    assert_eq!(added.len(), 1, "{added:?}");
    (file, folder.join(&added[0].0))
}

fn pair(data: Option<&str>, model: Option<&str>) -> Vec<(String, Option<String>)> {
    let file = |name: &str, text: Option<&str>| text.map(|t| (name.to_string(), Some(t.to_string())));
    file("data", data).into_iter().chain(file("model", model)).collect()
}

#[test]
fn files_that_belong_together_have_their_names_all_or_none() {
    let folder = folder("pairs");
    let (data, model) = (folder.join("data"), folder.join("model"));
    for (old_data, old_model) in [(None, None), (Some("old"), None), (None, Some("old")), (Some("old"), Some("old"))] {
        for (path, old) in [(&data, old_data), (&model, old_model)] {
            let _ = fs::remove_file(path);
            if let Some(text) = old {
                fs::write(path, text).expect("a file");
            }
        }
        let old = pair(old_data, old_model);
        // Make each of the two fail to get its name in turn, by removing its temporary file.
        for gone in 0..2 {
            let [(first, one), (second, other)] = [unfinished(&data), unfinished(&model)];
            fs::remove_file([one, other][gone].as_path()).expect("it was written");
            let e = UnfinishedFile::finish_all([first, second]).expect_err("nothing to rename");
            assert_eq!(e.kind(), io::ErrorKind::NotFound, "{e}");
            assert!(e.to_string().starts_with(&[&data, &model][gone].display().to_string()), "{e}");
            assert_eq!(contents(&folder), old, "{gone} of {old:?}");
        }
        UnfinishedFile::finish_all([unfinished(&data).0, unfinished(&model).0]).expect("both have their names");
        assert_eq!(contents(&folder), pair(Some("new"), Some("new")));
    }
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn a_target_that_became_a_folder_leaves_the_other_file_as_it_was() {
    let folder = folder("became-folder");
    let (data, model) = (folder.join("data"), folder.join("model"));
    fs::write(&data, "old").expect("a file");
    let files = [unfinished(&data).0, unfinished(&model).0];
    fs::create_dir(&model).expect("a folder in place of the model");
    let e = UnfinishedFile::finish_all(files).expect_err("a folder is not replaced");
    assert_eq!(e.kind(), io::ErrorKind::IsADirectory, "{e}");
    assert!(e.to_string().starts_with(&model.display().to_string()), "{e}");
    let expected = [("data".to_string(), Some("old".to_string())), ("model".to_string(), None)];
    assert_eq!(contents(&folder), expected);
    let _ = fs::remove_dir_all(&folder);
}

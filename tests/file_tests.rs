//! Runs the pipelines that the files under `tests/files` name on the programs in them
//! ([`check_files`] describes the files).

use std::path::Path;

use anfora::check::check_files;

#[test]
fn files_come_out_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    check_files(&folder, &anfora::passes::registry(), &anfora::ops::standard()).unwrap();
}

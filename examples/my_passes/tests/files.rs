//! The programs under `tests/files`, before and after the passes. `ANFORA_BLESS=1 cargo test`
//! writes what the passes make.

use std::path::Path;
use std::sync::Arc;

use anfora::check::check_files;

#[test]
fn files_come_out_as_they_say() -> Result<(), my_passes::SetupError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    check_files(&folder, &Arc::new(my_passes::passes()?), &Arc::new(my_passes::operators()?))?;
    Ok(())
}

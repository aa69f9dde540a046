//! Constants in files, and files that are written completely or not at all.

pub(crate) mod storage;
pub(crate) mod output_file;

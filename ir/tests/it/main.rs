//! Tests of the IR: text, verifier, equality and hashing, compaction, overlays, effects, edits
//! of regions, differences of texts, functions from other modules, tables.

mod alpha;
mod call_types;
mod compact;
mod diff;
mod edits;
mod errors;
mod output_files;
mod overlay;
mod parser;
mod printer;
mod purity;
mod region_edits;
mod registering;
mod render;
mod scratch;
mod signature;
mod storage;
mod tables;
mod take_over;
mod text_threads;
mod tiny;
mod unified_diff;
mod verify;

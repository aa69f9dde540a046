//! Tests of passes that the files of `tests/files` cannot express.

mod backends;
mod bind_params;
mod bind_symbols;
mod check_meaning;
mod composite_groups;
mod dataflow_blocks;
mod decompositions;
mod deep;
mod fold_batch_norm;
mod folding;
mod fusion;
mod fusion_groups;
mod histories;
mod layouts;
mod lifting;
mod long;
mod modules;
mod npy;
mod operators;
mod pass_errors;
mod pass_manager;
mod pattern_partitions;
mod planned_memory;
mod programs;
mod rule_instances;
mod rules;
mod stored_weights;
mod to_mixed_precision;

// These files depend on no other file of the crate, so their tests include them. A test build of
// the whole crate would take longer than any other build.
#[path = "../../src/merge_composite_functions/levels.rs"]
mod levels;
#[path = "../../src/plan_memory/offsets.rs"]
mod offsets;

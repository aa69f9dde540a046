//! Tests of passes that the files of `tests/files` cannot express.

mod backends;
mod bind_params;
mod bind_symbols;
mod check_meaning;
mod dataflow_blocks;
mod decompositions;
mod fold_batch_norm;
mod folding;
mod fusion;
mod layouts;
mod lifting;
mod long;
mod modules;
mod npy;
mod operators;
mod pass_errors;
mod pass_manager;
mod pattern_partitions;
mod rule_instances;
mod rules;
mod stored_weights;
mod to_mixed_precision;

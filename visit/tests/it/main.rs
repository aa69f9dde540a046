//! Tests of visitors, mutators, rewriters and analyses, on written, random and deep programs.

mod analysis_call_graph;
mod analysis_liveness;
mod analysis_places;
mod analysis_post_dominators;
mod chain;
mod copy;
mod deep;
mod def_use;
mod engine_cases;
mod expand;
mod mutator;
mod order;
mod pattern;
#[path = "../programs/mod.rs"]
mod programs;
mod properties;
mod regions;
mod region_outputs;
mod retype;
mod rewrite_limits;
mod rewrite_patterns;
mod rewrite_scopes;
mod rule_mistakes;
mod rule_text;
mod splicing;
mod sweep_back;
mod variables;
mod visitor;

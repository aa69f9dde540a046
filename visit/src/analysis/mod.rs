//! Analyses of programs.

mod blocks;
mod call_graph;
mod def_use;
mod flow_graph;
mod links;
mod liveness;
mod post_dominator_tree;
mod post_dominators;

pub use blocks::{BlockId, Blocks};
pub use call_graph::CallGraph;
pub use def_use::{DefUse, Definition};
pub use flow_graph::{FlowEdge, FlowGraph};
pub use links::link_counts;
pub use liveness::{LastUse, Liveness};
pub use post_dominator_tree::PostDominatorTree;
pub use post_dominators::PostDominators;

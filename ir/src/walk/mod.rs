//! Walks over programs without recursion, and their data structures: sets, trees, components,
//! watches.

pub(crate) mod ancestors;
pub(crate) mod cursor;
pub(crate) mod sparse_set;
pub(crate) mod parts_first;
pub(crate) mod edited_shared;
pub(crate) mod per_block;
pub(crate) mod self_uses;
pub(crate) mod link_watch;
pub(crate) mod components;
pub(crate) mod call_graph;
pub(crate) mod counts;
pub(crate) mod attr_walk;
pub(crate) mod symbols;

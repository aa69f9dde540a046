//! The nodes that are kept unchanged, by the reason.

use std::collections::hash_map::Entry;
use std::fmt;

use rustc_hash::FxHashMap;

use crate::error::UnsupportedReason;
use crate::kept_initializer::is_initializer;
use crate::opaque::decode;
use crate::proto::NodeProto;

/// Nodes of the same operator, or initializers, that were kept unchanged for the same reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnsupportedNodes {
    /// The domain of the operator; empty for the standard domain.
    pub domain: String,
    /// The operator; for initializers, the operator of the calls that represent them.
    pub op_type: String,
    /// True if they are initializers of the file, not nodes.
    pub is_initializer: bool,
    /// The version of the domain that the file imports, if it does.
    pub version: Option<i64>,
    /// The reason.
    pub reason: String,
    /// The name of the first of them, or of its first output.
    pub first: String,
    /// The number of nodes or initializers.
    pub count: usize,
}

impl UnsupportedNodes {
    /// Returns true if calls of the module's operator `name`, such as `onnx.Resize`, are such
    /// nodes.
    ///
    /// Cost: linear in the text.
    pub fn are_calls_of(&self, name: &str) -> bool {
        decode(name).is_some_and(|(domain, op)| domain == self.domain && op == self.op_type)
    }
}

impl fmt::Display for UnsupportedNodes {
    /// Writes a text such as "3 nodes `Resize` (version 13), the first `up_1`: `mode` is `cubic`",
    /// or "initializer `k`: element type 99 is not supported".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnsupportedNodes { domain, op_type, is_initializer, version, reason, first, count } = self;
        let dot = if domain.is_empty() { "" } else { "." };
        match (is_initializer, count) {
            (true, 1) => return write!(f, "initializer `{first}`: {reason}"),
            (true, n) => return write!(f, "{n} initializers, the first `{first}`: {reason}"),
            (false, 1) => write!(f, "node `{domain}{dot}{op_type}`")?,
            (false, n) => write!(f, "{n} nodes `{domain}{dot}{op_type}`")?,
        }
        if let Some(version) = version {
            write!(f, " (version {version})")?;
        }
        match (first.as_str(), count) {
            ("", _) => {}
            (first, 1) => write!(f, ", `{first}`")?,
            (first, _) => write!(f, ", the first `{first}`")?,
        }
        write!(f, ": {reason}")
    }
}

/// The key of a group of kept nodes: domain, operator, version, reason, and whether they are
/// initializers.
type GroupKey = (String, String, Option<i64>, String, bool);

/// Kept nodes, counted by operator and reason.
#[derive(Default)]
pub(super) struct KeptList {
    /// The groups, each with the turn of its first node.
    groups: Vec<(u64, UnsupportedNodes)>,
    by_reason: FxHashMap<GroupKey, usize>,
}

impl KeptList {
    /// Counts a node. `turn` must be greater than the turns of all earlier nodes.
    pub(super) fn note(
        &mut self,
        turn: u64,
        node: &NodeProto,
        domain: &str,
        version: Option<i64>,
        why: &UnsupportedReason,
    ) {
        let output = || node.output.iter().find(|o| !o.is_empty()).map_or("", String::as_str);
        let one = UnsupportedNodes {
            domain: domain.to_owned(),
            op_type: node.op_type().to_owned(),
            is_initializer: is_initializer(&node.metadata_props),
            version,
            reason: why.reason().to_owned(),
            first: if node.name().is_empty() { output() } else { node.name() }.to_owned(),
            count: 1,
        };
        self.add(turn, one);
    }

    /// Adds the nodes of another list.
    pub(super) fn append(&mut self, other: KeptList) {
        other.groups.into_iter().for_each(|(turn, group)| self.add(turn, group));
    }

    fn add(&mut self, turn: u64, group: UnsupportedNodes) {
        let UnsupportedNodes { domain, op_type, version, reason, is_initializer, .. } = &group;
        let key = (domain.clone(), op_type.clone(), *version, reason.clone(), *is_initializer);
        match self.by_reason.entry(key) {
            Entry::Occupied(at) => {
                let (first_turn, there) = &mut self.groups[*at.get()];
                there.count += group.count;
                if turn < *first_turn {
                    (*first_turn, there.first) = (turn, group.first);
                }
            }
            Entry::Vacant(at) => {
                at.insert(self.groups.len());
                self.groups.push((turn, group));
            }
        }
    }

    /// Returns the groups in the order of their first nodes.
    pub(super) fn into_groups(mut self) -> Vec<UnsupportedNodes> {
        self.groups.sort_by_key(|&(turn, _)| turn);
        self.groups.into_iter().map(|(_, group)| group).collect()
    }
}

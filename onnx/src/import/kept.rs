//! Why nodes are kept as they are.

use std::borrow::Cow;
use std::fmt;

use rustc_hash::FxHashMap;

use crate::opaque::decode;
use crate::proto::NodeProto;

/// Why a node has no meaning in our operators: a phrase such as "`mode` is `cubic`".
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kept(Cow<'static, str>);

impl Kept {
    /// With a phrase that says what of the node is in the way.
    pub fn because(reason: impl Into<Cow<'static, str>>) -> Kept {
        Kept(reason.into())
    }

    /// The phrase.
    pub fn reason(&self) -> &str {
        &self.0
    }
}

/// Nodes of one operator that were kept as they are for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptNodes {
    /// Domain of the operator; empty for the standard one.
    pub domain: String,
    /// The operator.
    pub op_type: String,
    /// The version of the domain that the file asks for, if it does.
    pub version: Option<i64>,
    /// Why.
    pub reason: String,
    /// The first of them: its name, or that of its first output.
    pub first: String,
    /// How many there are.
    pub count: usize,
}

impl KeptNodes {
    /// Whether calls of the operator `name` of a module, such as `onnx.Resize`, are such nodes.
    pub fn are_calls_of(&self, name: &str) -> bool {
        decode(name).is_some_and(|(domain, op)| domain == self.domain && op == self.op_type)
    }
}

impl fmt::Display for KeptNodes {
    /// Such as "3 nodes `Resize` (version 13), the first `up_1`: `mode` is `cubic`".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeptNodes { domain, op_type, version, reason, first, count } = self;
        let dot = if domain.is_empty() { "" } else { "." };
        match count {
            1 => write!(f, "node `{domain}{dot}{op_type}`")?,
            n => write!(f, "{n} nodes `{domain}{dot}{op_type}`")?,
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

/// Counts kept nodes by operator and reason, in the order in which these first appear.
#[derive(Default)]
pub(super) struct KeptList {
    groups: Vec<KeptNodes>,
    by_reason: FxHashMap<(String, String, Option<i64>, Kept), usize>,
    /// The group of each node, in order.
    log: Vec<usize>,
}

impl KeptList {
    pub(super) fn note(&mut self, node: &NodeProto, domain: &str, version: Option<i64>, why: Kept) {
        let key = (domain.to_owned(), node.op_type().to_owned(), version, why);
        if let Some(&group) = self.by_reason.get(&key) {
            self.groups[group].count += 1;
            self.log.push(group);
            return;
        }
        let output = || node.output.iter().find(|o| !o.is_empty()).map_or("", String::as_str);
        self.groups.push(KeptNodes {
            domain: key.0.clone(),
            op_type: key.1.clone(),
            version,
            reason: key.3.reason().to_owned(),
            first: if node.name().is_empty() { output() } else { node.name() }.to_owned(),
            count: 1,
        });
        self.log.push(self.groups.len() - 1);
        self.by_reason.insert(key, self.groups.len() - 1);
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.log.len()
    }

    /// Takes back all nodes but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        for group in self.log.drain(len.min(self.log.len())..) {
            self.groups[group].count -= 1;
        }
        // The groups of the nodes that are taken back are the last ones.
        while let Some(group) = self.groups.pop_if(|g| g.count == 0) {
            let KeptNodes { domain, op_type, version, reason, .. } = group;
            self.by_reason.remove(&(domain, op_type, version, Kept::because(reason)));
        }
    }

    pub(super) fn into_groups(self) -> Vec<KeptNodes> {
        self.groups
    }
}

//! Nodes in encoded form. A node is encoded when it is complete, since it takes many times its
//! bytes before.

use prost::encoding::{WireType, encode_key, encode_varint};
use prost::{DecodeError, Message};

use crate::kept_initializer::{KeptInitializer, initializer_of_node, is_initializer};
use crate::node_counts::NodeCounts;
use crate::proto::{GraphProto, NodeProto, SparseTensorProto, TensorProto};
use crate::wire::NODE;

/// The nodes of a graph, encoded as fields of it, and the initializers that nodes represent.
#[derive(Default)]
pub(super) struct Nodes {
    pub(super) bytes: Vec<u8>,
    pub(super) sparse: Vec<SparseTensorProto>,
    pub(super) tensors: Vec<TensorProto>,
}

impl Nodes {
    /// Appends a node of `len` bytes, and counts it. If the graph may have initializers, a node
    /// that represents one becomes one.
    pub(super) fn push(&mut self, node: NodeProto, len: usize, has_initializers: bool, counts: &mut NodeCounts) {
        if !has_initializers || !is_initializer(&node.metadata_props) {
            return self.encode(&node, len, counts);
        }
        match initializer_of_node(node) {
            Ok(KeptInitializer::Sparse(taken)) => self.sparse.push(*taken),
            Ok(KeptInitializer::Tensor(taken)) => self.tensors.push(*taken),
            Err(back) => self.encode(&back, back.encoded_len(), counts),
        }
    }

    fn encode(&mut self, node: &NodeProto, len: usize, counts: &mut NodeCounts) {
        counts.add(node);
        begin_field(NODE, len as u64, &mut self.bytes);
        node.encode_raw(&mut self.bytes);
    }

    /// Appends the nodes and initializers of another list.
    pub(super) fn append(&mut self, mut later: Nodes) {
        match self.bytes.is_empty() {
            true => self.bytes = later.bytes,
            false => self.bytes.extend_from_slice(&later.bytes),
        }
        self.sparse.append(&mut later.sparse);
        self.tensors.append(&mut later.tensors);
    }
}

/// A graph with encoded nodes.
#[derive(Clone)]
pub(super) struct WrittenGraph {
    /// The nodes, as fields of the graph. They have the lowest number, so they come first.
    pub(super) nodes: Vec<u8>,
    /// The graph without nodes.
    pub(super) rest: GraphProto,
}

impl WrittenGraph {
    /// Returns the number of bytes of the encoded graph.
    pub(super) fn encoded_len(&self) -> usize {
        self.nodes.len() + self.rest.encoded_len()
    }

    /// Returns the encoded graph.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let WrittenGraph { nodes: mut bytes, rest } = self;
        bytes.reserve_exact(rest.encoded_len());
        rest.encode_raw(&mut bytes);
        bytes
    }

    /// Returns the graph with its nodes.
    ///
    /// # Errors
    /// If attributes that are written as they are in a file nest too deep for the decoder.
    pub(super) fn into_decoded(self) -> Result<GraphProto, DecodeError> {
        let nodes = GraphProto::decode(self.nodes.as_slice())?;
        Ok(GraphProto { node: nodes.node, ..self.rest })
    }
}

/// Writes the number and the length of a field.
pub(super) fn begin_field(number: u32, len: u64, out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(len, out);
}

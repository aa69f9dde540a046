//! Graphs whose nodes are encoded. A node is decoded when it is imported, into the memory of the
//! node before, since a decoded node takes many times its bytes.

use bytes::Bytes;
use prost::{DecodeError, Message};

use crate::proto::{GraphProto, NodeProto};
use crate::wire::{NODE, WireField, fields, split};

/// The numbers of fields of a [`NodeProto`].
const INPUT: u32 = 1;
const OUTPUT: u32 = 2;
const NAME: u32 = 3;
const OP_TYPE: u32 = 4;
const ATTRIBUTE: u32 = 5;
/// The numbers of the fields of an attribute that hold graphs.
const GRAPHS: [u32; 2] = [6, 11];

/// A graph of a checked file.
#[derive(Default)]
pub(super) struct EncodedGraph {
    /// The encoded nodes. They come after those that are decoded.
    pub(super) nodes: Vec<Bytes>,
    /// The graph without the encoded nodes.
    pub(super) rest: GraphProto,
}

impl EncodedGraph {
    /// Reads a graph. If texts of the file are not UTF-8, all nodes are decoded, for the error.
    ///
    /// # Errors
    /// If a text of the graph is not UTF-8.
    pub(super) fn decode(bytes: &Bytes, has_bad_text: bool) -> Result<EncodedGraph, DecodeError> {
        if has_bad_text {
            GraphProto::decode(bytes.clone())?;
        }
        let mut graph = EncodedGraph::default();
        graph.merge(bytes)?;
        Ok(graph)
    }

    /// Adds the fields of another part of the graph.
    ///
    /// # Errors
    /// If a text outside of the nodes is not UTF-8.
    pub(super) fn merge(&mut self, bytes: &Bytes) -> Result<(), DecodeError> {
        let pieces = split(bytes, NODE, &mut self.nodes);
        pieces.into_iter().try_for_each(|piece| self.rest.merge(piece))
    }

    /// Decodes all nodes.
    ///
    /// # Errors
    /// If a text of a node is not UTF-8.
    pub(super) fn decode_nodes(&mut self) -> Result<(), DecodeError> {
        for node in std::mem::take(&mut self.nodes) {
            self.rest.node.push(NodeProto::decode(node)?);
        }
        Ok(())
    }
}

/// Decodes a node, except for the names of its inputs and outputs, into the memory of another.
/// Returns the numbers of inputs and outputs too.
///
/// # Errors
/// If a text is not UTF-8.
pub(super) fn decode_node(bytes: &Bytes, spare: NodeProto) -> Result<(NodeProto, usize, usize), DecodeError> {
    let NodeProto { input, output, name: mut spare_name, op_type: mut spare_type, .. } = spare;
    let mut node = NodeProto::default();
    let (mut inputs, mut outputs) = (0, 0);
    for WireField { number, field, contents } in fields(bytes) {
        let (text, spare) = match number {
            INPUT => {
                inputs += 1;
                continue;
            }
            OUTPUT => {
                outputs += 1;
                continue;
            }
            NAME => (&mut node.name, &mut spare_name),
            OP_TYPE => (&mut node.op_type, &mut spare_type),
            _ => {
                node.merge(bytes.slice(field))?;
                continue;
            }
        };
        // The decoder has the error.
        let Ok(new) = std::str::from_utf8(&bytes[contents]) else {
            return NodeProto::decode(bytes.clone()).map(|node| (node, inputs, outputs));
        };
        *text = Some(text_in(spare, text, new));
    }
    Ok((NodeProto { input, output, ..node }, inputs, outputs))
}

/// Replaces the texts of a list.
pub(super) fn set_texts<'t>(list: &mut Vec<String>, texts: impl Iterator<Item = &'t str>) {
    let mut len = 0;
    for text in texts {
        match list.get_mut(len) {
            Some(old) => {
                old.clear();
                old.push_str(text);
            }
            None => list.push(text.to_owned()),
        }
        len += 1;
    }
    list.truncate(len);
}

/// Returns a text in the memory of one that is not needed, if there is one.
fn text_in(spare: &mut Option<String>, before: &mut Option<String>, text: &str) -> String {
    let mut memory = before.take().or_else(|| spare.take()).unwrap_or_default();
    memory.clear();
    memory.push_str(text);
    memory
}

/// The names of the inputs and outputs of an encoded node.
#[derive(Default)]
pub(super) struct EncodedNames<'n> {
    pub(super) inputs: Vec<&'n str>,
    pub(super) outputs: Vec<&'n str>,
    /// True if the node has graphs.
    pub(super) has_graphs: bool,
}

impl<'n> EncodedNames<'n> {
    /// Reads the names of a node in place of those of another.
    pub(super) fn read(&mut self, node: &'n [u8]) {
        self.inputs.clear();
        self.outputs.clear();
        self.has_graphs = false;
        for WireField { number, contents, .. } in fields(node) {
            match number {
                INPUT => self.inputs.push(text_of(&node[contents])),
                OUTPUT => self.outputs.push(text_of(&node[contents])),
                ATTRIBUTE => self.has_graphs |= fields(&node[contents]).any(|f| GRAPHS.contains(&f.number)),
                _ => {}
            }
        }
    }
}

/// Returns true if an encoded node has an output of this name.
pub(super) fn has_output(node: &[u8], name: &str) -> bool {
    fields(node).any(|f| f.number == OUTPUT && node[f.contents] == *name.as_bytes())
}

/// Returns a text of a node. Files with texts that are not UTF-8 are refused before.
fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

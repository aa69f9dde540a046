//! The bytes of a model whose large constants are written from where they are, a file or memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anfora_ir::{Literal, StorageError};
use prost::Message;
use prost::encoding::{encoded_len_varint, key_len};
use rustc_hash::FxHashMap;

use super::data::{copy_elements, for_each_repetition, raw_bytes, write_elements};
use super::nodes::{WrittenGraph, begin_field};
use crate::proto::{GraphProto, ModelProto, TensorProto};

/// A model as it is written: bytes, and constants whose elements are written from where they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelPieces {
    pieces: Vec<ModelPiece>,
    len: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum ModelPiece {
    Bytes(Vec<u8>),
    /// The elements of a constant, and the bytes that they take.
    Elements(Literal, u64),
}

const GRAPH: u32 = 7;
const INITIALIZER: u32 = 5;
const RAW_DATA: u32 = 9;

/// Returns the number of bytes of a field whose contents have `len` bytes.
fn field_len(number: u32, len: u64) -> u64 {
    key_len(number) as u64 + encoded_len_varint(len) as u64 + len
}

impl ModelPieces {
    /// Returns the encoding of a model with a graph. The initializers in `copied` have no elements;
    /// these are those of the constants. The bytes are those of a model with these elements as raw
    /// data: fields are in the order of their numbers.
    pub(super) fn of(model: ModelProto, graph: WrittenGraph, copied: &FxHashMap<String, Literal>) -> ModelPieces {
        let ModelProto { ir_version, producer_name, producer_version, domain, model_version, doc_string, .. } = model;
        let before = ModelProto {
            ir_version,
            producer_name,
            producer_version,
            domain,
            model_version,
            doc_string,
            ..ModelProto::default()
        };
        let ModelProto { opset_import, metadata_props, training_info, functions, configuration, .. } = model;
        let after = ModelProto {
            opset_import,
            metadata_props,
            training_info,
            functions,
            configuration,
            ..ModelProto::default()
        };
        let WrittenGraph { nodes, rest: mut graph } = graph;
        let initializers = std::mem::take(&mut graph.initializer);
        let first = GraphProto { name: graph.name.take(), ..GraphProto::default() };
        let bytes_of = |tensor: &TensorProto| match copied.get(tensor.name()) {
            Some(literal) => tensor.encoded_len() as u64 + field_len(RAW_DATA, raw_bytes(literal)),
            None => tensor.encoded_len() as u64,
        };
        let lens: Vec<u64> = initializers.iter().map(bytes_of).collect();
        let of_tensors: u64 = lens.iter().map(|&len| field_len(INITIALIZER, len)).sum();
        let len_of_first = nodes.len() + first.encoded_len();
        let len = len_of_first as u64 + of_tensors + graph.encoded_len() as u64;

        let mut made = ModelPieces { pieces: Vec::new(), len: 0 };
        let mut bytes = before.encode_to_vec();
        begin_field(GRAPH, len, &mut bytes);
        // The nodes take most of the bytes before the first constant that is copied.
        bytes.reserve(if copied.is_empty() { len as usize + after.encoded_len() } else { len_of_first });
        bytes.extend_from_slice(&nodes);
        drop(nodes);
        first.encode_raw(&mut bytes);
        for (tensor, len) in initializers.into_iter().zip(lens) {
            begin_field(INITIALIZER, len, &mut bytes);
            let Some(literal) = copied.get(tensor.name()) else {
                tensor.encode_raw(&mut bytes);
                continue;
            };
            let (before, after) = around_elements(tensor);
            before.encode_raw(&mut bytes);
            begin_field(RAW_DATA, raw_bytes(literal), &mut bytes);
            made.push(ModelPiece::Bytes(std::mem::take(&mut bytes)));
            made.push(ModelPiece::Elements(literal.clone(), raw_bytes(literal)));
            after.encode_raw(&mut bytes);
        }
        graph.encode_raw(&mut bytes);
        after.encode_raw(&mut bytes);
        made.push(ModelPiece::Bytes(bytes));
        made
    }

    fn push(&mut self, piece: ModelPiece) {
        self.len += match &piece {
            ModelPiece::Bytes(bytes) => bytes.len() as u64,
            ModelPiece::Elements(_, bytes) => *bytes,
        };
        self.pieces.push(piece);
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes the model. Takes constant memory.
    ///
    /// # Errors
    /// If it cannot be written, or elements cannot be read.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        self.pieces.iter().try_for_each(|piece| match piece {
            ModelPiece::Bytes(bytes) => out.write_all(bytes),
            ModelPiece::Elements(literal, bytes) => write_elements(literal, *bytes, out),
        })
    }

    /// Writes the model to a file. On Linux, the system copies the elements that are in files.
    ///
    /// # Errors
    /// If it cannot be written, or elements cannot be read.
    pub fn write_to_file(&self, out: &mut BufWriter<File>) -> io::Result<()> {
        self.pieces.iter().try_for_each(|piece| match piece {
            ModelPiece::Bytes(bytes) => out.write_all(bytes),
            ModelPiece::Elements(literal, bytes) => copy_elements(literal, *bytes, out),
        })
    }

    /// Returns the bytes of the model, with all elements.
    ///
    /// # Errors
    /// If elements cannot be read.
    pub fn into_bytes(mut self) -> Result<Vec<u8>, StorageError> {
        if let [ModelPiece::Bytes(bytes)] = self.pieces.as_mut_slice() {
            return Ok(std::mem::take(bytes));
        }
        let mut out = Vec::with_capacity(self.len as usize);
        for piece in &self.pieces {
            match piece {
                ModelPiece::Bytes(bytes) => out.extend_from_slice(bytes),
                ModelPiece::Elements(literal, bytes) => match literal.as_splat() {
                    Some(element) => for_each_repetition(element, *bytes, |piece| {
                        out.extend_from_slice(piece);
                        Ok::<(), StorageError>(())
                    })?,
                    None => literal.for_each_piece(|piece| out.extend_from_slice(piece))?,
                },
            }
        }
        Ok(out)
    }
}

impl From<Vec<u8>> for ModelPieces {
    fn from(bytes: Vec<u8>) -> ModelPieces {
        ModelPieces { len: bytes.len() as u64, pieces: vec![ModelPiece::Bytes(bytes)] }
    }
}

/// Returns the fields of a tensor without elements that come before and after the raw data.
fn around_elements(tensor: TensorProto) -> (TensorProto, TensorProto) {
    let TensorProto { dims, data_type, name, doc_string, metadata_props, .. } = tensor;
    (
        TensorProto { dims, data_type, name, ..TensorProto::default() },
        TensorProto { doc_string, metadata_props, ..TensorProto::default() },
    )
}

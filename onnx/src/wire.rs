//! A check of a file's bytes before they are decoded.
//!
//! The check is a single pass over the wire format with an explicit stack and a table of the
//! format's messages. It refuses fields that this crate does not know, which the decoder would
//! silently drop, faults inside messages that are decoded later, and nesting beyond the limit of
//! 100 messages that protocol buffer readers have. Its errors name the message, the field and the
//! byte.

use std::fmt;

use bytes::Bytes;

use Kind::{
    Attribute, Device, Dimension, Entry, Function, Graph, Info, IntList, Map, Model, Node, NodeDevice, Opaque, Opset,
    OptionalType, Segment, Sequence, Shape, Sharded, Sharding, SimpleSharded, SparseTensor, Tensor, TensorAnnotation,
    TensorType, Training, Type,
};
use Payload::{Blob, Doubles, Float, Floats, Int, Ints, LazyMessage, Message};

/// The deepest nesting of messages below the root.
pub const MAX_DEPTH: usize = 100;

/// The treatment of fields that the format does not define, as far as this crate knows.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum UnknownFields {
    /// An unknown field is an error, since it may have a meaning that would be lost.
    #[default]
    Refuse,
    /// An unknown field is dropped.
    Drop,
}

/// The reason why bytes are not a model, and the place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {offset}, in {place}: {problem}")]
pub struct WireError {
    /// The offset of the field's first byte.
    pub offset: usize,
    /// The message, and the field if it is known.
    pub place: String,
    /// The problem.
    pub problem: WireProblem,
}

/// A problem with a field.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireProblem {
    /// The message ends inside the field.
    #[error("the message ends in the middle of a field")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("a variable-length number is too long")]
    LongNumber,
    /// The field number is 0 or beyond the format's limit.
    #[error("{0} is not a field tag")]
    BadTag(u64),
    /// The encoding of the field does not match its type.
    #[error("the field has wire type {0}, which its type does not allow")]
    WireType(u8),
    /// The format does not define the field.
    #[error("the field number {0} is not known (it belongs to a later version of the format, or the file is damaged)")]
    UnknownField(u32),
    /// A field that holds a single message occurs twice.
    #[error("the field comes twice")]
    Twice,
    /// Messages are nested too deep.
    #[error("messages are nested more than {MAX_DEPTH} deep")]
    TooDeep,
}

/// The messages of the format.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Segment,
    SparseTensor,
    Info,
    Type,
    TensorType,
    Sequence,
    Map,
    OptionalType,
    Opaque,
    Shape,
    Dimension,
    Opset,
    Entry,
    TensorAnnotation,
    Training,
    Function,
    Device,
    NodeDevice,
    Sharding,
    IntList,
    Sharded,
    SimpleSharded,
}

/// The encoding of a field's value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Payload {
    /// A variable-length number.
    Int,
    /// A list of variable-length numbers, packed or separate.
    Ints,
    /// A number of four bytes.
    Float,
    /// A list of numbers of four bytes, packed or separate.
    Floats,
    /// A list of numbers of eight bytes, packed or separate.
    Doubles,
    /// Bytes or text.
    Blob,
    Message(Kind),
    /// A message that is decoded later. The decoder takes only its last occurrence.
    LazyMessage(Kind),
}

type Field = (u32, &'static str, Payload);

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Model => "ModelProto",
            Graph => "GraphProto",
            Node => "NodeProto",
            Attribute => "AttributeProto",
            Tensor => "TensorProto",
            Segment => "TensorProto.Segment",
            SparseTensor => "SparseTensorProto",
            Info => "ValueInfoProto",
            Type => "TypeProto",
            TensorType => "TypeProto.Tensor",
            Sequence => "TypeProto.Sequence",
            Map => "TypeProto.Map",
            OptionalType => "TypeProto.Optional",
            Opaque => "TypeProto.Opaque",
            Shape => "TensorShapeProto",
            Dimension => "TensorShapeProto.Dimension",
            Opset => "OperatorSetIdProto",
            Entry => "StringStringEntryProto",
            TensorAnnotation => "TensorAnnotation",
            Training => "TrainingInfoProto",
            Function => "FunctionProto",
            Device => "DeviceConfigurationProto",
            NodeDevice => "NodeDeviceConfigurationProto",
            Sharding => "ShardingSpecProto",
            IntList => "IntIntListEntryProto",
            Sharded => "ShardedDimProto",
            SimpleSharded => "SimpleShardedDimProto",
        }
    }

    const fn fields(self) -> &'static [Field] {
        match self {
            Model => &[
                (1, "ir_version", Int),
                (8, "opset_import", Message(Opset)),
                (2, "producer_name", Blob),
                (3, "producer_version", Blob),
                (4, "domain", Blob),
                (5, "model_version", Int),
                (6, "doc_string", Blob),
                (7, "graph", Message(Graph)),
                (14, "metadata_props", Message(Entry)),
                (20, "training_info", Message(Training)),
                (25, "functions", Message(Function)),
                (26, "configuration", Message(Device)),
            ],
            Graph => &[
                (1, "node", Message(Node)),
                (5, "initializer", Message(Tensor)),
                (11, "input", Message(Info)),
                (12, "output", Message(Info)),
                (13, "value_info", Message(Info)),
                (2, "name", Blob),
                (10, "doc_string", Blob),
                (14, "quantization_annotation", Message(TensorAnnotation)),
                (15, "sparse_initializer", Message(SparseTensor)),
                (16, "metadata_props", Message(Entry)),
            ],
            Node => &[
                (1, "input", Blob),
                (2, "output", Blob),
                (3, "name", Blob),
                (4, "op_type", Blob),
                (5, "attribute", Message(Attribute)),
                (6, "doc_string", Blob),
                (7, "domain", Blob),
                (8, "overload", Blob),
                (9, "metadata_props", Message(Entry)),
                (10, "device_configurations", Message(NodeDevice)),
            ],
            Attribute => &[
                (1, "name", Blob),
                (20, "type", Int),
                (3, "i", Int),
                (8, "ints", Ints),
                (2, "f", Float),
                (7, "floats", Floats),
                (4, "s", Blob),
                (9, "strings", Blob),
                (5, "t", Message(Tensor)),
                (10, "tensors", Message(Tensor)),
                (6, "g", LazyMessage(Graph)),
                (11, "graphs", Message(Graph)),
                (13, "doc_string", Blob),
                (14, "tp", Message(Type)),
                (15, "type_protos", Message(Type)),
                (21, "ref_attr_name", Blob),
                (22, "sparse_tensor", Message(SparseTensor)),
                (23, "sparse_tensors", Message(SparseTensor)),
            ],
            Tensor => &[
                (1, "dims", Ints),
                (2, "data_type", Int),
                (8, "name", Blob),
                (9, "raw_data", Blob),
                (3, "segment", Message(Segment)),
                (4, "float_data", Floats),
                (5, "int32_data", Ints),
                (6, "string_data", Blob),
                (7, "int64_data", Ints),
                (10, "double_data", Doubles),
                (11, "uint64_data", Ints),
                (12, "doc_string", Blob),
                (13, "external_data", Message(Entry)),
                (14, "data_location", Int),
                (16, "metadata_props", Message(Entry)),
            ],
            Segment => &[(1, "begin", Int), (2, "end", Int)],
            SparseTensor => &[(1, "values", Message(Tensor)), (2, "indices", Message(Tensor)), (3, "dims", Ints)],
            Info => &[
                (1, "name", Blob),
                (2, "type", Message(Type)),
                (3, "doc_string", Blob),
                (4, "metadata_props", Message(Entry)),
            ],
            Type => &[
                (1, "tensor_type", Message(TensorType)),
                (4, "sequence_type", LazyMessage(Sequence)),
                (5, "map_type", LazyMessage(Map)),
                (6, "denotation", Blob),
                (7, "opaque_type", Message(Opaque)),
                (8, "sparse_tensor_type", Message(TensorType)),
                (9, "optional_type", LazyMessage(OptionalType)),
            ],
            TensorType => &[(1, "elem_type", Int), (2, "shape", Message(Shape))],
            Sequence | OptionalType => &[(1, "elem_type", LazyMessage(Type))],
            Map => &[(1, "key_type", Int), (2, "value_type", LazyMessage(Type))],
            Shape => &[(1, "dim", Message(Dimension))],
            Dimension => &[(1, "dim_value", Int), (2, "dim_param", Blob), (3, "denotation", Blob)],
            Opset => &[(1, "domain", Blob), (2, "version", Int)],
            Opaque => &[(1, "domain", Blob), (2, "name", Blob)],
            Entry => &[(1, "key", Blob), (2, "value", Blob)],
            TensorAnnotation => &[(1, "tensor_name", Blob), (2, "quant_parameter_tensor_names", Message(Entry))],
            Training => &[
                (1, "initialization", Message(Graph)),
                (2, "algorithm", Message(Graph)),
                (3, "initialization_binding", Message(Entry)),
                (4, "update_binding", Message(Entry)),
            ],
            Function => &[
                (1, "name", Blob),
                (4, "input", Blob),
                (5, "output", Blob),
                (6, "attribute", Blob),
                (7, "node", Message(Node)),
                (8, "doc_string", Blob),
                (9, "opset_import", Message(Opset)),
                (10, "domain", Blob),
                (11, "attribute_proto", Message(Attribute)),
                (12, "value_info", Message(Info)),
                (13, "overload", Blob),
                (14, "metadata_props", Message(Entry)),
            ],
            Device => &[(1, "name", Blob), (2, "num_devices", Int), (3, "device", Blob)],
            NodeDevice => {
                &[(1, "configuration_id", Blob), (2, "sharding_spec", Message(Sharding)), (3, "pipeline_stage", Int)]
            }
            Sharding => &[
                (1, "tensor_name", Blob),
                (2, "device", Ints),
                (3, "index_to_device_group_map", Message(IntList)),
                (4, "sharded_dim", Message(Sharded)),
            ],
            IntList => &[(1, "key", Int), (2, "value", Ints)],
            Sharded => &[(1, "axis", Int), (2, "simple_sharding", Message(SimpleSharded))],
            SimpleSharded => &[(1, "dim_value", Int), (2, "dim_param", Blob), (3, "num_shards", Int)],
        }
    }
}

struct Frame {
    kind: Kind,
    /// The offset at which the message ends.
    end: usize,
    /// The lazy fields that have occurred, as a bit set.
    seen: u32,
}

/// The position of the scan.
struct Scan<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// The offset at which the current field starts.
    field_start: usize,
}

impl Scan<'_> {
    fn error(&self, kind: Kind, field: Option<&'static str>, problem: WireProblem) -> WireError {
        let place = match field {
            Some(f) => fmt::format(format_args!("{}.{f}", kind.name())),
            None => kind.name().to_owned(),
        };
        WireError { offset: self.field_start, place, problem }
    }

    /// Reads a variable-length number that ends before `end`.
    fn varint(&mut self, end: usize) -> Result<u64, WireProblem> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            if self.pos >= end {
                return Err(WireProblem::Truncated);
            }
            let byte = self.bytes[self.pos];
            self.pos += 1;
            if shift == 63 && byte > 1 {
                return Err(WireProblem::LongNumber);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireProblem::LongNumber)
    }

    /// Skips `n` bytes and returns the offset of their end.
    fn skip(&mut self, n: u64, end: usize) -> Result<usize, WireProblem> {
        match usize::try_from(n).ok().and_then(|n| self.pos.checked_add(n)) {
            Some(p) if p <= end => {
                self.pos = p;
                Ok(p)
            }
            _ => Err(WireProblem::Truncated),
        }
    }

    /// Skips a value of a wire type without nesting. For a delimited value, stops at its first byte
    /// and returns its end.
    fn value(&mut self, wire: u8, end: usize) -> Result<Option<usize>, WireProblem> {
        match wire {
            0 => self.varint(end).map(|_| None),
            1 => self.skip(8, end).map(|_| None),
            5 => self.skip(4, end).map(|_| None),
            2 => {
                let n = self.varint(end)?;
                let start = self.pos;
                let stop = self.skip(n, end)?;
                self.pos = start;
                Ok(Some(stop))
            }
            other => Err(WireProblem::WireType(other)),
        }
    }
}

/// A summary of a checked message.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct WireSummary {
    /// The offset of the first field about data in another file.
    pub external_data: Option<usize>,
    /// The number of nodes of the model's graph, without those in the graphs of its nodes.
    pub nodes: usize,
    /// The number of statements about values of the model's graph.
    pub value_infos: usize,
    /// The number of initializers of the model's graph.
    pub initializers: usize,
}

/// Checks that `bytes` are the encoding of a model and that all its fields are known.
///
/// Takes constant memory.
///
/// Cost: linear in the bytes.
///
/// # Errors
/// If they are not. The error names the first byte at fault.
pub fn check(bytes: &[u8], unknown: UnknownFields) -> Result<WireSummary, WireError> {
    check_message(bytes, Model, unknown)
}

/// Checks that `bytes` are the encoding of a tensor and that all its fields are known.
///
/// Cost: linear in the bytes.
///
/// # Errors
/// If they are not. The error names the first byte at fault.
pub fn check_tensor(bytes: &[u8], unknown: UnknownFields) -> Result<WireSummary, WireError> {
    check_message(bytes, Tensor, unknown)
}

/// Splits a checked message. Returns the messages in a field, and the remaining pieces, which form
/// a message of the same kind without that field.
pub(crate) fn split(bytes: &Bytes, field: u32) -> Result<(Vec<Bytes>, Vec<Bytes>), WireError> {
    let mut scan = Scan { bytes, pos: 0, field_start: 0 };
    let (mut messages, mut pieces) = (Vec::new(), Vec::new());
    let (end, mut piece_start) = (bytes.len(), 0);
    while scan.pos < end {
        scan.field_start = scan.pos;
        let tag = scan.varint(end).map_err(|p| scan.error(Model, None, p))?;
        let stop = scan.value((tag & 7) as u8, end).map_err(|p| scan.error(Model, None, p))?;
        let Some(stop) = stop else { continue };
        if tag >> 3 == u64::from(field) {
            if piece_start < scan.field_start {
                pieces.push(bytes.slice(piece_start..scan.field_start));
            }
            messages.push(bytes.slice(scan.pos..stop));
            piece_start = stop;
        }
        scan.pos = stop;
    }
    if piece_start < end {
        pieces.push(bytes.slice(piece_start..));
    }
    Ok((messages, pieces))
}

/// Returns true if a checked graph has data in another file.
pub(crate) fn graph_has_external_data(bytes: &[u8]) -> bool {
    check_message(bytes, Graph, UnknownFields::Drop).is_ok_and(|s| s.external_data.is_some())
}

fn check_message(bytes: &[u8], root: Kind, unknown: UnknownFields) -> Result<WireSummary, WireError> {
    let mut summary = WireSummary::default();
    let mut scan = Scan { bytes, pos: 0, field_start: 0 };
    let mut stack = Vec::with_capacity(16);
    stack.push(Frame { kind: root, end: bytes.len(), seen: 0 });
    while let Some(frame) = stack.last_mut() {
        let (kind, end) = (frame.kind, frame.end);
        if scan.pos == end {
            stack.pop();
            continue;
        }
        scan.field_start = scan.pos;
        let tag = scan.varint(end).map_err(|p| scan.error(kind, None, p))?;
        let (wire, number) = ((tag & 7) as u8, u32::try_from(tag >> 3).unwrap_or(0));
        if number == 0 || number >= 1 << 29 {
            return Err(scan.error(kind, None, WireProblem::BadTag(tag)));
        }
        let Some(&(_, name, payload)) = kind.fields().iter().find(|f| f.0 == number) else {
            if unknown == UnknownFields::Refuse || wire == 3 || wire == 4 {
                return Err(scan.error(kind, None, WireProblem::UnknownField(number)));
            }
            if let Some(stop) = scan.value(wire, end).map_err(|p| scan.error(kind, None, p))? {
                scan.pos = stop;
            }
            continue;
        };
        let allowed = match payload {
            Int => wire == 0,
            Ints => wire == 0 || wire == 2,
            Float => wire == 5,
            Floats => wire == 5 || wire == 2,
            Doubles => wire == 1 || wire == 2,
            Blob | Message(_) | LazyMessage(_) => wire == 2,
        };
        if !allowed {
            return Err(scan.error(kind, Some(name), WireProblem::WireType(wire)));
        }
        let stop = scan.value(wire, end).map_err(|p| scan.error(kind, Some(name), p))?;
        let Some(stop) = stop else { continue };
        if kind == Tensor && name == "external_data" {
            summary.external_data.get_or_insert(scan.field_start);
        }
        let inner = match payload {
            Message(inner) => inner,
            LazyMessage(inner) => {
                if frame.seen & 1 << number != 0 {
                    return Err(scan.error(kind, Some(name), WireProblem::Twice));
                }
                frame.seen |= 1 << number;
                inner
            }
            _ => {
                let size = match payload {
                    Floats => 4,
                    Doubles => 8,
                    _ => 1,
                };
                if !(stop - scan.pos).is_multiple_of(size) {
                    return Err(scan.error(kind, Some(name), WireProblem::Truncated));
                }
                scan.pos = stop;
                continue;
            }
        };
        if kind == Graph && stack.len() == 2 {
            match name {
                "node" => summary.nodes += 1,
                "value_info" => summary.value_infos += 1,
                "initializer" => summary.initializers += 1,
                _ => {}
            }
        }
        if stack.len() > MAX_DEPTH {
            return Err(scan.error(kind, Some(name), WireProblem::TooDeep));
        }
        stack.push(Frame { kind: inner, end: stop, seen: 0 });
    }
    Ok(summary)
}

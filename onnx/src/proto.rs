//! The messages of an ONNX file, up to IR version 14: the only declaration of them, for `prost` and
//! for the check of a file.
//!
//! Every field of the format is declared here, so that nothing is lost when a file is read and
//! written. Fields that the format does not define are refused by [`crate::wire::check`], which
//! runs before a file is decoded: `prost` would silently drop them.
//!
//! The format's messages are recursive in two places: an attribute holds graphs, and a type holds
//! types. There the inner message is declared as `bytes`, which is the same on the wire, and is
//! decoded separately, so that decoding does not recurse over the file. Payloads are `bytes`, too:
//! slices of the file, not copies.
//!
//! Singular fields are `Option`s if the format distinguishes an absent value from a default.

use bytes::Bytes;
use prost::Enumeration;
use prost::{DecodeError, Message};

use crate::schema::{kinds, messages};

/// The newest IR version whose fields are all known here.
pub const IR_VERSION: i64 = 14;

messages! {
    /// A model: the root message of a file.
    struct ModelProto {
        /// The version of the format. It decides, among other things, whether inputs may override
        /// initializers.
        [1 int64, optional] ir_version: Option<i64>,
        /// The tool that wrote the model.
        [2 string, optional] producer_name: Option<String>,
        /// The version of the tool that wrote the model.
        [3 string, optional] producer_version: Option<String>,
        /// The model's namespace, in reverse-DNS style.
        [4 string, optional] domain: Option<String>,
        /// The version of the model itself.
        [5 int64, optional] model_version: Option<i64>,
        /// Text for people.
        [6 string, optional] doc_string: Option<String>,
        /// The program.
        [7 message, optional] graph: Option<GraphProto>,
        /// The versions of the operators that the nodes use, by domain.
        [8 message, repeated] opset_import: Vec<OperatorSetIdProto>,
        /// Named values for tools.
        [14 message, repeated] metadata_props: Vec<StringStringEntryProto>,
        /// Graphs used for training only.
        [20 message, repeated] training_info: Vec<TrainingInfoProto>,
        /// Operators that the model defines by graphs of its own.
        [25 message, repeated] functions: Vec<FunctionProto>,
        /// Sets of devices that nodes can be placed on.
        [26 message, repeated] configuration: Vec<DeviceConfigurationProto>,
    }

    /// A graph: nodes in topological order, over named values.
    struct GraphProto {
        /// The nodes.
        [1 message, repeated] node: Vec<NodeProto>,
        /// The graph's name.
        [2 string, optional] name: Option<String>,
        /// Named constants. A constant with the name of an input is the default of that input.
        [5 message, repeated] initializer: Vec<TensorProto>,
        /// Text for people.
        [10 string, optional] doc_string: Option<String>,
        /// Parameters.
        [11 message, repeated] input: Vec<ValueInfoProto>,
        /// Results.
        [12 message, repeated] output: Vec<ValueInfoProto>,
        /// Types of other values.
        [13 message, repeated] value_info: Vec<ValueInfoProto>,
        /// Quantization parameters of values.
        [14 message, repeated] quantization_annotation: Vec<TensorAnnotation>,
        /// Named sparse constants.
        [15 message, repeated] sparse_initializer: Vec<SparseTensorProto>,
        /// Named values for tools.
        [16 message, repeated] metadata_props: Vec<StringStringEntryProto>,
    }

    /// An application of an operator.
    struct NodeProto {
        /// The names of the operands; an empty name is an optional operand that is left out.
        [1 string, repeated] input: Vec<String>,
        /// The names of the results; an empty name is a result that is not requested.
        [2 string, repeated] output: Vec<String>,
        /// The node's name, which nothing refers to.
        [3 string, optional] name: Option<String>,
        /// The operator.
        [4 string, optional] op_type: Option<String>,
        /// The operator's arguments that are not values.
        [5 message, repeated] attribute: Vec<AttributeProto>,
        /// Text for people.
        [6 string, optional] doc_string: Option<String>,
        /// The operator's domain; empty for the standard domain.
        [7 string, optional] domain: Option<String>,
        /// The overload that is called, if several model-local functions have the same name.
        [8 string, optional] overload: Option<String>,
        /// Named values for tools.
        [9 message, repeated] metadata_props: Vec<StringStringEntryProto>,
        /// Placement on devices.
        [10 message, repeated] device_configurations: Vec<NodeDeviceConfigurationProto>,
    }

    /// A named argument of a node.
    struct AttributeProto {
        /// The attribute's name.
        [1 string, optional] name: Option<String>,
        /// Type `Float`.
        [2 float, optional] f: Option<f32>,
        /// Type `Int`.
        [3 int64, optional] i: Option<i64>,
        /// Type `String`.
        [4 bytes = "bytes", optional] s: Option<Bytes>,
        /// Type `Tensor`.
        [5 message, optional, boxed] t: Option<Box<TensorProto>>,
        /// Type `Graph`: a [`GraphProto`], not decoded yet.
        [6 bytes = "bytes", optional] g: Option<Bytes> as GraphProto,
        /// Type `Floats`.
        [7 float, repeated, packed = "false"] floats: Vec<f32>,
        /// Type `Ints`.
        [8 int64, repeated, packed = "false"] ints: Vec<i64>,
        /// Type `Strings`.
        [9 bytes = "bytes", repeated] strings: Vec<Bytes>,
        /// Type `Tensors`.
        [10 message, repeated] tensors: Vec<TensorProto>,
        /// Type `Graphs`: [`GraphProto`]s, not decoded yet.
        [11 bytes = "bytes", repeated] graphs: Vec<Bytes> as GraphProto,
        /// Text for people.
        [13 string, optional] doc_string: Option<String>,
        /// Type `TypeProto`.
        [14 message, optional, boxed] tp: Option<Box<TypeProto>>,
        /// Type `TypeProtos`.
        [15 message, repeated] type_protos: Vec<TypeProto>,
        /// The field that holds the value; an [`AttributeType`].
        [20 enumeration = "AttributeType", optional] r#type: Option<i32>,
        /// In a model-local function: the function's attribute that gives the value.
        [21 string, optional] ref_attr_name: Option<String>,
        /// Type `SparseTensor`.
        [22 message, optional, boxed] sparse_tensor: Option<Box<SparseTensorProto>>,
        /// Type `SparseTensors`.
        [23 message, repeated] sparse_tensors: Vec<SparseTensorProto>,
    }

    /// A constant tensor.
    struct TensorProto {
        /// Extents, outermost first.
        [1 int64, repeated, packed = "false"] dims: Vec<i64>,
        /// The element type's number; see [`crate::tensor::dtype_of`].
        [2 int32, optional] data_type: Option<i32>,
        /// The part of a larger tensor that this tensor is. No tool writes it.
        [3 message, optional, boxed] segment: Option<Box<tensor_proto::Segment>>,
        /// Elements of `float32`, and parts of `complex64`.
        [4 float, repeated] float_data: Vec<f32>,
        /// Elements of the types of at most 32 bits, one in each number; of types of less than 8
        /// bits, a byte of elements in each.
        [5 int32, repeated] int32_data: Vec<i32>,
        /// Elements of `string`.
        [6 bytes = "bytes", repeated] string_data: Vec<Bytes>,
        /// Elements of `int64`.
        [7 int64, repeated] int64_data: Vec<i64>,
        /// The name, if the tensor is an initializer.
        [8 string, optional] name: Option<String>,
        /// Elements of any type but `string`: little-endian, row-major.
        [9 bytes = "bytes", optional] raw_data: Option<Bytes>,
        /// Elements of `float64`, and parts of `complex128`.
        [10 double, repeated] double_data: Vec<f64>,
        /// Elements of `uint32` and `uint64`.
        [11 uint64, repeated] uint64_data: Vec<u64>,
        /// Text for people.
        [12 string, optional] doc_string: Option<String>,
        /// The file that holds the elements, and their position in it.
        [13 message, repeated] external_data: Vec<StringStringEntryProto>,
        /// The location of the elements, here or in another file; a [`tensor_proto::DataLocation`].
        [14 enumeration = "tensor_proto::DataLocation", optional] data_location: Option<i32>,
        /// Named values for tools.
        [16 message, repeated] metadata_props: Vec<StringStringEntryProto>,
    }

    /// A constant sparse tensor.
    struct SparseTensorProto {
        /// The nonzero elements; the name of this tensor is the name of the sparse tensor.
        [1 message, optional] values: Option<TensorProto>,
        /// The positions of the elements.
        [2 message, optional] indices: Option<TensorProto>,
        /// Extents, outermost first.
        [3 int64, repeated, packed = "false"] dims: Vec<i64>,
    }

    /// A value's name and type.
    struct ValueInfoProto {
        /// The value's name.
        [1 string, optional] name: Option<String>,
        /// The value's type.
        [2 message, optional] r#type: Option<TypeProto>,
        /// Text for people.
        [3 string, optional] doc_string: Option<String>,
        /// Named values for tools.
        [4 message, repeated] metadata_props: Vec<StringStringEntryProto>,
    }

    /// The type of a value.
    struct TypeProto oneof(
        /// The kind of type.
        [oneof = "type_proto::Value", tags = "1, 4, 5, 7, 8, 9"] value: type_proto::Value
    ) {
        /// The meaning of the value, such as an image.
        [6 string, optional] denotation: Option<String>,
    }

    /// A shape of known rank.
    struct TensorShapeProto {
        /// The dimensions, outermost first.
        [1 message, repeated] dim: Vec<tensor_shape_proto::Dimension>,
    }

    /// A domain and the version of its operators.
    struct OperatorSetIdProto {
        /// The domain; empty for the standard domain.
        [1 string, optional] domain: Option<String>,
        /// The version.
        [2 int64, optional] version: Option<i64>,
    }

    /// A pair of strings.
    struct StringStringEntryProto {
        /// The key.
        [1 string, optional] key: Option<String>,
        /// The value.
        [2 string, optional] value: Option<String>,
    }

    /// The quantization parameters of a value.
    struct TensorAnnotation {
        /// The value.
        [1 string, optional] tensor_name: Option<String>,
        /// The values that hold the parameters, by parameter (such as a scale).
        [2 message, repeated] quant_parameter_tensor_names: Vec<StringStringEntryProto>,
    }

    /// Graphs used for training only.
    struct TrainingInfoProto {
        /// The graph that computes the initial state.
        [1 message, optional] initialization: Option<GraphProto>,
        /// The graph of a training step.
        [2 message, optional] algorithm: Option<GraphProto>,
        /// The results of the initialization, by the state that takes them.
        [3 message, repeated] initialization_binding: Vec<StringStringEntryProto>,
        /// The results of a step, by the state that takes them.
        [4 message, repeated] update_binding: Vec<StringStringEntryProto>,
    }

    /// An operator defined by a graph.
    struct FunctionProto {
        /// The operator's name.
        [1 string, optional] name: Option<String>,
        /// Names of the operands.
        [4 string, repeated] input: Vec<String>,
        /// Names of the results.
        [5 string, repeated] output: Vec<String>,
        /// Attributes without a default.
        [6 string, repeated] attribute: Vec<String>,
        /// The body.
        [7 message, repeated] node: Vec<NodeProto>,
        /// Text for people.
        [8 string, optional] doc_string: Option<String>,
        /// The versions of the operators that the body uses, by domain.
        [9 message, repeated] opset_import: Vec<OperatorSetIdProto>,
        /// The operator's domain.
        [10 string, optional] domain: Option<String>,
        /// Attributes with a default.
        [11 message, repeated] attribute_proto: Vec<AttributeProto>,
        /// Types of the body's values.
        [12 message, repeated] value_info: Vec<ValueInfoProto>,
        /// The overload, if several functions have the same name.
        [13 string, optional] overload: Option<String>,
        /// Named values for tools.
        [14 message, repeated] metadata_props: Vec<StringStringEntryProto>,
    }

    /// A set of devices.
    struct DeviceConfigurationProto {
        /// The set's name.
        [1 string, optional] name: Option<String>,
        /// The number of devices.
        [2 int32, optional] num_devices: Option<i32>,
        /// The names of the devices.
        [3 string, repeated] device: Vec<String>,
    }

    /// Placement of a node on a set of devices.
    struct NodeDeviceConfigurationProto {
        /// The set.
        [1 string, optional] configuration_id: Option<String>,
        /// The splits of the node's values.
        [2 message, repeated] sharding_spec: Vec<ShardingSpecProto>,
        /// The node's stage in a pipeline.
        [3 int32, optional] pipeline_stage: Option<i32>,
    }

    /// The split of a value over devices.
    struct ShardingSpecProto {
        /// The value.
        [1 string, optional] tensor_name: Option<String>,
        /// The devices, or groups of them.
        [2 int64, repeated, packed = "false"] device: Vec<i64>,
        /// The groups.
        [3 message, repeated] index_to_device_group_map: Vec<IntIntListEntryProto>,
        /// The dimensions that are split.
        [4 message, repeated] sharded_dim: Vec<ShardedDimProto>,
    }

    /// A number and a list of numbers.
    struct IntIntListEntryProto {
        /// The key.
        [1 int64, optional] key: Option<i64>,
        /// The list.
        [2 int64, repeated, packed = "false"] value: Vec<i64>,
    }

    /// A dimension that is split.
    struct ShardedDimProto {
        /// The dimension.
        [1 int64, optional] axis: Option<i64>,
        /// The splits, outermost first.
        [2 message, repeated] simple_sharding: Vec<SimpleShardedDimProto>,
    }

    /// A split of a dimension.
    struct SimpleShardedDimProto oneof(
        /// The extent that is split.
        [oneof = "sharded_extent::Extent", tags = "1, 2"] dim: sharded_extent::Extent
    ) {
        /// The number of parts.
        [3 int64, optional] num_shards: Option<i64>,
    }
}

/// The field of an [`AttributeProto`] that holds the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum AttributeType {
    /// Not stated (files of IR version 1).
    Undefined = 0,
    /// `f`
    Float = 1,
    /// `i`
    Int = 2,
    /// `s`
    String = 3,
    /// `t`
    Tensor = 4,
    /// `g`
    Graph = 5,
    /// `floats`
    Floats = 6,
    /// `ints`
    Ints = 7,
    /// `strings`
    Strings = 8,
    /// `tensors`
    Tensors = 9,
    /// `graphs`
    Graphs = 10,
    /// `sparse_tensor`
    SparseTensor = 11,
    /// `sparse_tensors`
    SparseTensors = 12,
    /// `tp`
    TypeProto = 13,
    /// `type_protos`
    TypeProtos = 14,
}

/// Messages that only [`TensorProto`] uses.
pub mod tensor_proto {
    use super::{Enumeration, messages};

    messages! {
        /// A range of elements.
        struct Segment "TensorProto.Segment" {
            /// The first element.
            [1 int64, optional] begin: Option<i64>,
            /// The index after the last element.
            [2 int64, optional] end: Option<i64>,
        }
    }

    /// The location of the elements.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
    #[repr(i32)]
    pub enum DataLocation {
        /// In the message.
        Default = 0,
        /// In another file.
        External = 1,
    }
}

/// Messages that only [`TypeProto`] uses.
pub mod type_proto {
    use super::{Bytes, TensorShapeProto, kinds, messages};

    messages! {
        /// A dense tensor.
        struct Tensor "TypeProto.Tensor" {
            /// The element type's number.
            [1 int32, optional] elem_type: Option<i32>,
            /// The shape; absent if the rank is not known.
            [2 message, optional] shape: Option<TensorShapeProto>,
        }

        /// A sequence of values of the same type.
        struct Sequence "TypeProto.Sequence" {
            /// The element type: a [`super::TypeProto`], not decoded yet.
            [1 bytes = "bytes", optional] elem_type: Option<Bytes> as super::TypeProto,
        }

        /// A map.
        struct Map "TypeProto.Map" {
            /// The number of the keys' element type.
            [1 int32, optional] key_type: Option<i32>,
            /// The values' type: a [`super::TypeProto`], not decoded yet.
            [2 bytes = "bytes", optional] value_type: Option<Bytes> as super::TypeProto,
        }

        /// A value that may be missing.
        struct Optional "TypeProto.Optional" {
            /// The type of the value if it is present: a [`super::TypeProto`], not decoded yet.
            [1 bytes = "bytes", optional] elem_type: Option<Bytes> as super::TypeProto,
        }

        /// A sparse tensor.
        struct SparseTensor "TypeProto.Tensor" {
            /// The element type's number.
            [1 int32, optional] elem_type: Option<i32>,
            /// The shape; absent if the rank is not known.
            [2 message, optional] shape: Option<TensorShapeProto>,
        }

        /// A type of a custom domain.
        struct Opaque "TypeProto.Opaque" {
            /// The domain.
            [1 string, optional] domain: Option<String>,
            /// The type's name in the domain.
            [2 string, optional] name: Option<String>,
        }
    }

    kinds! {
        /// The kinds of type.
        enum Value {
            /// A dense tensor.
            [1 message] tensor_type: TensorType(Tensor),
            /// A sequence: a [`Sequence`], not decoded yet.
            [4 bytes = "bytes"] sequence_type: SequenceType(Bytes) as Sequence,
            /// A map: a [`Map`], not decoded yet.
            [5 bytes = "bytes"] map_type: MapType(Bytes) as Map,
            /// A type of a custom domain.
            [7 message] opaque_type: OpaqueType(Opaque),
            /// A sparse tensor.
            [8 message] sparse_tensor_type: SparseTensorType(SparseTensor),
            /// A value that may be missing: an [`Optional`], not decoded yet.
            [9 bytes = "bytes"] optional_type: OptionalType(Bytes) as Optional,
        }
    }
}

/// Messages that only [`TensorShapeProto`] uses.
pub mod tensor_shape_proto {
    use super::{kinds, messages};

    messages! {
        /// A dimension.
        struct Dimension "TensorShapeProto.Dimension" oneof(
            /// The extent; absent if nothing is known about it.
            [oneof = "Extent", tags = "1, 2"] value: Extent
        ) {
            /// The meaning of the dimension, such as a batch.
            [3 string, optional] denotation: Option<String>,
        }
    }

    kinds! {
        /// The statement about an extent.
        enum Extent {
            /// The number.
            [1 int64] dim_value: DimValue(i64),
            /// A symbol, which stands for the same number everywhere.
            [2 string] dim_param: DimParam(String),
        }
    }
}

/// Messages that only [`SimpleShardedDimProto`] uses.
pub mod sharded_extent {
    use super::kinds;

    kinds! {
        /// The extent of a split dimension.
        enum Extent {
            /// The number.
            [1 int64] dim_value: DimValue(i64),
            /// A symbol.
            [2 string] dim_param: DimParam(String),
        }
    }
}

/// Returns a node.
pub(crate) fn node(
    domain: &str,
    op_type: &str,
    input: Vec<String>,
    output: Vec<String>,
    attribute: Vec<AttributeProto>,
) -> NodeProto {
    let domain = (!domain.is_empty()).then(|| domain.to_owned());
    NodeProto { input, output, op_type: Some(op_type.to_owned()), domain, attribute, ..NodeProto::default() }
}

/// Calls `f` with each of the nodes and with the nodes of the graphs in them.
pub(crate) fn for_each_node(nodes: &[NodeProto], mut f: impl FnMut(&NodeProto)) -> Result<(), DecodeError> {
    let mut waiting: Vec<Bytes> = Vec::new();
    let mut all = |nodes: &[NodeProto], waiting: &mut Vec<Bytes>| {
        nodes.iter().for_each(&mut f);
        let attributes = nodes.iter().flat_map(|n| &n.attribute);
        waiting.extend(attributes.flat_map(|a| a.g.iter().chain(&a.graphs)).cloned());
    };
    all(nodes, &mut waiting);
    while let Some(graph) = waiting.pop() {
        all(&GraphProto::decode(graph)?.node, &mut waiting);
    }
    Ok(())
}

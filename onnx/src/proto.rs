//! The messages of an ONNX file, for `prost`, up to IR version 14.
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
use prost::{Enumeration, Message, Oneof};

/// The newest IR version whose fields are all known here.
pub const IR_VERSION: i64 = 14;

/// A model: the root message of a file.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// The version of the format. It decides, among other things, whether inputs may override
    /// initializers.
    #[prost(int64, optional, tag = "1")]
    pub ir_version: Option<i64>,
    /// The tool that wrote the model.
    #[prost(string, optional, tag = "2")]
    pub producer_name: Option<String>,
    /// That tool's version.
    #[prost(string, optional, tag = "3")]
    pub producer_version: Option<String>,
    /// The model's namespace, in reverse-DNS style.
    #[prost(string, optional, tag = "4")]
    pub domain: Option<String>,
    /// The version of the model itself.
    #[prost(int64, optional, tag = "5")]
    pub model_version: Option<i64>,
    /// Text for people.
    #[prost(string, optional, tag = "6")]
    pub doc_string: Option<String>,
    /// The program.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// The versions of the operators that the nodes use, by domain.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Named values for tools.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
    /// Graphs used for training only.
    #[prost(message, repeated, tag = "20")]
    pub training_info: Vec<TrainingInfoProto>,
    /// Operators that the model defines by graphs of its own.
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<FunctionProto>,
    /// Sets of devices that nodes can be placed on.
    #[prost(message, repeated, tag = "26")]
    pub configuration: Vec<DeviceConfigurationProto>,
}

/// A graph: nodes in topological order, over named values.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The nodes.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// The graph's name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Named constants. A constant with the name of an input is the default of that input.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Text for people.
    #[prost(string, optional, tag = "10")]
    pub doc_string: Option<String>,
    /// Parameters.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Results.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// Types of other values.
    #[prost(message, repeated, tag = "13")]
    pub value_info: Vec<ValueInfoProto>,
    /// Quantization parameters of values.
    #[prost(message, repeated, tag = "14")]
    pub quantization_annotation: Vec<TensorAnnotation>,
    /// Named sparse constants.
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<SparseTensorProto>,
    /// Named values for tools.
    #[prost(message, repeated, tag = "16")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// An application of an operator.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// The names of the operands; an empty name is an optional operand that is left out.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// The names of the results; an empty name is a result that is not requested.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// The node's name, which nothing refers to.
    #[prost(string, optional, tag = "3")]
    pub name: Option<String>,
    /// The operator.
    #[prost(string, optional, tag = "4")]
    pub op_type: Option<String>,
    /// The operator's arguments that are not values.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// Text for people.
    #[prost(string, optional, tag = "6")]
    pub doc_string: Option<String>,
    /// The operator's domain; empty for the standard domain.
    #[prost(string, optional, tag = "7")]
    pub domain: Option<String>,
    /// The overload that is called, if several model-local functions have the same name.
    #[prost(string, optional, tag = "8")]
    pub overload: Option<String>,
    /// Named values for tools.
    #[prost(message, repeated, tag = "9")]
    pub metadata_props: Vec<StringStringEntryProto>,
    /// Placement on devices.
    #[prost(message, repeated, tag = "10")]
    pub device_configurations: Vec<NodeDeviceConfigurationProto>,
}

/// A named argument of a node.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// The attribute's name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Type `Float`.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// Type `Int`.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// Type `String`.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub s: Option<Bytes>,
    /// Type `Tensor`.
    #[prost(message, optional, boxed, tag = "5")]
    pub t: Option<Box<TensorProto>>,
    /// Type `Graph`: a [`GraphProto`], not decoded yet.
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub g: Option<Bytes>,
    /// Type `Floats`.
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub floats: Vec<f32>,
    /// Type `Ints`.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Type `Strings`.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// Type `Tensors`.
    #[prost(message, repeated, tag = "10")]
    pub tensors: Vec<TensorProto>,
    /// Type `Graphs`: [`GraphProto`]s, not decoded yet.
    #[prost(bytes = "bytes", repeated, tag = "11")]
    pub graphs: Vec<Bytes>,
    /// Text for people.
    #[prost(string, optional, tag = "13")]
    pub doc_string: Option<String>,
    /// Type `TypeProto`.
    #[prost(message, optional, boxed, tag = "14")]
    pub tp: Option<Box<TypeProto>>,
    /// Type `TypeProtos`.
    #[prost(message, repeated, tag = "15")]
    pub type_protos: Vec<TypeProto>,
    /// The field that holds the value; an [`AttributeType`].
    #[prost(enumeration = "AttributeType", optional, tag = "20")]
    pub r#type: Option<i32>,
    /// In a model-local function: the function's attribute that gives the value.
    #[prost(string, optional, tag = "21")]
    pub ref_attr_name: Option<String>,
    /// Type `SparseTensor`.
    #[prost(message, optional, boxed, tag = "22")]
    pub sparse_tensor: Option<Box<SparseTensorProto>>,
    /// Type `SparseTensors`.
    #[prost(message, repeated, tag = "23")]
    pub sparse_tensors: Vec<SparseTensorProto>,
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

/// A constant tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Extents, outermost first.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// The element type's number; see [`crate::tensor::dtype_of`].
    #[prost(int32, optional, tag = "2")]
    pub data_type: Option<i32>,
    /// The part of a larger tensor that this tensor is. No tool writes it.
    #[prost(message, optional, boxed, tag = "3")]
    pub segment: Option<Box<tensor_proto::Segment>>,
    /// Elements of `float32`, and parts of `complex64`.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements of the types of at most 32 bits, one in each number; of the 4-bit types, two in
    /// each.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Elements of `string`.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub string_data: Vec<Bytes>,
    /// Elements of `int64`.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// The name, if the tensor is an initializer.
    #[prost(string, optional, tag = "8")]
    pub name: Option<String>,
    /// Elements of any type but `string`: little-endian, row-major.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub raw_data: Option<Bytes>,
    /// Elements of `float64`, and parts of `complex128`.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Elements of `uint32` and `uint64`.
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
    /// Text for people.
    #[prost(string, optional, tag = "12")]
    pub doc_string: Option<String>,
    /// The file that holds the elements, and their position in it.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// The location of the elements, here or in another file; a [`tensor_proto::DataLocation`].
    #[prost(enumeration = "tensor_proto::DataLocation", optional, tag = "14")]
    pub data_location: Option<i32>,
    /// Named values for tools.
    #[prost(message, repeated, tag = "16")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// Messages that only [`TensorProto`] uses.
pub mod tensor_proto {
    use super::{Enumeration, Message};

    /// A range of elements.
    #[derive(Clone, PartialEq, Message)]
    pub struct Segment {
        /// The first element.
        #[prost(int64, optional, tag = "1")]
        pub begin: Option<i64>,
        /// The index after the last element.
        #[prost(int64, optional, tag = "2")]
        pub end: Option<i64>,
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

/// A constant sparse tensor.
#[derive(Clone, PartialEq, Message)]
pub struct SparseTensorProto {
    /// The nonzero elements; the name of this tensor is the name of the sparse tensor.
    #[prost(message, optional, tag = "1")]
    pub values: Option<TensorProto>,
    /// The positions of the elements.
    #[prost(message, optional, tag = "2")]
    pub indices: Option<TensorProto>,
    /// Extents, outermost first.
    #[prost(int64, repeated, packed = "false", tag = "3")]
    pub dims: Vec<i64>,
}

/// A value's name and type.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// The value's name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// The value's type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
    /// Text for people.
    #[prost(string, optional, tag = "3")]
    pub doc_string: Option<String>,
    /// Named values for tools.
    #[prost(message, repeated, tag = "4")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// The type of a value.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// The kind of type.
    #[prost(oneof = "type_proto::Value", tags = "1, 4, 5, 7, 8, 9")]
    pub value: Option<type_proto::Value>,
    /// The meaning of the value, such as an image.
    #[prost(string, optional, tag = "6")]
    pub denotation: Option<String>,
}

/// Messages that only [`TypeProto`] uses.
pub mod type_proto {
    use super::{Bytes, Message, Oneof, TensorShapeProto};

    /// The kinds of type.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Value {
        /// A dense tensor.
        #[prost(message, tag = "1")]
        TensorType(Tensor),
        /// A sequence: a [`Sequence`], not decoded yet.
        #[prost(bytes = "bytes", tag = "4")]
        SequenceType(Bytes),
        /// A map: a [`Map`], not decoded yet.
        #[prost(bytes = "bytes", tag = "5")]
        MapType(Bytes),
        /// A type of a custom domain.
        #[prost(message, tag = "7")]
        OpaqueType(Opaque),
        /// A sparse tensor.
        #[prost(message, tag = "8")]
        SparseTensorType(SparseTensor),
        /// A value that may be missing: an [`Optional`], not decoded yet.
        #[prost(bytes = "bytes", tag = "9")]
        OptionalType(Bytes),
    }

    /// A dense tensor.
    #[derive(Clone, PartialEq, Message)]
    pub struct Tensor {
        /// The element type's number.
        #[prost(int32, optional, tag = "1")]
        pub elem_type: Option<i32>,
        /// The shape; absent if the rank is not known.
        #[prost(message, optional, tag = "2")]
        pub shape: Option<TensorShapeProto>,
    }

    /// A sequence of values of the same type.
    #[derive(Clone, PartialEq, Message)]
    pub struct Sequence {
        /// The element type: a [`super::TypeProto`], not decoded yet.
        #[prost(bytes = "bytes", optional, tag = "1")]
        pub elem_type: Option<Bytes>,
    }

    /// A map.
    #[derive(Clone, PartialEq, Message)]
    pub struct Map {
        /// The number of the keys' element type.
        #[prost(int32, optional, tag = "1")]
        pub key_type: Option<i32>,
        /// The values' type: a [`super::TypeProto`], not decoded yet.
        #[prost(bytes = "bytes", optional, tag = "2")]
        pub value_type: Option<Bytes>,
    }

    /// A value that may be missing.
    #[derive(Clone, PartialEq, Message)]
    pub struct Optional {
        /// The type of the value if it is present: a [`super::TypeProto`], not decoded yet.
        #[prost(bytes = "bytes", optional, tag = "1")]
        pub elem_type: Option<Bytes>,
    }

    /// A sparse tensor.
    #[derive(Clone, PartialEq, Message)]
    pub struct SparseTensor {
        /// The element type's number.
        #[prost(int32, optional, tag = "1")]
        pub elem_type: Option<i32>,
        /// The shape; absent if the rank is not known.
        #[prost(message, optional, tag = "2")]
        pub shape: Option<TensorShapeProto>,
    }

    /// A type of a custom domain.
    #[derive(Clone, PartialEq, Message)]
    pub struct Opaque {
        /// The domain.
        #[prost(string, optional, tag = "1")]
        pub domain: Option<String>,
        /// The type's name in the domain.
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
    }
}

/// A shape of known rank.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// The dimensions, outermost first.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<tensor_shape_proto::Dimension>,
}

/// Messages that only [`TensorShapeProto`] uses.
pub mod tensor_shape_proto {
    use super::{Message, Oneof};

    /// A dimension.
    #[derive(Clone, PartialEq, Message)]
    pub struct Dimension {
        /// The extent; absent if nothing is known about it.
        #[prost(oneof = "Extent", tags = "1, 2")]
        pub value: Option<Extent>,
        /// The meaning of the dimension, such as a batch.
        #[prost(string, optional, tag = "3")]
        pub denotation: Option<String>,
    }

    /// The statement about an extent.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Extent {
        /// The number.
        #[prost(int64, tag = "1")]
        DimValue(i64),
        /// A symbol, which stands for the same number everywhere.
        #[prost(string, tag = "2")]
        DimParam(String),
    }
}

/// A domain and the version of its operators.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// The domain; empty for the standard domain.
    #[prost(string, optional, tag = "1")]
    pub domain: Option<String>,
    /// The version.
    #[prost(int64, optional, tag = "2")]
    pub version: Option<i64>,
}

/// A pair of strings.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// The key.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// The value.
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

/// The quantization parameters of a value.
#[derive(Clone, PartialEq, Message)]
pub struct TensorAnnotation {
    /// The value.
    #[prost(string, optional, tag = "1")]
    pub tensor_name: Option<String>,
    /// The values that hold the parameters, by parameter (such as a scale).
    #[prost(message, repeated, tag = "2")]
    pub quant_parameter_tensor_names: Vec<StringStringEntryProto>,
}

/// Graphs used for training only.
#[derive(Clone, PartialEq, Message)]
pub struct TrainingInfoProto {
    /// The graph that computes the initial state.
    #[prost(message, optional, tag = "1")]
    pub initialization: Option<GraphProto>,
    /// The graph of a training step.
    #[prost(message, optional, tag = "2")]
    pub algorithm: Option<GraphProto>,
    /// The results of the initialization, by the state that takes them.
    #[prost(message, repeated, tag = "3")]
    pub initialization_binding: Vec<StringStringEntryProto>,
    /// The results of a step, by the state that takes them.
    #[prost(message, repeated, tag = "4")]
    pub update_binding: Vec<StringStringEntryProto>,
}

/// An operator defined by a graph.
#[derive(Clone, PartialEq, Message)]
pub struct FunctionProto {
    /// The operator's name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Names of the operands.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Names of the results.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// Attributes without a default.
    #[prost(string, repeated, tag = "6")]
    pub attribute: Vec<String>,
    /// The body.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeProto>,
    /// Text for people.
    #[prost(string, optional, tag = "8")]
    pub doc_string: Option<String>,
    /// The versions of the operators that the body uses, by domain.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// The operator's domain.
    #[prost(string, optional, tag = "10")]
    pub domain: Option<String>,
    /// Attributes with a default.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeProto>,
    /// Types of the body's values.
    #[prost(message, repeated, tag = "12")]
    pub value_info: Vec<ValueInfoProto>,
    /// The overload, if several functions have the same name.
    #[prost(string, optional, tag = "13")]
    pub overload: Option<String>,
    /// Named values for tools.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A set of devices.
#[derive(Clone, PartialEq, Message)]
pub struct DeviceConfigurationProto {
    /// The set's name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// The number of devices.
    #[prost(int32, optional, tag = "2")]
    pub num_devices: Option<i32>,
    /// The names of the devices.
    #[prost(string, repeated, tag = "3")]
    pub device: Vec<String>,
}

/// Placement of a node on a set of devices.
#[derive(Clone, PartialEq, Message)]
pub struct NodeDeviceConfigurationProto {
    /// The set.
    #[prost(string, optional, tag = "1")]
    pub configuration_id: Option<String>,
    /// The splits of the node's values.
    #[prost(message, repeated, tag = "2")]
    pub sharding_spec: Vec<ShardingSpecProto>,
    /// The node's stage in a pipeline.
    #[prost(int32, optional, tag = "3")]
    pub pipeline_stage: Option<i32>,
}

/// The split of a value over devices.
#[derive(Clone, PartialEq, Message)]
pub struct ShardingSpecProto {
    /// The value.
    #[prost(string, optional, tag = "1")]
    pub tensor_name: Option<String>,
    /// The devices, or groups of them.
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub device: Vec<i64>,
    /// The groups.
    #[prost(message, repeated, tag = "3")]
    pub index_to_device_group_map: Vec<IntIntListEntryProto>,
    /// The dimensions that are split.
    #[prost(message, repeated, tag = "4")]
    pub sharded_dim: Vec<ShardedDimProto>,
}

/// A number and a list of numbers.
#[derive(Clone, PartialEq, Message)]
pub struct IntIntListEntryProto {
    /// The key.
    #[prost(int64, optional, tag = "1")]
    pub key: Option<i64>,
    /// The list.
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub value: Vec<i64>,
}

/// A dimension that is split.
#[derive(Clone, PartialEq, Message)]
pub struct ShardedDimProto {
    /// The dimension.
    #[prost(int64, optional, tag = "1")]
    pub axis: Option<i64>,
    /// The splits, outermost first.
    #[prost(message, repeated, tag = "2")]
    pub simple_sharding: Vec<SimpleShardedDimProto>,
}

/// A split of a dimension.
#[derive(Clone, PartialEq, Message)]
pub struct SimpleShardedDimProto {
    /// The extent that is split.
    #[prost(oneof = "sharded_extent::Extent", tags = "1, 2")]
    pub dim: Option<sharded_extent::Extent>,
    /// The number of parts.
    #[prost(int64, optional, tag = "3")]
    pub num_shards: Option<i64>,
}

/// Messages that only [`SimpleShardedDimProto`] uses.
pub mod sharded_extent {
    use super::Oneof;

    /// The extent of a split dimension.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Extent {
        /// The number.
        #[prost(int64, tag = "1")]
        DimValue(i64),
        /// A symbol.
        #[prost(string, tag = "2")]
        DimParam(String),
    }
}

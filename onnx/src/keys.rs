//! The names of the attributes in which what ONNX says, and the language does not, is carried along.
//!
//! Messages that have no form of their own are kept encoded, as `uint8` tensors.

// Attributes of the module.

/// `ir_version`, an integer.
pub(crate) const IR_VERSION: &str = "onnx_ir_version";
/// `opset_import`: a list of `[domain, version]`.
pub(crate) const OPSETS: &str = "onnx_opsets";
/// `producer_name`
pub(crate) const PRODUCER_NAME: &str = "onnx_producer_name";
/// `producer_version`
pub(crate) const PRODUCER_VERSION: &str = "onnx_producer_version";
/// `domain`
pub(crate) const DOMAIN: &str = "onnx_domain";
/// `model_version`, an integer.
pub(crate) const MODEL_VERSION: &str = "onnx_model_version";
/// `functions`: a list of encoded messages.
pub(crate) const FUNCTIONS: &str = "onnx_functions";
/// `configuration`: a list of encoded messages.
pub(crate) const CONFIGURATIONS: &str = "onnx_configurations";

/// `training_info`: a list of encoded messages.
pub(crate) const TRAINING: &str = "onnx_training";

// Carried along by the module, a graph, a node or an initializer.

/// `doc_string`
pub(crate) const DOC: &str = "onnx_doc";
/// `metadata_props`: a list of `[key, value]`.
pub(crate) const METADATA: &str = "onnx_metadata";

// Carried along by a graph: by the function, or by the binding of the `fn` that a subgraph is.

/// The graph's name.
pub(crate) const GRAPH: &str = "onnx_graph";
/// Names of the outputs.
pub(crate) const OUTPUTS: &str = "onnx_outputs";
/// Encoded `ValueInfoProto`s of inputs and initializers that say more than the types here.
pub(crate) const INFOS: &str = "onnx_infos";
/// The same of outputs, which may have the name of an input.
pub(crate) const OUTPUT_INFOS: &str = "onnx_output_infos";
/// Encoded `TensorAnnotation`s.
pub(crate) const QUANTIZATION: &str = "onnx_quantization";
/// Default values of inputs: a list of `[name, value]`.
pub(crate) const DEFAULTS: &str = "onnx_defaults";
/// Symbolic dimensions whose name in the file is not an identifier: a list of `[symbol, name]`.
pub(crate) const DIMENSIONS: &str = "onnx_dimensions";

/// For a function of the file: domain, name, overload, and whether the file says the types of its inputs.
pub(crate) const FUNCTION: &str = "onnx_function";

// Carried along by a branch: by the binding of the `if`, under the same names with one of these in place of the prefix.

/// For the first branch.
pub(crate) const THEN: &str = "onnx_then_";
/// For the second.
pub(crate) const ELSE: &str = "onnx_else_";

/// The key of a branch, for one of a graph.
pub(crate) fn of_branch(branch: &str, key: &str) -> String {
    format!("{branch}{}", key.strip_prefix(PREFIX).unwrap_or(key))
}

// Carried along by a node: by the binding of its value.

/// The node's name.
pub(crate) const NAME: &str = "onnx_name";
/// `device_configurations`: a list of encoded messages.
pub(crate) const DEVICES: &str = "onnx_devices";
/// Whether the file states the value's type: `true`, or the encoded `ValueInfoProto` if it says more than the type here.
pub(crate) const INFO: &str = "onnx_info";
/// Names of the operands that are constants; empty for the others.
pub(crate) const INPUTS: &str = "onnx_inputs";
/// Attributes without a meaning here: the operator, then encoded `AttributeProto`s.
pub(crate) const CARRIED: &str = "onnx_attributes";
/// For the binding of a constant that was a node: the attribute of that node that held it.
pub(crate) const CONSTANT: &str = "onnx_constant";

/// For the binding of the one element of a condition that is not of rank 0: the file has no node for it.
pub(crate) const CONDITION: &str = "onnx_condition";

// Attributes of opaque calls, beside those of the node.

/// Attributes that have no other form: a list of encoded `AttributeProto`s.
pub(crate) const RAW: &str = "onnx_raw";
/// Names of the attributes whose graphs are the last operands; `name[i]` for a list of graphs.
pub(crate) const SUBGRAPHS: &str = "onnx_subgraphs";
/// Which of the node's outputs are asked for, unless it is just one output.
pub(crate) const PRESENT: &str = "onnx_present";
/// The node's `overload`.
pub(crate) const OVERLOAD: &str = "onnx_overload";

// Metadata of a function of a model that is one of the module, where the format has no place for it.

/// `public`, if it is not private.
pub(crate) const VISIBILITY: &str = "anfora.visibility";
/// Followed by the name of an attribute of the function: its value.
pub(crate) const ATTRIBUTE: &str = "anfora.attribute.";
/// How many of the last inputs are constants of the function.
pub(crate) const GIVEN: &str = "anfora.constants";
/// `tuple`, if there are less than two outputs, and they are a tuple all the same; `whole`, if there are more, and they are the fields of one value.
pub(crate) const RESULT: &str = "anfora.result";
/// `value`, if the output is no variable.
pub(crate) const TAIL: &str = "anfora.tail";
/// Metadata of a node in such a function: it is a constant that has no binding.
pub(crate) const LITERAL: &str = "anfora.literal";
/// Metadata of a model: its version of the format without the functions.
pub(crate) const PLAIN_IR_VERSION: &str = "anfora.ir_version";
/// Metadata of a `Constant` node: it is a sparse initializer.
pub(crate) const SPARSE: &str = "anfora.sparse_initializer";
/// The same, of one that is not sparse.
pub(crate) const INITIALIZER: &str = "anfora.initializer";
/// What the names of these begin with.
pub(crate) const OWN: &str = "anfora.";

/// What the names of all the others begin with.
pub(crate) const PREFIX: &str = "onnx_";

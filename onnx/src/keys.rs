//! The names of attributes that preserve information of ONNX without a counterpart in the language.
//!
//! Messages without a form of their own are encoded as `uint8` tensors.

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

// Attributes of the module, a graph, a node or an initializer.

/// `doc_string`
pub(crate) const DOC: &str = "onnx_doc";
/// `metadata_props`: a list of `[key, value]`.
pub(crate) const METADATA: &str = "onnx_metadata";

// Attributes of a graph, stored in the metadata of the function or of the binding of the subgraph's
// `fn`.

/// The graph's name.
pub(crate) const GRAPH: &str = "onnx_graph";
/// The names of the outputs.
pub(crate) const OUTPUTS: &str = "onnx_outputs";
/// The names of the constants that the graph returns under other names; empty for other outputs.
pub(crate) const RETURNED: &str = "onnx_returned";
/// Encoded `ValueInfoProto`s of inputs and initializers that state more than the types here.
pub(crate) const INFOS: &str = "onnx_infos";
/// Encoded `ValueInfoProto`s of outputs, kept apart because an output may have the name of an
/// input.
pub(crate) const OUTPUT_INFOS: &str = "onnx_output_infos";
/// Encoded `TensorAnnotation`s.
pub(crate) const QUANTIZATION: &str = "onnx_quantization";
/// Default values of inputs: a list of `[name, value]`.
pub(crate) const DEFAULTS: &str = "onnx_defaults";
/// Symbolic dimensions whose name in the file is not an identifier: a list of `[symbol, name]`.
pub(crate) const DIMENSIONS: &str = "onnx_dimensions";

/// For a function of the file: domain, name, overload, and whether the file states the types of its
/// inputs.
pub(crate) const FUNCTION: &str = "onnx_function";

// Prefixes for the attributes of a branch, stored in the metadata of the binding of the `if`. They
// replace `PREFIX` in the keys of a graph.

/// The prefix for the first branch.
pub(crate) const THEN: &str = "onnx_then_";
/// The prefix for the second branch.
pub(crate) const ELSE: &str = "onnx_else_";

/// Returns the key of a branch for a key of a graph.
pub(crate) fn of_branch(branch: &str, key: &str) -> String {
    format!("{branch}{}", key.strip_prefix(PREFIX).unwrap_or(key))
}

// Attributes of a node, stored in the metadata of the binding of its value.

/// The node's name.
pub(crate) const NAME: &str = "onnx_name";
/// `device_configurations`: a list of encoded messages.
pub(crate) const DEVICES: &str = "onnx_devices";
/// The statement of the file about the type of the value: `true` if it states the type here, or the
/// encoded `ValueInfoProto` if it states more.
pub(crate) const INFO: &str = "onnx_info";
/// The names of operands that are constants; empty for other operands.
pub(crate) const INPUTS: &str = "onnx_inputs";
/// Attributes that have no meaning here: the operator, then encoded `AttributeProto`s.
pub(crate) const CARRIED: &str = "onnx_attributes";
/// For the binding of a constant that was a node: the attribute of the node that held it.
pub(crate) const CONSTANT: &str = "onnx_constant";

/// For the binding of the single element of a condition that is not of rank 0. The file has no node
/// for it.
pub(crate) const CONDITION: &str = "onnx_condition";

// Attributes of opaque calls, in addition to those of the node.

/// Attributes without another form: a list of encoded `AttributeProto`s.
pub(crate) const RAW: &str = "onnx_raw";
/// The names of the attributes whose graphs are the last operands; `name[i]` for a list of graphs.
pub(crate) const SUBGRAPHS: &str = "onnx_subgraphs";
/// The node's outputs that are requested, unless it has a single output.
pub(crate) const PRESENT: &str = "onnx_present";
/// The node's `overload`.
pub(crate) const OVERLOAD: &str = "onnx_overload";

// Metadata of a function of a model that is a function of the module. It holds what the format has
// no other place for.

/// `public` if the function is not private.
pub(crate) const VISIBILITY: &str = "anfora.visibility";
/// The prefix of the key for an attribute of the function, followed by the attribute's name.
pub(crate) const ATTRIBUTE: &str = "anfora.attribute.";
/// The number of trailing inputs that are constants of the function.
pub(crate) const GIVEN: &str = "anfora.constants";
/// `tuple` if the result is a tuple even with fewer than two outputs; `whole` if there are at least
/// two outputs and they are the fields of a single value.
pub(crate) const RESULT: &str = "anfora.result";
/// `value` if the output is not a variable.
pub(crate) const TAIL: &str = "anfora.tail";
/// Metadata of a node in such a function: the node is a constant without a binding.
pub(crate) const LITERAL: &str = "anfora.literal";
/// Metadata of a model: the version of the format that it would have without the functions.
pub(crate) const PLAIN_IR_VERSION: &str = "anfora.ir_version";
/// Metadata of a `Constant` node that represents a sparse initializer.
pub(crate) const SPARSE: &str = "anfora.sparse_initializer";
/// Metadata of a `Constant` node that represents a dense initializer.
pub(crate) const INITIALIZER: &str = "anfora.initializer";
/// The domain of the functions of a module in a model.
pub(crate) const OWN_DOMAIN: &str = "anfora";
/// The prefix of these metadata keys.
pub(crate) const OWN: &str = "anfora.";

/// The prefix of all other names.
pub(crate) const PREFIX: &str = "onnx_";

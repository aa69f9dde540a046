//! ONNX import and export for anfora.
//!
//! [`import`] turns a model into a module: the graph becomes `@main`, its inputs become parameters,
//! its nodes become bindings, and its initializers become literals where they are used. [`export`]
//! turns a function back into a model.
//!
//! ```
//! use anfora_ir::{Source, parse_module};
//! use anfora_onnx::{ExportOptions, ImportOptions, export, import, registry};
//!
//! let text = "def @main(%x: Tensor[(n, 4), float32]) {
//!   let %y = add(%x, dense<Tensor[(4,), float32]>[1, 2, 3, 4]);
//!   let %z: Tensor[(n, 4), float32] = onnx.Sharpen(%y);
//!   %z
//! }";
//! let module = parse_module(Source::new("example", text), registry())?;
//! let model = export(&module, &ExportOptions::default())?;
//! assert_eq!(model.nodes.total(), 2);
//!
//! let back = import(model.bytes.into(), &ImportOptions::default())?;
//! let again = export(&back.module, &ExportOptions::default())?;
//! assert_eq!(again.nodes.total(), 2);
//! let sharpen = "let %z: Tensor[(n, 4), float32] = onnx.Sharpen(%y);";
//! assert!(back.module.to_string().contains(sharpen));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Nothing is lost
//! A node becomes a call of an anfora operator only if the meaning is exactly the same for the
//! version of the operators that the model imports. A table with one row for each conversion
//! defines the conversions ([`convert`]). Any other node is kept as a call of `onnx.<Op>` (or
//! `onnx.<domain>.<Op>`) with all of its attributes, and with the types that the file states for
//! its results. The subgraphs of the node become `fn`s, which are the last operands of the call.
//! Captured values are then ordinary free variables. The subgraphs of an `If` become the branches
//! of an `if`. The language has no form for names of nodes, doc strings, metadata, and types that
//! state more than its own types. Attributes `#[…]` and `#![…]` with names that begin with `onnx_`
//! preserve them, and the export writes them back.
//!
//! A constant is a literal at each use, so that types can depend on it. Each use, and each graph
//! that returns the constant, preserves the name of the constant. This does not preserve everything
//! if the constant has no use, if two constants are equal, or if the constant is a `Constant` node
//! or a reshaped constant. In these cases an unused binding preserves the rest, until dead code is
//! eliminated.
//!
//! Export writes a node for each call, and none for tuples, projections and aliases. Equal
//! constants become a single initializer. A large constant that repeats a single number becomes a
//! node that repeats the number ([`ExportOptions::max_splat_bytes`]).
//!
//! A sparse constant becomes a literal with all its elements, unless these take much more space
//! than the sparse form. In that case the sparse form is kept. Both forms are written back as
//! sparse constants.
//!
//! # Functions
//! The functions of the module that the entry calls, directly or through other functions, become
//! functions of the model in the domain `anfora`. They are read back with their names, attributes,
//! types and visibility. The constants of such a function become further inputs, and every call
//! passes them. So the constants stay initializers and need no node. If a function has more than 32
//! constants, they are `Constant` nodes in the function instead. Models with such functions have at
//! least IR version 10. A function that calls itself is refused, and so is a function with
//! attributes other than numbers, booleans and strings. A function that is used as a value, such as
//! a subgraph that LambdaLifting made a function, is inlined at its use. The function of a closure
//! is inlined at the calls of the closure. A function that the graph of a `SequenceMap` calls is
//! inlined there.
//!
//! The export refuses calls of function values, except calls of closures of known functions.
//!
//! The functions of a file, in any domain but the standard one, become private functions of the
//! module when they are called. They are written back in their domain under their name. A function
//! has one copy for each combination of attributes and omitted inputs of its calls, and, if the
//! function states no types, of the types of its calls. The attributes of the call replace the
//! references in the nodes of the copy. Identical copies are written as a single function. The
//! constants of a function of a file are nodes in the function. Some functions are only preserved:
//! their calls are calls of `onnx.<domain>.<Op>`. These are functions with an error, functions that
//! would need more than 16 copies, and functions with a kept node of a domain that the function
//! imports in another version than the model.
//!
//! # A file that contradicts itself
//! Such a file is read, with warnings ([`Imported::warnings`]): diagnostics that name the node and
//! both types. A stated type that the nodes contradict is left out, and the correct type is
//! written. An input keeps its declared type. A node is kept unchanged if its operator does not
//! accept its operands or their element types. If anfora has a counterpart of the operator, a
//! warning is given in two cases: the extents of all operands are known and the counterpart rejects
//! them, or the conversion finds that every version of the ONNX operator rejects them
//! ([`UnsupportedReason::misfit`]). Other unsupported nodes are listed only in [`Imported::kept`].
//!
//! A node of an unknown operator or version is also kept unchanged. A node is also kept unchanged
//! if it could be converted, but not written back in the version that the file imports. So every
//! model that was read can be written. An initializer of an unknown element type, or with strings
//! that are not UTF-8, is kept in the same way. If a file imports two versions of a domain, all
//! nodes of that domain are kept unchanged.
//!
//! Subgraphs and functions may return a value that they do not compute (an input, an outer value or
//! an initializer), or return a value twice. The export writes an `Identity` for such an output,
//! because runtimes otherwise compute wrong results for it.
//!
//! # Operators without a conversion
//! A table says for each operator of the domains of ONNX, in each of its versions, and for the
//! usual operators of `com.microsoft`, how many results it has, their element types, what is known
//! of their extents, and whether it is pure ([`known_operators`]). A node that is kept unchanged
//! has the types that its operator's row finds for its operands. Where these say less than the file
//! states, the rest is as stated. Results that are no tensors, such as sequences, are of type
//! `Any`.
//!
//! Any other operator is opaque: its results have the types that the file states, or `Any`, and it
//! is impure, since nothing is known about it, in whatever domain it is. No pass removes, merges or
//! moves its calls. An operator of a version that is newer than the known ones is opaque too, but
//! as pure as in the known versions.
//!
//! # Purity
//! Operators in the table are pure, except those that draw random numbers; other operators are
//! impure. A call whose subgraphs have observable effects is impure ([`register`]).
//!
//! # Operators that a version lacks
//! `nn.layer_norm`, `nn.rms_norm`, `nn.gelu`, `nn.silu`, `nn.mish` and `nn.hard_swish` are written
//! by their definition if the version that a module states has no such operator. Passes such as
//! FuseStandardOps make them from the nodes of that definition. [`fuse_contrib_ops`] is a pass that
//! makes operators of `com.microsoft`.
//!
//! [`set_opset`] makes a module that is written in another version than that of its file. It writes
//! calls that the version lacks in other operators, as the rows of their operators do.
//!
//! # Bad input
//! No file makes import or export panic. Bytes are checked before they are decoded
//! ([`wire::check`]). Nested messages of the same kind, and functions, are decoded one at a time
//! with an explicit stack, so nesting does not use up the call stack. Memory is linear in the file:
//! payloads are slices of it.
//!
//! # Data in other files
//! The elements of tensors may be in files beside the model. [`ImportOptions::data_files`] is the
//! source of such files; [`DataFolder`] is an implementation for folders. Each file is opened once.
//! Large initializers stay in it until something needs their elements, and small ones are read. A
//! path that leaves the folder is refused, and so are ranges of a file that overlap so often that
//! they take more than eight times its bytes. Checksums are not verified. Export writes such a file
//! if [`ExportOptions::external_data`] is set, either always or if the model would be larger than
//! the 2 GiB that protocol buffers can hold. The elements are in program order; constants of at
//! least 64 KiB begin at multiples of 4096.
//!
//! # Models in files
//! [`ModelFile`] reads a model without the elements of large initializers, which [`import_file`]
//! leaves in the file. [`export_model`] returns a model whose constants are copied from file to
//! file when it is written. With [`ExportOptions::keep_data_beside`], constants in data files stay
//! there, and the model refers to them. The elements of `Constant` nodes, of sparse tensors and of
//! attributes are always read.
//!
//! # Training information
//! Training information is preserved unchanged. If a pass has removed an initializer that training
//! changes, the information is no longer true and the model is not written.

pub mod convert;
pub mod proto;
mod schema;
pub mod tensor;
pub mod wire;

mod attributes;
mod contrib;
mod domains;
mod error;
mod export;
mod external;
mod import;
mod graph_names;
mod id_hash;
mod kept_initializer;
mod model_file;
mod keys;
mod node_counts;
mod opaque;
mod opset;
mod signatures;
mod sparse;
mod stated_opsets;
mod symbols;
mod types;

pub use contrib::fuse_contrib_ops;
pub use convert::missing_operators;
pub use convert::node_export::NodeExport;
pub use convert::node_import::NodeImport;
pub use error::{ExportError, ExportProblem, ExternalError, ImportError, ImportProblem, UnsupportedReason};
pub use export::{
    DataFile, ExportOptions, Exported, ExportedModel, ExternalData, ModelPieces, WhenExternal, export, export_model,
};
pub use external::{DataFiles, DataFolder};
pub use graph_names::{
    for_each_file_name, forget_file_dimensions, forget_stated_types, forget_training, node_name, output_names,
    rename_file_function, rename_in_file, set_output_names,
};
pub use import::{ImportOptions, Imported, UnsupportedNodes, import, import_file};
pub use model_file::ModelFile;
pub use node_counts::NodeCounts;
pub use opaque::{register, registry};
pub use opset::{WRITTEN_OPSETS, set_opset};
pub use signatures::{KnownOperator, known_operators};
pub use symbols::file_dimensions;
pub use tensor::{TensorError, read_tensor, write_tensor};
pub use wire::{UnknownFields, WireError};

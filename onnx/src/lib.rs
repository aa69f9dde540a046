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
//! An ONNX operator becomes one of ours only if that means exactly the same in the version of the
//! operators that the model imports. A table with one row for each conversion defines this
//! ([`convert`]). Any other node is kept as a call of `onnx.<Op>` (or `onnx.<domain>.<Op>`) with
//! all of its attributes, and with the types that the file states for its results. Its subgraphs
//! become `fn`s that are its last operands, so that captured values are ordinary free variables.
//! The subgraphs of an `If` become the branches of an `if`. Names of nodes, doc strings, metadata,
//! and types that state more than ours have no place in the language. They are preserved in `#[…]`
//! and `#![…]` under names that begin with `onnx_`, and are written back.
//!
//! A constant is a literal at each use, so that types can depend on it; the use preserves the
//! constant's name, and so does a graph that returns the constant. The uses do not preserve
//! everything if nothing uses the constant, if two constants are equal, or if the constant is a
//! `Constant` node or a reshaped constant. An unused binding then preserves the rest, until dead
//! code is eliminated.
//!
//! Export writes a node for each call, and none for tuples, projections and aliases. Equal
//! constants become a single initializer. A large constant that repeats a single number becomes a
//! node that repeats the number ([`ExportOptions::max_splat_bytes`]).
//!
//! A sparse constant becomes a literal with all its elements, unless these take much more space
//! than the sparse form. In that case the sparse form is kept. Both are written back as sparse
//! constants.
//!
//! # Functions
//! The functions of the module that the entry calls, directly or through other functions, become
//! functions of the model in the domain `anfora`. They are read back with their names, attributes,
//! types and visibility. The constants of such a function become further inputs that every call
//! passes, so that they stay initializers and need no node. If there are more than 32, all of them
//! are `Constant` nodes in the function instead. Models with such functions have at least IR
//! version 10. A function that calls itself is refused, and so is a function with attributes other
//! than numbers, booleans and strings. A function that is used as a value, such as those that
//! LambdaLifting makes of subgraphs, is inlined where it is used. A function that a closure is made
//! of is inlined where the closure is called, and so is one that the graph of a `SequenceMap` calls.
//!
//! The functions of a file, in any domain but the standard one, become private functions of the
//! module when they are called. They are written back in their domain under their name. If a
//! function states no types, it is copied for the types of each call. It is also copied for the
//! attributes of each call, which replace the references in the copy's nodes, and for the set of
//! inputs that a call leaves out. Identical copies are written as a single function. The constants
//! of a function of a file are nodes in it. Some functions are only preserved, and calls of them
//! are calls of `onnx.<domain>.<Op>`. These are functions with an error, functions with a node that
//! is kept unchanged although the function imports another version of its domain than the model,
//! and functions that would need more than 16 copies.
//!
//! # A file that contradicts itself
//! Such a file is read, with warnings ([`Imported::warnings`]): diagnostics that name the node and
//! both types. A stated type that the nodes contradict is left out, and the correct type is
//! written. An input keeps its declared type. A node that does not fit its operands, or has element
//! types that its version of the operators does not have, is kept unchanged. Warnings about such
//! nodes are limited to operators that have a counterpart here. They are given if the extents of
//! all operands are known and our operator does not take them, or if the conversion finds that no
//! version of ONNX's operator does ([`UnsupportedReason::misfit`]). A node that is merely not
//! supported is listed only in [`Imported::kept`].
//!
//! A node of an unknown operator or version is also kept unchanged. So is a node that can be
//! converted but not written back in the version that the file imports: everything that was read
//! can be written. An initializer of an unknown element type, or with strings that are not UTF-8,
//! is kept in the same way. If a file imports two versions of a domain, all nodes of that domain
//! are kept unchanged.
//!
//! Graphs in nodes, and functions, return through an `Identity` what they do not compute themselves
//! (an input, an outer value or an initializer), and a value that they return twice. Without the
//! `Identity`, runtimes compute wrong results for such outputs.
//!
//! # Operators without a conversion
//! A table says for each operator of the domains of ONNX, in each of its versions, and for the usual
//! operators of `com.microsoft`, how many results it has, their element types, what is known of
//! their extents, and whether it is pure ([`known_operators`]). A node that is kept unchanged has
//! the types that its operator's row finds for its operands. Where these say less than the file
//! states, the rest is as stated. Results that are no tensors, such as sequences, are of type `Any`.
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
//! # Bad input
//! No file makes import or export panic. Bytes are checked before they are decoded
//! ([`wire::check`]). Messages inside messages of their own kind are decoded one at a time with
//! explicit stacks, and so are functions, so nesting does not use up the call stack. Memory is
//! linear in the file: payloads are slices of it.
//!
//! # Data in other files
//! The elements of tensors may be in files beside the model. [`ImportOptions::data_files`] is the
//! source of such files; [`DataFolder`] is an implementation for folders. Each file is read once,
//! literals are slices of its contents, and a path that leaves the folder is refused. Checksums are
//! not verified. Export writes such a file if [`ExportOptions::external_data`] is set, either
//! always or if the model would be larger than the 2 GiB that protocol buffers can hold. The
//! elements are in program order; constants of at least 64 KiB begin at multiples of 4096.
//!
//! # Training information
//! Training information is preserved unchanged. If a pass has removed an initializer that training
//! changes, the information is no longer true and the model is not written.
//!
//! Calls of functions that are values are not supported by export and are refused, except calls of
//! closures whose function is known.

pub mod convert;
pub mod proto;
mod schema;
pub mod tensor;
pub mod wire;

mod attributes;
mod error;
mod export;
mod external;
mod import;
mod kept_initializer;
mod keys;
mod node_counts;
mod opaque;
mod signatures;
mod sparse;
mod symbols;
mod types;

pub use convert::node_export::NodeExport;
pub use convert::node_import::NodeImport;
pub use error::{ExportError, ExportProblem, ExternalError, ImportError, ImportProblem, UnsupportedReason};
pub use export::{DataFile, ExportOptions, Exported, ExternalData, WhenExternal, export};
pub use external::{DataFiles, DataFolder};
pub use import::{ImportOptions, Imported, UnsupportedNodes, import};
pub use node_counts::NodeCounts;
pub use opaque::{register, registry};
pub use signatures::{KnownOperator, known_operators};
pub use symbols::file_dimensions;
pub use tensor::{TensorError, read_tensor, write_tensor};
pub use wire::{UnknownFields, WireError};

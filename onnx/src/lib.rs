//! ONNX import and export for anfora.
//!
//! [`import`] turns a model into a module: the graph becomes `@main`, its inputs parameters, its nodes bindings, and its initializers literals
//! where they are used. [`export`] turns a function back into a model.
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
//! assert_eq!(model.nodes, 2);
//!
//! let back = import(model.bytes.into(), &ImportOptions::default())?;
//! let again = export(&back.module, &ExportOptions::default())?;
//! assert_eq!(again.nodes, 2);
//! assert!(back.module.to_string().contains("let %z: Tensor[(n, 4), float32] = onnx.Sharpen(%y);"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Nothing is lost
//! An ONNX operator becomes one of ours only where that means exactly the same, for the version of the operators that the model imports: a
//! table says how, one row each ([`convert`]). Any other node is kept as a call of `onnx.<Op>` (or `onnx.<domain>.<Op>`) with all of its
//! attributes, typed by what the file says of its results. Its subgraphs become `fn`s that are its last operands, so that what they
//! capture is an ordinary free variable. Those of an `If` become the branches of an `if`. What the language has no place for — names of nodes, doc strings, metadata, types that say more
//! than ours — is carried along in `#[…]` and `#![…]` under names that begin with `onnx_`, and written back.
//!
//! A constant is a literal at each use, which lets types depend on it; the use remembers the constant's name. Where the uses do not tell all
//! (a constant that nothing uses, two equal ones, a `Constant` node, a constant under another shape), a binding that nothing uses tells
//! the rest, until dead code is eliminated.
//!
//! Export writes a node for each call, and none for tuples, projections and aliases. Equal constants become one initializer. A large constant that is
//! one number many times becomes a node that repeats the number ([`ExportOptions::max_splat_bytes`]).
//!
//! A sparse constant is a literal with all its elements, unless these take much more room than the sparse form, which is kept then; either comes back
//! sparse.
//!
//! # Functions
//! A function of the module that the entry calls, or that such a function calls, is a function of the model, in the domain `anfora`; it comes back
//! with its name, attributes, types and visibility. Its constants are further inputs, which every call gives, so that they stay
//! initializers and take no node; past 32 they are `Constant` nodes in it. Models with such functions are of IR version 10 at least. A function that
//! calls itself is refused, and so are attributes of a function that are not numbers, booleans or strings. A function that is used as a
//! value, as LambdaLifting makes them of subgraphs, is put back where it is used; so is one that a closure is made of, where that is called.
//!
//! The functions of a file, of any domain but the standard one, are functions of the module when they are called: private, and written again in their
//! domain under their name. One that says no types gets a copy for the types of each call; so it does for the attributes of each call, which stand in the
//! copy wherever its nodes refer to them, and for the inputs that a call leaves out. Copies that say the same are written as one. Constants of
//! a function of a file are nodes in it. What cannot become a function of the module is carried along, and calls of it are calls of
//! `onnx.<domain>.<Op>`: a function with an error, one that keeps a node as it is of which it means another version than the model, and what would take more
//! than 16 copies.
//!
//! # A file that contradicts itself
//! It is read, with warnings ([`Imported::warnings`]): diagnostics that name the node and both types.
//! What the file says of the type of a value is left out where the nodes contradict it, and written
//! again as it is; an input stays as it is declared. A node that does not fit its operands, or has
//! elements that its version of the operators does not have, is kept as it is. That is said of nodes
//! whose operator becomes one of ours: where the extents of all operands are known and ours does not
//! take them, or the conversion sees that no version of ONNX's operator does ([`Kept::misfit`]). A node
//! that is only not supported is in [`Imported::kept`] alone.
//!
//! Kept as it is, too, is a node of an operator or a version that is not known, and one that could
//! not be written back in the version that the file asks for, though its meaning is known: what was
//! read can be written. An initializer of an element type that is not known, or with strings that are
//! not UTF-8, is kept like such a node. Where two versions of a domain are imported, all nodes of that
//! domain are.
//!
//! The graphs in nodes, and functions, return what they are given, an outer value, an initializer or
//! one value twice through an `Identity`: runtimes compute garbage of such outputs otherwise.
//!
//! # Purity
//! Operators of the standard domains are pure, but for those that draw random numbers; operators of other domains are not, since nothing is
//! known of them; a call whose subgraphs do something that can be observed is not ([`register`]).
//!
//! # Bad input
//! No file makes either of them panic. Bytes are checked before they are decoded ([`wire::check`]); messages inside messages of their own kind
//! are decoded when it is their turn, from explicit stacks, so nesting costs no stack either; so are functions. Memory is linear in the
//! file: payloads are slices of it.
//!
//! # Data in other files
//! Elements of tensors may be in files beside the model: [`ImportOptions::data_files`] says where, [`DataFolder`] is such a place. Each file is read
//! once, literals are slices of it, and a path that leaves the folder is refused. Checksums are not looked at. Export writes such a file
//! if [`ExportOptions::external_data`] says so, always or where the model would be larger than the 2 GiB that protocol buffers can hold: elements in
//! program order, those of at least 64 KiB at multiples of 4096.
//!
//! # Training information
//! It is carried along as it is. A model of which it is not true any more, since a pass has removed an initializer that training changes, is not written.
//!
//! Not supported, and refused: the export of calls of functions that are values, but for closures of which the function shows.

pub mod convert;
pub mod proto;
pub mod tensor;
pub mod wire;

mod attributes;
mod error;
mod export;
mod external;
mod import;
mod kept_initializer;
mod keys;
mod opaque;
mod sparse;
mod symbols;
mod types;

pub use error::{ExportError, ExportProblem, ImportError, ImportProblem};
pub use export::{DataFile, ExportOptions, Exported, ExternalData, NodeExport, WhenExternal, export};
pub use external::{DataFiles, DataFolder, ExternalError};
pub use import::{ImportOptions, Imported, Kept, KeptNodes, NodeImport, import};
pub use opaque::{register, registry};
pub use symbols::file_dimensions;
pub use tensor::{TensorError, read_tensor, write_tensor};
pub use wire::{UnknownFields, WireError};

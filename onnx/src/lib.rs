//! ONNX import and export for anfora.

pub mod convert;
pub mod proto;
pub mod tensor;
pub mod wire;

mod attributes;
mod error;
mod export;
mod import;
mod keys;
mod opaque;
mod types;

pub use error::{ExportError, ExportProblem, ImportError, ImportProblem};
pub use export::{ExportOptions, Exported, NodeExport, export};
pub use import::{ImportOptions, Imported, NodeImport, import};
pub use opaque::{register, registry};
pub use wire::{UnknownFields, WireError};

//! Options of an export, and the versions that it writes.

use std::path::PathBuf;

use anfora_ir::Module;
use rustc_hash::FxHashMap;

use super::data::ExternalData;
use crate::convert::Conversions;
use crate::domains::{is_standard, version_of};
use crate::keys;
use crate::proto::ModelProto;

/// Options of an export.
#[derive(Clone)]
pub struct ExportOptions {
    /// The name of the function that becomes the graph.
    pub entry: String,
    /// The version of the standard operators for a module that does not state its version. With
    /// `None`, the export uses version 18, or the first later version that has what the module
    /// needs.
    pub opset: Option<i64>,
    /// The most bytes for which a constant that repeats a single number is written out. A larger
    /// constant becomes a node that repeats the number. With [`u64::MAX`] the only limit is 2 GiB
    /// for all such constants together, including those in the data file. If no node can repeat the
    /// number, because of its type or the version of the operators, the constant is written out in
    /// any case.
    pub max_splat_bytes: u64,
    /// The most bytes that all constants that repeat a single number may take together, beyond one
    /// number each.
    pub max_total_splat_bytes: u64,
    /// The table of conversions between operators.
    pub conversions: Conversions,
    /// The file for large constants beside the model; see
    /// [`Exported::data`](crate::Exported::data). Without it, a model that would be larger than
    /// protocol buffers allow is refused.
    pub external_data: Option<ExternalData>,
    /// The path of the model. Constants that are ranges of unchanged data files in its folder or
    /// below stay there, and the model refers to them. Without it, constants are copied from where
    /// they are.
    pub keep_data_beside: Option<PathBuf>,
}

impl Default for ExportOptions {
    fn default() -> ExportOptions {
        ExportOptions {
            entry: "main".to_owned(),
            opset: None,
            max_splat_bytes: 16 << 10,
            max_total_splat_bytes: 16 << 20,
            conversions: Conversions::default(),
            external_data: None,
            keep_data_beside: None,
        }
    }
}

/// The versions that a model states.
pub(super) struct Versions {
    /// The version of the operators of the standard domain.
    standard: i64,
    /// The versions of the operators by domain. The standard domain is the empty string.
    opsets: FxHashMap<String, i64>,
    /// True before version 4 of the format, in which every initializer is an input.
    pub(super) initializers_are_inputs: bool,
    /// True if the module states the versions, as modules from files do.
    pub(super) are_stated: bool,
}

impl Versions {
    pub(super) fn of(module: &Module, model: &ModelProto) -> Versions {
        let domain = |d: &str| if is_standard(d) { String::new() } else { d.to_owned() };
        let opsets = model.opset_import.iter().map(|o| (domain(o.domain()), o.version())).collect();
        Versions {
            standard: version_of(&opsets, ""),
            opsets,
            initializers_are_inputs: model.ir_version.is_some_and(|v| v < 4),
            are_stated: module.cx.find_attr(module.attrs(), keys::OPSETS).is_some(),
        }
    }

    /// Returns the version of a domain's operators.
    pub(super) fn opset(&self, domain: &str) -> i64 {
        if is_standard(domain) { self.standard } else { version_of(&self.opsets, domain) }
    }
}

/// The role of the outermost graph of an export.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum GraphKind {
    /// The graph of the model.
    Main,
    /// A function of the model in the domain of this crate. Every call passes its constants.
    Function,
    /// A function that was imported from a file. Its constants are nodes.
    FileFunction,
}

anfora_ir::brief_debug! { ExportOptions; }

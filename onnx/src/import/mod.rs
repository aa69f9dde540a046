//! Import of a file to a module.

mod unsupported;
mod warnings;
mod values;
mod initializers;
mod function_attributes;
mod function_table;
mod encoded;
mod importer;
mod graph;
mod functions;
mod node;
mod branches;
mod stated;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anfora_ir::{Attr, AttrId, Context, Diagnostic, FileRange, Module, OpRegistry, StoredFile};
use bytes::Bytes;
use prost::{DecodeError, Message};

use crate::attributes::{bytes_attr, encoded_list, entries_attr};
use crate::convert::Conversions;
use crate::error::{ImportError, ImportProblem};
use crate::external::{DataFiles, ReadFiles};
use crate::keys;
use crate::model_file::ModelFile;
use crate::node_counts::NodeCounts;
use crate::proto::{GraphProto, IR_VERSION, ModelProto};
use crate::wire::{self, UnknownFields, WireSummary};

use encoded::EncodedGraph;
use function_table::{FunctionTable, opset_versions};
use functions::import_graphs;
use importer::Settings;
use warnings::{Notes, Warning};

pub use unsupported::UnsupportedNodes;

/// The numbers of [`ModelProto::graph`] and of [`ModelProto::functions`] in the format.
const GRAPH_FIELD: u32 = 7;
const FUNCTIONS_FIELD: u32 = 25;

/// Options of an import.
#[derive(Clone)]
pub struct ImportOptions {
    /// The operators of the module.
    pub registry: Arc<OpRegistry>,
    /// The treatment of fields that the format does not define.
    pub unknown_fields: UnknownFields,
    /// The table of conversions between operators.
    pub conversions: Conversions,
    /// The source of files that hold elements of tensors. Without it, a model with such tensors is
    /// refused.
    pub data_files: Option<Arc<dyn DataFiles>>,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions {
            registry: crate::opaque::registry(),
            unknown_fields: UnknownFields::default(),
            conversions: Conversions::default(),
            data_files: None,
        }
    }
}

/// A model that was read.
#[derive(Clone)]
pub struct Imported {
    /// The module.
    pub module: Module,
    /// The number of nodes of the file, in total and by operator.
    pub nodes: NodeCounts,
    /// The nodes that cannot be expressed in our operators and are kept unchanged. They are grouped
    /// by operator and reason, in the order in which the groups first appear.
    pub kept: Vec<UnsupportedNodes>,
    /// The faults of the file that did not prevent the import, each with its place. A fault is a
    /// stated type that contradicts the type of a value, and is then left out, or a node that does
    /// not fit its operands, and is then kept unchanged. The crate's page says which nodes count.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a model. Its graph becomes `@main`. Its operators become operators of the registry that
/// have the same meaning.
///
/// Literals share their bytes with the file and with the files that hold elements of tensors
/// ([`ImportOptions::data_files`]).
///
/// Faults of the file that do not prevent the import are in [`Imported::warnings`].
///
/// # Errors
/// If the bytes are not a model, or it holds something that can neither be expressed nor preserved.
pub fn import(bytes: Bytes, options: &ImportOptions) -> Result<Imported, ImportError> {
    import_parts(bytes, None, options)
}

/// Reads a model from a file, as [`import`] does. Literals with many elements stay in the file, and
/// in the files that hold elements of tensors, until something needs them.
///
/// # Errors
/// As [`import`], and if the file cannot be read or has changed.
pub fn import_file(model: ModelFile, options: &ImportOptions) -> Result<Imported, ImportError> {
    let ModelFile { bytes, file, .. } = model;
    let Some(file) = file else { return import_parts(bytes, None, options) };
    match import_parts(bytes, Some(Arc::clone(&file)), options) {
        // The error names a byte of the whole file.
        Err(ImportError { problem: ImportProblem::Wire(_) | ImportProblem::Decode(_), .. }) => {
            let whole = FileRange::new(Arc::clone(&file), 0, usize::try_from(file.len()).unwrap_or(usize::MAX));
            let whole = whole.and_then(|whole| whole.read()).map_err(|e| ImportError::new("the file", e))?;
            import_parts(whole, None, options)
        }
        done => done,
    }
}

/// Reads a model whose elements are partly in the file `own`.
fn import_parts(bytes: Bytes, own: Option<Arc<StoredFile>>, options: &ImportOptions) -> Result<Imported, ImportError> {
    let at_file = |p: ImportProblem| ImportError::new("the file", p);
    if bytes.is_empty() {
        return Err(at_file(ImportProblem::Empty));
    }
    let size = own.as_ref().map_or(bytes.len(), |file| usize::try_from(file.len()).unwrap_or(usize::MAX));
    check_size(size).map_err(at_file)?;
    let summary = wire::check(&bytes, options.unknown_fields).map_err(|e| at_file(e.into()))?;
    let size = bytes.len();
    let (mut model, graph, functions) = parts_of(bytes, &summary).map_err(|e| at_file(e.into()))?;
    let at_model = |p: ImportProblem| ImportError::new("the model", p);
    let version = model.ir_version.ok_or_else(|| at_model(ImportProblem::Missing("ir_version")))?;
    let notes = Notes::default();
    if version > IR_VERSION {
        if options.unknown_fields == UnknownFields::Drop {
            return Err(at_model(ImportProblem::IrVersion(version)));
        }
        notes.warn("the model", Warning::ir_version(version, IR_VERSION));
    }
    // Before version 3 a model did not state the versions of operators; it used the first.
    if model.opset_import.is_empty() && version >= 3 {
        return Err(at_model(ImportProblem::Missing("opset_import")));
    }
    if !model.training_info.is_empty() && summary.external_data.is_some() {
        return Err(at_model(ImportProblem::Unsupported("training information beside data in other files")));
    }
    let (opsets, twice) = opset_versions(&model.opset_import);
    twice.iter().for_each(|domain| notes.warn("the model", Warning::two_versions(domain)));
    let opsets = Rc::new(opsets);
    let graph = graph.ok_or_else(|| at_model(ImportProblem::Missing("graph")))?;

    let mut module = Module::new(options.registry.clone());
    let conversions = &options.conversions;
    let files = RefCell::new(ReadFiles::new(options.data_files.clone(), own));
    let settings = Settings {
        opsets: Rc::clone(&opsets),
        written: opsets,
        differing: Default::default(),
        constant_initializers: version < 4,
        conversions,
        notes: &notes,
        files: summary.external_data.map(|_| &files),
        has_bad_text: summary.has_bad_text,
    };
    let mut functions = FunctionTable::new(functions, &settings.opsets, &twice, size).map_err(at_model)?;
    let mut nodes = std::mem::take(&mut functions.nodes);
    let main = import_graphs(&mut module, graph, &settings, &mut functions)?;
    let mut functions = functions.without_imported(&mut model).map_err(at_model)?;
    if summary.external_data.is_some() {
        let mut files = files.borrow_mut();
        functions.iter_mut().try_for_each(|f| files.fill_function(f)).map_err(at_model)?;
    }
    let attrs = model_attrs(&mut module.cx, &model, functions);
    module.set_attrs(attrs);
    if let Some((function, _)) = module.get_mut(main.key) {
        function.meta = main.meta;
    }
    nodes.append(&main.nodes);
    module.cx.literals.failure().map_err(|e| at_model(e.into()))?;
    let (kept, warnings) = notes.into_parts();
    Ok(Imported { module, nodes, kept, warnings })
}

/// Refuses a file whose positions do not fit in 32 bits.
fn check_size(bytes: usize) -> Result<(), ImportProblem> {
    match u32::try_from(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(ImportProblem::TooLarge(bytes)),
    }
}

/// Splits a checked model into the model without its graph and functions, the graph, and the
/// functions. Functions and nodes are decoded one at a time, since they take many times their bytes
/// then.
fn parts_of(
    bytes: Bytes,
    summary: &WireSummary,
) -> Result<(ModelProto, Option<EncodedGraph>, Vec<Bytes>), DecodeError> {
    let mut functions = Vec::new();
    let pieces = wire::split(&bytes, FUNCTIONS_FIELD, &mut functions);
    drop(bytes);
    if summary.has_bad_text {
        let mut whole = ModelProto::default();
        pieces.iter().try_for_each(|piece| whole.merge(piece.clone()))?;
    }
    let (mut model, mut graphs) = (ModelProto::default(), Vec::new());
    for piece in pieces {
        wire::split(&piece, GRAPH_FIELD, &mut graphs).into_iter().try_for_each(|rest| model.merge(rest))?;
    }
    if graphs.is_empty() {
        return Ok((model, None, functions));
    }
    let mut graph = with_room(summary);
    graphs.iter().try_for_each(|part| graph.merge(part))?;
    Ok((model, Some(graph), functions))
}

/// Returns a graph with reserved space for its lists. Lists that grow would take up to three times
/// as much.
fn with_room(summary: &WireSummary) -> EncodedGraph {
    let WireSummary { nodes, value_infos, initializers, .. } = *summary;
    let rest = GraphProto {
        value_info: Vec::with_capacity(value_infos),
        initializer: Vec::with_capacity(initializers),
        ..GraphProto::default()
    };
    EncodedGraph { nodes: Vec::with_capacity(nodes), rest }
}

/// Returns the attributes with everything that a model states besides its graph, including the
/// functions that are preserved in encoded form.
fn model_attrs(cx: &mut Context, model: &ModelProto, carried: Vec<Bytes>) -> anfora_ir::AttrsId {
    let ModelProto {
        ir_version,
        producer_name,
        producer_version,
        domain,
        model_version,
        doc_string,
        graph: _,
        opset_import,
        metadata_props,
        training_info,
        functions: _,
        configuration,
    } = model;
    let mut attrs: Vec<(&str, AttrId)> = Vec::new();
    for (key, value) in [(keys::IR_VERSION, ir_version), (keys::MODEL_VERSION, model_version)] {
        attrs.extend(value.map(|v| (key, cx.int_attr(v))));
    }
    for (key, value) in [
        (keys::PRODUCER_NAME, producer_name),
        (keys::PRODUCER_VERSION, producer_version),
        (keys::DOMAIN, domain),
        (keys::DOC, doc_string),
    ] {
        attrs.extend(value.as_ref().filter(|v| !v.is_empty()).map(|v| (key, cx.str_attr(v))));
    }
    let opsets: Box<[AttrId]> = opset_import
        .iter()
        .map(|o| {
            let pair = Box::new([cx.str_attr(o.domain()), cx.int_attr(o.version())]);
            cx.attr(Attr::List(pair))
        })
        .collect();
    attrs.push((keys::OPSETS, cx.attr(Attr::List(opsets))));
    attrs.extend(entries_attr(cx, metadata_props).map(|v| (keys::METADATA, v)));
    if !carried.is_empty() {
        let items = carried.into_iter().map(|f| bytes_attr(cx, f)).collect();
        attrs.push((keys::FUNCTIONS, cx.attr(Attr::List(items))));
    }
    attrs.extend(encoded_list(cx, training_info).map(|v| (keys::TRAINING, v)));
    attrs.extend(encoded_list(cx, configuration).map(|v| (keys::CONFIGURATIONS, v)));
    cx.named_attrs(&attrs)
}

anfora_ir::brief_debug! { ImportOptions; Imported; }

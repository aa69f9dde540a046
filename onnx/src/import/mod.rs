//! From a file to a module.

mod branches;
mod function_attributes;
mod functions;
mod graph;
mod kept;
mod node;
mod result_types;
mod values;

use std::cell::RefCell;
use std::sync::Arc;

use anfora_ir::{Attr, AttrId, Context, Module, OpRegistry};
use bytes::Bytes;
use prost::Message;
use rustc_hash::FxHashMap;

use crate::attributes::{encoded_list, entries_attr, strs_attr};
use crate::convert::Conversions;
use crate::error::{ImportError, ImportProblem};
use crate::external::{DataFiles, ReadFiles};
use crate::keys;
use crate::opaque::is_standard;
use crate::proto::{GraphProto, IR_VERSION, ModelProto, NodeProto, OperatorSetIdProto};
use crate::wire::{self, UnknownFields, WireSummary};

use functions::FunctionTable;

pub use kept::{Kept, KeptNodes};
pub use node::NodeImport;
pub(crate) use node::float_meant;

/// How a file is read.
#[derive(Clone)]
pub struct ImportOptions {
    /// The operators of the module.
    pub registry: Arc<OpRegistry>,
    /// What to do with fields that the format does not define.
    pub unknown_fields: UnknownFields,
    /// Which operators become which.
    pub conversions: Conversions,
    /// Where the files are that hold elements of tensors. Without it, a model that has such tensors is refused.
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
    /// Nodes of the file, those of subgraphs and of the model's own functions included.
    pub nodes: usize,
    /// The nodes that have no meaning in operators of ours and are kept as they are, by operator and reason, in the order in which these first appear.
    pub kept: Vec<KeptNodes>,
}

/// Reads a model: its graph becomes `@main`, and its operators those of the registry where they have a counterpart there.
///
/// Literals share their bytes with the file, and with the files that hold elements of tensors ([`ImportOptions::data_files`]).
///
/// # Errors
/// If the bytes are not a model, or it holds something that can neither be expressed nor kept.
pub fn import(bytes: Bytes, options: &ImportOptions) -> Result<Imported, ImportError> {
    let at_file = |p: ImportProblem| ImportError::new("the file", p);
    if bytes.is_empty() {
        return Err(at_file(ImportProblem::Empty));
    }
    let summary = wire::check(&bytes, options.unknown_fields).map_err(|e| at_file(e.into()))?;
    let size = bytes.len();
    let mut model = with_room(&summary);
    model.merge(bytes).map_err(|e| at_file(e.into()))?;
    let at_model = |p: ImportProblem| ImportError::new("the model", p);
    let version = model.ir_version.ok_or_else(|| at_model(ImportProblem::Missing("ir_version")))?;
    if version > IR_VERSION {
        return Err(at_model(ImportProblem::IrVersion(version)));
    }
    // Before version 3 a model did not say which operators it meant, and meant the first ones.
    if model.opset_import.is_empty() && version >= 3 {
        return Err(at_model(ImportProblem::Missing("opset_import")));
    }
    if !model.training_info.is_empty() && summary.external_data.is_some() {
        return Err(at_model(ImportProblem::Unsupported("training information beside data in other files")));
    }
    let opsets = opset_versions(&model.opset_import).map_err(at_model)?;
    let graph = model.graph.take().ok_or_else(|| at_model(ImportProblem::Missing("graph")))?;

    let nodes = count_function_nodes(&model).map_err(at_model)?;
    let mut module = Module::new(options.registry.clone());
    let kept = RefCell::default();
    let conversions = &options.conversions;
    let files = RefCell::new(ReadFiles::new(options.data_files.clone()));
    let settings = graph::Settings {
        opsets,
        differing: Default::default(),
        constant_initializers: version < 4,
        conversions,
        kept: &kept,
        files: summary.external_data.map(|_| &files),
    };
    let mut functions = FunctionTable::of_model(&model, &settings.opsets, size);
    let main = functions::import_graphs(&mut module, graph, &settings, &mut functions)?;
    functions.take_imported(&mut model).map_err(at_model)?;
    if summary.external_data.is_some() {
        let mut files = files.borrow_mut();
        model.functions.iter_mut().try_for_each(|f| files.fill_function(f)).map_err(at_model)?;
    }
    let attrs = model_attrs(&mut module.cx, &model);
    module.set_attrs(attrs);
    if let Some((function, _)) = module.get_mut(main.key) {
        function.meta = main.meta;
    }
    Ok(Imported { module, nodes: nodes + main.nodes, kept: kept.into_inner().into_groups() })
}

/// A model with room for the lists of its graph, which would take up to three times as much if they grew.
fn with_room(summary: &WireSummary) -> ModelProto {
    let WireSummary { external_data: _, nodes, value_infos, initializers } = *summary;
    let graph = GraphProto {
        node: Vec::with_capacity(nodes),
        value_info: Vec::with_capacity(value_infos),
        initializer: Vec::with_capacity(initializers),
        ..GraphProto::default()
    };
    // A file without a graph has none of these.
    ModelProto { graph: (nodes + value_infos + initializers > 0).then_some(graph), ..ModelProto::default() }
}

/// The versions of the operators that a model means, by domain.
fn opset_versions(imports: &[OperatorSetIdProto]) -> Result<FxHashMap<String, i64>, ImportProblem> {
    let mut versions = FxHashMap::default();
    for o in imports {
        let domain = if is_standard(o.domain()) { "" } else { o.domain() };
        if versions.insert(domain.to_owned(), o.version()).is_some_and(|before| before != o.version()) {
            return Err(ImportProblem::Opset(domain.to_owned()));
        }
    }
    Ok(versions)
}

/// The nodes of a model's own functions.
pub(crate) fn count_function_nodes(model: &ModelProto) -> Result<usize, ImportProblem> {
    let mut count = 0;
    for function in &model.functions {
        for_each_node(&function.node, |_| count += 1)?;
    }
    Ok(count)
}

/// Calls `f` with nodes and those of the graphs in them.
fn for_each_node(nodes: &[NodeProto], mut f: impl FnMut(&NodeProto)) -> Result<(), ImportProblem> {
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

/// What a model says besides its graph.
fn model_attrs(cx: &mut Context, model: &ModelProto) -> anfora_ir::AttrsId {
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
        functions,
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
    attrs.extend(encoded_list(cx, functions).map(|v| (keys::FUNCTIONS, v)));
    attrs.extend(encoded_list(cx, training_info).map(|v| (keys::TRAINING, v)));
    attrs.extend(encoded_list(cx, configuration).map(|v| (keys::CONFIGURATIONS, v)));
    cx.named_attrs(&attrs)
}

/// A list of strings, if there is any that is not empty; empty ones at the end are left out.
fn hints_attr(cx: &mut Context, hints: &[&str]) -> Option<AttrId> {
    let len = hints.iter().rposition(|h| !h.is_empty())? + 1;
    Some(strs_attr(cx, hints[..len].iter().copied()))
}

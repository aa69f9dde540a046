//! Export of a module to a file.

mod data;
mod pieces;
mod options;
mod slots;
mod graph_meta;
mod names;
mod nodes;
mod constants;
mod conditions;
mod graph;
mod opening;
mod kinds;
mod node;
mod closing;
mod closures;
mod functions;
mod layouts;
mod training;

use anfora_ir::{AttrsId, Context, FunctionKey, Module, StorageError};
use prost::Message;
use rustc_hash::FxHashSet;

use crate::attributes::{decoded_list, entries_of, int, str};
use crate::domains::is_standard;
use crate::error::{ExportError, ExportProblem};
use crate::keys;
use crate::node_counts::NodeCounts;
use crate::proto::{GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, for_each_node};
use crate::stated_opsets::opsets_of;
use crate::wire::{self, UnknownFields};

use graph_meta::GraphMeta;
use options::{GraphKind, Versions};

pub use data::{DataFile, ExternalData, WhenExternal};
pub use options::ExportOptions;
pub use pieces::ModelPieces;

/// The version of the standard operators if no version is stated.
const DEFAULT_OPSET: i64 = 18;
/// The version of the format by version of the standard operators: `(18, 8)` means that a model
/// with version 18 or an earlier one is written in version 8 of the format. The last entry also
/// holds for later versions.
const IR_VERSIONS: &[(i64, i64)] = &[(18, 8), (20, 9), (22, 10), (23, 11)];

/// The most bytes by which the elements of a constant lengthen the tags and lengths around them.
const MOST_HEADERS: u64 = 24;

/// A model that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exported {
    /// The file.
    pub bytes: Vec<u8>,
    /// The number of nodes, in total and by operator.
    pub nodes: NodeCounts,
    /// The file with the constants that are not in the model, if there are any. The model cannot be
    /// used without it.
    pub data: Option<DataFile>,
}

/// A model that is ready to be written. Elements of constants that are in files are still there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportedModel {
    /// The model.
    pub model: ModelPieces,
    /// The number of nodes, in total and by operator.
    pub nodes: NodeCounts,
    /// The file with the constants that are not in the model, if there are any. The model cannot be
    /// used without it.
    pub data: Option<DataFile>,
}

/// Returns a module as a model in memory. The function `entry` becomes the graph.
///
/// # Errors
/// If the function contains something that ONNX cannot express. The error names the pass that
/// removes it, if there is one. Also if constants cannot be read from their file.
pub fn export(module: &Module, options: &ExportOptions) -> Result<Exported, ExportError> {
    let ExportedModel { model, nodes, data } = export_model(module, options)?;
    let fault = |e: StorageError| ExportError { function: options.entry.clone(), binding: None, problem: e.into() };
    Ok(Exported { bytes: model.into_bytes().map_err(fault)?, nodes, data })
}

/// Returns a module as a model that is ready to be written, as [`export`] does. Elements of large
/// constants that are in files are copied when the model is written.
///
/// # Errors
/// As [`export`].
pub fn export_model(module: &Module, options: &ExportOptions) -> Result<ExportedModel, ExportError> {
    let fault = |problem| ExportError { function: options.entry.clone(), binding: None, problem };
    let exported = export_entry(module, options)?;
    module.cx.literals.failure().map_err(|e| fault(e.into()))?;
    Ok(exported)
}

fn export_entry(module: &Module, options: &ExportOptions) -> Result<ExportedModel, ExportError> {
    let fault = |problem| ExportError { function: options.entry.clone(), binding: None, problem };
    let key = module.find(&options.entry);
    let entry = key.filter(|&k| module.get(k).is_some_and(anfora_ir::Function::is_definition));
    let entry = entry.ok_or_else(|| fault(ExportProblem::NoEntry(options.entry.clone())))?;
    // The module as ONNX can express it, if that is another one.
    let changed = closures::with_functions_in_place(module, &options.entry)?;
    let module = changed.as_ref().unwrap_or(module);
    let in_layouts = layouts::in_layouts_of_onnx(module)?;
    let module = in_layouts.as_ref().unwrap_or(module);
    let entry = match changed.is_some() || in_layouts.is_some() {
        true => module.find(&options.entry).ok_or_else(|| fault(ExportProblem::NoEntry(options.entry.clone())))?,
        false => entry,
    };
    export_function(module, entry, options)
}

fn export_function(module: &Module, entry: FunctionKey, options: &ExportOptions) -> Result<ExportedModel, ExportError> {
    let Some(external @ ExternalData { when: WhenExternal::TooLarge, .. }) = &options.external_data else {
        return export_versions(module, entry, options);
    };
    let whole = ExportOptions { external_data: None, ..options.clone() };
    match export_versions(module, entry, &whole) {
        Err(ExportError { problem: ExportProblem::TooLarge, .. }) => {
            let external = ExternalData { when: WhenExternal::Always, ..external.clone() };
            // The file of large constants may replace one that constants are in.
            export_versions(
                module,
                entry,
                &ExportOptions { external_data: Some(external), keep_data_beside: None, ..whole },
            )
        }
        done => done,
    }
}

/// Writes a module in the version of the operators that it or the options state. If neither states
/// one, uses [`DEFAULT_OPSET`], or the first later version that has what the module needs.
fn export_versions(module: &Module, entry: FunctionKey, options: &ExportOptions) -> Result<ExportedModel, ExportError> {
    let fault = |problem| ExportError { function: options.entry.clone(), binding: None, problem };
    let mut model = model_of(&module.cx, module.attrs()).map_err(fault)?;
    let is_stated = module.cx.find_attr(module.attrs(), keys::OPSETS).is_some();
    if !is_stated {
        set_versions(&mut model, options.opset.unwrap_or(DEFAULT_OPSET));
    }
    // The domains with a stated version. The versions of other domains are raised to what the
    // operators need. If the module states versions, but none for the standard domain, the export
    // fails if an operator needs a later version of the standard domain.
    let fixed: Vec<String> = match (is_stated, options.opset) {
        (true, _) => model.opset_import.iter().map(|o| o.domain().to_owned()).collect(),
        (false, Some(_)) => vec![String::new()],
        (false, None) => Vec::new(),
    };
    loop {
        let problem = match write(module, entry, options, model.clone()) {
            Err(e) => e,
            done => return done,
        };
        match &problem.problem {
            ExportProblem::Opset { domain, needed, present, .. }
                if needed > present && !fixed.iter().any(|d| same_domain(d, domain)) =>
            {
                match domain.as_str() {
                    "" if !is_stated => set_versions(&mut model, *needed),
                    "" => return Err(problem),
                    domain => set_version(&mut model, domain, *needed),
                }
            }
            _ => return Err(problem),
        }
    }
}

fn same_domain(a: &str, b: &str) -> bool {
    a == b || (is_standard(a) && is_standard(b))
}

/// Returns a model with everything that a module says besides the graph.
fn model_of(cx: &Context, attrs: AttrsId) -> Result<ModelProto, ExportProblem> {
    let meta = GraphMeta::of(attrs);
    let number = |key| meta.read(cx, key, int);
    let text = |key| meta.read(cx, key, |cx, value| str(cx, value).map(str::to_owned));
    Ok(ModelProto {
        ir_version: number(keys::IR_VERSION)?,
        producer_name: text(keys::PRODUCER_NAME)?,
        producer_version: text(keys::PRODUCER_VERSION)?,
        domain: text(keys::DOMAIN)?,
        model_version: number(keys::MODEL_VERSION)?,
        doc_string: text(keys::DOC)?,
        graph: None,
        opset_import: opsets_of(cx, attrs)?.unwrap_or_default(),
        metadata_props: meta.read(cx, keys::METADATA, entries_of)?.unwrap_or_default(),
        training_info: meta.read(cx, keys::TRAINING, decoded_list)?.unwrap_or_default(),
        functions: meta.read(cx, keys::FUNCTIONS, decoded_list)?.unwrap_or_default(),
        configuration: meta.read(cx, keys::CONFIGURATIONS, decoded_list)?.unwrap_or_default(),
    })
}

/// Returns the version of the format for a version of the standard operators.
pub(crate) fn ir_version_for(opset: i64) -> i64 {
    let first = IR_VERSIONS.iter().find(|v| opset <= v.0).or(IR_VERSIONS.last());
    first.map_or(crate::proto::IR_VERSION, |v| v.1)
}

/// Sets the version of a domain's operators.
fn set_version(model: &mut ModelProto, domain: &str, version: i64) {
    model.opset_import.retain(|o| o.domain() != domain);
    model.opset_import.push(OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) });
}

/// Sets the version of the standard operators and the matching version of the format. Sets the
/// producer if there is none.
fn set_versions(model: &mut ModelProto, opset: i64) {
    model.ir_version = Some(ir_version_for(opset));
    model.opset_import.retain(|o| !is_standard(o.domain()));
    model.opset_import.insert(0, OperatorSetIdProto { domain: Some(String::new()), version: Some(opset) });
    model.producer_name.get_or_insert_with(|| "anfora".to_owned());
    model.producer_version.get_or_insert_with(|| env!("CARGO_PKG_VERSION").to_owned());
}

/// Raises the version of the format to one in which functions can be written.
fn make_room_for_functions(model: &mut ModelProto) {
    let version = model.ir_version.unwrap_or(functions::IR_VERSION);
    if version >= functions::IR_VERSION {
        return;
    }
    model.ir_version = Some(functions::IR_VERSION);
    model.metadata_props.push(StringStringEntryProto {
        key: Some(keys::PLAIN_IR_VERSION.to_owned()),
        value: Some(version.to_string()),
    });
    // Before version 3 a model did not state the versions of operators; it used the first.
    if !model.opset_import.iter().any(|o| is_standard(o.domain())) {
        model.opset_import.push(OperatorSetIdProto { domain: Some(String::new()), version: Some(1) });
    }
}

fn write(
    module: &Module,
    entry: FunctionKey,
    options: &ExportOptions,
    mut model: ModelProto,
) -> Result<ExportedModel, ExportError> {
    let fault = |problem| ExportError { function: options.entry.clone(), binding: None, problem };
    let mut reached = functions::reached(module, entry)?;
    let main = reached.pop().expect("the entry is reached");
    let before = model.functions.len();
    if reached.iter().any(|r| module.get(r.key).is_some_and(|f| module.cx.find_attr(f.meta, keys::FUNCTION).is_none()))
    {
        make_room_for_functions(&mut model);
    }
    let functions = functions::export_functions(module, reached, options, &mut model)?;
    if model.functions[before..].iter().any(functions::needs_version) {
        make_room_for_functions(&mut model);
    }
    let function = module.get(entry).expect("the caller found it");
    let main = (function, GraphKind::Main, main.slots);
    let versions = Versions::of(module, &model);
    let exported = graph::export_graph(&module.cx, main, &functions, options, &versions)
        .map_err(|f| functions::in_function(module, entry, f))?;
    let domains = model.functions[before..].iter().flat_map(|f| &f.opset_import).map(|o| o.domain().to_owned());
    let domains: Vec<String> = domains.filter(|d| !is_standard(d)).chain(exported.domains).collect();
    let has_versions = model.ir_version.is_none_or(|v| v >= 3);
    let mut imported: FxHashSet<String> = model.opset_import.iter().map(|o| o.domain().to_owned()).collect();
    for domain in domains.into_iter().filter(|_| has_versions) {
        if imported.insert(domain.clone()) {
            model.opset_import.push(OperatorSetIdProto { domain: Some(domain), version: Some(1) });
        }
    }
    training::check(&model.training_info, &exported.graph.rest).map_err(fault)?;
    model.graph = Some(GraphProto::default());
    let rest = model.encoded_len() as u64;
    let copied: u64 =
        exported.copied.values().map(|l| data::raw_bytes(l).saturating_add(MOST_HEADERS)).fold(0, u64::saturating_add);
    if copied.saturating_add(rest + exported.graph.encoded_len() as u64) > constants::MAX_FILE {
        return Err(fault(ExportProblem::TooLarge));
    }
    // Checks whether the nesting is too deep for readers.
    let depth = functions.values().map(|f| f.depth).fold(exported.depth, usize::max);
    if depth > wire::MAX_DEPTH / 4 {
        let graph = exported.graph.clone().into_decoded();
        model.graph = Some(graph.map_err(|_| fault(ExportProblem::TooDeep(depth)))?);
        if wire::check(&model.encode_to_vec(), UnknownFields::Refuse).is_err() {
            return Err(fault(ExportProblem::TooDeep(depth)));
        }
    }
    let mut nodes = exported.nodes;
    let of_functions = model.functions.iter().try_for_each(|f| for_each_node(&f.node, |node| nodes.add(node)));
    of_functions.map_err(|_| fault(ExportProblem::Damaged(keys::FUNCTIONS)))?;
    Ok(ExportedModel { model: ModelPieces::of(model, exported.graph, &exported.copied), nodes, data: exported.data })
}

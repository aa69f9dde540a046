//! The state of an import: its settings, the unfinished graphs and the values in scope.

use std::cell::RefCell;
use std::rc::Rc;
use std::vec::IntoIter;

use anfora_ir::{AttrId, AttrsId, Context, ExprId, FunctionBuilder, LiteralId, NameId, Names, TypeId, VarFlags};
use bytes::Bytes;
use prost::DecodeError;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::encoded::{decode_node, has_output, set_texts};
use super::function_attributes::Arguments;
use super::function_table::FunctionTable;
use super::initializers::Initializer;
use super::values::{NamedValue, Scope};
use super::warnings::{Notes, Warning};
use crate::attributes::{doc_of, encoded_list, hints_attr};
use crate::convert::{Conversions, WritableCalls};
use crate::error::{ImportProblem, UnsupportedReason, because};
use crate::external::ReadFiles;
use crate::id_hash::{IdKeySet, IdMap};
use crate::keys;
use crate::node_counts::NodeCounts;
use crate::proto::{NodeProto, ValueInfoProto};
use crate::tensor::SMALL_CONSTANT;
use crate::types::FileDims;

/// The settings of the graphs of the model, or of functions that import the same versions.
pub(super) struct Settings<'a> {
    /// The versions in which nodes are read, by domain: those that the model or the function
    /// imports. The standard domain is the empty string.
    pub(super) opsets: Rc<FxHashMap<String, i64>>,
    /// The versions in which nodes are written on export, by domain: those that the model imports.
    /// For a domain that only functions import, the first of their versions.
    pub(super) written: Rc<FxHashMap<String, i64>>,
    /// The domains whose version in the current function differs from the version that the model
    /// imports. No node of such a domain can be kept unchanged.
    pub(super) differing: Rc<FxHashSet<String>>,
    /// True if an initializer that is also an input is a constant, not a default value.
    pub(super) constant_initializers: bool,
    pub(super) conversions: &'a Conversions,
    /// The warnings and kept nodes of all graphs.
    pub(super) notes: &'a Notes,
    /// The files that hold elements of tensors, if there are any.
    pub(super) files: Option<&'a RefCell<ReadFiles>>,
    /// True if a text of the file is not UTF-8.
    pub(super) has_bad_text: bool,
}

/// An import of the main graph or of a function.
pub(super) struct Importer<'m, 'a> {
    pub(super) builder: FunctionBuilder<'m>,
    pub(super) settings: &'a Settings<'a>,
    pub(super) functions: &'m mut FunctionTable,
    /// Warnings about the current node or graph.
    pub(super) warnings: Vec<Warning>,
    /// A node that is done. Its memory is used again.
    pub(super) spare: NodeProto,
    pub(super) state: ImportState,
}

/// The state of an import besides the function that is being built.
#[derive(Default)]
pub(super) struct ImportState {
    pub(super) scope: Scope,
    /// The types of the elements of values that are sequences or may be missing, where known.
    pub(super) elements: IdMap<ExprId, TypeId>,
    pub(super) dims: FileDims,
    /// The unfinished graphs, while the import is suspended (`Suspended` in `graph.rs`).
    pub(super) stack: Vec<OpenGraph>,
    /// The nodes so far, without those that represent initializers.
    pub(super) nodes: NodeCounts,
    /// True if the outermost graph is the body of a function.
    pub(super) is_in_function: bool,
    /// The attributes of the current function.
    pub(super) arguments: Rc<Arguments>,
    /// The calls so far that can be written.
    pub(super) writable: WritableCalls,
}

/// An unfinished graph.
#[derive(Default)]
pub(super) struct OpenGraph {
    /// The name of the graph in errors.
    pub(super) place: String,
    /// For a subgraph, the attribute that holds it.
    pub(super) label: String,
    /// True if the graph becomes a block, not a `fn`.
    pub(super) is_block: bool,
    /// The next nodes in reverse order. Those of functions are decoded, and those of other graphs
    /// if the file has data in other files.
    pub(super) decoded: Vec<NodeProto>,
    /// The nodes after these.
    pub(super) encoded: IntoIter<Bytes>,
    /// The names of the inputs and outputs of all nodes, in order.
    pub(super) names: Vec<Option<NameId>>,
    /// The number of names that were taken.
    pub(super) names_taken: usize,
    /// The number of nodes that were taken.
    pub(super) taken: usize,
    /// The number of leading nodes that represent initializers: sparse ones, and those that no
    /// literal can hold.
    pub(super) kept_initializers: usize,
    /// The current node, while its subgraphs are imported.
    pub(super) pending: Option<PendingNode>,
    pub(super) outputs: Vec<ValueInfoProto>,
    /// The types and metadata that the file states for values that nodes compute.
    pub(super) stated: IdMap<NameId, Stated>,
    pub(super) initializers: Vec<Initializer>,
    /// The names that nodes and outputs of this graph use.
    pub(super) uses: IdKeySet<NameId>,
    /// True if a node has a subgraph, which may use any name.
    pub(super) has_subgraphs: bool,
    /// True if the graph has observable effects.
    pub(super) is_impure: bool,
    /// The metadata of the graph.
    pub(super) meta: Vec<(&'static str, AttrId)>,
    /// See [`keys::INFOS`].
    pub(super) infos: Vec<AttrId>,
    /// See [`keys::OUTPUT_INFOS`].
    pub(super) output_infos: Vec<AttrId>,
    /// The outputs with a warning that their stated type is wrong.
    pub(super) contradicted: FxHashSet<NameId>,
    /// True if the result is a tuple even with fewer than two outputs.
    pub(super) is_tuple: bool,
}

/// A node whose subgraphs are being imported.
pub(super) struct PendingNode {
    pub(super) node: NodeProto,
    pub(super) names: NodeNames,
    /// The subgraphs that are not imported yet: labels and encoded graphs.
    pub(super) waiting: IntoIter<(String, Bytes)>,
    /// The finished subgraphs with their labels.
    pub(super) subgraphs: Vec<(String, Subgraph)>,
    /// `Ok` if the node becomes an `if`; otherwise the reason why it cannot.
    pub(super) branches: Result<(), UnsupportedReason>,
    /// True if a subgraph has observable effects.
    pub(super) is_impure: bool,
    /// True if the node calls a function of the file that cannot be imported. It is then not known
    /// what the operator is.
    pub(super) calls_function: bool,
}

/// The names of the inputs and outputs of a node; `None` for one that is left out.
#[derive(Default)]
pub(super) struct NodeNames {
    pub(super) inputs: SmallVec<[Option<NameId>; 4]>,
    pub(super) outputs: SmallVec<[Option<NameId>; 4]>,
}

/// The result of importing a subgraph.
#[derive(Copy, Clone)]
pub(super) enum Subgraph {
    /// The variable that is bound to the `fn` of the subgraph.
    Fn(ExprId),
    /// A block, and its metadata.
    Block(ExprId, AttrsId),
}

/// The type and metadata that the file states for a value.
pub(super) struct Stated {
    pub(super) info: Box<ValueInfoProto>,
    /// True if the value is an output of the graph, whose type is always written.
    pub(super) is_output: bool,
}

impl PendingNode {
    pub(super) fn new(mut node: NodeProto, names: NodeNames) -> PendingNode {
        let mut waiting = Vec::new();
        for attribute in &mut node.attribute {
            let name = attribute.name.clone().unwrap_or_default();
            waiting.extend(attribute.g.take().map(|g| (name.clone(), g)));
            let graphs = std::mem::take(&mut attribute.graphs);
            waiting.extend(graphs.into_iter().enumerate().map(|(i, g)| (format!("{name}[{i}]"), g)));
        }
        PendingNode {
            node,
            names,
            waiting: waiting.into_iter(),
            subgraphs: Vec::new(),
            branches: Err(because("it has subgraphs")),
            is_impure: false,
            calls_function: false,
        }
    }
}

impl OpenGraph {
    pub(super) fn node_place(&self, node: &NodeProto) -> String {
        let named = match node.name() {
            "" => String::new(),
            name => format!(" named `{name}`"),
        };
        match (self.taken - 1).checked_sub(self.kept_initializers) {
            Some(i) => format!("{}, node {i} (`{}`{named})", self.place, node.op_type()),
            None => format!("{}, the initializer `{}`", self.place, node.output[0]),
        }
    }

    /// Returns the next node, in the memory of `spare`. Frees the space of nodes that are done.
    /// `table` has the names.
    ///
    /// # Errors
    /// If it cannot be decoded.
    pub(super) fn next_node(
        &mut self,
        table: &Names,
        spare: &mut NodeProto,
    ) -> Result<Option<(NodeProto, NodeNames)>, DecodeError> {
        if let Some(node) = self.decoded.pop() {
            if self.decoded.len() <= self.decoded.capacity() / 2 {
                self.decoded.shrink_to_fit();
            }
            let names =
                NodeNames { inputs: self.take_names(node.input.len()), outputs: self.take_names(node.output.len()) };
            return Ok(Some((node, names)));
        }
        let Some(bytes) = self.encoded.next() else { return Ok(None) };
        let (mut node, inputs, outputs) = decode_node(&bytes, std::mem::take(spare))?;
        let names = NodeNames { inputs: self.take_names(inputs), outputs: self.take_names(outputs) };
        let text = |name: &Option<NameId>| name.map_or("", |name| table.get(name));
        set_texts(&mut node.input, names.inputs.iter().map(text));
        set_texts(&mut node.output, names.outputs.iter().map(text));
        Ok(Some((node, names)))
    }

    /// Returns the names of the next `count` inputs or outputs.
    fn take_names(&mut self, count: usize) -> SmallVec<[Option<NameId>; 4]> {
        let start = self.names_taken;
        self.names_taken += count;
        SmallVec::from_slice(self.names.get(start..self.names_taken).unwrap_or_default())
    }

    /// Returns true if anything may use a value under this name.
    pub(super) fn may_use(&self, name: NameId) -> bool {
        self.has_subgraphs || self.uses.contains(&name)
    }
}

/// An input of a function.
pub(super) enum Input {
    /// A parameter. The type is used if the file does not state a type.
    Param(Option<TypeId>),
    /// A constant.
    Constant(LiteralId),
    /// An input that is left out.
    Absent,
}

impl Importer<'_, '_> {
    /// Defines a name in the current graph.
    pub(super) fn define(&mut self, name: NameId, expr: ExprId) -> Result<(), ImportProblem> {
        if self.state.scope.define(name, expr) {
            return Ok(());
        }
        Err(ImportProblem::Duplicate(self.builder.cx().names.get(name).to_owned()))
    }

    /// Returns the value of a name.
    pub(super) fn use_value(
        &mut self,
        open: &OpenGraph,
        user: Option<&NodeProto>,
        id: NameId,
    ) -> Result<NamedValue, ImportProblem> {
        let Some(value) = self.state.scope.use_value(id) else {
            let name = self.builder.cx().names.get(id);
            let mut decoded = user.into_iter().chain(&open.decoded);
            let comes_later = decoded.any(|n| n.output.iter().any(|o| o == name))
                || open.encoded.as_slice().iter().any(|n| has_output(n, name));
            let name = name.to_owned();
            return Err(if comes_later { ImportProblem::Order(name) } else { ImportProblem::Undefined(name) });
        };
        if let Some(literal) = self.builder.body().as_literal(value.expr) {
            let is_small = self.builder.cx().literals.get(literal).stored_bytes() <= SMALL_CONSTANT;
            self.state.scope.use_constant(literal, id, is_small && !self.settings.constant_initializers);
        }
        Ok(value)
    }

    /// Binds a value to a variable with this name, if it has one.
    pub(super) fn bind(&mut self, name: Option<NameId>, value: ExprId) -> ExprId {
        let body = self.builder.body();
        let ty = body.type_of(value);
        let var = body.push_var(name, VarFlags::PLAIN, ty, None);
        self.builder.bind_var(var, value, None);
        var.expr()
    }

    /// Sets the metadata of a binding.
    pub(super) fn set_meta(&mut self, var: ExprId, meta: &[(&str, AttrId)]) {
        if !meta.is_empty() {
            let meta = self.builder.named_attrs(meta);
            self.builder.body().set_meta(var, Some(meta));
        }
    }
}

/// Returns the metadata of a node. `hints` are the names of its constant operands.
pub(super) fn node_meta(cx: &mut Context, node: &NodeProto, hints: &[Option<NameId>]) -> Vec<(&'static str, AttrId)> {
    let mut meta = doc_of(cx, &node.doc_string, &node.metadata_props);
    meta.extend(node.name.as_ref().filter(|n| !n.is_empty()).map(|n| (keys::NAME, cx.str_attr(n))));
    meta.extend(encoded_list(cx, &node.device_configurations).map(|d| (keys::DEVICES, d)));
    meta.extend(hints_attr(cx, hints).map(|h| (keys::INPUTS, h)));
    meta
}

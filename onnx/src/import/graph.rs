//! Import of graphs and of the graphs inside their nodes, with an explicit stack of unfinished
//! graphs.

use std::cell::RefCell;
use std::rc::Rc;
use std::vec::IntoIter;

use anfora_ir::{
    Attr, AttrId, AttrsId, Expr, ExprId, FunctionBuilder, FunctionKey, LiteralId, NameId, TypeId, UnfinishedFunction,
    VarId,
};
use bytes::Bytes;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::function_attributes::{Arguments, with_arguments};
use super::functions::{FunctionNode, FunctionTable, Input, Request, own_type};
use super::hints_attr;
use super::initializers::{Initializer, Initializers};
use super::values::{Scope, Value};
use super::warnings::{Notes, Warning};
use crate::attributes::{encoded_attr, encoded_list, entries_attr, strs_attr};
use crate::convert::Conversions;
use crate::error::{ImportError, ImportProblem, UnsupportedReason};
use crate::external::ReadFiles;
use crate::keys;
use crate::proto::{GraphProto, NodeProto, StringStringEntryProto, TensorAnnotation, TensorProto, ValueInfoProto};
use crate::tensor::SMALL_CONSTANT;
use crate::types::{Binding, FileDims, type_of};

/// The settings of all graphs of a file.
pub(super) struct Settings<'a> {
    /// The versions of the operators by domain. The standard domain is the empty string.
    pub(super) opsets: Rc<FxHashMap<String, i64>>,
    /// The versions that the model imports, by domain. Nodes are written in these versions.
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
}

/// The state of an import.
pub(super) struct Importer<'m, 'a> {
    pub(super) builder: FunctionBuilder<'m>,
    pub(super) settings: &'a Settings<'a>,
    pub(super) functions: FunctionTable,
    pub(super) scope: Scope,
    pub(super) dims: FileDims,
    /// Warnings about the current node or graph.
    pub(super) warnings: Vec<Warning>,
    /// The unfinished graphs, while the import is suspended.
    stack: Vec<OpenGraph>,
    /// The number of nodes so far, without those that represent initializers.
    nodes: usize,
    /// True if the outermost graph is the body of a function.
    pub(super) is_in_function: bool,
    /// The attributes of the current function.
    arguments: Rc<Arguments>,
}

/// An unfinished graph.
pub(super) struct OpenGraph {
    /// The name of the graph in errors.
    place: String,
    /// For a subgraph, the attribute that holds it.
    label: String,
    /// True if the graph becomes a block, not a `fn`.
    is_block: bool,
    /// The remaining nodes in reverse order.
    nodes: Vec<NodeProto>,
    /// The number of nodes taken from `nodes`.
    taken: usize,
    /// The number of leading nodes that represent initializers: sparse ones, and those that no
    /// literal can hold.
    kept_initializers: usize,
    /// The current node, while its subgraphs are imported.
    pending: Option<PendingNode>,
    outputs: Vec<ValueInfoProto>,
    /// The statements of the file about values that nodes compute.
    pub(super) stated: FxHashMap<NameId, Stated>,
    pub(super) initializers: Vec<Initializer>,
    /// The names that nodes and outputs of this graph use.
    uses: FxHashSet<NameId>,
    /// True if a node has a subgraph, which may use any name.
    has_subgraphs: bool,
    /// True if the graph has observable effects.
    pub(super) is_impure: bool,
    /// The metadata of the graph.
    meta: Vec<(&'static str, AttrId)>,
    /// See [`keys::INFOS`].
    infos: Vec<AttrId>,
    /// See [`keys::OUTPUT_INFOS`].
    output_infos: Vec<AttrId>,
    /// The outputs with a warning that their stated type is wrong.
    pub(super) contradicted: FxHashSet<NameId>,
    /// True if the result is a tuple even with fewer than two outputs.
    is_tuple: bool,
}

/// A node whose subgraphs are being imported.
pub(super) struct PendingNode {
    pub(super) node: NodeProto,
    /// The subgraphs that are not imported yet: labels and encoded graphs.
    waiting: IntoIter<(String, Bytes)>,
    /// The finished subgraphs with their labels.
    pub(super) subgraphs: Vec<(String, Subgraph)>,
    /// `Ok` if the node becomes an `if`, otherwise the reason.
    pub(super) branches: Result<(), UnsupportedReason>,
    /// True if a subgraph has observable effects.
    pub(super) is_impure: bool,
}

/// The result of importing a subgraph.
#[derive(Copy, Clone)]
pub(super) enum Subgraph {
    /// The variable that is bound to the `fn` of the subgraph.
    Fn(ExprId),
    /// A block, and its metadata.
    Block(ExprId, AttrsId),
}

/// A statement of the file about a value.
pub(super) struct Stated {
    pub(super) info: Box<ValueInfoProto>,
    /// True if the value is an output of the graph, whose type is always written.
    pub(super) is_output: bool,
}

impl PendingNode {
    fn new(mut node: NodeProto) -> PendingNode {
        let mut waiting = Vec::new();
        for attribute in &mut node.attribute {
            let name = attribute.name.clone().unwrap_or_default();
            waiting.extend(attribute.g.take().map(|g| (name.clone(), g)));
            let graphs = std::mem::take(&mut attribute.graphs);
            waiting.extend(graphs.into_iter().enumerate().map(|(i, g)| (format!("{name}[{i}]"), g)));
        }
        PendingNode {
            node,
            waiting: waiting.into_iter(),
            subgraphs: Vec::new(),
            branches: Err(UnsupportedReason::because("it has subgraphs")),
            is_impure: false,
        }
    }
}

impl OpenGraph {
    fn node_place(&self, node: &NodeProto) -> String {
        let named = match node.name() {
            "" => String::new(),
            name => format!(" named `{name}`"),
        };
        match (self.taken - 1).checked_sub(self.kept_initializers) {
            Some(i) => format!("{}, node {i} (`{}`{named})", self.place, node.op_type()),
            None => format!("{}, the initializer `{}`", self.place, node.output[0]),
        }
    }

    /// Returns the next node. Frees the space of nodes that are done.
    fn next_node(&mut self) -> Option<NodeProto> {
        let next = self.nodes.pop();
        if self.nodes.len() <= self.nodes.capacity() / 2 {
            self.nodes.shrink_to_fit();
        }
        next
    }

    /// Returns true if anything may use a value under this name.
    pub(super) fn may_use(&self, name: NameId) -> bool {
        self.has_subgraphs || self.uses.contains(&name)
    }
}

/// A graph that became a function.
pub(super) struct Finished {
    pub(super) key: FunctionKey,
    /// The metadata of the graph.
    pub(super) meta: AttrsId,
    /// The number of nodes of the graph and of the graphs in it.
    pub(super) nodes: usize,
    /// True if the graph has observable effects.
    pub(super) is_impure: bool,
}

/// The position of a graph in the file.
pub(super) enum GraphPlace {
    /// The graph of the model.
    Main,
    /// The body of a function.
    Function {
        name: String,
        inputs: Vec<Input>,
        /// True if the result is a tuple even with fewer than two outputs.
        is_tuple: bool,
        arguments: Rc<Arguments>,
    },
    /// A subgraph of a node, with its name in errors.
    Subgraph(String),
    /// A branch, with its name in errors.
    Branch(String),
}

/// The state of an import besides the function that is being built.
#[derive(Default)]
pub(super) struct State {
    scope: Scope,
    dims: FileDims,
    stack: Vec<OpenGraph>,
    nodes: usize,
    is_in_function: bool,
    arguments: Rc<Arguments>,
}

/// A suspended import.
pub(super) struct Paused {
    pub(super) unfinished: UnfinishedFunction,
    pub(super) state: State,
}

/// The reason why an import stops.
enum Stop {
    /// The outermost graph ended.
    End(Box<OpenGraph>),
    /// A call needs a function that is not imported yet.
    Needs(Request),
}

/// The progress of an import.
pub(super) enum Progress {
    /// The import is finished.
    Finished { finished: Finished, table: FunctionTable },
    /// A call needs a function that is not imported yet.
    Needs { paused: Box<Paused>, table: FunctionTable, request: Request },
}

impl<'m, 'a> Importer<'m, 'a> {
    /// Starts or resumes an import.
    pub(super) fn new(
        builder: FunctionBuilder<'m>,
        settings: &'a Settings<'a>,
        functions: FunctionTable,
        state: State,
    ) -> Importer<'m, 'a> {
        let State { scope, dims, stack, nodes, is_in_function, arguments } = state;
        let warnings = Vec::new();
        Importer { builder, settings, functions, scope, dims, warnings, stack, nodes, is_in_function, arguments }
    }

    /// Suspends the import and returns its parts.
    pub(super) fn set_aside(self) -> (UnfinishedFunction, State, FunctionTable) {
        let Importer {
            builder,
            settings: _,
            functions,
            scope,
            dims,
            warnings: _,
            stack,
            nodes,
            is_in_function,
            arguments,
        } = self;
        let state = State { scope, dims, stack, nodes, is_in_function, arguments };
        (builder.set_aside(), state, functions)
    }

    /// Begins the outermost graph.
    pub(super) fn begin(&mut self, graph: GraphProto, place: GraphPlace) -> Result<(), ImportError> {
        if let GraphPlace::Function { arguments, .. } = &place {
            self.is_in_function = true;
            self.arguments = Rc::clone(arguments);
        }
        let graph = self.open(graph, String::new(), place)?;
        // Many imports may be suspended at once, so the stack reserves no spare room.
        self.stack.reserve_exact(1);
        self.stack.push(graph);
        Ok(())
    }

    /// Imports nodes up to the end, or up to a node that needs a function. A failure also returns
    /// the table.
    pub(super) fn run(mut self) -> Result<Progress, Box<(ImportError, FunctionTable)>> {
        match self.advance() {
            Ok(Stop::End(graph)) => self.finish(*graph),
            Ok(Stop::Needs(request)) => {
                let (unfinished, state, table) = self.set_aside();
                Ok(Progress::Needs { paused: Box::new(Paused { unfinished, state }), table, request })
            }
            Err(e) => Err(Box::new((e, self.functions))),
        }
    }

    /// Imports nodes until the outermost graph ends or a call needs a function. A node with
    /// subgraphs waits in its graph (`pending`) while these are on the stack.
    fn advance(&mut self) -> Result<Stop, ImportError> {
        let mut stack = std::mem::take(&mut self.stack);
        loop {
            let graph = stack.last_mut().expect("the outermost graph returns when it is finished");
            // Take the waiting node or the next one; if there is none, close the graph.
            let mut pending = match graph.pending.take() {
                Some(pending) => pending,
                None => match graph.next_node() {
                    Some(node) => {
                        graph.taken += 1;
                        self.nodes += usize::from(graph.taken > graph.kept_initializers);
                        let node = with_arguments(node, &self.arguments, &mut self.functions.room)
                            .map_err(|p| ImportError::new(&graph.place, p))?;
                        match has_graphs(&node) {
                            true => {
                                let branches = self.may_be_if(&node);
                                PendingNode { branches, ..PendingNode::new(node) }
                            }
                            false => PendingNode::new(node),
                        }
                    }
                    None => {
                        let finished = stack.pop().expect("it is the last one");
                        let Some(outer) = stack.last_mut() else { return Ok(Stop::End(Box::new(finished))) };
                        self.close(finished, outer)?;
                        continue;
                    }
                },
            };
            match pending.waiting.next() {
                // Open the next subgraph of the node, if one is left.
                Some((label, bytes)) => {
                    let place = format!("{}, its `{label}`", graph.node_place(&pending.node));
                    let pending_branches = pending.branches.is_ok();
                    graph.pending = Some(pending);
                    let inner = GraphProto::decode(bytes).map_err(|e| ImportError::new(&place, e))?;
                    let place = match pending_branches {
                        true => GraphPlace::Branch(place),
                        false => GraphPlace::Subgraph(place),
                    };
                    let inner = self.open(inner, label, place)?;
                    stack.push(inner);
                }
                // All subgraphs are finished: import the node, or suspend until its function is
                // imported.
                None => {
                    let done = self.function_node(graph, &pending).and_then(|done| {
                        match done {
                            FunctionNode::Other => self.node(graph, &mut pending, None)?,
                            FunctionNode::Unsupported(why) => self.node(graph, &mut pending, Some(why))?,
                            FunctionNode::Done => {}
                            FunctionNode::Needs(request) => return Ok(Some(request)),
                        }
                        Ok(None)
                    });
                    let needed = done.map_err(|p| ImportError::new(graph.node_place(&pending.node), p))?;
                    self.say_warnings(|| graph.node_place(&pending.node));
                    if let Some(request) = needed {
                        graph.pending = Some(pending);
                        self.stack = stack;
                        return Ok(Stop::Needs(request));
                    }
                }
            }
        }
    }

    /// Begins a graph and defines its parameters and initializers.
    fn open(&mut self, mut graph: GraphProto, label: String, place: GraphPlace) -> Result<OpenGraph, ImportError> {
        let filled = match self.settings.files {
            Some(files) => files.borrow_mut().fill_graph(&mut graph),
            None => Ok(()),
        };
        let GraphProto {
            node,
            name,
            initializer,
            doc_string,
            input,
            output,
            value_info,
            quantization_annotation,
            sparse_initializer,
            metadata_props,
        } = graph;
        let is_outermost = matches!(place, GraphPlace::Main | GraphPlace::Function { .. });
        let is_branch = matches!(place, GraphPlace::Branch(_));
        let (place, given, is_tuple) = match place {
            GraphPlace::Main => (format!("the graph `{}`", name.as_deref().unwrap_or_default()), None, false),
            GraphPlace::Function { name, inputs, is_tuple, arguments: _ } => {
                (format!("the function `{name}`"), Some(inputs), is_tuple)
            }
            GraphPlace::Subgraph(place) | GraphPlace::Branch(place) => (place, None, false),
        };
        let fail = |problem: ImportProblem| ImportError::new(&place, problem);
        filled.map_err(fail)?;

        // Initializers: parameters with a default value, literals, and nodes for the others.
        self.scope.open();
        let mut initializers = self.read_initializers(initializer).map_err(fail)?;
        let are_constants = self.settings.constant_initializers;
        let kept = initializers.take_kept_nodes(sparse_initializer, &input, are_constants).map_err(fail)?;
        let kept_initializers = kept.len();
        let mut node = node;
        node.splice(0..0, kept);
        let Initializers { literals, tensors, of_no_literal: _ } = initializers;
        let has_subgraphs = node.iter().any(has_graphs);
        let mut open = OpenGraph {
            place: String::new(),
            label,
            is_block: false,
            nodes: Vec::new(),
            taken: 0,
            kept_initializers,
            pending: None,
            outputs: Vec::new(),
            stated: FxHashMap::default(),
            initializers: literals,
            uses: FxHashSet::default(),
            has_subgraphs,
            is_impure: false,
            meta: graph_meta(self.builder.cx(), name, &doc_string, &metadata_props, &quantization_annotation),
            infos: Vec::new(),
            output_infos: Vec::new(),
            contradicted: FxHashSet::default(),
            is_tuple,
        };
        // Read the inputs, and the types that the file states for other values.
        let params = match given {
            Some(given) => self.read_function_inputs(&mut open, input, given).map_err(fail)?,
            None => self.read_inputs(&mut open, input, &tensors, is_outermost).map_err(fail)?,
        };
        open.is_block = is_branch && params.is_empty();
        match open.is_block {
            true => self.builder.open_block(),
            false => self.define_inputs(&mut open, params, is_outermost).map_err(fail)?,
        }
        self.define_initializers(&open).map_err(fail)?;
        self.read_stated(&mut open, value_info, &output).map_err(fail)?;

        // The nodes, and the names that they and the outputs use.
        let cx = self.builder.cx();
        let used = node.iter().flat_map(|n| n.input.iter()).map(String::as_str).chain(output.iter().map(|o| o.name()));
        open.uses.extend(used.map(|n| cx.names.intern(n)));
        node.reverse();
        open.nodes = node;
        open.outputs = output;
        open.place = place;
        self.say_warnings(|| open.place.clone());
        Ok(open)
    }

    /// Returns the inputs that are parameters. Checks the inputs that are constants, and removes
    /// default values from the initializers.
    fn read_inputs(
        &mut self,
        open: &mut OpenGraph,
        inputs: Vec<ValueInfoProto>,
        tensors: &FxHashMap<NameId, TensorProto>,
        is_main: bool,
    ) -> Result<Vec<(NameId, TypeId)>, ImportProblem> {
        let constants: FxHashMap<NameId, LiteralId> = open.initializers.iter().map(|i| (i.name, i.literal)).collect();
        let binding = if is_main { Binding::Binds } else { Binding::Uses };
        let mut seen = FxHashSet::default();
        let mut params = Vec::new();
        let mut defaults = Vec::new();
        for info in inputs {
            if info.name().is_empty() {
                return Err(ImportProblem::Nameless("an input"));
            }
            let cx = self.builder.cx();
            let name = cx.names.intern(info.name());
            if !seen.insert(name) {
                return Err(ImportProblem::Duplicate(info.name().to_owned()));
            }
            let constant = constants.get(&name).copied();
            let tensor = tensors.get(&name);
            let is_constant = tensor.is_some() && self.settings.constant_initializers;
            let stated = match &info.r#type {
                Some(ty) => type_of(cx, &mut self.dims, ty, if is_constant { Binding::Uses } else { binding }),
                None => cx.types.any(),
            };
            let found = constant.map_or(stated, |c| cx.literal_type(c));
            let is_wrong = self.warn_of_contradiction(&info, stated, found);
            if is_constant {
                let infos = self.more_than(&info, found, is_wrong);
                open.infos.extend(infos);
                continue;
            }
            // An input keeps its declared type, even if its default value has another type.
            let infos = self.more_than(&info, stated, false);
            open.infos.extend(infos);
            params.push((name, stated));
            if let Some(tensor) = tensor {
                let cx = self.builder.cx();
                let is_plain = tensor.doc_string.is_none() && tensor.metadata_props.is_empty();
                let value = match constant.filter(|_| is_plain) {
                    Some(literal) => cx.attr(Attr::Literal(literal)),
                    None => {
                        let encoded = encoded_attr(cx, tensor);
                        cx.attr(Attr::List(Box::new([encoded])))
                    }
                };
                let key = cx.str_attr(info.name());
                defaults.push(cx.attr(Attr::List(Box::new([key, value]))));
            }
        }
        if !defaults.is_empty() {
            let params: FxHashSet<NameId> = params.iter().map(|p| p.0).collect();
            open.initializers.retain(|i| !params.contains(&i.name));
            let defaults = self.builder.cx().attr(Attr::List(defaults.into()));
            open.meta.push((keys::DEFAULTS, defaults));
        }
        Ok(params)
    }

    /// Returns the inputs of a function that become parameters. Defines the constant and the absent
    /// inputs.
    fn read_function_inputs(
        &mut self,
        open: &mut OpenGraph,
        inputs: Vec<ValueInfoProto>,
        given: Vec<Input>,
    ) -> Result<Vec<(NameId, TypeId)>, ImportProblem> {
        let mut params = Vec::with_capacity(inputs.len());
        for (info, given) in inputs.into_iter().zip(given) {
            if info.name().is_empty() {
                return Err(ImportProblem::Nameless("an input"));
            }
            let cx = self.builder.cx();
            let name = cx.names.intern(info.name());
            let ty = match given {
                Input::Constant(literal) => {
                    let expr = self.builder.editor().literal_id(literal);
                    self.define(name, expr)?;
                    continue;
                }
                Input::Absent => {
                    let none = self.builder.editor().none();
                    self.define(name, none)?;
                    continue;
                }
                Input::Param(Some(ty)) => own_type(cx, &mut self.dims, ty),
                Input::Param(None) => match &info.r#type {
                    Some(ty) => type_of(cx, &mut self.dims, ty, Binding::Binds),
                    None => cx.types.any(),
                },
            };
            let infos = self.more_than(&info, ty, false);
            open.infos.extend(infos);
            params.push((name, ty));
        }
        Ok(params)
    }

    /// Makes the inputs parameters: of the function if the graph is outermost, otherwise of a `fn`.
    fn define_inputs(
        &mut self,
        open: &mut OpenGraph,
        params: Vec<(NameId, TypeId)>,
        is_main: bool,
    ) -> Result<(), ImportProblem> {
        let names: Vec<String> = params.iter().map(|p| self.builder.cx().names.get(p.0).to_owned()).collect();
        let exprs: Vec<ExprId> = if is_main {
            let vars: Vec<VarId> = names.iter().zip(&params).map(|(n, p)| self.builder.declare_var(n, p.1)).collect();
            self.builder.body().set_params(vars.clone());
            vars.into_iter().map(VarId::expr).collect()
        } else {
            let typed: Vec<(&str, TypeId)> = names.iter().zip(&params).map(|(n, p)| (n.as_str(), p.1)).collect();
            self.builder.open_lambda(&typed, None, &[])
        };
        for (&(name, _), expr) in params.iter().zip(exprs) {
            self.define(name, expr)?;
        }
        if is_main && !self.dims.renamed.is_empty() {
            let cx = self.builder.cx();
            let pairs = self.dims.renamed.iter();
            let pairs: Box<[AttrId]> =
                pairs.map(|(here, there)| strs_attr(cx, [here.as_str(), there.as_str()].into_iter())).collect();
            open.meta.push((keys::DIMENSIONS, cx.attr(Attr::List(pairs))));
        }
        Ok(())
    }

    /// Records what the file states about the types of values that are not inputs.
    fn read_stated(
        &mut self,
        open: &mut OpenGraph,
        value_infos: Vec<ValueInfoProto>,
        outputs: &[ValueInfoProto],
    ) -> Result<(), ImportProblem> {
        for info in value_infos {
            let name = self.builder.cx().names.intern(info.name());
            // A value that is already in scope is an input or an initializer.
            if let Some(value) = self.scope.get(name)
                && self.scope.is_innermost(value)
            {
                let found = self.builder.body().ty(value.expr);
                let stated = self.stated_type(&info);
                let is_wrong = self.warn_of_contradiction(&info, stated, found);
                if self.builder.body().as_literal(value.expr).is_some() {
                    let infos = self.more_than(&info, found, is_wrong);
                    open.infos.extend(infos);
                }
                continue;
            }
            open.stated.insert(name, Stated { info: Box::new(info), is_output: false });
        }
        for info in outputs {
            let name = self.builder.cx().names.intern(info.name());
            open.stated.insert(name, Stated { info: Box::new(info.clone()), is_output: true });
        }
        Ok(())
    }

    /// Defines a name in the current graph.
    pub(super) fn define(&mut self, name: NameId, expr: ExprId) -> Result<(), ImportProblem> {
        if self.scope.define(name, expr) {
            return Ok(());
        }
        Err(ImportProblem::Duplicate(self.builder.cx().names.get(name).to_owned()))
    }

    /// Returns the value of a name.
    pub(super) fn use_value(
        &mut self,
        open: &OpenGraph,
        user: Option<&NodeProto>,
        name: &str,
    ) -> Result<Value, ImportProblem> {
        let id = self.builder.cx().names.intern(name);
        let Some(value) = self.scope.use_value(id) else {
            let comes_later = user.into_iter().chain(&open.nodes).any(|n| n.output.iter().any(|o| o == name));
            let name = name.to_owned();
            return Err(if comes_later { ImportProblem::Order(name) } else { ImportProblem::Undefined(name) });
        };
        if let Some(literal) = self.builder.body().as_literal(value.expr) {
            let is_small = self.builder.cx().literals.get(literal).stored_bytes() <= SMALL_CONSTANT;
            self.scope.use_constant(literal, id, is_small && !self.settings.constant_initializers);
        }
        Ok(value)
    }

    /// Ends a graph and returns its result and its metadata.
    fn end(&mut self, mut graph: OpenGraph) -> Result<(ExprId, AttrsId), ImportError> {
        let outputs = std::mem::take(&mut graph.outputs);
        let mut results = Vec::with_capacity(outputs.len());
        let mut named_constants = FxHashSet::default();
        let mut returned = vec![String::new(); outputs.len()];
        for (info, returned) in outputs.iter().zip(&mut returned) {
            let fail = |problem| ImportError::new(&graph.place, problem);
            if info.name().is_empty() {
                return Err(fail(ImportProblem::Nameless("an output")));
            }
            let Value { result: expr, origin, .. } = self.use_value(&graph, None, info.name()).map_err(fail)?;
            if self.builder.body().expr(expr) == Expr::None {
                return Err(fail(ImportProblem::Unsupported("an output that is left out")));
            }
            let name = self.builder.cx().names.intern(info.name());
            if self.builder.body().as_literal(expr).is_some() {
                match origin == name {
                    // Only the graph of a model returns a constant itself.
                    true if self.scope.is_outermost() => drop(named_constants.insert(name)),
                    true => {}
                    false => *returned = self.builder.cx().names.get(origin).to_owned(),
                }
            }
            results.push(expr);
            let found = self.builder.body().ty(expr);
            let stated = self.stated_type(info);
            // There may already be a warning at the node that computes the output.
            let is_wrong = graph.contradicted.contains(&name) || self.warn_of_contradiction(info, stated, found);
            let infos = self.more_than(info, found, is_wrong);
            graph.output_infos.extend(infos);
        }
        self.say_warnings(|| graph.place.clone());
        self.bind_initializers(&graph, &named_constants);
        let cx = self.builder.cx();
        graph.meta.push((keys::OUTPUTS, strs_attr(cx, outputs.iter().map(|o| o.name()))));
        graph.meta.extend(hints_attr(cx, &returned).map(|names| (keys::RETURNED, names)));
        for (key, infos) in [(keys::INFOS, graph.infos), (keys::OUTPUT_INFOS, graph.output_infos)] {
            if !infos.is_empty() {
                graph.meta.push((key, cx.attr(Attr::List(infos.into()))));
            }
        }
        let meta = cx.named_attrs(&graph.meta);
        self.scope.close();
        let tail = match results.as_slice() {
            [one] if !graph.is_tuple => *one,
            many => self.builder.tuple(many),
        };
        Ok((tail, meta))
    }

    /// Sets the metadata of a binding.
    pub(super) fn set_meta(&mut self, var: ExprId, meta: &[(&str, AttrId)]) {
        if !meta.is_empty() {
            let meta = self.builder.named_attrs(meta);
            self.builder.body().set_meta(var, Some(meta));
        }
    }

    /// Ends a subgraph, which becomes a block, or a `fn` bound in the graph around it.
    fn close(&mut self, graph: OpenGraph, outer: &mut OpenGraph) -> Result<(), ImportError> {
        let (place, label, is_impure) = (graph.place.clone(), graph.label.clone(), graph.is_impure);
        let is_block = graph.is_block;
        let (tail, meta) = self.end(graph)?;
        let fail = |e: anfora_ir::BuildError| ImportError::new(&place, ImportProblem::Other(e.to_string()));
        let subgraph = if is_block {
            Subgraph::Block(self.builder.close_block(tail).map_err(fail)?, meta)
        } else {
            let lambda = self.builder.close_lambda(tail).map_err(fail)?;
            Subgraph::Fn(self.bind_subgraph(&label, lambda, meta))
        };
        let pending = outer.pending.as_mut().expect("the node around a subgraph waits for it");
        pending.subgraphs.push((label, subgraph));
        pending.is_impure |= is_impure;
        Ok(())
    }

    /// Binds the `fn` of a subgraph.
    pub(super) fn bind_subgraph(&mut self, label: &str, lambda: ExprId, meta: AttrsId) -> ExprId {
        let var = self.builder.bind(label, lambda);
        self.builder.body().set_meta(var, Some(meta));
        var
    }

    fn finish(mut self, graph: OpenGraph) -> Result<Progress, Box<(ImportError, FunctionTable)>> {
        let (place, is_impure) = (graph.place.clone(), graph.is_impure);
        let (tail, meta) = match self.end(graph) {
            Ok(end) => end,
            Err(e) => return Err(Box::new((e, self.functions))),
        };
        match self.builder.finish(tail) {
            Ok(key) => {
                let finished = Finished { key, meta, nodes: self.nodes, is_impure };
                Ok(Progress::Finished { finished, table: self.functions })
            }
            Err(e) => {
                let error = ImportError::new(place, ImportProblem::Other(e.to_string()));
                Err(Box::new((error, self.functions)))
            }
        }
    }
}

/// Returns true if a node has subgraphs.
fn has_graphs(node: &NodeProto) -> bool {
    node.attribute.iter().any(|a| a.g.is_some() || !a.graphs.is_empty())
}

/// Returns the metadata of a graph: its name, doc string, properties and quantization.
fn graph_meta(
    cx: &mut anfora_ir::Context,
    name: Option<String>,
    doc: &Option<String>,
    metadata: &[StringStringEntryProto],
    quantization: &[TensorAnnotation],
) -> Vec<(&'static str, AttrId)> {
    let mut meta = Vec::new();
    meta.extend(name.filter(|n| !n.is_empty()).map(|n| (keys::GRAPH, cx.str_attr(&n))));
    meta.extend(doc_of(cx, doc, metadata));
    meta.extend(encoded_list(cx, quantization).map(|q| (keys::QUANTIZATION, q)));
    meta
}

/// Returns the attributes for a doc string and metadata properties.
pub(super) fn doc_of(
    cx: &mut anfora_ir::Context,
    doc: &Option<String>,
    metadata: &[StringStringEntryProto],
) -> Vec<(&'static str, AttrId)> {
    let mut meta = Vec::new();
    meta.extend(doc.as_ref().filter(|d| !d.is_empty()).map(|d| (keys::DOC, cx.str_attr(d))));
    meta.extend(entries_attr(cx, metadata).map(|m| (keys::METADATA, m)));
    meta
}

//! Import of graphs and of the graphs inside their nodes, with an explicit stack of unfinished
//! graphs.

use std::rc::Rc;

use anfora_ir::{
    Attr, AttrId, AttrsId, Context, Expr, ExprId, FunctionKey, LiteralId, NameId, TypeId, UnfinishedFunction, VarId,
};
use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};

use super::encoded::{EncodedGraph, EncodedNames};
use super::function_attributes::{Arguments, with_arguments};
use super::function_table::Request;
use super::importer::{ImportState, Importer, Input, OpenGraph, PendingNode, Subgraph};
use super::initializers::Initializers;
use super::values::NamedValue;
use crate::attributes::{doc_of, encoded_attr, encoded_list, hints_attr, strs_attr};
use crate::error::{ImportError, ImportProblem};
use crate::keys;
use crate::node_counts::NodeCounts;
use crate::proto::{GraphProto, NodeProto, StringStringEntryProto, TensorAnnotation, TensorProto, ValueInfoProto};
use crate::types::{Binding, refined, type_of};

/// A graph that became a function.
pub(super) struct Finished {
    pub(super) key: FunctionKey,
    /// The metadata of the graph.
    pub(super) meta: AttrsId,
    /// The number of nodes of the graph and of the graphs in it.
    pub(super) nodes: NodeCounts,
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
    /// A subgraph of a node, with its name in errors, and the types that its inputs have besides
    /// those that it declares.
    Subgraph(String, Vec<TypeId>),
    /// A branch, with its name in errors.
    Branch(String),
}

/// The progress of an import.
pub(super) enum Progress {
    /// The import is finished.
    Finished(Finished),
    /// The import is suspended: a call needs a function that is not imported yet.
    Needs(Box<Suspended>, Request),
}

/// A suspended import.
pub(super) struct Suspended {
    pub(super) unfinished: UnfinishedFunction,
    pub(super) state: ImportState,
}

/// The reason why an import stops.
enum Stop {
    /// The outermost graph ended.
    End(Box<OpenGraph>),
    /// A call needs a function that is not imported yet.
    Needs(Request),
}

impl Importer<'_, '_> {
    /// Begins the outermost graph.
    pub(super) fn begin(&mut self, graph: EncodedGraph, place: GraphPlace) -> Result<(), ImportError> {
        if let GraphPlace::Function { arguments, .. } = &place {
            self.state.is_in_function = true;
            self.state.arguments = Rc::clone(arguments);
        }
        let graph = self.open(graph, String::new(), place)?;
        // Many imports may be suspended at once, so the stack reserves no spare room.
        self.state.stack.reserve_exact(1);
        self.state.stack.push(graph);
        Ok(())
    }

    /// Imports nodes up to the end, or up to a node that needs a function.
    pub(super) fn run(mut self) -> Result<Progress, ImportError> {
        match self.advance()? {
            Stop::End(graph) => Ok(Progress::Finished(self.finish(*graph)?)),
            Stop::Needs(request) => Ok(Progress::Needs(Box::new(self.suspend()), request)),
        }
    }

    /// Suspends the import.
    pub(super) fn suspend(self) -> Suspended {
        Suspended { unfinished: self.builder.set_aside(), state: self.state }
    }

    /// Imports nodes until the outermost graph ends or a call needs a function. A node with
    /// subgraphs waits in its graph (`pending`) while these are on the stack.
    fn advance(&mut self) -> Result<Stop, ImportError> {
        let mut stack = std::mem::take(&mut self.state.stack);
        loop {
            let graph = stack.last_mut().expect("the outermost graph returns when it is finished");
            // Take the waiting node or the next one; if there is none, close the graph.
            let mut pending = match graph.pending.take() {
                Some(pending) => pending,
                None => match graph
                    .next_node(&self.builder.cx().names, &mut self.spare)
                    .map_err(|e| ImportError::new(&graph.place, e))?
                {
                    Some((node, names)) => {
                        graph.taken += 1;
                        if graph.taken > graph.kept_initializers {
                            self.state.nodes.add(&node);
                        }
                        let node = with_arguments(node, &self.state.arguments, &mut self.functions.room)
                            .map_err(|p| ImportError::new(&graph.place, p))?;
                        match has_graphs(&node) {
                            true => {
                                let branches = self.may_be_if(&node);
                                PendingNode { branches, ..PendingNode::new(node, names) }
                            }
                            false => PendingNode::new(node, names),
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
                    let parameters = self.parameters_of_subgraphs(&pending.node);
                    graph.pending = Some(pending);
                    let inner = EncodedGraph::decode(&bytes, self.settings.has_bad_text);
                    let inner = inner.map_err(|e| ImportError::new(&place, e))?;
                    let place = match pending_branches {
                        true => GraphPlace::Branch(place),
                        false => GraphPlace::Subgraph(place, parameters),
                    };
                    let inner = self.open(inner, label, place)?;
                    stack.push(inner);
                }
                // All subgraphs are finished: import the node, or suspend until its function is
                // imported.
                None => {
                    let needed = self.import_node(graph, &mut pending);
                    let needed = needed.map_err(|p| ImportError::new(graph.node_place(&pending.node), p))?;
                    self.say_warnings(|| graph.node_place(&pending.node));
                    if let Some(request) = needed {
                        graph.pending = Some(pending);
                        self.state.stack = stack;
                        return Ok(Stop::Needs(request));
                    }
                    self.spare = pending.node;
                }
            }
        }
    }

    /// Begins a graph and defines its parameters and initializers.
    fn open(&mut self, mut graph: EncodedGraph, label: String, place: GraphPlace) -> Result<OpenGraph, ImportError> {
        let filled = match self.settings.files {
            Some(files) => graph
                .decode_nodes()
                .map_err(ImportProblem::from)
                .and_then(|()| files.borrow_mut().fill_graph(&mut graph.rest)),
            None => Ok(FxHashMap::default()),
        };
        let GraphProto {
            mut node,
            name,
            initializer,
            doc_string,
            input,
            output,
            value_info,
            quantization_annotation,
            sparse_initializer,
            metadata_props,
        } = graph.rest;
        let is_outermost = matches!(place, GraphPlace::Main | GraphPlace::Function { .. });
        let is_branch = matches!(place, GraphPlace::Branch(_));
        let mut known = Vec::new();
        let (place, given, is_tuple) = match place {
            GraphPlace::Main => (format!("the graph `{}`", name.as_deref().unwrap_or_default()), None, false),
            GraphPlace::Function { name, inputs, is_tuple, arguments: _ } => {
                (format!("the function `{name}`"), Some(inputs), is_tuple)
            }
            GraphPlace::Subgraph(place, types) => {
                known = types;
                (place, None, false)
            }
            GraphPlace::Branch(place) => (place, None, false),
        };
        let fail = |problem: ImportProblem| ImportError::new(&place, problem);
        let mut stored = filled.map_err(fail)?;

        // Initializers: parameters with a default value, literals, and nodes for the others.
        self.state.scope.open();
        let mut initializers = Initializers::read(self.builder.cx(), initializer, &mut stored).map_err(fail)?;
        let are_constants = self.settings.constant_initializers;
        let kept = initializers.take_kept_nodes(sparse_initializer, &input, are_constants).map_err(fail)?;
        let kept_initializers = kept.len();
        node.splice(0..0, kept);
        let Initializers { literals, tensors, of_no_literal: _ } = initializers;
        let mut open = OpenGraph {
            label,
            kept_initializers,
            initializers: literals,
            meta: graph_meta(self.builder.cx(), name, &doc_string, &metadata_props, &quantization_annotation),
            is_tuple,
            ..OpenGraph::default()
        };
        // Read the inputs, and the types that the file states for other values.
        let params = match given {
            Some(given) => self.read_function_inputs(&mut open, input, given).map_err(fail)?,
            None => self.read_inputs(&mut open, input, &tensors, (is_outermost, &known)).map_err(fail)?,
        };
        open.is_block = is_branch && params.is_empty();
        match open.is_block {
            true => self.builder.open_block(),
            false => self.define_inputs(&mut open, params, is_outermost).map_err(fail)?,
        }
        for initializer in &open.initializers {
            let expr = self.builder.editor().literal_id(initializer.literal);
            self.define(initializer.name, expr).map_err(fail)?;
        }
        self.read_stated(&mut open, value_info, &output).map_err(fail)?;

        // The nodes, and the names that they and the outputs use.
        self.read_names(&mut open, (&node, &graph.nodes), &output);
        node.reverse();
        open.decoded = node;
        open.encoded = graph.nodes.into_iter();
        open.outputs = output;
        open.place = place;
        self.say_warnings(|| open.place.clone());
        Ok(open)
    }

    /// Reads the names of the inputs and outputs of the nodes, and notes those that the nodes and
    /// the graph use.
    fn read_names(
        &mut self,
        open: &mut OpenGraph,
        (decoded, encoded): (&[NodeProto], &[Bytes]),
        outputs: &[ValueInfoProto],
    ) {
        let names = &mut self.builder.cx().names;
        let mut intern = |name: &str| (!name.is_empty()).then(|| names.intern(name));
        let mut all = Vec::with_capacity(3 * encoded.len());
        open.uses.reserve(encoded.len());
        for node in decoded {
            for name in &node.input {
                let id = intern(name);
                open.uses.extend(id);
                all.push(id);
            }
            all.extend(node.output.iter().map(|name| intern(name)));
            open.has_subgraphs |= has_graphs(node);
        }
        let mut of_node = EncodedNames::default();
        for node in encoded {
            of_node.read(node);
            for name in &of_node.inputs {
                let id = intern(name);
                open.uses.extend(id);
                all.push(id);
            }
            all.extend(of_node.outputs.iter().map(|name| intern(name)));
            open.has_subgraphs |= of_node.has_graphs;
        }
        open.uses.extend(outputs.iter().map(|o| names.intern(o.name())));
        open.names = all;
    }

    /// Returns the inputs that are parameters. Checks the inputs that are constants, and removes
    /// default values from the initializers. `known` are types that the inputs of a subgraph have
    /// besides those that it declares.
    fn read_inputs(
        &mut self,
        open: &mut OpenGraph,
        inputs: Vec<ValueInfoProto>,
        tensors: &FxHashMap<NameId, TensorProto>,
        (is_main, known): (bool, &[TypeId]),
    ) -> Result<Vec<(NameId, TypeId)>, ImportProblem> {
        let constants: FxHashMap<NameId, LiteralId> = open.initializers.iter().map(|i| (i.name, i.literal)).collect();
        let binding = if is_main { Binding::Binds } else { Binding::Uses };
        let mut seen = FxHashSet::default();
        let mut params = Vec::new();
        let mut defaults = Vec::new();
        for (i, info) in inputs.into_iter().enumerate() {
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
                Some(ty) => type_of(cx, &mut self.state.dims, ty, if is_constant { Binding::Uses } else { binding }),
                None => cx.types.any(),
            };
            let stated = known.get(i).map_or(stated, |&known| refined(cx, stated, known));
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
                Input::Param(Some(ty)) => self.state.dims.own_type(cx, ty),
                Input::Param(None) => match &info.r#type {
                    Some(ty) => type_of(cx, &mut self.state.dims, ty, Binding::Binds),
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
        if is_main && !self.state.dims.renamed.is_empty() {
            let cx = self.builder.cx();
            let pairs = self.state.dims.renamed.iter();
            let pairs: Box<[AttrId]> =
                pairs.map(|(here, there)| strs_attr(cx, [here.as_str(), there.as_str()].into_iter())).collect();
            open.meta.push((keys::DIMENSIONS, cx.attr(Attr::List(pairs))));
        }
        Ok(())
    }

    /// Ends a graph and returns its result and its metadata.
    fn end(&mut self, mut graph: OpenGraph) -> Result<(ExprId, AttrsId), ImportError> {
        let outputs = std::mem::take(&mut graph.outputs);
        let mut results = Vec::with_capacity(outputs.len());
        let mut named_constants = FxHashSet::default();
        let mut returned = vec![None; outputs.len()];
        for (info, returned) in outputs.iter().zip(&mut returned) {
            let fail = |problem| ImportError::new(&graph.place, problem);
            if info.name().is_empty() {
                return Err(fail(ImportProblem::Nameless("an output")));
            }
            let name = self.builder.cx().names.intern(info.name());
            let NamedValue { result: expr, origin, .. } = self.use_value(&graph, None, name).map_err(fail)?;
            if self.builder.body().expr(expr) == Expr::None {
                return Err(fail(ImportProblem::Unsupported("an omitted output")));
            }
            if self.builder.body().as_literal(expr).is_some() {
                match origin == name {
                    // Only the graph of a model returns a constant itself.
                    true if self.state.scope.is_outermost() => drop(named_constants.insert(name)),
                    true => {}
                    false => *returned = Some(origin),
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
        self.state.scope.close();
        let tail = match results.as_slice() {
            [one] if !graph.is_tuple => *one,
            many => self.builder.tuple(many),
        };
        Ok((tail, meta))
    }

    /// Binds the initializers whose uses do not preserve everything about them: those that are
    /// unused, that are equal to another initializer, that have a doc string or metadata, or that
    /// are outputs.
    fn bind_initializers(&mut self, graph: &OpenGraph, named_constants: &FxHashSet<NameId>) {
        for initializer in &graph.initializers {
            let is_used = self.state.scope.get(initializer.name).is_some_and(|v| v.is_used);
            let is_remembered = self.state.scope.is_first_name(initializer.literal, initializer.name);
            if is_used && is_remembered && initializer.meta.is_empty() && !named_constants.contains(&initializer.name) {
                continue;
            }
            let value = self.builder.editor().literal_id(initializer.literal);
            let var = self.bind(Some(initializer.name), value);
            self.set_meta(var, &initializer.meta);
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

    fn finish(mut self, graph: OpenGraph) -> Result<Finished, ImportError> {
        let (place, is_impure) = (graph.place.clone(), graph.is_impure);
        let (tail, meta) = self.end(graph)?;
        let key = self.builder.finish(tail);
        let key = key.map_err(|e| ImportError::new(place, ImportProblem::Other(e.to_string())))?;
        Ok(Finished { key, meta, nodes: self.state.nodes, is_impure })
    }
}

/// Returns true if a node has subgraphs.
fn has_graphs(node: &NodeProto) -> bool {
    node.attribute.iter().any(|a| a.g.is_some() || !a.graphs.is_empty())
}

/// Returns the metadata of a graph: its name, doc string, properties and quantization.
fn graph_meta(
    cx: &mut Context,
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

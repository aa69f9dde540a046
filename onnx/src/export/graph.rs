//! Conversion of blocks to graphs, with an explicit stack of unfinished graphs.

use std::cell::OnceCell;

use anfora_ir::{
    AttrsId, Body, Context, Expr, ExprId, Function, GlobalId, Literal, LiteralId, NameId, OpId, SymbolId, TypeId, VarId,
};
use bytes::Bytes;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::conditions::Conditions;
use super::constants::{Constants, FunctionConstant, MAX_FILE};
use super::data::DataFile;
use super::graph_meta::GraphMeta;
use super::names::{Name, Names};
use super::nodes::{Nodes, WrittenGraph};
use super::options::{ExportOptions, GraphKind, Versions};
use super::slots::{Block, Fault, Slot, Slots, ValueId};
use crate::attributes::{entries_of, list, str, strs};
use crate::convert::SymbolPlace;
use crate::domains::is_standard;
use crate::error::ExportProblem;
use crate::keys;
use crate::node_counts::NodeCounts;
use crate::proto::{NodeProto, StringStringEntryProto, TypeProto, ValueInfoProto};
use crate::types::SymbolNames;

/// The deepest nesting of graphs in nodes that readers accept.
const MAX_GRAPHS: usize = 33;
/// Several nodes may share a graph, which is then written for each. The repeated copies may take
/// this many bytes for each node of the function.
const REPEATED_BY_NODE: u64 = 1 << 10;
/// Repeated copies of graphs may take this many bytes even in small functions.
const REPEATED: u64 = 64 << 20;

/// A graph that was written.
pub(super) struct ExportedGraph {
    pub(super) graph: WrittenGraph,
    /// The domains of the nodes, in order of appearance.
    pub(super) domains: Vec<String>,
    /// The depth to which graphs nest.
    pub(super) depth: usize,
    /// The number of nodes of the graph and of the graphs in it.
    pub(super) nodes: NodeCounts,
    /// The constants that calls pass to the function.
    pub(super) given: Vec<FunctionConstant>,
    /// The constants that are in another file.
    pub(super) data: Option<DataFile>,
    /// The initializers whose elements are copied when the model is written, by name.
    pub(super) copied: FxHashMap<String, Literal>,
}

/// The functions that are written, by their globals.
pub(super) type Functions = FxHashMap<GlobalId, Written>;

/// The domain, name and overload of a function of the model.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct FileName {
    pub(super) domain: String,
    pub(super) name: String,
    pub(super) overload: String,
}

impl FileName {
    /// Returns the name of a function in the domain of this crate.
    pub(super) fn own(name: &str) -> FileName {
        let name = if name.is_empty() { "function" } else { name };
        FileName { domain: keys::OWN_DOMAIN.to_owned(), name: name.to_owned(), overload: String::new() }
    }
}

/// A function that was written.
pub(super) struct Written {
    pub(super) name: FileName,
    /// The constants that calls pass after the arguments.
    pub(super) given: Vec<FunctionConstant>,
    /// The depth to which its graphs nest.
    pub(super) depth: usize,
}

/// The state of an export.
pub(super) struct Exporter<'m> {
    pub(super) cx: &'m Context,
    pub(super) body: &'m Body,
    pub(super) kind: GraphKind,
    /// The functions already written, by their globals.
    pub(super) functions: &'m Functions,
    /// The constants that calls pass to the current function; set when the function is finished.
    pub(super) given: Vec<FunctionConstant>,
    pub(super) options: &'m ExportOptions,
    pub(super) slots: Slots<'m>,
    /// For each value, true if a node takes it or a graph returns it; computed on first use.
    pub(super) consumed: OnceCell<Vec<bool>>,
    /// The parameters that contain symbols, by symbol; computed on first use.
    pub(super) symbol_places: OnceCell<FxHashMap<SymbolId, (ExprId, SymbolPlace)>>,
    pub(super) conditions: Conditions,
    pub(super) names: Names<'m>,
    pub(super) constants: Constants<'m>,
    pub(super) value_names: Vec<Option<Name<'m>>>,
    /// For each value, the first version of the operators in which `Identity` takes it; `None` if
    /// that is the first version of all.
    pub(super) identity_since: Vec<Option<i64>>,
    pub(super) symbols: SymbolNames,
    pub(super) versions: &'m Versions,
    /// Results of nodes of open graphs that reshape a constant, by the name under which uses of the
    /// constant refer to them.
    pub(super) views: FxHashMap<NameId, Vec<View>>,
    pub(super) domains: Vec<String>,
    pub(super) seen_domains: FxHashSet<String>,
    /// The approximate number of bytes written so far.
    pub(super) size: u64,
    /// The inner graphs already written.
    pub(super) written: FxHashSet<Block>,
    /// The bytes of repeated copies of graphs.
    pub(super) repeated_bytes: u64,
    /// The number of nodes so far.
    pub(super) nodes: NodeCounts,
}

/// The elements of a constant in another shape, as the result of a node.
pub(super) struct View {
    pub(super) literal: Literal,
    /// The id of the literal, once a use of it was found.
    pub(super) id: Option<LiteralId>,
    pub(super) value: ValueId,
}

/// An unfinished graph.
pub(super) struct UnfinishedGraph<'m> {
    pub(super) block: Block,
    /// The metadata of the graph.
    pub(super) meta: GraphMeta,
    pub(super) nodes: Nodes,
    pub(super) inputs: Vec<ValueInfoProto>,
    pub(super) outputs: Vec<Output<'m>>,
    /// The requested names of outputs whose names no file states.
    pub(super) output_names: FxHashSet<String>,
    pub(super) infos: Vec<ValueInfoProto>,
    /// The next expression: a Let or the tail.
    pub(super) at: ExprId,
    pub(super) pending: Option<PendingCall>,
    /// The constants that are bound under a name of their own.
    pub(super) bound_constants: FxHashMap<(LiteralId, NameId), Option<VarId>>,
    /// The keys of its entries in [`Exporter::views`].
    pub(super) views: Vec<NameId>,
    pub(super) is_tail_done: bool,
}

/// A result of a graph.
pub(super) struct Output<'m> {
    pub(super) slot: Slot,
    pub(super) name: Name<'m>,
    /// The name of the output in the file.
    pub(super) wish: String,
    /// If it is a constant, the name of the constant in the file.
    pub(super) hint: Option<String>,
    pub(super) ty: InfoType,
    /// True if the value itself has the name, so that no node has to copy it.
    pub(super) is_direct: bool,
}

/// The type of an input or output.
pub(super) enum InfoType {
    Of(TypeId),
    Message(TypeProto),
}

/// A call with graphs as operands, or an `if`.
pub(super) struct PendingCall {
    call: ExprId,
    var: Option<VarId>,
    /// The blocks that are not written yet, in reverse order.
    waiting: Vec<Block>,
    graphs: Vec<Bytes>,
}

/// A call of an operator.
#[derive(Copy, Clone)]
pub(super) struct Call<'m> {
    pub(super) expr: ExprId,
    pub(super) op: OpId,
    pub(super) operands: &'m [ExprId],
    pub(super) attrs: AttrsId,
    pub(super) ty: TypeId,
    /// The metadata of the binding.
    pub(super) meta: Option<AttrsId>,
}

/// Writes a function as a graph.
pub(super) fn export_graph<'m>(
    cx: &'m Context,
    (function, kind, slots): (&'m Function, GraphKind, Slots<'m>),
    functions: &'m Functions,
    options: &'m ExportOptions,
    versions: &'m Versions,
) -> Result<ExportedGraph, Fault> {
    let body = &function.body;
    let mut exporter = Exporter {
        cx,
        body,
        kind,
        functions,
        given: Vec::new(),
        options,
        value_names: vec![None; slots.len()],
        identity_since: vec![None; slots.len()],
        slots,
        consumed: OnceCell::new(),
        symbol_places: OnceCell::new(),
        conditions: Conditions::of(cx, body),
        names: Names::new(&cx.names),
        constants: Constants::new(options, versions, kind).map_err(|p| (None, p))?,
        symbols: symbol_names(cx, function.meta).map_err(|p| (None, p))?,
        versions,
        views: FxHashMap::default(),
        domains: Vec::new(),
        seen_domains: FxHashSet::default(),
        size: 0,
        written: FxHashSet::default(),
        repeated_bytes: 0,
        nodes: NodeCounts::default(),
    };
    exporter.run(function)
}

fn symbol_names(cx: &Context, meta: AttrsId) -> Result<SymbolNames, ExportProblem> {
    let entries = GraphMeta::of(meta).read(cx, keys::DIMENSIONS, entries_of)?.unwrap_or_default();
    Ok(entries.iter().map(|e| (e.key().to_owned(), e.value().to_owned())).collect())
}

impl<'m> Exporter<'m> {
    fn run(&mut self, function: &Function) -> Result<ExportedGraph, Fault> {
        let mut depth = 1;
        let mut stack =
            vec![self.open_block(Block::Function, GraphMeta::of(function.meta), None).map_err(|p| (None, p))?];
        loop {
            let graph = stack.last_mut().expect("the outermost graph returns when it is finished");
            // A call waits for its subgraphs: open the next one, or write the node.
            if let Some(mut pending) = graph.pending.take() {
                let var = pending.var;
                match pending.waiting.pop() {
                    Some(block) => {
                        let call = pending.call;
                        graph.pending = Some(pending);
                        if stack.iter().any(|g| g.block == block) {
                            let what = "a `fn` that is its own subgraph".to_owned();
                            return Err((var, ExportProblem::Unsupported(what)));
                        }
                        if stack.len() == MAX_GRAPHS {
                            return Err((var, ExportProblem::TooDeep(MAX_GRAPHS)));
                        }
                        let meta = self.block_meta(block, var);
                        let inner = self.open_block(block, meta, Some(call)).map_err(|p| (var, p))?;
                        stack.push(inner);
                        depth = depth.max(stack.len());
                    }
                    None => {
                        let node = match self.body.expr(pending.call) {
                            Expr::If { .. } => self.if_node(pending.call, var, pending.graphs),
                            _ => self.opaque_node(self.call(pending.call, var), pending.graphs),
                        };
                        node.and_then(|node| self.add_nodes(graph, vec![node])).map_err(|p| (var, p))?;
                    }
                }
                continue;
            }
            // Go on to the next value, or close the graph.
            let (value, var) = match self.body.expr(graph.at) {
                Expr::Let { var, value, body, .. } => {
                    graph.at = body;
                    (value, Some(var))
                }
                _ if !graph.is_tail_done => {
                    graph.is_tail_done = true;
                    (graph.at, None)
                }
                _ => {
                    let finished = stack.pop().expect("it is the last one");
                    let block = finished.block;
                    let finished = self.close(finished).map_err(|p| (None, p))?;
                    let Some(outer) = stack.last_mut() else {
                        let domains = std::mem::take(&mut self.domains);
                        let given = std::mem::take(&mut self.given);
                        let (nodes, data) = (std::mem::take(&mut self.nodes), self.constants.take_data());
                        let copied = self.constants.take_copied();
                        return Ok(ExportedGraph { graph: finished, domains, depth, nodes, given, data, copied });
                    };
                    self.grow(finished.encoded_len()).map_err(|p| (None, p))?;
                    let pending = outer.pending.as_mut().expect("the call around a graph waits for it");
                    if self.is_repeated_too_often(block, finished.encoded_len()) {
                        return Err((pending.var, self.too_many_repetitions(block, &stack)));
                    }
                    pending.graphs.push(Bytes::from(finished.into_bytes()));
                    continue;
                }
            };
            // Write the node of the value, or let it wait for its subgraphs.
            match self.body.expr(value) {
                Expr::CallOp { .. } if self.conditions.contains(var) => {}
                Expr::CallOp { .. } => self.begin_call(graph, value, var).map_err(|p| (var, p))?,
                Expr::If { .. } => {
                    let waiting = vec![Block::Else(value), Block::Then(value)];
                    graph.pending = Some(PendingCall { call: value, var, waiting, graphs: Vec::with_capacity(2) });
                }
                Expr::Call { .. } => {
                    let node = self.function_call(value, var);
                    node.and_then(|node| self.add_nodes(graph, vec![node])).map_err(|p| (var, p))?;
                }
                _ => {}
            }
        }
    }

    fn call(&self, expr: ExprId, var: Option<VarId>) -> Call<'m> {
        let body: &'m Body = self.body;
        let meta = var.and_then(|v| body.meta(v.expr()));
        match body.expr(expr) {
            Expr::CallOp { op, operands, attrs } => {
                Call { expr, op, operands: body.operands(operands), attrs, ty: body.ty(expr), meta }
            }
            other => unreachable!("{other:?} is not a call"),
        }
    }

    /// Writes a call. If some of its operands are graphs, these are written first and the call
    /// waits for them.
    fn begin_call(
        &mut self,
        graph: &mut UnfinishedGraph<'m>,
        expr: ExprId,
        var: Option<VarId>,
    ) -> Result<(), ExportProblem> {
        let call = self.call(expr, var);
        let is_opaque = self.cx.ops.is_opaque(call.op);
        if !is_opaque {
            let nodes = self.native_nodes(call)?;
            return self.add_nodes(graph, nodes);
        }
        let subgraphs = match self.cx.find_attr(call.attrs, keys::SUBGRAPHS) {
            Some(value) => list(self.cx, value).ok_or(ExportProblem::Damaged(keys::SUBGRAPHS))?.len(),
            None => 0,
        };
        let first = call.operands.len().checked_sub(subgraphs).ok_or(ExportProblem::Damaged(keys::SUBGRAPHS))?;
        let mut waiting = Vec::with_capacity(subgraphs);
        for &operand in &call.operands[first..] {
            match self.slots.of_atom(operand)? {
                Slot::Lambda(lambda) => waiting.push(Block::Lambda(lambda)),
                Slot::Global(_) | Slot::Other => {
                    return Err(ExportProblem::Pass { what: "global functions as values", pass: "InlineFunctions" });
                }
                _ => return Err(ExportProblem::Unsupported("a subgraph that is not a `fn`".to_owned())),
            }
        }
        waiting.reverse();
        graph.pending = Some(PendingCall { call: expr, var, waiting, graphs: Vec::new() });
        Ok(())
    }

    pub(super) fn add_nodes(
        &mut self,
        graph: &mut UnfinishedGraph<'m>,
        nodes: Vec<NodeProto>,
    ) -> Result<(), ExportProblem> {
        let has_initializers = self.has_initializers(graph.block);
        for mut node in nodes {
            prune_devices(&mut node);
            let len = node.encoded_len();
            self.grow(len)?;
            let domain = node.domain();
            if !is_standard(domain) && !self.seen_domains.contains(domain) {
                self.seen_domains.insert(domain.to_owned());
                self.domains.push(domain.to_owned());
            }
            graph.nodes.push(node, len, has_initializers, &mut self.nodes);
        }
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ExportProblem> {
        self.size += bytes as u64;
        if self.size > MAX_FILE { Err(ExportProblem::TooLarge) } else { Ok(()) }
    }

    /// Returns true if the repeated copies of graphs exceed the limit after this graph of `bytes`
    /// bytes.
    fn is_repeated_too_often(&mut self, block: Block, bytes: usize) -> bool {
        if self.written.insert(block) {
            return false;
        }
        self.repeated_bytes += bytes as u64;
        self.repeated_bytes > REPEATED_BY_NODE.saturating_mul(self.body.len() as u64).max(REPEATED)
    }

    /// Returns the error for a graph that is written too often. It names the `fn` that contains the
    /// graph.
    fn too_many_repetitions(&self, block: Block, around: &[UnfinishedGraph<'_>]) -> ExportProblem {
        let mut blocks = std::iter::once(block).chain(around.iter().rev().map(|g| g.block));
        let lambda = blocks.find_map(|b| match b {
            Block::Lambda(lambda) => Some(lambda),
            _ => None,
        });
        let bindings = self.body.exprs().filter_map(|(_, expr)| match expr {
            Expr::Let { var, value, .. } if Some(value) == lambda => Some(var),
            _ => None,
        });
        let name = bindings.filter_map(|var| self.body.var_name(var)).next();
        ExportProblem::Repeated(name.map_or_else(|| "fn".to_owned(), |n| format!("%{}", self.cx.names.get(n))))
    }

    /// Returns true if the graph is that of the model.
    pub(super) fn is_main(&self, block: Block) -> bool {
        block == Block::Function && self.kind == GraphKind::Main
    }

    /// Returns true if the graph of a block may have initializers.
    pub(super) fn has_initializers(&self, block: Block) -> bool {
        block != Block::Function || self.is_main(block)
    }

    /// Returns the metadata of a block. `var` is bound to the operator that the block belongs to.
    fn block_meta(&self, block: Block, var: Option<VarId>) -> GraphMeta {
        let none = self.cx.attrs.empty();
        let of_binding = || var.and_then(|v| self.body.meta(v.expr())).unwrap_or(none);
        match block {
            Block::Function => GraphMeta::of(none),
            Block::Lambda(lambda) => GraphMeta::of(self.slots.lambda_meta(lambda).unwrap_or(none)),
            Block::Then(_) => GraphMeta::of_branch(of_binding(), keys::THEN),
            Block::Else(_) => GraphMeta::of_branch(of_binding(), keys::ELSE),
        }
    }

    /// Begins the graph of a block. `around` is the call that contains it.
    fn open_block(
        &mut self,
        block: Block,
        meta: GraphMeta,
        around: Option<ExprId>,
    ) -> Result<UnfinishedGraph<'m>, ExportProblem> {
        let start = match block {
            Block::Function => self.body.root(),
            Block::Lambda(e) | Block::Then(e) | Block::Else(e) => match (block, self.body.expr(e)) {
                (Block::Lambda(_), Expr::Lambda { body, .. }) => body,
                (Block::Then(_), Expr::If { then_block, .. }) => then_block,
                (Block::Else(_), Expr::If { else_block, .. }) => else_block,
                _ => return Err(ExportProblem::Unsupported("a subgraph that is not a `fn`".to_owned())),
            },
        };
        self.open(block, meta, start, around)
    }

    /// Returns the doc string in the metadata `meta`.
    pub(super) fn doc(&self, meta: GraphMeta) -> Result<Option<String>, ExportProblem> {
        Ok(meta.read(self.cx, keys::DOC, str)?.map(str::to_owned))
    }

    /// Returns the metadata properties in `meta`.
    pub(super) fn metadata(&self, meta: GraphMeta) -> Result<Vec<StringStringEntryProto>, ExportProblem> {
        Ok(meta.read(self.cx, keys::METADATA, entries_of)?.unwrap_or_default())
    }

    /// Returns the list of names in the metadata `meta`, if there is one.
    pub(super) fn names_in(&self, meta: GraphMeta, key: &'static str) -> Result<Option<Vec<&'m str>>, ExportProblem> {
        meta.read(self.cx, key, |cx, value| strs(cx, list(cx, value)?))
    }

    /// Returns the name of a slot; the empty string for an operand that is left out. `hint` is its
    /// name in the file.
    pub(super) fn slot_name(&mut self, slot: Slot, hint: Option<&str>) -> Result<String, ExportProblem> {
        match slot {
            Slot::Value(v) => self.value_names[v.index()]
                .as_deref()
                .map(str::to_owned)
                .ok_or_else(|| ExportProblem::Unsupported("a value that is used outside its block".to_owned())),
            Slot::Literal(id, var) => {
                let cx = self.cx;
                let hint = hint.filter(|h| !h.is_empty()).and_then(|h| Some((cx.names.find(h)?, h)));
                if let Some(v) = hint.and_then(|(hint, _)| self.view(id, hint)) {
                    return self.slot_name(Slot::Value(v), None);
                }
                let literal = (id, cx.literals.get(id));
                Ok(self.constants.name(&mut self.names, literal, var, hint)?.to_string())
            }
            Slot::None => Ok(String::new()),
            Slot::Tuple(..) => Err(ExportProblem::Unsupported("a tuple as an operand".to_owned())),
            Slot::Lambda(_) => Err(ExportProblem::Pass { what: "a `fn` as an operand", pass: "LambdaLifting" }),
            Slot::Global(_) | Slot::Other => {
                Err(ExportProblem::Pass { what: "global functions as values", pass: "InlineFunctions" })
            }
        }
    }
}

/// Removes device annotations about values that the node does not use any more.
fn prune_devices(node: &mut NodeProto) {
    let NodeProto { input, output, device_configurations, .. } = node;
    for configuration in device_configurations {
        configuration.sharding_spec.retain(|s| input.iter().chain(&*output).any(|n| n == s.tensor_name()));
    }
}

//! Blocks to graphs, from an explicit stack of graphs that are not finished.

use std::cell::OnceCell;
use std::rc::Rc;

use anfora_ir::{
    AttrsId, Body, Context, Expr, ExprId, Function, Literal, LiteralId, Module, NameId, OpId, SymbolId, TypeId, VarId,
};
use bytes::Bytes;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::ExportOptions;
use super::conditions::Conditions;
use super::constants::{Constants, FunctionConstant, MAX_FILE};
use super::data::DataFile;
use super::functions::Functions;
use super::graph_meta::GraphMeta;
use super::names::Names;
use super::node::SymbolPlace;
use super::slots::{Block, Fault, Slot, Slots, ValueId};
use crate::attributes::{entries_of, list, str};
use crate::error::ExportProblem;
use crate::keys;
use crate::opaque::is_standard;
use crate::proto::{GraphProto, ModelProto, NodeProto, StringStringEntryProto, TypeProto, ValueInfoProto};
use crate::types::SymbolNames;

/// Readers take no deeper nesting of graphs in nodes.
const MAX_GRAPHS: usize = 33;
/// How many bytes graphs may take that are written again, since several nodes have them: for each node of the function, and in any case.
const REPEATED_BY_NODE: u64 = 1 << 10;
const REPEATED: u64 = 64 << 20;

/// A graph that is written.
pub(super) struct ExportedGraph {
    pub(super) graph: GraphProto,
    /// Domains of the nodes, in order of appearance.
    pub(super) domains: Vec<String>,
    /// How deep graphs nest.
    pub(super) depth: usize,
    /// Nodes of the graph and of the graphs in it.
    pub(super) nodes: usize,
    /// The constants that a function is given.
    pub(super) given: Vec<FunctionConstant>,
    /// The constants that are in another file.
    pub(super) data: Option<DataFile>,
}

/// The versions that a model says.
pub(super) struct Versions {
    /// Those of the operators, by domain; the standard one is the empty one.
    opsets: FxHashMap<String, i64>,
    /// Before version 4 of the format every initializer is an input.
    pub(super) initializers_are_inputs: bool,
    /// Whether the module says them, as one that was read from a file does.
    pub(super) are_stated: bool,
}

impl Versions {
    pub(super) fn of(module: &Module, model: &ModelProto) -> Versions {
        let domain = |d: &str| if is_standard(d) { String::new() } else { d.to_owned() };
        Versions {
            opsets: model.opset_import.iter().map(|o| (domain(o.domain()), o.version())).collect(),
            initializers_are_inputs: model.ir_version.is_some_and(|v| v < 4),
            are_stated: module.cx.find_attr(module.attrs(), keys::OPSETS).is_some(),
        }
    }

    /// The version of a domain's operators.
    pub(super) fn opset(&self, domain: &str) -> i64 {
        version_of(&self.opsets, domain)
    }
}

/// The version of a domain's operators, among those that a model says. One that it does not say is the first.
pub(super) fn version_of(versions: &FxHashMap<String, i64>, domain: &str) -> i64 {
    let domain = if is_standard(domain) { "" } else { domain };
    versions.get(domain).copied().unwrap_or(1)
}

/// What the outermost graph of an export becomes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum GraphKind {
    /// The graph of the model.
    Main,
    /// A function of the model in our own domain: every call gives its constants.
    Function,
    /// A function that was one of a file: its constants are nodes.
    FileFunction,
}

/// An export under way.
pub(super) struct Exporter<'m> {
    pub(super) cx: &'m Context,
    pub(super) body: &'m Body,
    pub(super) kind: GraphKind,
    /// The functions that are written, by their globals.
    pub(super) functions: &'m Functions,
    /// The constants that the function in hand is given, once it is finished.
    pub(super) given: Vec<FunctionConstant>,
    pub(super) options: &'m ExportOptions,
    pub(super) slots: Slots<'m>,
    /// For each value, whether anything takes it, once that was asked.
    pub(super) consumed: OnceCell<Vec<bool>>,
    /// The parameters that have symbols, by symbol, once that was asked.
    pub(super) symbol_places: OnceCell<FxHashMap<SymbolId, (ExprId, SymbolPlace)>>,
    pub(super) conditions: Conditions,
    pub(super) names: Names,
    pub(super) constants: Constants,
    pub(super) value_names: Vec<Option<Rc<str>>>,
    /// The first version of the operators in which `Identity` takes a value, where that is not the first of all.
    pub(super) identity_since: Vec<Option<i64>>,
    pub(super) symbols: SymbolNames,
    pub(super) versions: &'m Versions,
    /// Constants that a node of an open graph makes of another one, by the name that uses of them remember.
    pub(super) views: FxHashMap<NameId, Vec<View>>,
    pub(super) domains: Vec<String>,
    pub(super) seen_domains: FxHashSet<String>,
    /// Bytes written so far, about.
    pub(super) size: u64,
    /// Inner graphs that are written.
    pub(super) written: FxHashSet<Block>,
    /// Bytes of graphs that were written already.
    pub(super) repeated_bytes: u64,
    /// Nodes of finished graphs.
    pub(super) nodes: usize,
}

/// The elements of a constant under another shape, as a node gives them.
pub(super) struct View {
    pub(super) literal: Literal,
    /// The same, once a use of it was seen.
    pub(super) id: Option<LiteralId>,
    pub(super) value: ValueId,
}

/// A graph that is not finished.
pub(super) struct OpenGraph {
    pub(super) block: Block,
    /// What it carries along.
    pub(super) meta: GraphMeta,
    pub(super) nodes: Vec<NodeProto>,
    pub(super) inputs: Vec<ValueInfoProto>,
    pub(super) outputs: Vec<Output>,
    /// What outputs would like to be called, where no file says it.
    pub(super) output_names: FxHashSet<String>,
    pub(super) infos: Vec<ValueInfoProto>,
    /// What comes next: a Let, or the tail.
    pub(super) at: ExprId,
    pub(super) pending: Option<PendingCall>,
    /// Constants that are bound under a name of their own.
    pub(super) bound_constants: FxHashMap<(LiteralId, NameId), Option<VarId>>,
    /// The names of its entries in [`Exporter::views`].
    pub(super) views: Vec<NameId>,
    pub(super) is_tail_done: bool,
}

/// A result of a graph.
pub(super) struct Output {
    pub(super) slot: Slot,
    pub(super) name: Rc<str>,
    /// What the file called it.
    pub(super) wish: String,
    pub(super) ty: InfoType,
    /// Whether the value itself has the name, so that no node has to repeat it.
    pub(super) is_direct: bool,
}

/// The type of an input or output.
pub(super) enum InfoType {
    Of(TypeId),
    Message(TypeProto),
}

/// A call some of whose operands are graphs, or an `if`.
pub(super) struct PendingCall {
    call: ExprId,
    var: Option<VarId>,
    /// The blocks, last first.
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
    /// What the binding carries along.
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
        names: Names::default(),
        constants: Constants::new(options, versions, kind).map_err(|p| (None, p))?,
        symbols: symbol_names(cx, function.meta).map_err(|p| (None, p))?,
        versions,
        views: FxHashMap::default(),
        domains: Vec::new(),
        seen_domains: FxHashSet::default(),
        size: 0,
        written: FxHashSet::default(),
        repeated_bytes: 0,
        nodes: 0,
    };
    exporter.run(function)
}

fn symbol_names(cx: &Context, meta: AttrsId) -> Result<SymbolNames, ExportProblem> {
    let mut names = SymbolNames::default();
    let Some(value) = cx.find_attr(meta, keys::DIMENSIONS) else { return Ok(names) };
    let entries = entries_of(cx, value).ok_or(ExportProblem::Damaged(keys::DIMENSIONS))?;
    for e in entries {
        names.insert(e.key().to_owned(), e.value().to_owned());
    }
    Ok(names)
}

impl<'m> Exporter<'m> {
    fn run(&mut self, function: &Function) -> Result<ExportedGraph, Fault> {
        let mut depth = 1;
        let mut stack =
            vec![self.open_block(Block::Function, GraphMeta::of(function.meta), None).map_err(|p| (None, p))?];
        loop {
            let graph = stack.last_mut().expect("the outermost graph returns when it is finished");
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
                        let node = node.map_err(|p| (var, p))?;
                        self.add_nodes(graph, vec![node]).map_err(|p| (var, p))?;
                    }
                }
                continue;
            }
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
                        let (nodes, data) = (self.nodes, self.constants.take_data());
                        return Ok(ExportedGraph { graph: finished, domains, depth, nodes, given, data });
                    };
                    self.grow(finished.encoded_len()).map_err(|p| (None, p))?;
                    let pending = outer.pending.as_mut().expect("the call around a graph waits for it");
                    if self.is_repeated_too_often(block, finished.encoded_len()) {
                        return Err((pending.var, self.too_many_repetitions(block, &stack)));
                    }
                    pending.graphs.push(Bytes::from(finished.encode_to_vec()));
                    continue;
                }
            };
            match self.body.expr(value) {
                Expr::CallOp { .. } if self.conditions.contains(var) => {}
                Expr::CallOp { .. } => self.begin_call(graph, value, var).map_err(|p| (var, p))?,
                Expr::If { .. } => {
                    let waiting = vec![Block::Else(value), Block::Then(value)];
                    graph.pending = Some(PendingCall { call: value, var, waiting, graphs: Vec::with_capacity(2) });
                }
                Expr::Call { .. } => {
                    let node = self.function_call(value, var).map_err(|p| (var, p))?;
                    self.add_nodes(graph, vec![node]).map_err(|p| (var, p))?;
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

    /// Writes a call, or, if graphs in it have to be written first, makes it wait for them.
    fn begin_call(&mut self, graph: &mut OpenGraph, expr: ExprId, var: Option<VarId>) -> Result<(), ExportProblem> {
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

    pub(super) fn add_nodes(&mut self, graph: &mut OpenGraph, nodes: Vec<NodeProto>) -> Result<(), ExportProblem> {
        for mut node in nodes {
            self.grow(node.encoded_len())?;
            let domain = node.domain();
            if !is_standard(domain) && !self.seen_domains.contains(domain) {
                self.seen_domains.insert(domain.to_owned());
                self.domains.push(domain.to_owned());
            }
            prune_devices(&mut node);
            graph.nodes.push(node);
        }
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ExportProblem> {
        self.size += bytes as u64;
        if self.size > MAX_FILE { Err(ExportProblem::TooLarge) } else { Ok(()) }
    }

    /// Whether this graph, which takes so many bytes, makes those that were written already too many.
    fn is_repeated_too_often(&mut self, block: Block, bytes: usize) -> bool {
        if self.written.insert(block) {
            return false;
        }
        self.repeated_bytes += bytes as u64;
        self.repeated_bytes > REPEATED_BY_NODE.saturating_mul(self.body.len() as u64).max(REPEATED)
    }

    /// That a graph, or the `fn` around it, is written too often.
    fn too_many_repetitions(&self, block: Block, around: &[OpenGraph]) -> ExportProblem {
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

    /// Whether a graph is that of the model.
    pub(super) fn is_main(&self, block: Block) -> bool {
        block == Block::Function && self.kind == GraphKind::Main
    }

    /// What a block carries along, of which the operator that it belongs to is bound to `var`.
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

    /// Begins a graph, and says which call it is in.
    fn open_block(
        &mut self,
        block: Block,
        meta: GraphMeta,
        around: Option<ExprId>,
    ) -> Result<OpenGraph, ExportProblem> {
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

    /// The doc string that something carries along.
    pub(super) fn doc(&self, meta: GraphMeta) -> Result<Option<String>, ExportProblem> {
        let Some(value) = meta.find(self.cx, keys::DOC) else { return Ok(None) };
        Ok(Some(str(self.cx, value).ok_or(ExportProblem::Damaged(keys::DOC))?.to_owned()))
    }

    /// The metadata that something carries along.
    pub(super) fn metadata(&self, meta: GraphMeta) -> Result<Vec<StringStringEntryProto>, ExportProblem> {
        let Some(value) = meta.find(self.cx, keys::METADATA) else { return Ok(Vec::new()) };
        entries_of(self.cx, value).ok_or(ExportProblem::Damaged(keys::METADATA))
    }

    /// The name of what a slot stands for; empty for an operand that is left out. `hint` is what the file called it.
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

/// Removes statements about values that are not the node's any more.
fn prune_devices(node: &mut NodeProto) {
    let NodeProto { input, output, device_configurations, .. } = node;
    for configuration in device_configurations {
        configuration.sharding_spec.retain(|s| input.iter().chain(&*output).any(|n| n == s.tensor_name()));
    }
}

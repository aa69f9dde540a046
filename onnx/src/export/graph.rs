//! Blocks to graphs, from an explicit stack of graphs that are not finished.

use std::rc::Rc;

use anfora_ir::{
    Attr, AttrsId, Body, Context, Expr, ExprId, Function, Literal, LiteralId, NameId, OpId, TypeId, VarId,
};
use bytes::Bytes;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::ExportOptions;
use super::constants::{Constants, MAX_FILE};
use super::names::Names;
use super::slots::{Fault, Slot, Slots, ValueId};
use crate::attributes::{decoded, decoded_list, entries_of, list, str, strs};
use crate::convert::constant_attribute;
use crate::error::{ExportError, ExportProblem};
use crate::keys;
use crate::opaque::{is_standard, is_view};
use crate::proto::{
    GraphProto, ModelProto, NodeProto, StringStringEntryProto, TensorAnnotation, TensorProto, TypeProto, ValueInfoProto,
};
use crate::tensor::tensor_of;
use crate::types::{SymbolNames, literal_message, proto_of, tensor_info};

/// Readers take no deeper nesting of graphs in nodes.
const MAX_GRAPHS: usize = 33;

/// A graph that is written.
pub(super) struct ExportedGraph {
    pub(super) graph: GraphProto,
    /// Domains of the nodes, in order of appearance.
    pub(super) domains: Vec<String>,
    /// How deep graphs nest.
    pub(super) depth: usize,
    /// Nodes of the graph and of the graphs in it.
    pub(super) nodes: usize,
}

/// An export under way.
pub(super) struct Exporter<'m> {
    pub(super) cx: &'m Context,
    pub(super) body: &'m Body,
    pub(super) options: &'m ExportOptions,
    pub(super) slots: Slots<'m>,
    pub(super) names: Names,
    pub(super) constants: Constants,
    value_names: Vec<Option<Rc<str>>>,
    symbols: SymbolNames,
    opsets: FxHashMap<String, i64>,
    /// Constants that a node of an open graph makes of another one, by the name that uses of them remember.
    views: FxHashMap<NameId, Vec<View>>,
    pub(super) domains: Vec<String>,
    seen_domains: FxHashSet<String>,
    /// Before version 4 of the format every initializer is an input.
    initializers_are_inputs: bool,
    /// Bytes written so far, about.
    size: u64,
    /// Nodes of finished graphs.
    nodes: usize,
}

/// The elements of a constant under another shape, as a node gives them.
struct View {
    literal: Literal,
    /// The same, once a use of it was seen.
    id: Option<LiteralId>,
    value: ValueId,
}

/// A graph that is not finished.
struct OpenGraph {
    /// The `fn` that it is; `None` for the function itself.
    lambda: Option<ExprId>,
    /// What it carries along.
    meta: AttrsId,
    nodes: Vec<NodeProto>,
    inputs: Vec<ValueInfoProto>,
    outputs: Vec<Output>,
    /// What outputs would like to be called, where no file says it.
    output_names: FxHashSet<String>,
    infos: Vec<ValueInfoProto>,
    /// What comes next: a Let, or the tail.
    at: ExprId,
    pending: Option<PendingCall>,
    /// Constants that are bound under a name of their own.
    bound_constants: FxHashMap<(LiteralId, NameId), Option<VarId>>,
    /// The names of its entries in [`Exporter::views`].
    views: Vec<NameId>,
    is_tail_done: bool,
}

/// A result of a graph.
struct Output {
    slot: Slot,
    name: Rc<str>,
    /// What the file called it.
    wish: String,
    ty: InfoType,
    /// Whether the value itself has the name, so that no node has to repeat it.
    is_direct: bool,
}

/// The type of an input or output.
enum InfoType {
    Of(TypeId),
    Message(TypeProto),
}

/// A call some of whose operands are graphs.
struct PendingCall {
    call: ExprId,
    var: Option<VarId>,
    /// The `fn`s, last first.
    waiting: Vec<ExprId>,
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
pub(super) fn export_graph(
    cx: &Context,
    function: &Function,
    options: &ExportOptions,
    model: &ModelProto,
) -> Result<ExportedGraph, ExportError> {
    let body = &function.body;
    let error = |(var, problem): Fault| ExportError {
        function: options.entry.clone(),
        binding: var.and_then(|v| body.var_name(v)).map(|n| cx.names.get(n).to_owned()),
        problem,
    };
    let slots = Slots::of(cx, body).map_err(error)?;
    let mut opsets = FxHashMap::default();
    for o in &model.opset_import {
        let domain = if is_standard(o.domain()) { "" } else { o.domain() };
        opsets.insert(domain.to_owned(), o.version());
    }
    let opset = opsets.get("").copied().unwrap_or(1);
    let initializers_are_inputs = model.ir_version.is_some_and(|v| v < 4);
    let mut exporter = Exporter {
        cx,
        body,
        options,
        value_names: vec![None; slots.len()],
        slots,
        names: Names::default(),
        constants: Constants::new(options, opset, initializers_are_inputs),
        symbols: symbol_names(cx, function.meta).map_err(|p| error((None, p)))?,
        opsets,
        views: FxHashMap::default(),
        domains: Vec::new(),
        seen_domains: FxHashSet::default(),
        initializers_are_inputs,
        size: 0,
        nodes: 0,
    };
    exporter.run(function).map_err(error)
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
        let mut stack = vec![self.open(None, function.meta, self.body.root()).map_err(|p| (None, p))?];
        loop {
            let graph = stack.last_mut().expect("the outermost graph returns when it is finished");
            if let Some(mut pending) = graph.pending.take() {
                let var = pending.var;
                match pending.waiting.pop() {
                    Some(lambda) => {
                        graph.pending = Some(pending);
                        if stack.iter().any(|g| g.lambda == Some(lambda)) {
                            let what = "a `fn` that is its own subgraph".to_owned();
                            return Err((var, ExportProblem::Unsupported(what)));
                        }
                        if stack.len() == MAX_GRAPHS {
                            return Err((var, ExportProblem::TooDeep(MAX_GRAPHS)));
                        }
                        let inner = self.open_lambda(lambda).map_err(|p| (var, p))?;
                        stack.push(inner);
                        depth = depth.max(stack.len());
                    }
                    None => {
                        let nodes = self.opaque_node(self.call(pending.call, var), pending.graphs).map_err(|p| (var, p))?;
                        self.add_nodes(graph, vec![nodes]).map_err(|p| (var, p))?;
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
                    let finished = self.close(finished).map_err(|p| (None, p))?;
                    let Some(outer) = stack.last_mut() else {
                        let domains = std::mem::take(&mut self.domains);
                        return Ok(ExportedGraph { graph: finished, domains, depth, nodes: self.nodes });
                    };
                    self.grow(finished.encoded_len()).map_err(|p| (None, p))?;
                    let pending = outer.pending.as_mut().expect("the call around a graph waits for it");
                    pending.graphs.push(Bytes::from(finished.encode_to_vec()));
                    continue;
                }
            };
            if let Expr::CallOp { .. } = self.body.expr(value) {
                self.begin_call(graph, value, var).map_err(|p| (var, p))?;
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
                Slot::Lambda(lambda) => waiting.push(lambda),
                Slot::Other => return Err(ExportProblem::Pass { what: "global functions as values", pass: "InlineFunctions" }),
                _ => return Err(ExportProblem::Unsupported("a subgraph that is not a `fn`".to_owned())),
            }
        }
        waiting.reverse();
        graph.pending = Some(PendingCall { call: expr, var, waiting, graphs: Vec::new() });
        Ok(())
    }

    fn add_nodes(&mut self, graph: &mut OpenGraph, nodes: Vec<NodeProto>) -> Result<(), ExportProblem> {
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

    /// The version of a domain's operators.
    pub(super) fn opset(&self, domain: &str) -> i64 {
        self.opsets.get(domain).copied().unwrap_or(1)
    }

    fn open_lambda(&mut self, lambda: ExprId) -> Result<OpenGraph, ExportProblem> {
        let Expr::Lambda { body: block, .. } = self.body.expr(lambda) else {
            return Err(ExportProblem::Unsupported("a subgraph that is not a `fn`".to_owned()));
        };
        let meta = self.slots.lambda_meta(lambda).unwrap_or(self.cx.attrs.empty());
        self.open(Some(lambda), meta, block)
    }

    /// Begins a graph: every value that it computes gets its name.
    fn open(&mut self, lambda: Option<ExprId>, meta: AttrsId, block: ExprId) -> Result<OpenGraph, ExportProblem> {
        self.names.open();
        self.constants.open();
        let mut graph = OpenGraph {
            lambda,
            meta,
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            output_names: FxHashSet::default(),
            infos: Vec::new(),
            at: block,
            pending: None,
            bound_constants: FxHashMap::default(),
            views: Vec::new(),
            is_tail_done: false,
        };
        let body = self.body;
        self.forget_names(&mut graph, block);
        let params: Vec<VarId> = match lambda.map(|l| body.expr(l)) {
            Some(Expr::Lambda { lambda, .. }) => body.lambda_params(lambda).collect(),
            _ => body.params().to_vec(),
        };
        let infos = self.carried_infos(meta)?;
        for param in params {
            if let Slot::Value(v) = self.slots.of_atom(param.expr())? {
                let name = self.names.claim(self.wish(v));
                let ty = InfoType::Of(body.ty(param.expr()));
                graph.inputs.push(self.info(&name, self.wish(v), ty, &infos, lambda.is_none())?);
                self.value_names[v.index()] = Some(name);
            }
        }
        let tail = body.tail(block);
        let fields = self.slots.fields(self.slots.of_tail(tail));
        let wishes = self.output_wishes(meta, fields.len())?;
        for (i, slot) in fields.into_iter().enumerate() {
            let output = self.open_output(&mut graph, slot, wishes.as_ref().map(|w| w[i]), i)?;
            graph.outputs.push(output);
        }
        let mut at = block;
        while let Expr::Let { var, value, body: rest, .. } = body.expr(at) {
            match body.expr(value) {
                Expr::CallOp { .. } => {
                    self.name_results(&mut graph, value)?;
                    self.note_view(&mut graph, var, value);
                }
                Expr::Literal(id) => self.bind_constant(&mut graph, var, id)?,
                _ => {}
            }
            at = rest;
        }
        if let Expr::CallOp { .. } = body.expr(tail) {
            self.name_results(&mut graph, tail)?;
        }
        Ok(graph)
    }

    /// Forgets names that a block got when it was written before, and finds the constants that it binds.
    fn forget_names(&mut self, graph: &mut OpenGraph, block: ExprId) {
        let mut at = block;
        loop {
            let (value, rest) = match self.body.expr(at) {
                Expr::Let { var, value, body, .. } => {
                    if let (Expr::Literal(id), Some(name)) = (self.body.expr(value), self.body.var_name(var)) {
                        graph.bound_constants.entry((id, name)).or_insert(Some(var));
                    }
                    (value, Some(body))
                }
                _ => (at, None),
            };
            for slot in self.slots.fields(self.slots.of_call(value)) {
                if let Slot::Value(v) = slot {
                    self.value_names[v.index()] = None;
                }
            }
            match rest {
                Some(rest) => at = rest,
                None => return,
            }
        }
    }

    /// What a value would like to be called.
    fn wish(&self, v: ValueId) -> &'m str {
        let cx: &'m Context = self.cx;
        self.slots.value(v).name.map_or("", |n| cx.names.get(n))
    }

    /// The names of a graph's outputs, if it carries as many along as there are.
    fn output_wishes(&self, meta: AttrsId, count: usize) -> Result<Option<Vec<&'m str>>, ExportProblem> {
        let cx: &'m Context = self.cx;
        let Some(value) = cx.find_attr(meta, keys::OUTPUTS) else { return Ok(None) };
        let names = list(cx, value).and_then(|l| strs(cx, l)).ok_or(ExportProblem::Damaged(keys::OUTPUTS))?;
        Ok(Some(names).filter(|n| n.len() == count))
    }

    /// Gives an output its name: the value itself takes it where it can, else a node will repeat the value under it.
    fn open_output(
        &mut self,
        graph: &mut OpenGraph,
        slot: Slot,
        wish: Option<&str>,
        i: usize,
    ) -> Result<Output, ExportProblem> {
        let cx: &'m Context = self.cx;
        let own = match slot {
            Slot::Value(v) => self.wish(v),
            Slot::Literal(_, var) => var.and_then(|v| self.body.var_name(v)).map_or("", |n| cx.names.get(n)),
            Slot::None | Slot::Tuple(..) => {
                return Err(ExportProblem::Unsupported(format!("result {i}, which is not a tensor")));
            }
            Slot::Lambda(_) | Slot::Other => {
                return Err(ExportProblem::Unsupported(format!("result {i}, which is a function")));
            }
        };
        let is_stated = wish.is_some();
        let wish = match wish.unwrap_or(own) {
            "" => "output",
            wish => wish,
        };
        // A name is given twice only where the file did.
        let may_share = is_stated || graph.output_names.insert(wish.to_owned());
        let ty = InfoType::Of(cx.types.any());
        let mut output = Output { slot, name: wish.into(), wish: wish.to_owned(), ty, is_direct: true };
        match slot {
            Slot::Value(v) => {
                let data = self.slots.value(v);
                output.ty = InfoType::Of(data.ty);
                match &self.value_names[v.index()] {
                    // A value that the graph is given, and returns under the same name.
                    Some(name) if **name == *wish && may_share => {}
                    None if data.graph == graph.lambda && !data.is_param => {
                        output.name = self.names.claim(wish);
                        self.value_names[v.index()] = Some(output.name.clone());
                    }
                    _ => {
                        output.name = self.names.claim(wish);
                        output.is_direct = false;
                    }
                }
            }
            Slot::Literal(id, _) => {
                output.ty = InfoType::Message(literal_message(cx.literals.get(id)));
                output.name = self.names.claim(wish);
                let bound = cx.names.find(wish).and_then(|w| graph.bound_constants.get(&(id, w)).copied());
                match bound.flatten() {
                    Some(var) => {
                        self.write_bound(graph, var, id, output.name.clone())?;
                        output.is_direct = true;
                    }
                    None => output.is_direct = false,
                }
            }
            _ => {}
        }
        Ok(output)
    }

    /// Names the results of a call, and notes what the file stated of them.
    fn name_results(&mut self, graph: &mut OpenGraph, call: ExprId) -> Result<(), ExportProblem> {
        for slot in self.slots.fields(self.slots.of_call(call)) {
            let Slot::Value(v) = slot else { continue };
            if self.value_names[v.index()].is_some() {
                continue;
            }
            let name = self.names.claim(self.wish(v));
            let data = self.slots.value(v);
            let stated = data.meta.and_then(|m| self.cx.find_attr(m, keys::INFO));
            if let Some(stated) = stated {
                let info = match self.cx.attrs.get(stated) {
                    Attr::Bool(_) => proto_of(self.cx, &self.symbols, data.ty)
                        .map(|ty| ValueInfoProto { r#type: Some(ty), ..ValueInfoProto::default() }),
                    _ => Some(decoded(self.cx, stated).ok_or(ExportProblem::Damaged(keys::INFO))?),
                };
                graph.infos.extend(info.map(|i| ValueInfoProto { name: Some(name.to_string()), ..i }));
            }
            self.value_names[v.index()] = Some(name);
        }
        Ok(())
    }

    /// Notes a node that gives a constant another shape: uses of that constant that remember the node's result are uses of it.
    fn note_view(&mut self, graph: &mut OpenGraph, var: VarId, call: ExprId) {
        let (cx, body) = (self.cx, self.body);
        let (Some(name), Expr::CallOp { op, operands, .. }) = (body.var_name(var), body.expr(call)) else { return };
        let source = body.operands(operands).first().and_then(|&o| body.as_literal(o));
        let (Some(source), Slot::Value(value)) = (source, self.slots.of_call(call)) else { return };
        if !is_view(&cx.ops.get(op).name) {
            return;
        }
        let shape = cx.types.static_shape(body.ty(call));
        if let Some(literal) = shape.and_then(|s| cx.literals.get(source).reshaped(&s).ok()) {
            self.views.entry(name).or_default().push(View { literal, id: None, value });
            graph.views.push(name);
        }
    }

    /// The node's result that a use of a constant under a name means.
    fn view(&mut self, id: LiteralId, hint: NameId) -> Option<ValueId> {
        let literals = &self.cx.literals;
        let view = self.views.get_mut(&hint)?.last_mut()?;
        if view.id != Some(id) {
            if view.literal != *literals.get(id) {
                return None;
            }
            view.id = Some(id);
        }
        Some(view.value)
    }

    /// Writes a constant that is bound under a name of its own, unless it is written already.
    fn bind_constant(&mut self, graph: &mut OpenGraph, var: VarId, id: LiteralId) -> Result<(), ExportProblem> {
        let Some(own) = self.body.var_name(var) else { return Ok(()) };
        if graph.bound_constants.get(&(id, own)) != Some(&Some(var)) {
            return Ok(());
        }
        let wish = self.cx.names.get(own);
        let name =
            if self.initializers_are_inputs { self.names.claim_outermost(wish) } else { self.names.claim(wish) };
        self.write_bound(graph, var, id, name)
    }

    fn write_bound(
        &mut self,
        graph: &mut OpenGraph,
        var: VarId,
        id: LiteralId,
        name: Rc<str>,
    ) -> Result<(), ExportProblem> {
        let Some(own) = self.body.var_name(var) else { return Ok(()) };
        let cx = self.cx;
        let literal = cx.literals.get(id);
        let meta = self.body.meta(var.expr());
        // From here on it is written.
        graph.bound_constants.insert((id, own), None);
        let Some(attribute) = meta.and_then(|m| cx.find_attr(m, keys::CONSTANT)) else {
            let (doc_string, metadata_props) = match meta {
                Some(meta) => (self.doc(meta)?, self.metadata(meta)?),
                None => (None, Vec::new()),
            };
            return self.constants.bind(&mut self.names, (var, id, own), literal, &name, |tensor| {
                tensor.doc_string = doc_string;
                tensor.metadata_props = metadata_props;
            });
        };
        let attribute = str(cx, attribute).ok_or(ExportProblem::Damaged(keys::CONSTANT))?;
        let mut node = NodeProto {
            op_type: Some("Constant".to_owned()),
            output: vec![name.to_string()],
            attribute: vec![constant_attribute(attribute, literal)?],
            ..NodeProto::default()
        };
        self.carry_along(&mut node, meta)?;
        self.constants.bind_node((var, id, own), &name, node);
        Ok(())
    }

    /// The doc string that something carries along.
    pub(super) fn doc(&self, meta: AttrsId) -> Result<Option<String>, ExportProblem> {
        let Some(value) = self.cx.find_attr(meta, keys::DOC) else { return Ok(None) };
        Ok(Some(str(self.cx, value).ok_or(ExportProblem::Damaged(keys::DOC))?.to_owned()))
    }

    /// The metadata that something carries along.
    pub(super) fn metadata(&self, meta: AttrsId) -> Result<Vec<StringStringEntryProto>, ExportProblem> {
        let Some(value) = self.cx.find_attr(meta, keys::METADATA) else { return Ok(Vec::new()) };
        entries_of(self.cx, value).ok_or(ExportProblem::Damaged(keys::METADATA))
    }

    /// What a graph carries along about inputs, outputs and initializers, by name.
    fn carried_infos(&self, meta: AttrsId) -> Result<FxHashMap<String, ValueInfoProto>, ExportProblem> {
        let Some(value) = self.cx.find_attr(meta, keys::INFOS) else { return Ok(FxHashMap::default()) };
        let infos: Vec<ValueInfoProto> =
            decoded_list(self.cx, value).ok_or(ExportProblem::Damaged(keys::INFOS))?;
        Ok(infos.into_iter().map(|i| (i.name().to_owned(), i)).collect())
    }

    /// The message for an input or output.
    fn info(
        &self,
        name: &str,
        wish: &str,
        ty: InfoType,
        infos: &FxHashMap<String, ValueInfoProto>,
        is_main: bool,
    ) -> Result<ValueInfoProto, ExportProblem> {
        let carried = infos.get(wish);
        let mut info = carried.cloned().unwrap_or_default();
        info.name = Some(name.to_owned());
        if info.r#type.is_none() {
            info.r#type = match ty {
                InfoType::Message(message) => Some(message),
                InfoType::Of(ty) => match proto_of(self.cx, &self.symbols, ty) {
                    None if is_main && carried.is_none() => return Err(ExportProblem::Type(self.cx.type_text(ty))),
                    message => message,
                },
            };
        }
        Ok(info)
    }

    /// Ends a graph.
    fn close(&mut self, mut graph: OpenGraph) -> Result<GraphProto, ExportProblem> {
        let is_main = graph.lambda.is_none();
        let cx = self.cx;
        let infos = self.carried_infos(graph.meta)?;
        let mut outputs = Vec::with_capacity(graph.outputs.len());
        let mut repeats = Vec::new();
        for output in std::mem::take(&mut graph.outputs) {
            outputs.push(self.info(&output.name, &output.wish, output.ty, &infos, is_main)?);
            if !output.is_direct {
                repeats.push(NodeProto {
                    op_type: Some("Identity".to_owned()),
                    input: vec![self.slot_name(output.slot, None)?],
                    output: vec![output.name.to_string()],
                    ..NodeProto::default()
                });
            }
        }
        self.add_nodes(&mut graph, repeats)?;
        let mut defaults = self.defaults(graph.meta, &graph.inputs)?;
        let mut begin = self.constants.close();
        for tensor in &begin.initializers {
            let stated = infos.get(tensor.name());
            if is_main && self.initializers_are_inputs {
                graph.inputs.push(stated.cloned().unwrap_or_else(|| tensor_info(tensor)));
            } else {
                graph.infos.extend(stated.cloned());
            }
        }
        begin.initializers.append(&mut defaults);
        begin.nodes.append(&mut graph.nodes);
        self.nodes += begin.nodes.len();
        let quantization_annotation = self.quantization(graph.meta)?;
        for ((id, own), var) in &graph.bound_constants {
            if var.is_none() {
                self.constants.unbind(*id, *own);
            }
        }
        for name in graph.views {
            self.views.entry(name).or_default().pop();
        }
        self.names.close();
        let name = cx.find_attr(graph.meta, keys::GRAPH).and_then(|v| str(cx, v)).unwrap_or("graph");
        Ok(GraphProto {
            node: begin.nodes,
            name: Some(name.to_owned()),
            initializer: begin.initializers,
            doc_string: self.doc(graph.meta)?,
            input: graph.inputs,
            output: outputs,
            value_info: graph.infos,
            quantization_annotation,
            sparse_initializer: Vec::new(),
            metadata_props: self.metadata(graph.meta)?,
        })
    }

    /// The default values of inputs.
    fn defaults(&self, meta: AttrsId, inputs: &[ValueInfoProto]) -> Result<Vec<TensorProto>, ExportProblem> {
        let Some(value) = self.cx.find_attr(meta, keys::DEFAULTS) else { return Ok(Vec::new()) };
        let damaged = || ExportProblem::Damaged(keys::DEFAULTS);
        let names: FxHashSet<&str> = inputs.iter().map(|i| i.name()).collect();
        let mut tensors = Vec::new();
        for &item in list(self.cx, value).ok_or_else(damaged)? {
            let &[name, value] = list(self.cx, item).ok_or_else(damaged)? else { return Err(damaged()) };
            let name = str(self.cx, name).ok_or_else(damaged)?;
            if !names.contains(name) {
                continue;
            }
            let value = match self.cx.attrs.get(value) {
                Attr::Literal(l) => self.cx.literals.get(*l).clone(),
                Attr::Int(i) => Literal::scalar(*i),
                Attr::Float(bits) => Literal::scalar(f64::from_bits(*bits)),
                Attr::Bool(b) => Literal::scalar(*b),
                // With more to it than its elements.
                Attr::List(items) => match **items {
                    [encoded] => {
                        tensors.push(decoded(self.cx, encoded).ok_or_else(damaged)?);
                        continue;
                    }
                    _ => return Err(damaged()),
                },
                _ => return Err(damaged()),
            };
            let mut tensor = tensor_of(&value, MAX_FILE)?;
            tensor.name = Some(name.to_owned());
            tensors.push(tensor);
        }
        Ok(tensors)
    }

    /// The annotations of values that are still there.
    fn quantization(&self, meta: AttrsId) -> Result<Vec<TensorAnnotation>, ExportProblem> {
        let Some(value) = self.cx.find_attr(meta, keys::QUANTIZATION) else { return Ok(Vec::new()) };
        let mut annotations: Vec<TensorAnnotation> =
            decoded_list(self.cx, value).ok_or(ExportProblem::Damaged(keys::QUANTIZATION))?;
        annotations.retain(|a| {
            let parameters = a.quant_parameter_tensor_names.iter().map(|e| e.value());
            std::iter::once(a.tensor_name()).chain(parameters).all(|n| self.names.is_visible(n))
        });
        Ok(annotations)
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
            Slot::Lambda(_) => Err(ExportProblem::Pass { what: "functions as operands", pass: "InlineFunctions" }),
            Slot::Other => Err(ExportProblem::Pass { what: "global functions as values", pass: "InlineFunctions" }),
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

//! Functions of the model that are functions of the module: those of a domain of our own, when they are called.
//!
//! A function is imported where it is first called, from an explicit stack of functions that wait for others. What the file says of its inputs is
//! their type; where it says nothing, or a call does not fit that, there is a copy for the types of the call.

use std::rc::Rc;

use anfora_ir::{
    Attr, AttrId, Context, Expr, ExprId, FunctionBuilder, FunctionKey, GlobalId, LiteralId, Module, Type, TypeId,
    UnfinishedFunction, VarId, Visibility,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Finished, GraphPlace, Importer, OpenGraph, PendingNode, Progress, Settings, doc_of};
use super::hints_attr;
use super::{GraphProto, ModelProto, opset_versions};
use crate::error::{ImportError, ImportProblem};
use crate::export::DOMAIN;
use crate::keys;
use crate::proto::{FunctionProto, NodeProto, ValueInfoProto};
use crate::tensor::literal_of;
use crate::types::FileDims;

/// A function has at most this many copies. Further calls are kept as they are.
const MAX_COPIES: usize = 16;

/// The functions of a model that may become functions of the module.
#[derive(Default)]
pub(super) struct FunctionTable {
    entries: Vec<Entry>,
    by_name: FxHashMap<String, usize>,
    names: FxHashSet<String>,
    counters: FxHashMap<String, u64>,
}

struct Entry {
    /// Its place among the functions of the model.
    position: usize,
    proto: Rc<FunctionProto>,
    opsets: FxHashMap<String, i64>,
    /// How many of its last inputs are constants.
    constants: usize,
    copies: Vec<Copy>,
    /// How often a copy was asked for.
    asked: usize,
    /// Whether a copy is being made.
    is_open: bool,
    /// Whether a call of it was kept as it is.
    is_kept: bool,
}

/// A function of the module.
struct Copy {
    global: GlobalId,
    constants: Rc<[Option<LiteralId>]>,
    is_impure: bool,
}

/// A copy that a call asks for.
pub(super) struct Request {
    entry: usize,
    constants: Rc<[Option<LiteralId>]>,
    /// The types of the call, if those that the file states are not to be taken.
    types: Option<Vec<TypeId>>,
}

/// What an input of a function is.
pub(super) enum Input {
    /// A parameter; of a type like this one, where the file does not say it.
    Param(Option<TypeId>),
    /// A constant.
    Constant(LiteralId),
}

/// What became of a node.
pub(super) enum FunctionNode {
    /// It calls no function of the table.
    Other,
    /// It is imported.
    Done,
    /// It waits for a function.
    Needs(Request),
}

impl FunctionTable {
    /// Those functions of a model that can be imported.
    pub(super) fn of_model(model: &ModelProto) -> FunctionTable {
        let mut table = FunctionTable::default();
        table.names.insert("main".to_owned());
        let mut twice = FxHashSet::default();
        for (position, proto) in model.functions.iter().enumerate() {
            let is_plain = proto.domain() == DOMAIN
                && !proto.name().is_empty()
                && proto.attribute.is_empty()
                && proto.attribute_proto.is_empty()
                && proto.overload().is_empty();
            let Ok(opsets) = opset_versions(&proto.opset_import) else { continue };
            if !is_plain {
                twice.insert((proto.domain().to_owned(), proto.name().to_owned()));
                continue;
            }
            let constants = entry_of(proto, keys::GIVEN).and_then(|n| n.parse().ok()).unwrap_or(0);
            let entry = Entry {
                position,
                constants: proto.input.len().min(constants),
                proto: Rc::new(proto.clone()),
                opsets,
                copies: Vec::new(),
                asked: 0,
                is_open: false,
                is_kept: false,
            };
            if table.by_name.insert(proto.name().to_owned(), table.entries.len()).is_some() {
                twice.insert((DOMAIN.to_owned(), proto.name().to_owned()));
            }
            table.entries.push(entry);
        }
        for (domain, name) in twice {
            if domain == DOMAIN {
                table.by_name.remove(&name);
            }
        }
        table
    }

    /// The settings for each function.
    pub(super) fn settings<'a>(&self, of_model: &Settings<'a>) -> Vec<Settings<'a>> {
        let of = |e: &Entry| Settings { opsets: e.opsets.clone(), constant_initializers: false, ..*of_model };
        self.entries.iter().map(of).collect()
    }

    /// Takes from the model what is in the module now.
    pub(super) fn take_imported(&self, model: &mut ModelProto) -> Result<(), ImportProblem> {
        if self.entries.iter().all(|e| e.copies.is_empty()) {
            return Ok(());
        }
        let mut kept = vec![true; model.functions.len()];
        for entry in self.entries.iter().filter(|e| !e.copies.is_empty() && !e.is_kept) {
            kept[entry.position] = false;
        }
        // What is kept needs what it calls.
        let mut waiting: Vec<usize> = (0..kept.len()).filter(|&i| kept[i]).collect();
        while let Some(i) = waiting.pop() {
            super::for_each_node(&model.functions[i].node, |node| {
                if node.domain() == DOMAIN
                    && let Some(&entry) = self.by_name.get(node.op_type())
                    && !std::mem::replace(&mut kept[self.entries[entry].position], true)
                {
                    waiting.push(self.entries[entry].position);
                }
            })?;
        }
        let mut kept = kept.into_iter();
        model.functions.retain(|_| kept.next().unwrap_or(true));
        if model.functions.iter().all(|f| f.domain() != DOMAIN) {
            model.opset_import.retain(|o| o.domain() != DOMAIN);
        }
        if let Some(i) = model.metadata_props.iter().position(|e| e.key() == keys::PLAIN_IR_VERSION)
            && let Ok(version) = model.metadata_props[i].value().parse()
        {
            model.ir_version = Some(version);
            model.metadata_props.remove(i);
        }
        Ok(())
    }

    fn unique_name(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        while !self.names.insert(name.clone()) {
            let n = self.counters.entry(wish.to_owned()).or_insert(0);
            *n += 1;
            name = format!("{wish}_{n}");
        }
        name
    }
}

fn entry_of<'a>(proto: &'a FunctionProto, key: &str) -> Option<&'a str> {
    proto.metadata_props.iter().find(|e| e.key() == key).map(|e| e.value())
}

/// A function that is being imported, put aside.
struct Activation<'a> {
    unfinished: UnfinishedFunction,
    settings: &'a Settings<'a>,
    state: super::graph::State,
    /// What it is a copy for; `None` for the main graph.
    request: Option<Request>,
}

/// Imports the main graph, and the functions that it needs.
pub(super) fn import_graphs(
    module: &mut Module,
    graph: GraphProto,
    settings: &Settings<'_>,
    functions: &mut FunctionTable,
) -> Result<Finished, ImportError> {
    let of_functions = functions.settings(settings);
    let main = FunctionBuilder::new(module, "main");
    let mut stack = vec![begin(main, (graph, GraphPlace::Main), settings, functions, None)?];
    loop {
        let Activation { unfinished, settings, state, request } =
            stack.pop().expect("the main graph returns when it is finished");
        let builder = FunctionBuilder::resume(module, unfinished);
        let importer = Importer::new(builder, settings, std::mem::take(functions), state);
        match importer.run()? {
            Progress::Needs { paused, table, request: needed } => {
                *functions = table;
                let super::graph::Paused { unfinished, state } = *paused;
                stack.push(Activation { unfinished, settings, state, request });
                let entry = &mut functions.entries[needed.entry];
                (entry.is_open, entry.asked) = (true, entry.asked + 1);
                let proto = Rc::clone(&entry.proto);
                let (graph, place) = graph_of(&proto, &needed);
                let name = functions.unique_name(proto.name());
                let builder = FunctionBuilder::new(module, &name);
                let settings = &of_functions[needed.entry];
                stack.push(begin(builder, (graph, place), settings, functions, Some(needed))?);
            }
            Progress::Finished { finished, table } => {
                *functions = table;
                let Some(request) = request else { return Ok(finished) };
                let entry = &mut functions.entries[request.entry];
                entry.is_open = false;
                complete(module, finished.key, &entry.proto, &finished);
                let global = module.get(finished.key).and_then(|f| f.global());
                entry.copies.push(Copy {
                    global: global.expect("a function that is built has a name"),
                    constants: request.constants,
                    is_impure: finished.is_impure,
                });
            }
        }
    }
}

fn begin<'a>(
    builder: FunctionBuilder<'_>,
    (graph, place): (GraphProto, GraphPlace),
    settings: &'a Settings<'a>,
    functions: &mut FunctionTable,
    request: Option<Request>,
) -> Result<Activation<'a>, ImportError> {
    let state = super::graph::State::default();
    let mut importer = Importer::new(builder, settings, std::mem::take(functions), state);
    importer.begin(graph, place)?;
    let (unfinished, state, table) = importer.set_aside();
    *functions = table;
    Ok(Activation { unfinished, settings, state, request })
}

/// The body of a function as a graph.
fn graph_of(proto: &FunctionProto, request: &Request) -> (GraphProto, GraphPlace) {
    let infos: FxHashMap<&str, &ValueInfoProto> = proto.value_info.iter().map(|i| (i.name(), i)).collect();
    let info = |name: &String| match infos.get(name.as_str()) {
        Some(&info) => info.clone(),
        None => ValueInfoProto { name: Some(name.clone()), ..ValueInfoProto::default() },
    };
    let first_constant = proto.input.len() - request.constants.len();
    let mut types = request.types.iter().flatten().copied();
    let inputs = (0..proto.input.len()).map(|i| {
        let constant = i.checked_sub(first_constant).and_then(|i| request.constants[i]);
        match constant {
            Some(constant) => Input::Constant(constant),
            None => Input::Param(types.next()),
        }
    });
    let place = GraphPlace::Function {
        name: proto.name().to_owned(),
        inputs: inputs.collect(),
        is_tuple: entry_of(proto, keys::RESULT) == Some("tuple"),
    };
    let outside: FxHashSet<&str> = proto.input.iter().chain(&proto.output).map(String::as_str).collect();
    let graph = GraphProto {
        node: proto.node.clone(),
        input: proto.input.iter().map(info).collect(),
        output: proto.output.iter().map(info).collect(),
        value_info: proto.value_info.iter().filter(|i| !outside.contains(i.name())).cloned().collect(),
        doc_string: proto.doc_string.clone(),
        metadata_props: proto.metadata_props.iter().filter(|e| !e.key().starts_with(keys::OWN)).cloned().collect(),
        ..GraphProto::default()
    };
    (graph, place)
}

/// Gives a function what its metadata says of it.
fn complete(module: &mut Module, key: FunctionKey, proto: &FunctionProto, finished: &Finished) {
    let Some((function, cx)) = module.get_mut(key) else { return };
    function.meta = finished.meta;
    if entry_of(proto, keys::VISIBILITY) != Some("public") {
        function.visibility = Visibility::Private;
    }
    for e in &proto.metadata_props {
        if let Some(name) = e.key().strip_prefix(keys::ATTRIBUTE)
            && let Some(value) = attribute(cx, e.value())
        {
            function.attrs = cx.with_attr(function.attrs, name, Some(value));
        }
    }
    if entry_of(proto, keys::RESULT) == Some("whole") {
        return_whole(function);
    }
    if entry_of(proto, keys::TAIL) == Some("value") {
        inline_tail(function);
    }
}

/// A value as export writes it.
fn attribute(cx: &mut Context, text: &str) -> Option<AttrId> {
    if let Some(text) = text.strip_prefix('"') {
        return Some(cx.str_attr(text.strip_suffix('"')?));
    }
    if let Some(bits) = text.strip_prefix("float64 0x") {
        return Some(cx.attr(Attr::Float(u64::from_str_radix(bits, 16).ok()?)));
    }
    match text {
        "true" => Some(cx.attr(Attr::Bool(true))),
        "false" => Some(cx.attr(Attr::Bool(false))),
        number => Some(cx.int_attr(number.parse().ok()?)),
    }
}

/// Makes a variable the result, if that is the tuple of its fields, and these are what is bound last.
fn return_whole(function: &mut anfora_ir::Function) {
    let body = &mut function.body;
    let (mut lets, mut at) = (Vec::new(), body.root());
    while let Expr::Let { var, value, body: rest, .. } = body.expr(at) {
        lets.push((at, var, value));
        at = rest;
    }
    let Expr::Tuple(fields) = body.expr(at) else { return };
    let fields = body.operands(fields);
    let Some(first) = lets.len().checked_sub(fields.len()) else { return };
    let Some(&(whole, result, _)) = first.checked_sub(1).and_then(|i| lets.get(i)) else { return };
    let is_field = |(index, (&field, &(_, var, value))): (usize, (&ExprId, &(ExprId, VarId, ExprId)))| {
        let of_result = Expr::Proj { tuple: result.expr(), index: index as u32 };
        field == var.expr() && body.expr(value) == of_result
    };
    if fields.iter().zip(&lets[first..]).enumerate().all(is_field) && body.ty(result.expr()) == body.ty(at) {
        body.set_let_body(whole, result.expr());
    }
}

/// Makes the value of the last binding the result, if that is its variable.
fn inline_tail(function: &mut anfora_ir::Function) {
    let body = &mut function.body;
    let (mut before, mut at) = (None, body.root());
    while let Expr::Let { var, value, body: rest, .. } = body.expr(at) {
        if rest == var.expr() {
            match before {
                Some(before) => body.set_let_body(before, value),
                None => body.set_root(value),
            }
            return;
        }
        (before, at) = (Some(at), rest);
    }
}

impl Importer<'_, '_> {
    /// Imports a node, if it calls a function of the table.
    pub(super) fn function_node(
        &mut self,
        graph: &mut OpenGraph,
        pending: &PendingNode,
    ) -> Result<FunctionNode, ImportProblem> {
        let node = &pending.node;
        if self.is_in_function && node.metadata_props.iter().any(|e| e.key() == keys::LITERAL) {
            return self.literal_node(node);
        }
        if node.domain() != DOMAIN || !node.overload().is_empty() {
            return Ok(FunctionNode::Other);
        }
        let Some(&index) = self.functions.by_name.get(node.op_type()) else { return Ok(FunctionNode::Other) };
        let entry = &self.functions.entries[index];
        let is_whole = node.attribute.is_empty()
            && node.input.len() == entry.proto.input.len()
            && node.output.len() <= entry.proto.output.len()
            && node.input.iter().all(|n| !n.is_empty());
        if !is_whole {
            self.functions.entries[index].is_kept = true;
            return Ok(FunctionNode::Other);
        }
        if entry.is_open {
            return Err(ImportProblem::Recursion(node.op_type().to_owned()));
        }
        let constants = entry.constants;
        let mut operands = Vec::with_capacity(node.input.len());
        for name in &node.input {
            operands.push(self.use_value(graph, Some(node), name)?.expr);
        }
        let body = self.builder.body();
        let last = operands.split_off(operands.len() - constants);
        let constants: Rc<[Option<LiteralId>]> = last.iter().map(|&o| body.as_literal(o)).collect();
        operands.extend(last.into_iter().filter(|&o| body.as_literal(o).is_none()));
        let count = self.functions.entries[index].copies.len();
        let mut was_tried = false;
        for i in 0..count {
            let copy = &self.functions.entries[index].copies[i];
            if copy.constants != constants {
                continue;
            }
            was_tried = true;
            let (global, is_impure) = (copy.global, copy.is_impure);
            let callee = self.builder.editor().global(global);
            if let Ok(value) = self.builder.call(callee, &operands) {
                graph.is_impure |= is_impure;
                self.bind_call(graph, node, value, &operands)?;
                return Ok(FunctionNode::Done);
            }
        }
        let entry = &mut self.functions.entries[index];
        if entry.asked == MAX_COPIES {
            entry.is_kept = true;
            return Ok(FunctionNode::Other);
        }
        let stated: FxHashSet<&str> =
            entry.proto.value_info.iter().filter(|i| i.r#type.is_some()).map(|i| i.name()).collect();
        let first_constant = entry.proto.input.len() - constants.len();
        let is_given = |i: usize| i.checked_sub(first_constant).is_some_and(|i| constants[i].is_some());
        let mut inputs = entry.proto.input.iter().enumerate();
        let says_all = inputs.all(|(i, name)| is_given(i) || stated.contains(name.as_str()));
        let derived = was_tried || !says_all;
        let types = derived.then(|| operands.iter().map(|&o| self.builder.body().ty(o)).collect());
        Ok(FunctionNode::Needs(Request { entry: index, constants, types }))
    }

    /// Defines the constant that a node gives, if that is all that the node is.
    fn literal_node(&mut self, node: &NodeProto) -> Result<FunctionNode, ImportProblem> {
        let ([attribute], [], [name]) = (node.attribute.as_slice(), node.input.as_slice(), node.output.as_slice())
        else {
            return Ok(FunctionNode::Other);
        };
        let Some(tensor) = attribute.t.as_deref().filter(|_| node.op_type() == "Constant") else {
            return Ok(FunctionNode::Other);
        };
        let literal = self.builder.literal(literal_of(tensor)?);
        let name = self.builder.cx().names.intern(name);
        self.define(name, literal)?;
        Ok(FunctionNode::Done)
    }

    fn bind_call(
        &mut self,
        graph: &mut OpenGraph,
        node: &NodeProto,
        value: ExprId,
        operands: &[ExprId],
    ) -> Result<(), ImportProblem> {
        let mut meta = doc_of(self.builder.cx(), &node.doc_string, &node.metadata_props);
        let hints: Vec<&str> = operands
            .iter()
            .zip(&node.input)
            .map(|(&o, name)| if self.builder.body().as_literal(o).is_some() { name.as_str() } else { "" })
            .collect();
        let cx = self.builder.cx();
        meta.extend(node.name.as_ref().filter(|n| !n.is_empty()).map(|n| (keys::NAME, cx.str_attr(n))));
        meta.extend(crate::attributes::encoded_list(cx, &node.device_configurations).map(|d| (keys::DEVICES, d)));
        meta.extend(hints_attr(cx, &hints).map(|h| (keys::INPUTS, h)));
        let ty = self.builder.body().ty(value);
        if self.builder.cx().types.as_tuple(ty).is_some() {
            return self.bind_outputs(graph, &node.output, value, meta);
        }
        self.bind_output(graph, node.output.first().map_or("", String::as_str), value, meta)
    }
}

/// A type like that of an operand of a call, with symbols of the function's own.
pub(super) fn own_type(cx: &mut Context, dims: &mut FileDims, ty: TypeId) -> TypeId {
    let Type::Tensor(tensor) = cx.types.get(ty) else { return cx.types.any() };
    let (dtype, shape) = (tensor.dtype, tensor.shape.clone());
    let Some(shape) = shape else { return cx.types.unranked(dtype) };
    let shape: Vec<_> = shape.iter().map(|&d| dims.like(cx, d)).collect();
    cx.types.tensor(dtype, &shape)
}

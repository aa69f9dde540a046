//! Functions of the model that become functions of the module when they are called.
//!
//! A function is imported at its first call, from an explicit stack of functions that wait for
//! others. The types of its inputs are those that the file states. If the file states none, or a
//! call does not fit them, a copy is made for the types of the call. A copy is also made for each
//! list of attributes that calls give, and for each set of inputs that calls leave out. A function
//! that cannot be imported is preserved in encoded form, and calls of it are kept unchanged.

use std::rc::Rc;

use anfora_ir::{
    Attr, AttrId, Context, Expr, ExprId, FunctionBuilder, FunctionKey, GLOBAL_SYMBOL, LiteralId, Module, NameId, VarId,
    Visibility,
};
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::encoded::EncodedGraph;
use super::function_attributes::{arguments, given_attributes, key_of};
use super::function_table::{Copy, FunctionTable, Opsets, Request, Variant, entry_of};
use super::graph::{Finished, GraphPlace, Progress, Suspended};
use super::importer::{ImportState, Importer, Input, OpenGraph, PendingNode, Settings, node_meta};
use crate::error::{ImportError, ImportProblem, UnsupportedReason, because};
use crate::keys;
use crate::proto::{FunctionProto, GraphProto, NodeProto, ValueInfoProto};
use crate::tensor::literal_of;

/// The largest number of copies of a function. Further calls are kept unchanged.
const MAX_COPIES: u8 = 16;

/// The result of handling a node that may call a function.
enum FunctionNode {
    /// The node calls no function of the table.
    Other,
    /// The node calls the function at this index of the table but is kept unchanged, for this
    /// reason.
    Unsupported(usize, UnsupportedReason),
    /// The node is imported.
    Done,
    /// The node waits for a copy of a function.
    Needs(Request),
}

/// A suspended import, with the function that it makes.
struct SuspendedFunction<'a> {
    import: Suspended,
    settings: &'a Settings<'a>,
    /// The copy that is being made; `None` for the main graph.
    copy: Option<Box<OpenCopy>>,
}

/// A copy of a function that is being made.
struct OpenCopy {
    request: Request,
    /// The function without its nodes and the information about their values.
    proto: FunctionProto,
}

/// Imports the main graph and the functions that it needs.
pub(super) fn import_graphs(
    module: &mut Module,
    graph: EncodedGraph,
    settings: &Settings<'_>,
    functions: &mut FunctionTable,
) -> Result<Finished, ImportError> {
    let of_functions = settings_of(functions, settings);
    let main = FunctionBuilder::new(module, "main");
    let import = begin(main, (graph, GraphPlace::Main), settings, functions)?;
    let mut stack = vec![SuspendedFunction { import, settings, copy: None }];
    loop {
        let SuspendedFunction { import: Suspended { unfinished, state }, settings, copy } =
            stack.pop().expect("the main graph returns when it is finished");
        let builder = FunctionBuilder::resume(module, unfinished);
        let importer =
            Importer { builder, settings, functions, warnings: Vec::new(), spare: NodeProto::default(), state };
        match importer.run() {
            Err(error) => functions.give_up(copy.map(|c| c.request), error, settings.notes)?,
            Ok(Progress::Needs(import, needed)) => {
                stack.push(SuspendedFunction { import: *import, settings, copy });
                let entry = &mut functions.entries[needed.entry];
                (entry.is_open, entry.asked) = (true, entry.asked + 1);
                let settings = &of_functions[entry.opsets as usize];
                let encoded = functions.encoded[entry.position as usize].clone();
                let mut proto = FunctionProto::decode(encoded).map_err(|e| ImportError::new("the model", e))?;
                let graph = graph_of(&mut proto, &needed);
                let name = functions.unique_name(&mut module.cx.names, proto.name());
                settings.notes.begin_copy();
                match begin(FunctionBuilder::new(module, &name), graph, settings, functions) {
                    Ok(import) => {
                        let copy = Some(Box::new(OpenCopy { request: needed, proto }));
                        stack.push(SuspendedFunction { import, settings, copy });
                    }
                    Err(error) => functions.give_up(Some(needed), error, settings.notes)?,
                }
            }
            Ok(Progress::Finished(finished)) => {
                let Some(copy) = copy else { return Ok(finished) };
                settings.notes.finish_copy();
                let OpenCopy { request, proto } = *copy;
                let entry = &mut functions.entries[request.entry];
                entry.is_open = false;
                complete(module, finished.key, &proto, &finished, &request, &mut functions.symbols);
                let global = module.get(finished.key).and_then(|f| f.global());
                // Most functions have a single copy.
                entry.copies.reserve_exact(1);
                entry.copies.push(Copy {
                    global: global.expect("a function that is built has a name"),
                    variant: request.variant,
                    is_impure: finished.is_impure,
                });
            }
        }
    }
}

/// Returns the settings for functions, one for each set of versions.
fn settings_of<'a>(functions: &FunctionTable, of_model: &Settings<'a>) -> Vec<Settings<'a>> {
    let of = |opsets: &Opsets| Settings {
        opsets: Rc::clone(&opsets.versions),
        written: Rc::clone(&functions.written),
        differing: Rc::clone(&opsets.differing),
        constant_initializers: false,
        ..*of_model
    };
    functions.opsets.iter().map(of).collect()
}

fn begin(
    builder: FunctionBuilder<'_>,
    (graph, place): (EncodedGraph, GraphPlace),
    settings: &Settings<'_>,
    functions: &mut FunctionTable,
) -> Result<Suspended, ImportError> {
    let state = ImportState::default();
    let mut importer =
        Importer { builder, settings, functions, warnings: Vec::new(), spare: NodeProto::default(), state };
    importer.begin(graph, place)?;
    Ok(importer.suspend())
}

/// Returns true if a call gives an input that is not a constant.
fn is_given(given: &[bool], input: usize) -> bool {
    given.get(input).copied().unwrap_or(false)
}

/// Takes the nodes and the information about their values out of a function and returns them as a
/// graph.
fn graph_of(proto: &mut FunctionProto, request: &Request) -> (EncodedGraph, GraphPlace) {
    let node = std::mem::take(&mut proto.node);
    let mut value_info = std::mem::take(&mut proto.value_info);
    if request.contradicts {
        // Value information that contradicts the types of the call does not apply to this copy.
        value_info.clear();
    }
    let infos: FxHashMap<&str, &ValueInfoProto> = value_info.iter().map(|i| (i.name(), i)).collect();
    let info = |name: &String| match infos.get(name.as_str()) {
        Some(&info) => info.clone(),
        None => ValueInfoProto { name: Some(name.clone()), ..ValueInfoProto::default() },
    };
    let Variant { constants, given, .. } = &request.variant;
    let first_constant = proto.input.len() - constants.len();
    let mut types = request.types.iter().flatten().copied();
    let inputs = (0..proto.input.len()).map(|i| {
        let constant = i.checked_sub(first_constant).and_then(|i| constants[i]);
        match constant {
            Some(constant) => Input::Constant(constant),
            None if !is_given(given, i) => Input::Absent,
            None => Input::Param(types.next()),
        }
    });
    let place = GraphPlace::Function {
        name: proto.name().to_owned(),
        inputs: inputs.collect(),
        is_tuple: entry_of(proto, keys::RESULT) == Some("tuple"),
        arguments: Rc::clone(&request.arguments),
    };
    let outside: FxHashSet<&str> = proto.input.iter().chain(&proto.output).map(String::as_str).collect();
    // A type of the file that a type of the call replaces says nothing about this copy.
    let input = |name: &String| match request.types {
        Some(_) => ValueInfoProto { r#type: None, ..info(name) },
        None => info(name),
    };
    let graph = GraphProto {
        node,
        input: proto.input.iter().map(input).collect(),
        output: proto.output.iter().map(info).collect(),
        value_info: value_info.iter().filter(|i| !outside.contains(i.name())).cloned().collect(),
        doc_string: proto.doc_string.clone(),
        metadata_props: proto.metadata_props.iter().filter(|e| !e.key().starts_with(keys::OWN)).cloned().collect(),
        ..GraphProto::default()
    };
    (EncodedGraph { nodes: Vec::new(), rest: graph }, place)
}

/// Sets the metadata, the visibility and the attributes of an imported function. A symbol that
/// another function has, such as a copy of the same one, is left out.
fn complete(
    module: &mut Module,
    key: FunctionKey,
    proto: &FunctionProto,
    finished: &Finished,
    request: &Request,
    symbols: &mut FxHashSet<AttrId>,
) {
    let Some((function, cx)) = module.get_mut(key) else { return };
    function.meta = finished.meta;
    if proto.domain() != keys::OWN_DOMAIN {
        let names = [proto.domain(), proto.name(), proto.overload()];
        let mut items: Vec<AttrId> = names.iter().map(|n| cx.str_attr(n)).collect();
        items.push(cx.attr(Attr::Bool(request.types.is_none() && !proto.input.is_empty())));
        let name = cx.attr(Attr::List(items.into()));
        function.meta = cx.with_attr(function.meta, keys::FUNCTION, Some(name));
    }
    if entry_of(proto, keys::VISIBILITY) != Some("public") {
        function.visibility = Visibility::Private;
    }
    for e in &proto.metadata_props {
        if let Some(name) = e.key().strip_prefix(keys::ATTRIBUTE)
            && let Some(value) = attribute(cx, e.value())
            && (name != GLOBAL_SYMBOL || symbols.insert(value))
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

/// Parses an attribute value in the form that export writes.
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

/// Makes a variable the result, if the result is the tuple of its fields and these are bound last.
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

/// Makes the value of the last binding the result, if the result is its variable.
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
    /// Imports a node whose subgraphs are imported. Returns the copy of a function that it calls,
    /// if that is not imported yet.
    pub(super) fn import_node(
        &mut self,
        graph: &mut OpenGraph,
        pending: &mut PendingNode,
    ) -> Result<Option<Request>, ImportProblem> {
        match self.function_node(graph, pending)? {
            FunctionNode::Other => self.node(graph, pending, None)?,
            FunctionNode::Unsupported(entry, why) => {
                self.functions.entries[entry].is_kept = true;
                self.node(graph, pending, Some(why))?;
            }
            FunctionNode::Done => {}
            FunctionNode::Needs(request) => return Ok(Some(request)),
        }
        Ok(None)
    }

    /// Imports a node if it calls a function of the table.
    fn function_node(&mut self, graph: &mut OpenGraph, pending: &PendingNode) -> Result<FunctionNode, ImportProblem> {
        // Find the function, and check that the node fits it.
        let node = &pending.node;
        if self.state.is_in_function && node.metadata_props.iter().any(|e| e.key() == keys::LITERAL) {
            return self.literal_node(pending);
        }
        let Some(index) = self.functions.called_by(node) else { return Ok(FunctionNode::Other) };
        let unsupported = |why| Ok(FunctionNode::Unsupported(index, why));
        let entry = &self.functions.entries[index];
        if let Some(why) = entry.failure.clone() {
            return unsupported(*why);
        }
        let constants = entry.constants as usize;
        let inputs = entry.inputs as usize;
        let is_whole = node.input.len() <= inputs
            && (constants == 0 || node.input.len() == inputs)
            && node.output.len() <= entry.outputs as usize
            && pending.subgraphs.is_empty();
        let declared = Rc::clone(&entry.declared);
        let Some(attributes) = given_attributes(&declared, node).filter(|_| is_whole) else {
            return unsupported(because("its inputs, outputs or attributes are not those of its function"));
        };
        if entry.is_open {
            return Err(ImportProblem::Recursion(node.op_type().to_owned()));
        }
        // The operands: first those for parameters, then the trailing constants.
        let params = inputs - constants;
        let mut given_inputs = Vec::with_capacity(node.input.len());
        let mut operands = Vec::with_capacity(node.input.len());
        let mut last = Vec::with_capacity(constants);
        for (i, &name) in pending.names.inputs.iter().enumerate() {
            let Some(name) = name else { continue };
            let operand = self.use_value(graph, Some(node), name)?.expr;
            if i >= params {
                last.push((i, operand));
            } else if self.builder.body().expr(operand) != Expr::None {
                // A parameter that the caller left out is left out here, too.
                given_inputs.resize(i, false);
                given_inputs.push(true);
                operands.push((i, operand));
            }
        }
        if last.len() != constants {
            return unsupported(because("a constant of its function is left out"));
        }
        // Use a copy of the function that fits.
        let body = self.builder.body();
        let constants: Box<[Option<LiteralId>]> = last.iter().map(|&(_, o)| body.as_literal(o)).collect();
        operands.extend(last.into_iter().filter(|&(_, o)| body.as_literal(o).is_none()));
        let hints: Vec<Option<NameId>> = operands.iter().map(|&(i, _)| pending.names.inputs[i]).collect();
        let operands: Vec<ExprId> = operands.iter().map(|&(_, o)| o).collect();
        let variant = Variant { constants, given: given_inputs.into(), attributes: key_of(&attributes).into() };
        if let Some(called) = self.call_copy(graph, pending, index, &variant, (&operands, &hints))? {
            return Ok(called);
        }
        // No copy fits: request one.
        let entry = &self.functions.entries[index];
        if entry.asked == MAX_COPIES {
            return unsupported(because("its function would need too many copies"));
        }
        let was_tried = entry.copies.iter().any(|copy| copy.variant == variant);
        let is_param = |i: usize| match i.checked_sub(params) {
            Some(i) => variant.constants[i].is_none(),
            None => is_given(&variant.given, i),
        };
        let says_type = |i: usize| entry.says_types.get(i).is_some_and(|&says| says);
        let says_all = (0..inputs).all(|i| !is_param(i) || says_type(i));
        let derived = was_tried || !says_all;
        let types = derived.then(|| operands.iter().map(|&o| self.builder.body().ty(o)).collect());
        let arguments = Rc::new(arguments(&declared, &attributes));
        Ok(FunctionNode::Needs(Request { entry: index, variant, arguments, types, contradicts: was_tried && says_all }))
    }

    /// Calls the first copy of a function that takes the operands of a node. Returns `None` if
    /// there is none.
    fn call_copy(
        &mut self,
        graph: &mut OpenGraph,
        pending: &PendingNode,
        index: usize,
        variant: &Variant,
        (operands, hints): (&[ExprId], &[Option<NameId>]),
    ) -> Result<Option<FunctionNode>, ImportProblem> {
        let entry = &self.functions.entries[index];
        let (count, is_own) = (entry.copies.len(), entry.is_own);
        for i in 0..count {
            let copy = &self.functions.entries[index].copies[i];
            if copy.variant != *variant {
                continue;
            }
            let (global, is_impure) = (copy.global, copy.is_impure);
            let callee = self.builder.editor().global(global);
            let Ok(value) = self.builder.call(callee, operands) else { continue };
            if !is_own && self.knows_less(graph, &pending.names.outputs, value) {
                let why = because("its function does not show the types of its outputs");
                return Ok(Some(FunctionNode::Unsupported(index, why)));
            }
            graph.is_impure |= is_impure;
            self.bind_call(graph, pending, value, (operands, hints))?;
            return Ok(Some(FunctionNode::Done));
        }
        Ok(None)
    }

    /// Defines the constant of a node, if the node does nothing else.
    fn literal_node(&mut self, pending: &PendingNode) -> Result<FunctionNode, ImportProblem> {
        let PendingNode { node, names, .. } = pending;
        let ([attribute], [], [name]) = (node.attribute.as_slice(), node.input.as_slice(), names.outputs.as_slice())
        else {
            return Ok(FunctionNode::Other);
        };
        let Some(tensor) = attribute.t.as_deref().filter(|_| node.op_type() == "Constant") else {
            return Ok(FunctionNode::Other);
        };
        let literal = self.builder.literal(literal_of(tensor)?);
        let name = name.unwrap_or_else(|| self.builder.cx().names.intern(""));
        self.define(name, literal)?;
        Ok(FunctionNode::Done)
    }

    fn bind_call(
        &mut self,
        graph: &mut OpenGraph,
        pending: &PendingNode,
        value: ExprId,
        (operands, names): (&[ExprId], &[Option<NameId>]),
    ) -> Result<(), ImportProblem> {
        let body = self.builder.body();
        let operands = operands.iter().zip(names);
        let hints: Vec<_> = operands.map(|(&o, &name)| name.filter(|_| body.as_literal(o).is_some())).collect();
        let meta = node_meta(self.builder.cx(), &pending.node, &hints);
        self.bind_results(graph, &pending.names.outputs, value, meta)
    }
}

//! Functions of the model that become functions of the module when they are called.
//!
//! A function is imported at its first call, from an explicit stack of functions that wait for
//! others. The types of its inputs are those that the file states. If the file states none, or a
//! call does not fit them, a copy is made for the types of the call. A copy is also made for each
//! list of attributes that calls give, and for each set of inputs that calls leave out. A function
//! that cannot be imported is preserved in encoded form, and calls of it are kept unchanged.

use std::rc::Rc;

use anfora_ir::{
    Attr, AttrId, Context, Expr, ExprId, FunctionBuilder, FunctionKey, GLOBAL_SYMBOL, GlobalId, LiteralId, Module,
    NameId, Names, Type, TypeId, UnfinishedFunction, VarId, Visibility,
};
use bytes::Bytes;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::function_attributes::{Arguments, arguments, declared, given_attributes, key_of, room_for};
use super::graph::{Finished, GraphPlace, Importer, OpenGraph, PendingNode, Progress, Settings, doc_of};
use super::hints_attr;
use super::warnings::Notes;
use super::{GraphProto, ModelProto, opset_versions};
use crate::error::{ImportError, ImportProblem, UnsupportedReason};
use crate::keys;
use crate::opaque::is_standard;
use crate::proto::{FunctionProto, NodeProto, OperatorSetIdProto, ValueInfoProto, for_each_node};
use crate::tensor::literal_of;
use crate::types::FileDims;

/// The largest number of copies of a function. Further calls are kept unchanged.
const MAX_COPIES: u8 = 16;

/// The functions of a model that may become functions of the module. They stay encoded until they
/// are called.
#[derive(Default)]
pub(super) struct FunctionTable {
    /// All functions of the model.
    encoded: Vec<Bytes>,
    /// The number of nodes of all functions.
    pub(super) nodes: usize,
    entries: Vec<Entry>,
    by_name: FxHashMap<Box<str>, u32>,
    /// The versions of operators that functions import: one entry for all functions with the same
    /// imports.
    opsets: Vec<Opsets>,
    /// The versions that functions import of domains that the model does not import.
    further_opsets: Vec<(String, i64)>,
    /// See [`Settings::written`].
    written: Rc<FxHashMap<String, i64>>,
    names: FxHashSet<NameId>,
    counters: FxHashMap<NameId, u64>,
    /// The symbols of the functions that are finished.
    symbols: FxHashSet<AttrId>,
    /// See [`room_for`].
    pub(super) room: usize,
}

/// Returns domain, name and overload as a single text.
fn full_name(domain: &str, name: &str, overload: &str) -> Box<str> {
    format!("{}.{}:{domain}{name}{overload}", domain.len(), name.len()).into()
}

struct Entry {
    /// The index among the functions of the model.
    position: u32,
    /// The versions of the function, as an index into [`FunctionTable::opsets`].
    opsets: u32,
    inputs: u32,
    outputs: u32,
    /// For each input, true if the file states its type; empty if the file states no types.
    says_types: Box<[bool]>,
    /// The number of trailing inputs that are constants.
    constants: u32,
    /// The attributes that the function declares.
    declared: Rc<Arguments>,
    copies: Vec<Copy>,
    /// The number of copies that were requested.
    asked: u8,
    /// True if the function is in the domain of this crate.
    is_own: bool,
    /// True while a copy is being made.
    is_open: bool,
    /// True if a call of the function was kept unchanged.
    is_kept: bool,
    /// The reason why the function cannot be imported.
    failure: Option<Box<UnsupportedReason>>,
}

/// The versions of operators that functions import.
struct Opsets {
    versions: Rc<FxHashMap<String, i64>>,
    /// See [`Settings::differing`].
    differing: Rc<FxHashSet<String>>,
}

/// A function of the module.
struct Copy {
    global: GlobalId,
    variant: Variant,
    is_impure: bool,
}

/// The properties that calls of the same copy share, besides the types.
#[derive(PartialEq)]
struct Variant {
    /// For each of the trailing constant inputs, the literal if it is a constant of the function.
    constants: Box<[Option<LiteralId>]>,
    /// For each of the other inputs up to the last given, true if it is given.
    given: Box<[bool]>,
    /// See [`key_of`].
    attributes: Box<[u8]>,
}

/// A copy that a call requests.
pub(super) struct Request {
    entry: usize,
    variant: Variant,
    arguments: Rc<Arguments>,
    /// The types of the call, if they are used instead of the types that the file states.
    types: Option<Vec<TypeId>>,
    /// True if the types of the call contradict those of the file.
    contradicts: bool,
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

/// The result of handling a node that may call a function.
pub(super) enum FunctionNode {
    /// The node calls no function of the table.
    Other,
    /// The node calls a function but is kept unchanged, for this reason.
    Unsupported(UnsupportedReason),
    /// The node is imported.
    Done,
    /// The node waits for a copy of a function.
    Needs(Request),
}

impl FunctionTable {
    /// Returns the functions of a model that may be imported. Functions of the standard domain are
    /// excluded: the format does not say whether such a function or the operator of its name is
    /// meant.
    ///
    /// `of_model` are the versions that the model imports, `unclear` the domains of which it
    /// imports two versions. `size` is the size of the file in bytes.
    ///
    /// # Errors
    /// If a function is malformed.
    pub(super) fn new(
        encoded: Vec<Bytes>,
        of_model: &FxHashMap<String, i64>,
        unclear: &[String],
        size: usize,
    ) -> Result<FunctionTable, ImportProblem> {
        let mut table = FunctionTable { room: room_for(size), ..FunctionTable::default() };
        table.entries.reserve_exact(encoded.len());
        let mut versions = of_model.clone();
        let mut known: FxHashMap<(bool, Vec<(String, i64)>), u32> = FxHashMap::default();
        let undeclared = Rc::new(Arguments::default());
        let unclear: FxHashSet<&str> = unclear.iter().map(String::as_str).collect();
        let mut twice = FxHashSet::default();
        for (position, bytes) in encoded.iter().enumerate() {
            let proto = FunctionProto::decode(bytes.clone())?;
            for_each_node(&proto.node, |_| table.nodes += 1)?;
            let (opsets, imported_twice) = opset_versions(&proto.opset_import);
            if proto.name().is_empty() || is_standard(proto.domain()) || !imported_twice.is_empty() {
                continue;
            }
            let is_own = proto.domain() == keys::OWN_DOMAIN;
            let imports: Vec<(String, i64)> =
                opset_imports(&proto).map(|(domain, version)| (domain.to_owned(), version)).collect();
            let differing = table.differing(&imports, &mut versions, &unclear);
            let opsets = *known.entry((is_own, imports)).or_insert_with(|| {
                let differing = if is_own { FxHashSet::default() } else { differing };
                table.opsets.push(Opsets { versions: Rc::new(opsets), differing: Rc::new(differing) });
                number(table.opsets.len() - 1)
            });
            let constants = entry_of(&proto, keys::GIVEN).filter(|_| is_own).and_then(|n| n.parse().ok()).unwrap_or(0);
            let declared = declared(&proto);
            let stated: FxHashSet<&str> =
                proto.value_info.iter().filter(|i| i.r#type.is_some()).map(|i| i.name()).collect();
            let says_types = proto.input.iter().map(|name| stated.contains(name.as_str()));
            let entry = Entry {
                position: number(position),
                opsets,
                inputs: number(proto.input.len()),
                outputs: number(proto.output.len()),
                says_types: if stated.is_empty() { Box::default() } else { says_types.collect() },
                constants: number(proto.input.len().min(constants)),
                declared: if declared.is_empty() { Rc::clone(&undeclared) } else { Rc::new(declared) },
                copies: Vec::new(),
                asked: 0,
                is_own,
                is_open: false,
                is_kept: false,
                failure: None,
            };
            let name = full_name(proto.domain(), proto.name(), proto.overload());
            if table.by_name.insert(name.clone(), number(table.entries.len())).is_some() {
                twice.insert(name);
            }
            table.entries.push(entry);
        }
        table.by_name.retain(|name, _| !twice.contains(name));
        table.written = Rc::new(versions);
        table.encoded = encoded;
        Ok(table)
    }

    /// Returns the domains of `imports` of which the model imports another version. A domain that
    /// the model does not import gets the version of the function.
    fn differing(
        &mut self,
        imports: &[(String, i64)],
        versions: &mut FxHashMap<String, i64>,
        unclear: &FxHashSet<&str>,
    ) -> FxHashSet<String> {
        let mut differing = FxHashSet::default();
        for (domain, version) in imports {
            match versions.get(domain) {
                Some(v) if v != version => {
                    differing.insert(domain.clone());
                }
                Some(_) => {}
                None if unclear.contains(domain.as_str()) => {
                    differing.insert(domain.clone());
                }
                None => {
                    versions.insert(domain.clone(), *version);
                    self.further_opsets.push((domain.clone(), *version));
                }
            }
        }
        differing
    }

    /// Returns the function that a node calls.
    fn called_by(&self, node: &NodeProto) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        self.by_name.get(&full_name(node.domain(), node.op_type(), node.overload())).map(|&i| i as usize)
    }

    /// Returns the settings for functions, one for each set of versions.
    pub(super) fn settings<'a>(&self, of_model: &Settings<'a>) -> Vec<Settings<'a>> {
        let of = |opsets: &Opsets| Settings {
            opsets: Rc::clone(&opsets.versions),
            written: Rc::clone(&self.written),
            differing: Rc::clone(&opsets.differing),
            constant_initializers: false,
            ..*of_model
        };
        self.opsets.iter().map(of).collect()
    }

    /// Returns the encoded functions except those that became functions of the module. Removes the
    /// parts of the model that only describe the imported functions.
    ///
    /// # Errors
    /// If a function is malformed.
    pub(super) fn without_imported(self, model: &mut ModelProto) -> Result<Vec<Bytes>, ImportProblem> {
        if self.entries.iter().all(|e| e.copies.is_empty()) {
            return Ok(self.encoded);
        }
        let mut kept = vec![true; self.encoded.len()];
        for entry in self.entries.iter().filter(|e| !e.copies.is_empty() && !e.is_kept) {
            kept[entry.position as usize] = false;
        }
        // Preserved functions need the functions that they call.
        let mut waiting: Vec<usize> = (0..kept.len()).filter(|&i| kept[i]).collect();
        let mut has_own = false;
        while let Some(i) = waiting.pop() {
            let proto = FunctionProto::decode(self.encoded[i].clone())?;
            has_own |= proto.domain() == keys::OWN_DOMAIN;
            for_each_node(&proto.node, |node| {
                if let Some(entry) = self.called_by(node)
                    && !std::mem::replace(&mut kept[self.entries[entry].position as usize], true)
                {
                    waiting.push(self.entries[entry].position as usize);
                }
            })?;
        }
        let of_functions = self.further_opsets.iter().filter(|(domain, _)| domain != keys::OWN_DOMAIN);
        model.opset_import.extend(
            of_functions
                .map(|(domain, version)| OperatorSetIdProto { domain: Some(domain.clone()), version: Some(*version) }),
        );
        if !has_own {
            model.opset_import.retain(|o| o.domain() != keys::OWN_DOMAIN);
        }
        if let Some(i) = model.metadata_props.iter().position(|e| e.key() == keys::PLAIN_IR_VERSION)
            && let Ok(version) = model.metadata_props[i].value().parse()
        {
            model.ir_version = Some(version);
            model.metadata_props.remove(i);
        }
        let mut kept = kept.into_iter();
        Ok(self.encoded.into_iter().filter(|_| kept.next().unwrap_or(true)).collect())
    }

    /// Marks a function that cannot be imported, so that it is preserved in encoded form. An error
    /// in any other graph, in a function of this crate's domain, or of recursion is returned as an
    /// error of the file.
    fn give_up(&mut self, request: Option<Request>, error: ImportError, notes: &Notes) -> Result<(), ImportError> {
        let Some(request) = request else { return Err(error) };
        let entry = &mut self.entries[request.entry];
        let is_recursion = matches!(error.problem, ImportProblem::Recursion(_));
        if entry.is_own || is_recursion {
            return Err(error);
        }
        entry.is_open = false;
        let why = UnsupportedReason::because(format!("its function cannot be one of the module: {error}"));
        entry.failure = Some(Box::new(why));
        notes.drop_copy();
        Ok(())
    }

    /// Returns a name that no other function has, based on `wish`.
    fn unique_name(&mut self, names: &mut Names, wish: &str) -> String {
        let wished = names.intern(wish);
        if self.names.is_empty() {
            self.names.insert(names.intern("main"));
        }
        let mut name = wish.to_owned();
        while !self.names.insert(names.intern(&name)) {
            let n = self.counters.entry(wished).or_insert(0);
            *n += 1;
            name = format!("{wish}_{n}");
        }
        name
    }
}

/// Returns an index into a list as 32 bits. Each item of such a list takes at least a byte of the
/// file.
fn number(place: usize) -> u32 {
    u32::try_from(place).expect("import refuses files of 2^32 bytes")
}

/// Returns the versions that a function imports, by domain.
fn opset_imports(proto: &FunctionProto) -> impl Iterator<Item = (&str, i64)> {
    proto.opset_import.iter().map(|o| (if is_standard(o.domain()) { "" } else { o.domain() }, o.version()))
}

fn entry_of<'a>(proto: &'a FunctionProto, key: &str) -> Option<&'a str> {
    proto.metadata_props.iter().find(|e| e.key() == key).map(|e| e.value())
}

/// A suspended import of a function.
struct Activation<'a> {
    unfinished: UnfinishedFunction,
    settings: &'a Settings<'a>,
    state: super::graph::State,
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
    graph: GraphProto,
    settings: &Settings<'_>,
    functions: &mut FunctionTable,
) -> Result<Finished, ImportError> {
    let of_functions = functions.settings(settings);
    let main = FunctionBuilder::new(module, "main");
    let main = begin(main, (graph, GraphPlace::Main), settings, functions, None);
    let mut stack = vec![main.map_err(|failed| failed.0)?];
    loop {
        let Activation { unfinished, settings, state, copy } =
            stack.pop().expect("the main graph returns when it is finished");
        let builder = FunctionBuilder::resume(module, unfinished);
        let importer = Importer::new(builder, settings, std::mem::take(functions), state);
        let progress = match importer.run() {
            Ok(progress) => progress,
            Err(failed) => {
                let (error, table) = *failed;
                *functions = table;
                functions.give_up(copy.map(|c| c.request), error, settings.notes)?;
                continue;
            }
        };
        match progress {
            Progress::Needs { paused, table, request: needed } => {
                *functions = table;
                let super::graph::Paused { unfinished, state } = *paused;
                stack.push(Activation { unfinished, settings, state, copy });
                let entry = &mut functions.entries[needed.entry];
                (entry.is_open, entry.asked) = (true, entry.asked + 1);
                let settings = &of_functions[entry.opsets as usize];
                let encoded = functions.encoded[entry.position as usize].clone();
                let mut proto = FunctionProto::decode(encoded).map_err(|e| ImportError::new("the model", e))?;
                let (graph, place) = graph_of(&mut proto, &needed);
                let name = functions.unique_name(&mut module.cx.names, proto.name());
                let builder = FunctionBuilder::new(module, &name);
                let copy = Box::new(OpenCopy { request: needed, proto });
                settings.notes.begin_copy();
                match begin(builder, (graph, place), settings, functions, Some(copy)) {
                    Ok(activation) => stack.push(activation),
                    Err(failed) => {
                        let (error, request) = *failed;
                        functions.give_up(request, error, settings.notes)?;
                    }
                }
            }
            Progress::Finished { finished, table } => {
                *functions = table;
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

fn begin<'a>(
    builder: FunctionBuilder<'_>,
    (graph, place): (GraphProto, GraphPlace),
    settings: &'a Settings<'a>,
    functions: &mut FunctionTable,
    copy: Option<Box<OpenCopy>>,
) -> Result<Activation<'a>, Box<(ImportError, Option<Request>)>> {
    let state = super::graph::State::default();
    let mut importer = Importer::new(builder, settings, std::mem::take(functions), state);
    let begun = importer.begin(graph, place);
    let (unfinished, state, table) = importer.set_aside();
    *functions = table;
    match begun {
        Ok(()) => Ok(Activation { unfinished, settings, state, copy }),
        Err(e) => Err(Box::new((e, copy.map(|c| c.request)))),
    }
}

/// Returns true if a call gives an input that is not a constant.
fn is_given(given: &[bool], input: usize) -> bool {
    given.get(input).copied().unwrap_or(false)
}

/// Takes the nodes and the information about their values out of a function and returns them as a
/// graph.
fn graph_of(proto: &mut FunctionProto, request: &Request) -> (GraphProto, GraphPlace) {
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
    let graph = GraphProto {
        node,
        input: proto.input.iter().map(info).collect(),
        output: proto.output.iter().map(info).collect(),
        value_info: value_info.iter().filter(|i| !outside.contains(i.name())).cloned().collect(),
        doc_string: proto.doc_string.clone(),
        metadata_props: proto.metadata_props.iter().filter(|e| !e.key().starts_with(keys::OWN)).cloned().collect(),
        ..GraphProto::default()
    };
    (graph, place)
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
    /// Imports a node if it calls a function of the table.
    pub(super) fn function_node(
        &mut self,
        graph: &mut OpenGraph,
        pending: &PendingNode,
    ) -> Result<FunctionNode, ImportProblem> {
        // Find the function, and check that the node fits it.
        let node = &pending.node;
        if self.is_in_function && node.metadata_props.iter().any(|e| e.key() == keys::LITERAL) {
            return self.literal_node(node);
        }
        let Some(index) = self.functions.called_by(node) else { return Ok(FunctionNode::Other) };
        let entry = &mut self.functions.entries[index];
        if let Some(why) = entry.failure.clone() {
            entry.is_kept = true;
            return Ok(FunctionNode::Unsupported(*why));
        }
        let constants = entry.constants as usize;
        let inputs = entry.inputs as usize;
        let is_whole = node.input.len() <= inputs
            && (constants == 0 || node.input.len() == inputs)
            && node.output.len() <= entry.outputs as usize
            && pending.subgraphs.is_empty();
        let declared = Rc::clone(&entry.declared);
        let Some(attributes) = given_attributes(&declared, node).filter(|_| is_whole) else {
            entry.is_kept = true;
            return Ok(FunctionNode::Unsupported(UnsupportedReason::because(
                "its inputs, outputs or attributes are not those of its function",
            )));
        };
        if entry.is_open {
            return Err(ImportProblem::Recursion(node.op_type().to_owned()));
        }
        // The operands: first those for parameters, then the trailing constants.
        let params = inputs - constants;
        let mut given_inputs = Vec::with_capacity(node.input.len());
        let mut operands = Vec::with_capacity(node.input.len());
        let mut last = Vec::with_capacity(constants);
        for (i, name) in node.input.iter().enumerate() {
            let operand = match name.as_str() {
                "" => continue,
                name => self.use_value(graph, Some(node), name)?.expr,
            };
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
            self.functions.entries[index].is_kept = true;
            return Ok(FunctionNode::Unsupported(UnsupportedReason::because("a constant of its function is left out")));
        }
        // Use a copy of the function that fits.
        let body = self.builder.body();
        let constants: Box<[Option<LiteralId>]> = last.iter().map(|&(_, o)| body.as_literal(o)).collect();
        operands.extend(last.into_iter().filter(|&(_, o)| body.as_literal(o).is_none()));
        let hints: Vec<&str> = operands.iter().map(|&(i, _)| node.input[i].as_str()).collect();
        let operands: Vec<ExprId> = operands.iter().map(|&(_, o)| o).collect();
        let variant = Variant { constants, given: given_inputs.into(), attributes: key_of(&attributes).into() };
        if let Some(called) = self.call_copy(graph, node, index, &variant, (&operands, &hints))? {
            return Ok(called);
        }
        // No copy fits: request one.
        let entry = &mut self.functions.entries[index];
        if entry.asked == MAX_COPIES {
            entry.is_kept = true;
            return Ok(FunctionNode::Unsupported(UnsupportedReason::because(
                "its function would need too many copies",
            )));
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
        node: &NodeProto,
        index: usize,
        variant: &Variant,
        (operands, hints): (&[ExprId], &[&str]),
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
            if !is_own && self.knows_less(graph, &node.output, value) {
                self.functions.entries[index].is_kept = true;
                let why = "its function does not show the types of its outputs";
                return Ok(Some(FunctionNode::Unsupported(UnsupportedReason::because(why))));
            }
            graph.is_impure |= is_impure;
            self.bind_call(graph, node, value, (operands, hints))?;
            return Ok(Some(FunctionNode::Done));
        }
        Ok(None)
    }

    /// Defines the constant of a node, if the node does nothing else.
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
        (operands, names): (&[ExprId], &[&str]),
    ) -> Result<(), ImportProblem> {
        let mut meta = doc_of(self.builder.cx(), &node.doc_string, &node.metadata_props);
        let hints: Vec<&str> = operands
            .iter()
            .zip(names)
            .map(|(&o, &name)| if self.builder.body().as_literal(o).is_some() { name } else { "" })
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

/// Returns a type like that of a call's operand, with symbols of the function's own.
pub(super) fn own_type(cx: &mut Context, dims: &mut FileDims, ty: TypeId) -> TypeId {
    let Type::Tensor(tensor) = cx.types.get(ty) else { return cx.types.any() };
    let (dtype, shape) = (tensor.dtype, tensor.shape.clone());
    let Some(shape) = shape else { return cx.types.unranked(dtype) };
    let shape: Vec<_> = shape.iter().map(|&d| dims.like(cx, d)).collect();
    cx.types.tensor(dtype, &shape)
}

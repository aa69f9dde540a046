//! Functions of the module that are called. Each becomes a function of the model, in a domain of
//! this crate or in the domain that it had in a file.
//!
//! A function of a model has no initializers. Its constants become further inputs that every call
//! passes: they stay initializers and need no node. If there are more than [`MAX_GIVEN`], or the
//! function comes from a file, all of its constants are nodes inside it.

use anfora_ir::{Attr, Context, Expr, Function, FunctionKey, Module, Visibility};
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::constants::FunctionConstant;
use super::graph::{FileName, Functions, Written, export_graph};
use super::graph_meta::GraphMeta;
use super::options::{ExportOptions, GraphKind, Versions};
use super::slots::{Fault, Slots};
use crate::attributes::{list, str};
use crate::convert::constant_attribute;
use crate::error::{ExportError, ExportProblem};
use crate::keys;
use crate::proto::{FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, node};

/// The first version of the format in which functions can state the types of their values and hold
/// metadata.
pub(crate) const IR_VERSION: i64 = 10;
/// The largest number of constants that calls pass to a function. If a function has more, all of
/// them are nodes inside it.
const MAX_GIVEN: usize = 32;

/// The information that a function preserves about the file it was imported from.
struct InFile {
    name: FileName,
    /// True if the file states the types of the inputs.
    is_typed: bool,
}

/// A function to be written, with the slots of its variables.
pub(super) struct Reached<'m> {
    pub(super) key: FunctionKey,
    pub(super) slots: Slots<'m>,
}

/// Returns an error with the names of the function and of the binding.
pub(super) fn in_function(module: &Module, key: FunctionKey, (var, problem): Fault) -> ExportError {
    let binding = var.and_then(|v| module.get(key)?.body.var_name(v)).map(|n| module.cx.names.get(n).to_owned());
    ExportError { function: module.name(key).to_owned(), binding, problem }
}

/// Returns the functions that the entry calls, directly or through other functions. Each comes
/// after the functions that it calls; the entry is the last.
pub(super) fn reached(module: &Module, entry: FunctionKey) -> Result<Vec<Reached<'_>>, ExportError> {
    struct Open<'m> {
        key: FunctionKey,
        slots: Slots<'m>,
        next: usize,
    }
    let open = |key: FunctionKey| {
        let function = module.get(key).expect("only functions of the module are opened");
        let slots = Slots::of(&module.cx, &function.body).map_err(|fault| in_function(module, key, fault))?;
        Ok(Open { key, slots, next: 0 })
    };
    let mut is_done: FxHashMap<FunctionKey, bool> = FxHashMap::default();
    let mut done = Vec::new();
    is_done.insert(entry, false);
    let mut stack = vec![open(entry)?];
    while let Some(top) = stack.last_mut() {
        let Some(&(callee, var)) = top.slots.calls().get(top.next) else {
            let Open { key, slots, .. } = stack.pop().expect("it is the last one");
            is_done.insert(key, true);
            done.push(Reached { key, slots });
            continue;
        };
        top.next += 1;
        let at = top.key;
        let name = || module.cx.global_name(callee).to_owned();
        let key = module.cx.globals.get(callee).target.function();
        let Some(key) = key.filter(|&k| module.get(k).is_some_and(Function::is_definition)) else {
            return Err(in_function(module, at, (var, ExportProblem::NoBody(name()))));
        };
        match is_done.insert(key, false) {
            None => stack.push(open(key)?),
            Some(true) => {
                is_done.insert(key, true);
            }
            Some(false) => return Err(in_function(module, at, (var, ExportProblem::Recursion(name())))),
        }
    }
    Ok(done)
}

/// Writes functions into a model and returns them by global. `reached` are the functions besides
/// the entry, each after those that it calls.
pub(super) fn export_functions(
    module: &Module,
    reached: Vec<Reached<'_>>,
    options: &ExportOptions,
    model: &mut ModelProto,
) -> Result<Functions, ExportError> {
    let mut functions = Functions::default();
    let versions = Versions::of(module, model);
    let name_of = |f: &FunctionProto| FileName {
        domain: f.domain().to_owned(),
        name: f.name().to_owned(),
        overload: f.overload().to_owned(),
    };
    let mut names: FxHashSet<FileName> = model.functions.iter().map(name_of).collect();
    let mut counters: FxHashMap<FileName, u64> = FxHashMap::default();
    // Identical copies of a function of a file become a single function again.
    let mut copies: FxHashMap<(FileName, Vec<u8>), FileName> = FxHashMap::default();
    for Reached { key, slots } in reached {
        let Some(function) = module.get(key) else { continue };
        let fault = |fault| in_function(module, key, fault);
        let in_file = in_file(&module.cx, function).map_err(|p| fault((None, p)))?;
        let (mut proto, given, depth) =
            export_function(&module.cx, function, in_file.as_ref(), slots, &functions, (options, &versions))
                .map_err(fault)?;
        let same = in_file.as_ref().map(|f| (f.name.clone(), proto.encode_to_vec()));
        let name = match same.as_ref().and_then(|same| copies.get(same)) {
            Some(name) => name.clone(),
            None => {
                let wish = in_file.map_or_else(|| FileName::own(module.name(key)), |f| f.name);
                let name = unique(wish, &mut names, &mut counters);
                copies.extend(same.map(|same| (same, name.clone())));
                proto.name = Some(name.name.clone());
                proto.domain = Some(name.domain.clone());
                proto.overload = Some(name.overload.clone()).filter(|o| !o.is_empty());
                model.functions.push(proto);
                name
            }
        };
        functions.extend(function.global().map(|g| (g, Written { name, given, depth })));
    }
    Ok(functions)
}

fn unique(wish: FileName, names: &mut FxHashSet<FileName>, counters: &mut FxHashMap<FileName, u64>) -> FileName {
    let mut name = wish.clone();
    while !names.insert(name.clone()) {
        let n = counters.entry(wish.clone()).or_insert(0);
        *n += 1;
        name.name = format!("{}_{n}", wish.name);
    }
    name
}

/// Returns the information that a function preserves about its file, if it was in one.
fn in_file(cx: &Context, function: &Function) -> Result<Option<InFile>, ExportProblem> {
    GraphMeta::of(function.meta).read(cx, keys::FUNCTION, |cx, value| {
        let &[domain, name, overload, is_typed] = list(cx, value)? else { return None };
        let text = |id| str(cx, id).map(str::to_owned);
        let name = FileName { domain: text(domain)?, name: text(name)?, overload: text(overload)? };
        let Attr::Bool(is_typed) = *cx.attrs.get(is_typed) else { return None };
        Some(InFile { name, is_typed }).filter(|f| !f.name.name.is_empty())
    })
}

/// Returns true if a function uses parts that only a later version of the format has.
pub(super) fn needs_version(function: &FunctionProto) -> bool {
    function.domain() == keys::OWN_DOMAIN
        || !function.overload().is_empty()
        || !function.value_info.is_empty()
        || !function.metadata_props.is_empty()
}

fn export_function<'m>(
    cx: &'m Context,
    function: &'m Function,
    in_file: Option<&InFile>,
    slots: Slots<'m>,
    functions: &'m Functions,
    (options, versions): (&'m ExportOptions, &'m Versions),
) -> Result<(FunctionProto, Vec<FunctionConstant>, usize), Fault> {
    let kind = if in_file.is_some() { GraphKind::FileFunction } else { GraphKind::Function };
    let exported = export_graph(cx, (function, kind, slots), functions, options, versions)?;
    let too_deep = |_| (None, ExportProblem::TooDeep(exported.depth));
    let graph = exported.graph.into_decoded().map_err(too_deep)?;
    let mut given = exported.given;
    let mut input: Vec<String> = graph.input.iter().map(|i| i.name().to_owned()).collect();
    let mut node = Vec::with_capacity(graph.node.len());
    if given.len() > MAX_GIVEN || in_file.is_some() {
        for constant in given.drain(..) {
            let mut constant = constant_node(&constant).map_err(|p| (None, p))?;
            if in_file.is_some() {
                constant.metadata_props.clear();
            }
            node.push(constant);
        }
    }
    input.extend(given.iter().map(|c| c.name.to_string()));
    node.extend(graph.node);

    let mut opset_import = Vec::new();
    for domain in std::iter::once(String::new()).chain(exported.domains) {
        let version = Some(versions.opset(&domain));
        opset_import.push(OperatorSetIdProto { domain: Some(domain), version });
    }
    let mut metadata_props = own_metadata(cx, function, &given).map_err(|p| (None, p))?;
    metadata_props.extend(graph.metadata_props);
    let output: Vec<String> = graph.output.iter().map(|o| o.name().to_owned()).collect();
    let mut value_info = Vec::new();
    if in_file.is_none_or(|f| f.is_typed) {
        value_info.extend(graph.input.into_iter().chain(graph.output));
    }
    value_info.extend(graph.value_info);
    value_info.retain(|i| i.r#type.is_some());
    let proto = FunctionProto {
        name: None,
        input,
        output,
        attribute: Vec::new(),
        node,
        doc_string: graph.doc_string,
        opset_import,
        domain: None,
        attribute_proto: Vec::new(),
        value_info,
        overload: None,
        metadata_props,
    };
    Ok((proto, given, exported.depth))
}

fn constant_node(constant: &FunctionConstant) -> Result<NodeProto, ExportProblem> {
    let value = constant_attribute("value", &constant.literal)?;
    let mut node = node("", "Constant", Vec::new(), vec![constant.name.to_string()], vec![value]);
    let (key, value) = (Some(keys::LITERAL.to_owned()), Some("true".to_owned()));
    node.metadata_props.push(StringStringEntryProto { key, value });
    Ok(node)
}

/// Returns metadata entries for the properties of a function that a function of a model cannot
/// state otherwise.
fn own_metadata(
    cx: &Context,
    function: &Function,
    given: &[FunctionConstant],
) -> Result<Vec<StringStringEntryProto>, ExportProblem> {
    let entry = |key: String, value: String| StringStringEntryProto { key: Some(key), value: Some(value) };
    let mut entries = Vec::new();
    if function.visibility == Visibility::Public {
        entries.push(entry(keys::VISIBILITY.to_owned(), "public".to_owned()));
    }
    for &(name, value) in cx.attrs.list(function.attrs) {
        let name = cx.names.get(name);
        let text = match cx.attrs.get(value) {
            Attr::Int(i) => i.to_string(),
            Attr::Bool(b) => b.to_string(),
            Attr::Str(s) => format!("\"{}\"", cx.names.get(*s)),
            Attr::Float(bits) => format!("float64 0x{bits:016x}"),
            _ => return Err(ExportProblem::Unsupported(format!("the attribute `{name}` of a function"))),
        };
        entries.push(entry(format!("{}{name}", keys::ATTRIBUTE), text));
    }
    if !given.is_empty() {
        entries.push(entry(keys::GIVEN.to_owned(), given.len().to_string()));
    }
    let body = &function.body;
    let tail = body.tail(body.root());
    let fields = cx.types.as_tuple(body.ty(tail)).map(<[_]>::len);
    let is_tuple = matches!(body.expr(tail), Expr::Tuple(_));
    match fields {
        Some(0 | 1) => entries.push(entry(keys::RESULT.to_owned(), "tuple".to_owned())),
        Some(_) if !is_tuple => entries.push(entry(keys::RESULT.to_owned(), "whole".to_owned())),
        _ => {}
    }
    if fields.is_none_or(|n| n > 1) && !is_tuple && !body.expr(tail).is_atom() {
        entries.push(entry(keys::TAIL.to_owned(), "value".to_owned()));
    }
    Ok(entries)
}

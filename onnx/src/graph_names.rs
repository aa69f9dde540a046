//! The names that a module preserves about the graphs of its file, and edits of them.

use std::collections::HashMap;
use std::hash::BuildHasher;

use anfora_ir::{Attr, AttrId, AttrsId, Body, Context, Cursor, Expr, ExprId, Function, Module, Step};
use prost::Message;

use crate::attributes::{decoded, encoded_attr, entries_attr, entries_of, list, str, strs, strs_attr};
use crate::keys;
use crate::proto::{TensorAnnotation, TypeProto, ValueInfoProto};

/// Returns the names of the outputs that the graph of a function had in its file; `None` if the
/// function was in none.
///
/// Cost: linear in the text.
pub fn output_names(cx: &Context, function: &Function) -> Option<Vec<String>> {
    let names = strs(cx, list(cx, cx.find_attr(function.meta, keys::OUTPUTS)?)?)?;
    Some(names.into_iter().map(str::to_owned).collect())
}

/// Sets the names of the outputs of a function from a file; an export writes them. Does nothing for
/// other functions, whose outputs have the names of their values.
///
/// Cost: linear in the text.
pub fn set_output_names(cx: &mut Context, function: &mut Function, names: &[String]) {
    if cx.find_attr(function.meta, keys::OUTPUTS).is_none() {
        return;
    }
    let names = strs_attr(cx, names.iter().map(String::as_str));
    function.meta = cx.with_attr(function.meta, keys::OUTPUTS, Some(names));
    function.meta = cx.with_attr(function.meta, keys::RETURNED, None);
}

/// Returns the name of the node that a binding with this metadata had in its file.
///
/// Cost: one entry.
pub fn node_name(cx: &Context, meta: AttrsId) -> Option<&str> {
    str(cx, cx.find_attr(meta, keys::NAME)?)
}

/// Removes the training information of a file from its module. It is about the whole graph.
///
/// Cost: one entry.
pub fn forget_training(module: &mut Module) {
    if module.cx.find_attr(module.attrs(), keys::TRAINING).is_some() {
        let attrs = module.attrs();
        let attrs = module.cx.with_attr(attrs, keys::TRAINING, None);
        module.set_attrs(attrs);
    }
}

/// Removes the names in the file of symbolic dimensions of a function, by their names in the
/// module.
///
/// Cost: linear in the text.
pub fn forget_file_dimensions(cx: &mut Context, function: &mut Function, is_gone: impl Fn(&str) -> bool) {
    let Some(entries) = cx.find_attr(function.meta, keys::DIMENSIONS).and_then(|value| entries_of(cx, value)) else {
        return;
    };
    let kept: Vec<_> = entries.into_iter().filter(|entry| !is_gone(entry.key())).collect();
    let kept = entries_attr(cx, &kept);
    function.meta = cx.with_attr(function.meta, keys::DIMENSIONS, kept);
}

/// Sets the name of a function of a file, under which an export writes it. Does nothing for other
/// functions.
///
/// Cost: linear in the text.
pub fn rename_file_function(cx: &mut Context, function: &mut Function, name: &str) {
    let Some(value) = cx.find_attr(function.meta, keys::FUNCTION) else { return };
    let Some(&[domain, _, overload, is_typed]) = list(cx, value) else { return };
    let name = cx.str_attr(name);
    let value = cx.attr(Attr::List(Box::new([domain, name, overload, is_typed])));
    function.meta = cx.with_attr(function.meta, keys::FUNCTION, Some(value));
}

// ---- Names and types in metadata ----

/// The keys under which metadata names values, for graphs and for branches.
const NAME_LISTS: [&str; 3] = [keys::OUTPUTS, keys::RETURNED, keys::INPUTS];
const INFO_LISTS: [&str; 2] = [keys::INFOS, keys::OUTPUT_INFOS];

/// Calls `each` with the names of values that the metadata of a function and of its bindings has:
/// those of outputs and of constants. Linear in the function.
pub fn for_each_file_name(cx: &Context, function: &Function, mut each: impl FnMut(&str)) {
    for (_, meta) in metas(function) {
        for key in NAME_LISTS.iter().flat_map(|key| in_branches(key)) {
            let names = cx.find_attr(meta, &key).and_then(|value| strs(cx, list(cx, value)?));
            names.into_iter().flatten().filter(|name| !name.is_empty()).for_each(&mut each);
        }
    }
}

/// Renames values in the metadata of a function and of its bindings. Linear in the function.
pub fn rename_in_file<S: BuildHasher>(cx: &mut Context, function: &mut Function, names: &HashMap<String, String, S>) {
    let renamed = |name: &str| names.get(name).cloned();
    edit_metas(cx, function, |cx, key, value| match key {
        _ if NAME_LISTS.contains(&key) => {
            let before = strs(cx, list(cx, value)?)?;
            let after: Vec<String> = before.iter().map(|&n| renamed(n).unwrap_or_else(|| n.to_owned())).collect();
            Some(strs_attr(cx, after.iter().map(String::as_str)))
        }
        _ if INFO_LISTS.contains(&key) => edit_messages(cx, value, |info: &mut ValueInfoProto| {
            if let Some(name) = renamed(info.name()) {
                info.name = Some(name);
            }
        }),
        keys::INFO => edit_message(cx, value, |info: &mut ValueInfoProto| {
            if let Some(name) = renamed(info.name()) {
                info.name = Some(name);
            }
        }),
        keys::QUANTIZATION => edit_messages(cx, value, |annotation: &mut TensorAnnotation| {
            if let Some(name) = renamed(annotation.tensor_name()) {
                annotation.tensor_name = Some(name);
            }
            for entry in &mut annotation.quant_parameter_tensor_names {
                if let Some(name) = renamed(entry.value()) {
                    entry.value = Some(name);
                }
            }
        }),
        keys::DEFAULTS => {
            let mut items = list(cx, value)?.to_vec();
            for item in &mut items {
                let Some(&[name, default]) = list(cx, *item) else { continue };
                if let Some(new) = str(cx, name).and_then(renamed) {
                    let new = cx.str_attr(&new);
                    *item = cx.attr(Attr::List(Box::new([new, default])));
                }
            }
            Some(cx.attr(Attr::List(items.into())))
        }
        _ => None,
    });
}

/// Removes the types that the file states about values of a function beside those of the module, so
/// that an export writes the types of the module. What else the file says about the values stays.
/// Linear in the function.
pub fn forget_stated_types(cx: &mut Context, function: &mut Function) {
    edit_metas(cx, function, |cx, key, value| match key {
        _ if INFO_LISTS.contains(&key) => edit_messages(cx, value, |info: &mut ValueInfoProto| info.r#type = None),
        // A statement without a text only says that the file states the type.
        keys::INFO => {
            let mut info: ValueInfoProto = decoded(cx, value)?;
            if info.doc_string.is_none() && info.metadata_props.is_empty() {
                return Some(cx.attr(Attr::Bool(true)));
            }
            // An empty type stands for that of the module.
            info.r#type = info.r#type.map(|_| TypeProto::default());
            Some(encoded_attr(cx, &info))
        }
        _ => None,
    });
}

/// Returns the metadata of a function, and of its bindings in branches and `fn`s too, each with its
/// variable.
fn metas(function: &Function) -> Vec<(Option<ExprId>, AttrsId)> {
    let body: &Body = &function.body;
    let mut found = vec![(None, function.meta)];
    let params = body.params().iter().map(|var| var.expr());
    found.extend(params.filter_map(|var| Some((Some(var), body.meta(var)?))));
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        if let Step::Let(id) = step
            && let Expr::Let { var, .. } = body.expr(id)
            && let Some(meta) = body.meta(var.expr())
        {
            found.push((Some(var.expr()), meta));
        }
    }
    found
}

/// Returns a key of a graph, and the keys of branches for it.
fn in_branches(key: &str) -> [String; 3] {
    [key.to_owned(), keys::of_branch(keys::THEN, key), keys::of_branch(keys::ELSE, key)]
}

/// Edits the values in the metadata of a function and of its bindings. `edit` is passed the key of
/// a graph, also for branches, and returns the new value; `None` keeps the old one.
fn edit_metas(
    cx: &mut Context,
    function: &mut Function,
    mut edit: impl FnMut(&mut Context, &str, AttrId) -> Option<AttrId>,
) {
    for (var, meta) in metas(function) {
        let mut new = meta;
        for (name, value) in cx.attrs.list(meta).to_vec() {
            let name = cx.names.get(name).to_owned();
            let branch = [keys::THEN, keys::ELSE].into_iter().find_map(|branch| name.strip_prefix(branch));
            let key = branch.map_or_else(|| name.clone(), |rest| format!("{}{rest}", keys::PREFIX));
            if let Some(value) = edit(cx, &key, value) {
                new = cx.with_attr(new, &name, Some(value));
            }
        }
        match var {
            _ if new == meta => {}
            None => function.meta = new,
            Some(var) => function.body.set_meta(var, Some(new)),
        }
    }
}

/// Edits an encoded message.
fn edit_message<M: Message + Default>(cx: &mut Context, value: AttrId, edit: impl Fn(&mut M)) -> Option<AttrId> {
    let mut message: M = decoded(cx, value)?;
    edit(&mut message);
    Some(encoded_attr(cx, &message))
}

/// Edits each message of an encoded list.
fn edit_messages<M: Message + Default>(cx: &mut Context, value: AttrId, edit: impl Fn(&mut M)) -> Option<AttrId> {
    let mut items = list(cx, value)?.to_vec();
    for item in &mut items {
        *item = edit_message(cx, *item, &edit)?;
    }
    Some(cx.attr(Attr::List(items.into())))
}

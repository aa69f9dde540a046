//! Attributes of functions: what a call gives stands in the function's nodes wherever they refer to it.

use prost::Message;
use rustc_hash::FxHashMap;

use crate::proto::{AttributeProto, FunctionProto, NodeProto};

/// The attributes that a function declares, each with its value; `None` if it has neither a value nor a default.
pub(super) type Arguments = FxHashMap<String, Option<AttributeProto>>;

/// The attributes of a function for a call; `None` if the call gives one that the function does not declare, or graphs.
pub(super) fn arguments(function: &FunctionProto, call: &NodeProto) -> Option<Arguments> {
    let mut arguments = Arguments::default();
    arguments.extend(function.attribute.iter().map(|name| (name.clone(), None)));
    arguments.extend(function.attribute_proto.iter().map(|a| (a.name().to_owned(), Some(a.clone()))));
    for given in &call.attribute {
        let is_plain = given.g.is_none() && given.graphs.is_empty() && given.ref_attr_name.is_none();
        let argument = arguments.get_mut(given.name())?;
        let fits = argument.as_ref().is_none_or(|default| default.r#type() == given.r#type());
        if !is_plain || !fits {
            return None;
        }
        *argument = Some(given.clone());
    }
    Some(arguments)
}

/// What tells two lists of attributes of one function apart.
pub(super) fn key_of(function: &FunctionProto, arguments: &Arguments) -> Vec<u8> {
    let mut key = Vec::new();
    let declared = function.attribute.iter().map(String::as_str);
    for name in declared.chain(function.attribute_proto.iter().map(AttributeProto::name)) {
        match arguments.get(name) {
            Some(Some(value)) => key.extend(value.encode_length_delimited_to_vec()),
            _ => key.push(0),
        }
    }
    key
}

/// A node of a function, with the attributes that it takes from the function's.
pub(super) fn with_arguments(mut node: NodeProto, arguments: &Arguments) -> NodeProto {
    if arguments.is_empty() || node.attribute.iter().all(|a| a.ref_attr_name.is_none()) {
        return node;
    }
    let attributes = std::mem::take(&mut node.attribute).into_iter();
    let resolved = attributes.filter_map(|attribute| match arguments.get(attribute.ref_attr_name()) {
        Some(value) => {
            let value = value.clone()?;
            Some(AttributeProto { name: attribute.name, doc_string: attribute.doc_string, ..value })
        }
        None => Some(attribute),
    });
    node.attribute = resolved.collect();
    node
}

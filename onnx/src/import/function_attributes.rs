//! Attributes of functions: what a call gives stands in the function's nodes wherever they refer to it.

use prost::Message;
use rustc_hash::FxHashMap;

use crate::proto::{AttributeProto, FunctionProto, NodeProto};

/// The attributes that a function declares, each with its value; `None` if it has neither a value nor a default.
pub(super) type Arguments = FxHashMap<String, Option<AttributeProto>>;

/// The attributes that a function declares, with their defaults.
pub(super) fn declared(function: &FunctionProto) -> Arguments {
    let mut declared = Arguments::default();
    declared.extend(function.attribute.iter().map(|name| (name.clone(), None)));
    declared.extend(function.attribute_proto.iter().map(|a| (a.name().to_owned(), Some(a.clone()))));
    declared
}

/// The attributes that a call gives, by name; `None` if it gives one that the function does not declare, one twice, or graphs.
pub(super) fn given_attributes<'a>(declared: &Arguments, call: &'a NodeProto) -> Option<Vec<&'a AttributeProto>> {
    let mut given = Vec::with_capacity(call.attribute.len());
    for attribute in &call.attribute {
        let is_plain = attribute.g.is_none() && attribute.graphs.is_empty() && attribute.ref_attr_name.is_none();
        let default = declared.get(attribute.name())?;
        let fits = default.as_ref().is_none_or(|default| default.r#type() == attribute.r#type());
        if !is_plain || !fits {
            return None;
        }
        given.push(attribute);
    }
    given.sort_by(|a, b| a.name().cmp(b.name()));
    given.is_sorted_by(|a, b| a.name() < b.name()).then_some(given)
}

/// What tells two calls of one function apart, by the attributes that they give.
pub(super) fn key_of(given: &[&AttributeProto]) -> Vec<u8> {
    given.iter().flat_map(|a| a.encode_length_delimited_to_vec()).collect()
}

/// The attributes of a function for a call.
pub(super) fn arguments(declared: &Arguments, given: &[&AttributeProto]) -> Arguments {
    let mut arguments = declared.clone();
    arguments.extend(given.iter().map(|&a| (a.name().to_owned(), Some(a.clone()))));
    arguments
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

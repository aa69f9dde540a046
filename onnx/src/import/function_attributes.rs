//! Attributes of functions: what a call gives stands in the function's nodes wherever they refer to it.

use prost::Message;
use rustc_hash::FxHashMap;

use crate::error::ImportProblem;
use crate::proto::{AttributeProto, FunctionProto, NodeProto};

/// The attributes that a function declares, each with its value; `None` if it has neither a value nor a default.
///
/// Values in place of references are bounded by [`room_for`], as each is decoded wherever it stands.
pub(super) type Arguments = FxHashMap<String, Option<Argument>>;

/// A value of an attribute.
#[derive(Clone)]
pub(super) struct Argument {
    value: AttributeProto,
    /// In bytes.
    size: usize,
}

impl Argument {
    fn new(value: &AttributeProto) -> Argument {
        Argument { value: value.clone(), size: value.encoded_len() }
    }
}

/// The attributes that a function declares, with their defaults.
pub(super) fn declared(function: &FunctionProto) -> Arguments {
    let mut declared = Arguments::default();
    declared.extend(function.attribute.iter().map(|name| (name.clone(), None)));
    declared.extend(function.attribute_proto.iter().map(|a| (a.name().to_owned(), Some(Argument::new(a)))));
    declared
}

/// The attributes that a call gives, by name; `None` if it gives one that the function does not declare, one twice, or graphs.
pub(super) fn given_attributes<'a>(declared: &Arguments, call: &'a NodeProto) -> Option<Vec<&'a AttributeProto>> {
    let mut given = Vec::with_capacity(call.attribute.len());
    for attribute in &call.attribute {
        let is_plain = attribute.g.is_none() && attribute.graphs.is_empty() && attribute.ref_attr_name.is_none();
        let default = declared.get(attribute.name())?;
        let fits = default.as_ref().is_none_or(|default| default.value.r#type() == attribute.r#type());
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
    arguments.extend(given.iter().map(|&a| (a.name().to_owned(), Some(Argument::new(a)))));
    arguments
}

/// How many bytes of values may stand in place of references to them, in a file of so many bytes: time stays linear in it.
pub(super) fn room_for(file: usize) -> usize {
    const AT_LEAST: usize = 1 << 24;
    file.saturating_mul(64).max(AT_LEAST)
}

/// A node of a function, with the attributes that it takes from the function's. What they take is taken from `room`.
///
/// # Errors
/// If there is less room.
pub(super) fn with_arguments(
    mut node: NodeProto,
    arguments: &Arguments,
    room: &mut usize,
) -> Result<NodeProto, ImportProblem> {
    if arguments.is_empty() || node.attribute.iter().all(|a| a.ref_attr_name.is_none()) {
        return Ok(node);
    }
    let mut resolved = Vec::with_capacity(node.attribute.len());
    for attribute in std::mem::take(&mut node.attribute) {
        let Some(argument) = arguments.get(attribute.ref_attr_name()) else {
            resolved.push(attribute);
            continue;
        };
        if let Some(Argument { value, size }) = argument {
            *room = room.checked_sub(*size).ok_or(ImportProblem::References)?;
            let AttributeProto { name, doc_string, .. } = attribute;
            resolved.push(AttributeProto { name, doc_string, ..value.clone() });
        }
    }
    node.attribute = resolved;
    Ok(node)
}

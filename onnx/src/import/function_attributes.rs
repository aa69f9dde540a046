//! Attributes of functions. The values that a call gives replace the references in the function's
//! nodes.

use prost::Message;
use rustc_hash::FxHashMap;

use crate::error::ImportProblem;
use crate::proto::{AttributeProto, FunctionProto, NodeProto};

/// The attributes that a function declares, each with its value; `None` if it has neither a value
/// nor a default.
///
/// Each substituted value is decoded where it stands, so [`room_for`] bounds their total size.
pub(super) type Arguments = FxHashMap<String, Option<Argument>>;

/// The value of an attribute.
#[derive(Clone)]
pub(super) struct Argument {
    value: AttributeProto,
    /// The encoded size in bytes.
    size: usize,
}

impl Argument {
    fn new(value: &AttributeProto) -> Argument {
        Argument { value: value.clone(), size: value.encoded_len() }
    }
}

/// Returns the attributes that a function declares, with their defaults.
pub(super) fn declared(function: &FunctionProto) -> Arguments {
    let mut declared = Arguments::default();
    declared.extend(function.attribute.iter().map(|name| (name.clone(), None)));
    declared.extend(function.attribute_proto.iter().map(|a| (a.name().to_owned(), Some(Argument::new(a)))));
    declared
}

/// Returns the attributes that a call gives, sorted by name. Returns `None` if the call gives an
/// attribute that the function does not declare or that has another type than its default, gives an
/// attribute twice, or gives graphs.
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

/// Returns a key of the attributes that a call gives. Calls of a function with equal keys give
/// equal attributes.
pub(super) fn key_of(given: &[&AttributeProto]) -> Vec<u8> {
    given.iter().flat_map(|a| a.encode_length_delimited_to_vec()).collect()
}

/// Returns the values of the attributes of a function in a call.
pub(super) fn arguments(declared: &Arguments, given: &[&AttributeProto]) -> Arguments {
    let mut arguments = declared.clone();
    arguments.extend(given.iter().map(|&a| (a.name().to_owned(), Some(Argument::new(a)))));
    arguments
}

/// Returns the number of bytes that values may take in place of references, for a file of `file`
/// bytes. The limit keeps the time linear in the file.
pub(super) fn room_for(file: usize) -> usize {
    const AT_LEAST: usize = 1 << 24;
    file.saturating_mul(64).max(AT_LEAST)
}

/// Returns a node of a function with its references to attributes of the function replaced by their
/// values. Subtracts the size of these values from `room`.
///
/// # Errors
/// If the values need more than `room`.
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

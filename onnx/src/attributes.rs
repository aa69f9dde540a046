//! Conversion of attributes between ONNX and the IR.

use anfora_ir::{Attr, AttrId, Context, DType, Literal, NameId};
use bytes::Bytes;
use prost::Message;

use crate::error::ExportProblem;
use crate::keys;
use crate::proto::{AttributeProto, AttributeType, StringStringEntryProto, TensorProto};
use crate::tensor::{TensorError, literal_of, number_of, tensor_of};
use crate::types::{SymbolNames, proto_of};

/// Returns the value of an attribute if the IR can hold it without loss: a number, a string, a
/// tensor, or a nonempty list of numbers or of strings. Returns `None` otherwise.
///
/// # Errors
/// If the attribute is a malformed tensor.
pub(crate) fn value_of(cx: &mut Context, attribute: &AttributeProto) -> Result<Option<AttrId>, TensorError> {
    let Some(name) = &attribute.name else { return Ok(None) };
    if !is_plain_name(name) || !has_only_its_value(attribute) {
        return Ok(None);
    }
    let text = |s: &Bytes| std::str::from_utf8(s).ok().map(str::to_owned);
    Ok(match attribute.r#type() {
        AttributeType::Float => {
            let f = attribute.f.unwrap_or(0.0);
            f.is_finite().then(|| cx.float_attr(f64::from(f)))
        }
        AttributeType::Int => Some(cx.int_attr(attribute.i.unwrap_or(0))),
        AttributeType::String => match &attribute.s {
            Some(s) => text(s).map(|s| cx.str_attr(&s)),
            None => Some(cx.str_attr("")),
        },
        AttributeType::Tensor => match &attribute.t {
            Some(t) if t.name.is_none() && t.doc_string.is_none() && t.metadata_props.is_empty() => match literal_of(t)
            {
                // A scalar of these types would be printed as a number and read back as one, not as
                // a tensor.
                Ok(l) if l.rank() == 0 && matches!(l.dtype(), DType::Int64 | DType::Float64 | DType::Bool) => None,
                Ok(l) => {
                    let id = cx.literals.intern(l);
                    Some(cx.attr(Attr::Literal(id)))
                }
                Err(TensorError::DType(_) | TensorError::Segment | TensorError::Text(_)) => None,
                Err(e) => return Err(e),
            },
            _ => None,
        },
        AttributeType::Floats if !attribute.floats.is_empty() && attribute.floats.iter().all(|f| f.is_finite()) => {
            let items = attribute.floats.iter().map(|&f| cx.float_attr(f64::from(f))).collect();
            Some(cx.attr(Attr::List(items)))
        }
        AttributeType::Ints if !attribute.ints.is_empty() => Some(cx.ints_attr(&attribute.ints)),
        AttributeType::Strings if !attribute.strings.is_empty() => {
            let strings: Option<Vec<String>> = attribute.strings.iter().map(text).collect();
            strings.map(|s| strs_attr(cx, s.iter().map(String::as_str)))
        }
        _ => None,
    })
}

/// Returns true if a name can stand unquoted before `=` in the text format and is not one of this
/// crate's keys.
fn is_plain_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(keys::PREFIX)
}

/// Returns true if only the name, the type, and the field for that type are set.
pub(crate) fn has_only_its_value(a: &AttributeProto) -> bool {
    let AttributeProto {
        name: _,
        ref_attr_name,
        doc_string,
        r#type: _,
        f,
        i,
        s,
        t,
        g,
        sparse_tensor,
        tp,
        floats,
        ints,
        strings,
        tensors,
        graphs,
        sparse_tensors,
        type_protos,
    } = a;
    let filled = [
        (AttributeType::Float, f.is_some()),
        (AttributeType::Int, i.is_some()),
        (AttributeType::String, s.is_some()),
        (AttributeType::Tensor, t.is_some()),
        (AttributeType::Graph, g.is_some()),
        (AttributeType::SparseTensor, sparse_tensor.is_some()),
        (AttributeType::TypeProto, tp.is_some()),
        (AttributeType::Floats, !floats.is_empty()),
        (AttributeType::Ints, !ints.is_empty()),
        (AttributeType::Strings, !strings.is_empty()),
        (AttributeType::Tensors, !tensors.is_empty()),
        (AttributeType::Graphs, !graphs.is_empty()),
        (AttributeType::SparseTensors, !sparse_tensors.is_empty()),
        (AttributeType::TypeProtos, !type_protos.is_empty()),
    ];
    ref_attr_name.is_none()
        && doc_string.is_none()
        && filled.iter().all(|&(ty, is_filled)| !is_filled || ty == a.r#type())
}

/// Returns the message for an attribute; `None` for an attribute without a value.
///
/// # Errors
/// If ONNX has no such value.
pub(crate) fn message_of(cx: &Context, name: &str, value: AttrId) -> Result<Option<AttributeProto>, ExportProblem> {
    let mut a = AttributeProto { name: Some(name.to_owned()), ..AttributeProto::default() };
    let ty = match cx.attrs.get(value) {
        Attr::None => return Ok(None),
        Attr::Bool(b) => {
            a.i = Some(i64::from(*b));
            AttributeType::Int
        }
        Attr::Int(i) => {
            a.i = Some(*i);
            AttributeType::Int
        }
        Attr::Float(bits) => {
            a.f = Some(f64::from_bits(*bits) as f32);
            AttributeType::Float
        }
        Attr::Str(s) => {
            a.s = Some(Bytes::copy_from_slice(cx.names.get(*s).as_bytes()));
            AttributeType::String
        }
        Attr::Literal(l) => {
            let literal = cx.literals.get(*l);
            a.t = Some(Box::new(tensor_of(literal, i32::MAX as u64)?));
            AttributeType::Tensor
        }
        Attr::DType(d) => {
            a.i = number_of(*d).map(i64::from);
            AttributeType::Int
        }
        Attr::Type(t) => {
            let proto = proto_of(cx, &SymbolNames::default(), *t);
            a.tp = Some(Box::new(proto.ok_or_else(|| ExportProblem::Type(cx.type_text(*t)))?));
            AttributeType::TypeProto
        }
        Attr::List(items) => list_message(cx, &mut a, items).ok_or_else(|| unsupported(name))?,
        Attr::Shape(_) | Attr::Function(_) | Attr::Global(_) | Attr::Op(_) => return Err(unsupported(name)),
    };
    a.set_type(ty);
    Ok(Some(a))
}

fn unsupported(name: &str) -> ExportProblem {
    ExportProblem::Unsupported(format!("the value of the attribute `{name}`"))
}

fn list_message(cx: &Context, a: &mut AttributeProto, items: &[AttrId]) -> Option<AttributeType> {
    let all = |is: fn(&Attr) -> bool| items.iter().all(|&i| is(cx.attrs.get(i)));
    if all(|a| matches!(a, Attr::Int(_))) {
        a.ints = items.iter().filter_map(|&i| int(cx, i)).collect();
        return Some(AttributeType::Ints);
    }
    if all(|a| matches!(a, Attr::Int(_) | Attr::Float(_))) {
        let float = |&i: &AttrId| match cx.attrs.get(i) {
            Attr::Float(bits) => f64::from_bits(*bits) as f32,
            Attr::Int(i) => *i as f32,
            _ => 0.0,
        };
        a.floats = items.iter().map(float).collect();
        return Some(AttributeType::Floats);
    }
    a.strings = strs(cx, items)?.into_iter().map(|s| Bytes::copy_from_slice(s.as_bytes())).collect();
    Some(AttributeType::Strings)
}

/// Returns the value of an attribute that is an integer.
pub(crate) fn int(cx: &Context, value: AttrId) -> Option<i64> {
    match cx.attrs.get(value) {
        Attr::Int(i) => Some(*i),
        _ => None,
    }
}

/// Returns the value of an attribute that is a string.
pub(crate) fn str(cx: &Context, value: AttrId) -> Option<&str> {
    match cx.attrs.get(value) {
        Attr::Str(s) => Some(cx.names.get(*s)),
        _ => None,
    }
}

/// Returns the items of an attribute that is a list.
pub(crate) fn list(cx: &Context, value: AttrId) -> Option<&[AttrId]> {
    match cx.attrs.get(value) {
        Attr::List(items) => Some(items),
        _ => None,
    }
}

/// Returns the strings of a list whose items are all strings.
pub(crate) fn strs<'a>(cx: &'a Context, items: &[AttrId]) -> Option<Vec<&'a str>> {
    items.iter().map(|&i| str(cx, i)).collect()
}

/// Makes a list of strings an attribute.
pub(crate) fn strs_attr<'a>(cx: &mut Context, strings: impl Iterator<Item = &'a str>) -> AttrId {
    let items: Box<[AttrId]> = strings.map(|s| cx.str_attr(s)).collect();
    cx.attr(Attr::List(items))
}

/// Makes a list of pairs an attribute; returns `None` if there are no pairs.
pub(crate) fn entries_attr(cx: &mut Context, entries: &[StringStringEntryProto]) -> Option<AttrId> {
    if entries.is_empty() {
        return None;
    }
    let items: Box<[AttrId]> = entries.iter().map(|e| strs_attr(cx, [e.key(), e.value()].into_iter())).collect();
    Some(cx.attr(Attr::List(items)))
}

/// Returns the pairs of an attribute that [`entries_attr`] made.
pub(crate) fn entries_of(cx: &Context, value: AttrId) -> Option<Vec<StringStringEntryProto>> {
    let pair = |&item: &AttrId| match strs(cx, list(cx, item)?)?.as_slice() {
        [key, value] => Some(StringStringEntryProto { key: Some((*key).to_owned()), value: Some((*value).to_owned()) }),
        _ => None,
    };
    list(cx, value)?.iter().map(pair).collect()
}

/// Returns the attributes for a doc string and metadata properties.
pub(crate) fn doc_of(
    cx: &mut Context,
    doc: &Option<String>,
    metadata: &[StringStringEntryProto],
) -> Vec<(&'static str, AttrId)> {
    let mut meta = Vec::new();
    meta.extend(doc.as_ref().filter(|d| !d.is_empty()).map(|d| (keys::DOC, cx.str_attr(d))));
    meta.extend(entries_attr(cx, metadata).map(|m| (keys::METADATA, m)));
    meta
}

/// Returns a list of names, with the empty string where there is none, up to the last one; `None`
/// if there are no names.
pub(crate) fn hints_attr(cx: &mut Context, hints: &[Option<NameId>]) -> Option<AttrId> {
    let len = hints.iter().rposition(Option::is_some)? + 1;
    let item = |&hint: &Option<NameId>| {
        let name = hint.unwrap_or_else(|| cx.names.intern(""));
        cx.attr(Attr::Str(name))
    };
    let items = hints[..len].iter().map(item).collect();
    Some(cx.attr(Attr::List(items)))
}

/// Encodes a message and makes its bytes an attribute.
pub(crate) fn encoded_attr(cx: &mut Context, message: &impl Message) -> AttrId {
    bytes_attr(cx, message.encode_to_vec().into())
}

/// Makes the bytes of an encoded message an attribute: a uint8 tensor of rank 1.
pub(crate) fn bytes_attr(cx: &mut Context, bytes: Bytes) -> AttrId {
    let literal = Literal::from_bytes(DType::UInt8, &[bytes.len()], bytes).expect("the shape is made of the bytes");
    let id = cx.literals.intern(literal);
    cx.attr(Attr::Literal(id))
}

/// Encodes messages and makes them a list attribute; returns `None` if there are no messages.
pub(crate) fn encoded_list<M: Message>(cx: &mut Context, messages: &[M]) -> Option<AttrId> {
    if messages.is_empty() {
        return None;
    }
    let items: Box<[AttrId]> = messages.iter().map(|m| encoded_attr(cx, m)).collect();
    Some(cx.attr(Attr::List(items)))
}

/// Decodes the message of an attribute that [`encoded_attr`] made.
pub(crate) fn decoded<M: Message + Default>(cx: &Context, value: AttrId) -> Option<M> {
    let Attr::Literal(id) = cx.attrs.get(value) else { return None };
    let literal = cx.literals.get(*id);
    // An encoded message never consists of many equal bytes. A long splat was written by hand, and
    // expanding it could take much memory.
    let is_long_splat = literal.as_splat().is_some() && literal.element_count() > 16;
    if literal.dtype() != DType::UInt8 || literal.rank() != 1 || is_long_splat {
        return None;
    }
    M::decode(literal.to_bytes()).ok()
}

/// Decodes the messages of an attribute that [`encoded_list`] made.
pub(crate) fn decoded_list<M: Message + Default>(cx: &Context, value: AttrId) -> Option<Vec<M>> {
    list(cx, value)?.iter().map(|&i| decoded(cx, i)).collect()
}

/// Returns an attribute of this name and type, without a value.
pub(crate) fn no_value(name: &str, ty: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(ty as i32), ..AttributeProto::default() }
}

/// Returns an attribute that is an integer.
///
/// Cost: one node.
pub fn int_attribute(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..no_value(name, AttributeType::Int) }
}

/// Returns an attribute that is a float.
///
/// Cost: one node.
pub fn float_attribute(name: &str, value: f64) -> AttributeProto {
    AttributeProto { f: Some(value as f32), ..no_value(name, AttributeType::Float) }
}

/// Returns an attribute that is a list of floats.
///
/// Cost: one loop.
pub fn floats_attribute(name: &str, values: &[f64]) -> AttributeProto {
    AttributeProto { floats: values.iter().map(|&v| v as f32).collect(), ..no_value(name, AttributeType::Floats) }
}

/// Returns an attribute that is a list of integers.
///
/// Cost: one loop.
pub fn ints_attribute(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..no_value(name, AttributeType::Ints) }
}

/// Returns an attribute that is a string.
///
/// Cost: one node.
pub fn str_attribute(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(Bytes::copy_from_slice(value.as_bytes())), ..no_value(name, AttributeType::String) }
}

/// Returns an attribute that is a list of strings.
///
/// Cost: one loop.
pub fn strs_attribute(name: &str, values: &[&str]) -> AttributeProto {
    let strings = values.iter().map(|v| Bytes::copy_from_slice(v.as_bytes())).collect();
    AttributeProto { strings, ..no_value(name, AttributeType::Strings) }
}

/// Returns an attribute that is a tensor.
///
/// Cost: one node.
pub fn tensor_attribute(name: &str, value: TensorProto) -> AttributeProto {
    AttributeProto { t: Some(Box::new(value)), ..no_value(name, AttributeType::Tensor) }
}

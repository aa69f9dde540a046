//! A check of a file's bytes before they are decoded.
//!
//! The check is a single pass over the wire format with an explicit stack. The messages and their
//! fields are those that [`crate::proto`] declares. It refuses fields that this crate does not
//! know, which the decoder would silently drop, faults inside messages that are decoded later, and
//! nesting beyond the limit of 100 messages that protocol buffer readers have. Its errors name the
//! message, the field and the byte.

use std::ops::Range;

use bytes::Bytes;

use crate::proto::{GraphProto, ModelProto, TensorProto};
use crate::schema::{Payload, Schema};

/// The number of the field [`GraphProto::node`].
pub(crate) const NODE: u32 = 1;

/// The deepest nesting of messages below the root.
pub const MAX_DEPTH: usize = 100;

/// The treatment of fields that the format does not define, as far as this crate knows.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum UnknownFields {
    /// An unknown field is an error, since it may have a meaning that would be lost.
    #[default]
    Refuse,
    /// An unknown field is dropped.
    Drop,
}

/// The reason why bytes are not a model, and the place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {offset}, in {place}: {problem}")]
pub struct WireError {
    /// The offset of the field's first byte.
    pub offset: usize,
    /// The message, and the field if it is known.
    pub place: String,
    /// The problem.
    pub problem: WireProblem,
}

/// A problem with a field.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireProblem {
    /// The message ends inside the field.
    #[error("the message ends in the middle of a field")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("a variable-length number is too long")]
    LongNumber,
    /// The field number is 0 or beyond the format's limit.
    #[error("{0} is not a field tag")]
    BadTag(u64),
    /// The encoding of the field does not match its type.
    #[error("the field has wire type {0}, which its type does not allow")]
    WireType(u8),
    /// The format does not define the field.
    #[error("the field number {0} is not known (it belongs to a later version of the format, or the file is damaged)")]
    UnknownField(u32),
    /// A field that holds a single message occurs twice.
    #[error("the field occurs twice")]
    Twice,
    /// Messages are nested too deep.
    #[error("messages are nested more than {MAX_DEPTH} deep")]
    TooDeep,
}

struct Frame {
    schema: &'static Schema,
    /// The offset at which the message ends.
    end: usize,
    /// The lazy fields that have occurred, as a bit set.
    seen: u32,
}

/// The position of the scan.
struct Scan<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// The offset at which the current field starts.
    field_start: usize,
}

impl Scan<'_> {
    fn error(&self, schema: &Schema, field: Option<&'static str>, problem: WireProblem) -> WireError {
        let place = match field {
            Some(f) => format!("{}.{f}", schema.name),
            None => schema.name.to_owned(),
        };
        WireError { offset: self.field_start, place, problem }
    }

    /// Reads a variable-length number that ends before `end`.
    #[inline]
    fn varint(&mut self, end: usize) -> Result<u64, WireProblem> {
        // Most numbers are tags and lengths of a single byte.
        match self.bytes.get(self.pos) {
            Some(&byte) if byte < 0x80 && self.pos < end => {
                self.pos += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(end),
        }
    }

    fn long_varint(&mut self, end: usize) -> Result<u64, WireProblem> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            if self.pos >= end {
                return Err(WireProblem::Truncated);
            }
            let byte = self.bytes[self.pos];
            self.pos += 1;
            if shift == 63 && byte > 1 {
                return Err(WireProblem::LongNumber);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireProblem::LongNumber)
    }

    /// Skips `n` bytes and returns the offset of their end.
    #[inline]
    fn skip(&mut self, n: u64, end: usize) -> Result<usize, WireProblem> {
        match usize::try_from(n).ok().and_then(|n| self.pos.checked_add(n)) {
            Some(p) if p <= end => {
                self.pos = p;
                Ok(p)
            }
            _ => Err(WireProblem::Truncated),
        }
    }

    /// Skips a value of a wire type without nesting. For a delimited value, stops at its first byte
    /// and returns its end.
    #[inline]
    fn value(&mut self, wire: u8, end: usize) -> Result<Option<usize>, WireProblem> {
        match wire {
            0 => self.varint(end).map(|_| None),
            1 => self.skip(8, end).map(|_| None),
            5 => self.skip(4, end).map(|_| None),
            2 => {
                let n = self.varint(end)?;
                let start = self.pos;
                let stop = self.skip(n, end)?;
                self.pos = start;
                Ok(Some(stop))
            }
            other => Err(WireProblem::WireType(other)),
        }
    }
}

/// A summary of a checked message.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct WireSummary {
    /// The offset of the first field about data in another file.
    pub external_data: Option<usize>,
    /// The number of nodes of the model's graph, without those in the graphs of its nodes.
    pub nodes: usize,
    /// The number of statements about values of the model's graph.
    pub value_infos: usize,
    /// The number of initializers of the model's graph.
    pub initializers: usize,
    /// True if a text is not UTF-8. The message that has it cannot be decoded.
    pub has_bad_text: bool,
}

/// Checks that `bytes` are the encoding of a model and that all its fields are known.
///
/// Takes constant memory.
///
/// Cost: linear in the bytes.
///
/// # Errors
/// If they are not. The error names the first byte at fault.
pub fn check(bytes: &[u8], unknown: UnknownFields) -> Result<WireSummary, WireError> {
    check_message(bytes, ModelProto::schema(), unknown)
}

/// Checks that `bytes` are the encoding of a tensor and that all its fields are known.
///
/// Cost: linear in the bytes.
///
/// # Errors
/// If they are not. The error names the first byte at fault.
pub fn check_tensor(bytes: &[u8], unknown: UnknownFields) -> Result<WireSummary, WireError> {
    check_message(bytes, TensorProto::schema(), unknown)
}

/// A field of a checked message: its number, and its bytes and those of its contents, as offsets in
/// the message. The contents are empty if the field is a number.
pub(crate) struct WireField {
    pub(crate) number: u32,
    pub(crate) field: Range<usize>,
    pub(crate) contents: Range<usize>,
}

/// Returns the fields of a checked message.
#[inline]
pub(crate) fn fields(bytes: &[u8]) -> impl Iterator<Item = WireField> {
    let mut scan = Scan { bytes, pos: 0, field_start: 0 };
    std::iter::from_fn(move || {
        let (start, end) = (scan.pos, bytes.len());
        if start == end {
            return None;
        }
        let tag = scan.varint(end).ok()?;
        let stop = scan.value((tag & 7) as u8, end).ok()?;
        let contents = scan.pos..stop.unwrap_or(scan.pos);
        scan.pos = contents.end;
        Some(WireField { number: u32::try_from(tag >> 3).ok()?, field: start..contents.end, contents })
    })
}

/// Splits a checked message. Appends the messages in a field to `messages`, and returns the
/// remaining pieces, which form a message of the same kind without that field.
pub(crate) fn split(bytes: &Bytes, number: u32, messages: &mut Vec<Bytes>) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut piece_start = 0;
    for WireField { field, contents, .. } in fields(bytes).filter(|f| f.number == number) {
        if piece_start < field.start {
            pieces.push(bytes.slice(piece_start..field.start));
        }
        messages.push(bytes.slice(contents));
        piece_start = field.end;
    }
    if piece_start < bytes.len() {
        pieces.push(bytes.slice(piece_start..));
    }
    pieces
}

/// Returns true if a checked graph has data in another file.
pub(crate) fn graph_has_external_data(bytes: &[u8]) -> bool {
    check_message(bytes, GraphProto::schema(), UnknownFields::Drop).is_ok_and(|s| s.external_data.is_some())
}

fn check_message(bytes: &[u8], root: &'static Schema, unknown: UnknownFields) -> Result<WireSummary, WireError> {
    let mut summary = WireSummary::default();
    let mut scan = Scan { bytes, pos: 0, field_start: 0 };
    let mut stack = Vec::with_capacity(16);
    stack.push(Frame { schema: root, end: bytes.len(), seen: 0 });
    while let Some(frame) = stack.last_mut() {
        let (schema, end) = (frame.schema, frame.end);
        if scan.pos == end {
            stack.pop();
            continue;
        }
        // The tag: the number of a field, and the form of its value.
        scan.field_start = scan.pos;
        let tag = scan.varint(end).map_err(|p| scan.error(schema, None, p))?;
        let (wire, number) = ((tag & 7) as u8, u32::try_from(tag >> 3).unwrap_or(0));
        if number == 0 || number >= 1 << 29 {
            return Err(scan.error(schema, None, WireProblem::BadTag(tag)));
        }
        // A field that the schema does not have is passed over, if that is asked for.
        let Some(field) = schema.field(number) else {
            if unknown == UnknownFields::Refuse || wire == 3 || wire == 4 {
                return Err(scan.error(schema, None, WireProblem::UnknownField(number)));
            }
            if let Some(stop) = scan.value(wire, end).map_err(|p| scan.error(schema, None, p))? {
                scan.pos = stop;
            }
            continue;
        };
        // A known field: the form must be that of its type.
        let name = field.name;
        let allowed = match field.payload {
            Payload::Number(of, _) => wire == of,
            Payload::Numbers(of, _) => wire == of || wire == 2,
            Payload::Blob | Payload::Text | Payload::Message(_) | Payload::LazyMessage(_) => wire == 2,
        };
        if !allowed {
            return Err(scan.error(schema, Some(name), WireProblem::WireType(wire)));
        }
        let stop = scan.value(wire, end).map_err(|p| scan.error(schema, Some(name), p))?;
        let Some(stop) = stop else { continue };
        if name == "external_data" && schema.name == TensorProto::schema().name {
            summary.external_data.get_or_insert(scan.field_start);
        }
        // Values end here; messages are read next.
        let inner = match field.payload {
            Payload::Message(inner) => inner,
            Payload::LazyMessage(inner) => {
                if frame.seen & 1 << number != 0 {
                    return Err(scan.error(schema, Some(name), WireProblem::Twice));
                }
                frame.seen |= 1 << number;
                inner
            }
            Payload::Numbers(_, size) if !(stop - scan.pos).is_multiple_of(size) => {
                return Err(scan.error(schema, Some(name), WireProblem::Truncated));
            }
            Payload::Text => {
                summary.has_bad_text |= std::str::from_utf8(&bytes[scan.pos..stop]).is_err();
                scan.pos = stop;
                continue;
            }
            Payload::Number(..) | Payload::Numbers(..) | Payload::Blob => {
                scan.pos = stop;
                continue;
            }
        };
        if stack.len() == 2 && schema.name == GraphProto::schema().name {
            match name {
                "node" => summary.nodes += 1,
                "value_info" => summary.value_infos += 1,
                "initializer" => summary.initializers += 1,
                _ => {}
            }
        }
        if stack.len() > MAX_DEPTH {
            return Err(scan.error(schema, Some(name), WireProblem::TooDeep));
        }
        stack.push(Frame { schema: inner(), end: stop, seen: 0 });
    }
    Ok(summary)
}

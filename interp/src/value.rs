//! Values: tensors, tuples and functions, in an arena. Dropping an arena frees a few vectors,
//! however deeply values nest.

use std::fmt::{self, Write};

use anfora_ir::{DType, EntityId, ExprId, GlobalId, Literal, LiteralId};
use rustc_hash::FxHashSet;

/// A value in a [`Values`].
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct ValueId(Ref);

impl fmt::Debug for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value{}", self.0.0 >> 2)
    }
}

/// A view of a value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Value<'a> {
    /// A tensor.
    Tensor(&'a Literal),
    /// A tuple.
    Tuple(&'a [ValueId]),
    /// A function: a global, a closure or an operator.
    Function,
    /// `none`.
    Absent,
}

/// A value in the machine: an entry of the arena, or a constant, a global, an operator or `none` of
/// the module.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ref(u32);

/// The target of a [`Ref`].
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Value(usize),
    Literal(LiteralId),
    Global(GlobalId),
    Absent,
    Operator,
}

impl Ref {
    /// No value: the content of the slot of an unbound variable.
    pub(crate) const EMPTY: Ref = Ref(u32::MAX);
    pub(crate) const ABSENT: Ref = Ref(3);
    pub(crate) const OPERATOR: Ref = Ref(7);
    /// The number of entries that a [`Ref`] can distinguish.
    pub(crate) const LIMIT: usize = (1 << 30) - 2;

    fn tagged(index: usize, tag: u32) -> Option<Ref> {
        (index < Ref::LIMIT).then_some(Ref((index as u32) << 2 | tag))
    }

    pub(crate) fn value(index: usize) -> Option<Ref> {
        Ref::tagged(index, 0)
    }

    pub(crate) fn literal(id: LiteralId) -> Option<Ref> {
        Ref::tagged(id.index(), 1)
    }

    pub(crate) fn global(id: GlobalId) -> Option<Ref> {
        Ref::tagged(id.index(), 2)
    }

    #[inline]
    pub(crate) fn target(self) -> Target {
        let index = (self.0 >> 2) as usize;
        match self.0 & 3 {
            0 => Target::Value(index),
            1 => Target::Literal(LiteralId::from_index(index)),
            2 => Target::Global(GlobalId::from_index(index)),
            _ if self == Ref::OPERATOR => Target::Operator,
            _ => Target::Absent,
        }
    }
}

/// An entry of the arena.
#[derive(Clone)]
pub(crate) enum Entry {
    /// A free entry, and the index of the next free entry, if any.
    Free(Option<u32>),
    Tensor(Literal),
    /// The fields are [`ValueId`]s, so that [`Value`] can show them. While the machine runs they
    /// may refer to constants and globals.
    Tuple(Box<[ValueId]>),
    /// A `fn` and the activation in which it was evaluated.
    Closure {
        lambda: ExprId,
        activation: u32,
    },
    /// A function whose last parameters have values.
    Partial {
        function: Ref,
        captures: Box<[Ref]>,
    },
    /// A global or an operator in a result.
    Function,
    /// `none` in a result.
    Absent,
}

/// An arena of values.
#[derive(Clone, Default)]
pub struct Values {
    entries: Vec<Entry>,
    free: Option<u32>,
}

impl Values {
    /// Returns an empty arena.
    pub fn new() -> Values {
        Values::default()
    }

    /// Adds a tensor and returns its id.
    ///
    /// # Panics
    /// If the arena already holds 2^30 - 2 values.
    pub fn tensor(&mut self, literal: Literal) -> ValueId {
        ValueId(self.insert(Entry::Tensor(literal)).expect("an arena holds fewer than 2^30 values"))
    }

    /// Adds a tuple of values of this arena and returns its id.
    ///
    /// # Panics
    /// If the arena already holds 2^30 - 2 values.
    pub fn tuple(&mut self, fields: &[ValueId]) -> ValueId {
        ValueId(self.insert(Entry::Tuple(fields.into())).expect("an arena holds fewer than 2^30 values"))
    }

    /// Returns a view of a value.
    ///
    /// Cost: one entry.
    pub fn get(&self, id: ValueId) -> Value<'_> {
        match id.0.target() {
            Target::Value(index) => match self.entries.get(index) {
                Some(Entry::Tensor(literal)) => Value::Tensor(literal),
                Some(Entry::Tuple(fields)) => Value::Tuple(fields),
                Some(Entry::Closure { .. } | Entry::Partial { .. } | Entry::Function) => Value::Function,
                Some(Entry::Free(_) | Entry::Absent) | None => Value::Absent,
            },
            Target::Global(_) | Target::Operator => Value::Function,
            Target::Literal(_) | Target::Absent => Value::Absent,
        }
    }

    /// Returns the tensor if the value is a tensor.
    ///
    /// Cost: one entry.
    pub fn as_tensor(&self, id: ValueId) -> Option<&Literal> {
        match self.get(id) {
            Value::Tensor(literal) => Some(literal),
            _ => None,
        }
    }

    /// Returns the fields if the value is a tuple.
    ///
    /// Cost: one entry.
    pub fn as_tuple(&self, id: ValueId) -> Option<&[ValueId]> {
        match self.get(id) {
            Value::Tuple(fields) => Some(fields),
            _ => None,
        }
    }

    /// Returns the tensors in a value, in the order of the fields of tuples, at any depth. A part
    /// that occurs twice is listed twice, so a value with shared parts may have very many tensors.
    /// The list has at most `limit` entries.
    pub fn tensors(&self, id: ValueId, limit: usize) -> Vec<&Literal> {
        let mut tensors = Vec::new();
        // The stack holds the values that are not visited yet. Steps are limited too, since a
        // shared part without tensors may be visited very often.
        let mut steps = 0;
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            steps += 1;
            if tensors.len() >= limit || steps > limit.saturating_mul(4).saturating_add(self.entries.len()) {
                break;
            }
            match self.get(id) {
                Value::Tensor(literal) => tensors.push(literal),
                Value::Tuple(fields) => stack.extend(fields.iter().rev()),
                Value::Function | Value::Absent => {}
            }
        }
        tensors
    }

    /// Returns true if two values, of this and of another arena, are the same bit for bit. Any two
    /// functions are the same. The time is linear in the number of different pairs of parts.
    pub fn same(&self, id: ValueId, other: &Values, other_id: ValueId) -> bool {
        let mut seen = FxHashSet::default();
        let mut stack = vec![(id, other_id)];
        while let Some((a, b)) = stack.pop() {
            if !seen.insert((a, b)) {
                continue;
            }
            match (self.get(a), other.get(b)) {
                (Value::Tensor(x), Value::Tensor(y)) if x == y => {}
                (Value::Tuple(x), Value::Tuple(y)) if x.len() == y.len() => {
                    stack.extend(x.iter().copied().zip(y.iter().copied()));
                }
                (Value::Function, Value::Function) | (Value::Absent, Value::Absent) => {}
                _ => return false,
            }
        }
        true
    }

    /// Returns the text of a value, cut short after about `limit` bytes. Tensors are shown by type
    /// and first elements.
    pub fn text(&self, id: ValueId, limit: usize) -> String {
        enum Part {
            Value(ValueId),
            Word(&'static str),
        }
        let mut out = String::new();
        let mut stack = vec![Part::Value(id)];
        while let Some(part) = stack.pop() {
            if out.len() >= limit {
                out.push('…');
                break;
            }
            match part {
                Part::Word(word) => out.push_str(word),
                Part::Value(id) => match self.get(id) {
                    Value::Tensor(literal) => out.push_str(&tensor_text(literal)),
                    Value::Function => out.push_str("fn"),
                    Value::Absent => out.push_str("none"),
                    Value::Tuple(fields) => {
                        out.push('(');
                        stack.push(Part::Word(if fields.len() == 1 { ",)" } else { ")" }));
                        for (i, &field) in fields.iter().enumerate().rev() {
                            stack.push(Part::Value(field));
                            if i > 0 {
                                stack.push(Part::Word(", "));
                            }
                        }
                    }
                },
            }
        }
        out
    }

    // ---- For the machine ----

    pub(crate) fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds an entry. Returns `None` if the arena is full.
    pub(crate) fn insert(&mut self, entry: Entry) -> Option<Ref> {
        if let Some(index) = self.free
            && let Some(slot) = self.entries.get_mut(index as usize)
        {
            if let Entry::Free(next) = *slot {
                self.free = next;
            }
            *slot = entry;
            return Ref::value(index as usize);
        }
        let id = Ref::value(self.entries.len())?;
        self.entries.push(entry);
        Some(id)
    }

    /// Frees the entries for which `live` returns false. Returns the bytes of the others.
    pub(crate) fn sweep(&mut self, live: impl Fn(usize) -> bool) -> usize {
        let mut bytes = 0;
        self.free = None;
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if live(index) {
                bytes += entry.bytes();
            } else {
                *entry = Entry::Free(self.free);
                self.free = Some(index as u32);
            }
        }
        bytes
    }

    /// Overwrites an entry.
    pub(crate) fn replace(&mut self, index: usize, entry: Entry) {
        if let Some(slot) = self.entries.get_mut(index) {
            *slot = entry;
        }
    }
}

impl Entry {
    /// Returns an estimate of its memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Entry>()
            + match self {
                Entry::Tensor(literal) => literal.stored_bytes(),
                Entry::Tuple(fields) => fields.len() * 4,
                Entry::Partial { captures, .. } => captures.len() * 4,
                _ => 0,
            }
    }
}

impl ValueId {
    #[inline]
    pub(crate) fn from_ref(value: Ref) -> ValueId {
        ValueId(value)
    }

    #[inline]
    pub(crate) fn as_ref(self) -> Ref {
        self.0
    }
}

/// The number of elements that a text shows.
const SHOWN: usize = 16;

/// Returns the text of a tensor: its type and first elements.
fn tensor_text(literal: &Literal) -> String {
    let mut out = String::new();
    let extents: Vec<String> = literal.shape().iter().map(|e| e.to_string()).collect();
    let comma = if extents.len() == 1 { "," } else { "" };
    // Writing to a string does not fail.
    let _ = write!(out, "Tensor[({}{comma}), {}]", extents.join(", "), literal.dtype());
    let elements = first_elements(literal);
    let more = if literal.element_count() > elements.len() { ", …" } else { "" };
    match (literal.as_splat(), elements.first()) {
        (Some(_), Some(one)) => {
            let _ = write!(out, "[{one}]");
        }
        _ => {
            let _ = write!(out, "[{}{more}]", elements.join(", "));
        }
    }
    out
}

/// Returns the texts of the first elements, or of the one stored element of a splat.
fn first_elements(literal: &Literal) -> Vec<String> {
    if let Some(strings) = literal.as_strings() {
        return strings.iter().take(SHOWN).map(|s| format!("{s:?}")).collect();
    }
    let bits = literal.dtype().bits();
    if bits < 8 {
        return Vec::new();
    }
    let bytes = literal.as_splat().or(literal.as_dense().map(|b| &b[..])).unwrap_or(&[]);
    bytes.chunks_exact(bits / 8).take(SHOWN).map_while(|b| number_text(literal.dtype(), b)).collect()
}

/// Returns the stored bytes of element `n`. Elements must have at least 8 bits.
pub(crate) fn element_bytes(literal: &Literal, n: usize) -> Option<&[u8]> {
    let size = literal.dtype().bits() / 8;
    literal.as_splat().or_else(|| literal.as_dense()?.get(n.checked_mul(size)?..)?.get(..size))
}

/// Returns the text of an element for a message about its bits. The text of a float includes its
/// bits, since different floats may have the same decimal text.
pub(crate) fn element_text(literal: &Literal, n: usize) -> String {
    if let Some(string) = literal.as_strings().and_then(|s| s.get(n)) {
        return format!("{string:?}");
    }
    let Some(bytes) = element_bytes(literal, n) else { return "?".to_string() };
    let bits: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
    match number_text(literal.dtype(), bytes) {
        Some(text) if literal.dtype().is_float() => format!("{text} (0x{bits})"),
        Some(text) => text,
        None => format!("0x{bits}"),
    }
}

/// Returns the text of a number from its bytes; `None` for element types without kernels.
fn number_text(dtype: DType, bytes: &[u8]) -> Option<String> {
    use anfora_ir::Element;
    use half::{bf16, f16};
    fn read<T: Element + ToString>(bytes: &[u8]) -> String {
        T::read(bytes).to_string()
    }
    Some(match dtype {
        DType::Bool => read::<bool>(bytes),
        DType::Int8 => read::<i8>(bytes),
        DType::Int16 => read::<i16>(bytes),
        DType::Int32 => read::<i32>(bytes),
        DType::Int64 => read::<i64>(bytes),
        DType::UInt8 => read::<u8>(bytes),
        DType::UInt16 => read::<u16>(bytes),
        DType::UInt32 => read::<u32>(bytes),
        DType::UInt64 => read::<u64>(bytes),
        DType::BFloat16 => read::<bf16>(bytes),
        DType::Float16 => read::<f16>(bytes),
        DType::Float32 => read::<f32>(bytes),
        DType::Float64 => read::<f64>(bytes),
        _ => return None,
    })
}

anfora_ir::brief_debug! { Values; }

//! Conversion of types between ONNX and the IR.

use anfora_ir::{Context, Dim, DimId, Literal, SymbolId, Type, TypeId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::proto::tensor_shape_proto::{Dimension, Extent};
use crate::proto::type_proto::{Tensor, Value};
use crate::proto::{TensorProto, TensorShapeProto, TypeProto, ValueInfoProto};
use crate::tensor::{dtype_of, number_of};

/// The symbolic dimensions of a file. Each name in an input of the main graph is a symbol. A name
/// that occurs in no input is not bound, so such a dimension is unknown here.
#[derive(Default)]
pub(crate) struct FileDims {
    symbols: FxHashMap<String, DimId>,
    /// The names of symbols that are in use.
    taken: FxHashSet<String>,
    /// The symbols whose name in the file differs, as pairs (here, in the file), in order of
    /// appearance.
    pub(crate) renamed: Vec<(String, String)>,
    /// The same pairs as a map.
    pub(crate) names: SymbolNames,
}

/// Words that have another meaning where a dimension may occur.
const RESERVED: &[&str] = &[
    "type", "attr", "declare", "def", "private", "let", "dataflow", "output", "fn", "if", "else", "none", "true",
    "false", "shape", "dense", "op", "Tensor", "Any", "min", "max", "mod", "floordiv", "ceildiv", "inf", "nan",
];

impl FileDims {
    fn bind(&mut self, cx: &mut Context, name: &str) -> DimId {
        if let Some(&dim) = self.symbols.get(name) {
            return dim;
        }
        let symbol_name = self.identifier(name);
        if symbol_name != name {
            self.renamed.push((symbol_name.clone(), name.to_owned()));
            self.names.insert(symbol_name.clone(), name.to_owned());
        }
        let interned = cx.names.intern(&symbol_name);
        let symbol = cx.types.dims.new_symbol(interned);
        let dim = cx.types.dims.symbol(symbol);
        self.symbols.insert(name.to_owned(), dim);
        dim
    }

    /// Returns a type like that of a call's operand, with symbols of the function's own.
    pub(crate) fn own_type(&mut self, cx: &mut Context, ty: TypeId) -> TypeId {
        let Type::Tensor(tensor) = cx.types.get(ty) else { return cx.types.any() };
        let (dtype, shape) = (tensor.dtype, tensor.shape.clone());
        let Some(shape) = shape else { return cx.types.unranked(dtype) };
        let shape: Vec<_> = shape.iter().map(|&d| self.like(cx, d)).collect();
        cx.types.tensor(dtype, &shape)
    }

    /// Returns an extent like that of another function. Its symbols become symbols of this
    /// function.
    fn like(&mut self, cx: &mut Context, dim: DimId) -> DimId {
        match *cx.types.dims.get(dim) {
            Dim::Const(_) => dim,
            Dim::Symbol(s) => {
                let name = cx.names.get(cx.types.dims.symbol_name(s)).to_owned();
                self.bind(cx, &name)
            }
            _ => cx.types.dims.unknown(),
        }
    }

    /// Returns an identifier similar to `name` that no other symbol has.
    fn identifier(&mut self, name: &str) -> String {
        let mut base: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            base.insert(0, '_');
        }
        if RESERVED.contains(&base.as_str()) || base.parse::<anfora_ir::DType>().is_ok() {
            base.push('_');
        }
        let mut candidate = base.clone();
        let mut n = 0u64;
        while !self.taken.insert(candidate.clone()) {
            n += self.taken.len() as u64;
            candidate = format!("{base}_{n}");
        }
        candidate
    }
}

/// The relation of a type to the symbols that it names.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Binding {
    /// The type of an input of the main graph, which binds its symbols.
    Binds,
    /// Any other type, which may name symbols that the inputs bind.
    Uses,
}

/// Returns the type that a message states. Returns `Any` for values that are not tensors and for
/// element types that the IR does not have.
pub(crate) fn type_of(cx: &mut Context, dims: &mut FileDims, proto: &TypeProto, binding: Binding) -> TypeId {
    let Some(Value::TensorType(tensor)) = &proto.value else { return cx.types.any() };
    let Some(dtype) = dtype_of(tensor.elem_type.unwrap_or(0)) else { return cx.types.any() };
    let Some(shape) = &tensor.shape else { return cx.types.unranked(dtype) };
    let mut extents: SmallVec<[DimId; 4]> = SmallVec::with_capacity(shape.dim.len());
    for d in &shape.dim {
        extents.push(match &d.value {
            Some(Extent::DimValue(n)) if *n >= 0 => cx.types.dims.constant(*n),
            Some(Extent::DimParam(name)) if !name.is_empty() => match binding {
                Binding::Binds => dims.bind(cx, name),
                Binding::Uses => dims.symbols.get(name).copied().unwrap_or_else(|| cx.types.dims.unknown()),
            },
            _ => cx.types.dims.unknown(),
        });
    }
    cx.types.tensor(dtype, &extents)
}

/// The names of symbols in the file, where they differ from the names here.
pub(crate) type SymbolNames = FxHashMap<String, String>;

/// Returns the message that states a type; `None` if ONNX cannot express it.
pub(crate) fn proto_of(cx: &Context, names: &SymbolNames, ty: TypeId) -> Option<TypeProto> {
    let Type::Tensor(tensor) = cx.types.get(ty) else { return None };
    let shape =
        tensor.shape.as_ref().map(|s| TensorShapeProto { dim: s.iter().map(|&d| dimension(cx, names, d)).collect() });
    let tensor = Tensor { elem_type: Some(number_of(tensor.dtype)?), shape };
    Some(TypeProto { value: Some(Value::TensorType(tensor)), denotation: None })
}

/// Returns the message that states the type of a constant.
pub(crate) fn literal_message(literal: &Literal) -> TypeProto {
    let dims: Vec<i64> = literal.shape().iter().map(|&d| i64::try_from(d).unwrap_or(i64::MAX)).collect();
    static_message(number_of(literal.dtype()), &dims)
}

/// Returns the message that states the name and the type of a constant.
pub(crate) fn tensor_info(tensor: &TensorProto) -> ValueInfoProto {
    let ty = static_message(tensor.data_type, &tensor.dims);
    ValueInfoProto { name: tensor.name.clone(), r#type: Some(ty), ..ValueInfoProto::default() }
}

fn static_message(elem_type: Option<i32>, dims: &[i64]) -> TypeProto {
    let dim = dims.iter().map(|&d| Dimension { value: Some(Extent::DimValue(d)), denotation: None }).collect();
    let tensor = Tensor { elem_type, shape: Some(TensorShapeProto { dim }) };
    TypeProto { value: Some(Value::TensorType(tensor)), denotation: None }
}

fn dimension(cx: &Context, names: &SymbolNames, dim: DimId) -> Dimension {
    let value = match *cx.types.dims.get(dim) {
        Dim::Const(n) => Some(Extent::DimValue(n)),
        Dim::Symbol(s) => Some(Extent::DimParam(symbol_name(cx, names, s))),
        _ => None,
    };
    Dimension { value, denotation: None }
}

fn symbol_name(cx: &Context, names: &SymbolNames, symbol: SymbolId) -> String {
    let name = cx.names.get(cx.types.dims.symbol_name(symbol));
    names.get(name).cloned().unwrap_or_else(|| name.to_owned())
}

/// Returns the kind of value that a message states, if it is a kind without a type here, such as a
/// sequence.
pub(crate) fn other_kind(proto: &TypeProto) -> Option<&'static str> {
    match &proto.value {
        Some(Value::SequenceType(_)) => Some("a sequence"),
        Some(Value::MapType(_)) => Some("a map"),
        Some(Value::OptionalType(_)) => Some("a value that may be missing"),
        Some(Value::OpaqueType(_)) => Some("a value of an opaque type"),
        // A sparse tensor has the elements of a tensor.
        Some(Value::TensorType(_) | Value::SparseTensorType(_)) | None => None,
    }
}

/// Returns true if both types are tensor types and no value has both.
pub(crate) fn contradict(cx: &Context, a: TypeId, b: TypeId) -> bool {
    let (Type::Tensor(a), Type::Tensor(b)) = (cx.types.get(a), cx.types.get(b)) else { return false };
    if a.dtype != b.dtype {
        return true;
    }
    let (Some(x), Some(y)) = (&a.shape, &b.shape) else { return false };
    let constant = |d: DimId| cx.types.dims.as_constant(d);
    x.len() != y.len()
        || x.iter().zip(y).any(|(&d, &e)| matches!((constant(d), constant(e)), (Some(m), Some(n)) if m != n))
}

/// Returns a type with what another type, that is stated, says in addition. If they contradict each
/// other, the stated one is ignored.
pub(crate) fn refined(cx: &mut Context, found: TypeId, stated: TypeId) -> TypeId {
    let (Type::Tensor(known), Type::Tensor(more)) = (cx.types.get(found), cx.types.get(stated)) else {
        return if found == cx.types.any() { stated } else { found };
    };
    let (Some(shape), Some(stated_shape)) = (&known.shape, &more.shape) else {
        return if known.shape.is_none() && !contradict(cx, found, stated) { stated } else { found };
    };
    let unknown = cx.types.dims.unknown();
    if contradict(cx, found, stated) || !shape.contains(&unknown) {
        return found;
    }
    let of_both = shape.iter().zip(stated_shape).map(|(&dim, &stated)| if dim == unknown { stated } else { dim });
    let (dtype, shape): (_, SmallVec<[DimId; 4]>) = (known.dtype, of_both.collect());
    cx.types.tensor(dtype, &shape)
}

/// Returns true if a message states nothing about a value beyond our own message for its type: each
/// part of it is also in ours, or ours has a number where it states nothing more. The time is
/// linear in the message, however large the type is.
pub(crate) fn says_no_more(cx: &Context, names: &SymbolNames, stated: Option<&TypeProto>, ty: TypeId) -> bool {
    let Type::Tensor(ours) = cx.types.get(ty) else { return false };
    // A missing statement is only worth preserving if ONNX could state the type.
    let Some(number) = number_of(ours.dtype) else { return false };
    let Some(stated) = stated else { return true };
    let Some(Value::TensorType(stated_tensor)) = &stated.value else { return false };
    let is_covered = |(s, &o): (&Dimension, &DimId)| {
        let o = dimension(cx, names, o);
        let is_number = matches!(o.value, Some(Extent::DimValue(_)));
        s.denotation.is_none() && (s.value == o.value || s.value.is_none() || is_number)
    };
    let shapes = match (&stated_tensor.shape, &ours.shape) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(s), Some(o)) => s.dim.len() == o.len() && s.dim.iter().zip(o).all(is_covered),
    };
    stated.denotation.is_none() && stated_tensor.elem_type == Some(number) && shapes
}

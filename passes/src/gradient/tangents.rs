//! The types of adjoints, and zeros.

use anfora_ir::{Attr, Context, DType, DimId, Editor, ExprId, Literal, Number, Type, TypeError, TypeId};
use rustc_hash::FxHashMap;

/// Returns the image of a type: `leaf` gives that of a type that is no tuple, and `tuple` that of a
/// tuple, given those of its fields. Each type is visited once, since types share parts.
fn image<T: Copy>(
    known: &mut FxHashMap<TypeId, T>,
    cx: &mut Context,
    ty: TypeId,
    leaf: impl Fn(&mut Context, TypeId) -> T,
    tuple: impl Fn(&mut Context, &[T]) -> T,
) -> T {
    let mut stack = vec![ty];
    while let Some(&top) = stack.last() {
        if !known.contains_key(&top) {
            let image = match cx.types.as_tuple(top).map(<[TypeId]>::to_vec) {
                None => leaf(cx, top),
                Some(fields) => {
                    let height = stack.len();
                    stack.extend(fields.iter().rev().filter(|field| !known.contains_key(field)));
                    if stack.len() > height {
                        continue;
                    }
                    let fields: Vec<T> = fields.iter().map(|field| known[field]).collect();
                    tuple(cx, &fields)
                }
            };
            known.insert(top, image);
        }
        stack.pop();
    }
    known[&ty]
}

/// The types of the adjoints of values, by the types of the values. The adjoint of a tensor of
/// floats has the type of the tensor, and that of a tuple is a tuple. Values without floats have
/// the adjoint `()`.
#[derive(Default)]
pub(super) struct AdjointTypes {
    known: FxHashMap<TypeId, TypeId>,
    /// The number of tensors and tuples of a type.
    sizes: FxHashMap<TypeId, usize>,
    /// Types without symbols.
    plain: FxHashMap<TypeId, TypeId>,
    /// The adjoint types whose extents are known.
    extents: FxHashMap<TypeId, bool>,
    /// The types of which a part has no adjoint, although derivatives may flow through it.
    hiding: FxHashMap<TypeId, bool>,
}

/// Returns false for booleans, integers and strings, through which no derivative flows.
pub(super) fn has_derivative(dtype: DType) -> bool {
    let is_other = dtype.is_small_integer() || dtype == DType::String;
    dtype.is_float() || !dtype.has_kernels() && !is_other
}

/// The largest tuple whose fields are added where its adjoint is, instead of by a function.
const SMALL: usize = 16;

impl AdjointTypes {
    /// Returns the type of the adjoint of a value.
    pub(super) fn of(&mut self, cx: &mut Context, ty: TypeId) -> TypeId {
        let leaf = |cx: &mut Context, ty: TypeId| match cx.types.as_tensor(ty) {
            Some(tensor) if tensor.dtype.is_float() => ty,
            _ => cx.types.unit(),
        };
        image(&mut self.known, cx, ty, leaf, |cx, fields| {
            let unit = cx.types.unit();
            if fields.iter().all(|&field| field == unit) { unit } else { cx.types.tuple(fields) }
        })
    }

    /// Returns true if the values of a type have floats.
    pub(super) fn has_floats(&mut self, cx: &mut Context, ty: TypeId) -> bool {
        self.of(cx, ty) != cx.types.unit()
    }

    /// Returns true if derivatives may flow through a part of a type that has no adjoint: a
    /// function, a value of the type `Any`, or floats that no kernel computes with.
    pub(super) fn hides_derivatives(&mut self, cx: &mut Context, ty: TypeId) -> bool {
        let leaf = |cx: &mut Context, ty: TypeId| match cx.types.get(ty) {
            Type::Tensor(tensor) => has_derivative(tensor.dtype) && !tensor.dtype.is_float(),
            _ => true,
        };
        image(&mut self.hiding, cx, ty, leaf, |_, fields| fields.contains(&true))
    }

    /// Returns true if a type is a tuple of few tensors, also in the tuples in it.
    pub(super) fn is_small_tuple(&mut self, cx: &mut Context, ty: TypeId) -> bool {
        let size = image(
            &mut self.sizes,
            cx,
            ty,
            |_, _| 1,
            |_, fields| fields.iter().fold(1, |sum: usize, &size| sum.saturating_add(size)),
        );
        cx.types.as_tuple(ty).is_some() && size <= SMALL
    }

    /// Returns true if an adjoint type is a tuple that is not small, and all extents in it are
    /// numbers.
    pub(super) fn is_large_plain_tuple(&mut self, cx: &mut Context, ty: TypeId) -> bool {
        let is_tuple = cx.types.as_tuple(ty).is_some();
        is_tuple && !self.is_small_tuple(cx, ty) && self.has_known_zeros(cx, ty) && self.without_symbols(cx, ty) == ty
    }

    /// Returns true if the zeros of a value follow from its type: the extents of the floats in it,
    /// also in tuples in it, are numbers or symbols.
    pub(super) fn has_known_zeros(&mut self, cx: &mut Context, ty: TypeId) -> bool {
        let adjoint = self.of(cx, ty);
        let leaf = |cx: &mut Context, ty: TypeId| cx.types.has_known_extents(ty);
        image(&mut self.extents, cx, adjoint, leaf, |_, fields| fields.iter().all(|&is_known| is_known))
    }

    /// Returns an adjoint type without symbols: extents that are no numbers are not known.
    pub(super) fn without_symbols(&mut self, cx: &mut Context, ty: TypeId) -> TypeId {
        let leaf = |cx: &mut Context, ty: TypeId| {
            let Some(tensor) = cx.types.as_tensor(ty) else { return ty };
            let (dtype, Some(shape)) = (tensor.dtype, tensor.shape.clone()) else { return ty };
            let dims = &cx.types.dims;
            let plain = |&dim: &DimId| dims.as_constant(dim).map_or(dims.unknown(), |_| dim);
            let shape: Vec<DimId> = shape.iter().map(plain).collect();
            cx.types.tensor(dtype, &shape)
        };
        image(&mut self.plain, cx, ty, leaf, |cx, fields| cx.types.tuple(fields))
    }
}

/// Returns the scalar 0 of the element type of a tensor type.
pub(super) fn zero_of(cx: &Context, ty: TypeId) -> Literal {
    let dtype = cx.types.as_tensor(ty).map_or(DType::Float32, |tensor| tensor.dtype);
    Number::Float(0.0).scalar(dtype).expect("a float type has a zero")
}

/// Returns zeros of a tensor type; `None` if its extents are not known, as numbers or as symbols.
pub(super) fn known_zeros(editor: &mut Editor<'_>, ty: TypeId) -> Option<Result<ExprId, TypeError>> {
    if !editor.cx.types.has_known_extents(ty) {
        return None;
    }
    let tensor = editor.cx.types.as_tensor(ty)?;
    let (dtype, shape) = (tensor.dtype, tensor.shape.as_deref()?.to_vec());
    if shape.is_empty() {
        let zero = zero_of(editor.cx, ty);
        return Some(Ok(editor.literal(zero)));
    }
    let shape = editor.cx.attr(Attr::Shape(shape.into()));
    Some(editor.op("zeros", &[], &[("shape", shape.into()), ("dtype", dtype.into())]))
}

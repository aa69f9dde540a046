//! The types of adjoints, and zeros.

use anfora_ir::{Attr, Context, Type, TypeId};
use rustc_hash::FxHashMap;

/// The types of the adjoints of values, by the types of the values. The adjoint of a tensor of
/// floats has the type of the tensor, and that of a tuple is a tuple. Values without floats have
/// the adjoint `()`.
#[derive(Default)]
pub(super) struct AdjointTypes {
    known: FxHashMap<TypeId, TypeId>,
}

impl AdjointTypes {
    /// Returns the type of the adjoint of a value.
    pub(super) fn of(&mut self, cx: &mut Context, ty: TypeId) -> TypeId {
        if let Some(&known) = self.known.get(&ty) {
            return known;
        }
        let mut stack = vec![ty];
        while let Some(&top) = stack.last() {
            if self.known.contains_key(&top) {
                stack.pop();
                continue;
            }
            let adjoint = match cx.types.get(top).clone() {
                Type::Tensor(tensor) if tensor.dtype.is_float() => top,
                Type::Tuple(fields) => {
                    let height = stack.len();
                    stack.extend(fields.iter().rev().filter(|field| !self.known.contains_key(field)));
                    if stack.len() > height {
                        continue;
                    }
                    let fields: Vec<TypeId> = fields.iter().map(|field| self.known[field]).collect();
                    let unit = cx.types.unit();
                    if fields.iter().all(|&field| field == unit) { unit } else { cx.types.tuple(&fields) }
                }
                Type::Tensor(_) | Type::Function(_) | Type::Any | Type::Error => cx.types.unit(),
            };
            self.known.insert(top, adjoint);
            stack.pop();
        }
        self.known[&ty]
    }

    /// Returns true if the values of a type have floats.
    pub(super) fn has_floats(&mut self, cx: &mut Context, ty: TypeId) -> bool {
        self.of(cx, ty) != cx.types.unit()
    }
}

/// Returns the attribute with the extents of a tensor type, if all of them are known.
pub(super) fn known_shape(cx: &mut Context, ty: TypeId) -> Option<anfora_ir::AttrId> {
    if !cx.types.has_known_extents(ty) {
        return None;
    }
    let shape = cx.types.as_tensor(ty)?.shape.as_ref()?.iter().copied().collect();
    Some(cx.attr(Attr::Shape(shape)))
}

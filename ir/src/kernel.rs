//! Runs what rows bring along. Results of kernels are not taken on trust: one that is not of the type of the call would make a wrong program of a right one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::context::Context;
use crate::dtype::DType;
use crate::entity::TypeId;
use crate::literal::Literal;
use crate::op::{KernelCall, KernelError};
use crate::types::Type;

impl KernelCall<'_> {
    /// Runs the kernel of the operator, and looks at whether the results are of the call's type: one tensor, or, for a tuple, one a
    /// field, each of the element type, and of the extents and elements that are known.
    ///
    /// # Errors
    /// If the kernel fails ([`KernelError::is_fault`] is false), or the operator has no kernel, or one that panics or gives results of
    /// another type: those are mistakes in the row, not in the program.
    pub fn evaluate(&self) -> Result<Vec<Literal>, KernelError> {
        let cx = self.attrs.cx;
        let Some(kernel) = cx.ops.get(self.attrs.op).kernel else {
            return Err(KernelError::fault("there is no kernel"));
        };
        let results = catch_panic(|| kernel(self))
            .unwrap_or_else(|text| Err(KernelError::fault(format!("its kernel panics: {text}"))))?;
        match mismatch(cx, self.ty, &results) {
            None => Ok(results),
            Some(why) => Err(KernelError::fault(why)),
        }
    }
}

/// What a function of a row returns; `Err` with what it says if it panics.
pub(crate) fn catch_panic<T>(of_row: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(of_row)).map_err(|payload| panic_text(&*payload).to_owned())
}

/// What a panic says.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// How results differ from what a type says of them.
fn mismatch(cx: &Context, ty: TypeId, results: &[Literal]) -> Option<String> {
    let fields = match cx.types.get(ty) {
        Type::Tuple(fields) => fields,
        _ => std::slice::from_ref(&ty),
    };
    if fields.len() != results.len() {
        return Some(format!("its kernel gives {} results, and its type says {}", results.len(), fields.len()));
    }
    let wrong = fields.iter().zip(results).position(|(&field, result)| !is_of(cx, field, result))?;
    let result = &results[wrong];
    let found = tensor_text(result.dtype(), result.shape());
    Some(format!("its kernel gives {found} as result {wrong}, which its type says is {}", cx.type_text(fields[wrong])))
}

fn is_of(cx: &Context, ty: TypeId, literal: &Literal) -> bool {
    let Some(tensor) = cx.types.as_tensor(ty) else { return ty == cx.types.any() };
    let extents_agree = || match &tensor.shape {
        None => true,
        Some(shape) => {
            shape.len() == literal.rank()
                && shape.iter().zip(literal.shape()).all(|(&dim, &extent)| {
                    cx.types.dims.as_constant(dim).is_none_or(|known| usize::try_from(known) == Ok(extent))
                })
        }
    };
    let elements_agree = || {
        let known = tensor.elements.iter().flatten().map(|&d| cx.types.dims.as_constant(d));
        tensor.elements.is_none()
            || literal.to_i128s().is_some_and(|found| {
                found.iter().zip(known).all(|(&found, known)| known.is_none_or(|known| i128::from(known) == found))
            })
    };
    tensor.dtype == literal.dtype() && extents_agree() && elements_agree()
}

fn tensor_text(dtype: DType, shape: &[usize]) -> String {
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    match extents.as_slice() {
        [one] => format!("Tensor[({one},), {dtype}]"),
        all => format!("Tensor[({}), {dtype}]", all.join(", ")),
    }
}

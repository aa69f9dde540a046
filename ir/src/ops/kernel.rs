//! Runs the functions of operators' rows. Results of kernels are checked: a result that is not of
//! the type of the call would turn a correct program into a wrong one.

use crate::core::context::Context;
use crate::core::entity::TypeId;
use crate::ops::catch_panic::catch_panic;
use crate::ops::op::{KernelCall, KernelError};
use crate::ops::op_kinds::FusionPattern;
use crate::tables::dtype::DType;
use crate::tables::literal::Literal;
use crate::tables::types::Type;

impl KernelCall<'_> {
    /// Runs the kernel of the operator, and checks that the results are of the call's type: one
    /// tensor, or one for each field of a tuple, of the right element type and of the known extents
    /// and elements.
    ///
    /// # Errors
    /// If the kernel fails, or an operand cannot be read from its file ([`KernelError::is_fault`]
    /// is false). Also if the operator has no kernel, or if the kernel panics or returns results of
    /// another type: those are mistakes in the row, not in the program.
    pub fn evaluate(&self) -> Result<Vec<Literal>, KernelError> {
        let cx = self.attrs.cx;
        let Some(kernel) = cx.ops.get(self.attrs.op).kernel else {
            return Err(KernelError::fault("there is no kernel"));
        };
        let loaded = self.operands.iter().flatten().try_for_each(|operand| operand.load());
        loaded.map_err(|e| KernelError::new(e.to_string()))?;
        let results = catch_panic(|| kernel(self))
            .unwrap_or_else(|text| Err(KernelError::fault(format!("its kernel panics: {text}"))))?;
        match mismatch(cx, self.ty, &results) {
            None => Ok(results),
            Some(why) => Err(KernelError::fault(why)),
        }
    }
}

impl KernelCall<'_> {
    /// Returns the approximate number of steps of the kernel: elements that it reads, writes or
    /// computes with. It saturates.
    ///
    /// A splat that is computed from splats takes a step for each operand, however large it is.
    /// Otherwise the row's own rule counts ([`OpDef::steps`](crate::OpDef::steps)). Without such a
    /// rule, an operator that computes each element of the result from an element of each operand
    /// takes a step for each of these elements; an operator that moves elements takes a step for
    /// each element of the result; any other operator takes a step for each element of its operands
    /// and results.
    pub fn steps(&self) -> u64 {
        let row = self.attrs.cx.ops.get(self.attrs.op);
        let count = self.operands.len() as u64;
        if row.gives_splat(self.operands) {
            return count + 1;
        }
        if let Some(rule) = row.steps {
            return catch_panic(|| rule(self)).unwrap_or(u64::MAX);
        }
        let results = self.result_elements();
        match row.fusion {
            FusionPattern::ElemWise | FusionPattern::Broadcast => results.saturating_mul(count.max(1)),
            FusionPattern::Injective => results.saturating_add(count),
            _ => {
                let elements = |literal: &&Literal| number_of_elements(literal.shape());
                let operands = self.operands.iter().flatten().map(elements).fold(0, u64::saturating_add);
                operands.saturating_add(results)
            }
        }
    }

    /// Returns the number of elements of all results together. If the extents are not known from
    /// the type of the call, returns an upper bound, or 0 if the row has none. It saturates.
    pub fn result_elements(&self) -> u64 {
        let types = &self.attrs.cx.types;
        let fields = types.as_tuple(self.ty).unwrap_or(std::slice::from_ref(&self.ty));
        let known = fields
            .iter()
            .try_fold(0u64, |n, &field| Some(n.saturating_add(number_of_elements(&types.static_shape(field)?))));
        let row = self.attrs.cx.ops.get(self.attrs.op);
        // An element takes at least half a byte.
        known.unwrap_or_else(|| row.result_bytes(self).map_or(0, |bytes| (bytes as u64).saturating_mul(2)))
    }
}

fn number_of_elements(shape: &[usize]) -> u64 {
    // If an extent is 0 there are no elements, however large the other extents are.
    if shape.contains(&0) { 0 } else { shape.iter().fold(1, |n, &extent| n.saturating_mul(extent as u64)) }
}

/// Returns the difference between the results and their type; `None` if they are of the type.
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

//! # ConvertLayout
//!
//! ```text
//! Notation   o, p orders of axes; o' the order that undoes o; x@o the tensor permute_dims(x, o).
//!            conv an operator that states its layout: a convolution or a transposed one.
//!            f an operator whose row says how it computes on operands in another order
//!            (`OpDef::relayout`): f@o is that call.
//! Needs      A-normal form.
//! Effect     let v = conv(x, w, b)
//!              =>   let v2 = conv(x@o, w@p, b, data_layout=…, kernel_layout=…);
//!                   let v = v2@o'
//!              where o and p lead from the layouts of the call to the desired ones.
//!            let v = v2@o'; … let u = f(v, y)
//!              =>   …; let u2 = f@o(v2, y@o); let u = u2@o'
//!            let v = v2@o'; … let u = permute_dims(v, p)
//!              =>   … let u = v2@(o' then p), or v2 itself if that is no change
//!            let v = v2@o'; … conv(v) that wants o   =>   conv(v2)
//!            let v = if c { …; a2@o' } else { …; b2@o' }
//!              =>   let v2 = if c { …; a2 } else { …; b2 }; let v = v2@o'
//!            Tuples and their fields likewise, each field in an order of its own.
//!            A permutation that nothing uses is removed. x@o is made once for each x and o in a
//!            block. It is a permutation of x's source if x is itself a permutation, a constant if
//!            x is a constant with equal elements, and otherwise `squeeze` and `expand_dims` if
//!            only axes of extent 1 move.
//! Options    desired   A list of `OPERATOR:DATA:KERNEL`, as in `nn.conv2d:NHWC:OHWI`. Without the
//!                      kernel, kernels keep their layout. Without the operator, all convolutions
//!                      that have the letters. Pools may be named too. If the list is empty, the
//!                      channels of all convolutions come last: NWC, NHWC, NDHWC.
//! Follow     elementwise operators, pools, reductions, normalisations, softmaxes, concat, split,
//!            strided_slice, take, gather_elements, scatter_elements, cumsum, cumprod, tile,
//!            squeeze, expand_dims, nn.pad, image.resize, nn.dropout, match_cast and permute_dims.
//!            With several operands, an operator follows if this takes no more new permutations
//!            than it has operands in the order. A call with the desired layouts keeps them.
//! Never      A call with a tensor of unknown rank, or of elements of a few bits, which no kernel
//!            permutes; a call with more than 64 results, or whose type would be less specific;
//!            parameters and results of functions, which keep their layouts.
//! Not done   Layouts in blocks (NCHW4c). Permutations do not move through calls of functions, or
//!            back to parameters. nn.max_pool_with_indices and nn.max_unpool number elements in the
//!            plain layout, and quantized convolutions have no other one.
//! Changes    Rounding, if an operator reduces over axes whose order changes.
//! Cost       One walk, and one sweep if a call changed. Idempotent.
//!
//! before     def @f(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
//!              let %a = nn.conv2d(%x, %w);
//!              nn.relu(%a)
//!            }
//! after      def @f(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
//!              let %0 = permute_dims(%x, axes=[0, 2, 3, 1]);
//!              let %a = nn.conv2d(%0, %w, data_layout="NHWC");
//!              let %1 = nn.relu(%a);
//!              permute_dims(%1, axes=[0, 3, 1, 2])
//!            }
//! ```

mod conversions;
mod converter;
mod desired;

use anfora_ir::{Context, Function};
use anfora_manager::{PassError, register_pass};

use desired::LayoutsOf;
pub use desired::{DesiredLayout, DesiredLayouts, UnreadableLayout};

register_pass! {
    /// Gives convolutions the desired layouts, and moves the permutations to where fewest are left
    pub CONVERT_LAYOUT = FunctionPass("ConvertLayout", 0)
        .needing(["anf"])
        .breaking(["primitive-operators"])
        .with_tolerance(1e-4)
        .sparing_primitive();
    options {
        /// the desired layouts, `OPERATOR:DATA:KERNEL`; if empty, channels come last
        desired: Vec<String> = &[],
    }
    run {
        let desired = DesiredLayouts::parse(&desired);
        move |edit, _, cx| {
            let desired = desired.as_ref().map_err(|error| PassError::new(error.to_string()))?;
            let done = convert_layout(edit.cx, edit.function, desired)?;
            cx.count("converted", done.converted as u64);
            cx.count("followed", done.followed as u64);
            Ok(())
        }
    }
}

/// The result of converting the layouts of a function.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ConvertedLayouts {
    /// The number of calls that have the desired layouts now.
    pub converted: usize,
    /// The number of further calls that compute in another order of axes now.
    pub followed: usize,
}

/// Gives the calls of a function the desired layouts, and moves the permutations that this takes
/// through the operators that compute on any order of axes.
///
/// # Errors
/// If the body is not in A-normal form, or if a desired layout does not fit its operator.
pub fn convert_layout(
    cx: &mut Context,
    function: &mut Function,
    desired: &DesiredLayouts,
) -> Result<ConvertedLayouts, PassError> {
    let layouts = desired.resolve(cx)?;
    converter::convert(cx, function, layouts)
}

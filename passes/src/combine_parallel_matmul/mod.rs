//! # CombineParallelMatmul
//!
//! ```text
//! Notation   x an atom; W1, W2, … atoms; N1, N2, … constant extents; p a product: matmul(x, W),
//!            nn.gemm(x, W), nn.gemm(x, W, b), or a convolution nn.conv1d, nn.conv2d or nn.conv3d
//!            of one group, with or without a bias; f a pointwise operator that cannot fail; c1,
//!            c2, … atoms, one for each product, or one atom for all.
//! Needs      A-normal form.
//! Effect     let v1 = p(x, W1); let v2 = p(x, W2); … rest
//!                =>   let w = W1 ++ W2 ++ …; let v = p(x, w); let s = split(v, [N1, N2, …]);
//!                     let v1 = s.0; let v2 = s.1; … rest
//!            let v1 = p(x, W1); let u1 = f(v1, c1); …, with the same f for each product
//!                =>   …; let u = f(v, c1 ++ c2 ++ …); let s = split(u, …); let u1 = s.0; …
//!            where ++ joins constants to a constant, and other values by concat, along the axis
//!            of the results' columns or channels. Any number of steps f goes along, as long as all
//!            products have the same one and nothing else uses the value before it. The operands
//!            of a commutative f may have either order.
//!            The products have the same operator and attributes, and their operands W (and b)
//!            differ in one extent only, which is known. They need not lie side by side: the new
//!            product takes the place of the first, where each W, b and c must be bound already.
//! Scope      All products of a combination are in the same block and the same dataflow region, or
//!            the same block and in no region.
//! Options    min_saved (default 1): the least number of calls that a combination must save. A
//!            split counts as one call, and projections as none. Two products of constants and
//!            their biases save one call. With -1 or less, two products of parameters are combined
//!            too, at the price of a concat of the weights.
//! Budget     That of FoldConstant, for the growth of joined constants: the parts that nothing else
//!            in the function uses are subtracted. Constants that stay in a large file are not
//!            joined.
//! Never      A call that two Lets share; an unused product; extents that are `?`; operands whose
//!            extents differ in another axis, such as the stacks of batched weights.
//! Not done   Products with the same right operand; symbolic extents N; more than 64 products in
//!            one combination; steps of some products only, which stay behind their parts.
//! Changes    No results: each element is the same sum in the same order. A runtime may block the
//!            sums of a wider product in another way, and so round them differently.
//! Cost       One forward scan, which looks up each product once; one more sweep, and the joined
//!            constants, if something is combined. Idempotent, unless the budget ran out.
//!
//! before     def @f(%x: Tensor[(2, 1), float32]) {
//!              let %a = matmul(%x, dense<Tensor[(1, 2), float32]>[1, 2]);
//!              let %b = matmul(%x, dense<Tensor[(1, 2), float32]>[3, 4]);
//!              let %c = matmul(%x, dense<Tensor[(1, 2), float32]>[5, 6]);
//!              (%a, %b, %c)
//!            }
//! after      def @f(%x: Tensor[(2, 1), float32]) {
//!              let %0 = matmul(%x, dense<Tensor[(1, 6), float32]>[1, 2, 3, 4, 5, 6]);
//!              let %1 = split(%0, axis=1, sections=3);
//!              let %a = %1.0;
//!              let %b = %1.1;
//!              let %c = %1.2;
//!              (%a, %b, %c)
//!            }
//! ```

mod branches;
mod joined;
mod plan;

use anfora_ir::{Context, ExprId, Function, VarId};
use anfora_manager::register_pass;
use anfora_visit::{Mutator, RewriteError, Site, Slot, Verdict, mutate_function};
use rustc_hash::{FxHashMap, FxHashSet};

use self::branches::find_groups;
use self::plan::Planner;
use crate::fold_budget::{FoldBudget, MAX_FILE_BYTES, MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK};

register_pass! {
    /// Combines products and convolutions of one operand into one, whose result is split
    pub COMBINE_PARALLEL_MATMUL = FunctionPass("CombineParallelMatmul", 3).needing(["anf"]).sparing_primitive();
    options {
        /// the least number of calls that a combination must save
        min_saved: i64 [-1000..=1000] = 1,
    }
    configs { MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK, MAX_FILE_BYTES }
    run {
        move |edit, _, cx| {
            let budget = FoldBudget::of(cx)?;
            let done = combine_parallel_matmul(edit.cx, edit.function, budget, min_saved)?;
            cx.count("products", done.products as u64);
            cx.count("combined", done.combined as u64);
            Ok(())
        }
    }
}

/// The result of combining products of one operand.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct CombinedProducts {
    /// The number of products that became part of a larger one.
    pub products: usize,
    /// The number of larger products.
    pub combined: usize,
}

/// Combines products of a function with the same left operand, if that saves at least `min_saved`
/// calls.
///
/// # Errors
/// If the body is not in A-normal form.
pub fn combine_parallel_matmul(
    cx: &mut Context,
    function: &mut Function,
    budget: FoldBudget,
    min_saved: i64,
) -> Result<CombinedProducts, RewriteError> {
    let found = find_groups(cx, &function.body)?;
    if found.groups.is_empty() {
        return Ok(CombinedProducts::default());
    }
    let mut planner = Planner::new(&found, budget, min_saved);
    for group in &found.groups {
        if !cx.rewrites.may_rewrite() {
            break;
        }
        let before = planner.rewrite.parts.len();
        planner.plan(cx, &mut function.body, group);
        if planner.rewrite.parts.len() > before {
            cx.rewrites.note(None, "combined products");
        }
    }
    let mut rewrite = planner.rewrite;
    if !rewrite.parts.is_empty() {
        mutate_function(cx, function, &mut rewrite)?;
    }
    Ok(rewrite.done)
}

/// The rewrite of a function, by the variables of the old bindings.
#[derive(Default)]
struct Combination {
    /// The bindings to insert before a binding.
    inserted: FxHashMap<VarId, Vec<(VarId, ExprId)>>,
    /// The new values of bindings: parts of combined products.
    parts: FxHashMap<VarId, ExprId>,
    /// The bindings whose values moved into a combination.
    dropped: FxHashSet<VarId>,
    done: CombinedProducts,
}

impl Mutator for Combination {
    type Error = RewriteError;
    const NODES: bool = false;
    const SEPARABLE: bool = false;

    #[inline]
    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, _: ExprId) -> Result<Verdict, RewriteError> {
        let Some(var) = slot.var else { return Ok(Verdict::Keep) };
        for (new, value) in self.inserted.remove(&var).into_iter().flatten() {
            s.push(new, value);
        }
        Ok(match self.parts.get(&var) {
            Some(&part) => Verdict::Value(part),
            None if self.dropped.contains(&var) => Verdict::Drop,
            None => Verdict::Keep,
        })
    }
}

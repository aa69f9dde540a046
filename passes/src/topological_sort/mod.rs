//! # TopologicalSort
//!
//! ```text
//! Notation   b, c bindings of one dataflow region; c uses b if its value names the variable of b,
//!            also in the block of a fn. An input of a region is a variable that is bound outside.
//! Needs      A-normal form.
//! Effect     dataflow { bs output(vs) }   =>   dataflow { bs' output(vs) }
//!              where bs' are the bindings bs in another order, each after those that it uses.
//! Direction  from-inputs   The search starts with each input in order: parameters, then variables
//!                          of outer blocks, outermost first; then with the bindings that use
//!                          nothing. From there it goes to the bindings that use a value. A
//!                          binding is reached when all values that it uses have been.
//!            from-outputs  The same backward: the search starts with the outputs, the last used
//!                          first, then with the bindings that nothing uses, and goes to the
//!                          bindings that a value uses, the last operand first.
//! Order      depth-first   From a binding, the search goes on at once with all that it leads to.
//!            breadth-first First with all that can be reached already.
//! Ties       are broken by the order before: of the bindings that use a value, and of those that
//!            nothing leads to.
//! Options    order (default depth-first), direction (default from-inputs).
//! Never      A `match_cast` to a symbolic type stays in its place, and no binding crosses it: it
//!            may bind a symbol that types after it name.
//! Not done   Bindings outside of regions keep their order: they may have effects. Run
//!            ConvertToDataflow first.
//! Cost       One walk, and a sort of the uses of each region. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              dataflow {                                 dataflow {
//!                let %a = add(%x, 1);                       let %a = add(%x, 1);
//!                let %b = add(%x, 2);                       let %c = negative(%a);
//!                let %c = negative(%a);                     let %b = add(%x, 2);
//!                let %d = negative(%b);                     let %d = negative(%b);
//!                let %e = add(%c, %d);                      let %e = add(%c, %d);
//!                output(%e);                                output(%e);
//!              }                                          }
//!              %e                                         %e
//!            }                                          }
//! ```

mod orders;
mod search;

use std::str::FromStr;

use anfora_ir::{Body, Context, ExprId};
use anfora_manager::register_pass;
use anfora_visit::RewriteError;

use crate::region_scan::RegionScan;

register_pass! {
    /// Sorts the bindings of dataflow regions in the order of a search
    pub TOPOLOGICAL_SORT = FunctionPass("TopologicalSort", 0).needing(["anf"]).sparing_primitive();
    options {
        /// the way in which the search goes on
        order: SearchOrder ["depth-first", "breadth-first"] = "depth-first",
        /// the end of the regions from which the search starts
        direction: SearchDirection ["from-inputs", "from-outputs"] = "from-inputs",
    }
    run {
        move |edit, _, cx| {
            let sorted = topological_sort(edit.cx, &mut edit.function.body, order, direction)?;
            cx.count("sorted", sorted as u64);
            Ok(())
        }
    }
}

/// The way in which a search goes on from a binding.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SearchOrder {
    /// With all that the binding leads to.
    #[default]
    DepthFirst,
    /// With all that can be reached already.
    BreadthFirst,
}

/// The end of a region from which a search starts.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SearchDirection {
    /// From the inputs to their uses.
    #[default]
    FromInputs,
    /// From the outputs to the values that they use.
    FromOutputs,
}

/// The error for a word that names no order or direction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UnknownSearch;

impl std::fmt::Display for UnknownSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there is no such search")
    }
}

impl std::error::Error for UnknownSearch {}

impl FromStr for SearchOrder {
    type Err = UnknownSearch;

    fn from_str(word: &str) -> Result<SearchOrder, UnknownSearch> {
        match word {
            "depth-first" => Ok(SearchOrder::DepthFirst),
            "breadth-first" => Ok(SearchOrder::BreadthFirst),
            _ => Err(UnknownSearch),
        }
    }
}

impl FromStr for SearchDirection {
    type Err = UnknownSearch;

    fn from_str(word: &str) -> Result<SearchDirection, UnknownSearch> {
        match word {
            "from-inputs" => Ok(SearchDirection::FromInputs),
            "from-outputs" => Ok(SearchDirection::FromOutputs),
            _ => Err(UnknownSearch),
        }
    }
}

/// Sorts the bindings of the dataflow regions of a body, and returns the number of regions whose
/// order changed.
///
/// # Errors
/// If the body is not in A-normal form.
pub fn topological_sort(
    cx: &Context,
    body: &mut Body,
    order: SearchOrder,
    direction: SearchDirection,
) -> Result<usize, RewriteError> {
    let mut scan = RegionScan::of(cx, body)?;
    let orders = scan.sort(order, direction);
    let mut sorted = 0;
    for region in scan.regions.iter().rev() {
        let segments = || region.segments.iter().map(|&i| (&scan.segments[i].lets, &orders[i]));
        let before: Vec<ExprId> = segments().flat_map(|(lets, _)| lets.iter().copied()).collect();
        let after: Vec<ExprId> =
            segments().flat_map(|(lets, order)| order.iter().map(|&node| lets[node as usize])).collect();
        if before != after {
            region.relink(body, &before, &after);
            sorted += 1;
        }
    }
    Ok(sorted)
}

//! # ConvertToDataflow
//!
//! ```text
//! Notation   b a binding; bs, cs runs of bindings, none with an If or an impure call as its value;
//!            vs the variables of bs that are used outside the region.
//! Needs      A-normal form.
//! Effect     bs rest   =>   dataflow { bs output(vs) } rest
//!              bs is maximal, and has min_size bindings or more
//!            bs dataflow { cs output(ws) } rest   =>   dataflow { bs cs output(vs) } rest
//!              however short bs is; likewise after a region, and between two
//!            In blocks of all kinds. The definition of a fn is pure, even if its calls are impure.
//!            The variables that a fn uses count as used outside.
//! Options    min_size (default 2).
//! Not done   A tail is not a binding, and stays a tail (Normalize binds it). Two adjacent regions
//!            stay two (Normalize merges them). A region with nothing to join it stays as it is.
//! Cost       One walk, another where something was grouped, and one for purity where a call could
//!            be impure. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              let %a = negative(%x);                     dataflow {
//!              let %b = abs(%a);                            let %a = negative(%x);
//!              print(%b)                                    let %b = abs(%a);
//!            }                                              output(%b);
//!                                                         }
//!                                                         print(%b)
//!                                                       }
//! ```
//!
//! Its inverse is [`to_non_dataflow`](crate::to_non_dataflow).

use std::num::NonZeroUsize;

use anfora_ir::{Body, Context, Cursor, Expr, ExprId, IdSet, LazyBodyPurity, PerBlock, Purity, RegionWriter, Step};
use anfora_manager::register_pass;
use anfora_visit::{Binding, RewriteError, hide_unused_outputs};

register_pass! {
    /// Groups runs of pure bindings into dataflow regions
    pub CONVERT_TO_DATAFLOW = FunctionPass("ConvertToDataflow", 0)
        .needing(["anf"])
        .establishing(["dataflow"])
        .sparing_primitive();
    options {
        /// the least number of bindings of a new region
        min_size: i64 [1..=i64::MAX] = 2,
    }
    run {
        let min_size = usize::try_from(min_size).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MAX);
        move |edit, module, cx| {
            let made = convert_to_dataflow(edit.cx, &mut edit.function.body, module.purity(), min_size)?;
            cx.count("grouped", made.grouped as u64);
            cx.count("regions", made.regions as u64);
            Ok(())
        }
    }
}

/// The result of converting bindings outside of regions.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Converted {
    /// The number of bindings that are in a region now.
    pub grouped: usize,
    /// The number of new regions.
    pub regions: usize,
}

/// Groups maximal runs of at least `min_size` pure bindings of a function into dataflow regions,
/// and lets runs next to a region join it.
///
/// # Errors
/// If the body is not in A-normal form. It is half converted then.
pub fn convert_to_dataflow(
    cx: &Context,
    body: &mut Body,
    purity: &Purity,
    min_size: NonZeroUsize,
) -> Result<Converted, RewriteError> {
    let mut pass = RegionFinder {
        cx,
        effects: LazyBodyPurity::new(purity),
        min_size: min_size.get(),
        touched: IdSet::with_capacity(0),
        result: Converted::default(),
    };
    let mut blocks: PerBlock<Block> = PerBlock::default();
    let mut cursor = Cursor::with_regions(body);
    while let Some(step) = cursor.next(body) {
        RewriteError::unless_anf(cx, body, &cursor, step)?;
        match step {
            Step::EnterBlock(..) => blocks.enter(),
            Step::ExitBlock(..) => pass.end(body, &mut blocks.exit()),
            Step::EnterRegion(first) => pass.region(body, &mut blocks, first),
            Step::Let(id) => pass.binding(body, &mut blocks, id),
            _ => {}
        }
    }
    let RegionFinder { touched, result, .. } = pass;
    if result.grouped > 0 {
        hide_unused_outputs(body, |start| touched.contains(start));
    }
    Ok(result)
}

/// The state of a block directly before a binding.
#[derive(Copy, Clone, Default)]
struct Block {
    /// The first Let of a region that the binding may continue.
    region: Option<ExprId>,
    /// True if bindings joined that region after its own last binding.
    is_joined: bool,
    writer: RegionWriter,
    /// Otherwise, the first of the bindings that may become a region, and their number.
    loose: Option<(ExprId, usize)>,
}

struct RegionFinder<'a> {
    cx: &'a Context,
    effects: LazyBodyPurity<'a>,
    min_size: usize,
    /// The first Lets of the regions that gained bindings.
    touched: IdSet<ExprId>,
    result: Converted,
}

impl RegionFinder<'_> {
    /// Visits a region, which the bindings directly before it join.
    fn region(&mut self, body: &mut Body, block: &mut Block, first: ExprId) {
        self.group(body, block);
        if !std::mem::take(&mut block.is_joined) {
            block.region = Some(first);
            block.writer.begin();
        }
        // The other Lets of the region keep their flags.
        block.writer.write(body, first);
    }

    fn binding(&mut self, body: &mut Body, block: &mut Block, id: ExprId) {
        let Some(Binding { value, flags, .. }) = Binding::of(body, id) else { return };
        if flags.is_dataflow() {
            return;
        }
        if !self.fits(body, value) {
            self.end(body, block);
        } else if let Some(start) = block.region {
            block.writer.write(body, id);
            block.is_joined = true;
            self.touched.insert(start);
            self.result.grouped += 1;
        } else {
            block.loose.get_or_insert((id, 0)).1 += 1;
        }
    }

    /// Ends a run that no region follows.
    fn end(&mut self, body: &mut Body, block: &mut Block) {
        if block.loose.is_some_and(|(_, count)| count >= self.min_size) {
            self.group(body, block);
            self.result.regions += 1;
        }
        *block = Block::default();
    }

    /// Puts loose bindings at the beginning of a region.
    fn group(&mut self, body: &mut Body, block: &mut Block) {
        let Some((first, count)) = block.loose.take() else { return };
        block.writer.begin();
        let mut at = first;
        for _ in 0..count {
            block.writer.write(body, at);
            at = Binding::of(body, at).expect("a run is made of Lets").rest;
        }
        (block.region, block.is_joined) = (Some(first), true);
        self.touched.insert(first);
        self.result.grouped += count;
    }

    /// Returns true if a value may be in a region.
    fn fits(&mut self, body: &Body, value: ExprId) -> bool {
        match body.expr(value) {
            Expr::CallOp { .. } | Expr::Call { .. } => !self.effects.is_impure(self.cx, body, value),
            Expr::If { .. } | Expr::Let { .. } => false,
            _ => true,
        }
    }
}

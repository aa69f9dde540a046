//! # ConvertToDataflow
//!
//! ```text
//! Notation   b a binding, bs a run of them, none with an If or an impure call as its value; vs the variables of bs that are used outside it.
//! Needs      A-normal form.
//! Effect     bs rest                            =>  dataflow { bs output(vs) } rest     bs is maximal, and has min_size bindings or more
//!            bs dataflow { cs output(ws) } rest =>  dataflow { bs cs output(vs) } rest  however short bs is; likewise after a region, and between two
//!            In blocks of all kinds. The definition of a fn is pure, whatever its calls are; what a fn uses counts as used outside.
//! Options    min_size (default 2).
//! Not done   A tail is no binding and stays one (Normalize binds it). Two regions side by side stay two (Normalize merges them), and a region
//!            with nothing to join it stays as it is.
//! Cost       One walk, another where something was grouped, and one for purity where a call could be impure. Idempotent.
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

use anfora_ir::{BlockKind, Body, Context, Cursor, Expr, ExprId, IdSet, LazyBodyPurity, LetFlags, Purity, Step};
use anfora_manager::register_pass;
use anfora_visit::{Binding, RewriteError, set_let_flags};

use crate::support::regions::hide_outputs;

register_pass! {
    /// Groups runs of pure bindings into dataflow regions
    pub CONVERT_TO_DATAFLOW = FunctionPass("ConvertToDataflow", 0).needing(["anf"]).establishing(["dataflow"]);
    options {
        /// how many bindings a new region has at least
        min_size: i64 [1..=i64::MAX] = 2,
    }
    run {
        let min_size = usize::try_from(min_size).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MAX);
        move |edit, module, cx| {
            if !edit.function.is_primitive(edit.cx) {
                let made = convert_to_dataflow(edit.cx, &mut edit.function.body, module.purity(), min_size)?;
                cx.count("grouped", made.grouped as u64);
                cx.count("regions", made.regions as u64);
            }
            Ok(())
        }
    }
}

/// What became of the bindings outside regions.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Converted {
    /// How many are in a region now.
    pub grouped: usize,
    /// How many regions are new.
    pub regions: usize,
}

/// Groups maximal runs of at least `min_size` pure bindings of a function into dataflow regions, and lets those beside a region join it.
///
/// # Errors
/// If the body is not in A-normal form; it is half converted then.
pub fn convert_to_dataflow(
    cx: &Context,
    body: &mut Body,
    purity: &Purity,
    min_size: NonZeroUsize,
) -> Result<Converted, RewriteError> {
    let mut pass = Pass {
        cx,
        effects: LazyBodyPurity::new(purity),
        min_size: min_size.get(),
        touched: IdSet::with_capacity(0),
        result: Converted::default(),
    };
    // The runs of the blocks that are open around the present one.
    let mut outer: Vec<Run> = Vec::new();
    let mut run = Run::Nothing;
    // The Let or tail that the walk is at.
    let mut at = body.root();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::EnterBlock(_, BlockKind::Value(_) | BlockKind::Operand(_)) | Step::Seen(_) => {
                return Err(RewriteError::not_a_normal_form(cx, body, at));
            }
            Step::EnterBlock(..) => outer.push(std::mem::replace(&mut run, Run::Nothing)),
            Step::ExitBlock(..) => {
                pass.end(body, run);
                run = outer.pop().expect("a block is left after it is entered");
            }
            Step::Let(id) => {
                at = id;
                run = pass.binding(body, run, id);
            }
            Step::Bound(id) => at = Binding::of(body, id).map_or(id, |b| b.rest),
            Step::Enter(id) => {
                let fine = match body.expr(id) {
                    Expr::If { cond, .. } => body.expr(cond).is_atom(),
                    Expr::Lambda { .. } => true,
                    _ => false,
                };
                if !fine {
                    return Err(RewriteError::not_a_normal_form(cx, body, at));
                }
            }
            Step::Exit(_) | Step::Flat(_) | Step::Atom(_) => {}
        }
    }
    let Pass { touched, result, .. } = pass;
    if result.grouped > 0 {
        hide_outputs(body, |start| touched.contains(start));
    }
    Ok(result)
}

/// What comes right before a binding in its block.
#[derive(Copy, Clone)]
enum Run {
    /// Nothing that could be in a region with it.
    Nothing,
    /// Bindings for a region.
    Loose { first: ExprId, count: usize },
    /// A region that starts with this Let.
    Region { start: ExprId },
    /// One that starts with this Let and was joined by the binding before.
    Joined { start: ExprId },
}

struct Pass<'a> {
    cx: &'a Context,
    effects: LazyBodyPurity<'a>,
    min_size: usize,
    /// The first Lets of the regions that got bindings.
    touched: IdSet<ExprId>,
    result: Converted,
}

impl Pass<'_> {
    /// What comes before the binding after this one.
    fn binding(&mut self, body: &mut Body, run: Run, id: ExprId) -> Run {
        let Some(Binding { value, flags, .. }) = Binding::of(body, id) else { return run };
        if flags.is_dataflow() {
            return match run {
                Run::Loose { first, count } => {
                    self.group(body, first, count);
                    set_let_flags(body, id, LetFlags::DATAFLOW);
                    Run::Region { start: first }
                }
                Run::Joined { start } => {
                    set_let_flags(body, id, LetFlags::DATAFLOW);
                    Run::Region { start }
                }
                Run::Region { .. } if !flags.starts_region() => run,
                Run::Region { .. } | Run::Nothing => Run::Region { start: id },
            };
        }
        if !self.fits(body, value) {
            self.end(body, run);
            return Run::Nothing;
        }
        match run {
            Run::Nothing => Run::Loose { first: id, count: 1 },
            Run::Loose { first, count } => Run::Loose { first, count: count + 1 },
            Run::Region { start } | Run::Joined { start } => {
                set_let_flags(body, id, LetFlags::DATAFLOW);
                self.touched.insert(start);
                self.result.grouped += 1;
                Run::Joined { start }
            }
        }
    }

    /// A run ends, and no region follows.
    fn end(&mut self, body: &mut Body, run: Run) {
        if let Run::Loose { first, count } = run
            && count >= self.min_size
        {
            self.group(body, first, count);
            self.result.regions += 1;
        }
    }

    /// Makes bindings the beginning of a region.
    fn group(&mut self, body: &mut Body, first: ExprId, count: usize) {
        let (mut at, mut flags) = (first, LetFlags::REGION_START);
        for _ in 0..count {
            set_let_flags(body, at, flags);
            flags = LetFlags::DATAFLOW;
            at = Binding::of(body, at).expect("a run is made of Lets").rest;
        }
        self.touched.insert(first);
        self.result.grouped += count;
    }

    /// Whether a value may be in a region.
    fn fits(&mut self, body: &Body, value: ExprId) -> bool {
        match body.expr(value) {
            Expr::CallOp { .. } | Expr::Call { .. } => !self.effects.is_impure(self.cx, body, value),
            Expr::If { .. } | Expr::Let { .. } => false,
            _ => true,
        }
    }
}

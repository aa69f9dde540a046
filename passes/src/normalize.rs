//! # Normalize
//!
//! ```text
//! Notation   n a call, projection, If or lambda; v a new variable; bs, cs bindings; xs, ys, zs
//!            variables; zs those of xs and ys that are used outside.
//! Needs      Nothing: any form.
//! Effect     The pass does everything that ToANormalForm does, which also flattens blocks in
//!            values and operands. Then
//!            n                                  =>  let v = n; v
//!              where n is the tail of a block
//!            dataflow { bs output(xs) } dataflow { cs output(ys) } rest
//!                                               =>  dataflow { bs cs output(zs) } rest
//!            In blocks of all kinds.
//! Not done   A tuple of atoms stays in the tail. The outputs of a region that is not merged stay.
//!            Nothing is moved into a region (ConvertToDataflow does that), and nothing is replaced
//!            (CanonicalizeBindings does).
//! Cost       That of ToANormalForm, a walk, and another where regions were merged. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              let %a = {                                 let %b = negative(%x);
//!                let %b = negative(%x);                   let %a = abs(%b);
//!                abs(%b)                                  let %0 = add(%a, %x);
//!              };                                         %0
//!              add(%a, %x)                              }
//!            }
//! ```

use anfora_ir::{
    BlockKind, Body, Context, Cursor, Expr, ExprId, IdSet, LetFlags, PerBlock, RegionWriter, Step, VarFlags,
};
use anfora_manager::register_pass;
use anfora_visit::{Binding, Link, hide_unused_outputs};

use crate::to_a_normal_form::to_a_normal_form;

register_pass! {
    /// Flattens blocks, merges adjacent dataflow regions, and binds the tails of blocks
    pub NORMALIZE = FunctionPass("Normalize", 1).establishing(["anf"]).sparing_primitive();
    run |edit, _, cx| {
        let done = normalize(edit.cx, &mut edit.function.body);
        cx.count("bound", done.bound as u64);
        cx.count("merged", done.merged as u64);
        Ok(())
    }
}

/// The result of normalizing.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Normalized {
    /// The number of new bindings.
    pub bound: usize,
    /// The number of regions that were merged into the region before them.
    pub merged: usize,
}

/// Converts a function to A-normal form in which no block ends in a call, projection, If or lambda,
/// and no region directly follows another.
pub fn normalize(cx: &Context, body: &mut Body) -> Normalized {
    let mut done = Normalized { bound: to_a_normal_form(cx, body), merged: 0 };
    let mut blocks: PerBlock<Block> = PerBlock::default();
    // The first Lets of the regions that others were merged into.
    let mut grown: IdSet<ExprId> = IdSet::with_capacity(0);
    let mut cursor = Cursor::with_regions(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::EnterBlock(..) => blocks.enter(),
            Step::EnterRegion(first) => match blocks.region {
                Some(before) => {
                    grown.insert(before);
                    done.merged += 1;
                }
                None => {
                    blocks.region = Some(first);
                    blocks.writer.begin();
                }
            },
            Step::Let(id) => {
                let Some(Binding { flags, .. }) = Binding::of(body, id) else { continue };
                blocks.last = Some(id);
                if flags.is_dataflow() {
                    blocks.writer.write(body, id);
                } else {
                    blocks.region = None;
                }
            }
            Step::ExitBlock(start, kind) => {
                let last = blocks.exit().last;
                done.bound += usize::from(bind_tail(cx, body, last, start, kind));
            }
            Step::ExitRegion(_)
            | Step::Bound(_)
            | Step::Atom(_)
            | Step::Flat(_)
            | Step::Enter(_)
            | Step::Exit(_)
            | Step::Seen(_) => {}
        }
    }
    if done.merged > 0 {
        hide_unused_outputs(body, |start| grown.contains(start));
    }
    done
}

/// The state of an open block.
#[derive(Copy, Clone, Default)]
struct Block {
    /// The last Let that was visited.
    last: Option<ExprId>,
    /// The first Let of the region that it is in.
    region: Option<ExprId>,
    writer: RegionWriter,
}

/// Binds the tail of a block, unless it is an atom or a tuple of atoms. Returns true if it was
/// bound.
fn bind_tail(cx: &Context, body: &mut Body, last: Option<ExprId>, start: ExprId, kind: BlockKind) -> bool {
    let link = match (last, kind) {
        (Some(last), _) => Link::Rest(last),
        (None, BlockKind::Root) => Link::Root,
        (None, BlockKind::Then(id)) => Link::Then(id),
        (None, BlockKind::Else(id)) => Link::Else(id),
        (None, BlockKind::Lambda(id)) => Link::Lambda(id),
        (None, BlockKind::Value(_) | BlockKind::Operand(_)) => return false,
    };
    let tail = last.map_or(start, |_| link.target(body));
    if !matches!(
        body.expr(tail),
        Expr::CallOp { .. } | Expr::Call { .. } | Expr::Proj { .. } | Expr::If { .. } | Expr::Lambda { .. }
    ) {
        return false;
    }
    let span = body.span(tail);
    let var = body.push_var(None, VarFlags::PLAIN, body.ty(tail), span);
    let binding = Expr::Let { var, value: tail, body: var.expr(), flags: LetFlags::PLAIN };
    let id = body.push(binding, cx.types.unit(), span);
    link.set(body, id);
    if let Some(meta) = body.meta(tail) {
        body.set_meta(tail, None);
        body.set_meta(var.expr(), Some(meta));
    }
    true
}

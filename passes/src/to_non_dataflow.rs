//! # ToNonDataflow
//!
//! ```text
//! Notation   bs bindings, vs variables.
//! Needs      Nothing: any form.
//! Effect     dataflow { bs output(vs) } rest   =>   bs rest
//!              in blocks of all kinds, and in functions with the attribute Primitive too; the
//!              variables become plain
//! Not done   Nothing else changes: no name, no type, no order.
//! Cost       A scan of the arena, and one walk where there is a region. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              dataflow {                                 let %a = negative(%x);
//!                let %a = negative(%x);                   let %b = abs(%a);
//!                let %b = abs(%a);                        %b
//!                output(%b)                             }
//!              }
//!              %b
//!            }
//! ```
//!
//! Its inverse is [`convert_to_dataflow`](crate::convert_to_dataflow).

use anfora_ir::{Body, Cursor, Expr, RegionWriter, Step};
use anfora_manager::register_pass;

register_pass! {
    /// Dissolves dataflow regions
    pub TO_NON_DATAFLOW = FunctionPass("ToNonDataflow", 0).establishing(["no-dataflow"]);
    run |edit, _, cx| {
        cx.count("dissolved", to_non_dataflow(&mut edit.function.body) as u64);
        Ok(())
    }
}

/// Dissolves the dataflow regions of a function, and returns their number.
pub fn to_non_dataflow(body: &mut Body) -> usize {
    let in_region = |e: Expr| matches!(e, Expr::Let { flags, .. } if flags.is_dataflow());
    if !body.exprs().any(|(_, e)| in_region(e)) {
        return 0;
    }
    let (mut regions, mut none) = (0, RegionWriter::default());
    let mut cursor = Cursor::with_regions(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::EnterRegion(_) => regions += 1,
            Step::Let(id) => none.write(body, id),
            _ => {}
        }
    }
    regions
}

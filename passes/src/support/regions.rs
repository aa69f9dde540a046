//! What the passes that make and merge dataflow regions share.

use anfora_ir::{Body, Cursor, EntityId, Expr, ExprId, Step, VarFlags, VarId};
use anfora_visit::{Binding, set_var_flags};

/// Where a walk is, in one block.
#[derive(Copy, Clone, Default)]
struct Place {
    /// The region that the walk is in; 0 for none.
    region: u32,
    /// The last one in this block, which the next Let may go on with.
    last: u32,
}

/// Makes the outputs of regions that are not used outside visible only inside: of the regions whose first Let is `chosen`. What a lambda
/// inside a region uses counts as used outside. Returns how many they were. Linear.
pub(crate) fn hide_outputs(body: &mut Body, chosen: impl Fn(ExprId) -> bool) -> usize {
    let mut outputs: Vec<VarId> = Vec::new();
    // By variable: the region that it is an output of; 0 if it is none of a chosen one.
    let mut home: Vec<u32> = vec![0; body.len()];
    let mut used = vec![false; body.len()];
    let mut blocks: Vec<Place> = Vec::new();
    let mut here = Place::default();
    // By region, whether it is chosen.
    let mut regions: Vec<bool> = vec![false];
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let mut visit = |id: ExprId| {
            let region = home[id.index()];
            if region != 0 && region != here.region {
                used[id.index()] = true;
            }
        };
        match step {
            Step::EnterBlock(..) => blocks.push(std::mem::take(&mut here)),
            Step::ExitBlock(..) => here = blocks.pop().expect("a block is left after it is entered"),
            Step::Let(id) => {
                let Some(Binding { var, flags, .. }) = Binding::of(body, id) else { continue };
                here.region = match (flags.is_dataflow(), flags.starts_region() || here.last == 0) {
                    (false, _) => 0,
                    (true, false) => here.last,
                    (true, true) => {
                        regions.push(chosen(id));
                        regions.len() as u32 - 1
                    }
                };
                here.last = here.region;
                if regions[here.region as usize] && !body.is_dataflow_var(var) {
                    home[var.index()] = here.region;
                    outputs.push(var);
                }
            }
            Step::Bound(_) => here.region = 0,
            Step::Atom(id) => visit(id),
            Step::Flat(id) => match body.expr(id) {
                Expr::Proj { tuple, .. } => visit(tuple),
                _ => body.operands_of(id).iter().copied().for_each(visit),
            },
            Step::Enter(_) | Step::Exit(_) | Step::Seen(_) => {}
        }
    }
    outputs.retain(|v| !used[v.index()]);
    for &var in &outputs {
        set_var_flags(body, var, VarFlags::DATAFLOW);
    }
    outputs.len()
}

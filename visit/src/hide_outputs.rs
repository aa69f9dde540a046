//! Outputs of dataflow regions that are used only inside their region.

use anfora_ir::{Body, Cursor, EntityId, Expr, ExprId, PerBlock, Step, VarFlags, VarId};

use crate::chain::set_var_flags;

/// Makes outputs of dataflow regions visible only inside if nothing outside of their region uses
/// them. Returns the number of these outputs. `is_chosen` gets the first Let of a region and
/// returns true if the region is to be processed.
///
/// It is for passes that enlarge or merge regions: a variable that was needed between two regions
/// is then inside of one. A use in a branch or `fn` inside of the region counts as a use outside.
///
/// Walks the body once.
///
/// ```
/// # use anfora_ir::{Source, parse_module};
/// use anfora_visit::hide_unused_outputs;
///
/// # let ops = std::sync::Arc::new(anfora_ir::OpRegistry::new());
/// let text = "def @main(%x: ()) {
///     dataflow { let %a = (%x, %x); let %b = (%a, %a); output(%a, %b); }
///     %b
/// }";
/// let mut module = parse_module(Source::new("text", text), ops).unwrap();
/// let key = module.find("main").unwrap();
/// let body = &mut module.get_mut(key).unwrap().0.body;
/// assert_eq!(hide_unused_outputs(body, |_| true), 1);
/// assert!(module.to_text().contains("output(%b)"));
/// ```
pub fn hide_unused_outputs(body: &mut Body, is_chosen: impl Fn(ExprId) -> bool) -> usize {
    // Chosen regions have numbers from 1; 0 stands for all other places.
    let mut regions = 0;
    let mut here: PerBlock<u32> = PerBlock::default();
    let mut outputs: Vec<VarId> = Vec::new();
    // By variable: the region whose output it is, until a use elsewhere is found.
    let mut home: Vec<u32> = vec![0; body.len()];
    let mut cursor = Cursor::with_regions(body);
    while let Some(step) = cursor.next(body) {
        let mut visit = |id: ExprId| {
            if home[id.index()] != *here {
                home[id.index()] = 0;
            }
        };
        match step {
            Step::EnterBlock(..) => here.enter(),
            Step::ExitBlock(..) => {
                here.exit();
            }
            Step::EnterRegion(first) if is_chosen(first) => {
                regions += 1;
                *here = regions;
            }
            Step::ExitRegion(_) => *here = 0,
            Step::Let(id) => {
                if let Expr::Let { var, .. } = body.expr(id)
                    && *here != 0
                    && !body.is_dataflow_var(var)
                {
                    home[var.index()] = *here;
                    outputs.push(var);
                }
            }
            Step::Atom(id) => visit(id),
            Step::Flat(id) => body.inputs(id).iter().copied().for_each(visit),
            Step::EnterRegion(_) | Step::Bound(_) | Step::Enter(_) | Step::Exit(_) | Step::Seen(_) => {}
        }
    }
    outputs.retain(|var| home[var.index()] != 0);
    for &var in &outputs {
        set_var_flags(body, var, VarFlags::DATAFLOW);
    }
    outputs.len()
}

//! The passes on programs of every shape that nest deep, on a small stack, and on random programs.

use std::sync::Arc;

use anfora::check::same_meaning;
use anfora::prelude::*;
use anfora_testing::programs::Shape;
use anfora_testing::stress::{Operation, Subject};
use anfora_testing::{depth, on_stack};
use my_passes::SetupError;

/// The passes of this package.
const PASSES: [&str; 2] = ["DivisionsToProducts", "FuseSoftCap"];

/// The stack, which is too small for a recursion over thousands of levels. Without optimisation,
/// frames are larger than those for which `stress` has 64 KiB.
const STACK_KIB: usize = 256;

#[test]
fn no_pass_overflows_the_stack() -> Result<(), SetupError> {
    let (passes, operators) = (Arc::new(my_passes::passes()?), Arc::new(my_passes::operators()?));
    for shape in Shape::all() {
        let (passes, operators) = (passes.clone(), operators.clone());
        on_stack(STACK_KIB, move || {
            let subject = Subject::new(shape, depth(4_000))?.with_operators(&operators)?;
            let operations: Vec<Operation> =
                Operation::all_with(&passes).into_iter().filter(|o| PASSES.contains(&o.name())).collect();
            // A pass that was renamed would not be tested.
            assert_eq!(operations.len(), PASSES.len(), "each of {PASSES:?} is the name of a pass");
            for operation in operations {
                operation.prepare(&subject)?.run().map_err(|e| format!("{}: {e}", shape.name()))?;
            }
            Ok::<(), String>(())
        })??;
    }
    Ok(())
}

#[test]
fn random_programs_compute_the_same_afterwards() -> Result<(), SetupError> {
    let (passes, operators) = (Arc::new(my_passes::passes()?), Arc::new(my_passes::operators()?));
    let pipeline = parse_pipeline(&passes, "my_O2")?;
    let context = PassContext::with_registry(passes);
    let random: Shape = "random".parse()?;
    for seed in 0..50 {
        let subject = Subject::with_seed(random, 30, seed)?.with_operators(&operators)?;
        let before = subject.module();
        let mut after = before.clone();
        pipeline.apply(&mut after, &context)?;
        same_meaning(before, &after).map_err(|difference| format!("seed {seed}: {difference}\n{before}"))?;
    }
    Ok(())
}

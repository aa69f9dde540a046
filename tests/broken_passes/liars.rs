//! Passes that report that they changed nothing although they did.

use std::sync::Arc;

use anfora::ir::{Module, Phase};
use anfora::manager::{ModulePass, Outcome, Pass, PassContext, PassFailure, PassInfo, PassKind};

use super::folding::project_another;
use super::{Broken, registered};
use crate::random_programs::checking::Why;

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: "ToNonDataflow",
        mistake: "says that it changed nothing",
        why: &[Why::ClaimsUnchanged],
        make: || liar("ToNonDataflow"),
    },
    Broken {
        of: "Normalize",
        mistake: "says that it changed nothing",
        why: &[Why::ClaimsUnchanged],
        make: || liar("Normalize"),
    },
    Broken {
        of: "FoldConstant",
        mistake: "says that it changed nothing",
        why: &[Why::ClaimsUnchanged],
        make: || liar("FoldConstant"),
    },
    Broken {
        of: "PrintIR",
        mistake: "changes what it prints",
        why: &[Why::OtherResult],
        make: || super::after("PrintIR", project_another),
    },
    Broken {
        of: "PrintIR",
        mistake: "changes what it prints and says that it changed nothing",
        why: &[Why::ClaimsUnchanged],
        make: || lying("PrintIR", super::after("PrintIR", project_another)),
    },
    Broken {
        of: "EnterPhase",
        mistake: "says that it changed nothing",
        why: &[Why::ClaimsUnchanged],
        make: || liar("EnterPhase"),
    },
    Broken {
        of: "EnterPhase",
        mistake: "claims a phase without looking",
        why: &[Why::IllFormed],
        make: || {
            Arc::new(ModulePass::new("EnterPhase", 0, |module, _| {
                module.set_phase(Phase::new(2.3));
                Ok(())
            }))
        },
    },
];

/// A pass that reports that it changed nothing. The manager finds out for itself whether a pass
/// changed something, but accepts the report of a sequence.
struct Liar {
    info: PassInfo,
    pass: Arc<dyn Pass>,
}

impl Pass for Liar {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        self.pass.apply(module, cx)?;
        Ok(Outcome::Unchanged)
    }

    fn kind(&self) -> PassKind {
        PassKind::Sequence
    }

    fn nesting(&self) -> usize {
        self.pass.nesting() + 1
    }
}

fn liar(name: &str) -> Arc<dyn Pass> {
    lying(name, registered(name))
}

fn lying(name: &str, pass: Arc<dyn Pass>) -> Arc<dyn Pass> {
    Arc::new(Liar { info: PassInfo::new(name, 0), pass })
}

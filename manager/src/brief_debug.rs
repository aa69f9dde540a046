//! `Debug` output on one line, for types that hold closures or the contents of a context.

use anfora_ir::brief_debug;

use crate::analyses::Analyses;
use crate::context::PassContextBuilder;
use crate::dataflow_block_pass::DataflowBlockPass;
use crate::function_edit::{FunctionEdit, ModuleView};
use crate::function_pass::FunctionPass;
use crate::instrument::PassRun;
use crate::instruments::{Bisect, DumpIr, Memory, PassTiming, PrintIr, Remarks, Reproducer, RunLog, VerifyEach};
use crate::module_pass::ModulePass;
use crate::pass::Pass;
use crate::registry::{PassEntry, RegisteredPass};
use crate::scope::ScopeGuard;
use crate::sequential::Repeat;

brief_debug! {
    Analyses;
    Bisect;
    DataflowBlockPass { info };
    DumpIr;
    FunctionEdit<'_> { name };
    FunctionPass { info };
    Memory;
    ModulePass { info };
    ModuleView<'_>;
    PassContextBuilder;
    PassRun<'_> { name };
    PassTiming;
    PrintIr;
    RegisteredPass { name };
    Remarks;
    Repeat { info };
    Reproducer;
    RunLog;
    ScopeGuard;
    VerifyEach;
}

impl std::fmt::Debug for PassEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PassEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

//! The instruments that come with the manager.

mod bisect;
mod dump_ir;
mod memory;
mod print_ir;
mod remarks;
mod reproducer;
mod run_log;
mod timing;
mod verify_each;

pub use bisect::{Bisect, BisectRun};
pub use dump_ir::{DumpIr, Unchanged};
pub use memory::{AllocationCounts, MAX_MEMORY_RUNS, Memory, MemoryRun};
pub use print_ir::{PrintIr, PrintWhen};
pub use remarks::{Remarks, remarks_json, render_remarks};
pub use reproducer::Reproducer;
pub use run_log::{RunLog, RunRecord};
pub use timing::{MAX_TIMED_RUNS, PassTiming, TimingRow};
pub use verify_each::VerifyEach;

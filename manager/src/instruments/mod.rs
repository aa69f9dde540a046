//! The instruments that come with the manager.

mod bisect;
mod dump_ir;
mod last_run;
mod memory;
mod print_ir;
mod remarks;
mod reproducer;
mod run_log;
mod timing;
mod verify_each;

pub use bisect::{Bisect, BisectRun};
pub use dump_ir::{DumpIr, Unchanged};
pub(crate) use last_run::LAST_RUN;
pub use last_run::{LastRun, RecordedRun};
pub use memory::{AllocationCounts, MAX_MEMORY_RUNS, Memory, MemoryRun};
pub use print_ir::{PrintIr, PrintWhen};
pub use remarks::{Remarks, remarks_json, render_remarks};
pub use reproducer::{Reproducer, check_reproducer_place};
pub use run_log::{RunLog, RunRecord};
pub use timing::{MAX_TIMED_RUNS, PassTiming, TimingRow};
pub use verify_each::VerifyEach;

//! The pass manager of anfora: the kinds of passes, the context that they run under, and the
//! handling of their failures.
//!
//! - A [`Pass`] transforms a module. Most passes are made from a closure: a [`ModulePass`] sees the
//!   whole module, a [`FunctionPass`] one function at a time, a [`DataflowBlockPass`] one dataflow
//!   region at a time. [`register_pass!`] gives a pass a name, typed options, and the settings that
//!   it reads. Passes report remarks, notes, warnings and errors about any expression;
//!   [`render_remarks`] prints these reports with the lines of the program that they are about.
//!   [`Sequential`] and [`Repeat`] run other passes. [`PassInfo`] holds the name of a pass, its
//!   level, and the passes that it depends on.
//! - A [`PassContext`] determines which passes run: it has a level, passes that are required or
//!   disabled, settings and instruments. Passes leave remarks and counts in it. Each thread has a
//!   current context ([`PassContext::current`]); [`PassContext::scope`] makes another context
//!   current for a while.
//! - [`run_pass`], or [`Pass::apply`], runs a pass under a context, as a transaction: a pass that
//!   fails or panics leaves the module as it was, and a pass that reports [`Outcome::Unchanged`]
//!   changed nothing. The page of [`run_pass`] lists the steps in order. Ids of expressions are
//!   valid until the end of the pass: after it, bodies with many dead nodes are compacted.
//! - [`Analyses`] ([`PassContext::analyses`]) cache results about functions and the module from
//!   pass to pass, for as long as the results are valid.
//! - A [`PassRegistry`] holds passes with their options, settings and named pipelines. It is a
//!   value, and embedders can add to it. [`parse_pipeline`] makes a [`Sequential`] from a text such
//!   as `FoldConstant,fixpoint<4>(Cse{commutative=true},Dce)`.
//! - A pass declares which [properties](Property) of modules it needs, establishes and breaks
//!   ([`Declare::needing`]). An order of passes that cannot work is refused before any of them
//!   runs. A module claims to be in a phase ([`PhaseEntry`]). Breaking a property that the phase
//!   requires lowers the claim. The pass `EnterPhase` raises the claim; it is the last pass of the
//!   pipeline of a phase ([`PassRegistry::register_megapass`]).
//! - An [`Instrument`] watches passes run, and may stop them: [`PassTiming`], [`Memory`],
//!   [`VerifyEach`], [`PrintIr`], [`DumpIr`], [`RunLog`], [`Bisect`], [`Reproducer`],
//!   [`Remarks`], or an instrument of the embedder. Instruments are called in their order, both
//!   before and after a pass. Put instruments that print or dump before `VerifyEach`, so that they
//!   also show ill-formed results. Put `PassTiming` and `RunLog` last, so that they record a pass
//!   with an ill-formed result as failed. The time that instruments take is not part of the time of
//!   a pass, for any order of the instruments.
//! - With the feature `tracing`, each run of a pass, and each function that the pass works on, has
//!   a span of the crate `tracing` with the target `anfora`. An event in the span reports the
//!   outcome.
//!
//! ```
//! use std::sync::Arc;
//! use anfora_ir::{Module, OpRegistry};
//! use anfora_manager::{
//!     ConfigDef, Pass, PassContext, PassRegistry, PassTiming, parse_pipeline, register_pass,
//! };
//!
//! // A setting, declared beside the pass that reads it; a pass with an option.
//! const LIMIT: ConfigDef = ConfigDef::int(
//!     "CountNodes.limit",
//!     1,
//!     1_000_000,
//!     1000,
//!     "bodies of more nodes are large",
//! );
//! register_pass! {
//!     /// Counts the bodies that are too large
//!     pub COUNT_NODES = FunctionPass("CountNodes", 1);
//!     options {
//!         /// fail instead of counting
//!         strict: bool = false,
//!     }
//!     configs { LIMIT }
//!     run move |func, _module, cx| {
//!         match func.function.body.len() > cx.config_of(&LIMIT)? {
//!             true if strict => func.error(func.function.body.root(), "the body is too large"),
//!             large => cx.count("too large", large.into()),
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut registry = PassRegistry::new();
//! registry.register(COUNT_NODES)?;
//! registry.register_pipeline("check", "CountNodes{strict=true}", "Nothing is too large")?;
//!
//! let timing = Arc::new(PassTiming::new());
//! let cx = PassContext::builder()
//!     .registry(Arc::new(registry))
//!     .config_text("CountNodes.limit=64")
//!     .instrument(timing.clone())
//!     .build()?;
//! let pipeline = parse_pipeline(cx.registry(), "fixpoint<4>(CountNodes),check")?;
//! assert_eq!(pipeline.to_string(), "fixpoint<4>(CountNodes),CountNodes{strict=true}");
//!
//! let mut module = Module::new(Arc::new(OpRegistry::new()));
//! let outcome = pipeline.apply(&mut module, &cx)?;
//! assert!(!outcome.is_changed());
//! println!("{timing}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analyses;
mod change_tracker;
mod compaction;
mod config;
mod context;
mod dataflow_block_pass;
mod edit_each;
mod enter_phase;
mod error;
mod frame;
mod function_edit;
mod function_pass;
mod info;
mod instrument;
mod instruments;
mod messages;
mod module_pass;
mod named_pipeline;
mod names;
mod open_runs;
mod order;
mod parallel;
mod pass;
mod phases;
mod pipeline;
mod pipeline_state;
mod print_module;
mod properties;
mod register;
mod registry;
mod reproducer_file;
mod run;
mod scanner;
mod scope;
mod sequential;
mod sink;
#[cfg(feature = "tracing")]
mod spans;
mod statistics;
mod sync;
mod table;
#[doc(hidden)]
pub mod typed_option;
mod verification;

pub use analyses::{Analyses, FunctionAnalysis, OfBody, OfBodyAndTables, PreservedAnalysis};
pub use config::{ConfigDef, ConfigError, ConfigKind, ConfigValue, FromConfig, OptionDef, Options, TextList};
pub use context::{ContextError, PassContext, PassContextBuilder, PassRemark};
pub use dataflow_block_pass::DataflowBlockPass;
pub use error::{FailureKind, MAX_NESTING, PassError, PassFailure};
pub use function_edit::{FunctionEdit, ModuleView};
pub use function_pass::{FunctionPass, SKIP_OPTIMIZATION};
pub use info::{Declare, Outcome, PassInfo, PassKind, SkipReason};
pub use instrument::{Instrument, PassRun};
pub use instruments::{
    AllocationCounts, Bisect, BisectRun, DumpIr, LastRun, MAX_MEMORY_RUNS, MAX_TIMED_RUNS, Memory, MemoryRun,
    PassTiming, PrintIr, PrintWhen, RecordedRun, Remarks, Reproducer, RunLog, RunRecord, TimingRow, Unchanged,
    VerifyEach, check_reproducer_place, remarks_json, render_remarks,
};
pub use messages::MAX_REMARKS;
pub use module_pass::ModulePass;
pub use named_pipeline::{PipelineEntry, PipelineText};
pub use names::UnknownName;
pub use open_runs::{OpenRuns, RunRole};
pub use parallel::MAX_THREADS;
pub use pass::{AsPass, Pass};
pub use phases::PhaseEntry;
pub use pipeline::{PipelineError, parse_pipeline};
pub use print_module::PRINT_IR;
pub use properties::Property;
pub use registry::{
    DefaultRegistryError, MakeError, PassEntry, PassRegistry, RegisteredPass, RegistryError, set_default_registry,
};
pub use reproducer_file::{Replay, ReproducerFile, Verdict};
pub use run::run_pass;
pub use scope::ScopeGuard;
pub use sequential::{NestingError, Repeat, Sequential};
pub use statistics::{Counter, Statistics};
pub use verification::Verification;

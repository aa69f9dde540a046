//! A toolkit for writing compiler passes that cannot overflow the stack.
//!
//! Programs are in A-normal form over tensors and are stored in arenas. A million nested branches
//! need no more care than a million bindings in a row. The parts are:
//!
//! - [`ir`]: the representation, its text format, verifier, equality and hash;
//! - [`visit`]: visitors, mutators and rewriters, none of which recurses;
//! - [`manager`]: contexts, pipelines and instruments;
//! - [`passes`]: the reference passes and the standard pipelines;
//! - [`ops`] and `interp`: the standard operators and the interpreter that evaluates them;
//! - `onnx`: import and export of ONNX models;
//! - [`check`]: tests of passes, on text;
//! - [`bisect`](mod@bisect) and [`reduce`](mod@reduce): the search for the rewrite that breaks a
//!   program, and for the smallest program that shows a fault;
//! - [`surgery`]: edits of programs by the names of their values: parts, names, shapes, attributes;
//! - `slim`: one call that makes a program smaller.
//!
//! The crate `anfora-testing` has generators of programs of any size and shape, stress tests of
//! every operation of the toolkit, and the code of the guide as tests.
//!
//! Features select the parts of a build; `onnx` is on by default. A build without features has the
//! representation, the visitors, the manager, the passes except those that evaluate programs, and
//! the operators without their kernels:
//!
//! - **`interp`** adds kernels, `interp`, the pass FoldConstant and the instrument
//!   `passes::CheckMeaning`. It is on by default, as a part of `onnx`.
//! - **`onnx`** adds `onnx`, and includes `interp`. It is on by default.
//! - **`npz`** adds `.npz` archives of NumPy, for the pass BindParams and `passes::read_npz`. It is
//!   off by default.
//! - **`report`** adds `report`: recordings of passes, and pages of HTML for them and for
//!   differences. It is off by default.
//! - **`tracing`** adds spans and events of the crate `tracing` for each run of a pass. It is off
//!   by default.
//! - **`count-work`** adds counts of accesses to arenas and tables, for tests of linear work. It is
//!   off by default.
//!
//! This program parses a text, runs the standard pipeline and prints the result:
//!
//! ```
//! use anfora::prelude::*;
//!
//! let text = "def @main(%x: Tensor[(8,), float32]) {
//!     let %a = add(1f, 2f);
//!     let %b = multiply(%x, %a);
//!     let %c = multiply(%x, %a);
//!     let %unused = exp(%c);
//!     add(%b, %c)
//! }";
//! let mut module = parse_module(Source::new("example.anf", text), anfora::ops::standard())?;
//! let registry = anfora::passes::registry();
//! let pipeline = parse_pipeline(&registry, "O2")?;
//! let context = PassContext::with_registry(registry);
//! pipeline.apply(&mut module, &context)?;
//! assert_eq!(
//!     module.to_text(),
//!     "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
//!   let %b = multiply(%x, 3f);
//!   add(%b, %b)
//! }
//! "
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "interp")]
pub use anfora_interp as interp;
pub use anfora_ir as ir;
pub use anfora_manager as manager;
#[cfg(feature = "onnx")]
pub use anfora_onnx as onnx;
pub use anfora_ops as ops;
pub use anfora_passes as passes;
#[cfg(feature = "report")]
pub use anfora_report as report;
pub use anfora_visit as visit;

pub mod bisect;
pub mod check;
pub mod reduce;
#[cfg(feature = "interp")]
pub mod slim;
pub mod surgery;

/// The items that most programs use.
pub mod prelude {
    pub use anfora_ir::{
        Body, Context, Cursor, DType, Diagnostic, Editor, Expr, ExprId, FunctionBuilder, LetFlags, Literal, Module,
        OpId, Source, Step, VarFlags, VarId, parse_module, print_module, verify_module,
    };
    pub use anfora_manager::{
        Declare, FunctionPass, Instrument, ModulePass, Pass, PassContext, PassError, PassRegistry, Sequential,
        parse_pipeline,
    };
    pub use anfora_passes::{CheckedContext, CheckedContextBuilder, FromRules, install_default_registry};
    pub use anfora_visit::{
        Binding, Edits, LetList, Link, Mutator, Refused, Rewrite, RewriteError, Scope, Site, Slot, Verdict, Visit,
        Visitor, chain, expand_a_normal_form, mutate, mutate_function, post_order_rewrite, rules, walk,
    };
}

//! The IR of anfora: programs in A-normal form over tensors, in arenas.
//!
//! A [`Module`] holds functions over shared tables (its [`Context`]). A function owns one [`Body`],
//! whose expressions refer to each other by 4-byte ids. No function of this crate recurses over the
//! nesting of a program, a type or an attribute, and no drop is recursive.
//!
//! Programs are parsed from text ([`parse_module`]) or built ([`FunctionBuilder`]), traversed with
//! a [`Cursor`], and changed with an [`Editor`]:
//!
//! ```
//! use anfora_ir::{Cursor, DType, FunctionBuilder, Module, Step, verify_module};
//!
//! let mut module = Module::new(anfora_ops::standard());
//! let mut b = FunctionBuilder::new(&mut module, "main");
//! let ty = b.cx().types.static_tensor(DType::Float32, &[8]);
//! let mut x = b.param("x", ty);
//! for _ in 0..100_000 {
//!     let call = b.call_op("tanh", &[x], &[])?;
//!     x = b.bind("", call);
//! }
//! b.finish(x)?;
//! verify_module(&module)?;
//!
//! let body = &module.functions().next().expect("it was just added").1.body;
//! let (mut cursor, mut lets) = (Cursor::new(body), 0);
//! while let Some(step) = cursor.next(body) {
//!     lets += usize::from(matches!(step, Step::Let(_)));
//! }
//! assert_eq!(lets, 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Folders
//! The folders of the source, in reading order:
//!
//! | folder | contents |
//! |---|---|
//! | `core` | ids, expressions, bodies, functions, modules, the builder |
//! | `files` | constants in files; files that are written completely or not at all |
//! | `tables` | the tables that functions share: names, types, extents, literals, attributes |
//! | `ops` | operators, their rules and kernels, the effects of calls |
//! | `walk` | the cursor, and sets and graphs that walks use |
//! | `edit` | the editor, edits of regions, the journal, stamps, changes of types and signatures |
//! | `infer`, `verify` | types of expressions and modules; the rules of well-formed modules |
//! | `alpha`, `diff`, `compact` | equality and hashes up to names; differences; compaction |
//! | `text` | printing and parsing |
//! | `report` | diagnostics and how they are shown |

mod core;
mod files;
mod tables;
mod ops;
mod walk;
mod edit;
mod infer;
mod verify;
mod alpha;
mod diff;
mod compact;
mod text;
mod report;
pub mod work;

pub use crate::core::attr_names::{GLOBAL_SYMBOL, PRIMITIVE, PURE};
pub use crate::core::body::{Body, BodyRoom, Parts, SharedEdits, Span};
pub use crate::core::builder::{BuildError, FunctionBuilder, UnfinishedFunction};
pub use crate::core::context::{Context, Global, GlobalTable, GlobalTarget, LiteralTable};
pub use crate::core::entity::{
    Arena, AttrId, AttrsId, DimId, EntityId, ExprId, FunctionAttrId, FunctionKey, GlobalId, IdSet, LambdaId, LiteralId,
    NameId, OpId, SideTable, SymbolId, TypeId,
};
pub use crate::core::expr::{Expr, LambdaData, LetFlags, OperandList, VarFlags, VarId};
pub use crate::core::function::{Function, FunctionKind, Visibility};
pub use crate::core::invariant::Invariant;
pub use crate::core::module::{EditedFunction, Functions, Module};
pub use crate::core::phase::{PHASE, Phase, PhaseError, STANDARD_PHASES, StandardPhase};
pub use crate::edit::editor::Editor;
pub use crate::edit::function_stamp::{FunctionStamp, ModuleStamp};
pub use crate::edit::name_supply::NameSupply;
pub use crate::edit::near_misses::{AskedBy, MAX_NEAR_MISSES, MAX_NEAR_MISSES_OF_RUN, NearMiss, NearMisses, WhyNot};
pub use crate::edit::region_edits::edit_regions;
pub use crate::edit::region_writer::RegionWriter;
pub use crate::edit::retype::{Retype, RetypeError, retype_from};
pub use crate::edit::rewrites::{
    LogPosition, MAX_RECORDS_OF_RUN, RewriteMark, RewriteOptions, RewritePlace, RewriteRecord, RewriteSpan, Rewrites,
};
pub use crate::edit::signature::{
    NewParameter, SignatureChange, SignatureError, calls_of, change_signature, change_signatures, update_signatures,
    update_signatures_with,
};
pub use crate::edit::stamp::Stamp;
pub use crate::edit::substitution::SymbolSubstitution;
pub use crate::edit::take_over::TakeOverError;
pub use crate::edit::transplant::Transplant;
pub use crate::files::output_file::{UnfinishedFile, follow_links, remove_unfinished_files, write_file};
pub use crate::files::storage::{FileRange, StorageError, StoredFile, StoredFileKind};
pub use crate::infer::module::infer_module;
pub use crate::ops::adjoint::{Adjoint, AdjointError, AdjointRule, AdjointWriter, ResultAdjoint};
pub use crate::ops::decomposition::{Decomposer, Decomposition, DecompositionPart, DecompositionRule};
pub use crate::ops::facts::OpFacts;
pub use crate::ops::op::{
    AttrReader, ElementsRule, FusionRule, Kernel, KernelCall, KernelError, KnownByType, OpRegistry, OpTable,
    OpaquePurity, Operand, SizeBound, StepsRule, TypeCall, TypeError, TypeRule,
};
pub use crate::ops::op_call::OpCall;
pub use crate::ops::op_def::OpDef;
pub use crate::ops::op_kinds::{
    Arity, AttrDef, AttrDefault, AttrKind, FusionPattern, OpPurity, PrecisionPolicy, Splat,
};
pub use crate::ops::purity::{BodyPurity, EffectScan, LazyBodyPurity, Purity};
pub use crate::ops::register_error::RegisterError;
pub use crate::ops::relayout::{AxisOrder, LayoutRequest, Relayout, RelayoutCall, RelayoutRule};
pub use crate::report::diagnostic::{Diagnostic, Severity};
pub use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
pub use crate::report::render::{
    Color, RenderOptions, diagnostics_json, diagnostics_json_with, render_diagnostics, render_module_diagnostics,
};
pub use crate::report::source::Source;
pub use crate::report::suggest::did_you_mean;
pub use crate::tables::attrs::{Attr, AttrTable};
pub use crate::tables::dim::{Dim, DimOp, Dims, MAX_TERMS, Term};
pub use crate::tables::dtype::{DType, DTypeClass};
pub use crate::tables::literal::{Element, Literal, LiteralError, Shape, element_count};
pub use crate::tables::names::Names;
pub use crate::tables::parallel::fork::EndedFork;
pub use crate::tables::parallel::layers::LayeredArena;
pub use crate::tables::parallel::overlay::{Additions, Translation};
pub use crate::tables::scratch::{Scratch, ScratchVec};
pub use crate::tables::types::{
    FunctionType, MAX_KNOWN_ELEMENTS, SeenParts, SubstitutedParts, TensorType, Type, Types,
};
pub use crate::tables::value::{AttrValue, Number};
pub use crate::walk::ancestors::AncestorTree;
pub use crate::walk::attr_walk::AttrWalk;
pub use crate::walk::components::Components;
pub use crate::walk::counts::Counts;
pub use crate::walk::cursor::{BlockKind, Cursor, RegionSteps, Step};
pub use crate::walk::link_watch::LinkWatch;
pub use crate::walk::per_block::PerBlock;
pub use crate::walk::sparse_set::SparseSet;
pub use crate::walk::symbols::{FreeSymbols, SymbolWalk};
pub use alpha::{
    AlphaHasher, AlphaOptions, Difference, MetaPolicy, alpha_equal, alpha_equal_exprs, first_difference,
    first_difference_with, module_hash,
};
pub use bumpalo;
pub use compact::{CompactError, Remap, compact_body, is_sparse, live_nodes};
pub use diff::{
    ChangedPart, DifferenceKind, Differences, FunctionDifference, ItemDifference, ItemKind, PartChange, SequenceChange,
    diff, diff_with, sequence_changes, unified_diff, write_unified_diff,
};
pub use infer::{infer_call, infer_expr, infer_op, lambda_type, signature_type};
pub use text::{
    Annotations, FunctionLine, MAX_ERRORS, ModuleText, PrintLiterals, PrintOptions, Sketch, SketchAttr, SketchNode,
    SketchParts, SketchReader, SketchValue, binding_label, expr_extent, line_name, parse_attr, parse_fragment,
    parse_module, parse_module_on, parse_sketch, parse_type, print_function, print_module, signature_line,
    spelled_label, spelled_local, statement_line, write_module, write_module_on,
};
pub use verify::{Form, MAX_VERIFY_ERRORS, VerifyReport, verify_function, verify_functions, verify_module};

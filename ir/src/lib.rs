//! The IR of anfora: programs in A-normal form over tensors, in arenas.
//!
//! A [`Module`] holds functions over shared tables (its [`Context`]); a function owns one [`Body`], whose expressions refer to each other by
//! 4-byte ids. Nothing here recurses over the shape of a program, a type or an attribute, and nothing drops recursively.
//!
//! Programs are written as text ([`parse_module`]) or built ([`FunctionBuilder`]), looked at with a [`Cursor`], and changed through an [`Editor`]:
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

mod alpha;
mod attrs;
mod body;
mod brief_debug;
mod builder;
mod call_graph;
mod compact;
mod components;
mod context;
mod counts;
mod cursor;
mod diagnostic;
mod diagnostics;
mod dim;
mod dtype;
mod editor;
mod entity;
mod expr;
mod fork;
mod function;
mod infer;
mod infer_module;
mod intern;
mod invariant;
mod journal;
mod kernel;
mod layers;
mod link_watch;
mod literal;
mod module;
mod names;
mod op;
mod op_call;
mod op_def;
mod overlay;
mod part_set;
mod phase;
mod purity;
mod register;
mod render;
mod retype;
mod signature;
mod source;
mod stamp;
mod suggest;
mod take_over;
mod text;
mod translate;
mod types;
mod value;
mod verify;
pub mod work;

pub use alpha::{
    AlphaHasher, AlphaOptions, Difference, MetaPolicy, alpha_equal, alpha_equal_exprs, first_difference,
    first_difference_with, module_hash,
};
pub use attrs::{Attr, AttrTable, attr_depths};
pub use body::{Body, BodyRoom, SharedEdits, Span};
pub use builder::{BuildError, FunctionBuilder, UnfinishedFunction};
pub use compact::{CompactError, Remap, compact_body, is_sparse, live_nodes};
pub use components::Components;
pub use context::{Context, Global, GlobalTable, GlobalTarget, LiteralTable};
pub use counts::Counts;
pub use cursor::{BlockKind, Cursor, Step};
pub use diagnostic::{Diagnostic, Severity};
pub use diagnostics::{Diagnostics, IntoDiagnostics};
pub use dim::{Dim, DimOp, Dims, MAX_TERMS, Term};
pub use dtype::{DType, DTypeClass};
pub use editor::Editor;
pub use entity::{
    Arena, AttrId, AttrsId, DimId, EntityId, ExprId, FunctionAttrId, GlobalId, IdSet, LambdaId, LiteralId, NameId,
    OpId, SideTable, SymbolId, TypeId,
};
pub use expr::{Expr, LambdaData, LetFlags, OperandList, VarFlags, VarId};
pub use fork::EndedFork;
pub use function::{Function, FunctionKind, Visibility};
pub use infer::{infer_call, infer_expr, infer_op, lambda_type, signature_type};
pub use infer_module::infer_module;
pub use invariant::{GLOBAL_SYMBOL, Invariant};
pub use layers::LayeredArena;
pub use link_watch::LinkWatch;
pub use literal::{Element, Literal, LiteralError, Shape, element_count};
pub use module::{FunctionKey, Functions, Module};
pub use names::Names;
pub use op::{
    AttrReader, ElementsRule, FusionRule, Kernel, KernelCall, KernelError, KnownByType, OpRegistry, OpTable,
    OpaquePurity, Operand, SizeBound, StepsRule, TypeCall, TypeError, TypeRule,
};
pub use op_call::OpCall;
pub use op_def::{Arity, AttrDef, AttrDefault, AttrKind, FusionPattern, OpDef, OpPurity, Splat};
pub use overlay::{Additions, Translation};
pub use part_set::PartSet;
pub use phase::{PHASE, Phase, PhaseError, STANDARD_PHASES, StandardPhase};
pub use purity::{BodyPurity, EffectScan, Purity};
pub use register::RegisterError;
pub use render::{
    Color, RenderOptions, diagnostics_json, diagnostics_json_with, render_diagnostics, render_module_diagnostics,
};
pub use retype::{Retype, RetypeError, retype_from};
pub use signature::{
    NewParameter, SignatureChange, SignatureError, calls_of, change_signature, change_signatures, update_signatures,
    update_signatures_with,
};
pub use source::Source;
pub use stamp::{FunctionStamp, ModuleStamp, Stamp};
pub use suggest::did_you_mean;
pub use take_over::TakeOverError;
pub use text::{
    Annotations, MAX_ERRORS, ModuleText, PrintLiterals, PrintOptions, expr_extent, parse_attr, parse_module,
    parse_type, print_function, print_module, write_module,
};
pub use types::{FunctionType, MAX_KNOWN_ELEMENTS, SeenParts, SubstitutedParts, TensorType, Type, Types};
pub use value::{AttrValue, Number};
pub use verify::{Form, MAX_VERIFY_ERRORS, VerifyReport, verify_function, verify_functions, verify_module};

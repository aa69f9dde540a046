//! # ToMixedPrecision
//!
//! ```text
//! Notation   T a type, T' the type with elements of 16 bits in the place of float32; x, y, …
//!            atoms; x' the value of x with elements of 16 bits; op an operator, whose row says
//!            when its calls are computed in 16 bits: always, follow or never; @g a private
//!            function that is only called, and does not reach itself.
//! Needs      A-normal form.
//! Effect     let %v = op(x, y, …); rest   =>   let %v' = op(x', y', …); rest
//!              always: for products and convolutions.
//!              follow: for operators that lose little, if the operands x, y, … that are no
//!                      constants have 16 bits already.
//!            let %v = …; … op(%v) …   =>   let %v = …; let %v' = astype(%v); … op(%v') …
//!              One cast follows the binding of %v, for all uses that need another type than %v
//!              has. A constant gets another type without a cast. The casts of parameters are at
//!              the beginning.
//!            if (c) { … %a } else { … %b }
//!              has 16 bits if both results have.
//!            (x, y, …)
//!              has the types of its fields. If all uses of the tuple need other types, its fields
//!              are cast before.
//!            reshape(k), and other views of a constant k,
//!              have the types that their uses need.
//!            @g(x, y, …) and def private @g(p, …) { B }
//!              p has 16 bits if all callers pass such values anyway, or if products and
//!              convolutions use it and nothing needs it in float32. The result has the type of B.
//! Policy     `anfora ops` lists it for each operator. Operators that sum up many elements, have
//!            results of a large range, or take only float32 in ONNX have the policy never, and so
//!            have operators without a row. Functions that are values keep their types.
//! Options    to               float16 (the default) or bfloat16.
//!            except_ops       Operators whose calls keep their types.
//!            except_bindings  Names of variables. The calls of operators that are bound to them
//!                             keep their types.
//!            keep_io          If it is true (the default), the inputs and outputs of external
//!                             functions keep their types.
//!            inputs           Names of parameters of external functions that get 16 bits all the
//!                             same, such as weights.
//! Range      A constant keeps float32 if its largest finite element is beyond the largest number
//!            of the type, or so small that its digits are lost. The call that uses it keeps its
//!            types too, and a remark names the call.
//! Stays      Values of float64 and of other types; functions with the attribute Composite or
//!            Codegen, and the signatures of the functions that these call; operands that determine
//!            extents; tuples of more than 64 tensors; values of variables and results of functions
//!            whose type is Any, or a tuple with Any, so that a `match_cast` finds the same type.
//! Not done   A cast is not moved into the only branch that needs it. A `match_cast` keeps its
//!            type.
//! Changes    Results, by the rounding to 16 bits. An infinite tolerance declares this, since a
//!            comparison may go the other way.
//! Cost       A walk of each function, two more if there are private functions, and one to rewrite
//!            it. Each constant is converted once, in pieces: one in a file is not loaded.
//!            Idempotent.
//!
//! before     def @f(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {
//!              let %p = matmul(%x, %w);
//!              let %r = nn.relu(%p);
//!              nn.softmax(%r)
//!            }
//! after      def @f(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {
//!              let %0 = astype(%x, dtype=float16);
//!              let %1 = astype(%w, dtype=float16);
//!              let %p = matmul(%0, %1);
//!              let %r = nn.relu(%p);
//!              let %2 = astype(%r, dtype=float32);
//!              nn.softmax(%2)
//!            }
//! ```

mod constants;
mod plan;
mod rewrite;
mod signatures;
mod types;

use std::rc::Rc;
use std::str::FromStr;

use anfora_ir::{
    Body, Context, DType, Diagnostic, Expr, Function, GlobalId, LiteralId, Module, NameId, OpId, did_you_mean,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::CallGraph;
use rustc_hash::{FxHashMap, FxHashSet};

use self::constants::LowConstants;
use self::plan::{ResultType, plan_function};
use self::rewrite::rewrite_function;
use self::signatures::{Argument, LowSignature, SeenArguments, select_signatures};
use self::types::LowTypes;
use crate::fuse_ops_by_pattern::{CODEGEN, COMPOSITE};

register_pass! {
    /// Computes products, convolutions and what follows them in float16 or bfloat16
    pub TO_MIXED_PRECISION = ModulePass("ToMixedPrecision", 0).needing(["anf"]).with_tolerance(f64::INFINITY);
    options {
        /// the element type of 16 bits
        to: LowPrecision ["float16", "bfloat16"] = "float16",
        /// operators whose calls keep their types
        except_ops: Vec<String> = &[],
        /// names of variables: the calls that are bound to them keep their types
        except_bindings: Vec<String> = &[],
        /// the inputs and outputs of external functions keep their types
        keep_io: bool = true,
        /// names of parameters of external functions that get 16 bits all the same
        inputs: Vec<String> = &[],
    }
    run {
        let options = PrecisionOptions { to, except_ops, except_bindings, keep_io, inputs };
        move |module, cx| {
            let done = to_mixed_precision(module, &options)?;
            cx.count("calls", done.calls);
            cx.count("casts", done.casts);
            done.remarks.into_iter().for_each(|remark| cx.remark(remark));
            Ok(())
        }
    }
}

/// A float type of 16 bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum LowPrecision {
    /// `float16`
    #[default]
    Float16,
    /// `bfloat16`
    BFloat16,
}

impl LowPrecision {
    fn dtype(self) -> DType {
        match self {
            LowPrecision::Float16 => DType::Float16,
            LowPrecision::BFloat16 => DType::BFloat16,
        }
    }
}

/// The error for a word that names no float type of 16 bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UnknownPrecision;

impl std::fmt::Display for UnknownPrecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there is no such float type of 16 bits")
    }
}

impl std::error::Error for UnknownPrecision {}

impl FromStr for LowPrecision {
    type Err = UnknownPrecision;

    fn from_str(word: &str) -> Result<LowPrecision, UnknownPrecision> {
        match word {
            "float16" => Ok(LowPrecision::Float16),
            "bfloat16" => Ok(LowPrecision::BFloat16),
            _ => Err(UnknownPrecision),
        }
    }
}

/// The options of [`to_mixed_precision`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrecisionOptions {
    /// The element type of 16 bits.
    pub to: LowPrecision,
    /// The names of operators whose calls keep their types.
    pub except_ops: Vec<String>,
    /// The names of variables: the calls of operators that are bound to them keep their types.
    pub except_bindings: Vec<String>,
    /// True if the inputs and outputs of external functions keep their types.
    pub keep_io: bool,
    /// The names of parameters of external functions that get 16 bits all the same.
    pub inputs: Vec<String>,
}

impl Default for PrecisionOptions {
    fn default() -> PrecisionOptions {
        PrecisionOptions {
            to: LowPrecision::default(),
            except_ops: Vec::new(),
            except_bindings: Vec::new(),
            keep_io: true,
            inputs: Vec::new(),
        }
    }
}

/// The result of [`to_mixed_precision`].
#[derive(Debug, Default)]
pub struct MixedPrecision {
    /// The number of calls of operators that are computed in 16 bits now.
    pub calls: u64,
    /// The number of casts.
    pub casts: u64,
    /// The constants that keep `float32`, and the external functions that keep their types against
    /// the options.
    pub remarks: Vec<Diagnostic>,
}

/// Computes products, convolutions and what follows them in a float type of 16 bits.
///
/// # Errors
/// If a function is not in A-normal form, the options name an operator, a variable or a parameter
/// that does not exist, or a constant cannot be read. The module may be half rewritten then.
pub fn to_mixed_precision(module: &mut Module, options: &PrecisionOptions) -> Result<MixedPrecision, PassError> {
    let mut precision = Precision::new(module, options)?;
    let graph = CallGraph::of(module);
    select_signatures(module, &mut precision, options, &graph)?;
    let (mut calls, mut casts) = (0, 0);
    for key in graph.callees_first() {
        let name = module.name(key).to_string();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        if !is_rewritten(cx, function) {
            continue;
        }
        precision.function = Some(name.clone());
        let (low, result) = precision.wanted_signature(function);
        let plan = plan_function(cx, function, &mut precision, &low, result)
            .map_err(|error| error.in_function(name.clone()))?;
        if !plan.is_empty() {
            calls += plan.low_call_count;
            casts += rewrite_function(cx, function, &mut precision, &plan).map_err(|error| error.in_function(name))?;
        }
        let Some(global) = function.global() else { continue };
        let mut signature = cx.globals.get(global).signature;
        if !plan.is_empty() {
            let ret = function.ret.unwrap_or_else(|| function.body.type_of(function.body.root()));
            let ty = function.signature(cx, ret);
            if signature.replace(ty) != Some(ty) {
                module.set_signature(global, ty);
            }
        }
        if let Some(ty) = signature {
            precision.set_type(global, ty);
        }
    }
    Ok(MixedPrecision { calls, casts, remarks: precision.remarks })
}

/// Returns true if the pass rewrites a function: it has a body, and no backend has been chosen for
/// it.
fn is_rewritten(cx: &Context, function: &Function) -> bool {
    let has = |attr| cx.find_attr(function.attrs, attr).is_some();
    function.is_definition() && !has(COMPOSITE) && !has(CODEGEN)
}

/// The state of a run over a module.
struct Precision {
    types: LowTypes,
    constants: LowConstants,
    except_ops: FxHashSet<OpId>,
    except_bindings: FxHashSet<NameId>,
    /// The functions whose parameters or results may change.
    signatures: FxHashMap<GlobalId, Rc<LowSignature>>,
    /// The arguments for the parameters of these functions, while they are collected.
    seen: Option<FxHashMap<(GlobalId, usize), SeenArguments>>,
    /// The function that is planned to be rewritten. Before, there are no remarks.
    function: Option<String>,
    remarks: Vec<Diagnostic>,
    /// The constants that remarks name.
    remarked: FxHashSet<LiteralId>,
}

impl Precision {
    fn new(module: &mut Module, options: &PrecisionOptions) -> Result<Precision, PassError> {
        let low = options.to.dtype();
        let except_ops = options.except_ops.iter().map(|name| module.cx.ops.resolve(name));
        let except_ops = except_ops.collect::<Result<_, _>>()?;
        Ok(Precision {
            types: LowTypes::new(low),
            constants: LowConstants::new(low),
            except_ops,
            except_bindings: bindings_of(module, &options.except_bindings)?,
            signatures: FxHashMap::default(),
            seen: None,
            function: None,
            remarks: Vec::new(),
            remarked: FxHashSet::default(),
        })
    }

    fn signature_of(&self, function: &Function) -> Option<Rc<LowSignature>> {
        self.signatures.get(&function.global()?).cloned()
    }

    /// Returns the parameters of a function that get 16 bits, and the type of its result.
    fn wanted_signature(&self, function: &Function) -> (Vec<bool>, ResultType) {
        match self.signature_of(function) {
            Some(signature) => (signature.low.clone(), signature.result),
            None => (Vec::new(), ResultType::Kept),
        }
    }

    /// Sets the type of a function that has been rewritten.
    fn set_type(&mut self, global: GlobalId, ty: anfora_ir::TypeId) {
        if let Some(signature) = self.signatures.get_mut(&global) {
            Rc::make_mut(signature).ty = ty;
        }
    }

    /// Records an argument for a parameter.
    fn pass(&mut self, signature: &LowSignature, parameter: usize, argument: Argument) {
        if let Some(seen) = &mut self.seen {
            seen.entry((signature.global, parameter)).or_default().add(argument);
        }
    }

    /// Records that a constant keeps `float32`.
    fn keep(&mut self, cx: &Context, op: OpId, literal: LiteralId, binding: Option<NameId>, largest: f32) {
        let Some(function) = &self.function else { return };
        if !self.remarked.insert(literal) {
            return;
        }
        let (name, low) = (&cx.ops.get(op).name, self.types.low);
        let message = format!(
            "a constant of `{name}` keeps float32: its largest element is {largest:?}, which does not fit {low}"
        );
        let remark = Diagnostic::remark(message).in_function(function.clone());
        self.remarks.push(match binding {
            Some(binding) => remark.on_binding(cx.names.get(binding)),
            None => remark,
        });
    }
}

/// Returns the names of bindings of a module.
///
/// # Errors
/// If nothing is bound to one of the names.
fn bindings_of(module: &Module, names: &[String]) -> Result<FxHashSet<NameId>, PassError> {
    let mut found = FxHashSet::default();
    if names.is_empty() {
        return Ok(found);
    }
    let wanted: FxHashSet<&str> = names.iter().map(|name| name.trim_start_matches('%')).collect();
    let bound = |body: &Body, visit: &mut dyn FnMut(NameId)| {
        for (_, expr) in body.exprs() {
            if let Expr::Let { var, .. } = expr {
                body.var_name(var).into_iter().for_each(&mut *visit);
            }
        }
    };
    let mut known: FxHashSet<NameId> = FxHashSet::default();
    let mut order: Vec<NameId> = Vec::new();
    for (_, function) in module.functions() {
        bound(&function.body, &mut |name| order.extend(known.insert(name).then_some(name)));
    }
    found.extend(order.iter().copied().filter(|&name| wanted.contains(module.cx.names.get(name))));
    let texts: FxHashSet<&str> = found.iter().map(|&name| module.cx.names.get(name)).collect();
    let mut missing = names.iter().map(|name| name.trim_start_matches('%')).filter(|name| !texts.contains(name));
    let Some(name) = missing.next() else { return Ok(found) };
    let error = PassError::new(format!("nothing is bound to `%{name}`"));
    Err(match did_you_mean(name, order.iter().map(|&name| module.cx.names.get(name))) {
        Some(near) => error.with_help(format!("did you mean `%{near}`?")),
        None => error,
    })
}

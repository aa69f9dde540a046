//! # DecomposeOps
//!
//! ```text
//! Notation   op a composite operator: one whose row writes its calls in other operators
//!            (`OpDef::decomposition`). All others are primitive. x, y, … atoms.
//! Needs      A-normal form.
//! Effect     let %v = op(x, y, …); rest   =>   let %0 = …; let %1 = …; let %v = …; rest
//!              where the bindings are the steps that the row writes for the call. Steps that call
//!              composite operators are replaced in turn. Tails likewise.
//! Options    which   Only these operators.
//!            to      `primitive`: calls are replaced until primitive operators are left.
//!            opset   Only operators that ONNX has in no version up to this one. The others stay,
//!                    also in the steps of those.
//!            Without options, all composite operators: only primitive ones are left. This is the
//!            property `primitive-operators`.
//! Operators  activations     nn.leaky_relu, prelu, thresholded_relu, elu, celu, selu, gelu, silu,
//!                            swiglu, hard_sigmoid, hard_swish, mish, softplus, softsign, shrink;
//!                            clip
//!            normalisations  nn.batch_norm, batch_norm_training, layer_norm, rms_norm,
//!                            instance_norm, group_norm, mean_variance_norm, lp_norm, lrn;
//!                            nn.softmax, log_softmax, hardmax; nn.dropout
//!            sequences       nn.attention, rotary_embedding, causal_conv1d
//!            losses          nn.nll_loss, softmax_cross_entropy
//!            reductions      sum_square, l1_norm, l2_norm, log_sum, log_sum_exp
//!            pools           nn.global_avg_pool, global_max_pool, global_lp_pool, of each rank;
//!                            nn.avg_pool, max_pool, lp_pool with a window that has all elements
//!            sums of many    add_n, mean_n, maximum_n, minimum_n
//!            matrices        nn.gemm, nn.flatten
//!            and the operators of embedders whose rows have a decomposition.
//! Types      A result whose type is less specific than that of the call is cast to the latter
//!            (`match_cast` with `proved=true`). Steps compute the extents that are not numbers.
//!            No step needs `allowzero`, which ONNX has from version 14 on.
//! Changes    Results, by rounding: each step rounds. Where a step overflows and the operator does
//!            not, results are infinite or NaN. 16-bit floats are added up in float32, as the
//!            operators do.
//!            An attention whose mask does not fit may be computed with a part of the mask.
//! Never      A call stays if its row cannot write it: a normalisation by channel, a loss or an
//!            attention of unknown rank; a group norm whose scale has an extent that may be that of
//!            the channels or the number of groups; an attention whose numbers of heads are not
//!            known to be equal, or not known at all; a pool whose window may move; an nn.lrn of
//!            more than five axes. Operators without a row, such as nodes of a file that are kept
//!            as they are, are primitive.
//! Not done   Recurrent networks, images and quantized operators have no decomposition: `OPS.md`
//!            gives the reasons.
//! Cost       One walk, and time linear in the steps. Idempotent.
//!
//! before     def @f(%x: Tensor[(4,), float32]) {    after   def @f(%x: Tensor[(4,), float32]) {
//!              let %a = nn.silu(%x);                          let %0 = sigmoid(%x);
//!              tanh(%a)                                       let %a = multiply(%x, %0);
//!            }                                                tanh(%a)
//!                                                           }
//! ```
//!
//! Functions with the attribute `Primitive=1` are rewritten too: an operator that FuseOps has moved
//! is as composite as before.

mod opsets;

use std::borrow::Cow;
use std::str::FromStr;

use anfora_ir::{Body, Context, Decomposition, Editor, ExprId, Function, OpId, TypeError};
use anfora_manager::{PassError, register_pass};
use anfora_visit::{Mutator, RewriteError, Site, Slot, bindings, mutate_function};
use rustc_hash::{FxHashMap, FxHashSet};

pub use opsets::onnx_version_with;

register_pass! {
    /// Writes composite operators in primitive ones, as their rows say; changes rounding
    pub DECOMPOSE_OPS = FunctionPass("DecomposeOps", 0)
        .needing(["anf"])
        .establishing(established(&which, opset).iter().copied())
        .with_tolerance(1e-4);
    options {
        /// the operators to decompose; all composite ones if empty
        which: Vec<String> = &[],
        /// the operators that are left
        to: DecompositionTarget ["primitive"] = "primitive",
        /// a version of ONNX, whose operators stay; 0 if they do not
        opset: u32 = 0,
    }
    run {
        let DecompositionTarget::Primitive = to;
        let selection = DecomposedOps { which: which.clone(), opset };
        move |edit, _, cx| {
            for (op, calls) in decompose_ops(edit.cx, edit.function, &selection)? {
                cx.count(counter(edit.cx, op), calls);
            }
            Ok(())
        }
    }
}

/// The operators that a decomposition ends in.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum DecompositionTarget {
    /// Operators whose rows write no calls in other operators.
    #[default]
    Primitive,
}

/// The error for a word that names no operators to end in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UnknownTarget;

impl std::fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there are no such operators")
    }
}

impl std::error::Error for UnknownTarget {}

impl FromStr for DecompositionTarget {
    type Err = UnknownTarget;

    fn from_str(word: &str) -> Result<DecompositionTarget, UnknownTarget> {
        match word {
            "primitive" => Ok(DecompositionTarget::Primitive),
            _ => Err(UnknownTarget),
        }
    }
}

/// Returns the name under which the replaced calls of an operator are counted.
fn counter(cx: &Context, op: OpId) -> &'static str {
    match cx.ops.get(op).name {
        Cow::Borrowed(name) => name,
        Cow::Owned(_) => "operators whose name was made at run time",
    }
}

/// Returns the properties that a run with these options establishes.
fn established(which: &[String], opset: u32) -> &'static [&'static str] {
    if which.is_empty() && opset == 0 { &["primitive-operators"] } else { &[] }
}

/// The operators to decompose.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DecomposedOps {
    /// The names of the operators; all composite operators if empty.
    pub which: Vec<String>,
    /// A version of the standard operators of ONNX: operators that it has stay. 0 if none stays for
    /// this reason.
    pub opset: u32,
}

impl DecomposedOps {
    /// Returns the ids of the operators to decompose; `None` if these are all composite ones.
    fn resolve(&self, cx: &mut Context) -> Result<Option<FxHashSet<OpId>>, PassError> {
        let mut ids = FxHashSet::default();
        for name in &self.which {
            let op = cx.ops.resolve(name)?;
            if cx.ops.is_opaque(op) || cx.ops.get(op).decomposition.is_none() {
                return Err(PassError::new(format!("`{name}` is primitive: its row has no decomposition")));
            }
            ids.insert(op);
        }
        Ok((!self.which.is_empty()).then_some(ids))
    }
}

/// Replaces calls of composite operators in a function by the steps that their rows write, and
/// returns the number of replaced calls of each operator, those in steps included.
///
/// # Errors
/// If the body is not in A-normal form, if there is no such operator, or if it is primitive. Also
/// if a row writes steps that do not fit.
pub fn decompose_ops(
    cx: &mut Context,
    function: &mut Function,
    which: &DecomposedOps,
) -> Result<Vec<(OpId, u64)>, PassError> {
    let selected = which.resolve(cx)?;
    let explains = cx.rewrites.explains(PASS);
    decompose(cx, function, explains, |cx, body, call| {
        let Some(call) = body.call_of(call) else { return false };
        let is_named = selected.as_ref().is_none_or(|selected| selected.contains(&call.op));
        let since = || onnx_version_with(&cx.ops.get(call.op).name);
        is_named && (which.opset == 0 || since().is_some_and(|since| since > which.opset))
    })
}

/// Replaces the calls of composite operators that a test selects by the steps that their rows
/// write, and returns the number of replaced calls of each operator. The test is asked for each
/// call of a composite operator, also for those in steps.
///
/// # Errors
/// If the body is not in A-normal form, or if a row writes steps that do not fit.
pub fn decompose_where(
    cx: &mut Context,
    function: &mut Function,
    selects: impl FnMut(&Context, &Body, ExprId) -> bool,
) -> Result<Vec<(OpId, u64)>, PassError> {
    decompose(cx, function, false, selects)
}

/// Replaces calls as [`decompose_where`] does, and records why calls stay if `explains` is true.
fn decompose(
    cx: &mut Context,
    function: &mut Function,
    explains: bool,
    selects: impl FnMut(&Context, &Body, ExprId) -> bool,
) -> Result<Vec<(OpId, u64)>, PassError> {
    let mut pass = OpDecomposer { selects, explains, depths: FxHashMap::default(), replaced: FxHashMap::default() };
    mutate_function(cx, function, &mut pass)?;
    let mut replaced: Vec<(OpId, u64)> = pass.replaced.into_iter().collect();
    replaced.sort_unstable_by_key(|(op, _)| op.index());
    Ok(replaced)
}

/// The name under which near misses are recorded.
const PASS: &str = "DecomposeOps";

/// The depth of steps of steps at which a row is taken to write an operator by way of itself.
const MOST_STEPS_DEEP: usize = 64;

struct OpDecomposer<S> {
    selects: S,
    /// True if anyone asks why calls stay.
    explains: bool,
    /// The calls of composite operators in steps, with the number of calls that they were written
    /// for: a step of a step has the depth 2.
    depths: FxHashMap<ExprId, usize>,
    /// The number of replaced calls of each operator.
    replaced: FxHashMap<OpId, u64>,
}

/// Returns the composite operator that an expression is a call of.
fn composite(cx: &Context, body: &Body, id: ExprId) -> Option<OpId> {
    body.call_of(id).map(|call| call.op).filter(|&op| cx.ops.get(op).decomposition.is_some())
}

impl<S> OpDecomposer<S> {
    /// Records the steps of a call that may be replaced in turn.
    fn note_steps(&mut self, editor: &Editor<'_>, op: OpId, block: ExprId, depth: usize) -> Result<(), RewriteError> {
        let body = &*editor.body;
        let values = bindings(body, block).map(|binding| binding.value).chain([body.tail(block)]);
        for value in values.filter(|&value| composite(editor.cx, body, value).is_some()) {
            if depth == MOST_STEPS_DEEP {
                let name = editor.cx.ops.get(op).name.clone();
                let error = TypeError::new("its decomposition does not end: it is a step of its own steps");
                return Err(RewriteError::Type(error.of_op(name)));
            }
            self.depths.insert(value, depth);
        }
        Ok(())
    }
}

impl<S: FnMut(&Context, &Body, ExprId) -> bool> Mutator for OpDecomposer<S> {
    type Error = RewriteError;
    const REASON: &'static str = "other operators compute it";
    const NODES: bool = false;

    #[inline]
    fn expand(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        let Some(op) = composite(site.editor.cx, site.editor.body, value) else { return Ok(None) };
        // The steps of a decomposition are not in the program that is asked about.
        let explains = self.explains && !self.depths.contains_key(&value);
        let nearly = |editor: &Editor<'_>, before: &str, after: &str| {
            if explains {
                editor.nearly(slot.at, PASS, |editor| format!("{before} `{}`{after}", editor.cx.ops.get(op).name));
            }
        };
        if !(self.selects)(site.editor.cx, site.editor.body, value) {
            nearly(&site.editor, "the option `which` or `opset` leaves out calls of", "");
            return Ok(None);
        }
        let found = Decomposition::of(site.editor.cx, site.editor.body, value).map_err(RewriteError::Type)?;
        let Some(decomposition) = found else {
            nearly(&site.editor, "the decomposition of", " cannot write this call");
            return Ok(None);
        };
        let block = decomposition.write(&mut site.editor).map_err(RewriteError::Type)?;
        let depth = self.depths.remove(&value).unwrap_or(0) + 1;
        self.note_steps(&site.editor, op, block, depth)?;
        *self.replaced.entry(op).or_default() += 1;
        Ok(Some(block))
    }
}

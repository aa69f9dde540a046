//! The parameters and results of functions whose callers are all known.
//!
//! Three sweeps over the functions select the types of parameters. Whatever they are, casts make
//! the program right; the sweeps avoid casts.
//!
//! 1. Callees first: each function is planned as if all its parameters had 16 bits. This shows the
//!    type of its result, and the parameters that products and convolutions use.
//! 2. Callers first: each call shows the types of its arguments. A parameter gets 16 bits if all
//!    callers have such values anyway, or if nothing in the function needs more.
//! 3. Callees first: each function is planned with these parameters and rewritten
//!    (`to_mixed_precision`).
//!
//! Functions that reach themselves keep their types.

use std::rc::Rc;

use anfora_ir::{
    Context, Diagnostic, Expr, Function, FunctionKey, GlobalId, Module, TypeId, Visibility, did_you_mean,
    signature_type,
};
use anfora_manager::PassError;
use anfora_visit::CallGraph;
use rustc_hash::{FxHashMap, FxHashSet};

use super::plan::{FunctionPlan, ResultType, plan_function};
use super::types::LowTypes;
use super::{Precision, PrecisionOptions, is_rewritten};
use crate::private_functions::only_called_among;

/// The new signature of a function.
#[derive(Clone, Debug)]
pub(super) struct LowSignature {
    pub(super) global: GlobalId,
    /// By parameter: true if it gets elements of 16 bits.
    pub(super) low: Vec<bool>,
    /// By parameter: true if nothing needs it in `float32`.
    fits: Vec<bool>,
    /// By parameter: true if a product or a convolution uses it, too.
    wanted: Vec<bool>,
    /// The type of the result.
    pub(super) result: ResultType,
    /// The type of the function.
    pub(super) ty: TypeId,
}

impl LowSignature {
    pub(super) fn is_low(&self, parameter: usize) -> bool {
        self.low.get(parameter).is_some_and(|is_low| *is_low)
    }

    pub(super) fn wants(&self, parameter: usize) -> bool {
        self.wanted.get(parameter).is_some_and(|is_wanted| *is_wanted)
    }
}

/// The precision of an argument.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Argument {
    /// It has 16 bits.
    Low,
    /// It has not.
    High,
    /// A constant that may have 16 bits.
    Either,
    /// A constant whose range does not fit.
    Beyond,
}

/// The arguments that callers pass for a parameter.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct SeenArguments {
    low: bool,
    high: bool,
    either: bool,
    beyond: bool,
}

impl SeenArguments {
    pub(super) fn add(&mut self, argument: Argument) {
        match argument {
            Argument::Low => self.low = true,
            Argument::High => self.high = true,
            Argument::Either => self.either = true,
            Argument::Beyond => self.beyond = true,
        }
    }

    /// Returns true if the parameter gets 16 bits. `fits` and `is_wanted` are as in
    /// [`LowSignature`].
    fn makes_low(self, fits: bool, is_wanted: bool) -> bool {
        !self.beyond && (is_wanted || !self.high && (self.low || self.either && fits))
    }
}

/// Selects the parameters and results that get 16 bits.
///
/// # Errors
/// If there is no input of a name in the options, or if a function is not in A-normal form.
pub(super) fn select_signatures(
    module: &mut Module,
    precision: &mut Precision,
    options: &PrecisionOptions,
    graph: &CallGraph,
) -> Result<(), PassError> {
    let kept_results = kept_results(module, precision);
    select_external(module, precision, options, graph, &kept_results)?;
    let is_private = |function: &Function| {
        let is_private = function.visibility == Visibility::Private && !function.is_external(&module.cx);
        is_private && is_rewritten(&module.cx, function)
    };
    let mut candidates = changeable(module, is_private)?;
    candidates.retain(|&key| !graph.is_recursive(key));
    if candidates.is_empty() {
        return Ok(());
    }
    for key in graph.callees_first().filter(|key| candidates.contains(key)) {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let params: Vec<TypeId> = function.body.params().iter().map(|param| function.body.ty(param.expr())).collect();
        let low: Vec<bool> = params.iter().map(|&ty| LowTypes::is_float32(&cx.types, ty)).collect();
        let Some(global) = function.global() else { continue };
        let result = if kept_results.contains(&global) { ResultType::Kept } else { ResultType::Either };
        let plan = plan_function(cx, function, precision, &low, result)?;
        let params = || function.body.params().iter().map(|param| param.expr());
        let fits: Vec<bool> = params().map(|param| plan.casts_of(param).is_empty()).collect();
        let wanted = params().zip(&fits).map(|(param, &fits)| fits && plan.wanted.contains(param)).collect();
        let ty = planned_signature(cx, function, precision, &plan);
        let signature = LowSignature { global, low, fits, wanted, result, ty };
        precision.signatures.insert(global, Rc::new(signature));
    }
    precision.seen = Some(FxHashMap::default());
    for key in graph.callees_first().rev() {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        if !is_rewritten(cx, function) {
            continue;
        }
        if candidates.contains(&key)
            && let Some(signature) = precision.signature_of(function)
        {
            let mut signature = LowSignature::clone(&signature);
            let seen = precision.seen.as_ref();
            for (i, is_low) in signature.low.iter_mut().enumerate() {
                let seen = seen.and_then(|seen| seen.get(&(signature.global, i))).copied().unwrap_or_default();
                *is_low &= seen.makes_low(signature.fits[i], signature.wanted[i]);
            }
            precision.signatures.insert(signature.global, Rc::new(signature));
        }
        let (low, result) = precision.wanted_signature(function);
        plan_function(cx, function, precision, &low, result)?;
    }
    precision.seen = None;
    Ok(())
}

/// Returns those of the chosen functions whose signatures may change: all their uses are calls in
/// functions that the pass rewrites.
///
/// # Errors
/// If a function that names one of them is not in A-normal form.
fn changeable(module: &Module, is_chosen: impl Fn(&Function) -> bool) -> Result<FxHashSet<FunctionKey>, PassError> {
    let mut found = only_called_among(module, is_chosen)?;
    for (_, function) in module.functions().filter(|(_, function)| !is_rewritten(&module.cx, function)) {
        for (_, global) in function.body.global_leaves() {
            found.remove(&global);
        }
    }
    Ok(found.into_values().collect())
}

/// Returns the functions whose results keep their types: the result of a call is bound to a
/// variable whose type does not show its elements.
fn kept_results(module: &mut Module, precision: &mut Precision) -> FxHashSet<GlobalId> {
    let mut kept = FxHashSet::default();
    let (functions, cx) = module.functions_and_tables();
    for (_, function) in functions.iter() {
        let body = &function.body;
        for (_, expr) in body.exprs() {
            let Expr::Let { var, value, .. } = expr else { continue };
            let Expr::Call { .. } = body.expr(value) else { continue };
            if let Some(Expr::Global(global)) = body.inputs(value).first().map(|&callee| body.expr(callee))
                && precision.types.is_hidden(&mut cx.types, body.ty(var.expr()), body.ty(value))
            {
                kept.insert(global);
            }
        }
    }
    kept
}

/// Selects the inputs and outputs of external functions that get 16 bits, as the options say.
fn select_external(
    module: &mut Module,
    precision: &mut Precision,
    options: &PrecisionOptions,
    graph: &CallGraph,
    kept_results: &FxHashSet<GlobalId>,
) -> Result<(), PassError> {
    if options.keep_io && options.inputs.is_empty() {
        return Ok(());
    }
    let is_external = |function: &Function| function.is_external(&module.cx) && is_rewritten(&module.cx, function);
    let changeable = changeable(module, is_external)?;
    let external: Vec<FunctionKey> = module.functions().filter(|(_, f)| is_external(f)).map(|(key, _)| key).collect();
    let inputs: FxHashSet<&str> = options.inputs.iter().map(|name| name.trim_start_matches('%')).collect();
    let mut known: FxHashSet<String> = FxHashSet::default();
    let mut names: Vec<String> = Vec::new();
    for key in external {
        let name = module.name(key).to_string();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let (body, types) = (&function.body, &mut precision.types);
        let mut low = Vec::new();
        for &param in body.params() {
            let name = body.var_name(param).map_or("", |name| cx.names.get(name));
            if known.insert(name.to_string()) {
                names.push(name.to_string());
            }
            let (is_chosen, ty) = (!options.keep_io || inputs.contains(name), body.ty(param.expr()));
            let is_lowered = types.lower(&mut cx.types, ty) != ty && !types.has_any(&mut cx.types, ty);
            low.push(is_chosen && is_lowered);
        }
        let is_kept = options.keep_io || function.global().is_some_and(|global| kept_results.contains(&global));
        let result = if is_kept { ResultType::Kept } else { ResultType::Low };
        if result == ResultType::Kept && !low.contains(&true) {
            continue;
        }
        if !changeable.contains(&key) || graph.is_recursive(key) {
            let message = "its inputs and outputs keep their types: it is used as a value, calls itself, or is \
                           called by a function for which a backend has been chosen";
            precision.remarks.push(Diagnostic::remark(message).in_function(name));
            continue;
        }
        let Some(global) = function.global() else { continue };
        let before = function.ret.unwrap_or_else(|| body.type_of(body.root()));
        let params: Vec<TypeId> = body.params().iter().map(|param| body.ty(param.expr())).collect();
        let mut new = |ty, is_low| if is_low { types.lower(&mut cx.types, ty) } else { ty };
        let params: Vec<TypeId> = params.into_iter().zip(&low).map(|(ty, &is_low)| new(ty, is_low)).collect();
        let ret = new(before, result == ResultType::Low);
        let ty = signature_type(cx, &params, ret);
        let none = vec![false; low.len()];
        let signature = LowSignature { global, low, fits: none.clone(), wanted: none, result, ty };
        precision.signatures.insert(global, Rc::new(signature));
    }
    for input in options.inputs.iter().map(|input| input.trim_start_matches('%')) {
        if !known.contains(input) {
            let error = PassError::new(format!("no external function has a parameter `%{input}`"));
            let near = did_you_mean(input, names.iter().map(String::as_str));
            return Err(error.with_optional_help(near.map(|near| format!("did you mean `%{near}`?"))));
        }
    }
    Ok(())
}

/// Returns the result type that a function states after its plan; `None` if it states none.
pub(super) fn planned_result(
    cx: &mut Context,
    function: &Function,
    precision: &mut Precision,
    plan: &FunctionPlan,
) -> Option<TypeId> {
    let body = &function.body;
    let before = body.type_of(body.root());
    match function.ret {
        Some(stated) if plan.result != before => Some(precision.types.lower(&mut cx.types, stated)),
        stated => stated,
    }
}

/// Returns the signature that a function has after its plan.
fn planned_signature(cx: &mut Context, function: &Function, precision: &mut Precision, plan: &FunctionPlan) -> TypeId {
    let ret = planned_result(cx, function, precision, plan).unwrap_or(plan.result);
    let params: Vec<TypeId> = function.body.params().iter().map(|param| plan.new_type(param.expr())).collect();
    signature_type(cx, &params, ret)
}

//! # LiftTransformParams
//!
//! ```text
//! Notation   @f a function with the attribute num_input=k: its parameters from number k on are
//!            weights %w. E(%w) bindings that use weights alone, directly or not, and constants.
//! Needs      A-normal form of the functions with the attribute.
//! Effect     def @f(%x, %w, …) { …; let %v = E(%w); …; rest }
//!              =>   def @f(%x, %v, …) { …; rest }
//!                   def @f_transform_params(%params) { let %w = %params.0; let %v = E(%w); (%v,) }
//!              The bindings E in the block of @f itself, outside of branches and of a fn, move.
//!              Those that the rest uses become parameters; so do weights that it uses as they are,
//!              before the others. @f(%x, %w) = @f(%x, @f_transform_params((%w,)).0).
//!            A function without weights, or without bindings that move, gets a function that
//!            returns its weights, so that all functions with the attribute are called in the same
//!            way.
//!            Of equal bindings, one moves.
//! Shared     With `shared_transform`, one function @transform_params prepares the weights of all
//!            functions, which must have equally many, of the same types. It has the bindings that
//!            all functions have, and a function gets the results of all as parameters, in the
//!            order of the first function.
//! Composed   A function @f_transform_params that the module has already, and does not use, must
//!            return the weights. E is appended to it.
//! Symbols    A weight that alone binds a symbol which @f names stays a parameter. A binding whose
//!            types or attributes name a symbol that no weight binds stays where it is. So do
//!            those that use a weight whose type names such a symbol; its extent is unknown (?) in
//!            the new function.
//! Stays      Calls that can be observed, and calls of operators that are not known. Values with
//!            functions in them: calls of a parameter are not known to be pure. Functions that are
//!            used in the module, since their signature changes: a remark names them. Functions
//!            with the name of one that prepares weights: @transform_params, and
//!            @g_transform_params where the module has @g.
//! Not done   What uses no weight is copied if it is needed, and stays in @f too;
//!            DeadCodeElimination removes it.
//! Cost       A few walks of each function with the attribute, and a look at the others.
//!            Idempotent.
//!
//! before     def @f(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], num_input=1) {
//!              let %t = permute_dims(%w, axes=[1, 0]);
//!              matmul(%x, %t)
//!            }
//! after      def @f(%x: Tensor[(2, 3), float32], %t: Tensor[(3, 4), float32], num_input=1) {
//!              matmul(%x, %t)
//!            }
//!            def @f_transform_params(%params: (Tensor[(4, 3), float32],)) {
//!              let %w = %params.0;
//!              let %t = permute_dims(%w, axes=[1, 0]);
//!              (%t,)
//!            }
//! ```

mod movable;
mod transform;

use anfora_ir::{
    Attr, Body, Context, Diagnostic, Editor, ExprId, Function, FunctionKey, GlobalId, IdSet, Module, NewParameter,
    Purity, Severity, SideTable, SignatureChange, TypeError, VarId, change_signatures, did_you_mean,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::{Binding, Mutator, RewriteError, Site, Slot, Verdict, link_counts, mutate_function};
use rustc_hash::FxHashSet;

use self::movable::LiftedValues;
use self::transform::{Transform, add_transforms};
use crate::parameter_symbols::{only_binders, symbols_named_by};
use crate::private_functions::named_by_attrs;

/// The attribute of a function with the number of its parameters that are no weights; these come
/// first.
pub const NUM_INPUT: &str = "num_input";

/// The name of the function that prepares the weights of several functions, and the end of the name
/// of a function that prepares those of one.
const TRANSFORM: &str = "transform_params";

register_pass! {
    /// Moves computations on weights into functions that run once
    pub LIFT_TRANSFORM_PARAMS = ModulePass("LiftTransformParams", 1).needing(["anf"]).breaking(["global-symbols"]);
    options {
        /// the functions whose weights are prepared; all with the attribute `num_input` if empty
        functions: Vec<String> = &[],
        /// one function, `transform_params`, prepares the weights of all of them
        shared_transform: bool = false,
    }
    run {
        let options = LiftOptions { functions, shared_transform };
        move |module, cx| {
            let purity = cx.analyses().of_module(module, Purity::of_module);
            let lifted = lift_transform_params(module, &purity, &options)?;
            cx.count("lifted", lifted.bindings as u64);
            lifted.remarks.into_iter().for_each(|remark| cx.remark(remark));
            Ok(())
        }
    }
}

/// The functions whose weights [`lift_transform_params`] prepares.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LiftOptions {
    /// The names of the functions. If it is empty, all functions with the attribute `num_input`.
    pub functions: Vec<String>,
    /// True if one function, `transform_params`, prepares the weights of all of them.
    pub shared_transform: bool,
}

/// The result of [`lift_transform_params`].
#[derive(Debug, Default)]
pub struct LiftedParams {
    /// The number of bindings that moved.
    pub bindings: usize,
    /// The functions that stay, with the reasons.
    pub remarks: Vec<Diagnostic>,
}

/// Moves the bindings of functions with the attribute `num_input` that use weights alone into
/// functions of their own, whose results replace the weights.
///
/// # Errors
/// If the attribute is no number of parameters, a function with the attribute is not in A-normal
/// form, a function of the options does not exist or does not have the attribute, the weights of
/// functions that share a function differ, or a function that prepares weights already does not
/// return them.
pub fn lift_transform_params(
    module: &mut Module,
    purity: &Purity,
    options: &LiftOptions,
) -> Result<LiftedParams, PassError> {
    let mut result = LiftedParams::default();
    let mut groups = groups_with_weights(module, options, &mut result.remarks)?;
    for group in &mut groups {
        group.find(module, purity)?;
    }
    // A function that prepares weights already stays if there is nothing to append.
    groups.retain(|group| group.existing.is_none() || group.values.parameters().next().is_some());
    for group in &mut groups {
        result.bindings += group.moving().count();
        group.make_transform(module);
    }
    // Replace the bindings by parameters.
    let mut appended = Vec::new();
    for group in &groups {
        appended.extend(group.functions.iter().map(|function| (function.key, group.appended(module, function))));
    }
    let mut params = change_signatures(module, appended)?.into_iter();
    for group in &mut groups {
        group.replace_bindings(module, &mut params)?;
    }
    // Remove the weights that are not needed any more.
    let mut kept = Vec::new();
    for group in &groups {
        let change =
            |function: &WeightedFunction| SignatureChange::new().no_parameters().keep_all(group.kept(function));
        kept.extend(group.functions.iter().map(|function| (function.key, change(function))));
    }
    change_signatures(module, kept)?;
    add_transforms(module, groups)?;
    Ok(result)
}

/// Functions whose weights one function prepares.
struct WeightGroup {
    functions: Vec<WeightedFunction>,
    /// The number of weights of each.
    weights: usize,
    /// The name of the function that prepares them, and the function if there is one already.
    transform_name: String,
    existing: Option<FunctionKey>,
    values: LiftedValues,
    transform: Option<Transform>,
    /// By weight: true if it stays a parameter.
    is_needed: Vec<bool>,
}

/// A function with weights.
struct WeightedFunction {
    key: FunctionKey,
    name: String,
    /// The number of parameters that are no weights.
    inputs: usize,
    /// The bindings that can be computed from weights and constants alone, in order.
    moved: Vec<MovedBinding>,
}

/// A binding that can be computed from weights alone.
struct MovedBinding {
    binding: Binding,
    /// The index of its value in the [`LiftedValues`] of the group.
    value: u32,
}

// ---- Finding ----

/// Returns the functions whose weights are prepared, in the order of the module.
fn groups_with_weights(
    module: &Module,
    options: &LiftOptions,
    remarks: &mut Vec<Diagnostic>,
) -> Result<Vec<WeightGroup>, PassError> {
    let chosen = chosen_functions(module, &options.functions)?;
    let mut groups: Vec<WeightGroup> = Vec::new();
    let mut used: Option<IdSet<GlobalId>> = None;
    for &key in module.order() {
        let Some(function) = module.get(key).filter(|f| f.is_definition()) else { continue };
        // Functions with weights state the number of their inputs.
        let (name, cx) = (module.name(key), &module.cx);
        let Some(attr) = cx.find_attr(function.attrs, NUM_INPUT) else { continue };
        if chosen.as_ref().is_some_and(|chosen| !chosen.contains(&key)) {
            continue;
        }
        let mut keeps = |why: String| {
            let message = format!("it keeps its weights: {why}");
            remarks.push(Diagnostic::new(Severity::Remark, message).in_function(name));
        };
        if is_transform(module, name) {
            if chosen.is_some() {
                keeps("it has the name of a function that prepares weights".to_string());
            }
            continue;
        }
        let params = function.body.params().len();
        let inputs = match *cx.attrs.get(attr) {
            Attr::Int(n) => usize::try_from(n).ok().filter(|&n| n <= params),
            _ => None,
        };
        let Some(inputs) = inputs else {
            let error = PassError::new(format!("`{NUM_INPUT}` is not a number of its {params} parameters"));
            return Err(error.in_function(name));
        };
        // Its signature changes, and so does the function that prepares its weights, if it exists.
        let used = used.get_or_insert_with(|| used_functions(module));
        if function.global().is_some_and(|global| used.contains(global)) {
            keeps("the module uses it, and its signature would change".to_string());
            continue;
        }
        let transform_name = match options.shared_transform {
            true => TRANSFORM.to_string(),
            false => format!("{name}_{TRANSFORM}"),
        };
        let existing = module.find(&transform_name);
        let may_change = |key: FunctionKey| {
            let is_free = |f: &Function| f.is_definition() && f.global().is_some_and(|g| !used.contains(g));
            module.get(key).is_some_and(is_free)
        };
        if existing.is_some_and(|key| !may_change(key)) {
            keeps(format!("the module uses `@{transform_name}`, or it has no body"));
            continue;
        }
        // It joins the group of the shared function, or begins a group.
        let (name, weights) = (name.to_string(), params - inputs);
        let function = WeightedFunction { key, name, inputs, moved: Vec::new() };
        match groups.last_mut().filter(|_| options.shared_transform) {
            Some(group) => group.functions.push(function),
            None => groups.push(WeightGroup {
                functions: vec![function],
                weights,
                transform_name,
                existing,
                values: LiftedValues::default(),
                transform: None,
                is_needed: vec![false; weights],
            }),
        }
    }
    Ok(groups)
}

/// Returns true if a function has the name of one that prepares weights.
fn is_transform(module: &Module, name: &str) -> bool {
    let of = name.strip_suffix(TRANSFORM);
    of.is_some_and(|of| of.is_empty() || of.strip_suffix('_').is_some_and(|of| module.find(of).is_some()))
}

/// Returns the functions of a list of names; `None` if it is empty.
fn chosen_functions(module: &Module, names: &[String]) -> Result<Option<FxHashSet<FunctionKey>>, PassError> {
    if names.is_empty() {
        return Ok(None);
    }
    let mut chosen = FxHashSet::default();
    for name in names {
        let name = name.trim_start_matches('@');
        let Some(key) = module.find(name) else {
            let error = PassError::new(format!("there is no function `@{name}`"));
            let known = module.order().iter().map(|&key| module.name(key));
            return Err(match did_you_mean(name, known) {
                Some(near) => error.with_help(format!("did you mean `@{near}`?")),
                None => error,
            });
        };
        if module.get(key).is_none_or(|f| module.cx.find_attr(f.attrs, NUM_INPUT).is_none()) {
            let error = PassError::new(format!("it does not have the attribute `{NUM_INPUT}`"));
            let help = format!("state the number of its parameters that are no weights: `{NUM_INPUT}=1`");
            return Err(error.in_function(name).with_help(help));
        }
        chosen.insert(key);
    }
    Ok(Some(chosen))
}

/// Returns the functions that the module calls, or uses as values.
fn used_functions(module: &Module) -> IdSet<GlobalId> {
    let mut used = named_by_attrs(module);
    for (_, function) in module.functions() {
        for (_, global) in function.body.global_leaves() {
            used.insert(global);
        }
    }
    used
}

// ---- Editing ----

/// The fate of a variable whose binding can be computed from weights.
#[derive(Copy, Clone)]
enum Moving {
    /// The binding stays.
    Stays,
    /// The binding goes, and nothing else uses the variable.
    Goes,
    /// A parameter replaces the variable.
    Replaced(ExprId),
}

impl WeightGroup {
    /// Returns the bindings that move, of all functions.
    fn moving(&self) -> impl Iterator<Item = &MovedBinding> {
        let moved = self.functions.iter().flat_map(|function| &function.moved);
        moved.filter(|moved| self.values.get(moved.value).uses_weights)
    }

    /// Returns the change that appends a parameter for each value that becomes one.
    fn appended(&self, module: &Module, function: &WeightedFunction) -> SignatureChange<'static> {
        let Some(source) = module.get(function.key) else { return SignatureChange::new() };
        let body = &source.body;
        // The first variable of each value.
        let mut vars: Vec<Option<VarId>> = vec![None; self.values.len()];
        for moved in &function.moved {
            vars[moved.value as usize].get_or_insert(moved.binding.var);
        }
        let mut change = SignatureChange::new().keep_all(0..body.params().len());
        for var in self.values.parameters().filter_map(|value| vars[value as usize]) {
            let name = body.var_name(var).map_or("", |name| module.cx.names.get(name));
            let no_calls = |_: &mut Editor<'_>, _| Err(TypeError::new("the function is called"));
            change = change.append(NewParameter::new(name, body.ty(var.expr()), no_calls));
        }
        change
    }

    /// Puts parameters in the place of the bindings that move, and notes the weights that the
    /// functions still need. `params` yields the parameters of each function.
    fn replace_bindings(
        &mut self,
        module: &mut Module,
        params: &mut impl Iterator<Item = Vec<VarId>>,
    ) -> Result<(), PassError> {
        for (function, params) in self.functions.iter().zip(params) {
            let Some((source, cx)) = module.get_mut(function.key) else { continue };
            let mut moving: Vec<Moving> = (0..self.values.len() as u32)
                .map(|value| if self.values.get(value).uses_weights { Moving::Goes } else { Moving::Stays })
                .collect();
            for (value, param) in self.values.parameters().zip(&params[function.inputs + self.weights..]) {
                moving[value as usize] = Moving::Replaced(param.expr());
            }
            let mut rewrite = MoveAway { vars: source.body.side_table(Moving::Stays) };
            for moved in &function.moved {
                rewrite.vars.set(moved.binding.var.expr(), moving[moved.value as usize]);
            }
            mutate_function(cx, source, &mut rewrite)?;
            let needed = needed_parameters(cx, source, function.inputs..function.inputs + self.weights);
            for (is_needed, in_function) in self.is_needed.iter_mut().zip(&needed[function.inputs..]) {
                *is_needed |= in_function;
            }
        }
        Ok(())
    }

    /// Returns the positions of the parameters of a function that stay: those that are no weights,
    /// the weights that a function needs, and the new ones.
    fn kept(&self, function: &WeightedFunction) -> Vec<usize> {
        let weights = function.inputs..function.inputs + self.weights;
        let new = weights.end..weights.end + self.values.parameters().count();
        let needed = weights.clone().filter(|&i| self.is_needed[i - weights.start]);
        (0..function.inputs).chain(needed).chain(new).collect()
    }
}

/// Returns for each parameter true if it stays in this function.
fn needed_parameters(cx: &Context, function: &Function, weights: std::ops::Range<usize>) -> Vec<bool> {
    let body = &function.body;
    let links = link_counts(body);
    let params = body.params().iter().enumerate();
    let mut is_needed: Vec<bool> = params.map(|(i, param)| !weights.contains(&i) || links[param.expr()] > 0).collect();
    for i in only_binders(cx, body, &is_needed, || symbols_named_by(cx, function)) {
        is_needed[i] = true;
    }
    is_needed
}

/// Removes bindings, and replaces their variables by parameters.
struct MoveAway {
    vars: SideTable<ExprId, Moving>,
}

impl Mutator for MoveAway {
    type Error = RewriteError;
    const NODES: bool = false;
    const SEPARABLE: bool = false;

    fn rewrite_value(&mut self, _: &mut Site<'_>, slot: Slot, _: ExprId) -> Result<Verdict, RewriteError> {
        Ok(match slot.var.map_or(Moving::Stays, |var| self.vars[var.expr()]) {
            Moving::Stays => Verdict::Keep,
            Moving::Goes => Verdict::Drop,
            Moving::Replaced(param) => Verdict::Var(param),
        })
    }
}

/// Returns the expressions that the value of a binding uses: its operands, or itself.
fn inputs_of<'a>(body: &'a Body, value: &'a ExprId) -> &'a [ExprId] {
    if body.expr(*value).is_atom() { std::slice::from_ref(value) } else { body.inputs(*value) }
}

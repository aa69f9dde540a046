//! # Gradient
//!
//! ```text
//! Notation   @f the function that is named, %x its parameters and %y its result, a float scalar.
//!            x' the adjoint of a value: the derivative of %y by each element of it. @g a function
//!            that @f calls, op an operator. F bindings of @f, B bindings of adjoints.
//! Needs      A-normal form of @f and of the functions that it calls.
//! Effect     def @f(%x, …) { F; %y }
//!              =>   def @f(%x, …) { F; %y }
//!                   def @f_adjoint(%x, …) { F; y' = 1; B; (%y, (x', …)) }
//!            B goes through F from the last binding to the first. A value that is used several
//!            times has the sum of the adjoints of its uses.
//!            let %v = op(%a, …)     the adjoints of the operands, as the row of op writes them
//!                                   (`OpDef::adjoint`). A composite operator without such a rule
//!                                   is replaced by its steps first, in @f_adjoint.
//!            tuples, projections    the adjoints of the fields
//!            let %v = @g(%a, …)     =>   let %p = @g_pullback(%a, …);
//!                                        let %v = %p.0; let %back = %p.1
//!                                   and in B   let %d = %back(v'); a' = %d.0, …
//!            let %v = if (%c) { T } else { E }
//!                                   =>   let %p = if (%c) { F(T); (%t, fn (%d) { B(T) }) }
//!                                                 else { F(E); (%e, fn (%d) { B(E) }) };
//!                                        let %v = %p.0; let %back = %p.1
//!                                   where the fn returns the adjoints of the variables that the
//!                                   branches use
//!            def @g(%a, …) { F; %r }   gives   def private @g_pullback(%a, …) {
//!                                                F; (%r, fn (%d) { r' = %d; B; (a', …) }) }
//!            All calls of a function, also those in itself, call one pullback. Its fn returns the
//!            adjoints of the parameters by which at least one of the calls differentiates it.
//! Options    function        @f. Without it nothing is done.
//!            require_grads   The parameters of @f, or variables that its block binds, whose
//!                            adjoints are wanted, in this order. All parameters if it is empty.
//!            target_index    Which field of the result is %y, if @f returns a tuple.
//!            checkpoints=n   F of @f and of each @g is divided into n segments, F1; … Fn. B goes
//!                            through Fn, computes F(n-1) again and goes through that, and so on.
//!                            Only the values that a segment needs from before it are kept until
//!                            then: for a chain of m values, n + m/n instead of m. Operators
//!                            without effects are computed again; the results of calls and Ifs are
//!                            kept. EliminateCommonSubexpr merges both computations, so it comes
//!                            before.
//! Types      An adjoint has the type of its value. That of a tuple is a tuple, with () for fields
//!            without floats. The sum over what broadcasting has repeated is taken, also along
//!            extents that are symbols or not known. Values on which %y does not depend have zeros.
//!            Adjoints of a large tuple type are added by a function, @add_adjoints, and its zeros
//!            are the result of a function, @zero_adjoints, since a type whose fields are of the
//!            same type may have 2^n tensors. A block has the zeros of a type once, unless they
//!            depend on extents that are not known.
//! Refuses    A result that is no float scalar. A wanted adjoint of a value with integers or bools.
//!            On the way from a wanted value to %y: an operator without a rule and without a
//!            decomposition, or whose rule cannot write the call (its rank is not known); a call of
//!            a function that is not known, that a parameter or an If gives, or that has no body; a
//!            fn that is called, which LambdaLifting makes a function first; a call of an operator
//!            on a value of the type Any, of floats with 8 or 4 bits, or of complex numbers.
//! Effects    Observable calls of @f stay in F, once and in order. B has none of its own, but calls
//!            of %back count as observable, as all calls of functions that are not known do.
//! Never      @f itself does not change. If the module has @f_adjoint already, nothing is done.
//!            A later run for another function makes pullbacks of its own.
//! Not done   F has no dataflow regions in the new functions; ConvertToDataflow makes them.
//!            Adjoints that are no longer needed stay until DeadCodeElimination.
//! Cost       A few walks of each function, and time linear in the steps that the rows write and in
//!            the lists of variables that branches use. Idempotent.
//!
//! before     def @f(%x: Tensor[(3,), float32]) {
//!              let %a = sin(%x);
//!              sum(%a)
//!            }
//! after      def @f(%x: Tensor[(3,), float32]) {
//!              let %a = sin(%x);
//!              sum(%a)
//!            }
//!            def @f_adjoint(%x: Tensor[(3,), float32]) {
//!              let %a = sin(%x);
//!              let %0 = sum(%a);
//!              let %a_adjoint = broadcast_to(1f, dense<Tensor[(1,), int64]>[3]);
//!              let %1 = cos(%x);
//!              let %x_adjoint = multiply(%a_adjoint, %1);
//!              let %2 = (%x_adjoint,);
//!              (%0, %2)
//!            }
//! ```

mod adjoints;
mod backward;
mod branches;
mod flow;
mod forward;
mod pullbacks;
mod segments;
mod tangents;
mod tuple_functions;

use anfora_ir::{
    Body, Context, Diagnostic, Editor, Expr, ExprId, Function, FunctionKey, Functions, GLOBAL_SYMBOL, Module,
    PRIMITIVE, Transplant, Type, TypeId, VarFlags, Visibility, did_you_mean,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::{Binding, Link, chain, insert_before, tail_link};
use rustc_hash::{FxHashMap, FxHashSet};

use self::backward::Differentiator;
use self::flow::Flow;
use self::pullbacks::Pullbacks;
use crate::bind_params::find_function;
use crate::{decompose_where, to_non_dataflow};

/// The end of the names of functions that compute derivatives.
const ADJOINT: &str = "adjoint";

register_pass! {
    /// Adds a function that computes the derivatives of another one
    pub GRADIENT = ModulePass("Gradient", 1).needing(["anf"]).breaking(["no-nested-functions", "global-symbols"]);
    options {
        /// the function that is differentiated; nothing is done if it is empty
        function: String = "",
        /// the parameters or variables whose derivatives are wanted; all parameters if empty
        require_grads: Vec<String> = &[],
        /// which field of the result is differentiated, if it is a tuple
        target_index: u32 = 0,
        /// the segments of a function whose values are computed again; 0 or 1 keeps all values
        checkpoints: u32 = 0,
    }
    run {
        let options = GradientOptions {
            function: function.trim().trim_start_matches('@').to_string(),
            require_grads: require_grads.iter().map(|name| name.trim_start_matches('%').to_string()).collect(),
            target_index: target_index as usize,
            checkpoints: checkpoints as usize,
        };
        if options.function.is_empty() && !options.require_grads.is_empty() {
            return Err(PassError::new("`require_grads` is given, but not `function`"));
        }
        move |module, cx| {
            if options.function.is_empty() {
                return Ok(());
            }
            match gradient(module, &options)? {
                0 => {
                    let message = format!("the module has `@{}_{ADJOINT}` already", options.function);
                    cx.remark(Diagnostic::remark(message).in_function(options.function.clone()));
                }
                added => cx.count("functions", added as u64),
            }
            Ok(())
        }
    }
}

/// The derivatives that [`gradient`] adds to a module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GradientOptions {
    /// The name of the function that is differentiated.
    pub function: String,
    /// The names of the parameters, or of variables that the block of the function binds, by which
    /// it is differentiated. If it is empty, all parameters.
    pub require_grads: Vec<String>,
    /// The field of the result that is differentiated, if the result is a tuple; otherwise 0.
    pub target_index: usize,
    /// The number of segments of a function. The last one keeps its values. Of another one, the
    /// values are computed again which operators compute, from those that it needs from before it.
    /// If it is 0 or 1, all values are kept.
    pub checkpoints: usize,
}

/// Adds the function `<f>_adjoint`, which returns the result of a function and its derivatives, and
/// the functions that it needs. Returns the number of added functions: 0 if the module has that
/// function already.
///
/// # Errors
/// If there is no such function or variable, the result is no float scalar, a value whose
/// derivative is wanted has other elements than floats, a function that matters is not in A-normal
/// form, or the derivative of a call is not known. The module has not been changed then.
pub fn gradient(module: &mut Module, options: &GradientOptions) -> Result<usize, PassError> {
    let name = options.function.as_str();
    let (key, _) = find_function(module, name)?;
    let adjoint_name = format!("{name}_{ADJOINT}");
    if module.find(&adjoint_name).is_some() {
        return Ok(0);
    }
    let mut pullbacks = Pullbacks::new(module, options.checkpoints);
    let (functions, cx) = module.functions_and_tables();
    let adjoint = adjoint_of(functions, cx, key, options, &mut pullbacks).map_err(|error| in_function(error, name))?;
    while let Some(key) = pullbacks.next() {
        let Some(function) = functions.get(key) else { continue };
        let name = function.global().map_or("", |global| cx.global_name(global)).to_string();
        pullbacks.make(functions, cx, key).map_err(|error| in_function(error, &name))?;
    }
    // Each new function follows the one that it comes from.
    let mut added = vec![(key, module.add_named(&adjoint_name, adjoint).expect("the name was not taken"))];
    added.extend(pullbacks.add_to(module, key));
    let count = added.len();
    let new: FxHashSet<FunctionKey> = added.iter().map(|&(_, key)| key).collect();
    let mut order = Vec::with_capacity(module.order().len());
    let mut after: FxHashMap<FunctionKey, Vec<FunctionKey>> = FxHashMap::default();
    for (from, key) in added {
        after.entry(from).or_default().push(key);
    }
    for key in module.order().iter().filter(|key| !new.contains(key)) {
        order.push(*key);
        order.extend(after.remove(key).unwrap_or_default());
    }
    module.set_order(order);
    Ok(count)
}

/// Returns an error with the name of a function, unless it has one.
fn in_function(error: PassError, name: &str) -> PassError {
    if error.function().is_some() { error } else { error.in_function(name) }
}

/// Returns the function that computes the result of a function and its derivatives.
fn adjoint_of(
    functions: Functions<'_>,
    cx: &mut Context,
    key: FunctionKey,
    options: &GradientOptions,
    pullbacks: &mut Pullbacks,
) -> Result<Function, PassError> {
    let (mut function, _) = prepared_copy(functions, cx, key)?;
    function.ret = None;
    function.visibility = Visibility::Public;
    let wanted = wanted_values(cx, &function.body, &options.require_grads)?;
    let target = target_of(cx, &function.body, options.target_index)?;
    let mut flow = Flow::of(cx, &function.body, target);
    let sources: Vec<ExprId> = wanted.iter().map(|value| value.var).collect();
    pullbacks.prepare(functions, cx, flow.activate(&sources))?;
    let mut editor = Editor::new(cx, &mut function.body);
    Differentiator::new(&mut editor, functions, pullbacks, &wanted, target, flow).write_adjoint(&wanted)?;
    Ok(function)
}

/// Returns a copy of a function, without dataflow regions, in which the tails of blocks are atoms,
/// and in which composite operators without a rule of their own are replaced by their steps. Also
/// returns the type of its result.
fn prepared_copy(
    functions: Functions<'_>,
    cx: &mut Context,
    key: FunctionKey,
) -> Result<(Function, TypeId), PassError> {
    let source = functions.get(key).filter(|function| function.is_definition());
    let Some(source) = source else {
        return Err(PassError::new("it has no body that could be differentiated")
            .with_help("define the function, or leave out the parameters on which its argument depends"));
    };
    let mut function = Transplant::between_functions().function(cx, source);
    let result = function.ret.unwrap_or_else(|| function.body.type_of(function.body.root()));
    // The symbol is that of the original, and the copy may contain control flow.
    function.attrs = cx.with_attr(function.attrs, GLOBAL_SYMBOL, None);
    function.attrs = cx.with_attr(function.attrs, PRIMITIVE, None);
    to_non_dataflow(&mut function.body);
    decompose_where(cx, &mut function, |cx, body, call| {
        let Some(call) = body.call_of(call) else { return false };
        cx.ops.get(call.op).adjoint.is_none()
    })?;
    bind_tails(&mut Editor::new(cx, &mut function.body));
    Ok((function, result))
}

/// Binds the tails of blocks that are no atoms to variables, outside of fns.
fn bind_tails(editor: &mut Editor<'_>) {
    let mut blocks = vec![Link::Root];
    while let Some(mut at) = blocks.pop() {
        let end = tail_link(editor.body, at);
        let tail = end.target(editor.body);
        if !editor.body.expr(tail).is_atom() {
            let ty = editor.body.type_of(tail);
            let var = editor.var(None, VarFlags::PLAIN, ty);
            let rest = insert_before(editor, end, &[(var, tail)]);
            rest.set(editor.body, var.expr());
        }
        while let Some(binding) = Binding::of(editor.body, at.target(editor.body)) {
            if let Expr::If { .. } = editor.body.expr(binding.value) {
                blocks.extend([Link::Then(binding.value), Link::Else(binding.value)]);
            }
            at = Link::Rest(binding.id);
        }
    }
}

// ---- Options ----

/// A value whose derivative is wanted.
#[derive(Copy, Clone)]
struct WantedValue {
    var: ExprId,
    is_param: bool,
}

/// Finds the variables that are named, or all parameters, and checks that they consist of floats.
fn wanted_values(cx: &Context, body: &Body, names: &[String]) -> Result<Vec<WantedValue>, PassError> {
    let wanted: Vec<WantedValue> = if names.is_empty() {
        body.params().iter().map(|param| WantedValue { var: param.expr(), is_param: true }).collect()
    } else {
        named_values(cx, body, names)?
    };
    for value in &wanted {
        if let Some(other) = part_without_floats(cx, body.ty(value.var)) {
            let name = body.binding_name(cx, value.var).unwrap_or_default();
            let message = format!("`%{name}` has no derivative: {} has no float elements", cx.type_text(other));
            let help = "list the parameters whose derivatives are wanted: `require_grads=[…]`";
            return Err(PassError::new(message).with_help(help));
        }
    }
    Ok(wanted)
}

/// Finds the variables with these names. A name that a parameter has means that parameter.
fn named_values(cx: &Context, body: &Body, names: &[String]) -> Result<Vec<WantedValue>, PassError> {
    let mut by_name: FxHashMap<&str, Vec<WantedValue>> = FxHashMap::default();
    for param in body.params() {
        if let Some(name) = body.binding_name(cx, param.expr()) {
            by_name.entry(name).or_default().push(WantedValue { var: param.expr(), is_param: true });
        }
    }
    for binding in chain(body, body.root()) {
        if let Some(name) = body.binding_name(cx, binding.var.expr()) {
            let named = by_name.entry(name).or_default();
            if named.first().is_none_or(|first| !first.is_param) {
                named.push(WantedValue { var: binding.var.expr(), is_param: false });
            }
        }
    }
    let find = |name: &String| match by_name.get(&**name).map(Vec::as_slice) {
        Some(&[value]) => Ok(value),
        Some(_) => Err(PassError::new(format!("several variables are named `%{name}`"))),
        None => {
            let error = PassError::new(format!("it has no parameter and binds no variable `%{name}`"));
            let mut known: Vec<&str> = by_name.keys().copied().collect();
            known.sort_unstable();
            let near = did_you_mean(name, known).map(|near| format!("did you mean `%{near}`?"));
            Err(error.with_optional_help(near))
        }
    };
    let mut listed = FxHashSet::default();
    if let Some(twice) = names.iter().find(|name| !listed.insert(*name)) {
        return Err(PassError::new(format!("`%{twice}` is listed twice in `require_grads`")));
    }
    names.iter().map(find).collect()
}

/// Returns a part of a type that is no tensor of floats.
fn part_without_floats(cx: &Context, ty: TypeId) -> Option<TypeId> {
    let (mut stack, mut seen) = (vec![ty], FxHashSet::default());
    while let Some(ty) = stack.pop() {
        if !seen.insert(ty) {
            continue;
        }
        match cx.types.get(ty) {
            Type::Tuple(fields) => stack.extend(fields.iter().copied()),
            Type::Tensor(tensor) if tensor.dtype.is_float() => {}
            _ => return Some(ty),
        }
    }
    None
}

/// The value that is differentiated: the tail of a function, or a field of it.
#[derive(Copy, Clone)]
struct Target {
    tail: ExprId,
    field: Option<usize>,
}

impl Target {
    /// Returns the target of a function that is differentiated by its whole result.
    fn whole(body: &Body) -> Target {
        Target { tail: body.tail(body.root()), field: None }
    }
}

/// Finds the result that is differentiated, and checks that it is a scalar.
fn target_of(cx: &Context, body: &Body, index: usize) -> Result<Target, PassError> {
    let tail = body.tail(body.root());
    let ty = body.ty(tail);
    let (field, ty) = match cx.types.as_tuple(ty) {
        None if index == 0 => (None, ty),
        None => {
            let error = PassError::new(format!("it has one result, so `target_index={index}` names none"));
            return Err(error.with_help("leave out `target_index`"));
        }
        Some(fields) => match fields.get(index) {
            Some(&field) => (Some(index), field),
            None => {
                let message = format!("it has {} results, so `target_index={index}` names none", fields.len());
                return Err(PassError::new(message));
            }
        },
    };
    match cx.types.as_tensor(ty) {
        Some(tensor) if tensor.dtype.is_float() && tensor.shape.as_ref().is_some_and(|shape| shape.is_empty()) => {
            Ok(Target { tail, field })
        }
        _ => {
            let what = if field.is_some() { "the field" } else { "the result" };
            let error = PassError::new(format!("{what} is {}, but a float scalar is differentiated", cx.type_text(ty)));
            Err(error.with_help("add up the elements with `sum`, or name another field with `target_index`"))
        }
    }
}

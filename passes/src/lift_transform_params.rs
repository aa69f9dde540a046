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
//!            A function without weights, or of which nothing moves, gets a function that returns
//!            its weights, so that all functions with the attribute are called in the same way.
//! Symbols    A weight that alone binds a symbol which @f names stays a parameter. A binding whose
//!            types or attributes name a symbol that no weight binds stays where it is. So do
//!            those that use a weight whose type names such a symbol; its extent is unknown (?) in
//!            the new function.
//! Stays      Calls that can be observed, and calls of operators that are not known. Values with
//!            functions in them: calls of a parameter are not known to be pure. Functions that are
//!            used in the module, since their signature changes: a remark names them. Functions
//!            that have their @f_transform_params already.
//! Not done   What uses no weight is copied if it is needed, and stays in @f too;
//!            DeadCodeElimination removes it. There is no function for the weights of several
//!            functions.
//! Cost       Two walks of each function with the attribute, and a look at the others. Idempotent.
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

use anfora_ir::{
    Attr, Body, Context, Cursor, Diagnostic, Editor, EntityId, Expr, ExprId, Function, FunctionKey, GlobalId, IdSet,
    LetFlags, Module, NameId, NewParameter, Purity, Severity, SignatureChange, Step, SymbolId, SymbolSubstitution,
    SymbolWalk, Transplant, Type, TypeError, TypeId, VarFlags, VarId, change_signatures,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::{Binding, Mutator, RewriteError, Site, Slot, Verdict, chain, link_counts, mutate_function};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::parameter_symbols::{only_binders, symbols_named_by};
use crate::private_functions::named_by_attrs;

/// The attribute of a function with the number of its parameters that are no weights; these come
/// first.
pub const NUM_INPUT: &str = "num_input";

/// The end of the name of a function that prepares weights.
const SUFFIX: &str = "_transform_params";

register_pass! {
    /// Moves computations on weights into functions that run once
    pub LIFT_TRANSFORM_PARAMS = ModulePass("LiftTransformParams", 1).needing(["anf"]);
    run |module, cx| {
        let purity = cx.analyses().of_module(module, Purity::of_module);
        let lifted = lift_transform_params(module, &purity)?;
        cx.count("lifted", lifted.bindings as u64);
        lifted.remarks.into_iter().for_each(|remark| cx.remark(remark));
        Ok(())
    }
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
/// If the attribute is no number of parameters, or a function with the attribute is not in A-normal
/// form.
pub fn lift_transform_params(module: &mut Module, purity: &Purity) -> Result<LiftedParams, PassError> {
    let mut result = LiftedParams::default();
    let mut functions = with_weights(module, &mut result.remarks)?;
    // Find what moves, and make the functions that it moves to.
    for weights in &mut functions {
        let Some((function, cx)) = module.get_mut(weights.key) else { continue };
        weights.moved = moved_bindings(cx, &function.body, weights.inputs, purity)
            .map_err(|error| PassError::from(error).in_function(weights.name.clone()))?;
        weights.transform = Some(Transform::of(cx, function, weights));
        result.bindings += weights.moved.iter().filter(|moved| moved.uses_weights).count();
    }
    // Replace the bindings by parameters.
    let appended = functions.iter().map(|weights| (weights.key, weights.appended(module))).collect();
    let params = change_signatures(module, appended)?;
    for (weights, params) in functions.iter_mut().zip(params) {
        let Some((function, cx)) = module.get_mut(weights.key) else { continue };
        let mut rewrite = weights.rewrite(&params);
        mutate_function(cx, function, &mut rewrite)?;
        weights.is_needed = needed_parameters(cx, function, weights);
    }
    // Remove the weights that are not needed any more.
    let is_kept =
        |weights: &Weights| (0..weights.is_needed.len()).filter(|&i| weights.is_needed[i]).collect::<Vec<_>>();
    let kept = functions
        .iter()
        .map(|weights| (weights.key, SignatureChange::new().no_parameters().keep_all(is_kept(weights))));
    change_signatures(module, kept.collect())?;
    add_transforms(module, functions);
    Ok(result)
}

/// A function with weights.
struct Weights {
    key: FunctionKey,
    name: String,
    /// The number of parameters that are no weights, and of those that are.
    inputs: usize,
    count: usize,
    moved: Vec<Moved>,
    transform: Option<Transform>,
    /// By parameter, those for moved bindings included: true if it stays.
    is_needed: Vec<bool>,
}

/// A binding that can be computed from weights alone.
struct Moved {
    binding: Binding,
    /// False if it is computed from constants alone. Then it is copied, and stays.
    uses_weights: bool,
    /// True if a binding that stays uses it.
    is_output: bool,
}

impl Moved {
    /// Returns true if the binding becomes a parameter.
    fn is_parameter(&self) -> bool {
        self.uses_weights && self.is_output
    }
}

// ---- Finding ----

/// Returns the functions with the attribute that are not used in the module, in its order.
fn with_weights(module: &Module, remarks: &mut Vec<Diagnostic>) -> Result<Vec<Weights>, PassError> {
    let cx = &module.cx;
    let mut functions = Vec::new();
    let mut used: Option<IdSet<GlobalId>> = None;
    for (key, function) in module.functions() {
        let Some(attr) = cx.find_attr(function.attrs, NUM_INPUT).filter(|_| function.is_definition()) else { continue };
        let name = module.name(key);
        let count = function.body.params().len();
        if name.ends_with(SUFFIX) || module.find(&format!("{name}{SUFFIX}")).is_some() {
            continue;
        }
        let inputs = match *cx.attrs.get(attr) {
            Attr::Int(n) => usize::try_from(n).ok().filter(|&n| n <= count),
            _ => None,
        };
        let Some(inputs) = inputs else {
            let error = PassError::new(format!("`{NUM_INPUT}` is not a number of its {count} parameters"));
            return Err(error.in_function(name));
        };
        let used = used.get_or_insert_with(|| used_functions(module));
        if function.global().is_some_and(|global| used.contains(global)) {
            let message = "it keeps its weights: the module uses it, and its signature would change";
            remarks.push(Diagnostic::new(Severity::Remark, message).in_function(name));
            continue;
        }
        let (moved, is_needed) = (Vec::new(), Vec::new());
        let count = count - inputs;
        functions.push(Weights { key, name: name.to_string(), inputs, count, moved, transform: None, is_needed });
    }
    Ok(functions)
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

/// Returns the bindings of the function's own block that can be computed from weights and
/// constants.
fn moved_bindings(cx: &Context, body: &Body, inputs: usize, purity: &Purity) -> Result<Vec<Moved>, RewriteError> {
    let weights = &body.params()[inputs..];
    let symbols = bound_symbols(cx, body, weights);
    let mut walk = SymbolWalk::new();
    // By variable: true if it depends on a weight. Other variables than these depend on inputs.
    let mut known: FxHashMap<ExprId, bool> = FxHashMap::default();
    for weight in weights {
        let mut is_bound = true;
        walk.in_type(cx, body.ty(weight.expr()), |symbol| is_bound &= symbols.contains(&symbol));
        if is_bound {
            known.insert(weight.expr(), true);
        }
    }
    let mut data = DataTypes::default();
    let mut moved: Vec<Moved> = Vec::new();
    for binding in chain(body, body.root()) {
        let inputs = inputs_of(body, &binding.value);
        let is_known = |&input: &ExprId| body.as_var(input).is_none() || known.contains_key(&input);
        if !may_move(cx, body, purity, binding.value)
            || !inputs.iter().all(is_known)
            || !data.holds_tensors(cx, body.ty(binding.var.expr()))
        {
            continue;
        }
        let mut is_bound = true;
        walk.in_node(cx, body, binding.value, |symbol| is_bound &= symbols.contains(&symbol));
        walk.in_type(cx, body.ty(binding.var.expr()), |symbol| is_bound &= symbols.contains(&symbol));
        if is_bound {
            let uses_weights = inputs.iter().any(|input| known.get(input) == Some(&true));
            known.insert(binding.var.expr(), uses_weights);
            moved.push(Moved { binding, uses_weights, is_output: false });
        }
    }
    mark_outputs(cx, body, &mut moved)?;
    Ok(moved)
}

/// The types of which it is known whether all their parts are tensors.
#[derive(Default)]
struct DataTypes(FxHashMap<TypeId, bool>);

impl DataTypes {
    /// Returns true if a type is that of a tensor, or of tuples of tensors.
    fn holds_tensors(&mut self, cx: &Context, ty: TypeId) -> bool {
        let mut stack = vec![ty];
        while let Some(&top) = stack.last() {
            let known = match cx.types.get(top) {
                Type::Tensor(_) => true,
                Type::Tuple(fields) => {
                    let before = stack.len();
                    stack.extend(fields.iter().filter(|field| !self.0.contains_key(field)));
                    if stack.len() > before {
                        continue;
                    }
                    fields.iter().all(|field| self.0[field])
                }
                _ => false,
            };
            self.0.insert(top, known);
            stack.pop();
        }
        self.0[&ty]
    }
}

/// Returns the expressions that the value of a binding uses: its operands, or itself.
fn inputs_of<'a>(body: &'a Body, value: &'a ExprId) -> &'a [ExprId] {
    if body.expr(*value).is_atom() { std::slice::from_ref(value) } else { body.inputs(*value) }
}

/// Returns the symbols that parameters bind.
fn bound_symbols(cx: &Context, body: &Body, params: &[VarId]) -> FxHashSet<SymbolId> {
    let mut symbols = FxHashSet::default();
    for param in params {
        cx.types.for_each_binding_symbol(body.ty(param.expr()), |symbol| _ = symbols.insert(symbol));
    }
    symbols
}

/// Returns true if a value may be computed before the function runs.
fn may_move(cx: &Context, body: &Body, purity: &Purity, value: ExprId) -> bool {
    match body.expr(value) {
        Expr::CallOp { op, .. } => {
            let facts = cx.ops.facts(op);
            !facts.is_match_cast() && !cx.ops.is_opaque(op) && !purity.call_is_impure(cx, body, value)
        }
        Expr::Call { .. } => !purity.call_is_impure(cx, body, value),
        Expr::Tuple(_) | Expr::Proj { .. } => true,
        expr => expr.is_atom(),
    }
}

/// Marks the bindings that the rest of the function uses.
fn mark_outputs(cx: &Context, body: &Body, moved: &mut [Moved]) -> Result<(), RewriteError> {
    let by_var: FxHashMap<ExprId, usize> = moved.iter().enumerate().map(|(i, m)| (m.binding.var.expr(), i)).collect();
    let gone: FxHashSet<ExprId> = moved.iter().filter(|m| m.uses_weights).map(|m| m.binding.id).collect();
    // The value of the last Let, if the Let moves. The value is the next step.
    let mut moving = None;
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        RewriteError::unless_anf(cx, body, &cursor, step)?;
        let mut mark = |input: &ExprId| by_var.get(input).into_iter().for_each(|&i| moved[i].is_output = true);
        match step {
            Step::Let(id) => moving = Binding::of(body, id).filter(|_| gone.contains(&id)).map(|binding| binding.value),
            Step::Atom(id) | Step::Flat(id) if moving.take() == Some(id) => {}
            Step::Atom(id) => mark(&id),
            Step::Flat(id) => body.inputs(id).iter().for_each(mark),
            _ => {}
        }
    }
    Ok(())
}

// ---- Editing ----

impl Weights {
    /// Returns the change that appends a parameter for each binding that becomes one.
    fn appended(&self, module: &Module) -> SignatureChange<'static> {
        let Some(function) = module.get(self.key) else { return SignatureChange::new() };
        let body = &function.body;
        let mut change = SignatureChange::new().keep_all(0..body.params().len());
        for moved in self.moved.iter().filter(|moved| moved.is_parameter()) {
            let var = moved.binding.var;
            let name = body.var_name(var).map_or("", |name| module.cx.names.get(name));
            let no_calls = |_: &mut Editor<'_>, _| Err(TypeError::new("the function is called"));
            change = change.append(NewParameter::new(name, body.ty(var.expr()), no_calls));
        }
        change
    }

    /// Returns the rewrite that puts parameters in the place of the bindings that move.
    fn rewrite(&self, params: &[VarId]) -> MoveAway {
        let mut appended = params[self.inputs + self.count..].iter();
        let by_moved = self.moved.iter().filter(|moved| moved.uses_weights).map(|moved| {
            let param = if moved.is_output { appended.next().map(|param| param.expr()) } else { None };
            (moved.binding.var, param)
        });
        MoveAway { params: by_moved.collect() }
    }
}

/// Returns for each parameter true if it stays.
fn needed_parameters(cx: &Context, function: &Function, weights: &Weights) -> Vec<bool> {
    let body = &function.body;
    let links = link_counts(body);
    let is_weight = weights.inputs..weights.inputs + weights.count;
    let params = body.params().iter().enumerate();
    let mut is_needed: Vec<bool> =
        params.map(|(i, param)| !is_weight.contains(&i) || links[param.expr()] > 0).collect();
    for i in only_binders(cx, body, &is_needed, || symbols_named_by(cx, function)) {
        is_needed[i] = true;
    }
    is_needed
}

/// Removes bindings, and replaces their variables by parameters.
struct MoveAway {
    /// By variable of a binding: the parameter; `None` if nothing else uses it.
    params: FxHashMap<VarId, Option<ExprId>>,
}

impl Mutator for MoveAway {
    type Error = RewriteError;
    const NODES: bool = false;

    fn rewrite_value(&mut self, _: &mut Site<'_>, slot: Slot, _: ExprId) -> Result<Verdict, RewriteError> {
        Ok(match slot.var.and_then(|var| self.params.get(&var)) {
            None => Verdict::Keep,
            Some(None) => Verdict::Drop,
            Some(&Some(param)) => Verdict::Var(param),
        })
    }
}

// ---- The functions that prepare weights ----

/// A function that prepares weights, without its result.
struct Transform {
    function: Function,
    /// The types of the weights, and the variables of those that are projected.
    weights: Vec<(TypeId, Option<ExprId>)>,
    names: Vec<Option<NameId>>,
    /// The results that replace bindings.
    outputs: Vec<ExprId>,
    last: Option<ExprId>,
}

impl Transform {
    /// Returns a function with copies of the bindings that move, and of those that they use.
    fn of(cx: &mut Context, source: &Function, weights: &Weights) -> Transform {
        let body = &source.body;
        let mut function = Function::new(&cx.types, cx.attrs.empty());
        function.visibility = source.visibility;
        let params = &body.params()[weights.inputs..];
        let bound = bound_symbols(cx, body, params);
        let unknown = cx.types.dims.unknown();
        let mut symbols = SymbolSubstitution::new();
        let mut types: Vec<TypeId> = Vec::with_capacity(params.len());
        for param in params {
            let ty = body.ty(param.expr());
            // An extent with a symbol of an input is not known before the function runs.
            let ty = cx.types.substitute(ty, |symbol| (!bound.contains(&symbol)).then_some(unknown));
            types.push(ty);
        }
        let mut all: Vec<SymbolId> = bound.into_iter().collect();
        all.sort_unstable_by_key(|symbol| symbol.index());
        all.into_iter().for_each(|symbol| _ = symbols.rename(cx, symbol));
        let types: Vec<TypeId> = types.into_iter().map(|ty| symbols.ty(cx, ty)).collect();
        let names = params.iter().map(|&param| body.var_name(param)).collect();
        let all = cx.types.tuple(&types);
        let name = cx.names.intern("params");
        let mut editor = Editor::new(cx, &mut function.body);
        let tuple = editor.var(Some(name), VarFlags::PLAIN, all);
        editor.body.push_param(tuple);
        let weights_of = types.into_iter().map(|ty| (ty, None)).collect();
        let mut made = Transform { function, weights: weights_of, names, outputs: Vec::new(), last: None };
        made.copy_bindings(cx, body, weights, symbols);
        made
    }

    fn copy_bindings(&mut self, cx: &mut Context, source: &Body, weights: &Weights, symbols: SymbolSubstitution) {
        let params = &source.params()[weights.inputs..];
        let by_param: FxHashMap<ExprId, usize> = params.iter().enumerate().map(|(i, p)| (p.expr(), i)).collect();
        let mut transplant = Transplant::between_functions();
        transplant.begin(symbols);
        for moved in needed_copies(source, &weights.moved) {
            for input in inputs_of(source, &moved.binding.value) {
                if let Some(&i) = by_param.get(input) {
                    let weight = self.weight(cx, i);
                    transplant.replace(*input, weight);
                }
            }
            let mut editor = Editor::new(cx, &mut self.function.body);
            let link = transplant.binding(&mut editor, Some(source), moved.binding.id, LetFlags::PLAIN);
            self.append(link);
            if moved.is_parameter() {
                self.outputs.extend(transplant.copied(moved.binding.var.expr()));
            }
        }
    }

    /// Returns the variable of a weight, which is bound to its projection.
    fn weight(&mut self, cx: &mut Context, i: usize) -> ExprId {
        let (ty, bound) = self.weights[i];
        bound.unwrap_or_else(|| {
            let mut editor = Editor::new(cx, &mut self.function.body);
            let tuple = editor.body.params()[0].expr();
            let projection = editor.proj(tuple, i as u32).expect("the tuple has a field for each weight");
            let var = editor.var(self.names[i], VarFlags::PLAIN, ty);
            let link = editor.let_(var, projection, var.expr(), LetFlags::PLAIN);
            self.append(link);
            self.weights[i].1 = Some(var.expr());
            var.expr()
        })
    }

    /// Appends a Let to the chain.
    fn append(&mut self, link: ExprId) {
        let body = &mut self.function.body;
        match self.last.replace(link) {
            Some(last) => body.set_let_body(last, link),
            None => body.set_root(link),
        }
    }

    /// Returns the function, which returns the weights that stay and the outputs.
    fn finish(mut self, cx: &mut Context, stay: &[bool]) -> Function {
        let mut results: Vec<ExprId> = (0..stay.len()).filter(|&i| stay[i]).map(|i| self.weight(cx, i)).collect();
        results.append(&mut self.outputs);
        let mut editor = Editor::new(cx, &mut self.function.body);
        let tuple = editor.tuple(&results);
        match self.last {
            Some(last) => editor.body.set_let_body(last, tuple),
            None => editor.body.set_root(tuple),
        }
        self.function
    }
}

/// Returns the bindings that become parameters, and those that they use, in order.
fn needed_copies<'m>(body: &Body, moved: &'m [Moved]) -> Vec<&'m Moved> {
    let mut needed: FxHashSet<ExprId> = FxHashSet::default();
    let mut copies: Vec<&Moved> = Vec::new();
    for moved in moved.iter().rev() {
        if moved.is_parameter() || needed.contains(&moved.binding.var.expr()) {
            needed.extend(inputs_of(body, &moved.binding.value));
            copies.push(moved);
        }
    }
    copies.reverse();
    copies
}

/// Adds the functions that prepare weights, each after the function whose weights they are.
fn add_transforms(module: &mut Module, functions: Vec<Weights>) {
    let mut added: FxHashMap<FunctionKey, FunctionKey> = FxHashMap::default();
    for weights in functions {
        let Some(transform) = weights.transform else { continue };
        let stay = &weights.is_needed[weights.inputs..weights.inputs + weights.count];
        let function = transform.finish(&mut module.cx, stay);
        let key = module.add_named(&format!("{}{SUFFIX}", weights.name), function);
        added.insert(weights.key, key.expect("no function has this name"));
    }
    if !added.is_empty() {
        let new: FxHashSet<FunctionKey> = added.values().copied().collect();
        let before: Vec<FunctionKey> = module.order().iter().copied().filter(|key| !new.contains(key)).collect();
        module.set_order(before.iter().flat_map(|key| [Some(*key), added.get(key).copied()]).flatten().collect());
    }
}

//! Changes of signatures: parameters and results of functions, with all their calls.
//!
//! Every use of a function depends on its signature. [`change_signature`] adds, removes and
//! reorders parameters and rewrites the calls. [`update_signatures`] is for functions whose
//! parameters or blocks changed their types. Both then type the callers again, and the callers of
//! these, in the order of the call graph: a function is typed after all functions that it names,
//! and mutually recursive functions are typed until nothing changes. On an error the module is as
//! it was.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::body::{Body, SharedEdits};
use crate::core::context::Context;
use crate::core::entity::{ExprId, FunctionKey, GlobalId, TypeId};
use crate::core::expr::{Expr, VarFlags, VarId};
use crate::core::function::Function;
use crate::core::module::Module;
use crate::edit::editor::Editor;
use crate::edit::retype::{Retype, RetypeError};
use crate::ops::op::TypeError;
use crate::tables::literal::Literal;
use crate::walk::call_graph::CallGraph;
use crate::walk::cursor::{Cursor, Step};

mod calls;
mod error;
mod symbols;

pub use calls::calls_of;
pub use error::SignatureError;

use calls::{by_attr, outdated_function_attrs};

/// The number of rounds after which the types of mutually recursive functions count as unsettled.
const MOST_ROUNDS: usize = 64;

/// A function that makes the argument for a new parameter in a call: an atom that is visible there.
/// It is passed an editor of the calling function, and the call.
type Argument<'a> = dyn FnMut(&mut Editor<'_>, ExprId) -> Result<ExprId, TypeError> + 'a;

/// A new parameter of a function, with the arguments that its calls pass.
pub struct NewParameter<'a> {
    name: String,
    ty: TypeId,
    argument: Box<Argument<'a>>,
}

impl std::fmt::Debug for NewParameter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewParameter").field("name", &self.name).field("ty", &self.ty).finish_non_exhaustive()
    }
}

impl<'a> NewParameter<'a> {
    /// Returns a parameter for which every call passes the same constant.
    pub fn constant(name: impl Into<String>, ty: TypeId, value: Literal) -> NewParameter<'a> {
        NewParameter::new(name, ty, move |editor, _| Ok(editor.literal(value.clone())))
    }

    /// Returns a parameter for which each call passes the result of the closure for the calling
    /// function and the call: an atom that is visible there.
    pub fn new(
        name: impl Into<String>,
        ty: TypeId,
        argument: impl FnMut(&mut Editor<'_>, ExprId) -> Result<ExprId, TypeError> + 'a,
    ) -> NewParameter<'a> {
        NewParameter { name: name.into(), ty, argument: Box::new(argument) }
    }
}

#[derive(Debug)]
enum Slot<'a> {
    Kept(usize),
    Added(NewParameter<'a>),
}

/// The new parameters and the new stated result of a function.
///
/// If no method about parameters is called, the parameters stay. Otherwise each call of
/// [`keep`](SignatureChange::keep) or [`append`](SignatureChange::append) adds the next parameter,
/// and parameters that are not kept are removed.
#[derive(Debug, Default)]
pub struct SignatureChange<'a> {
    slots: Option<Vec<Slot<'a>>>,
    result: Option<Option<TypeId>>,
}

impl<'a> SignatureChange<'a> {
    /// Returns a change that keeps the parameters and the stated result.
    pub fn new() -> SignatureChange<'a> {
        SignatureChange::default()
    }

    /// Removes all parameters that are not kept by later calls.
    #[must_use]
    pub fn no_parameters(mut self) -> SignatureChange<'a> {
        self.slots = Some(Vec::new());
        self
    }

    /// Adds the parameter at this position before the change, from 0, as the next one.
    #[must_use]
    pub fn keep(mut self, position: usize) -> SignatureChange<'a> {
        self.slots.get_or_insert_default().push(Slot::Kept(position));
        self
    }

    /// Adds the parameters at these positions before the change as the next ones. If there are no
    /// positions, no parameters are kept.
    #[must_use]
    pub fn keep_all(mut self, positions: impl IntoIterator<Item = usize>) -> SignatureChange<'a> {
        self.slots.get_or_insert_default().extend(positions.into_iter().map(Slot::Kept));
        self
    }

    /// Adds a new parameter as the next one.
    #[must_use]
    pub fn append(mut self, parameter: NewParameter<'a>) -> SignatureChange<'a> {
        self.slots.get_or_insert_default().push(Slot::Added(parameter));
        self
    }

    /// States the result type, or (`None`) makes it the type of the block.
    ///
    /// Cost: one entry.
    #[must_use]
    pub fn result(mut self, ty: Option<TypeId>) -> SignatureChange<'a> {
        self.result = Some(ty);
        self
    }
}

/// Returns true if these parameters differ, in number or order, from the `parameters` parameters
/// that a function has.
fn reorders(slots: &[Slot<'_>], parameters: usize) -> bool {
    let same = |(i, slot): (usize, &Slot<'_>)| matches!(slot, Slot::Kept(position) if *position == i);
    slots.len() != parameters || !slots.iter().enumerate().all(same)
}

/// Changes the signature of a function: see [`change_signatures`]. Returns the variables of its
/// parameters.
///
/// ```
/// use anfora_ir::{
///     DType, Literal, NewParameter, SignatureChange, Source, change_signature, parse_module,
/// };
///
/// let text = "def private @scale(%unused: bool, %x: Tensor[(n,), float32]) { %x }
/// def @main(%c: bool, %x: Tensor[(8,), float32]) { let %y = @scale(%c, %x); %y }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let scale = module.find("scale").expect("it is defined");
/// let ty = module.cx.types.scalar(DType::Float32);
/// let by = NewParameter::constant("by", ty, Literal::scalar(2f32));
/// change_signature(&mut module, scale, SignatureChange::new().keep(1).append(by))?;
/// assert!(module.to_text().contains("@scale(%x, 2f)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The errors of [`change_signatures`].
pub fn change_signature(
    module: &mut Module,
    key: FunctionKey,
    change: SignatureChange<'_>,
) -> Result<Vec<VarId>, SignatureError> {
    change_signatures(module, vec![(key, change)]).map(|mut all| all.pop().unwrap_or_default())
}

/// Changes the signatures of functions, and returns the variables of their parameters.
///
/// Calls pass the arguments of the kept parameters, in their new order, and the arguments made for
/// new ones. Removed arguments stay where they are bound. Then the functions themselves, their
/// callers, and the callers of these are typed again, as far as anything changes. Functions that
/// must keep their signature because it is visible outside of the module (public ones) are changed
/// like others.
///
/// Linear in the module, however many functions are changed at a time.
///
/// # Errors
/// If a function is used other than by calling it, if a removed parameter is used (a variable that
/// a Let binds by then is not a parameter, and an argument for a removed parameter is not a use) or
/// is the only one to bind a symbol that the function names, if an argument cannot be made, or if
/// an expression does not fit together any more. The module is then as it was.
pub fn change_signatures(
    module: &mut Module,
    changes: Vec<(FunctionKey, SignatureChange<'_>)>,
) -> Result<Vec<Vec<VarId>>, SignatureError> {
    as_one(module, |module| {
        let keys: Vec<FunctionKey> = changes.iter().map(|&(key, _)| key).collect();
        let (params, rewritten) = change_all(module, changes)?;
        pass_on(module, &keys, rewritten, &mut |_, _, _| {})?;
        Ok(params)
    })
}

/// Updates the signatures of functions whose parameters or blocks changed their types, and types
/// their callers again, and the callers of these, as far as anything changes. Callers must have
/// typed the given functions' own blocks; only their calls are typed again here.
///
/// Linear in the uses of functions in the module, the blocks of the given functions, and the bodies
/// that are typed again.
///
/// # Errors
/// If an expression does not fit together any more, in functions that are values of attributes too.
/// The module is then as it was before the call.
pub fn update_signatures(module: &mut Module, keys: &[FunctionKey]) -> Result<(), SignatureError> {
    update_signatures_with(module, keys, |_, _, _| {})
}

/// Updates signatures as [`update_signatures`] does. If the result that a function states does not
/// accept the type of its block, first lets `fit` rewrite the block. `fit` is passed the stated
/// type.
///
/// # Errors
/// The errors of [`update_signatures`]. The module is then as it was, rewrites by `fit` included.
pub fn update_signatures_with(
    module: &mut Module,
    keys: &[FunctionKey],
    mut fit: impl FnMut(&mut Context, &mut Body, TypeId),
) -> Result<(), SignatureError> {
    as_one(module, |module| pass_on(module, keys, Rewritten::default(), &mut fit))
}

/// Runs an edit of the module, which is rolled back if it fails.
fn as_one<T>(
    module: &mut Module,
    edit: impl FnOnce(&mut Module) -> Result<T, SignatureError>,
) -> Result<T, SignatureError> {
    module.begin_edit();
    let result = edit(module);
    match result {
        Ok(_) => {
            module.commit();
        }
        Err(_) => module.rollback(),
    }
    result
}

// ---- Parameters ----

/// The callees of the calls with new arguments, by calling function.
type Rewritten = FxHashMap<FunctionKey, Vec<ExprId>>;

/// Sets the new parameters and results of functions, and the new arguments of their calls. Returns
/// the parameters.
fn change_all(
    module: &mut Module,
    changes: Vec<(FunctionKey, SignatureChange<'_>)>,
) -> Result<(Vec<Vec<VarId>>, Rewritten), SignatureError> {
    let mut by_global: FxHashMap<GlobalId, usize> = FxHashMap::default();
    let mut reordered = Vec::new();
    let mut params = Vec::with_capacity(changes.len());
    let mut slots: Vec<Vec<Slot<'_>>> = Vec::with_capacity(changes.len());
    let mut before: Vec<(FunctionKey, Vec<VarId>)> = Vec::new();
    // Set the parameters and results of the functions.
    for (i, (key, change)) in changes.into_iter().enumerate() {
        let name = module.get(key).map(|_| module.name(key).to_string()).unwrap_or_default();
        let Some((function, cx)) = module.get_mut(key) else { return Err(SignatureError::NotAFunction) };
        let Some(global) = function.global() else { return Err(SignatureError::NotAFunction) };
        if by_global.insert(global, i).is_some() {
            return Err(SignatureError::NotAFunction);
        }
        if let Some(ret) = change.result {
            function.ret = ret;
        }
        let states_parameters = change.slots.is_some();
        let new = change.slots.unwrap_or_default();
        if states_parameters && reorders(&new, function.body.params().len()) {
            before.push((key, function.body.params().to_vec()));
            set_parameters(cx, function, &name, &new)?;
            reordered.push(key);
        }
        params.push(function.body.params().to_vec());
        slots.push(new);
    }
    // Give their calls the new arguments.
    let mut rewritten = Rewritten::default();
    for (key, calls) in calls_of(module, &reordered)? {
        let name = module.name(key).to_string();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let mut editor = Editor::new(cx, &mut function.body);
        for call in calls {
            let Expr::Call { operands, attrs } = editor.body.expr(call) else { continue };
            let old: Vec<ExprId> = editor.body.operands(operands).to_vec();
            let Expr::Global(global) = editor.body.expr(old[0]) else { continue };
            let Some(&change) = by_global.get(&global) else { continue };
            let mut new = vec![old[0]];
            for slot in &mut slots[change] {
                new.push(match slot {
                    Slot::Kept(position) => match old.get(*position + 1) {
                        Some(&argument) => argument,
                        None => continue,
                    },
                    Slot::Added(parameter) => {
                        let made = (parameter.argument)(&mut editor, call);
                        made.and_then(|made| check_argument(&parameter.name, &editor, made)).map_err(|error| {
                            let at = binding_of(editor.body, call);
                            SignatureError::Mistyped {
                                name: name.clone(),
                                binding: at.and_then(|at| editor.body.binding_name(editor.cx, at)).map(str::to_string),
                                error: error.into(),
                            }
                        })?
                    }
                });
            }
            let operands = editor.body.push_operands(&new);
            // A shared call gets its arguments for all its uses.
            let before = editor.body.shared_edits(SharedEdits::Meant);
            editor.body.set_expr(call, Expr::Call { operands, attrs });
            editor.body.shared_edits(before);
            rewritten.entry(key).or_default().push(old[0]);
        }
    }
    // A removed parameter may have been the argument for another.
    for (key, before) in before {
        check_removed(module, key, &before)?;
    }
    Ok((params, rewritten))
}

/// Checks that a function uses none of its parameters `before` that are removed, and that the
/// others bind all symbols that it names.
fn check_removed(module: &Module, key: FunctionKey, before: &[VarId]) -> Result<(), SignatureError> {
    let Some(function) = module.get(key) else { return Ok(()) };
    let (cx, body, name) = (&module.cx, &function.body, module.name(key).to_string());
    let binding = |at: Option<ExprId>| at.and_then(|at| body.binding_name(cx, at)).map(str::to_string);
    let left: FxHashSet<VarId> = body.params().iter().copied().collect();
    let removed = before.iter().copied().filter(|var| !left.contains(var)).collect();
    if let Some((var, at)) = first_use(body, &removed) {
        let parameter = body.var_name(var).map_or_else(String::new, |n| cx.names.get(n).to_string());
        return Err(SignatureError::ParameterUsed { name, parameter, binding: binding(at) });
    }
    match symbols::not_bound(cx, function, before) {
        None => Ok(()),
        Some((symbol, at)) => Err(SignatureError::SymbolNotBound {
            name,
            symbol: cx.names.get(cx.types.dims.symbol_name(symbol)).to_string(),
            binding: binding(at),
        }),
    }
}

/// Checks that the argument that a closure made for a new parameter can be passed.
fn check_argument(parameter: &str, editor: &Editor<'_>, made: ExprId) -> Result<ExprId, TypeError> {
    if editor.body.expr(made).is_atom() {
        return Ok(made);
    }
    let message = format!("the argument that is made for the new parameter `%{parameter}` is not an atom");
    Err(TypeError::new(message).with_help("bind it before the call, and pass the variable"))
}

/// Returns the innermost Let that contains a node. Linear: for errors.
#[cold]
fn binding_of(body: &Body, node: ExprId) -> Option<ExprId> {
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        if matches!(step, Step::Flat(id) | Step::Enter(id) if id == node) {
            return cursor.binding();
        }
    }
    None
}

/// Sets the new parameters of a function.
fn set_parameters(
    cx: &mut Context,
    function: &mut Function,
    name: &str,
    slots: &[Slot<'_>],
) -> Result<(), SignatureError> {
    let body = &mut function.body;
    let old = body.params().to_vec();
    let mut left: FxHashSet<VarId> = old.iter().copied().collect();
    let mut new = Vec::with_capacity(slots.len());
    for slot in slots {
        new.push(match slot {
            &Slot::Kept(position) => match old.get(position) {
                Some(var) if left.remove(var) => *var,
                _ => {
                    return Err(SignatureError::NoParameter { name: name.to_string(), position, count: old.len() });
                }
            },
            Slot::Added(parameter) => {
                let id = cx.names.intern(&parameter.name);
                let named = (!parameter.name.is_empty()).then_some(id);
                body.push_var(named, VarFlags::PLAIN, parameter.ty, None)
            }
        });
    }
    body.set_params(new);
    Ok(())
}

/// Returns the first use of one of the variables that the body does not bind itself, and the Let
/// that contains the use. Linear.
fn first_use(body: &Body, vars: &FxHashSet<VarId>) -> Option<(VarId, Option<ExprId>)> {
    if vars.is_empty() {
        return None;
    }
    let mut left = vars.clone();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        if let Step::Let(id) = step
            && let Expr::Let { var, .. } = body.expr(id)
        {
            left.remove(&var);
        }
    }
    let used = |id: ExprId| body.as_var(id).filter(|var| left.contains(var));
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let found = match step {
            Step::Atom(id) => used(id),
            Step::Flat(id) => body.inputs(id).iter().find_map(|&o| used(o)),
            _ => None,
        };
        // This takes time in the depth, so it is called only once.
        if let Some(var) = found {
            return Some((var, cursor.binding()));
        }
    }
    None
}

// ---- Types ----

/// A function that rewrites a block whose type the stated result type does not accept.
type Fit<'a> = dyn FnMut(&mut Context, &mut Body, TypeId) + 'a;

/// Sets the signatures of functions, and types the functions that use them again, and the calls
/// with new arguments.
fn pass_on(
    module: &mut Module,
    keys: &[FunctionKey],
    mut rewritten: Rewritten,
    fit: &mut Fit<'_>,
) -> Result<(), SignatureError> {
    for &key in keys {
        set_signature(module, key, fit)?;
    }
    let order = module.order().to_vec();
    let graph = CallGraph::of(module, &order);
    let components = graph.components();
    for component in components.iter() {
        let mut rounds = 0;
        loop {
            let mut again = false;
            for &i in component {
                let key = order[i as usize];
                if retype_calls(module, key, &rewritten.remove(&key).unwrap_or_default())? {
                    again |= set_signature(module, key, fit)?;
                }
            }
            let Some(&first) = component.first().filter(|&&i| again && components.is_cyclic(i)) else { break };
            rounds += 1;
            if rounds > MOST_ROUNDS {
                return Err(SignatureError::Unsettled { name: module.name(order[first as usize]).to_string() });
            }
        }
    }
    retype_function_attrs(module)
}

/// Updates the signatures that the functions in attributes use; an error if they do not fit.
fn retype_function_attrs(module: &mut Module) -> Result<(), SignatureError> {
    for (id, global) in outdated_function_attrs(module) {
        let mut function = Function::clone(&module.cx.function_attrs[id]);
        let (cx, body) = (&mut module.cx, &mut function.body);
        let typed = use_signatures(cx, body, &[]);
        let found = body.type_of(body.root());
        if typed.is_err() || function.ret.is_some_and(|stated| !cx.types.accepts(stated, found)) {
            return Err(by_attr(module, global));
        }
        module.set_function_attr(id, function);
    }
    Ok(())
}

/// Sets the signature of a function's name from its parameters and its stated result, or its block.
/// Returns true if it differs from before.
fn set_signature(module: &mut Module, key: FunctionKey, fit: &mut Fit<'_>) -> Result<bool, SignatureError> {
    let Some((function, cx)) = module.get_mut(key) else { return Err(SignatureError::NotAFunction) };
    let Some(global) = function.global() else { return Err(SignatureError::NotAFunction) };
    let is_definition = function.is_definition();
    let body = &mut function.body;
    let mut found = is_definition.then(|| body.type_of(body.root()));
    if let (Some(stated), Some(ty)) = (function.ret, found)
        && !cx.types.accepts(stated, ty)
    {
        fit(cx, body, stated);
        found = Some(body.type_of(body.root()));
    }
    let ret = match (function.ret, found) {
        (Some(stated), Some(found)) if stated != found && !cx.types.accepts(stated, found) => {
            return Err(SignatureError::Result {
                name: cx.global_name(global).to_string(),
                stated: cx.type_text(stated),
                found: cx.type_text(found),
            });
        }
        (Some(ret), _) | (None, Some(ret)) => ret,
        (None, None) => cx.types.unit(),
    };
    let signature = function.signature(cx, ret);
    if cx.globals.get(global).signature == Some(signature) {
        return Ok(false);
    }
    module.set_signature(global, signature);
    Ok(true)
}

/// Sets the types of a body's uses of globals to their signatures, and types the users of these
/// again, and the calls of the given callees. Returns false if there was nothing to do.
fn retype_calls(module: &mut Module, key: FunctionKey, callees: &[ExprId]) -> Result<bool, SignatureError> {
    let Some((function, cx)) = module.get_mut(key) else { return Ok(false) };
    let body = &mut function.body;
    match use_signatures(cx, body, callees) {
        Ok(any) => Ok(any),
        Err(failed) => Err(SignatureError::Mistyped {
            binding: body.stop().and_then(|at| body.binding_name(cx, at)).map(str::to_string),
            error: failed.error.into(),
            name: module.name(key).to_string(),
        }),
    }
}

fn use_signatures(cx: &mut Context, body: &mut Body, callees: &[ExprId]) -> Result<bool, RetypeError> {
    let mut retype = Retype::new(body);
    for &callee in callees {
        retype.changed(callee);
    }
    for (leaf, global) in body.global_leaves() {
        if let Some(signature) = cx.globals.get(global).signature
            && signature != body.ty(leaf)
        {
            body.set_type(leaf, signature);
            retype.changed(leaf);
        }
    }
    if !retype.is_needed() {
        return Ok(false);
    }
    let root = body.root();
    retype.sweep(cx, body, root).map(|_| true)
}

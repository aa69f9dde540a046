//! # BindParams
//!
//! ```text
//! Notation   @f the function that is named, p a parameter of it that is bound, c its literal,
//!            k a symbol, d an extent of c, a the argument for p.
//! Needs      Nothing: any form.
//! Effect     def @f(.., p: T, ..) { rest }   =>   def @f(.., ..) { let p = c; rest }
//!            k                               =>   d
//!              all through @f, where k stands alone in T
//!            c                               =>   match_cast(c, to=T)
//!              in the new Let, where T still has a symbol in a computed extent
//!            @f(.., a, ..)                   =>   @f(.., ..)
//!              in all functions of the module, @f too: the argument for p is dropped
//! Options    function, and params, separated by commas. Without both nothing is done.
//!              %name=LITERAL              a literal of the text format
//!              %name=weights.npy          the tensor in a NumPy file
//!              %name=weights.npz[array]   a tensor of an archive; without [array], the one
//!                                         that has the name of the parameter
//!              weights.npz                all tensors of an archive, for the parameters
//!                                         with the same names
//!              file("my weights.npy")     instead of a path with other characters than
//!                                         letters, digits and _ . / - + ~ @ :, or another
//!                                         ending
//!              ["my array"]               instead of [array]
//!            Paths are relative to the working directory; the files are read when the pass runs.
//! Refuses    Names that are missing, ambiguous or given twice. Literals that do not fit the
//!            types of the parameters, or each other. A function that is used as a value or by an
//!            attribute, since its signature changes. Callers whose arguments do not fit any more.
//!            Files that are missing or cut short, or that hold no tensor, such as pickled objects.
//! Not done   Uses of p are not replaced by the literal (CanonicalizeBindings does that), and
//!            nothing is folded.
//! Cost       A walk of @f and of its callers, and a look at each function.
//!
//! before     def @f(%x: Tensor[(n,), float32], %w: Tensor[(n,), float32]) { multiply(%x, %w) }
//! after      def @f(%x: Tensor[(2,), float32]) {
//!              let %w = dense<Tensor[(2,), float32]>[1, 2];
//!              multiply(%x, %w)
//!            }
//! ```

mod sources;

use anfora_ir::{
    Context, Dim, DimId, Editor, Expr, ExprId, Function, FunctionKey, GlobalId, LetFlags, Literal, Module, SharedEdits,
    SymbolSubstitution, TensorType, Type, TypeId, VarId, calls_of, did_you_mean, update_signatures,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::RewriteError;
use rustc_hash::{FxHashMap, FxHashSet};

register_pass! {
    /// Binds parameters of a function to literals
    pub BIND_PARAMS = ModulePass("BindParams", 0).breaking(["primitive-operators"]);
    options {
        /// the function whose parameters are bound
        function: String = "",
        /// `%name=LITERAL`, `%name=FILE` or an archive of several, separated by commas
        params: String = "",
    }
    run {
        let function = function.trim().trim_start_matches('@').to_string();
        let params = sources::parse(&params)?;
        if function.is_empty() && !params.is_empty() {
            return Err(PassError::new("`params` are given, but not `function`"));
        }
        move |module, cx| {
            if function.is_empty() {
                return Ok(());
            }
            let literals = sources::read(&params)?;
            let params: Vec<(ParamRef<'_>, Literal)> =
                literals.iter().map(|(name, literal)| (ParamRef::Name(name), literal.clone())).collect();
            let bound = bind_params(module, &function, &params)?;
            cx.count("bound", bound as u64);
            Ok(())
        }
    }
}

/// A reference to a parameter that is to be bound.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ParamRef<'a> {
    /// The parameter with this name, without `%`.
    Name(&'a str),
    /// This variable.
    Var(VarId),
}

impl<'a> From<&'a str> for ParamRef<'a> {
    fn from(name: &'a str) -> ParamRef<'a> {
        ParamRef::Name(name)
    }
}

impl From<VarId> for ParamRef<'_> {
    fn from(var: VarId) -> Self {
        ParamRef::Var(var)
    }
}

/// Binds parameters of a function to literals, and returns the number of parameters. They are
/// removed from the function's signature and calls.
///
/// # Errors
/// If a parameter is missing, not unique, given twice or does not have the literal's type, if the
/// function is used as a value, or if a call no longer fits. The module is half rewritten then.
pub fn bind_params(
    module: &mut Module,
    function: &str,
    params: &[(ParamRef<'_>, Literal)],
) -> Result<usize, PassError> {
    let (key, _) = find_function(module, function)?;
    let here = |error: PassError| error.in_function(function);
    let Some((target, cx)) = module.get_mut(key) else { return Ok(0) };
    let bound = find_params(cx, target, params).map_err(here)?;
    if bound.is_empty() {
        return Ok(0);
    }
    let symbols = match_types(cx, target, &bound).map_err(here)?;
    drop_arguments(module, key, &bound)?;
    specialize(module, key, &bound, symbols).map_err(|error| here(error.into()))?;
    update_signatures(module, &[key])?;
    Ok(bound.len())
}

/// A parameter, its position and its literal.
struct Bound {
    position: usize,
    var: VarId,
    literal: Literal,
}

// ---- Finding ----

pub(crate) fn find_function(module: &Module, name: &str) -> Result<(FunctionKey, GlobalId), PassError> {
    let found = module.find(name).and_then(|key| Some((key, module.get(key)?)));
    let Some((key, function)) = found else {
        let names: Vec<&str> =
            module.functions().filter(|(_, f)| f.is_definition()).map(|(k, _)| module.name(k)).collect();
        let help = did_you_mean(name, names).map(|n| format!("did you mean `@{n}`?"));
        return Err(PassError::new(format!("there is no function `@{name}`")).with_optional_help(help));
    };
    if function.is_primitive(&module.cx) {
        return Err(PassError::new(format!("`@{name}` is primitive, and stays as it is")));
    }
    match function.global() {
        Some(global) if function.is_definition() => Ok((key, global)),
        _ => Err(PassError::new(format!("`@{name}` is only declared, and has no body to bind parameters in"))),
    }
}

/// Returns the given parameters, in the order of the signature.
fn find_params(cx: &Context, function: &Function, params: &[(ParamRef<'_>, Literal)]) -> Result<Vec<Bound>, PassError> {
    let body = &function.body;
    let name_of = |var: VarId| body.var_name(var).map_or("", |name| cx.names.get(name));
    let mut by_name: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    let mut by_var: FxHashMap<VarId, usize> = FxHashMap::default();
    for (i, &var) in body.params().iter().enumerate() {
        by_name.entry(name_of(var)).or_default().push(i);
        by_var.insert(var, i);
    }
    let mut seen = FxHashSet::default();
    let mut found = Vec::with_capacity(params.len());
    for (param, literal) in params {
        let position = match *param {
            ParamRef::Var(var) => {
                *by_var.get(&var).ok_or_else(|| PassError::new("a variable that is to be bound is not a parameter"))?
            }
            ParamRef::Name(name) => match by_name.get(name).map(Vec::as_slice) {
                Some(&[position]) => position,
                Some(several) if !name.is_empty() => {
                    let message = format!("{} parameters are called `%{name}`", several.len());
                    return Err(PassError::new(message));
                }
                _ => {
                    let names = body.params().iter().map(|&p| name_of(p)).filter(|n| !n.is_empty());
                    let help = did_you_mean(name, names).map(|n| format!("did you mean `%{n}`?"));
                    return Err(PassError::new(format!("there is no parameter `%{name}`")).with_optional_help(help));
                }
            },
        };
        let var = body.params()[position];
        if !seen.insert(position) {
            return Err(PassError::new(format!("the parameter `%{}` is bound twice", name_of(var))));
        }
        found.push(Bound { position, var, literal: literal.clone() });
    }
    found.sort_unstable_by_key(|b| b.position);
    Ok(found)
}

/// Returns the extents that the literals determine for the symbols of the function.
fn match_types(cx: &mut Context, function: &Function, bound: &[Bound]) -> Result<SymbolSubstitution, PassError> {
    let mut symbols = SymbolSubstitution::default();
    let body = &function.body;
    let param = |cx: &Context, b: &Bound| match body.var_name(b.var) {
        Some(name) => format!("`%{}`", cx.names.get(name)),
        None => format!("number {}", b.position),
    };
    for b in bound {
        let ty = body.ty(b.var.expr());
        let tensor = match cx.types.get(ty) {
            Type::Any => continue,
            Type::Tensor(tensor) if tensor.dtype == b.literal.dtype() => tensor.clone(),
            _ => return Err(misfit(cx, &param(cx, b), ty, &b.literal)),
        };
        if tensor.shape.as_ref().is_some_and(|dims| dims.len() != b.literal.rank()) {
            return Err(misfit(cx, &param(cx, b), ty, &b.literal));
        }
        for (dim, extent) in numbers(cx, &tensor, &b.literal) {
            let Dim::Symbol(symbol) = *cx.types.dims.get(dim) else { continue };
            // A symbol stands for an extent, which is not negative.
            if cx.types.dims.as_constant(extent).is_some_and(|c| c < 0) {
                continue;
            }
            match symbols.get(symbol) {
                Some(before) if before != extent => {
                    let name = cx.names.get(cx.types.dims.symbol_name(symbol));
                    let (a, b_) = (cx.types.dims.as_constant(before), cx.types.dims.as_constant(extent));
                    let (a, b_) = (a.unwrap_or_default(), b_.unwrap_or_default());
                    let message =
                        format!("`{name}` is {a} by one literal, and {b_} by that of the parameter {}", param(cx, b));
                    return Err(PassError::new(message));
                }
                Some(_) => {}
                None => symbols.set(symbol, extent),
            }
        }
    }
    for b in bound {
        let ty = symbols.ty(cx, body.ty(b.var.expr()));
        let Some(tensor) = cx.types.as_tensor(ty).cloned() else { continue };
        let pairs = numbers(cx, &tensor, &b.literal);
        let fits = |(dim, found): (DimId, DimId)| cx.types.dims.as_constant(dim).is_none() || dim == found;
        if !pairs.into_iter().all(fits) {
            return Err(misfit(cx, &param(cx, b), ty, &b.literal));
        }
    }
    Ok(symbols)
}

/// Returns the dimensions of a tensor type, including those of its elements, each with its value in
/// a literal.
fn numbers(cx: &mut Context, tensor: &TensorType, literal: &Literal) -> Vec<(DimId, DimId)> {
    let literal = cx.literals.intern(literal.clone());
    let given = cx.literal_type(literal);
    let given = cx.types.as_tensor(given).expect("the type of a literal is a tensor type");
    tensor.dims_beside(given).map(|(&dim, &found)| (dim, found)).collect()
}

#[cold]
fn misfit(cx: &mut Context, param: &str, ty: TypeId, literal: &Literal) -> PassError {
    let says_elements = cx.types.as_tensor(ty).is_some_and(|t| t.elements.is_some());
    let found = if says_elements {
        let literal = cx.literals.intern(literal.clone());
        cx.literal_type(literal)
    } else {
        cx.types.static_tensor(literal.dtype(), literal.shape())
    };
    let (wanted, found) = (cx.type_text(ty), cx.type_text(found));
    PassError::new(format!("the parameter {param} is {wanted}, but its literal is {found}"))
}

// ---- Rewriting ----

/// Removes the arguments for the bound parameters from all calls.
fn drop_arguments(module: &mut Module, key: FunctionKey, bound: &[Bound]) -> Result<(), PassError> {
    let positions: FxHashSet<usize> = bound.iter().map(|b| b.position + 1).collect();
    for (caller, calls) in calls_of(module, &[key])? {
        let Some((function, _)) = module.get_mut(caller) else { continue };
        let body = &mut function.body;
        // A call loses these arguments at all its uses.
        let before = body.shared_edits(SharedEdits::Meant);
        for &id in &calls {
            let Expr::Call { operands, attrs } = body.expr(id) else { continue };
            let left: Vec<ExprId> = body
                .operands(operands)
                .iter()
                .enumerate()
                .filter(|(i, _)| !positions.contains(i))
                .map(|(_, &o)| o)
                .collect();
            let operands = body.push_operands(&left);
            body.set_expr(id, Expr::Call { operands, attrs });
        }
        body.shared_edits(before);
    }
    Ok(())
}

/// Turns the parameters into Lets, replaces the symbols by their extents, and gives the function
/// its new signature.
fn specialize(
    module: &mut Module,
    key: FunctionKey,
    bound: &[Bound],
    mut symbols: SymbolSubstitution,
) -> Result<(), RewriteError> {
    let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
    let gone: FxHashSet<VarId> = bound.iter().map(|b| b.var).collect();
    let left: Vec<VarId> = function.body.params().iter().copied().filter(|p| !gone.contains(p)).collect();
    function.body.set_params(left);
    let mut changed: Vec<ExprId> = Vec::new();
    for b in bound.iter().rev() {
        let var = b.var.expr();
        let wanted = symbols.ty(cx, function.body.ty(var));
        let mut editor = Editor::new(cx, &mut function.body);
        let literal = editor.literal(b.literal.clone());
        let found = editor.body.ty(literal);
        let value = if editor.cx.types.accepts(wanted, found) {
            literal
        } else {
            editor.match_cast(literal, wanted).map_err(|error| RewriteError::untyped(error, None))?
        };
        let ty = editor.body.ty(value);
        editor.body.set_type(var, ty);
        changed.push(var);
        let root = editor.body.root();
        let root = editor.let_(b.var, value, root, LetFlags::PLAIN);
        editor.body.set_root(root);
    }
    symbols.in_function(module, key, &changed).map_err(|failed| RewriteError::untyped(failed.error, None))
}

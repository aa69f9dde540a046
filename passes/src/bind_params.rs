//! # BindParams
//!
//! ```text
//! Notation   @f the function that is named, p a parameter of it that is bound, c its literal, k a symbol, d an extent of c, as other expressions.
//! Needs      Nothing: any form.
//! Effect     def @f(.., p: T, ..) { rest }   =>   def @f(.., ..) { let p = c; rest }
//!            k                               =>   d        all through @f, where k stands alone in T
//!            c                               =>   match_cast(c, to=T)        in the new Let, where T still has a symbol in a computed extent
//!            @f(.., a, ..)                   =>   @f(.., ..)        in all functions of the module, @f too: what was passed for p is dropped
//! Options    function, and params: `%name=LITERAL` for each, separated by commas. Without both nothing is done.
//! Refuses    Names that are not there, not unique or given twice; literals that do not fit the types of the parameters, or each other; a function
//!            that is used as a value or by an attribute, since its signature changes; callers whose arguments do not fit any more.
//! Not done   The literal is not put where p is used (CanonicalizeBindings does that), nor folded.
//! Cost       A walk of @f and of its callers, and a look at each function.
//!
//! before     def @f(%x: Tensor[(n,), float32], %w: Tensor[(n,), float32]) { multiply(%x, %w) }
//! after      def @f(%x: Tensor[(2,), float32]) { let %w = dense<Tensor[(2,), float32]>[1, 2]; multiply(%x, %w) }
//! ```

use std::sync::Arc;

use anfora_ir::{
    Attr, Context, Cursor, Dim, DimId, Editor, Expr, ExprId, Function, FunctionKey, GlobalId, LetFlags, Literal,
    Module, OpRegistry, Retype, Source, Step, TensorType, Type, TypeId, VarId, did_you_mean, parse_module,
    signature_type,
};
use anfora_manager::{PassError, register_pass};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::failure::{Failure, binding_name};
use crate::primitive::is_primitive;
use crate::symbols::{Substitution, substitute_symbols};

register_pass! {
    /// Binds parameters of a function to literals
    pub BIND_PARAMS = ModulePass("BindParams", 0);
    options {
        /// the function whose parameters are bound
        function: String = "",
        /// `%name=LITERAL` for each parameter, separated by commas
        params: String = "",
    }
    run {
        let function = function.trim().trim_start_matches('@').to_string();
        let params = read_params(&params)?;
        if function.is_empty() && !params.is_empty() {
            return Err(PassError::new("`params` are given, but not `function`"));
        }
        move |module, cx| {
            if function.is_empty() {
                return Ok(());
            }
            let params: Vec<(ParamRef<'_>, Literal)> =
                params.iter().map(|(name, literal)| (ParamRef::Name(name), literal.clone())).collect();
            let bound = bind_params(module, &function, &params).map_err(|(function, failure)| {
                let error = PassError::from(failure);
                match function {
                    Some(name) => error.in_function(name),
                    None => error,
                }
            })?;
            cx.count("bound", bound as u64);
            Ok(())
        }
    }
}

/// A parameter that is to be bound.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ParamRef<'a> {
    /// The one of this name, without `%`.
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

/// Binds parameters of the function of a name to literals, and returns how many. They disappear from its signature and from its calls.
///
/// # Errors
/// With the name of the function that it is about, if a parameter is not there, not unique, given twice or not of the literal's type, if the
/// function is used as a value, or if a call of it does not fit any more. The module is half rewritten then.
pub fn bind_params(
    module: &mut Module,
    function: &str,
    params: &[(ParamRef<'_>, Literal)],
) -> Result<usize, (Option<String>, Failure)> {
    let (key, global) = find_function(module, function).map_err(|failure| (None, failure))?;
    let here = |failure| (Some(function.to_string()), failure);
    let Some((target, cx)) = module.get_mut(key) else { return Ok(0) };
    let bound = find_params(cx, target, params).map_err(here)?;
    if bound.is_empty() {
        return Ok(0);
    }
    let symbols = match_types(cx, target, &bound).map_err(here)?;
    let callers = drop_arguments(module, global, &bound)?;
    specialize(module, key, global, &bound, symbols).map_err(here)?;
    update_callers(module, key, global, callers)?;
    Ok(bound.len())
}

/// A parameter, its position and its literal.
struct Bound {
    position: usize,
    var: VarId,
    literal: Literal,
}

// ---- Finding ----

fn mistake(message: impl Into<String>, help: Option<String>) -> Failure {
    Failure::Option { message: message.into(), help }
}

fn find_function(module: &Module, name: &str) -> Result<(FunctionKey, GlobalId), Failure> {
    let found = module.find(name).and_then(|key| Some((key, module.get(key)?)));
    let Some((key, function)) = found else {
        let names: Vec<&str> =
            module.functions().filter(|(_, f)| f.is_definition()).map(|(k, _)| module.name(k)).collect();
        let help = did_you_mean(name, names).map(|n| format!("did you mean `@{n}`?"));
        return Err(mistake(format!("there is no function `@{name}`"), help));
    };
    if is_primitive(&module.cx, function) {
        return Err(mistake(format!("`@{name}` is primitive, and stays as it is"), None));
    }
    match function.global() {
        Some(global) if function.is_definition() => Ok((key, global)),
        _ => Err(mistake(format!("`@{name}` is only declared, and has no body to bind parameters in"), None)),
    }
}

/// The parameters that are named, in the order of the signature.
fn find_params(cx: &Context, function: &Function, params: &[(ParamRef<'_>, Literal)]) -> Result<Vec<Bound>, Failure> {
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
                *by_var.get(&var).ok_or_else(|| mistake("a variable that is to be bound is not a parameter", None))?
            }
            ParamRef::Name(name) => match by_name.get(name).map(Vec::as_slice) {
                Some(&[position]) => position,
                Some(several) if !name.is_empty() => {
                    let message = format!("{} parameters are called `%{name}`", several.len());
                    return Err(mistake(message, None));
                }
                _ => {
                    let names = body.params().iter().map(|&p| name_of(p)).filter(|n| !n.is_empty());
                    let help = did_you_mean(name, names).map(|n| format!("did you mean `%{n}`?"));
                    return Err(mistake(format!("there is no parameter `%{name}`"), help));
                }
            },
        };
        let var = body.params()[position];
        if !seen.insert(position) {
            return Err(mistake(format!("the parameter `%{}` is bound twice", name_of(var)), None));
        }
        found.push(Bound { position, var, literal: literal.clone() });
    }
    found.sort_unstable_by_key(|b| b.position);
    Ok(found)
}

/// What the literals say of the symbols of the function.
fn match_types(cx: &mut Context, function: &Function, bound: &[Bound]) -> Result<Substitution, Failure> {
    let mut symbols = Substitution::default();
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
            // Symbols stand for extents.
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
                    return Err(mistake(message, None));
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

/// What a tensor type says of extents and elements, each with what it is in a literal.
fn numbers(cx: &mut Context, tensor: &TensorType, literal: &Literal) -> Vec<(DimId, DimId)> {
    let literal = cx.literals.intern(literal.clone());
    let given = cx.literal_type(literal);
    let given = cx.types.as_tensor(given).expect("the type of a literal is a tensor type");
    tensor.dims_beside(given).map(|(&dim, &found)| (dim, found)).collect()
}

#[cold]
fn misfit(cx: &mut Context, param: &str, ty: TypeId, literal: &Literal) -> Failure {
    let found = cx.types.static_tensor(literal.dtype(), literal.shape());
    let (wanted, found) = (cx.type_text(ty), cx.type_text(found));
    mistake(format!("the parameter {param} is {wanted}, but its literal is {found}"), None)
}

// ---- Rewriting ----

/// Takes the arguments for the bound parameters out of all calls, and returns the functions that have one, in program order.
fn drop_arguments(
    module: &mut Module,
    global: GlobalId,
    bound: &[Bound],
) -> Result<Vec<FunctionKey>, (Option<String>, Failure)> {
    let name = module.cx.global_name(global).to_string();
    let refused = |place: &str| {
        let message = format!("`@{name}` is used {place}, and its signature would change");
        mistake(
            message,
            Some("call it directly: CanonicalizeBindings replaces variables that stand for it".to_string()),
        )
    };
    let named_by_attr = module.cx.attrs.iter().any(|(_, attr)| *attr == Attr::Global(global))
        || module.cx.function_attrs.iter().any(|(_, f)| f.body.global_leaves().iter().any(|&(_, g)| g == global));
    if named_by_attr {
        return Err((Some(name.clone()), refused("by an attribute")));
    }
    let positions: FxHashSet<usize> = bound.iter().map(|b| b.position + 1).collect();
    let mut callers = Vec::new();
    for key in module.order().to_vec() {
        let caller = module.name(key).to_string();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        let leaf = body.global_leaves().into_iter().find(|&(_, g)| g == global).map(|(id, _)| id);
        let Some(leaf) = leaf else { continue };
        let mut calls: Vec<ExprId> = Vec::new();
        let mut at = body.root();
        let mut value_at: Option<ExprId> = None;
        let mut called = false;
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Let(id) => at = id,
                Step::Bound(id) => {
                    if let Expr::Let { body: rest, .. } = body.expr(id) {
                        at = rest;
                    }
                }
                // Right after a call is entered, its callee.
                Step::Atom(id) if id == leaf && !std::mem::take(&mut called) => value_at = value_at.or(Some(at)),
                Step::Flat(id) | Step::Enter(id) => {
                    let calls_it = match body.expr(id) {
                        Expr::Call { operands, .. } => body.operands(operands).first() == Some(&leaf),
                        _ => false,
                    };
                    if calls_it {
                        calls.push(id);
                    }
                    called = calls_it && matches!(step, Step::Enter(_));
                    if let Step::Flat(_) = step {
                        let others = match body.expr(id) {
                            Expr::Proj { .. } => false,
                            _ => body.operands_of(id).iter().skip(usize::from(calls_it)).any(|&o| o == leaf),
                        };
                        if others {
                            value_at = value_at.or(Some(at));
                        }
                    }
                }
                _ => {}
            }
        }
        if let Some(at) = value_at {
            let place = match binding_name(cx, body, at) {
                Some(binding) => format!("as a value at `%{binding}`"),
                None => "as a value".to_string(),
            };
            return Err((Some(caller), refused(&place)));
        }
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
        if !calls.is_empty() {
            callers.push(key);
        }
    }
    Ok(callers)
}

/// Makes the parameters Lets, puts in what the symbols stand for, and gives the name its new signature.
fn specialize(
    module: &mut Module,
    key: FunctionKey,
    global: GlobalId,
    bound: &[Bound],
    mut symbols: Substitution,
) -> Result<(), Failure> {
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
            let (cast, to) = (editor.cx.ops.resolve("match_cast"), editor.cx.attr(Attr::Type(wanted)));
            let attrs = editor.cx.named_attrs(&[("to", to)]);
            cast.and_then(|cast| editor.call_op(cast, &[literal], attrs))
                .map_err(|error| Failure::Type { error, binding: None })?
        };
        let ty = editor.body.ty(value);
        editor.body.set_type(var, ty);
        changed.push(var);
        let root = editor.body.root();
        let root = editor.let_(b.var, value, root, LetFlags::PLAIN);
        editor.body.set_root(root);
    }
    for i in 0..function.body.params().len() {
        let param = function.body.params()[i].expr();
        let ty = symbols.ty(cx, function.body.ty(param));
        if ty != function.body.ty(param) {
            function.body.set_type(param, ty);
            changed.push(param);
        }
    }
    function.attrs = symbols.attrs(cx, function.attrs);
    if let Some(ret) = function.ret {
        let ret = symbols.ty(cx, ret);
        function.ret = Some(ret);
        // Calls of itself are typed by it.
        let signature = signature_of(cx, function, ret);
        for (leaf, g) in function.body.global_leaves() {
            if g == global && function.body.ty(leaf) != signature {
                function.body.set_type(leaf, signature);
                changed.push(leaf);
            }
        }
        module.set_signature(global, signature);
    }
    let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
    substitute_symbols(cx, &mut function.body, &mut symbols, &changed)
        .map_err(|(at, error)| Failure::Type { error, binding: binding_name(cx, &function.body, at) })?;
    if function.ret.is_none() {
        let ret = function.body.type_of(function.body.root());
        let signature = signature_of(cx, function, ret);
        module.set_signature(global, signature);
    }
    Ok(())
}

fn signature_of(cx: &mut Context, function: &Function, ret: TypeId) -> TypeId {
    let params: Vec<TypeId> = function.body.params().iter().map(|p| function.body.ty(p.expr())).collect();
    signature_type(cx, &params, ret)
}

/// Types the callers again, and theirs, where a result that is not stated became more specific.
fn update_callers(
    module: &mut Module,
    target: FunctionKey,
    global: GlobalId,
    callers: Vec<FunctionKey>,
) -> Result<(), (Option<String>, Failure)> {
    let mut work: Vec<(GlobalId, Vec<FunctionKey>)> = vec![(global, callers)];
    let mut calls: Option<FxHashMap<GlobalId, Vec<FunctionKey>>> = None;
    while let Some((global, callers)) = work.pop() {
        for key in callers {
            if key == target {
                continue;
            }
            let Some((function, cx)) = module.get_mut(key) else { continue };
            let Some(signature) = cx.globals.get(global).signature else { continue };
            let mut retype = Retype::new(&function.body);
            for (leaf, g) in function.body.global_leaves() {
                if g == global {
                    function.body.set_type(leaf, signature);
                    retype.changed(leaf);
                }
            }
            let root = function.body.root();
            if let Err(e) = retype.sweep(cx, &mut function.body, root) {
                let failure = Failure::Type { error: e.error, binding: None };
                return Err((Some(module.name(key).to_string()), failure));
            }
            if function.ret.is_some() {
                continue;
            }
            let ret = function.body.type_of(root);
            let signature = signature_of(cx, function, ret);
            if let Some(own) = function.global()
                && cx.globals.get(own).signature != Some(signature)
            {
                module.set_signature(own, signature);
                let calls = calls.get_or_insert_with(|| callers_of(module));
                work.push((own, calls.get(&own).cloned().unwrap_or_default()));
            }
        }
    }
    Ok(())
}

/// By global: the functions that name it, in program order.
fn callers_of(module: &Module) -> FxHashMap<GlobalId, Vec<FunctionKey>> {
    let mut callers: FxHashMap<GlobalId, Vec<FunctionKey>> = FxHashMap::default();
    for (key, function) in module.functions() {
        for (_, global) in function.body.global_leaves() {
            callers.entry(global).or_default().push(key);
        }
    }
    callers
}

// ---- Reading the option ----

/// Reads `%name=LITERAL, …`.
fn read_params(text: &str) -> Result<Vec<(String, Literal)>, PassError> {
    let form = || PassError::new(format!("`{text}` is not of the form `%name=LITERAL, …`"));
    let mut params = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let after = rest.strip_prefix('%').ok_or_else(form)?;
        let (name, after) = match after.strip_prefix('"') {
            Some(_) => {
                let end = string_end(after).ok_or_else(form)?;
                let name = read_string(&after[..end]).ok_or_else(form)?;
                (name, &after[end..])
            }
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$').ok_or_else(form)?;
                (after[..end].to_string(), &after[end..])
            }
        };
        let after = after.trim_start().strip_prefix('=').ok_or_else(form)?;
        let end = next_param(after);
        let value = after[..end].trim();
        let value = if end < after.len() { value.strip_suffix(',').ok_or_else(form)? } else { value };
        params.push((name, read_literal(value)?));
        rest = &after[end..];
    }
    Ok(params)
}

/// Where the string that a text begins with ends, quotes included.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return Some(i + 1),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

/// Where the next `%` outside strings is, or the end.
fn next_param(text: &str) -> usize {
    let mut at = 0;
    while let Some(found) = text[at..].find(['%', '"']) {
        at += found;
        if text[at..].starts_with('%') {
            return at;
        }
        match string_end(&text[at..]) {
            Some(end) => at += end,
            None => break,
        }
    }
    text.len()
}

/// The literal that a program whose whole text is one would be.
fn read_literal(text: &str) -> Result<Literal, PassError> {
    let error = || PassError::new(format!("`{text}` is not a literal"));
    let program = format!("def @literal() {{ {text} }}");
    let module =
        parse_module(Source::new("params", program), Arc::new(OpRegistry::new())).map_err(|all| match all.first() {
            Some(first) => PassError::new(format!("`{text}` is not a literal: {}", first.message)),
            None => error(),
        })?;
    let functions: Vec<&Function> = module.functions().map(|(_, f)| f).collect();
    match functions[..] {
        [function] => {
            let body = &function.body;
            let id = body.as_literal(body.root()).ok_or_else(error)?;
            Ok(module.cx.literals.get(id).clone())
        }
        _ => Err(error()),
    }
}

fn read_string(text: &str) -> Option<String> {
    let literal = read_literal(text).ok()?;
    let strings = literal.as_strings()?;
    strings.first().map(|s| s.to_string())
}

//! # BindSymbols
//!
//! ```text
//! Notation   @f a function with a symbol of a given name, n such a symbol, k its extent, T a
//!            type, T[k/n] the type T with k in place of n, its extents computed.
//! Needs      Nothing: any form.
//! Effect     def @f(.., p: T, ..) -> U { rest }
//!              =>   def @f(.., p: T[k/n], ..) -> U[k/n] { rest[k/n] }
//!              in rest, n becomes k in the types of `fn`s, in `match_cast`s and in other
//!              attributes, and types are inferred again
//!            @f(.., a, ..)   =>   @f(.., match_cast(a, to=A), ..)
//!              in all functions, where the extent of a is not known, and A says that it is k
//!            def @g(..) -> U { rest }   =>   def @g(..) -> U { match_cast(rest, to=U) }
//!              in all functions, where U is stated, and does not accept the type that follows
//!              from the calls
//! Options    An option for each symbol, `n=4`. A name stands for all symbols of that name in a
//!            function. A name that is not a word, or is `function`, is quoted: `"n.0"=4`.
//!            With `function=main` only the symbols of that function are bound. Without it, those
//!            of all external functions (the public ones, and those with a `global_symbol`) are
//!            bound. Private ones keep theirs, since each call determines the extents. Without
//!            symbols nothing is done.
//! Refuses    A name that no symbol has. An extent that contradicts a type: an operator or a call
//!            would be ill-typed, or a computed extent negative. A function in an attribute
//!            whose calls do not fit any more, since no casts are put into it.
//! Never      Binds symbols of primitive functions, which accept any extent, or of declared ones;
//!            calls in primitive functions are adapted like all others. Removes the check
//!            that a `match_cast` makes.
//! Not done   Values that are known now are not folded: FoldConstant does that. A second run finds
//!            no symbol.
//! Cost       A walk of the functions that have such symbols, and of their callers.
//!
//! before     def @main(%x: Tensor[(n, 2), float32]) { (%x, zeros(shape=shape(2 * n))) }
//! after      def @main(%x: Tensor[(4, 2), float32]) { (%x, zeros(shape=shape(8))) }     with n=4
//! ```

use anfora_ir::{
    Body, Context, Cursor, Dim, DimId, Editor, EntityId, Expr, ExprId, Function, FunctionKey, GlobalId, Invariant,
    Module, NameId, SharedEdits, Step, SymbolId, SymbolSubstitution, SymbolWalk, TensorType, Type, TypeId,
    did_you_mean, update_signatures_with,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::{Link, RewriteError, tail_link};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::bind_params::find_function;
use crate::to_a_normal_form::to_a_normal_form;

register_pass! {
    /// Gives symbolic dimensions their extents
    pub BIND_SYMBOLS = ModulePass("BindSymbols", 0).breaking(["primitive-operators"]);
    options {
        /// the only function whose symbols are bound; all external ones if empty
        function: String = "",
        /// the extents of symbols by name, each an option of its own: `n=4`
        symbols: Vec<(String, i64)> [0..=i64::MAX] = [],
    }
    run {
        let function = function.trim().trim_start_matches('@').to_string();
        move |module, cx| {
            let only = Some(function.as_str()).filter(|f| !f.is_empty());
            let symbols: Vec<(SymbolRef<'_>, i64)> =
                symbols.iter().map(|(name, extent)| (SymbolRef::Name(name), *extent)).collect();
            let bound = bind_symbols(module, only, &symbols)?;
            cx.count("bound", bound as u64);
            Ok(())
        }
    }
}

/// A reference to symbolic dimensions that are to be bound.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum SymbolRef<'a> {
    /// All symbols with this name.
    Name(&'a str),
    /// This symbol.
    Symbol(SymbolId),
}

impl<'a> SymbolRef<'a> {
    fn name<'n>(self, cx: &'n Context) -> &'n str
    where
        'a: 'n,
    {
        match self {
            SymbolRef::Name(name) => name,
            SymbolRef::Symbol(symbol) => cx.names.get(cx.types.dims.symbol_name(symbol)),
        }
    }
}

/// Gives symbolic dimensions their extents, in the named function or in all external ones that have
/// them. Returns the number of bound symbols, counted in each function. Callers are adapted.
///
/// # Errors
/// If there is no such function or symbol, or if a symbol is given two extents, a negative one, or
/// one that contradicts a type. The module is half rewritten then.
pub fn bind_symbols(
    module: &mut Module,
    function: Option<&str>,
    symbols: &[(SymbolRef<'_>, i64)],
) -> Result<usize, PassError> {
    let functions: Vec<(FunctionKey, GlobalId)> = match function {
        Some(name) => vec![find_function(module, name)?],
        None => {
            let external = module.functions().filter(|(_, f)| may_be_bound(&module.cx, f) && f.is_external(&module.cx));
            external.filter_map(|(key, f)| Some((key, f.global()?))).collect()
        }
    };
    let mut wanted = Wanted::new(&mut module.cx, symbols)?;
    let mut bound = 0;
    let (mut keys, mut changed) = (Vec::new(), Vec::new());
    for (key, global) in functions {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let found = wanted.symbols_of(cx, function);
        if found.is_empty() {
            continue;
        }
        bound += found.len();
        keys.push(key);
        changed.push(global);
        let mut substitution = SymbolSubstitution::default();
        for (symbol, extent) in found {
            substitution.set(symbol, extent);
        }
        substitute(module, key, &mut substitution, &[])?;
    }
    wanted.check_all_found(module, function)?;
    cast_arguments(module, &changed)?;
    update_signatures_with(module, &keys, cast_result)?;
    Ok(bound)
}

/// Replaces symbolic dimensions of a function, and adapts its callers. `changed` are the
/// expressions of its body whose types the caller has changed; types that depend on them are
/// inferred in the same walk.
///
/// Linear in the function and in its callers.
///
/// # Errors
/// If an extent contradicts a type. The module is half rewritten then.
pub fn substitute_symbols(
    module: &mut Module,
    key: FunctionKey,
    substitution: &mut SymbolSubstitution,
    changed: &[ExprId],
) -> Result<(), PassError> {
    substitute(module, key, substitution, changed)?;
    let global = module.get(key).and_then(Function::global);
    cast_arguments(module, global.as_slice())?;
    Ok(update_signatures_with(module, &[key], cast_result)?)
}

/// Replaces symbolic dimensions of a function, but does not adapt its callers.
fn substitute(
    module: &mut Module,
    key: FunctionKey,
    substitution: &mut SymbolSubstitution,
    changed: &[ExprId],
) -> Result<(), PassError> {
    let done = substitution.in_function(module, key, changed).map_err(|failed| failed.error);
    let Some(function) = module.get(key) else { return Ok(()) };
    let body = &function.body;
    done.map_err(|error| {
        let binding = body.stop().and_then(|at| body.binding_name(&module.cx, at));
        PassError::from(RewriteError::untyped(error, binding))
    })
    .and_then(|()| check_types(&module.cx, substitution))
    .map_err(|error| error.in_function(module.name(key)))
}

fn may_be_bound(cx: &Context, function: &Function) -> bool {
    function.is_definition() && !function.is_primitive(cx)
}

/// A symbol that is to be bound.
struct WantedSymbol<'a> {
    symbol: SymbolRef<'a>,
    extent: DimId,
    is_found: bool,
}

/// The symbols that are to be bound, and the names of the symbols that were seen.
struct Wanted<'a> {
    symbols: Vec<WantedSymbol<'a>>,
    positions: FxHashMap<SymbolRef<'a>, usize>,
    /// The names of symbols for messages: each once, in order of appearance.
    seen: Vec<NameId>,
    seen_names: FxHashSet<NameId>,
}

impl<'a> Wanted<'a> {
    fn new(cx: &mut Context, symbols: &[(SymbolRef<'a>, i64)]) -> Result<Wanted<'a>, PassError> {
        let mut wanted = Wanted {
            symbols: Vec::with_capacity(symbols.len()),
            positions: FxHashMap::default(),
            seen: Vec::new(),
            seen_names: FxHashSet::default(),
        };
        for &(symbol, extent) in symbols {
            let name = symbol.name(cx);
            if extent < 0 {
                return Err(PassError::new(format!(
                    "the symbol `{name}` cannot be {extent}: extents are not negative"
                )));
            }
            if wanted.positions.insert(symbol, wanted.symbols.len()).is_some() {
                return Err(PassError::new(format!("the symbol `{name}` is bound twice")));
            }
            wanted.symbols.push(WantedSymbol { symbol, extent: cx.types.dims.constant(extent), is_found: false });
        }
        Ok(wanted)
    }

    /// Returns the symbols of a function that are to be bound, with their extents, in order of
    /// appearance. Considers the symbols that its parameters, its `fn`s and its `match_cast`s name.
    fn symbols_of(&mut self, cx: &Context, function: &Function) -> Vec<(SymbolId, DimId)> {
        let body = &function.body;
        let mut found = Vec::new();
        let mut walk = SymbolWalk::new();
        let mut seen_symbols: FxHashSet<SymbolId> = FxHashSet::default();
        let mut look = |ty: TypeId| {
            walk.in_type(cx, ty, |symbol| {
                if !seen_symbols.insert(symbol) {
                    return;
                }
                let name = cx.types.dims.symbol_name(symbol);
                if self.seen_names.insert(name) {
                    self.seen.push(name);
                }
                let mut extent = None;
                for symbol in [SymbolRef::Symbol(symbol), SymbolRef::Name(cx.names.get(name))] {
                    if let Some(&position) = self.positions.get(&symbol) {
                        let wanted = &mut self.symbols[position];
                        wanted.is_found = true;
                        extent = extent.or(Some(wanted.extent));
                    }
                }
                found.extend(extent.map(|extent| (symbol, extent)));
            });
        };
        for &param in body.params() {
            look(body.ty(param.expr()));
        }
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            let (Step::Enter(id) | Step::Flat(id)) = step else { continue };
            match body.expr(id) {
                Expr::Lambda { lambda, .. } => body.lambda_params(lambda).for_each(|p| look(body.ty(p.expr()))),
                node => cx.cast_type(node).into_iter().for_each(&mut look),
            }
        }
        found
    }

    /// Checks that all symbols were found.
    fn check_all_found(&mut self, module: &Module, function: Option<&str>) -> Result<(), PassError> {
        let cx = &module.cx;
        // Names are reported before symbols.
        let left = self.symbols.iter().filter(|wanted| !wanted.is_found);
        let Some(left) = left.min_by_key(|wanted| matches!(wanted.symbol, SymbolRef::Symbol(_))) else { return Ok(()) };
        let name = left.symbol.name(cx).to_string();
        if function.is_none()
            && let Some(private) = self.private_with(module, &name)
        {
            let message = format!("no function that others can call has a symbol `{name}`");
            let help = format!("the private function `@{private}` has one: name it, with `function={private}`");
            return Err(PassError::new(message).with_help(help));
        }
        let mut names = self.seen.iter().map(|&seen| cx.names.get(seen));
        let help = match did_you_mean(&name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.seen.is_empty() => "there are no symbols".to_string(),
            None => {
                /// The greatest number of listed names.
                const MOST_NAMES: usize = 8;
                let mut listed: Vec<&str> = names.by_ref().take(MOST_NAMES).collect();
                listed.extend(names.next().map(|_| "…"));
                format!("there are {}", listed.join(", "))
            }
        };
        let message = format!("there is no symbol `{name}`");
        let error = PassError::new(message).with_help(help);
        Err(function.into_iter().fold(error, PassError::in_function))
    }

    /// Returns the name of the first private function that has a symbol with this name that is to
    /// be bound.
    fn private_with<'m>(&mut self, module: &'m Module, name: &str) -> Option<&'m str> {
        let cx = &module.cx;
        let mut private = module.functions().filter(|(_, f)| may_be_bound(cx, f) && !f.is_external(cx));
        let is_it = |&(symbol, _): &(SymbolId, DimId)| cx.names.get(cx.types.dims.symbol_name(symbol)) == name;
        private.find(|(_, f)| self.symbols_of(cx, f).iter().any(is_it)).map(|(key, _)| module.name(key))
    }
}

/// Checks that no extent of a type became negative by the substitution.
fn check_types(cx: &Context, substitution: &SymbolSubstitution) -> Result<(), PassError> {
    let mut types: Vec<(TypeId, TypeId)> = substitution.types().collect();
    types.sort_unstable_by_key(|(old, _)| old.index());
    let mut seen: FxHashSet<TypeId> = FxHashSet::default();
    match types.into_iter().find(|&(_, new)| has_negative_extent(cx, new, &mut seen)) {
        None => Ok(()),
        Some((old, new)) => {
            let (old, new) = (cx.type_text(old), cx.type_text(new));
            Err(PassError::new(format!("the type {old} would be {new}, which has a negative extent")))
        }
    }
}

/// Returns true if a part of a type that is not in `seen` has a negative extent.
fn has_negative_extent(cx: &Context, ty: TypeId, seen: &mut FxHashSet<TypeId>) -> bool {
    let mut stack = vec![ty];
    while let Some(ty) = stack.pop() {
        if !seen.insert(ty) {
            continue;
        }
        let mut extents = cx.types.as_tensor(ty).and_then(|tensor| tensor.shape.as_ref()).into_iter().flatten();
        if extents.any(|&d| cx.types.dims.as_constant(d).is_some_and(|c| c < 0)) {
            return true;
        }
        stack.extend(cx.types.get(ty).parts());
    }
    false
}

// ---- Callers ----

/// Casts the arguments of functions whose parameters now have constant extents, if less is known of
/// the arguments.
fn cast_arguments(module: &mut Module, changed: &[GlobalId]) -> Result<(), PassError> {
    let changed: FxHashSet<GlobalId> = changed.iter().copied().collect();
    for key in module.order().to_vec() {
        let names_changed = |f: &Function| f.body.global_leaves().iter().any(|(_, global)| changed.contains(global));
        if !module.get(key).is_some_and(names_changed) {
            continue;
        }
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        let was_normal = Invariant::ANormalForm.holds_in(cx, body);
        let casts = needed_casts(cx, body, &changed);
        if casts.is_empty() {
            continue;
        }
        // A shared call gets the same arguments at all its uses.
        let before = body.shared_edits(SharedEdits::Meant);
        let mut editor = Editor::new(cx, body);
        for Cast { argument, to } in casts {
            let value = argument.target(editor.body);
            match editor.match_cast(value, to) {
                Ok(cast) => argument.set(editor.body, cast),
                Err(error) => {
                    return Err(PassError::from(RewriteError::untyped(error, None)).in_function(module.name(key)));
                }
            }
        }
        body.shared_edits(before);
        if was_normal {
            to_a_normal_form(cx, body);
        }
    }
    Ok(())
}

/// Casts the result of a block to the result type that its function states. Does nothing if no
/// value can have both types.
fn cast_result(cx: &mut Context, body: &mut Body, stated: TypeId) {
    let was_normal = Invariant::ANormalForm.holds_in(cx, body);
    let mut editor = Editor::new(cx, body);
    let link = tail_link(editor.body, Link::Root);
    let tail = link.target(editor.body);
    let Ok(cast) = editor.match_cast(tail, stated) else { return };
    link.set(editor.body, cast);
    if was_normal {
        to_a_normal_form(cx, body);
    }
}

/// An operand of a call that is to be cast.
struct Cast {
    argument: Link,
    to: TypeId,
}

/// Returns the arguments whose types are less specific than the callee's constants, in program
/// order.
fn needed_casts(cx: &mut Context, body: &Body, changed: &FxHashSet<GlobalId>) -> Vec<Cast> {
    let leaves: FxHashMap<ExprId, GlobalId> =
        body.global_leaves().into_iter().filter(|(_, g)| changed.contains(g)).collect();
    let mut casts = Vec::new();
    let mut memo: FxHashMap<(TypeId, TypeId), TypeId> = FxHashMap::default();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let (Step::Enter(call) | Step::Flat(call)) = step else { continue };
        let Expr::Call { operands, .. } = body.expr(call) else { continue };
        let operands = body.operands(operands);
        let signature = operands.first().and_then(|callee| leaves.get(callee));
        let Some(signature) = signature.and_then(|&g| cx.globals.get(g).signature) else { continue };
        let Some(params) = cx.types.as_function(signature).map(|f| f.params.to_vec()) else { continue };
        for (i, (&argument, param)) in operands[1..].iter().zip(params).enumerate() {
            let found = body.ty(body.tail(argument));
            let to = narrowed(cx, found, param, &mut memo);
            if to != found {
                casts.push(Cast { argument: Link::Operand(call, i as u32 + 1), to });
            }
        }
    }
    casts
}

/// Returns the type `found` with its unknown parts replaced by the constants of `wanted`. Tuples
/// are processed with an explicit stack.
fn narrowed(cx: &mut Context, found: TypeId, wanted: TypeId, memo: &mut FxHashMap<(TypeId, TypeId), TypeId>) -> TypeId {
    let mut stack = vec![(found, wanted)];
    while let Some(&(found, wanted)) = stack.last() {
        if found == wanted || memo.contains_key(&(found, wanted)) {
            stack.pop();
            continue;
        }
        let new = match (cx.types.get(found), cx.types.get(wanted)) {
            (Type::Tensor(a), Type::Tensor(b)) if a.dtype == b.dtype => {
                let (a, b) = (a.clone(), b.clone());
                narrowed_tensor(cx, found, &a, &b)
            }
            (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
                let pairs: Vec<(TypeId, TypeId)> = a.iter().copied().zip(b.iter().copied()).collect();
                let height = stack.len();
                stack.extend(pairs.iter().filter(|p| p.0 != p.1 && !memo.contains_key(p)));
                if stack.len() > height {
                    continue;
                }
                let fields: Vec<TypeId> = pairs.iter().map(|p| memo.get(p).copied().unwrap_or(p.0)).collect();
                cx.types.tuple(&fields)
            }
            _ => found,
        };
        memo.insert((found, wanted), new);
        stack.pop();
    }
    memo.get(&(found, wanted)).copied().unwrap_or(found)
}

fn narrowed_tensor(cx: &mut Context, found: TypeId, a: &TensorType, b: &TensorType) -> TypeId {
    let dims = &mut cx.types.dims;
    let unknown = dims.unknown();
    // A symbol of the callee has no meaning here.
    let constant = |d: DimId| if matches!(dims.get(d), Dim::Const(_)) { d } else { unknown };
    let narrow = |a: DimId, b: DimId| match (dims.get(a), constant(b)) {
        (Dim::Const(_), _) => a,
        (_, b) if b == unknown => a,
        (_, b) => b,
    };
    let narrow_all = |a: Option<&[DimId]>, b: Option<&[DimId]>| -> Option<SmallVec<[DimId; 4]>> {
        match (a, b) {
            (Some(a), Some(b)) if a.len() == b.len() => Some(a.iter().zip(b).map(|(&a, &b)| narrow(a, b)).collect()),
            (None, Some(b)) => Some(b.iter().map(|&b| constant(b)).collect()),
            (a, _) => a.map(SmallVec::from_slice),
        }
    };
    let shape = narrow_all(a.shape.as_deref(), b.shape.as_deref());
    let elements = narrow_all(a.elements.as_deref(), b.elements.as_deref());
    let Some(shape) = shape else { return found };
    if a.elements.is_none() && elements.iter().flatten().all(|&d| d == unknown) && a.shape.as_ref() == Some(&shape) {
        return found;
    }
    let new = cx.types.tensor(a.dtype, &shape);
    match elements {
        Some(elements) => cx.types.with_elements(new, &elements),
        None => new,
    }
}

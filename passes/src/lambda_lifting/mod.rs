//! # LambdaLifting
//!
//! ```text
//! Notation   %f a variable that is bound to a fn, @h the function around it, %c a variable that
//!            the fn uses and does not bind.
//! Needs      A-normal form.
//! Effect     let %f = fn (%y) { B }   =>   let %f = make_closure(@h_f, %c…)
//!                                          and   def private @h_f(%y, %c…) { B }
//!            let %f = fn (%y) { B }   =>   nothing, and @h_f for %f
//!              if B uses nothing from outside but %f itself
//!            fn (%y) { B }            =>   make_closure(@h_fn, %c…) or @h_fn
//!              where the fn is the tail of a block
//! Captures   The captured variables become trailing parameters, in the order of their first uses.
//!            A fn G may name a fn F that captures something; F may be G itself or one around it.
//!            Then G takes the captures of F instead of F, and calls the function of F with them.
//!            If G uses F as a value, G makes the closure again, once at its beginning. If F has
//!            more than 16 captures and is not G, then G takes the closure of F instead.
//!            If the fn uses a symbolic dimension from outside, it captures a variable whose type
//!            has the dimension. If the fn captures nothing else and is only called, its own
//!            parameters may bind the dimension instead.
//! Names      <function>_<variable>, or <function>_fn; if that is taken, with _1, _2 and so on in
//!            program order. The attribute `global_symbol` of a fn names its function, and makes it
//!            external.
//! Order      The new functions follow the function that they come from, in the order in which
//!            their fns stood there.
//! Kept       Attributes, metadata, effects, types. A dataflow region dissolves if it calls a value
//!            that is no longer known to be pure (a closure that another one captures).
//! Not done   Functions that are values of attributes. Equal functions are not merged. Calls of a
//!            closure by the function that makes it stay calls of the closure.
//! Primitive  Functions with the attribute Primitive are rewritten like all others: that no
//!            function contains a fn is a property of the whole module.
//! Cost       A walk of each function that has a fn, a copy of the blocks of the fns, and time
//!            linear in the captures that are written. Idempotent.
//!
//! before     def @h(%x: int32) {
//!              let %f = fn (%y: int32) { add(%y, %x) };
//!              let %a = %f(1);
//!              %f(%a)
//!            }
//! after      def @h(%x: int32) {
//!              let %f = make_closure(@h_f, %x);
//!              let %a = %f(1);
//!              %f(%a)
//!            }
//!            def private @h_f(%y: int32, %x: int32) { add(%y, %x) }
//! ```

mod captures;
mod lift;

use anfora_ir::{
    Attr, AttrsId, BodyPurity, Context, Cursor, Expr, ExprId, Function, FunctionKey, GlobalId, LambdaId, Module,
    NameSupply, PerBlock, Purity, RegionWriter, Step, Transplant,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::RewriteError;
use rustc_hash::FxHashMap;

use self::captures::Captures;
use self::lift::{Head, Lifter};

register_pass! {
    /// Lifts lambdas to functions, and makes closures for what they capture
    pub LAMBDA_LIFTING = ModulePass("LambdaLifting", 1).needing(["anf"]).establishing(["no-nested-functions"]).breaking(["global-symbols"]);
    run |module, cx| {
        cx.count("lambdas", lift_lambdas(module)? as u64);
        Ok(())
    }
}

/// Makes a function of every lambda of a module, and returns the number of lambdas.
///
/// # Errors
/// If a function with a lambda is not in A-normal form, if the name that a lambda requests is
/// taken, or if no variable has a symbolic dimension that a lambda needs. The module may be half
/// rewritten then.
pub fn lift_lambdas(module: &mut Module) -> Result<usize, PassError> {
    // Find the functions with lambdas, and claim the names that lambdas request.
    let hosts: Vec<FunctionKey> = module
        .functions()
        .filter(|(_, f)| f.is_definition() && f.body.lambda_count() > 0)
        .map(|(key, _)| key)
        .collect();
    if hosts.is_empty() {
        return Ok(0);
    }
    let mut names = NameSupply::new(module);
    let asked_for = claim_names(module, &hosts, &mut names)?;
    let functions_before = module.order().len();
    let mut lifted: Vec<(FunctionKey, usize)> = Vec::with_capacity(hosts.len());
    let mut text = String::new();
    let mut transplant = Transplant::moving();
    let mut hides_callees = false;
    for host in hosts {
        // Find the captures, and give each lambda a name and a signature.
        if !module.cx.rewrites.may_rewrite() {
            break;
        }
        let name = module.name(host).to_string();
        let scratch = module.cx.scratch();
        let Some((function, cx)) = module.get_mut(host) else { continue };
        let body = &function.body;
        let in_function = |error: PassError| error.in_function(&name);
        let Some(captures) = Captures::of(cx, body, &scratch).map_err(in_function)? else { continue };
        hides_callees |= captures.hides_callees;
        let mut heads = Vec::with_capacity(captures.lambdas.len() - 1);
        for lambda in &captures.lambdas[1..] {
            let global = asked_for.get(&(host, lambda.lambda)).copied().unwrap_or_else(|| {
                text.clear();
                text.extend([name.as_str(), "_", lambda.name.map_or("fn", |n| cx.names.get(n))]);
                names.fresh(cx, &text)
            });
            heads.push(Head::of(cx, body, lambda, global));
        }
        heads.iter().for_each(|head| module.set_signature(head.global, head.signature));
        let Some((function, cx)) = module.get_mut(host) else { continue };
        // Move the lambdas into functions.
        let functions =
            lift(cx, function, &captures, heads, &mut transplant).map_err(|error| in_function(error.into()))?;
        // Both take as much memory as the functions.
        drop(captures);
        drop(scratch);
        module.reserve(functions.len());
        module.cx.rewrites.enter_function(Some(&name));
        module.cx.rewrites.note(None, "its lambdas became functions");
        let before = module.order().len();
        for (global, function) in functions {
            let added = module.add(global, function);
            assert!(added.is_ok(), "a fresh name has no function");
        }
        lifted.push((host, module.order().len() - before));
    }
    // Put the new functions behind those that they come from.
    let count = module.order().len() - functions_before;
    if count > 0 {
        let (before, mut added) = module.order().split_at(functions_before);
        let mut order = Vec::with_capacity(before.len() + count);
        let mut lifted = lifted.into_iter().peekable();
        for &key in before {
            order.push(key);
            if let Some((_, here)) = lifted.next_if(|&(host, _)| host == key) {
                order.extend(added.split_off(..here).unwrap_or_default());
            }
        }
        module.set_order(order);
    }
    if hides_callees {
        dissolve_impure_regions(module);
    }
    Ok(count)
}

/// Writes the functions of one body. If the type of its result changes, the function states the old
/// one and so keeps its signature.
fn lift(
    cx: &mut Context,
    function: &mut Function,
    captures: &Captures<'_>,
    heads: Vec<Head>,
    transplant: &mut Transplant<'_>,
) -> Result<Vec<(GlobalId, Function)>, RewriteError> {
    let body = &mut function.body;
    let functions = Lifter { cx, body, captures, heads, changed: FxHashMap::default() }.run(transplant)?;
    if function.ret.is_none() && body.type_of(body.root()) != captures.ty {
        function.ret = Some(captures.ty);
    }
    Ok(functions)
}

/// The globals of lambdas that request a name.
type Claims = FxHashMap<(FunctionKey, LambdaId), GlobalId>;

/// Returns the names that lambdas request by their attribute `global_symbol`.
fn claim_names(module: &mut Module, hosts: &[FunctionKey], names: &mut NameSupply) -> Result<Claims, PassError> {
    let mut claims = Claims::default();
    if module.cx.names.find("global_symbol").is_none() {
        return Ok(claims);
    }
    for &host in hosts {
        let Some(function) = module.get(host) else { continue };
        let mut lambdas = Vec::new();
        let mut cursor = Cursor::new(&function.body);
        while let Some(step) = cursor.next(&function.body) {
            if let Step::Enter(id) = step
                && let Expr::Lambda { lambda, .. } = function.body.expr(id)
                && let Some(name) = symbol_name(&module.cx, function.body.lambda(lambda).attrs)
            {
                lambdas.push((lambda, name));
            }
        }
        for (lambda, name) in lambdas {
            let Some(global) = names.exactly(&mut module.cx, &name) else {
                return Err(PassError::new(format!("a `fn` asks for the name `@{name}`, which is taken"))
                    .with_help("give it another `global_symbol`, or none")
                    .in_function(module.name(host)));
            };
            claims.insert((host, lambda), global);
        }
    }
    Ok(claims)
}

fn symbol_name(cx: &Context, attrs: AttrsId) -> Option<String> {
    match cx.attrs.get(cx.find_attr(attrs, "global_symbol")?) {
        Attr::Str(name) => Some(cx.names.get(*name).to_string()),
        _ => None,
    }
}

/// Dissolves dataflow regions that evaluate something impure. Takes time linear in the functions
/// that have regions.
fn dissolve_impure_regions(module: &mut Module) {
    let purity = Purity::of_module(module);
    for key in module.order().to_vec() {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        if !body.exprs().any(|(_, e)| matches!(e, Expr::Let { flags, .. } if flags.is_dataflow())) {
            continue;
        }
        let impure = BodyPurity::new(cx, body, &purity);
        let mut cursor = Cursor::with_regions(body);
        // The Lets of the open region, and true if one of them is impure.
        let mut region: PerBlock<(Vec<ExprId>, bool)> = PerBlock::default();
        while let Some(step) = cursor.next(body) {
            match step {
                Step::EnterBlock(..) => region.enter(),
                Step::Let(id) => {
                    if let Expr::Let { value, flags, .. } = body.expr(id)
                        && flags.is_dataflow()
                    {
                        region.0.push(id);
                        region.1 |= impure.is_impure(value);
                    }
                }
                Step::ExitRegion(_) => {
                    if let (lets, true) = std::mem::take(&mut *region) {
                        lets.into_iter().for_each(|id| RegionWriter::default().write(body, id));
                    }
                }
                Step::ExitBlock(..) => _ = region.exit(),
                _ => {}
            }
        }
    }
}

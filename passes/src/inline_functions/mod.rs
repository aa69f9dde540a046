//! # InlineFunctions
//!
//! ```text
//! Notation   @g a private function that is not recursive, B its block, %p its parameters,
//!            %a arguments.
//! Needs      A-normal form of @g, and of the functions that name it.
//! Effect     let %r = @g(%a…); rest      =>   B with %a for %p, spliced before rest, with its
//!                                             tail for %r
//!              If B ends in a tuple and %r is only projected, the fields take the places of the
//!              projections.
//!            make_closure(@g, %a…), @g   =>   fn (%p…) { B }, with %a for the last %p
//!            def private @g              =>   nothing
//!              if it was inlined, nothing names it any more and it is not external. A function
//!              with the attribute `global_symbol` is external, and stays.
//!            A fn that @g became, or that B has, loses the attribute `global_symbol`: the
//!            attribute names one function, and there may be several copies.
//! Lambdas    let %f = fn (%p…) { B }; … let %r = %f(%a…); rest
//!                =>   … B with %a for %p, spliced before rest, with its tail for %r
//!              if %f has no other use, and `functions` names no functions. With `only_lambdas`,
//!              this is all that the pass does.
//! Callees    All such functions, or those that the option `functions` names. The option may also
//!            name public functions, which stay after they are inlined. Primitive functions are
//!            inlined, and inlined into, like all others.
//! Budget     The module may grow by InlineFunctions.max_growth nodes in total (default 2^20;
//!            `unlimited`). If every use of a function is inlined and the function is removed, one
//!            copy does not count. Beyond the budget a function stays, and a remark says so.
//! Symbols    Those of @g become the dimensions that the types of the arguments have. If a type
//!            does not state a dimension, a match_cast of the argument determines it.
//! Stays      In a dataflow region, calls of functions that have control flow. Calls whose
//!            arguments a type rule in B refuses (which fail when they are evaluated). Functions
//!            that attributes name.
//! Kept       Effects: their number and order.
//! Not done   Calls of a fn with several uses stay calls, and so do those of a fn that binds
//!            symbols, or has attributes. The fns of primitive functions stay.
//! Cost       A walk of the module, two walks of each function that names an inlined function, and
//!            time linear in the nodes that are written. For lambdas, at most 8 rounds of three
//!            walks. Idempotent, unless the rounds are not enough or the budget is used up: the
//!            next run has a budget of its own.
//!
//! before     def @f(%x: int32) {                          after   def @f(%x: int32) {
//!              let %t = @g(%x);                                     let %s = add(%x, 1);
//!              let %a = %t.0;                                       let %n = negative(%s);
//!              let %b = %t.1;                                       multiply(%s, %n)
//!              multiply(%a, %b)                                   }
//!            }
//!            def private @g(%p: int32) {
//!              let %s = add(%p, 1);
//!              let %n = negative(%s);
//!              (%s, %n)
//!            }
//! ```

mod callee;
mod facts;
mod inliner;
mod lambdas;

use anfora_ir::{
    Context, Diagnostic, Function, FunctionKey, GlobalId, IdSet, Module, Severity, Visibility, did_you_mean,
};
use anfora_manager::{ConfigDef, PassError, register_pass};
use anfora_visit::{CallGraph, mutate_function};
use rustc_hash::FxHashSet;

use self::callee::{Before, Callee, Callees};
use self::facts::{InlineFacts, named_in};
use self::inliner::Inliner;
pub use self::lambdas::inline_lambdas;
use crate::private_functions::named_by_attrs;

register_pass! {
    /// Replaces calls of private functions that are not recursive by their blocks
    pub INLINE_FUNCTIONS = ModulePass("InlineFunctions", 2).needing(["anf"]).breaking(["no-nested-functions", "primitive-operators"]);
    options {
        /// functions to inline, separated by blanks, instead of all private ones
        functions: String = "",
        /// inline no functions, only lambdas that are called once
        only_lambdas: bool = false,
    }
    configs { MAX_INLINE_GROWTH }
    run {
        let functions: Vec<String> =
            functions.split_whitespace().map(|e| e.trim_start_matches('@').to_string()).collect();
        if only_lambdas && !functions.is_empty() {
            return Err(PassError::new("`functions` are given, and `only_lambdas` inlines none"));
        }
        move |module, cx| {
            if only_lambdas {
                cx.count("lambdas", inline_lambdas(module)? as u64);
                return Ok(());
            }
            let growth: Option<u64> = cx.config_of(&MAX_INLINE_GROWTH)?;
            let growth = growth.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
            let done = inline_functions(module, &functions, growth)?;
            cx.count("uses", done.uses as u64);
            cx.count("functions", done.functions as u64);
            cx.count("lambdas", done.lambdas as u64);
            done.remarks.into_iter().for_each(|r| cx.remark(r));
            Ok(())
        }
    }
}

/// The limit of the growth of the module by inlining.
pub const MAX_INLINE_GROWTH: ConfigDef = ConfigDef::limit(
    "InlineFunctions.max_growth",
    Some(1 << 20),
    "the greatest number of nodes that inlining may add to the module",
);

/// The result of inlining.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inlined {
    /// The number of calls, closures and values that were replaced by the blocks of functions.
    pub uses: usize,
    /// The number of removed functions.
    pub functions: usize,
    /// The number of lambdas whose blocks moved to their only call.
    pub lambdas: usize,
    /// True if some use stays because of the limit of growth.
    pub is_limited: bool,
    /// The reasons why functions were not inlined.
    pub remarks: Vec<Diagnostic>,
}

impl Inlined {
    /// The greatest number of functions with a remark of their own.
    pub const MAX_REMARKS: usize = 32;
}

/// Inlines the private functions of a module that are not recursive, as long as this adds at most
/// `max_growth` nodes, and then the lambdas that are called once. If `functions` is not empty,
/// inlines the functions that it names instead.
///
/// # Errors
/// If a function that names an inlined function is not in A-normal form, or if one of `functions`
/// is not defined.
pub fn inline_functions(
    module: &mut Module,
    functions: &[String],
    max_growth: Option<usize>,
) -> Result<Inlined, PassError> {
    let mut result = inline_uses(module, functions, max_growth)?;
    if functions.is_empty() {
        result.lambdas = inline_lambdas(module)?;
    }
    Ok(result)
}

/// Inlines functions where they are used.
fn inline_uses(module: &mut Module, functions: &[String], max_growth: Option<usize>) -> Result<Inlined, PassError> {
    let mut result = Inlined::default();
    let chosen = choose(module, functions)?;
    let graph = CallGraph::of(module);
    let is_candidate = |module: &Module, key: FunctionKey| {
        !graph.is_recursive(key)
            && module.get(key).is_some_and(|f| {
                f.is_definition()
                    && if functions.is_empty() { f.visibility == Visibility::Private } else { chosen.contains(&key) }
            })
    };
    for &key in module.order().iter().filter(|key| chosen.contains(key)) {
        let why = match module.get(key) {
            Some(function) if !function.is_definition() => "has no body",
            _ if graph.is_recursive(key) => "calls itself",
            _ => continue,
        };
        let message = format!("`@{}` is not inlined: it {why}", module.name(key));
        result.remarks.push(Diagnostic::new(Severity::Remark, message).in_function(module.name(key)));
    }
    let candidates: Vec<FunctionKey> = graph.callees_first().filter(|&key| is_candidate(module, key)).collect();
    if candidates.is_empty() {
        return Ok(result);
    }
    let facts = InlineFacts::of(module, &graph, &candidates);
    let in_attrs = named_by_attrs(module);
    let mut budget = Budget { left: max_growth, is_limited: false };
    let mut callees = callees_within(module, &candidates, &facts, &in_attrs, &mut budget, &mut result.remarks);
    let is_inlined = |key| module.get(key).and_then(Function::global).is_some_and(|g| callees.contains(g));
    let names_callees: Vec<bool> = module.order().iter().map(|&key| graph.callees(key).any(is_inlined)).collect();

    // Inline into the functions that stay: first those that are not inlined themselves, then those
    // that they still name.
    let (functions, cx) = module.get_all_mut();
    let goes =
        |f: &Function| !f.is_external(cx) && f.global().is_some_and(|g| callees.contains(g) && !in_attrs.contains(g));
    let mut stays: Vec<bool> = functions.iter().map(|(_, function)| !goes(function)).collect();
    let mut hosts: Vec<usize> = (0..stays.len()).rev().filter(|&position| stays[position]).collect();
    let mut functions: Vec<Option<&mut Function>> = functions.into_iter().map(|(_, function)| Some(function)).collect();
    while let Some(position) = hosts.pop() {
        if !names_callees[position] {
            continue;
        }
        let Some(host) = functions[position].take() else { continue };
        if let Some(callee) = host.global().and_then(|g| callees.get_mut(g)) {
            callee.before = Some(Box::new(Before { body: host.body.clone(), ret: host.ret }));
        }
        let inliner = Inliner::new(cx, &facts, &callees, &functions, &mut budget, position);
        result.uses += inline_into(cx, host, inliner)?;
        for global in named_in(&host.body, |global| callees.contains(global)) {
            let named = facts.position(global);
            if !std::mem::replace(&mut stays[named], true) {
                hosts.push(named);
            }
        }
        functions[position] = Some(host);
    }
    result.is_limited = budget.is_limited;
    let gone: Vec<FunctionKey> =
        module.order().iter().zip(stays).filter_map(|(&key, stays)| (!stays).then_some(key)).collect();
    if !gone.is_empty() {
        result.functions = gone.len();
        module.remove(&gone);
    }
    Ok(result)
}

/// Returns the candidates that are inlined, callees first, as long as the budget lasts. Adds a
/// remark for each of the first others.
fn callees_within(
    module: &Module,
    candidates: &[FunctionKey],
    facts: &InlineFacts,
    in_attrs: &IdSet<GlobalId>,
    budget: &mut Budget,
    remarks: &mut Vec<Diagnostic>,
) -> Callees {
    let mut callees = Callees::new(&module.cx);
    let mut unsaid = 0;
    for &key in candidates {
        let Some(function) = module.get(key) else { continue };
        let Some(global) = function.global() else { continue };
        let count = facts.uses(global);
        if count == 0 {
            continue;
        }
        let callee = Callee::of(&module.cx, function, facts.position(global), facts, &callees);
        let goes = !function.is_external(&module.cx) && !in_attrs.contains(global);
        let growth = callee.full_size.saturating_mul(if goes { count - 1 } else { count });
        if budget.spend(growth) {
            callees.insert(global, callee);
            continue;
        }
        if remarks.len() >= Inlined::MAX_REMARKS {
            unsaid += 1;
            continue;
        }
        let message = format!(
            "`@{}` stays: with it in the {count} places that use it, the module would grow by {growth} nodes, and {} are left",
            module.name(key),
            budget.left.unwrap_or(usize::MAX)
        );
        let help = "raise InlineFunctions.max_growth, or set it to unlimited";
        let remark = Diagnostic::new(Severity::Remark, message).with_help(help);
        remarks.push(remark.in_function(module.name(key)));
    }
    if unsaid > 0 {
        remarks.push(Diagnostic::new(Severity::Remark, format!("{unsaid} more functions stay")));
    }
    callees
}

/// Returns the functions named by the option.
fn choose(module: &Module, functions: &[String]) -> Result<FxHashSet<FunctionKey>, PassError> {
    let mut chosen = FxHashSet::default();
    for name in functions {
        match module.find(name) {
            Some(key) => {
                chosen.insert(key);
            }
            None => {
                let names: Vec<&str> = module.order().iter().map(|&k| module.name(k)).collect();
                return Err(PassError::new(format!("the function `@{name}` is not in the module"))
                    .with_optional_help(did_you_mean(name, names).map(|n| format!("did you mean `@{n}`?"))));
            }
        }
    }
    Ok(chosen)
}

/// The remaining growth of the module.
struct Budget {
    /// The number of nodes; `None` if there is no limit.
    left: Option<usize>,
    /// True if some use stays because of the limit.
    is_limited: bool,
}

impl Budget {
    /// Takes `growth` off the budget. Returns false if the budget does not allow it.
    fn spend(&mut self, growth: usize) -> bool {
        match self.left.map(|left| left.checked_sub(growth)) {
            Some(None) => {
                self.is_limited = true;
                return false;
            }
            Some(rest) => self.left = rest,
            None => {}
        }
        true
    }
}

/// Inlines into one function. Returns the number of replaced uses.
fn inline_into(cx: &mut Context, host: &mut Function, mut inliner: Inliner<'_, '_>) -> Result<usize, PassError> {
    let global = host.global();
    cx.rewrites.enter_function(global.map(|global| cx.global_name(global)));
    match mutate_function(cx, host, &mut inliner) {
        Ok(_) => Ok(inliner.uses),
        Err(error) => Err(PassError::from(error).in_function(global.map_or("", |global| cx.global_name(global)))),
    }
}

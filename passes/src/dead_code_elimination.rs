//! # DeadCodeElimination
//!
//! ```text
//! Notation   v a variable, e a value, @g a global.
//! Needs      A-normal form of the functions that stay.
//! Effect     let v = e; rest   =>   rest
//!              if neither the tail nor the bindings of rest that stay use v, and e is neither
//!              impure nor a match_cast
//!            def private @g    =>   nothing
//!              if @g cannot be reached, and is not external
//! Roots      External functions (public ones, and private ones with the attribute
//!            `global_symbol`, which a linker may find), those that attributes of the module name,
//!            and those of the option `entries`.
//! Reaches    A function reaches those that its live bindings and attributes name.
//! Never      Declarations, parameters, and parts of a function with the attribute Primitive are
//!            not removed. If a function that is reached is missing from the module, no function is
//!            removed, and a remark gives the reason: the functions that the missing one calls are
//!            not known.
//! Not done   Unused parameters and results stay.
//! Cost       One walk down and one sweep up each function that stays. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              let %a = add(%x, 1);                       let %b = multiply(%x, 2);
//!              let %b = multiply(%x, 2);                  %b
//!              let %c = add(%a, %a);                    }
//!              %b
//!            }
//!            def private @g() { 1 }
//! ```
//!
//! A dead If or lambda is removed with its contents. So is a recursive lambda that only its own
//! body uses.

use anfora_ir::{
    AttrsId, Body, Context, Diagnostic, Expr, ExprId, FunctionKey, GlobalId, GlobalTarget, LazyBodyPurity, Module,
    Purity, Severity, did_you_mean,
};
use anfora_manager::{PassContext, PassError, register_pass};
use anfora_visit::{BackwardSweep, Binding, GlobalWalk, sweep_back};
use rustc_hash::FxHashSet;

register_pass! {
    /// Removes bindings that nothing uses, and functions that nothing reaches
    pub DEAD_CODE_ELIMINATION = ModulePass("DeadCodeElimination", 1).needing(["anf"]);
    options {
        /// functions to keep besides the external ones, separated by blanks
        entries: String = "",
    }
    run {
        let entries: Vec<String> = entries.split_whitespace().map(|e| e.trim_start_matches('@').to_string()).collect();
        move |module, cx| {
            let purity = cx.analyses().of_module(module, Purity::of_module);
            let done = eliminate_dead_code(module, &purity, &entries, cx)?;
            cx.count("bindings", done.bindings as u64);
            cx.count("functions", done.functions as u64);
            done.remarks.into_iter().for_each(|r| cx.remark(r));
            Ok(())
        }
    }
}

/// The result of dead code elimination.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Eliminated {
    /// The number of removed bindings.
    pub bindings: usize,
    /// The number of removed functions.
    pub functions: usize,
    /// The reasons why nothing more was removed.
    pub remarks: Vec<Diagnostic>,
}

/// Removes the dead bindings of a module, and its unreachable functions. A function is reachable if
/// an external function ([`anfora_ir::Function::is_external`]), an attribute of the module, or a
/// function of `entries` reaches it. Functions are cleaned on the threads of the context; the
/// result does not depend on them.
///
/// # Errors
/// If a function that stays is not in A-normal form, or an entry is not defined.
pub fn eliminate_dead_code(
    module: &mut Module,
    purity: &Purity,
    entries: &[String],
    cx: &PassContext,
) -> Result<Eliminated, PassError> {
    // Begin with the entries, the attributes of the module and the external functions.
    let walk = GlobalWalk::new(&module.cx);
    let mut reach = Reach { order: Vec::new(), globals: FxHashSet::default(), walk };
    for entry in entries {
        match module.cx.find_global(entry).filter(|&g| module.cx.globals.get(g).target != GlobalTarget::Missing) {
            Some(global) => reach.global(global),
            None => return Err(unknown_entry(module, entry)),
        }
    }
    reach.attrs(&module.cx, module.attrs());
    module
        .functions()
        .filter(|(_, f)| f.is_external(&module.cx))
        .filter_map(|(_, f)| f.global())
        .for_each(|g| reach.global(g));

    // Clean the reached functions. Cleaning finds the functions that they reach, which are cleaned
    // in the next round.
    let mut result = Eliminated::default();
    let mut missing: Option<GlobalId> = None;
    let mut reached: FxHashSet<FunctionKey> = FxHashSet::default();
    let mut at = 0;
    while at < reach.order.len() {
        let mut round = Vec::new();
        for &global in &reach.order[at..] {
            match module.cx.globals.get(global).target.function() {
                Some(key) if reached.insert(key) => round.push(key),
                Some(_) => {}
                None => missing = missing.or(Some(global)),
            }
        }
        at = reach.order.len();
        result.bindings += clean_functions(module, purity, &mut reach, &round, cx)?;
    }
    // Remove the unreached functions. If a reached function is missing from the module, it may use
    // them, so they are only cleaned.
    let unreached: Vec<FunctionKey> = module
        .functions()
        .filter(|(k, f)| f.is_definition() && !f.is_external(&module.cx) && !reached.contains(k))
        .map(|(k, _)| k)
        .collect();
    match missing {
        // Unreached functions may name each other, so they go together.
        None => {
            module.cx.rewrites.enter_function(None);
            if !unreached.is_empty() && module.cx.rewrites.may_rewrite() {
                result.functions = unreached.len();
                module.cx.rewrites.note(None, "unreached functions were removed");
                for &key in unreached.iter().filter(|_| module.cx.rewrites.records_last()) {
                    module.cx.rewrites.enter_function(Some(module.name(key)));
                    module.cx.rewrites.note_also(None, "no function that others may call reaches it");
                }
                module.remove(&unreached);
            }
        }
        Some(global) => {
            result.bindings += clean_functions(module, purity, &mut reach, &unreached, cx)?;
            let name = module.cx.global_name(global);
            result.remarks.push(
                Diagnostic::new(
                    Severity::Remark,
                    format!("no function was removed, because `@{name}` is not in the module"),
                )
                .with_help(format!("declare it: `declare @{name}(…) -> …;`")),
            );
        }
    }
    Ok(result)
}

#[cold]
fn unknown_entry(module: &Module, entry: &str) -> PassError {
    let names: Vec<&str> = module.order().iter().map(|&k| module.name(k)).collect();
    PassError::new(format!("the entry `@{entry}` is not a function of the module"))
        .with_optional_help(did_you_mean(entry, names).map(|n| format!("did you mean `@{n}`?")))
}

/// Removes the dead bindings of these functions, and records the functions that they reach. Returns
/// the number of removed bindings.
fn clean_functions(
    module: &mut Module,
    purity: &Purity,
    reach: &mut Reach,
    keys: &[FunctionKey],
    cx: &PassContext,
) -> Result<usize, PassError> {
    let walk = &reach.walk;
    let cleaned = cx.edit_each(module, keys, |cx, function| {
        let mut live = Live { cx, effects: LazyBodyPurity::new(purity), walk, names: NamedGlobals::default() };
        live.attrs(function.attrs);
        live.attrs(function.meta);
        let removed = if !function.is_definition() {
            Ok(0)
        } else if function.is_primitive(cx) {
            live.names.in_whole_body = walk.may_name_in_body(&function.body);
            Ok(0)
        } else {
            sweep_back(cx, &mut function.body, &mut live)
        };
        (removed, live.names)
    });
    let mut bindings = 0;
    for (key, (removed, names)) in cleaned {
        bindings += removed.map_err(|error| PassError::from(error).in_function(module.name(key)))?;
        names.globals.iter().for_each(|&global| reach.global(global));
        names.attrs.iter().for_each(|&attrs| reach.attrs(&module.cx, attrs));
        if let Some(function) = module.get(key).filter(|_| names.in_whole_body) {
            let (walk, note) = reach.parts();
            walk.in_body(&module.cx, &function.body, note);
        }
    }
    Ok(bindings)
}

/// The reached globals, in the order in which they were reached.
struct Reach {
    order: Vec<GlobalId>,
    globals: FxHashSet<GlobalId>,
    walk: GlobalWalk,
}

impl Reach {
    /// Returns the walk that finds globals, and the closure that records them.
    #[inline]
    fn parts(&mut self) -> (&mut GlobalWalk, impl FnMut(GlobalId)) {
        let Reach { order, globals, walk } = self;
        let note = |global| {
            if globals.insert(global) {
                order.push(global);
            }
        };
        (walk, note)
    }

    fn global(&mut self, global: GlobalId) {
        self.parts().1(global);
    }

    /// Records the globals that attributes name, including those in functions that are attribute
    /// values.
    #[inline]
    fn attrs(&mut self, cx: &Context, attrs: AttrsId) {
        let (walk, note) = self.parts();
        walk.in_attrs(cx, attrs, note);
    }
}

/// The name under which near misses are recorded.
const PASS: &str = "DeadCodeElimination";

/// The names in the parts of a function that stay.
#[derive(Default)]
struct NamedGlobals {
    /// The globals, in the order of the sweep. One may occur several times.
    globals: Vec<GlobalId>,
    /// The attributes that may name globals, in that order.
    attrs: Vec<AttrsId>,
    /// True if all of the body stays and may name globals.
    in_whole_body: bool,
}

/// Decides which bindings of one body are live, and records the names in them.
struct Live<'a> {
    cx: &'a Context,
    effects: LazyBodyPurity<'a>,
    walk: &'a GlobalWalk,
    names: NamedGlobals,
}

impl Live<'_> {
    #[inline]
    fn attrs(&mut self, attrs: AttrsId) {
        if self.walk.may_name_in(self.cx, attrs) && self.names.attrs.last() != Some(&attrs) {
            self.names.attrs.push(attrs);
        }
    }
}

impl BackwardSweep for Live<'_> {
    #[inline]
    fn is_kept(&mut self, body: &Body, binding: Binding) -> bool {
        let is_cast =
            matches!(body.expr(binding.value), Expr::CallOp { op, .. } if self.cx.ops.facts(op).is_match_cast());
        let is_kept = is_cast || self.effects.is_impure(self.cx, body, binding.value);
        if is_kept && self.cx.rewrites.explains(PASS) {
            self.cx.nearly(body, binding.id, PASS, || match is_cast {
                true => "nothing uses it, but it checks a type".to_string(),
                false => "nothing uses it, but it has effects".to_string(),
            });
        }
        is_kept
    }

    #[inline]
    fn live_value(&mut self, body: &Body, value: ExprId) {
        match body.expr(value) {
            Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => self.attrs(attrs),
            Expr::Lambda { lambda, .. } => self.attrs(body.lambda(lambda).attrs),
            _ => {}
        }
    }

    #[inline]
    fn live_global(&mut self, global: GlobalId) {
        if self.names.globals.last() != Some(&global) {
            self.names.globals.push(global);
        }
    }
}

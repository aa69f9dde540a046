//! Checks rules 12 and 13, and starts the walk of each function.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ids::{Dangling, find_dangling};
use super::symbols::Symbols;
use super::types::TypeChecker;
use super::walk::{Problem, Reason, Suspect, Walked, walk};
use super::{Errors, Form, Place, in_function};
use crate::core::attr_names::GLOBAL_SYMBOL;
use crate::core::body::Body;
use crate::core::context::GlobalTarget;
use crate::core::entity::{AttrsId, EntityId, ExprId, FunctionAttrId, FunctionKey, GlobalId, NameId};
use crate::core::expr::{Expr, VarId};
use crate::core::function::{Function, FunctionKind};
use crate::core::module::Module;
use crate::core::phase::{Phase, STANDARD_PHASES};
use crate::ops::purity::{BodyPurity, Purity};
use crate::report::diagnostic::Diagnostic;
use crate::report::suggest::did_you_mean;
use crate::tables::attrs::Attr;
use crate::walk::attr_walk::AttrWalk;

/// The state of a verification. It takes functions one after the other.
pub(super) struct Verifier<'a> {
    pub(super) module: &'a Module,
    types: TypeChecker,
    pub(super) symbols: Symbols,
    /// The name of the function that contains each body, by the number of the body in `symbols`.
    pub(super) bodies: Vec<&'a str>,
    pub(super) errors: Errors,
    phase: Option<Phase>,
    /// Functions with their nodes that may be impure where this is not allowed.
    suspects: Vec<(&'a Function, &'a str, Vec<Suspect>)>,
    /// Lists of attributes that may contain functions and are still to be verified, with the
    /// function of the module that contains each list.
    pending: Vec<(AttrsId, Option<GlobalId>)>,
    seen_lists: FxHashSet<AttrsId>,
    seen_functions: FxHashSet<FunctionAttrId>,
    /// The `global_symbol`s of the definitions so far, with the names of the definitions.
    pub(super) linked: FxHashMap<NameId, &'a str>,
    sound: bool,
}

impl<'a> Verifier<'a> {
    pub(super) fn new(module: &'a Module) -> Verifier<'a> {
        let mut verifier = Verifier {
            module,
            types: TypeChecker::new(&module.cx),
            symbols: Symbols::new(&module.cx),
            bodies: Vec::new(),
            errors: Errors::new(),
            phase: None,
            suspects: Vec::new(),
            pending: Vec::new(),
            seen_lists: FxHashSet::default(),
            seen_functions: FxHashSet::default(),
            linked: FxHashMap::default(),
            sound: true,
        };
        verifier.phase = verifier.find_phase();
        verifier
    }

    /// Verifies a function and collects its errors. Returns the form of a definition.
    pub(super) fn function(&mut self, key: FunctionKey) -> Option<Form> {
        let Some(function) = self.module.get(key) else {
            self.errors.report(|| Diagnostic::error("the program order names a function that is not there"));
            return None;
        };
        let module = self.module;
        let name = function_name(module, function.global);
        let walked = self.body(function, function.global)?;
        self.signature(key, function, name);
        self.symbol(function, name);
        if !function.is_definition() {
            return None;
        }
        self.phase_rules(function);
        Some(walked.form)
    }

    /// Walks a body. Returns `None` if the body is not sound. Errors name the function `owner`: the
    /// function itself, or the function that has it as an attribute.
    fn body(&mut self, function: &'a Function, owner: Option<GlobalId>) -> Option<Walked> {
        let module = self.module;
        let name = function_name(module, owner);
        let (cx, body) = (&module.cx, &function.body);
        let errors = &mut self.errors;
        if let Some(Dangling { message, var }) = find_dangling(cx, function) {
            // The body cannot be walked, so the place of the error is unknown.
            errors.report(|| {
                let diagnostic = in_function(Diagnostic::error(message), name);
                match var.and_then(|v| var_name(module, body, v)) {
                    Some(binding) => diagnostic.on_binding(binding),
                    None => diagnostic,
                }
            });
            self.sound = false;
            return None;
        }
        self.symbols.begin_function();
        self.bodies.push(name);
        let mut report = |problem: Problem| {
            errors.report(|| diagnostic(module, body, name, problem));
        };
        let mut walked = walk(body, &mut self.types, &mut self.symbols, &mut report);
        if !walked.sound {
            self.sound = false;
            return None;
        }
        for (global, place) in walked.missing.drain(..) {
            errors.report(|| missing(module, body, name, global, place));
        }
        self.pending.extend(walked.function_attrs.drain(..).map(|a| (a, owner)));
        if !walked.suspects.is_empty() {
            self.suspects.push((function, name, std::mem::take(&mut walked.suspects)));
        }
        self.result(function, name, walked.tail);
        for attrs in [function.attrs, function.meta] {
            if !cx.function_attrs.is_empty() {
                self.pending.push((attrs, owner));
            }
        }
        Some(walked)
    }

    /// Checks that the stated result type accepts the type that the block returns, and names only
    /// symbols that the function binds.
    fn result(&mut self, function: &Function, name: &str, tail: ExprId) {
        let cx = &self.types.cx;
        if let Some(ret) = function.ret
            && function.is_definition()
        {
            let found = function.body.ty(tail);
            if !cx.types.accepts(ret, found) {
                let (ret, found) = (cx.type_text(ret), cx.type_text(found));
                self.errors.report(|| {
                    let message = format!("the function returns {found}, but {ret} is stated");
                    in_function(Diagnostic::error(message), name)
                });
            }
            if let Some(e) = self.symbols.check_type(cx, ret) {
                let message = format!("{}, in the result type", e.message(cx));
                self.errors.report(|| in_function(Diagnostic::error(message), name));
            }
        }
        if let Some(e) = self.symbols.check_attrs(&self.types.cx, function.attrs) {
            let message = e.message(&self.types.cx);
            self.errors.report(|| in_function(Diagnostic::error(message), name));
        }
        if let Some(global) = self.types.missing_global(function.attrs) {
            self.errors.report(|| missing(self.module, &function.body, name, global, Place::default()));
        }
    }

    fn signature(&mut self, key: FunctionKey, function: &Function, name: &str) {
        let cx = &self.module.cx;
        let Some(global) = function.global else {
            self.errors.report(|| Diagnostic::error("a function of the module has no name"));
            return;
        };
        let entry = cx.globals.get(global);
        let wanted = match function.kind {
            FunctionKind::Definition => GlobalTarget::Definition(key),
            FunctionKind::Declaration => GlobalTarget::Declaration(key),
        };
        if entry.target != wanted {
            self.errors.report(|| Diagnostic::error("the function's name does not lead back to it").in_function(name));
        }
        let Some(ret) = function.known_result_type() else {
            self.errors.report(|| {
                Diagnostic::error("a declaration states no result type")
                    .in_function(name)
                    .with_help("state it: `-> TYPE` behind the parameters")
            });
            return;
        };
        let expected = function.signature(&mut self.types.cx, ret);
        if entry.signature != Some(expected) {
            let cx = &self.types.cx;
            let expected = cx.type_text(expected);
            let found = entry.signature.map_or("not known".to_string(), |s| cx.type_text(s));
            self.errors.report(|| {
                Diagnostic::error(format!(
                    "the signature of the function is {expected}, but that of its name is {found}"
                ))
                .in_function(name)
            });
        }
    }

    /// Checks the `global_symbol` of a function: a linker takes one definition of each symbol.
    fn symbol(&mut self, function: &Function, name: &'a str) {
        let cx = &self.module.cx;
        if function.attrs == cx.attrs.empty() {
            return;
        }
        let Some(value) = cx.find_attr(function.attrs, GLOBAL_SYMBOL) else { return };
        let symbol = match *cx.attrs.get(value) {
            Attr::Str(symbol) if !cx.names.get(symbol).is_empty() => symbol,
            _ => {
                let message = "the attribute `global_symbol` of a function is a string that is not empty";
                self.errors.report(|| in_function(Diagnostic::error(message), name));
                return;
            }
        };
        if !function.is_definition() {
            return;
        }
        if let Some(other) = self.linked.insert(symbol, name) {
            let symbol = cx.names.get(symbol);
            self.errors.report(|| same_symbol(symbol, other, name));
        }
    }

    // ---- Functions in attributes ----

    /// Verifies the functions in the attributes that were collected.
    pub(super) fn function_attrs(&mut self) {
        let cx = &self.module.cx;
        if cx.function_attrs.is_empty() {
            return;
        }
        self.pending.push((self.module.attrs(), None));
        let mut walk = AttrWalk::new();
        while let Some((list, owner)) = self.pending.pop() {
            if !self.seen_lists.insert(list) {
                continue;
            }
            walk.add(&cx.attrs, list);
            while let Some((_, value)) = walk.next(&cx.attrs) {
                if let Attr::Function(f) = value
                    && self.seen_functions.insert(*f)
                {
                    self.body(&cx.function_attrs[*f], owner);
                }
            }
        }
    }

    // ---- Effects ----

    /// Checks rules 7 and 8 for observable effects. Every body must be sound.
    pub(super) fn effects(&mut self) {
        if self.suspects.is_empty() || !self.sound {
            return;
        }
        let module = self.module;
        let purity = Purity::of_module(module);
        for (function, name, suspects) in std::mem::take(&mut self.suspects) {
            let bodies = BodyPurity::new(&module.cx, &function.body, &purity);
            let mut reported = FxHashSet::default();
            for Suspect { node, place, reason } in suspects {
                let message = match reason {
                    Reason::InRegion if bodies.is_impure_call(node) => {
                        "a dataflow region holds no side effect, but this call may have one"
                    }
                    Reason::Shared if bodies.is_impure(node) && reported.insert(node) => {
                        "a shared node may have a side effect: it has to be bound by a `let`"
                    }
                    _ => continue,
                };
                let problem = Problem { place, message: message.to_string(), help: None };
                self.errors.report(|| diagnostic(module, &function.body, name, problem));
            }
        }
    }

    // ---- Phase ----

    fn find_phase(&mut self) -> Option<Phase> {
        self.module.claimed_phase().unwrap_or_else(|_| {
            self.errors.report(|| Diagnostic::error("the module's `phase` is not a number"));
            None
        })
    }

    fn phase_rules(&mut self, function: &Function) {
        let Some(claimed) = self.phase else { return };
        let begun = STANDARD_PHASES.iter().take_while(|p| p.phase <= claimed);
        for invariant in begun.flat_map(|p| p.invariants) {
            let Some(mut found) = invariant.violation(self.module, function) else { continue };
            found.message = format!("the module claims phase {claimed}, but {}", found.message);
            self.errors.report(|| found);
        }
    }
}

/// Returns the name of a global function, or an empty string if there is no global.
pub(super) fn function_name(module: &Module, global: Option<GlobalId>) -> &str {
    global.map_or("", |g| module.cx.global_name(g))
}

/// Returns the error for two definitions with the same symbol, in the function `name`.
pub(super) fn same_symbol(symbol: &str, other: &str, name: &str) -> Diagnostic {
    let message = format!("`@{other}` has the symbol \"{symbol}\" too");
    in_function(Diagnostic::error(message), name).with_help("give one of them another `global_symbol`")
}

/// Returns the name of a variable in a body whose ids may be out of range, or `None` if the id
/// names no variable with a name.
fn var_name(module: &Module, body: &Body, var: VarId) -> Option<String> {
    if var.index() >= body.len() {
        return None;
    }
    match body.expr(var.expr()) {
        Expr::Var { name: Some(name), .. } if name.index() < module.cx.names.len() => {
            Some(module.cx.names.get(name).to_string())
        }
        _ => None,
    }
}

#[cold]
fn diagnostic(module: &Module, body: &Body, function: &str, problem: Problem) -> Diagnostic {
    let Problem { place, message, help } = problem;
    Diagnostic { help, ..place.locate(module, body, function, Diagnostic::error(message)) }
}

fn missing(module: &Module, body: &Body, function: &str, global: GlobalId, place: Place) -> Diagnostic {
    let cx = &module.cx;
    let name = cx.global_name(global);
    let names = module.functions().filter_map(|(_, f)| f.global()).map(|g| cx.global_name(g));
    let help = did_you_mean(name, names.take(10_000)).map(|n| format!("did you mean `@{n}`?"));
    let problem = Problem { place, message: format!("nothing defines or declares `@{name}`"), help };
    diagnostic(module, body, function, problem)
}

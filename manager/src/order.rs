//! The check of the order of passes, before any of them runs.
//!
//! The passes are visited once, in order, and the last effect on each property is kept. A need that
//! was met before a fixpoint is met in its later rounds too, unless a pass in it breaks the
//! property. So the needs of a sequence are kept until it ends, once for each property. Linear in
//! the passes, including their dependencies.

use std::collections::HashMap;
use std::sync::Arc;

use anfora_ir::Module;

use crate::context::PassContext;
use crate::error::{FailureKind, MAX_NESTING, PassError, PassFailure};
use crate::info::{PassInfo, SkipReason};
use crate::pass::Pass;
use crate::properties::Properties;

/// A property that a pass needs.
struct Need {
    property: String,
    pass: String,
    /// The sequences around the pass, outermost first.
    path: Vec<String>,
    /// The step that established the property; absent if no pass before it does.
    met_by: Option<usize>,
}

/// The last effect of passes on a property.
struct Effect {
    property: String,
    step: usize,
    /// The pass that broke the property, as pipelines write it: it breaks the property, or
    /// establishes one that excludes it. Absent if the property holds.
    broken_by: Option<Arc<str>>,
}

enum Breaker {
    Pass(Arc<str>),
    /// The phase that the module claims, and the property that holds because of it.
    Claim(anfora_ir::Phase, String),
}

/// Checks whether passes that are about to run need properties that passes before them break, or
/// that the claim of the module excludes.
///
/// # Errors
/// If they do, naming the need and its breaker, or if a declared property does not exist.
pub(crate) fn check_order(pass: &dyn Pass, module: &Module, cx: &PassContext) -> Result<(), PassFailure> {
    let info = pass.info();
    if info.properties().next().is_none() && info.required.is_empty() && pass.passes().is_empty() {
        return Ok(());
    }
    let registry = cx.registry();
    let known = registry.properties_and_phases();
    let (around, effects, needs) = (cx.path(), Vec::new(), Vec::new());
    let mut order = Order { known, cx, around, effects, step: 0, needs, open: vec![(0, 0)] };
    order.visit(pass)?;
    let Some(claimed) = module.phase() else { return Ok(()) };
    for need in order.needs {
        let excluding = known.holding_from(claimed).into_iter().find(|&held| known.exclude(held, &need.property));
        if let Some(held) = excluding {
            return Err(failure(need, Breaker::Claim(claimed, held.to_string()), cx));
        }
    }
    Ok(())
}

struct Order<'a> {
    known: &'a Properties,
    cx: &'a PassContext,
    /// The names of the open sequences.
    around: Vec<String>,
    effects: Vec<Effect>,
    /// The number of effects so far.
    step: usize,
    /// The needs of the open sequences that no pass of the innermost one meets.
    needs: Vec<Need>,
    /// The first step and the first need of each open sequence, after those of the whole.
    open: Vec<(usize, usize)>,
}

impl Order<'_> {
    /// Visits the dependencies of a pass, and then the pass. If the dependencies cannot be made,
    /// the error is reported when the pass runs. Recursive, at most [`MAX_NESTING`] deep.
    fn visit(&mut self, pass: &dyn Pass) -> Result<(), PassFailure> {
        if !pass.info().required.is_empty() {
            for dependency in dependencies(pass.info(), self.cx).unwrap_or_default() {
                self.visit_itself(&*dependency.pass)?;
            }
        }
        self.visit_itself(pass)
    }

    fn visit_itself(&mut self, pass: &dyn Pass) -> Result<(), PassFailure> {
        self.check_needs(pass.info())?;
        if pass.passes().is_empty() {
            return self.effects(pass);
        }
        if self.around.len() == MAX_NESTING {
            let error = PassError::new(format!("passes nest more than {MAX_NESTING} deep"));
            return Err(PassFailure::from(error).at(&pass.info().name, || self.around.clone()));
        }
        let (start, first) = (self.step, self.needs.len());
        self.open.push((start, first));
        self.around.push(pass.info().name.clone());
        for inner in pass.passes() {
            if enabled(inner.info(), self.cx).is_ok() {
                self.visit(&**inner)?;
            }
        }
        self.open.pop();
        self.around.pop();
        let needs = self.needs.split_off(first);
        for need in needs {
            let effect = self.effect(&need.property).filter(|e| pass.max_rounds() > 1 && e.step >= start);
            if let Some(breaker) = effect.and_then(|e| e.broken_by.clone()) {
                return Err(failure(need, Breaker::Pass(breaker), self.cx));
            }
            self.keep(need);
        }
        self.effects(pass)
    }

    fn effect(&self, property: &str) -> Option<&Effect> {
        self.effects.iter().find(|e| e.property == property)
    }

    /// Records an effect of a pass. Breaking an already broken property keeps the first breaker.
    fn set(&mut self, property: &str, broken_by: Option<Arc<str>>) {
        let step = self.step;
        self.step += 1;
        match self.effects.iter_mut().find(|e| e.property == property) {
            Some(known) if known.broken_by.is_some() && broken_by.is_some() => {}
            Some(known) => (known.step, known.broken_by) = (step, broken_by),
            None => self.effects.push(Effect { property: property.to_string(), step, broken_by }),
        }
    }

    /// Keeps a need, unless a pass of the innermost sequence meets it or has it too.
    fn keep(&mut self, need: Need) {
        let (start, first) = *self.open.last().expect("the whole is open to the end");
        let is_met = need.met_by.is_some_and(|step| step >= start);
        if !is_met && !self.needs[first..].iter().any(|n| n.property == need.property) {
            self.needs.push(need);
        }
    }

    fn check_needs(&mut self, info: &PassInfo) -> Result<(), PassFailure> {
        for property in &info.needs {
            self.check_name(property, info)?;
            let effect = self.effect(property);
            let breaker = effect.and_then(|e| e.broken_by.clone());
            let met_by = effect.map(|e| e.step);
            let need = Need { property: property.clone(), pass: info.name.clone(), path: self.around.clone(), met_by };
            if let Some(breaker) = breaker {
                return Err(failure(need, Breaker::Pass(breaker), self.cx));
            }
            self.keep(need);
        }
        Ok(())
    }

    fn effects(&mut self, pass: &dyn Pass) -> Result<(), PassFailure> {
        let info = pass.info();
        if info.breaks.is_empty() && info.establishes.is_empty() {
            return Ok(());
        }
        let breaker: Arc<str> = pass.pipeline_text().into();
        let known = self.known;
        for property in &info.breaks {
            self.check_name(property, info)?;
            self.set(property, Some(breaker.clone()));
        }
        for property in &info.establishes {
            self.check_name(property, info)?;
            for excluded in known.excluded_by(property) {
                self.set(excluded, Some(breaker.clone()));
            }
        }
        for property in &info.establishes {
            self.set(property, None);
        }
        Ok(())
    }

    fn check_name(&self, property: &str, info: &PassInfo) -> Result<(), PassFailure> {
        let fail = |unknown| PassFailure::from(PassError::from(unknown)).at(&info.name, || self.around.clone());
        self.known.find(property).map(drop).map_err(fail)
    }
}

#[cold]
fn failure(need: Need, breaker: Breaker, cx: &PassContext) -> PassFailure {
    let property = &need.property;
    let (message, place) = match breaker {
        Breaker::Pass(pass) => (format!("it needs `{property}`, which `{pass}` breaks"), "between them"),
        Breaker::Claim(phase, held) => (
            format!("it needs `{property}`, but the module claims phase {phase}, from which on `{held}` holds"),
            "before it",
        ),
    };
    let mut error = PassError::new(message);
    let names = cx.registry().establishing(property);
    if !names.is_empty() {
        let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
        error = error.with_help(format!("run {} {place}", names.join(" or ")));
    }
    PassFailure::new(FailureKind::Order, error).at(&need.pass, || need.path)
}

/// Returns true if the context forces the pass to run, false if it allows it to run, and the reason
/// as an error if it does not.
pub(crate) fn enabled(info: &PassInfo, cx: &PassContext) -> Result<bool, SkipReason> {
    if cx.is_disabled(&info.name) {
        Err(SkipReason::Disabled)
    } else if cx.is_required(&info.name) {
        Ok(true)
    } else if info.opt_level > cx.opt_level() {
        Err(SkipReason::OptLevel { pass: info.opt_level, context: cx.opt_level() })
    } else {
        Ok(false)
    }
}

/// A pass that another pass depends on.
pub(crate) struct Dependency {
    pub(crate) pass: Arc<dyn Pass>,
    /// The name of the dependent pass.
    pub(crate) by: String,
}

/// Returns the passes that a pass depends on, each after its own dependencies.
pub(crate) fn dependencies(info: &PassInfo, cx: &PassContext) -> Result<Vec<Dependency>, PassError> {
    struct Open {
        info: PassInfo,
        /// Absent for the pass whose dependencies are returned.
        made: Option<Dependency>,
        next: usize,
    }
    let mut order = Vec::new();
    // True for names that are done; false for names that are open.
    let mut seen: HashMap<String, bool> = HashMap::from([(info.name.clone(), false)]);
    let mut open = vec![Open { info: info.clone(), made: None, next: 0 }];
    while let Some(top) = open.last_mut() {
        let Some(name) = top.info.required.get(top.next).cloned() else {
            let done = open.pop().expect("the last was just looked at");
            seen.insert(done.info.name, true);
            order.extend(done.made);
            continue;
        };
        top.next += 1;
        match seen.get(&name) {
            Some(true) => {}
            Some(false) => {
                let from = open.iter().position(|o| o.info.name == name).expect("an open name is on the stack");
                let mut names: Vec<&str> = open[from..].iter().map(|o| o.info.name.as_str()).collect();
                names.push(&name);
                return Err(PassError::new(format!("passes depend on each other: {}", names.join(" -> "))));
            }
            None => {
                let by = top.info.name.clone();
                let pass = cx.registry().make(&name).map_err(|e| {
                    let error =
                        PassError::new(format!("`{by}` depends on `{name}`, which cannot be made")).with_cause(e);
                    if !cx.registry().passes().is_empty() {
                        return error;
                    }
                    error.with_help("no pass is registered: give the context a registry, or the process a default one")
                })?;
                seen.insert(name, false);
                open.push(Open { info: pass.info().clone(), made: Some(Dependency { pass, by }), next: 0 });
            }
        }
    }
    Ok(order)
}

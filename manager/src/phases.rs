//! Phases: the properties that hold from each phase on, and the claim of a module to be in one.

use anfora_ir::{Module, Phase, STANDARD_PHASES};

use crate::error::PassError;
use crate::info::PassInfo;
use crate::names::UnknownName;
use crate::properties::Properties;

/// A phase: its number, its purpose, and the properties that hold from it on. The properties of
/// earlier phases hold too, unless one of these excludes them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhaseEntry {
    /// The number.
    pub phase: Phase,
    /// The purpose of the phase, in a line.
    pub doc: String,
    /// The names of the properties that hold from the phase on.
    pub properties: Vec<String>,
}

impl PhaseEntry {
    /// Makes a phase that adds no properties.
    ///
    /// Cost: linear in the text.
    pub fn new(phase: Phase, doc: impl Into<String>) -> PhaseEntry {
        PhaseEntry { phase, doc: doc.into(), properties: Vec::new() }
    }

    /// Adds properties that hold from the phase on.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn holding<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> PhaseEntry {
        self.properties.extend(properties.into_iter().map(Into::into));
        self
    }

    /// Returns the name of the pipeline that leads to the phase: `phase2.1`.
    pub fn pipeline_name(&self) -> String {
        format!("phase{}", self.phase)
    }
}

impl Properties {
    /// Returns the phase with this number.
    pub(crate) fn phase(&self, number: &str) -> Result<&PhaseEntry, UnknownName> {
        let phase: Option<Phase> = number.parse().ok();
        self.phases.iter().find(|e| Some(e.phase) == phase).ok_or_else(|| {
            let numbers: Vec<String> = self.phases.iter().map(|e| e.phase.to_string()).collect();
            UnknownName::new("phase", number, numbers.iter().map(String::as_str))
        })
    }

    /// Returns the properties that hold for a module that claims a phase, in the order of the
    /// phases.
    pub(crate) fn holding_from(&self, phase: Phase) -> Vec<&str> {
        let mut holding: Vec<&str> = Vec::new();
        for entry in self.phases.iter().take_while(|e| e.phase <= phase) {
            for property in &entry.properties {
                holding.retain(|held| held != property && !self.exclude(held, property));
                holding.push(property);
            }
        }
        holding
    }

    /// Returns the phase that a module may claim after a pass changed it, and the property that was
    /// broken; `None` if it may keep its claim.
    fn claim_after(&self, module: &Module, claimed: Phase, change: &Change) -> Option<(Option<Phase>, String)> {
        let info = change.info;
        let establishes = |property: &str| info.establishes.iter().any(|e| e == property);
        let breaks = |property: &str| {
            info.breaks.iter().any(|b| b == property)
                || info.establishes.iter().any(|e| self.exclude(e, property))
                || change.is_own && self.list.iter().any(|p| p.name() == property && p.is_lost(module))
        };
        let held = self.holding_from(claimed);
        let broken: Vec<&str> = held.iter().copied().filter(|&p| !establishes(p) && breaks(p)).collect();
        let first = broken.first()?.to_string();
        let holds = |p: &&str| establishes(p) || held.contains(p) && !broken.contains(p);
        let earlier = self.phases.iter().map(|e| e.phase).filter(|&p| p < claimed);
        Some((earlier.rev().find(|&phase| self.holding_from(phase).iter().all(holds)), first))
    }
}

/// The change of a module by a pass.
pub(crate) struct Change<'a> {
    pub(crate) info: &'a PassInfo,
    /// False for a sequence, whose passes have made the change.
    pub(crate) is_own: bool,
}

/// Lowers the claim of a module to a phase whose properties the pass that changed it has not
/// broken, and returns a message about that.
pub(crate) fn lower_claim(module: &mut Module, change: &Change, known: &Properties) -> Option<String> {
    let claimed = module.phase()?;
    let (now, broken) = known.claim_after(module, claimed, change)?;
    module.set_phase(now);
    let now = now.map_or("no phase any more".to_string(), |p| format!("phase {p} now"));
    Some(format!("the module claimed phase {claimed}; `{}` breaks `{broken}`, so it claims {now}", change.info.name))
}

/// Fails if a pass needs an observed property that does not hold for a module.
pub(crate) fn check_observed_needs(module: &Module, info: &PassInfo, known: &Properties) -> Result<(), PassError> {
    for name in &info.needs {
        if let Some(property) = known.list.iter().find(|p| p.name() == name && p.is_observed())
            && let Err(found) = property.check(module)
        {
            let error = PassError::from(found);
            let message = format!("it needs `{name}`, but {}", error.message());
            return Err(error.with_message(message));
        }
    }
    Ok(())
}

/// Fails if a property that is required from a phase on does not hold for a module.
pub(crate) fn check_property(module: &Module, known: &Properties, phase: Phase, name: &str) -> Result<(), PassError> {
    let Err(found) = known.find(name)?.check(module) else { return Ok(()) };
    let error = PassError::from(found);
    let message = format!("from phase {phase} on `{name}` holds, but {}", error.message());
    Err(error.with_message(message))
}

/// Checks the properties of the phase that a module claims, except for those that the verifier
/// checks for that phase. Fails if one of them does not hold.
pub(crate) fn check_claim(module: &Module, known: &Properties) -> Result<(), PassError> {
    let Some(claimed) = module.phase() else { return Ok(()) };
    let begun = STANDARD_PHASES.iter().take_while(|p| p.phase <= claimed);
    let verified: Vec<_> = begun.flat_map(|p| p.invariants).collect();
    for name in known.holding_from(claimed) {
        let invariant = known.find(name)?.invariant;
        if invariant.is_none_or(|i| !verified.contains(&&i)) {
            check_property(module, known, claimed, name)?;
        }
    }
    Ok(())
}

//! # EnterPhase
//!
//! ```text
//! Notation   p the phase that is asked for, q the one that the module claims.
//! Needs      The properties that hold from p on: those of p and of the phases before it.
//! Effect     #![phase=q]  =>  #![phase=p]     where q is less than p;
//!                                             likewise where the module claims none
//! Fails      Where one of those properties does not hold, with the function and the binding where
//!            it does not.
//! Not done   A claim is never lowered: passes that break what holds from q on do that.
//! Options    Without a phase, p is the greatest registered phase all of whose properties can be
//!            checked and hold. If there is none, nothing is done.
//! Cost       A walk for each of the properties. Idempotent.
//!
//! before     def @f(%x: int32) {                after   #![phase=1]
//!              let %a = negative(%x);
//!              %a                                       def @f(%x: int32) {
//!            }                                            let %a = negative(%x);
//!                                                         %a
//!                                                       }
//! ```
//!
//! The pipelines of the phases (`phase0`, `phase1` and so on) end with it.

use anfora_ir::{Module, Phase};

use crate::context::PassContext;
use crate::error::PassFailure;
use crate::info::{Outcome, PassInfo};
use crate::names::UnknownName;
use crate::pass::Pass;
use crate::phases::check_property;
use crate::properties::Properties;

/// The name of the pass that makes a module claim a phase.
pub(crate) const ENTER_PHASE: &str = "EnterPhase";

/// The option of that pass.
pub(crate) const PHASE_OPTION: &str = "phase";

/// A pass that makes the module claim a phase, after checking that all properties required from it
/// on hold. A module that claims a later phase keeps that claim.
pub(crate) struct EnterPhase {
    info: PassInfo,
    /// Absent for the greatest phase whose properties all hold.
    phase: Option<Phase>,
}

impl EnterPhase {
    /// Makes the pass for a phase of a registry, given as text; for an empty text, the pass for the
    /// greatest phase whose properties all hold.
    pub(crate) fn new(text: &str, known: &Properties) -> Result<EnterPhase, UnknownName> {
        let info = PassInfo::new(ENTER_PHASE, 0);
        if text.is_empty() {
            return Ok(EnterPhase { info, phase: None });
        }
        let phase = text.parse().ok().filter(|&wanted: &Phase| known.phases.iter().any(|e| e.phase == wanted));
        let Some(phase) = phase else {
            let numbers: Vec<String> = known.phases.iter().map(|e| e.phase.to_string()).collect();
            return Err(UnknownName::new("phase", text, numbers.iter().map(String::as_str)));
        };
        let holding = known.holding_from(phase);
        let info = info.needing(holding.iter().copied()).establishing(holding);
        Ok(EnterPhase { info, phase: Some(phase) })
    }
}

impl Pass for EnterPhase {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        let registry = cx.registry();
        let known = registry.properties_and_phases();
        let reached = match self.phase {
            Some(phase) => {
                for name in known.holding_from(phase) {
                    check_property(module, registry, phase, name)?;
                }
                Some(phase)
            }
            None => {
                // The later of two phases may release a property that the earlier requires, so each
                // phase is checked.
                let mut checked: Vec<(&str, bool)> = Vec::new();
                let mut holds = |name| match checked.iter().find(|c| c.0 == name) {
                    Some(&(_, holds)) => holds,
                    None => {
                        let holds = known.find(name).is_ok_and(|p| p.is_checkable() && p.check(module).is_ok());
                        checked.push((name, holds));
                        holds
                    }
                };
                let mut reached = None;
                for entry in &known.phases {
                    if known.holding_from(entry.phase).into_iter().all(&mut holds) {
                        reached = Some(entry.phase);
                    }
                }
                reached
            }
        };
        if reached > module.phase() {
            module.set_phase(reached);
        }
        Ok(Outcome::Changed)
    }
}

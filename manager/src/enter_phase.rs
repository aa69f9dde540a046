//! # EnterPhase
//!
//! ```text
//! Notation   p the phase of the option, q the phase that the module claims.
//! Needs      The properties that hold from p on: those of p and of the phases before it.
//! Effect     #![phase=q]  =>  #![phase=p]     where q is less than p;
//!                                             likewise where the module claims none
//! Fails      If one of those properties does not hold. The error names the function and the
//!            binding.
//! Not done   A claim is never lowered: a pass that breaks a property of q does that.
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

use std::sync::Arc;

use anfora_ir::{Module, Phase};
use rustc_hash::FxHashSet;

use crate::config::{ConfigError, OptionDef, Options};
use crate::context::PassContext;
use crate::error::PassFailure;
use crate::info::{Declare, Outcome, PassInfo};
use crate::named_pipeline::PipelineText;
use crate::names::UnknownName;
use crate::pass::Pass;
use crate::phases::{PhaseEntry, check_property};
use crate::properties::{Properties, Property};
use crate::registry::{MakeError, PassRegistry, RegisteredPass, RegistryError};

/// The name of the pass that makes a module claim a phase.
const ENTER_PHASE: &str = "EnterPhase";

/// The option of that pass.
const PHASE_OPTION: &str = "phase";

impl PassRegistry {
    /// Registers the pipeline that leads to a phase, or nothing. Its name is `phase` and the
    /// number. It runs these passes, and then `EnterPhase{phase=…}`, which checks that all required
    /// properties hold, and makes the module claim the phase. The pass `EnterPhase` is registered
    /// too, if it is not yet.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If there is no such phase, or the name of the pipeline or that of `EnterPhase` is taken.
    pub fn register_megapass(
        &mut self,
        phase: Phase,
        passes: impl Into<PipelineText>,
        doc: impl Into<String>,
    ) -> Result<(), RegistryError> {
        let name = self.properties_and_phases().phase(&phase.to_string())?.pipeline_name();
        self.check_free(&name)?;
        if !std::mem::replace(&mut self.has_enter_phase, true) {
            let added = self.add_pass(enter_phase());
            self.has_enter_phase = added.is_ok();
            added?;
        }
        let last = format!("{ENTER_PHASE}{{{PHASE_OPTION}={phase}}}");
        self.register_pipeline(name, passes.into().followed_by(last), doc)
    }
}

fn enter_phase() -> RegisteredPass {
    const OPTIONS: &[OptionDef] =
        &[OptionDef::text(PHASE_OPTION, "", "the number of the phase; if empty, the greatest whose properties hold")];
    let maker = |options: &Options, known: &Properties| -> Result<Arc<dyn Pass>, MakeError> {
        let failed = |e: ConfigError| MakeError::Failed { name: ENTER_PHASE.to_string(), error: e.into() };
        let phase: String = options.get(PHASE_OPTION).map_err(failed)?;
        Ok(Arc::new(EnterPhase::new(phase.trim(), known)?))
    };
    RegisteredPass {
        name: ENTER_PHASE.to_string(),
        doc: "Sets the phase that the module claims, if the properties of the phase hold".to_string(),
        opt_level: 0,
        options: OPTIONS,
        maker: Arc::new(maker),
    }
}

/// A pass that makes the module claim a phase, after checking that all properties required from it
/// on hold. A module that claims a later phase keeps that claim.
struct EnterPhase {
    info: PassInfo,
    /// Absent for the greatest phase whose properties all hold.
    phase: Option<Phase>,
}

impl EnterPhase {
    /// Makes the pass for a phase of a registry, given as text; for an empty text, the pass for the
    /// greatest phase whose properties all hold.
    fn new(text: &str, known: &Properties) -> Result<EnterPhase, UnknownName> {
        let info = PassInfo::new(ENTER_PHASE, 0);
        if text.is_empty() {
            return Ok(EnterPhase { info, phase: None });
        }
        let phase = known.phase(text)?.phase;
        let holding = known.holding_from(phase);
        // The pass itself checks all of them.
        let is_declared = |name: &&str| known.list.iter().any(|p| p.name() == *name && !p.is_observed());
        let info = info.needing(holding.iter().copied().filter(is_declared)).establishing(holding);
        Ok(EnterPhase { info, phase: Some(phase) })
    }
}

impl Pass for EnterPhase {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        let known = cx.registry().properties_and_phases();
        let reached = match self.phase {
            Some(phase) => {
                for name in known.holding_from(phase) {
                    check_property(module, known, phase, name)?;
                }
                Some(phase)
            }
            None => {
                let holds = |p: &&Property| p.is_checkable() && p.check(module).is_ok();
                let holding: FxHashSet<&str> = known.list.iter().filter(holds).map(Property::name).collect();
                // The later of two phases may release a property that the earlier requires, so each
                // phase is checked.
                let all_hold = |e: &&PhaseEntry| known.holding_from(e.phase).iter().all(|name| holding.contains(name));
                known.phases.iter().rev().find(all_hold).map(|e| e.phase)
            }
        };
        if reached > module.phase() {
            module.set_phase(reached);
        }
        Ok(Outcome::Changed)
    }
}

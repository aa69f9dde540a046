//! Phases: the stages of a module on its way through a compiler, and the invariants that hold from
//! each of them on.
//!
//! A module claims a phase with its attribute `phase`. The verifier checks the [`Invariant`]s of
//! the [`STANDARD_PHASES`] up to that phase (rule 13); the pass manager knows the invariants of an
//! embedder's own phases.

use std::fmt;
use std::str::FromStr;

use crate::core::invariant::Invariant;
use crate::core::module::Module;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
use crate::tables::attrs::Attr;

/// The attribute of modules that holds their phase.
pub const PHASE: &str = "phase";

/// The number of a phase: 0, 1, 2.1, or a number in between such as 1.5. Later phases have greater
/// numbers.
#[derive(Copy, Clone, Debug)]
pub struct Phase(f64);

impl Phase {
    /// Returns the phase with a number; `None` if it is infinite or not a number.
    pub fn new(number: f64) -> Option<Phase> {
        // Adding 0.0 maps both zeros to the same phase.
        number.is_finite().then_some(Phase(number + 0.0))
    }

    /// Returns the number.
    pub fn number(self) -> f64 {
        self.0
    }
}

impl PartialEq for Phase {
    fn eq(&self, other: &Phase) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Phase {}

impl PartialOrd for Phase {
    fn partial_cmp(&self, other: &Phase) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Phase {
    fn cmp(&self, other: &Phase) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Writes the number as in pipelines and attributes: `0`, `2.1`.
impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error for a text that is not the number of a phase.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not the number of a phase, such as `1` or `2.1`")]
pub struct PhaseError(String);

impl FromStr for Phase {
    type Err = PhaseError;

    fn from_str(text: &str) -> Result<Phase, PhaseError> {
        text.parse().ok().and_then(Phase::new).ok_or_else(|| PhaseError(text.to_string()))
    }
}

/// A phase that the verifier knows.
#[derive(Copy, Clone, Debug)]
pub struct StandardPhase {
    /// Its number.
    pub phase: Phase,
    /// The purpose of the phase, in a line.
    pub doc: &'static str,
    /// The invariants that hold from this phase on, in addition to those of earlier phases.
    pub invariants: &'static [Invariant],
}

/// The phases that the verifier knows, earliest first. They follow a proposal of S. Lyubomirsky and
/// P. Srivastava for TVM's Relax; their invariants are the part of that proposal that applies to
/// programs without memory, devices and a virtual machine.
pub const STANDARD_PHASES: &[StandardPhase] = &[
    StandardPhase {
        phase: Phase(0.0),
        doc: "ingestion",
        invariants: &[Invariant::ANormalForm, Invariant::NoNestedFunctions],
    },
    StandardPhase { phase: Phase(1.0), doc: "optimizations", invariants: &[] },
    StandardPhase {
        phase: Phase(2.1),
        doc: "early build",
        invariants: &[Invariant::NoDataflowRegions, Invariant::PrimitiveOperators],
    },
    StandardPhase { phase: Phase(2.2), doc: "target-specific passes", invariants: &[] },
    StandardPhase { phase: Phase(2.3), doc: "lowering", invariants: &[Invariant::GlobalSymbols] },
];

impl Module {
    /// Returns the phase that the module claims; `None` if it claims none, or if its attribute
    /// `phase` is not the number of a phase.
    ///
    /// Cost: one entry.
    pub fn phase(&self) -> Option<Phase> {
        self.claimed_phase().ok().flatten()
    }

    /// Returns the phase that the module claims, if it claims one; an error if its attribute
    /// `phase` is not the number of a phase.
    pub(crate) fn claimed_phase(&self) -> Result<Option<Phase>, PhaseError> {
        let Some(value) = self.cx.find_attr(self.attrs(), PHASE) else { return Ok(None) };
        match self.cx.attrs.get(value) {
            Attr::Int(i) => Ok(Phase::new(*i as f64)),
            Attr::Float(bits) => {
                let number = f64::from_bits(*bits);
                Phase::new(number).map(Some).ok_or_else(|| PhaseError(number.to_string()))
            }
            Attr::Str(name) => self.cx.names.get(*name).parse().map(Some),
            _ => Err(PhaseError("…".to_string())),
        }
    }

    /// Sets or removes the phase that the module claims.
    ///
    /// Cost: one entry.
    pub fn set_phase(&mut self, phase: Option<Phase>) {
        let value = phase.map(|Phase(number)| {
            let whole = number as i64;
            if whole as f64 == number { self.cx.int_attr(whole) } else { self.cx.float_attr(number) }
        });
        let attrs = self.cx.with_attr(self.attrs(), PHASE, value);
        self.set_attrs(attrs);
    }
}

impl IntoDiagnostics for PhaseError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

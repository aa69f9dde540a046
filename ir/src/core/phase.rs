//! Phases: how far a module has come on its way through a compiler, and what holds from there on.
//!
//! A module claims a phase with its attribute `phase`. The verifier holds it to the [`Invariant`]s of the [`STANDARD_PHASES`] up to that one (rule 13);
//! what holds from a phase of an embedder on, the pass manager knows.

use std::fmt;
use std::str::FromStr;

use crate::core::invariant::Invariant;
use crate::core::module::Module;
use crate::tables::attrs::Attr;

/// The attribute of modules that says which phase they are in.
pub const PHASE: &str = "phase";

/// The number of a phase: 0, 1, 2.1, or one in between such as 1.5. Later phases have greater numbers.
#[derive(Copy, Clone, Debug)]
pub struct Phase(f64);

impl Phase {
    /// Returns the phase of a number; `None` if it is infinite or not a number.
    pub fn new(number: f64) -> Option<Phase> {
        // Both zeros are one phase.
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

/// As pipelines and attributes write it: `0`, `2.1`.
impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not the number of a phase.
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
    /// What it is for, in a line.
    pub doc: &'static str,
    /// What holds from it on, besides what held before.
    pub invariants: &'static [Invariant],
}

/// The phases that the verifier knows, earliest first. They follow a proposal of S. Lyubomirsky and P. Srivastava for TVM's Relax; of what holds there, this has what can be
/// said of programs without memory, devices and a virtual machine.
pub const STANDARD_PHASES: &[StandardPhase] = &[
    StandardPhase {
        phase: Phase(0.0),
        doc: "ingestion",
        invariants: &[Invariant::ANormalForm, Invariant::NoNestedFunctions],
    },
    StandardPhase { phase: Phase(1.0), doc: "optimizations", invariants: &[] },
    StandardPhase { phase: Phase(2.1), doc: "early build", invariants: &[Invariant::NoDataflowRegions] },
    StandardPhase { phase: Phase(2.2), doc: "target-specific passes", invariants: &[] },
    StandardPhase { phase: Phase(2.3), doc: "lowering", invariants: &[Invariant::GlobalSymbols] },
];

impl Module {
    /// Returns the phase that the module claims; `None` if it claims none, or its attribute `phase`
    /// is not the number of one.
    ///
    /// Cost: one entry.
    pub fn phase(&self) -> Option<Phase> {
        self.claimed_phase().ok().flatten()
    }

    /// Returns the phase that the module claims, if it claims one; an error if its attribute
    /// `phase` is not the number of one.
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

    /// Makes the module claim a phase, or none.
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

//! What is known about a pass without running it, and what came of running it.

use std::fmt;

use crate::analyses::PreservedAnalysis;

/// A pass's name, the level from which it runs, and the passes that it depends on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassInfo {
    /// The name, as pipelines write it.
    pub name: String,
    /// It runs under contexts whose level is at least this.
    pub opt_level: u8,
    /// Names of passes that have to have finished on the module as it is. They are made by the registry of the context.
    pub required: Vec<String>,
    /// Analyses whose results stay right when the pass changes something. Those of what a pass leaves alone are right anyway.
    pub preserved: Vec<PreservedAnalysis>,
}

impl PassInfo {
    /// A pass that depends on no other.
    pub fn new(name: impl Into<String>, opt_level: u8) -> PassInfo {
        PassInfo { name: name.into(), opt_level, required: Vec::new(), preserved: Vec::new() }
    }

    /// Adds dependencies.
    #[must_use]
    pub fn requiring<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> PassInfo {
        self.required.extend(names.into_iter().map(Into::into));
        self
    }

    /// Says that results of an analysis, known by their type, stay right when the pass changes something: neither the functions nor the expressions that they
    /// speak of are others then. Builds with debug assertions work them out again and fail the pass if they are not the same. Of a sequence it says nothing.
    #[must_use]
    pub fn preserving<T: PartialEq + Send + Sync + 'static>(mut self) -> PassInfo {
        self.preserved.push(PreservedAnalysis::of::<T>());
        self
    }
}

/// What running a pass did to the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The pass wrote to the module. Edits may have cancelled out.
    Changed,
    /// The module is exactly as it was.
    Unchanged,
    /// The context did not let the pass run.
    Skipped(SkipReason),
}

impl Outcome {
    /// Whether the pass wrote to the module.
    pub fn is_changed(&self) -> bool {
        *self == Outcome::Changed
    }

    /// Whether the context did not let the pass run.
    pub fn is_skipped(&self) -> bool {
        matches!(self, Outcome::Skipped(_))
    }
}

/// Why a context did not let a pass run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SkipReason {
    /// The context names it among the disabled passes.
    Disabled,
    /// The context's level is lower than the pass's.
    OptLevel {
        /// The level from which the pass runs.
        pass: u8,
        /// The level of the context.
        context: u8,
    },
    /// Instruments of these names said no.
    Vetoed(Vec<String>),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Disabled => f.write_str("it is disabled"),
            SkipReason::OptLevel { pass, context } => {
                write!(f, "it runs from level {pass}, and the level is {context}")
            }
            SkipReason::Vetoed(names) => write!(f, "{} did not let it run", names.join(", ")),
        }
    }
}

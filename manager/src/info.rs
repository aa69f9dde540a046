//! What is known about a pass without running it, and what came of running it.

use std::fmt;

use crate::analyses::PreservedAnalysis;

/// A pass's name, the level from which it runs, the passes that it depends on, and the properties of modules that it is about.
///
/// A property that is neither established nor broken is left as it is. What a pass establishes, it establishes in the functions that it works on: those that it leaves
/// alone, such as a [`FunctionPass`](crate::FunctionPass) those marked `SkipOptimization`, keep their own. What a sequence says of properties comes after what its passes
/// say.
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
    /// Names of properties without which it cannot do its work. An order of passes that cannot provide one is refused before any of them runs.
    pub needs: Vec<String>,
    /// Names of properties that hold when it is done.
    pub establishes: Vec<String>,
    /// Names of properties that may not hold any more when it is done. What those that it establishes exclude is broken too.
    pub breaks: Vec<String>,
}

impl PassInfo {
    /// A pass that depends on no other.
    ///
    /// Cost: linear in the text.
    pub fn new(name: impl Into<String>, opt_level: u8) -> PassInfo {
        PassInfo {
            name: name.into(),
            opt_level,
            required: Vec::new(),
            preserved: Vec::new(),
            needs: Vec::new(),
            establishes: Vec::new(),
            breaks: Vec::new(),
        }
    }

    /// Adds dependencies.
    ///
    /// Cost: linear in the text.
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

    /// Adds properties that it needs.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn needing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> PassInfo {
        self.needs.extend(properties.into_iter().map(Into::into));
        self
    }

    /// Adds properties that it establishes.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn establishing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> PassInfo {
        self.establishes.extend(properties.into_iter().map(Into::into));
        self
    }

    /// Adds properties that it breaks.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn breaking<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> PassInfo {
        self.breaks.extend(properties.into_iter().map(Into::into));
        self
    }

    /// The names of the properties that it is about.
    pub(crate) fn properties(&self) -> impl Iterator<Item = &str> {
        self.needs.iter().chain(&self.establishes).chain(&self.breaks).map(String::as_str)
    }

    /// Whether it says nothing of any property.
    pub(crate) fn declares_nothing(&self) -> bool {
        self.needs.is_empty() && self.establishes.is_empty() && self.breaks.is_empty()
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

//! The description of a pass, and the outcome of running it.

use std::fmt;

use crate::analyses::PreservedAnalysis;

/// The name of a pass, the level from which it runs, the passes that it depends on, and the
/// properties of modules that it needs and changes.
///
/// A property that is neither established nor broken stays as it is, unless the manager
/// [observes](crate::Property::observed_by) it. A pass establishes a property only in the functions
/// that it works on: functions that it skips, as a [`FunctionPass`](crate::FunctionPass) skips
/// those marked `SkipOptimization`, keep their own properties. The properties that a sequence
/// establishes and breaks are applied after those of its passes.
#[derive(Clone, PartialEq, Debug)]
pub struct PassInfo {
    /// The name, as pipelines write it.
    pub name: String,
    /// The least level of the contexts under which the pass runs.
    pub opt_level: u8,
    /// Names of passes that have to have run on the module in its present state. The registry of
    /// the context makes them.
    pub required: Vec<String>,
    /// Analyses whose results stay valid when the pass changes something. The results for functions
    /// that the pass does not change stay valid anyway.
    pub preserved: Vec<PreservedAnalysis>,
    /// Names of properties that have to hold for the pass to work. An order of passes that cannot
    /// provide one of them is refused before any of them runs.
    pub needs: Vec<String>,
    /// Names of properties that hold when the pass is done.
    pub establishes: Vec<String>,
    /// Names of properties that may not hold any more when the pass is done. Properties that an
    /// established property excludes are broken too.
    pub breaks: Vec<String>,
    /// By how much floats may differ after the pass because of rounding, relative to the larger
    /// value, or to 1 if both are smaller. It is 0 for a pass that keeps every bit, as most passes
    /// do. It is infinite for a pass that computes in fewer bits, after which a comparison may go
    /// the other way and anything may differ.
    pub tolerance: f64,
}

impl PassInfo {
    /// Makes the description of a pass that depends on no other pass.
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
            tolerance: 0.0,
        }
    }

    /// Returns the names of the properties that the pass needs, establishes or breaks.
    pub(crate) fn properties(&self) -> impl Iterator<Item = &str> {
        self.needs.iter().chain(&self.establishes).chain(&self.breaks).map(String::as_str)
    }
}

/// The declarations of a pass, which its [`PassInfo`] holds: a [`PassInfo`] takes them, and so does
/// a pass that is made from a closure.
pub trait Declare: Sized {
    /// Returns the description that the declarations go to.
    fn info_mut(&mut self) -> &mut PassInfo;

    /// Adds passes that this pass depends on.
    ///
    /// Cost: linear in the text.
    #[must_use]
    fn requiring<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.info_mut().required.extend(names.into_iter().map(Into::into));
        self
    }

    /// Declares that results of an analysis, identified by their type, stay valid when the pass
    /// changes something: the functions and expressions that they refer to stay the same. Builds
    /// with debug assertions compute the results again and fail the pass if they differ. For a
    /// sequence the declaration has no effect.
    #[must_use]
    fn preserving<T: PartialEq + Send + Sync + 'static>(mut self) -> Self {
        self.info_mut().preserved.push(PreservedAnalysis::of::<T>());
        self
    }

    /// Adds properties that the pass needs.
    ///
    /// Cost: linear in the text.
    #[must_use]
    fn needing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> Self {
        self.info_mut().needs.extend(properties.into_iter().map(Into::into));
        self
    }

    /// Adds properties that the pass establishes.
    ///
    /// Cost: linear in the text.
    #[must_use]
    fn establishing<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> Self {
        self.info_mut().establishes.extend(properties.into_iter().map(Into::into));
        self
    }

    /// Adds properties that the pass breaks.
    ///
    /// Cost: linear in the text.
    #[must_use]
    fn breaking<S: Into<String>>(mut self, properties: impl IntoIterator<Item = S>) -> Self {
        self.info_mut().breaks.extend(properties.into_iter().map(Into::into));
        self
    }

    /// Sets by how much floats may differ after the pass: see [`PassInfo::tolerance`].
    #[must_use]
    fn with_tolerance(mut self, tolerance: f64) -> Self {
        self.info_mut().tolerance = tolerance;
        self
    }
}

impl Declare for PassInfo {
    fn info_mut(&mut self) -> &mut PassInfo {
        self
    }
}

/// The effect of a run of a pass on the module.
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
    /// Returns true if the pass wrote to the module.
    pub fn is_changed(&self) -> bool {
        *self == Outcome::Changed
    }

    /// Returns true if the context did not let the pass run.
    pub fn is_skipped(&self) -> bool {
        matches!(self, Outcome::Skipped(_))
    }
}

/// The reason why a context did not let a pass run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SkipReason {
    /// The pass is disabled in the context.
    Disabled,
    /// The level of the context is lower than that of the pass.
    OptLevel {
        /// The level from which the pass runs.
        pass: u8,
        /// The level of the context.
        context: u8,
    },
    /// Instruments with these names did not let the pass run.
    Vetoed(Vec<String>),
    /// The limit of rewrites was reached by the passes before.
    RewriteLimit,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Disabled => f.write_str("it is disabled"),
            SkipReason::OptLevel { pass, context } => {
                write!(f, "it runs from level {pass}, and the level is {context}")
            }
            SkipReason::Vetoed(names) => write!(f, "{} did not let it run", names.join(", ")),
            SkipReason::RewriteLimit => f.write_str("the limit of rewrites is reached"),
        }
    }
}

/// The unit that a pass works on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PassKind {
    /// The module as a whole, in one transaction.
    Module,
    /// One function after the other, in one transaction.
    Function,
    /// One dataflow region after the other, in one transaction.
    DataflowBlock,
    /// The pass runs other passes, each of which is a transaction of its own, and does nothing
    /// else.
    Sequence,
}

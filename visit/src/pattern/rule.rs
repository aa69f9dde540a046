//! Rules: a pattern, and what replaces what it matches.

use anfora_ir::ExprId;

use crate::pattern::build::Pattern;
use crate::pattern::captures::Captures;
use crate::pattern::rewriter::Rewriter;

/// The error of a rule's author: `?` makes one of any error.
pub type RuleError = Box<dyn std::error::Error + Send + Sync>;

/// The right side of a rule in Rust.
pub(crate) trait Build:
    FnMut(&mut Rewriter<'_, '_>, &Captures<'_>) -> Result<Option<ExprId>, RuleError>
{
}
impl<F: FnMut(&mut Rewriter<'_, '_>, &Captures<'_>) -> Result<Option<ExprId>, RuleError>> Build for F {}

/// The same, for all threads of a pass.
pub(crate) type SharedBuild =
    dyn Fn(&mut Rewriter<'_, '_>, &Captures<'_>) -> Result<Option<ExprId>, RuleError> + Send + Sync;

/// What a matched expression becomes.
pub(crate) enum RightSide<'r> {
    Built(Box<dyn Build + 'r>),
    Written(Pattern),
}

/// The right side of a rule for a run.
pub(crate) enum Right<'a> {
    Built(&'a mut dyn Build),
    Shared(&'a SharedBuild),
    Written(&'a Pattern),
}

impl RightSide<'_> {
    pub(crate) fn as_right(&mut self) -> Right<'_> {
        match self {
            RightSide::Built(build) => Right::Built(&mut **build),
            RightSide::Written(by) => Right::Written(by),
        }
    }
}

/// A rewrite of what a pattern matches, for [`rewrite_patterns`](crate::pattern::rewrite_patterns).
pub struct Rule<'r> {
    pub(crate) name: String,
    pub(crate) pattern: Pattern,
    pub(crate) right: RightSide<'r>,
}

impl<'r> Rule<'r> {
    /// What `pattern` matches becomes `by`, which is written like a pattern: captures of the left
    /// side, operators with attributes, tuples, projections, calls, and literals (a number is a
    /// rank-0 tensor of the element type of what is replaced). Where it does not have a type that
    /// fits, the rule does not apply.
    ///
    /// ```
    /// use anfora_visit::pattern::{Rule, capture, literal, op};
    /// let rule = Rule::replace("x * 1", op("multiply", [capture("x"), literal(1) | literal(1.0)]), capture("x"));
    /// ```
    pub fn replace(name: &str, pattern: Pattern, by: Pattern) -> Rule<'r> {
        Rule { name: name.to_string(), pattern, right: RightSide::Written(by) }
    }

    /// What `pattern` matches becomes what `build` makes of the captures; `None` where the rule
    /// does not apply after all. An error ends the rewriting.
    pub fn new(
        name: &str,
        pattern: Pattern,
        build: impl FnMut(&mut Rewriter<'_, '_>, &Captures<'_>) -> Result<Option<ExprId>, RuleError> + 'r,
    ) -> Rule<'r> {
        Rule { name: name.to_string(), pattern, right: RightSide::Built(Box::new(build)) }
    }

    /// The name by which outcomes and errors speak of it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Debug for Rule<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rule({:?}, {:?})", self.name, self.pattern)
    }
}

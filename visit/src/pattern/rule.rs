//! Rules: a pattern, and what replaces what it matches.

use std::borrow::Cow;

use anfora_ir::{Context, ExprId};

use crate::pattern::build::Pattern;
use crate::pattern::captures::Captures;
use crate::pattern::compile::Compiled;
use crate::pattern::dispatch::Dispatch;
use crate::pattern::error::{Refused, Side};
use crate::pattern::rewriter::Rewriter;
use crate::pattern::template::Template;

/// The error of a rule's author: `?` makes one of any error.
pub type RuleError = Box<dyn std::error::Error + Send + Sync>;

/// What a rule returns: the replacement; `None` where it does not apply after all.
pub(crate) type Built = Result<Option<ExprId>, RuleError>;

/// A function that makes the replacement.
pub(crate) type RuleFunction<'r> = Box<dyn FnMut(&mut Rewriter<'_, '_>, &Captures<'_>) -> Built + 'r>;

/// What a matched expression becomes: made by a function, or as it is written.
pub(crate) enum Right<F> {
    Built(F),
    Written(Pattern),
}

/// A rule that is ready to be tried.
pub(crate) struct ReadyRule {
    pub(crate) name: Cow<'static, str>,
    pub(crate) pattern: Compiled,
    /// The right side, unless it is made by a function.
    pub(crate) template: Option<Template>,
}

impl ReadyRule {
    /// Makes a rule ready. What is refused is refused on the left or on the right.
    pub(crate) fn new<F>(
        cx: &mut Context,
        name: Cow<'static, str>,
        pattern: &Pattern,
        right: &Right<F>,
    ) -> Result<ReadyRule, (Refused, Side)> {
        let mut pattern = Compiled::new(cx, pattern).map_err(|refused| (refused, Side::Left))?;
        let template = match right {
            Right::Built(_) => None,
            Right::Written(by) => {
                Some(Template::new(cx, by, &mut pattern.names).map_err(|refused| (refused, Side::Right))?)
            }
        };
        Ok(ReadyRule { name, pattern, template })
    }
}

/// Rules that are ready to be tried, and which of them may begin at a node.
pub(crate) struct RuleTable {
    pub(crate) rules: Vec<ReadyRule>,
    pub(crate) dispatch: Dispatch,
    /// The deepest of the patterns.
    pub(crate) depth: u32,
    pub(crate) asks_for_uses: bool,
    /// True if it holds for all modules with the same registry.
    pub(crate) is_portable: bool,
}

impl RuleTable {
    pub(crate) fn new(rules: Vec<ReadyRule>) -> RuleTable {
        let is_portable = |rule: &ReadyRule| {
            rule.pattern.resolved.is_portable && rule.template.as_ref().is_none_or(|right| right.side.is_portable)
        };
        RuleTable {
            dispatch: Dispatch::new(rules.iter().map(|rule| &rule.pattern.roots)),
            depth: rules.iter().map(|rule| rule.pattern.depth).max().unwrap_or(0),
            asks_for_uses: rules.iter().any(|rule| rule.pattern.asks_for_uses),
            is_portable: rules.iter().all(is_portable),
            rules,
        }
    }
}

/// A rewrite of what a pattern matches, for [`rewrite_patterns`](crate::pattern::rewrite_patterns).
pub struct Rule<'r> {
    pub(crate) name: String,
    pub(crate) pattern: Pattern,
    pub(crate) right: Right<RuleFunction<'r>>,
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
        Rule { name: name.to_string(), pattern, right: Right::Written(by) }
    }

    /// What `pattern` matches becomes what `build` makes of the captures; `None` where the rule
    /// does not apply after all. An error ends the rewriting.
    pub fn new(
        name: &str,
        pattern: Pattern,
        build: impl FnMut(&mut Rewriter<'_, '_>, &Captures<'_>) -> Result<Option<ExprId>, RuleError> + 'r,
    ) -> Rule<'r> {
        Rule { name: name.to_string(), pattern, right: Right::Built(Box::new(build)) }
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

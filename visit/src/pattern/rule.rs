//! Rules: a pattern and its replacement.

use std::borrow::Cow;

use anfora_ir::{Context, ExprId};

use crate::pattern::build::Pattern;
use crate::pattern::captures::Captures;
use crate::pattern::compile::Compiled;
use crate::pattern::dispatch::Dispatch;
use crate::pattern::error::{Refused, Side};
use crate::pattern::needs::Needs;
use crate::pattern::outcome::RuleCounts;
use crate::pattern::rewriter::Rewriter;
use crate::pattern::rule_text::ComputedValues;
use crate::pattern::template::Template;

/// An error of a rule's code. The operator `?` converts any error to it.
pub type RuleError = Box<dyn std::error::Error + Send + Sync>;

/// The result of a rule's code: the replacement, or `None` if the rule does not apply.
pub(crate) type Built = Result<Option<ExprId>, RuleError>;

/// A function that makes the replacement.
pub(crate) type RuleFunction<'r> = Box<dyn FnMut(&mut Rewriter<'_, '_>, &Captures<'_>) -> Built + 'r>;

/// The replacement of a match: made by a function, or written as a pattern.
pub(crate) enum Right<F> {
    Built(F),
    /// The pattern, and the values in it that the match determines.
    Written(Pattern, ComputedValues),
}

/// A compiled rule.
pub(crate) struct ReadyRule {
    pub(crate) name: Cow<'static, str>,
    pub(crate) pattern: Compiled,
    /// The right side, unless it is a function.
    pub(crate) template: Option<Template>,
}

impl ReadyRule {
    /// Compiles a rule. An error names the side at fault.
    pub(crate) fn new<F>(
        cx: &mut Context,
        name: Cow<'static, str>,
        pattern: &Pattern,
        right: &Right<F>,
    ) -> Result<ReadyRule, (Refused, Side)> {
        let mut pattern = Compiled::new(cx, pattern).map_err(|refused| (refused, Side::Left))?;
        let template = match right {
            Right::Built(_) => None,
            Right::Written(by, computed) => {
                let made = Template::new(cx, by, computed, &mut pattern.names);
                Some(made.map_err(|refused| (refused, Side::Right))?)
            }
        };
        Ok(ReadyRule { name, pattern, template })
    }
}

/// Compiled rules, and the lists of rules that may begin at a node.
pub(crate) struct RuleTable {
    pub(crate) rules: Vec<ReadyRule>,
    pub(crate) dispatch: Dispatch,
    pub(crate) needs: Needs,
    /// The depth of the deepest pattern.
    pub(crate) depth: u32,
    pub(crate) asks_for_uses: bool,
    /// True if the table is valid for all modules with the same registry.
    pub(crate) is_portable: bool,
}

impl RuleTable {
    pub(crate) fn new(rules: Vec<ReadyRule>) -> RuleTable {
        let is_portable = |rule: &ReadyRule| {
            rule.pattern.resolved.is_portable && rule.template.as_ref().is_none_or(|right| right.side.is_portable)
        };
        RuleTable {
            needs: Needs::new(rules.iter().map(|rule| &rule.pattern)),
            dispatch: Dispatch::new(rules.iter().map(|rule| &rule.pattern.roots)),
            depth: rules.iter().map(|rule| rule.pattern.depth).max().unwrap_or(0),
            asks_for_uses: rules.iter().any(|rule| rule.pattern.asks_for_uses),
            is_portable: rules.iter().all(is_portable),
            rules,
        }
    }
}

impl RuleTable {
    /// Returns the counts of the rules before anything happened.
    pub(crate) fn counts(&self) -> Vec<RuleCounts> {
        self.rules.iter().map(|rule| RuleCounts { name: rule.name.clone(), ..RuleCounts::default() }).collect()
    }

    /// Returns, for each rule, true if its right side is written with one of these operators. The
    /// list is empty if there are none.
    pub(crate) fn making(&self, operators: &[String]) -> Vec<bool> {
        if operators.is_empty() {
            return Vec::new();
        }
        let is_named = |name: &str| operators.iter().any(|operator| operator == name);
        let makes = |rule: &ReadyRule| rule.template.as_ref().is_some_and(|right| right.operators().any(is_named));
        self.rules.iter().map(makes).collect()
    }
}

/// A rule that replaces matches of a pattern, for
/// [`rewrite_patterns`](crate::pattern::rewrite_patterns).
pub struct Rule<'r> {
    pub(crate) name: String,
    pub(crate) pattern: Pattern,
    pub(crate) right: Right<RuleFunction<'r>>,
}

impl<'r> Rule<'r> {
    /// Returns a rule that replaces matches of `pattern` by `by`, which is written like a pattern:
    /// captures of the left side, operators with attributes, tuples, projections, calls, and
    /// literals (a number is a rank-0 tensor of the element type of the replaced node). If the type
    /// of the replacement does not fit, the rule does not apply.
    ///
    /// ```
    /// use anfora_visit::pattern::{Rule, capture, literal, op};
    /// let x_times_1 = op("multiply", [capture("x"), literal(1) | literal(1.0)]);
    /// let rule = Rule::replace("x * 1", x_times_1, capture("x"));
    /// ```
    pub fn replace(name: &str, pattern: Pattern, by: Pattern) -> Rule<'r> {
        Rule { name: name.to_string(), pattern, right: Right::Written(by, ComputedValues::default()) }
    }

    /// Returns a rule that replaces matches of `pattern` by the result of `build`, which gets the
    /// captures. If `build` returns `None`, the rule does not apply. An error ends the rewriting.
    pub fn new(
        name: &str,
        pattern: Pattern,
        build: impl FnMut(&mut Rewriter<'_, '_>, &Captures<'_>) -> Result<Option<ExprId>, RuleError> + 'r,
    ) -> Rule<'r> {
        Rule { name: name.to_string(), pattern, right: Right::Built(Box::new(build)) }
    }

    /// Returns the name of the rule in outcomes and errors.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Debug for Rule<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rule({:?}, {:?})", self.name, self.pattern)
    }
}

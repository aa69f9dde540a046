//! Rules as they are written: two texts, a condition, and values that the match determines.

use std::borrow::Cow;
use std::sync::Arc;

use anfora_ir::AttrValue;

use crate::pattern::guard::{Guard, Match};

/// A value that is computed from a match.
pub(crate) type ValueFunction = Arc<dyn Fn(&Match<'_>) -> Option<AttrValue> + Send + Sync>;

/// The computed values of a rule, by the names of their holes on the right.
pub(crate) type ComputedValues = Vec<(Arc<str>, ValueFunction)>;

/// A rule in text, for [`RuleSet::with_rule`](crate::pattern::RuleSet::with_rule). The macro
/// [`rules!`](crate::rules) is shorter.
pub struct RuleText {
    pub(crate) name: Cow<'static, str>,
    pub(crate) left: String,
    pub(crate) right: String,
    pub(crate) test: Option<Guard>,
    pub(crate) computed: ComputedValues,
}

impl RuleText {
    /// Returns a rule that replaces `left` by `right`. Its name is `left => right`.
    pub fn new(left: &str, right: &str) -> RuleText {
        RuleText {
            name: format!("{left} => {right}").into(),
            left: left.to_string(),
            right: right.to_string(),
            test: None,
            computed: Vec::new(),
        }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> RuleText {
        RuleText { name: name.into(), ..self }
    }

    /// Lets the rule apply only to matches that pass a test.
    #[must_use]
    pub fn only_if(self, test: impl Fn(&Match<'_>) -> bool + Send + Sync + 'static) -> RuleText {
        RuleText { test: Some(Guard::new(test)), ..self }
    }

    /// Sets the source text of the condition, which is quoted where a match fails by it. The macro
    /// [`rules!`](crate::rules) sets it.
    ///
    /// Cost: one entry.
    #[must_use]
    pub fn condition(mut self, text: &'static str) -> RuleText {
        if let Some(test) = &mut self.test {
            test.text = Some(text);
        }
        self
    }

    /// Lets the hole `name` on the right stand for a value that is computed from the match: the
    /// value of an attribute, or an operand that is a constant. A list of integers as an operand is
    /// an int64 tensor of rank 1. If the value is `None`, the rule does not apply.
    ///
    /// ```
    /// use anfora_visit::pattern::{RuleSet, RuleText};
    /// let rule = RuleText::new("nn.elu(%x, alpha=%a)", "nn.elu(%x, alpha=%b)");
    /// let rules = RuleSet::new().with_rule(rule.value("b", |m| Some(m.float("a")? + 1.0)));
    /// ```
    #[must_use]
    pub fn value<V: Into<AttrValue>>(
        mut self,
        name: &str,
        value: impl Fn(&Match<'_>) -> Option<V> + Send + Sync + 'static,
    ) -> RuleText {
        self.computed.push((name.into(), Arc::new(move |m| value(m).map(Into::into))));
        self
    }
}

impl std::fmt::Debug for RuleText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RuleText({:?})", self.name)
    }
}

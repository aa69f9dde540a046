//! Limits and results of rewriting by patterns.

use std::borrow::Cow;

use anfora_ir::{Diagnostic, Diagnostics, ExprId, IntoDiagnostics, Purity, RetypeError};

use crate::error::RewriteError;
use crate::pattern::error::PatternError;
use crate::pattern::illegal_edit::IllegalEdit;
use crate::pattern::rule::RuleError;
use crate::pattern::rule_set::without_source;
use crate::pattern::trace::Applied;

/// Limits of [`rewrite_patterns`](crate::pattern::rewrite_patterns), and the functions that it may
/// treat as pure.
#[derive(Copy, Clone, Debug, Default)]
pub struct PatternOptions<'a> {
    /// The largest number of rewrites; if it is reached, results are kept. Default: 1,000, and 8
    /// for each node. If the default is reached, everything is rolled back.
    pub fuel: Option<u64>,
    /// The largest number of sweeps over the body; if it is reached, results are kept. A fixpoint
    /// takes one sweep more, which changes nothing. Default: 32. If the default is reached,
    /// everything is rolled back.
    pub sweeps: Option<u32>,
    /// The largest number of steps of a match at one node. Default: 4,096, and 64 for each node of
    /// the pattern.
    pub steps: Option<u64>,
    /// The global functions that are pure. If it is `None`, calls of function values count as
    /// impure, and patterns do not look through them.
    pub purity: Option<&'a Purity>,
    /// True if [`Outcome::trace`] lists the changes of each rewrite.
    pub trace: bool,
    /// The names of operators that must not be made. Rules whose right side is written with one of
    /// them do not apply.
    pub never_make: &'a [String],
}

/// The reason why rewriting stopped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// No rule applies any more.
    Fixpoint,
    /// The limit of rewrites was reached, and a rule still applied. If the options state no fuel,
    /// the body is unchanged.
    OutOfFuel,
    /// The limit of sweeps was reached, and the last sweep still changed something. If the options
    /// state no number of sweeps, the body is unchanged. Usually a rule applies to its own result:
    /// a rule that wraps a match in a `fn` without the attribute `Primitive=1` applies again
    /// inside.
    OutOfSweeps,
}

/// The result of rewriting.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "it says whether a limit was reached"]
pub struct Outcome {
    /// The reason why rewriting stopped.
    pub stop: StopReason,
    /// The number of replaced matches; 0 if everything was rolled back.
    pub rewrites: u64,
    /// The number of bindings that were erased because a rewrite left them without uses; 0 if
    /// everything was rolled back.
    pub erased: u64,
    /// The number of sweeps over the body.
    pub sweeps: u32,
    pub(crate) attempted: u64,
    pub(crate) taken_back: bool,
    /// The counts of each rule, in the order in which the rules were given.
    pub rules: Vec<RuleCounts>,
    /// The changes in order, if [`PatternOptions::trace`] is set. Includes changes that were rolled
    /// back.
    pub trace: Vec<Applied>,
}

impl Outcome {
    /// Returns true if a default limit was reached, so that the body is unchanged.
    pub fn was_taken_back(&self) -> bool {
        self.taken_back
    }

    /// Returns remarks for the author of the rules: rules that still applied when a limit was
    /// reached, rules whose replacement had a type that does not fit, and rules that took too many
    /// steps to match. Each remark is about the first expression concerned. The list is empty if
    /// there was no problem.
    ///
    /// In a pass, `FunctionEdit::report_all` leaves them in the context. If everything was rolled
    /// back, the pass manager does this in any case, once.
    pub fn remarks(&self) -> Vec<(ExprId, Diagnostic)> {
        let mut remarks = Vec::new();
        let reached = match self.stop {
            StopReason::Fixpoint => None,
            StopReason::OutOfFuel => Some(format!("after {}", count(self.attempted, "rewrite"))),
            StopReason::OutOfSweeps => Some(format!("after {} of the body", count(u64::from(self.sweeps), "sweep"))),
        };
        for rule in &self.rules {
            let name = &rule.name;
            if let (Some(reached), Some(at)) = (&reached, rule.still_applies) {
                let message = match (self.stop, self.taken_back) {
                    // It is not known whether the rule would apply once more.
                    (StopReason::OutOfSweeps, false) => {
                        let sweeps = count(u64::from(self.sweeps), "sweep");
                        format!("the rule `{name}` applied in the last of {sweeps} of the body, and may apply again")
                    }
                    _ => format!("the rule `{name}` still applies {reached}"),
                };
                let remark = match self.taken_back {
                    true => Diagnostic::remark(format!("{message}: nothing was rewritten"))
                        .with_help("it applies to what it, or another rule, makes of what it matched"),
                    false => Diagnostic::remark(message),
                };
                remarks.push((at, remark));
            }
            if let Some(Misfit { at, why }) = &rule.first_misfit {
                let times = if rule.mistyped == 1 {
                    String::new()
                } else {
                    format!(", and {} more", count(rule.mistyped - 1, "time"))
                };
                remarks.push((
                    *at,
                    Diagnostic::remark(format!("the rule `{name}` matched and did not apply: {why}{times}")),
                ));
            }
            if let (Some(at), true) = (rule.first_gave_up, rule.gave_up > 0) {
                let times = count(rule.gave_up, "time");
                let message =
                    format!("the rule `{name}` took more steps to match than it may ({times}): taken as no match");
                remarks.push((at, Diagnostic::remark(message)));
            }
        }
        remarks
    }

    /// Returns the trace as remarks, each on the binding that was changed.
    pub fn trace_remarks(&self) -> impl Iterator<Item = (ExprId, Diagnostic)> {
        self.trace.iter().map(|applied| {
            let Applied { rule, at, binding, before, after } = applied;
            let name = self.rules.get(*rule).map_or("", |counts| &counts.name);
            let remark = Diagnostic::remark(format!("{before} became {after} by the rule `{name}`"));
            match binding {
                Some(binding) => (*at, remark.on_binding(binding)),
                None => (*at, remark),
            }
        })
    }
}

fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// The first match whose replacement had a type that does not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// The expression that was to be replaced.
    pub at: ExprId,
    /// The reason why the type does not fit.
    pub why: String,
}

/// The counts of one rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleCounts {
    /// The name of the rule.
    pub name: Cow<'static, str>,
    /// The number of matches that it replaced, including replacements that were rolled back.
    pub rewrites: u64,
    /// The number of matches to which it did not apply.
    pub declined: u64,
    /// The number of matches that were left because the replacement's type does not fit.
    pub mistyped: u64,
    /// The first such match.
    pub first_misfit: Option<Misfit>,
    /// The number of attempts that exceeded the limit of steps. They count as no match.
    pub gave_up: u64,
    /// The node of the first such attempt.
    pub first_gave_up: Option<ExprId>,
    /// The last expression at which it applied, if a limit stopped it.
    pub still_applies: Option<ExprId>,
}

impl RuleCounts {
    /// Counts a match whose replacement has a type that does not fit.
    pub(crate) fn misfit(&mut self, at: ExprId, why: impl FnOnce() -> String) {
        self.mistyped += 1;
        self.first_misfit.get_or_insert_with(|| Misfit { at, why: why() });
    }
}

/// The error of rewriting by patterns. The body is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternRewriteError {
    /// A pattern, or the right side of a rule, is invalid; nothing was rewritten.
    #[error("the rule `{rule}`: {error}")]
    Pattern {
        /// The rule.
        rule: String,
        /// The error.
        #[source]
        error: PatternError,
    },
    /// There are mistakes in the texts of rules; nothing was rewritten. Their places are in
    /// [`RuleSet::text`](crate::pattern::RuleSet::text).
    #[error("{0}")]
    Rules(Diagnostics),
    /// A rule failed.
    #[error("the rule `{rule}` failed: {error}")]
    Rule {
        /// The rule.
        rule: String,
        /// Its error.
        #[source]
        error: RuleError,
    },
    /// The result of a rule is not allowed at its place.
    #[error("the rule `{rule}`: {error}")]
    Illegal {
        /// The rule.
        rule: String,
        /// The error.
        #[source]
        error: IllegalEdit,
    },
    /// The users of a replaced node do not accept the replacement.
    #[error("after the rule `{rule}`: {error}")]
    Users {
        /// The rule.
        rule: String,
        /// The error.
        #[source]
        error: RewriteError,
    },
    /// Expressions around a block do not accept its new type.
    #[error(transparent)]
    Around(#[from] RetypeError),
}

impl IntoDiagnostics for IllegalEdit {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

impl IntoDiagnostics for PatternRewriteError {
    const MAY_END_WALK: bool = true;

    fn into_diagnostics(self) -> Diagnostics {
        if let PatternRewriteError::Rules(mistakes) = self {
            return without_source(mistakes);
        }
        let diagnostic = Diagnostic::from_error(&self);
        let behind = match self {
            PatternRewriteError::Users { error, .. } => error.into_diagnostics(),
            PatternRewriteError::Around(error) => error.into_diagnostics(),
            _ => return diagnostic.into(),
        };
        let help = behind.into_iter().find_map(|d| d.help);
        Diagnostic { help, ..diagnostic }.into()
    }
}

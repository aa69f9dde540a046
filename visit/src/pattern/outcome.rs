//! How rewriting by patterns is limited, and how it ended.

use std::borrow::Cow;

use anfora_ir::{Diagnostic, Diagnostics, ExprId, IntoDiagnostics, Purity, RetypeError};

use crate::error::RewriteError;
use crate::pattern::error::PatternError;
use crate::pattern::rewriter::IllegalEdit;
use crate::pattern::rule::RuleError;
use crate::pattern::rule_set::without_source;
use crate::pattern::trace::Applied;

/// Limits of [`rewrite_patterns`](crate::pattern::rewrite_patterns), and what it may take to be
/// pure.
#[derive(Copy, Clone, Debug, Default)]
pub struct PatternOptions<'a> {
    /// The largest number of rewrites; results are kept when it is reached. Default: 8 for each
    /// node and 1,000 more. Reaching the default rolls everything back.
    pub fuel: Option<u64>,
    /// The largest number of sweeps over the body; results are kept when it is reached. A fixpoint
    /// takes one sweep more, which finds nothing. Default: 32. Reaching the default rolls
    /// everything back.
    pub sweeps: Option<u32>,
    /// How many steps a match may take at one node. By default 64 for each node of the pattern, and
    /// 4,096 more.
    pub steps: Option<u64>,
    /// Which global functions are pure. Without it, calls of function values count as impure, and
    /// are not looked through.
    pub purity: Option<&'a Purity>,
    /// True if [`Outcome::trace`] says what each rewrite changed.
    pub trace: bool,
}

/// Why rewriting stopped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// No rule applies anywhere any more.
    Fixpoint,
    /// There were as many rewrites as there may be, and a rule still applied. Where the options
    /// state no fuel, the body is as it was.
    OutOfFuel,
    /// There were as many sweeps as there may be, and the last one still changed something. Where
    /// the options state no number of sweeps, the body is as it was. A rule that applies to what it
    /// makes is the usual reason: one that wraps a match in a `fn` without the attribute
    /// `Primitive=1` applies again in there.
    OutOfSweeps,
}

/// What rewriting did.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "it says whether a limit was reached"]
pub struct Outcome {
    /// Why it stopped.
    pub stop: StopReason,
    /// How many matches were replaced; none if all was taken back.
    pub rewrites: u64,
    /// How many bindings were erased since a rewrite left them without use; none if all was taken
    /// back.
    pub erased: u64,
    /// How many sweeps over the body it took.
    pub sweeps: u32,
    pub(crate) attempted: u64,
    pub(crate) taken_back: bool,
    /// By rule, in the order in which they were given.
    pub rules: Vec<RuleCounts>,
    /// What was changed, in order, if [`PatternOptions::trace`] asked for it. What was taken back
    /// is there too.
    pub trace: Vec<Applied>,
}

impl Outcome {
    /// Returns true if a limit that nobody stated was reached, so that the body is as it was.
    pub fn was_taken_back(&self) -> bool {
        self.taken_back
    }

    /// Returns what the author of the rules is to be told: which rules still applied when a limit
    /// was reached, which did not fit by type, and which took too many steps to match; each about
    /// the first expression where that was so. Nothing, if all went as it should.
    ///
    /// In a pass, `FunctionEdit::report_all` leaves them in the context. If all was taken back, the
    /// pass manager does so in any case, once.
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
                    // Whether it would apply once more is not known.
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

/// The first place where what a rule makes had a type that does not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// The expression that was to be replaced.
    pub at: ExprId,
    /// What does not fit.
    pub why: String,
}

/// What a rule did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleCounts {
    /// Its name.
    pub name: Cow<'static, str>,
    /// How many matches it replaced, those included that were taken back.
    pub rewrites: u64,
    /// How often it matched and did not apply after all.
    pub declined: u64,
    /// How often what it would have put there has a type that does not fit: the match was left as
    /// it is.
    pub mistyped: u64,
    /// Where and why that was so first.
    pub first_misfit: Option<Misfit>,
    /// How often matching took more steps than it may: taken as no match.
    pub gave_up: u64,
    /// Where that was so first.
    pub first_gave_up: Option<ExprId>,
    /// An expression at which it applied last, if a limit was reached that stopped it.
    pub still_applies: Option<ExprId>,
}

impl RuleCounts {
    /// Counts a match whose replacement has a type that does not fit.
    pub(crate) fn misfit(&mut self, at: ExprId, why: impl FnOnce() -> String) {
        self.mistyped += 1;
        self.first_misfit.get_or_insert_with(|| Misfit { at, why: why() });
    }
}

/// Why rewriting by patterns failed. The body is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternRewriteError {
    /// A pattern, or the right side of a rule, is refused; nothing was rewritten.
    #[error("the rule `{rule}`: {error}")]
    Pattern {
        /// The rule.
        rule: String,
        /// Why.
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
    /// What a rule returned cannot stand in the program.
    #[error("the rule `{rule}`: {error}")]
    Illegal {
        /// The rule.
        rule: String,
        /// Why.
        #[source]
        error: IllegalEdit,
    },
    /// The users of what a rule replaced do not fit any more.
    #[error("after the rule `{rule}`: {error}")]
    Users {
        /// The rule.
        rule: String,
        /// Why.
        #[source]
        error: RewriteError,
    },
    /// Expressions around a block do not fit any more, after what is in it was rewritten.
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

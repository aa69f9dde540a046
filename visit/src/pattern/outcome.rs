//! How rewriting by patterns is limited, and how it ended.

use anfora_ir::{Purity, RetypeError};

use crate::error::RewriteError;
use crate::pattern::error::PatternError;
use crate::pattern::rewriter::IllegalEdit;
use crate::pattern::rule::RuleError;

/// Limits of [`rewrite_patterns`](crate::pattern::rewrite_patterns), and what it may take to be pure.
#[derive(Copy, Clone, Debug)]
pub struct PatternOptions<'a> {
    /// How many rewrites there may be. By default 8 for each node of the body, and 1,000 more.
    pub fuel: Option<u64>,
    /// How many sweeps over the body there may be; a fixpoint is known by a sweep that finds nothing. By default 32.
    pub sweeps: u32,
    /// How many steps a match may take at one node. By default 64 for each node of the pattern, and 4,096 more.
    pub steps: Option<u64>,
    /// Which global functions are pure. Without it, calls of function values count as impure, and are not looked through.
    pub purity: Option<&'a Purity>,
}

impl Default for PatternOptions<'_> {
    fn default() -> Self {
        PatternOptions { fuel: None, sweeps: 32, steps: None, purity: None }
    }
}

/// Why rewriting stopped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// No rule applies anywhere any more.
    Fixpoint,
    /// There were as many rewrites as there may be, and a rule still applied.
    OutOfFuel,
    /// There were as many sweeps as there may be, and the last one still changed something. A rule that applies to what it makes is the usual reason: one that
    /// wraps a match in a `fn` without the attribute `Primitive=1` applies again in there.
    OutOfSweeps,
}

/// What rewriting did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Why it stopped.
    pub stop: StopReason,
    /// How many matches were replaced.
    pub rewrites: u64,
    /// How many bindings were erased since a rewrite left them without use.
    pub erased: u64,
    /// How many sweeps over the body it took.
    pub sweeps: u32,
    /// By rule, in the order in which they were given.
    pub rules: Vec<RuleCounts>,
}

/// What a rule did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleCounts {
    /// Its name.
    pub name: String,
    /// How many matches it replaced.
    pub rewrites: u64,
    /// How often it matched and did not apply after all.
    pub declined: u64,
    /// How often what it would have put there has a type that does not fit: the match was left as it is.
    pub mistyped: u64,
    /// How often matching took more steps than it may: taken as no match.
    pub gave_up: u64,
}

/// Why rewriting by patterns failed. The body may then be half rewritten: the caller takes the edit back, as the pass manager does for every failing
/// pass.
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

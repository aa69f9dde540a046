//! Patterns: describing expressions, finding them through Let-bound values, and rewriting by rules.
//!
//! A [`Pattern`] is put together by constructors and looked for by [`Matcher`] or, with what
//! replaces it, by [`rewrite_patterns`]. An operand that is a variable is looked through to what is
//! bound to it, so that `op("exp", [op("log", [any()])])` matches `let %a = log(%x); exp(%a)`, and
//! the nested `exp(log(%x))` alike.
//!
//! | pattern | matches |
//! |---|---|
//! | [`any()`](any) | anything |
//! | [`capture("x")`](capture), [`p.capture("x")`](Pattern::capture) | anything, or `p`, named; the same name twice: the same expression |
//! | [`literal(1.0)`](literal), [`literal(0)`](literal), [`any_literal()`](any_literal), [`literal_where`] | a scalar or splat of a value; any literal; one that passes a test |
//! | [`op("add", [p, q])`](op) | a call of an operator; either order of operands where its row says so, or [`commutative`](Pattern::commutative) does |
//! | [`op_in`], [`op_where`] | a call of one of several operators, or of any whose row passes a test |
//! | [`rest()`](rest), as the last operand | any number of further operands |
//! | [`p.attr("axis", 1)`](Pattern::attr), [`p.attrs_where`](Pattern::attrs_where) | with such attributes |
//! | [`tuple()`], [`proj`], [`call`], [`global`], [`none()`](none) | what they are called for |
//! | `p \| q`, [`any_of`] | alternatives, tried in order |
//! | [`p.optional(\|p\| op("nn.relu", [p]))`](Pattern::optional) | `p`, or that around it |
//! | [`p.used_once()`](Pattern::used_once) | only where fusing it into its user computes nothing twice |
//! | [`dtype`](Pattern::dtype), [`rank`](Pattern::rank), [`shape`](Pattern::shape), [`static_shape`](Pattern::static_shape), [`same_type_as`](Pattern::same_type_as), [`type_where`](Pattern::type_where) | types |
//! | [`p.filter`](Pattern::filter) | anything else |
//!
//! Before it is looked for, a pattern is checked against the operators of the module: a misspelt
//! operator, attribute or capture is an error with a suggestion, and so is a number of operands
//! that the operator never has.
//!
//! # What is not looked into
//! A value that is impure (an operator that is, a call of what is not known to be pure) is matched
//! at the root only: as an operand its variable is an atom like any other. A value in an enclosing
//! block is looked at like any other, since it is visible; blocks (of an `if`, a `fn`, or as a
//! value) are never entered from outside.
//!
//! # How long it takes
//! Goals and choices are kept on explicit stacks that all attempts share, so that one that fails
//! allocates nothing. Choices (alternatives, optional parts, exchanged operands) are tried in the
//! order in which they are written, and both orders of operands only where both can match at first
//! sight. An attempt takes at most 64 steps for each node of the pattern and 4,096 more; one that
//! would take more counts as no match, and [`RuleCounts::gave_up`] says so.

mod build;
mod captures;
mod compile;
mod dispatch;
mod driver;
mod error;
mod facts;
mod glance;
mod guard;
mod matcher;
mod outcome;
mod rewriter;
mod rule;
mod rule_set;
mod scopes;
mod search;
mod template;
mod text;
mod trace;

pub use anfora_ir::{AttrValue, Number};
pub use build::{
    Candidate, LiteralValue, Pattern, any, any_literal, any_of, call, capture, global, literal, literal_where, none,
    op, op_in, op_where, proj, rest, tuple,
};
pub use captures::Captures;
pub use driver::{rewrite_patterns, rewrite_rules};
pub use error::PatternError;
pub use guard::Match;
pub use matcher::Matcher;
pub use outcome::{Misfit, Outcome, PatternOptions, PatternRewriteError, RuleCounts, StopReason};
pub use rewriter::{IllegalEdit, Rewriter};
pub use rule::{Rule, RuleError};
pub use rule_set::RuleSet;
pub use trace::Applied;

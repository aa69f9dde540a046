//! Patterns: descriptions of expressions, matching through bindings, and rewriting by rules.
//!
//! A [`Pattern`] is made by constructors and used by [`Matcher`] or, with its replacement, by
//! [`rewrite_patterns`]. Patterns look through an operand that is a variable to its value, so that
//! `op("exp", [op("log", [any()])])` matches `let %a = log(%x); exp(%a)` as well as the nested
//! `exp(log(%x))`.
//!
//! Patterns of expressions:
//!
//! | pattern | matches |
//! |---|---|
//! | [`any()`](any) | anything |
//! | [`capture("x")`](capture) | anything, named |
//! | [`p.capture("x")`](Pattern::capture) | `p`, named |
//! | [`literal(1.0)`](literal), [`literal(0)`](literal) | a scalar or splat of a value |
//! | [`any_literal()`](any_literal) | any literal |
//! | [`literal_where`] | a literal that passes a test |
//! | [`op("add", [p, q])`](op) | a call of an operator |
//! | [`op_in`] | a call of one of several operators |
//! | [`op_where`] | a call of any operator whose row passes a test |
//! | [`rest()`](rest), as the last operand | any number of further operands |
//! | [`tuple()`], [`proj`], [`call`], [`global`], [`none()`](none) | what they are called for |
//! | `p \| q`, [`any_of`] | alternatives, tried in order |
//! | [`p.optional(\|p\| op("nn.relu", [p]))`](Pattern::optional) | `p`, or that around it |
//!
//! A name that is captured twice matches the same expression at both places. A call matches in
//! either order of operands if the row of the operator says so, or
//! [`commutative`](Pattern::commutative) does.
//!
//! Methods that restrict a pattern `p`:
//!
//! | method | restricts |
//! |---|---|
//! | [`attr("axis", 1)`](Pattern::attr) | an attribute |
//! | [`attrs_where`](Pattern::attrs_where) | the attributes, by a test |
//! | [`used_once()`](Pattern::used_once) | uses: fusing `p` into its user computes nothing twice |
//! | [`dtype`](Pattern::dtype) | the element type |
//! | [`rank`](Pattern::rank) | the rank |
//! | [`shape`](Pattern::shape), [`static_shape`](Pattern::static_shape) | the shape |
//! | [`same_type_as`](Pattern::same_type_as), [`type_where`](Pattern::type_where) | the type |
//! | [`filter`](Pattern::filter) | anything else |
//!
//! Before it is used, a pattern is checked against the operators of the module. A misspelt
//! operator, attribute or capture is an error with a suggestion. A number of operands that the
//! operator never has is an error too.
//!
//! # Limits of matching
//! An impure value (of an impure operator, or of a call that is not known to be pure) matches only
//! at the root: as an operand, its variable is an atom like any other. Values in an enclosing block
//! match like any other, since they are visible. Patterns never look into blocks (of an `if`, a
//! `fn`, or as a value) from outside.
//!
//! # Cost
//! All attempts share explicit stacks of goals and choices, so that a failed attempt allocates
//! nothing. Choices (alternatives, optional parts, exchanged operands) are tried in the order in
//! which they are written. Both orders of operands are tried only if a first look shows that both
//! may match. An attempt takes at most 4,096 steps and 64 steps for each node of the pattern. If it
//! would take more, it counts as no match and in [`RuleCounts::gave_up`].

mod build;
mod capture_names;
mod captures;
mod compile;
mod dispatch;
mod driver;
mod error;
mod facts;
mod glance;
mod guard;
mod illegal_edit;
mod matcher;
mod needs;
mod outcome;
mod rewriter;
mod rule;
mod rule_set;
mod rule_text;
mod scopes;
mod search;
mod sight;
mod template;
mod text;
mod trace;
mod why_not;

pub use anfora_ir::{AttrValue, Number};
pub use build::{
    Candidate, LiteralValue, Pattern, any, any_literal, any_of, call, capture, global, literal, literal_where, none,
    op, op_in, op_where, proj, rest, tuple,
};
pub use captures::Captures;
pub use driver::{rewrite_patterns, rewrite_rules};
pub use error::PatternError;
pub use guard::Match;
pub use illegal_edit::IllegalEdit;
pub use matcher::Matcher;
pub use outcome::{Misfit, Outcome, PatternOptions, PatternRewriteError, RuleCounts, StopReason};
pub use rewriter::Rewriter;
pub use rule::{Rule, RuleError};
pub use rule_set::RuleSet;
pub use rule_text::RuleText;
pub use trace::Applied;

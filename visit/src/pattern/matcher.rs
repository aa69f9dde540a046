//! Looking for a pattern without rewriting.

use std::sync::Arc;

use anfora_ir::{Body, Context, Cursor, ExprId, Purity, Step};

use crate::pattern::build::Pattern;
use crate::pattern::captures::Captures;
use crate::pattern::compile::Compiled;
use crate::pattern::dispatch::Dispatch;
use crate::pattern::error::PatternError;
use crate::pattern::facts::Facts;
use crate::pattern::search::{Attempt, Search, default_budget};
use crate::pattern::sight::Sight;

/// Looks for one pattern in a body that is not edited in the meantime.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_visit::pattern::{Matcher, any, capture, op};
///
/// let text = "def @main(%x: Tensor[(2, 3), float32]) {
///     let %a = permute_dims(%x);
///     let %b = permute_dims(%a, axes=[1, 0]);
///     tanh(%b)
/// }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard()).unwrap();
/// let key = module.find("main").unwrap();
/// let (function, cx) = module.get_mut(key).unwrap();
/// let twice = op("permute_dims", [op("permute_dims", [capture("x")])]);
/// let mut matcher = Matcher::new(cx, &function.body, &twice, None)?;
/// let roots = matcher.find_all();
/// assert_eq!(roots.len(), 1);
/// let captures = matcher.at(roots[0]).unwrap();
/// assert_eq!(captures["x"], function.body.params()[0].expr());
/// # Ok::<(), anfora_visit::pattern::PatternError>(())
/// ```
pub struct Matcher<'a> {
    cx: &'a Context,
    body: &'a Body,
    facts: Arc<Facts<'a>>,
    pattern: Compiled,
    dispatch: Dispatch,
    search: Search,
    budget: u64,
}

impl<'a> Matcher<'a> {
    /// Returns a matcher for a pattern. `purity` says which global functions are pure; without it,
    /// calls of function values count as impure, and patterns do not look through them. Takes time
    /// linear in the body and the pattern.
    ///
    /// # Errors
    /// If the pattern is invalid: an unknown operator or attribute, a wrong number of operands, and
    /// so on.
    pub fn new(
        cx: &'a mut Context,
        body: &'a Body,
        pattern: &Pattern,
        purity: Option<&'a Purity>,
    ) -> Result<Matcher<'a>, PatternError> {
        let pattern = Compiled::new(cx, pattern).map_err(|refused| refused.error)?;
        let cx = &*cx;
        Ok(Matcher::of(cx, body, pattern, Arc::new(Facts::new(cx, body, purity))))
    }

    /// Returns a matcher for each of several patterns, as [`Matcher::new`] does, or the reason why
    /// a pattern is invalid. The body is read once for all patterns.
    pub fn of_patterns<'p>(
        cx: &'a mut Context,
        body: &'a Body,
        patterns: impl IntoIterator<Item = &'p Pattern>,
        purity: Option<&'a Purity>,
    ) -> Vec<Result<Matcher<'a>, PatternError>> {
        let compiled: Vec<_> = patterns.into_iter().map(|pattern| Compiled::new(cx, pattern)).collect();
        let cx = &*cx;
        let facts = Arc::new(Facts::new(cx, body, purity));
        let matcher = |pattern| Matcher::of(cx, body, pattern, Arc::clone(&facts));
        compiled.into_iter().map(|pattern| pattern.map(matcher).map_err(|refused| refused.error)).collect()
    }

    fn of(cx: &'a Context, body: &'a Body, pattern: Compiled, facts: Arc<Facts<'a>>) -> Matcher<'a> {
        let dispatch = Dispatch::new(std::iter::once(&pattern.roots));
        let budget = default_budget(&pattern);
        Matcher { cx, body, facts, pattern, dispatch, search: Search::default(), budget }
    }

    /// Returns the captures of the pattern at a call, tuple, projection, If or Lambda; `None` if it
    /// does not match there, or if the match takes more than 4,096 steps and 64 steps for each node
    /// of the pattern.
    pub fn at(&mut self, root: ExprId) -> Option<Captures<'_>> {
        if self.dispatch.rules(self.body, root).is_empty() {
            return None;
        }
        let sight = Sight { cx: self.cx, body: self.body, facts: &self.facts };
        let attempt = self.search.attempt(sight, &self.pattern, root, self.budget);
        (attempt == Attempt::Matched).then(|| self.search.captures(&self.pattern))
    }

    /// Returns the nodes that the pattern describes in a match: the node at which it matches, then
    /// the nodes inside. Returns `None` if it does not match there, or if a node inside is used
    /// outside of the match or computed in another block.
    ///
    /// Cost: one node.
    pub fn own_parts(&mut self, root: ExprId) -> Option<Vec<ExprId>> {
        self.at(root)?;
        let sight = Sight { cx: self.cx, body: self.body, facts: &self.facts };
        let described = self.search.described();
        sight.own_parts(root, |_, value| described.contains(&value)).map(|parts| parts.to_vec())
    }

    /// Returns the reason why [`Matcher::own_parts`] returns `None` for a node that is of the kind
    /// of the pattern's root: the condition at which the attempt fails that comes furthest, with
    /// the name of its binding.
    ///
    /// Cost: one node.
    pub fn why_not(&mut self, root: ExprId) -> Option<String> {
        if self.dispatch.rules(self.body, root).is_empty() {
            return None;
        }
        let sight = Sight { cx: self.cx, body: self.body, facts: &self.facts };
        match self.search.attempt(sight, &self.pattern, root, self.budget) {
            Attempt::GaveUp => Some("the search for the pattern takes too many steps".to_string()),
            Attempt::Failed => self.search.why_not(sight, &self.pattern, root, self.budget).map(|(_, why)| why),
            Attempt::Matched => {
                let described = self.search.described();
                let is_whole = sight.own_parts(root, |_, value| described.contains(&value)).is_some();
                (!is_whole).then(|| match sight.used_elsewhere(described, root) {
                    Some(part) => format!("{} is used elsewhere", sight.name(part)),
                    None => "a part of the match is computed in another block".to_string(),
                })
            }
        }
    }

    /// Returns the nodes at which the pattern matches, in program order.
    pub fn find_all(&mut self) -> Vec<ExprId> {
        let mut found = Vec::new();
        let mut cursor = Cursor::new(self.body);
        while let Some(step) = cursor.next(self.body) {
            if let Step::Flat(id) | Step::Exit(id) = step
                && self.at(id).is_some()
            {
                found.push(id);
            }
        }
        found
    }
}

anfora_ir::brief_debug! { Matcher<'_>; }

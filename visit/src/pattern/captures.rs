//! The captures of a match.

use anfora_ir::{AttrId, Body, ExprId};

use crate::pattern::capture_names::NamedCapture;
use crate::pattern::sight::tail;

/// The captures of a pattern in a match. In A-normal form, an operand is an atom: the variable, not
/// its value.
#[derive(Copy, Clone)]
pub struct Captures<'m> {
    pub(crate) names: &'m [NamedCapture],
    pub(crate) found: &'m [Found],
    pub(crate) root: ExprId,
}

#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub(crate) enum Found {
    #[default]
    Nothing,
    One(ExprId),
    /// The operands of a node, from this number on.
    Tail(ExprId, u32),
    /// The value of an attribute; `None` is its default.
    Attr(Option<AttrId>),
}

impl<'m> Captures<'m> {
    /// Returns the node at which the pattern matched.
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// Returns the expression captured by a name. Returns `None` if the name is in an alternative
    /// that was not taken, or captures a list.
    pub fn get(&self, name: &str) -> Option<ExprId> {
        match self.found(name)? {
            Found::One(id) => Some(*id),
            _ => None,
        }
    }

    /// Returns the value of an attribute captured by a name. Returns `None` if the attribute was
    /// omitted, so that it has its default, and for other captures.
    pub fn attr(&self, name: &str) -> Option<AttrId> {
        match self.found(name)? {
            Found::Attr(value) => *value,
            _ => None,
        }
    }

    /// Returns true if the name captured something.
    pub fn has(&self, name: &str) -> bool {
        self.found(name).is_some_and(|f| *f != Found::Nothing)
    }

    /// Returns the list that a [`rest`](crate::pattern::rest) captured in the matched body; an
    /// empty list if it is in an alternative that was not taken. Takes constant time, since the
    /// list is a part of the body. Use [`Rewriter::list`](crate::pattern::Rewriter::list) for a
    /// copy while a rule builds.
    ///
    /// Cost: one loop.
    pub fn list<'a>(&'a self, body: &'a Body, name: &str) -> &'a [ExprId] {
        match self.found(name) {
            Some(&Found::Tail(id, from)) => tail(body, id, from),
            Some(Found::One(id)) => std::slice::from_ref(id),
            _ => &[],
        }
    }

    /// Returns the nodes that were captured, with those of lists.
    pub(crate) fn nodes<'a>(&'a self, body: &'a Body) -> impl Iterator<Item = ExprId> + 'a {
        let nodes = self.found.iter().flat_map(|found| match found {
            Found::One(id) => std::slice::from_ref(id),
            &Found::Tail(id, from) => tail(body, id, from),
            Found::Nothing | Found::Attr(_) => &[],
        });
        nodes.copied()
    }

    fn found(&self, name: &str) -> Option<&'m Found> {
        self.found.get(self.names.iter().position(|n| *n.name == *name)?)
    }

    /// Returns the captured expressions and their names, in the order of the pattern. Lists and
    /// captures without a match are not included.
    pub fn iter(&self) -> impl Iterator<Item = (&'m str, ExprId)> + use<'m> {
        self.names.iter().zip(self.found).filter_map(|(name, found)| match found {
            Found::One(id) => Some((&*name.name, *id)),
            _ => None,
        })
    }

    /// Returns the captured lists of expressions and their names, in the order of the pattern.
    ///
    /// Cost: one loop.
    pub fn lists<'a>(&'a self, body: &'a Body) -> impl Iterator<Item = (&'m str, &'a [ExprId])> {
        self.names.iter().zip(self.found).filter_map(|(name, found)| match found {
            &Found::Tail(id, from) => Some((&*name.name, tail(body, id, from))),
            _ => None,
        })
    }
}

impl std::ops::Index<&str> for Captures<'_> {
    type Output = ExprId;

    /// Returns the expression captured by a name.
    ///
    /// # Panics
    /// If the name captured no expression. [`Captures::get`] returns `None` then.
    fn index(&self, name: &str) -> &ExprId {
        match self.found(name) {
            Some(Found::One(id)) => id,
            _ => panic!("nothing was captured as `{name}`"),
        }
    }
}

impl std::ops::Index<usize> for Captures<'_> {
    type Output = ExprId;

    /// Returns the expression of a capture by number: captures are numbered from 0, in the order of
    /// the pattern.
    ///
    /// # Panics
    /// If the capture with this number captured no expression.
    fn index(&self, number: usize) -> &ExprId {
        match self.found.get(number) {
            Some(Found::One(id)) => id,
            _ => panic!("nothing was captured by number {number}"),
        }
    }
}

impl std::fmt::Debug for Captures<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.names.iter().map(|named| &named.name).zip(self.found)).finish()
    }
}

//! What a match has found.

use anfora_ir::{AttrId, Body, ExprId};

use crate::pattern::compile::NamedCapture;
use crate::pattern::search::tail;

/// What the captures of a pattern stand for in a match. In A-normal form an operand is an atom: the
/// variable, not what is bound to it.
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
    /// The operands of a node from a number on.
    Tail(ExprId, u32),
    /// The value of an attribute; `None` is its default.
    Attr(Option<AttrId>),
}

impl<'m> Captures<'m> {
    /// The node at which the pattern was found.
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// What was captured by a name; `None` where it stands in an alternative that was not taken, or
    /// is a list.
    pub fn get(&self, name: &str) -> Option<ExprId> {
        match self.found(name)? {
            Found::One(id) => Some(*id),
            _ => None,
        }
    }

    /// The value of an attribute that was captured by a name; `None` where it was left out, so that
    /// it has its default, and of anything else.
    pub fn attr(&self, name: &str) -> Option<AttrId> {
        match self.found(name)? {
            Found::Attr(value) => *value,
            _ => None,
        }
    }

    /// Returns true if something was captured by a name.
    pub fn has(&self, name: &str) -> bool {
        self.found(name).is_some_and(|f| *f != Found::Nothing)
    }

    /// The list that a [`rest`](crate::pattern::rest) captured, in the body that was matched; empty
    /// where it stands in an alternative that was not taken. In constant time: it is where it was
    /// found. While a rule builds, [`Rewriter::list`](crate::pattern::Rewriter::list) says it in a
    /// copy.
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

    /// Names and what was captured, in the order in which they stand in the pattern, without lists
    /// and what was not captured.
    pub fn iter(&self) -> impl Iterator<Item = (&'m str, ExprId)> + use<'m> {
        self.names.iter().zip(self.found).filter_map(|(name, found)| match found {
            Found::One(id) => Some((&*name.name, *id)),
            _ => None,
        })
    }
}

impl std::ops::Index<&str> for Captures<'_> {
    type Output = ExprId;

    /// # Panics
    /// If nothing was captured by that name; [`Captures::get`] says so instead.
    fn index(&self, name: &str) -> &ExprId {
        match self.found(name) {
            Some(Found::One(id)) => id,
            _ => panic!("nothing was captured as `{name}`"),
        }
    }
}

impl std::ops::Index<usize> for Captures<'_> {
    type Output = ExprId;

    /// By number: captures are numbered from 0, in the order in which they stand in the pattern.
    ///
    /// # Panics
    /// If nothing was captured by that number.
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

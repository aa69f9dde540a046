//! What a graph carries along: for a branch of an `if`, among what the binding of the `if` does.

use anfora_ir::{AttrId, AttrsId, Context};

use crate::keys;

/// Where that is.
#[derive(Copy, Clone, Debug)]
pub(super) struct GraphMeta {
    attrs: AttrsId,
    /// What the keys of a branch begin with.
    branch: Option<&'static str>,
}

impl GraphMeta {
    /// For what has a binding, or attributes, of its own.
    pub(super) fn of(attrs: AttrsId) -> GraphMeta {
        GraphMeta { attrs, branch: None }
    }

    /// For a branch, by the beginning of its keys.
    pub(super) fn of_branch(attrs: AttrsId, branch: &'static str) -> GraphMeta {
        GraphMeta { attrs, branch: Some(branch) }
    }

    /// The value under a key.
    pub(super) fn find(self, cx: &Context, key: &str) -> Option<AttrId> {
        match self.branch {
            None => cx.find_attr(self.attrs, key),
            Some(branch) => cx.find_attr(self.attrs, &keys::of_branch(branch, key)),
        }
    }
}

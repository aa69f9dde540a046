//! The metadata of a graph. For a branch of an `if` it is part of the metadata of the binding of
//! the `if`.

use anfora_ir::{AttrId, AttrsId, Context};

use crate::error::ExportProblem;
use crate::keys;

/// The location of the metadata of a graph.
#[derive(Copy, Clone, Debug)]
pub(super) struct GraphMeta {
    attrs: AttrsId,
    /// The prefix of the keys of a branch.
    branch: Option<&'static str>,
}

impl GraphMeta {
    /// Returns the location for a graph whose binding or function has attributes of its own.
    pub(super) fn of(attrs: AttrsId) -> GraphMeta {
        GraphMeta { attrs, branch: None }
    }

    /// Returns the location for a branch, by the prefix of its keys.
    pub(super) fn of_branch(attrs: AttrsId, branch: &'static str) -> GraphMeta {
        GraphMeta { attrs, branch: Some(branch) }
    }

    /// Returns the value under a key.
    fn find(self, cx: &Context, key: &str) -> Option<AttrId> {
        match self.branch {
            None => cx.find_attr(self.attrs, key),
            Some(branch) => cx.find_attr(self.attrs, &keys::of_branch(branch, key)),
        }
    }

    /// Reads the value under a key, if there is one.
    ///
    /// # Errors
    /// If the value is not what the importer writes.
    pub(super) fn read<'m, T>(
        self,
        cx: &'m Context,
        key: &'static str,
        read: impl FnOnce(&'m Context, AttrId) -> Option<T>,
    ) -> Result<Option<T>, ExportProblem> {
        self.find(cx, key).map(|value| read(cx, value).ok_or(ExportProblem::Damaged(key))).transpose()
    }
}

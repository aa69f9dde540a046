//! Watches over the links of a body, with which a walk detects that other code overwrites the nodes
//! that it walks.

use super::Body;
use crate::walk::link_watch::LinkWatch;

impl Body {
    /// Returns a watch over the links of the current nodes, for [`Body::watch_links`].
    ///
    /// Cost: one node.
    pub fn new_watch(&self) -> LinkWatch {
        LinkWatch::new(self.exprs.len(), self.operands.len())
    }

    /// Starts a watch, which records until [`Body::end_watch`] if a link of one of its nodes is
    /// overwritten, so that a walk can tell whether other code edits what it walks. Names and flags
    /// of variables, types, parameters and metadata are not links.
    ///
    /// Returns the watch that this one replaces, which callers must pass to [`Body::end_watch`].
    ///
    /// Cost: one node.
    #[inline(always)]
    pub fn watch_links(&mut self, watch: LinkWatch) -> LinkWatch {
        std::mem::replace(&mut self.watch, watch)
    }

    /// Returns true if a link was overwritten since the watch began, or since
    /// [`Body::forget_heard`].
    ///
    /// Cost: one node.
    #[inline(always)]
    pub fn has_heard(&self) -> bool {
        self.watch.is_dirty()
    }

    /// Marks the overwrites of links until now as intended, and adds them to `by`.
    ///
    /// Cost: one node.
    pub fn forget_heard(&mut self, by: &mut LinkWatch) {
        by.merge(&self.watch);
        self.watch = self.watch.unseen();
    }

    /// Ends a watch. The watch before it goes on, and takes over the overwrites that the ended
    /// watch recorded and the intended ones in `meant`.
    ///
    /// Cost: one node.
    pub fn end_watch(&mut self, mut outer: LinkWatch, meant: &LinkWatch) {
        outer.take_up(&self.watch);
        outer.take_up(meant);
        self.watch = outer;
    }
}

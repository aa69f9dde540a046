//! Watches over the links of a body: a walk can tell that somebody else overwrites what it walks.

use super::Body;
use crate::walk::link_watch::LinkWatch;

impl Body {
    /// A watch over the links of the nodes that there are now, for [`Body::watch_links`].
    ///
    /// Cost: one node.
    pub fn new_watch(&self) -> LinkWatch {
        LinkWatch::new(self.exprs.len(), self.operands.len())
    }

    /// From here to [`Body::end_watch`], notes whether a link of the nodes that the watch is over
    /// is overwritten: a walk can tell whether somebody else edits what it walks. Names and flags
    /// of variables, types, parameters and metadata are no links.
    ///
    /// Returns the watch that this one takes the place of, to be handed to [`Body::end_watch`].
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
        self.watch.has_seen()
    }

    /// The links that were overwritten until now were meant to be; `by` remembers them.
    ///
    /// Cost: one node.
    pub fn forget_heard(&mut self, by: &mut LinkWatch) {
        by.hear_of(&self.watch);
        self.watch = self.watch.unseen();
    }

    /// Ends a watch. The one before it goes on, and hears of what the watch has heard, and of what
    /// was meant to be overwritten during it.
    ///
    /// Cost: one node.
    pub fn end_watch(&mut self, mut outer: LinkWatch, meant: &LinkWatch) {
        outer.take_up(&self.watch);
        outer.take_up(meant);
        self.watch = outer;
    }
}

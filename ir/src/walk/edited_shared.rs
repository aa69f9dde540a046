//! Edited nodes that have several uses.

use crate::core::body::Body;
use crate::core::entity::ExprId;
use crate::walk::cursor::{Cursor, Step};

impl Body {
    /// Takes the nodes that existed when the innermost open edit began, were overwritten since
    /// while edits of shared nodes were recorded, and have more than one use. Each comes with its
    /// number of uses, in program order. Empty in builds without debug assertions.
    ///
    /// Linear in the body, if there are candidates.
    pub fn take_edited_shared(&mut self) -> Vec<(ExprId, usize)> {
        let mut links = self.take_edited_by_hand();
        if links.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut count = |target: ExprId| {
            if let Some(n) = links.get_mut(&target) {
                *n += 1;
                if *n == 2 {
                    found.push(target);
                }
            }
        };
        count(self.root());
        let mut cursor = Cursor::new(self);
        while let Some(step) = cursor.next(self) {
            let (Step::Let(id) | Step::Flat(id) | Step::Enter(id)) = step else { continue };
            self.parts(id).for_each(&mut count);
        }
        found.into_iter().map(|id| (id, links[&id])).collect()
    }
}

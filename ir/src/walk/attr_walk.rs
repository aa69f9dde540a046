//! Walks over the values of attributes.

use rustc_hash::FxHashSet;

use crate::core::entity::{AttrId, AttrsId};
use crate::tables::attrs::{Attr, AttrTable};

/// A walk over the values in attributes: those of the added lists, and the items of lists among
/// them, each once.
///
/// Values may be added between the steps. All walks of one `AttrWalk` together are linear in the
/// distinct values.
#[derive(Clone, Default, Debug)]
pub struct AttrWalk {
    /// Values to be visited, the next one last.
    stack: Vec<AttrId>,
    seen: FxHashSet<AttrId>,
}

impl AttrWalk {
    /// Returns a walk without values.
    pub fn new() -> AttrWalk {
        AttrWalk::default()
    }

    /// Adds the values of a list, which are visited next.
    pub fn add(&mut self, table: &AttrTable, attrs: AttrsId) {
        if attrs != table.empty() {
            self.stack.extend(table.list(attrs).iter().rev().map(|&(_, value)| value));
        }
    }

    /// Returns the next value that was not visited before. The items of a list follow it.
    pub fn next<'t>(&mut self, table: &'t AttrTable) -> Option<(AttrId, &'t Attr)> {
        while let Some(value) = self.stack.pop() {
            if !self.seen.insert(value) {
                continue;
            }
            let attr = table.get(value);
            self.stack.extend(attr.items().iter().rev());
            return Some((value, attr));
        }
        None
    }
}

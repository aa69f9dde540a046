//! Detection of links that are overwritten during a walk.

/// A watch over the links of the nodes that existed at some time: see
/// [`Body::watch_links`](crate::Body::watch_links). The default watches no nodes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LinkWatch {
    /// The numbers of watched nodes and operands.
    exprs: u32,
    operands: u32,
    /// The first node and the first operand that were overwritten.
    first_expr: u32,
    first_operand: u32,
}

impl Default for LinkWatch {
    fn default() -> LinkWatch {
        LinkWatch { exprs: 0, operands: 0, first_expr: u32::MAX, first_operand: u32::MAX }
    }
}

impl LinkWatch {
    pub(crate) fn new(exprs: usize, operands: usize) -> LinkWatch {
        LinkWatch {
            exprs: u32::try_from(exprs).expect("ids have 4 bytes"),
            operands: u32::try_from(operands).expect("operand lists start at 4-byte positions"),
            ..LinkWatch::default()
        }
    }

    /// Returns a watch over the same nodes without recorded overwrites.
    ///
    /// Cost: one entry.
    pub fn unseen(&self) -> LinkWatch {
        LinkWatch { exprs: self.exprs, operands: self.operands, ..LinkWatch::default() }
    }

    /// Records that a node is overwritten.
    #[inline(always)]
    pub(crate) fn expr(&mut self, index: usize) {
        if index < self.exprs as usize {
            self.first_expr = self.first_expr.min(index as u32);
        }
    }

    /// Records that an operand is overwritten.
    #[inline(always)]
    pub(crate) fn operand(&mut self, index: usize) {
        if index < self.operands as usize {
            self.first_operand = self.first_operand.min(index as u32);
        }
    }

    /// Returns true if a watched node or operand was overwritten.
    #[inline(always)]
    pub(crate) fn is_dirty(&self) -> bool {
        self.first_expr & self.first_operand != u32::MAX
    }

    /// Adds the overwrites that an inner watch recorded, as far as this watch covers them.
    pub(crate) fn take_up(&mut self, inner: &LinkWatch) {
        self.expr(inner.first_expr as usize);
        self.operand(inner.first_operand as usize);
    }

    /// Adds all overwrites that another watch recorded.
    pub(crate) fn merge(&mut self, other: &LinkWatch) {
        self.first_expr = self.first_expr.min(other.first_expr);
        self.first_operand = self.first_operand.min(other.first_operand);
    }
}

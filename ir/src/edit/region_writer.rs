//! The flags of dataflow regions, for code that builds or rewrites a chain.

use crate::core::body::Body;
use crate::core::entity::ExprId;
use crate::core::expr::{Expr, LetFlags, VarFlags, VarId};

/// A writer of the flags of the Lets of a chain, from its first to its last.
///
/// Code that builds a chain calls [`begin`](RegionWriter::begin) and [`end`](RegionWriter::end)
/// around each region. Code that rewrites a chain calls [`follow`](RegionWriter::follow) at each
/// Let of the old chain, whether it keeps or removes the Let. Both call
/// [`next_flags`](RegionWriter::next_flags) or [`write`](RegionWriter::write) at each Let of the
/// new chain. If the first Let of a region is removed, the region begins with the next Let. Lets
/// that are inserted before a Let of a region are part of the region.
///
/// ```
/// use anfora_ir::{LetFlags, RegionWriter};
///
/// let mut regions = RegionWriter::default();
/// // A region begins with a Let that goes; another Let comes in front of the next.
/// regions.follow(LetFlags::REGION_START);
/// regions.follow(LetFlags::DATAFLOW);
/// assert_eq!(regions.next_flags(), LetFlags::REGION_START);
/// assert_eq!(regions.next_flags(), LetFlags::DATAFLOW);
/// regions.follow(LetFlags::PLAIN);
/// assert_eq!(regions.next_flags(), LetFlags::PLAIN);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RegionWriter {
    region: RegionState,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum RegionState {
    #[default]
    Outside,
    AtStart,
    Inside,
}

impl RegionWriter {
    /// Begins a region with the next Let.
    #[inline]
    pub fn begin(&mut self) {
        self.region = RegionState::AtStart;
    }

    /// Ends the region, if one is open.
    #[inline]
    pub fn end(&mut self) {
        self.region = RegionState::Outside;
    }

    /// Moves to a Let of the old chain with these flags: the Lets written next are in its region,
    /// or outside of any region if it is.
    #[inline]
    pub fn follow(&mut self, old: LetFlags) {
        match old {
            LetFlags::REGION_START => self.begin(),
            LetFlags::DATAFLOW if self.is_open() => {}
            LetFlags::DATAFLOW => self.begin(),
            _ => self.end(),
        }
    }

    /// Returns a writer for Lets that are inserted before a Let with these flags.
    #[inline]
    pub fn before(flags: LetFlags) -> RegionWriter {
        let region = match flags {
            LetFlags::REGION_START => RegionState::AtStart,
            LetFlags::DATAFLOW => RegionState::Inside,
            _ => RegionState::Outside,
        };
        RegionWriter { region }
    }

    /// Returns a writer for Lets that are inserted after a Let with these flags.
    #[inline]
    pub fn after(flags: LetFlags) -> RegionWriter {
        RegionWriter { region: if flags.is_dataflow() { RegionState::Inside } else { RegionState::Outside } }
    }

    /// Updates the flags for the removal of a Let that `next` follows: a region that began with the
    /// removed Let begins with `next`, if `next` is in the region.
    ///
    /// Cost: one node.
    #[inline]
    pub fn take_out(body: &mut Body, gone: LetFlags, next: ExprId) {
        if gone.starts_region() && matches!(body.expr(next), Expr::Let { flags: LetFlags::DATAFLOW, .. }) {
            body.set_let_flags(next, LetFlags::REGION_START);
        }
    }

    /// Returns true if the next Let is in a region.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.region != RegionState::Outside
    }

    /// Returns the flags of the next Let, which counts as written.
    #[inline]
    pub fn next_flags(&mut self) -> LetFlags {
        match self.region {
            RegionState::Outside => LetFlags::PLAIN,
            RegionState::AtStart => {
                self.region = RegionState::Inside;
                LetFlags::REGION_START
            }
            RegionState::Inside => LetFlags::DATAFLOW,
        }
    }

    /// Returns the flags of a new variable that the next Let binds, if only the region uses it.
    #[inline]
    pub fn var_flags(&self) -> VarFlags {
        if self.is_open() { VarFlags::DATAFLOW } else { VarFlags::PLAIN }
    }

    /// Writes the flags of the next Let of the chain. Outside of regions, its variable becomes
    /// plain.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If `id` is not a Let.
    #[inline]
    pub fn write(&mut self, body: &mut Body, id: ExprId) {
        let Expr::Let { var, flags: old, .. } = body.expr(id) else { panic!("{id:?} is not a Let") };
        let new = self.next_flags();
        if new != old {
            body.set_let_flags(id, new);
        }
        if !new.is_dataflow() && body.is_dataflow_var(var) {
            body.set_var_flags(var, VarFlags::PLAIN);
        }
    }
}

impl Body {
    /// Overwrites the flags of a Let. A [`RegionWriter`] determines them.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If `id` is not a Let.
    #[inline]
    pub fn set_let_flags(&mut self, id: ExprId, flags: LetFlags) {
        match self.expr(id) {
            Expr::Let { var, value, body: rest, .. } => self.set_expr(id, Expr::Let { var, value, body: rest, flags }),
            other => panic!("{id:?} is {other:?}, not a Let"),
        }
    }

    /// Overwrites the flags of a variable: makes it an output of its dataflow region
    /// ([`VarFlags::PLAIN`]), or visible only in it.
    ///
    /// Cost: one node.
    #[inline]
    pub fn set_var_flags(&mut self, var: VarId, flags: VarFlags) {
        let name = self.var_name(var);
        self.set_expr(var.expr(), Expr::Var { name, flags });
    }
}

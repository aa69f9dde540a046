//! What variables are bound to, for passes that look through them.

use anfora_ir::{Body, EntityId, Expr, ExprId, VarFlags, VarId};
use anfora_visit::set_var_flags;

use crate::support::sweep::{Scope, Sweep};

/// The values of the variables that were told of, and the dataflow region that each is in.
///
/// A variable of a region that takes the place of something outside it becomes an output of the region ([`Definitions::bring_out`]).
pub(crate) struct Definitions {
    /// By variable: its value, and the region (0 for none).
    values: Vec<(Option<ExprId>, u32)>,
    room: usize,
    region: u32,
    regions: u32,
    /// The regions outside, one for each open scope.
    outer: Vec<u32>,
}

impl Definitions {
    pub(crate) fn new(body: &Body) -> Definitions {
        Definitions { values: Vec::new(), room: body.len(), region: 0, regions: 0, outer: Vec::new() }
    }

    /// Follows the sweep into a scope.
    pub(crate) fn enter(&mut self, scope: Scope) {
        self.outer.push(self.region);
        self.region = 0;
        if scope == Scope::Region {
            self.regions += 1;
            self.region = self.regions;
        }
    }

    /// Follows the sweep out of a scope.
    pub(crate) fn exit(&mut self, _: Scope) {
        self.region = self.outer.pop().expect("scopes are left in the order in which they were entered");
    }

    /// The variable is bound to the value, here.
    pub(crate) fn set(&mut self, var: VarId, value: ExprId) {
        let i = var.index();
        if i >= self.values.len() {
            self.values.resize(self.room.max(i + 1), (None, 0));
        }
        self.values[i] = (Some(value), self.region);
    }

    /// What a variable is bound to, if that was told.
    #[inline]
    pub(crate) fn get(&self, atom: ExprId) -> Option<ExprId> {
        self.values.get(atom.index())?.0
    }

    /// The atom that a field of a tuple is, where the tuple is known; ready to be used here.
    #[inline]
    pub(crate) fn field(&self, s: &mut Sweep<'_>, tuple: ExprId, index: u32) -> Option<ExprId> {
        let Expr::Tuple(fields) = s.body.expr(self.get(tuple)?) else { return None };
        if index as usize >= fields.len() {
            return None;
        }
        let field = s.body.operand(fields, index as usize);
        self.bring_out(s, tuple, field);
        Some(field)
    }

    /// Makes an atom that is visible where `from` (a variable that was told of) is bound visible here.
    pub(crate) fn bring_out(&self, s: &mut Sweep<'_>, from: ExprId, atom: ExprId) {
        if let Some(var) = s.body.as_var(atom)
            && s.body.is_dataflow_var(var)
            && self.values.get(from.index()).is_some_and(|&(_, region)| region != self.region)
        {
            set_var_flags(s.body, var, VarFlags::PLAIN);
        }
    }
}

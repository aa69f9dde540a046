//! The dataflow regions of a walk. If an expression of the author uses a variable of a region
//! outside of the region, the variable becomes an output of the region.

use anfora_ir::bumpalo::Bump;
use anfora_ir::{Body, EntityId, Expr, ExprId, ScratchVec, VarFlags, VarId};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::chain::set_var_flags;

/// The dataflow regions of a walk, and the variables that they bind.
pub(crate) struct Regions<'b> {
    /// The open regions around the current place, outermost first, by their serial numbers, from 1.
    open: SmallVec<[u32; 4]>,
    /// The serial number of the innermost open region; 0 if none is open.
    here: u32,
    /// By variable: the serial number of its region; 0 if the walk has not reached its binding.
    home: ScratchVec<'b, u32>,
    /// By serial number: the depth of an open region, from 1; 0 for a region that has ended.
    depth: SmallVec<[u32; 4]>,
    /// The results for nodes that were searched.
    looked_into: FxHashMap<ExprId, Looked>,
    /// The number of searched expressions.
    calls: u32,
}

/// The variables of dataflow regions that an expression uses.
#[derive(Copy, Clone)]
struct Uses {
    /// The depth of the innermost open region that binds one of the variables, from 1; 0 if there
    /// is none.
    region: u32,
    /// The least search depth of a Let that binds one of the variables; `u32::MAX` if there is
    /// none.
    binder: u32,
}

impl Uses {
    const NONE: Uses = Uses { region: 0, binder: u32::MAX };

    fn add(&mut self, other: Uses) {
        self.region = self.region.max(other.region);
        self.binder = self.binder.min(other.binder);
    }
}

/// The result for a searched node. It is valid until the region of `uses` ends, since the other
/// regions whose variables the node uses end later. If there is no such region, it stays valid.
#[derive(Copy, Clone)]
struct Looked {
    uses: Uses,
    /// The serial number of the region.
    serial: u32,
    /// The number of the expression that was being searched. If the node uses variables bound in
    /// that expression, the result is valid only there.
    call: u32,
}

/// A node that is being searched.
struct Frame {
    id: ExprId,
    next: u32,
    uses: Uses,
}

impl<'b> Regions<'b> {
    /// Returns the state outside of regions, with room for `room` expressions.
    pub(crate) fn with_room(room: usize, scratch: &'b Bump) -> Regions<'b> {
        let mut home = ScratchVec::new_in(scratch);
        home.resize(room, 0);
        Regions {
            open: SmallVec::new(),
            here: 0,
            home,
            depth: smallvec![0],
            looked_into: FxHashMap::default(),
            calls: 0,
        }
    }

    /// Begins a region.
    pub(crate) fn begin(&mut self) {
        self.here = self.depth.len() as u32;
        self.open.push(self.here);
        self.depth.push(self.open.len() as u32);
    }

    /// Ends the innermost region.
    pub(crate) fn end(&mut self) {
        if let Some(serial) = self.open.pop() {
            self.depth[serial as usize] = 0;
        }
        self.here = self.open.last().copied().unwrap_or(0);
    }

    /// Records that a variable is bound in the innermost region.
    #[inline(always)]
    pub(crate) fn bind(&mut self, var: VarId) {
        let i = var.index();
        if i >= self.home.len() {
            self.make_room(i);
        }
        self.home[i] = self.here;
    }

    #[cold]
    fn make_room(&mut self, i: usize) {
        self.home.resize((i + 1).next_power_of_two(), 0);
    }

    /// Returns the depth of the open region that binds a variable; `None` if the region has ended,
    /// and 0 if no region is known to bind it.
    fn depth_of(&self, var: ExprId) -> Option<u32> {
        let serial = self.home.get(var.index()).copied().unwrap_or(0);
        if serial == 0 {
            return Some(0);
        }
        Some(self.depth[serial as usize]).filter(|&depth| depth != 0)
    }

    /// Makes variables that an expression uses outputs of their regions, if these regions have
    /// ended and the expression itself does not bind the variables.
    #[inline]
    pub(crate) fn let_out(&mut self, body: &mut Body, id: ExprId) {
        let expr = body.expr(id);
        if expr.is_atom() {
            return self.let_out_atom(body, id);
        }
        match expr.operand_list() {
            Some(list) if body.operands(list).iter().all(|&o| body.expr(o).is_atom()) => {
                for i in 0..list.len() {
                    self.let_out_atom(body, body.operand(list, i));
                }
            }
            _ => self.let_out_of(body, id),
        }
    }

    #[inline]
    fn let_out_atom(&self, body: &mut Body, id: ExprId) {
        if let Expr::Var { flags, .. } = body.expr(id)
            && flags.is_dataflow()
            && self.depth_of(id).is_none()
            && let Some(var) = body.as_var(id)
        {
            set_var_flags(body, var, VarFlags::PLAIN);
        }
    }

    /// Searches an expression with parts. A node is searched once, and again after a region whose
    /// variables it uses has ended.
    fn let_out_of(&mut self, body: &mut Body, id: ExprId) {
        self.calls = self.calls.wrapping_add(1);
        let mut binders: FxHashMap<ExprId, u32> = FxHashMap::default();
        let mut stack: SmallVec<[Frame; 4]> = SmallVec::new();
        let mut part = Some(id);
        loop {
            // The variables of the current part, unless it must be searched.
            let mut uses = Uses::NONE;
            if let Some(id) = part {
                match body.expr(id) {
                    Expr::Var { flags, .. } if !flags.is_dataflow() => {}
                    Expr::Var { .. } => {
                        if let Some(&depth) = binders.get(&id) {
                            uses.binder = depth;
                        } else if let Some(depth) = self.depth_of(id) {
                            uses.region = depth;
                        } else if let Some(var) = body.as_var(id) {
                            set_var_flags(body, var, VarFlags::PLAIN);
                        }
                    }
                    expr if expr.is_atom() => {}
                    expr => match self.known(id) {
                        Some(known) => uses = known,
                        None => {
                            // A node that contains itself, which the walk refuses later, ends the
                            // search here.
                            self.note(id, Uses::NONE);
                            if let Expr::Let { var, .. } = expr {
                                binders.insert(var.expr(), stack.len() as u32);
                            }
                            stack.push(Frame { id, next: 0, uses: Uses::NONE });
                        }
                    },
                }
            }
            let Some(frame) = stack.last_mut() else { return };
            frame.uses.add(uses);
            part = body.parts(frame.id).nth(frame.next as usize);
            frame.next += 1;
            if part.is_none()
                && let Some(Frame { id, mut uses, .. }) = stack.pop()
            {
                // A Let binds the variables found at this depth of the search or below.
                if uses.binder >= stack.len() as u32 {
                    uses.binder = u32::MAX;
                }
                self.note(id, uses);
                let Some(around) = stack.last_mut() else { return };
                around.uses.add(uses);
            }
        }
    }

    /// Returns the result for a node, if it is still valid.
    fn known(&self, id: ExprId) -> Option<Uses> {
        let &Looked { uses, serial, call } = self.looked_into.get(&id)?;
        let is_open = match uses.region.checked_sub(1) {
            Some(at) => self.open.get(at as usize) == Some(&serial),
            None => true,
        };
        (is_open && (uses.binder == u32::MAX || call == self.calls)).then_some(uses)
    }

    fn note(&mut self, id: ExprId, uses: Uses) {
        let region = uses.region.checked_sub(1).and_then(|at| self.open.get(at as usize));
        let serial = region.copied().unwrap_or(0);
        self.looked_into.insert(id, Looked { uses, serial, call: self.calls });
    }
}

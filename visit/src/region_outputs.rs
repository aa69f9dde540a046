//! Makes a variable of a dataflow region an output of it where an author's expression uses it
//! outside.

use anfora_ir::{Body, Expr, ExprId, VarFlags, VarId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::chain::set_var_flags;
use crate::link::Binding;

/// The open regions of a walk of a whole body. Which variables they bind is looked up when an
/// expression asks, from where the last one stopped asking, so that walks in which the author
/// replaces nothing do not pay for it.
#[derive(Default)]
pub(crate) struct RegionOutputs {
    /// The regions around the place, outermost first.
    open: Vec<OpenRegion>,
    /// Variables of the open regions, as far as they were looked up, each with the depth of its
    /// region.
    bound: FxHashMap<ExprId, u32>,
    /// What is known of nodes that were looked into.
    looked_into: FxHashMap<ExprId, Looked>,
    /// How many regions began.
    begun: u32,
    /// How many expressions were looked into.
    calls: u32,
}

struct OpenRegion {
    /// Tells it from other regions at the same depth.
    serial: u32,
    /// The number of its block among the open ones.
    block: usize,
    /// The Let after which variables are still to be looked up; `None` for the beginning of the
    /// block.
    after: Option<ExprId>,
    looked_up: bool,
    vars: Vec<ExprId>,
}

/// What an open block has so far.
#[derive(Copy, Clone)]
pub(crate) struct ChainSoFar {
    /// The first Let that stays.
    pub(crate) first: Option<ExprId>,
    /// The last one.
    pub(crate) last: Option<ExprId>,
    /// The variable of the Let that the walk is at: the `fn` that is its value may use it.
    pub(crate) own: Option<VarId>,
}

/// The variables of dataflow regions that an expression uses.
#[derive(Copy, Clone)]
struct Uses {
    /// The depth of the innermost open region that binds one of them, from 1; 0 if none does.
    region: u32,
    /// The least depth at which the search had come to a Let that binds one of them; `u32::MAX` if
    /// none does.
    binder: u32,
}

impl Uses {
    const NONE: Uses = Uses { region: 0, binder: u32::MAX };

    fn add(&mut self, other: Uses) {
        self.region = self.region.max(other.region);
        self.binder = self.binder.min(other.binder);
    }
}

/// What is known of a node. It holds until the region of `uses` ends, since all others of which it
/// uses variables end later; for ever, if there is none.
#[derive(Copy, Clone)]
struct Looked {
    uses: Uses,
    /// The serial number of that region.
    serial: u32,
    /// The expression in which the node was met. A node that uses what is bound in that expression
    /// is known in there only.
    call: u32,
}

/// A node that is being looked into.
struct Frame {
    id: ExprId,
    next: u32,
    uses: Uses,
}

impl RegionOutputs {
    /// A region begins in an open block, after its Let `after`.
    pub(crate) fn begin(&mut self, block: usize, after: Option<ExprId>) {
        self.begun += 1;
        self.open.push(OpenRegion { serial: self.begun, block, after, looked_up: false, vars: Vec::new() });
    }

    /// The innermost region ends.
    pub(crate) fn end(&mut self) {
        for var in self.open.pop().into_iter().flat_map(|region| region.vars) {
            self.bound.remove(&var);
        }
    }

    /// Makes variables that an expression uses, and that neither it nor an open region binds,
    /// outputs of their regions. `own` is the variable that the expression is going to be the value
    /// of: a recursive `fn` uses it where it is bound. `chain` says what an open block has so far.
    ///
    /// A node is looked into once, and again when a region has ended whose variables it uses.
    pub(crate) fn let_out(
        &mut self,
        body: &mut Body,
        id: ExprId,
        own: Option<VarId>,
        chain: impl Fn(usize) -> ChainSoFar,
    ) {
        self.calls = self.calls.wrapping_add(1);
        let mut is_looked_up = false;
        let mut binders: FxHashMap<ExprId, u32> = FxHashMap::default();
        let mut stack: SmallVec<[Frame; 4]> = SmallVec::new();
        let mut part = Some(id);
        loop {
            // What the part that the search has come to uses, unless it has to be looked into.
            let mut uses = Uses::NONE;
            if let Some(id) = part {
                match body.expr(id) {
                    Expr::Var { flags, .. } if !flags.is_dataflow() => {}
                    Expr::Var { .. } if own.is_some_and(|own| own.expr() == id) => {
                        uses.region = self.open.len() as u32;
                    }
                    Expr::Var { .. } => {
                        if !binders.contains_key(&id) && !std::mem::replace(&mut is_looked_up, true) {
                            self.look_up(body, &chain);
                        }
                        if let Some(&depth) = binders.get(&id) {
                            uses.binder = depth;
                        } else if let Some(&region) = self.bound.get(&id) {
                            uses.region = region;
                        } else if let Some(var) = body.as_var(id) {
                            set_var_flags(body, var, VarFlags::PLAIN);
                        }
                    }
                    expr if expr.is_atom() => {}
                    expr => match self.known(id) {
                        Some(known) => uses = known,
                        None => {
                            // What is part of itself, which the walk refuses later, ends here.
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
            part = part_of(body, frame.id, frame.next);
            frame.next += 1;
            if part.is_none()
                && let Some(Frame { id, mut uses, .. }) = stack.pop()
            {
                // It binds what was bound at this depth of the search or further in.
                if uses.binder >= stack.len() as u32 {
                    uses.binder = u32::MAX;
                }
                self.note(id, uses);
                let Some(around) = stack.last_mut() else { return };
                around.uses.add(uses);
            }
        }
    }

    /// Returns what is known of a node, if it still holds.
    fn known(&self, id: ExprId) -> Option<Uses> {
        let &Looked { uses, serial, call } = self.looked_into.get(&id)?;
        let is_open = match uses.region.checked_sub(1) {
            Some(at) => self.open.get(at as usize).is_some_and(|region| region.serial == serial),
            None => true,
        };
        (is_open && (uses.binder == u32::MAX || call == self.calls)).then_some(uses)
    }

    fn note(&mut self, id: ExprId, uses: Uses) {
        let region = uses.region.checked_sub(1).and_then(|at| self.open.get(at as usize));
        let serial = region.map_or(0, |region| region.serial);
        self.looked_into.insert(id, Looked { uses, serial, call: self.calls });
    }

    /// Looks up what the open regions bind by now. While a region is open, those around it get no
    /// further.
    fn look_up(&mut self, body: &Body, chain: impl Fn(usize) -> ChainSoFar) {
        for (outer, region) in self.open.iter_mut().enumerate().rev() {
            let depth = outer as u32 + 1;
            let ChainSoFar { first, last, own } = chain(region.block);
            while last.is_some() && region.after != last {
                let next = match region.after {
                    Some(after) => Binding::of(body, after).map(|b| b.rest),
                    None => first,
                };
                let Some(binding) = next.and_then(|id| Binding::of(body, id)) else { break };
                self.bound.insert(binding.var.expr(), depth);
                region.vars.push(binding.var.expr());
                region.after = Some(binding.id);
            }
            if let Some(own) = own
                && self.bound.insert(own.expr(), depth).is_none()
            {
                region.vars.push(own.expr());
            }
            if std::mem::replace(&mut region.looked_up, true) {
                break;
            }
        }
    }
}

/// Returns a part of a node by its number.
fn part_of(body: &Body, id: ExprId, number: u32) -> Option<ExprId> {
    match (body.expr(id), number) {
        (Expr::Let { value, .. }, 0) => Some(value),
        (Expr::Let { body: rest, .. }, 1) => Some(rest),
        (Expr::If { cond, .. }, 0) => Some(cond),
        (Expr::If { then_block, .. }, 1) => Some(then_block),
        (Expr::If { else_block, .. }, 2) => Some(else_block),
        (Expr::Lambda { body: block, .. }, 0) => Some(block),
        (Expr::Proj { tuple, .. }, 0) => Some(tuple),
        _ => body.operands_of(id).get(number as usize).copied(),
    }
}

//! The dataflow regions of a body, with the uses of their variables.

use anfora_ir::{Body, Context, Cursor, Expr, ExprId, LetFlags, SideTable, Step};
use anfora_visit::{Binding, Link, RewriteError};

/// A dataflow region.
pub(crate) struct RegionRun {
    /// The link that holds its first Let.
    pub(crate) link: Link,
    /// Its segments. No binding moves from one segment to another.
    pub(crate) segments: Vec<usize>,
}

impl RegionRun {
    /// Links other Lets in the place of those of the region.
    ///
    /// The link before a region may be that of the last Let of another, so the last region of a
    /// body is linked first.
    pub(crate) fn relink(&self, body: &mut Body, before: &[ExprId], after: &[ExprId]) {
        let (Some(&last), Some(&first)) = (before.last(), after.first()) else { return };
        let Some(Binding { mut rest, .. }) = Binding::of(body, last) else { return };
        for (i, &id) in after.iter().enumerate().rev() {
            let Expr::Let { var, value, .. } = body.expr(id) else { continue };
            let flags = if i == 0 { LetFlags::REGION_START } else { LetFlags::DATAFLOW };
            body.set_expr(id, Expr::Let { var, value, body: rest, flags });
            rest = id;
        }
        self.link.set(body, first);
    }
}

/// A use outside of a segment: the slot of the Let of the same block that contains it ([`TAIL`] for
/// the tail), and the number of the operand if the Let's own value is the user.
pub(crate) type OuterUse = (u32, u32);

/// The slot of the tail of a block.
pub(crate) const TAIL: u32 = u32::MAX;

/// A part of a region whose bindings may change places.
#[derive(Default)]
pub(crate) struct Segment {
    pub(crate) lets: Vec<ExprId>,
    /// The slots of the Lets: numbers that ascend in each block.
    pub(crate) slots: Vec<u32>,
    /// Pairs of a binding and a binding that uses it, in the order of the uses.
    pub(crate) uses: Vec<(u32, u32)>,
    /// Pairs of an input and a binding that uses it, in the order of the uses.
    pub(crate) inputs: Vec<(ExprId, u32)>,
    /// Pairs of a binding and a use of it outside of the segment.
    pub(crate) outputs: Vec<(u32, OuterUse)>,
}

/// The place of a variable's binding.
#[derive(Copy, Clone, Default)]
pub(crate) struct VarPlace {
    /// The number of the blocks around its block.
    pub(crate) depth: u32,
    /// The slot of its Let, or 0 for a parameter.
    pub(crate) slot: u32,
    /// The segment, counted from 1, or 0 outside of regions.
    segment: u32,
    /// The number of the binding in its segment, or that of the parameter.
    pub(crate) index: u32,
}

/// An open block.
struct Level {
    /// The link that holds the next Let.
    link: Link,
    /// The slot of the current Let, or [`TAIL`].
    slot: u32,
    /// The segment of the current Let, counted from 1, or 0.
    segment: u32,
    /// The open region.
    region: Option<usize>,
    /// True if the next Let of the region begins a segment.
    begins: bool,
    /// The innermost level around this one whose current Let is in a segment.
    around: Option<usize>,
}

/// The scan of a body.
pub(crate) struct RegionScan {
    /// The regions, in the order of their first Lets.
    pub(crate) regions: Vec<RegionRun>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) places: SideTable<ExprId, VarPlace>,
    /// The position of each slot among those of its block. It changes when a segment is sorted.
    pub(crate) positions: Vec<u32>,
    levels: Vec<Level>,
}

impl RegionScan {
    /// Returns the regions of a body.
    ///
    /// # Errors
    /// If the body is not in A-normal form.
    pub(crate) fn of(cx: &Context, body: &Body) -> Result<RegionScan, RewriteError> {
        let mut scan = RegionScan {
            regions: Vec::new(),
            segments: Vec::new(),
            places: body.side_table(VarPlace::default()),
            positions: vec![0],
            levels: Vec::new(),
        };
        for (i, param) in body.params().iter().enumerate() {
            scan.places.get_mut(param.expr()).index = i as u32;
        }
        let mut cursor = Cursor::with_regions(body);
        while let Some(step) = cursor.next(body) {
            RewriteError::unless_anf(cx, body, &cursor, step)?;
            match step {
                Step::EnterBlock(_, kind) => scan.enter(body, Link::of_block(kind).unwrap_or(Link::Root)),
                Step::ExitBlock(..) => drop(scan.levels.pop()),
                Step::EnterRegion(_) => {
                    let Some(level) = scan.levels.last_mut() else { continue };
                    (level.region, level.begins) = (Some(scan.regions.len()), true);
                    scan.regions.push(RegionRun { link: level.link, segments: Vec::new() });
                }
                Step::ExitRegion(_) => {
                    let Some(level) = scan.levels.last_mut() else { continue };
                    level.region = None;
                }
                Step::Let(id) => scan.binding(cx, body, id),
                Step::Bound(id) => {
                    let Some(level) = scan.levels.last_mut() else { continue };
                    (level.link, level.slot, level.segment) = (Link::Rest(id), TAIL, 0);
                }
                Step::Atom(id) => scan.mention(body, id, 0),
                Step::Flat(id) => {
                    for (i, &input) in body.inputs(id).iter().enumerate() {
                        scan.mention(body, input, i as u32);
                    }
                }
                _ => {}
            }
        }
        Ok(scan)
    }

    /// Enters a block.
    fn enter(&mut self, body: &Body, link: Link) {
        let around = self.innermost_segment();
        let depth = self.levels.len() as u32;
        self.levels.push(Level { link, slot: TAIL, segment: 0, region: None, begins: false, around });
        if let Link::Lambda(id) = link
            && let Expr::Lambda { lambda, .. } = body.expr(id)
        {
            for (i, param) in body.lambda_params(lambda).enumerate() {
                *self.places.get_mut(param.expr()) = VarPlace { depth, slot: 0, segment: 0, index: i as u32 };
            }
        }
    }

    /// Returns the innermost level whose current Let is in a segment.
    fn innermost_segment(&self) -> Option<usize> {
        let last = self.levels.len().checked_sub(1)?;
        if self.levels[last].segment != 0 { Some(last) } else { self.levels[last].around }
    }

    /// Enters a Let.
    fn binding(&mut self, cx: &Context, body: &Body, id: ExprId) {
        let (Some(binding), Some(depth)) = (Binding::of(body, id), self.levels.len().checked_sub(1)) else { return };
        let level = &mut self.levels[depth];
        let slot = self.positions.len() as u32;
        self.positions.push(slot);
        level.slot = slot;
        let mut place = VarPlace { depth: depth as u32, slot, ..VarPlace::default() };
        if let Some(region) = level.region {
            // A cast may bind symbols.
            let is_cast = matches!(body.expr(binding.value), Expr::CallOp { op, .. }
                if cx.ops.facts(op).is_match_cast() && cx.types.is_symbolic(body.ty(binding.value)));
            if level.begins || is_cast || self.regions[region].segments.is_empty() {
                self.regions[region].segments.push(self.segments.len());
                self.segments.push(Segment::default());
            }
            level.begins = is_cast;
            let number = *self.regions[region].segments.last().expect("a segment was begun");
            let segment = &mut self.segments[number];
            level.segment = number as u32 + 1;
            (place.segment, place.index) = (level.segment, segment.lets.len() as u32);
            segment.lets.push(id);
            segment.slots.push(slot);
        }
        *self.places.get_mut(binding.var.expr()) = place;
    }

    /// Notes a use of a variable.
    fn mention(&mut self, body: &Body, id: ExprId, operand: u32) {
        if body.as_var(id).is_none() {
            return;
        }
        let VarPlace { depth, segment, index, .. } = self.places[id];
        let innermost = self.innermost_segment();
        let Some(level) = self.levels.get(depth as usize) else { return };
        if segment != 0 {
            let own = &mut self.segments[segment as usize - 1];
            if level.segment == segment {
                // The innermost Let of the segment is the last one so far.
                let user = own.lets.len() as u32 - 1;
                // A fn that uses its own variable calls itself.
                if user != index {
                    own.uses.push((index, user));
                }
            } else {
                let is_direct = depth as usize + 1 == self.levels.len();
                own.outputs.push((index, (level.slot, if is_direct { operand } else { 0 })));
            }
        }
        if let Some(around) = innermost.map(|i| self.levels[i].segment).filter(|&around| around != segment) {
            let user = &mut self.segments[around as usize - 1];
            let number = user.lets.len() as u32 - 1;
            user.inputs.push((id, number));
        }
    }
}

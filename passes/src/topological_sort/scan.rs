//! The dataflow regions of a body, with the uses of their variables.

use anfora_ir::{Body, Context, Cursor, EntityId, Expr, ExprId, SideTable, Step};
use anfora_visit::{Binding, Link, RewriteError};
use rustc_hash::FxHashMap;

use super::search::{Graph, search};
use super::{SearchDirection, SearchOrder};

/// A dataflow region.
pub(super) struct RegionRun {
    /// The link that holds its first Let.
    pub(super) link: Link,
    /// Its segments. No binding moves from one segment to another.
    pub(super) segments: Vec<usize>,
}

/// A use outside of a segment: the slot of the Let of the same block that contains it ([`TAIL`] for
/// the tail), and the number of the operand if the Let's own value is the user.
type OuterUse = (u32, u32);

/// The slot of the tail of a block.
const TAIL: u32 = u32::MAX;

/// A part of a region whose bindings may change places.
#[derive(Default)]
pub(super) struct Segment {
    pub(super) lets: Vec<ExprId>,
    /// The slots of the Lets: numbers that ascend in each block.
    slots: Vec<u32>,
    /// Pairs of a binding and a binding that uses it, in the order of the uses.
    uses: Vec<(u32, u32)>,
    /// Pairs of an input and a binding that uses it, in the order of the uses.
    inputs: Vec<(ExprId, u32)>,
    /// Pairs of a binding and a use of it outside of the segment.
    outputs: Vec<(u32, OuterUse)>,
}

/// The place of a variable's binding.
#[derive(Copy, Clone, Default)]
struct VarPlace {
    /// The number of the blocks around its block.
    depth: u32,
    /// The slot of its Let, or 0 for a parameter.
    slot: u32,
    /// The segment, counted from 1, or 0 outside of regions.
    segment: u32,
    /// The number of the binding in its segment, or that of the parameter.
    index: u32,
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
pub(super) struct RegionScan {
    /// The regions, in the order of their first Lets.
    pub(super) regions: Vec<RegionRun>,
    pub(super) segments: Vec<Segment>,
    places: SideTable<ExprId, VarPlace>,
    /// The position of each slot among those of its block. It changes when a segment is sorted.
    positions: Vec<u32>,
    levels: Vec<Level>,
}

impl RegionScan {
    /// Returns the regions of a body.
    ///
    /// # Errors
    /// If the body is not in A-normal form.
    pub(super) fn of(cx: &Context, body: &Body) -> Result<RegionScan, RewriteError> {
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

    /// Returns the new order of each segment.
    pub(super) fn sort(&mut self, order: SearchOrder, direction: SearchDirection) -> Vec<Vec<u32>> {
        let mut orders = vec![Vec::new(); self.segments.len()];
        let count = self.segments.len();
        for i in 0..count {
            // The keys of inputs are positions in segments before, those of outputs in segments
            // behind.
            let i = if direction == SearchDirection::FromInputs { i } else { count - 1 - i };
            let segment = &self.segments[i];
            orders[i] = match direction {
                SearchDirection::FromInputs => search(&self.graph_from_inputs(segment), order),
                SearchDirection::FromOutputs => {
                    let last = segment.lets.len() as u32;
                    search(&self.graph_from_outputs(segment), order).iter().rev().map(|&node| last - 1 - node).collect()
                }
            };
            let segment = &self.segments[i];
            for (position, &node) in orders[i].iter().enumerate() {
                self.positions[segment.slots[node as usize] as usize] = segment.slots[position];
            }
        }
        orders
    }

    /// Returns the graph of a segment, from values to their users.
    fn graph_from_inputs(&self, segment: &Segment) -> Graph {
        let mut sources: FxHashMap<ExprId, Vec<u32>> = FxHashMap::default();
        for &(input, user) in &segment.inputs {
            sources.entry(input).or_default().push(user);
        }
        let mut sources: Vec<(ExprId, Vec<u32>)> = sources.into_iter().collect();
        sources.sort_unstable_by_key(|&(input, _)| {
            let VarPlace { depth, slot, index, .. } = self.places[input];
            let index = if slot == 0 { index } else { 0 };
            (depth, self.positions[slot as usize], index, input.index())
        });
        let mut uses = segment.uses.clone();
        uses.sort_unstable();
        Graph::new(segment.lets.len(), sources.into_iter().map(|(_, users)| users), &uses)
    }

    /// Returns the graph of a segment, from users to the values that they use. The last binding has
    /// the number 0.
    fn graph_from_outputs(&self, segment: &Segment) -> Graph {
        let last = segment.lets.len() as u32 - 1;
        let mut first_uses: FxHashMap<u32, OuterUse> = FxHashMap::default();
        for &(node, (slot, operand)) in &segment.outputs {
            let position = if slot == TAIL { TAIL } else { self.positions[slot as usize] };
            let first = first_uses.entry(node).or_insert((position, operand));
            *first = (*first).min((position, operand));
        }
        let mut sources: Vec<(u32, OuterUse)> = first_uses.into_iter().collect();
        sources.sort_unstable_by_key(|&(node, first)| std::cmp::Reverse((first, node)));
        // Of the operands of a binding, the last comes first.
        let mut uses: Vec<(u32, u32)> =
            segment.uses.iter().rev().map(|&(value, user)| (last - user, last - value)).collect();
        uses.sort_by_key(|&(user, _)| user);
        Graph::new(segment.lets.len(), sources.into_iter().map(|(node, _)| vec![last - node]), &uses)
    }
}

//! The new orders of the segments of regions.

use anfora_ir::{EntityId, ExprId};
use rustc_hash::FxHashMap;

use super::search::{Graph, search};
use super::{SearchDirection, SearchOrder};
use crate::region_scan::{OuterUse, RegionScan, Segment, TAIL, VarPlace};

impl RegionScan {
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

//! Storages: values that share memory, and the positions at which it is needed.

use anfora_ir::FunctionKey;
use rustc_hash::FxHashMap;

use super::flow::{Flow, FlowValue, OUTSIDE, ValueKind};
use super::memory_plan::{FunctionPlan, PlannedScope, Storage, StorageHome, ValuePlan};
use super::offsets::{Interval, assign};
use super::sizes::UNBOUNDED;

/// Plans the memory of a function whose values are known.
pub(super) fn plan_values(key: FunctionKey, mut flow: Flow) -> FunctionPlan {
    let mut parents = SharedStorages::of(&mut flow);
    let roots = StorageRoots::of(&flow.values, flow.scopes.len(), &parents);
    let mut storages: Vec<Storage> = Vec::with_capacity(roots.roots.len());
    let mut storage_of: Vec<u32> = vec![OUTSIDE; flow.values.len()];
    let scopes = place_scopes(&flow, &roots, |root, storage| {
        storage_of[root as usize] = storages.len() as u32;
        storages.push(storage);
    });
    let plan_of = |(i, value): (u32, &FlowValue)| match value.kind {
        ValueKind::Tensor | ValueKind::Workspace | ValueKind::FnWorkspace => {
            ValuePlan::Storage(storage_of[parents.find(i) as usize])
        }
        ValueKind::Whole => ValuePlan::Within(storage_of[parents.find(i) as usize]),
        ValueKind::Tuple => {
            let (start, len) = value.fields();
            ValuePlan::Tuple { start, len }
        }
        ValueKind::Closure | ValueKind::Holder => ValuePlan::Held,
    };
    let values: Vec<ValuePlan> = (0..).zip(&flow.values).map(plan_of).collect();
    let workspaces = flow.workspaces.iter().map(|&(call, value)| (call, storage_of[value as usize]));
    let workspaces: FxHashMap<_, _> = workspaces.collect();
    FunctionPlan { key, of: flow.of, values, fields: flow.fields, storages, scopes, workspaces, bound: flow.bound }
}

/// Returns the scope of a function whose values are known, without the rest of its plan.
pub(super) fn plan_own_scope(mut flow: Flow) -> PlannedScope {
    let parents = SharedStorages::of(&mut flow);
    flow.keep_storages();
    let roots = StorageRoots::of(&flow.values, flow.scopes.len(), &parents);
    drop(parents);
    place_scopes(&flow, &roots, |_, _| {}).swap_remove(0)
}

/// Extends the uses of values to those of the values that hold them, from the last value to the
/// first: a value is made before those that hold it.
fn spread_uses(flow: &mut Flow) {
    let Flow { values, fields, holds, .. } = flow;
    let mut holds = holds.iter().rev().peekable();
    for holder in (0..values.len() as u32).rev() {
        let FlowValue { last, is_result, escapes, .. } = values[holder as usize];
        let (start, len) = values[holder as usize].fields();
        for &field in &fields[start as usize..(start + len) as usize] {
            if let Some(field) = values.get_mut(field as usize) {
                field.last = field.last.max(last);
                field.is_result |= is_result;
                field.escapes |= escapes;
            }
        }
        while let Some(&&(_, held)) = holds.peek().filter(|&&&(by, _)| by == holder) {
            holds.next();
            let held = &mut values[held as usize];
            held.last = held.last.max(last);
            held.escapes |= is_result | escapes;
        }
    }
}

/// Disjoint sets of values that share a storage. The value at the root of a set has its bytes and
/// positions.
struct SharedStorages(Vec<u32>);

impl SharedStorages {
    /// Finds the values that share a storage, and extends their uses.
    fn of(flow: &mut Flow) -> SharedStorages {
        spread_uses(flow);
        let mut parents = SharedStorages((0..flow.values.len() as u32).collect());
        for &(result, part) in &flow.merges {
            parents.join(&mut flow.values, result, part);
        }
        // A result may be written over an operand that dies there, if nothing is in the storage of
        // the result before.
        for &(result, operand) in &flow.reuses {
            let at = flow.values[result as usize].first;
            let (result, operand) = (parents.find(result), parents.find(operand));
            let (to, from) = (&flow.values[result as usize], &flow.values[operand as usize]);
            let is_free = result != operand && to.first == at && from.last == at;
            let is_alike = to.scope == from.scope && to.bytes() == from.bytes() && to.escapes == from.escapes;
            if is_free && is_alike {
                parents.join(&mut flow.values, result, operand);
            }
        }
        parents
    }

    fn find(&mut self, mut value: u32) -> u32 {
        while self.0[value as usize] != value {
            let next = self.0[self.0[value as usize] as usize];
            self.0[value as usize] = next;
            value = next;
        }
        value
    }

    /// Puts two values into one storage. The root is the older value, so that the sets of a chain
    /// are flat.
    fn join(&mut self, values: &mut [FlowValue], a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        let (root, child) = (a.min(b), a.max(b));
        self.0[child as usize] = root;
        let FlowValue { first, last, escapes, .. } = values[child as usize];
        let bytes = values[child as usize].bytes();
        let root = &mut values[root as usize];
        root.first = root.first.min(first);
        root.last = root.last.max(last);
        root.escapes |= escapes;
        root.set_bytes(root.bytes().max(bytes));
    }
}

/// Gives each storage a place, scope by scope, the blocks of `fn`s before those that call them.
/// Passes the value at the root of each storage, and the storage, to `each`.
fn place_scopes(flow: &Flow, roots: &StorageRoots, mut each: impl FnMut(u32, Storage)) -> Vec<PlannedScope> {
    let mut scopes: Vec<PlannedScope> = flow.scopes.iter().map(PlannedScope::unplaced).collect();
    let mut intervals: Vec<Interval> = Vec::new();
    for &scope in &flow.done {
        let storages = || {
            // Sums of bytes must not overflow; the storages beyond are not in the arena.
            let mut room = i64::MAX as u64;
            let scopes = &scopes;
            roots.in_scope(scope).iter().map(move |&root| {
                let value = &flow.values[root as usize];
                let &FlowValue { first, last, escapes, .. } = value;
                let bytes = value.fn_scope().map_or_else(|| value.bytes(), |callee| scopes[callee as usize].arena);
                let home = match escapes {
                    true => StorageHome::Escaping,
                    false if bytes == UNBOUNDED || bytes > room => StorageHome::Unbounded,
                    false => StorageHome::Arena { offset: 0 },
                };
                if let StorageHome::Arena { .. } = home {
                    room -= bytes;
                }
                let bytes = Some(bytes).filter(|&bytes| bytes != UNBOUNDED);
                (root, Storage { scope, first, last, bytes, home })
            })
        };
        intervals.clear();
        intervals.reserve_exact(roots.in_scope(scope).len());
        intervals.extend(storages().filter_map(|(_, storage)| {
            storage.offset()?;
            Some(Interval { first: storage.first, last: storage.last, bytes: storage.bytes? })
        }));
        let (offsets, live) = assign(&intervals);
        let mut next = offsets.offsets.iter();
        for (root, mut storage) in storages() {
            if let StorageHome::Arena { offset } = &mut storage.home {
                *offset = next.next().copied().unwrap_or_default();
            }
            each(root, storage);
        }
        let planned = &mut scopes[scope as usize];
        (planned.arena, planned.live) = (offsets.arena, live);
    }
    scopes
}

/// The values at the roots of shared storages, by scope.
struct StorageRoots {
    /// The end of the list of each scope in `roots`.
    ends: Vec<u32>,
    roots: Vec<u32>,
}

impl StorageRoots {
    fn of(values: &[FlowValue], scopes: usize, parents: &SharedStorages) -> StorageRoots {
        let is_root = |i: u32, value: &FlowValue| value.has_storage() && parents.0[i as usize] == i;
        let mut ends = vec![0u32; scopes];
        for (i, value) in (0..).zip(values) {
            ends[value.scope as usize] += u32::from(is_root(i, value));
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum - *end;
        }
        let mut roots = vec![0; sum as usize];
        for (i, value) in (0..).zip(values).filter(|&(i, value)| is_root(i, value)) {
            roots[ends[value.scope as usize] as usize] = i;
            ends[value.scope as usize] += 1;
        }
        StorageRoots { ends, roots }
    }

    fn in_scope(&self, scope: u32) -> &[u32] {
        let start = scope.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.roots[start as usize..self.ends[scope as usize] as usize]
    }
}

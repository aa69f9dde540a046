//! The plan of a module's memory, and questions about it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anfora_ir::{Body, ExprId, FunctionKey, SideTable, VarId};
use rustc_hash::FxHashMap;

use super::flow::{FlowScope, OUTSIDE};

/// The memory of the functions of a module: for each value a storage, and for each storage an
/// offset in the arena of its function.
///
/// [`plan_memory`](crate::plan_memory) makes it. It describes the module at that time.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    pub(super) functions: Vec<FunctionPlan>,
    pub(super) index: FxHashMap<FunctionKey, usize>,
}

impl MemoryPlan {
    /// Returns the plan of a function; `None` for a declaration.
    pub fn function(&self, key: FunctionKey) -> Option<&FunctionPlan> {
        self.index.get(&key).map(|&i| &self.functions[i])
    }

    /// Returns the plans of the functions with a body, callees before their callers.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = &FunctionPlan> {
        self.functions.iter()
    }

    /// Returns the plans of the functions with a body, for a planner that moves storages. A run
    /// inside the plan ([`PlannedMemory`](crate::PlannedMemory)) finds storages that are
    /// overwritten too early.
    ///
    /// Cost: one entry.
    pub fn functions_mut(&mut self) -> impl ExactSizeIterator<Item = &mut FunctionPlan> {
        self.functions.iter_mut()
    }
}

/// The memory of a function.
///
/// Its positions are the moments at which operators and calls run, conditions are read and blocks
/// return, in program order, from 1. The function and each `fn` in it are a scope with an arena of
/// its own, since a `fn` runs when it is called.
#[derive(Clone, Debug)]
pub struct FunctionPlan {
    pub(super) key: FunctionKey,
    pub(super) of: SideTable<ExprId, u32>,
    pub(super) values: Vec<ValuePlan>,
    pub(super) fields: Vec<u32>,
    pub(super) storages: Vec<Storage>,
    pub(super) scopes: Vec<PlannedScope>,
    /// The storages of callees' arenas, by call.
    pub(super) workspaces: FxHashMap<ExprId, u32>,
    /// The bindings of the function's own scope and their positions.
    pub(super) bound: Vec<(VarId, u32)>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ValuePlan {
    Storage(u32),
    Within(u32),
    Tuple { start: u32, len: u32 },
    Held,
}

/// A storage: memory for one or more values of a function, one after another or under several
/// names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Storage {
    /// The index of its scope in [`FunctionPlan::scopes`].
    pub scope: u32,
    /// The position at which its first value is written.
    pub first: u32,
    /// The position at which its last value is used last.
    pub last: u32,
    /// The bytes of its largest value, rounded up to the alignment; `None` if types and bounds do
    /// not determine them.
    pub bytes: Option<u64>,
    /// The place of the storage.
    pub home: StorageHome,
}

impl Storage {
    /// Returns the offset in the arena of its scope, if it is there.
    pub fn offset(&self) -> Option<u64> {
        match self.home {
            StorageHome::Arena { offset } => Some(offset),
            StorageHome::Unbounded | StorageHome::Escaping => None,
        }
    }
}

/// The place of a storage.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StorageHome {
    /// In the arena of its scope.
    Arena {
        /// The offset in bytes.
        offset: u64,
    },
    /// By itself: its size is known only when the program runs.
    Unbounded,
    /// By itself: a function that leaves the scope holds its value.
    Escaping,
}

/// The place of a value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ValuePlace<'a> {
    /// Not in memory of this function: a parameter, a constant, a function, or a part of one.
    Outside,
    /// In the storage with this index in [`FunctionPlan::storages`].
    Storage(u32),
    /// Somewhere in the storage with this index, beside other parts of a large or nested tuple.
    Within(u32),
    /// A tuple, each field of which has a place.
    Tuple(TuplePlaces<'a>),
    /// In storages of other values: the value is one of several, or holds some.
    Held,
}

/// The places of the fields of a tuple.
#[derive(Copy, Clone, Debug)]
pub struct TuplePlaces<'a> {
    plan: &'a FunctionPlan,
    fields: &'a [u32],
}

/// Two are equal if they are the places of the same fields.
impl PartialEq for TuplePlaces<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.plan, other.plan) && self.fields == other.fields
    }
}

impl Eq for TuplePlaces<'_> {}

impl<'a> TuplePlaces<'a> {
    /// Returns the number of fields.
    pub fn len(self) -> usize {
        self.fields.len()
    }

    /// Returns true if the tuple has no fields.
    pub fn is_empty(self) -> bool {
        self.fields.is_empty()
    }

    /// Returns a number that no other value of the function has; `None` if the field is outside.
    #[cfg(feature = "interp")]
    pub(super) fn number(self, index: usize) -> Option<u32> {
        self.fields.get(index).copied().filter(|&field| field != OUTSIDE)
    }

    /// Returns the place of a field; outside if there is no such field.
    pub fn field(self, index: usize) -> ValuePlace<'a> {
        self.fields.get(index).map_or(ValuePlace::Outside, |&field| self.plan.place(field))
    }
}

/// A function, or the block of a `fn` in it, with its arena.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedScope {
    /// The `fn`; `None` for the function itself.
    pub lambda: Option<ExprId>,
    /// The bytes of the arena, including those of callees while they run.
    pub arena: u64,
    /// The largest sum of bytes that are live at once. No arena with the same storages is smaller.
    pub live: u64,
    /// The bytes of all values that the scope computes, each in a storage of its own.
    pub separate: u64,
    /// The calls whose callee has no plan: it is not known, declared, or recursive. It needs an
    /// arena beside that of the caller.
    pub unplanned_calls: u32,
}

impl PlannedScope {
    pub(super) fn unplaced(scope: &FlowScope) -> PlannedScope {
        let &FlowScope { lambda, separate, unplanned_calls, .. } = scope;
        PlannedScope { lambda, arena: 0, live: 0, separate, unplanned_calls }
    }
}

/// A binding and the bytes that are live while its value is computed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LivePoint {
    /// The variable that is bound.
    pub binding: VarId,
    /// The bytes of the live storages in the arena.
    pub bytes: u64,
}

impl FunctionPlan {
    /// Returns the key of the function.
    pub fn key(&self) -> FunctionKey {
        self.key
    }

    /// Returns the function's own scope.
    pub fn own_scope(&self) -> &PlannedScope {
        &self.scopes[0]
    }

    /// Returns the scopes: the function, then its `fn`s in program order.
    pub fn scopes(&self) -> &[PlannedScope] {
        &self.scopes
    }

    /// Returns the storages of all scopes.
    pub fn storages(&self) -> &[Storage] {
        &self.storages
    }

    /// Returns the storages of all scopes, for a planner that moves them.
    ///
    /// Cost: one entry.
    pub fn storages_mut(&mut self) -> &mut [Storage] {
        &mut self.storages
    }

    /// Returns the place of the value of a variable.
    pub fn place_of(&self, var: VarId) -> ValuePlace<'_> {
        self.place(self.of[var.expr()])
    }

    /// Returns the storage in which the arena of the callee is while a call runs; `None` if the
    /// callee has no plan.
    ///
    /// Cost: one entry.
    pub fn workspace(&self, call: ExprId) -> Option<u32> {
        self.workspaces.get(&call).copied()
    }

    fn place(&self, value: u32) -> ValuePlace<'_> {
        if value == OUTSIDE {
            return ValuePlace::Outside;
        }
        match self.values[value as usize] {
            ValuePlan::Storage(storage) => ValuePlace::Storage(storage),
            ValuePlan::Within(storage) => ValuePlace::Within(storage),
            ValuePlan::Tuple { start, len } => {
                let fields = &self.fields[start as usize..(start + len) as usize];
                ValuePlace::Tuple(TuplePlaces { plan: self, fields })
            }
            ValuePlan::Held => ValuePlace::Held,
        }
    }

    /// Returns the bytes that are live while the value of each binding is computed, for the
    /// bindings outside of `fn`s, in the order in which they are bound. The branches of an If come
    /// one after the other.
    pub fn live_points(&self) -> Vec<LivePoint> {
        let mut by_first: Vec<&Storage> =
            self.storages.iter().filter(|s| s.scope == 0 && s.offset().is_some()).collect();
        by_first.sort_by_key(|s| s.first);
        let mut next = by_first.into_iter().peekable();
        let mut ends: BinaryHeap<Reverse<(u32, u64)>> = BinaryHeap::new();
        let mut live = 0;
        let mut points = Vec::with_capacity(self.bound.len());
        for &(binding, position) in &self.bound {
            while let Some(storage) = next.next_if(|s| s.first <= position) {
                let bytes = storage.bytes.unwrap_or_default();
                live += bytes;
                ends.push(Reverse((storage.last, bytes)));
            }
            while let Some(&Reverse((last, bytes))) = ends.peek()
                && last < position
            {
                live -= bytes;
                ends.pop();
            }
            points.push(LivePoint { binding, bytes: live });
        }
        points
    }

    /// Returns the number of storages of the function's own scope that are not in its arena, since
    /// their size is not known.
    pub fn unbounded(&self) -> usize {
        self.storages.iter().filter(|s| s.home == StorageHome::Unbounded).count()
    }

    /// Checks that the plan is one of this body: each variable has a place.
    pub fn check(&self, body: &Body) {
        body.check_table(&self.of);
    }
}

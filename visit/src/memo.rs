//! Results by expression.

use anfora_ir::{Body, ExprId, SideTable};

/// A table from expressions to results: a dense vector indexed by id, which takes memory only up to
/// the largest stored id.
///
/// Entries made after [`Memo::begin_scope`] are undone by the matching [`Memo::end_scope`], at the
/// cost of making them. An entry that holds only inside a branch or lambda is made in its scope.
///
/// Any edit of the body is legal while a memo exists, except for compaction, which renumbers
/// expressions: see [`Memo::check`].
///
/// ```
/// # use anfora_ir::{EntityId, ExprId};
/// # use anfora_visit::Memo;
/// let (a, b) = (ExprId::from_index(0), ExprId::from_index(1));
/// let mut depth = Memo::new();
/// depth.insert(a, 1);
/// depth.begin_scope();
/// depth.insert(a, 2);
/// depth.insert(b, 2);
/// assert_eq!(depth.get(a), Some(2));
/// depth.end_scope();
/// assert_eq!((depth.get(a), depth.get(b)), (Some(1), None));
/// ```
#[derive(Clone, Debug)]
pub struct Memo<V> {
    entries: SideTable<ExprId, Option<V>>,
    /// The old values of entries that were made or changed in the open scopes, oldest first.
    log: Vec<(ExprId, Option<V>)>,
    /// The lengths of the log at the start of the open scopes.
    scopes: Vec<usize>,
}

impl<V: Copy> Memo<V> {
    /// Returns an empty table.
    pub fn new() -> Memo<V> {
        Memo { entries: SideTable::new(0, None), log: Vec::new(), scopes: Vec::new() }
    }

    /// Returns an empty table with room for every expression of a body.
    pub fn with_room(body: &Body) -> Memo<V> {
        Memo { entries: body.side_table(None), log: Vec::new(), scopes: Vec::new() }
    }

    /// Returns the result of an expression, if it has one.
    #[inline]
    pub fn get(&self, id: ExprId) -> Option<V> {
        self.entries[id]
    }

    /// Stores the result of an expression.
    #[inline]
    pub fn insert(&mut self, id: ExprId, value: V) {
        self.store(id, Some(value));
    }

    /// Removes the result of an expression.
    #[inline]
    pub fn remove(&mut self, id: ExprId) {
        self.store(id, None);
    }

    #[inline]
    fn store(&mut self, id: ExprId, value: Option<V>) {
        let slot = self.entries.get_mut(id);
        let old = std::mem::replace(slot, value);
        if !self.scopes.is_empty() {
            self.log.push((id, old));
        }
    }

    /// Begins a scope inside the open ones.
    pub fn begin_scope(&mut self) {
        self.scopes.push(self.log.len());
    }

    /// Ends the innermost scope and restores the table as it was when the scope began. Does nothing
    /// if no scope is open.
    pub fn end_scope(&mut self) {
        let Some(mark) = self.scopes.pop() else { return };
        for (id, old) in self.log.drain(mark..).rev() {
            self.entries.set(id, old);
        }
    }

    /// Returns the number of open scopes.
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Asserts that a table made by [`Memo::with_room`] belongs to the current generation of the
    /// body.
    ///
    /// # Panics
    /// If the body was compacted since the table was made.
    pub fn check(&self, body: &Body) {
        body.check_table(&self.entries);
    }
}

impl<V: Copy> Default for Memo<V> {
    fn default() -> Self {
        Memo::new()
    }
}

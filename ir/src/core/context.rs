//! The tables that a module's functions share: names, types, attributes, literals, operators and
//! globals.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::core::entity::{DimId, FunctionAttrId, FunctionKey, GlobalId, LiteralId, NameId, TypeId};
use crate::core::function::Function;
use crate::edit::rewrites::Rewrites;
use crate::edit::stamp::{Revisions, Stamp};
use crate::files::storage::{self, StorageError};
use crate::ops::op::{OpRegistry, OpTable, Operand};
use crate::tables::attrs::AttrTable;
use crate::tables::intern::Interner;
use crate::tables::literal::Literal;
use crate::tables::names::Names;
use crate::tables::parallel::layers::{Freeze, LayeredArena, Layers};
use crate::tables::scratch::{Scratch, ScratchStock};
use crate::tables::types::Types;

/// The shared tables of a module. Every entry is referred to, and compared, by a 4-byte id.
#[derive(Clone)]
pub struct Context {
    /// Strings.
    pub names: Names,
    /// Types and dimensions.
    pub types: Types,
    /// Attribute values; see [`Context::attr`] and [`Context::attrs`].
    pub attrs: AttrTable,
    /// Constant tensors.
    pub literals: LiteralTable,
    /// Operators.
    pub ops: OpTable,
    /// Global names.
    pub globals: GlobalTable,
    /// Functions that are the values of attributes. They are closed: they use no variable from
    /// outside.
    pub function_attrs: LayeredArena<FunctionAttrId, Arc<Function>>,
    /// The ledger of the rewrites that passes make. It is off by default.
    pub rewrites: Rewrites,
    /// The scratch arenas that are not in use; see [`Context::scratch`].
    pub(crate) scratch: ScratchStock,
}

impl Context {
    /// Returns empty tables over a registry of operators.
    pub fn new(registry: Arc<OpRegistry>) -> Context {
        Context {
            names: Names::default(),
            types: Types::default(),
            attrs: AttrTable::default(),
            literals: LiteralTable::default(),
            ops: OpTable::new(registry),
            globals: GlobalTable::default(),
            function_attrs: LayeredArena::new(),
            rewrites: Rewrites::default(),
            scratch: ScratchStock::default(),
        }
    }

    /// Lends a scratch arena: memory for tables of a walk or a pass that nothing needs after it.
    ///
    /// The arena is empty, and is not shared until it is dropped. Then it is emptied and lent to
    /// the next caller on this thread, so a pass over many small functions allocates memory once,
    /// not for each function. Each thread of a pass has arenas of its own.
    ///
    /// ```
    /// use anfora_ir::{Context, ScratchVec};
    ///
    /// let cx = Context::new(Default::default());
    /// let scratch = cx.scratch();
    /// let mut squares = ScratchVec::new_in(&scratch);
    /// squares.extend((0..10).map(|n| n * n));
    /// assert_eq!(squares[9], 81);
    /// ```
    ///
    /// Cost: one entry.
    pub fn scratch(&self) -> Scratch {
        self.scratch_with_room(0)
    }

    /// Lends a scratch arena, as [`Context::scratch`] does, with `bytes` of room in one piece. An
    /// arena that grows doubles its size each time, so a walk that knows the length of the tables
    /// of a large function needs less memory with this.
    ///
    /// Cost: one entry.
    pub fn scratch_with_room(&self, bytes: usize) -> Scratch {
        self.scratch.take(bytes)
    }

    /// Returns the type of a constant. The type of a small constant of integers or `bool` includes
    /// its elements.
    ///
    /// Cost: one entry.
    pub fn literal_type(&mut self, id: LiteralId) -> TypeId {
        type_of_literal(&mut self.types, self.literals.get(id))
    }

    /// Returns the only tensor of a type that includes all elements; `None` if the type does not.
    ///
    /// Cost: one loop.
    pub fn known_literal(&self, ty: TypeId) -> Option<Literal> {
        let tensor = self.types.as_tensor(ty)?;
        let elements = tensor.elements.as_deref()?.iter().map(|&e| self.types.dims.as_constant(e));
        let elements: Vec<i64> = elements.collect::<Option<_>>()?;
        Literal::from_i64s(tensor.dtype, &self.types.static_shape(ty)?, &elements).ok()
    }

    /// Returns a constant as an operand for type rules; `None` stands for an operand that is left
    /// out.
    ///
    /// Cost: one entry.
    pub fn constant_operand(&mut self, value: Option<&Literal>) -> Operand {
        match value {
            Some(value) => {
                let id = self.literals.intern(value.clone());
                Operand { ty: self.literal_type(id), literal: Some(id), absent: false }
            }
            None => Operand { ty: self.types.any(), literal: None, absent: true },
        }
    }

    /// Returns the global of a name. If there is none, makes one that resolves to nothing yet.
    ///
    /// Cost: linear in the text.
    pub fn global(&mut self, name: &str) -> GlobalId {
        let name = self.names.intern(name);
        self.globals.intern(name)
    }

    /// Returns the global of a name, if there is one.
    ///
    /// Cost: linear in the text.
    pub fn find_global(&self, name: &str) -> Option<GlobalId> {
        self.globals.find(self.names.find(name)?)
    }

    /// Returns the number of bytes that the tables hold.
    pub(crate) fn capacity_bytes(&self) -> usize {
        let functions: usize = self.function_attrs.iter().map(|(_, f)| f.body.capacity_bytes()).sum();
        self.names.capacity_bytes()
            + self.types.capacity_bytes()
            + self.attrs.capacity_bytes()
            + self.literals.capacity_bytes()
            + self.globals.capacity_bytes()
            + functions
    }

    /// Returns the name of a global, without `@`.
    ///
    /// Cost: one entry.
    pub fn global_name(&self, id: GlobalId) -> &str {
        self.names.get(self.globals.get(id).name)
    }
}

/// Returns the type of a constant. The type of a small constant of integers or `bool` includes its
/// elements.
fn type_of_literal(types: &mut Types, literal: &Literal) -> TypeId {
    let ty = types.static_tensor(literal.dtype(), literal.shape());
    if types.element_count(ty).is_none_or(|n| n == 0) {
        return ty;
    }
    let dims = &mut types.dims;
    let Some(elements) = literal.to_i128s() else { return ty };
    // An element outside of `i64` is not representable as a dimension.
    let known = |e: i128| i64::try_from(e).map_or(dims.unknown(), |e| dims.constant(e));
    let elements: SmallVec<[DimId; 8]> = elements.into_iter().map(known).collect();
    types.with_elements(ty, &elements)
}

/// The constant tensors of a module.
#[derive(Clone, Default)]
pub struct LiteralTable {
    pub(crate) literals: Interner<LiteralId, Literal>,
}

impl LiteralTable {
    /// Returns the id of a constant. Takes time linear in its stored bytes; of large ones, only a
    /// sample is read, unless the samples of two constants agree.
    pub fn intern(&mut self, literal: Literal) -> LiteralId {
        self.literals.intern(literal)
    }

    /// Returns the constant behind an id.
    #[inline]
    pub fn get(&self, id: LiteralId) -> &Literal {
        &self.literals[id]
    }

    /// Returns the number of constants.
    pub fn len(&self) -> usize {
        self.literals.len()
    }

    /// Returns the number of bytes of the elements of all constants. Linear in the number of
    /// constants.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.literals.iter().map(|(_, literal)| literal.stored_bytes()).sum()
    }

    /// Returns the number of bytes held, those of the constants themselves included. Linear in the
    /// number of constants.
    fn capacity_bytes(&self) -> usize {
        let stored: usize = self.literals.iter().map(|(_, l)| l.held_bytes()).sum();
        self.literals.capacity_bytes() + stored
    }

    /// Returns the first error of a read of a file that holds constants of the module. Code that
    /// reads a constant and cannot return an error leaves it there: what it computed must not be
    /// used then. The pass manager asks after each pass. Takes time linear in the constants if any
    /// read has failed in this process, and constant time otherwise.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If such a read has failed.
    pub fn failure(&self) -> Result<(), StorageError> {
        match storage::has_failed() {
            true => self.literals.iter().find_map(|(_, l)| l.failure().cloned()).map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    /// Returns true if there are no constants.
    pub fn is_empty(&self) -> bool {
        self.literals.len() == 0
    }
}

/// A global name.
#[derive(Clone, PartialEq, Debug)]
pub struct Global {
    /// The name, without `@`.
    pub name: NameId,
    /// The function type, if it is known.
    pub signature: Option<TypeId>,
    /// The function that the name resolves to.
    pub target: GlobalTarget,
}

/// The function that a global name resolves to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum GlobalTarget {
    /// A function with a body.
    Definition(FunctionKey),
    /// A function declared without a body.
    Declaration(FunctionKey),
    /// Nothing, either not yet or no longer.
    Missing,
}

impl GlobalTarget {
    /// Returns the function, defined or declared.
    pub fn function(self) -> Option<FunctionKey> {
        match self {
            GlobalTarget::Definition(k) | GlobalTarget::Declaration(k) => Some(k),
            GlobalTarget::Missing => None,
        }
    }
}

/// The global names of a module.
#[derive(Clone, Default)]
pub struct GlobalTable {
    pub(crate) globals: LayeredArena<GlobalId, Global>,
    pub(crate) by_name: Layers<FxHashMap<NameId, GlobalId>>,
    /// The previous contents of changed entries, while an edit of the module is open.
    journal: Vec<(GlobalId, Global)>,
    /// The length of the journal and the revision of the table when each open edit began, outermost
    /// first.
    edits: Vec<(usize, u64)>,
    revisions: Revisions,
    /// True if this is an overlay. It has the stamp of the table below until it is changed.
    overlay: bool,
}

impl GlobalTable {
    /// Returns the global of a name, made if there is none.
    pub fn intern(&mut self, name: NameId) -> GlobalId {
        if let Some(&id) = self.by_name.frozen.as_ref().and_then(|names| names.get(&name)) {
            return id;
        }
        *self
            .by_name
            .own
            .entry(name)
            .or_insert_with(|| self.globals.push(Global { name, signature: None, target: GlobalTarget::Missing }))
    }

    /// Returns the global of a name, if there is one.
    pub fn find(&self, name: NameId) -> Option<GlobalId> {
        let frozen = self.by_name.frozen.as_ref().and_then(|names| names.get(&name));
        frozen.or_else(|| self.by_name.own.get(&name)).copied()
    }

    /// Returns the global behind an id.
    #[inline]
    pub fn get(&self, id: GlobalId) -> &Global {
        &self.globals[id]
    }

    /// Returns the number of globals.
    pub fn len(&self) -> usize {
        self.globals.len()
    }

    fn capacity_bytes(&self) -> usize {
        self.globals.capacity_bytes() + self.by_name.own.capacity() * size_of::<(NameId, GlobalId)>()
    }

    /// Returns true if there are no globals.
    pub fn is_empty(&self) -> bool {
        self.globals.is_empty()
    }

    /// Returns ids and globals in the order in which they were first named.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (GlobalId, &Global)> + ExactSizeIterator {
        self.globals.iter()
    }

    /// Returns the stamp of the state of the table. Every change of a signature, a target or a name
    /// gives a new stamp; a rollback restores the old one. Added names do not change it.
    pub fn stamp(&self) -> Stamp {
        self.revisions.stamp()
    }

    /// Takes the layers above the frozen ones.
    pub(crate) fn take_own(&mut self) -> GlobalTable {
        let (globals, by_name) = (self.globals.take_own(), self.by_name.take_own());
        GlobalTable { globals, by_name, ..GlobalTable::default() }
    }

    fn thaw(&mut self) {
        self.globals.layers.thaw();
        self.by_name.thaw();
    }

    /// Returns an overlay over this table.
    pub(crate) fn overlay(&self) -> GlobalTable {
        GlobalTable { revisions: self.revisions.of_same(), overlay: true, ..self.clone() }
    }

    /// Changes the signature or the target of a global. Thaws the table.
    pub(crate) fn update(&mut self, id: GlobalId, change: impl FnOnce(&mut Global)) {
        let mut new = self.globals[id].clone();
        change(&mut new);
        if new != self.globals[id] {
            self.thaw();
            self.replace(id, new);
        }
    }

    fn replace(&mut self, id: GlobalId, new: Global) {
        let old = self.globals.own_mut(id).expect("the table is thawed before it is changed");
        if *old == new {
            return;
        }
        if old.name != new.name {
            if self.by_name.own.get(&old.name) == Some(&id) {
                self.by_name.own.remove(&old.name);
            }
            self.by_name.own.insert(new.name, id);
        }
        let old = std::mem::replace(old, new);
        if std::mem::take(&mut self.overlay) {
            self.revisions = Revisions::default();
        }
        self.revisions.bump();
        if !self.edits.is_empty() {
            self.journal.push((id, old));
        }
    }

    pub(crate) fn begin(&mut self) {
        self.edits.push((self.journal.len(), self.revisions.now()));
    }

    pub(crate) fn has_changes(&self) -> bool {
        self.edits.last().is_some_and(|&(start, _)| self.journal.len() > start)
    }

    pub(crate) fn commit(&mut self) -> bool {
        let changed = self.has_changes();
        self.edits.pop();
        if self.edits.is_empty() {
            self.journal.clear();
        }
        changed
    }

    pub(crate) fn rollback(&mut self) {
        let Some((start, revision)) = self.edits.pop() else { return };
        self.thaw();
        let mut undone = self.journal.split_off(start);
        // The overwrites of a rollback are not recorded.
        let edits = std::mem::take(&mut self.edits);
        while let Some((id, old)) = undone.pop() {
            self.replace(id, old);
        }
        self.edits = edits;
        self.revisions.back_to(revision);
    }
}

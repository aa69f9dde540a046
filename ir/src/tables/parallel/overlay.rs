//! Overlays: several threads work on functions of one module, and each interns into a layer of its
//! own above shared tables.
//!
//! [`Context::freeze`] puts the existing entries behind an [`Arc`], for [`Context::overlay`]. The
//! ids of entries that are interned into an overlay continue where the frozen ids end, so two
//! overlays give the same id to different entries. [`Context::take_additions`] removes these
//! entries from the overlay and returns them. Back on one thread, [`Context::absorb`] interns them
//! into the tables of the module, and [`Function::translate`] replaces the ids in a function that
//! was edited under the overlay by the resulting ids.
//!
//! If each overlay's additions stem from consecutive functions, and they are absorbed in program
//! order, the tables become the same as if the functions had been edited one after the other. The
//! order of symbols is kept too. The form of sums depends on that order, so sums are copied without
//! changes.
//!
//! ```
//! use anfora_ir::{Context, OpRegistry};
//! let mut tables = Context::new(Default::default());
//! let known = tables.names.intern("known");
//! tables.freeze();
//! let (mut one, mut two) = (tables.overlay(), tables.overlay());
//! assert_eq!(one.names.intern("known"), known);
//! assert_eq!(one.names.intern("new"), two.names.intern("newer"));
//! let additions = [one.take_additions(), two.take_additions()];
//! assert!(one.take_additions().is_none());
//! drop((one, two));
//! tables.thaw();
//! for additions in additions.into_iter().flatten() {
//!     tables.absorb(&additions)?;
//! }
//! assert_eq!(tables.names.find("newer").map(|n| tables.names.get(n)), Some("newer"));
//! # Ok::<(), anfora_ir::TypeError>(())
//! ```

use std::sync::Arc;

use crate::core::context::{Context, Global, LiteralTable};
use crate::core::entity::{EntityId, FunctionAttrId, GlobalId, TypeId};
use crate::core::function::Function;
use crate::core::translate::{EntryIds, IdMap, IdMaps, translate_head};
use crate::edit::rewrites::Rewrites;
use crate::ops::op::TypeError;
use crate::tables::dim::{Dim, Term};
use crate::tables::names::Names;
use crate::tables::parallel::layers::Freeze;
use crate::tables::scratch::ScratchStock;
use crate::tables::types::Types;

/// A map from ids of one kind to their translations. Ids of frozen entries stay.
pub(crate) struct Ids<K> {
    frozen: usize,
    new: Vec<K>,
}

impl<K: EntityId> IdMap<K> for Ids<K> {
    /// Returns a map for a table with `len` frozen entries.
    fn with_len(len: usize) -> Ids<K> {
        Ids { frozen: len, new: Vec::new() }
    }

    #[inline(always)]
    fn translated(&self, id: K) -> K {
        match id.index().checked_sub(self.frozen) {
            None => id,
            Some(i) => self.new[i],
        }
    }
}

impl<K: EntityId> Ids<K> {
    fn stay(&self) -> bool {
        self.new.iter().enumerate().all(|(i, id)| id.index() == self.frozen + i)
    }
}

/// The family of id maps above frozen ids.
pub(crate) struct Absorbed;

impl IdMaps for Absorbed {
    type Map<K: EntityId> = Ids<K>;
}

/// The entries that were interned into an overlay: see [`Context::take_additions`].
pub struct Additions(Context);

/// A map from the ids of an overlay to the ids in the tables that absorbed it.
pub struct Translation(EntryIds<Absorbed>);

impl Translation {
    /// Returns true if no id changes.
    pub fn is_identity(&self) -> bool {
        let EntryIds { names, types, lists, literals, globals, symbols, ops, .. } = &self.0;
        names.stay()
            && types.stay()
            && lists.stay()
            && literals.stay()
            && globals.stay()
            && symbols.stay()
            && ops.stay()
    }

    /// Returns the translation of a type.
    ///
    /// Cost: one entry.
    pub fn ty(&self, id: TypeId) -> TypeId {
        self.0.types.translated(id)
    }

    /// Returns the translation of a global.
    pub(crate) fn global(&self, id: GlobalId) -> GlobalId {
        self.0.globals.translated(id)
    }
}

impl Function {
    /// Replaces the ids in a function that was edited under an overlay by those of the tables that
    /// absorbed it. An open edit that was begun before the tables were frozen can still be rolled
    /// back. Linear in the body.
    ///
    /// Cost: one loop.
    pub fn translate(&mut self, translation: &Translation) {
        self.translate_with(&translation.0);
    }

    fn translate_with(&mut self, mut ids: &EntryIds<Absorbed>) {
        translate_head(self, &mut ids);
        self.body.translate(&mut ids);
    }
}

impl Context {
    /// Freezes the tables: from here on, overlays and clones of this context share them. Takes
    /// constant time. The context itself reads and interns as before.
    ///
    /// Cost: one loop.
    pub fn freeze(&mut self) {
        self.tables().into_iter().for_each(|table| table.freeze());
    }

    /// Thaws frozen tables. Does nothing if they are not frozen. Linear in the entries that were
    /// interned since they were frozen and, while there are clones, in all entries.
    ///
    /// Cost: one loop.
    pub fn thaw(&mut self) {
        self.tables().into_iter().for_each(|table| table.thaw());
    }

    /// Returns an overlay: the frozen tables, to be read and interned into on another thread. Takes
    /// constant time if the tables are frozen and nothing was interned since. A
    /// [`clone`](Clone::clone) differs only in that cached analyses of the signatures of these
    /// tables are not known to hold under it.
    ///
    /// Cost: one loop.
    pub fn overlay(&self) -> Context {
        Context { globals: self.globals.overlay(), ..self.clone() }
    }

    /// Returns all tables.
    fn tables(&mut self) -> [&mut dyn Freeze; 11] {
        let Context { names, types, attrs, literals, ops, globals, function_attrs, rewrites: _, scratch: _ } = self;
        let Types { types, dims, .. } = types;
        let (names, literals, symbols) = (&mut names.layers, &mut literals.literals, &mut dims.symbols.layers);
        let (values, lists, dims) = (&mut attrs.values, &mut attrs.lists, &mut dims.dims);
        let (globals, by_name) = (&mut globals.globals.layers, &mut globals.by_name);
        let (ops, functions) = (&mut ops.opaque, &mut function_attrs.layers);
        [names, symbols, dims, types, literals, ops, globals, by_name, values, lists, functions]
    }

    /// Takes the entries that were interned since the tables were frozen, if there are any, and
    /// leaves an overlay without them. Takes constant time.
    ///
    /// Cost: one loop.
    pub fn take_additions(&mut self) -> Option<Additions> {
        let any = self.tables().iter().any(|table| table.has_own());
        let Context { names, types, attrs, literals, ops, globals, function_attrs, rewrites: _, scratch: _ } = self;
        any.then(|| {
            Additions(Context {
                names: Names { layers: names.layers.take_own() },
                types: types.take_own(),
                attrs: attrs.take_own(),
                literals: LiteralTable { literals: literals.literals.take_own() },
                ops: ops.take_own(),
                globals: globals.take_own(),
                function_attrs: function_attrs.take_own(),
                rewrites: Rewrites::default(),
                scratch: ScratchStock::default(),
            })
        })
    }

    /// Interns the additions of an overlay of these tables, in the same order, and returns the
    /// translation of their ids. Linear in the additions.
    ///
    /// Cost: one loop.
    ///
    /// # Errors
    /// If there are too many operators.
    pub fn absorb(&mut self, additions: &Additions) -> Result<Translation, TypeError> {
        let Context { names, types, attrs, literals, ops, globals, function_attrs, rewrites: _, scratch: _ } =
            &additions.0;
        let mut t: EntryIds<Absorbed> = EntryIds {
            names: Ids::with_len(names.layers.start),
            types: Ids::with_len(types.types.start),
            lists: Ids::with_len(attrs.lists.start),
            literals: Ids::with_len(literals.literals.start),
            globals: Ids::with_len(globals.globals.layers.start),
            symbols: Ids::with_len(types.dims.symbols.layers.start),
            ops: Ids::with_len(ops.frozen_len()),
            dims: Ids::with_len(types.dims.dims.start),
            values: Ids::with_len(attrs.values.start),
            functions: Ids::with_len(function_attrs.layers.start),
        };
        t.names.new = names.own().map(|(_, s)| self.names.intern(s)).collect();
        t.symbols.new =
            types.dims.symbols.own().map(|(_, &name)| self.types.dims.new_symbol(t.names.translated(name))).collect();
        for (_, dim) in types.dims.dims.own() {
            let dim = translate_dim(dim, &t);
            t.dims.new.push(self.types.dims.intern(dim));
        }
        for (_, ty) in types.types.own() {
            let ty = t.translate_type(ty);
            t.types.new.push(self.types.intern(ty));
        }
        t.literals.new = literals.literals.own().map(|(_, l)| self.literals.literals.intern_ref(l)).collect();
        for row in &ops.opaque.own.rows {
            t.ops.new.push(self.ops.opaque(&row.name, row.purity)?);
        }
        // The meaning of a name is set in the module, so a new global resolves to nothing yet.
        t.globals.new =
            globals.globals.own().map(|(_, g): (_, &Global)| self.globals.intern(t.names.translated(g.name))).collect();
        let functions = (self.function_attrs.len()..).map(FunctionAttrId::from_index);
        t.functions.new = functions.take(function_attrs.own().count()).collect();
        for (_, attr) in attrs.values.own() {
            let attr = t.translate_attr(attr);
            t.values.new.push(self.attrs.values.intern(attr));
        }
        for (_, list) in attrs.lists.own() {
            let list = t.translate_list(list);
            t.lists.new.push(self.attrs.lists.intern(list));
        }
        for (id, function) in function_attrs.own() {
            let mut function = Function::clone(function);
            function.translate_with(&t);
            let new = self.function_attrs.push(Arc::new(function));
            assert_eq!(new, t.functions.translated(id), "a function got another id than was foretold");
        }
        Ok(Translation(t))
    }
}

fn translate_dim(dim: &Dim, t: &EntryIds<Absorbed>) -> Dim {
    match dim {
        Dim::Unknown | Dim::Const(_) | Dim::Bound { .. } => dim.clone(),
        Dim::Symbol(s) => Dim::Symbol(t.symbols.translated(*s)),
        Dim::Op { op, lhs, rhs } => Dim::Op { op: *op, lhs: t.dims.translated(*lhs), rhs: t.dims.translated(*rhs) },
        Dim::Sum(terms) => {
            let term = |term: &Term| Term {
                coefficient: term.coefficient,
                factors: term.factors.iter().map(|&f| t.dims.translated(f)).collect(),
            };
            Dim::Sum(terms.iter().map(term).collect())
        }
    }
}

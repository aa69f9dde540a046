//! Copies of functions and modules from another module.
//!
//! The ids of two modules have nothing in common, so every entry that a function names is made
//! again in the tables of the module that takes it: names, types, dimensions, attributes,
//! constants, operators and globals. [`TableMap`] does that for the entries that are reachable from
//! the function, parts before the entries that consist of them, on an explicit stack. Then the
//! function is copied with the new ids.

mod tables;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::core::body::Body;
use crate::core::context::GlobalTarget;
use crate::core::entity::{FunctionKey, GlobalId, TypeId};
use crate::core::function::{Function, FunctionKind};
use crate::core::module::{FunctionHead, Module};
use crate::core::translate::{IdMap, SameTables};
use crate::edit::transplant::rebuild;
use crate::ops::op::TypeError;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
pub(crate) use tables::{TableMap, TakenOver};

/// The reason why a function was not taken over from another module. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TakeOverError {
    /// The other module does not have the function.
    #[error("the other module has no such function")]
    NoFunction,
    /// The module has a function of that name.
    #[error("`@{0}` is defined already")]
    Duplicate(String),
    /// The function calls an operator that the module does not know.
    #[error(transparent)]
    Operator(#[from] TypeError),
    /// The function names another function, which has another type in this module.
    #[error("{}", signature_message(function, global))]
    Signature {
        /// The function that is taken over.
        function: String,
        /// The other function; the same function, if the module names its name with another type.
        global: String,
    },
}

fn signature_message(function: &str, global: &str) -> String {
    match function == global {
        true => format!("this module names `@{function}` with another type"),
        false => format!("`@{global}`, which `@{function}` names, has another type in this module"),
    }
}

impl IntoDiagnostics for TakeOverError {
    fn into_diagnostics(self) -> Diagnostics {
        let diagnostic = Diagnostic::from_error(&self);
        match self {
            TakeOverError::Operator(error) => error.into_diagnostics(),
            TakeOverError::Signature { function, .. } => diagnostic.in_function(function).into(),
            TakeOverError::NoFunction | TakeOverError::Duplicate(_) => diagnostic.into(),
        }
    }
}

impl Module {
    /// Copies a function of another module to the end of the program, under a name: parameters,
    /// block, result type, attributes, metadata and visibility. Symbolic dimensions become new ones
    /// with the same names. Source positions are kept only if both modules were parsed from the
    /// same text.
    ///
    /// A use of another function becomes a use of the function of the same name in this module. If
    /// there is none, the verifier reports it until one is added, for instance taken over too. A
    /// use of the function itself becomes a use of the copy.
    ///
    /// Takes time linear in the function and in its types and attributes, and constant stack.
    ///
    /// # Errors
    /// If the other module does not have the function; if this module has a function of the name,
    /// does not know one of its operators, or has another type for a function that it names; or if
    /// a function of this module names the name itself with another type.
    ///
    /// ```
    /// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
    /// # use std::sync::Arc;
    /// let mut library = Module::new(Arc::new(OpRegistry::new()));
    /// let unit = library.cx.types.unit();
    /// let mut f = FunctionBuilder::new(&mut library, "twice");
    /// let x = f.param("x", unit);
    /// let pair = f.tuple(&[x, x]);
    /// let twice = f.finish(pair).unwrap();
    ///
    /// let mut module = Module::new(Arc::new(OpRegistry::new()));
    /// module.take_function(&library, twice, "pair")?;
    /// assert_eq!(module.to_string(), "def @pair(%x: ()) -> ((), ()) {\n  (%x, %x)\n}\n");
    /// # Ok::<(), anfora_ir::TakeOverError>(())
    /// ```
    pub fn take_function(&mut self, from: &Module, key: FunctionKey, name: &str) -> Result<FunctionKey, TakeOverError> {
        let source = from.get(key).ok_or(TakeOverError::NoFunction)?;
        if self.cx.find_global(name).is_some_and(|g| self.cx.globals.get(g).target != GlobalTarget::Missing) {
            return Err(TakeOverError::Duplicate(name.to_string()));
        }
        let global = self.cx.global(name);
        let mut take_over = TableMap::new(&from.cx);
        take_over.keeps_spans = self.has_source_of(from);
        if let Some(own) = source.global() {
            take_over.ids.globals.set(own, global);
        }
        let function = take_over.function(&mut self.cx, source)?;
        let signatures = std::mem::take(&mut take_over.signatures);
        for &(other, signature) in &signatures {
            let known = self.cx.globals.get(other).signature;
            if other != global && known.is_some_and(|known| known != signature) {
                let (function, global) = (name.to_string(), self.cx.global_name(other).to_string());
                return Err(TakeOverError::Signature { function, global });
            }
        }
        let own = source.global().and_then(|own| from.cx.globals.get(own).signature);
        let own = match own {
            Some(signature) => take_over.take_type(&mut self.cx, signature)?,
            None => function.signature(&mut self.cx, function.result_type()),
        };
        if self.names_with_other_type(global, own) {
            let name = name.to_string();
            return Err(TakeOverError::Signature { function: name.clone(), global: name });
        }
        let key = self.add(global, function).map_err(|_| TakeOverError::Duplicate(name.to_string()))?;
        for (other, signature) in signatures {
            if self.cx.globals.get(other).signature.is_none() {
                self.set_signature(other, signature);
            }
        }
        self.set_signature(global, own);
        Ok(key)
    }

    /// Returns true if a function names a global with another type than `signature`.
    fn names_with_other_type(&self, global: GlobalId, signature: TypeId) -> bool {
        let is_other = |body: &Body| {
            let mut leaves = body.global_leaves().into_iter();
            leaves.any(|(leaf, g)| g == global && body.ty(leaf) != signature)
        };
        let is_known = self.cx.globals.get(global).signature.is_some_and(|known| known != signature);
        // Unreachable nodes may be left from removed functions.
        is_known && self.functions().any(|(_, f)| is_other(&f.body) && is_other(&compacted(&f.body)))
    }

    /// Makes this module equal to another one: functions, their order, signatures and the
    /// attributes of the module. A function with the same name keeps its key. It is not changed if
    /// it differs only in source positions, node ids, or whether its result type is stated. So an
    /// open edit holds changes only where the modules differ, and can be rolled back. The source
    /// text of this module is kept; functions that come from another text have no positions in it.
    ///
    /// Takes time and memory linear in both modules, and constant stack.
    ///
    /// # Errors
    /// If this module does not know an operator that the other one calls.
    pub fn replace_with(&mut self, other: &Module) -> Result<(), TakeOverError> {
        let mut take_over = TableMap::of_all(&other.cx);
        take_over.keeps_spans = self.has_source_of(other);
        take_over.know_functions(&self.cx);
        // All steps that can fail come first.
        let mut taken: Vec<(GlobalId, Function)> = Vec::with_capacity(other.order().len());
        for (key, function) in other.functions() {
            let global = self.cx.global(other.name(key));
            if let Some(present) = self.cx.globals.get(global).target.function().and_then(|k| self.get(k)) {
                take_over.share_symbols(&self.cx, present, function);
            }
            let function = take_over.function(&mut self.cx, function)?;
            taken.push((global, function));
        }
        let attrs = take_over.take_list(&mut self.cx, other.attrs())?;
        for (id, global) in other.cx.globals.iter() {
            if let (Some(signature), true) = (global.signature, global.target.function().is_some()) {
                take_over.take_global(&mut self.cx, id);
                let signature = take_over.take_type(&mut self.cx, signature)?;
                let id = take_over.ids.globals.translated(id);
                take_over.signatures.push((id, signature));
            }
        }
        let staying: FxHashSet<GlobalId> = taken.iter().map(|(global, _)| *global).collect();
        let gone = self.functions().filter(|(_, f)| f.global().is_none_or(|g| !staying.contains(&g)));
        let gone: Vec<FunctionKey> = gone.map(|(key, _)| key).collect();
        if !gone.is_empty() {
            self.remove(&gone);
        }
        let mut order = Vec::with_capacity(taken.len());
        for (global, function) in taken {
            let present = self.cx.globals.get(global).target.function();
            match present {
                Some(key) => {
                    self.replace_function(key, global, function);
                    order.push(key);
                }
                None => {
                    let added = self.add(global, function);
                    order.push(added.expect("no function of the module has the name"));
                }
            }
        }
        if self.order() != order {
            self.set_order(order);
        }
        for (global, signature) in take_over.signatures {
            self.set_signature(global, signature);
        }
        self.set_attrs(attrs);
        Ok(())
    }

    fn has_source_of(&self, other: &Module) -> bool {
        match (self.source(), other.source()) {
            (Some(own), Some(theirs)) => Arc::ptr_eq(own, theirs),
            _ => false,
        }
    }

    /// Replaces the head and the body of a function by those of another one, unless they are equal.
    fn replace_function(&mut self, key: FunctionKey, global: GlobalId, new: Function) {
        let Some((function, cx)) = self.get_mut(key) else { return };
        if function.kind != new.kind {
            cx.globals.update(global, |g| {
                g.target = match new.kind {
                    FunctionKind::Definition => GlobalTarget::Definition(key),
                    FunctionKind::Declaration => GlobalTarget::Declaration(key),
                }
            });
        }
        // The text of a definition does not tell if its result type is stated.
        let same_result =
            function.is_definition() && new.is_definition() && function.result_type() == new.result_type();
        let new = if same_result { Function { ret: function.ret, ..new } } else { new };
        if FunctionHead::of(function) != FunctionHead::of(&new) {
            (function.visibility, function.ret, function.kind) = (new.visibility, new.ret, new.kind);
            (function.attrs, function.meta) = (new.attrs, new.meta);
        }
        if !compacted(&function.body).has_nodes_of(&new.body) {
            function.span = new.span;
            function.body.replace(new.body);
        }
    }
}

/// Returns a copy of a body without unreachable nodes.
fn compacted(body: &Body) -> Body {
    rebuild(body, body.len(), &mut SameTables).0
}

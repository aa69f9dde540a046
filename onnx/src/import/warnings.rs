//! Faults of a file that do not keep it from being read: an import says them and goes on.

use std::cell::{Cell, RefCell};

use anfora_ir::{AttrId, Diagnostic, TypeId};
use rustc_hash::FxHashSet;

use super::graph::Importer;
use super::kept::{Kept, KeptList, KeptNodes};
use crate::attributes::encoded_attr;
use crate::proto::{NodeProto, ValueInfoProto};
use crate::types::{Binding, contradict, other_kind, proto_of, says_no_more, type_of};

/// Warnings and kept nodes of a file, by the graph that they are of: those of a copy of a function
/// count when the copy is finished, and not at all if it fails.
#[derive(Default)]
pub(super) struct Notes {
    /// Those of the model, of the main graph and of finished copies.
    finished: RefCell<Said>,
    /// Those of the copies that are being made, the innermost last; `None` for one without any.
    open: RefCell<Vec<Option<Box<Said>>>>,
    /// The number of notes so far.
    turns: Cell<u64>,
}

/// Notes of one graph, or of several, each with its turn.
#[derive(Default)]
struct Said {
    kept: KeptList,
    warnings: Vec<(u64, Diagnostic)>,
}

impl Notes {
    /// Counts a node that is kept as it is.
    pub(super) fn keep(&self, node: &NodeProto, domain: &str, version: Option<i64>, why: &Kept) {
        self.say(|said, turn| said.kept.note(turn, node, domain, version, why));
    }

    /// Takes a warning.
    pub(super) fn warn(&self, place: &str, warning: Warning) {
        let warning = Diagnostic::warning(format!("{place}: {}", warning.message)).with_help(warning.help);
        self.say(|said, turn| said.warnings.push((turn, warning)));
    }

    /// Adds a note to those of the copy in hand.
    fn say(&self, note: impl FnOnce(&mut Said, u64)) {
        let turn = self.turns.get();
        self.turns.set(turn + 1);
        match self.open.borrow_mut().last_mut() {
            Some(copy) => note(copy.get_or_insert_default(), turn),
            None => note(&mut self.finished.borrow_mut(), turn),
        }
    }

    /// Begins a copy of a function, inside the one in hand.
    pub(super) fn begin_copy(&self) {
        self.open.borrow_mut().push(None);
    }

    /// Ends the copy in hand, of which the notes count from now on.
    pub(super) fn finish_copy(&self) {
        if let Some(Some(copy)) = self.open.borrow_mut().pop() {
            let mut finished = self.finished.borrow_mut();
            finished.kept.append(copy.kept);
            finished.warnings.extend(copy.warnings);
        }
    }

    /// Ends the copy in hand, of which the notes do not count.
    pub(super) fn drop_copy(&self) {
        self.open.borrow_mut().pop();
    }

    /// Returns the nodes that are kept as they are, and the warnings, in the order in which they
    /// were said. Copies of one function say the same over and over, which is left out.
    pub(super) fn into_parts(self) -> (Vec<KeptNodes>, Vec<Diagnostic>) {
        let Said { kept, mut warnings } = self.finished.into_inner();
        warnings.sort_by_key(|&(turn, _)| turn);
        let mut said = FxHashSet::default();
        warnings.retain(|(_, warning)| said.insert(warning.message.clone()));
        (kept.into_groups(), warnings.into_iter().map(|(_, warning)| warning).collect())
    }
}

/// A warning that does not say where yet.
pub(super) struct Warning {
    message: String,
    help: &'static str,
}

impl Warning {
    /// Returns the warning that two versions of a domain are imported.
    pub(super) fn two_versions(domain: &str) -> Warning {
        let domain =
            if domain.is_empty() { "the standard domain".to_owned() } else { format!("the domain `{domain}`") };
        Warning {
            message: format!("two versions of the operators of {domain} are imported"),
            help: "which of them its nodes mean is not known, so they are kept as they are",
        }
    }

    /// Returns the warning that the version of the format is not known.
    pub(super) fn ir_version(version: i64, newest: i64) -> Warning {
        Warning {
            message: format!("IR version {version} is newer than the newest that is known, {newest}"),
            help: "the file has no field that is not known, so it is read as if it were of that version",
        }
    }

    /// Returns the warning that a node does not fit its operands, for the reason given.
    pub(super) fn misfit(problem: String) -> Warning {
        Warning { message: problem, help: "the node is kept as it is: it is written back, but cannot be run here" }
    }
}

impl Importer<'_, '_> {
    /// Returns the type that a message states, in terms of the symbols of the inputs.
    pub(super) fn stated_type(&mut self, info: &ValueInfoProto) -> TypeId {
        let cx = self.builder.cx();
        match &info.r#type {
            Some(ty) => type_of(cx, &mut self.dims, ty, Binding::Uses),
            None => cx.types.any(),
        }
    }

    /// Warns, at the node or the graph in hand, of a statement of the file that the value
    /// contradicts. Returns true if it does.
    pub(super) fn warn_of_contradiction(&mut self, info: &ValueInfoProto, stated: TypeId, found: TypeId) -> bool {
        let cx = self.builder.cx();
        let kind = info.r#type.as_ref().and_then(other_kind).filter(|_| cx.types.as_tensor(found).is_some());
        if kind.is_none() && !contradict(cx, stated, found) {
            return false;
        }
        let stated = kind.map_or_else(|| cx.type_text(stated), str::to_owned);
        let (name, found) = (info.name(), cx.type_text(found));
        self.warnings.push(Warning {
            message: format!("`{name}` is {found}, but the file says {stated}"),
            help: "what the file says is left out; `onnx.shape_inference` writes types that fit",
        });
        true
    }

    /// Returns what the file states about a value, encoded, if that is more than its type here. If
    /// the type that is stated is wrong, the type here takes its place.
    pub(super) fn more_than(&mut self, info: &ValueInfoProto, found: TypeId, is_wrong: bool) -> Option<AttrId> {
        let has_text = info.doc_string.is_some() || !info.metadata_props.is_empty();
        let cx = self.builder.cx();
        let stated = info.r#type.as_ref().filter(|_| !is_wrong);
        if !has_text && says_no_more(cx, &self.dims.names, stated, found) {
            return None;
        }
        if !is_wrong {
            return Some(encoded_attr(cx, info));
        }
        let r#type = proto_of(cx, &self.dims.names, found);
        Some(encoded_attr(cx, &ValueInfoProto { r#type, ..info.clone() }))
    }

    /// Says the warnings that are waiting for a place.
    pub(super) fn say_warnings(&mut self, place: impl FnOnce() -> String) {
        if self.warnings.is_empty() {
            return;
        }
        let place = place();
        for warning in self.warnings.drain(..) {
            self.settings.notes.warn(&place, warning);
        }
    }
}

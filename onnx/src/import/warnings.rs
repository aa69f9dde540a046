//! Faults of a file that do not prevent the import. They are reported as warnings.

use std::cell::{Cell, RefCell};

use anfora_ir::{AttrId, Diagnostic, TypeId};
use rustc_hash::FxHashSet;

use super::graph::Importer;
use super::unsupported::{KeptList, UnsupportedNodes};
use crate::attributes::encoded_attr;
use crate::error::UnsupportedReason;
use crate::proto::{NodeProto, ValueInfoProto};
use crate::types::{Binding, contradict, other_kind, proto_of, says_no_more, type_of};

/// The warnings and kept nodes of a file, by graph. Those of a copy of a function count when the
/// copy is finished, and are dropped if it fails.
#[derive(Default)]
pub(super) struct Notes {
    /// The notes of the model, of the main graph and of finished copies.
    finished: RefCell<Said>,
    /// The notes of the unfinished copies, the innermost last; `None` for a copy without notes.
    open: RefCell<Vec<Option<Box<Said>>>>,
    /// The number of notes so far.
    turns: Cell<u64>,
}

/// The notes of one or several graphs, each with its turn.
#[derive(Default)]
struct Said {
    kept: KeptList,
    warnings: Vec<(u64, Diagnostic)>,
}

impl Notes {
    /// Counts a node that is kept unchanged.
    pub(super) fn keep(&self, node: &NodeProto, domain: &str, version: Option<i64>, why: &UnsupportedReason) {
        self.say(|said, turn| said.kept.note(turn, node, domain, version, why));
    }

    /// Adds a warning about a place.
    pub(super) fn warn(&self, place: &str, warning: Warning) {
        let warning = Diagnostic::warning(format!("{place}: {}", warning.message)).with_help(warning.help);
        self.say(|said, turn| said.warnings.push((turn, warning)));
    }

    /// Adds a note to the current copy.
    fn say(&self, note: impl FnOnce(&mut Said, u64)) {
        let turn = self.turns.get();
        self.turns.set(turn + 1);
        match self.open.borrow_mut().last_mut() {
            Some(copy) => note(copy.get_or_insert_default(), turn),
            None => note(&mut self.finished.borrow_mut(), turn),
        }
    }

    /// Begins a copy of a function inside the current one.
    pub(super) fn begin_copy(&self) {
        self.open.borrow_mut().push(None);
    }

    /// Ends the current copy and counts its notes.
    pub(super) fn finish_copy(&self) {
        if let Some(Some(copy)) = self.open.borrow_mut().pop() {
            let mut finished = self.finished.borrow_mut();
            finished.kept.append(copy.kept);
            finished.warnings.extend(copy.warnings);
        }
    }

    /// Ends the current copy and drops its notes.
    pub(super) fn drop_copy(&self) {
        self.open.borrow_mut().pop();
    }

    /// Returns the kept nodes and the warnings in the order in which they were added. Repeated
    /// warnings from copies of a function are dropped.
    pub(super) fn into_parts(self) -> (Vec<UnsupportedNodes>, Vec<Diagnostic>) {
        let Said { kept, mut warnings } = self.finished.into_inner();
        warnings.sort_by_key(|&(turn, _)| turn);
        let mut said = FxHashSet::default();
        warnings.retain(|(_, warning)| said.insert(warning.message.clone()));
        (kept.into_groups(), warnings.into_iter().map(|(_, warning)| warning).collect())
    }
}

/// A warning without a place.
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

    /// Returns the warning that a node does not fit its operands for the given reason.
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

    /// Warns, at the current node or graph, if the stated type of a value contradicts its type.
    /// Returns true if it does.
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

    /// Returns the encoded message of the file about a value, if it states more than the type here.
    /// A wrong stated type is replaced by the type here.
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

    /// Emits the pending warnings with their place.
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

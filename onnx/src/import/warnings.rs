//! Faults of a file that do not prevent the import. They are reported as warnings.

use std::cell::{Cell, RefCell};

use anfora_ir::Diagnostic;
use rustc_hash::FxHashSet;

use super::unsupported::{KeptList, UnsupportedNodes};
use crate::error::UnsupportedReason;
use crate::proto::NodeProto;

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

    /// Returns the warning that a value has another type than the file states.
    pub(super) fn contradiction(name: &str, found: &str, stated: &str) -> Warning {
        Warning {
            message: format!("`{name}` is {found}, but the file says {stated}"),
            help: "what the file says is left out; `onnx.shape_inference` writes types that fit",
        }
    }

    /// Returns the warning that a node does not fit its operands for the given reason.
    pub(super) fn misfit(problem: String) -> Warning {
        Warning { message: problem, help: "the node is kept as it is: it is written back, but cannot be run here" }
    }
}

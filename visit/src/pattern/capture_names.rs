//! The names of the captures of a rule, and what each of them captures.

use std::sync::Arc;

use anfora_ir::{AttrDef, AttrDefault, AttrKind, did_you_mean};
use rustc_hash::FxHashMap;

use crate::pattern::error::PatternError;

#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum CaptureKind {
    Expression,
    List,
    Attribute,
}

/// A capture of a rule.
#[derive(Clone, Debug)]
pub(crate) struct NamedCapture {
    pub(crate) name: Arc<str>,
    kind: CaptureKind,
    /// The kind and default of the attributes whose value it captures, once one is known.
    attr: Option<(AttrKind, AttrDefault)>,
}

/// The captures of a rule, in the order in which they stand in the pattern.
#[derive(Clone, Default)]
pub(crate) struct CaptureNames {
    pub(crate) list: Vec<NamedCapture>,
    slots: FxHashMap<Arc<str>, u32>,
}

impl CaptureNames {
    /// Returns true if a capture with this name was added.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.slots.contains_key(name)
    }

    /// Adds a capture, numbered after the others.
    pub(crate) fn add(&mut self, name: &Arc<str>, kind: CaptureKind) {
        self.slots.insert(Arc::clone(name), self.list.len() as u32);
        self.list.push(NamedCapture { name: Arc::clone(name), kind, attr: None });
    }

    /// Returns the number of a capture.
    pub(crate) fn slot(&self, name: &str) -> Result<u32, PatternError> {
        self.slots.get(name).copied().ok_or_else(|| {
            let near = did_you_mean(name, self.list.iter().map(|known| &*known.name));
            let help = near.map(|near| format!("did you mean `{near}`?"));
            PatternError::UnknownCapture { name: name.to_string(), help }
        })
    }

    /// Returns the number of a capture, and checks that it has this kind everywhere.
    pub(crate) fn slot_of(&self, name: &str, kind: CaptureKind) -> Result<u32, PatternError> {
        let slot = self.slot(name)?;
        match self.list[slot as usize].kind == kind {
            true => Ok(slot),
            false => Err(PatternError::MixedCapture(name.to_string())),
        }
    }

    /// Records that a capture is the value of an operator's attribute. All attributes with the same
    /// capture must have the same kind and default.
    pub(crate) fn note_attr(&mut self, capture: &str, op: &str, def: &AttrDef) -> Result<(), PatternError> {
        let slot = self.slot_of(capture, CaptureKind::Attribute)?;
        let known = self.list[slot as usize].attr.get_or_insert((def.kind, def.default));
        match *known == (def.kind, def.default) {
            true => Ok(()),
            false => Err(PatternError::MixedAttr {
                capture: capture.to_string(),
                op: op.to_string(),
                attr: def.name.to_string(),
            }),
        }
    }
}

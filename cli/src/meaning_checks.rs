//! Searches in which the interpreter judges programs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use anfora::bisect::Judgement;
use anfora::manager::PassContextBuilder;
use anfora::passes::CheckMeaning;

use crate::report;

/// The interpretations of the programs of a search.
#[derive(Default)]
pub(crate) struct MeaningChecks {
    /// The instrument of the last run of the pipeline.
    last: RefCell<Option<Arc<CheckMeaning>>>,
    /// The notes that were printed.
    printed: RefCell<BTreeSet<String>>,
}

impl MeaningChecks {
    /// Adds a new instrument to the context of a run.
    pub(crate) fn instrument(&self, builder: PassContextBuilder) -> PassContextBuilder {
        let check = Arc::new(CheckMeaning::new());
        self.last.replace(Some(Arc::clone(&check)));
        builder.instrument(check)
    }

    /// Judges a run of the pipeline that has not failed: right if results were compared, or if no
    /// pass changed anything.
    pub(crate) fn judge(&self) -> Judgement {
        let checked = self.last.borrow().as_ref().map(|check| check.checked()).unwrap_or_default();
        if checked.runs == 0 && checked.passes > 0 { Judgement::Undecided } else { Judgement::Right }
    }

    /// Prints the notes of the last run about what could not be compared, each once.
    pub(crate) fn print_notes(&self) {
        let notes = self.last.borrow().as_ref().map(|check| check.notes()).unwrap_or_default();
        for note in notes {
            if self.printed.borrow_mut().insert(note.clone()) {
                report::say(&format!("not compared: {note}"));
            }
        }
    }
}

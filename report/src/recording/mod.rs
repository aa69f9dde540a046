//! Recordings: the passes that ran over a module, and what each changed, as lines.
//!
//! A recording stores each different line once, in a table; everything else refers to lines by
//! their numbers. The rows of a function are its signature, its Lets, the tails of its blocks, and
//! the words between blocks. A pass that changed a function is recorded as [`Hunk`]s of the rows of
//! the function, so the rows before and after any pass follow from [`Recording::program`].

mod compare;
mod history;
mod json;
mod lines;
mod room;
mod rows;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anfora_ir::{Diagnostic, NearMiss, Source};
use anfora_manager::PassKind;

pub use history::{BindingEvent, BindingEventKind};
pub(crate) use writer::RecordingWriter;

/// The passes that ran over a module, in the order in which they began, and the changes that each
/// made. It is plain data: nothing in it refers to the module.
///
/// A recording shows the changes of a large program, not the program: its JSON has at most
/// [`MAX_RECORDING_BYTES`], of which each pass gets a share. The rows of the program have a limit,
/// and so have the rows and functions of each pass. Runs, messages, rewrites, functions and rows
/// that a pass left out are counted; for near misses there is a flag. Functions that are too large
/// for `program` are missing there.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recording {
    /// The different lines.
    pub lines: Vec<RecordedLine>,
    /// The different types of lines, as text.
    pub types: Vec<String>,
    /// The different variables, as lines spell them: `%x`, `%"a name"`, `%#57` for a variable
    /// without a name.
    pub names: Vec<String>,
    /// The different operators of lines: `add`, `@f` for a call of a function, and words such as
    /// `tuple` and `if`.
    pub labels: Vec<String>,
    /// The names of the functions, without `@`.
    pub functions: Vec<String>,
    /// The different reasons of rewrites.
    pub reasons: Vec<String>,
    /// The functions before the first pass, each with its rows: those that are small enough.
    pub program: Vec<(usize, Vec<u32>)>,
    /// The number of calls of each operator before the first pass.
    pub operators: BTreeMap<String, u64>,
    /// The runs of passes.
    pub runs: Vec<RecordedPass>,
    /// The text that the module was parsed from, for the places of messages.
    pub source: Option<Arc<Source>>,
    /// The number of runs for which there was no room.
    pub runs_left_out: u64,
}

/// The maximum number of bytes of a recording as JSON.
pub const MAX_RECORDING_BYTES: usize = 16 << 20;

/// The maximum number of rows of one pass that a recording keeps.
pub const MAX_ROWS_OF_RUN: usize = 20_000;

/// The maximum number of functions of one pass whose changes a recording keeps.
pub const MAX_FUNCTIONS_OF_RUN: usize = 5_000;

/// The maximum number of rows of the program before the first pass that a recording keeps.
pub const MAX_ROWS_OF_PROGRAM: usize = 20_000;

/// The maximum number of messages of one pass that a recording keeps.
pub const MAX_MESSAGES_OF_RUN: usize = 1000;

/// The maximum number of runs that a recording keeps.
pub const MAX_RECORDED_RUNS: usize = 10_000;

/// A line of a function.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordedLine {
    /// The kind of line.
    pub kind: LineKind,
    /// The text, without indentation.
    pub text: String,
    /// True if the text does not show all of the line, so that lines that differ may have the same
    /// text.
    pub is_abridged: bool,
    /// The index of the type of the value, among the types of the recording.
    pub ty: Option<u32>,
    /// The number of blocks around the line.
    pub depth: u8,
    /// The index of the operator of the value, among the labels of the recording.
    pub label: u32,
    /// The variable that a Let binds, among the names of the recording.
    pub binding: Option<u32>,
    /// The parameters of the function, or of a `fn` in the line, among the names of the recording.
    pub parameters: Vec<u32>,
    /// The variables that the line uses, among the names of the recording.
    pub uses: Vec<u32>,
}

/// The kind of a line.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum LineKind {
    /// The signature of a function.
    Signature,
    /// A Let.
    Let,
    /// The tail of a block, or a word between blocks.
    Other,
}

/// One run of a pass.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedPass {
    /// The name of the pass.
    pub name: String,
    /// The pass as a pipeline writes it; empty for a sequence inside of another run.
    pub text: String,
    /// The kind of the pass.
    pub kind: PassKind,
    /// The index of the run around this one.
    pub parent: Option<usize>,
    /// The round of a fixpoint that this run is part of, from 1; absent outside of fixpoints.
    pub round: Option<u32>,
    /// The pass that depends on this pass, if this pass runs only as a dependency.
    pub dependency_of: Option<String>,
    /// The time from the beginning of the first pass to the beginning of this one.
    pub begin: Duration,
    /// The duration, without the time that instruments took.
    pub time: Duration,
    /// The outcome.
    pub outcome: RecordedOutcome,
    /// Bytes of the module before and after the pass.
    pub bytes: [usize; 2],
    /// The counts that the pass left.
    pub counts: Vec<(&'static str, u64)>,
    /// The messages that the pass left.
    pub messages: Vec<Diagnostic>,
    /// The number of messages for which there was no room.
    pub messages_left_out: usize,
    /// The rewrites that the pass made, if the context records them.
    pub rewrites: Vec<RecordedRewrite>,
    /// The number of rewrites for which there was no room.
    pub rewrites_left_out: u64,
    /// The rewrites that nearly applied, if the context explains them.
    pub near_misses: Vec<NearMiss>,
    /// True if there may be more near misses, for which there was no room.
    pub has_more_near_misses: bool,
    /// The change of the number of calls of each operator, where there is one.
    pub operators: BTreeMap<String, i64>,
    /// The functions that the pass changed, in the order of their indices.
    pub changes: Vec<FunctionChange>,
    /// The number of functions for whose changes there was no room.
    pub functions_left_out: usize,
}

impl RecordedPass {
    /// Returns the changes of a function, if they were kept.
    pub fn change_of(&self, function: usize) -> Option<&FunctionChange> {
        let at = self.changes.binary_search_by_key(&function, |change| change.function).ok()?;
        Some(&self.changes[at])
    }
}

/// The outcome of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordedOutcome {
    /// The run has not ended.
    Running,
    /// The pass changed the module.
    Changed,
    /// The module is as it was.
    Unchanged,
    /// The pass did not run, for a reason.
    Skipped(String),
    /// The pass failed with an error, and was rolled back.
    Failed(String),
}

/// A rewrite of a binding. A rewrite that changes several bindings has one entry for each of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordedRewrite {
    /// The index of the function; `None` for the module as a whole.
    pub function: Option<usize>,
    /// The index of the binding, among the names of the recording; `None` for the result or the
    /// function as a whole.
    pub binding: Option<usize>,
    /// The index of the reason, among the reasons of the recording: the name of a rule, or another
    /// description.
    pub why: usize,
}

/// The changes of a function by a pass.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FunctionChange {
    /// The index of the function.
    pub function: usize,
    /// True if the function was added.
    pub is_added: bool,
    /// True if the function was removed.
    pub is_removed: bool,
    /// The numbers of Lets that were added, changed and removed.
    pub bindings: [usize; 3],
    /// The changed rows, in order.
    pub hunks: Vec<Hunk>,
    /// The number of changed rows for which there was no room. The last hunk tells their place.
    pub rows_left_out: usize,
}

/// Adjacent rows of a function that other rows replace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hunk {
    /// The index of the first old row among the old rows of the function, and of the first new row
    /// among the new ones.
    pub at: [usize; 2],
    /// The old lines.
    pub old: Vec<u32>,
    /// The new lines.
    pub new: Vec<u32>,
    /// The numbers of old and new rows that follow and are not kept. Rows that did not change may
    /// be among them. Only the last hunk of a function leaves rows out.
    pub left_out: [usize; 2],
    /// Up to three lines before the hunk.
    pub before: Vec<u32>,
    /// Up to three lines after the hunk.
    pub after: Vec<u32>,
}

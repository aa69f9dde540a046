//! The writer of a recording.

use std::collections::BTreeMap;

use anfora_ir::{Context, EditedFunction, EntityId, Function, Module, OpId, RewriteRecord, SequenceChange};
use rustc_hash::{FxHashMap, FxHashSet};

use super::compare::changes;
use super::lines::Lines;
use super::rows::{KeyedBy, Row, RowKey, RowKind, Rows};
use super::{FunctionChange, Hunk, MAX_ROWS_OF_PROGRAM, MAX_ROWS_OF_RUN, RecordedRewrite, Recording};

/// The number of rows around a hunk that it keeps.
const CONTEXT: usize = 3;

/// A recording that is being written.
#[derive(Default)]
pub(crate) struct RecordingWriter {
    pub(crate) recording: Recording,
    lines: Lines,
    functions: FxHashMap<String, usize>,
    reasons: FxHashMap<String, usize>,
    has_program: bool,
}

impl RecordingWriter {
    /// Returns a copy of the recording.
    pub(crate) fn to_recording(&self) -> Recording {
        Recording { lines: self.lines.lines().to_vec(), types: self.lines.types().to_vec(), ..self.recording.clone() }
    }

    /// Records the program before the first pass: the functions that are small enough, and the
    /// number of calls of each operator. Does nothing if a program was recorded. Linear.
    pub(crate) fn begin(&mut self, module: &Module) {
        if std::mem::replace(&mut self.has_program, true) {
            return;
        }
        let mut operators: Vec<u64> = Vec::new();
        let mut room = MAX_ROWS_OF_PROGRAM;
        for (_, function) in module.functions() {
            let rows = Rows::of(&module.cx, function, KeyedBy::Node);
            add(&mut operators, &rows.operators);
            if rows.rows.len() > room {
                continue;
            }
            room -= rows.rows.len();
            let number = |&row: &Row| self.lines.number(&module.cx, &rows, row);
            if let Some(lines) = rows.rows.iter().map(number).collect() {
                let function = self.function(name(&module.cx, function));
                self.recording.program.push((function, lines));
            }
        }
        self.lines.end_pass();
        self.recording.source = module.source().cloned();
        self.recording.operators = named(&module.cx, &operators).filter(|(_, n)| *n > 0).collect();
    }

    /// Returns the changes that the open edit of the module has made, and the differences of the
    /// numbers of calls of each operator. Linear in the functions that the edit changed.
    pub(crate) fn changes(&mut self, module: &Module) -> (Vec<FunctionChange>, BTreeMap<String, i64>) {
        let mut found = Vec::new();
        let (mut before, mut after): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut room = MAX_ROWS_OF_RUN;
        for EditedFunction { before: old, after: new, .. } in module.edited_functions() {
            let (old, new) = (old.as_ref(), new);
            // Bodies of different generations have different ids.
            let generations = [old, new].map(|f| f.map(|f| f.body.generation()));
            let keyed_by = if generations[0] == generations[1] { KeyedBy::Node } else { KeyedBy::Name };
            let rows = [old, new].map(|f| f.map(|f| Rows::of(&module.cx, f, keyed_by)));
            rows[0].iter().for_each(|rows| add(&mut before, &rows.operators));
            rows[1].iter().for_each(|rows| add(&mut after, &rows.operators));
            if let Some(change) = self.function_change(&module.cx, &rows, &mut room) {
                found.push(change);
            }
        }
        self.lines.end_pass();
        let operators = before.len().max(after.len());
        before.resize(operators, 0);
        after.resize(operators, 0);
        let difference: Vec<i64> = after.iter().zip(&before).map(|(&new, &old)| new as i64 - old as i64).collect();
        (found, named(&module.cx, &difference).filter(|(_, n)| *n != 0).collect())
    }

    /// Returns the change of a function, given its rows before and after, if one of them exists.
    fn function_change(
        &mut self,
        cx: &Context,
        rows: &[Option<Rows<'_>>; 2],
        room: &mut usize,
    ) -> Option<FunctionChange> {
        let function = rows.iter().flatten().last()?.function;
        let mut change = FunctionChange {
            function: self.function(name(cx, function)),
            is_added: rows[0].is_none(),
            is_removed: rows[1].is_none(),
            ..FunctionChange::default()
        };
        let found = match rows {
            [Some(old), Some(new)] => changes(old, new),
            _ => {
                let [old, new] = rows.each_ref().map(|rows| 0..rows.as_ref().map_or(0, |rows| rows.rows.len()));
                vec![SequenceChange { old, new }]
            }
        };
        for SequenceChange { old, new } in found {
            let ranges = [old, new];
            let parts = [0, 1].map(|side| rows[side].as_ref().map_or(&[][..], |r| &r.rows[ranges[side].clone()]));
            let size = parts[0].len() + parts[1].len();
            let hunk = if size <= *room { self.hunk(cx, rows, &ranges) } else { None };
            match hunk {
                // Rows may differ in their ids and be written alike.
                Some(hunk) if hunk.old == hunk.new => continue,
                Some(hunk) => {
                    *room -= size;
                    change.hunks.push(hunk);
                }
                None => change.rows_left_out += size,
            }
            count_bindings(parts, &mut change.bindings);
        }
        let is_empty = change.hunks.is_empty() && change.rows_left_out == 0;
        (!is_empty || change.is_added || change.is_removed).then_some(change)
    }

    /// Returns the hunk of these rows; `None` if there is no room for its lines.
    fn hunk(
        &mut self,
        cx: &Context,
        rows: &[Option<Rows<'_>>; 2],
        [old, new]: &[std::ops::Range<usize>; 2],
    ) -> Option<Hunk> {
        let mut lines = |side: usize, range: std::ops::Range<usize>| -> Option<Vec<u32>> {
            let Some(rows) = &rows[side] else { return Some(Vec::new()) };
            let range = range.start..range.end.min(rows.rows.len());
            rows.rows[range].iter().map(|&row| self.lines.number(cx, rows, row)).collect()
        };
        let around = usize::from(rows.iter().all(Option::is_some)) * CONTEXT;
        Some(Hunk {
            at: [old.start, new.start],
            old: lines(0, old.clone())?,
            new: lines(1, new.clone())?,
            before: lines(1, new.start.saturating_sub(around)..new.start)?,
            after: lines(1, new.end..new.end + around)?,
        })
    }

    /// Returns the rewrites that the records of the ledger name. The same rewrite of a function as a
    /// whole is returned once.
    pub(crate) fn rewrites(&mut self, records: Vec<RewriteRecord>) -> Vec<RecordedRewrite> {
        let mut rewrites = Vec::new();
        let mut of_functions: FxHashSet<RecordedRewrite> = FxHashSet::default();
        for RewriteRecord { function, binding, why, .. } in records.into_iter().filter(|record| !record.is_undone) {
            let (function, why) = (function.map(|function| self.function(&function)), self.reason(why));
            let rewrite = RecordedRewrite { function, binding, why };
            if rewrite.binding.is_some() || of_functions.insert(rewrite.clone()) {
                rewrites.push(rewrite);
            }
        }
        rewrites
    }

    fn reason(&mut self, why: String) -> usize {
        if let Some(&reason) = self.reasons.get(&why) {
            return reason;
        }
        let reason = self.recording.reasons.len();
        self.recording.reasons.push(why.clone());
        self.reasons.insert(why, reason);
        reason
    }

    fn function(&mut self, name: &str) -> usize {
        if let Some(&function) = self.functions.get(name) {
            return function;
        }
        let function = self.recording.functions.len();
        self.recording.functions.push(name.to_string());
        self.functions.insert(name.to_string(), function);
        function
    }
}

fn name<'c>(cx: &'c Context, function: &Function) -> &'c str {
    function.global().map_or("", |global| cx.global_name(global))
}

/// Adds the numbers of Lets that were added, changed and removed in a change.
fn count_bindings(parts: [&[Row]; 2], [added, changed, removed]: &mut [usize; 3]) {
    let bindings = |side: usize| parts[side].iter().filter(|row| row.kind == RowKind::Let).map(|row| row.key);
    let old: FxHashSet<RowKey> = bindings(0).collect();
    let kept = bindings(1).filter(|key| old.contains(key)).count();
    *added += bindings(1).count() - kept;
    *changed += kept;
    *removed += bindings(0).count() - kept.min(bindings(0).count());
}

/// Adds numbers of calls, by operator.
fn add(sums: &mut Vec<u64>, numbers: &[u64]) {
    sums.resize(sums.len().max(numbers.len()), 0);
    sums.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n);
}

/// Returns numbers with the names of their operators.
fn named<'a, T: Copy>(cx: &'a Context, by_operator: &'a [T]) -> impl Iterator<Item = (String, T)> + 'a {
    by_operator.iter().enumerate().map(|(i, &n)| (cx.ops.get(OpId::from_index(i)).name.to_string(), n))
}

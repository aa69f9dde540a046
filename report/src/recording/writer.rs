//! The writer of a recording.

use std::collections::BTreeMap;
use std::ops::Range;

use anfora_ir::{
    Context, Diagnostic, EditedFunction, EntityId, Function, Module, NearMiss, NearMisses, OpId, RewriteRecord,
    SequenceChange,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::compare::changes;
use super::lines::Tables;
use super::room::{CHANGE, HUNK, INDEX, MESSAGE, RUN, Room, bytes_of};
use super::rows::{KeyedBy, Row, RowKey, RowKind, Rows};
use super::{
    FunctionChange, Hunk, MAX_FUNCTIONS_OF_RUN, MAX_MESSAGES_OF_RUN, MAX_RECORDED_RUNS, MAX_RECORDING_BYTES,
    MAX_ROWS_OF_PROGRAM, MAX_ROWS_OF_RUN, RecordedPass, RecordedRewrite, Recording,
};

/// The number of rows around a hunk that it keeps.
const CONTEXT: usize = 3;

/// With less than this room, no further run is kept.
const LEAST_ROOM: usize = 64 << 10;

/// A recording that is being written.
///
/// Each part takes its bytes from the room that is left. A part of a run gets a share of that
/// ([`RecordingWriter::share`]), so that later runs have room too.
pub(crate) struct RecordingWriter {
    pub(crate) recording: Recording,
    tables: Tables,
    /// The bytes that are left.
    left: usize,
    has_program: bool,
}

impl Default for RecordingWriter {
    fn default() -> RecordingWriter {
        let (recording, tables) = Default::default();
        RecordingWriter { recording, tables, left: MAX_RECORDING_BYTES, has_program: false }
    }
}

impl RecordingWriter {
    /// Returns room of one part of so many of the bytes that are left.
    fn share(&self, parts: usize) -> Room {
        Room::new(self.left / parts, MAX_ROWS_OF_RUN, MAX_FUNCTIONS_OF_RUN)
    }

    /// Takes back what a part with this share of the room has not used.
    fn settle(&mut self, parts: usize, room: Room) {
        self.left -= self.left / parts - room.bytes;
    }

    /// Records the program before the first pass: the functions that are small enough, and the
    /// number of calls of each operator. Does nothing if a program was recorded. Linear.
    pub(crate) fn begin(&mut self, module: &Module) {
        if std::mem::replace(&mut self.has_program, true) {
            return;
        }
        let mut operators: Vec<u64> = Vec::new();
        let mut room = Room::new(self.left / 4, MAX_ROWS_OF_PROGRAM, usize::MAX);
        for (_, function) in module.functions() {
            let rows = Rows::of(&module.cx, function, KeyedBy::Node);
            add(&mut operators, &rows.operators);
            let bytes = CHANGE + INDEX * rows.rows.len();
            if rows.rows.len() > room.rows || !room.fits(bytes) {
                continue;
            }
            room.rows -= rows.rows.len();
            room.take(bytes);
            let line = |&row: &Row| self.tables.line(&mut self.recording, (&module.cx, &rows), row, &mut room);
            let Some(lines) = rows.rows.iter().map(line).collect() else { continue };
            if let Some(function) = self.tables.function(&mut self.recording, name(&module.cx, function), &mut room) {
                self.recording.program.push((function, lines));
            }
        }
        self.settle(4, room);
        self.tables.end_pass();
        self.recording.source = module.source().cloned();
        self.recording.operators = named(&module.cx, &operators).filter(|(_, n)| *n > 0).collect();
    }

    /// Adds a run, and returns its index if there is room for it.
    pub(crate) fn add(&mut self, mut run: RecordedPass) -> Option<usize> {
        let bytes = RUN + bytes_of(&run.name) + bytes_of(&run.text);
        let room = self.left.saturating_sub(LEAST_ROOM);
        if self.recording.runs.len() == MAX_RECORDED_RUNS || room == 0 {
            self.recording.runs_left_out += 1;
            return None;
        }
        if bytes > room / 8 {
            run.text = String::new();
        }
        self.left -= bytes.min(room);
        self.recording.runs.push(run);
        Some(self.recording.runs.len() - 1)
    }

    /// Records the changes that the open edit of the module has made in a run, and the differences
    /// of the numbers of calls of each operator. Linear in the functions that the edit changed.
    pub(crate) fn changes(&mut self, module: &Module, run: usize) {
        let mut kept = Vec::new();
        let mut functions_left_out = 0;
        let (mut before, mut after): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut room = self.share(8);
        for EditedFunction { before: old, after: new, .. } in module.edited_functions() {
            let (old, new) = (old.as_ref(), new);
            // Bodies of different generations have different ids.
            let generations = [old, new].map(|f| f.map(|f| f.body.generation()));
            let keyed_by = if generations[0] == generations[1] { KeyedBy::Node } else { KeyedBy::Name };
            let rows = [old, new].map(|f| f.map(|f| Rows::of(&module.cx, f, keyed_by)));
            rows[0].iter().for_each(|rows| add(&mut before, &rows.operators));
            rows[1].iter().for_each(|rows| add(&mut after, &rows.operators));
            let found = differences(&rows);
            if found.is_empty() {
                continue;
            }
            if room.is_full() || room.functions == 0 {
                functions_left_out += 1;
                continue;
            }
            match self.function_change(&module.cx, &rows, &found, &mut room) {
                Some(change) if change.hunks.is_empty() => {}
                Some(change) => {
                    room.functions -= 1;
                    kept.push(change);
                }
                None => functions_left_out += 1,
            }
        }
        self.settle(8, room);
        self.tables.end_pass();
        kept.sort_by_key(|change| change.function);
        let operators = before.len().max(after.len());
        before.resize(operators, 0);
        after.resize(operators, 0);
        let difference: Vec<i64> = after.iter().zip(&before).map(|(&new, &old)| new as i64 - old as i64).collect();
        let operators: BTreeMap<String, i64> = named(&module.cx, &difference).filter(|(_, n)| *n != 0).collect();
        self.left = self.left.saturating_sub(operators.keys().map(|name| bytes_of(name) + INDEX).sum());
        let run = &mut self.recording.runs[run];
        (run.changes, run.functions_left_out, run.operators) = (kept, functions_left_out, operators);
    }

    /// Returns the change of a function, given its rows before and after, if one of them exists,
    /// and the differences. `None` if there is no room for it. It has no hunks if the differences
    /// are not seen in lines.
    fn function_change(
        &mut self,
        cx: &Context,
        rows: &[Option<Rows<'_>>; 2],
        found: &[SequenceChange],
        room: &mut Room,
    ) -> Option<FunctionChange> {
        let function = rows.iter().flatten().last()?.function;
        if !room.take(CHANGE) {
            return None;
        }
        let mut change = FunctionChange {
            function: self.tables.function(&mut self.recording, name(cx, function), room)?,
            is_added: rows[0].is_none(),
            is_removed: rows[1].is_none(),
            ..FunctionChange::default()
        };
        let end = found.last()?;
        let mut is_full = false;
        // The lines around hunks that are near each other are the same.
        let mut known = FxHashMap::default();
        for SequenceChange { old, new } in found {
            let ranges = [old.clone(), new.clone()];
            let parts = [0, 1].map(|side| rows[side].as_ref().map_or(&[][..], |r| &r.rows[ranges[side].clone()]));
            let size = old.len() + new.len();
            if is_full {
                change.rows_left_out += size;
                count_bindings(parts, &mut change.bindings);
                continue;
            }
            let mut hunk = self.hunk(cx, rows, &ranges, (&mut known, room));
            let left_out = size - hunk.old.len() - hunk.new.len();
            // Rows may differ in their ids and be written alike.
            let is_abridged = |line: &u32| self.recording.lines[*line as usize].is_abridged;
            if left_out == 0 && hunk.old == hunk.new && !hunk.new.iter().any(is_abridged) {
                continue;
            }
            if left_out > 0 {
                is_full = true;
                change.rows_left_out += left_out;
                // The rest of the function is one gap, up to its last difference.
                hunk.left_out = [end.old.end - old.start - hunk.old.len(), end.new.end - new.start - hunk.new.len()];
            }
            change.hunks.push(hunk);
            count_bindings(parts, &mut change.bindings);
        }
        Some(change)
    }

    /// Returns the hunk of these rows, as far as there is room for them. `known` are the lines of
    /// new rows that were asked for before, by the indices of the rows.
    fn hunk(
        &mut self,
        cx: &Context,
        rows: &[Option<Rows<'_>>; 2],
        [old, new]: &[Range<usize>; 2],
        (known, room): (&mut FxHashMap<usize, u32>, &mut Room),
    ) -> Hunk {
        let mut hunk = Hunk { at: [old.start, new.start], ..Hunk::default() };
        if !room.take(HUNK) {
            return hunk;
        }
        let mut line = |side: usize, at: usize, room: &mut Room| -> Option<u32> {
            let rows = rows[side].as_ref()?;
            let row = *rows.rows.get(at)?;
            let line = match known.get(&at).filter(|_| side == 1) {
                Some(&line) => line,
                None => {
                    let line = self.tables.line(&mut self.recording, (cx, rows), row, room)?;
                    if side == 1 {
                        known.insert(at, line);
                    }
                    line
                }
            };
            room.take(INDEX).then_some(line)
        };
        let around = usize::from(rows.iter().all(Option::is_some)) * CONTEXT;
        hunk.before = (new.start.saturating_sub(around)..new.start).map_while(|at| line(1, at, room)).collect();
        // Old and new rows take turns, so that a hunk that is cut shows both.
        for i in 0..old.len().max(new.len()) {
            for (side, range) in [old, new].into_iter().enumerate().filter(|(_, range)| i < range.len()) {
                let kept = if room.take_row() { line(side, range.start + i, room) } else { None };
                let Some(kept) = kept else { return hunk };
                if side == 0 { hunk.old.push(kept) } else { hunk.new.push(kept) }
            }
        }
        hunk.after = (new.end..new.end + around).map_while(|at| line(1, at, room)).collect();
        hunk
    }

    /// Records the rewrites that the records of the ledger name, as far as there is room. The same
    /// rewrite of a function as a whole is recorded once. `left_out` more records are known.
    pub(crate) fn rewrites(&mut self, (records, left_out): (Vec<RewriteRecord>, u64), run: usize) {
        let mut rewrites = Vec::new();
        let mut of_functions: FxHashSet<RecordedRewrite> = FxHashSet::default();
        let mut room = self.share(16);
        let mut unkept = left_out;
        for RewriteRecord { function, binding, why, .. } in records.into_iter().filter(|record| !record.is_undone) {
            match self.rewrite(function.as_deref(), binding.as_deref(), &why, &mut room) {
                Some(rewrite) if rewrite.binding.is_none() && of_functions.contains(&rewrite) => {}
                Some(rewrite) if room.take(4 * INDEX) => {
                    if rewrite.binding.is_none() {
                        of_functions.insert(rewrite.clone());
                    }
                    rewrites.push(rewrite);
                }
                _ => unkept += 1,
            }
        }
        self.settle(16, room);
        self.recording.runs[run].rewrites = rewrites;
        self.recording.runs[run].rewrites_left_out = unkept;
    }

    /// Returns a rewrite with the indices of its names; `None` if there is no room for them.
    fn rewrite(
        &mut self,
        function: Option<&str>,
        binding: Option<&str>,
        why: &str,
        room: &mut Room,
    ) -> Option<RecordedRewrite> {
        let (tables, recording) = (&mut self.tables, &mut self.recording);
        let function = match function {
            Some(name) => Some(tables.function(recording, name, room)?),
            None => None,
        };
        let binding = match binding {
            Some(name) => Some(tables.name(recording, name, room)?),
            None => None,
        };
        Some(RecordedRewrite { function, binding, why: tables.reason(recording, why, room)? })
    }

    /// Records near misses, as far as there is room.
    pub(crate) fn near_misses(&mut self, near_misses: NearMisses, run: usize) {
        let NearMisses { found: mut misses, left_out, is_cut } = near_misses;
        let mut room = self.share(32);
        let all = misses.len();
        let option = |text: Option<&str>| text.map_or(0, bytes_of);
        let mut fits = |miss: &NearMiss| {
            let texts = bytes_of(&miss.what) + bytes_of(&miss.why);
            room.take(4 * INDEX + texts + option(miss.function.as_deref()) + option(miss.binding.as_deref()))
        };
        let kept = misses.iter().take_while(|miss| fits(miss)).count();
        misses.truncate(kept);
        self.settle(32, room);
        let run = &mut self.recording.runs[run];
        run.has_more_near_misses = is_cut || left_out > 0 || kept < all;
        run.near_misses = misses;
    }

    /// Records the messages of a run, as far as there is room.
    pub(crate) fn messages(&mut self, mut messages: Vec<Diagnostic>, run: usize) {
        let mut room = self.share(32);
        let all = messages.len();
        let source = self.recording.source.as_ref().map_or(0, |source| bytes_of(source.name()));
        let mut fits = |d: &Diagnostic| {
            let texts = [&d.label, &d.function, &d.binding, &d.binding, &d.help];
            let texts: usize = texts.into_iter().flatten().map(|text| bytes_of(text)).sum();
            let related: usize = d.related.iter().map(|(_, text)| MESSAGE + source + bytes_of(text)).sum();
            room.take(MESSAGE + source + bytes_of(&d.message) + texts + related)
        };
        let kept = messages.iter().take(MAX_MESSAGES_OF_RUN).take_while(|message| fits(message)).count();
        messages.truncate(kept);
        self.settle(32, room);
        let run = &mut self.recording.runs[run];
        run.messages_left_out = all - kept;
        run.messages = messages;
    }
}

/// Returns the differences between the rows of a function before and after, if one of them exists.
fn differences(rows: &[Option<Rows<'_>>; 2]) -> Vec<SequenceChange> {
    let [Some(old), Some(new)] = rows else {
        let [old, new] = rows.each_ref().map(|rows| 0..rows.as_ref().map_or(0, |rows| rows.rows.len()));
        return vec![SequenceChange { old, new }];
    };
    let mut found = changes(old, new);
    // Rows of other variables may show the same.
    found.retain(|SequenceChange { old: before, new: after }| {
        let mut pairs = before.clone().zip(after.clone());
        before.len() != after.len() || !pairs.all(|(i, j)| old.is_same(old.rows[i], new, new.rows[j]))
    });
    found
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

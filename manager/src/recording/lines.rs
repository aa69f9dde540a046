//! The table of the lines of a recording.

use anfora_ir::{Context, TypeId};
use rustc_hash::FxHashMap;

use super::rows::{Row, Rows};
use super::{MAX_LINE_BYTES, RecordedLine};

/// The lines so far, and the numbers of lines, types and functions.
#[derive(Default)]
pub(super) struct Lines {
    numbers: FxHashMap<RecordedLine, u32>,
    lines: Vec<RecordedLine>,
    type_numbers: FxHashMap<String, u32>,
    types: Vec<String>,
    /// The types whose texts are known, in the tables as they are during one pass.
    known_types: FxHashMap<TypeId, u32>,
    bytes: usize,
}

impl Lines {
    /// Returns the number of the line of a row; `None` if there is no room for another line.
    pub(super) fn number(&mut self, cx: &Context, rows: &Rows<'_>, row: Row) -> Option<u32> {
        let text = rows.text(row);
        let ty = rows.ty(row).map(|ty| self.type_number(cx, ty));
        let line = RecordedLine { text, ty, depth: row.depth, binding: rows.binding(row).map(str::to_string) };
        if let Some(&number) = self.numbers.get(&line) {
            return Some(number);
        }
        if self.bytes + line.text.len() > MAX_LINE_BYTES {
            return None;
        }
        self.bytes += line.text.len();
        let number = self.lines.len() as u32;
        self.lines.push(line.clone());
        self.numbers.insert(line, number);
        Some(number)
    }

    fn type_number(&mut self, cx: &Context, ty: TypeId) -> u32 {
        if let Some(&number) = self.known_types.get(&ty) {
            return number;
        }
        let text = cx.type_text(ty);
        let number = self.type_numbers.get(&text).copied().unwrap_or_else(|| {
            let number = self.types.len() as u32;
            self.types.push(text.clone());
            self.type_numbers.insert(text, number);
            number
        });
        self.known_types.insert(ty, number);
        number
    }

    /// Forgets which ids types have. Tables may be compacted between two passes.
    pub(super) fn end_pass(&mut self) {
        self.known_types.clear();
    }

    pub(super) fn lines(&self) -> &[RecordedLine] {
        &self.lines
    }

    pub(super) fn types(&self) -> &[String] {
        &self.types
    }
}

//! The tables of a recording: each different line, name, type and text has a number.

use anfora_ir::{Context, TypeId, spelled_label};
use rustc_hash::FxHashMap;

use super::room::{INDEX, LINE, Room, bytes_of};
use super::rows::{Row, Rows};
use super::{RecordedLine, Recording};

/// The numbers of what is in the tables of a recording.
#[derive(Default)]
pub(super) struct Tables {
    lines: FxHashMap<RecordedLine, u32>,
    names: FxHashMap<String, u32>,
    labels: FxHashMap<String, u32>,
    types: FxHashMap<String, u32>,
    functions: FxHashMap<String, u32>,
    reasons: FxHashMap<String, u32>,
    /// The types whose texts are known, in the tables of the module as they are during one pass.
    known_types: FxHashMap<TypeId, u32>,
}

impl Tables {
    /// Returns the number of the line of a row; `None` if there is no room for another line. A line
    /// that is in the table takes no room.
    pub(super) fn line(
        &mut self,
        recording: &mut Recording,
        (cx, rows): (&Context, &Rows<'_>),
        row: Row,
        room: &mut Room,
    ) -> Option<u32> {
        let parts = rows.line(row);
        let ty = rows.ty(row).map(|ty| self.known_types.get(&ty).copied().ok_or_else(|| cx.type_text(ty)));
        let names = || parts.binding.iter().chain(&parts.parameters).chain(&parts.uses);
        // The room of the texts that are not in the tables.
        let new = |known: &FxHashMap<String, u32>, text: &String| match known.contains_key(text) {
            true => 0,
            false => bytes_of(text),
        };
        let mut bytes: usize = names().map(|name| new(&self.names, name)).sum();
        bytes += new(&self.labels, &parts.label);
        bytes += ty.as_ref().map_or(0, |ty| ty.as_ref().map_or_else(|text| new(&self.types, text), |_| 0));
        let is_known = bytes == 0;
        bytes += LINE + bytes_of(&parts.text) + INDEX * names().count();
        // Nothing of a line that does not fit goes into the tables.
        if !is_known && !room.fits(bytes) {
            room.take(bytes);
            return None;
        }
        let ty = ty.map(|known| known.unwrap_or_else(|text| intern(&mut self.types, &mut recording.types, &text)));
        if let (Some(id), Some(ty)) = (rows.ty(row), ty) {
            self.known_types.insert(id, ty);
        }
        let mut name = |text: &String| intern(&mut self.names, &mut recording.names, text);
        let line = RecordedLine {
            kind: parts.kind,
            binding: parts.binding.as_ref().map(&mut name),
            parameters: parts.parameters.iter().map(&mut name).collect(),
            uses: parts.uses.iter().map(&mut name).collect(),
            label: intern(&mut self.labels, &mut recording.labels, &parts.label),
            text: parts.text,
            is_abridged: parts.is_abridged,
            ty,
            depth: row.depth,
        };
        if let Some(&number) = self.lines.get(&line) {
            return Some(number);
        }
        if !room.take(bytes) {
            return None;
        }
        let number = recording.lines.len() as u32;
        recording.lines.push(line.clone());
        self.lines.insert(line, number);
        Some(number)
    }

    /// Forgets which ids types have. Tables may be compacted between two passes.
    pub(super) fn end_pass(&mut self) {
        self.known_types.clear();
    }

    /// Returns the number of a function, if there is room for its name.
    pub(super) fn function(&mut self, recording: &mut Recording, name: &str, room: &mut Room) -> Option<usize> {
        intern_in(&mut self.functions, &mut recording.functions, name, room)
    }

    /// Returns the number of the variable with this label, if there is room for it.
    pub(super) fn name(&mut self, recording: &mut Recording, name: &str, room: &mut Room) -> Option<usize> {
        intern_in(&mut self.names, &mut recording.names, &spelled_label(name), room)
    }

    /// Returns the number of the reason of a rewrite, if there is room for it.
    pub(super) fn reason(&mut self, recording: &mut Recording, why: &str, room: &mut Room) -> Option<usize> {
        intern_in(&mut self.reasons, &mut recording.reasons, why, room)
    }
}

fn intern(numbers: &mut FxHashMap<String, u32>, texts: &mut Vec<String>, text: &str) -> u32 {
    if let Some(&number) = numbers.get(text) {
        return number;
    }
    let number = texts.len() as u32;
    texts.push(text.to_string());
    numbers.insert(text.to_string(), number);
    number
}

fn intern_in(
    numbers: &mut FxHashMap<String, u32>,
    texts: &mut Vec<String>,
    text: &str,
    room: &mut Room,
) -> Option<usize> {
    let is_kept = numbers.contains_key(text) || room.take(bytes_of(text));
    is_kept.then(|| intern(numbers, texts, text) as usize)
}

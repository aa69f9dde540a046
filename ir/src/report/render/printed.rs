//! Finds the lines of a printed module that diagnostics without a place in a source text are about.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::core::module::Module;
use crate::report::diagnostic::Diagnostic;
use crate::text::extent::token_extent;
use crate::text::{PrintLiterals, PrintOptions, print_function, unescape};

/// A name is looked for, and a line shown, in this much of the line at most.
const LONGEST: usize = 1024;

/// Constants of more elements are left out of the lines.
const MANY: usize = 16;

/// A line of the printed text of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PrintedLine {
    /// Its beginning, as much as can be shown.
    pub(super) text: String,
    /// Its number in the text of the function, from 1.
    pub(super) number: usize,
    /// The name that it binds, or the name of the function.
    pub(super) span: Range<usize>,
    /// True if it is that of the function as a whole.
    pub(super) is_head: bool,
}

/// The lines for those diagnostics that name a function of the module and have no span; a
/// diagnostic's number finds its line. Each function is printed once, and only its lines that are
/// asked for are kept.
pub(super) fn printed_lines(diagnostics: &[Diagnostic], module: &Module) -> FxHashMap<usize, PrintedLine> {
    let mut by_function: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, d) in diagnostics.iter().enumerate() {
        if let (None, Some(function)) = (&d.span, &d.function) {
            by_function.entry(function).or_default().push(i);
        }
    }
    let mut found = FxHashMap::default();
    for (name, about) in by_function {
        let Some(key) = module.find(name) else { continue };
        let mut finder = LineFinder::default();
        for i in about {
            match &diagnostics[i].binding {
                Some(binding) => finder.bindings.entry(binding).or_default().push(i),
                None => finder.heads.push(i),
            }
        }
        let literals = PrintLiterals::Elided { more_than: MANY };
        let options = PrintOptions { literals, ..PrintOptions::default() };
        // The finder takes all text.
        let _ = print_function(module, key, &options, &mut finder);
        let LineFinder { found: lines, head, bindings, heads, .. } = finder;
        found.extend(lines);
        // A binding that the text does not name: the function is what can be shown.
        let rest = heads.into_iter().chain(bindings.into_values().flatten());
        if let Some(head) = head {
            found.extend(rest.map(|i| (i, head.clone())));
        }
    }
    found
}

#[derive(Default)]
struct LineFinder<'d> {
    /// Bindings that are looked for, each with the numbers of its diagnostics.
    bindings: FxHashMap<&'d str, Vec<usize>>,
    /// The diagnostics of the function as a whole.
    heads: Vec<usize>,
    line: String,
    number: usize,
    head: Option<PrintedLine>,
    found: Vec<(usize, PrintedLine)>,
}

impl fmt::Write for LineFinder<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.split_inclusive('\n') {
            let room = LONGEST.saturating_sub(self.line.len());
            let mut cut = piece.len().min(room);
            while !piece.is_char_boundary(cut) {
                cut -= 1;
            }
            self.line.push_str(&piece[..cut]);
            if piece.ends_with('\n') {
                self.number += 1;
                self.end_of_line();
                self.line.clear();
            }
        }
        Ok(())
    }
}

impl LineFinder<'_> {
    fn end_of_line(&mut self) {
        let line = self.line.trim_end_matches('\n');
        if self.head.is_none() && (line.starts_with("def ") || line.starts_with("declare ")) {
            let span = token_extent(line, line.find('@').unwrap_or(0));
            self.head = Some(PrintedLine { text: line.to_string(), number: self.number, span, is_head: true });
            return;
        }
        if self.bindings.is_empty() {
            return;
        }
        let statement = line.trim_start();
        let binding = statement.strip_prefix("let ").unwrap_or(statement);
        let span = token_extent(line, line.len() - binding.len());
        let Some(name) = line[span.clone()].strip_prefix('%') else { return };
        // A graph binding, not a tail.
        if binding.len() == statement.len() && !line[span.end..].starts_with(" = ") {
            return;
        }
        let quoted = name.starts_with('"').then(|| unescape(name).ok()).flatten();
        if let Some(about) = self.bindings.remove(quoted.as_deref().unwrap_or(name)) {
            let found = PrintedLine { text: line.to_string(), number: self.number, span, is_head: false };
            self.found.extend(about.into_iter().map(|i| (i, found.clone())));
        }
    }
}

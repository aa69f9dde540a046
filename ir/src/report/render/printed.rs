//! Finds the lines of a printed module for diagnostics without a place in a source text.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::core::module::Module;
use crate::report::diagnostic::Diagnostic;
use crate::text::extent::token_extent;
use crate::text::{PrintLiterals, PrintOptions, print_function, unescape};

/// The most bytes of a line that are searched for a name and shown.
const LONGEST: usize = 1024;

/// Constants of more elements are left out of the lines.
const MANY: usize = 16;

/// A line of the printed text of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PrintedLine {
    /// The start of the line, as far as it can be shown.
    pub(super) text: String,
    /// The number of the line in the text of the function, from 1.
    pub(super) number: usize,
    /// The name that the line binds, or the name of the function.
    pub(super) span: Range<usize>,
    /// True if the line stands for the function as a whole.
    pub(super) is_head: bool,
}

/// Returns the lines for the diagnostics that name a function of the module and have no span, by
/// the indices of the diagnostics. Each function is printed once, and only the lines that are
/// needed are kept.
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
        // The finder accepts all text.
        let _ = print_function(module, key, &options, &mut finder);
        let LineFinder { found: lines, head, bindings, heads, .. } = finder;
        found.extend(lines);
        // If the text does not name a binding, the function is shown.
        let rest = heads.into_iter().chain(bindings.into_values().flatten());
        if let Some(head) = head {
            found.extend(rest.map(|i| (i, head.clone())));
        }
    }
    found
}

#[derive(Default)]
struct LineFinder<'d> {
    /// The bindings to find, each with the indices of its diagnostics.
    bindings: FxHashMap<&'d str, Vec<usize>>,
    /// The diagnostics about the function as a whole.
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
        // A local at the start of a statement without `=` is a tail, not a graph binding.
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

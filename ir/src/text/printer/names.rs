//! The names of variables and shared nodes in the text.
//!
//! If several variables of a function have one name, the first that is printed gets it. Each other
//! gets the next `name$1`, `name$2` … that no variable of the function has. A variable without a
//! name and a shared node get the next number that is not the name of a variable. Labels are
//! assigned in the order of printing, so parsing the text and printing it again assigns the same
//! labels.

use crate::core::body::Body;
use crate::core::entity::{EntityId, ExprId, NameId};
use crate::core::expr::Expr;
use crate::tables::names::Names;
use crate::text::lexer::is_plain_name;

use super::output::Output;

const KIND: u32 = 3;
const UNNAMED_YET: u32 = 0;
/// The variable's own name, with the suffix in the upper bits if they are not 0.
const PLAIN: u32 = 1;
/// Like `PLAIN`, but in quotes.
const QUOTED: u32 = 2;
/// A number, in the upper bits.
const NUMBER: u32 = 3;

/// Marks a name that a variable was printed with.
const TAKEN: u32 = 1 << 31;

/// The labels of one body.
#[derive(Default)]
pub(super) struct Labels {
    by_expr: Vec<u32>,
    next_number: u32,
    scope: u32,
}

/// The names of the variables of the functions that are being printed. An entry is indexed by its
/// [`NameId`] and valid for the scope in its upper half. The lower half holds [`TAKEN`] and the
/// last suffix.
pub(super) struct NameUses {
    entries: Vec<u64>,
    scopes: u32,
    /// The overwritten entries of enclosing scopes. `open` has the length of the log at the start
    /// of each open inner scope.
    log: Vec<(u32, u64)>,
    open: Vec<usize>,
    text: String,
    /// True if variables are printed with the names that they have in the body.
    are_own: bool,
}

impl NameUses {
    pub(super) fn new(names: &Names) -> NameUses {
        NameUses {
            entries: vec![0; names.len()],
            scopes: 0,
            log: Vec::new(),
            open: Vec::new(),
            text: String::new(),
            are_own: false,
        }
    }

    /// Returns names that are printed as they are in the body. They need no labels.
    pub(super) fn own() -> NameUses {
        NameUses {
            entries: Vec::new(),
            scopes: 0,
            log: Vec::new(),
            open: Vec::new(),
            text: String::new(),
            are_own: true,
        }
    }

    /// Begins the labels of a body. Reuses the memory of `labels`, those of a finished body.
    pub(super) fn begin(&mut self, body: &Body, mut labels: Labels) -> Labels {
        self.scopes += 1;
        labels.by_expr.clear();
        labels.by_expr.resize(body.len(), UNNAMED_YET);
        labels.next_number = 0;
        labels.scope = self.scopes;
        labels
    }

    /// Begins a function within a function: overwritten entries are logged from here on.
    pub(super) fn enter(&mut self) {
        self.open.push(self.log.len());
    }

    /// Restores the entries of the enclosing function.
    pub(super) fn leave(&mut self) {
        let from = self.open.pop().unwrap_or(0);
        for (at, old) in self.log.drain(from..).rev() {
            self.entries[at as usize] = old;
        }
    }

    fn get(&self, labels: &Labels, name: NameId) -> Option<u32> {
        let entry = self.entries[name.index()];
        (entry >> 32 == u64::from(labels.scope)).then_some(entry as u32)
    }

    fn set(&mut self, labels: &Labels, name: NameId, state: u32) {
        let entry = &mut self.entries[name.index()];
        if !self.open.is_empty() {
            self.log.push((name.index() as u32, *entry));
        }
        *entry = u64::from(labels.scope) << 32 | u64::from(state);
    }

    /// Records that a variable of the body has this name.
    #[inline]
    pub(super) fn declare(&mut self, labels: &Labels, name: NameId) {
        if self.get(labels, name).is_none() {
            self.set(labels, name, 0);
        }
    }

    fn is_declared(&self, labels: &Labels, names: &Names) -> bool {
        names.find(&self.text).is_some_and(|n| self.get(labels, n).is_some())
    }

    /// Returns the next number that is not a variable's name.
    pub(super) fn number(&mut self, labels: &mut Labels, names: &Names) -> u32 {
        use std::fmt::Write;
        loop {
            let n = labels.next_number;
            labels.next_number += 1;
            self.text.clear();
            let _ = write!(self.text, "{n}");
            if !self.is_declared(labels, names) {
                return n;
            }
        }
    }

    fn label(&mut self, labels: &mut Labels, names: &Names, body: &Body, id: ExprId) -> u32 {
        use std::fmt::Write;
        let Expr::Var { name: Some(name), .. } = body.expr(id) else {
            return self.number(labels, names) << 2 | NUMBER;
        };
        let text = names.get(name);
        let kind = if is_plain_name(text) { PLAIN } else { QUOTED };
        let mut state = self.get(labels, name).unwrap_or(0);
        if state & TAKEN == 0 {
            self.set(labels, name, state | TAKEN);
            return kind;
        }
        loop {
            state += 1;
            self.text.clear();
            let _ = write!(self.text, "{text}${}", state & !TAKEN);
            if !self.is_declared(labels, names) {
                break;
            }
        }
        self.set(labels, name, state);
        (state & !TAKEN) << 2 | kind
    }

    /// Prints a variable, or a shared node by its number.
    #[inline]
    pub(super) fn print(&mut self, labels: &mut Labels, names: &Names, body: &Body, id: ExprId, out: &mut Output<'_>) {
        if self.are_own {
            return own_name(names, body, id, out);
        }
        let mut label = labels.by_expr[id.index()];
        if label == UNNAMED_YET {
            label = self.label(labels, names, body, id);
            labels.by_expr[id.index()] = label;
        }
        out.ascii(b'%');
        let suffix = label >> 2;
        if label & KIND == NUMBER {
            return out.number(u64::from(suffix));
        }
        let Expr::Var { name: Some(name), .. } = body.expr(id) else { return };
        let text = names.get(name);
        match (label & KIND, suffix) {
            (PLAIN, 0) => out.text(text),
            (PLAIN, _) => {
                out.text(text);
                out.ascii(b'$');
                out.number(u64::from(suffix));
            }
            (_, 0) => out.quoted(text),
            _ => out.quoted(&format!("{text}${suffix}")),
        }
    }
}

/// Prints a variable with the name that it has in the body. A variable without a name is printed as
/// the number of its node, after the generation of the body if that is not 0; `#` tells it from a
/// variable whose name is a number.
pub(super) fn own_name(names: &Names, body: &Body, id: ExprId, out: &mut Output<'_>) {
    out.ascii(b'%');
    if let Expr::Var { name: Some(name), .. } = body.expr(id) {
        return out.name(names.get(name));
    }
    out.ascii(b'#');
    if body.generation() > 0 {
        out.number(body.generation().into());
        out.ascii(b':');
    }
    out.number(id.index() as u64);
}

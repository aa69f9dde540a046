//! The values of names, by graph.

use anfora_ir::{ExprId, NameId};
use rustc_hash::FxHashMap;

/// A named value.
#[derive(Copy, Clone)]
pub(super) struct Value {
    /// A variable or a literal.
    pub(super) expr: ExprId,
    /// The value as the result of a graph: the variable, if there is one.
    pub(super) result: ExprId,
    /// The nesting level of the graph that defines it, counted from the outermost.
    pub(super) graph: u32,
    /// True if it was used.
    pub(super) is_used: bool,
}

/// The values in scope: those of the current graph, and those of the graphs around it that it does
/// not redefine.
#[derive(Default)]
pub(super) struct Scope {
    values: FxHashMap<NameId, Value>,
    /// The values that names had before the current graph, or a graph around it other than the
    /// outermost, redefined them.
    shadowed: Vec<(NameId, Option<Value>)>,
    /// For each open graph, the index in `shadowed` at which it begins.
    graphs: Vec<usize>,
}

impl Scope {
    /// Begins a graph inside the current one.
    pub(super) fn open(&mut self) {
        self.graphs.push(self.shadowed.len());
    }

    /// Ends the current graph and restores the outer values of its names.
    pub(super) fn close(&mut self) {
        let start = self.graphs.pop().expect("graphs are closed as often as they are opened");
        for (name, before) in self.shadowed.drain(start..).rev() {
            match before {
                Some(value) => self.values.insert(name, value),
                None => self.values.remove(&name),
            };
        }
    }

    fn depth(&self) -> u32 {
        u32::try_from(self.graphs.len()).expect("graphs nest less deep than messages")
    }

    /// Defines a name in the current graph. Returns true if it was not defined there yet.
    pub(super) fn define(&mut self, name: NameId, expr: ExprId) -> bool {
        let graph = self.depth();
        let before = self.values.insert(name, Value { expr, result: expr, graph, is_used: false });
        if before.is_some_and(|v| v.graph == graph) {
            return false;
        }
        // The outermost graph redefines no name, and its names are not restored.
        if graph > 1 {
            self.shadowed.push((name, before));
        }
        true
    }

    /// Makes later operands of a name refer to another, equal value.
    pub(super) fn replace_operand(&mut self, name: NameId, expr: ExprId) {
        if let Some(value) = self.values.get_mut(&name) {
            value.expr = expr;
        }
    }

    /// Returns the value of a name and marks it as used.
    pub(super) fn use_value(&mut self, name: NameId) -> Option<Value> {
        let value = self.values.get_mut(&name)?;
        value.is_used = true;
        Some(*value)
    }

    /// Returns true if the current graph defines a value.
    pub(super) fn is_innermost(&self, value: Value) -> bool {
        value.graph == self.depth()
    }

    /// Returns the value of a name.
    pub(super) fn get(&self, name: NameId) -> Option<Value> {
        self.values.get(&name).copied()
    }
}

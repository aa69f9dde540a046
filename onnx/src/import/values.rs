//! The values that names mean, graph by graph.

use anfora_ir::{ExprId, NameId};
use rustc_hash::FxHashMap;

/// A named value.
#[derive(Copy, Clone)]
pub(super) struct Value {
    /// A variable, or a literal.
    pub(super) expr: ExprId,
    /// The same as the result of a graph: the variable, where there is one.
    pub(super) result: ExprId,
    /// Number of the graph that defines it, from the outermost.
    pub(super) graph: u32,
    /// True if anything has used it.
    pub(super) is_used: bool,
}

/// The values in scope: those of the graph in hand, and those of the graphs around it that it does
/// not define anew.
#[derive(Default)]
pub(super) struct Scope {
    values: FxHashMap<NameId, Value>,
    /// The values of names before the graph in hand, and those around it but the outermost, defined them.
    shadowed: Vec<(NameId, Option<Value>)>,
    /// For each open graph, the place in `shadowed` where it begins.
    graphs: Vec<usize>,
}

impl Scope {
    /// Begins a graph inside the one in hand.
    pub(super) fn open(&mut self) {
        self.graphs.push(self.shadowed.len());
    }

    /// Ends the graph in hand: names mean again what they meant outside.
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

    /// Defines a name in the graph in hand. Returns true if it was free there.
    pub(super) fn define(&mut self, name: NameId, expr: ExprId) -> bool {
        let graph = self.depth();
        let before = self.values.insert(name, Value { expr, result: expr, graph, is_used: false });
        if before.is_some_and(|v| v.graph == graph) {
            return false;
        }
        // Before the outermost graph names meant nothing, and nothing asks for them after it.
        if graph > 1 {
            self.shadowed.push((name, before));
        }
        true
    }

    /// Lets operands that name a value of the graph in hand be another, equal one from now on.
    pub(super) fn replace_operand(&mut self, name: NameId, expr: ExprId) {
        if let Some(value) = self.values.get_mut(&name) {
            value.expr = expr;
        }
    }

    /// The value of a name, which counts as used from now on.
    pub(super) fn use_value(&mut self, name: NameId) -> Option<Value> {
        let value = self.values.get_mut(&name)?;
        value.is_used = true;
        Some(*value)
    }

    /// Returns true if the graph in hand defines a value.
    pub(super) fn is_innermost(&self, value: Value) -> bool {
        value.graph == self.depth()
    }

    /// The value of a name.
    pub(super) fn get(&self, name: NameId) -> Option<Value> {
        self.values.get(&name).copied()
    }
}

//! The values of names, by graph.

use anfora_ir::{ExprId, LiteralId, NameId};

use crate::id_hash::IdMap;

/// A named value.
#[derive(Copy, Clone)]
pub(super) struct NamedValue {
    /// A variable or a literal.
    pub(super) expr: ExprId,
    /// The value as the result of a graph: the variable, if there is one.
    pub(super) result: ExprId,
    /// The name of the value that this one is an alias of; otherwise its own name.
    pub(super) origin: NameId,
    /// The nesting level of the graph that defines it, counted from the outermost.
    pub(super) graph: u32,
    /// True if it was used.
    pub(super) is_used: bool,
}

/// The values in scope: those of the current graph, and those of the graphs around it that it does
/// not redefine.
#[derive(Default)]
pub(super) struct Scope {
    values: IdMap<NameId, NamedValue>,
    /// The values that names had before the current graph, or a graph around it other than the
    /// outermost, redefined them.
    shadowed: Vec<(NameId, Option<NamedValue>)>,
    /// For each open graph, the index in `shadowed` at which it begins.
    graphs: Vec<usize>,
    /// For each constant, the name under which it was first used, and the nesting level of the
    /// graph that used it. Export writes the constant under this name.
    constants: IdMap<LiteralId, (NameId, u32)>,
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
        let before = self.values.insert(name, NamedValue { expr, result: expr, origin: name, graph, is_used: false });
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

    /// Records that a name was defined as an alias of another.
    pub(super) fn alias(&mut self, name: NameId, of: NameId) {
        if let Some(origin) = self.get(of).map(|v| v.origin)
            && let Some(value) = self.values.get_mut(&name)
        {
            value.origin = origin;
        }
    }

    /// Returns true if the current graph is in no other graph.
    pub(super) fn is_outermost(&self) -> bool {
        self.graphs.len() == 1
    }

    /// Returns the value of a name and marks it as used.
    pub(super) fn use_value(&mut self, name: NameId) -> Option<NamedValue> {
        let value = self.values.get_mut(&name)?;
        value.is_used = true;
        Some(*value)
    }

    /// Notes that the current graph uses a constant under a name. If the constant `may_repeat`, the
    /// graph does not share it with the graphs inside, which write it themselves.
    pub(super) fn use_constant(&mut self, constant: LiteralId, name: NameId, may_repeat: bool) {
        let depth = self.depth();
        let first = self.constants.entry(constant).or_insert((name, depth));
        if may_repeat && first.1 > depth {
            *first = (name, depth);
        }
    }

    /// Returns true if a constant was first used under this name.
    pub(super) fn is_first_name(&self, constant: LiteralId, name: NameId) -> bool {
        self.constants.get(&constant).is_some_and(|first| first.0 == name)
    }

    /// Returns true if the current graph defines a value.
    pub(super) fn is_innermost(&self, value: NamedValue) -> bool {
        value.graph == self.depth()
    }

    /// Returns the value of a name.
    pub(super) fn get(&self, name: NameId) -> Option<NamedValue> {
        self.values.get(&name).copied()
    }
}

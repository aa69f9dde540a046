//! The number of nodes of a model by operator.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use crate::domains::is_standard;
use crate::proto::NodeProto;

/// The most characters of a name that a table shows.
const MOST_SHOWN: usize = 60;

/// The number of nodes of a model, in total and by operator, including nodes of subgraphs and of
/// the model's own functions.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_onnx::{ExportOptions, export, registry};
///
/// let text = "def @main(%x: Tensor[(n,), float32]) {
///   let %y = exp(%x);
///   let %z = exp(%y);
///   add(%y, %z)
/// }";
/// let module = parse_module(Source::new("example", text), registry())?;
/// let nodes = export(&module, &ExportOptions::default())?.nodes;
/// assert_eq!((nodes.total(), nodes.of("Exp")), (3, 2));
/// assert_eq!(nodes.by_operator(), [("Add", 1), ("Exp", 2)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct NodeCounts {
    total: usize,
    by_operator: FxHashMap<String, usize>,
}

impl NodeCounts {
    /// Returns the number of all nodes.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the number of nodes of an operator, such as `Relu` or `com.microsoft.Gelu`.
    ///
    /// Cost: linear in the text.
    pub fn of(&self, operator: &str) -> usize {
        self.by_operator.get(operator).copied().unwrap_or(0)
    }

    /// Returns the operators with their numbers of nodes, in the order of their names. The name of
    /// an operator of another domain than the standard one begins with the domain and a dot.
    ///
    /// Cost: the operators are sorted.
    pub fn by_operator(&self) -> Vec<(&str, usize)> {
        let mut all: Vec<(&str, usize)> = self.by_operator.iter().map(|(name, &n)| (name.as_str(), n)).collect();
        all.sort_unstable();
        all
    }

    /// Returns a table of the operators of two models, such as one before and after passes: a line
    /// for each operator with both numbers, in the order of the names, and a line with the totals.
    /// A `*` follows the numbers that differ. Control characters of a name are escaped, and the end
    /// of a long name is left out.
    ///
    /// Cost: the operators are sorted.
    pub fn table(&self, after: &NodeCounts) -> String {
        let mut names: Vec<&str> =
            self.by_operator.keys().chain(after.by_operator.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let shown: Vec<String> = names.iter().map(|name| shown(name)).collect();
        let width = shown.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("operator".len());
        let mut text = format!("{:width$}  {:>8}  {:>8}\n", "operator", "before", "after");
        let mut line = |name: &str, before: usize, after: usize| {
            let mark = if before == after { "" } else { " *" };
            let written = writeln!(text, "{name:width$}  {before:>8}  {after:>8}{mark}");
            written.expect("text can be written to a string");
        };
        for (name, shown) in names.into_iter().zip(&shown) {
            line(shown, self.of(name), after.of(name));
        }
        line("all nodes", self.total, after.total);
        text
    }

    /// Counts a node.
    pub(crate) fn add(&mut self, node: &NodeProto) {
        let (domain, op) = (node.domain(), node.op_type());
        self.total += 1;
        if !is_standard(domain) {
            *self.by_operator.entry(format!("{domain}.{op}")).or_default() += 1;
        } else if let Some(count) = self.by_operator.get_mut(op) {
            *count += 1;
        } else {
            self.by_operator.insert(op.to_owned(), 1);
        }
    }

    /// Adds the counts of another part of the model.
    pub(crate) fn append(&mut self, other: &NodeCounts) {
        self.total += other.total;
        for (name, count) in &other.by_operator {
            *self.by_operator.entry(name.clone()).or_default() += count;
        }
    }
}

/// Returns the name of an operator as a table shows it.
fn shown(name: &str) -> String {
    let mut chars = name.chars().flat_map(char::escape_debug);
    let mut text: String = chars.by_ref().take(MOST_SHOWN).collect();
    if chars.next().is_some() {
        text.pop();
        text.push('…');
    }
    text
}

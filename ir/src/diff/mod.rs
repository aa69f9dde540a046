//! All differences of two modules, by function and binding.
//!
//! [`diff`] compares two modules as [`alpha_equal`](crate::alpha_equal) does, and goes on after a
//! difference. It has no differences exactly for modules that are alpha-equal. There are three
//! phases:
//!
//! 1. Functions are matched: by name; private functions by content first; public functions without
//!    a partner of their name by content, so a renamed function is one difference (`functions`).
//! 2. The items of two functions are matched (`items`, `tokens`, `matching`): by the names of
//!    variables and then by content, and by content alone. The reading with fewer differences
//!    counts, so variables that were all renamed are no differences.
//! 3. Matched items are compared part by part: operator, operands, attributes, types (`bodies`).
//!    Operands are equal if they are matched themselves. Functions in attributes that differ are
//!    compared in the same way.
//!
//! Symbolic dimensions of two functions correspond by name or in order, whichever reading has fewer
//! differences.
//!
//! Every phase is linear in the size of the modules, up to the logarithmic factor of
//! [`sequence_changes`].
//!
//! [`unified_diff`] compares two texts line by line.

mod sequence;
mod items;
mod tokens;
mod matching;
mod describe;
mod constants;
mod bodies;
mod functions;
mod render;
mod unified;

pub use sequence::{SequenceChange, sequence_changes};
pub use unified::{unified_diff, write_unified_diff};

use crate::alpha::{AlphaOptions, first_difference_with};
use crate::core::module::Module;

/// The differences of two modules; empty if the modules are alpha-equal.
///
/// [`Display`](std::fmt::Display) writes one line for each:
///
/// ```
/// use anfora_ir::{Source, diff, parse_module};
///
/// let parsed = |pads: &str| {
///     let text = format!(
///         "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {{
///            let %conv1 = nn.conv2d(%x, %w, padding={pads});
///            nn.relu(%conv1)
///          }}"
///     );
///     parse_module(Source::new("text", text), anfora_ops::standard()).unwrap()
/// };
/// let differences = diff(&parsed("[0, 0, 0, 0]"), &parsed("[1, 1, 1, 1]"));
/// assert_eq!(
///     differences.to_string(),
///     "@main %conv1: attribute padding [0, 0, 0, 0] -> [1, 1, 1, 1]\n"
/// );
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Differences {
    /// The changes of the modules themselves.
    pub module: Vec<PartChange>,
    /// The functions that differ, in the order of the left module. Functions that only the right
    /// module has come last.
    pub functions: Vec<FunctionDifference>,
}

/// The kind of a difference.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DifferenceKind {
    /// Only the right module has it.
    Added,
    /// Only the left module has it.
    Removed,
    /// Both modules have it, with changed parts.
    Changed,
}

/// A function that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionDifference {
    /// The kind of the difference.
    pub kind: DifferenceKind,
    /// The name on the left, without `@`.
    pub left: Option<String>,
    /// The name on the right, without `@`.
    pub right: Option<String>,
    /// The number of bindings of a function that was added or removed.
    pub bindings: usize,
    /// The changed parts of the signature. A function that was renamed has a changed name.
    pub changes: Vec<PartChange>,
    /// The parameters, bindings, results and expressions that differ, in program order. Those of
    /// functions in attributes come last, with the attribute as their place.
    pub items: Vec<ItemDifference>,
}

/// The kind of a part of a function.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ItemKind {
    /// A parameter of the function or of a `fn`.
    Parameter,
    /// A binding.
    Binding,
    /// An expression that is an operand and is not bound to a variable.
    Expression,
    /// The result of the function or of a block.
    Result,
}

/// A parameter, binding, result or expression that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct ItemDifference {
    /// The kind of the difference.
    pub kind: DifferenceKind,
    /// The kind of the item.
    pub item: ItemKind,
    /// The name of its variable on the left, without `%`, if it has one.
    pub left: Option<String>,
    /// The name of its variable on the right.
    pub right: Option<String>,
    /// The place of the item, if it is a result or expression, or is in a block of another binding:
    /// such as `then of %i`. In a function in an attribute, the place says so: `body of %loop`.
    pub place: Option<String>,
    /// The block on the right of an item that has moved to another block.
    pub right_place: Option<String>,
    /// The text of an item that was added or removed.
    pub text: Option<String>,
    /// The number of bindings in the blocks of an item that was added or removed.
    pub nested: usize,
    /// The changed parts.
    pub changes: Vec<PartChange>,
}

/// A part that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartChange {
    /// The part.
    pub part: ChangedPart,
    /// The text of the part on the left; `None` if only the right side has it.
    pub left: Option<String>,
    /// The text of the part on the right; `None` if only the left side has it.
    pub right: Option<String>,
    /// More about the difference: how far two constants are apart, or where two lists differ first.
    pub note: Option<String>,
}

/// The part of an item, function or module that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangedPart {
    /// The name of a function.
    Name,
    /// Public or private.
    Visibility,
    /// Defined or declared.
    Definition,
    /// The kind of a value: a call, a tuple, an `if` and so on.
    Value,
    /// The operator of a call.
    Operator,
    /// The function that is called.
    Callee,
    /// The operand, argument or field with this number, counted from 0.
    Operand(usize),
    /// The condition of an `if`.
    Condition,
    /// The number of a field that is read.
    FieldIndex,
    /// The attribute with this name.
    Attribute(String),
    /// The metadata in `#[…]` with this name.
    Metadata(String),
    /// The type of a parameter, or of a call whose type is not inferred.
    Type,
    /// The stated type of the result of a function.
    ResultType,
    /// The position among the bindings of the block.
    Position,
    /// In a dataflow region or not, at its beginning, or visible outside of it.
    Dataflow,
    /// The structure as a whole.
    Structure,
}

impl Differences {
    /// Returns true if there are no differences.
    pub fn is_empty(&self) -> bool {
        self.module.is_empty() && self.functions.is_empty()
    }

    /// Returns the number of differences. A parameter, binding, result or expression counts once;
    /// so does the signature of a function, and a function that was added or removed.
    pub fn len(&self) -> usize {
        let of_function = |f: &FunctionDifference| match f.kind {
            DifferenceKind::Added | DifferenceKind::Removed => 1,
            DifferenceKind::Changed => usize::from(!f.changes.is_empty()) + f.items.len(),
        };
        usize::from(!self.module.is_empty()) + self.functions.iter().map(of_function).sum::<usize>()
    }
}

/// Returns all differences of two modules; none if and only if they are alpha-equal
/// ([`alpha_equal`](crate::alpha_equal)). Metadata in `#[…]` does not count. Near-linear in the
/// size of the modules.
pub fn diff(left: &Module, right: &Module) -> Differences {
    diff_with(left, right, AlphaOptions::default())
}

/// Returns all differences of two modules under the given options. Near-linear in the size of the
/// modules.
pub fn diff_with(left: &Module, right: &Module, options: AlphaOptions) -> Differences {
    let Some(first) = first_difference_with(left, right, options) else { return Differences::default() };
    let mut differences = functions::differences(left, right, options.meta);
    if differences.is_empty() {
        // A difference of the whole, such as symbols that are equal on one side only.
        let part = ChangedPart::Structure;
        differences.module.push(PartChange { part, left: None, right: None, note: Some(first.what) });
    }
    differences
}

//! Rules in text: converts sketches of expressions to patterns.

use std::ops::Range;

use anfora_ir::{Diagnostic, Diagnostics, Sketch, SketchNode, SketchReader, SketchValue, did_you_mean, parse_sketch};
use rustc_hash::FxHashSet;

use crate::pattern::build::{Children, Condition, LiteralCondition, Node, OpNames, Order, Pattern, Wanted};
use crate::pattern::rule_text::ComputedValues;

/// A pattern, with the range of bytes in the text for each of its nodes.
pub(crate) struct Placed {
    pub(crate) pattern: Pattern,
    pub(crate) places: Vec<Range<usize>>,
}

/// The hole that matches any expression and binds nothing.
const ANY: &str = "_";

impl Pattern {
    /// Returns the pattern that a text describes, which is written like the left side of a rule:
    /// see [`rules!`](crate::rules).
    ///
    /// ```
    /// use anfora_visit::pattern::Pattern;
    /// let swish = Pattern::parse("multiply(%x, sigmoid(%x))")?;
    /// # Ok::<(), anfora_ir::Diagnostics>(())
    /// ```
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If the text is not an expression of a pattern. The places of the mistakes are in the text.
    pub fn parse(text: &str) -> Result<Pattern, Diagnostics> {
        parse_sketch(text).map(|sketch| pattern_of(sketch).pattern)
    }
}

/// Reads both sides of a rule. A mistake has its place in the text of its side; its flag is true
/// for the right side.
pub(crate) fn parse_sides(
    reader: &mut SketchReader,
    left: &str,
    right: &str,
    computed: &ComputedValues,
) -> Result<(Placed, Placed), Vec<(bool, Diagnostic)>> {
    let of_side = |is_right: bool| move |errors: Diagnostics| errors.into_iter().map(move |d| (is_right, d));
    let (left, right) = match (reader.read(left), reader.read(right)) {
        (Ok(left), Ok(right)) => (left, right),
        (left, right) => {
            let left = left.err().into_iter().flat_map(of_side(false));
            return Err(left.chain(right.err().into_iter().flat_map(of_side(true))).collect());
        }
    };
    let mut unbound = unbound_holes(&left, &right, computed);
    unbound.extend(misplaced_values(&left, &right, computed));
    if unbound.is_empty() {
        return Ok((pattern_of(left), pattern_of(right)));
    }
    Err(unbound.into_iter().map(|mistake| (true, mistake)).collect())
}

/// Finds the computed values that the left side binds, or that the right side does not use.
fn misplaced_values(left: &Sketch, right: &Sketch, computed: &ComputedValues) -> Vec<Diagnostic> {
    if computed.is_empty() {
        return Vec::new();
    }
    let holes = |sketch| {
        let mut names: FxHashSet<&str> = FxHashSet::default();
        for_each_hole(sketch, |name, _| names.extend([name]));
        names
    };
    let (left, right) = (holes(left), holes(right));
    let message = |name: &str| match (left.contains(name), right.contains(name)) {
        (true, _) => Some(format!("`%{name}` is computed, and the left side binds it as well")),
        (_, false) => Some(format!("`%{name}` is computed, and does not occur on the right")),
        _ => None,
    };
    computed.iter().filter_map(|(name, _)| message(name)).map(|m| Diagnostic::error(m).at(0..1)).collect()
}

/// Finds the holes on the right that are neither on the left nor computed.
fn unbound_holes(left: &Sketch, right: &Sketch, computed: &ComputedValues) -> Vec<Diagnostic> {
    /// The number of names that suggestions are taken from. It is limited since each mistake is
    /// compared with all of them.
    const MOST_NAMES: usize = 32;
    let mut names: Vec<&str> = Vec::new();
    let mut bound: FxHashSet<&str> = FxHashSet::default();
    for_each_hole(left, |name, _| {
        if name != ANY && bound.insert(name) && names.len() < MOST_NAMES {
            names.push(name);
        }
    });
    let mut mistakes = Vec::new();
    for_each_hole(right, |name, place| {
        if bound.contains(name) || computed.iter().any(|(known, _)| **known == *name) {
            return;
        }
        let mistake = Diagnostic::error(format!("`%{name}` occurs on the right, but nothing on the left binds it"));
        let help = match did_you_mean(name, names.iter().copied()) {
            _ if name == ANY => "`%_` matches anything, and binds nothing: give it a name".to_string(),
            Some(near) => format!("did you mean `%{near}`?"),
            None if names.is_empty() => "the left side names no hole".to_string(),
            None => format!("the left side has `%{}`", names.join("`, `%")),
        };
        mistakes.push(mistake.at(place).with_help(help));
    });
    mistakes
}

fn for_each_hole<'s>(sketch: &'s Sketch, mut f: impl FnMut(&'s str, Range<usize>)) {
    for (node, place) in sketch.nodes() {
        match node {
            SketchNode::Hole(name) => f(name, place),
            SketchNode::Op { attrs, .. } => {
                for attr in sketch.attrs(attrs) {
                    if let SketchValue::Hole(name) = &attr.value {
                        f(name, attr.place.clone());
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the pattern that a sketch describes. Parts of a sketch come first, so one loop is
/// enough.
fn pattern_of(sketch: Sketch) -> Placed {
    let count = sketch.nodes().len();
    // Most nodes of a sketch become one node, or a node and the capture around it.
    let mut pattern = Pattern { nodes: Vec::with_capacity(2 * count), children: Vec::with_capacity(count), root: 0 };
    let mut places: Vec<Range<usize>> = Vec::with_capacity(2 * count);
    // The pattern's node for each node of the sketch.
    let mut tops: Vec<u32> = Vec::with_capacity(count);
    for (node, place) in sketch.nodes() {
        let Pattern { nodes, children, .. } = &mut pattern;
        let mut list = |parts| {
            let start = children.len() as u32;
            children.extend(sketch.parts(parts).iter().map(|&part| tops[part as usize]));
            Children { start, len: children.len() as u32 - start }
        };
        let made = match node {
            SketchNode::Hole(_) => Node::Any,
            SketchNode::Whole(value) => Node::Literal(LiteralCondition::Whole(*value)),
            SketchNode::Scalar(literal) => Node::Literal(LiteralCondition::Splat(literal.clone())),
            SketchNode::Tensor(literal) => Node::Literal(LiteralCondition::Is(literal.clone())),
            SketchNode::Global(name) => Node::Global(name.as_str().into()),
            SketchNode::Op { name, operands, .. } => {
                let names = OpNames::One(name.as_str().into());
                Node::Op { names, children: list(operands), order: Order::Row }
            }
            SketchNode::Call(operands) => Node::Call(list(operands)),
            SketchNode::Tuple(fields) => Node::Tuple(list(fields)),
            SketchNode::Proj { tuple, index } => Node::Proj { tuple: tops[*tuple as usize], index: Some(*index) },
            _ => Node::NoneValue,
        };
        let mut push = |node, place: Range<usize>| {
            nodes.push(node);
            places.push(place);
            nodes.len() as u32 - 1
        };
        let mut top = push(made, place.clone());
        match node {
            SketchNode::Hole(name) if name != ANY => {
                top = push(Node::Capture { name: name.as_str().into(), inner: top }, place);
            }
            SketchNode::Op { attrs, .. } => {
                for attr in sketch.attrs(attrs) {
                    let value = match &attr.value {
                        SketchValue::Is(value) => Wanted::Is(value.clone()),
                        SketchValue::Hole(name) if name != ANY => Wanted::Named(name.as_str().into()),
                        SketchValue::Hole(_) => continue,
                        _ => Wanted::Absent,
                    };
                    let condition = Condition::Attr { name: attr.name.as_str().into(), value };
                    top = push(Node::Filter { condition, inner: top }, attr.place.clone());
                }
            }
            _ => {}
        }
        tops.push(top);
        pattern.root = top;
    }
    Placed { pattern, places }
}

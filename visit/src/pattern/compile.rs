//! Compiling of patterns: names are resolved against the operators, and the pattern is checked.
//!
//! Both sides of a rule stay the flat lists that they are written as. The meanings of the names in
//! them are a second list, indexed like the first. Parts come before the nodes that use them.

use std::sync::Arc;

use anfora_ir::{Arity, Context, GlobalId, OpId, did_you_mean};

use crate::pattern::build::{Children, Condition, Node, OpNames, Order, Pattern, Wanted};
use crate::pattern::capture_names::{CaptureKind, CaptureNames};
use crate::pattern::dispatch::Roots;
use crate::pattern::error::{PatternError, Refused, Side, arity_text};

/// A pattern that is ready for matching.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) resolved: Resolved,
    pub(crate) names: CaptureNames,
    pub(crate) roots: Roots,
    /// The number of nested values that the pattern looks at: a change can enable a match this many
    /// values away.
    pub(crate) depth: u32,
    pub(crate) asks_for_uses: bool,
}

/// One side of a rule, with the meaning of the names in it.
#[derive(Clone)]
pub(crate) struct Resolved {
    pub(crate) pattern: Pattern,
    /// By node.
    pub(crate) meanings: Vec<NodeMeaning>,
    /// The sets of operators, each as bits and as a list.
    sets: Vec<(Vec<u64>, Vec<OpId>)>,
    /// True if all operators are rows of the registry and no global function is named. Then the
    /// result is valid for all modules with this registry.
    pub(crate) is_portable: bool,
}

/// The meaning of the names in a node.
#[derive(Copy, Clone, Debug)]
pub(crate) enum NodeMeaning {
    /// The node has no names, or it names a global that the module does not have.
    Nothing,
    /// Operands, arguments or fields.
    List {
        ops: Ops,
        operands: Operands,
        swap: bool,
    },
    /// The number of a capture.
    Slot(u32),
    Global(GlobalId),
}

#[derive(Copy, Clone, Debug)]
pub(crate) enum Ops {
    /// No operator is called.
    None,
    One(OpId),
    /// The operators in the set with this number.
    Set(u32),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    None,
    Ignored,
    Captured(u32),
}

/// Operands, arguments or fields: patterns for the first ones, and whether there may be more.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Operands {
    pub(crate) first: Children,
    pub(crate) rest: Rest,
}

impl CaptureNames {
    /// Numbers the captures in the order of a walk from the root.
    fn of(pattern: &Pattern) -> CaptureNames {
        let mut names = CaptureNames::default();
        for at in pattern.reached(pattern.root, |_| true) {
            let capture = match &pattern.nodes[at as usize] {
                Node::Capture { name, .. } => Some((name, pattern.kind_of_capture(at))),
                Node::Filter { condition: Condition::Attr { value: Wanted::Named(name), .. }, .. } => {
                    Some((name, CaptureKind::Attribute))
                }
                _ => None,
            };
            if let Some((name, kind)) = capture
                && !names.has(name)
            {
                names.add(name, kind);
            }
        }
        names
    }

    /// Adds the names of computed values. In a match, they capture nothing.
    pub(crate) fn add_computed<'a>(&mut self, side: &Pattern, computed: impl Iterator<Item = &'a Arc<str>>) {
        let is_operand =
            |name: &str| side.nodes.iter().any(|n| matches!(n, Node::Capture { name: other, .. } if **other == *name));
        for name in computed {
            let kind = if is_operand(name) { CaptureKind::Expression } else { CaptureKind::Attribute };
            self.add(name, kind);
        }
    }
}

impl Compiled {
    /// Compiles a pattern. An error names the node at fault.
    pub(crate) fn new(cx: &mut Context, pattern: &Pattern) -> Result<Compiled, Refused> {
        let root = pattern.through_links(pattern.root);
        if pattern.is_rest(root) {
            return Err(PatternError::Rest.at(root));
        }
        let mut names = CaptureNames::of(pattern);
        let nodes = 0..pattern.nodes.len() as u32;
        let resolved = Resolved::new(cx, pattern, Side::Left, nodes.clone(), &mut names)?;
        let (roots, asks_for_none) = resolved.find_roots();
        if roots == Roots::default() {
            let error = if asks_for_none { PatternError::NoOperator } else { PatternError::AtomRoot };
            return Err(error.at(root));
        }
        // The longest path from the root, counted in calls, tuples and projections.
        let mut depths: Vec<u32> = Vec::with_capacity(nodes.len());
        for at in nodes {
            let looks_at_value = matches!(
                pattern.nodes[at as usize],
                Node::Op { .. } | Node::Call(_) | Node::Tuple(_) | Node::Proj { .. }
            );
            let inner = pattern.parts(at).map(|part| depths[part as usize]).max().unwrap_or(0);
            depths.push(inner + u32::from(looks_at_value));
        }
        let asks = |node: &Node| matches!(node, Node::Filter { condition: Condition::UsedOnce, .. });
        Ok(Compiled {
            depth: depths[root as usize],
            asks_for_uses: pattern.nodes.iter().any(asks),
            resolved,
            names,
            roots,
        })
    }
}

impl Resolved {
    /// Finds the meanings of `nodes` of one side.
    pub(crate) fn new(
        cx: &mut Context,
        pattern: &Pattern,
        side: Side,
        nodes: impl Iterator<Item = u32>,
        names: &mut CaptureNames,
    ) -> Result<Resolved, Refused> {
        let mut resolved = Resolved {
            pattern: pattern.clone(),
            meanings: vec![NodeMeaning::Nothing; pattern.nodes.len()],
            sets: Vec::new(),
            is_portable: true,
        };
        for at in nodes {
            let meaning = resolved.meaning(cx, pattern, side, at, names).map_err(|error| error.at(at))?;
            resolved.meanings[at as usize] = meaning;
        }
        Ok(resolved)
    }

    /// Returns true if an operator is one that a node accepts.
    pub(crate) fn contains(&self, ops: Ops, op: OpId) -> bool {
        match ops {
            Ops::None => false,
            Ops::One(one) => one == op,
            Ops::Set(set) => {
                let word = self.sets[set as usize].0.get(op.index() / 64);
                word.is_some_and(|word| word >> (op.index() % 64) & 1 == 1)
            }
        }
    }

    /// Returns the operators of a set.
    pub(crate) fn ops_of(&self, set: u32) -> &[OpId] {
        &self.sets[set as usize].1
    }

    fn meaning(
        &mut self,
        cx: &mut Context,
        pattern: &Pattern,
        side: Side,
        at: u32,
        names: &mut CaptureNames,
    ) -> Result<NodeMeaning, PatternError> {
        let inner_is_rest = |inner: u32| pattern.is_rest(pattern.through_links(inner));
        match &pattern.nodes[at as usize] {
            Node::Any | Node::Rest | Node::Link(_) | Node::Literal(_) | Node::NoneValue => Ok(NodeMeaning::Nothing),
            Node::Hole(_) => Err(PatternError::Hole),
            Node::Global(name) => {
                self.is_portable = false;
                Ok(cx.find_global(name).map_or(NodeMeaning::Nothing, NodeMeaning::Global))
            }
            Node::Op { names: op_names, children, order } => {
                let operands = operands_of(pattern, side, *children, names)?;
                let (ops, all_commutative) = self.resolve(cx, op_names, operands)?;
                let two = operands.first.len == 2 && operands.rest == Rest::None;
                let swap = match order {
                    Order::AsWritten => false,
                    Order::Row => two && all_commutative,
                    Order::Either if two => true,
                    // A replacement keeps the order in which it is written.
                    Order::Either if side == Side::Right => false,
                    Order::Either => return Err(PatternError::NotTwoOperands(operands.first.len as usize)),
                };
                Ok(NodeMeaning::List { ops, operands, swap })
            }
            Node::Call(children) | Node::Tuple(children) => {
                let operands = operands_of(pattern, side, *children, names)?;
                Ok(NodeMeaning::List { ops: Ops::None, operands, swap: false })
            }
            Node::Either(children) if children.len == 0 => Err(PatternError::NoAlternatives),
            Node::Either(_) if pattern.parts(at).any(inner_is_rest) => Err(PatternError::Rest),
            Node::Either(_) => Ok(NodeMeaning::Nothing),
            Node::Proj { tuple: inner, .. } | Node::Filter { inner, .. } if inner_is_rest(*inner) => {
                Err(PatternError::Rest)
            }
            Node::Proj { .. } => Ok(NodeMeaning::Nothing),
            Node::Capture { name, inner } => match pattern.kind_of_capture(at) {
                CaptureKind::Expression if inner_is_rest(*inner) => Err(PatternError::Rest),
                kind => Ok(NodeMeaning::Slot(names.slot_of(name, kind)?)),
            },
            Node::Filter { condition: Condition::Attr { name, value }, inner } => {
                operators(pattern, *inner, |op_names| {
                    op_names.listed().iter().try_for_each(|op| check_attr_of(cx, op, name, value, names))
                })?;
                match value {
                    Wanted::Named(capture) => Ok(NodeMeaning::Slot(names.slot_of(capture, CaptureKind::Attribute)?)),
                    _ => Ok(NodeMeaning::Nothing),
                }
            }
            Node::Filter { condition: Condition::AttrsWhere(_), inner } => {
                operators(pattern, *inner, |_| Ok(())).map(|()| NodeMeaning::Nothing)
            }
            Node::Filter { condition: Condition::SameTypeAs(name), .. } => Ok(NodeMeaning::Slot(names.slot(name)?)),
            Node::Filter { condition: Condition::Order, .. } => {
                Err(PatternError::NotAnOperator("the order of operands"))
            }
            Node::Filter { .. } => Ok(NodeMeaning::Nothing),
        }
    }

    /// Finds the operators that a node accepts. The flag is true if all of them commute.
    fn resolve(&mut self, cx: &mut Context, names: &OpNames, operands: Operands) -> Result<(Ops, bool), PatternError> {
        let found = operands.first.len as usize;
        let fits = |arity: Arity| match operands.rest {
            Rest::None => arity.accepts(found),
            _ => arity.max.is_none_or(|max| found <= max),
        };
        let mut ops: Vec<OpId> = Vec::new();
        if let OpNames::Where(test) = names {
            let rows = cx.ops.registry().rows();
            ops.extend(rows.filter(|(_, row)| test(row) && fits(row.arity)).map(|(op, _)| op));
        }
        for name in names.listed() {
            let op = cx.ops.resolve(name).map_err(PatternError::UnknownOp)?;
            let arity = cx.ops.get(op).arity;
            if !fits(arity) {
                return Err(PatternError::Arity { op: name.to_string(), wanted: arity_text(arity), found });
            }
            self.is_portable &= !cx.ops.is_opaque(op);
            ops.push(op);
        }
        let commutative = ops.iter().all(|&op| cx.ops.get(op).commutative);
        if let [op] = ops[..] {
            return Ok((Ops::One(op), commutative));
        }
        let mut bits = vec![0u64; ops.iter().map(|op| op.index() / 64 + 1).max().unwrap_or(0)];
        ops.iter().for_each(|op| bits[op.index() / 64] |= 1 << (op.index() % 64));
        self.sets.push((bits, ops));
        Ok((Ops::Set(self.sets.len() as u32 - 1), commutative))
    }

    /// Finds the nodes at which the pattern can begin. The flag is true if it would begin at an
    /// operator but no operator is accepted.
    fn find_roots(&self) -> (Roots, bool) {
        let mut asks_for_none = false;
        let mut roots = Roots::default();
        for at in self.pattern.reached(self.pattern.root, Node::is_transparent) {
            match (&self.pattern.nodes[at as usize], self.meanings[at as usize]) {
                (Node::Any, _) => roots.all = true,
                (Node::Op { .. }, NodeMeaning::List { ops: Ops::Set(set), .. }) => {
                    let ops = self.ops_of(set);
                    asks_for_none |= ops.is_empty();
                    ops.iter().for_each(|&op| roots.add_op(op));
                }
                (Node::Op { .. }, NodeMeaning::List { ops: Ops::One(op), .. }) => roots.add_op(op),
                (Node::Call(_), _) => roots.add(Roots::CALLS),
                (Node::Tuple(_), _) => roots.add(Roots::TUPLES),
                (Node::Proj { .. }, _) => roots.add(Roots::PROJECTIONS),
                _ => {}
            }
        }
        roots.lists.sort_unstable();
        roots.lists.dedup();
        (roots, asks_for_none)
    }
}

/// Returns the operands that a list describes. On the right side of a rule, captured lists may
/// stand anywhere in it.
fn operands_of(
    pattern: &Pattern,
    side: Side,
    children: Children,
    names: &CaptureNames,
) -> Result<Operands, PatternError> {
    let all = pattern.list(children);
    if side == Side::Right {
        let lists = all.iter().filter(|&&child| pattern.is_rest(pattern.through_links(child))).count();
        let rest = if lists == 0 { Rest::None } else { Rest::Ignored };
        return Ok(Operands { first: Children { len: children.len - lists as u32, ..children }, rest });
    }
    let Some(at) = all.iter().position(|&child| pattern.is_rest(pattern.through_links(child))) else {
        return Ok(Operands { first: children, rest: Rest::None });
    };
    if at + 1 < all.len() {
        return Err(PatternError::Rest);
    }
    let rest = match &pattern.nodes[pattern.through_links(all[at]) as usize] {
        Node::Capture { name, .. } => Rest::Captured(names.slot(name)?),
        _ => Rest::Ignored,
    };
    Ok(Operands { first: Children { len: at as u32, ..children }, rest })
}

/// Calls `f` with the operators that a condition on attributes applies to. Looks through captures,
/// other conditions and alternatives.
fn operators(
    pattern: &Pattern,
    at: u32,
    mut f: impl FnMut(&OpNames) -> Result<(), PatternError>,
) -> Result<(), PatternError> {
    for at in pattern.reached(at, Node::is_transparent).into_iter().rev() {
        match &pattern.nodes[at as usize] {
            Node::Op { names, .. } => f(names)?,
            node if node.is_transparent() => {}
            _ => return Err(PatternError::NotAnOperator("attributes")),
        }
    }
    Ok(())
}

/// Checks that an operator has an attribute, and that the attribute can have the value. Records a
/// capture of the value.
fn check_attr_of(
    cx: &mut Context,
    name: &str,
    attr: &str,
    value: &Wanted,
    names: &mut CaptureNames,
) -> Result<(), PatternError> {
    let op = cx.ops.resolve(name).map_err(PatternError::UnknownOp)?;
    if cx.ops.is_opaque(op) {
        return Ok(());
    }
    let row = cx.ops.get(op);
    let Some(def) = row.attrs.iter().find(|def| def.name == attr) else {
        let all = || row.attrs.iter().map(|def| def.name);
        let help = match did_you_mean(attr, all()) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if row.attrs.is_empty() => None,
            None => Some(format!("it has {}", all().collect::<Vec<_>>().join(", "))),
        };
        return Err(PatternError::UnknownAttr { op: name.to_string(), attr: attr.to_string(), help });
    };
    match value {
        Wanted::Is(value) if !value.fits(def.kind) => {
            let (op, attr) = (name.to_string(), attr.to_string());
            Err(PatternError::AttrKind { op, attr, wanted: def.kind.describe() })
        }
        Wanted::Named(capture) => names.note_attr(capture, name, def),
        _ => Ok(()),
    }
}

//! Patterns made ready: names resolved against the operators, and checked.

use std::sync::Arc;

use anfora_ir::{
    Arity, AttrDefault, AttrKind, AttrValue, Context, EntityId, ExprId, GlobalId, Literal, Number, OpId, PartSet,
    did_you_mean,
};
use rustc_hash::FxHashMap;

use crate::pattern::build::{
    AttrTest, Children, Condition, LiteralCondition, LiteralTest, Node, OpNames, Order, Pattern, SiteTest, TypeTest,
    Wanted,
};
use crate::pattern::error::{PatternError, Refused, arity_text};
use crate::pattern::guard::Guard;

/// A pattern that is ready to be looked for. Children have numbers in one list, as in [`Pattern`].
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) nodes: Vec<Step>,
    pub(crate) children: Vec<u32>,
    pub(crate) tests: Vec<Test>,
    sets: Vec<OpSet>,
    slots: FxHashMap<Arc<str>, u32>,
    pub(crate) root: u32,
    /// Names of captures, in the order in which they stand in the pattern.
    pub(crate) captures: Vec<Arc<str>>,
    kinds: Vec<CaptureKind>,
    /// What attributes each capture is the value of, once one is known.
    attrs: Vec<Option<(AttrKind, AttrDefault)>>,
    pub(crate) roots: Roots,
    /// How many values deep it looks: how far from a change it may match anew.
    pub(crate) depth: u32,
    pub(crate) asks_for_uses: bool,
}

/// Operators, as bits and as a list.
#[derive(Clone)]
struct OpSet {
    bits: Vec<u64>,
    ops: Vec<OpId>,
}

impl OpSet {
    fn new(ops: Vec<OpId>) -> OpSet {
        let mut bits = vec![0u64; ops.iter().map(|op| op.index() / 64 + 1).max().unwrap_or(0)];
        ops.iter().for_each(|op| bits[op.index() / 64] |= 1 << (op.index() % 64));
        OpSet { bits, ops }
    }
}

/// What expressions a pattern can begin at.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Roots {
    pub(crate) all: bool,
    pub(crate) ops: Vec<OpId>,
    pub(crate) calls: bool,
    pub(crate) tuples: bool,
    pub(crate) projections: bool,
}

#[derive(Copy, Clone, Debug)]
pub(crate) enum Ops {
    One(OpId),
    /// A bit for each operator, in the set of that number.
    Set(u32),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    None,
    Ignored,
    Captured(u32),
}

/// Operands, arguments or fields: the first ones by patterns, and whether there may be more.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Operands {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) rest: Rest,
}

#[derive(Copy, Clone, Debug)]
pub(crate) enum Step {
    Any,
    /// A literal that passes the test of that number.
    Literal(u32),
    Global(GlobalId),
    NoneValue,
    /// A global that the module does not know.
    Nothing,
    Op {
        ops: Ops,
        operands: Operands,
        swap: bool,
    },
    Call(Operands),
    Tuple(Operands),
    Proj {
        tuple: u32,
        index: Option<u32>,
    },
    Either(Children),
    Capture {
        slot: u32,
        inner: u32,
    },
    /// What passes the test of that number.
    Filter {
        test: u32,
        inner: u32,
    },
}

#[derive(Clone)]
pub(crate) enum Test {
    Number(Number),
    Is(Literal),
    LiteralWhere(LiteralTest),
    Whole(i64),
    Splat(Literal),
    UsedOnce,
    Attr { name: Arc<str>, value: AttrValue },
    AttrAbsent(Arc<str>),
    AttrInto { name: Arc<str>, slot: u32 },
    Guard(Guard),
    AttrsWhere(AttrTest),
    SameTypeAs(u32),
    TypeWhere(TypeTest),
    Where(SiteTest),
}

#[derive(Copy, Clone, PartialEq)]
pub(crate) enum CaptureKind {
    Expression,
    List,
    Attribute,
}

impl Compiled {
    /// Makes a pattern ready. What is refused is refused at a node of it.
    pub(crate) fn new(cx: &mut Context, pattern: &Pattern) -> Result<Compiled, Refused> {
        let mut compiled = Compiled {
            nodes: vec![Step::Any; pattern.nodes.len()],
            children: Vec::with_capacity(pattern.children.len()),
            tests: Vec::new(),
            sets: Vec::new(),
            slots: FxHashMap::default(),
            root: 0,
            captures: Vec::new(),
            kinds: Vec::new(),
            attrs: Vec::new(),
            roots: Roots::default(),
            depth: 0,
            asks_for_uses: false,
        };
        compiled.root = through_links(pattern, pattern.root);
        if rest_of(pattern, compiled.root).is_some() {
            return Err(PatternError::Rest.at(compiled.root));
        }
        compiled.name_captures(pattern)?;
        for (i, node) in pattern.nodes.iter().enumerate() {
            compiled.nodes[i] = compiled.step(cx, pattern, node).map_err(|error| error.at(i as u32))?;
        }
        let asks_for_none = compiled.find_roots();
        if compiled.roots == Roots::default() {
            let error = if asks_for_none { PatternError::NoOperator } else { PatternError::AtomRoot };
            return Err(error.at(compiled.root));
        }
        compiled.depth = compiled.find_depth();
        Ok(compiled)
    }

    pub(crate) fn contains(&self, ops: Ops, op: OpId) -> bool {
        match ops {
            Ops::One(one) => one == op,
            Ops::Set(set) => {
                self.sets[set as usize].bits.get(op.index() / 64).is_some_and(|word| word >> (op.index() % 64) & 1 == 1)
            }
        }
    }

    pub(crate) fn slot(&self, name: &str) -> Option<u32> {
        self.slots.get(name).copied()
    }

    /// Numbers the captures in the order of a walk from the root.
    fn name_captures(&mut self, pattern: &Pattern) -> Result<(), Refused> {
        let mut seen = vec![false; pattern.nodes.len()];
        let mut stack = vec![pattern.root];
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            let node = &pattern.nodes[at as usize];
            if let Some((name, kind)) = capture_of(pattern, node) {
                match self.slots.get(name) {
                    Some(&i) if self.kinds[i as usize] != kind => {
                        return Err(PatternError::MixedCapture(name.to_string()).at(at));
                    }
                    Some(_) => {}
                    None => {
                        self.slots.insert(Arc::clone(name), self.kinds.len() as u32);
                        self.captures.push(Arc::clone(name));
                        self.kinds.push(kind);
                        self.attrs.push(None);
                    }
                }
            }
            let start = stack.len();
            for_each_child(pattern, node, |child| stack.push(child));
            stack[start..].reverse();
        }
        Ok(())
    }

    /// Notes that a capture is the value of an attribute of an operator. All such have one kind and
    /// one default.
    pub(crate) fn note_attr(&mut self, cx: &Context, op: &str, attr: &str, capture: &str) -> Result<(), PatternError> {
        let slot = self.known_slot(capture)? as usize;
        let Some(op_id) = cx.ops.find(op) else { return Ok(()) };
        let Some(def) = cx.ops.get(op_id).attrs.iter().find(|def| def.name == attr) else { return Ok(()) };
        match &self.attrs[slot] {
            Some(known) if *known != (def.kind, def.default) => Err(PatternError::MixedAttr {
                capture: capture.to_string(),
                op: op.to_string(),
                attr: attr.to_string(),
            }),
            _ => {
                self.attrs[slot] = Some((def.kind, def.default));
                Ok(())
            }
        }
    }

    /// What a capture is.
    pub(crate) fn kind(&self, name: &str) -> Result<CaptureKind, PatternError> {
        Ok(self.kinds[self.known_slot(name)? as usize])
    }

    fn known_slot(&self, name: &str) -> Result<u32, PatternError> {
        self.slot(name).ok_or_else(|| unknown_capture(name, &self.captures))
    }

    fn step(&mut self, cx: &mut Context, pattern: &Pattern, node: &Node) -> Result<Step, PatternError> {
        Ok(match node {
            Node::Any => Step::Any,
            // As an operand it never becomes a goal, and elsewhere it is refused by who has it as a
            // child.
            Node::Rest | Node::Link(_) => Step::Any,
            Node::Hole(_) => return Err(PatternError::Hole),
            Node::Literal(condition) => {
                let test = match condition {
                    LiteralCondition::Number(number) => Test::Number(*number),
                    LiteralCondition::Is(literal) => Test::Is(literal.clone()),
                    LiteralCondition::Where(test) => Test::LiteralWhere(Arc::clone(test)),
                    LiteralCondition::Whole(value) => Test::Whole(*value),
                    LiteralCondition::Splat(scalar) => Test::Splat(scalar.clone()),
                };
                Step::Literal(self.add_test(test))
            }
            Node::Global(name) => cx.find_global(name).map_or(Step::Nothing, Step::Global),
            Node::NoneValue => Step::NoneValue,
            Node::Op { names, children, order } => {
                let operands = self.operands(pattern, *children)?;
                let (ops, all_commutative) = self.resolve(cx, names, operands)?;
                let two = operands.len == 2 && operands.rest == Rest::None;
                let swap = match order {
                    Order::AsWritten => false,
                    Order::Row => two && all_commutative,
                    Order::Either if two => true,
                    Order::Either => return Err(PatternError::NotTwoOperands(operands.len as usize)),
                };
                Step::Op { ops, operands, swap }
            }
            Node::Call(children) => Step::Call(self.operands(pattern, *children)?),
            Node::Tuple(children) => Step::Tuple(self.operands(pattern, *children)?),
            Node::Proj { tuple, index } => Step::Proj { tuple: self.child(pattern, *tuple)?, index: *index },
            Node::Either(children) => {
                if children.len == 0 {
                    return Err(PatternError::NoAlternatives);
                }
                let start = self.children.len() as u32;
                for i in children.start..children.start + children.len {
                    let child = self.child(pattern, pattern.children[i as usize])?;
                    self.children.push(child);
                }
                Step::Either(Children { start, len: children.len })
            }
            Node::Capture { name, inner } => {
                let slot = self.known_slot(name)?;
                match pattern.nodes[*inner as usize] {
                    // Taken account of by the list that it ends.
                    Node::Rest => Step::Any,
                    _ => Step::Capture { slot, inner: self.child(pattern, *inner)? },
                }
            }
            Node::Filter { condition, inner } => {
                let inner = self.child(pattern, *inner)?;
                let test = match condition {
                    Condition::UsedOnce => {
                        self.asks_for_uses = true;
                        Test::UsedOnce
                    }
                    Condition::Attr { name, value } => {
                        self.check_attr(cx, pattern, inner, name, value)?;
                        let name = Arc::clone(name);
                        match value {
                            Wanted::Is(value) => Test::Attr { name, value: value.clone() },
                            Wanted::Absent => Test::AttrAbsent(name),
                            Wanted::Named(capture) => Test::AttrInto { name, slot: self.known_slot(capture)? },
                        }
                    }
                    Condition::Guard(guard) => Test::Guard(Arc::clone(guard)),
                    Condition::AttrsWhere(test) => {
                        operators(pattern, inner, |_| Ok(()), "attributes")?;
                        Test::AttrsWhere(Arc::clone(test))
                    }
                    Condition::SameTypeAs(name) => Test::SameTypeAs(self.known_slot(name)?),
                    Condition::TypeWhere(test) => Test::TypeWhere(Arc::clone(test)),
                    Condition::Where(test) => Test::Where(Arc::clone(test)),
                    Condition::Order => return Err(PatternError::NotAnOperator("the order of operands")),
                };
                Step::Filter { test: self.add_test(test), inner }
            }
        })
    }

    /// Checks a condition on an attribute of the operators at a node.
    fn check_attr(
        &mut self,
        cx: &mut Context,
        pattern: &Pattern,
        at: u32,
        attr: &str,
        value: &Wanted,
    ) -> Result<(), PatternError> {
        let check = |names: &OpNames| {
            names.listed().iter().try_for_each(|name| {
                check_attr_of(cx, name, attr, value)?;
                match value {
                    Wanted::Named(capture) => self.note_attr(cx, name, attr, capture),
                    _ => Ok(()),
                }
            })
        };
        operators(pattern, at, check, "attributes")
    }

    fn add_test(&mut self, test: Test) -> u32 {
        self.tests.push(test);
        self.tests.len() as u32 - 1
    }

    /// A child that is not the end of a list.
    fn child(&self, pattern: &Pattern, at: u32) -> Result<u32, PatternError> {
        let at = through_links(pattern, at);
        match rest_of(pattern, at) {
            Some(_) => Err(PatternError::Rest),
            None => Ok(at),
        }
    }

    fn operands(&mut self, pattern: &Pattern, children: Children) -> Result<Operands, PatternError> {
        let start = self.children.len() as u32;
        let all = &pattern.children[children.start as usize..][..children.len as usize];
        let mut rest = Rest::None;
        for (i, &child) in all.iter().enumerate() {
            let at = through_links(pattern, child);
            match rest_of(pattern, at) {
                None => self.children.push(at),
                Some(_) if i + 1 < all.len() => return Err(PatternError::Rest),
                Some(None) => rest = Rest::Ignored,
                Some(Some(name)) => rest = Rest::Captured(self.known_slot(name)?),
            }
        }
        Ok(Operands { start, len: self.children.len() as u32 - start, rest })
    }

    fn resolve(&mut self, cx: &mut Context, names: &OpNames, operands: Operands) -> Result<(Ops, bool), PatternError> {
        if let OpNames::Where(test) = names {
            let fits = cx.ops.registry().rows().filter(|(_, row)| test(row) && arity_fits(row.arity, operands));
            let (ops, commutative): (Vec<OpId>, Vec<bool>) = fits.map(|(op, row)| (op, row.commutative)).unzip();
            let commutative = commutative.iter().all(|&c| c);
            self.sets.push(OpSet::new(ops));
            return Ok((Ops::Set(self.sets.len() as u32 - 1), commutative));
        }
        let names = names.listed();
        let mut ops: Vec<OpId> = Vec::with_capacity(names.len());
        for name in names {
            let op = cx.ops.resolve(name).map_err(PatternError::UnknownOp)?;
            let arity = cx.ops.get(op).arity;
            if !arity_fits(arity, operands) {
                let found = operands.len as usize;
                return Err(PatternError::Arity { op: name.to_string(), wanted: arity_text(arity), found });
            }
            ops.push(op);
        }
        let commutative = ops.iter().all(|&op| cx.ops.get(op).commutative);
        if let [op] = ops[..] {
            return Ok((Ops::One(op), commutative));
        }
        self.sets.push(OpSet::new(ops));
        Ok((Ops::Set(self.sets.len() as u32 - 1), commutative))
    }

    /// Finds what it can begin at; whether it would begin at an operator where none is asked for.
    fn find_roots(&mut self) -> bool {
        let mut asks_for_none = false;
        let mut roots = Roots::default();
        let mut seen = vec![false; self.nodes.len()];
        let mut stack = vec![self.root];
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            match self.nodes[at as usize] {
                Step::Any => roots.all = true,
                Step::Literal(_) | Step::Global(_) | Step::NoneValue | Step::Nothing => {}
                Step::Op { ops: Ops::One(op), .. } => roots.ops.push(op),
                Step::Op { ops: Ops::Set(set), .. } => {
                    let ops = &self.sets[set as usize].ops;
                    asks_for_none |= ops.is_empty();
                    roots.ops.extend(ops);
                }
                Step::Call(_) => roots.calls = true,
                Step::Tuple(_) => roots.tuples = true,
                Step::Proj { .. } => roots.projections = true,
                Step::Either(children) => {
                    stack.extend(&self.children[children.start as usize..][..children.len as usize])
                }
                Step::Capture { inner, .. } | Step::Filter { inner, .. } => stack.push(inner),
            }
        }
        roots.ops.sort_unstable_by_key(|op| op.index());
        roots.ops.dedup();
        self.roots = roots;
        asks_for_none
    }

    /// The longest way from the root, counted in calls, tuples and projections.
    fn find_depth(&self) -> u32 {
        let mut depths: Vec<u32> = vec![0; self.nodes.len()];
        let mut state: Vec<u8> = vec![0; self.nodes.len()];
        let mut stack = vec![self.root];
        while let Some(&at) = stack.last() {
            let height = stack.len();
            let mut inner = 0;
            let mut look = |child: u32| match state[child as usize] {
                0 => stack.push(child),
                _ => inner = inner.max(depths[child as usize]),
            };
            let counts = self.for_each_child(at, &mut look);
            if stack.len() > height {
                continue;
            }
            depths[at as usize] = inner + u32::from(counts);
            state[at as usize] = 1;
            stack.pop();
        }
        depths[self.root as usize]
    }

    /// Calls `f` with the children of a step; whether the step looks at a value.
    fn for_each_child(&self, at: u32, f: &mut impl FnMut(u32)) -> bool {
        let list = |start: u32, len: u32| &self.children[start as usize..][..len as usize];
        match self.nodes[at as usize] {
            Step::Op { operands: o, .. } | Step::Call(o) | Step::Tuple(o) => {
                list(o.start, o.len).iter().for_each(|&c| f(c));
                true
            }
            Step::Proj { tuple, .. } => {
                f(tuple);
                true
            }
            Step::Either(children) => {
                list(children.start, children.len).iter().for_each(|&c| f(c));
                false
            }
            Step::Capture { inner, .. } | Step::Filter { inner, .. } => {
                f(inner);
                false
            }
            _ => false,
        }
    }
}

fn arity_fits(arity: Arity, operands: Operands) -> bool {
    match operands.rest {
        Rest::None => arity.accepts(operands.len as usize),
        _ => arity.max.is_none_or(|max| operands.len as usize <= max),
    }
}

pub(crate) fn unknown_capture(name: &str, names: &[Arc<str>]) -> PatternError {
    let help = did_you_mean(name, names.iter().map(|n| &**n)).map(|h| format!("did you mean `{h}`?"));
    PatternError::UnknownCapture { name: name.to_string(), help }
}

/// What a placeholder was filled with.
pub(crate) fn through_links(pattern: &Pattern, mut at: u32) -> u32 {
    while let Node::Link(to) = pattern.nodes[at as usize] {
        at = to;
    }
    at
}

/// Returns true if a node is the end of a list, and the name by which it is captured.
pub(crate) fn rest_of(pattern: &Pattern, at: u32) -> Option<Option<&Arc<str>>> {
    match &pattern.nodes[at as usize] {
        Node::Rest => Some(None),
        Node::Capture { name, inner } => matches!(pattern.nodes[*inner as usize], Node::Rest).then_some(Some(name)),
        _ => None,
    }
}

/// The name by which a node captures something, and what that is.
fn capture_of<'p>(pattern: &'p Pattern, node: &'p Node) -> Option<(&'p Arc<str>, CaptureKind)> {
    match node {
        Node::Capture { name, inner } => match pattern.nodes[*inner as usize] {
            Node::Rest => Some((name, CaptureKind::List)),
            _ => Some((name, CaptureKind::Expression)),
        },
        Node::Filter { condition: Condition::Attr { value: Wanted::Named(name), .. }, .. } => {
            Some((name, CaptureKind::Attribute))
        }
        _ => None,
    }
}

pub(crate) fn for_each_child(pattern: &Pattern, node: &Node, mut f: impl FnMut(u32)) {
    match node {
        Node::Op { children, .. } | Node::Call(children) | Node::Tuple(children) | Node::Either(children) => {
            pattern.children[children.start as usize..][..children.len as usize].iter().for_each(|&c| f(c));
        }
        Node::Proj { tuple: inner, .. }
        | Node::Link(inner)
        | Node::Capture { inner, .. }
        | Node::Filter { inner, .. } => f(*inner),
        Node::Any | Node::Rest | Node::Hole(_) | Node::Literal(_) | Node::Global(_) | Node::NoneValue => {}
    }
}

/// Calls `f` with the operators that a condition is on, through names, other conditions and
/// alternatives.
fn operators(
    pattern: &Pattern,
    at: u32,
    mut f: impl FnMut(&OpNames) -> Result<(), PatternError>,
    what: &'static str,
) -> Result<(), PatternError> {
    let mut seen: PartSet<ExprId> = PartSet::of_part(pattern.nodes.len());
    let mut stack = vec![at];
    while let Some(at) = stack.pop() {
        if !seen.insert(ExprId::from_index(at as usize)) {
            continue;
        }
        match &pattern.nodes[at as usize] {
            Node::Op { names, .. } => f(names)?,
            node @ (Node::Capture { .. } | Node::Filter { .. } | Node::Link(_) | Node::Either(_)) => {
                for_each_child(pattern, node, |child| stack.push(child));
            }
            _ => return Err(PatternError::NotAnOperator(what)),
        }
    }
    Ok(())
}

/// Checks that an operator has an attribute, and that it can have a value.
pub(crate) fn check_attr_of(cx: &mut Context, name: &str, attr: &str, value: &Wanted) -> Result<(), PatternError> {
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
        _ => Ok(()),
    }
}

//! Patterns as they are written: nodes in a flat arena, made by constructors.

use std::fmt;
use std::sync::Arc;

use anfora_ir::{
    AttrReader, AttrValue, Body, Context, DType, DimId, EntityId, ExprId, Literal, Number, OpDef, SparseSet, Type,
    TypeId, Types,
};

use crate::pattern::capture_names::CaptureKind;
use crate::pattern::guard::{Guard, Match};

/// A description of expressions to look for in programs. See [the module](crate::pattern).
///
/// Its nodes are in one flat list, so that patterns of any depth are built, used and dropped
/// without recursion. When a pattern becomes a part of another pattern, the shorter of the two
/// lists is appended to the longer one.
#[derive(Clone)]
pub struct Pattern {
    pub(crate) nodes: Vec<Node>,
    pub(crate) children: Vec<u32>,
    pub(crate) root: u32,
}

/// A test of a literal.
pub(crate) type LiteralTest = Arc<dyn Fn(&Literal) -> bool + Send + Sync>;
/// A test of a type.
pub(crate) type TypeTest = Arc<dyn Fn(&Types, TypeId) -> bool + Send + Sync>;
/// A test of the attributes of a call of an operator.
pub(crate) type AttrTest = Arc<dyn Fn(&AttrReader<'_>) -> bool + Send + Sync>;
/// A test of the row of an operator.
pub(crate) type OpTest = Arc<dyn Fn(&OpDef) -> bool + Send + Sync>;
/// A test of an expression in its program.
pub(crate) type SiteTest = Arc<dyn Fn(&Candidate<'_>) -> bool + Send + Sync>;

/// The argument of the test of a [`Pattern::filter`].
#[derive(Copy, Clone)]
pub struct Candidate<'a> {
    /// The tables of the module.
    pub cx: &'a Context,
    /// The body.
    pub body: &'a Body,
    /// The expression as it stands in the program: in A-normal form, an operand is an atom.
    pub expr: ExprId,
    /// The value of the expression: if patterns look through the variable `expr`, the value that it
    /// is bound to; otherwise `expr` itself.
    pub value: ExprId,
}

impl Candidate<'_> {
    /// Returns the type of the expression.
    pub fn ty(&self) -> &Type {
        self.cx.types.get(self.body.type_of(self.expr))
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// The operator's row says whether its operands may be exchanged.
    Row,
    AsWritten,
    Either,
}

/// Several parts of a node, as a range in the pattern's list.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Children {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

#[derive(Clone)]
pub(crate) enum Node {
    Any,
    Rest,
    /// The placeholder for the inner pattern, while [`Pattern::optional`] builds the wrapping.
    Hole(Arc<()>),
    /// A filled hole: the index of the inner pattern.
    Link(u32),
    Literal(LiteralCondition),
    Global(Arc<str>),
    NoneValue,
    Op {
        names: OpNames,
        children: Children,
        order: Order,
    },
    Call(Children),
    Tuple(Children),
    Proj {
        tuple: u32,
        index: Option<u32>,
    },
    Either(Children),
    Capture {
        name: Arc<str>,
        inner: u32,
    },
    Filter {
        condition: Condition,
        inner: u32,
    },
}

impl Node {
    /// Returns true if every match of the node is a match of one of its parts.
    pub(crate) fn is_transparent(&self) -> bool {
        matches!(self, Node::Either(_) | Node::Capture { .. } | Node::Filter { .. } | Node::Link(_))
    }
}

#[derive(Clone)]
pub(crate) enum OpNames {
    One(Arc<str>),
    Several(Arc<[Arc<str>]>),
    Where(OpTest),
}

impl OpNames {
    /// Returns the names if they are listed, otherwise an empty list.
    pub(crate) fn listed(&self) -> &[Arc<str>] {
        match self {
            OpNames::One(name) => std::slice::from_ref(name),
            OpNames::Several(names) => names,
            OpNames::Where(_) => &[],
        }
    }
}

#[derive(Clone)]
pub(crate) enum LiteralCondition {
    Number(Number),
    Is(Literal),
    Where(LiteralTest),
    /// A scalar or splat of this whole number, with any element type. The number 0 matches only
    /// integers.
    Whole(i64),
    /// A scalar or splat of this scalar's element.
    Splat(Literal),
}

/// The value of an attribute.
#[derive(Clone)]
pub(crate) enum Wanted {
    Is(AttrValue),
    /// The attribute is omitted or has its default.
    Absent,
    /// Any value, which is captured by this name.
    Named(Arc<str>),
}

#[derive(Clone)]
pub(crate) enum Condition {
    UsedOnce,
    Attr {
        name: Arc<str>,
        value: Wanted,
    },
    /// A test of the whole match.
    Guard(Guard),
    AttrsWhere(AttrTest),
    SameTypeAs(Arc<str>),
    TypeWhere(TypeTest),
    Where(SiteTest),
    /// An order of operands was requested for a node that is not an operator.
    Order,
}

impl Pattern {
    // ---- Looking ----

    pub(crate) fn list(&self, children: Children) -> &[u32] {
        &self.children[children.start as usize..][..children.len as usize]
    }

    /// Returns the parts of a node, which come before it.
    pub(crate) fn parts(&self, at: u32) -> impl Iterator<Item = u32> + '_ {
        let (one, list): (_, &[u32]) = match &self.nodes[at as usize] {
            Node::Op { children, .. } | Node::Call(children) | Node::Tuple(children) | Node::Either(children) => {
                (None, self.list(*children))
            }
            Node::Proj { tuple: inner, .. }
            | Node::Link(inner)
            | Node::Capture { inner, .. }
            | Node::Filter { inner, .. } => (Some(*inner), &[]),
            Node::Any | Node::Rest | Node::Hole(_) | Node::Literal(_) | Node::Global(_) | Node::NoneValue => {
                (None, &[])
            }
        };
        one.into_iter().chain(list.iter().copied())
    }

    /// Returns `root` and the nodes that are reached from it through nodes for which `open` returns
    /// true. Each node is listed once, in the order of the text, before its parts.
    pub(crate) fn reached(&self, root: u32, open: impl Fn(&Node) -> bool) -> Vec<u32> {
        // The nodes of most patterns fit into a mask. Few nodes of a larger pattern may be reached,
        // so its set is sparse.
        const MASKED: usize = u64::BITS as usize;
        let mut mask = 0u64;
        let is_large = self.nodes.len() > MASKED;
        let mut set: Option<SparseSet<ExprId>> = is_large.then(|| SparseSet::of_part(self.nodes.len()));
        let mut reached = Vec::with_capacity(self.nodes.len().min(MASKED));
        let mut stack = vec![root];
        while let Some(at) = stack.pop() {
            let is_new = match &mut set {
                Some(set) => set.insert(ExprId::from_index(at as usize)),
                None => {
                    let before = mask;
                    mask |= 1 << at;
                    mask != before
                }
            };
            if !is_new {
                continue;
            }
            reached.push(at);
            if open(&self.nodes[at as usize]) {
                let start = stack.len();
                stack.extend(self.parts(at));
                stack[start..].reverse();
            }
        }
        reached
    }

    /// Returns the node that a hole was filled with; for any other node, the node itself.
    pub(crate) fn through_links(&self, mut at: u32) -> u32 {
        while let Node::Link(to) = self.nodes[at as usize] {
            at = to;
        }
        at
    }

    /// Returns the node that conditions are put on; for any other node, the node itself.
    pub(crate) fn through_filters(&self, mut at: u32) -> u32 {
        while let Node::Filter { inner, .. } = self.nodes[at as usize] {
            at = inner;
        }
        at
    }

    /// Returns the node that names and conditions are put on; for any other node, the node itself.
    pub(crate) fn through_names(&self, mut at: u32) -> u32 {
        while let Node::Link(inner) | Node::Capture { inner, .. } | Node::Filter { inner, .. } = self.nodes[at as usize]
        {
            at = inner;
        }
        at
    }

    /// Returns true if a node is [`rest`], or a capture of it.
    pub(crate) fn is_rest(&self, at: u32) -> bool {
        let end = match self.nodes[at as usize] {
            Node::Capture { inner, .. } => inner,
            _ => at,
        };
        matches!(self.nodes[end as usize], Node::Rest)
    }

    /// Returns the kind of a capture.
    pub(crate) fn kind_of_capture(&self, at: u32) -> CaptureKind {
        if self.is_rest(at) { CaptureKind::List } else { CaptureKind::Expression }
    }

    // ---- Making ----

    fn leaf(node: Node) -> Pattern {
        Pattern { nodes: vec![node], children: Vec::new(), root: 0 }
    }

    /// Appends the nodes of another pattern, numbered after those of this one.
    fn append(&mut self, other: Pattern) {
        let (nodes, children) = (self.nodes.len() as u32, self.children.len() as u32);
        self.children.extend(other.children.iter().map(|c| c + nodes));
        let moved = |c: Children| Children { start: c.start + children, len: c.len };
        self.nodes.extend(other.nodes.into_iter().map(|node| match node {
            Node::Op { names, children, order } => Node::Op { names, children: moved(children), order },
            Node::Call(c) => Node::Call(moved(c)),
            Node::Tuple(c) => Node::Tuple(moved(c)),
            Node::Either(c) => Node::Either(moved(c)),
            Node::Proj { tuple, index } => Node::Proj { tuple: tuple + nodes, index },
            Node::Link(to) => Node::Link(to + nodes),
            Node::Capture { name, inner } => Node::Capture { name, inner: inner + nodes },
            Node::Filter { condition, inner } => Node::Filter { condition, inner: inner + nodes },
            leaf @ (Node::Any | Node::Rest | Node::Hole(_) | Node::Literal(_) | Node::Global(_) | Node::NoneValue) => {
                leaf
            }
        }));
    }

    /// Returns a pattern over several others. Shorter lists are appended to the longest so far, so
    /// that nested patterns are built in near-linear time.
    fn over(parts: impl IntoIterator<Item = Pattern>, node: impl FnOnce(Children) -> Node) -> Pattern {
        let mut all = Pattern { nodes: Vec::new(), children: Vec::new(), root: 0 };
        let mut roots: Vec<u32> = Vec::new();
        for mut part in parts {
            if part.nodes.len() > all.nodes.len() {
                std::mem::swap(&mut part, &mut all);
                let shift = all.nodes.len() as u32;
                roots.iter_mut().for_each(|r| *r += shift);
                roots.push(all.root);
            } else {
                roots.push(part.root + all.nodes.len() as u32);
            }
            all.append(part);
        }
        let start = all.children.len() as u32;
        all.children.extend_from_slice(&roots);
        all.finish(node(Children { start, len: roots.len() as u32 }))
    }

    fn finish(mut self, node: Node) -> Pattern {
        self.root = self.nodes.len() as u32;
        self.nodes.push(node);
        self
    }

    fn around(self, node: impl FnOnce(u32) -> Node) -> Pattern {
        let inner = self.root;
        self.finish(node(inner))
    }

    fn filtered(self, condition: Condition) -> Pattern {
        self.around(|inner| Node::Filter { condition, inner })
    }

    // ---- Naming ----

    /// Captures the matched expression by a name, for the right side of a rule. If the name occurs
    /// twice, both matches must be the same expression: the same variable, literal or node, with
    /// aliases resolved. A capture of [`rest`] is a list.
    #[must_use]
    pub fn capture(self, name: &str) -> Pattern {
        let name = Arc::from(name);
        self.around(|inner| Node::Capture { name, inner })
    }

    // ---- Alternatives ----

    /// Matches this pattern, or `wrap` around it, such as the addition of a bias or an activation.
    /// The wrapped pattern is tried first. A capture in the wrapping shows whether it was matched:
    /// [`Captures::get`](crate::pattern::Captures::get).
    ///
    /// ```
    /// use anfora_visit::pattern::{any, op};
    /// let activated =
    ///     op("matmul", [any(), any()]).optional(|x| op("nn.relu", [x]).capture("relu"));
    /// ```
    #[must_use]
    pub fn optional(self, wrap: impl FnOnce(Pattern) -> Pattern) -> Pattern {
        let hole = Arc::new(());
        let wrapping = wrap(Pattern::leaf(Node::Hole(Arc::clone(&hole))));
        let mut inner = self;
        let bare = inner.root;
        let start = inner.nodes.len();
        let root = wrapping.root + start as u32;
        inner.append(wrapping);
        for node in &mut inner.nodes[start..] {
            if matches!(node, Node::Hole(h) if Arc::ptr_eq(h, &hole)) {
                *node = Node::Link(bare);
            }
        }
        let at = inner.children.len() as u32;
        inner.children.extend([root, bare]);
        inner.finish(Node::Either(Children { start: at, len: 2 }))
    }

    // ---- Conditions ----

    /// Restricts the match to expressions with a single use, which is in the same block. Fusing
    /// such an expression into its user computes nothing twice.
    #[must_use]
    pub fn used_once(self) -> Pattern {
        self.filtered(Condition::UsedOnce)
    }

    /// Restricts the match to operator calls with this value of an attribute. An omitted attribute
    /// has its default.
    #[must_use]
    pub fn attr(self, name: &str, value: impl Into<AttrValue>) -> Pattern {
        self.filtered(Condition::Attr { name: name.into(), value: Wanted::Is(value.into()) })
    }

    /// Captures the value of an attribute by a name. If the name occurs twice, both values must be
    /// equal. The right side of a rule can use the name as the value of an attribute.
    #[must_use]
    pub fn attr_as(self, name: &str, capture: &str) -> Pattern {
        self.filtered(Condition::Attr { name: name.into(), value: Wanted::Named(capture.into()) })
    }

    /// Restricts the match by a test of all captures. The test is called when the rest of the
    /// pattern matches; if it fails, the other ways to match are tried.
    #[must_use]
    pub fn guard(self, test: impl Fn(&Match<'_>) -> bool + Send + Sync + 'static) -> Pattern {
        self.guard_by(Guard::new(test))
    }

    pub(crate) fn guard_by(self, test: Guard) -> Pattern {
        self.filtered(Condition::Guard(test))
    }

    /// Restricts the match to operator calls whose attributes pass a test.
    #[must_use]
    pub fn attrs_where(self, test: impl Fn(&AttrReader<'_>) -> bool + Send + Sync + 'static) -> Pattern {
        self.filtered(Condition::AttrsWhere(Arc::new(test)))
    }

    /// Restricts the match to tensors of an element type.
    #[must_use]
    pub fn dtype(self, dtype: DType) -> Pattern {
        self.type_where(move |types, ty| types.as_tensor(ty).is_some_and(|tensor| tensor.dtype == dtype))
    }

    /// Restricts the match to tensors of a rank.
    #[must_use]
    pub fn rank(self, rank: usize) -> Pattern {
        self.type_where(move |types, ty| shape_of(types, ty).is_some_and(|shape| shape.len() == rank))
    }

    /// Restricts the match to tensors of these constant extents; `None` is any extent.
    #[must_use]
    pub fn shape(self, extents: &[Option<usize>]) -> Pattern {
        let wanted: Box<[Option<usize>]> = extents.into();
        self.type_where(move |types, ty| {
            let extent = |dim| types.dims.as_constant(dim).and_then(|extent| usize::try_from(extent).ok());
            shape_of(types, ty).is_some_and(|found| {
                found.len() == wanted.len()
                    && found.iter().zip(&wanted).all(|(&dim, wanted)| wanted.is_none() || extent(dim) == *wanted)
            })
        })
    }

    /// Restricts the match to tensors whose extents are all constants.
    #[must_use]
    pub fn static_shape(self) -> Pattern {
        self.type_where(|types, ty| types.static_shape(ty).is_some())
    }

    /// Restricts the match to expressions with the same type as a capture, which may be anywhere in
    /// the pattern.
    #[must_use]
    pub fn same_type_as(self, capture: &str) -> Pattern {
        self.filtered(Condition::SameTypeAs(capture.into()))
    }

    /// Restricts the match to expressions whose type passes a test.
    #[must_use]
    pub fn type_where(self, test: impl Fn(&Types, TypeId) -> bool + Send + Sync + 'static) -> Pattern {
        self.filtered(Condition::TypeWhere(Arc::new(test)))
    }

    /// Restricts the match to expressions that pass a test.
    #[must_use]
    pub fn filter(self, test: impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static) -> Pattern {
        self.filtered(Condition::Where(Arc::new(test)))
    }

    // ---- Operands ----

    /// Lets the operator's two operands match in either order, whatever its row says.
    #[must_use]
    pub fn commutative(self) -> Pattern {
        self.in_order(Order::Either)
    }

    /// Matches the operator's operands only in the written order, even if its row says that they
    /// may be exchanged.
    #[must_use]
    pub fn ordered(self) -> Pattern {
        self.in_order(Order::AsWritten)
    }

    fn in_order(mut self, wanted: Order) -> Pattern {
        let mut at = self.root;
        loop {
            match &mut self.nodes[at as usize] {
                Node::Capture { inner, .. } | Node::Filter { inner, .. } => at = *inner,
                Node::Op { order, .. } => {
                    *order = wanted;
                    return self;
                }
                // The compiler of patterns reports that the node is not an operator.
                _ => return self.filtered(Condition::Order),
            }
        }
    }
}

/// Returns the extents of a tensor of known rank.
fn shape_of(types: &Types, ty: TypeId) -> Option<&[DimId]> {
    Some(types.as_tensor(ty)?.shape.as_ref()?)
}

/// Matches anything.
pub fn any() -> Pattern {
    Pattern::leaf(Node::Any)
}

/// Matches anything and captures it: `any().capture(name)`. On the right side of a rule, the
/// pattern stands for the expression that the left side captured.
pub fn capture(name: &str) -> Pattern {
    any().capture(name)
}

/// Matches any number of further operands, arguments or fields. `rest()` must be the last pattern
/// of its list.
pub fn rest() -> Pattern {
    Pattern::leaf(Node::Rest)
}

/// Matches a call of an operator with these operands (all of them, unless [`rest`] is the last). If
/// the operator's row says that its two operands may be exchanged, both orders match, and the
/// written order is tried first.
pub fn op(name: &str, operands: impl IntoIterator<Item = Pattern>) -> Pattern {
    let names = OpNames::One(name.into());
    Pattern::over(operands, |children| Node::Op { names, children, order: Order::Row })
}

/// Matches a call of one of several operators.
pub fn op_in<'n>(names: impl IntoIterator<Item = &'n str>, operands: impl IntoIterator<Item = Pattern>) -> Pattern {
    let names = OpNames::Several(names.into_iter().map(Arc::from).collect());
    Pattern::over(operands, |children| Node::Op { names, children, order: Order::Row })
}

/// Matches a call of any operator whose row passes a test.
///
/// ```
/// use anfora_ir::FusionPattern;
/// use anfora_visit::pattern::{any, op_where};
/// let elementwise = op_where(|row| row.fusion == FusionPattern::ElemWise, [any()]);
/// ```
pub fn op_where(
    test: impl Fn(&OpDef) -> bool + Send + Sync + 'static,
    operands: impl IntoIterator<Item = Pattern>,
) -> Pattern {
    let names = OpNames::Where(Arc::new(test));
    Pattern::over(operands, |children| Node::Op { names, children, order: Order::Row })
}

/// Matches a call of a function value with these arguments.
pub fn call(function: Pattern, arguments: impl IntoIterator<Item = Pattern>) -> Pattern {
    Pattern::over(std::iter::once(function).chain(arguments), Node::Call)
}

/// Matches a tuple with these fields.
pub fn tuple(fields: impl IntoIterator<Item = Pattern>) -> Pattern {
    Pattern::over(fields, Node::Tuple)
}

/// Matches a projection of a tuple's field, by number; `None` is any field.
pub fn proj(tuple: Pattern, index: impl Into<Option<u32>>) -> Pattern {
    let index = index.into();
    tuple.around(|tuple| Node::Proj { tuple, index })
}

/// Matches the first of several patterns that matches. For two patterns, write `a | b`.
pub fn any_of(alternatives: impl IntoIterator<Item = Pattern>) -> Pattern {
    Pattern::over(alternatives, Node::Either)
}

/// Matches a tensor literal of any shape whose elements all have this value.
///
/// An integer matches this number in any integer type, but no float. A float matches this number in
/// any float type, but no integer. So `literal(1) | literal(1.0)` matches one in any numeric type.
/// A float is rounded to the element type, as in the text format: `literal(0.1)` matches `0.1f`. If
/// the rounded float is zero or infinite, the pattern matches nothing. Zeros have signs:
/// `literal(0.0)` does not match `-0f`. Any NaN matches a NaN. A [`Literal`] matches only itself.
pub fn literal(value: impl Into<LiteralValue>) -> Pattern {
    Pattern::leaf(Node::Literal(value.into().0))
}

/// Matches any tensor literal.
pub fn any_literal() -> Pattern {
    literal_where(|_| true)
}

/// Matches a tensor literal that passes a test.
pub fn literal_where(test: impl Fn(&Literal) -> bool + Send + Sync + 'static) -> Pattern {
    Pattern::leaf(Node::Literal(LiteralCondition::Where(Arc::new(test))))
}

/// Matches the global function with this name, without `@`.
pub fn global(name: &str) -> Pattern {
    Pattern::leaf(Node::Global(name.into()))
}

/// Matches `none`, an omitted optional operand.
pub fn none() -> Pattern {
    Pattern::leaf(Node::NoneValue)
}

/// The argument of [`literal`]: a number, a boolean or a [`Literal`].
pub struct LiteralValue(LiteralCondition);

macro_rules! literal_values {
    ($($number:ty),+) => {$(
        impl From<$number> for LiteralValue {
            fn from(number: $number) -> LiteralValue {
                LiteralValue(LiteralCondition::Number(number.into()))
            }
        }
    )+};
}
literal_values!(bool, i32, i64, f32, f64, Number);

impl LiteralValue {
    /// Returns a whole number that matches any element type, like a number in the text of a rule:
    /// `2` also matches `2f`. The number 0 matches only integers, because floats have two zeros. On
    /// the right side of a rule, the value is a rank-0 tensor with the element type of the replaced
    /// node.
    pub fn whole(value: i64) -> LiteralValue {
        LiteralValue(LiteralCondition::Whole(value))
    }
}

impl From<Literal> for LiteralValue {
    fn from(literal: Literal) -> LiteralValue {
        LiteralValue(LiteralCondition::Is(literal))
    }
}

/// `a | b` matches `a`, or if `a` does not match, `b`.
impl std::ops::BitOr for Pattern {
    type Output = Pattern;

    fn bitor(self, other: Pattern) -> Pattern {
        any_of([self, other])
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({} nodes)", self.nodes.len())
    }
}

anfora_ir::brief_debug! { Candidate<'_>; LiteralValue; }

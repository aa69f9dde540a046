//! The single traversal of the project: a cursor with an explicit stack.
//!
//! It yields [`Step`]s in program order. A Let chain is walked by a loop, so its length takes no
//! stack. Calls, tuples and projections whose operands are all atoms are one step. Nested
//! expressions (operands that are calls themselves, branches, lambdas, chains as values) are
//! entered and left. A node with several uses is entered at its first use in program order; later
//! uses are [`Step::Seen`].
//!
//! The body may be edited between steps: [`Cursor`] describes the effect on the walk.

use std::convert::Infallible;
use std::marker::PhantomData;

use crate::core::body::Body;
use crate::core::entity::ExprId;
use crate::core::expr::{Expr, LetFlags};
use crate::walk::sparse_set::SparseSet;

/// A step of the cursor.
///
/// The steps of dataflow regions are yielded only by a walk that requests them
/// ([`Cursor::with_regions`]). In the steps of other walks they hold an [`Infallible`], so that a
/// `match` can omit them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Step<R = Infallible> {
    /// A block begins; the id is its first Let, or its tail if it has none.
    EnterBlock(ExprId, BlockKind),
    /// A Let, before its value.
    Let(ExprId),
    /// The same Let after its value: its variable is in scope from here on.
    Bound(ExprId),
    /// An atom: an operand of an entered node, a condition, a value or a tail.
    Atom(ExprId),
    /// A call, tuple or projection whose operands are all atoms (which are not yielded one by one).
    Flat(ExprId),
    /// A call, tuple or projection with an operand that is not an atom, an If or a Lambda, before
    /// its parts.
    Enter(ExprId),
    /// The same node after its parts.
    Exit(ExprId),
    /// A node that was walked before.
    Seen(ExprId),
    /// A block ends; the id is that of its beginning.
    ExitBlock(ExprId, BlockKind),
    /// A dataflow region begins with this Let, which is the next step.
    EnterRegion(R),
    /// A dataflow region ended with this Let, which was the last step.
    ExitRegion(R),
}

impl<R> Step<R> {
    /// Returns true for the steps that no walk of a body in A-normal form yields: a node with an
    /// operand or condition that is not an atom, a block as a value or operand, or a node that was
    /// walked before.
    ///
    /// Cost: one node.
    #[inline(always)]
    pub fn breaks_anf(&self, body: &Body) -> bool {
        match *self {
            Step::EnterBlock(_, kind) => matches!(kind, BlockKind::Value(_) | BlockKind::Operand(_)),
            Step::Enter(id) => match body.expr(id) {
                Expr::If { cond, .. } => !body.expr(cond).is_atom(),
                expr => !matches!(expr, Expr::Lambda { .. }),
            },
            Step::Seen(_) => true,
            _ => false,
        }
    }
}

/// The content of the steps of dataflow regions: [`ExprId`] if the walk yields these steps,
/// [`Infallible`] if it does not.
pub trait RegionSteps: sealed::Held {}

impl RegionSteps for Infallible {}
impl RegionSteps for ExprId {}

mod sealed {
    use super::{ExprId, Infallible};

    /// The value that the steps of regions hold.
    pub trait Held: Copy {
        const YIELDED: bool;

        /// Returns the content of the step of a Let, if such steps are yielded.
        ///
        /// Cost: one entry.
        fn of(id: ExprId) -> Option<Self>;
    }

    impl Held for Infallible {
        const YIELDED: bool = false;

        #[inline(always)]
        fn of(_: ExprId) -> Option<Infallible> {
            None
        }
    }

    impl Held for ExprId {
        const YIELDED: bool = true;

        #[inline(always)]
        fn of(id: ExprId) -> Option<ExprId> {
            Some(id)
        }
    }
}

/// The kind of a block, with its owner.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// The whole body, or another expression with which the walk began.
    Root,
    /// The first branch of an If (its id).
    Then(ExprId),
    /// The second branch of an If (its id).
    Else(ExprId),
    /// A Lambda (its id).
    Lambda(ExprId),
    /// A chain in the value of a Let (its id).
    Value(ExprId),
    /// A chain as an operand of a node (its id).
    Operand(ExprId),
}

#[derive(Copy, Clone)]
enum Frame {
    /// A chain, with the current Let or tail, the step that comes next, and the state of the region
    /// there.
    Block { start: ExprId, at: ExprId, kind: BlockKind, next: InBlock, region: InRegion },
    /// A node with several children, with the number of the next child.
    Node { id: ExprId, child: u32 },
}

/// The next action of the cursor in a block.
#[derive(Copy, Clone, PartialEq)]
enum InBlock {
    Begin,
    Link,
    Value,
    Bound,
    Advance,
    End,
}

#[derive(Copy, Clone, PartialEq)]
enum InRegion {
    Outside,
    /// [`Step::EnterRegion`] was yielded, and the [`Step::Let`] of the first Let comes next.
    Entered,
    Inside,
}

/// Walks a body in program order, with an explicit stack.
///
/// # What is yielded
/// A Let is [`Step::Let`], then its value, then [`Step::Bound`], then the rest of its chain. A
/// block begins with [`Step::EnterBlock`] and ends with [`Step::ExitBlock`]. A call, tuple or
/// projection whose operands are all atoms is one [`Step::Flat`], and its operands are not yielded
/// one by one. Any other node is entered ([`Step::Enter`]), its parts are yielded, and it is left
/// ([`Step::Exit`]). Other atoms are [`Step::Atom`]s. A node with several uses is walked once, at
/// its first use; later uses are [`Step::Seen`].
///
/// # Which edits are legal
/// The cursor borrows the body only during [`Cursor::next`]: between two steps every edit is legal.
/// One rule determines the effect of an edit on the walk: **a link is read once, when the walk
/// reaches it.** If a link is overwritten before that, the walk follows the new link. If it is
/// overwritten after that, the walk does not change.
///
/// Some links are still to be read after a step. They determine what you may do before the next
/// step:
///
/// - **[`Step::EnterBlock`]**: the first Let's value is still to be read. You may skip the block.
/// - **[`Step::Let`]**: the value of the Let and the link to its rest are still to be read. You may
///   replace the value: the new one is walked. You may skip the value.
/// - **[`Step::Bound`]**: the link to the rest is still to be read. You may put Lets in after it:
///   they are walked. You may take Lets out: they are not walked. You may replace the value: it is
///   not walked again.
/// - **[`Step::Enter`]**: the operands or blocks of the node are still to be read. You may replace
///   them: the new ones are walked. You may skip the node.
/// - **[`Step::EnterRegion`]**: the flags and value of the first Let are still to be read. You may
///   replace the value. You cannot skip the region: [`Cursor::skip`] does nothing here.
/// - **[`Step::ExitRegion`]**: the link to the rest is still to be read. You may put Lets in after
///   the last Let.
/// - **[`Step::Flat`], [`Step::Atom`], [`Step::Exit`], [`Step::Seen`], [`Step::ExitBlock`]**:
///   nothing of the expression is still to be read. You may overwrite it: it is not walked again.
///
/// Overwriting a node with several uses changes it for all of them. Nodes that are appended during
/// the walk are walked if a link that is still to be read leads to them. Ids stay the same: a body
/// is not compacted during a walk.
///
/// # Dataflow regions
/// A walk that is begun by [`Cursor::with_regions`] yields two more steps: [`Step::EnterRegion`]
/// before the [`Step::Let`] of a region's first Let, and [`Step::ExitRegion`] after the
/// [`Step::Bound`] of its last. A region is a sequence of adjacent Lets of one chain whose flags
/// say that they are in a dataflow region. It ends before a Let that begins another region. A block
/// inside of the region is not part of it, but may have regions of its own. The flags of a Let are
/// read when the walk reaches it. If they are overwritten after [`Step::Let`], the walk still
/// treats the Let as part of the region.
///
/// ```
/// use anfora_ir::{Cursor, Source, Step, parse_module};
///
/// # let ops = std::sync::Arc::new(anfora_ir::OpRegistry::new());
/// let text = "def @main(%x: ()) {
///   dataflow { let %a = (%x, %x); let %b = (%a,); output(%b); }
///   (%b, %b)
/// }";
/// let module = parse_module(Source::new("text", text), ops).unwrap();
/// let body = &module.functions().next().unwrap().1.body;
/// let (mut cursor, mut ends) = (Cursor::with_regions(body), Vec::new());
/// while let Some(step) = cursor.next(body) {
///     if let Step::EnterRegion(id) | Step::ExitRegion(id) = step {
///         ends.push(body.binding_name(&module.cx, id).unwrap());
///     }
/// }
/// assert_eq!(ends, ["a", "b"]);
/// ```
pub struct Cursor<R = Infallible> {
    stack: Vec<Frame>,
    seen: SparseSet<ExprId>,
    regions: PhantomData<R>,
}

impl Cursor {
    /// Returns a walk of a whole body.
    pub fn new(body: &Body) -> Cursor {
        Cursor::begin(body, body.root())
    }

    /// Returns a walk of one expression. Takes time and room in proportion to the expression, not
    /// to the body.
    pub fn at(body: &Body, root: ExprId) -> Cursor {
        Cursor::begin(body, root)
    }
}

impl Cursor<ExprId> {
    /// Returns a walk of a whole body that yields the begins and ends of dataflow regions.
    pub fn with_regions(body: &Body) -> Cursor<ExprId> {
        Cursor::begin(body, body.root())
    }

    /// Returns a walk of one expression that yields the begins and ends of dataflow regions.
    pub fn with_regions_at(body: &Body, root: ExprId) -> Cursor<ExprId> {
        Cursor::begin(body, root)
    }
}

impl<R: RegionSteps> Cursor<R> {
    fn begin(body: &Body, root: ExprId) -> Cursor<R> {
        let seen = if root == body.root() { SparseSet::of_whole(body.len()) } else { SparseSet::of_part(body.len()) };
        let mut cursor = Cursor { stack: Vec::new(), seen, regions: PhantomData };
        cursor.push_block(root, BlockKind::Root);
        cursor
    }

    /// Returns the number of blocks and nodes that are entered and not left.
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Returns the innermost Let that the walk has reached and not finished: the walk is at this
    /// Let or in its value. Searches the blocks and nodes that are entered and not left.
    pub fn binding(&self) -> Option<ExprId> {
        self.stack.iter().rev().find_map(|frame| match frame {
            Frame::Block { at, next: InBlock::Value | InBlock::Bound | InBlock::Advance, .. } => Some(*at),
            _ => None,
        })
    }

    /// Skips a part of the walk. The effect depends on the last step:
    ///
    /// - After [`Step::EnterBlock`] or [`Step::Enter`], leaves the block or node without walking
    ///   it. Its exit is not yielded.
    /// - After [`Step::Let`], skips the value. [`Step::Bound`] comes next.
    /// - After [`Step::EnterRegion`], does nothing. The first Let of the region comes next. To skip
    ///   its value, call this after its [`Step::Let`].
    /// - After any other step, leaves the innermost open block or node: the rest of it and its exit
    ///   are not yielded. If a dataflow region of that block is open, its [`Step::ExitRegion`] is
    ///   not yielded either.
    pub fn skip(&mut self) {
        match self.stack.last_mut() {
            Some(Frame::Block { next, .. }) if *next == InBlock::Value => *next = InBlock::Bound,
            Some(Frame::Block { region: InRegion::Entered, .. }) => {}
            Some(_) => {
                self.stack.pop();
            }
            None => {}
        }
    }

    /// Enters a node without a [`Step::Enter`]. Its operands, branches or block come next, each as
    /// a step of its own, then its [`Step::Exit`]. Call this after [`Step::Seen`] or [`Step::Flat`]
    /// of the node, to walk its parts (again). To walk the node in place of another, call it after
    /// [`Step::Enter`] of the other node and [`Cursor::skip`].
    pub fn enter(&mut self, id: ExprId) {
        self.seen.insert(id);
        self.stack.push(Frame::Node { id, child: 0 });
    }

    fn push_block(&mut self, start: ExprId, kind: BlockKind) {
        let (next, region) = (InBlock::Begin, InRegion::Outside);
        self.stack.push(Frame::Block { start, at: start, kind, next, region });
    }

    /// Returns the next step, or `None` at the end.
    // Inlined into each walk, so that the walk's match on the step merges with the code that makes
    // the step. This saves a sixth to a third of a walk's time.
    #[inline(always)]
    pub fn next(&mut self, body: &Body) -> Option<Step<R>> {
        loop {
            match self.stack.last_mut()? {
                Frame::Block { start, at, kind, next, region } => match *next {
                    // A Let of the chain, or the tail.
                    InBlock::Link => {
                        let id = *at;
                        if let Expr::Let { flags, .. } = body.expr(id) {
                            if let Some(first) = R::of(id) {
                                if *region == InRegion::Outside && flags.is_dataflow() {
                                    *region = InRegion::Entered;
                                    return Some(Step::EnterRegion(first));
                                }
                                if *region == InRegion::Entered {
                                    *region = InRegion::Inside;
                                }
                            }
                            *next = InBlock::Value;
                            return Some(Step::Let(id));
                        }
                        *next = InBlock::End;
                        if let Some(step) = self.visit(body, id, BlockKind::Root) {
                            return Some(step);
                        }
                    }
                    // The value of a Let.
                    InBlock::Value => {
                        *next = InBlock::Bound;
                        let id = *at;
                        if let Expr::Let { value, .. } = body.expr(id)
                            && let Some(step) = self.visit(body, value, BlockKind::Value(id))
                        {
                            return Some(step);
                        }
                    }
                    InBlock::Bound => {
                        *next = InBlock::Advance;
                        return Some(Step::Bound(*at));
                    }
                    // The link is read only when the caller requests the next step, since the
                    // caller may change it at `Bound`.
                    InBlock::Advance => {
                        if let Expr::Let { body: rest, .. } = body.expr(*at) {
                            if R::YIELDED
                                && *region == InRegion::Inside
                                && !matches!(body.expr(rest), Expr::Let { flags: LetFlags::DATAFLOW, .. })
                            {
                                *region = InRegion::Outside;
                                return R::of(*at).map(Step::ExitRegion);
                            }
                            *at = rest;
                        }
                        *next = InBlock::Link;
                    }
                    // The start and the end of the block.
                    InBlock::Begin => {
                        *next = InBlock::Link;
                        return Some(Step::EnterBlock(*start, *kind));
                    }
                    InBlock::End => {
                        let step = Step::ExitBlock(*start, *kind);
                        self.stack.pop();
                        return Some(step);
                    }
                },
                // The next part of a node.
                Frame::Node { id, child } => {
                    let (id, i) = (*id, *child as usize);
                    *child += 1;
                    if let Some(step) = self.child(body, id, i) {
                        return Some(step);
                    }
                }
            }
        }
    }

    /// Returns the step for child `i` of the node on top of the stack, or the exit of the node if
    /// it has no such child. Returns `None` if the child is a block, which is then on top of the
    /// stack.
    #[inline(always)]
    fn child(&mut self, body: &Body, id: ExprId, i: usize) -> Option<Step<R>> {
        let (child, kind) = match body.expr(id) {
            Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
                ((i < operands.len()).then(|| body.operand(operands, i)), BlockKind::Operand(id))
            }
            Expr::Proj { tuple, .. } => ((i == 0).then_some(tuple), BlockKind::Operand(id)),
            Expr::If { cond, then_block, else_block } => match i {
                0 => (Some(cond), BlockKind::Operand(id)),
                1 => {
                    self.push_block(then_block, BlockKind::Then(id));
                    return None;
                }
                2 => {
                    self.push_block(else_block, BlockKind::Else(id));
                    return None;
                }
                _ => (None, BlockKind::Root),
            },
            Expr::Lambda { body: block, .. } if i == 0 => {
                self.push_block(block, BlockKind::Lambda(id));
                return None;
            }
            _ => (None, BlockKind::Root),
        };
        match child {
            Some(operand) => self.visit(body, operand, kind),
            None => {
                self.stack.pop();
                Some(Step::Exit(id))
            }
        }
    }

    /// Returns the step for an expression in value, operand or tail position. Returns `None` if the
    /// expression is a block, which is then on top of the stack.
    #[inline(always)]
    fn visit(&mut self, body: &Body, id: ExprId, kind: BlockKind) -> Option<Step<R>> {
        let expr = body.expr(id);
        let flat = match expr {
            Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => {
                return Some(Step::Atom(id));
            }
            Expr::Let { .. } => {
                self.push_block(id, kind);
                return None;
            }
            Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
                body.operands(operands).iter().all(|&o| body.expr(o).is_atom())
            }
            Expr::Proj { tuple, .. } => body.expr(tuple).is_atom(),
            Expr::If { .. } | Expr::Lambda { .. } => false,
        };
        if !self.seen.insert(id) {
            return Some(Step::Seen(id));
        }
        if flat {
            return Some(Step::Flat(id));
        }
        self.stack.push(Frame::Node { id, child: 0 });
        Some(Step::Enter(id))
    }
}

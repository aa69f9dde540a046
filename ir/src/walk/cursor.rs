//! The one traversal of the project: a cursor with an explicit stack.
//!
//! It yields [`Step`]s in program order. A Let chain is walked by a loop, so its length costs no
//! stack; calls, tuples and projections whose operands are all atoms are one step; what nests
//! (operands that are calls themselves, branches, lambdas, chains as values) is entered and left. A
//! node that several others refer to is entered once, where it comes first in program order; later
//! references are [`Step::Seen`].
//!
//! The body may be edited between steps: [`Cursor`] says what that does to the walk.

use std::convert::Infallible;
use std::marker::PhantomData;

use crate::core::body::Body;
use crate::core::entity::ExprId;
use crate::core::expr::{Expr, LetFlags};
use crate::walk::part_set::PartSet;

/// What the cursor has come to.
///
/// The steps of dataflow regions come only in a walk that asks for them ([`Cursor::with_regions`]):
/// in the steps of other walks they hold an [`Infallible`], so that a `match` leaves them out.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Step<R = Infallible> {
    /// A block begins; the id is its first Let, or its tail if it has none.
    EnterBlock(ExprId, BlockKind),
    /// A link of a Let chain, before its value.
    Let(ExprId),
    /// The same link after its value: its variable is in scope from here on.
    Bound(ExprId),
    /// An atom: an operand of a node that was entered, a condition, a value or a tail.
    Atom(ExprId),
    /// A call, tuple or projection whose operands are all atoms (not yielded one by one).
    Flat(ExprId),
    /// A call, tuple or projection with an operand that is not an atom, an If or a Lambda, before
    /// what is in it.
    Enter(ExprId),
    /// The same node after what is in it.
    Exit(ExprId),
    /// A node that was walked before.
    Seen(ExprId),
    /// A block ends; the id is that of its beginning.
    ExitBlock(ExprId, BlockKind),
    /// A dataflow region begins with this Let, which comes next.
    EnterRegion(R),
    /// A dataflow region ended with this Let, which was the last step.
    ExitRegion(R),
}

impl<R> Step<R> {
    /// Returns true for the steps to which no walk of a body in A-normal form comes: a node with an
    /// operand or condition that is no atom, a block as a value or operand, a node that was walked
    /// before.
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

/// True if a walk yields the steps of dataflow regions: [`ExprId`], which they hold, or
/// [`Infallible`].
pub trait RegionSteps: sealed::Held {}

impl RegionSteps for Infallible {}
impl RegionSteps for ExprId {}

mod sealed {
    use super::{ExprId, Infallible};

    /// The value that the steps of regions hold.
    pub trait Held: Copy {
        const YIELDED: bool;

        /// Returns what the steps of a Let hold, if they are yielded.
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

/// What a block is the block of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// The whole body, or whatever else the walk began with.
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
    /// A chain: where in it, what comes next, and whether that is in a region.
    Block { start: ExprId, at: ExprId, kind: BlockKind, next: InBlock, region: InRegion },
    /// A node with several children: the next one's number.
    Node { id: ExprId, child: u32 },
}

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
    /// It was announced, and its first Let was not.
    Entered,
    Inside,
}

/// Walks a body in program order, on a stack of its own.
///
/// # What is yielded
/// A Let is [`Step::Let`], then its value, then [`Step::Bound`], then the rest of its chain. A
/// block begins with [`Step::EnterBlock`] and ends with [`Step::ExitBlock`]. A call, tuple or
/// projection whose operands are all atoms is one [`Step::Flat`], and its operands are not yielded
/// one by one; what nests is entered ([`Step::Enter`]), its parts are yielded, and it is left
/// ([`Step::Exit`]). Atoms that stand elsewhere are [`Step::Atom`]s. A node that several others
/// refer to is walked once, where it comes first; after that it is [`Step::Seen`].
///
/// # Which edits are legal
/// The cursor borrows the body only during [`Cursor::next`]: between two steps every edit is legal.
/// What it does to the walk is decided by one rule: **a link is read once, when the walk comes to
/// it.** A link that is overwritten before that is followed to where it leads then; one that is
/// overwritten after that has no effect on the walk.
///
/// | after | is still to be read | so, before the next step, you may |
/// |---|---|---|
/// | [`Step::EnterBlock`] | the first Let's value | skip the block |
/// | [`Step::Let`] | the value of the Let, the link to its rest | replace the value: the new one is walked; skip the value |
/// | [`Step::Bound`] | the link to the rest | put Lets in after it (they are walked) or take them out (they are not), replace the value (not walked again) |
/// | [`Step::Enter`] | the operands or blocks of the node | replace them: the new ones are walked; skip the node |
/// | [`Step::EnterRegion`] | the flags and value of the first Let | replace the value |
/// | [`Step::ExitRegion`] | the link to the rest | put Lets in after the last Let |
/// | [`Step::Flat`], [`Step::Atom`], [`Step::Exit`], [`Step::Seen`], [`Step::ExitBlock`] | nothing of it | overwrite it: it is not walked again |
///
/// Overwriting a node that several links lead to changes it for all of them. Nodes that are
/// appended during the walk are walked if a link that is still to be read leads to them. Ids stay
/// what they are: a body is not compacted during a walk.
///
/// # Dataflow regions
/// A walk that is begun by [`Cursor::with_regions`] yields two steps more: [`Step::EnterRegion`]
/// before the [`Step::Let`] of a region's first Let, and [`Step::ExitRegion`] after the
/// [`Step::Bound`] of its last. A region is a run of Lets of one chain that are in a region, up to
/// one that begins another; what is in a block inside of it is in no region, or in one of that
/// block. The flags of a Let are read when the walk comes to it, and the region ends before the
/// first Let that does not go on with it: a Let whose flags are overwritten after [`Step::Let`]
/// stays in the region of the walk.
///
/// ```
/// use anfora_ir::{Cursor, Source, Step, parse_module};
///
/// # let ops = std::sync::Arc::new(anfora_ir::OpRegistry::new());
/// let text = "def @main(%x: ()) { dataflow { let %a = (%x, %x); let %b = (%a,); output(%b); } (%b, %b) }";
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
    seen: PartSet<ExprId>,
    regions: PhantomData<R>,
}

impl Cursor {
    /// Returns a walk of a whole body.
    pub fn new(body: &Body) -> Cursor {
        Cursor::begin(body, body.root())
    }

    /// Returns a walk of what is under one expression. Takes time and room in proportion to that,
    /// not to the body.
    pub fn at(body: &Body, root: ExprId) -> Cursor {
        Cursor::begin(body, root)
    }
}

impl Cursor<ExprId> {
    /// Returns a walk of a whole body that yields where dataflow regions begin and end.
    pub fn with_regions(body: &Body) -> Cursor<ExprId> {
        Cursor::begin(body, body.root())
    }

    /// Returns such a walk of what is under one expression.
    pub fn with_regions_at(body: &Body, root: ExprId) -> Cursor<ExprId> {
        Cursor::begin(body, root)
    }
}

impl<R: RegionSteps> Cursor<R> {
    fn begin(body: &Body, root: ExprId) -> Cursor<R> {
        let seen = if root == body.root() { PartSet::of_whole(body.len()) } else { PartSet::of_part(body.len()) };
        let mut cursor = Cursor { stack: Vec::new(), seen, regions: PhantomData };
        cursor.push_block(root, BlockKind::Root);
        cursor
    }

    /// Returns how many blocks and nodes are entered and not left.
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Returns the innermost Let that the walk is at, or in whose value it is. Looks through what
    /// is entered and not left.
    pub fn binding(&self) -> Option<ExprId> {
        self.stack.iter().rev().find_map(|frame| match frame {
            Frame::Block { at, next: InBlock::Value | InBlock::Bound | InBlock::Advance, .. } => Some(*at),
            _ => None,
        })
    }

    /// Leaves what the last step entered ([`Step::EnterBlock`], [`Step::Enter`]) without walking
    /// it: its exit is not yielded. After [`Step::Let`], leaves out its value.
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

    /// Walks what is in a node once more, or in another node's place: after [`Step::Seen`] or
    /// [`Step::Flat`] of the node itself, or after [`Step::Enter`] and [`Cursor::skip`] of the
    /// other. Its operands, branches or block come next, each as a step of its own, then its
    /// [`Step::Exit`].
    pub fn enter(&mut self, id: ExprId) {
        self.seen.insert(id);
        self.stack.push(Frame::Node { id, child: 0 });
    }

    fn push_block(&mut self, start: ExprId, kind: BlockKind) {
        let (next, region) = (InBlock::Begin, InRegion::Outside);
        self.stack.push(Frame::Block { start, at: start, kind, next, region });
    }

    /// The next step, or `None` at the end.
    // Inlined into each walk, whose match on the step then joins with the one that makes it: a
    // sixth to a third of a walk's time.
    #[inline(always)]
    pub fn next(&mut self, body: &Body) -> Option<Step<R>> {
        loop {
            match self.stack.last_mut()? {
                Frame::Block { start, at, kind, next, region } => match *next {
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
                    // Not before the caller asks for the next step, since it may change the link at
                    // `Bound`.
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
                Frame::Node { id, child } => {
                    let (id, i) = (*id, *child as usize);
                    *child += 1;
                    let (next, kind) = match body.expr(id) {
                        Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
                            ((i < operands.len()).then(|| body.operand(operands, i)), BlockKind::Operand(id))
                        }
                        Expr::Proj { tuple, .. } => ((i == 0).then_some(tuple), BlockKind::Operand(id)),
                        Expr::If { cond, then_block, else_block } => match i {
                            0 => (Some(cond), BlockKind::Operand(id)),
                            1 => {
                                self.push_block(then_block, BlockKind::Then(id));
                                continue;
                            }
                            2 => {
                                self.push_block(else_block, BlockKind::Else(id));
                                continue;
                            }
                            _ => (None, BlockKind::Root),
                        },
                        Expr::Lambda { body: block, .. } if i == 0 => {
                            self.push_block(block, BlockKind::Lambda(id));
                            continue;
                        }
                        _ => (None, BlockKind::Root),
                    };
                    match next {
                        Some(operand) => {
                            if let Some(step) = self.visit(body, operand, kind) {
                                return Some(step);
                            }
                        }
                        None => {
                            self.stack.pop();
                            return Some(Step::Exit(id));
                        }
                    }
                }
            }
        }
    }

    /// Returns the step for an expression in value, operand or tail position; `None` if a block was
    /// pushed.
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

//! The rows of a function: its signature, its Lets and the tails of its blocks, in program order.

use anfora_ir::{
    BlockKind, Body, Context, Cursor, EntityId, Expr, ExprId, Function, Step, TypeId, signature_line, statement_line,
};

/// A row of a function.
#[derive(Copy, Clone, Debug)]
pub(super) struct Row {
    pub(super) kind: RowKind,
    /// The number of blocks around it.
    pub(super) depth: u8,
    /// The Let, or the tail.
    id: ExprId,
    /// The row that this row is compared with has the same key.
    pub(super) key: RowKey,
}

/// The kind of a row and the variable that it belongs to: a Let's own, or that of the Let around a
/// tail. The variable is 0 if there is none.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct RowKey {
    pub(super) variable: u32,
    pub(super) kind: RowKind,
}

/// The kind of a row.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum RowKind {
    Signature,
    Let,
    /// The tail of a function, a `fn`, a block as a value, or the first branch of an If.
    Tail,
    /// The tail of the second branch of an If.
    ElseTail,
    /// `then`
    Then,
    /// `else`
    Else,
    /// `dataflow {`
    Region,
    /// `}`
    EndOfRegion,
}

/// The deepest indentation of a row.
const DEEPEST: usize = 40;

/// The meaning of the variables in keys.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum KeyedBy {
    /// Nodes, for bodies that have the same ids.
    Node,
    /// Names, for bodies that have different ids.
    Name,
}

/// The rows of a function, and the number of calls of each operator in it.
pub(super) struct Rows<'f> {
    cx: &'f Context,
    pub(super) function: &'f Function,
    pub(super) keyed_by: KeyedBy,
    pub(super) rows: Vec<Row>,
    /// By the index of the operator.
    pub(super) operators: Vec<u64>,
}

/// A block that is being walked.
struct OpenBlock {
    /// The rest of its chain.
    tail: ExprId,
    /// The variable of the Let around it.
    variable: u32,
    is_else: bool,
    /// True if the row of the tail is written.
    is_done: bool,
}

impl<'f> Rows<'f> {
    /// Returns the rows of a function. Linear.
    pub(super) fn of(cx: &'f Context, function: &'f Function, keyed_by: KeyedBy) -> Rows<'f> {
        let body = &function.body;
        let mut rows = Rows { cx, function, keyed_by, rows: Vec::new(), operators: Vec::new() };
        rows.push(RowKind::Signature, 0, body.root(), 0);
        if function.is_definition() {
            rows.rows.reserve(body.len() / 3);
            rows.walk(body);
        }
        rows
    }

    fn walk(&mut self, body: &Body) {
        let mut cursor = Cursor::with_regions(body);
        let mut blocks: Vec<OpenBlock> = Vec::new();
        let mut lets: Vec<u32> = Vec::new();
        let mut depth = 0;
        while let Some(step) = cursor.next(body) {
            match step {
                Step::EnterBlock(start, kind) => {
                    let variable = lets.last().copied().unwrap_or(0);
                    match kind {
                        BlockKind::Then(_) => self.push(RowKind::Then, depth, start, variable),
                        BlockKind::Else(_) => self.push(RowKind::Else, depth, start, variable),
                        _ => {}
                    }
                    depth += 1;
                    let is_else = matches!(kind, BlockKind::Else(_));
                    blocks.push(OpenBlock { tail: start, variable, is_else, is_done: false });
                }
                Step::ExitBlock(..) => {
                    if let Some(block) = blocks.pop().filter(|block| !block.is_done) {
                        self.tail(&block, depth);
                    }
                    depth -= 1;
                }
                Step::Let(id) => {
                    let variable = self.variable(body, id);
                    self.push(RowKind::Let, depth, id, variable);
                    lets.push(variable);
                }
                Step::Bound(id) => {
                    lets.pop();
                    if let (Expr::Let { body: rest, .. }, Some(block)) = (body.expr(id), blocks.last_mut()) {
                        block.tail = rest;
                    }
                }
                Step::Flat(id) | Step::Enter(id) => {
                    self.count(body.expr(id));
                    // The row of a tail comes before the blocks in it.
                    if let Some(block) = blocks.last_mut().filter(|block| block.tail == id && !block.is_done) {
                        block.is_done = true;
                        let block = OpenBlock { ..*block };
                        self.tail(&block, depth);
                    }
                }
                Step::EnterRegion(id) => {
                    let variable = self.variable(body, id);
                    self.push(RowKind::Region, depth, id, variable);
                }
                Step::ExitRegion(id) => {
                    let variable = self.variable(body, id);
                    self.push(RowKind::EndOfRegion, depth, id, variable);
                }
                Step::Atom(_) | Step::Exit(_) | Step::Seen(_) => {}
            }
        }
    }

    fn tail(&mut self, block: &OpenBlock, depth: usize) {
        let kind = if block.is_else { RowKind::ElseTail } else { RowKind::Tail };
        self.push(kind, depth, block.tail, block.variable);
    }

    fn push(&mut self, kind: RowKind, depth: usize, id: ExprId, variable: u32) {
        let depth = depth.min(DEEPEST) as u8;
        self.rows.push(Row { kind, depth, id, key: RowKey { variable, kind } });
    }

    /// Returns the variable of a Let as keys have it.
    fn variable(&self, body: &Body, id: ExprId) -> u32 {
        let Expr::Let { var, .. } = body.expr(id) else { return 0 };
        match self.keyed_by {
            KeyedBy::Node => var.index() as u32 + 1,
            KeyedBy::Name => body.var_name(var).map_or(0, |name| name.index() as u32 + 1),
        }
    }

    fn count(&mut self, expr: Expr) {
        if let Expr::CallOp { op, .. } = expr {
            if self.operators.len() <= op.index() {
                self.operators.resize(op.index() + 1, 0);
            }
            self.operators[op.index()] += 1;
        }
    }

    /// Returns the text of a row, without its indentation.
    pub(super) fn text(&self, row: Row) -> String {
        let word = match row.kind {
            RowKind::Signature => return signature_line(self.cx, self.function),
            RowKind::Let | RowKind::Tail | RowKind::ElseTail => {
                return statement_line(self.cx, &self.function.body, row.id);
            }
            RowKind::Then => "then",
            RowKind::Else => "else",
            RowKind::Region => "dataflow {",
            RowKind::EndOfRegion => "}",
        };
        word.to_string()
    }

    /// Returns the name of the variable that a row binds.
    pub(super) fn binding(&self, row: Row) -> Option<&'f str> {
        let body = &self.function.body;
        if row.kind == RowKind::Let { body.binding_name(self.cx, row.id) } else { None }
    }

    /// Returns the type of the variable that a row binds, or of a tail that is no block.
    pub(super) fn ty(&self, row: Row) -> Option<TypeId> {
        let body = &self.function.body;
        match (row.kind, body.expr(row.id)) {
            (RowKind::Let, Expr::Let { var, .. }) => Some(body.ty(var.expr())),
            (RowKind::Let, _) => None,
            (RowKind::Tail | RowKind::ElseTail, Expr::Let { .. }) => None,
            (RowKind::Tail | RowKind::ElseTail, _) => Some(body.ty(row.id)),
            _ => None,
        }
    }

    /// Returns true if this row is the same as another one with the same key.
    pub(super) fn is_same(&self, row: Row, other: &Rows<'_>, in_other: Row) -> bool {
        let (a, b) = (&self.function.body, &other.function.body);
        if row.depth != in_other.depth || self.ty(row) != other.ty(in_other) {
            return false;
        }
        let is_same = match row.kind {
            RowKind::Signature => None,
            RowKind::Then | RowKind::Else | RowKind::Region | RowKind::EndOfRegion => Some(true),
            RowKind::Let => match (a.expr(row.id), b.expr(in_other.id)) {
                (Expr::Let { var: x, value: v, .. }, Expr::Let { var: y, value: w, .. }) => {
                    if a.var_name(x) == b.var_name(y) { is_same_value((a, v), (b, w)) } else { Some(false) }
                }
                _ => Some(false),
            },
            RowKind::Tail | RowKind::ElseTail => is_same_value((a, row.id), (b, in_other.id)),
        };
        is_same.unwrap_or_else(|| self.text(row) == other.text(in_other))
    }
}

/// Returns true if two values are written alike, apart from the blocks in them. `None` if the texts
/// have to be compared: a `fn`, or a value with an operand that no Let binds.
fn is_same_value((a, v): (&Body, ExprId), (b, w): (&Body, ExprId)) -> Option<bool> {
    match (a.expr(v), b.expr(w)) {
        (Expr::CallOp { op, operands, attrs }, Expr::CallOp { op: other, operands: theirs, attrs: given }) => {
            if op != other || attrs != given {
                return Some(false);
            }
            are_same_atoms((a, a.operands(operands)), (b, b.operands(theirs)))
        }
        (Expr::Call { operands, attrs }, Expr::Call { operands: theirs, attrs: given }) => {
            if attrs != given {
                return Some(false);
            }
            are_same_atoms((a, a.operands(operands)), (b, b.operands(theirs)))
        }
        (Expr::Tuple(fields), Expr::Tuple(theirs)) => are_same_atoms((a, a.operands(fields)), (b, b.operands(theirs))),
        (Expr::Proj { tuple, index }, Expr::Proj { tuple: other, index: i }) => {
            if index == i {
                is_same_atom((a, tuple), (b, other))
            } else {
                Some(false)
            }
        }
        (Expr::If { cond, .. }, Expr::If { cond: other, .. }) => is_same_atom((a, cond), (b, other)),
        (Expr::Lambda { .. }, Expr::Lambda { .. }) => None,
        (Expr::Let { .. }, Expr::Let { .. }) => Some(true),
        (ours, theirs) if ours.is_atom() && theirs.is_atom() => is_same_atom((a, v), (b, w)),
        _ => Some(false),
    }
}

fn are_same_atoms((a, ours): (&Body, &[ExprId]), (b, theirs): (&Body, &[ExprId])) -> Option<bool> {
    if ours.len() != theirs.len() {
        return Some(false);
    }
    for (&v, &w) in ours.iter().zip(theirs) {
        match is_same_atom((a, v), (b, w)) {
            Some(true) => {}
            other => return other,
        }
    }
    Some(true)
}

fn is_same_atom((a, v): (&Body, ExprId), (b, w): (&Body, ExprId)) -> Option<bool> {
    match (a.expr(v), b.expr(w)) {
        // Variables without a name are written as their numbers.
        (Expr::Var { name, .. }, Expr::Var { name: other, .. }) => Some(name == other && (name.is_some() || v == w)),
        (ours, theirs) if ours.is_atom() || theirs.is_atom() => Some(ours == theirs),
        _ => None,
    }
}

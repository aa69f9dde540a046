//! The rows of a function in program order: its signature, its Lets, the tails of its blocks, and
//! the words between blocks.

use anfora_ir::{
    BlockKind, Body, Context, Cursor, EntityId, Expr, ExprId, Function, FunctionLine, OperandList, Step, TypeId, VarId,
    line_name, signature_line, statement_line,
};
use rustc_hash::FxHashSet;

use super::LineKind;

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

/// The line of a row: its text, its operator, and the variables in it as lines spell them.
pub(super) struct RowLine {
    pub(super) kind: LineKind,
    pub(super) text: String,
    pub(super) is_abridged: bool,
    pub(super) label: String,
    pub(super) binding: Option<String>,
    pub(super) parameters: Vec<String>,
    pub(super) uses: Vec<String>,
}

impl RowLine {
    fn word(word: &str) -> RowLine {
        RowLine {
            kind: LineKind::Other,
            text: word.to_string(),
            is_abridged: false,
            label: String::new(),
            binding: None,
            parameters: Vec::new(),
            uses: Vec::new(),
        }
    }
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

    /// Returns the line of a row.
    pub(super) fn line(&self, row: Row) -> RowLine {
        let body = &self.function.body;
        let spelled = |vars: Vec<VarId>| {
            let mut seen = FxHashSet::default();
            let first = vars.into_iter().filter(|&var| seen.insert(var));
            first.map(|var| line_name(self.cx, body, var)).collect()
        };
        let (kind, line, label) = match row.kind {
            RowKind::Signature => (LineKind::Signature, signature_line(self.cx, self.function), String::new()),
            RowKind::Let | RowKind::Tail | RowKind::ElseTail => {
                let (kind, value) = match (row.kind, body.expr(row.id)) {
                    (RowKind::Let, Expr::Let { value, .. }) => (LineKind::Let, value),
                    _ => (LineKind::Other, row.id),
                };
                (kind, statement_line(self.cx, body, row.id), self.label(value))
            }
            RowKind::Then => return RowLine::word("then"),
            RowKind::Else => return RowLine::word("else"),
            RowKind::Region => return RowLine::word("dataflow {"),
            RowKind::EndOfRegion => return RowLine::word("}"),
        };
        let FunctionLine { text, is_abridged, parameters, uses } = line;
        let binding = match (kind, body.expr(row.id)) {
            (LineKind::Let, Expr::Let { var, .. }) => Some(line_name(self.cx, body, var)),
            _ => None,
        };
        RowLine { kind, text, is_abridged, label, binding, parameters: spelled(parameters), uses: spelled(uses) }
    }

    /// Returns the operator of a value, or what else the value is.
    fn label(&self, value: ExprId) -> String {
        let body = &self.function.body;
        let global = |global| format!("@{}", self.cx.global_name(global));
        let word = match body.expr(value) {
            Expr::CallOp { op, .. } => return self.cx.ops.get(op).name.to_string(),
            Expr::Global(of) => return global(of),
            Expr::Call { operands, .. } => match body.operands(operands).first().map(|&callee| body.expr(callee)) {
                Some(Expr::Global(of)) => return global(of),
                _ => "call",
            },
            Expr::Tuple(_) => "tuple",
            Expr::Proj { .. } => "field",
            Expr::If { .. } => "if",
            Expr::Lambda { .. } => "fn",
            Expr::Let { .. } => "block",
            Expr::Var { .. } => "alias",
            Expr::Literal(_) | Expr::Op(_) | Expr::None => "constant",
        };
        word.to_string()
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

    /// Returns true if this row shows the same as another one of the same kind. If that cannot be
    /// told, the result is false.
    pub(super) fn is_same(&self, row: Row, other: &Rows<'_>, in_other: Row) -> bool {
        let (a, b) = (&self.function.body, &other.function.body);
        if row.kind != in_other.kind || row.depth != in_other.depth || self.ty(row) != other.ty(in_other) {
            return false;
        }
        let is_same = match row.kind {
            RowKind::Signature => Some(is_same_signature(self.function, other.function)),
            RowKind::Then | RowKind::Else | RowKind::Region | RowKind::EndOfRegion => Some(true),
            RowKind::Let => match (a.expr(row.id), b.expr(in_other.id)) {
                (Expr::Let { var: x, value: v, .. }, Expr::Let { var: y, value: w, .. }) => {
                    if is_same_variable((a, x), (b, y)) { is_same_value((a, v), (b, w)) } else { Some(false) }
                }
                _ => Some(false),
            },
            RowKind::Tail | RowKind::ElseTail => is_same_value((a, row.id), (b, in_other.id)),
        };
        is_same.unwrap_or_else(|| {
            let (ours, theirs) = (self.line(row), other.line(in_other));
            ours.text == theirs.text && !ours.is_abridged && !theirs.is_abridged
        })
    }
}

/// Returns true if two signatures are written alike, and in full.
fn is_same_signature(f: &Function, g: &Function) -> bool {
    let (a, b) = (&f.body, &g.body);
    // A result type that is not stated is that of the block.
    let result = |f: &Function| f.ret.unwrap_or_else(|| f.body.type_of(f.body.root()));
    let heads = [f, g].map(|f| (f.global(), f.visibility, f.is_definition(), f.attrs, result(f)));
    heads[0] == heads[1]
        && a.params().len() == b.params().len()
        && a.params().iter().zip(b.params()).all(|(&x, &y)| is_same_parameter((a, x), (b, y)))
}

fn is_same_parameter((a, x): (&Body, VarId), (b, y): (&Body, VarId)) -> bool {
    a.ty(x.expr()) == b.ty(y.expr()) && is_same_variable((a, x), (b, y))
}

/// Returns true if two variables are spelled alike.
fn is_same_variable((a, x): (&Body, VarId), (b, y): (&Body, VarId)) -> bool {
    let name = a.var_name(x);
    name == b.var_name(y) && (name.is_some() || (x == y && a.generation() == b.generation()))
}

/// The number of nested expressions up to which two values are compared.
const COMPARED: usize = 1000;

/// Returns true if two values are written alike, apart from the blocks in them. `None` if too many
/// expressions nest in them.
fn is_same_value((a, v): (&Body, ExprId), (b, w): (&Body, ExprId)) -> Option<bool> {
    // The pairs of nested expressions that remain to be compared.
    let mut open = Vec::new();
    let mut next = Some((v, w));
    for _ in 0..COMPARED {
        let Some((v, w)) = next else { return Some(true) };
        let mut are_same = |ours: OperandList, theirs: OperandList| {
            ours.len() == theirs.len()
                && a.operands(ours)
                    .iter()
                    .zip(b.operands(theirs))
                    .all(|(&v, &w)| is_same_operand((a, v), (b, w), &mut open))
        };
        let is_same = match (a.expr(v), b.expr(w)) {
            (Expr::CallOp { op, operands, attrs }, Expr::CallOp { op: other, operands: theirs, attrs: given }) => {
                op == other && attrs == given && are_same(operands, theirs)
            }
            (Expr::Call { operands, attrs }, Expr::Call { operands: theirs, attrs: given }) => {
                attrs == given && are_same(operands, theirs)
            }
            (Expr::Tuple(fields), Expr::Tuple(theirs)) => are_same(fields, theirs),
            (Expr::Proj { tuple, index }, Expr::Proj { tuple: other, index: i }) => {
                index == i && is_same_operand((a, tuple), (b, other), &mut open)
            }
            (Expr::If { cond, .. }, Expr::If { cond: other, .. }) => is_same_operand((a, cond), (b, other), &mut open),
            (Expr::Lambda { lambda, .. }, Expr::Lambda { lambda: other, .. }) => {
                let (ours, theirs) = (a.lambda(lambda), b.lambda(other));
                let mut params = a.lambda_params(lambda).zip(b.lambda_params(other));
                (ours.attrs, ours.ret, ours.params.len()) == (theirs.attrs, theirs.ret, theirs.params.len())
                    && params.all(|(x, y)| is_same_parameter((a, x), (b, y)))
            }
            (Expr::Let { .. }, Expr::Let { .. }) => true,
            _ => is_same_operand((a, v), (b, w), &mut open) && a.expr(v).is_atom(),
        };
        if !is_same {
            return Some(false);
        }
        next = open.pop();
    }
    None
}

/// Returns false if two operands are written differently. Leaves expressions that nest to `open`.
fn is_same_operand((a, v): (&Body, ExprId), (b, w): (&Body, ExprId), open: &mut Vec<(ExprId, ExprId)>) -> bool {
    match (a.as_var(v), b.as_var(w), a.expr(v), b.expr(w)) {
        (Some(x), Some(y), ..) => is_same_variable((a, x), (b, y)),
        (_, _, ours, theirs) if ours.is_atom() || theirs.is_atom() => ours == theirs,
        _ => {
            open.push((v, w));
            true
        }
    }
}

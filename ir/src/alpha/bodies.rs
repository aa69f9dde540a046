//! Two expressions side by side.

use rustc_hash::{FxHashMap, FxHashSet};

use super::tables::Tables;
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, EntityId, ExprId, IdSet, NameId, TypeId};
use crate::core::expr::Expr;
use crate::tables::attrs::Attr;

/// Which node of the left body stands for which of the right.
pub(super) trait Pairing {
    fn get(&self, left: ExprId) -> Option<ExprId>;
    fn set(&mut self, left: ExprId, right: ExprId);
    /// Notes that a node of the right body was compared; whether it was not before.
    fn visit_right(&mut self, right: ExprId) -> bool;
}

/// For whole bodies.
pub(super) struct Dense {
    pairs: Vec<Option<ExprId>>,
    visited: IdSet<ExprId>,
}

impl Dense {
    pub(super) fn new(left: &Body, right: &Body) -> Dense {
        Dense { pairs: vec![None; left.len()], visited: IdSet::with_capacity(right.len()) }
    }
}

impl Pairing for Dense {
    #[inline]
    fn get(&self, left: ExprId) -> Option<ExprId> {
        self.pairs[left.index()]
    }
    #[inline]
    fn set(&mut self, left: ExprId, right: ExprId) {
        self.pairs[left.index()] = Some(right);
    }
    #[inline]
    fn visit_right(&mut self, right: ExprId) -> bool {
        self.visited.insert(right)
    }
}

/// For parts of a body: takes memory for what is visited only.
#[derive(Default)]
struct Sparse {
    pairs: FxHashMap<ExprId, ExprId>,
    visited: FxHashSet<ExprId>,
}

impl Pairing for Sparse {
    fn get(&self, left: ExprId) -> Option<ExprId> {
        self.pairs.get(&left).copied()
    }
    fn set(&mut self, left: ExprId, right: ExprId) {
        self.pairs.insert(left, right);
    }
    fn visit_right(&mut self, right: ExprId) -> bool {
        self.visited.insert(right)
    }
}

/// True if tools' metadata counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Meta {
    Ignored,
    Compared,
}

/// Where two expressions differ: the Lets that the place is in, outermost first, and what differs
/// there.
pub(super) struct Mismatch {
    pub(super) path: Vec<(ExprId, ExprId)>,
    pub(super) what: String,
}

enum Task {
    /// Two expressions, and how many Lets they are in.
    Compare(ExprId, ExprId, usize),
}

/// Compares two expressions. Program order, an explicit stack, a loop along Let chains.
pub(super) fn compare<P: Pairing>(
    tables: &mut Tables<'_>,
    (left, right): (&Body, &Body),
    (l, r): (ExprId, ExprId),
    pairs: &mut P,
    meta: Meta,
) -> Result<(), Mismatch> {
    let mut walk = Walk { tables, left, right, pairs, meta, tasks: vec![Task::Compare(l, r, 0)], path: Vec::new() };
    match walk.run() {
        Ok(()) => Ok(()),
        Err(what) => Err(Mismatch { path: walk.path, what }),
    }
}

pub(super) fn equal_within(cx: &Context, body: &Body, a: ExprId, b: ExprId) -> bool {
    if a == b {
        return true;
    }
    let mut tables = Tables::within(cx);
    let equal = compare(&mut tables, (body, body), (a, b), &mut Sparse::default(), Meta::Ignored).is_ok();
    equal && tables.settle().is_none()
}

struct Walk<'w, 'a, P> {
    tables: &'w mut Tables<'a>,
    left: &'w Body,
    right: &'w Body,
    pairs: &'w mut P,
    meta: Meta,
    tasks: Vec<Task>,
    path: Vec<(ExprId, ExprId)>,
}

impl<P: Pairing> Walk<'_, '_, P> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(Task::Compare(mut l, mut r, depth)) = self.tasks.pop() {
            self.path.truncate(depth);
            loop {
                match (self.left.expr(l), self.right.expr(r)) {
                    (
                        Expr::Let { var, value, body, flags },
                        Expr::Let { var: other_var, value: other_value, body: other_body, flags: other_flags },
                    ) => {
                        self.path.push((l, r));
                        if flags != other_flags {
                            return Err("dataflow regions begin or end at different places".to_string());
                        }
                        self.bind(var.expr(), other_var.expr())?;
                        if !self.compare_shallow(value, other_value)? {
                            self.tasks.push(Task::Compare(body, other_body, depth));
                            self.tasks.push(Task::Compare(value, other_value, self.path.len()));
                            break;
                        }
                        self.path.pop();
                        (l, r) = (body, other_body);
                    }
                    (Expr::Let { .. }, _) => return Err("the left block goes on where the right one ends".to_string()),
                    (_, Expr::Let { .. }) => return Err("the right block goes on where the left one ends".to_string()),
                    _ => {
                        if !self.compare_shallow(l, r)? {
                            self.descend(l, r)?;
                        }
                        break;
                    }
                }
            }
        }
        self.path.clear();
        Ok(())
    }

    fn bind(&mut self, l: ExprId, r: ExprId) -> Result<(), String> {
        if let (Expr::Var { flags: a, .. }, Expr::Var { flags: b, .. }) = (self.left.expr(l), self.right.expr(r))
            && a != b
        {
            return Err("the variable is visible only in its dataflow region on one side".to_string());
        }
        self.pairs.set(l, r);
        self.meta(l, r)
    }

    fn meta(&mut self, l: ExprId, r: ExprId) -> Result<(), String> {
        if self.meta == Meta::Ignored {
            return Ok(());
        }
        let (a, b) = (self.left.meta(l), self.right.meta(r));
        let (empty_left, empty_right) = (self.tables.left.attrs.empty(), self.tables.right.attrs.empty());
        self.attrs(a.unwrap_or(empty_left), b.unwrap_or(empty_right), "`#[…]`")
    }

    fn attrs(&mut self, l: AttrsId, r: AttrsId, what: &str) -> Result<(), String> {
        if self.tables.attrs(l, r) { Ok(()) } else { Err(self.describe_attrs(l, r, what)) }
    }

    fn describe_attrs(&mut self, l: AttrsId, r: AttrsId, what: &str) -> String {
        let (left, right) = (self.tables.left, self.tables.right);
        let (list, others) = (left.attrs.list(l), right.attrs.list(r));
        for i in 0..list.len().max(others.len()) {
            let name = |entry: Option<&(NameId, AttrId)>, cx: &'_ Context| entry.map(|e| clip(cx.names.get(e.0)));
            let (name, other_name) = (name(list.get(i), left), name(others.get(i), right));
            match (name, other_name) {
                (Some(a), Some(b)) if a == b => {}
                // Both are sorted: the smaller name is the one that the other side lacks.
                (Some(a), b) if b.as_ref().is_none_or(|b| a < *b) => {
                    return format!("{what} differs: `{a}` is only on the left");
                }
                (_, Some(b)) => return format!("{what} differs: `{b}` is only on the right"),
                _ => {}
            }
        }
        for (&(key, value), &(_, other)) in list.iter().zip(others) {
            let name = clip(left.names.get(key));
            let one = left.attrs.get(value);
            let two = right.attrs.get(other);
            let scalar = |a: &Attr, cx: &Context| match a {
                Attr::Int(i) => Some(i.to_string()),
                Attr::Bool(b) => Some(b.to_string()),
                Attr::Float(f) => Some(format!("{:?}", f64::from_bits(*f))),
                Attr::Str(s) => Some(format!("{:?}", clip(cx.names.get(*s)))),
                _ => None,
            };
            match (scalar(one, left), scalar(two, right)) {
                (Some(a), Some(b)) if a != b => return format!("{what} differs: `{name}` is {a} and {b}"),
                (Some(_), Some(_)) => {}
                _ => return format!("{what} differs, in `{name}` or after it"),
            }
        }
        format!("{what} differs")
    }

    fn types(&mut self, l: TypeId, r: TypeId) -> Result<(), String> {
        if self.tables.types(l, r) {
            return Ok(());
        }
        Err(format!("types differ: {} and {}", self.tables.left.type_text(l), self.tables.right.type_text(r)))
    }

    /// Compares two nodes if there is nothing to descend into: atoms, and calls, tuples and
    /// projections of atoms. False if there is.
    #[inline]
    fn compare_shallow(&mut self, l: ExprId, r: ExprId) -> Result<bool, String> {
        let (a, b) = (self.left.expr(l), self.right.expr(r));
        if a.is_atom() && b.is_atom() {
            return self.atoms(l, r).map(|()| true);
        }
        let (x, y) = (self.left.inputs(l), self.right.inputs(r));
        let is_flat = std::mem::discriminant(&a) == std::mem::discriminant(&b)
            && !a.binds()
            && x.len() == y.len()
            && x.iter().all(|&o| self.left.expr(o).is_atom())
            && y.iter().all(|&o| self.right.expr(o).is_atom());
        if !is_flat {
            return Ok(false);
        }
        if !self.enter(l, r)? {
            return Ok(true);
        }
        for (&x, &y) in x.iter().zip(y) {
            self.atoms(x, y)?;
        }
        Ok(true)
    }

    /// Compares what two nodes say besides their parts, and leaves the parts as tasks.
    fn descend(&mut self, l: ExprId, r: ExprId) -> Result<(), String> {
        let depth = self.path.len();
        let (a, b) = (self.left.expr(l), self.right.expr(r));
        if std::mem::discriminant(&a) != std::mem::discriminant(&b) {
            return Err(self.different(l, r));
        }
        match (a, b) {
            (
                Expr::If { cond, then_block, else_block },
                Expr::If { cond: other_cond, then_block: other_then, else_block: other_else },
            ) => {
                self.tasks.push(Task::Compare(else_block, other_else, depth));
                self.tasks.push(Task::Compare(then_block, other_then, depth));
                self.tasks.push(Task::Compare(cond, other_cond, depth));
                Ok(())
            }
            (Expr::Lambda { lambda, body }, Expr::Lambda { lambda: other, body: other_body }) => {
                let (left, right) = (self.left, self.right);
                self.tables.own_symbols(left.lambda_symbols(lambda), right.lambda_symbols(other));
                if left.lambda_params(lambda).len() != right.lambda_params(other).len() {
                    return Err("the functions have different numbers of parameters".to_string());
                }
                for (p, q) in left.lambda_params(lambda).zip(right.lambda_params(other)) {
                    self.types(left.ty(p.expr()), right.ty(q.expr()))?;
                    self.bind(p.expr(), q.expr())?;
                }
                let ret = left.lambda(lambda).ret.unwrap_or_else(|| left.type_of(body));
                let other_ret = right.lambda(other).ret.unwrap_or_else(|| right.type_of(other_body));
                self.types(ret, other_ret)?;
                self.attrs(left.lambda(lambda).attrs, right.lambda(other).attrs, "the attributes of the function")?;
                self.tasks.push(Task::Compare(body, other_body, depth));
                Ok(())
            }
            _ => {
                if !self.enter(l, r)? {
                    return Ok(());
                }
                let (x, y) = (self.left.inputs(l), self.right.inputs(r));
                self.tasks.extend(x.iter().zip(y).rev().map(|(&a, &b)| Task::Compare(a, b, depth)));
                Ok(())
            }
        }
    }

    /// Compares what two calls, tuples or projections say besides their parts. False if they were
    /// compared before, as shared nodes.
    fn enter(&mut self, l: ExprId, r: ExprId) -> Result<bool, String> {
        match self.pairs.get(l) {
            Some(known) if known == r => return Ok(false),
            Some(_) => return Err("the left side uses a value again that the right side computes anew".to_string()),
            None => {}
        }
        if self.tables.is_within() && l == r {
            return Ok(false);
        }
        if !self.pairs.visit_right(r) {
            return Err("the right side uses a value again that the left side computes anew".to_string());
        }
        self.pairs.set(l, r);
        let count = |l: usize, r: usize, what: &str| {
            if l == r { Ok(()) } else { Err(format!("the numbers of {what} differ: {l} and {r}")) }
        };
        match (self.left.expr(l), self.right.expr(r)) {
            (
                Expr::CallOp { op, operands, attrs },
                Expr::CallOp { op: other, operands: others, attrs: other_attrs },
            ) => {
                if !self.tables.ops(op, other) {
                    let (a, b) = (&self.tables.left.ops.get(op).name, &self.tables.right.ops.get(other).name);
                    return Err(format!("operators differ: `{a}` and `{b}`"));
                }
                count(operands.len(), others.len(), "operands")?;
                self.attrs(attrs, other_attrs, "an attribute")?;
                if self.tables.left.ops.is_opaque(op) {
                    self.types(self.left.ty(l), self.right.ty(r))?;
                }
            }
            (Expr::Call { operands, attrs }, Expr::Call { operands: others, attrs: other_attrs }) => {
                count(operands.len(), others.len(), "arguments")?;
                self.attrs(attrs, other_attrs, "an attribute of the call")?;
            }
            (Expr::Tuple(fields), Expr::Tuple(others)) => count(fields.len(), others.len(), "fields")?,
            (Expr::Proj { index, .. }, Expr::Proj { index: other, .. }) if index == other => {}
            (Expr::Proj { index, .. }, Expr::Proj { index: other, .. }) => {
                return Err(format!("fields differ: .{index} and .{other}"));
            }
            _ => return Err(self.different(l, r)),
        }
        self.meta(l, r)?;
        Ok(true)
    }

    #[inline]
    fn atoms(&mut self, l: ExprId, r: ExprId) -> Result<(), String> {
        if self.pairs.get(l) == Some(r) {
            return Ok(());
        }
        let equal = match (self.left.expr(l), self.right.expr(r)) {
            (Expr::Var { .. }, Expr::Var { .. }) => {
                if self.tables.is_within() && self.pairs.get(l).is_none() && l == r {
                    return Ok(());
                }
                false
            }
            (Expr::Literal(a), Expr::Literal(b)) => self.tables.literals(a, b),
            (Expr::Global(a), Expr::Global(b)) => self.tables.globals(a, b),
            (Expr::Op(a), Expr::Op(b)) => self.tables.ops(a, b),
            (Expr::None, Expr::None) => true,
            _ => false,
        };
        if equal {
            self.pairs.set(l, r);
            return Ok(());
        }
        Err(self.different(l, r))
    }

    fn different(&self, l: ExprId, r: ExprId) -> String {
        let (left, right) = (describe(self.tables.left, self.left, l), describe(self.tables.right, self.right, r));
        format!("{left} on the left, {right} on the right")
    }
}

fn kind(expr: &Expr) -> &'static str {
    match expr {
        Expr::Var { .. } => "a variable",
        Expr::Literal(_) => "a constant",
        Expr::Global(_) => "a global",
        Expr::Op(_) => "an operator",
        Expr::None => "`none`",
        Expr::CallOp { .. } => "a call of an operator",
        Expr::Call { .. } => "a call of a function",
        Expr::Tuple(_) => "a tuple",
        Expr::Proj { .. } => "a projection",
        Expr::Let { .. } => "a block",
        Expr::If { .. } => "an `if`",
        Expr::Lambda { .. } => "a `fn`",
    }
}

fn describe(cx: &Context, body: &Body, id: ExprId) -> String {
    match body.expr(id) {
        Expr::Var { name: Some(name), .. } => format!("`%{}`", clip(cx.names.get(name))),
        Expr::Var { name: None, .. } => "an unnamed variable".to_string(),
        Expr::Global(g) => format!("`@{}`", clip(cx.global_name(g))),
        Expr::CallOp { op, .. } => format!("a call of `{}`", clip(&cx.ops.get(op).name)),
        Expr::Op(op) => format!("the operator `{}`", clip(&cx.ops.get(op).name)),
        Expr::Literal(l) => {
            let l = cx.literals.get(l);
            let value = l
                .as_scalar::<f32>()
                .map(|v| format!("{v:?}"))
                .or_else(|| l.as_scalar::<i32>().map(|v| v.to_string()))
                .or_else(|| l.as_scalar::<i64>().map(|v| v.to_string()))
                .or_else(|| l.as_scalar::<bool>().map(|v| v.to_string()));
            match value {
                Some(v) => format!("the constant {v}"),
                None => format!("a {} constant of shape {:?}", l.dtype(), l.shape()),
            }
        }
        other => kind(&other).to_string(),
    }
}

/// Names in messages are at most that long.
pub(super) fn clip(name: &str) -> String {
    const LONGEST: usize = 80;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_string(),
    }
}

//! Comparison of two expressions.

use rustc_hash::FxHashMap;

use super::MetaPolicy;
use super::tables::Tables;
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, EntityId, ExprId, NameId, TypeId};
use crate::core::expr::Expr;
use crate::tables::attrs::Attr;
use crate::tables::entry::Entry;
use crate::walk::sparse_set::SparseSet;

/// The nodes of the left body that were compared, each with the node of the right body.
pub(super) enum Pairs {
    /// For whole bodies.
    Whole(Vec<Option<ExprId>>),
    /// For parts of a body: takes memory for visited nodes only.
    Part(FxHashMap<ExprId, ExprId>),
}

impl Pairs {
    #[inline]
    fn get(&self, left: ExprId) -> Option<ExprId> {
        match self {
            Pairs::Whole(pairs) => pairs[left.index()],
            Pairs::Part(pairs) => pairs.get(&left).copied(),
        }
    }

    #[inline]
    fn set(&mut self, left: ExprId, right: ExprId) {
        match self {
            Pairs::Whole(pairs) => pairs[left.index()] = Some(right),
            Pairs::Part(pairs) => {
                pairs.insert(left, right);
            }
        }
    }
}

/// The place where two expressions differ: the enclosing Lets, outermost first, and the difference.
pub(super) struct Mismatch {
    pub(super) path: Vec<(ExprId, ExprId)>,
    pub(super) what: String,
}

/// Compares two functions' blocks; their parameters correspond.
pub(super) fn compare_bodies(
    tables: &mut Tables<'_>,
    left: &Body,
    right: &Body,
    meta: MetaPolicy,
) -> Result<(), Mismatch> {
    let mut pairs = Pairs::Whole(vec![None; left.len()]);
    left.params().iter().zip(right.params()).for_each(|(p, q)| pairs.set(p.expr(), q.expr()));
    let visited = SparseSet::of_whole(right.len());
    Walk { tables, left, right, pairs, visited, meta, tasks: Vec::new(), path: Vec::new() }
        .compare(left.root(), right.root())
}

pub(super) fn equal_within(cx: &Context, body: &Body, a: ExprId, b: ExprId) -> bool {
    if a == b {
        return true;
    }
    let mut tables = Tables::within(cx);
    let (pairs, visited) = (Pairs::Part(FxHashMap::default()), SparseSet::of_part(body.len()));
    let (tasks, path) = (Vec::new(), Vec::new());
    let walk =
        Walk { tables: &mut tables, left: body, right: body, pairs, visited, meta: MetaPolicy::Ignore, tasks, path };
    walk.compare(a, b).is_ok() && tables.settle().is_none()
}

struct Walk<'w, 'a> {
    tables: &'w mut Tables<'a>,
    left: &'w Body,
    right: &'w Body,
    pairs: Pairs,
    /// The nodes of the right body that were compared.
    visited: SparseSet<ExprId>,
    meta: MetaPolicy,
    /// Expressions to be compared, with the number of enclosing Lets.
    tasks: Vec<(ExprId, ExprId, usize)>,
    path: Vec<(ExprId, ExprId)>,
}

impl Walk<'_, '_> {
    /// Compares two expressions in program order, with an explicit stack and a loop along Let
    /// chains.
    fn compare(mut self, l: ExprId, r: ExprId) -> Result<(), Mismatch> {
        self.tasks.push((l, r, 0));
        self.run().map_err(|what| Mismatch { path: self.path, what })
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some((mut l, mut r, depth)) = self.tasks.pop() {
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
                            self.tasks.push((body, other_body, depth));
                            self.tasks.push((value, other_value, self.path.len()));
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
        if self.meta == MetaPolicy::Ignore {
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
                // Both lists are sorted: the smaller name is missing on the other side.
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

    /// Compares two nodes if all their parts are atoms: atoms, and calls, tuples and projections of
    /// atoms. Returns false, without a comparison, for other nodes.
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

    /// Compares two nodes except for their parts, and adds the parts as tasks.
    fn descend(&mut self, l: ExprId, r: ExprId) -> Result<(), String> {
        let depth = self.path.len();
        let (a, b) = (self.left.expr(l), self.right.expr(r));
        if std::mem::discriminant(&a) != std::mem::discriminant(&b) {
            return Err(self.different(l, r));
        }
        match (a, b) {
            (Expr::If { .. }, Expr::If { .. }) => {}
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
            }
            _ => {
                if !self.enter(l, r)? {
                    return Ok(());
                }
            }
        }
        let parts = self.left.parts(l).zip(self.right.parts(r)).rev();
        self.tasks.extend(parts.map(|(l, r)| (l, r, depth)));
        Ok(())
    }

    /// Compares two calls, tuples or projections except for their parts. Returns false if they were
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
        if !self.visited.insert(r) {
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
            (Expr::Literal(a), Expr::Literal(b)) => self.tables.entries(Entry::Literal(a), Entry::Literal(b)),
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
        Expr::Call { .. } => "a call of a function".to_string(),
        Expr::Let { .. } => "a block".to_string(),
        other => other.kind().to_string(),
    }
}

/// Truncates a name for messages to 80 characters.
pub(super) fn clip(name: &str) -> String {
    const LONGEST: usize = 80;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_string(),
    }
}

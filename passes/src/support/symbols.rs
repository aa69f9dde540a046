//! Symbolic dimensions of a function that turn out to be others, or constants.

use anfora_ir::{
    Attr, AttrId, AttrsId, BlockKind, Body, Context, Cursor, Dim, DimId, Expr, ExprId, IdSet, LambdaId, OpId,
    SharedEdits, Step, SubstitutedParts, SymbolId, Type, TypeError, TypeId, VarId, infer_expr,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// What symbols stand for.
#[derive(Default)]
pub(crate) struct Substitution {
    map: FxHashMap<SymbolId, DimId>,
    types: FxHashMap<TypeId, TypeId>,
    parts: SubstitutedParts,
    attrs: FxHashMap<AttrsId, AttrsId>,
}

impl Substitution {
    /// `symbol` stands for `by`, which names no symbol that stands for something.
    pub(crate) fn set(&mut self, symbol: SymbolId, by: DimId) {
        self.map.insert(symbol, by);
        // To clear a map takes time in proportion to its room.
        (self.types, self.parts, self.attrs) = Default::default();
    }

    /// What a symbol stands for, if that was said.
    pub(crate) fn get(&self, symbol: SymbolId) -> Option<DimId> {
        self.map.get(&symbol).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns the types that [`ty`](Substitution::ty) was asked for since the last
    /// [`set`](Substitution::set), with what became of them, in no order.
    pub(crate) fn types(&self) -> impl Iterator<Item = (TypeId, TypeId)> {
        self.types.iter().map(|(&old, &new)| (old, new))
    }

    /// How many symbols stand for something.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// A type in which nothing is left of the symbols that stand for something.
    pub(crate) fn ty(&mut self, cx: &mut Context, ty: TypeId) -> TypeId {
        if self.map.is_empty() || !cx.types.is_symbolic(ty) {
            return ty;
        }
        let Substitution { map, types, parts, .. } = self;
        *types.entry(ty).or_insert_with(|| cx.types.substitute_in(ty, parts, |s| map.get(&s).copied()))
    }

    /// Attributes in whose types and shapes nothing is left of them.
    pub(crate) fn attrs(&mut self, cx: &mut Context, attrs: AttrsId) -> AttrsId {
        if self.map.is_empty() || attrs == cx.attrs.empty() {
            return attrs;
        }
        if let Some(&done) = self.attrs.get(&attrs) {
            return done;
        }
        let mut list = cx.attrs.list(attrs).to_vec();
        let mut changed = false;
        for (_, value) in &mut list {
            let new = self.attr(cx, *value);
            changed |= new != *value;
            *value = new;
        }
        let new = if changed { cx.attrs(&list) } else { attrs };
        self.attrs.insert(attrs, new);
        new
    }

    /// One value; lists nest on an explicit stack.
    fn attr(&mut self, cx: &mut Context, value: AttrId) -> AttrId {
        let mut done: FxHashMap<AttrId, AttrId> = FxHashMap::default();
        let mut stack = vec![value];
        while let Some(&top) = stack.last() {
            if done.contains_key(&top) {
                stack.pop();
                continue;
            }
            let new = match cx.attrs.get(top) {
                Attr::List(items) => {
                    let height = stack.len();
                    stack.extend(items.iter().filter(|i| !done.contains_key(i)));
                    if stack.len() > height {
                        continue;
                    }
                    let items: Vec<AttrId> = items.iter().map(|i| done[i]).collect();
                    cx.attr(Attr::List(items.into()))
                }
                Attr::Shape(shape) => {
                    let shape = shape.to_vec();
                    let map = &self.map;
                    let dims = &mut cx.types.dims;
                    let shape = shape
                        .into_iter()
                        .map(|d| {
                            dims.substitute(d, |dims, leaf| match *dims.get(leaf) {
                                Dim::Symbol(s) => map.get(&s).copied(),
                                _ => None,
                            })
                        })
                        .collect();
                    cx.attr(Attr::Shape(shape))
                }
                &Attr::Type(ty) => {
                    let ty = self.ty(cx, ty);
                    cx.attr(Attr::Type(ty))
                }
                _ => top,
            };
            done.insert(top, new);
            stack.pop();
        }
        done[&value]
    }
}

/// Puts what symbols stand for into the types and attributes of a body, and infers the types of what uses something that changed, then or
/// before (`changed`). Linear.
///
/// # Errors
/// With the Let or tail where it was seen, if an expression has no type any more. The body is half rewritten then.
pub(crate) fn substitute_symbols(
    cx: &mut Context,
    body: &mut Body,
    by: &mut Substitution,
    changed: &[ExprId],
) -> Result<(), (ExprId, TypeError)> {
    // A symbol is the same thing wherever a node hangs.
    let before = body.shared_edits(SharedEdits::Meant);
    let done = substitute_everywhere(cx, body, by, changed);
    body.shared_edits(before);
    done
}

fn substitute_everywhere(
    cx: &mut Context,
    body: &mut Body,
    by: &mut Substitution,
    changed: &[ExprId],
) -> Result<(), (ExprId, TypeError)> {
    let mut pass = Pass { changed: IdSet::with_capacity(body.len()), by, cx, body };
    for &id in changed {
        pass.changed.insert(id);
    }
    for i in 0..pass.body.params().len() {
        let param = pass.body.params()[i];
        pass.node_type(param.expr());
    }
    let mut at = pass.body.root();
    let mut cursor = Cursor::new(pass.body);
    while let Some(step) = cursor.next(pass.body) {
        match step {
            Step::EnterBlock(_, BlockKind::Lambda(id)) => pass.enter_lambda(id),
            Step::Let(id) => {
                at = id;
                if let Expr::Let { var, value, .. } = pass.body.expr(id)
                    && let Expr::Lambda { .. } = pass.body.expr(value)
                {
                    pass.node_type(var.expr());
                }
            }
            Step::Bound(id) => {
                if let Expr::Let { var, value, body: rest, .. } = pass.body.expr(id) {
                    at = rest;
                    pass.bound(var, value);
                }
            }
            Step::Flat(id) | Step::Exit(id) => pass.node(id).map_err(|error| (at, error))?,
            _ => {}
        }
    }
    Ok(())
}

struct Pass<'a> {
    cx: &'a mut Context,
    body: &'a mut Body,
    by: &'a mut Substitution,
    /// What has another type than before.
    changed: IdSet<ExprId>,
}

impl Pass<'_> {
    fn set_type(&mut self, id: ExprId, ty: TypeId) {
        if ty != self.body.ty(id) {
            self.body.set_type(id, ty);
            self.changed.insert(id);
        }
    }

    fn node_type(&mut self, id: ExprId) {
        let ty = self.by.ty(self.cx, self.body.ty(id));
        self.set_type(id, ty);
    }

    fn enter_lambda(&mut self, id: ExprId) {
        let Expr::Lambda { lambda, .. } = self.body.expr(id) else { return };
        let params: Vec<VarId> = self.body.lambda_params(lambda).collect();
        for param in params {
            self.node_type(param.expr());
        }
        let mut data = self.body.lambda(lambda);
        data.ret = data.ret.map(|ty| self.by.ty(self.cx, ty));
        data.attrs = self.by.attrs(self.cx, data.attrs);
        self.body.set_lambda(lambda, data);
        let own = self.body.lambda_symbols(lambda);
        if own.iter().any(|&s| self.by.get(s).is_some()) {
            let left = own.iter().copied().filter(|&s| self.by.get(s).is_none()).collect();
            self.body.set_lambda_symbols(lambda, left);
        }
    }

    fn bound(&mut self, var: VarId, value: ExprId) {
        let tail = self.body.tail(value);
        if self.changed.contains(tail) {
            self.set_type(var.expr(), self.body.ty(tail));
        } else {
            self.node_type(var.expr());
        }
    }

    fn node(&mut self, id: ExprId) -> Result<(), TypeError> {
        self.node_type(id);
        let mut affected = self.affects(id);
        match self.body.expr(id) {
            Expr::CallOp { op, operands, attrs } => {
                let new = self.by.attrs(self.cx, attrs);
                if new != attrs {
                    // A shape may have become one that is the default.
                    let new = self.cx.check_op_attrs(op, new).map_err(|(error, _)| error)?;
                    self.body.set_expr(id, Expr::CallOp { op, operands, attrs: new });
                    affected = true;
                }
            }
            Expr::Call { operands, attrs } => {
                let attrs = self.by.attrs(self.cx, attrs);
                self.body.set_expr(id, Expr::Call { operands, attrs });
            }
            _ => {}
        }
        if affected {
            let ty = infer_expr(self.cx, self.body, id)?;
            self.set_type(id, ty);
        }
        Ok(())
    }

    /// Whether a part of a node that its type follows from changed.
    fn affects(&self, id: ExprId) -> bool {
        let changed = |part: ExprId| self.changed.contains(self.body.tail(part));
        self.body.parts(id).any(changed)
            || matches!(self.body.expr(id), Expr::Lambda { lambda, .. }
                if self.body.lambda_params(lambda).any(|p| self.changed.contains(p.expr())))
    }
}

/// The symbols that `match_cast`s bind to what the types of their operands say already, and what that is. In A-normal form.
pub(crate) fn known_symbols(cx: &mut Context, body: &Body) -> Substitution {
    let Some(match_cast) = cx.ops.find("match_cast") else { return Substitution::default() };
    let is_cast = |e: Expr| matches!(e, Expr::CallOp { op, .. } if op == match_cast);
    let binds = |cx: &Context, e: Expr| cast_type(cx, match_cast, e).is_some_and(|to| cx.types.is_symbolic(to));
    if !body.exprs().any(|(_, e)| is_cast(e) && binds(cx, e)) {
        return Substitution::default();
    }
    let mut known = Known::default();
    for &param in body.params() {
        known.note(cx, body.ty(param.expr()));
    }
    // What was found out in the blocks that are open, and where that of each begins.
    let (mut found, mut marks): (Vec<SymbolId>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::EnterBlock(_, kind) => {
                marks.push(found.len());
                if let BlockKind::Lambda(id) = kind
                    && let Expr::Lambda { lambda, .. } = body.expr(id)
                {
                    known.lambda(cx, body, lambda);
                }
            }
            Step::ExitBlock(..) => {
                let mark = marks.pop().expect("a block is left after it is entered");
                known.closed.extend(found.drain(mark..));
            }
            Step::Flat(id) => {
                let expr = body.expr(id);
                let Some(to) = cast_type(cx, match_cast, expr) else { continue };
                let Some(&operand) = body.operands_of(id).first() else { continue };
                if !known.cast(cx, body.ty(operand), to, &mut found) {
                    return Substitution::default();
                }
            }
            _ => {}
        }
    }
    known.by
}

/// The type that a `match_cast` casts to.
fn cast_type(cx: &Context, match_cast: OpId, expr: Expr) -> Option<TypeId> {
    let Expr::CallOp { op, attrs, .. } = expr else { return None };
    if op != match_cast {
        return None;
    }
    match *cx.attrs.get(cx.find_attr(attrs, "to")?) {
        Attr::Type(to) => Some(to),
        _ => None,
    }
}

#[derive(Default)]
struct Known {
    by: Substitution,
    /// The symbols that were bound so far.
    bound: FxHashSet<SymbolId>,
    /// Those that stand for something in a block that was left.
    closed: FxHashSet<SymbolId>,
}

impl Known {
    fn note(&mut self, cx: &Context, ty: TypeId) {
        let types = &cx.types;
        types.for_each_symbol(ty, |d| {
            if let Dim::Symbol(s) = *types.dims.get(d) {
                self.bound.insert(s);
            }
        });
    }

    fn lambda(&mut self, cx: &Context, body: &Body, lambda: LambdaId) {
        for param in body.lambda_params(lambda) {
            self.note(cx, body.ty(param.expr()));
        }
    }

    /// Looks at a cast of a value of type `from`. False if it binds a symbol that another block binds to something.
    fn cast(&mut self, cx: &mut Context, from: TypeId, to: TypeId, found: &mut Vec<SymbolId>) -> bool {
        if !cx.types.is_symbolic(to) {
            return true;
        }
        let mut twice = false;
        let types = &cx.types;
        types
            .for_each_symbol(to, |d| twice |= matches!(*types.dims.get(d), Dim::Symbol(s) if self.closed.contains(&s)));
        if twice {
            return false;
        }
        let from = self.by.ty(cx, from);
        let mut stack = vec![(from, to)];
        let mut seen = FxHashSet::default();
        while let Some((f, t)) = stack.pop() {
            if !cx.types.is_symbolic(t) || !seen.insert((f, t)) {
                continue;
            }
            match (cx.types.get(f), cx.types.get(t)) {
                (Type::Tensor(a), Type::Tensor(b)) => {
                    let (Some(x), Some(y)) = (&a.shape, &b.shape) else { continue };
                    if x.len() != y.len() {
                        continue;
                    }
                    let dims = &cx.types.dims;
                    let new: Vec<(SymbolId, DimId)> = a
                        .dims_beside(b)
                        .filter_map(|(&d, &e)| match *dims.get(e) {
                            Dim::Symbol(s) if d != dims.unknown() => Some((s, d)),
                            _ => None,
                        })
                        .collect();
                    for (symbol, dim) in new {
                        if self.bound.insert(symbol) {
                            self.by.set(symbol, dim);
                            found.push(symbol);
                        }
                    }
                }
                (Type::Tuple(a), Type::Tuple(b)) => {
                    stack.extend(a.iter().copied().zip(b.iter().copied()).rev());
                }
                _ => {}
            }
        }
        self.note(cx, to);
        true
    }
}

//! Writes the block of each lambda of a body into a function of its own.
//!
//! One walk of the body, with a stack of the functions that are being written. What stands in the
//! body itself is edited in place; every node of a lambda is copied once, into the innermost
//! function.

use anfora_ir::{
    AttrsId, Body, Context, Editor, EntityId, Expr, ExprId, Function, GlobalId, LetFlags, OpId, OperandList,
    RegionWriter, Retype, SymbolSubstitution, SymbolWalk, TypeId, VarFlags, VarId, Visibility, signature_type,
};
use anfora_visit::{Link, RewriteError, set_var_flags, unlink_let};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::captures::{Captures, HOST};

/// The function that a lambda becomes, as far as it is known before its block is written.
pub(super) struct Head {
    pub(super) global: GlobalId,
    pub(super) signature: TypeId,
    ret: TypeId,
    /// What stands in it for symbols from outside, if it names such.
    symbols: Option<Box<SymbolSubstitution>>,
}

impl Head {
    /// The head of the function that lambda `h` becomes.
    pub(super) fn of(cx: &mut Context, body: &Body, captures: &Captures, h: u32, global: GlobalId) -> Head {
        let lambda = &captures.lambdas[h as usize];
        let Expr::Lambda { lambda: data, body: block } = body.expr(lambda.node) else {
            unreachable!("lambdas are found where they are nodes");
        };
        let mut symbols: Option<Box<SymbolSubstitution>> = None;
        for used in &lambda.symbols {
            let symbols = symbols.get_or_insert_default();
            if symbols.get(used.symbol).is_none() {
                let dims = &mut cx.types.dims;
                let own = dims.new_symbol(dims.symbol_name(used.symbol));
                let own = dims.symbol(own);
                symbols.set(used.symbol, own);
            }
        }
        let params: SmallVec<[VarId; 8]> = body.lambda_params(data).chain(lambda.captures()).collect();
        let mut ty = |cx: &mut Context, ty| symbols.as_mut().map_or(ty, |symbols| symbols.ty(cx, ty));
        let params: SmallVec<[TypeId; 8]> = params.iter().map(|p| ty(cx, body.ty(p.expr()))).collect();
        let ret = ty(cx, body.lambda(data).ret.unwrap_or_else(|| body.type_of(block)));
        let ret = without_inner_symbols(cx, &params, ret);
        let signature = signature_type(cx, &params, ret);
        Head { global, signature, ret, symbols }
    }
}

/// A result type without the symbols that no parameter names, which nobody outside can name.
fn without_inner_symbols(cx: &mut Context, params: &[TypeId], ret: TypeId) -> TypeId {
    if !cx.types.is_symbolic(ret) {
        return ret;
    }
    let mut named = FxHashSet::default();
    let mut walk = SymbolWalk::new();
    for &param in params {
        walk.in_type(cx, param, |s| {
            named.insert(s);
        });
    }
    let unknown = cx.types.dims.unknown();
    cx.types.substitute(ret, |s| (!named.contains(&s)).then_some(unknown))
}

/// A function that is being written.
struct Target {
    lambda: u32,
    /// How much was set aside before.
    set_aside: usize,
    /// Expressions whose types are others than those of what they stand for.
    retyped: Vec<ExprId>,
}

/// What a block is the block of.
#[derive(Copy, Clone)]
enum Place {
    Root,
    /// The If, and its copy.
    Then(ExprId, ExprId),
    /// The copy.
    Else(ExprId),
    Lambda(u32),
}

struct Frame {
    /// The Let or tail that comes next.
    at: ExprId,
    place: Place,
    /// Where what comes next hangs.
    last: Link,
    regions: RegionWriter,
}

/// Writes the functions of one body.
pub(super) struct Lifter<'a> {
    pub(super) cx: &'a mut Context,
    pub(super) body: &'a mut Body,
    pub(super) captures: &'a Captures,
    /// By lambda; that of the function itself is missing.
    pub(super) heads: Vec<Head>,
    pub(super) make_closure: Option<OpId>,
    /// By variable: what stands for it in the function that is being written.
    stands_for: Vec<Option<ExprId>>,
    targets: Vec<Target>,
    /// Captured variables and lambdas of the functions that are being written, and what stood for
    /// them in the function around each.
    set_aside: Vec<(ExprId, Option<ExprId>)>,
    /// By lambda, as `heads`: the functions of those that were entered.
    functions: Vec<Function>,
    /// As that of a target.
    retyped: Vec<ExprId>,
}

impl<'a> Lifter<'a> {
    pub(super) fn new(
        cx: &'a mut Context,
        body: &'a mut Body,
        captures: &'a Captures,
        heads: Vec<Head>,
        make_closure: Option<OpId>,
    ) -> Lifter<'a> {
        let functions = Vec::with_capacity(heads.len());
        let stands_for = vec![None; body.len()];
        Lifter {
            cx,
            body,
            captures,
            heads,
            make_closure,
            stands_for,
            targets: Vec::new(),
            set_aside: Vec::new(),
            functions,
            retyped: Vec::new(),
        }
    }

    /// The functions that the lambdas become, in program order, with what names them; and what type
    /// the body is of then.
    pub(super) fn run(mut self) -> Result<(impl Iterator<Item = (GlobalId, Function)> + use<>, TypeId), RewriteError> {
        let mut stack: Vec<Frame> = Vec::new();
        let mut f =
            Frame { at: self.body.root(), place: Place::Root, last: Link::Root, regions: RegionWriter::default() };
        let tail = 'walk: loop {
            let (value, is_let) = match self.body.expr(f.at) {
                Expr::Let { value, .. } => (value, true),
                _ => (f.at, false),
            };
            let new = match self.body.expr(value) {
                Expr::If { cond, then_block, .. } => {
                    let copy = self.open_if(value, cond)?;
                    let inner = Frame {
                        at: then_block,
                        place: Place::Then(value, copy),
                        last: Link::Then(copy),
                        regions: RegionWriter::default(),
                    };
                    stack.push(std::mem::replace(&mut f, inner));
                    continue;
                }
                Expr::Lambda { body: block, .. } => {
                    let (lambda, last) = self.open_lambda(f.at)?;
                    let inner =
                        Frame { at: block, place: Place::Lambda(lambda), last, regions: RegionWriter::default() };
                    stack.push(std::mem::replace(&mut f, inner));
                    continue;
                }
                Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => self.atom(value),
                _ => self.node(value)?,
            };
            let mut new = Some(new);
            // Puts the value in its place, and goes on with what comes after it: the rest of its
            // block, or what the block belongs to.
            let mut is_let = is_let;
            loop {
                if is_let {
                    self.bind(&mut f, new);
                    continue 'walk;
                }
                let tail = new.expect("a lambda in a tail leaves a closure or a global there");
                self.hang(f.last, tail);
                match f.place {
                    Place::Root => break 'walk tail,
                    Place::Then(id, copy) => {
                        let Expr::If { else_block, .. } = self.body.expr(id) else {
                            unreachable!("the branches of an If are written one after the other");
                        };
                        f = Frame {
                            at: else_block,
                            place: Place::Else(copy),
                            last: Link::Else(copy),
                            regions: RegionWriter::default(),
                        };
                        continue 'walk;
                    }
                    Place::Else(copy) => {
                        f = stack.pop().expect("a frame waits for every block but the first");
                        new = Some(copy);
                    }
                    Place::Lambda(h) => {
                        f = stack.pop().expect("a frame waits for every block but the first");
                        self.close_lambda(f.at)?;
                        let is_named = matches!(self.body.expr(f.at), Expr::Let { .. });
                        new = self.closure(h, is_named)?;
                    }
                }
                is_let = matches!(self.body.expr(f.at), Expr::Let { .. });
            }
        };
        self.retype_body()?;
        let ty = self.body.ty(tail);
        let Lifter { heads, functions, .. } = self;
        Ok((heads.into_iter().map(|head| head.global).zip(functions), ty))
    }

    // ---- Where things are written ----

    /// The lambda that is being written.
    #[inline]
    fn here(&self) -> u32 {
        self.targets.last().map_or(HOST, |t| t.lambda)
    }

    /// The body that is being written.
    #[inline]
    fn target(&mut self) -> &mut Body {
        match self.targets.last() {
            Some(target) => &mut self.functions[target.lambda as usize - 1].body,
            None => self.body,
        }
    }

    fn editor(&mut self) -> Editor<'_> {
        let body = match self.targets.last() {
            Some(target) => &mut self.functions[target.lambda as usize - 1].body,
            None => &mut *self.body,
        };
        Editor::new(self.cx, body)
    }

    fn head(&self, h: u32) -> &Head {
        &self.heads[h as usize - 1]
    }

    /// A type of the body, in the function that is being written.
    #[inline]
    fn ty(&mut self, ty: TypeId) -> TypeId {
        match self.targets.last() {
            Some(target) => match &mut self.heads[target.lambda as usize - 1].symbols {
                Some(symbols) => symbols.ty(self.cx, ty),
                None => ty,
            },
            None => ty,
        }
    }

    #[inline]
    fn hang(&mut self, link: Link, id: ExprId) {
        let target = self.target();
        if link.target(target) != id {
            link.set(target, id);
        }
    }

    /// Says that an expression is of another type than what it stands for.
    fn note_type(&mut self, id: ExprId) {
        match self.targets.last_mut() {
            Some(target) => target.retyped.push(id),
            None => self.retyped.push(id),
        }
    }

    // ---- Atoms and nodes ----

    fn atom(&mut self, atom: ExprId) -> ExprId {
        let expr = self.body.expr(atom);
        if let Expr::Var { .. } = expr {
            return self.var(atom);
        }
        let ty = self.body.ty(atom);
        if self.targets.is_empty() {
            return atom;
        }
        let target = self.target();
        match expr {
            Expr::Literal(l) => target.literal(l, ty),
            Expr::Global(g) => target.global(g, ty),
            Expr::Op(op) => target.op(op, ty),
            _ => target.none(ty),
        }
    }

    #[inline]
    fn var(&mut self, var: ExprId) -> ExprId {
        if self.targets.is_empty() && self.captures.lambda_of(var).is_none() {
            return var;
        }
        self.var_of_lambda(var)
    }

    fn var_of_lambda(&mut self, var: ExprId) -> ExprId {
        let here = self.here();
        let of = self.captures.resolve(var, here);
        if !matches!(self.body.expr(of), Expr::Var { .. }) {
            let atom = self.atom(of);
            return self.checked(atom, var);
        }
        if let Some(h) = self.captures.lambda_of(of)
            && !self.captures.lambdas[h as usize].is_closure()
        {
            let Head { global, signature, .. } = *self.head(h);
            let global = self.target().global(global, signature);
            return self.checked(global, var);
        }
        if here == HOST {
            return of;
        }
        match self.stands_for[of.index()] {
            Some(by) if of == var => by,
            Some(by) => self.checked(by, var),
            // A variable that nothing binds: the verifier says so.
            None => self.new_var(of),
        }
    }

    /// Notes whether an atom is of another type than the variable in whose place it comes.
    fn checked(&mut self, atom: ExprId, var: ExprId) -> ExprId {
        let ty = self.body.ty(var);
        if self.ty(ty) != self.target().ty(atom) {
            self.note_type(atom);
        }
        atom
    }

    /// A new variable like one of the body.
    fn new_var(&mut self, var: ExprId) -> ExprId {
        let (span, meta, ty) = (self.body.span(var), self.body.meta(var), self.body.ty(var));
        let ty = self.ty(ty);
        let Expr::Var { name, mut flags } = self.body.expr(var) else {
            unreachable!("only variables are bound");
        };
        if flags.is_dataflow() && !self.captures.outputs.is_empty() {
            let variable = self.body.as_var(var).expect("it was matched as one");
            if self.captures.outputs.contains(&variable) {
                flags = VarFlags::PLAIN;
            }
        }
        let target = self.target();
        let new = target.push_var(name, flags, ty, span).expr();
        if meta.is_some() {
            target.set_meta(new, meta);
        }
        self.stands_for[var.index()] = Some(new);
        new
    }

    /// A call, tuple or projection.
    fn node(&mut self, id: ExprId) -> Result<ExprId, RewriteError> {
        let expr = self.body.expr(id);
        if let Expr::Call { operands, attrs } = expr
            && let Some(&callee) = self.body.operands(operands).first()
            && let Expr::Var { .. } = self.body.expr(callee)
        {
            let here = self.here();
            let of = self.captures.resolve(callee, here);
            if let Some(h) = self.captures.direct_callee_of(of, here) {
                return self.direct_call(id, h, attrs);
            }
        }
        if self.targets.is_empty() {
            if let Expr::Proj { tuple, index } = expr {
                let new = self.atom(tuple);
                if new != tuple {
                    self.body.set_expr(id, Expr::Proj { tuple: new, index });
                }
            } else if let Some(list) = expr.operand_list() {
                for i in 0..list.len() {
                    let operand = self.body.operand(list, i);
                    let new = self.atom(operand);
                    if new != operand {
                        self.body.set_operand(list, i, new);
                    }
                }
            }
            return Ok(id);
        }
        let new = match expr {
            Expr::Proj { tuple, index } => Expr::Proj { tuple: self.atom(tuple), index },
            Expr::CallOp { op, operands, attrs } => {
                let operands = self.operands(operands, 0);
                let attrs = self.attrs(attrs);
                Expr::CallOp { op, operands: self.target().push_operands(&operands), attrs }
            }
            Expr::Call { operands, attrs } => {
                let operands = self.operands(operands, 0);
                let attrs = self.attrs(attrs);
                Expr::Call { operands: self.target().push_operands(&operands), attrs }
            }
            Expr::Tuple(fields) => {
                let fields = self.operands(fields, 0);
                Expr::Tuple(self.target().push_operands(&fields))
            }
            other => other,
        };
        Ok(self.push_like(new, id))
    }

    fn operands(&mut self, list: OperandList, from: usize) -> SmallVec<[ExprId; 8]> {
        let mut new = SmallVec::with_capacity(list.len());
        for i in from..list.len() {
            let operand = self.body.operand(list, i);
            new.push(self.atom(operand));
        }
        new
    }

    fn attrs(&mut self, attrs: AttrsId) -> AttrsId {
        match self.targets.last() {
            Some(target) => match &mut self.heads[target.lambda as usize - 1].symbols {
                Some(symbols) => symbols.attrs(self.cx, attrs),
                None => attrs,
            },
            None => attrs,
        }
    }

    /// Appends a node that stands for one of the body.
    fn push_like(&mut self, expr: Expr, id: ExprId) -> ExprId {
        let (span, meta, ty) = (self.body.span(id), self.body.meta(id), self.body.ty(id));
        let ty = self.ty(ty);
        let target = self.target();
        let new = target.push(expr, ty, span);
        if meta.is_some() {
            target.set_meta(new, meta);
        }
        new
    }

    /// A call of a closure from where its captures are known.
    fn direct_call(&mut self, id: ExprId, h: u32, attrs: AttrsId) -> Result<ExprId, RewriteError> {
        let Head { global, signature, .. } = *self.head(h);
        let global = self.target().global(global, signature);
        let Some(list) = self.body.expr(id).operand_list() else { return Ok(id) };
        let mut operands: SmallVec<[ExprId; 8]> = SmallVec::from_slice(&[global]);
        operands.extend(self.operands(list, 1));
        self.push_captures(h, &mut operands);
        let attrs = self.attrs(attrs);
        let operands = self.target().push_operands(&operands);
        let call = self.push_like(Expr::Call { operands, attrs }, id);
        if self.cx.types.is_symbolic(signature) {
            let changed = self.editor().refresh_type(call).map_err(|error| RewriteError::untyped(error, None))?;
            if changed {
                self.note_type(call);
            }
        }
        Ok(call)
    }

    /// What stands here for the captures of a lambda.
    fn push_captures(&mut self, h: u32, operands: &mut SmallVec<[ExprId; 8]>) {
        let captures = self.captures;
        for captured in captures.lambdas[h as usize].captures() {
            operands.push(self.var(captured.expr()));
        }
    }

    /// `make_closure` of a lambda that captures something.
    fn make_closure(&mut self, h: u32) -> Result<ExprId, RewriteError> {
        let Head { global, signature, .. } = *self.head(h);
        let global = self.target().global(global, signature);
        let mut operands: SmallVec<[ExprId; 8]> = SmallVec::from_slice(&[global]);
        self.push_captures(h, &mut operands);
        let op = match self.make_closure {
            Some(op) => op,
            None => self.cx.ops.resolve("make_closure").map_err(|error| RewriteError::untyped(error, None))?,
        };
        let node = self.captures.lambdas[h as usize].node;
        let empty = self.cx.attrs.empty();
        if !self.cx.types.is_symbolic(signature) {
            // The type of the lambda is the one that is left.
            let operands = self.target().push_operands(&operands);
            return Ok(self.push_like(Expr::CallOp { op, operands, attrs: empty }, node));
        }
        let call = self.editor().call_op(op, &operands, empty);
        call.map_err(|error| RewriteError::untyped(error, None))
    }

    /// What comes in the place of a lambda that was written; `None` if its binding goes.
    fn closure(&mut self, h: u32, is_named: bool) -> Result<Option<ExprId>, RewriteError> {
        if self.captures.lambdas[h as usize].is_closure() {
            return self.make_closure(h).map(Some);
        }
        if is_named {
            return Ok(None);
        }
        let Head { global, signature, .. } = *self.head(h);
        let global = self.target().global(global, signature);
        let node = self.captures.lambdas[h as usize].node;
        Ok(Some(self.checked(global, node)))
    }

    // ---- Blocks ----

    /// The value of a Let is this now, or the Let goes.
    fn bind(&mut self, f: &mut Frame, value: Option<ExprId>) {
        let at = f.at;
        let Expr::Let { var, value: old, body: rest, flags } = self.body.expr(at) else {
            unreachable!("only the values of Lets are bound");
        };
        f.at = rest;
        f.regions.follow(flags);
        let Some(value) = value else {
            if self.targets.is_empty() {
                unlink_let(self.body, f.last);
            }
            return;
        };
        if self.targets.is_empty() {
            if value != old {
                Link::Value(at).set(self.body, value);
                self.type_var(var.expr(), value, old);
            }
            if !self.captures.outputs.is_empty() && self.captures.outputs.contains(&var) {
                set_var_flags(self.body, var, VarFlags::PLAIN);
            }
            f.last = Link::Rest(at);
            return;
        }
        let flags = f.regions.next_flags();
        let new = self.new_var(var.expr());
        self.type_var(new, value, old);
        let span = self.body.span(at);
        let unit = self.cx.types.unit();
        let target = self.target();
        let var = target.as_var(new).expect("it was made as one");
        let link = target.push(Expr::Let { var, value, body: new, flags }, unit, span);
        f.last.set(target, link);
        f.last = Link::Rest(link);
    }

    /// A variable takes the type of a value that is of another type than the one that it had
    /// before.
    fn type_var(&mut self, var: ExprId, value: ExprId, old: ExprId) {
        let before = self.body.ty(old);
        let before = self.ty(before);
        let target = self.target();
        let now = target.ty(value);
        if now != before && now != target.ty(var) {
            target.set_type(var, now);
            self.note_type(var);
        }
    }

    /// The copy of an If, whose branches are to be hung into it; the If itself, where it is edited
    /// in place.
    fn open_if(&mut self, id: ExprId, cond: ExprId) -> Result<ExprId, RewriteError> {
        let new = self.atom(cond);
        if !self.targets.is_empty() {
            return Ok(self.push_like(Expr::If { cond: new, then_block: new, else_block: new }, id));
        }
        if new != cond {
            Link::Cond(id).set(self.body, new);
        }
        Ok(id)
    }

    /// Begins the function of the next lambda. `at` is the Let or tail where it stands.
    fn open_lambda(&mut self, at: ExprId) -> Result<(u32, Link), RewriteError> {
        let h = self.functions.len() as u32 + 1;
        let captures = self.captures;
        let lambda = &captures.lambdas[h as usize];
        let mut function = Function::with_room(&self.cx.types, self.cx.attrs.empty(), lambda.room);
        let data = self.body.lambda(lambda.lambda);
        function.visibility = Visibility::Private;
        function.ret = Some(self.head(h).ret);
        if let Expr::Let { var, .. } = self.body.expr(at)
            && !lambda.is_closure()
            && let Some(meta) = self.body.meta(var.expr())
        {
            function.meta = meta;
        }
        if let Some(meta) = self.body.meta(lambda.node) {
            function.meta = meta;
        }
        self.functions.push(function);
        self.targets.push(Target { lambda: h, set_aside: self.set_aside.len(), retyped: Vec::new() });
        let attrs = self.attrs(data.attrs);
        self.functions[h as usize - 1].attrs = attrs;
        let count = data.params.len();
        for i in 0..count {
            let param = self.body.operand(data.params, i);
            self.push_param(param);
        }
        for captured in lambda.captures() {
            self.set_aside(captured.expr());
            self.push_param(captured.expr());
        }
        let mut last = Link::Root;
        for &closed in &lambda.closures {
            let Some(var) = captures.lambdas[closed as usize].var else { continue };
            self.set_aside(var.expr());
            let value = self.make_closure(closed)?;
            let new = self.new_var(var.expr());
            self.plain(new);
            self.type_var(new, value, captures.lambdas[closed as usize].node);
            let unit = self.cx.types.unit();
            let target = self.target();
            let var = target.as_var(new).expect("it was made as one");
            let link = target.push(Expr::Let { var, value, body: new, flags: LetFlags::PLAIN }, unit, None);
            last.set(target, link);
            last = Link::Rest(link);
        }
        Ok((h, last))
    }

    fn push_param(&mut self, var: ExprId) {
        let new = self.new_var(var);
        self.plain(new);
        let target = self.target();
        let new = target.as_var(new).expect("it was made as one");
        target.push_param(new);
    }

    fn plain(&mut self, var: ExprId) {
        let target = self.target();
        if let Some(var) = target.as_var(var)
            && target.is_dataflow_var(var)
        {
            set_var_flags(target, var, VarFlags::PLAIN);
        }
    }

    /// Something else stands for a variable until the present function is written.
    fn set_aside(&mut self, var: ExprId) {
        self.set_aside.push((var, self.stands_for[var.index()]));
    }

    /// Ends the function of the lambda that stands at `at`.
    fn close_lambda(&mut self, at: ExprId) -> Result<(), RewriteError> {
        let Target { lambda, set_aside, retyped } = self.targets.pop().expect("a function is ended once");
        for (var, old) in self.set_aside.drain(set_aside..).rev() {
            self.stands_for[var.index()] = old;
        }
        if !retyped.is_empty() {
            let binding = self.body.binding_name(self.cx, at).map(str::to_string);
            retype(self.cx, &mut self.functions[lambda as usize - 1].body, &retyped, binding.as_deref())?;
        }
        Ok(())
    }

    fn retype_body(&mut self) -> Result<(), RewriteError> {
        if self.retyped.is_empty() {
            return Ok(());
        }
        retype(self.cx, self.body, &self.retyped, None)
    }
}

/// Passes on the types of expressions.
fn retype(cx: &mut Context, body: &mut Body, changed: &[ExprId], binding: Option<&str>) -> Result<(), RewriteError> {
    let mut retype = Retype::new(body);
    changed.iter().for_each(|&id| retype.changed(id));
    let root = body.root();
    match retype.sweep(cx, body, root) {
        Ok(_) => Ok(()),
        Err(error) => Err(RewriteError::untyped(error.error, binding)),
    }
}

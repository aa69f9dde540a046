//! A forward walk over a program in A-normal form that replaces variables as it goes: the frame of the passes that rewrite bindings.
//!
//! The walk follows Let chains with a loop and enters branches and lambdas with a stack of frames. Before a value is shown to the
//! rewriter, its operands have been replaced by what stands for them by now, and its type is right. A Let whose variable is replaced by an atom
//! leaves the chain at once; the beginning of a dataflow region moves on.
//!
//! Types stay right on the way: where an operand got a more specific type, or became a constant, the type of the node is inferred again, and
//! that of its variable, and so on forward. Should a type rule refuse what it now sees (a constant shape that does not fit, which was
//! a run-time failure before), the operands get their old types back by `match_cast`.

use anfora_ir::{
    Attr, Body, Context, Editor, EntityId, Expr, ExprId, Function, IdSet, LetFlags, OperandList, TypeError, TypeId,
    VarFlags, VarId,
};
use anfora_visit::{Link, RewriteError, insert_before, set_let_flags, set_var_flags, splice_before};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What becomes of a value.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Outcome {
    /// It stays.
    Keep,
    /// This atom stands for it everywhere, and its binding goes.
    Replace(ExprId),
    /// This node, whose parts are in place, takes its place.
    #[cfg_attr(not(feature = "interp"), expect(dead_code, reason = "FoldConstant alone makes new nodes"))]
    Become(ExprId),
    /// Its binding goes. What uses the variable is going to be replaced.
    Drop,
}

/// Where a value stands.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Site {
    /// The Let, or the tail itself.
    pub(crate) at: ExprId,
    /// The variable that is bound to it; `None` in a tail.
    pub(crate) var: Option<VarId>,
}

/// Where what was found out holds no longer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// A branch of an If.
    Branch,
    /// The block of a lambda.
    Lambda,
    /// A dataflow region.
    Region,
}

/// What a pass does in a sweep.
pub(crate) trait Rewrite {
    /// Decides on a value whose operands are in place.
    fn value(&mut self, sweep: &mut Sweep<'_>, site: Site, value: ExprId) -> Result<Outcome, RewriteError>;

    /// The branch that is taken, where that is known.
    fn known_branch(&mut self, _sweep: &Sweep<'_>, _cond: ExprId) -> Option<bool> {
        None
    }

    /// A block (or a value) that is to be evaluated in place of a value, whose operands are not in place yet. It is walked itself then, operands in
    /// place first.
    #[inline(always)]
    fn expand(&mut self, _sweep: &mut Sweep<'_>, _site: Site, _value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        Ok(None)
    }

    /// A scope begins.
    fn enter(&mut self, _sweep: &Sweep<'_>, _scope: Scope) {}

    /// The innermost scope ends.
    fn exit(&mut self, _sweep: &Sweep<'_>, _scope: Scope) {}
}

/// The state of a walk.
pub(crate) struct Sweep<'a> {
    /// The tables of the module.
    pub(crate) cx: &'a mut Context,
    /// The body.
    pub(crate) body: &'a mut Body,
    /// By atom: what stands for it; `None` for one that was not met.
    current: Vec<Option<ExprId>>,
    /// The types that variables had before they got a more specific one.
    retyped: FxHashMap<ExprId, TypeId>,
    /// Counts the changes of types and of tails.
    retypes: u32,
    /// The type that the result of the function had.
    result_before: Option<TypeId>,
    /// Lets whose value came out of a branch, and may have another type than the variable.
    spliced: Option<IdSet<ExprId>>,
}

struct Frame {
    /// The Let or tail that comes next.
    at: ExprId,
    /// What the block is the block of.
    place: Link,
    /// Where the next thing that stays hangs.
    last: Link,
    /// Whether something was left out since `last`.
    gap: bool,
    in_region: bool,
    /// Whether the first Let of the region was left out.
    start_pending: bool,
    /// The state of `retypes` when the If or lambda at `at` was entered.
    entered: u32,
}

impl Frame {
    fn new(place: Link, at: ExprId) -> Frame {
        Frame { at, place, last: place, gap: false, in_region: false, start_pending: false, entered: 0 }
    }
}

/// Walks a function. Should its result get a more specific type, it states the one that it had, and so keeps its signature.
///
/// # Errors
/// If the body is not in A-normal form, or a rewrite fails; the body is half rewritten then.
pub(crate) fn sweep<R: Rewrite>(
    cx: &mut Context,
    function: &mut Function,
    rewrite: &mut R,
) -> Result<(), RewriteError> {
    let body = &mut function.body;
    let current = vec![None; body.len()];
    let mut s =
        Sweep { cx, body, current, retyped: FxHashMap::default(), retypes: 0, result_before: None, spliced: None };
    for i in 0..s.body.params().len() {
        let p = s.body.params()[i].expr();
        s.set_current(p, p);
    }
    s.run(rewrite)?;
    let (changes, before) = (s.retypes, s.result_before);
    if changes > 0
        && function.ret.is_none()
        && let Some(before) = before
        && function.body.type_of(function.body.root()) != before
    {
        function.ret = Some(before);
    }
    Ok(())
}

impl Sweep<'_> {
    /// An editor, for new atoms and values.
    pub(crate) fn editor(&mut self) -> Editor<'_> {
        Editor::new(self.cx, self.body)
    }

    /// From here on `by` stands for `atom`.
    #[inline]
    pub(crate) fn set_current(&mut self, atom: ExprId, by: ExprId) {
        let i = atom.index();
        if i >= self.current.len() {
            self.current.resize(self.body.len().max(i + 1), None);
        }
        self.current[i] = Some(by);
    }

    /// What stands for an atom; `None` if it is not an atom.
    #[inline]
    pub(crate) fn resolve(&mut self, atom: ExprId) -> Option<ExprId> {
        match self.current.get(atom.index()) {
            Some(&Some(by)) => Some(by),
            _ => self.resolve_first(atom),
        }
    }

    fn resolve_first(&mut self, atom: ExprId) -> Option<ExprId> {
        if !self.body.expr(atom).is_atom() {
            return None;
        }
        self.set_current(atom, atom);
        Some(atom)
    }

    fn run<R: Rewrite>(&mut self, r: &mut R) -> Result<(), RewriteError> {
        let mut stack: Vec<Frame> = Vec::new();
        let mut f = Frame::new(Link::Root, self.body.root());
        loop {
            let (value, var) = match self.body.expr(f.at) {
                Expr::Let { var, value, flags, .. } => {
                    if flags.is_dataflow() || f.in_region {
                        self.cross_region_border(r, &mut f, flags);
                    }
                    (value, Some(var))
                }
                _ => {
                    self.leave_region(r, &mut f);
                    if f.place == Link::Root && self.result_before.is_none() {
                        self.result_before = Some(self.type_before(f.at));
                    }
                    (f.at, None)
                }
            };
            if let Some(block) = r.expand(self, Site { at: f.at, var }, value)? {
                self.splice(&mut f, block);
                continue;
            }
            match self.body.expr(value) {
                Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
                    self.replace_operands(&mut f, value, operands)?;
                }
                Expr::Proj { tuple, index } => {
                    let new =
                        self.resolve(tuple).ok_or_else(|| RewriteError::not_a_normal_form(self.cx, self.body, f.at))?;
                    if new != tuple {
                        self.body.set_expr(value, Expr::Proj { tuple: new, index });
                    }
                    if new != tuple || !self.retyped.is_empty() {
                        self.refresh(&mut f, value, &[(0, tuple)])?;
                    }
                }
                Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => {
                    let new = self.resolve(value).expect("it was matched as an atom");
                    if self.finish_atom(r, &mut f, value, new)? {
                        continue;
                    }
                    match self.leave_block(r, &mut f, &mut stack)? {
                        Some(next) => f = next,
                        None => return Ok(()),
                    }
                    continue;
                }
                Expr::If { cond, then_block, else_block } => {
                    let new =
                        self.resolve(cond).ok_or_else(|| RewriteError::not_a_normal_form(self.cx, self.body, f.at))?;
                    if new != cond {
                        self.body.set_expr(value, Expr::If { cond: new, then_block, else_block });
                    }
                    if let Some(taken) = r.known_branch(self, new) {
                        self.splice(&mut f, if taken { then_block } else { else_block });
                        continue;
                    }
                    f.entered = self.retypes;
                    stack.push(std::mem::replace(&mut f, Frame::new(Link::Then(value), then_block)));
                    r.enter(self, Scope::Branch);
                    continue;
                }
                Expr::Lambda { lambda, body: block } => {
                    if let Some(var) = var {
                        self.set_current(var.expr(), var.expr());
                    }
                    let params = self.body.lambda(lambda).params;
                    for i in 0..params.len() {
                        let p = self.body.operand(params, i);
                        self.set_current(p, p);
                    }
                    f.entered = self.retypes;
                    stack.push(std::mem::replace(&mut f, Frame::new(Link::Lambda(value), block)));
                    r.enter(self, Scope::Lambda);
                    continue;
                }
                Expr::Let { .. } => return Err(RewriteError::not_a_normal_form(self.cx, self.body, f.at)),
            }
            if !self.finish(r, &mut f, value)? {
                match self.leave_block(r, &mut f, &mut stack)? {
                    Some(next) => f = next,
                    None => return Ok(()),
                }
            }
        }
    }

    /// Goes on after the end of a block: with the other branch, or after what the block belongs to. `None` at the end of the body.
    fn leave_block<R: Rewrite>(
        &mut self,
        r: &mut R,
        f: &mut Frame,
        stack: &mut Vec<Frame>,
    ) -> Result<Option<Frame>, RewriteError> {
        let mut place = f.place;
        loop {
            let owner = match place {
                Link::Then(id) => {
                    r.exit(self, Scope::Branch);
                    r.enter(self, Scope::Branch);
                    return Ok(Some(Frame::new(Link::Else(id), Link::Else(id).target(self.body))));
                }
                Link::Else(id) => {
                    r.exit(self, Scope::Branch);
                    id
                }
                Link::Lambda(id) => {
                    r.exit(self, Scope::Lambda);
                    id
                }
                _ => return Ok(None),
            };
            let mut outer = stack.pop().expect("a frame waits for every block but the first");
            if outer.entered != self.retypes {
                self.refresh_owner(owner, outer.at)?;
            }
            if self.finish(r, &mut outer, owner)? {
                return Ok(Some(outer));
            }
            place = outer.place;
        }
    }

    #[cold]
    fn refresh_owner(&mut self, owner: ExprId, at: ExprId) -> Result<(), RewriteError> {
        let old = self.body.ty(owner);
        if self.editor().refresh_type(owner).is_err() {
            // The branches have nothing in common any more: each is given the type that both had.
            for place in [Link::Then(owner), Link::Else(owner)] {
                if matches!(self.body.expr(owner), Expr::If { .. }) {
                    let tail = anfora_visit::tail_link(self.body, place);
                    let atom = tail.target(self.body);
                    let value = self.cast(atom, old).map_err(|error| self.type_failure(error, at))?;
                    tail.set(self.body, value);
                }
            }
            self.editor().refresh_type(owner).map_err(|error| self.type_failure(error, at))?;
        }
        self.pass_on_type(at, old, owner);
        Ok(())
    }

    /// A `match_cast` of an atom (or of a compound tail, which is first bound).
    fn cast(&mut self, atom: ExprId, to: TypeId) -> Result<ExprId, TypeError> {
        let (cast, list) = {
            let to = self.cx.attr(Attr::Type(to));
            (self.cx.ops.resolve("match_cast")?, self.cx.named_attrs(&[("to", to)]))
        };
        if self.body.expr(atom).is_atom() {
            return self.editor().call_op(cast, &[atom], list);
        }
        let ty = self.body.ty(atom);
        let mut ed = self.editor();
        let var = ed.var(None, VarFlags::PLAIN, ty);
        let call = ed.call_op(cast, &[var.expr()], list)?;
        Ok(ed.let_(var, atom, call, LetFlags::PLAIN))
    }

    fn type_failure(&self, error: TypeError, at: ExprId) -> RewriteError {
        RewriteError::untyped(error, self.body.binding_name(self.cx, at))
    }

    // ---- Regions ----

    #[inline(never)]
    fn cross_region_border<R: Rewrite>(&mut self, r: &mut R, f: &mut Frame, flags: LetFlags) {
        if !flags.is_dataflow() || flags.starts_region() {
            self.leave_region(r, f);
        }
        if flags.is_dataflow() && !f.in_region {
            f.in_region = true;
            r.enter(self, Scope::Region);
        }
    }

    fn leave_region<R: Rewrite>(&mut self, r: &mut R, f: &mut Frame) {
        if f.in_region {
            r.exit(self, Scope::Region);
            (f.in_region, f.start_pending) = (false, false);
        }
    }

    // ---- Operands and types ----

    #[inline]
    fn replace_operands(&mut self, f: &mut Frame, node: ExprId, list: OperandList) -> Result<(), RewriteError> {
        let mut old: SmallVec<[(u32, ExprId); 4]> = SmallVec::new();
        let watch = !self.retyped.is_empty();
        for i in 0..list.len() {
            let o = self.body.operand(list, i);
            let new = self.resolve(o).ok_or_else(|| RewriteError::not_a_normal_form(self.cx, self.body, f.at))?;
            if new != o {
                self.body.set_operand(list, i, new);
                if self.body.ty(new) != self.body.ty(o) || !matches!(self.body.expr(new), Expr::Var { .. }) {
                    old.push((i as u32, o));
                    continue;
                }
            }
            if watch && (self.retyped.contains_key(&o) || self.retyped.contains_key(&new)) {
                old.push((i as u32, o));
            }
        }
        if old.is_empty() { Ok(()) } else { self.refresh(f, node, &old) }
    }

    /// The type that an atom had when the walk began.
    fn type_before(&self, atom: ExprId) -> TypeId {
        if self.retyped.is_empty() {
            return self.body.ty(atom);
        }
        self.retyped.get(&atom).copied().unwrap_or_else(|| self.body.ty(atom))
    }

    /// Infers the type of a node again, some of whose operands (these, with what they were) are others or have other types now.
    #[inline(never)]
    fn refresh(&mut self, f: &mut Frame, node: ExprId, old_operands: &[(u32, ExprId)]) -> Result<(), RewriteError> {
        let old = self.body.ty(node);
        if self.editor().refresh_type(node).is_err() {
            self.restore_types(f, node, old_operands)?;
        }
        self.pass_on_type(f.at, old, node);
        Ok(())
    }

    /// Casts operands back to the types that they had, which the type rule accepted.
    #[cold]
    fn restore_types(
        &mut self,
        f: &mut Frame,
        node: ExprId,
        old_operands: &[(u32, ExprId)],
    ) -> Result<(), RewriteError> {
        let at = f.at;
        let dataflow = matches!(self.body.expr(at), Expr::Let { flags, .. } if flags.is_dataflow());
        let mut bindings: SmallVec<[(VarId, ExprId); 4]> = SmallVec::new();
        for &(i, old) in old_operands {
            let ty = self.type_before(old);
            let place = Link::Operand(node, i);
            let cast = self.cast(place.target(self.body), ty).map_err(|error| self.type_failure(error, at))?;
            let flags = if dataflow { VarFlags::DATAFLOW } else { VarFlags::PLAIN };
            let name = self.body.as_var(old).and_then(|v| self.body.var_name(v));
            let ty = self.body.ty(cast);
            let var = self.editor().var(name, flags, ty);
            self.set_current(var.expr(), var.expr());
            place.set(self.body, var.expr());
            bindings.push((var, cast));
        }
        self.hang(f);
        f.last = insert_before(&mut self.editor(), f.last, &bindings);
        self.editor().refresh_type(node).map_err(|error| self.type_failure(error, at))?;
        Ok(())
    }

    /// Hangs the present Let or tail where it belongs, and makes it the first of its region if it is that now.
    #[inline]
    fn hang(&mut self, f: &mut Frame) {
        if f.gap {
            f.last.set(self.body, f.at);
            f.gap = false;
            if f.start_pending {
                f.start_pending = false;
                if matches!(self.body.expr(f.at), Expr::Let { flags: LetFlags::DATAFLOW, .. }) {
                    set_let_flags(self.body, f.at, LetFlags::REGION_START);
                }
            }
        }
    }

    /// After the type of a value changed, gives it to the variable at the Let `at`, if that had the old one.
    fn pass_on_type(&mut self, at: ExprId, old: TypeId, value: ExprId) {
        let new = self.body.ty(value);
        if new == old {
            return;
        }
        self.retypes += 1;
        if let Expr::Let { var, .. } = self.body.expr(at)
            && self.body.ty(var.expr()) == old
        {
            self.retyped.entry(var.expr()).or_insert(old);
            self.body.set_type(var.expr(), new);
        }
    }

    // ---- Finishing a Let or a tail ----

    /// A Let of an atom, or an atom in a tail. Whether the block goes on.
    fn finish_atom<R: Rewrite>(
        &mut self,
        r: &mut R,
        f: &mut Frame,
        old: ExprId,
        new: ExprId,
    ) -> Result<bool, RewriteError> {
        let before = self.type_before(old);
        if let Expr::Let { .. } = self.body.expr(f.at) {
            if new != old {
                Link::Value(f.at).set(self.body, new);
            }
            self.pass_on_type(f.at, before, new);
            return self.finish(r, f, new);
        }
        if self.body.ty(new) != before {
            self.retypes += 1;
        }
        if new != old || f.gap {
            f.last.set(self.body, new);
        }
        Ok(false)
    }

    /// Asks what becomes of the value of the present Let or tail, and does it. Whether the block goes on.
    #[inline]
    fn finish<R: Rewrite>(&mut self, r: &mut R, f: &mut Frame, value: ExprId) -> Result<bool, RewriteError> {
        let at = f.at;
        let Expr::Let { var, body: rest, flags, .. } = self.body.expr(at) else {
            let old = self.body.ty(value);
            match r.value(self, Site { at, var: None }, value)? {
                Outcome::Keep | Outcome::Drop => self.hang(f),
                Outcome::Replace(new) | Outcome::Become(new) => {
                    if self.body.ty(new) != old {
                        self.retypes += 1;
                    }
                    f.last.set(self.body, new);
                }
            }
            return Ok(false);
        };
        if let Some(spliced) = &self.spliced
            && spliced.contains(at)
        {
            let old = self.body.ty(var.expr());
            self.pass_on_type(at, old, value);
        }
        match r.value(self, Site { at, var: Some(var) }, value)? {
            Outcome::Keep => self.keep(f, var, rest),
            Outcome::Become(new) => {
                let old = self.body.ty(value);
                Link::Value(at).set(self.body, new);
                self.pass_on_type(at, old, new);
                self.keep(f, var, rest);
            }
            Outcome::Replace(atom) => {
                if flags.is_dataflow() {
                    self.pass_on_output(var, atom);
                }
                self.set_current(var.expr(), atom);
                self.leave_out(f, flags, rest);
            }
            Outcome::Drop => {
                self.set_current(var.expr(), var.expr());
                self.leave_out(f, flags, rest);
            }
        }
        Ok(true)
    }

    #[inline]
    fn leave_out(&mut self, f: &mut Frame, flags: LetFlags, rest: ExprId) {
        f.gap = true;
        f.start_pending |= flags.starts_region();
        f.at = rest;
    }

    #[inline]
    fn keep(&mut self, f: &mut Frame, var: VarId, rest: ExprId) {
        self.hang(f);
        self.set_current(var.expr(), var.expr());
        f.last = Link::Rest(f.at);
        f.at = rest;
    }

    /// If an output of a region is replaced by a variable that is visible only in the region, that becomes an output.
    fn pass_on_output(&mut self, gone: VarId, by: ExprId) {
        if self.body.is_dataflow_var(gone) {
            return;
        }
        if let Some(by) = self.body.as_var(by)
            && self.body.is_dataflow_var(by)
        {
            set_var_flags(self.body, by, VarFlags::PLAIN);
        }
    }

    /// Puts a branch in the place of its If, or another block in the place of a value.
    fn splice(&mut self, f: &mut Frame, block: ExprId) {
        self.retypes += 1;
        if let Expr::Let { .. } = self.body.expr(f.at) {
            self.hang(f);
            let (tail, _) = splice_before(self.body, f.last, block);
            Link::Value(f.at).set(self.body, tail);
            self.spliced.get_or_insert_with(|| IdSet::with_capacity(self.body.len())).insert(f.at);
            f.at = f.last.target(self.body);
        } else {
            f.last.set(self.body, block);
            f.gap = false;
            f.at = block;
        }
    }
}

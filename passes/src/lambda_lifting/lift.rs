//! Writes the block of each lambda of a body into a function of its own.
//!
//! First, the places and calls of lambdas are edited in place, the innermost lambda first. A lambda
//! with captures becomes a `make_closure`, and its calls become calls of its function wherever its
//! captures are known. The variable of any other lambda becomes the global of its function. Then no
//! block contains a lambda, and each block is copied once to its function, where parameters replace
//! the captures.

use anfora_ir::{
    AttrsId, Body, Context, Editor, Expr, ExprId, Function, GlobalId, LambdaData, LetFlags, NameId, OperandList,
    Retype, SharedEdits, SymbolSubstitution, SymbolWalk, Transplant, TypeId, VarFlags, VarId, Visibility,
    signature_type,
};
use anfora_visit::{Link, RewriteError, set_var_flags, unlink_let};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::captures::{Captures, HOST, Lambda};

/// The function that a lambda becomes, with the facts that are known before its block is written.
pub(super) struct Head {
    pub(super) global: GlobalId,
    pub(super) signature: TypeId,
    ret: TypeId,
    /// The substitutes for the symbols from outside; `None` if the lambda names none of them.
    symbols: Option<Box<SymbolSubstitution>>,
    /// The lambda's data besides its block.
    data: LambdaData,
    meta: Option<AttrsId>,
    block: ExprId,
}

impl Head {
    /// Returns the head of the function that a lambda becomes.
    pub(super) fn of(cx: &mut Context, body: &Body, lambda: &Lambda<'_>, global: GlobalId) -> Head {
        let block = Link::Lambda(lambda.node).target(body);
        let data = body.lambda(lambda.lambda);
        let mut symbols = SymbolSubstitution::new();
        lambda.symbols.iter().for_each(|&symbol| _ = symbols.rename(cx, symbol));
        let params: SmallVec<[VarId; 8]> = body.lambda_params(lambda.lambda).chain(lambda.captures()).collect();
        let params: SmallVec<[TypeId; 8]> = params.iter().map(|p| symbols.ty(cx, body.ty(p.expr()))).collect();
        let ret = symbols.ty(cx, data.ret.unwrap_or_else(|| body.type_of(block)));
        let ret = without_inner_symbols(cx, &params, ret);
        let signature = signature_type(cx, &params, ret);
        let of_var = lambda.var.filter(|_| !lambda.is_closure()).and_then(|var| body.meta(var.expr()));
        let meta = body.meta(lambda.node).or(of_var);
        let symbols = (!symbols.is_empty()).then(|| Box::new(symbols));
        Head { global, signature, ret, symbols, data, meta, block }
    }
}

/// Returns a result type without the symbols that no parameter names, since callers cannot name
/// them.
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

/// Writes the functions of one body.
pub(super) struct Lifter<'a> {
    pub(super) cx: &'a mut Context,
    pub(super) body: &'a mut Body,
    pub(super) captures: &'a Captures<'a>,
    /// By lambda, without an entry for the function itself.
    pub(super) heads: Vec<Head>,
    /// By lambda: the expressions in its block whose types changed.
    pub(super) changed: FxHashMap<u32, Vec<ExprId>>,
}

impl Lifter<'_> {
    /// Returns the functions that the lambdas become, in program order, with their globals.
    pub(super) fn run(mut self, transplant: &mut Transplant<'_>) -> Result<Vec<(GlobalId, Function)>, RewriteError> {
        // A variable that becomes a global does so in all its uses.
        let shared = self.body.shared_edits(SharedEdits::Meant);
        for &var in &self.captures.outputs {
            set_var_flags(self.body, var, VarFlags::PLAIN);
        }
        let lambdas = 1..=self.heads.len() as u32;
        let replaced = self.call_directly().and_then(|()| lambdas.clone().rev().try_for_each(|h| self.replace(h)));
        self.body.shared_edits(shared);
        replaced?;
        let mut functions = Vec::with_capacity(self.heads.len());
        for h in lambdas.clone() {
            functions.push((self.head(h).global, self.function(transplant, h)?));
        }
        // The blocks that named the functions of inner lambdas were moved.
        for h in lambdas.filter(|&h| self.captures.lambdas[h as usize].parent != HOST) {
            self.body.remove_global(self.head(h).global);
        }
        let changed = self.changed.remove(&HOST).unwrap_or_default();
        retype(self.cx, self.body, &changed, None)?;
        Ok(functions)
    }

    fn head(&self, h: u32) -> &Head {
        &self.heads[h as usize - 1]
    }

    // ---- In place ----

    /// Turns calls of closures into calls of their functions, wherever the captures are known.
    fn call_directly(&mut self) -> Result<(), RewriteError> {
        let captures = self.captures;
        for from in &captures.uses {
            let (Some(call), Some(h)) = (from.call, captures.direct_callee(from)) else { continue };
            let Expr::Call { operands: old, attrs } = self.body.expr(call) else { continue };
            let Head { global, signature, .. } = *self.head(h);
            let mut operands: SmallVec<[ExprId; 8]> = SmallVec::from_slice(self.body.operands(old));
            operands[0] = self.body.global(global, signature);
            operands.extend(captures.lambdas[h as usize].captures().map(VarId::expr));
            let operands = self.body.push_operands(&operands);
            self.body.set_expr(call, Expr::Call { operands, attrs });
            if self.refresh(call, signature)? {
                self.changed.entry(from.lambda).or_default().push(call);
            }
        }
        Ok(())
    }

    /// Infers the type of a call of, or closure over, a function whose signature has symbols.
    /// Returns true if the type changed.
    fn refresh(&mut self, id: ExprId, signature: TypeId) -> Result<bool, RewriteError> {
        if !self.cx.types.is_symbolic(signature) {
            return Ok(false);
        }
        let mut editor = Editor::new(self.cx, self.body);
        editor.refresh_type(id).map_err(|error| RewriteError::untyped(error, None))
    }

    /// Replaces a lambda by a closure or a global.
    fn replace(&mut self, h: u32) -> Result<(), RewriteError> {
        let lambda = &self.captures.lambdas[h as usize];
        let head = &mut self.heads[h as usize - 1];
        let Head { global, signature, ref mut block, .. } = *head;
        *block = Link::Lambda(lambda.node).target(self.body);
        let before = self.body.ty(lambda.node);
        if lambda.is_closure() {
            let op = self.cx.ops.resolve("make_closure").map_err(|error| RewriteError::untyped(error, None))?;
            let mut operands: SmallVec<[ExprId; 8]> = SmallVec::from_slice(&[self.body.global(global, signature)]);
            operands.extend(lambda.captures().map(VarId::expr));
            let operands = self.body.push_operands(&operands);
            self.body.set_expr(lambda.node, Expr::CallOp { op, operands, attrs: self.cx.attrs.empty() });
            self.refresh(lambda.node, signature)?;
            if let Some(var) = lambda.var {
                let now = self.body.ty(lambda.node);
                if now != before && now != self.body.ty(var.expr()) {
                    self.body.set_type(var.expr(), now);
                    self.note_var(h, var.expr());
                }
            }
            return Ok(());
        }
        // The global overwrites the variable or the tail.
        let atom = lambda.var.map_or(lambda.node, VarId::expr);
        let before = self.body.ty(atom);
        if lambda.var.is_some() {
            let gone = lambda.link.target(self.body);
            unlink_let(self.body, lambda.link);
            // The variable of the removed Let is no longer a variable.
            self.body.set_expr(gone, Expr::Tuple(OperandList::EMPTY));
        }
        self.body.global_in_place(atom, global, signature);
        if signature != before {
            self.note_var(h, atom);
        }
        Ok(())
    }

    /// Records that the replacement of a lambda has another type than before, for the enclosing
    /// block and for the blocks that use it from outside.
    fn note_var(&mut self, h: u32, var: ExprId) {
        let lambda = &self.captures.lambdas[h as usize];
        let users = lambda.uses.iter().map(|&i| self.captures.uses[i as usize].lambda);
        for block in users.chain([lambda.parent]) {
            self.changed.entry(block).or_default().push(var);
        }
    }

    // ---- Functions ----

    /// Returns the function of a lambda.
    fn function(&mut self, transplant: &mut Transplant<'_>, h: u32) -> Result<Function, RewriteError> {
        let captures = self.captures;
        let lambda = &captures.lambdas[h as usize];
        let Head { ret, data, meta, block, ref mut symbols, .. } = self.heads[h as usize - 1];
        transplant.begin(symbols.take().map_or_else(SymbolSubstitution::new, |symbols| *symbols));
        let mut function = Function::with_room(&self.cx.types, self.cx.attrs.empty(), lambda.room);
        function.visibility = Visibility::Private;
        function.ret = Some(ret);
        function.attrs = transplant.symbols.attrs(self.cx, data.attrs);
        function.meta = meta.unwrap_or(function.meta);

        // Parameters, and closures that the block uses as values.
        let from: &Body = self.body;
        let mut editor = Editor::new(self.cx, &mut function.body);
        let params = from.operands(data.params).iter().copied();
        for param in params.chain(lambda.captures().map(VarId::expr)) {
            let var = plain_var(transplant, &mut editor, from, param);
            editor.body.push_param(var);
        }
        let mut last: Option<ExprId> = None;
        for &closed in &lambda.closures {
            let closed = &captures.lambdas[closed as usize];
            let Some(var) = closed.var else { continue };
            let value = transplant.copy(&mut editor, Some(from), closed.node);
            let var = plain_var(transplant, &mut editor, from, var.expr());
            let link = editor.let_(var, value, var.expr(), LetFlags::PLAIN);
            hang(editor.body, last.replace(link), link);
        }

        // The block.
        let mut changed = self.changed.remove(&h).unwrap_or_default();
        for &(alias, of) in &lambda.aliases {
            if from.as_var(of).is_none() || transplant.copied(of).is_some() {
                let by = transplant.copy(&mut editor, Some(from), of);
                transplant.replace(alias, by);
                let ty = transplant.symbols.ty(editor.cx, from.ty(alias));
                if ty != editor.body.ty(by) {
                    changed.push(alias);
                }
            }
        }
        let block = transplant.copy(&mut editor, Some(from), block);
        hang(editor.body, last, block);
        let changed: Vec<ExprId> = changed
            .into_iter()
            .filter_map(|id| match from.expr(id) {
                Expr::Global(_) => Some(transplant.copy(&mut editor, Some(from), id)),
                _ => transplant.copied(id),
            })
            .collect();
        retype(self.cx, &mut function.body, &changed, lambda.name)?;
        Ok(function)
    }
}

/// Returns a variable like one of `from`, outside of dataflow regions.
fn plain_var(transplant: &mut Transplant<'_>, editor: &mut Editor<'_>, from: &Body, var: ExprId) -> VarId {
    let var = from.as_var(var).expect("only variables are bound");
    let var = transplant.var(editor, Some(from), var);
    if editor.body.is_dataflow_var(var) {
        set_var_flags(editor.body, var, VarFlags::PLAIN);
    }
    var
}

/// Links a Let or tail to the previous Let, or makes it the root of a body.
fn hang(body: &mut Body, after: Option<ExprId>, next: ExprId) {
    match after {
        Some(last) => body.set_let_body(last, next),
        None => body.set_root(next),
    }
}

/// Propagates the types of changed expressions. `binding` is the name for errors.
fn retype(cx: &mut Context, body: &mut Body, changed: &[ExprId], binding: Option<NameId>) -> Result<(), RewriteError> {
    if changed.is_empty() {
        return Ok(());
    }
    let mut retype = Retype::new(body);
    changed.iter().for_each(|&id| retype.changed(id));
    let root = body.root();
    match retype.sweep(cx, body, root) {
        Ok(_) => Ok(()),
        Err(error) => Err(RewriteError::untyped(error.error, binding.map(|name| cx.names.get(name)))),
    }
}

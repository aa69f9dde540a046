//! Replaces references to functions by their blocks, in one function.

use anfora_ir::{
    BlockKind, Body, Context, Cursor, Dim, DimId, EntityId, Expr, ExprId, Function, IdSet, LambdaData, LambdaId,
    LetFlags, OpId, Step, SymbolId, SymbolSubstitution, Transplant, TypeError, TypeId, VarFlags, VarId, infer_expr,
    lambda_type,
};
use anfora_visit::{Mutator, Refused, RewriteError, Scope, Site, Slot, Verdict};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Budget;
use super::callee::{Callee, Callees, without_symbol};
use super::facts::InlineFacts;

/// The function that is copied in place of a reference to it, as it was before others were inlined
/// into it.
struct Source<'a> {
    function: &'a Function,
    body: &'a Body,
    /// The stated result type.
    ret: Option<TypeId>,
}

/// The state of inlining into one function.
pub(super) struct Inliner<'a, 'f> {
    facts: &'a InlineFacts,
    callees: &'a Callees,
    /// In program order, without the function that is edited.
    functions: &'a [Option<&'f mut Function>],
    make_closure: Option<OpId>,
    /// The variables that are bound to calls and have no uses other than projections.
    projected: IdSet<ExprId>,
    /// The Lets whose values came from inlined functions.
    inlined: IdSet<ExprId>,
    /// The variables of tuples whose bindings were removed.
    gone: IdSet<ExprId>,
    /// The lambdas around the current place.
    lambdas: Vec<LambdaId>,
    /// The symbols that are now bound in lambdas.
    new_symbols: FxHashMap<LambdaId, Vec<SymbolId>>,
    pub(super) uses: usize,
    budget: &'a mut Budget,
    /// Copies blocks of functions, with substitutes for their symbols and variables.
    transplant: Transplant<'static>,
}

impl<'a, 'f> Inliner<'a, 'f> {
    /// Returns the state for inlining into the function at a position in program order.
    pub(super) fn new(
        cx: &Context,
        facts: &'a InlineFacts,
        callees: &'a Callees,
        functions: &'a [Option<&'f mut Function>],
        budget: &'a mut Budget,
        host: usize,
    ) -> Inliner<'a, 'f> {
        let mut projected = IdSet::with_capacity(0);
        for var in &facts.at(host).projected {
            projected.insert(var.expr());
        }
        Inliner {
            facts,
            callees,
            functions,
            make_closure: cx.ops.find("make_closure"),
            projected,
            inlined: IdSet::with_capacity(0),
            gone: IdSet::with_capacity(0),
            lambdas: Vec::new(),
            new_symbols: FxHashMap::default(),
            uses: 0,
            budget,
            transplant: Transplant::new(),
        }
    }

    /// Returns the callee that an atom names, if it is inlined.
    fn callee(&self, body: &Body, atom: ExprId) -> Option<&'a Callee> {
        match body.expr(atom) {
            Expr::Global(global) => self.callees.get(global),
            _ => None,
        }
    }

    /// Returns the function of a callee, unless it is edited now.
    fn source(&self, callee: &'a Callee) -> Option<Source<'a>> {
        let function = self.functions[callee.position].as_deref()?;
        let (body, ret) = match &callee.before {
            Some(before) => (&before.body, before.ret),
            None => (&function.body, function.ret),
        };
        Some(Source { function, body, ret })
    }

    /// Returns the replacement of an operand, if it may be inlined here. The uses counted before do
    /// not include a function that is passed here as an argument of another.
    fn resolve(&mut self, s: &mut Site<'_>, operand: ExprId) -> ExprId {
        let atom = s.resolve(operand);
        if atom == operand {
            return operand;
        }
        match self.callee(s.editor.body, atom) {
            Some(callee) if !self.budget.spend(callee.full_size) => operand,
            _ => atom,
        }
    }

    /// Returns the block of a called function; `None` if the call stays.
    fn call(
        &mut self,
        s: &mut Site<'_>,
        slot: Slot,
        function: ExprId,
        arguments: &[ExprId],
    ) -> Result<Option<ExprId>, RewriteError> {
        let Some(callee) = self.callee(s.editor.body, function) else { return Ok(None) };
        let Some(Source { body: from, .. }) = self.source(callee) else { return Ok(None) };
        let in_region = matches!(s.editor.body.expr(slot.at), Expr::Let { flags, .. } if flags.is_dataflow());
        if from.params().len() != arguments.len() || in_region && !callee.is_straight {
            return Ok(None);
        }
        let Some(copy) = self.copy(s, slot, callee, arguments)? else { return Ok(None) };
        self.bind_here(&copy.bound);
        self.bind_here(&copy.cast);
        self.inlined.insert(slot.at);
        Ok(Some(copy.with_casts(s, copy.block)))
    }

    /// Returns the lambda for a function whose last parameters are replaced by `captures`, with the
    /// casts of these. Returns `None` if the reference stays.
    fn lambda(
        &mut self,
        s: &mut Site<'_>,
        slot: Slot,
        function: ExprId,
        captures: &[ExprId],
    ) -> Result<Option<(Copy, ExprId)>, RewriteError> {
        let Some(callee) = self.callee(s.editor.body, function) else { return Ok(None) };
        let Some(source) = self.source(callee) else { return Ok(None) };
        if source.body.params().len() < captures.len() {
            return Ok(None);
        }
        let Some(copy) = self.copy(s, slot, callee, captures)? else { return Ok(None) };
        self.bind_here(&copy.cast);
        let symbols = &mut self.transplant.symbols;
        let attrs = without_symbol(s.editor.cx, source.function.attrs);
        let attrs = symbols.attrs(s.editor.cx, attrs);
        let found = s.editor.body.type_of(copy.block);
        let ret = source.ret.map(|ty| symbols.ty(s.editor.cx, ty)).filter(|&ty| ty != found);
        let lambda = s.editor.body.push_lambda(&copy.params, ret, attrs);
        if !copy.bound.is_empty() {
            s.editor.body.set_lambda_symbols(lambda, copy.bound.clone());
        }
        let node = s.editor.lambda(lambda, copy.block);
        Ok(Some((copy, node)))
    }

    /// Returns a block that evaluates to a lambda, to replace a value.
    fn closure(
        &mut self,
        s: &mut Site<'_>,
        slot: Slot,
        function: ExprId,
        captures: &[ExprId],
    ) -> Result<Option<ExprId>, RewriteError> {
        let Some((copy, node)) = self.lambda(s, slot, function, captures)? else { return Ok(None) };
        if let Some(var) = slot.var
            && let Some(callee) = self.callee(s.editor.body, function)
            && let Some(Source { function: of, .. }) = self.source(callee)
            && of.meta != s.editor.cx.attrs.empty()
            && s.editor.body.meta(var.expr()).is_none()
        {
            s.editor.body.set_meta(var.expr(), Some(of.meta));
        }
        Ok(Some(copy.with_casts(s, node)))
    }

    /// Returns a block that binds a lambda for each operand that names a function, and ends in the
    /// node with these lambdas as operands.
    fn operands(
        &mut self,
        s: &mut Site<'_>,
        slot: Slot,
        node: ExprId,
        from: usize,
    ) -> Result<Option<ExprId>, RewriteError> {
        let Some(list) = s.editor.body.expr(node).operand_list() else { return Ok(None) };
        let mut operands: SmallVec<[ExprId; 8]> = SmallVec::from_slice(s.editor.body.operands(list));
        let mut bindings: SmallVec<[(VarId, ExprId); 2]> = SmallVec::new();
        let mut bound: FxHashMap<ExprId, VarId> = FxHashMap::default();
        for place in &mut operands[from..] {
            let operand = self.resolve(s, *place);
            if self.callee(s.editor.body, operand).is_none() {
                continue;
            }
            let var = match bound.get(&operand) {
                Some(&var) => var,
                None => {
                    let Some((_, lambda)) = self.lambda(s, slot, operand, &[])? else { continue };
                    let ty = s.editor.body.ty(lambda);
                    let var = s.editor.var(None, VarFlags::PLAIN, ty);
                    bindings.push((var, lambda));
                    bound.insert(operand, var);
                    self.uses += 1;
                    var
                }
            };
            *place = var.expr();
        }
        if bindings.is_empty() {
            return Ok(None);
        }
        let mut block = s.editor.with_operands(node, &operands);
        for (var, lambda) in bindings.into_iter().rev() {
            block = s.editor.let_(var, lambda, block, LetFlags::PLAIN);
        }
        Ok(Some(block))
    }

    /// Records symbols that are now bound in the current block.
    fn bind_here(&mut self, symbols: &[SymbolId]) {
        if let Some(&lambda) = self.lambdas.last()
            && !symbols.is_empty()
        {
            self.new_symbols.entry(lambda).or_default().extend(symbols);
        }
    }

    // ---- Copies ----

    /// Copies a function's block for use here, with arguments in place of its last parameters.
    /// Returns `None` if some expression in it would have no type.
    fn copy(
        &mut self,
        s: &mut Site<'_>,
        slot: Slot,
        callee: &'a Callee,
        arguments: &[ExprId],
    ) -> Result<Option<Copy>, RewriteError> {
        let Some(Source { body: from, .. }) = self.source(callee) else { return Ok(None) };
        let mut resolved: SmallVec<[ExprId; 8]> = SmallVec::with_capacity(arguments.len());
        for &argument in arguments {
            let atom = s.resolve(argument);
            if !s.editor.body.expr(atom).is_atom() {
                return Err(RewriteError::not_a_normal_form(s.editor.cx, s.editor.body, slot.at));
            }
            resolved.push(atom);
        }
        let left = from.params().len() - arguments.len();
        let mut copy = Copy {
            block: s.editor.body.root(),
            params: SmallVec::new(),
            casts: SmallVec::new(),
            bound: Vec::new(),
            cast: Vec::new(),
        };
        let transplant = &mut self.transplant;
        let mut is_other = callee.is_symbolic();
        transplant.begin(if is_other { SymbolSubstitution::renaming() } else { SymbolSubstitution::new() });
        if is_other {
            copy.bind_symbols(s, &mut transplant.symbols, callee, from, &resolved);
        }
        for (i, &param) in from.params().iter().enumerate() {
            let ty = transplant.symbols.ty(s.editor.cx, from.ty(param.expr()));
            let names_cast = copy.names_cast(s.editor.cx, ty);
            let var = s.editor.var(from.var_name(param), VarFlags::PLAIN, ty);
            transplant.replace(param.expr(), var.expr());
            if i < left {
                copy.params.push(var);
                continue;
            }
            let atom = resolved[i - left];
            if names_cast {
                let Ok(cast) = s.editor.match_cast(atom, ty) else { return Ok(None) };
                copy.casts.push((var, cast));
                continue;
            }
            if s.editor.body.ty(atom) != ty {
                is_other = true;
                let ty = s.editor.body.ty(atom);
                s.editor.body.set_type(var.expr(), ty);
            }
            s.replace_var(var, atom)?;
        }
        let lambdas = s.editor.body.lambda_count();
        copy.block = transplant.copy(&mut s.editor, Some(from), from.root());
        drop_symbols(s, lambdas);
        for var in &self.facts.at(callee.position).projected {
            if let Some(copied) = transplant.copied(var.expr()) {
                self.projected.insert(copied);
            }
        }
        if is_other && infer_again(s.editor.cx, s.editor.body, copy.block).is_err() {
            return Ok(None);
        }
        Ok(Some(copy))
    }
}

/// Removes the attribute `global_symbol` from the lambdas of a body from this number on.
fn drop_symbols(s: &mut Site<'_>, from: usize) {
    for lambda in (from..s.editor.body.lambda_count()).map(LambdaId::from_index) {
        let data = s.editor.body.lambda(lambda);
        let attrs = without_symbol(s.editor.cx, data.attrs);
        if attrs != data.attrs {
            s.editor.body.set_lambda(lambda, LambdaData { attrs, ..data });
        }
    }
}

/// A copy of the block of a function.
struct Copy {
    block: ExprId,
    /// The parameters without an argument.
    params: SmallVec<[VarId; 4]>,
    /// The arguments whose types do not determine the symbols, cast to the types of the parameters.
    casts: SmallVec<[(VarId, ExprId); 2]>,
    /// The symbols that are bound in the block, or by `params`.
    bound: Vec<SymbolId>,
    /// The symbols that the casts bind.
    cast: Vec<SymbolId>,
}

impl Copy {
    /// Finds the dimensions that replace the symbols of a function, which is copied from `from`
    /// with arguments for its last parameters.
    fn bind_symbols(
        &mut self,
        s: &mut Site<'_>,
        symbols: &mut SymbolSubstitution,
        callee: &Callee,
        from: &Body,
        arguments: &[ExprId],
    ) {
        let mut found: FxHashMap<SymbolId, DimId> = FxHashMap::default();
        let mut own: FxHashSet<SymbolId> = FxHashSet::default();
        let left = from.params().len() - arguments.len();
        for (i, &param) in from.params().iter().enumerate() {
            let ty = from.ty(param.expr());
            match i.checked_sub(left) {
                Some(i) => extents(s.editor.cx, ty, s.editor.body.ty(arguments[i]), &mut found),
                None => s.editor.cx.types.for_each_binding_symbol(ty, |symbol| {
                    own.insert(symbol);
                }),
            }
        }
        for &symbol in &callee.param_symbols {
            if let Some(&dim) = found.get(&symbol) {
                symbols.set(symbol, dim);
            } else {
                let fresh = symbols.rename(s.editor.cx, symbol);
                match own.contains(&symbol) {
                    true => self.bound.push(fresh),
                    false => self.cast.push(fresh),
                }
            }
        }
        for &symbol in &callee.inner_symbols {
            self.bound.push(symbols.rename(s.editor.cx, symbol));
        }
    }

    /// Returns true if a parameter of this type must be cast because the type names symbols that
    /// the casts bind.
    fn names_cast(&self, cx: &Context, ty: TypeId) -> bool {
        let mut names = false;
        if !self.cast.is_empty() {
            cx.types.for_each_binding_symbol(ty, |s| names |= self.cast.contains(&s));
        }
        names
    }

    /// Returns a block with the casts, followed by the value or block.
    fn with_casts(&self, s: &mut Site<'_>, mut block: ExprId) -> ExprId {
        for &(var, cast) in self.casts.iter().rev() {
            block = s.editor.let_(var, cast, block, LetFlags::PLAIN);
        }
        block
    }
}

/// Finds the extents of symbols that are alone in a dimension of a parameter's type, from the type
/// of an argument. Unknown extents are skipped.
fn extents(cx: &Context, param: TypeId, argument: TypeId, found: &mut FxHashMap<SymbolId, DimId>) {
    let unknown = cx.types.dims.unknown();
    cx.types.for_each_dim_beside(param, argument, &mut FxHashSet::default(), |d, e| {
        if let Dim::Symbol(symbol) = *cx.types.dims.get(d)
            && e != unknown
        {
            found.entry(symbol).or_insert(e);
        }
    });
}

/// Infers the types of a block again, after variables that are bound outside got other types or
/// symbols were replaced.
fn infer_again(cx: &mut Context, body: &mut Body, block: ExprId) -> Result<(), TypeError> {
    let mut cursor = Cursor::at(body, block);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Let(id) => {
                if let Expr::Let { var, value, .. } = body.expr(id)
                    && let Expr::Lambda { lambda, .. } = body.expr(value)
                    && let Some(ret) = body.lambda(lambda).ret
                {
                    let params: SmallVec<[TypeId; 4]> = body.lambda_params(lambda).map(|p| body.ty(p.expr())).collect();
                    let ty = lambda_type(cx, body, lambda, &params, ret);
                    body.set_type(var.expr(), ty);
                }
            }
            Step::Flat(id) | Step::Exit(id) => {
                if let Expr::CallOp { op, operands, attrs } = body.expr(id)
                    && attrs != cx.attrs.empty()
                {
                    let checked = cx.check_op_attrs(op, attrs).map_err(|(error, _)| error)?;
                    body.set_expr(id, Expr::CallOp { op, operands, attrs: checked });
                }
                let ty = infer_expr(cx, body, id)?;
                body.set_type(id, ty);
            }
            Step::Bound(id) => {
                if let Expr::Let { var, value, .. } = body.expr(id) {
                    let ty = body.type_of(value);
                    body.set_type(var.expr(), ty);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl Mutator for Inliner<'_, '_> {
    type Error = RewriteError;
    const NODES: bool = false;
    const VALUES: bool = true;
    const REFUSED: Refused = Refused::CastBack;
    const REASON: &'static str = "inlined";
    // The uses of a tuple that is removed have to be replaced.
    const SEPARABLE: bool = false;

    fn expand(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        if !s.editor.may_rewrite() {
            return Ok(None);
        }
        let block = self.inline_at(s, slot, value)?;
        if block.is_some() {
            s.editor.rewrote(slot.at, Self::REASON);
        }
        Ok(block)
    }

    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        match s.editor.body.expr(value) {
            Expr::Proj { tuple, index } if self.gone.contains(tuple) => Ok(match s.field(tuple, index) {
                Some(field) => {
                    if let Some(var) = slot.var {
                        pass_on_meta(s, var, field);
                    }
                    Verdict::Var(field)
                }
                None => Verdict::Keep,
            }),
            Expr::Lambda { lambda, .. } => {
                if let Some(new) = self.new_symbols.remove(&lambda) {
                    self.bind_in_lambda(s, slot, value, lambda, new)?;
                }
                Ok(Verdict::Keep)
            }
            expr if self.inlined.contains(slot.at) => {
                let Some(var) = slot.var else { return Ok(Verdict::Keep) };
                if expr.is_atom() {
                    pass_on_meta(s, var, value);
                    return Ok(Verdict::Var(value));
                }
                if matches!(expr, Expr::Tuple(_)) && self.projected.contains(var.expr()) {
                    self.gone.insert(var.expr());
                    return Ok(Verdict::Drop);
                }
                Ok(Verdict::Keep)
            }
            _ => Ok(Verdict::Keep),
        }
    }

    fn enter(&mut self, s: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        if let Scope::Block(BlockKind::Lambda(id)) = scope
            && let Expr::Lambda { lambda, .. } = s.editor.body.expr(id)
        {
            self.lambdas.push(lambda);
        }
        Ok(())
    }

    fn exit(&mut self, _: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        if let Scope::Block(BlockKind::Lambda(_)) = scope {
            self.lambdas.pop();
        }
        Ok(())
    }
}

impl Inliner<'_, '_> {
    /// Returns the block that replaces a value, with the functions that it names inlined; `None` if
    /// the value stays.
    fn inline_at(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        let expr = s.editor.body.expr(value);
        let makes_closure = matches!(expr, Expr::CallOp { op, .. } if Some(op) == self.make_closure);
        let block = match expr {
            Expr::Global(_) | Expr::Var { .. } => {
                let atom = self.resolve(s, value);
                self.closure(s, slot, atom, &[])?
            }
            Expr::Call { operands, .. } | Expr::CallOp { operands, .. } if !operands.is_empty() => {
                if !makes_closure && !matches!(expr, Expr::Call { .. }) {
                    return self.operands(s, slot, value, 0);
                }
                let all: SmallVec<[ExprId; 8]> = SmallVec::from_slice(s.editor.body.operands(operands));
                let function = self.resolve(s, all[0]);
                let block = match makes_closure {
                    true => self.closure(s, slot, function, &all[1..])?,
                    false => self.call(s, slot, function, &all[1..])?,
                };
                if block.is_none() {
                    return self.operands(s, slot, value, 1);
                }
                block
            }
            Expr::Tuple(_) => return self.operands(s, slot, value, 0),
            _ => None,
        };
        self.uses += usize::from(block.is_some());
        Ok(block)
    }

    /// Makes symbols that are bound in the block of a lambda the lambda's own.
    fn bind_in_lambda(
        &mut self,
        s: &mut Site<'_>,
        slot: Slot,
        value: ExprId,
        lambda: LambdaId,
        new: Vec<SymbolId>,
    ) -> Result<(), RewriteError> {
        let mut symbols = s.editor.body.lambda_symbols(lambda).to_vec();
        symbols.extend(new);
        s.editor.body.set_lambda_symbols(lambda, symbols);
        let before = s.editor.body.ty(value);
        let changed = s.editor.refresh_type(value).map_err(|error| RewriteError::untyped(error, None))?;
        if changed
            && let Some(var) = slot.var
            && s.editor.body.ty(var.expr()) == before
        {
            let ty = s.editor.body.ty(value);
            s.editor.body.set_type(var.expr(), ty);
        }
        Ok(())
    }
}

/// Copies the metadata of a removed variable to its replacement, and its name if the replacement
/// has none.
fn pass_on_meta(s: &mut Site<'_>, gone: VarId, by: ExprId) {
    let Some(var) = s.editor.body.as_var(by) else { return };
    if let Some(meta) = s.editor.body.meta(gone.expr())
        && s.editor.body.meta(by).is_none()
    {
        s.editor.body.set_meta(by, Some(meta));
    }
    if let Expr::Var { name: None, flags } = s.editor.body.expr(by)
        && let Some(name) = s.editor.body.var_name(gone)
    {
        s.editor.body.set_expr(var.expr(), Expr::Var { name: Some(name), flags });
    }
}

//! Shrinks expressions: values are cut off, branches are taken, operands are replaced.

use std::ops::Range;

use anfora_ir::{
    Body, Context, Editor, Expr, ExprId, Function, FunctionKey, GlobalId, Literal, Module, SymbolId, TypeId, VarFlags,
    VarId,
};
use anfora_visit::{Mutator, Rewrite, RewriteError, Site, Slot, Verdict, link_counts, mutate_function};
use rustc_hash::FxHashSet;

use super::Shrink;

/// The expression that replaces another one.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Substitute {
    /// A parameter of the function, which must be external. It may have any value, so a fault that
    /// depends on values stays visible. New parameters replace values, and a parameter that the
    /// function has already replaces an operand.
    Parameter,
    /// The first operand of the same type.
    Operand,
    /// A constant of zeros.
    Zero,
}

/// Replaces the values at the chosen sites. A site is a call, tuple, projection, If or `fn`.
pub(super) struct Cuts {
    pub(super) by: Substitute,
}

/// Returns true if a node is a site of [`Cuts`].
fn is_value(expr: Expr) -> bool {
    !expr.is_atom() && !matches!(expr, Expr::Let { .. })
}

/// Returns the number of expressions of a compacted program for which `is_site` returns true.
pub(super) fn count(module: &Module, is_site: impl Fn(Expr) -> bool) -> usize {
    module.functions().map(|(_, f)| f.body.exprs().filter(|&(_, expr)| is_site(expr)).count()).sum()
}

impl Shrink for Cuts {
    const PART: &'static str = "values";

    fn sites(&self, module: &Module) -> usize {
        count(module, is_value)
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        let mut number = 0;
        cut(module, self.by, |_, _| {
            number += 1;
            sites.contains(&(number - 1))
        })
    }
}

/// Replaces the values for which `is_chosen` returns true. It is asked about each value once, in
/// the order of a walk.
pub(super) fn cut(
    module: &mut Module,
    by: Substitute,
    mut is_chosen: impl FnMut(&Editor<'_>, ExprId) -> bool,
) -> Option<bool> {
    let keys: Vec<FunctionKey> = module.order().to_vec();
    let mut is_changed = false;
    for key in keys {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        if !function.is_definition() {
            continue;
        }
        let mut cutter = Cutter {
            by,
            is_chosen: &mut is_chosen,
            symbols: symbols_of_parameters(cx, function),
            may_add: function.is_external(cx),
            added: Vec::new(),
            is_changed: false,
        };
        mutate_function(cx, function, &mut cutter).ok()?;
        let added = cutter.added;
        is_changed |= cutter.is_changed;
        add_parameters(function, added);
    }
    Some(is_changed)
}

/// Makes the variables that are used parameters.
fn add_parameters(function: &mut Function, added: Vec<VarId>) {
    if added.is_empty() {
        return;
    }
    let links = link_counts(&function.body);
    for var in added.into_iter().filter(|var| links[var.expr()] > 0) {
        function.body.push_param(var);
    }
}

/// Returns the symbols that the parameters of a function bind.
fn symbols_of_parameters(cx: &Context, function: &Function) -> FxHashSet<SymbolId> {
    let mut symbols = FxHashSet::default();
    for param in function.body.params() {
        cx.types.for_each_binding_symbol(function.body.ty(param.expr()), |symbol| _ = symbols.insert(symbol));
    }
    symbols
}

struct Cutter<'a> {
    by: Substitute,
    is_chosen: &'a mut dyn FnMut(&Editor<'_>, ExprId) -> bool,
    symbols: FxHashSet<SymbolId>,
    /// True if parameters may be added.
    may_add: bool,
    added: Vec<VarId>,
    is_changed: bool,
}

impl Cutter<'_> {
    fn substitute(&mut self, s: &mut Site<'_>, id: ExprId) -> Option<ExprId> {
        let ty = s.editor.body.type_of(id);
        match self.by {
            Substitute::Operand => {
                let (cx, body) = (&*s.editor.cx, &*s.editor.body);
                body.inputs(id).iter().copied().find(|&input| cx.types.accepts(ty, body.type_of(input)))
            }
            Substitute::Parameter | Substitute::Zero => {
                let Some(fields) = s.editor.cx.types.as_tuple(ty) else { return self.tensor(s, ty) };
                let fields: Vec<TypeId> = fields.to_vec();
                if matches!(s.editor.body.expr(id), Expr::Tuple(_)) {
                    // Its fields are replaced where they are computed.
                    return None;
                }
                let fields: Vec<ExprId> = fields.into_iter().map(|ty| self.tensor(s, ty)).collect::<Option<_>>()?;
                Some(s.editor.tuple(&fields))
            }
        }
    }

    /// Returns a substitute for a tensor.
    fn tensor(&mut self, s: &mut Site<'_>, ty: TypeId) -> Option<ExprId> {
        let cx = &*s.editor.cx;
        if self.by == Substitute::Zero {
            return zero(&mut s.editor, ty);
        }
        cx.types.as_tensor(ty)?;
        let mut is_bound = true;
        cx.types.for_each_symbol(ty, |dim| {
            let anfora_ir::Dim::Symbol(symbol) = cx.types.dims.get(dim) else { return };
            is_bound &= self.symbols.contains(symbol);
        });
        if !self.may_add || !is_bound {
            return None;
        }
        let var = s.editor.var(None, VarFlags::PLAIN, ty);
        self.added.push(var);
        Some(var.expr())
    }
}

/// Returns a constant of zeros of a type; `None` if the type does not have one.
fn zero(editor: &mut Editor<'_>, ty: TypeId) -> Option<ExprId> {
    let shape = editor.cx.types.static_shape(ty)?;
    let dtype = editor.cx.types.as_tensor(ty)?.dtype;
    let bytes = dtype.bits() / 8;
    if bytes == 0 || dtype.bits() % 8 != 0 {
        return None;
    }
    let literal = editor.literal(Literal::splat_bytes(dtype, &shape, &vec![0; bytes]));
    editor.cx.types.accepts(ty, editor.body.ty(literal)).then_some(literal)
}

impl Mutator for Cutter<'_> {
    type Error = RewriteError;
    const SEPARABLE: bool = false;

    fn rewrite_expr(&mut self, s: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let is_chosen = (self.is_chosen)(&s.editor, id);
        let new = is_chosen.then(|| self.substitute(s, id)).flatten();
        self.is_changed |= new.is_some();
        Ok(new.map_or(Rewrite::Keep, Rewrite::Replace))
    }

    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let is_alias = slot.var.is_some() && s.editor.body.expr(value).is_atom();
        Ok(if is_alias { Verdict::Var(value) } else { Verdict::Keep })
    }
}

/// Removes bindings whose variables nothing uses: casts, which bind symbols, and all bindings of
/// programs that are not in A-normal form. A site is such a binding.
pub(super) struct UnusedBindings;

impl Shrink for UnusedBindings {
    const PART: &'static str = "bindings";

    fn sites(&self, module: &Module) -> usize {
        let of_body = |body: &Body| {
            let links = link_counts(body);
            body.exprs().filter(|&(_, expr)| matches!(expr, Expr::Let { var, .. } if links[var.expr()] == 0)).count()
        };
        module.functions().map(|(_, f)| of_body(&f.body)).sum()
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        let (mut next, mut is_changed) = (0, false);
        for key in module.order().to_vec() {
            let Some((function, cx)) = module.get_mut(key) else { continue };
            if function.is_definition() {
                let links = link_counts(&function.body);
                let unused = function.body.exprs().filter_map(|(_, expr)| match expr {
                    Expr::Let { var, .. } if links[var.expr()] == 0 => Some(var),
                    _ => None,
                });
                let unused: FxHashSet<VarId> = unused.collect();
                let mut dropper = Dropper { unused, sites: &sites, next, is_changed: false };
                mutate_function(cx, function, &mut dropper).ok()?;
                next = dropper.next;
                is_changed |= dropper.is_changed;
            }
        }
        Some(is_changed)
    }
}

struct Dropper<'a> {
    unused: FxHashSet<VarId>,
    sites: &'a Range<usize>,
    next: usize,
    is_changed: bool,
}

impl Mutator for Dropper<'_> {
    type Error = RewriteError;
    const SEPARABLE: bool = false;

    fn rewrite_value(&mut self, _: &mut Site<'_>, slot: Slot, _: ExprId) -> Result<Verdict, RewriteError> {
        if !slot.var.is_some_and(|var| self.unused.contains(&var)) {
            return Ok(Verdict::Keep);
        }
        self.next += 1;
        if !self.sites.contains(&(self.next - 1)) {
            return Ok(Verdict::Keep);
        }
        self.is_changed = true;
        Ok(Verdict::Drop)
    }
}

/// Returns true if an expression names one of these functions, as an operand.
pub(super) fn names_any(editor: &Editor<'_>, id: ExprId, globals: &FxHashSet<GlobalId>) -> bool {
    let body = &*editor.body;
    let is_named = |&input: &ExprId| matches!(body.expr(input), Expr::Global(g) if globals.contains(&g));
    body.inputs(id).iter().any(is_named)
}

/// Replaces Ifs by one of their branches.
pub(super) struct TakenBranches {
    pub(super) takes_else: bool,
}

impl Shrink for TakenBranches {
    const PART: &'static str = "branches";

    fn sites(&self, module: &Module) -> usize {
        count(module, |expr| matches!(expr, Expr::If { .. }))
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        let mut taker = BranchTaker { takes_else: self.takes_else, sites, next: 0, is_changed: false };
        for key in module.order().to_vec() {
            let Some((function, cx)) = module.get_mut(key) else { continue };
            if function.is_definition() {
                mutate_function(cx, function, &mut taker).ok()?;
            }
        }
        Some(taker.is_changed)
    }
}

struct BranchTaker {
    takes_else: bool,
    sites: Range<usize>,
    next: usize,
    is_changed: bool,
}

impl Mutator for BranchTaker {
    type Error = RewriteError;
    const SEPARABLE: bool = false;

    fn expand(&mut self, s: &mut Site<'_>, _: Slot, value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        let Expr::If { then_block, else_block, .. } = s.editor.body.expr(value) else { return Ok(None) };
        self.next += 1;
        if !self.sites.contains(&(self.next - 1)) {
            return Ok(None);
        }
        self.is_changed = true;
        Ok(Some(if self.takes_else { else_block } else { then_block }))
    }
}

/// Replaces the operands at the chosen sites. A site is an operand that is a variable.
pub(super) struct Operands {
    pub(super) by: Substitute,
}

impl Shrink for Operands {
    const PART: &'static str = "operands";

    fn sites(&self, module: &Module) -> usize {
        let of_body = |f: &Function| {
            let inputs = f.body.exprs().filter(|&(_, expr)| is_value(expr)).map(|(id, _)| f.body.inputs(id));
            inputs.flatten().filter(|&&input| f.body.as_var(input).is_some()).count()
        };
        module.functions().map(|(_, f)| of_body(f)).sum()
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        let mut replacer = OperandReplacer { by: self.by, sites, next: 0, params: Vec::new(), is_changed: false };
        for key in module.order().to_vec() {
            let Some((function, cx)) = module.get_mut(key) else { continue };
            if function.is_definition() {
                replacer.params = function.body.params().to_vec();
                mutate_function(cx, function, &mut replacer).ok()?;
            }
        }
        Some(replacer.is_changed)
    }
}

struct OperandReplacer {
    by: Substitute,
    sites: Range<usize>,
    next: usize,
    params: Vec<VarId>,
    is_changed: bool,
}

impl Mutator for OperandReplacer {
    type Error = RewriteError;
    const SEPARABLE: bool = false;

    fn rewrite_expr(&mut self, s: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let mut operands = s.editor.body.inputs(id).to_vec();
        let mut is_other = false;
        for operand in &mut operands {
            if s.editor.body.as_var(*operand).is_none() {
                continue;
            }
            self.next += 1;
            if !self.sites.contains(&(self.next - 1)) {
                continue;
            }
            let ty = s.editor.body.ty(*operand);
            let new = match self.by {
                Substitute::Zero => zero(&mut s.editor, ty),
                _ => self.params.iter().map(|p| p.expr()).find(|&p| s.editor.body.ty(p) == ty),
            };
            if let Some(new) = new.filter(|new| new != operand) {
                *operand = new;
                is_other = true;
            }
        }
        if !is_other || !matches!(s.editor.body.expr(id), Expr::CallOp { .. } | Expr::Call { .. } | Expr::Tuple(_)) {
            return Ok(Rewrite::Keep);
        }
        self.is_changed = true;
        let new = s.editor.with_operands(id, &operands);
        s.editor.refresh_type(new).map_err(RewriteError::Type)?;
        Ok(Rewrite::Replace(new))
    }
}

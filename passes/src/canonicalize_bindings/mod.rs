//! # CanonicalizeBindings
//!
//! ```text
//! Notation   v, t variables; a an atom; i a field number.
//! Needs      A-normal form.
//! Effect     let v = a; rest                    =>  rest[v := a]    aliases, constants, globals
//!            let v = t.i; rest                  =>  rest[v := ai]   let t = (a0, a1, ...) before
//!            let v = t.i; rest                  =>  rest[v := aj]
//!              let t = op(a0, ...) before, whose result i is operand j
//!            let v = op(a0, ...); rest          =>  rest[v := aj]
//!              likewise, if the result is not a tuple
//!            let v = (t.0, t.1, ...); rest      =>  rest[v := t]    all the fields of t, in order
//!            let v = c(b...); rest              =>  let v = @g(b..., a...); rest
//!              let c = make_closure(@g, a...) before
//!            let v = match_cast(a, to=T); rest  =>  rest[v := a]    a is of type T
//!            let v = match_cast(a, to=T); rest  =>  rest[k := d]
//!              T has a new symbol k where the type of a has the extent d, and d is not `?`
//!            An output of a dataflow region that is not used outside it becomes visible only
//!            inside. A variable of a region that takes the place of an output becomes the output,
//!            and takes its name.
//! Never      If the types show that a match_cast, or a use of its result, must fail, the symbols
//!            of the function stay, and a remark gives the reason.
//! Not done   A match_cast is not used to learn about symbols that are bound before it. Dead
//!            bindings stay (DeadCodeElimination); equal values stay (EliminateCommonSubexpr).
//! Cost       One forward sweep, a walk where there are regions with outputs, and two where a
//!            match_cast binds symbols. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              let %p = (%x, 1);                          let %p = (%x, 1);
//!              let %a = %p.1;                             add(%x, 1)
//!              let %b = %x;                             }
//!              add(%b, %a)
//!            }
//! ```

mod direct_call;
mod known_symbols;

use anfora_ir::{Context, Diagnostic, Expr, ExprId, Function, Severity, VarFlags};
use anfora_manager::register_pass;
use anfora_visit::{Mutator, Refused, RewriteError, Scope, Site, Slot, Verdict, hide_unused_outputs, mutate_function};

pub use self::direct_call::direct_call;
use self::known_symbols::known_symbols;

register_pass! {
    /// Replaces variables that stand for other atoms, and looks through tuples
    pub CANONICALIZE_BINDINGS = FunctionPass("CanonicalizeBindings", 1).needing(["anf"]).sparing_primitive().breaking(["primitive-operators"]);
    run |edit, _, cx| {
        let done = canonicalize_bindings(edit.cx, edit.function)?;
        cx.count("replaced", done.replaced as u64);
        cx.count("direct", done.direct as u64);
        cx.count("hidden", done.hidden as u64);
        cx.count("resolved", done.resolved as u64);
        if let Some(contradiction) = done.contradiction {
            cx.remark(contradiction.in_function(edit.name()));
        }
        Ok(())
    }
}

/// The result of canonicalizing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Canonicalized {
    /// The number of bindings and tails that were replaced by atoms.
    pub replaced: usize,
    /// The number of calls of closures that became calls of their functions.
    pub direct: usize,
    /// The number of outputs of dataflow regions that became visible only inside.
    pub hidden: usize,
    /// The number of symbols that were replaced by known dimensions.
    pub resolved: usize,
    /// The reason why no symbols were replaced although some could have been.
    pub contradiction: Option<Diagnostic>,
}

/// Replaces the variables of a function that stand for atoms, and the symbols that stand for other
/// dimensions.
///
/// If the result type is not stated and a symbol in it is replaced, the caller must update the
/// signature, as [`FunctionPass`](anfora_manager::FunctionPass) does.
///
/// # Errors
/// If the body is not in A-normal form.
pub fn canonicalize_bindings(cx: &mut Context, function: &mut Function) -> Result<Canonicalized, RewriteError> {
    let resolved = resolve_symbols(cx, function);
    let mut pass = BindingCanonicalizer { regions: 0, replaced: 0, direct: 0 };
    mutate_function(cx, function, &mut pass)?;
    let hidden = if pass.regions > 0 { hide_unused_outputs(&mut function.body, |_| true) } else { 0 };
    let (resolved, contradiction) = match resolved {
        Ok(resolved) => (resolved, None),
        Err(contradiction) => (0, Some(*contradiction)),
    };
    Ok(Canonicalized { replaced: pass.replaced, direct: pass.direct, hidden, resolved, contradiction })
}

/// Replaces the symbols that casts bind to dimensions known from the types of their operands.
/// Returns the number of symbols. If some expression would have no type then, all symbols stay, and
/// the error is a remark.
fn resolve_symbols(cx: &mut Context, function: &mut Function) -> Result<usize, Box<Diagnostic>> {
    let mut known = known_symbols(cx, &function.body);
    if known.is_empty() {
        return Ok(0);
    }
    let body = &mut function.body;
    body.begin_journal();
    if let Err(failed) = known.in_body(cx, body, &[]) {
        let binding = body.stop().and_then(|at| body.binding_name(cx, at)).map(str::to_string);
        body.rollback_journal();
        body.note_stop(None);
        let message = format!("no symbolic dimension was resolved, because then {}", failed.error.message);
        let mut remark = Diagnostic::new(Severity::Remark, message);
        remark.binding = binding;
        return Err(Box::new(remark));
    }
    body.commit_journal();
    cx.rewrites.note(None, "symbolic dimensions were resolved");
    let unknown = cx.types.dims.unknown();
    if let Some(ret) = function.ret {
        // Callers do not know symbols that only the result names, and this stays so.
        function.ret = Some(cx.types.substitute(ret, |s| known.get(s).is_some().then_some(unknown)));
    }
    Ok(known.len())
}

struct BindingCanonicalizer {
    regions: usize,
    replaced: usize,
    direct: usize,
}

impl BindingCanonicalizer {
    /// Returns the atom that a value equals.
    #[inline]
    fn atom(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Option<ExprId> {
        match s.editor.body.expr(value) {
            Expr::CallOp { op, operands, .. } => {
                if s.editor.cx.ops.facts(op).is_match_cast() {
                    let operand = *s.editor.body.operands(operands).first()?;
                    let (from, to) = (s.editor.body.ty(operand), s.editor.body.ty(value));
                    // A cast is not needed if the only difference is that the elements are known.
                    return (from == to || s.editor.cx.types.without_elements(from) == to).then_some(operand);
                }
                if !s.editor.cx.ops.facts(op).forwards() {
                    return None;
                }
                if s.editor.cx.types.as_tuple(s.editor.body.ty(value)).is_some() {
                    return None;
                }
                forwarded(s, value, 0)
            }
            Expr::Tuple(_) => whole(s, value),
            Expr::Proj { tuple, index } => match s.value_of(tuple) {
                Some(known) if matches!(s.editor.body.expr(known), Expr::CallOp { .. }) => forwarded(s, known, index),
                _ => s.field(tuple, index),
            },
            Expr::Var { .. } => {
                take_name(s, slot, value);
                Some(value)
            }
            Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => Some(value),
            Expr::Call { .. } | Expr::If { .. } | Expr::Lambda { .. } | Expr::Let { .. } => None,
        }
    }
}

/// Gives a variable of a region the name of the output that it is about to replace.
fn take_name(s: &mut Site<'_>, slot: Slot, atom: ExprId) {
    let (Some(output), Some(inner)) = (slot.var, s.editor.body.as_var(atom)) else { return };
    if s.editor.body.is_dataflow_var(inner)
        && !s.editor.body.is_dataflow_var(output)
        && let Some(name) = s.editor.body.var_name(output)
    {
        s.editor.body.set_expr(inner.expr(), Expr::Var { name: Some(name), flags: VarFlags::PLAIN });
    }
}

/// Returns the tuple whose fields, all and in order, form another tuple.
fn whole(s: &Site<'_>, value: ExprId) -> Option<ExprId> {
    let body = &*s.editor.body;
    let fields = body.operands_of(value);
    let Expr::Proj { tuple, .. } = body.expr(s.value_of(*fields.first()?)?) else { return None };
    if body.ty(tuple) != body.ty(value) {
        return None;
    }
    let is_field = |(i, &field): (usize, &ExprId)| {
        s.value_of(field).is_some_and(
            |known| matches!(body.expr(known), Expr::Proj { tuple: t, index } if t == tuple && index as usize == i),
        )
    };
    fields.iter().enumerate().all(is_field).then_some(tuple)
}

/// Returns the operand that equals result `index` of a call.
fn forwarded(s: &Site<'_>, call: ExprId, index: u32) -> Option<ExprId> {
    let Expr::CallOp { op, operands, .. } = s.editor.body.expr(call) else { return None };
    let &(_, operand) = s.editor.cx.ops.get(op).forwards.iter().find(|&&(result, _)| result == index)?;
    s.editor.body.operands(operands).get(operand as usize).copied()
}

impl Mutator for BindingCanonicalizer {
    type Error = RewriteError;
    const REASON: &'static str = "its value, or what it calls, has another name";
    const NODES: bool = false;
    const VALUES: bool = true;
    const REFUSED: Refused = Refused::CastBack;

    #[inline]
    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let wanted = match slot.var {
            Some(var) => s.editor.body.ty(var.expr()),
            None => s.editor.body.ty(value),
        };
        if let Expr::Call { operands, .. } = s.editor.body.expr(value) {
            let callee = s.editor.body.operands(operands).first().and_then(|&callee| s.value_of(callee));
            let direct = callee.and_then(|closure| direct_call(&mut s.editor, value, closure));
            self.direct += usize::from(direct.is_some());
            return Ok(direct.map_or(Verdict::Keep, Verdict::Value));
        }
        let Some(atom) = self.atom(s, slot, value) else { return Ok(Verdict::Keep) };
        if !s.editor.cx.types.accepts(wanted, s.editor.body.ty(atom)) {
            return Ok(Verdict::Keep);
        }
        self.replaced += 1;
        Ok(Verdict::Var(atom))
    }

    fn enter(&mut self, _: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        self.regions += usize::from(scope == Scope::Region);
        Ok(())
    }
}

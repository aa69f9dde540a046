//! # CanonicalizeBindings
//!
//! ```text
//! Notation   v, t variables; a an atom; i a field number.
//! Needs      A-normal form.
//! Effect     let v = a; rest                        =>  rest[v := a]       aliases, constants, globals
//!            let v = t.i; rest                      =>  rest[v := ai]      let t = (a0, a1, ...) before
//!            let v = t.i; rest                      =>  rest[v := aj]      let t = op(a0, ...), whose result i is operand j
//!            let v = op(a0, ...); rest              =>  rest[v := aj]      likewise, if the result is not a tuple
//!            let v = (t.0, t.1, ...); rest          =>  rest[v := t]       all the fields of t, in order
//!            let v = match_cast(a, to=T); rest      =>  rest[v := a]       a is of type T
//!            let v = match_cast(a, to=T); rest      =>  rest[k := d]      T has the new symbol k where the type of a has d, which is not `?`
//!            An output of a dataflow region that is not used outside it becomes visible only inside; a variable of a region that takes the
//!            place of an output becomes the output, and takes its name.
//! Never      Where the types say that a match_cast, or what uses it, must fail, a remark says so and the symbols of the function stay.
//! Not done   What a match_cast says of symbols that are bound before it is not used. Dead bindings stay (DeadCodeElimination); equal values stay (EliminateCommonSubexpr).
//! Cost       One forward sweep, a walk where there are regions with outputs, and two where a match_cast binds symbols. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              let %p = (%x, 1);                          let %p = (%x, 1);
//!              let %a = %p.1;                             add(%x, 1)
//!              let %b = %x;                             }
//!              add(%b, %a)
//!            }
//! ```

use anfora_ir::{Context, Diagnostic, Expr, ExprId, Function, Severity, VarFlags, VarId};
use anfora_manager::register_pass;
use anfora_visit::hide_unused_outputs;

use crate::support::definitions::Definitions;
use crate::support::effects::OpFlags;
use crate::support::failure::{Failure, binding_name};
use crate::support::primitive::is_primitive;
use crate::support::sweep::{Outcome, Rewrite, Scope, Site, Sweep, sweep};
use crate::support::symbols::{known_symbols, substitute_symbols};

register_pass! {
    /// Replaces variables that stand for other atoms, and looks through tuples
    pub CANONICALIZE_BINDINGS = FunctionPass("CanonicalizeBindings", 1).needing(["anf"]);
    run |edit, _, cx| {
        if is_primitive(edit.cx, edit.function) {
            return Ok(());
        }
        let done = canonicalize_bindings(edit.cx, edit.function)?;
        cx.count("replaced", done.replaced as u64);
        cx.count("hidden", done.hidden as u64);
        cx.count("resolved", done.resolved as u64);
        if let Some(contradiction) = done.contradiction {
            cx.remark(contradiction.in_function(edit.name()));
        }
        Ok(())
    }
}

/// What canonicalizing did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Canonicalized {
    /// How many bindings and tails gave way to atoms.
    pub replaced: usize,
    /// How many outputs of dataflow regions became visible only inside.
    pub hidden: usize,
    /// How many symbols gave way to what was known of them already.
    pub resolved: usize,
    /// Why none did although there were some.
    pub contradiction: Option<Diagnostic>,
}

/// Replaces the variables of a function that stand for atoms, and the symbols that stand for other dimensions.
///
/// Where the result is not stated and a symbol in its type is replaced, the signature has to follow, as it does after a
/// [`FunctionPass`](anfora_manager::FunctionPass).
///
/// # Errors
/// If the body is not in A-normal form.
pub fn canonicalize_bindings(cx: &mut Context, function: &mut Function) -> Result<Canonicalized, Failure> {
    let resolved = resolve_symbols(cx, function);
    let mut pass =
        Pass { flags: OpFlags::new(cx), definitions: Definitions::new(&function.body), regions: 0, replaced: 0 };
    sweep(cx, function, &mut pass)?;
    let hidden = if pass.regions > 0 { hide_unused_outputs(&mut function.body, |_| true) } else { 0 };
    let (resolved, contradiction) = match resolved {
        Ok(resolved) => (resolved, None),
        Err(contradiction) => (0, Some(*contradiction)),
    };
    Ok(Canonicalized { replaced: pass.replaced, hidden, resolved, contradiction })
}

/// Replaces the symbols that casts bind to dimensions that the types of their operands say; how many they were. All stay, with a remark, if then
/// some expression had no type.
fn resolve_symbols(cx: &mut Context, function: &mut Function) -> Result<usize, Box<Diagnostic>> {
    let mut known = known_symbols(cx, &function.body);
    if known.is_empty() {
        return Ok(0);
    }
    let body = &mut function.body;
    body.begin_journal();
    if let Err((at, error)) = substitute_symbols(cx, body, &mut known, &[]) {
        body.rollback_journal();
        let message = format!("no symbolic dimension was resolved, because then {}", error.message);
        let mut remark = Diagnostic::new(Severity::Remark, message);
        if let Some(binding) = binding_name(cx, body, at) {
            remark = remark.on_binding(binding);
        }
        return Err(Box::new(remark));
    }
    body.commit_journal();
    let unknown = cx.types.dims.unknown();
    if let Some(ret) = function.ret {
        // What only the result names is unknown to callers, and stays so.
        function.ret = Some(cx.types.substitute(ret, |s| known.get(s).is_some().then_some(unknown)));
    }
    Ok(known.len())
}

struct Pass {
    flags: OpFlags,
    definitions: Definitions,
    regions: usize,
    replaced: usize,
}

impl Pass {
    /// The atom that stands for a value.
    #[inline]
    fn atom(&mut self, s: &mut Sweep<'_>, site: Site, value: ExprId) -> Option<ExprId> {
        match s.body.expr(value) {
            Expr::CallOp { op, operands, .. } => {
                if self.flags.is_match_cast(s.cx, op) {
                    let operand = *s.body.operands(operands).first()?;
                    let (from, to) = (s.body.ty(operand), s.body.ty(value));
                    // That the elements are known besides is no reason to cast.
                    return (from == to || s.cx.types.without_elements(from) == to).then_some(operand);
                }
                if !self.flags.forwards(s.cx, op) {
                    return None;
                }
                if s.cx.types.as_tuple(s.body.ty(value)).is_some() {
                    self.define(site.var, value);
                    return None;
                }
                forwarded(s, value, 0)
            }
            Expr::Tuple(_) => {
                self.define(site.var, value);
                self.whole(s, value)
            }
            Expr::Proj { tuple, index } => {
                self.define(site.var, value);
                let known = self.definitions.get(tuple)?;
                if let Expr::CallOp { .. } = s.body.expr(known) {
                    let operand = forwarded(s, known, index)?;
                    self.definitions.bring_out(s, tuple, operand);
                    return Some(operand);
                }
                self.definitions.field(s, tuple, index)
            }
            Expr::Var { .. } => {
                self.take_name(s, site, value);
                Some(value)
            }
            Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => Some(value),
            Expr::Call { .. } | Expr::If { .. } | Expr::Lambda { .. } | Expr::Let { .. } => None,
        }
    }

    fn define(&mut self, var: Option<VarId>, value: ExprId) {
        if let Some(var) = var {
            self.definitions.set(var, value);
        }
    }

    /// The tuple whose fields, all and in order, a tuple is made of.
    fn whole(&self, s: &mut Sweep<'_>, value: ExprId) -> Option<ExprId> {
        let fields = s.body.operands_of(value);
        let Expr::Proj { tuple, .. } = s.body.expr(self.definitions.get(*fields.first()?)?) else { return None };
        if s.body.ty(tuple) != s.body.ty(value) {
            return None;
        }
        let all = fields.iter().enumerate().all(|(i, &field)| {
            self.definitions.get(field).is_some_and(|known| {
                matches!(s.body.expr(known), Expr::Proj { tuple: t, index } if t == tuple && index as usize == i)
            })
        });
        if !all {
            return None;
        }
        let first = fields[0];
        self.definitions.bring_out(s, first, tuple);
        Some(tuple)
    }

    /// A variable of a region that is about to take the place of an output takes its name too.
    fn take_name(&self, s: &mut Sweep<'_>, site: Site, atom: ExprId) {
        let (Some(output), Some(inner)) = (site.var, s.body.as_var(atom)) else { return };
        if s.body.is_dataflow_var(inner)
            && !s.body.is_dataflow_var(output)
            && let Some(name) = s.body.var_name(output)
        {
            s.body.set_expr(inner.expr(), Expr::Var { name: Some(name), flags: VarFlags::PLAIN });
        }
    }
}

/// The operand that result `index` of a call just is.
fn forwarded(s: &Sweep<'_>, call: ExprId, index: u32) -> Option<ExprId> {
    let Expr::CallOp { op, operands, .. } = s.body.expr(call) else { return None };
    let &(_, operand) = s.cx.ops.get(op).forwards.iter().find(|&&(result, _)| result == index)?;
    s.body.operands(operands).get(operand as usize).copied()
}

impl Rewrite for Pass {
    #[inline]
    fn value(&mut self, s: &mut Sweep<'_>, site: Site, value: ExprId) -> Result<Outcome, Failure> {
        let Some(atom) = self.atom(s, site, value) else { return Ok(Outcome::Keep) };
        let wanted = match site.var {
            Some(var) => s.body.ty(var.expr()),
            None => s.body.ty(value),
        };
        if !s.cx.types.accepts(wanted, s.body.ty(atom)) {
            return Ok(Outcome::Keep);
        }
        self.replaced += 1;
        Ok(Outcome::Replace(atom))
    }

    fn enter(&mut self, _: &Sweep<'_>, scope: Scope) {
        self.regions += usize::from(scope == Scope::Region);
        self.definitions.enter(scope);
    }

    fn exit(&mut self, _: &Sweep<'_>, scope: Scope) {
        self.definitions.exit(scope);
    }
}

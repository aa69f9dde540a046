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
//!            An output of a dataflow region that is not used outside it becomes visible only inside; a variable of a region that takes the
//!            place of an output becomes the output, and takes its name.
//! Not done   Dead bindings stay (DeadCodeElimination); equal values stay (EliminateCommonSubexpr).
//! Cost       One forward sweep, and a walk where there are regions with outputs. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              let %p = (%x, 1);                          let %p = (%x, 1);
//!              let %a = %p.1;                             add(%x, 1)
//!              let %b = %x;                             }
//!              add(%b, %a)
//!            }
//! ```

use std::sync::Arc;

use anfora_ir::{Body, Context, Cursor, Expr, ExprId, Function, Step, VarFlags, VarId};
use anfora_manager::{FunctionPass, PassEntry};
use anfora_visit::{Binding, set_var_flags};
use rustc_hash::FxHashMap;

use crate::definitions::Definitions;
use crate::effects::OpFlags;
use crate::failure::Failure;
use crate::sweep::{Outcome, Rewrite, Scope, Site, Sweep, sweep};

/// The pass as pipelines name it.
pub const CANONICALIZE_BINDINGS: PassEntry = PassEntry {
    name: "CanonicalizeBindings",
    doc: "Replaces variables that stand for other atoms, and looks through tuples",
    opt_level: 1,
    options: &[],
    make: |_| {
        Ok(Arc::new(FunctionPass::new("CanonicalizeBindings", 1, |edit, _, cx| {
            let done = canonicalize_bindings(edit.cx, edit.function)?;
            cx.count("replaced", done.replaced as u64);
            cx.count("hidden", done.hidden as u64);
            Ok(())
        })))
    },
};

/// What canonicalizing did.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Canonicalized {
    /// How many bindings and tails gave way to atoms.
    pub replaced: usize,
    /// How many outputs of dataflow regions became visible only inside.
    pub hidden: usize,
}

/// Replaces the variables of a function that stand for atoms.
///
/// # Errors
/// If the body is not in A-normal form.
pub fn canonicalize_bindings(cx: &mut Context, function: &mut Function) -> Result<Canonicalized, Failure> {
    let mut pass =
        Pass { flags: OpFlags::new(cx), definitions: Definitions::new(&function.body), regions: 0, replaced: 0 };
    sweep(cx, function, &mut pass)?;
    let hidden = if pass.regions > 0 { hide_outputs(&mut function.body) } else { 0 };
    Ok(Canonicalized { replaced: pass.replaced, hidden })
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
                    return (s.body.ty(operand) == s.body.ty(value)).then_some(operand);
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

/// Where a walk is, in one block.
#[derive(Copy, Clone, Default)]
struct Place {
    /// The region that the walk is in; 0 for none.
    region: u32,
    /// The last one in this block, which the next Let may go on with.
    last: u32,
}

/// Makes the outputs of regions that are not used outside visible only inside. What a lambda or branch inside a region uses counts as used
/// outside. Returns how many they were.
fn hide_outputs(body: &mut Body) -> usize {
    let mut outputs: Vec<VarId> = Vec::new();
    let mut home: FxHashMap<ExprId, u32> = FxHashMap::default();
    let mut used: rustc_hash::FxHashSet<ExprId> = Default::default();
    let mut blocks: Vec<Place> = Vec::new();
    let mut here = Place::default();
    let mut regions = 0;
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let mut visit = |id: ExprId| {
            if let Some(&region) = home.get(&id)
                && region != here.region
            {
                used.insert(id);
            }
        };
        match step {
            Step::EnterBlock(..) => blocks.push(std::mem::take(&mut here)),
            Step::ExitBlock(..) => here = blocks.pop().expect("a block is left after it is entered"),
            Step::Let(id) => {
                let Some(Binding { var, flags, .. }) = Binding::of(body, id) else { continue };
                here.region = match (flags.is_dataflow(), flags.starts_region() || here.last == 0) {
                    (false, _) => 0,
                    (true, false) => here.last,
                    (true, true) => {
                        regions += 1;
                        regions
                    }
                };
                here.last = here.region;
                if here.region != 0 && !body.is_dataflow_var(var) {
                    home.insert(var.expr(), here.region);
                    outputs.push(var);
                }
            }
            Step::Bound(_) => here.region = 0,
            Step::Atom(id) => visit(id),
            Step::Flat(id) => match body.expr(id) {
                Expr::Proj { tuple, .. } => visit(tuple),
                _ => body.operands_of(id).iter().copied().for_each(visit),
            },
            Step::Enter(_) | Step::Exit(_) | Step::Seen(_) => {}
        }
    }
    let hidden: Vec<VarId> = outputs.into_iter().filter(|v| !used.contains(&v.expr())).collect();
    for &var in &hidden {
        set_var_flags(body, var, VarFlags::DATAFLOW);
    }
    hidden.len()
}

//! Lambdas that are called once: their blocks move to the calls.

use anfora_ir::{BlockKind, Body, Context, Cursor, Expr, ExprId, Function, Module, Step, VarId};
use anfora_manager::PassError;
use anfora_visit::{
    Binding, Link, Mutator, Refused, RewriteError, Site, Slot, Verdict, chain, link_counts, mutate_function,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Moves the blocks of the lambdas of a module that are called once, and used in no other way, to
/// their calls. Returns the number of these lambdas. Primitive functions stay as they are.
///
/// # Errors
/// If a function with lambdas is not in A-normal form.
pub fn inline_lambdas(module: &mut Module) -> Result<usize, PassError> {
    let mut inlined = 0;
    for key in module.order().to_vec() {
        let name = module.name(key).to_string();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        if !function.is_primitive(cx) {
            inlined += inline_in(cx, function).map_err(|error| PassError::from(error).in_function(name))?;
        }
    }
    Ok(inlined)
}

/// The most rounds over a function. A lambda that is an argument or the result of an inlined one is
/// called by its own name only in the next round.
const MOST_ROUNDS: usize = 8;

fn inline_in(cx: &mut Context, function: &mut Function) -> Result<usize, RewriteError> {
    let mut inlined = 0;
    for _ in 0..MOST_ROUNDS {
        let calls = SingleCalls::of(cx, &function.body)?;
        if calls.0.is_empty() {
            break;
        }
        inlined += calls.0.len();
        mutate_function(cx, function, &mut LambdaInliner { calls })?;
    }
    Ok(inlined)
}

/// The lambdas that are inlined, by the variables that are bound to them.
struct SingleCalls(FxHashMap<ExprId, ExprId>);

impl SingleCalls {
    fn of(cx: &Context, body: &Body) -> Result<SingleCalls, RewriteError> {
        let mut found = SingleCalls(FxHashMap::default());
        if body.lambda_count() == 0 {
            return Ok(found);
        }
        let links = link_counts(body);
        let mut bound: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        // The lambdas around the current place.
        let mut open: FxHashSet<ExprId> = FxHashSet::default();
        let mut is_in_region = false;
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            RewriteError::unless_anf(cx, body, &cursor, step)?;
            match step {
                Step::EnterBlock(_, kind) => {
                    is_in_region = false;
                    if let BlockKind::Lambda(id) = kind {
                        open.insert(id);
                    }
                }
                Step::ExitBlock(_, BlockKind::Lambda(id)) => {
                    open.remove(&id);
                }
                Step::Let(id) => {
                    let Some(Binding { var, value, flags, .. }) = Binding::of(body, id) else { continue };
                    is_in_region = flags.is_dataflow();
                    let Expr::Lambda { lambda, .. } = body.expr(value) else { continue };
                    let is_plain =
                        body.lambda_symbols(lambda).is_empty() && body.lambda(lambda).attrs == cx.attrs.empty();
                    if is_plain && links[var.expr()] == 1 && links[value] == 1 {
                        bound.insert(var.expr(), value);
                    }
                }
                // No Let follows a tail, and no tail is in a region.
                Step::Bound(_) => is_in_region = false,
                Step::Flat(id) => {
                    let (Expr::Call { .. }, &[callee, ..]) = (body.expr(id), body.inputs(id)) else { continue };
                    let Some(&lambda) = bound.get(&callee) else { continue };
                    if !open.contains(&lambda)
                        && (!is_in_region || is_straight(body, Link::Lambda(lambda).target(body)))
                        && cx.rewrites.may_rewrite()
                    {
                        cx.rewrote(body, callee, LambdaInliner::REASON);
                        found.0.insert(callee, lambda);
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// Returns true if a block contains no If outside of lambdas.
pub(super) fn is_straight(body: &Body, block: ExprId) -> bool {
    let is_if = |id| matches!(body.expr(id), Expr::If { .. });
    !chain(body, block).any(|binding| is_if(binding.value)) && !is_if(body.tail(block))
}

struct LambdaInliner {
    calls: SingleCalls,
}

impl LambdaInliner {
    fn is_inlined(&self, var: Option<VarId>) -> bool {
        var.is_some_and(|var| self.calls.0.contains_key(&var.expr()))
    }
}

impl Mutator for LambdaInliner {
    type Error = RewriteError;
    const NODES: bool = false;
    const REFUSED: Refused = Refused::CastBack;
    // The calls are counted where they are found.
    const REASON: &'static str = "inlined where it is called";
    const SEPARABLE: bool = false;

    fn expand(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        match s.editor.body.expr(value) {
            // The block is walked where it is called.
            Expr::Lambda { .. } if self.is_inlined(slot.var) => Ok(Some(s.editor.tuple(&[]))),
            Expr::Call { operands, .. } => {
                let operands = s.editor.body.operands(operands).to_vec();
                let Some(&lambda) = self.calls.0.get(&operands[0]) else { return Ok(None) };
                let Expr::Lambda { lambda, body: block } = s.editor.body.expr(lambda) else { return Ok(None) };
                let params: Vec<VarId> = s.editor.body.lambda_params(lambda).collect();
                for (param, &argument) in params.into_iter().zip(&operands[1..]) {
                    let atom = s.resolve(argument);
                    s.replace_var(param, atom)?;
                }
                Ok(Some(block))
            }
            _ => Ok(None),
        }
    }

    fn rewrite_value(&mut self, _: &mut Site<'_>, slot: Slot, _: ExprId) -> Result<Verdict, RewriteError> {
        Ok(if self.is_inlined(slot.var) { Verdict::Drop } else { Verdict::Keep })
    }
}

//! The near misses of the pass: calls that stay although an earlier one is like them.

use std::hash::BuildHasher;

use anfora_ir::{AttrsId, Body, BodyPurity, Context, Cursor, EntityId, Expr, ExprId, OpId, Step, TypeId};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use super::OperandOrder;

/// The name under which near misses are recorded.
const PASS: &str = "EliminateCommonSubexpr";

/// Records why calls stay that are like earlier ones, in a body on which the pass has run.
///
/// The calls are sorted by their hashes, so equal ones are next to each other: O(n log n) for n
/// calls.
#[cold]
pub(super) fn explain(cx: &Context, body: &Body, impure: &BodyPurity, order: OperandOrder) {
    // After the limit of rewrites, calls stay for another reason.
    if !cx.rewrites.explains(PASS) || !cx.rewrites.may_rewrite() {
        return;
    }
    let (hashes, places) = calls(cx, body);
    // For each call that stays, the index of the last earlier one that is like it.
    let mut near: Vec<(u32, u32)> = Vec::new();
    for pair in hashes.windows(2) {
        let ((hash, earlier), (same, later)) = (pair[0], pair[1]);
        let call = |i: u32| Call::of(cx, body, places[i as usize].value);
        if hash == same && call(earlier) == call(later) {
            near.push((later, earlier));
        }
    }
    near.sort_unstable();
    for (later, earlier) in near {
        let (old, new) = (places[earlier as usize], places[later as usize]);
        cx.nearly(body, new.at, PASS, || {
            let name =
                body.binding_name(cx, old.at).map_or("an earlier binding".to_string(), |name| format!("%{name}"));
            if impure.is_impure(new.value) {
                format!("it is computed like {name}, but has effects")
            } else if !cx.types.accepts(new.ty(body), old.ty(body)) {
                format!("{name} is equal, but its type is less specific")
            } else if order == OperandOrder::Exact && body.inputs(new.value) != body.inputs(old.value) {
                format!("{name} has the operands in another order, and the option `commutative` is off")
            } else {
                format!("{name} is equal, but is in another block")
            }
        });
    }
}

/// A call, and the Let that binds it or the tail that it is.
#[derive(Copy, Clone)]
struct Place {
    at: ExprId,
    value: ExprId,
}

impl Place {
    fn ty(self, body: &Body) -> TypeId {
        match body.expr(self.at) {
            Expr::Let { var, .. } => body.ty(var.expr()),
            _ => body.ty(self.value),
        }
    }
}

/// Returns the calls of a body in program order, and their hashes, each with its index, sorted.
fn calls(cx: &Context, body: &Body) -> (Vec<(u64, u32)>, Vec<Place>) {
    let (mut hashes, mut places) = (Vec::new(), Vec::new());
    let mut cursor = Cursor::new(body);
    let mut binding = body.root();
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Let(id) => binding = id,
            Step::Flat(value) => {
                let Some(call) = Call::of(cx, body, value) else { continue };
                let is_bound = matches!(body.expr(binding), Expr::Let { value: bound, .. } if bound == value);
                hashes.push((FxBuildHasher.hash_one(&call), places.len() as u32));
                places.push(Place { at: if is_bound { binding } else { value }, value });
            }
            _ => {}
        }
    }
    hashes.sort_unstable();
    (hashes, places)
}

/// The parts of a call that are compared.
#[derive(PartialEq, Eq, Hash)]
struct Call {
    /// The operator; `None` for a call of a function.
    op: Option<OpId>,
    attrs: AttrsId,
    /// The operands, in the order of their ids if the operator is commutative.
    operands: SmallVec<[ExprId; 4]>,
}

impl Call {
    /// Returns the parts of a call; `None` for other values, and for casts, which the engine of
    /// rewriting adds too.
    fn of(cx: &Context, body: &Body, value: ExprId) -> Option<Call> {
        let (op, attrs) = match body.expr(value) {
            Expr::CallOp { op, .. } if cx.ops.facts(op).is_match_cast() => return None,
            Expr::CallOp { op, attrs, .. } => (Some(op), attrs),
            Expr::Call { attrs, .. } => (None, attrs),
            _ => return None,
        };
        let mut operands: SmallVec<[ExprId; 4]> = SmallVec::from_slice(body.inputs(value));
        if op.is_some_and(|op| cx.ops.facts(op).is_commutative()) {
            operands.sort_unstable_by_key(|o| o.index());
        }
        Some(Call { op, attrs, operands })
    }
}

//! Calls of known closures.

use anfora_ir::{Editor, Expr, ExprId};
use smallvec::SmallVec;

/// Returns a call of `@g` with the arguments of `call` followed by the captures, if the called
/// value `closure` is `make_closure(@g, captures…)`. Returns `None` if it is anything else, or if
/// the type of the new call cannot replace that of `call`.
///
/// Cost: one loop.
pub fn direct_call(editor: &mut Editor<'_>, call: ExprId, closure: ExprId) -> Option<ExprId> {
    let Expr::Call { operands, attrs } = editor.body.expr(call) else { return None };
    let made = editor.body.call_of(closure).filter(|made| editor.cx.ops.get(made.op).name == "make_closure")?;
    let (&function, captures) = made.operands.split_first()?;
    let Expr::Global(_) = editor.body.expr(function) else { return None };
    let arguments = editor.body.operands(operands).get(1..)?;
    let all: SmallVec<[ExprId; 8]> = arguments.iter().chain(captures).copied().collect();
    let direct = editor.call(function, &all, attrs).ok()?;
    editor.cx.types.accepts(editor.body.ty(call), editor.body.ty(direct)).then_some(direct)
}

//! Calls of closures that are known.

use anfora_ir::{Editor, Expr, ExprId};
use smallvec::SmallVec;

/// Returns the call of `@g` with the arguments of `call` and then the captures, where `closure`,
/// the value that is called, is `make_closure(@g, captures…)`. `None` if it is anything else, or if
/// the new call has a type that does not stand for that of the call.
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

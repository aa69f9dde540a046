//! Functions that stand as operands, where the file has a graph: they are written there.

use anfora_ir::{Cursor, Expr, ExprId, GlobalId, IdSet, Module, Step};
use anfora_passes::inline_functions;

use crate::error::{ExportError, ExportProblem};

/// The module with the functions that it makes closures of, or gives to others as values, put where their values are needed; `None` if it has none.
/// LambdaLifting makes such functions of the graphs of control-flow nodes, and a file has no other place for these than the node.
///
/// # Errors
/// If a function cannot be put there.
pub(super) fn with_functions_in_place(module: &Module, entry: &str) -> Result<Option<Module>, ExportError> {
    let names = functions_as_values(module);
    if names.is_empty() {
        return Ok(None);
    }
    let mut module = module.clone();
    inline_functions(&mut module, &names, None).map_err(|(function, failure)| ExportError {
        function: function.unwrap_or_else(|| entry.to_owned()),
        binding: None,
        problem: ExportProblem::Unsupported(format!("functions as values: {failure}")),
    })?;
    Ok(Some(module))
}

/// The names of the functions with a body that the module uses otherwise than by calling them, in program order of their first such use.
fn functions_as_values(module: &Module) -> Vec<String> {
    let cx = &module.cx;
    let mut seen: IdSet<GlobalId> = IdSet::with_capacity(cx.globals.len());
    let mut names = Vec::new();
    for (_, function) in module.functions() {
        let body = &function.body;
        if body.global_leaves().is_empty() {
            continue;
        }
        let mut note = |id: ExprId| {
            if let Expr::Global(global) = body.expr(id)
                && seen.insert(global)
                && let Some(key) = cx.globals.get(global).target.function()
                && module.get(key).is_some_and(|f| f.is_definition())
            {
                names.push(cx.global_name(global).to_owned());
            }
        };
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Atom(id) => note(id),
                Step::Flat(id) => {
                    // The first operand of a call is who is called.
                    let callee = usize::from(matches!(body.expr(id), Expr::Call { .. }));
                    body.operands_of(id).iter().skip(callee).for_each(|&operand| note(operand));
                }
                _ => {}
            }
        }
    }
    names
}

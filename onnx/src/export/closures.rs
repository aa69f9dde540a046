//! Functions that stand as operands, where the file has a graph: they are written there.

use anfora_ir::{Body, Context, Cursor, Expr, ExprId, FunctionKey, GlobalId, IdSet, Module, Step, VarId};
use anfora_passes::inline_functions;
use rustc_hash::FxHashMap;

use crate::error::{ExportError, ExportProblem};

/// By how many nodes for each that it has a module may grow when functions are put where their values are needed, and by how many in any case.
const MAX_GROWTH: usize = 8;
const LEAST_GROWTH: usize = 1 << 16;

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
    call_known_closures(&mut module);
    let nodes: usize = module.functions().map(|(_, function)| function.body.len()).sum();
    let max_growth = nodes.saturating_mul(MAX_GROWTH).max(LEAST_GROWTH);
    let inlined = inline_functions(&mut module, &names, Some(max_growth)).map_err(|error| ExportError {
        function: error.function().unwrap_or(entry).to_owned(),
        binding: None,
        problem: ExportProblem::Unsupported(format!("functions as values: {}", error.message())),
    })?;
    if inlined.is_limited
        && let Some(function) = functions_as_values(&module).into_iter().next()
    {
        let problem = ExportProblem::Repeated(format!("@{function}"));
        return Err(ExportError { function: entry.to_owned(), binding: None, problem });
    }
    Ok(Some(module))
}

/// Makes calls of closures, where it shows of which function these are, calls of that function: the captured values are its last arguments.
fn call_known_closures(module: &mut Module) {
    let keys: Vec<FunctionKey> = module.functions().map(|(key, _)| key).collect();
    for key in keys {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        if body.global_leaves().is_empty() {
            continue;
        }
        let mut closures: FxHashMap<VarId, ExprId> = FxHashMap::default();
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Let(link) => {
                    if let Expr::Let { var, value, .. } = body.expr(link)
                        && closure_parts(cx, body, value).is_some()
                    {
                        closures.insert(var, value);
                    }
                }
                Step::Flat(call) => {
                    let Expr::Call { operands, attrs } = body.expr(call) else { continue };
                    let arguments = &body.operands(operands)[1..];
                    let closure = body.as_var(body.operands(operands)[0]).and_then(|v| closures.get(&v));
                    let Some((function, captured)) = closure.and_then(|&c| closure_parts(cx, body, c)) else {
                        continue;
                    };
                    let all: Vec<ExprId> =
                        [function].into_iter().chain(arguments.iter().chain(captured).copied()).collect();
                    let operands = body.push_operands(&all);
                    body.set_expr(call, Expr::Call { operands, attrs });
                }
                _ => {}
            }
        }
    }
}

/// The function of a closure, and what it captures.
fn closure_parts<'b>(cx: &Context, body: &'b Body, closure: ExprId) -> Option<(ExprId, &'b [ExprId])> {
    let Expr::CallOp { op, operands, .. } = body.expr(closure) else { return None };
    let (&function, captured) = body.operands(operands).split_first()?;
    let is_closure = cx.ops.get(op).name == "make_closure" && matches!(body.expr(function), Expr::Global(_));
    is_closure.then_some((function, captured))
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

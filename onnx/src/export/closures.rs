//! Functions as operands: they are written as graphs where the file has a graph.

use anfora_ir::{Body, Cursor, Expr, ExprId, FunctionKey, GlobalId, IdSet, Module, Step};
use anfora_passes::{direct_call, inline_functions};
use anfora_visit::{Mutator, Rewrite, RewriteError, Site, mutate_function};
use rustc_hash::FxHashSet;

use crate::error::{ExportError, ExportProblem};
use crate::opaque::decode;

/// When functions are inlined where their values are needed, a module may grow by [`MAX_GROWTH`]
/// nodes for each of its nodes, and in any case by [`LEAST_GROWTH`] nodes.
const MAX_GROWTH: usize = 8;
const LEAST_GROWTH: usize = 1 << 16;

/// The operator in whose graph onnxruntime finds no functions of the model.
const WITHOUT_FUNCTIONS: &str = "SequenceMap";

/// Returns the module in which every function that a closure is made of, or that is used as a
/// value, is inlined where the value is needed. Returns `None` if the module has no such function.
/// LambdaLifting makes such functions of the graphs of control-flow nodes, and a file can only hold
/// these inside the node. Functions that the graph of a [`WITHOUT_FUNCTIONS`] calls are inlined
/// too.
///
/// # Errors
/// If a function cannot be inlined there.
pub(super) fn with_functions_in_place(module: &Module, entry: &str) -> Result<Option<Module>, ExportError> {
    let names = functions_as_values(module);
    if names.is_empty() && functions_of_mapped_graphs(module).is_empty() {
        return Ok(None);
    }
    let mut module = module.clone();
    let failed = |function: &str, problem: &dyn std::fmt::Display| ExportError {
        function: function.to_owned(),
        binding: None,
        problem: ExportProblem::Unsupported(format!("functions as values: {problem}")),
    };
    call_known_closures(&mut module).map_err(|error| failed(entry, &error))?;
    let nodes: usize = module.functions().map(|(_, function)| function.body.len()).sum();
    let max_growth = nodes.saturating_mul(MAX_GROWTH).max(LEAST_GROWTH);
    let inline = |module: &mut Module, names: &[String]| match names {
        [] => Ok(false),
        names => inline_functions(module, names, Some(max_growth))
            .map(|inlined| inlined.is_limited)
            .map_err(|error| failed(error.function().unwrap_or(entry), &error.message())),
    };
    let is_limited = inline(&mut module, &names)?;
    // The graphs are in place now, and show which functions they call.
    let names = functions_of_mapped_graphs(&module);
    inline(&mut module, &names)?;
    if is_limited && let Some(function) = functions_as_values(&module).into_iter().next() {
        let problem = ExportProblem::Repeated(format!("@{function}"));
        return Err(ExportError { function: entry.to_owned(), binding: None, problem });
    }
    Ok(Some(module))
}

/// Turns calls of closures into direct calls where the called function is known.
fn call_known_closures(module: &mut Module) -> Result<(), RewriteError> {
    let keys: Vec<FunctionKey> = module.functions().map(|(key, _)| key).collect();
    for key in keys {
        if let Some((function, cx)) = module.get_mut(key)
            && !function.body.global_leaves().is_empty()
        {
            mutate_function(cx, function, &mut DirectCalls)?;
        }
    }
    Ok(())
}

struct DirectCalls;

impl Mutator for DirectCalls {
    type Error = RewriteError;
    const VALUES: bool = true;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let Expr::Call { operands, .. } = site.editor.body.expr(id) else { return Ok(Rewrite::Keep) };
        let Some(&callee) = site.editor.body.operands(operands).first() else { return Ok(Rewrite::Keep) };
        let closure = site.value_of(callee).unwrap_or(callee);
        Ok(direct_call(&mut site.editor, id, closure).map_or(Rewrite::Keep, Rewrite::Replace))
    }
}

/// Returns the names of the functions with a body that the module uses as values, in program order
/// of the first such use.
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
                    // The first operand of a call is the callee.
                    let callee = usize::from(matches!(body.expr(id), Expr::Call { .. }));
                    body.operands_of(id).iter().skip(callee).for_each(|&operand| note(operand));
                }
                _ => {}
            }
        }
    }
    names
}

/// Returns the names of the functions that graphs of [`WITHOUT_FUNCTIONS`] call, directly or
/// through other functions.
fn functions_of_mapped_graphs(module: &Module) -> Vec<String> {
    let cx = &module.cx;
    let mut seen: IdSet<GlobalId> = IdSet::with_capacity(cx.globals.len());
    let mut called = Vec::new();
    for (_, function) in module.functions() {
        if !function.body.global_leaves().is_empty() {
            let graphs = mapped_graphs(module, &function.body);
            called.extend(calls_inside(&function.body, &graphs).into_iter().filter(|&global| seen.insert(global)));
        }
    }
    let mut names = Vec::new();
    while let Some(global) = called.pop() {
        let key = cx.globals.get(global).target.function();
        let Some(function) = key.and_then(|key| module.get(key)).filter(|f| f.is_definition()) else { continue };
        names.push(cx.global_name(global).to_owned());
        let leaves = function.body.global_leaves().into_iter().map(|(_, callee)| callee);
        called.extend(leaves.filter(|&callee| seen.insert(callee)));
    }
    names
}

/// Returns the variables that calls of [`WITHOUT_FUNCTIONS`] have as operands, among them the
/// graphs.
fn mapped_graphs(module: &Module, body: &Body) -> FxHashSet<ExprId> {
    let mut graphs = FxHashSet::default();
    for (_, expr) in body.exprs() {
        if let Expr::CallOp { op, operands, .. } = expr
            && decode(&module.cx.ops.get(op).name)
                .is_some_and(|(domain, op)| domain.is_empty() && op == WITHOUT_FUNCTIONS)
        {
            graphs.extend(body.operands(operands));
        }
    }
    graphs
}

/// Returns the functions that are called inside the `fn`s that are bound to some of the variables.
fn calls_inside(body: &Body, variables: &FxHashSet<ExprId>) -> Vec<GlobalId> {
    let mut calls = Vec::new();
    if variables.is_empty() {
        return calls;
    }
    let mut values = FxHashSet::default();
    // The number of the variables' `fn`s around the current step.
    let mut around = 0_usize;
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Let(id) => {
                if let Expr::Let { var, value, .. } = body.expr(id)
                    && variables.contains(&var.expr())
                {
                    values.insert(value);
                }
            }
            Step::Enter(id) => around += usize::from(values.contains(&id)),
            Step::Exit(id) => around -= usize::from(values.contains(&id)),
            Step::Flat(id) if around > 0 => {
                if let Expr::Call { operands, .. } = body.expr(id)
                    && let Some(Expr::Global(callee)) = body.operands(operands).first().map(|&c| body.expr(c))
                {
                    calls.push(callee);
                }
            }
            _ => {}
        }
    }
    calls
}

//! Infers the types of a whole module: forward through every function, callees before callers.
//!
//! Functions that state their result type have a signature from the start. The signatures of the
//! other functions follow from their blocks. Functions are visited in the order of the strongly
//! connected components of the call graph, so a callee is visited before its callers.

use std::ops::Range;
use std::sync::Arc;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{EntityId, ExprId, FunctionAttrId, FunctionKey, TypeId};
use crate::core::expr::{Expr, LambdaData, VarId};
use crate::core::function::Function;
use crate::core::module::Module;
use crate::infer::{infer_call, infer_expr, lambda_type};
use crate::ops::op::TypeError;
use crate::report::diagnostic::Diagnostic;
use crate::report::source::Source;
use crate::text::extent::{
    annotation_extent, item_name_extent, operand_extent, postfix_extent, result_extent, token_extent,
};
use crate::verify::in_function;
use crate::walk::call_graph::CallGraph;
use crate::walk::components::Components;
use crate::walk::cursor::{Cursor, Step};
use crate::walk::self_uses::SelfUses;

/// The most errors that are described. Expressions with further errors get the error type too.
const MOST: usize = 200;

/// Infers the type of every expression of a module, and the signature of every function.
///
/// The type that a variable has already counts as its annotation, unless it is the error type: the
/// type of its value must fit it. A call of an opaque operator keeps the type of its node. An
/// expression with an error gets the error type, so that the error is reported once. Linear in the
/// module.
pub fn infer_module(module: &mut Module) -> Vec<Diagnostic> {
    infer_module_where(module, |_| true)
}

/// Like [`infer_module`], for a module in which some functions have their types already: infers the
/// types of the expressions of the functions for which `is_open` is true.
pub(crate) fn infer_module_where(module: &mut Module, is_open: impl Fn(FunctionKey) -> bool) -> Vec<Diagnostic> {
    let mut inference = Inference { source: module.source().cloned(), diagnostics: Vec::new() };
    let keys = module.order().to_vec();
    let graph = CallGraph::of(module, &keys);
    let components = graph.components();
    for (i, &key) in keys.iter().enumerate() {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let mut stated = function.ret;
        if stated.is_none() && !function.is_definition() {
            let name = function.global.map_or("", |g| cx.global_name(g)).to_string();
            let place = inference.name_of(function);
            inference.report(place, || {
                Diagnostic::error(format!("the result type of `@{name}` is not stated"))
                    .with_help("a declaration has no block to find it in: write `-> TYPE`, or `-> ()`")
            });
            stated = Some(cx.types.error());
        }
        if stated.is_none() && components.is_cyclic(i as u32) {
            stated = Some(cx.types.error());
        }
        let global = function.global;
        if let (Some(ret), Some(global)) = (stated, global) {
            let signature = function.signature(cx, ret);
            module.set_signature(global, signature);
        }
    }
    for component in components.iter() {
        inference.check_cycle(module, &keys, component, &components);
        for &i in component {
            let key = keys[i as usize];
            let Some((function, cx)) = module.get_mut(key) else { continue };
            if !function.is_definition() {
                continue;
            }
            let name = function.global.map_or("", |g| cx.global_name(g)).to_string();
            if is_open(key) {
                inference.expressions(cx, function, &name);
            }
            let ret = inference.result(cx, function, &name);
            if function.ret.is_none()
                && !components.is_cyclic(i)
                && let Some(global) = function.global
            {
                let signature = function.signature(cx, ret);
                module.set_signature(global, signature);
            }
        }
    }
    inference.function_attrs(&mut module.cx);
    inference.diagnostics
}

// ---- Inference ----

struct Inference {
    source: Option<Arc<Source>>,
    diagnostics: Vec<Diagnostic>,
}

impl Inference {
    fn text(&self) -> Option<&str> {
        self.source.as_ref().map(|s| s.text())
    }

    fn report(&mut self, place: Option<Range<usize>>, make: impl FnOnce() -> Diagnostic) {
        if self.diagnostics.len() < MOST {
            let diagnostic = make();
            self.diagnostics.push(match place {
                Some(place) => diagnostic.at(place),
                None => diagnostic,
            });
        }
    }

    fn name_of(&self, function: &Function) -> Option<Range<usize>> {
        Some(item_name_extent(self.text()?, function.span? as usize))
    }

    /// Reports an error for each function of a cycle that does not state its result type.
    fn check_cycle(&mut self, module: &Module, keys: &[FunctionKey], component: &[u32], components: &Components) {
        let cyclic = component.first().is_some_and(|&i| components.is_cyclic(i));
        if !cyclic {
            return;
        }
        for &i in component {
            let key = keys[i as usize];
            let Some(function) = module.get(key).filter(|f| f.ret.is_none() && f.is_definition()) else { continue };
            let place = self.name_of(function);
            self.report(place, || {
                let name = module.name(key);
                let message = if component.len() == 1 {
                    format!("`@{name}` calls itself, but its result type is not stated")
                } else {
                    let mut names: Vec<String> =
                        component.iter().take(8).map(|&j| format!("`@{}`", module.name(keys[j as usize]))).collect();
                    if component.len() > 8 {
                        names.push("…".to_string());
                    }
                    format!(
                        "`@{name}` is in a cycle of calls ({}), but its result type is not stated",
                        names.join(", ")
                    )
                };
                Diagnostic::error(message).in_function(name).with_help("state it: `-> TYPE` behind the parameters")
            });
        }
    }

    /// Infers the expressions of a function.
    fn expressions(&mut self, cx: &mut Context, function: &mut Function, name: &str) {
        for (id, global) in function.body.global_leaves() {
            let ty = cx.globals.get(global).signature.unwrap_or(cx.types.error());
            function.body.set_type(id, ty);
        }
        self.body(cx, &mut function.body, name);
    }

    /// Returns the type of a function's block, and checks it against the stated result type.
    fn result(&mut self, cx: &Context, function: &Function, name: &str) -> TypeId {
        let found = function.body.type_of(function.body.root());
        if let Some(stated) = function.ret
            && stated != found
            && !cx.types.accepts(stated, found)
        {
            let place =
                self.text().and_then(|t| result_extent(t, function.span? as usize)).or_else(|| self.name_of(function));
            self.report(place, || {
                let (stated, found) = (cx.type_text(stated), cx.type_text(found));
                let who = if name.is_empty() { "the function".to_string() } else { format!("`@{name}`") };
                in_function(Diagnostic::error(format!("{who} returns {found}, but {stated} is stated")), name)
            });
        }
        found
    }

    fn body(&mut self, cx: &mut Context, body: &mut Body, function: &str) {
        let error = cx.types.error();
        let mut cursor = Cursor::new(body);
        // The Lets whose values are being walked.
        let mut lets: Vec<ExprId> = Vec::new();
        let mut self_uses = SelfUses::default();
        while let Some(step) = cursor.next(body) {
            self_uses.note(body, step);
            match step {
                Step::Flat(id) | Step::Exit(id) => match infer_expr(cx, body, id) {
                    Ok(ty) => {
                        body.set_type(id, ty);
                        if let Expr::Lambda { .. } = body.expr(id) {
                            self.check_lambda(cx, body, id, function);
                        }
                    }
                    Err(e) => {
                        body.set_type(id, error);
                        let binding = lets.last().copied();
                        self.type_error(cx, body, id, e, function, binding);
                    }
                },
                // A function value that is bound may use its own variable, whose type its signature
                // states.
                Step::Let(id) => {
                    lets.push(id);
                    if let Expr::Let { var, value, .. } = body.expr(id)
                        && let Expr::Lambda { lambda, .. } = body.expr(value)
                        && let Some(ret) = body.lambda(lambda).ret
                        && body.ty(var.expr()) == error
                    {
                        let params: Vec<TypeId> = body.lambda_params(lambda).map(|p| body.ty(p.expr())).collect();
                        let ty = lambda_type(cx, body, lambda, &params, ret);
                        body.set_type(var.expr(), ty);
                    }
                }
                Step::Bound(id) => {
                    lets.pop();
                    let Expr::Let { var, value, .. } = body.expr(id) else { continue };
                    let found = body.type_of(value);
                    let stated = body.ty(var.expr());
                    if found == stated || found == error {
                        continue;
                    }
                    // The found type replaces a stated one that is less specific.
                    if stated == error || cx.types.accepts(stated, found) {
                        if self_uses.contains(var) {
                            state_result(cx, body, var, value);
                        }
                        body.set_type(var.expr(), body.type_of(value));
                        continue;
                    }
                    let span = body.span(id).map(|s| s as usize);
                    let place =
                        self.text().and_then(|t| annotation_extent(t, span?).or_else(|| Some(token_extent(t, span?))));
                    let name = body.binding_name(cx, var.expr()).unwrap_or_default();
                    self.report(place, || {
                        let (stated, found) = (cx.type_text(stated), cx.type_text(found));
                        in_function(
                            Diagnostic::error(format!("`%{name}` is {found}, but {stated} is stated")),
                            function,
                        )
                        .on_binding(name)
                    });
                }
                Step::Atom(_) | Step::Enter(_) | Step::Seen(_) | Step::EnterBlock(..) | Step::ExitBlock(..) => {}
            }
        }
    }

    /// Checks that the block of a `fn` returns the result type that the `fn` states.
    fn check_lambda(&mut self, cx: &mut Context, body: &Body, id: ExprId, function: &str) {
        let Expr::Lambda { lambda, body: block } = body.expr(id) else { return };
        let Some(stated) = body.lambda(lambda).ret else { return };
        let found = body.type_of(block);
        if stated == found || cx.types.accepts(stated, found) {
            return;
        }
        let place = self.text().and_then(|t| result_extent(t, body.span(id)? as usize));
        self.report(place, || {
            let (stated, found) = (cx.type_text(stated), cx.type_text(found));
            in_function(Diagnostic::error(format!("the `fn` returns {found}, but {stated} is stated")), function)
        });
    }

    #[cold]
    fn type_error(
        &mut self,
        cx: &Context,
        body: &Body,
        id: ExprId,
        e: TypeError,
        function: &str,
        binding: Option<ExprId>,
    ) {
        let place = self.text().and_then(|text| error_place(text, body, id, e.operand.map(|i| i as usize)));
        self.report(place, || {
            let mut diagnostic = in_function(Diagnostic::error(e.message), function);
            if let Some(name) = binding.and_then(|b| body.binding_name(cx, b)) {
                diagnostic = diagnostic.on_binding(name);
            }
            match e.help {
                Some(help) => diagnostic.with_help(help),
                None => diagnostic,
            }
        });
    }

    /// Infers the functions that are values of attributes.
    fn function_attrs(&mut self, cx: &mut Context) {
        for i in 0..cx.function_attrs.len() {
            let id = FunctionAttrId::from_index(i);
            let empty = Arc::new(Function::new(&cx.types, cx.attrs.empty()));
            let shared = cx.function_attrs.replace(id, empty);
            let mut function = Arc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone());
            self.expressions(cx, &mut function, "");
            self.result(cx, &function, "");
            cx.function_attrs.replace(id, Arc::new(function));
        }
    }
}

/// States the result type of a `fn` that calls itself: the one that the type of its variable gave
/// to its calls, which need not be the type of its block.
fn state_result(cx: &mut Context, body: &mut Body, var: VarId, value: ExprId) {
    let Expr::Lambda { lambda, .. } = body.expr(value) else { return };
    let params: Vec<TypeId> = body.lambda_params(lambda).map(|p| body.ty(p.expr())).collect();
    let Ok(ret) = infer_call(cx, body.ty(var.expr()), &params) else { return };
    let data = LambdaData { ret: Some(ret), ..body.lambda(lambda) };
    body.set_lambda(lambda, data);
    let ty = lambda_type(cx, body, lambda, &params, ret);
    body.set_type(value, ty);
}

/// Returns the range of the text at which an expression, or one of its operands, is written.
fn error_place(text: &str, body: &Body, id: ExprId, operand: Option<usize>) -> Option<Range<usize>> {
    let start = body.span(id)?;
    // The number of argument lists and projections after the primary expression, up to this one.
    let mut postfixes = 0;
    let mut at = id;
    loop {
        let inner = match body.expr(at) {
            Expr::Proj { tuple, .. } => tuple,
            Expr::Call { operands, .. } => body.operands(operands).first().copied()?,
            _ => break,
        };
        postfixes += 1;
        if body.span(inner) != Some(start) || body.expr(inner).is_atom() {
            break;
        }
        at = inner;
    }
    let start = start as usize;
    let part = match (body.expr(id), operand) {
        (Expr::CallOp { .. }, Some(i)) => operand_extent(text, start, 0, i),
        (Expr::Call { .. }, Some(0)) => Some(postfix_extent(text, start, postfixes - 1)),
        (Expr::Call { .. }, Some(i)) => operand_extent(text, start, postfixes, i - 1),
        (Expr::If { .. }, Some(0)) => operand_extent(text, start + "if".len(), 0, 0),
        _ => None,
    };
    Some(part.unwrap_or_else(|| postfix_extent(text, start, postfixes)))
}

//! # RemoveUnusedOutputs
//!
//! ```text
//! Notation   @g a private function whose result is a tuple; %r a variable; %a, %b, … atoms.
//! Needs      A-normal form of the functions that name private functions.
//! Effect     def private @g(…) { …; (%a, %b, %c) }   =>   def private @g(…) { …; (%a, %c) }
//!            let %r = @g(…); … %r.2 …                =>   let %r = @g(…); … %r.1 …
//!              if every call of @g is bound, its result is only projected, and no projection has
//!              the number 1. If a single output is left that is no tuple itself, it is the result:
//!            def private @g(…) { …; (%a, %b) }       =>   def private @g(…) { …; %a }
//!            let %r = @g(…); let %v = %r.0; rest     =>   let %r = @g(…); rest[%v := %r]
//!            The tuple is the tail of @g, or bound to a variable that only the tail uses.
//!            Callers are typed again, and their callers.
//! Stays      Functions that are public, external, declared or primitive, that are used as values
//!            (by `make_closure` too), or that an attribute names. Functions whose result is that
//!            of an If or of another call. Outputs that an unused projection names.
//! Not done   Unused bindings stay: what @g computed for the output only. DeadCodeElimination
//!            removes them; another run may then find more.
//! Cost       Three walks of each function, one more of each function that calls a function with
//!            fewer outputs, and the calls that are typed again. Idempotent.
//!
//! before     def @f(%x: int32) {              after   def @f(%x: int32) {
//!              let %r = @g(%x);                         let %r = @g(%x);
//!              let %v = %r.1;                           abs(%r)
//!              abs(%v)                                }
//!            }
//!            def private @g(%p: int32) {              def private @g(%p: int32) {
//!              let %s = add(%p, 1);                     let %s = add(%p, 1);
//!              let %n = negative(%p);                   let %n = negative(%p);
//!              (%s, %n)                                 %n
//!            }                                        }
//! ```

use anfora_ir::{
    Body, Context, Cursor, Editor, Expr, ExprId, Function, FunctionKey, GlobalId, Module, Step, Type, TypeId, VarId,
    update_signatures,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::{Binding, Link, Mutator, RewriteError, Site, Slot, Verdict, bindings, link_counts, mutate_function};
use rustc_hash::FxHashMap;

use crate::private_functions::{callee_of, only_called};

register_pass! {
    /// Removes fields of the results of private functions that no caller projects
    pub REMOVE_UNUSED_OUTPUTS = ModulePass("RemoveUnusedOutputs", 1).needing(["anf"]);
    run |module, cx| {
        cx.count("removed", remove_unused_outputs(module)? as u64);
        Ok(())
    }
}

/// Removes the fields of the results of private functions that no caller projects, and returns
/// their number.
///
/// # Errors
/// If a function that names a private function is not in A-normal form, or if a caller cannot be
/// typed again.
pub fn remove_unused_outputs(module: &mut Module) -> Result<usize, PassError> {
    let functions = only_called(module)?;
    let mut outputs: FxHashMap<FunctionKey, UsedOutputs> = FxHashMap::default();
    for &key in functions.values() {
        outputs.extend(module.get(key).and_then(|f| UsedOutputs::of(module, f)).map(|found| (key, found)));
    }
    let mut callers = Vec::new();
    for (key, function) in module.functions() {
        let results = results_in(&module.cx, &function.body, &functions, &mut outputs)?;
        if !results.is_empty() {
            callers.push((key, results));
        }
    }
    outputs.retain(|_, outputs| outputs.is_used.contains(&false));
    let changed: Vec<FunctionKey> = module.order().iter().copied().filter(|key| outputs.contains_key(key)).collect();
    let mut removed = 0;
    for &key in &changed {
        removed += outputs[&key].is_used.iter().filter(|is_used| !**is_used).count();
        if let Some((function, cx)) = module.get_mut(key) {
            outputs.get_mut(&key).into_iter().for_each(|outputs| outputs.remove_from(cx, function));
        }
    }
    for (key, results) in callers {
        let name = module.name(key).to_string();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let mut rewrite = ProjectionRewrite::of(&mut function.body, results, &outputs);
        if !rewrite.replaced.is_empty() {
            mutate_function(cx, function, &mut rewrite).map_err(|error| PassError::from(error).in_function(name))?;
        }
    }
    if !changed.is_empty() {
        update_signatures(module, &changed)?;
    }
    Ok(removed)
}

/// The fields of a function's result.
struct UsedOutputs {
    /// True for each field that a caller may use.
    is_used: Vec<bool>,
    /// The tuple, and the link that holds it.
    tuple: ExprId,
    link: Link,
    /// The variable that is bound to the tuple, if it is not the tail itself.
    var: Option<VarId>,
    /// The type of the new result, and true if it is a single field; once the fields are removed.
    result: TypeId,
    is_single: bool,
}

impl UsedOutputs {
    /// Returns the fields of the result of a function, none of them used; `None` if the result is
    /// no tuple that is made in the function.
    fn of(module: &Module, function: &Function) -> Option<UsedOutputs> {
        let body = &function.body;
        let mut last = Link::Root;
        let mut bound = None;
        let tail = body.tail(body.root());
        for binding in bindings(body, body.root()) {
            if binding.var.expr() == tail {
                bound = Some(binding);
            }
            last = Link::Rest(binding.id);
        }
        let (tuple, link, var) = match bound {
            Some(Binding { id, value, var, .. }) if link_counts(body)[tail] == 1 => (value, Link::Value(id), Some(var)),
            Some(_) => return None,
            None => (tail, last, None),
        };
        let Expr::Tuple(fields) = body.expr(tuple) else { return None };
        let is_tuple = |ty: TypeId| matches!(module.cx.types.get(ty), Type::Tuple(of) if of.len() == fields.len());
        let is_known = is_tuple(body.ty(tuple)) && function.ret.is_none_or(is_tuple);
        let result = body.ty(tuple);
        is_known.then(|| UsedOutputs { is_used: vec![false; fields.len()], tuple, link, var, result, is_single: false })
    }

    /// Returns the fields that stay, of a list with one item for each field.
    fn left<T: Copy>(&self, of: &[T]) -> Vec<T> {
        of.iter().zip(&self.is_used).filter(|(_, is_used)| **is_used).map(|(&field, _)| field).collect()
    }

    /// Returns true if the single field that stays becomes the result. A field that may be a tuple
    /// stays in a tuple, since its own fields would otherwise be outputs for the next run.
    fn is_single(&self, cx: &Context, body: &Body) -> bool {
        let left = self.left(body.operands_of(self.tuple));
        matches!(left[..], [only] if matches!(cx.types.get(body.type_of(only)), Type::Tensor(_)))
    }

    /// Removes the unused fields from the result of the function, and returns the new type.
    fn remove_from(&mut self, cx: &mut Context, function: &mut Function) {
        self.is_single = self.is_single(cx, &function.body);
        if let Some(ret) = function.ret {
            let fields = match cx.types.get(ret) {
                Type::Tuple(fields) => self.left(fields),
                _ => unreachable!("a result that is no tuple is not considered"),
            };
            function.ret = Some(match fields[..] {
                [only] if self.is_single => only,
                _ => cx.types.tuple(&fields),
            });
        }
        let fields = self.left(function.body.operands_of(self.tuple));
        let mut editor = Editor::new(cx, &mut function.body);
        let new = match fields[..] {
            [only] if self.is_single => only,
            _ => editor.tuple(&fields),
        };
        let ty = editor.body.type_of(new);
        self.link.set(editor.body, new);
        if let Some(var) = self.var {
            editor.body.set_type(var.expr(), ty);
        }
        self.result = function.ret.unwrap_or(ty);
    }
}

/// The result of a call, with its projections.
struct CallResult {
    callee: FunctionKey,
    call: ExprId,
    var: ExprId,
    projections: Vec<ExprId>,
}

/// Returns the bound calls of functions with these outputs in a body, and marks the outputs that it
/// uses.
fn results_in(
    cx: &Context,
    body: &Body,
    functions: &FxHashMap<GlobalId, FunctionKey>,
    outputs: &mut FxHashMap<FunctionKey, UsedOutputs>,
) -> Result<Vec<CallResult>, RewriteError> {
    let mut results: Vec<CallResult> = Vec::new();
    if !body.global_leaves().iter().any(|(_, global)| functions.contains_key(global)) {
        return Ok(results);
    }
    let mut by_var: FxHashMap<ExprId, usize> = FxHashMap::default();
    let mut value_of_let = None;
    let mut use_all = |callee: FunctionKey| {
        outputs.get_mut(&callee).into_iter().for_each(|outputs| outputs.is_used.fill(true));
    };
    let mut used: Vec<(FunctionKey, u32)> = Vec::new();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        RewriteError::unless_anf(cx, body, &cursor, step)?;
        let all = match step {
            Step::Let(id) => {
                value_of_let = Binding::of(body, id);
                continue;
            }
            Step::Atom(id) => std::slice::from_ref(&id).to_vec(),
            Step::Flat(id) => {
                if let Some(callee) = callee_of(functions, body, id) {
                    match value_of_let.filter(|binding| binding.value == id) {
                        Some(binding) => {
                            by_var.insert(binding.var.expr(), results.len());
                            let var = binding.var.expr();
                            results.push(CallResult { callee, call: id, var, projections: Vec::new() });
                        }
                        // The result of the call is that of the block.
                        None => use_all(callee),
                    }
                }
                if let Expr::Proj { tuple, index } = body.expr(id) {
                    if let Some(&result) = by_var.get(&tuple) {
                        used.push((results[result].callee, index));
                        results[result].projections.push(id);
                    }
                    continue;
                }
                body.inputs(id).to_vec()
            }
            _ => continue,
        };
        for result in all.iter().filter_map(|input| by_var.get(input)) {
            use_all(results[*result].callee);
        }
    }
    for (callee, index) in used {
        if let Some(is_used) = outputs.get_mut(&callee).and_then(|o| o.is_used.get_mut(index as usize)) {
            *is_used = true;
        }
    }
    Ok(results)
}

/// The rewrite of the projections in a caller.
struct ProjectionRewrite {
    /// The projections of results that are no tuples any more, with the results.
    replaced: FxHashMap<ExprId, ExprId>,
}

impl ProjectionRewrite {
    /// Gives results their new types, and projections their new numbers.
    fn of(
        body: &mut Body,
        results: Vec<CallResult>,
        outputs: &FxHashMap<FunctionKey, UsedOutputs>,
    ) -> ProjectionRewrite {
        let mut replaced = FxHashMap::default();
        for result in results {
            let Some(outputs) = outputs.get(&result.callee) else { continue };
            body.set_type(result.var, outputs.result);
            body.set_type(result.call, outputs.result);
            for projection in result.projections {
                let Expr::Proj { tuple, index } = body.expr(projection) else { continue };
                if outputs.is_single {
                    replaced.insert(projection, tuple);
                    continue;
                }
                let before = outputs.is_used[..index as usize].iter().filter(|is_used| **is_used).count();
                body.set_expr(projection, Expr::Proj { tuple, index: before as u32 });
            }
        }
        ProjectionRewrite { replaced }
    }
}

impl Mutator for ProjectionRewrite {
    type Error = RewriteError;
    const NODES: bool = false;
    const SEPARABLE: bool = false;

    #[inline]
    fn rewrite_value(&mut self, _: &mut Site<'_>, _: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        Ok(self.replaced.get(&value).map_or(Verdict::Keep, |&result| Verdict::Var(result)))
    }
}

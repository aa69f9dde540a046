//! Passes that are broken on purpose. Each has a mistake that is made in passes like it, and the
//! harness must catch each of them.
//!
//! Most are the registered pass with a wrong edit before or after it. The result is what the pass
//! would make if it had the mistake.

pub(crate) mod backends;
mod binding;
mod closures;
mod combining;
mod decomposing;
mod differentiating;
mod effects;
mod folding;
mod fusing;
mod liars;
mod merging;
mod ordering;
mod planning;
mod regions;
mod removing;
mod rounding;
mod shaping;
mod signing;
mod simplifying;

use std::sync::Arc;

use anfora::ir::{Body, Editor, Expr, ExprId, VarId};
use anfora::manager::{FunctionPass, Pass, Sequential};
use anfora::visit::{Binding, bindings};

use crate::random_programs::checking::Why;

/// A registered pass with a mistake.
pub(crate) struct Broken {
    /// The registered pass.
    pub(crate) of: &'static str,
    /// The mistake, in words that follow "the pass that".
    pub(crate) mistake: &'static str,
    /// The broken promises for which it may be caught.
    pub(crate) why: &'static [Why],
    pub(crate) make: fn() -> Arc<dyn Pass>,
}

/// Returns all broken passes, grouped by the passes that they imitate.
pub(crate) fn all() -> Vec<Broken> {
    let lists = [
        backends::BROKEN,
        binding::BROKEN,
        closures::BROKEN,
        combining::BROKEN,
        decomposing::BROKEN,
        differentiating::BROKEN,
        effects::BROKEN,
        folding::BROKEN,
        fusing::BROKEN,
        liars::BROKEN,
        merging::BROKEN,
        ordering::BROKEN,
        planning::BROKEN,
        regions::BROKEN,
        removing::BROKEN,
        rounding::BROKEN,
        shaping::BROKEN,
        signing::BROKEN,
        simplifying::BROKEN,
    ];
    lists.into_iter().flatten().map(|b| Broken { ..*b }).collect()
}

fn registered(name: &str) -> Arc<dyn Pass> {
    anfora::passes::registry().make(name).expect("a registered pass")
}

fn in_sequence(passes: [Arc<dyn Pass>; 2]) -> Arc<dyn Pass> {
    Arc::new(Sequential::new(passes.into()).expect("two passes do not nest deep"))
}

/// Returns a pass that makes a wrong edit of each function and then runs the registered pass.
fn before(name: &str, edit: fn(&mut Editor<'_>)) -> Arc<dyn Pass> {
    in_sequence([each_function(edit), registered(name)])
}

/// Returns a pass that runs the registered pass and then makes a wrong edit of each function.
fn after(name: &str, edit: fn(&mut Editor<'_>)) -> Arc<dyn Pass> {
    in_sequence([registered(name), each_function(edit)])
}

fn each_function(edit: fn(&mut Editor<'_>)) -> Arc<dyn Pass> {
    Arc::new(FunctionPass::new("Edit", 0, move |function, _, _| {
        edit(&mut function.editor());
        Ok(())
    }))
}

/// Returns the Lets of a body.
fn lets(body: &Body) -> Vec<Binding> {
    bindings(body, body.root()).collect()
}

/// Returns true if an expression is a call of one of these operators.
fn is_call_of(editor: &Editor<'_>, id: ExprId, ops: &[&str]) -> bool {
    matches!(editor.body.expr(id), Expr::CallOp { op, .. } if ops.contains(&&*editor.cx.ops.get(op).name))
}

/// Exchanges the variables and values of two Lets.
fn exchange(body: &mut Body, first: &Binding, second: &Binding) {
    for (at, with) in [(first, second), (second, first)] {
        let Expr::Let { body: rest, flags, .. } = body.expr(at.id) else { unreachable!("bindings are Lets") };
        body.set_expr(at.id, Expr::Let { var: with.var, value: with.value, body: rest, flags });
    }
}

/// Returns true if a flat value mentions a variable.
fn mentions(body: &Body, value: ExprId, var: VarId) -> bool {
    value == var.expr() || body.inputs(value).contains(&var.expr())
}

/// Returns the pairs of Lets that directly follow each other.
fn neighbours(body: &Body) -> Vec<(Binding, Binding)> {
    lets(body).into_iter().filter_map(|first| Some((first, Binding::of(body, first.rest)?))).collect()
}

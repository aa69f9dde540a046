//! Passes that are broken on purpose: the mistakes that are made in passes like these, each of
//! which the harness has to catch.
//!
//! Most are the registered pass with a wrong edit before or after it: what the pass would do if it
//! made that mistake.

mod binding;
mod closures;
mod effects;
mod folding;
mod fusing;
mod liars;
mod merging;
mod regions;
mod removing;
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
    /// What it does wrong.
    pub(crate) mistake: &'static str,
    /// The promises that it may be caught breaking.
    pub(crate) why: &'static [Why],
    pub(crate) make: fn() -> Arc<dyn Pass>,
}

/// All of them, by the pass that they are like.
pub(crate) fn all() -> Vec<Broken> {
    let lists = [
        binding::BROKEN,
        closures::BROKEN,
        effects::BROKEN,
        folding::BROKEN,
        fusing::BROKEN,
        liars::BROKEN,
        merging::BROKEN,
        regions::BROKEN,
        removing::BROKEN,
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

/// A wrong edit of each function, then the registered pass.
fn before(name: &str, edit: fn(&mut Editor<'_>)) -> Arc<dyn Pass> {
    in_sequence([each_function(edit), registered(name)])
}

/// The registered pass, then a wrong edit of each function.
fn after(name: &str, edit: fn(&mut Editor<'_>)) -> Arc<dyn Pass> {
    in_sequence([registered(name), each_function(edit)])
}

fn each_function(edit: fn(&mut Editor<'_>)) -> Arc<dyn Pass> {
    Arc::new(FunctionPass::new("Edit", 0, move |function, _, _| {
        edit(&mut function.editor());
        Ok(())
    }))
}

/// The Lets of a body.
fn lets(body: &Body) -> Vec<Binding> {
    bindings(body, body.root()).collect()
}

/// Whether it is a call of one of these operators.
fn is_call_of(editor: &Editor<'_>, id: ExprId, ops: &[&str]) -> bool {
    matches!(editor.body.expr(id), Expr::CallOp { op, .. } if ops.contains(&&*editor.cx.ops.get(op).name))
}

/// Binds in each of two Lets what the other bound.
fn exchange(body: &mut Body, first: &Binding, second: &Binding) {
    for (at, with) in [(first, second), (second, first)] {
        let Expr::Let { body: rest, flags, .. } = body.expr(at.id) else { unreachable!("bindings are Lets") };
        body.set_expr(at.id, Expr::Let { var: with.var, value: with.value, body: rest, flags });
    }
}

/// Whether a flat value mentions a variable.
fn mentions(body: &Body, value: ExprId, var: VarId) -> bool {
    value == var.expr() || body.inputs(value).contains(&var.expr())
}

/// The Lets that follow each other.
fn neighbours(body: &Body) -> Vec<(Binding, Binding)> {
    lets(body).into_iter().filter_map(|first| Some((first, Binding::of(body, first.rest)?))).collect()
}

//! Gradient, with mistakes.

use std::sync::Arc;

use anfora::ir::{DType, Module};
use anfora::manager::{ModulePass, Pass};
use anfora::passes::{GradientOptions, gradient};
use anfora::visit::copy_function;
use anfora_testing::programs::{LOSS, add_loss};

use super::Broken;
use crate::random_programs::checking::Why;

const OF: &str = "Gradient";

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: OF,
        mistake: "makes a function return its derivatives instead of a copy of it",
        why: &[Why::OtherResult, Why::IllFormed],
        make: || after_gradient(replace_the_function),
    },
    Broken {
        of: OF,
        mistake: "does not look for the functions that an earlier run has added",
        why: &[Why::NotIdempotent],
        make: || after_gradient(add_it_again),
    },
];

/// Returns a pass that differentiates a sum of the results of `@main` by its float parameters, if
/// that is possible, and then makes a wrong edit.
fn after_gradient(edit: fn(&mut Module)) -> Arc<dyn Pass> {
    Arc::new(ModulePass::new(OF, 0, move |module, _| {
        if module.find(LOSS).is_none() && !matches!(add_loss(module, DType::Float32), Ok(Some(_))) {
            return Ok(());
        }
        let Some(loss) = module.find(LOSS).and_then(|key| module.get(key)) else { return Ok(()) };
        let is_float = |ty| module.cx.types.as_tensor(ty).is_some_and(|tensor| tensor.dtype.is_float());
        let floats = loss.body.params().iter().filter(|param| is_float(loss.body.ty(param.expr())));
        let names = floats.filter_map(|param| loss.body.binding_name(&module.cx, param.expr()).map(str::to_string));
        let options = GradientOptions {
            function: LOSS.to_string(),
            require_grads: names.collect(),
            ..GradientOptions::default()
        };
        if gradient(module, &options).is_ok() {
            edit(module);
        }
        Ok(())
    }))
}

/// Puts the block of `@main_pullback` into `@main`.
fn replace_the_function(module: &mut Module) {
    let Some(pullback) = module.find("main_pullback").and_then(|key| module.get(key)) else { return };
    let (body, ret) = (pullback.body.clone(), pullback.ret);
    let Some((main, _)) = module.find("main").and_then(|key| module.get_mut(key)) else { return };
    main.body.replace(body);
    main.ret = ret;
}

/// Adds a copy of `@loss_adjoint` under the first free name.
fn add_it_again(module: &mut Module) {
    let Some(adjoint) = module.find("loss_adjoint") else { return };
    let name = (1..).map(|n| format!("loss_adjoint_{n}")).find(|name| module.find(name).is_none());
    let _ = copy_function(module, adjoint, &name.unwrap_or_default());
}

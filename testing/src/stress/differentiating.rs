//! The entry points that differentiate a program.

use anfora::passes::{GradientOptions, gradient};
use anfora_ir::{DType, Module};

use super::visiting::verified;
use super::{Done, Kind, NORMAL_FORM, Row, run_pipeline};
use crate::programs::{LOSS, add_loss};

pub(super) const ROWS: &[Row] = &[Row { name: "gradients", covers: &[], kind: Kind::Module(gradients) }];

/// Differentiates a sum over all results by all floats that go in. Programs that call functions
/// which are not known, or operators without a derivative, are refused.
fn gradients(mut module: Module) -> Done {
    run_pipeline(&mut module, &format!("{NORMAL_FORM},LambdaLifting"))?;
    let Some(loss) = add_loss(&mut module, DType::Float32).map_err(|e| e.to_string())? else { return Ok(()) };
    let body = &module.get(loss).ok_or("the loss was just added")?.body;
    let is_float = |ty| module.cx.types.as_tensor(ty).is_some_and(|tensor| tensor.dtype.is_float());
    let floats = body.params().iter().filter(|param| is_float(body.ty(param.expr())));
    let names = floats.filter_map(|param| body.binding_name(&module.cx, param.expr()).map(str::to_string));
    let options =
        GradientOptions { function: LOSS.to_string(), require_grads: names.collect(), ..GradientOptions::default() };
    if options.require_grads.is_empty() {
        return Ok(());
    }
    let refused = gradient(&mut module, &options).err();
    match refused.as_ref().map(|error| error.message()) {
        None => verified(&module),
        Some(message) if message.contains("not known here") || message.contains("has no derivative") => Ok(()),
        Some(message) => Err(message.to_string()),
    }
}

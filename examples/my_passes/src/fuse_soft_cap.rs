//! A function pass: `cap * tanh(x / cap)` becomes a call of [`SOFT_CAP`].

use anfora::ir::TypeError;
use anfora::manager::register_pass;
use anfora::prelude::*;

use crate::soft_cap::SOFT_CAP;

register_pass! {
    /// Replaces cap * tanh(x / cap) by one operator
    pub FUSE_SOFT_CAP = FunctionPass("FuseSoftCap", 1).requiring(["ToANormalForm"]);
    run |function, _module, context| {
        let mut rewrite = FuseSoftCap::new(function.cx)?;
        mutate(&mut function.editor(), &mut rewrite)?;
        context.count("soft caps", rewrite.fused);
        Ok(())
    }
}

/// The rewrite, with the operators that it looks for. They are looked up once, so that operators
/// are compared by number.
struct FuseSoftCap {
    divide: OpId,
    tanh: OpId,
    multiply: OpId,
    fused: u64,
}

impl FuseSoftCap {
    fn new(cx: &mut Context) -> Result<FuseSoftCap, TypeError> {
        let [divide, tanh, multiply] =
            [cx.ops.resolve("divide")?, cx.ops.resolve("tanh")?, cx.ops.resolve("multiply")?];
        Ok(FuseSoftCap { divide, tanh, multiply, fused: 0 })
    }

    /// Returns `x` and `cap` if the node is such a product. Its quotient and its `tanh` may have
    /// other uses, and then stay for these.
    fn matched(&self, site: &Site<'_>, product: ExprId) -> Option<(ExprId, f64)> {
        let body = &*site.editor.body;
        let call = body.call_of(product).filter(|call| call.op == self.multiply)?;
        let &[a, b] = call.operands else { return None };
        let (bounded, cap) = scalar(site, b).map(|cap| (a, cap)).or_else(|| scalar(site, a).map(|cap| (b, cap)))?;
        let quotient = operand_of(site, bounded, self.tanh)?.first().copied()?;
        let &[x, divisor] = operand_of(site, quotient, self.divide)? else { return None };
        (scalar(site, divisor) == Some(cap) && body.ty(x) == body.ty(product)).then_some((x, cap))
    }
}

/// Returns the operands of the call of an operator that an operand is, or is bound to.
fn operand_of<'s>(site: &'s Site<'_>, operand: ExprId, op: OpId) -> Option<&'s [ExprId]> {
    let value = site.value_of(operand).unwrap_or(operand);
    let call = site.editor.body.call_of(value).filter(|call| call.op == op)?;
    Some(call.operands)
}

/// Returns the value of a constant of type float32 or float64. The kernel rounds once, and standard
/// operators round three times, which differs for shorter floats.
fn scalar(site: &Site<'_>, operand: ExprId) -> Option<f64> {
    let Editor { cx, body } = &site.editor;
    let literal = cx.literals.get(body.as_literal(operand)?);
    literal.as_scalar::<f32>().map(f64::from).or_else(|| literal.as_scalar::<f64>())
}

impl Mutator for FuseSoftCap {
    type Error = RewriteError;

    const VALUES: bool = true;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let Some((x, cap)) = self.matched(site, id) else { return Ok(Rewrite::Keep) };
        self.fused += 1;
        Ok(Rewrite::Replace(site.editor.op(SOFT_CAP, &[x], &[("cap", cap.into())])?))
    }
}

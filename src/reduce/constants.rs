//! Shrinks constants: their elements become zeros or ones.

use std::ops::Range;

use anfora_ir::{DType, Expr, ExprId, Literal, Module, infer_module};

use super::Shrink;
use super::expressions::count;

/// Replaces constants by ones of the same type with equal elements.
pub(super) struct Splats {
    /// True for ones, false for zeros.
    pub(super) one: bool,
}

impl Shrink for Splats {
    const PART: &'static str = "elements";

    fn sites(&self, module: &Module) -> usize {
        count(module, |expr| matches!(expr, Expr::Literal(_)))
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        let (mut number, mut is_changed) = (0, false);
        for key in module.order().to_vec() {
            let (function, cx) = module.get_mut(key)?;
            let body = &mut function.body;
            let leaves: Vec<(ExprId, Expr)> = body.exprs().collect();
            for (id, expr) in leaves {
                let Expr::Literal(literal) = expr else { continue };
                number += 1;
                if !sites.contains(&(number - 1)) {
                    continue;
                }
                let old = cx.literals.get(literal);
                let Some(element) = element(old.dtype(), self.one) else { continue };
                let new = cx.literals.intern(Literal::splat_bytes(old.dtype(), old.shape(), &element));
                is_changed |= new != literal;
                body.set_expr(id, Expr::Literal(new));
                body.set_type(id, cx.literal_type(new));
            }
        }
        if is_changed {
            infer_again(module)?;
        }
        Some(is_changed)
    }
}

/// Returns the bytes of an element zero or one; `None` if the element type has none.
fn element(dtype: DType, one: bool) -> Option<Vec<u8>> {
    let bits = dtype.bits();
    if !one {
        return (bits > 0 && bits.is_multiple_of(8)).then(|| vec![0; bits / 8]);
    }
    match dtype {
        DType::Float32 => Some(1f32.to_le_bytes().to_vec()),
        DType::Float64 => Some(1f64.to_le_bytes().to_vec()),
        _ => Literal::from_i64s(dtype, &[], &[1]).ok().map(|one| one.to_bytes().to_vec()),
    }
}

/// Infers the types of all bindings again, because the types of constants or parameters have
/// changed. Returns `None` if an expression has no type then.
pub(super) fn infer_again(module: &mut Module) -> Option<()> {
    for key in module.order().to_vec() {
        let (function, cx) = module.get_mut(key)?;
        let (body, unknown) = (&mut function.body, cx.types.error());
        let lets: Vec<Expr> = body.exprs().map(|(_, expr)| expr).collect();
        for expr in lets {
            if let Expr::Let { var, .. } = expr {
                body.set_type(var.expr(), unknown);
            }
        }
    }
    infer_module(module).is_empty().then_some(())
}

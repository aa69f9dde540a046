//! A pass in a page: `x * 1` becomes `x`, wherever it stands.
//!
//! `cargo run --release -p anfora --example write_a_pass`

use anfora::prelude::*;

/// Rewrites one node; the mutator sees to the walk, the operands, the types and what no longer changes.
struct MultiplyByOne;

impl Mutator for MultiplyByOne {
    type Error = RewriteError;

    fn rewrite_expr(&mut self, site: &mut Site<'_, '_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let Editor { cx, body } = &site.editor;
        if let Expr::CallOp { op, .. } = body.expr(id)
            && cx.ops.get(op).name == "multiply"
            && let &[x, one] = body.operands_of(id)
            && let Some(one) = body.as_literal(one)
            && cx.literals.get(one).as_splat() == Some(&1f32.to_le_bytes())
            && body.type_of(x) == body.ty(id)
        {
            return Ok(Rewrite::Replace(x));
        }
        Ok(Rewrite::Keep)
    }
}

/// The same as a pass: it runs under contexts of level 1 and above, is timed, verified and rolled back like any other.
fn multiply_by_one() -> FunctionPass {
    FunctionPass::new("MultiplyByOne", 1, |function, _module, _cx| {
        mutate(&mut function.editor(), &mut MultiplyByOne).map_err(PassError::from_error)
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = "def @main(%x: Tensor[(n,), float32], %c: bool) {
        let %a = multiply(%x, 1f);
        let %b = if (%c) { let %t = multiply(%a, 1f); tanh(%t) } else { multiply(%x, 2f) };
        add(%a, multiply(%b, 1f))
    }";
    let mut module =
        parse_module(Source::new("example.anf", text), anfora::ops::standard()).map_err(|errors| errors[0].clone())?;
    let outcome = multiply_by_one().apply(&mut module, &PassContext::new())?;
    print!("{outcome:?}\n\n{module}");
    Ok(())
}

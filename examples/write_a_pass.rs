//! A pass on one page: `x * 1` becomes `x` wherever it occurs.
//!
//! `cargo run --release -p anfora --example write_a_pass`,
//! `cargo test -p anfora --example write_a_pass`

use anfora::prelude::*;

/// A rewrite of one node. The mutator handles the walk, the operands and the types, and writes
/// nothing where nothing changes.
struct MultiplyByOne {
    /// The operator, looked up once, so that operators are compared by number.
    multiply: OpId,
}

impl Mutator for MultiplyByOne {
    type Error = RewriteError;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let Editor { cx, body } = &site.editor;
        if let Some(call) = body.call_of(id)
            && call.op == self.multiply
            && let &[x, one] = call.operands
            && body.is_splat(cx, one, 1)
            && body.type_of(x) == body.ty(id)
        {
            return Ok(Rewrite::Replace(x));
        }
        Ok(Rewrite::Keep)
    }
}

/// Returns the rewrite as a pass. It runs under contexts of level 1 and above, and is timed,
/// verified and rolled back like any other pass.
fn multiply_by_one() -> FunctionPass {
    FunctionPass::new("MultiplyByOne", 1, |function, _module, _cx| {
        let multiply = function.cx.ops.resolve("multiply")?;
        Ok(mutate(&mut function.editor(), &mut MultiplyByOne { multiply })?)
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = "def @main(%x: Tensor[(n,), float32], %c: bool) {
        let %a = multiply(%x, 1f);
        let %b = if (%c) { let %t = multiply(%a, 1f); tanh(%t) } else { multiply(%x, 2f) };
        add(%a, multiply(%b, 1f))
    }";
    let mut module = parse_module(Source::new("example.anf", text), anfora::ops::standard())?;
    let outcome = multiply_by_one().apply(&mut module, &PassContext::new())?;
    print!("{outcome:?}\n\n{module}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use anfora::check::check_pass;

    use super::multiply_by_one;

    #[test]
    fn products_with_one_disappear() {
        check_pass(
            &multiply_by_one(),
            "def @main(%x: Tensor[(n,), float32]) { let %a = multiply(%x, 1f); tanh(%a) }",
            "def @main(%x: Tensor[(n,), float32]) { tanh(%x) }",
        );
    }

    #[test]
    fn other_products_stay() {
        let text = "def @main(%x: int32) { add(multiply(%x, 2), multiply(1, %x)) }";
        check_pass(&multiply_by_one(), text, text);
    }
}

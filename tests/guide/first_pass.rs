use anfora::check::check_pass;
use anfora::prelude::*;
use anfora::visit::pattern::{PatternOptions, Rule, capture, literal, op, rewrite_patterns};

/// `x * 1` becomes `x`.
pub fn multiply_by_one() -> FunctionPass {
    FunctionPass::new("MultiplyByOne", 1, |function, _module, _context| {
        let one = literal(1) | literal(1.0);
        let mut rules = [Rule::replace("x * 1", op("multiply", [capture("x"), one]), capture("x"))];
        let outcome = rewrite_patterns(&mut function.editor(), &mut rules, &PatternOptions::default())?;
        // Which rules went round, or did not fit by type.
        function.report_all(outcome.remarks());
        Ok(())
    })
}

#[test]
fn products_with_one_disappear() {
    let before = "def @main(%x: Tensor[(n,), float32]) {
        let %a = multiply(%x, 1f);
        tanh(multiply(1f, %a))
    }";
    let after = "def @main(%x: Tensor[(n,), float32]) { tanh(%x) }";
    check_pass(&multiply_by_one(), before, after);
}

use anfora::check::check_pass;
use anfora::prelude::*;

/// `x * 1` becomes `x`.
pub fn multiply_by_one() -> FunctionPass {
    FunctionPass::from_rules("MultiplyByOne", 1, rules!["multiply(%x, 1)" => "%x"])
}

#[test]
fn products_with_one_disappear() {
    let pass = multiply_by_one();
    check_pass!(pass, "%x: Tensor[(n,), float32]", "let %a = multiply(%x, 1f); tanh(multiply(1f, %a))" => "tanh(%x)");
}

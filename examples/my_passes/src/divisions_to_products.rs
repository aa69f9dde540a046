//! A pass of rules: divisions by small powers of two become products, which are as exact.

use anfora::manager::FunctionPass;
use anfora::passes::FromRules;
use anfora::visit::rules;

/// The name of the pass in pipelines.
pub const DIVISIONS_TO_PRODUCTS: &str = "DivisionsToProducts";

/// Returns the pass. A number with a suffix matches this element type only. Quotients of integers
/// are rounded towards zero, so they stay.
pub fn divisions_to_products() -> FunctionPass {
    let rules = rules![
        "divide(%x, 2f)" => "multiply(%x, 0.5f)",
        "divide(%x, 4f)" => "multiply(%x, 0.25f)",
        "divide(%x, 8f)" => "multiply(%x, 0.125f)",
        "divide(%x, 8f16)" => "multiply(%x, 0.125f16)",
    ];
    FunctionPass::from_rules(DIVISIONS_TO_PRODUCTS, 1, rules)
}

#[cfg(test)]
mod tests {
    use anfora::check::check_pass;

    use super::divisions_to_products;

    #[test]
    fn divisions_of_floats_by_powers_of_two_are_products() {
        let pass = divisions_to_products();
        check_pass!(pass, "tanh(divide(%x, 2f))" => "tanh(multiply(%x, 0.5f))");
        check_pass!(pass, "%x: Tensor[(n,), float16]", "divide(%x, 8f16)" => "multiply(%x, 0.125f16)");
        check_pass!(pass, "divide(%x, 3f)" => "divide(%x, 3f)");
        check_pass!(pass, "%x: int32", "divide(%x, 2)" => "divide(%x, 2)");
    }
}

use anfora::prelude::*;
use anfora::visit::pattern::{PatternOptions, Rule, capture, literal, op, rewrite_patterns};

/// `x * 1` becomes `x`.
pub fn multiply_by_one() -> FunctionPass {
    FunctionPass::new("MultiplyByOne", 1, |function, _module, _context| {
        let one = literal(1) | literal(1.0);
        let mut rules = [Rule::replace("x * 1", op("multiply", [capture("x"), one]), capture("x"))];
        rewrite_patterns(&mut function.editor(), &mut rules, &PatternOptions::default())
            .map_err(PassError::from_error)?;
        Ok(())
    })
}

#[test]
fn products_with_one_disappear() {
    let text = "def @main(%x: Tensor[(n,), float32]) {
        let %a = multiply(%x, 1f);
        tanh(multiply(1f, %a))
    }";
    let mut module = parse_module(Source::new("test", text), anfora::ops::standard()).unwrap();
    multiply_by_one().apply(&mut module, &PassContext::new()).unwrap();
    let expected = "def @main(%x: Tensor[(n,), float32]) -> Tensor[(n,), float32] {
  tanh(%x)
}
";
    assert_eq!(module.to_text(), expected);
}

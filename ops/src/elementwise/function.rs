//! Arithmetic and functions of one operand.

use anfora_ir::OpDef;

use super::{keep_float, keep_number, unary};
use crate::elements;
use crate::kernels::arithmetic::{self, Function, Unary};
use crate::typing::one;

pub(super) fn rows() -> Vec<OpDef> {
    let mut rows = arithmetic_rows();
    rows.extend(function_rows());
    rows
}

fn arithmetic_rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(arithmetic::unary(Unary::$op, c.operand(0)?))
        };
    }
    vec![
        unary("negative", "with the other sign; integers wrap", keep_number, kernel!(Negative))
            .elements(elements::negated),
        unary("abs", "without its sign; integers wrap", keep_number, kernel!(Abs)).elements(elements::magnitude),
        unary("sign", "-1, 0 or 1; NaN of NaN", keep_number, kernel!(Sign)).elements(elements::computed),
        unary("square", "the product with itself; integers wrap", keep_number, kernel!(Square))
            .elements(elements::computed),
        unary("floor", "rounded down; integers stay", keep_number, kernel!(Floor)).elements(elements::kept),
        unary("ceil", "rounded up; integers stay", keep_number, kernel!(Ceil)).elements(elements::kept),
        unary("round", "rounded to nearest, halves to even; integers stay", keep_number, kernel!(Round))
            .elements(elements::kept),
        unary("trunc", "rounded toward zero; integers stay", keep_number, kernel!(Trunc)).elements(elements::kept),
        unary("nn.relu", "the larger of it and zero", keep_number, kernel!(Relu)),
    ]
}

fn function_rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(arithmetic::function(Function::$op, c.operand(0)?))
        };
    }
    vec![
        unary("exp", "e to its power", keep_float, kernel!(Exp)),
        unary("log", "the natural logarithm", keep_float, kernel!(Log)),
        unary("sqrt", "the square root", keep_float, kernel!(Sqrt)),
        unary("rsqrt", "one over the square root", keep_float, kernel!(Rsqrt)),
        unary("reciprocal", "one over it", keep_float, kernel!(Reciprocal)),
        unary("tanh", "the hyperbolic tangent", keep_float, kernel!(Tanh)),
        unary("sigmoid", "1 / (1 + exp(-x))", keep_float, kernel!(Sigmoid)),
        unary("erf", "the error function", keep_float, kernel!(Erf)),
        unary("sin", "the sine", keep_float, kernel!(Sin)),
        unary("cos", "the cosine", keep_float, kernel!(Cos)),
        unary("tan", "the tangent", keep_float, kernel!(Tan)),
        unary("asin", "the inverse sine", keep_float, kernel!(Asin)),
        unary("acos", "the inverse cosine", keep_float, kernel!(Acos)),
        unary("atan", "the inverse tangent", keep_float, kernel!(Atan)),
        unary("sinh", "the hyperbolic sine", keep_float, kernel!(Sinh)),
        unary("cosh", "the hyperbolic cosine", keep_float, kernel!(Cosh)),
        unary("asinh", "the inverse hyperbolic sine", keep_float, kernel!(Asinh)),
        unary("acosh", "the inverse hyperbolic cosine", keep_float, kernel!(Acosh)),
        unary("atanh", "the inverse hyperbolic tangent", keep_float, kernel!(Atanh)),
    ]
}

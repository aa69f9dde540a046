//! Calls of each operator, for tests of every row of the registry.

mod image;
mod pooling;
mod quantized;
mod sequences;
mod spatial;

use anfora_ir::DType;

/// An attribute of a generated call.
#[derive(Clone)]
pub(crate) enum A {
    Int(i64),
    Ints(&'static [i64]),
    Float(f64),
    Bool(bool),
    Str(&'static str),
    Shape(&'static [i64]),
    Element(DType),
    /// A one-element literal of the element type under test.
    Value,
}

/// An operand of a generated call.
#[derive(Clone)]
pub(crate) enum O {
    /// Generated elements of the element type under test.
    X(&'static [usize]),
    /// Generated positive elements of the element type under test.
    Positive(&'static [usize]),
    Flags(&'static [usize]),
    /// Generated elements of this element type.
    Of(DType, &'static [usize]),
    /// An int64 tensor of these numbers.
    Int64(&'static [usize], &'static [i64]),
    Float32(&'static [f32]),
    /// A scalar of this number, in the element type under test.
    Scalar(i8),
    Absent,
}

pub(crate) struct Case {
    pub(crate) operands: Vec<O>,
    pub(crate) attrs: Vec<(&'static str, A)>,
    /// The operands whose row `i` along axis 0 determines row `i` of the result, and nothing else.
    pub(crate) rows: Vec<usize>,
}

fn case(operands: Vec<O>, attrs: Vec<(&'static str, A)>) -> Case {
    Case { operands, attrs, rows: Vec::new() }
}

/// Returns a case in which the operands `rows` grow along axis 0.
fn by_row(rows: &[usize], operands: Vec<O>, attrs: Vec<(&'static str, A)>) -> Case {
    Case { operands, attrs, rows: rows.to_vec() }
}

/// Returns calls of an operator; `None` for an operator that the test does not know.
#[expect(clippy::too_many_lines, reason = "a table of rows")]
pub(crate) fn cases(op: &str) -> Option<Vec<Case>> {
    use A::*;
    use O::*;
    let families = [sequences::cases, quantized::cases, pooling::cases, spatial::cases, image::cases];
    if let Some(cases) = families.iter().find_map(|of_family| of_family(op)) {
        return Some(cases);
    }
    Some(match op {
        "add" | "subtract" | "multiply" | "maximum" | "minimum" | "less" | "less_equal" | "greater"
        | "greater_equal" | "equal" | "not_equal" | "logical_and" | "logical_or" | "logical_xor" => vec![
            by_row(&[0, 1], vec![X(&[2, 3]), X(&[2, 3])], vec![]),
            by_row(&[0], vec![X(&[2, 3, 4]), X(&[3, 1])], vec![]),
            case(vec![X(&[4]), X(&[2, 1, 1])], vec![]),
            case(vec![X(&[]), X(&[0, 2])], vec![]),
        ],
        "bitwise_and" | "bitwise_or" | "bitwise_xor" | "left_shift" | "right_shift" => vec![
            by_row(&[0, 1], vec![X(&[2, 3]), X(&[2, 3])], vec![]),
            by_row(&[0], vec![X(&[2, 3, 4]), X(&[3, 1])], vec![]),
            case(vec![X(&[]), X(&[0, 2])], vec![]),
        ],
        "add_n" | "mean_n" | "maximum_n" | "minimum_n" => vec![
            by_row(&[0, 2], vec![X(&[2, 3]), X(&[3]), X(&[2, 1])], vec![]),
            by_row(&[0], vec![X(&[2, 3])], vec![]),
            case(vec![X(&[2, 1, 200]), X(&[3, 1]), X(&[]), X(&[2, 1, 1])], vec![]),
            case(vec![X(&[]), X(&[0, 2])], vec![]),
        ],
        "power" => vec![
            by_row(&[0, 1], vec![X(&[2, 3]), Positive(&[2, 3])], vec![]),
            by_row(&[0], vec![X(&[2, 3, 4]), Positive(&[3, 1])], vec![]),
            case(vec![X(&[]), Positive(&[])], vec![]),
            by_row(&[0], vec![X(&[2, 3]), Int64(&[3], &[0, 3, 2])], vec![]),
            by_row(&[0], vec![Int64(&[2, 3], &[3, 2, 1, 0, -1, -2]), Positive(&[3])], vec![]),
        ],
        "clip" => vec![
            by_row(&[0], vec![X(&[2, 3]), Scalar(-1), Scalar(2)], vec![]),
            by_row(&[0], vec![X(&[2, 3]), Absent, Positive(&[1])], vec![]),
            by_row(&[0], vec![X(&[2, 3]), X(&[]), Absent], vec![]),
            case(vec![X(&[0])], vec![]),
        ],
        "divide" | "floor_divide" | "mod" | "floor_mod" => vec![
            by_row(&[0, 1], vec![X(&[2, 3]), Positive(&[2, 3])], vec![]),
            by_row(&[0], vec![X(&[2, 3, 4]), Positive(&[3, 1])], vec![]),
            case(vec![X(&[]), Positive(&[])], vec![]),
        ],
        "negative" | "abs" | "sign" | "square" | "floor" | "ceil" | "round" | "trunc" | "nn.relu" | "logical_not"
        | "bitwise_not" | "reciprocal" | "nn.hard_swish" | "nn.mish" | "nn.softplus" | "nn.softsign" | "exp"
        | "log" | "sqrt" | "rsqrt" | "tanh" | "sigmoid" | "erf" | "sin" | "cos" | "tan" | "asin" | "acos" | "atan"
        | "sinh" | "cosh" | "asinh" | "acosh" | "atanh" | "isnan" | "isfinite" => {
            vec![by_row(&[0], vec![X(&[2, 3])], vec![]), case(vec![X(&[])], vec![]), case(vec![X(&[0])], vec![])]
        }
        "isinf" => {
            vec![by_row(&[0], vec![X(&[2, 3])], vec![("detect_negative", Bool(false))]), case(vec![X(&[])], vec![])]
        }
        "nn.leaky_relu" | "nn.thresholded_relu" | "nn.elu" | "nn.celu" | "nn.selu" | "nn.silu" | "nn.hard_sigmoid" => {
            vec![by_row(&[0], vec![X(&[5])], vec![("alpha", Float(0.5))]), case(vec![X(&[5])], vec![])]
        }
        "nn.shrink" => vec![by_row(&[0], vec![X(&[5])], vec![("lambd", Float(1.5)), ("bias", Float(0.75))])],
        "nn.prelu" => vec![
            by_row(&[0], vec![X(&[2, 3]), X(&[3])], vec![]),
            by_row(&[0, 1], vec![X(&[2, 3, 4]), X(&[2, 1, 4])], vec![]),
            case(vec![X(&[0, 3]), X(&[])], vec![]),
        ],
        "nn.swiglu" => vec![
            by_row(&[0, 1], vec![X(&[2, 3]), X(&[2, 3])], vec![]),
            by_row(&[0, 1], vec![X(&[2]), X(&[2])], vec![("alpha", Float(0.5))]),
        ],
        "nn.gelu" => {
            vec![by_row(&[0], vec![X(&[5])], vec![]), by_row(&[0], vec![X(&[5])], vec![("approximate", Str("tanh"))])]
        }
        "astype" => {
            let to = |&d: &DType| vec![("dtype", Element(d))];
            let computed = CONVERTED.iter().map(|d| by_row(&[0], vec![X(&[2, 3])], to(d)));
            computed.chain(SMALL.iter().map(|d| case(vec![X(&[2, 3])], to(d)))).collect()
        }
        "bitcast" => CONVERTED.iter().map(|&d| by_row(&[0], vec![X(&[2, 3])], vec![("dtype", Element(d))])).collect(),
        "where" => vec![
            by_row(&[0, 1, 2], vec![Flags(&[2, 3]), X(&[2, 3]), X(&[2, 3])], vec![]),
            by_row(&[1], vec![Flags(&[3]), X(&[2, 3]), X(&[])], vec![]),
            case(vec![Flags(&[2, 1]), X(&[3]), X(&[1])], vec![]),
        ],
        "sum" | "mean" | "prod" | "max" | "min" | "sum_square" | "l1_norm" | "l2_norm" | "log_sum" | "log_sum_exp" => {
            vec![
                by_row(&[0], vec![X(&[2, 3, 4])], vec![("axis", Ints(&[1]))]),
                by_row(&[0], vec![X(&[2, 3, 4])], vec![("axis", Ints(&[-1, 1])), ("keepdims", Bool(true))]),
                by_row(&[0], vec![X(&[2, 3])], vec![("axis", Ints(&[]))]),
                case(vec![X(&[2, 3])], vec![]),
                case(vec![X(&[2, 3, 2])], vec![("axis", Ints(&[0, 2]))]),
                by_row(&[0], vec![X(&[2, 3, 2]), Int64(&[2], &[-1, 1])], vec![]),
                case(vec![X(&[2, 3]), Int64(&[1], &[0])], vec![("keepdims", Bool(true))]),
                case(vec![X(&[2, 3]), Int64(&[0], &[])], vec![]),
                by_row(&[0], vec![X(&[2, 3]), Int64(&[0], &[])], vec![("noop_with_empty_axes", Bool(true))]),
                case(vec![X(&[2, 3]), Absent], vec![]),
            ]
        }
        "cumsum" | "cumprod" => vec![
            by_row(&[0], vec![X(&[2, 3, 2])], vec![("axis", Int(1))]),
            by_row(&[0], vec![X(&[2, 3]), Int64(&[], &[-1])], vec![("reverse", Bool(true)), ("exclusive", Bool(true))]),
            case(vec![X(&[2, 3])], vec![]),
        ],
        "argmax" | "argmin" => vec![
            by_row(&[0], vec![X(&[2, 5])], vec![("axis", Int(1)), ("keepdims", Bool(true))]),
            by_row(&[0], vec![X(&[2, 5])], vec![("axis", Int(-1)), ("select_last_index", Bool(true))]),
            case(vec![X(&[2, 5])], vec![]),
        ],
        "reshape" => vec![
            case(vec![X(&[2, 3, 4]), Int64(&[2], &[0, -1])], vec![]),
            case(vec![X(&[2, 3, 4]), Int64(&[3], &[4, 3, 2])], vec![]),
            case(vec![X(&[0, 3]), Int64(&[2], &[3, 0])], vec![("allowzero", Bool(true))]),
            case(vec![X(&[1, 1]), Int64(&[0], &[])], vec![]),
        ],
        "broadcast_to" => vec![
            case(vec![X(&[3, 1]), Int64(&[3], &[2, 3, 4])], vec![]),
            case(vec![X(&[2, 3, 1]), Int64(&[2], &[1, 4])], vec![("bidirectional", Bool(true))]),
        ],
        "permute_dims" => {
            vec![case(vec![X(&[2, 3, 4])], vec![]), by_row(&[0], vec![X(&[2, 3, 4])], vec![("axes", Ints(&[0, 2, 1]))])]
        }
        "expand_dims" => vec![
            by_row(&[0], vec![X(&[2, 3])], vec![("axis", Ints(&[1, -1]))]),
            by_row(&[0], vec![X(&[2, 3]), Int64(&[2], &[-1, 1])], vec![]),
            case(vec![X(&[]), Int64(&[1], &[0])], vec![]),
            case(vec![X(&[2]), Int64(&[0], &[])], vec![]),
        ],
        "squeeze" => vec![
            by_row(&[0], vec![X(&[2, 1, 3, 1])], vec![("axis", Ints(&[1, -1]))]),
            case(vec![X(&[2, 1, 3])], vec![]),
            by_row(&[0], vec![X(&[2, 1, 3, 1]), Int64(&[2], &[1, -1])], vec![]),
            case(vec![X(&[1, 2]), Int64(&[0], &[])], vec![]),
        ],
        "shape_of" => vec![
            case(vec![X(&[2, 3])], vec![]),
            case(vec![X(&[])], vec![]),
            case(vec![X(&[2, 3, 4])], vec![("start", Int(-2)), ("end", Int(-1))]),
            case(vec![X(&[2, 3, 4])], vec![("start", Int(2)), ("end", Int(1))]),
            case(vec![X(&[2, 3, 4])], vec![("start", Int(i64::MIN)), ("end", Int(i64::MAX))]),
        ],
        "shape_to_tensor" => {
            vec![case(vec![], vec![("shape", Shape(&[2, 3]))]), case(vec![], vec![("shape", Shape(&[]))])]
        }
        "concat" => vec![
            by_row(&[0, 1, 2], vec![X(&[2, 1]), X(&[2, 3]), X(&[2, 0])], vec![("axis", Int(-1))]),
            case(vec![X(&[2, 3]), X(&[1, 3])], vec![]),
            case(vec![X(&[2])], vec![]),
        ],
        "split" => vec![
            by_row(&[0], vec![X(&[2, 7])], vec![("axis", Int(1)), ("sections", Int(3))]),
            by_row(&[0], vec![X(&[2, 7])], vec![("axis", Int(-1)), ("indices", Ints(&[2, 2, 9]))]),
            by_row(&[0], vec![X(&[2, 7]), Int64(&[3], &[2, 0, 5])], vec![("axis", Int(1)), ("sections", Int(3))]),
        ],
        "dynamic_strided_slice" => vec![
            by_row(
                &[0],
                vec![
                    X(&[2, 7, 5]),
                    Int64(&[2], &[-1, 1]),
                    Int64(&[2], &[i64::MIN, 6]),
                    Int64(&[2], &[2, 1]),
                    Int64(&[2], &[-2, 2]),
                ],
                vec![],
            ),
            case(vec![X(&[4, 2]), Int64(&[1], &[3]), Int64(&[1], &[1])], vec![]),
            case(vec![X(&[4]), Int64(&[1], &[0]), Int64(&[1], &[9]), Absent, Int64(&[1], &[3])], vec![]),
        ],
        "strided_slice" => vec![
            by_row(
                &[0],
                vec![X(&[2, 7, 5])],
                vec![
                    ("axes", Ints(&[2, 1])),
                    ("begin", Ints(&[-1, 1])),
                    ("end", Ints(&[i64::MIN, 6])),
                    ("strides", Ints(&[-2, 2])),
                ],
            ),
            case(vec![X(&[4])], vec![("begin", Ints(&[3])), ("end", Ints(&[1]))]),
        ],
        "take" => vec![
            by_row(&[0], vec![X(&[2, 3, 2]), Int64(&[2, 2], &[0, -1, 2, 1])], vec![("axis", Int(1))]),
            case(vec![X(&[3]), Int64(&[], &[1])], vec![]),
            case(vec![X(&[2, 3, 2]), Int64(&[4], &[2, 0, -1, 1])], vec![("axis", Int(1))]),
            case(vec![X(&[2, 3, 2]), Int64(&[], &[-2])], vec![("axis", Int(1))]),
        ],
        "gather_elements" => vec![
            by_row(&[0], vec![X(&[2, 3]), Int64(&[2, 2], &[0, -1, 2, 1])], vec![("axis", Int(1))]),
            case(vec![X(&[3, 2]), Int64(&[1, 2], &[2, -3])], vec![]),
        ],
        "gather_nd" => vec![
            case(vec![X(&[2, 3, 2]), Int64(&[2, 2], &[0, -1, 1, 0])], vec![]),
            case(vec![X(&[2, 3, 2]), Int64(&[2, 1, 1], &[2, -3])], vec![("batch_dims", Int(1))]),
        ],
        "scatter_elements" => vec![
            case(vec![X(&[2, 3]), Int64(&[2, 2], &[0, -1, 2, 1]), X(&[2, 2])], vec![("axis", Int(1))]),
            case(vec![X(&[3, 2]), Int64(&[2, 1], &[2, -1]), X(&[2, 1])], vec![("reduction", Str("add"))]),
            case(vec![X(&[3]), Int64(&[2], &[1, 1]), X(&[2])], vec![("reduction", Str("mul"))]),
            case(vec![X(&[3]), Int64(&[2], &[1, 1]), X(&[2])], vec![("reduction", Str("max"))]),
            case(vec![X(&[3]), Int64(&[2], &[1, 1]), X(&[2])], vec![("reduction", Str("min"))]),
        ],
        "scatter_nd" => vec![
            case(vec![X(&[2, 3]), Int64(&[2, 2], &[0, -1, 1, 0]), X(&[2])], vec![]),
            case(vec![X(&[2, 3]), Int64(&[2, 1], &[1, 1]), X(&[2, 3])], vec![("reduction", Str("add"))]),
            case(vec![X(&[2, 3]), Int64(&[2, 1], &[1, 1]), X(&[2, 3])], vec![("reduction", Str("max"))]),
        ],
        "nn.pad" => vec![
            by_row(&[0], vec![X(&[2, 3]), Int64(&[4], &[0, 1, 0, 2])], vec![]),
            case(vec![X(&[2, 3]), Int64(&[4], &[1, -1, 0, 2]), Scalar(1)], vec![]),
            by_row(
                &[0],
                vec![X(&[2, 3]), Int64(&[2], &[2, 1]), Absent, Int64(&[1], &[-1])],
                vec![("mode", Str("reflect"))],
            ),
            case(vec![X(&[2, 3]), Int64(&[4], &[2, -1, 0, 2])], vec![("mode", Str("edge"))]),
            case(vec![X(&[2, 3]), Int64(&[4], &[5, 0, 0, 4])], vec![("mode", Str("wrap"))]),
        ],
        "center_crop_pad" => vec![
            case(vec![X(&[2, 5]), Int64(&[2], &[5, 2])], vec![]),
            by_row(&[0], vec![X(&[2, 5, 3]), Int64(&[2], &[6, 2])], vec![("axes", Ints(&[-1, 1]))]),
        ],
        "one_hot" => vec![
            case(vec![Int64(&[2, 2], &[0, -1, 2, 7]), Int64(&[], &[3]), X(&[2])], vec![]),
            case(vec![Positive(&[2]), Int64(&[1], &[3]), X(&[2])], vec![("axis", Int(0))]),
        ],
        "reverse_sequence" => vec![
            case(vec![X(&[3, 2, 2]), Int64(&[2], &[3, 2])], vec![]),
            by_row(&[], vec![X(&[2, 3]), Int64(&[2], &[0, 3])], vec![("time_axis", Int(-1)), ("batch_axis", Int(0))]),
        ],
        "nonzero" => vec![case(vec![X(&[2, 3])], vec![]), case(vec![X(&[])], vec![]), case(vec![X(&[0, 2])], vec![])],
        "compress" => vec![
            by_row(&[0], vec![X(&[2, 3]), Flags(&[2])], vec![("axis", Int(1))]),
            case(vec![X(&[2, 3]), Flags(&[2])], vec![("axis", Int(0))]),
            case(vec![X(&[2, 3]), Flags(&[5])], vec![]),
        ],
        "unique" => vec![
            case(vec![X(&[2, 4])], vec![]),
            case(vec![X(&[5])], vec![("sorted", Bool(false))]),
            case(vec![X(&[2, 4])], vec![("axis", Int(-1))]),
            case(vec![X(&[0, 4])], vec![("axis", Int(0))]),
        ],
        "nn.flatten" => vec![
            by_row(&[0], vec![X(&[2, 3, 4])], vec![]),
            case(vec![X(&[2, 3])], vec![("axis", Int(2))]),
            case(vec![X(&[])], vec![("axis", Int(0))]),
        ],
        "tile" => vec![
            by_row(&[0], vec![X(&[2, 1, 3]), Int64(&[3], &[1, 2, 2])], vec![]),
            case(vec![X(&[2, 3]), Int64(&[2], &[0, 2])], vec![]),
        ],
        "tril" | "triu" => vec![
            by_row(&[0], vec![X(&[2, 3, 4])], vec![]),
            case(vec![X(&[3, 2]), Int64(&[], &[-1])], vec![]),
            case(vec![X(&[0, 2]), Absent], vec![]),
        ],
        "eye_like" => vec![
            case(vec![X(&[3, 2])], vec![]),
            case(vec![X(&[3, 4])], vec![("k", Int(1)), ("dtype", Element(DType::Int8))]),
        ],
        "nn.depth_to_space" => vec![
            by_row(&[0], vec![X(&[1, 8, 2, 3])], vec![("block_size", Int(2))]),
            case(vec![X(&[1, 8, 2, 3])], vec![("block_size", Int(2)), ("mode", Str("CRD"))]),
        ],
        "nn.space_to_depth" => vec![
            by_row(&[0], vec![X(&[1, 2, 2, 6])], vec![("block_size", Int(2))]),
            case(vec![X(&[1, 2, 2, 6])], vec![("block_size", Int(2)), ("mode", Str("CRD"))]),
        ],
        "size" => vec![case(vec![X(&[2, 3])], vec![]), case(vec![X(&[])], vec![])],
        "zeros" | "ones" => vec![
            case(vec![], vec![("shape", Shape(&[2, 3]))]),
            case(vec![], vec![("shape", Shape(&[0])), ("dtype", Element(DType::Bool))]),
        ],
        "full" => vec![case(vec![Int64(&[2], &[2, 3])], vec![("value", Value)])],
        "arange" => vec![case(vec![Scalar(1), Scalar(8), Scalar(3)], vec![])],
        "matmul" => vec![
            by_row(&[0], vec![X(&[3, 4]), X(&[4, 5])], vec![]),
            by_row(&[0], vec![X(&[2, 1, 3, 4]), X(&[5, 4, 2])], vec![]),
            case(vec![X(&[4]), X(&[4])], vec![]),
            case(vec![X(&[4]), X(&[2, 4, 3])], vec![]),
            by_row(&[0], vec![X(&[2, 4]), X(&[4])], vec![]),
            case(vec![X(&[2, 0]), X(&[0, 3])], vec![]),
        ],
        "einsum" => vec![
            by_row(&[0], vec![X(&[2, 3]), X(&[3, 4])], vec![("subscripts", Str("ij,jk->ik"))]),
            by_row(&[0], vec![X(&[2, 3, 3])], vec![("subscripts", Str("bii->bi"))]),
            case(vec![X(&[2, 1, 3]), X(&[4, 3]), X(&[3])], vec![("subscripts", Str("...i,ki,i"))]),
            case(vec![X(&[2, 3]), X(&[1])], vec![("subscripts", Str("ij,j->i"))]),
            case(vec![X(&[1, 3]), X(&[4, 1])], vec![("subscripts", Str("bi,bi->bi"))]),
            case(vec![X(&[])], vec![("subscripts", Str("->"))]),
        ],
        "det" => vec![by_row(&[0], vec![X(&[2, 3, 3])], vec![]), case(vec![X(&[0, 0])], vec![])],
        "nn.gemm" => vec![
            by_row(&[0], vec![X(&[3, 4]), X(&[4, 5]), X(&[5])], vec![("alpha", Float(2.0)), ("beta", Float(-1.0))]),
            by_row(&[0], vec![X(&[3, 4]), X(&[5, 4])], vec![("trans_b", Bool(true))]),
            case(vec![X(&[4, 3]), X(&[5, 4]), Absent], vec![("trans_a", Bool(true)), ("trans_b", Bool(true))]),
        ],
        "nn.batch_norm" => vec![by_row(
            &[0],
            vec![X(&[2, 3, 4]), X(&[3]), X(&[3]), X(&[3]), Positive(&[3])],
            vec![("epsilon", Float(0.25))],
        )],
        "nn.batch_norm_training" => vec![case(
            vec![X(&[2, 3, 4]), X(&[3]), X(&[3]), X(&[3]), Positive(&[3])],
            vec![("epsilon", Float(0.25)), ("momentum", Float(0.5))],
        )],
        "nn.layer_norm" => vec![
            by_row(&[0], vec![X(&[2, 3, 4]), X(&[3, 4]), X(&[3, 4])], vec![("axes", Ints(&[-2, 2]))]),
            by_row(&[0], vec![X(&[2, 3]), X(&[3])], vec![]),
            by_row(&[0], vec![X(&[2, 3, 4]), X(&[3, 1]), X(&[])], vec![("statistics", Bool(true))]),
        ],
        "nn.rms_norm" => vec![
            by_row(&[0], vec![X(&[2, 3, 4]), X(&[3, 4])], vec![("axes", Ints(&[-2, 2]))]),
            by_row(&[0], vec![X(&[2, 3]), X(&[1])], vec![("epsilon", Float(0.5))]),
        ],
        "nn.instance_norm" => vec![
            by_row(&[0], vec![X(&[2, 3, 4]), X(&[3]), X(&[3])], vec![]),
            by_row(&[0], vec![X(&[2, 3]), X(&[3]), X(&[3])], vec![]),
        ],
        "nn.group_norm" => vec![
            by_row(&[0], vec![X(&[2, 4, 3]), X(&[4]), X(&[4])], vec![("num_groups", Int(2))]),
            by_row(&[0], vec![X(&[2, 4, 3]), X(&[2]), X(&[2])], vec![("num_groups", Int(2))]),
        ],
        "nn.mean_variance_norm" => vec![
            case(vec![X(&[2, 3, 2, 2])], vec![]),
            by_row(&[0], vec![X(&[2, 3, 2])], vec![("axes", Ints(&[-1])), ("epsilon", Float(0.5))]),
        ],
        "nn.lp_norm" => {
            vec![by_row(&[0], vec![X(&[2, 5])], vec![]), case(vec![X(&[2, 5])], vec![("p", Int(1)), ("axis", Int(0))])]
        }
        "nn.softmax" | "nn.log_softmax" | "nn.hardmax" => vec![
            by_row(&[0], vec![X(&[2, 5])], vec![]),
            by_row(&[0], vec![X(&[2, 5, 3])], vec![("axis", Int(1))]),
            by_row(&[0], vec![X(&[2, 5, 3, 2])], vec![("axes", Ints(&[1, -2]))]),
            case(vec![X(&[2, 5])], vec![("axis", Int(0))]),
        ],
        "nn.nll_loss" | "nn.softmax_cross_entropy" => vec![
            case(vec![X(&[2, 3]), Int64(&[2], &[2, 0])], vec![]),
            case(vec![X(&[2, 3]), Int64(&[2], &[1, 1])], vec![("reduction", Str("sum"))]),
            case(
                vec![X(&[2, 3, 2]), Int64(&[2, 2], &[2, 0, 7, 1]), X(&[3])],
                vec![("reduction", Str("none")), ("ignore_index", Int(7))],
            ),
        ],
        "topk" => vec![
            by_row(&[0], vec![X(&[2, 5]), Int64(&[1], &[3])], vec![]),
            case(vec![X(&[3, 2]), Int64(&[], &[2])], vec![("axis", Int(0)), ("largest", Bool(false))]),
        ],
        "nn.lrn" => vec![by_row(&[0], vec![X(&[2, 5, 3])], vec![("size", Int(3)), ("alpha", Float(0.5))])],
        "nn.dropout" => vec![by_row(&[0], vec![X(&[2, 3])], vec![]), by_row(&[0], vec![X(&[2, 3]), X(&[])], vec![])],
        _ => return None,
    })
}

const CONVERTED: &[DType] = &[
    DType::Bool,
    DType::Int8,
    DType::Int64,
    DType::UInt16,
    DType::UInt64,
    DType::Float16,
    DType::BFloat16,
    DType::Float32,
    DType::Float64,
];

const SMALL: &[DType] =
    &[DType::Int2, DType::UInt4, DType::Float4E2M1, DType::Float8E4M3FNUZ, DType::Float8E5M2, DType::Float8E8M0];

//! Walks the registry: every row is documented, and every kernel agrees with its type rule on generated operands of every
//! element type, whether they are splats or not.

use std::collections::BTreeSet;

use anfora_ir::{
    Attr, AttrId, AttrReader, AttrsId, Context, DType, Element as Stored, FusionPattern, KernelCall, KernelError,
    Literal, OpId, OpPurity, Operand, Type, TypeError, TypeId, element_count, infer_op,
};
use half::{bf16, f16};

#[path = "cases/pooling.rs"]
mod pooling;
#[path = "cases/quantized.rs"]
mod quantized;

/// An attribute of a generated call.
#[derive(Clone)]
enum A {
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
enum O {
    /// Of the element type under test.
    X(&'static [usize]),
    /// Likewise, without zeros or negative numbers.
    Positive(&'static [usize]),
    Flags(&'static [usize]),
    /// Of this element type.
    Of(DType, &'static [usize]),
    /// These numbers.
    Int64(&'static [usize], &'static [i64]),
    Float32(&'static [f32]),
    /// This number, in the element type under test.
    Scalar(i8),
    Absent,
}

struct Case {
    operands: Vec<O>,
    attrs: Vec<(&'static str, A)>,
    /// Which operands have the axis 0 of the result for their own: more of them there gives more of the result, and nothing else.
    rows: Vec<usize>,
}

fn case(operands: Vec<O>, attrs: Vec<(&'static str, A)>) -> Case {
    Case { operands, attrs, rows: Vec::new() }
}

/// A case in which the operands `rows` grow along axis 0.
fn by_row(rows: &[usize], operands: Vec<O>, attrs: Vec<(&'static str, A)>) -> Case {
    Case { operands, attrs, rows: rows.to_vec() }
}

/// Calls of an operator; `None` for one that the test does not know.
fn cases(op: &str) -> Option<Vec<Case>> {
    use A::*;
    use O::*;
    if let Some(cases) = quantized::cases(op).or_else(|| pooling::cases(op)) {
        return Some(cases);
    }
    type Spatial = (&'static [usize], &'static [usize], &'static [i64], &'static [i64], &'static [i64]);
    let spatial = |n: usize| -> Spatial {
        match n {
            1 => (&[1, 4, 7], &[6, 2, 3], &[2], &[1, 0], &[3]),
            2 => (&[1, 4, 7, 6], &[6, 2, 3, 2], &[2, 1], &[1, 0, 1, 1], &[3, 2]),
            _ => (&[1, 4, 3, 4, 3], &[6, 2, 2, 1, 2], &[1, 2, 1], &[0, 1, 0, 1, 0, 1], &[2, 1, 2]),
        }
    };
    let rank = op.strip_suffix('d').and_then(|s| s.chars().last()).and_then(|c| c.to_digit(10));
    if let (Some(n), true) = (rank, op.starts_with("nn.")) {
        let (x, w, strides, padding, pool) = spatial(n as usize);
        let common = vec![("strides", Ints(strides)), ("padding", Ints(padding))];
        let pooled = [common.clone(), vec![("pool_size", Ints(pool))]].concat();
        let with = |more: &[(&'static str, A)]| [pooled.clone(), more.to_vec()].concat();
        return Some(if op.starts_with("nn.conv") {
            let grouped = [common.clone(), vec![("groups", Int(2))]].concat();
            vec![
                by_row(&[0], vec![X(x), X(w), X(&[6])], grouped.clone()),
                by_row(&[0], vec![X(x), X(w), Absent], grouped.clone()),
                by_row(&[0], vec![X(x), X(w)], grouped),
            ]
        } else if op.starts_with("nn.global") {
            vec![by_row(&[0], vec![X(x)], vec![])]
        } else if op.starts_with("nn.max") {
            vec![by_row(&[0], vec![X(x)], pooled.clone()), by_row(&[0], vec![X(x)], with(&[("ceil_mode", Bool(true))]))]
        } else {
            vec![
                by_row(&[0], vec![X(x)], pooled.clone()),
                by_row(&[0], vec![X(x)], with(&[("ceil_mode", Bool(true)), ("count_include_pad", Bool(true))])),
            ]
        });
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
        "astype" => CONVERTED.iter().map(|&d| by_row(&[0], vec![X(&[2, 3])], vec![("dtype", Element(d))])).collect(),
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
        "image.resize" => vec![
            case(vec![X(&[2, 3, 5]), Int64(&[3], &[3, 2, 7])], vec![]),
            case(vec![X(&[3, 5]), Float32(&[0.7, 2.5])], vec![("rounding_method", Str("ceil"))]),
            case(vec![X(&[]), Int64(&[0], &[])], vec![]),
            case(vec![X(&[2, 0]), Int64(&[2], &[3, 0])], vec![]),
            by_row(
                &[0],
                vec![X(&[2, 3, 5]), Float32(&[0.7, 2.5])],
                vec![
                    ("axes", Ints(&[-1, 1])),
                    ("method", Str("linear")),
                    ("coordinate_transformation_mode", Str("half_pixel_symmetric")),
                ],
            ),
            by_row(
                &[0],
                vec![X(&[2, 3, 5]), Int64(&[2], &[4, 4])],
                vec![
                    ("axes", Ints(&[1, 2])),
                    ("method", Str("cubic")),
                    ("cubic_alpha", Float(-0.5)),
                    ("exclude_outside", Bool(true)),
                    ("keep_aspect_ratio_policy", Str("not_smaller")),
                ],
            ),
            by_row(
                &[0],
                vec![X(&[2, 9]), Int64(&[1], &[4])],
                vec![("axes", Ints(&[1])), ("method", Str("cubic")), ("antialias", Bool(true))],
            ),
            case(
                vec![X(&[4, 3]), Int64(&[2], &[3, 3])],
                vec![("method", Str("linear")), ("coordinate_transformation_mode", Str("align_corners"))],
            ),
        ],
        "image.crop_and_resize" => vec![
            case(
                vec![X(&[4, 4]), Int64(&[2], &[3, 2]), Float32(&[0.4, 0.6, 0.6, 1.5])],
                vec![("method", Str("linear")), ("extrapolation_value", Float(2.0))],
            ),
            by_row(&[0], vec![X(&[2, 4]), Int64(&[1], &[3]), Float32(&[1.0, -0.5])], vec![("axes", Ints(&[1]))]),
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

/// Small numbers; the same for the same seed.
struct Numbers(fastrand::Rng);

impl Numbers {
    fn of_seed(seed: u64) -> Numbers {
        Numbers(fastrand::Rng::with_seed(seed))
    }

    fn literal(&mut self, dtype: DType, shape: &[usize], positive: bool, splat: bool) -> Literal {
        let n = element_count(shape).unwrap();
        let mut one = || self.0.i64(if positive { 1..5 } else { -4..5 });
        let first = one();
        let values: Vec<i64> = (0..n).map(|_| if splat { first } else { one() }).collect();
        fn make<T: Stored>(shape: &[usize], values: &[i64], f: impl Fn(i64) -> T) -> Literal {
            Literal::from_elements(shape, &values.iter().map(|&v| f(v)).collect::<Vec<T>>()).unwrap()
        }
        match dtype {
            DType::Bool => make(shape, &values, |v| v > 0),
            DType::Int8 => make(shape, &values, |v| v as i8),
            DType::Int16 => make(shape, &values, |v| v as i16),
            DType::Int32 => make(shape, &values, |v| v as i32),
            DType::Int64 => make(shape, &values, |v| v),
            DType::UInt8 => make(shape, &values, |v| v.unsigned_abs() as u8),
            DType::UInt16 => make(shape, &values, |v| v.unsigned_abs() as u16),
            DType::UInt32 => make(shape, &values, |v| v.unsigned_abs() as u32),
            DType::UInt64 => make(shape, &values, |v| v.unsigned_abs()),
            DType::Float16 => make(shape, &values, |v| f16::from_f32(v as f32 * 0.3)),
            DType::BFloat16 => make(shape, &values, |v| bf16::from_f32(v as f32 * 0.3)),
            DType::Float32 => make(shape, &values, |v| v as f32 * 0.3),
            _ => make(shape, &values, |v| v as f64 * 0.3),
        }
    }
}

fn operand(o: &O, dtype: DType, splat: bool, numbers: &mut Numbers) -> Option<Literal> {
    Some(match o {
        O::X(shape) => numbers.literal(dtype, shape, false, splat),
        O::Positive(shape) => numbers.literal(dtype, shape, true, splat),
        O::Of(dtype, shape) => numbers.literal(*dtype, shape, dtype.is_float(), splat),
        O::Flags(shape) => numbers.literal(DType::Bool, shape, false, splat),
        O::Int64(shape, values) => Literal::from_elements(shape, values).unwrap(),
        O::Float32(values) => Literal::from_elements(&[values.len()], values).unwrap(),
        O::Scalar(v) => {
            let wide = Literal::scalar(*v);
            let mut cx = Context::new(anfora_ops::standard());
            let to = cx.attr(Attr::DType(dtype));
            run(&mut cx, "astype", &[Some(wide)], &[("dtype", to)]).unwrap().1.remove(0)
        }
        O::Absent => return None,
    })
}

fn attribute(cx: &mut Context, a: &A, dtype: DType, numbers: &mut Numbers) -> AttrId {
    match a {
        A::Int(i) => cx.int_attr(*i),
        A::Ints(i) => cx.ints_attr(i),
        A::Float(f) => cx.float_attr(*f),
        A::Bool(b) => cx.attr(Attr::Bool(*b)),
        A::Str(s) => cx.str_attr(s),
        A::Element(d) => cx.attr(Attr::DType(*d)),
        A::Shape(s) => {
            let dims = s.iter().map(|&d| cx.types.dims.constant(d)).collect();
            cx.attr(Attr::Shape(dims))
        }
        A::Value => {
            let value = numbers.literal(dtype, &[1], false, true);
            let id = cx.literals.intern(value);
            cx.attr(Attr::Literal(id))
        }
    }
}

/// The type of a call.
fn infer(cx: &mut Context, op: OpId, operands: &[Operand], attrs: AttrsId) -> Result<TypeId, TypeError> {
    let annotated = cx.types.error();
    infer_op(cx, op, operands, attrs, annotated)
}

fn literal_operands(cx: &mut Context, operands: &[Option<Literal>]) -> Vec<Operand> {
    operands.iter().map(|o| cx.constant_operand(o.as_ref())).collect()
}

/// Types and evaluates a call of constants.
fn run(
    cx: &mut Context,
    op: &str,
    operands: &[Option<Literal>],
    attrs: &[(&str, AttrId)],
) -> Result<(TypeId, Vec<Literal>), String> {
    let op = cx.ops.find(op).unwrap();
    let attrs = cx.named_attrs(attrs);
    let attrs = cx.check_op_attrs(op, attrs).map_err(|(e, _)| e.to_string())?;
    let list = literal_operands(cx, operands);
    let ty = infer(cx, op, &list, attrs).map_err(|e| e.to_string())?;
    let refs: Vec<Option<&Literal>> = operands.iter().map(|o| o.as_ref()).collect();
    let kernel = cx.ops.get(op).kernel.unwrap();
    let call = KernelCall { operands: &refs, attrs: AttrReader { cx, op, attrs }, ty };
    kernel(&call).map(|r| (ty, r)).map_err(|e: KernelError| format!("{ty:?}: {e}"))
}

/// The types that the fields of a call's result are of.
fn result_types(cx: &Context, ty: TypeId) -> Vec<TypeId> {
    match cx.types.get(ty) {
        Type::Tuple(fields) => fields.to_vec(),
        _ => vec![ty],
    }
}

/// Rows `0..n` along axis 0.
fn first_rows(cx: &mut Context, l: &Literal, n: usize) -> Literal {
    let (begin, end) = (cx.ints_attr(&[0]), cx.ints_attr(&[n as i64]));
    run(cx, "strided_slice", &[Some(l.clone())], &[("begin", begin), ("end", end)]).unwrap().1.remove(0)
}

#[test]
fn every_row_says_what_it_is() {
    let registry = anfora_ops::standard();
    let mut names = BTreeSet::new();
    for (_, row) in registry.rows() {
        let name = row.name.as_ref();
        assert!(names.insert(name.to_string()), "{name} twice");
        assert!(!row.doc.is_empty() && !row.doc.ends_with('.'), "{name}: {}", row.doc);
        for a in row.attrs.iter() {
            assert!(!a.doc.is_empty() && !a.doc.ends_with('.'), "{name}.{}: {}", a.name, a.doc);
        }
        if row.commutative {
            assert_eq!((row.arity.min, row.arity.max), (2, Some(2)), "{name}");
        }
        if row.purity == OpPurity::Impure {
            assert!(row.kernel.is_none() && row.fusion == FusionPattern::Opaque, "{name}");
        }
        let has_cases = cases(name).is_some();
        assert_eq!(has_cases, row.kernel.is_some(), "{name} has a kernel and no case here, or the other way round");
    }
}

#[test]
fn the_page_of_operators_names_them_all() {
    let page = include_str!("../../OPS.md");
    for (_, row) in anfora_ops::standard().rows() {
        let name = row.name.replace("1d", "Nd").replace("2d", "Nd").replace("3d", "Nd");
        assert!(page.contains(&format!("`{name}")) || page.contains(&format!("`{}(", row.name)), "{name}");
        for a in row.attrs.iter() {
            assert!(page.contains(a.name), "{name}: {}", a.name);
        }
    }
}

#[test]
fn kernels_agree_with_type_rules() {
    let registry = anfora_ops::standard();
    let mut bits = String::new();
    for (op, row) in registry.rows() {
        let name = row.name.as_ref();
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        for (number, case) in cases(name).into_iter().flatten().enumerate() {
            let mut accepted = 0;
            for &dtype in DType::ALL.iter().filter(|d| d.has_kernels()) {
                for splats in [0, u32::MAX, 1, 2] {
                    let place = format!("{name}, case {number}, {dtype}, splats {splats:b}");
                    let mut cx = Context::new(registry.clone());
                    let mut numbers = Numbers::of_seed(number as u64 + 1);
                    let operands: Vec<Option<Literal>> = case
                        .operands
                        .iter()
                        .enumerate()
                        .map(|(i, o)| operand(o, dtype, splats >> i & 1 == 1, &mut numbers))
                        .collect();
                    let attrs: Vec<(&str, AttrId)> =
                        case.attrs.iter().map(|(k, a)| (*k, attribute(&mut cx, a, dtype, &mut numbers))).collect();
                    let attrs_id = cx.named_attrs(&attrs);
                    let attrs_id = cx.check_op_attrs(op, attrs_id).unwrap();
                    let list = literal_operands(&mut cx, &operands);
                    if infer(&mut cx, op, &list, attrs_id).is_err() {
                        continue;
                    }
                    accepted += 1;
                    let (ty, results) =
                        run(&mut cx, name, &operands, &attrs).unwrap_or_else(|e| panic!("{place}: {e}"));
                    for result in &results {
                        hash.add(result.dtype().name().as_bytes());
                        hash.add(&result.to_bytes());
                    }
                    let types = result_types(&cx, ty);
                    assert_eq!(types.len(), results.len(), "{place}");
                    let actual: Vec<TypeId> =
                        results.iter().map(|r| cx.types.static_tensor(r.dtype(), r.shape())).collect();
                    // What the type says of elements is so.
                    let mut exact: Vec<TypeId> = Vec::new();
                    for (&ty, result) in types.iter().zip(&results) {
                        let literal = cx.literals.intern(result.clone());
                        exact.push(cx.literal_type(literal));
                        assert!(
                            cx.types.accepts(ty, exact[exact.len() - 1]),
                            "{place}: {} {result:?}",
                            cx.type_text(ty)
                        );
                    }
                    let types: Vec<TypeId> = types.iter().map(|&t| cx.types.without_elements(t)).collect();
                    match row.size_bound {
                        None => assert_eq!(types, actual, "{place}: {} {results:?}", cx.type_text(ty)),
                        Some(_) => {
                            let all = types.iter().zip(&actual).all(|(&t, &a)| cx.types.accepts(t, a));
                            assert!(all, "{place}: {} {results:?}", cx.type_text(ty));
                        }
                    }
                    // What is known of the operands may be less; then so it is of the result, and no more.
                    for vaguer in [0, 1, 2] {
                        let mut vague = list.clone();
                        for o in &mut vague {
                            let Some(t) = cx.types.as_tensor(o.ty).cloned() else { continue };
                            o.literal = o.literal.filter(|_| vaguer == 0);
                            let unknown = cx.types.dims.unknown();
                            o.ty = match vaguer {
                                0 => o.ty,
                                1 => cx.types.tensor(t.dtype, &vec![unknown; t.shape.unwrap_or_default().len()]),
                                _ => cx.types.unranked(t.dtype),
                            };
                        }
                        let general = infer(&mut cx, op, &vague, attrs_id).unwrap_or_else(|e| panic!("{place}: {e}"));
                        let specific =
                            if matches!(cx.types.get(ty), Type::Tuple(_)) { cx.types.tuple(&exact) } else { exact[0] };
                        let (g, s) = (cx.type_text(general), cx.type_text(specific));
                        assert!(cx.types.accepts(general, specific), "{place}: {g} {s}");
                    }
                    if !case.rows.is_empty() {
                        splat_and_rows_agree(&mut cx, &place, name, &case, &operands, &attrs, &results);
                    }
                }
            }
            assert!(accepted > 0, "{name}, case {number}");
        }
        if row.kernel.is_some() {
            bits += &format!("{name} {:016x}\n", hash.0);
        }
    }
    // The bits of every result, so that a machine on which they are others is found out.
    expect_test::expect_file!["bits.txt"].assert_eq(&bits);
}

#[test]
fn extents_depend_on_no_elements_but_those_of_the_shape_operands() {
    let registry = anfora_ops::standard();
    let mut checked = 0;
    for (op, row) in registry.rows().filter(|(_, row)| row.fusion != FusionPattern::Opaque) {
        let name = row.name.as_ref();
        let mut depends = false;
        for (number, case) in cases(name).into_iter().flatten().enumerate() {
            for &dtype in DType::ALL.iter().filter(|d| d.has_kernels()) {
                let mut cx = Context::new(registry.clone());
                let mut numbers = Numbers::of_seed(number as u64 + 1);
                let operands: Vec<Option<Literal>> =
                    case.operands.iter().map(|o| operand(o, dtype, false, &mut numbers)).collect();
                let attrs: Vec<(&str, AttrId)> =
                    case.attrs.iter().map(|(k, a)| (*k, attribute(&mut cx, a, dtype, &mut numbers))).collect();
                let attrs = cx.named_attrs(&attrs);
                let attrs = cx.check_op_attrs(op, attrs).unwrap();
                let list = literal_operands(&mut cx, &operands);
                let Ok(known) = infer(&mut cx, op, &list, attrs) else { continue };
                let known = cx.types.without_elements(known);
                let mut with_only = |keeps: &[u32]| {
                    let mut list = list.clone();
                    for (i, o) in list.iter_mut().enumerate() {
                        if !keeps.contains(&(i as u32)) {
                            (o.ty, o.literal) = (cx.types.without_elements(o.ty), None);
                        }
                    }
                    let ty = infer(&mut cx, op, &list, attrs).unwrap();
                    cx.types.without_elements(ty)
                };
                assert_eq!(with_only(row.shape_operands), known, "{name}, case {number}, {dtype}");
                depends |= with_only(&[]) != known;
                checked += 1;
            }
        }
        assert_eq!(depends, !row.shape_operands.is_empty(), "{name}");
    }
    assert!(checked > 100, "only {checked}");
}

/// The hash of Fowler, Noll and Vo.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// With more rows of other numbers behind, which make operands dense, the first rows of the result are as before.
fn splat_and_rows_agree(
    cx: &mut Context,
    place: &str,
    name: &str,
    case: &Case,
    operands: &[Option<Literal>],
    attrs: &[(&str, AttrId)],
    results: &[Literal],
) {
    let mut numbers = Numbers::of_seed(99);
    let longer: Vec<Option<Literal>> = operands
        .iter()
        .enumerate()
        .map(|(i, o)| {
            let o = o.as_ref()?;
            if !case.rows.contains(&i) {
                return Some(o.clone());
            }
            let more = numbers.literal(o.dtype(), o.shape(), true, false);
            let axis = cx.int_attr(0);
            Some(run(cx, "concat", &[Some(o.clone()), Some(more)], &[("axis", axis)]).unwrap().1.remove(0))
        })
        .collect();
    let (_, long) = run(cx, name, &longer, attrs).unwrap_or_else(|e| panic!("{place}: {e}"));
    for (short, long) in results.iter().zip(&long) {
        if short.rank() > 0 && short.shape() != long.shape() {
            assert_eq!(&first_rows(cx, long, short.shape()[0]), short, "{place}");
        }
    }
}

#[test]
fn symbolic_dimensions() {
    let mut cx = Context::new(anfora_ops::standard());
    let (n, m) = (cx.names.intern("n"), cx.names.intern("m"));
    let (n, m) = (cx.types.dims.new_symbol(n), cx.types.dims.new_symbol(m));
    let (n, m) = (cx.types.dims.symbol(n), cx.types.dims.symbol(m));
    let c = |cx: &mut Context, v| cx.types.dims.constant(v);
    let (one, three, four) = (c(&mut cx, 1), c(&mut cx, 3), c(&mut cx, 4));
    let unknown = cx.types.dims.unknown();
    let mut check = |op: &str, operands: &[&[anfora_ir::DimId]], attrs: &[(&str, A)], wanted: &str| {
        let id = cx.ops.find(op).unwrap();
        let attrs: Vec<_> =
            attrs.iter().map(|(k, a)| (*k, attribute(&mut cx, a, DType::Float32, &mut Numbers::of_seed(1)))).collect();
        let attrs = cx.named_attrs(&attrs);
        let attrs = cx.check_op_attrs(id, attrs).unwrap();
        let operands: Vec<Operand> = operands
            .iter()
            .map(|s| Operand { ty: cx.types.tensor(DType::Float32, s), literal: None, absent: false })
            .collect();
        let text = match infer(&mut cx, id, &operands, attrs) {
            Ok(ty) => cx.type_text(ty).to_string(),
            Err(e) => e.message,
        };
        assert_eq!(text, wanted, "{op}");
    };
    check("add", &[&[n, m], &[n, m]], &[], "Tensor[(n, m), float32]");
    check("add", &[&[n, three], &[n, one]], &[], "Tensor[(n, 3), float32]");
    check("add", &[&[n], &[m]], &[], "Tensor[(?), float32]".replace("(?)", "(?,)").as_str());
    check("add", &[&[n], &[three]], &[], "Tensor[(3,), float32]");
    check(
        "add",
        &[&[n, four], &[three]],
        &[],
        "axis 0 of operand 1 has extent 3, which does not broadcast with 4 of operand 0",
    );
    check("matmul", &[&[n, three], &[three, m]], &[], "Tensor[(n, m), float32]");
    check("matmul", &[&[n, three], &[four, m]], &[], "the summed extent of operand 1 is 4, but 3 is wanted");
    let batch = [("subscripts", A::Str("bij,bjk->bik"))];
    check("einsum", &[&[n, m, three], &[n, three, four]], &batch, "Tensor[(n, m, 4), float32]");
    check("einsum", &[&[n, m, three], &[one, one, four]], &batch, "Tensor[(n, m, 4), float32]");
    check("einsum", &[&[n, m, m], &[m, three, four]], &batch, "Tensor[(?, m, 4), float32]");
    check(
        "einsum",
        &[&[n, m, three], &[n, four, m]],
        &batch,
        "an extent of one name of operand 1 is 4, but 3 is wanted",
    );
    check("concat", &[&[n, three], &[m, three]], &[], "Tensor[(n + m, 3), float32]");
    check("concat", &[&[n, n], &[m, m]], &[("axis", A::Int(1))], "Tensor[(n, n + m), float32]");
    check(
        "split",
        &[&[n, four]],
        &[("axis", A::Int(1)), ("sections", A::Int(2))],
        "(Tensor[(n, 2), float32], Tensor[(n, 2), float32])",
    );
    check("sum", &[&[n, three, m]], &[("axis", A::Ints(&[1]))], "Tensor[(n, m), float32]");
    check(
        "nn.conv2d",
        &[&[n, three, m, m], &[four, three, three, three]],
        &[("padding", A::Ints(&[1, 1, 1, 1])), ("strides", A::Ints(&[1, 2]))],
        "Tensor[(n, 4, m, floordiv(m - 1, 2) + 1), float32]",
    );
    check("nn.max_pool1d", &[&[n, three, unknown]], &[("pool_size", A::Ints(&[2]))], "Tensor[(n, 3, ?), float32]");
    let (size, ceil) = (("pool_size", A::Ints(&[4])), ("ceil_mode", A::Bool(true)));
    let by_two = ("strides", A::Ints(&[2]));
    check("nn.max_pool1d", &[&[n, m, three]], std::slice::from_ref(&size), "Tensor[(n, m, 0), float32]");
    check("nn.max_pool1d", &[&[n, m, three]], &[size.clone(), by_two.clone(), ceil], "Tensor[(n, m, 1), float32]");
    check(
        "nn.max_pool1d",
        &[&[n, m, one]],
        &[size, by_two],
        "a window of 4 does not fit in 1, the padded extent of spatial axis 0",
    );
    check("squeeze", &[&[n, one]], &[], "Tensor[?, float32]");
    check(
        "strided_slice",
        &[&[n, four]],
        &[("begin", A::Ints(&[0, 1])), ("end", A::Ints(&[i64::MAX, 3]))],
        "Tensor[(n, 2), float32]",
    );
}

#[test]
fn reshape_cancels_symbols() {
    let mut cx = Context::new(anfora_ops::standard());
    let name = cx.names.intern("n");
    let n = cx.types.dims.new_symbol(name);
    let n = cx.types.dims.symbol(n);
    let dims: Vec<_> = [1, 3, 4].into_iter().map(|d| cx.types.dims.constant(d)).collect();
    let x = cx.types.tensor(DType::Float32, &[n, dims[1], dims[2]]);
    let op = cx.ops.find("reshape").unwrap();
    let attrs = cx.attrs.empty();
    for (shape, wanted) in [
        (&[0i64, -1][..], "Tensor[(n, 12), float32]"),
        (&[-1, 6], "Tensor[(2 * n, 6), float32]"),
        (&[-1], "Tensor[(12 * n,), float32]"),
        (&[-1, 5], "Tensor[(?, 5), float32]"),
        (&[0, 5], "Tensor[(n, 5), float32]"),
        (&[0, -1, 5], "a tensor of shape (n, 3, 4) does not fit the shape (n, ?, 5)"),
    ] {
        let shape = cx.constant_operand(Some(&Literal::from_elements(&[shape.len()], shape).unwrap()));
        let x = Operand { ty: x, literal: None, absent: false };
        let found = infer(&mut cx, op, &[x, shape], attrs).map(|ty| cx.type_text(ty).to_string());
        assert_eq!(found.unwrap_or_else(|e| e.message), wanted);
    }
}

//! Calls of the operators on quantized tensors.

use anfora_ir::DType;

use super::A::*;
use super::O::*;
use super::{Case, by_row, case};

/// Returns calls of an operator of this family; `None` for other operators.
pub(super) fn cases(op: &str) -> Option<Vec<Case>> {
    const I8: DType = DType::Int8;
    const U8: DType = DType::UInt8;
    const F32: DType = DType::Float32;
    Some(match op {
        "quantize" => vec![
            by_row(&[0], vec![X(&[2, 3]), Of(F32, &[]), Of(I8, &[])], vec![]),
            by_row(&[0], vec![X(&[2, 3]), Of(F32, &[3])], vec![("axis", Int(-1)), ("dtype", Element(DType::Int16))]),
            by_row(
                &[0, 1, 2],
                vec![X(&[2, 5, 2]), Of(F32, &[2, 3, 2]), Of(U8, &[2, 3, 2])],
                vec![("block_size", Int(2)), ("precision", Element(DType::Float16))],
            ),
            case(vec![X(&[0, 3]), Of(DType::Float64, &[1])], vec![]),
            case(
                vec![X(&[2, 3]), Of(F32, &[])],
                vec![("dtype", Element(DType::Float8E5M2)), ("saturate", Bool(false))],
            ),
            case(vec![X(&[2, 3]), Of(F32, &[])], vec![("dtype", Element(DType::Int4))]),
        ],
        "dequantize" => vec![
            by_row(&[0], vec![X(&[2, 3]), Of(F32, &[])], vec![]),
            by_row(&[0], vec![X(&[2, 3]), Of(F32, &[3]), X(&[3])], vec![("dtype", Element(DType::BFloat16))]),
            by_row(&[0, 1, 2], vec![X(&[2, 5]), Of(F32, &[2, 2]), X(&[2, 2])], vec![("block_size", Int(4))]),
        ],
        "dynamic_quantize" => vec![case(vec![X(&[2, 3])], vec![]), case(vec![X(&[0])], vec![])],
        "matmul_integer" => vec![
            by_row(&[0], vec![X(&[2, 3]), X(&[3, 4]), X(&[]), X(&[4])], vec![]),
            case(vec![X(&[2, 3]), Of(U8, &[5, 3, 4]), X(&[2])], vec![]),
            case(vec![X(&[3]), Of(I8, &[3, 4]), Absent, Of(I8, &[1])], vec![]),
        ],
        "quantized_matmul" => {
            let scaled =
                |a, b, ab, bb, y| vec![X(a), Of(F32, ab), X(ab), Of(I8, b), Of(F32, bb), Of(I8, bb), Of(F32, &[]), y];
            vec![
                by_row(&[0], scaled(&[2, 3], &[3, 4], &[], &[4], Of(U8, &[])), vec![]),
                case(scaled(&[2, 3], &[3, 4], &[2], &[], Of(I8, &[])), vec![]),
            ]
        }
        _ => {
            let spatial = op.strip_suffix('d')?.chars().last()?.to_digit(10)?;
            let (x, w): (&[usize], &[usize]) = match spatial {
                1 => (&[1, 4, 7], &[6, 2, 3]),
                2 => (&[1, 4, 5, 6], &[6, 2, 3, 2]),
                _ => (&[1, 4, 3, 4, 3], &[6, 2, 2, 1, 2]),
            };
            let padding: &[i64] = match spatial {
                1 => &[1, 0],
                2 => &[1, 0, 1, 1],
                _ => &[0, 1, 0, 1, 0, 1],
            };
            let attrs = || vec![("padding", Ints(padding)), ("groups", Int(2))];
            if op.starts_with("nn.conv_integer") {
                vec![
                    by_row(&[0], vec![X(x), X(w), X(&[]), X(&[6])], attrs()),
                    by_row(&[0], vec![X(x), Of(I8, w)], attrs()),
                ]
            } else if op.starts_with("nn.quantized_conv") {
                let mut operands =
                    vec![X(x), Of(F32, &[]), X(&[]), Of(I8, w), Of(F32, &[6]), Of(I8, &[6]), Of(F32, &[]), Of(U8, &[])];
                let plain = by_row(&[0], operands.clone(), attrs());
                operands.push(Of(DType::Int32, &[6]));
                vec![plain, by_row(&[0], operands, attrs())]
            } else {
                return None;
            }
        }
    })
}

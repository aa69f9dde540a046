//! Calls of the operators on sequences and of those that select places in images.

use anfora_ir::DType;

use super::A::*;
use super::O::*;
use super::{Case, by_row, case};

/// Returns calls of an operator of this family; `None` for other operators.
#[expect(clippy::too_many_lines, reason = "a table of rows")]
pub(super) fn cases(op: &str) -> Option<Vec<Case>> {
    const F32: DType = DType::Float32;
    Some(match op {
        "nn.attention" => vec![
            by_row(&[0, 1, 2], vec![X(&[2, 2, 3, 4]), X(&[2, 2, 5, 4]), X(&[2, 2, 5, 3])], vec![]),
            case(
                vec![X(&[1, 3, 4]), X(&[1, 2, 2]), X(&[1, 2, 3]), Flags(&[3, 4]), X(&[1, 1, 3, 2]), X(&[1, 1, 3, 3])],
                vec![
                    ("q_num_heads", Int(2)),
                    ("kv_num_heads", Int(1)),
                    ("results", Int(4)),
                    ("is_causal", Bool(true)),
                    ("softcap", Float(2.0)),
                    ("qk_matmul_output_mode", Int(3)),
                    ("softmax_precision", Element(DType::Float64)),
                ],
            ),
            case(
                vec![
                    X(&[2, 2, 3, 4]),
                    X(&[2, 1, 4, 4]),
                    X(&[2, 1, 4, 4]),
                    X(&[2, 1, 1, 4]),
                    Absent,
                    Absent,
                    Int64(&[2], &[1, 4]),
                ],
                vec![("left_window_size", Int(1)), ("results", Int(3)), ("scale", Float(0.5))],
            ),
            case(vec![X(&[0, 2, 3, 4]), X(&[0, 2, 5, 4]), X(&[0, 2, 5, 4])], vec![]),
        ],
        "nn.linear_attention" => vec![
            case(
                vec![X(&[1, 3, 4]), X(&[1, 3, 2]), X(&[1, 3, 2])],
                vec![("q_num_heads", Int(2)), ("kv_num_heads", Int(1)), ("update_rule", Str("linear"))],
            ),
            case(
                vec![X(&[2, 2, 4]), X(&[2, 2, 4]), X(&[2, 2, 6]), X(&[2, 2, 2, 3]), X(&[2, 2, 2]), X(&[2, 2, 1])],
                vec![("q_num_heads", Int(2)), ("kv_num_heads", Int(2)), ("scale", Float(0.5))],
            ),
        ],
        "nn.rotary_embedding" => vec![
            case(vec![X(&[1, 2, 3, 4]), X(&[5, 2]), X(&[5, 2]), Int64(&[1, 3], &[0, 4, -1])], vec![]),
            by_row(
                &[0, 1, 2],
                vec![X(&[2, 3, 8]), X(&[2, 3, 1]), X(&[2, 3, 1])],
                vec![("num_heads", Int(2)), ("rotary_embedding_dim", Int(2)), ("interleaved", Bool(true))],
            ),
        ],
        "nn.lstm" => vec![
            case(vec![X(&[3, 2, 4]), X(&[1, 8, 4]), X(&[1, 8, 2])], vec![("direction", Str("reverse"))]),
            case(
                vec![
                    X(&[3, 2, 4]),
                    X(&[2, 8, 4]),
                    X(&[2, 8, 2]),
                    X(&[2, 16]),
                    Of(DType::Int32, &[2]),
                    X(&[2, 2, 2]),
                    X(&[2, 2, 2]),
                    X(&[2, 6]),
                ],
                vec![("direction", Str("bidirectional")), ("clip", Float(0.5)), ("input_forget", Bool(true))],
            ),
        ],
        "nn.gru" => vec![
            case(vec![X(&[3, 2, 4]), X(&[1, 6, 4]), X(&[1, 6, 2])], vec![]),
            by_row(
                &[0],
                vec![X(&[2, 3, 4]), X(&[1, 6, 4]), X(&[1, 6, 2]), X(&[1, 12])],
                vec![("layout", Int(1)), ("linear_before_reset", Bool(true))],
            ),
        ],
        "nn.rnn" => vec![
            by_row(&[0], vec![X(&[2, 3, 4]), X(&[1, 2, 4]), X(&[1, 2, 2])], vec![("layout", Int(1))]),
            case(
                vec![X(&[3, 2, 4]), X(&[1, 2, 4]), X(&[1, 2, 2]), Absent, Absent, X(&[1, 2, 2])],
                vec![("direction", Str("reverse"))],
            ),
        ],
        "nn.causal_conv1d" => vec![
            by_row(&[0], vec![X(&[2, 3, 4]), X(&[3, 1, 2]), X(&[3])], vec![("activation", Str("silu"))]),
            case(vec![X(&[1, 2, 1]), X(&[2, 1, 4]), Absent, X(&[1, 2, 3])], vec![]),
        ],
        "image.grid_sample" => vec![
            by_row(&[0, 1], vec![X(&[2, 2, 3, 4]), Of(F32, &[2, 2, 2, 2])], vec![]),
            case(
                vec![X(&[1, 1, 3, 2, 2]), X(&[1, 2, 1, 2, 3])],
                vec![("mode", Str("cubic")), ("padding_mode", Str("reflection"))],
            ),
            case(
                vec![X(&[1, 2, 4]), X(&[1, 5, 1])],
                vec![("mode", Str("nearest")), ("padding_mode", Str("border")), ("align_corners", Bool(true))],
            ),
        ],
        "image.non_max_suppression" => vec![
            case(
                vec![Of(F32, &[1, 4, 4]), Of(F32, &[1, 2, 4]), Int64(&[], &[2]), Float32(&[0.5]), Float32(&[0.25])],
                vec![],
            ),
            case(
                vec![Of(F32, &[2, 3, 4]), Of(F32, &[2, 1, 3]), Int64(&[1], &[3])],
                vec![("center_point_box", Bool(true))],
            ),
            case(vec![Of(F32, &[1, 4, 4]), Of(F32, &[1, 2, 4])], vec![]),
        ],
        "cosine_window" => vec![
            case(vec![Int64(&[], &[5])], vec![("kind", Str("hann"))]),
            case(
                vec![Int64(&[1], &[6])],
                vec![("kind", Str("blackman")), ("periodic", Bool(false)), ("dtype", Element(DType::BFloat16))],
            ),
            case(vec![Int64(&[], &[0])], vec![("kind", Str("hamming"))]),
        ],
        _ => return None,
    })
}

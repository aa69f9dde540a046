//! Calls of operators on images.

use super::A::*;
use super::O::*;
use super::{Case, by_row, case};

/// Returns calls of an operator of this family; `None` for other operators.
pub(super) fn cases(op: &str) -> Option<Vec<Case>> {
    Some(match op {
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
        _ => return None,
    })
}

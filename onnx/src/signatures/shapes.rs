//! Operators that compute shapes, move elements or select them.

use super::row::ElementType::{Attribute, Of, OfTensor};
use super::row::ExtentOf::{self, Value};
use super::row::OutputExtents::{Are, By, Like, RankOf};
use super::row::OutputType::{self, Tensor};
use super::row::{FIRST, FLOAT, INT64, IS_FLOAT, LIKE_FIRST, RANK_OF_FIRST, SCALAR, STRING, Signature, UINT8};
use super::rules;

const UNKNOWN_LIST: OutputType = Tensor(INT64, Are(&[ExtentOf::Unknown]));

pub(super) const ROWS: &[Signature] = &[
    Signature::of(&["CenterCropPad", "Pad", "Resize", "Slice", "Tile", "Upsample"], &[RANK_OF_FIRST]),
    Signature::of(&["Compress"], &[Tensor(FIRST, By(rules::selected_along_axis))]),
    Signature::of(&["Concat"], &[Tensor(FIRST, By(rules::concatenated))]),
    Signature::of(&["Constant"], &[OutputType::By(rules::constant)]),
    Signature::of(
        &["ConstantOfShape"],
        &[Tensor(&[OfTensor("value"), IS_FLOAT], By(|node| rules::extents_in(node, 0)))],
    ),
    Signature::of(
        &["DepthToSpace", "SpaceToDepth"],
        &[Tensor(FIRST, Are(&[ExtentOf::Of(0, 0), ExtentOf::Unknown, ExtentOf::Unknown, ExtentOf::Unknown]))],
    ),
    Signature::of(&["Expand"], &[Tensor(FIRST, By(rules::expanded))]),
    Signature::of(&["Flatten"], &[Tensor(FIRST, By(rules::flattened))]),
    Signature::of(&["Gather"], &[Tensor(FIRST, By(rules::gathered))]),
    Signature::of(&["GatherElements"], &[Tensor(FIRST, Like(1))]),
    Signature::of(&["GatherND"], &[Tensor(FIRST, By(rules::gathered_nd))]),
    Signature::of(&["NonZero"], &[Tensor(INT64, By(rules::positions))]),
    Signature::of(&["OneHot"], &[Tensor(&[Of(2)], By(rules::one_hot))]),
    Signature::of(&["Range"], &[Tensor(FIRST, Are(&[ExtentOf::Unknown]))]),
    Signature::of(&["Reshape"], &[Tensor(FIRST, By(rules::reshaped))]),
    Signature::of(&["Shape"], &[Tensor(INT64, By(rules::shape_of))]),
    Signature::of(&["Size"], &[Tensor(INT64, SCALAR)]),
    Signature::of(&["Split"], &[Tensor(FIRST, By(rules::split_part))]).repeating(),
    Signature::of(&["Squeeze"], &[Tensor(FIRST, By(rules::squeezed))]),
    Signature::of(&["Unsqueeze"], &[Tensor(FIRST, By(rules::unsqueezed))]),
    Signature::of(&["TopK"], &[Tensor(FIRST, By(rules::top)), Tensor(INT64, By(rules::top))]),
    Signature::of(&["Transpose"], &[Tensor(FIRST, By(rules::transposed))]),
    Signature::of(
        &["Unique"],
        &[Tensor(FIRST, By(rules::selected_along_axis)), UNKNOWN_LIST, UNKNOWN_LIST, UNKNOWN_LIST],
    ),
    // Texts.
    Signature::of(&["StringNormalizer"], &[Tensor(STRING, RankOf(0, &[]))]),
    Signature::of(&["StringSplit"], &[Tensor(STRING, By(rules::with_last_extent)), Tensor(INT64, Like(0))]),
    Signature::of(&["TfIdfVectorizer"], &[Tensor(FLOAT, RankOf(0, &[]))]),
    Signature::of(&["ImageDecoder"], &[Tensor(UINT8, Are(&[ExtentOf::Unknown; 3]))]),
    // Signals.
    Signature::of(
        &["BlackmanWindow", "HammingWindow", "HannWindow"],
        &[Tensor(&[Attribute("output_datatype"), IS_FLOAT], Are(&[Value(0)]))],
    ),
    Signature::of(
        &["MelWeightMatrix"],
        &[Tensor(&[Attribute("output_datatype"), IS_FLOAT], Are(&[ExtentOf::Unknown, Value(0)]))],
    ),
    Signature::of(&["DFT"], &[RANK_OF_FIRST]),
    Signature::of(
        &["STFT"],
        &[Tensor(FIRST, Are(&[ExtentOf::Of(0, 0), ExtentOf::Unknown, ExtentOf::Unknown, ExtentOf::Is(2)]))],
    ),
    Signature::of(&["NonMaxSuppression"], &[Tensor(INT64, Are(&[ExtentOf::Unknown, ExtentOf::Is(3)]))]),
    Signature::of(&["AffineGrid"], &[Tensor(FIRST, By(rules::affine_grid))]),
    Signature::of(&["Col2Im"], &[Tensor(FIRST, By(rules::image_of_columns))]),
    Signature::of(&["GridSample"], &[Tensor(FIRST, By(rules::grid_sampled))]),
    Signature::of(
        &["CausalConvWithState"],
        &[LIKE_FIRST, Tensor(FIRST, Are(&[ExtentOf::Of(0, 0), ExtentOf::Of(0, 1), ExtentOf::Unknown]))],
    ),
];

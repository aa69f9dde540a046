//! The operators of the domain `ai.onnx.ml`.

use anfora_ir::DType;

use super::node_types::NodeTypes;
use super::row::ElementType::{Exchanged, If, Is, Of, OfTensor};
use super::row::ExtentOf;
use super::row::OutputExtents::{Are, By, Like, Unranked};
use super::row::OutputType::{self, Tensor};
use super::row::{FIRST, FLOAT, LIKE_FIRST, OutputShape, SEQUENCE, Signature};
use super::rules;

/// Numbers for each row of the operand.
const BY_ROW: OutputType = Tensor(FLOAT, By(matrix_by_row));

pub(super) const ROWS: &[Signature] = &[
    Signature::of(&["ArrayFeatureExtractor"], &[Tensor(FIRST, By(features))]),
    Signature::of(&["Binarizer", "Imputer"], &[LIKE_FIRST]),
    // The element type is in a word of an attribute, or that of the values of a map.
    Signature::of(&["CastMap", "DictVectorizer"], &[Tensor(&[], Unranked)]),
    Signature::of(&["CategoryMapper"], &[Tensor(&[Exchanged(0)], Like(0))]),
    Signature::of(&["FeatureVectorizer"], &[Tensor(FLOAT, Are(&[ExtentOf::Unknown, ExtentOf::Unknown]))]),
    Signature::of(&["LabelEncoder"], &[Tensor(&[Exchanged(0)], Like(0))]).until(1),
    Signature::of(
        &["LabelEncoder"],
        &[Tensor(
            &[
                OfTensor("values_tensor"),
                If("values_strings", DType::String),
                If("values_int64s", DType::Int64),
                If("values_floats", DType::Float32),
            ],
            Like(0),
        )],
    )
    .since(2),
    Signature::of(
        &["LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"],
        &[Tensor(&[If("classlabels_strings", DType::String), Is(DType::Int64)], By(rows)), BY_ROW],
    ),
    Signature::of(&["LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor"], &[BY_ROW]),
    Signature::of(&["TreeEnsemble"], &[Tensor(&[Of(0)], By(matrix_by_row))]),
    Signature::of(&["Normalizer", "Scaler"], &[Tensor(FLOAT, Like(0))]),
    Signature::of(&["OneHotEncoder"], &[Tensor(FLOAT, By(rules::with_last_extent))]),
    Signature::of(&["ZipMap"], &[SEQUENCE]),
];

/// The number of rows of the operand.
fn rows(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = node.unknown(1);
    if let Some(&[rows, _]) = node.extents(0).as_deref() {
        shape[0] = rows;
    }
    Some(shape)
}

fn matrix_by_row(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = rows(node)?;
    shape.push(node.cx.types.dims.unknown());
    Some(shape)
}

/// Those of the operand with another last one. A list becomes a matrix with one row.
fn features(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = node.extents(0)?;
    let unknown = node.cx.types.dims.unknown();
    match shape.as_mut_slice() {
        [] => return None,
        [_] => return Some([node.constant(1), unknown].into_iter().collect()),
        [.., last] => *last = unknown,
    }
    Some(shape)
}
